# SPDX-License-Identifier: Apache-2.0
# Commands for gdb in a process that cairn records, live or as a core dump. `cairn gdb-script` prints this
# file behind the table FORMAT, which has the places of the recording's fields.
#     cairn totals         what was allocated, what is live, the peak
#     cairn threads        the same by thread
#     cairn block ADDRESS  size and stack of a live block (for glibc's allocator)
#     cairn top [N]        the stacks that hold the most now
import gdb

WINDOW_BITS, CELL_NONE, CELL_OTHER, FOREIGN = 28, 0, 1, 1 << 31
ESCAPE, CUT, MODULE, FULL, PYTHON = 0xF0, 0xF0, 0xF1, 0xF2, 0xF3
CUTS = {1: "no unwind information", 2: "unreadable stack", 3: "too deep", 4: "unknown unwind information",
        5: "", 6: "stacks were not wanted", 12: "small allocations", 13: "large allocations"}
SAMPLE_ONE = 1 << 16


def read(address, count):
    return bytes(gdb.selected_inferior().read_memory(address, count))


def number(address, count, is_signed=False):
    return int.from_bytes(read(address, count), "little", signed=is_signed)


class Recording:
    """The recording in the memory of the inferior: libcairn's symbol cairn_recording points to it."""

    def __init__(self):
        try:
            self.header = number(int(gdb.parse_and_eval("(unsigned long)&cairn_recording")), 8)
        except gdb.error:
            raise gdb.GdbError("this program has no libcairn loaded") from None
        if not self.header or read(self.header, 5) != b"cairn":
            raise gdb.GdbError("this process is not recorded")
        self.sections = {}
        for i in range(self.field("cairn_header", "section_count", self.header)):
            at = self.header + FORMAT["cairn_header.sections"][0] + i * FORMAT["cairn_section"]
            used = self.field("cairn_section", "used_bytes", at)
            capacity = self.field("cairn_section", "capacity_bytes", at)
            self.sections[self.field("cairn_section", "kind", at)] = (
                self.header + self.field("cairn_section", "offset", at), min(used, capacity))

    def field(self, structure, name, at):
        offset, size, is_signed = FORMAT[f"{structure}.{name}"]
        return number(at + offset, size, is_signed)

    def total(self, name):
        return self.field("cairn_totals", name, self.header + FORMAT["totals"])

    def entries(self, kind, structure):
        start, used = self.sections[FORMAT[kind]]
        return range(start, start + used - used % FORMAT[structure], FORMAT[structure])

    def threads(self):
        for at in self.entries("THREADS", "cairn_thread"):
            name = read(at + FORMAT["cairn_thread.name"][0], 16).split(b"\0")[0].decode(errors="replace")
            yield {"name": name, **{field: self.field("cairn_thread", field, at) for field in
                                    ("tid", "allocations", "allocated_bytes", "frees", "net_bytes", "is_sampled",
                                     "estimated_blocks")}}

    def word(self, index):
        return number(self.sections[FORMAT["RECORDS"]][0] + 4 * index, 4)

    def cell(self, name, cell):
        return self.field("cairn_cell", name, self.sections[FORMAT["CELLS"]][0] + cell * FORMAT["cairn_cell"])

    def frame(self, at):
        """One frame code: (address or text, words)."""
        code = self.word(at)
        if code >> 24 < ESCAPE:
            window = number(self.header + FORMAT["cairn_header.windows"][0] + 8 * (code >> WINDOW_BITS), 8)
            return window + (code & ((1 << WINDOW_BITS) - 1)), 1
        kind, value = code >> 24, code & 0xFFFFFF
        if kind == MODULE:
            modules = self.sections[FORMAT["MODULES"]][0]
            start = self.field("cairn_module", "start", modules + value * FORMAT["cairn_module"])
            return start + self.word(at + 1), 2
        if kind == FULL:
            return self.word(at + 1) | self.word(at + 2) << 32, 3
        if kind == PYTHON:
            return f"Python code, line {self.word(at + 2)}", 3
        return (CUTS.get(value, "") if kind == CUT else None), 1  # a region is no frame

    def stack(self, cell):
        """Frames of a cell, outermost first."""
        if cell <= CELL_OTHER:
            return ["stack not recorded"]
        record = self.cell("record", cell)
        older, head = self.word(record), self.word(record + 1)
        if head & FOREIGN:
            return self.stack(older)
        keep, count = head >> 16 & 0x7FFF, head & 0xFFFF
        frames = self.stack(older)[:keep] if older and keep else []
        at = record + 2
        for _ in range(count):
            frame, words = self.frame(at)
            at += words
            if frame is not None:
                frames.append(frame)
        return frames

    def block(self, address):
        """(cell, requested size) of a live block, or None."""
        if self.field("cairn_header", "slot_bytes", self.header) != 4:
            raise gdb.GdbError("blocks are known for glibc's allocator; cairn core reads others")
        tops = self.field("cairn_header", "live_map", self.header)
        middle = number(tops + 8 * (address >> 36 & 2047), 8)
        origin = number(middle + 8 * (address >> 22 & 16383), 8) if middle else 0
        if not origin:
            return None
        slot = (origin + (address >> 5) * 4) & (2**64 - 1)
        word, room = number(slot, 4), (number(address - 8, 8) & ~7) - 8
        cell, slack = word >> 7, word & 63
        if not cell or (word >> 6 & 1) != (address >> 4 & 1):
            return None
        return cell, room - (number(slot + 4, 4) - 62 if slack == 63 else slack)


