#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording adds to the resident memory of a small program (bench/programs/small.c: a heap of 1 MiB, few
stacks), by what it belongs to: means over many runs, since it depends on where the kernel puts libraries.

    make all build/bench/small && bench/resident.py [LIBRARY …]

It is summed up over /proc/PID/smaps while the program waits. Pages of files count as the kernel counts them: also
those that it mapped around a page that was touched.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parent.parent / "build")
RUNS = 31
PLAIN = "plain"


def part_of(path, rights, library):
    """The row of a mapping."""
    if path == str(library):
        return f"the library's file, {rights}"
    if path.endswith(".cairn"):
        return "recording"
    return re.sub(r"-?[\d.]*\.so.*", "", os.path.basename(path)) or "other memory"


def resident(library):
    """KiB by part."""
    with tempfile.TemporaryDirectory() as place:
        recorded = {} if library == PLAIN else {"LD_PRELOAD": str(library), "CAIRN_OUTPUT": f"{place}/x.cairn"}
        parts = collections.Counter()
        with subprocess.Popen([BUILD / "bench/small"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, **recorded}) as program:
            program.stdout.read(1)
            part = None
            for line in pathlib.Path(f"/proc/{program.pid}/smaps").read_text().splitlines():
                mapping = re.match(r"[\da-f]+-[\da-f]+ (\S+) \S+ \S+ \d+ *(.*)$", line)
                if mapping:
                    part = part_of(mapping[2], mapping[1], library)
                elif line.startswith("Rss:"):
                    parts[part] += int(line.split()[1])
            program.stdin.close()
        return parts


def main():
    libraries = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or [BUILD.resolve() / "libcairn.so"]
    sums = {library: collections.Counter() for library in [PLAIN, *libraries]}
    for _ in range(RUNS):
        for library, sum_of in sums.items():
            sum_of.update(resident(library))
    print("| KiB added | " + " | ".join(map(str, libraries)) + " |\n|---|" + "--:|" * len(libraries))
    for part in sorted(set().union(*sums.values())):
        added = [(sums[library][part] - sums[PLAIN][part]) / RUNS for library in libraries]
        if any(abs(value) >= 1 for value in added):
            print(f"| {part} | " + " | ".join(f"{value:.0f}" for value in added) + " |")
    print("| **sum** | " + " | ".join(f"{(sums[library].total() - sums[PLAIN].total()) / RUNS:.0f}"
                                      for library in libraries) + " |")


if __name__ == "__main__":
    main()
