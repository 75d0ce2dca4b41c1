#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an allocation and its free cost real programs, counted: instructions, and misses of simulated caches, that
cairn adds to the whole program, its own included that cairn has displaced; and its instructions by room of the runtime.
The difference between two sizes of input, so that starts and what is looked up once count little. Rows of the
benchmark, but for servers and programs whose two inputs allocate alike.

    make all bench-programs && bench/program_counts.py [PATTERN] > bench/results/program_counts.md
    CAIRN_STACKS=0 bench/program_counts.py 'lua|perl'                       (the same with --no-stacks)
"""

import contextlib
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/tools"))
import instructions  # noqa: E402
import split  # noqa: E402
from rows import NEW_PROGRAMS, PROCESS, PROGRAMS, THREADS_AND_TREES  # noqa: E402
from runner import count_of_floor  # noqa: E402
from variants import BUILD  # noqa: E402

SHARES = (0.02, 0.06)
LARGER = {"sqlite3": (0.05, 0.15), "perl": (0.05, 0.15), "cc1plus": (0.1, 0.17), "rustc, several threads": (0.1, 0.3),
          "node": (0.13, 0.26)}
ALIKE = 1.1  # fewer times as many allocations say nothing about one
# so that tables are filled alike in each run
SEEDS = {"PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
PRELOADS = {"plain": "", "floor": "bench/floor_preload.so", "cairn": "libcairn.so"}


def run(row, share, preload):
    """{what is counted, or room: number} of a run, and how many allocations the floor counted."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        argv, settings = row.prepare(share)
        variables = {**settings, **SEEDS, **({"LD_PRELOAD": str(BUILD / PRELOADS[preload])} if PRELOADS[preload] else {})}
        found = instructions.everything(argv, variables, place)
        floor = pathlib.Path(place, "floor")
        if preload == "floor" and not floor.exists():
            sys.exit(f"{BUILD / PRELOADS[preload]} counted nothing of {row.name}: make all bench-programs")
        allocations = count_of_floor([floor]) if floor.exists() else 0
    return found, allocations


def differences(row):
    """{preload: {what is counted, or room: how many more a further allocation takes}}, {} if there are hardly any."""
    few, many = LARGER.get(row.name, SHARES)
    runs = {preload: (run(row, few, preload), run(row, many, preload)) for preload in PRELOADS}
    allocations = runs["floor"][1][1] - runs["floor"][0][1]
    if allocations <= runs["floor"][0][1] * (ALIKE - 1):
        return {}
    return {preload: {name: (large[0][name] - small[0][name]) / allocations for name in large[0]}
            for preload, (small, large) in runs.items()}


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else "."
    rows = [row for row in PROGRAMS + NEW_PROGRAMS + THREADS_AND_TREES if row.kind == PROCESS]
    print("What an allocation and its free add to real programs, counted by callgrind on a small part of the benchmark's "
          "inputs; `bench/program_counts.py` says how.\n")
    print("| program | its own instructions an allocation | a counting preload adds | cairn adds | "
          + " | ".join(f"misses that cairn adds: {name}" for name in list(instructions.COUNTED)[1:])
          + " |\n|---|" + "--:|" * (2 + len(instructions.COUNTED)))
    rooms = []
    for row in rows:
        found = differences(row) if re.search(pattern, row.name) else {}
        if not found:
            continue
        plain = found["plain"]
        added = {preload: {name: mine[name] - plain[name] for name in mine} for preload, mine in found.items()}
        cairn, floor = added["cairn"], added["floor"]["instructions"]
        print(f"| {row.name} | {plain['instructions']:,.0f} | {floor:,.0f} | {cairn['instructions']:,.0f} | "
              + " | ".join(f"{cairn[name]:,.2f}" for name in list(instructions.COUNTED)[1:]) + " |", flush=True)
        rooms.append(([row.name], cairn, floor))
    split.print_table(["program"], rooms)


if __name__ == "__main__":
    main()
