#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions that cairn adds to a malloc+free pair, counted by callgrind: the difference between two
numbers of pairs, so that starting up does not count. The table of docs/explain/performance.md.

    make all bench-programs && bench/instructions.py [--events]
    bench/instructions.py --misses > bench/results/counts.md    (make bench-counts)

With --misses tables in Markdown: what a pair adds in instructions and in misses of simulated caches, the instructions
that a start adds, and those of a pair by room of the runtime. With --events alone what a log adds to a pair of the
default, as bench/events.py times it. The caches are those of one core of an AMD EPYC (Zen 5): 48 KiB for data, 32 KiB
for code, 1 MiB behind them. A simulation has no prefetching and no other core, but it is the same on every machine.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import split

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parent.parent / "build").resolve()
ROWS = [("one", 5, 1), ("one", 20, 1), ("one", 60, 1), ("one", 200, 1), ("ring", 20, 1),
        ("grow", 20, 1), ("resize", 20, 1), ("one:8", 5, 1), ("one:random", 5, 1),
        ("walk", 20, 256),
        ("random", 20, 1024), ("never", 20, 1)]
# Of one size, of several in turn and of any; of several stacks; a heap that grows.
EVENT_ROWS = [(mode + sizes, 20, 1) for mode in ("one", "ring") for sizes in ("", ":4", ":random")] + [
    ("walk", 20, 256), ("walk:3", 20, 256), ("random", 20, 1024), ("grow", 20, 1)]
PAIRS = (20000, 120000)
CACHES = ("--cache-sim=yes", "--D1=49152,12,64", "--I1=32768,8,64", "--LL=1048576,16,64")
# What callgrind prints at its end.
COUNTED = {"instructions": "I +refs", "first level, data": "D1 +misses", "first level, code": "I1 +misses",
           "second level": "LL +misses"}


def counted(command, variables, options=(), before=(), where=None):
    """What callgrind says of a command, which runs in a directory of its own or in this one: text."""
    with contextlib.nullcontext(where) if where else tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, CAIRN_OUTPUT=f"{place}/x.cairn", FLOOR_OUT=f"{place}/floor", **variables)
        return subprocess.run([*before, "valgrind", "--tool=callgrind", f"--callgrind-out-file={place}/out",
                               *options, *command], env=env, cwd=place, capture_output=True, text=True,
                              check=True).stderr


def number_of(said, what):
    return int(re.search(rf"{what}:\s+([\d,]+)", said)[1].replace(",", ""))


def instructions(row, pairs, variables, before=()):
    said = counted([BUILD / "bench/pairs", *map(str, row), str(pairs)], variables, before=before)
    return number_of(said, COUNTED["instructions"])


def a_pair(row, variables, before=(), pairs=PAIRS):
    few, many = (instructions(row, number, variables, before) for number in pairs)
    return (many - few) / (pairs[1] - pairs[0])


def a_start(command, variables):
    """Instructions of a whole run."""
    return number_of(counted(command, variables), COUNTED["instructions"])


def everything(command, variables, where):
    """{what is counted, or room: number} of a run in this directory, by COUNTED and split.COLUMNS"""
    said = counted(command, variables, CACHES, where=where)
    counts = {name: number_of(said, what) for name, what in COUNTED.items()}
    return {**counts, **split.by_room(pathlib.Path(where, "out"), counts["instructions"])}


def everything_a_pair(row, variables):
    found = []
    for pairs in PAIRS:
        with tempfile.TemporaryDirectory() as place:
            found.append(everything([BUILD / "bench/pairs", *map(str, row), str(pairs)], variables, place))
    few, many = found
    return {name: (many[name] - few[name]) / (PAIRS[1] - PAIRS[0]) for name in few}


def recorded_by(library):
    """The variables with which a program is recorded by this library."""
    return {"LD_PRELOAD": str(library)}


STARTS = (["/bin/true"], ["/usr/bin/python3", "-c", "pass"])


def print_misses():
    cairn, floor = recorded_by(BUILD / "libcairn.so"), recorded_by(BUILD / "bench/floor_preload.so")
    rooms = []
    print("Instructions added to a malloc+free pair, and misses in simulated caches "
          "(`make bench-counts`; [what each row is](../README.md)).\n")
    print("| stacks | depth | " + " | ".join(COUNTED) + " |\n|---|--:|" + "--:|" * len(COUNTED))
    for row in ROWS:
        plain, recorded = everything_a_pair(row, {}), everything_a_pair(row, cairn)
        added = {name: recorded[name] - plain[name] for name in plain}
        cells = f"{row[0]}, {row[2]:,}", f"{row[1]}"
        print("| " + " | ".join([*cells, f"{added['instructions']:,.0f}",
                                 *(f"{max(added[name], 0):.2f}" for name in list(COUNTED)[1:])]) + " |", flush=True)
        rooms.append((cells, added, a_pair(row, floor) - plain["instructions"]))
    print("\nInstructions of a whole run that does nothing, and what the library adds to them.\n")
    print("| program | alone | added |\n|---|--:|--:|")
    for command in STARTS:
        alone = a_start(command, {})
        print(f"| `{' '.join(command)}` | {alone:,} | {a_start(command, cairn) - alone:,} |", flush=True)
    split.print_table(["stacks", "depth"], rooms)


def beside_tool(*options):
    """(variables, what goes before the command): the command recorded by cairn run, with valgrind below it"""
    return {"CAIRN_VALGRIND": "1"}, [BUILD / "cairn", "run", "-q", "-o", "run.cairn", *options, "--"]


def print_events():
    print("instructions of a pair: plain, added by recording, added to that by a log")
    for row in EVENT_ROWS:
        plain, default = a_pair(row, {}), a_pair(row, recorded_by(BUILD / "libcairn.so"))
        logged = a_pair(row, *beside_tool("--events=x.events"))
        print(f"{row[0]}, depth {row[1]}, stacks {row[2]}: {plain:.0f} {default - plain:.0f} {logged - default:.0f}",
              flush=True)


def main():
    if "--misses" in sys.argv[1:]:
        print_misses()
        return
    if "--events" in sys.argv[1:]:
        print_events()
        return
    cairn = recorded_by(BUILD / "libcairn.so")
    variants = {"floor": {"LD_PRELOAD": str(BUILD / "bench/floor_preload.so")},
                "off": {**cairn, "CAIRN_OFF": "1"},
                "switched off after a time": {"LD_PRELOAD": f"{BUILD}/libcairn.so:{BUILD}/bench/switched_preload.so"},
                "--sample": {**cairn, "CAIRN_SAMPLE": "1"}, "--no-stacks": {**cairn, "CAIRN_STACKS": "0"},
                "--free-stacks": {**cairn, "CAIRN_FREE_STACKS": "1"}, "": cairn}
    for row in ROWS:
        plain = a_pair(row, {})
        for name, variables in variants.items():
            if name and row != ("one", 20, 1):
                continue
            print(f"{row[0]}, depth {row[1]}, stacks {row[2]} {name}: {a_pair(row, variables) - plain:.0f}",
                  flush=True)
        if row == ("one", 20, 1):  # whose clock is the tool's
            print(f"{row[0]}, depth {row[1]}, stacks {row[2]} --ages: {a_pair(row, *beside_tool('--ages')) - plain:.0f}",
                  flush=True)


if __name__ == "__main__":
    main()
