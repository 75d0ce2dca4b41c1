#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions that cairn adds to a malloc+free pair, counted by callgrind: the difference between two
numbers of pairs, so that starting up does not count. The table of docs/explain/performance.md.

    make all bench-programs && bench/instructions.py
"""

import os
import pathlib
import re
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parent.parent / "build")
ROWS = [("one", 5, 1), ("one", 20, 1), ("one", 60, 1), ("one", 200, 1), ("ring", 20, 1),
        ("grow", 20, 1),
        ("walk", 20, 256),
        ("random", 20, 1024), ("never", 20, 1)]
PAIRS = (20000, 220000)


def instructions(row, pairs, variables, before=()):
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, CAIRN_OUTPUT=f"{place}/x.cairn", FLOOR_OUT=f"{place}/floor", **variables)
        said = subprocess.run([*before, "valgrind", "--tool=callgrind", f"--callgrind-out-file={place}/out",
                               BUILD / "bench/pairs", *map(str, row), str(pairs)], env=env,
                              capture_output=True, text=True, check=True).stderr
    return int(re.search(r"refs:\s+([\d,]+)", said)[1].replace(",", ""))


def a_pair(row, variables, before=()):
    few, many = (instructions(row, pairs, variables, before) for pairs in PAIRS)
    return (many - few) / (PAIRS[1] - PAIRS[0])


def recorded_by(library):
    """The variables with which a program is recorded by this library."""
    return {"LD_PRELOAD": str(library)}


def main():
    cairn = recorded_by(BUILD / "libcairn.so")
    variants = {"floor": {"LD_PRELOAD": str(BUILD / "bench/floor_preload.so")},
                "off": {**cairn, "CAIRN_OFF": "1"},
                "switched off after a time": {"LD_PRELOAD": f"{BUILD}/libcairn.so:{BUILD}/bench/switched_preload.so"},
                "--sample": {**cairn, "CAIRN_SAMPLE": "1"}, "--no-stacks": {**cairn, "CAIRN_STACKS": "0"},
                "--free-stacks": {**cairn, "CAIRN_FREE_STACKS": "1"}, "": cairn}
    below = {"CAIRN_VALGRIND": "1"}  # valgrind below `cairn run`, and recorded all the same
    for row in ROWS:
        plain = a_pair(row, {})
        for name, variables in variants.items():
            if name and row != ("one", 20, 1):
                continue
            print(f"{row[0]}, depth {row[1]}, stacks {row[2]} {name}: {a_pair(row, variables) - plain:.0f}",
                  flush=True)
        if row == ("one", 20, 1):  # whose clock is the tool's
            beside = [BUILD / "cairn", "run", "-q", "-o", "/dev/null", "--ages", "--"]
            print(f"{row[0]}, depth {row[1]}, stacks {row[2]} --ages: {a_pair(row, below, beside) - plain:.0f}",
                  flush=True)


if __name__ == "__main__":
    main()
