#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether recording costs more than it did at another commit: builds the library of BASE beside that of this
tree, counts on this machine the instructions that each adds to a malloc+free pair (bench/instructions.py) and
to the start of a program, prints both, and fails if one rose by more than 2 %.

    make all bench-programs && bench/compare.py [--part] [BASE]

BASE is a commit or a tag, by default what bench/compared_with names. Status 77: this clone does not have it.
Counts do not depend on what else the machine does, so the test promises/cost runs this too, in `make check` with
--part: a row for each way that an event takes. A library of the same sources, made by the same commands, is the same:
then nothing is built and counted.
"""

import os
import pathlib
import subprocess
import sys

import instructions

TOP = pathlib.Path(__file__).resolve().parent.parent
# Rows of --part, and those that differ from one of them by depth, sizes or how stacks follow each other.
PART = [(("one", 20, 1), {}), (("grow", 20, 1), {}), (("resize", 20, 1), {}), (("random", 20, 1024), {}),
        (("one:random", 20, 1), {"CAIRN_STACKS": "0"}), (("one", 20, 1), {"CAIRN_SAMPLE": "1"}), (("one", 20, 1), {"CAIRN_OFF": "1"})]
ROWS = [(("one", 5, 1), {}), (("one", 20, 1), {}), (("one", 60, 1), {}), (("grow", 20, 1), {}), (("resize", 20, 1), {}),
        (("one:random", 5, 1), {}), (("walk", 20, 256), {}), (("random", 20, 1024), {}), (("never", 20, 1), {}),
        (("one:random", 20, 1), {"CAIRN_STACKS": "0"}), (("resize:random", 20, 1), {"CAIRN_STACKS": "0"}),
        (("one", 20, 1), {"CAIRN_SAMPLE": "1"}), (("one", 20, 1), {"CAIRN_OFF": "1"})]
# Of one stack, a slope needs no more of them than make the start small beside it; many stacks have to be met first.
PAIRS = (10000, 40000)
PAIRS_OF_MANY = (20000, 60000)
AGAIN = 3  # counts of a row that is above, of both libraries
RISE, NOISE = 1.02, 2.5  # a share, and instructions: a program's start varies by so many a pair
# A start depends on the environment and on what else the machine does: the least of some.
START, STARTS, START_NOISE = ["/bin/true"], 3, 2000
NOT_HERE = 77
MORE = "  more than 2 % above"
# All that the library is made of, but for the commands.
SOURCES = ["runtime", "format", "include", "dev/exported-names.sh", "dev/order.awk", "dev/runtime-symbols.allow"]
MAKE_LIBRARY = ["make", "BUILD=build", "build/libcairn.so"]


def environment():
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "BUILD_DIR")}


def base_tree(base):
    """The sources as they were at a commit: commit, directory."""
    commit = subprocess.run(["git", "-C", TOP, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"],
                            capture_output=True, text=True, check=False).stdout.strip()
    if not commit:
        print(f"this clone has no commit {base}")
        sys.exit(NOT_HERE)
    place = instructions.BUILD / "compare" / commit
    if not (place / "Makefile").exists():
        place.mkdir(parents=True, exist_ok=True)
        tree = subprocess.run(["git", "-C", TOP, "archive", commit], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "x", "-C", place], input=tree, check=True)
    return commit, place


def commands_in(tree):
    """All commands that make the library there, whatever is up to date."""
    return subprocess.run([*MAKE_LIBRARY, "-nB", "BUILT=1"], cwd=tree, env=environment(), stdout=subprocess.PIPE,
                          check=True).stdout


def is_as_here(commit, tree):
    """Whether the library that is built in `tree` is the one that is built here."""
    git = ["git", "-C", TOP]
    changed = subprocess.run([*git, "diff", "--quiet", commit, "--", *SOURCES], check=False).returncode
    added = subprocess.run([*git, "ls-files", "--others", "--", *SOURCES], stdout=subprocess.PIPE, check=True).stdout
    return not changed and not added and commands_in(tree) == commands_in(TOP)


def library_of(tree):
    library = tree / "build/libcairn.so"
    if not library.exists():
        subprocess.run([*MAKE_LIBRARY, "-s", f"-j{os.cpu_count()}"], cwd=tree, env=environment(), check=True)
    return library


class Counted:
    """The least instructions of a row by a library that were seen, of few pairs and of many. What the clock decides
    (the trials of runtime/unwind/stack_cache.h) goes another way in one run of some: the least is the row's own."""

    def __init__(self, library, row, settings):
        self.variables, self.row = {**instructions.recorded_by(library), **settings}, row
        self.pairs = PAIRS if row[2] == 1 else PAIRS_OF_MANY
        self.least = [float("inf")] * len(self.pairs)

    def counted(self):
        """Counts again: instructions of a pair"""
        runs = (instructions.instructions(self.row, number, self.variables) for number in self.pairs)
        self.least = [min(least, seen) for least, seen in zip(self.least, runs)]
        return (self.least[1] - self.least[0]) / (self.pairs[1] - self.pairs[0])


def main():
    words = sys.argv[1:]
    rows = PART if "--part" in words else ROWS
    base = next((word for word in words if word != "--part"), None) or (TOP / "bench/compared_with").read_text().split()[0]
    commit, tree = base_tree(base)
    if is_as_here(commit, tree):
        print(f"nothing to count: the library has the sources of {base[:12]}, and is made by the same commands")
        return
    libraries = library_of(tree), instructions.BUILD / "libcairn.so"
    plain, has_risen = {}, False
    print(f"instructions added to a pair             {base[:12]:>12}         here")
    before, now = (min(instructions.a_start(START, instructions.recorded_by(library)) for _ in range(STARTS))
                   for library in libraries)
    alone = instructions.a_start(START, {})
    is_more = now - alone > (before - alone) * RISE + START_NOISE
    has_risen |= is_more
    print(f"{'start of ' + START[0]:40} {before - alone:12} {now - alone:12}{MORE if is_more else ''}", flush=True)
    for row, settings in rows:
        both = [Counted(library, row, settings) for library in libraries]
        if row not in plain:
            plain[row] = instructions.a_pair(row, {}, pairs=both[0].pairs)
        for _ in range(1 + AGAIN):
            before, now = (library.counted() - plain[row] for library in both)
            is_more = now > before * RISE + NOISE
            if not is_more:
                break
        has_risen |= is_more
        name = ", ".join([row[0], f"depth {row[1]}", *(f"{key}={value}" for key, value in settings.items())])
        print(f"{name:40} {before:12.0f} {now:12.0f}{MORE if is_more else ''}", flush=True)
    sys.exit(has_risen)


if __name__ == "__main__":
    main()