def plural(count, word):
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def describe(frame):
    if not isinstance(frame, int):
        return f"[{frame}]" if frame else None
    place = gdb.find_pc_line(frame - 1)
    symbol = gdb.execute(f"info symbol {frame - 1:#x}", to_string=True).strip()
    name = symbol.split(" in section")[0] if " in section" in symbol else f"{frame - 1:#x}"
    return f"{name}  {place.symtab.filename}:{place.line}" if place.symtab else name


def print_stack(recording, cell):
    for frame in reversed(recording.stack(cell)):
        text = describe(frame)
        if text:
            print(f"    {text}")


class CairnPrefix(gdb.Command):
    """What cairn recorded of this process: totals, threads, block ADDRESS, top [N]."""

    def __init__(self):
        super().__init__("cairn", gdb.COMMAND_DATA, prefix=True)


class CairnTotals(gdb.Command):
    """What was allocated so far, what is live, and the highest peak that was left."""

    def __init__(self):
        super().__init__("cairn totals", gdb.COMMAND_DATA)

    def invoke(self, _argument, _from_tty):
        recording = Recording()
        threads = list(recording.threads())
        allocations, live = sum(t["allocations"] for t in threads), sum(t["net_bytes"] for t in threads)
        blocks = sum(t["estimated_blocks"] // SAMPLE_ONE if t["is_sampled"] else t["allocations"] - t["frees"]
                     for t in threads)
        about = "about " if any(t["is_sampled"] for t in threads) else ""  # estimated from samples
        print(f"allocated {sum(t['allocated_bytes'] for t in threads):,} bytes in {plural(allocations, 'call')}")
        print(f"live {about}{live:,} bytes in {plural(blocks, 'block')}")
        print(f"peak {about}{max(live, recording.total('peak_bytes')):,} bytes")


class CairnThreads(gdb.Command):
    """Threads with what they allocated, and that minus what they freed."""

    def __init__(self):
        super().__init__("cairn threads", gdb.COMMAND_DATA)

    def invoke(self, _argument, _from_tty):
        for thread in Recording().threads():
            print(f"{thread['tid']:>8} {thread['name']:16} {plural(thread['allocations'], 'call')}, "
                  f"{thread['allocated_bytes']:,} bytes, net {thread['net_bytes']:,}")


class CairnBlock(gdb.Command):
    """Requested size of a live block, and the stack that allocated it."""

    def __init__(self):
        super().__init__("cairn block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _from_tty):
        if not argument:
            raise gdb.GdbError("cairn block needs an address")
        recording, address = Recording(), int(gdb.parse_and_eval(f"(unsigned long)({argument})"))
        found = recording.block(address)
        if not found:
            hint = " (it records samples)" if any(t["is_sampled"] for t in recording.threads()) else ""
            raise gdb.GdbError(f"{address:#x} is not the start of a live block that cairn knows{hint}")
        print(f"{address:#x}: {found[1]:,} bytes, allocated by")
        print_stack(recording, found[0])


class CairnTop(gdb.Command):
    """The stacks that hold the most bytes now, each as its own thread allocated from it."""

    def __init__(self):
        super().__init__("cairn top", gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        recording, live = Recording(), {}
        for cell in range(CELL_OTHER, len(recording.entries("CELLS", "cairn_cell"))):
            freed = recording.cell("freed_bytes", cell)
            held = recording.cell("allocated_bytes", cell) - freed
            if held and cell > CELL_OTHER:
                record = recording.cell("record", cell)
                is_foreign = recording.word(record + 1) & FOREIGN
                owner = recording.word(record) if is_foreign else cell
                live[owner] = live.get(owner, 0) + held
        for cell, held in sorted(live.items(), key=lambda row: -row[1])[:int(argument or 5)]:
            print(f"{held:,} bytes")
            print_stack(recording, cell)


CairnPrefix(), CairnTotals(), CairnThreads(), CairnBlock(), CairnTop()
