#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn import` of formats whose tools cannot be installed here, put together by encoders of this test from what is
published: traces of Perfetto's heapprofd (profile_packet.proto, profile_common.proto, interned_data.proto) and files of
bytehound (common/src/event.rs, lz4-compress)."""

import gzip
import pathlib
import struct
import zlib

import cairn_test as t


def import_file(path, *arguments):
    name = t.fresh_path("imported") + ".cairn"
    result = t.run_cairn("import", "-o", name, *arguments, str(path))
    if not t.check_equal(f"import {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None, ""
    return t.report(name), result.err.decode()


def refused(path, words, *arguments):
    result = t.run_cairn("import", "--force", *arguments, str(path))
    t.check(result.status == 1 and words in result.err.decode(), f"{path}: {result.status} {result.err}")


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def message(*fields):
    """Fields are (number, value): an int, a text, or bytes of another message."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def interned(iid, text):
    return message((1, iid), (2, text))


def frame(iid, function, mapping, rel_pc, source=0, line=0):
    return message((1, iid), (2, function), (3, mapping), (4, rel_pc), (5, source), (6, line))


def stack(iid, *frames):  # the outermost first
    return message((1, iid), *[(2, number) for number in frames])


def sample(stack_id, allocated, freed, calls, frees):
    return message((1, stack_id), (2, allocated), (3, freed), (5, calls), (6, frees))


def dump(pid, at_s, *samples, extra=()):
    return message((1, pid), (9, at_s * 10**9), (11, "libc.malloc"), (12, 4096), *extra,
                   *[(2, one) for one in samples])


def packet(*fields, sequence=1):
    return message((1, message((8, 1000), *fields, (10, sequence))))


def profile(*dumps, continued=0):
    return packet((37, message(*[(5, one) for one in dumps], (6, continued))))


DATA = message((5, interned(1, "main")), (5, interned(2, "_ZN4Shop5stockEi")), (17, interned(1, "tmp")),
               (17, interned(2, "shop")), (18, interned(1, "/src/shop.cc")),
               (19, message((1, 1), (3, 0), (4, 0x55d0_0000_0000), (5, 0x55d0_0010_0000), (7, 1), (7, 2))),
               (6, frame(1, 1, 1, 0x1111)), (6, frame(2, 2, 1, 0x2222, 1, 17)), (6, frame(3, 0, 1, 0x3333)),
               (7, stack(1, 1, 2)), (7, stack(2, 1, 3)), (7, stack(3, 1, 3)))
OTHER = message((5, interned(1, "wrong")), (6, frame(1, 1, 0, 0)), (7, stack(1, 1)))  # of another sequence
SYMBOLS = message((1, "/tmp/shop"), (3, message((1, 0x3333), (2, message((1, "inner"), (2, "in.h"), (3, 5))),
                                                (2, message((1, "fill"), (2, "/src/shop.cc"), (3, 9))))))
FIRST = profile(dump(7, 10, sample(1, 5000, 0, 5, 0)), continued=1) + profile(dump(7, 10, sample(2, 9000, 1000, 9, 1)))
SECOND = profile(dump(7, 12, sample(1, 6000, 2000, 6, 2), sample(2, 9000, 9000, 9, 9)))
HEAD = packet((3, 1000), (33, message((1, 2)))) + packet((12, OTHER), sequence=2)
TRACE = HEAD + packet((12, DATA)) + FIRST + SECOND + packet((61, SYMBOLS), sequence=3)


def check_trace(what, found, told):
    t.check_equal(f"{what}: sums", (found["totals"]["allocations"], found["totals"]["allocated_bytes"],
                                    found["peak"]["bytes"], found["at_exit"]["bytes"], found["at_exit"]["blocks"]),
                  (15, 15000, 13000, 4000, 4))
    stacks = {tuple(frame["function"] for frame in one["frames"]): one for one in found["stacks"]}
    t.check_equal(f"{what}: stacks", set(stacks), {("Shop::stock", "main"), ("inner", "fill", "main")})
    place = stacks[("Shop::stock", "main")]["frames"][0]
    t.check_equal(f"{what}: a line", (place["file"], place["line"], place["module"]), ("/src/shop.cc", 17, "/tmp/shop"))
    inlined = stacks[("inner", "fill", "main")]["frames"][:2]
    t.check_equal(f"{what}: inlined", [(one["file"], one["line"]) for one in inlined], [("in.h", 5), ("/src/shop.cc", 9)])
    t.check("every 4096 bytes" in told and not found["trust"]["exact"], f"{what}: {told}")


