# SPDX-License-Identifier: Apache-2.0
"""The comparison behind compare-symbols.sh; see there."""

import os
import random
import re
import subprocess
import sys
import tempfile

SHOWN_DIFFERENCES = 10
ADDR2LINE_COUNT = 2000  # it asks for each address anew
SEED = 20240229  # the same addresses each time


def text_section(path):
    """(address, size) of .text."""
    lines = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    found = re.search(r"\]\s+\.text\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", lines)
    return int(found[1], 16), int(found[2], 16)


def readable(symbolize, names):
    """{mangled: readable} of the names, by the tool's own name cleaning."""
    names = sorted(names)
    answer = subprocess.run([symbolize, "--names"], input="\n".join(names) + "\n",
                            capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(zip(names, answer))


def blocks(text):
    """Blocks of lines between empty lines."""
    return [block.split("\n") for block in text.rstrip("\n").split("\n\n")]


def our_frames(block):
    frames = []
    for line in block:
        function, place = line.split("\t")
        frames.append((function, place))
    return frames


def their_frames(block):
    frames = []
    for function, place in zip(block[::2], block[1::2]):
        place = re.sub(r":(\d+|\?)$", "", place)  # the column
        # A bare name without a line is the symbol table's word for the object file.
        is_unknown = place.startswith("??") or re.fullmatch(r"[^/]*:0", place)
        frames.append((function, "??:0" if is_unknown else place))
    return frames


def unqualified(mine, theirs):
    """Whether theirs is ours without what surrounds it: names that have no linkage name."""
    return mine != theirs and mine.endswith("::" + theirs)


def symbol_addresses(path, symbolize):
    """{readable name: addresses where a symbol of that name stands}"""
    pairs = []
    for arguments in ([], ["-D"]):
        lines = subprocess.run(["nm", *arguments, path], capture_output=True, text=True).stdout
        for line in lines.splitlines():
            fields = line.split(" ", 2)
            if len(fields) == 3 and fields[0]:
                pairs.append((int(fields[0], 16), fields[2]))
    names = readable(symbolize, {name for _, name in pairs})
    addresses = {}
    for address, name in pairs:
        addresses.setdefault(names[name], set()).add(address)
    return addresses


CLOSURE = re.compile(r"\{(lambda|closure)[^{}]*\}")


def with_plain_closures(frames):
    """A closure is named by its place here and by its number there."""
    return [(CLOSURE.sub(r"{\1}", name), place) for name, place in frames]


def addr2line(path, asked):
    """Frames of each address as binutils has them. Only their places count: it gives an inlined frame the
    name of the symbol around it."""
    answer = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", path], input=asked,
                            capture_output=True, text=True, check=True).stdout
    frames = []
    for block in re.split(r"^0x[0-9a-f]+\n", answer, flags=re.MULTILINE)[1:]:
        lines = block.split("\n")
        places = [re.sub(r" \(discriminator \d+\)$", "", place).replace(":?", ":0")
                  for place in lines[1::2]]
        frames.append([(name, place if re.search(r":\d+$", place) else "??:0")
                       for name, place in zip(lines[::2], places)])
    return frames


