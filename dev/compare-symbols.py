# SPDX-License-Identifier: Apache-2.0
"""The comparison behind compare-symbols.sh; see there."""

import random
import re
import subprocess
import sys
import time

SHOWN_DIFFERENCES = 10
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


def llvm(functions, path, asked):
    return subprocess.run(["llvm-symbolizer", "--functions=" + functions, "--inlines",
                           "--no-demangle", "--obj=" + path], input=asked, capture_output=True,
                          text=True, check=True).stdout


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


def main():
    binary, count, other_file, symbolize, scratch = sys.argv[1:]
    start, size = text_section(other_file)
    generator = random.Random(SEED)
    addresses = [hex(start + generator.randrange(size)) for _ in range(int(count))]
    asked = "\n".join(addresses) + "\n"

    with open(scratch + "/asked", "w") as file:
        file.write(asked)
    began = time.monotonic()
    ours = subprocess.run([symbolize, binary], input=asked, capture_output=True, text=True,
                          check=True)
    our_seconds = time.monotonic() - began
    began = time.monotonic()
    theirs = llvm("linkage", other_file, asked)
    their_seconds = time.monotonic() - began
    short_list = [block[-2] for block in blocks(llvm("short", other_file, asked))]

    ours_list = [our_frames(block) for block in blocks(ours.stdout)]
    theirs_list = [their_frames(block) for block in blocks(theirs)]
    if len(ours_list) != len(addresses) or len(theirs_list) != len(addresses):
        sys.exit("answers %d and %d for %d addresses" % (len(ours_list), len(theirs_list),
                                                         len(addresses)))
    names = readable(symbolize, {name for frames in theirs_list for name, _ in frames})
    aliases = symbol_addresses(other_file, symbolize)
    same = by_alias = by_tail = names_same = 0
    kinds, differences = {}, []
    for address, mine, other, short in zip(addresses, ours_list, theirs_list, short_list):
        other = [(names[name], place) for name, place in other]
        mine_last, other_last = mine[-1][0], other[-1][0]
        is_alias = mine_last != other_last and (
            bool(aliases.get(mine_last, set()) & aliases.get(other_last, set())) or
            mine_last == short or mine_last.endswith("::" + short))
        if is_alias:
            other[-1] = (mine_last, other[-1][1])
        if len(mine) == len(other):
            tails = [unqualified(m[0], o[0]) for m, o in zip(mine, other)]
            by_tail += any(tails)
            other = [(m[0] if tail else o[0], o[1]) for m, o, tail in zip(mine, other, tails)]
        names_same += [name for name, _ in mine] == [name for name, _ in other]
        if mine == other:
            same += 1
            by_alias += is_alias
            continue
        kind = "frames" if len(mine) != len(other) else (
            "names" if [m[0] for m in mine] != [o[0] for o in other] else "places")
        kinds[kind] = kinds.get(kind, 0) + 1
        differences.append((kind, address, mine, other))

    total = len(addresses)
    print("%s: %.3f %% of %d addresses have the same frames "
          "(%d with another name of the same function, %d with names that only we qualify), "
          "%.3f %% the same names"
          % (binary, 100 * same / total, total, by_alias, by_tail, 100 * names_same / total))
    print("  ours %.2f s (%s), llvm-symbolizer %.2f s" % (our_seconds, ours.stderr.strip(),
                                                           their_seconds))
    if kinds:
        print("  differences: " + ", ".join("%d %s" % (n, k) for k, n in sorted(kinds.items())))
    for kind, address, mine, other in differences[:SHOWN_DIFFERENCES]:
        print("  %s %s\n    ours   %s\n    theirs %s" % (kind, address, mine, other))


main()