PACKED = HEAD + message((1, message((50, zlib.compress(TRACE[len(HEAD):])))))
for what, trace in (("perfetto", TRACE), ("compressed packets", PACKED), ("compressed as a whole", gzip.compress(TRACE))):
    path = pathlib.Path(what.replace(" ", "-"))
    path.write_bytes(trace)
    found, told = import_file(path)
    if found:
        check_trace(what, found, told)

pathlib.Path("unnamed").write_bytes(TRACE[:-len(packet((61, SYMBOLS), sequence=3))])
found, _ = import_file("unnamed")
t.check(any(one["frames"][0]["function"] == "shop+0x3333" for one in found["stacks"]), "an address without a name")

pathlib.Path("two").write_bytes(TRACE + profile(dump(8, 12, sample(1, 70, 0, 7, 0))))
refused("two", "heap profiles of the processes 7, 8: --process PID")
found, _ = import_file("two", "--process", "8")
t.check_equal("--process 8", (found["at_exit"]["bytes"], found["process"]["pid"]), (70, 8))
refused("two", "no dump of process 9 in it, but of 7, 8", "--process", "9")

most = profile(message((1, 7), (9, 10**10), (2, message((1, 1), (8, 800), (9, 4)))))
pathlib.Path("most").write_bytes(HEAD + packet((12, DATA)) + most)
found, told = import_file("most")
t.check_equal("a dump at the maximum", (found["peak"]["bytes"], found["at_exit"]["bytes"]), (800, 0))
t.check("all but the maximum" in told, f"a dump at the maximum: {told}")

lossy = profile(dump(7, 10, sample(1, 50, 0, 5, 0), extra=[(7, 1)]))
pathlib.Path("lossy").write_bytes(HEAD + packet((12, DATA)) + lossy)
_, told = import_file("lossy")
t.check("buffer overran" in told, f"an overrun: {told}")

LONG = packet((12, message((17, interned(2, "\x01" * 40000)))))  # 160,000 as it is shown
pathlib.Path("long").write_bytes(HEAD + packet((12, DATA)) + LONG + FIRST)
found, _ = import_file("long")
t.check("damage" not in str(found["trust"]["lost"]), f"a path of 40,000 bytes: {found['trust']}")

for name, content, words in (("cut", TRACE[:-5], "damaged or cut off"), ("none", HEAD, "no heap profile in this trace"),
                             ("stackless", HEAD + FIRST, "a stack that is not there"),
                             ("frameless", HEAD + packet((12, message((7, stack(1, 44))))) + FIRST, "a frame that is not"),
                             ("garbled", HEAD + message((1, message((50, b"not zlib")))), "compressed packets are damaged")):
    pathlib.Path(name).write_bytes(content)
    refused(name, words)