class Comparison:
    """Counts equal answers for the same addresses."""

    def __init__(self, names, aliases):
        self.names, self.aliases = names, aliases
        self.has_names = True
        self.total = self.same = self.by_alias = self.by_tail = self.names_same = 0
        self.kinds, self.differences = {}, []

    def add(self, address, mine, other, short):
        other = with_plain_closures([(self.names[name], place) for name, place in other])
        mine = with_plain_closures(mine)
        self.total += 1
        if len(mine) == len(other):  # of a symbol without a line some tell the object file
            other = [(name, "??:0" if m == "??:0" and place.endswith(":0") else place)
                     for (_, m), (name, place) in zip(mine, other)]
        if not self.has_names and len(mine) == len(other):
            other = [(name, place) for (name, _), (_, place) in zip(mine, other)]
        mine_last, other_last = mine[-1][0], other[-1][0]
        is_alias = mine_last != other_last and (
            bool(self.aliases.get(mine_last, set()) & self.aliases.get(other_last, set())) or
            mine_last == short or mine_last.endswith("::" + short))
        if is_alias:
            other[-1] = (mine_last, other[-1][1])
        if len(mine) == len(other):
            tails = [unqualified(m[0], o[0]) for m, o in zip(mine, other)]
            self.by_tail += any(tails)
            other = [(m[0] if tail else o[0], o[1]) for m, o, tail in zip(mine, other, tails)]
        self.names_same += [name for name, _ in mine] == [name for name, _ in other]
        if mine == other:
            self.same += 1
            self.by_alias += is_alias
            return
        kind = "frames" if len(mine) != len(other) else (
            "names" if [m[0] for m in mine] != [o[0] for o in other] else "places")
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.differences.append((kind, address, mine, other))

    def show(self):
        print("  %.3f %% of %d addresses have the same frames (%d with another name of the same "
              "function, %d with names that only we qualify), %.3f %% the same names"
              % (100 * self.same / self.total, self.total, self.by_alias, self.by_tail,
                 100 * self.names_same / self.total))
        if self.kinds:
            print("  differences: " + ", ".join("%d %s" % (n, k)
                                                 for k, n in sorted(self.kinds.items())))
        for kind, address, mine, other in self.differences[:SHOWN_DIFFERENCES]:
            print("    %s %s\n      ours   %.300s\n      theirs %.300s" % (kind, address, mine, other))


def run_timed(command, asked):
    """(what it said, seconds of processor time, MiB at most)"""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as question:
        question.write(asked)
        question.seek(0)
        with subprocess.Popen(command, stdin=question, stdout=said,
                              stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        said.seek(0)
        if process.returncode:
            sys.exit(f"{command[0]} ended with status {process.returncode}")
        return said.read(), seconds, usage.ru_maxrss / 1024


def llvm_command(functions, path):
    return ["llvm-symbolizer", "--functions=" + functions, "--inlines", "--no-demangle",
            "--obj=" + path]


def main():
    binary, count, other_file, symbolize = sys.argv[1:5]
    start, size = text_section(other_file)
    generator = random.Random(SEED)
    addresses = [hex(start + generator.randrange(size)) for _ in range(int(count))]
    asked = "\n".join(addresses) + "\n"

    ours, our_seconds, our_mib = run_timed([symbolize, binary], asked)
    theirs, their_seconds, their_mib = run_timed(llvm_command("linkage", other_file), asked)
    shorts = [block[-2] for block in blocks(run_timed(llvm_command("short", other_file), asked)[0])]
    ours_list = [our_frames(block) for block in blocks(ours)]
    theirs_list = [their_frames(block) for block in blocks(theirs)]
    few = addresses[:ADDR2LINE_COUNT]
    binutils_list = addr2line(other_file, "\n".join(few) + "\n")
    if len(ours_list) != len(addresses) or len(theirs_list) != len(addresses) or \
            len(binutils_list) != len(few):
        sys.exit("answers %d, %d and %d for %d addresses" % (len(ours_list), len(theirs_list),
                                                             len(binutils_list), len(addresses)))
    names = readable(symbolize, {name for frames in theirs_list + binutils_list
                                 for name, _ in frames})
    aliases = symbol_addresses(other_file, symbolize)
    print(binary)
    for title, answers in (("llvm-symbolizer", theirs_list), ("addr2line", binutils_list)):
        comparison = Comparison(names, aliases)
        comparison.has_names = answers is theirs_list
        for asked_for in zip(addresses, ours_list, answers, shorts):
            comparison.add(*asked_for)
        print("with", title)
        comparison.show()
    print("ours %.2f s, %.0f MiB; llvm-symbolizer %.2f s, %.0f MiB"
          % (our_seconds, our_mib, their_seconds, their_mib))


main()