# ---- bytehound ----
def q(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def i(*values):
    return struct.pack(f"<{len(values)}I", *values)


def counted(content):
    return i(len(content)) + content


def speedy(value):
    """A number of its first byte's form."""
    for more in range(8):
        if value < 1 << 7 * (more + 1):
            return bytes([0xff << (8 - more) & 0xff | value >> 8 * more]) + (value & (1 << 8 * more) - 1).to_bytes(more, "little")
    return b"\xff" + q(value)


def event(kind, *parts):
    return i(kind) + b"".join(parts)


def body(pointer, size, backtrace):
    return q(pointer, size, backtrace) + i(1, 0, 8) + q(0)


def chunk(content):
    return b"\x02" + counted(content)


def literals(content):
    """A block of LZ4 without a match."""
    more = len(content) - 15
    return b"\xf0" + bytes([255] * (more // 255) + [more % 255]) + content


def packed(block):
    return b"\x01" + counted(block)


MAPS = (b"401000-402000 r-xp 00001000 fe:00 1 /tmp/shop\n402000-403000 rw-p 00002000 fe:00 1 /tmp/shop\n"
        b"7f0000001000-7f0000002000 r-xp 00001000 fe:00 2 /opt/libbytehound.so\n")
START = event(0, q(1, 2), q(1000, 1000, 1700000000, 0), i(77), counted(b"./shop\0-v\0"), counted(b"/tmp/shop"),
              counted(b"amd64"), q(1), b"\x08")
OLD = (event(4, q(1000), counted(b"/proc/self/maps"), counted(MAPS)) + event(11, counted(b"HOME=/"))
       + event(5, q(1), i(3), q(0x7f0000001100, 0x401101, 0x401201))
       + event(13, q(2), i(1), i(0xffffffff), i(2), q(0x401301, 0x401201))
       + event(13, q(3), i(1), i(1), i(1), q(0x401401))  # the new frame, and the last stack without its first
       + event(1, q(2000), body(0x10, 100, 1)) + event(1, q(2500), body(0x20, 300, 2))
       + event(3, q(3000), q(0x10, 1), i(1)) + event(2, q(4000), q(0x20), body(0x30, 500, 3))
       + event(17, q(1, 0, 0, 10, 1000, 100, 100)) + event(12, q(5000, 0, 0)) + event(7, i(1)))
NEW = (event(24, q(1000), speedy(5), q(0x401000), speedy(0x1000), speedy(0x1000), speedy(1 << 40), i(1, 2), i(5),
             speedy(9), b"/tmp/shop")
       + event(23, q(1000), counted(b"/tmp/shop"), q(4), b"\x7fELF")
       + event(18, q(1), i(1), i(0xffffffff), i(2), i(0x401101, 0x401201))
       + event(19, q(3), i(2), i(0x401401, 0x401201))
       + event(20, q(1, 1), q(2000), body(0x10, 100, 1)) + event(21, q(1, 2), q(2600), q(0x10), body(0x20, 300, 3))
       + event(25, q(1), speedy(5), q(0x401000), speedy(0x1000), speedy(1), q(1), speedy(300), q(1), speedy(70000), i(1))
       + event(26, q(1), speedy(5), q(1), *[speedy(1 << 7 * n) for n in range(7)])
       + event(27, speedy(6), q(1), speedy(0), speedy(4096), i(1, 2, 3), speedy(0), q(1), speedy(1), i(1))
       + event(22, q(1, 2), q(2700), q(0x20, 1), i(1)))


def sums(found):
    return (found["totals"]["allocations"], found["totals"]["allocated_bytes"], found["peak"]["bytes"],
            found["at_exit"]["bytes"])


for what, content in (("bytehound", chunk(START + OLD)), ("small chunks", b"".join(
        chunk((START + OLD)[at:at + 100]) for at in range(0, len(START + OLD), 100))), ("packed", packed(literals(START + OLD)))):
    pathlib.Path(what.replace(" ", "-")).write_bytes(content)
    found, told = import_file(what.replace(" ", "-"))
    if not found:
        continue
    t.check_equal(f"{what}: sums", sums(found), (13, 1900, 500, 500))
    t.check_equal(f"{what}: program", (found["process"]["command"], found["process"]["pid"]), ("./shop -v", 77))
    stacks = {tuple(frame["function"] for frame in one["frames"]): one["allocations"] for one in found["stacks"]}
    t.check_equal(f"{what}: stacks", stacks, {("shop+0x1100", "shop+0x1200"): 11, ("shop+0x1300", "shop+0x1200"): 1,
                                              ("shop+0x1400", "shop+0x1200"): 1})
    t.check("cut off" not in told and found["trust"]["exact"], f"{what}: {told}")
pathlib.Path("newer").write_bytes(chunk(START + NEW))
found, told = import_file("newer")
t.check_equal("events of version 0.11", found and sums(found), (2, 400, 300, 0))
t.check("cut off" not in told, f"events of version 0.11: {told}")

# a match may reach the end of a block, and overlap itself: the marker 7, 0, 0, 0 and four zeros more
pathlib.Path("matched").write_bytes(packed(literals(START + OLD)) + packed(b"\x40" + i(7) + b"\x01\x00"))
found, told = import_file("matched")
t.check(found and "cut off" not in told, f"a match at the end: {told}")
pathlib.Path("longer").write_bytes(packed(literals(START + OLD)) + packed(b"\x41" + i(7) + b"\x01\x00"))
found, told = import_file("longer")
t.check("cut off" in told, f"a byte more: {told}")

pathlib.Path("cut").write_bytes(chunk(START + OLD[:-40]))
found, told = import_file("cut")
t.check(found and "the end (the file is cut off)" in told and not found["trust"]["exact"], f"cut off: {told}")
for name, content, said in (("header", chunk(START[:40]), "header is cut off"),
                            ("stackless", chunk(START + event(1, q(1), body(1, 2, 99))), "a stack that is not there"),
                            ("newest", chunk(START + event(99)), "of the kind 99, which no version up to 0.11 has"),
                            ("after", chunk(START + event(15)), "was postprocessed"),
                            ("match", packed(literals(START)) + packed(b"\x10a\xff\x00"), "packed chunk that is damaged"),
                            ("chunk", chunk(START) + b"\x07" + i(5), "neither a packed chunk nor a plain one"),
                            ("large", chunk(START) + b"\x02" + i(1 << 30), "a chunk that is too large")):
    pathlib.Path(name).write_bytes(content)
    refused(name, said)
t.finish()
