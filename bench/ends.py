#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions that the tool executes from the start of `cairn run` to its end, counted by callgrind; the program runs
beside it without being counted. Rows of the benchmark, in their whole size, quiet and with a summary.

    make all bench-programs && bench/ends.py [PATTERN]
"""

import contextlib
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/tools"))
import instructions  # noqa: E402
from rows import NEW_PROGRAMS, PROCESS, PROGRAMS, THREADS_AND_TREES  # noqa: E402
from variants import BUILD  # noqa: E402


def count(row, *options):
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        argv, settings = row.prepare(1)
        command = [BUILD / "cairn", "run", *options, "-o", os.path.join(place, "run.cairn"), "--", *argv]
        said = instructions.counted(command, settings, where=place)
    return instructions.number_of(said, instructions.COUNTED["instructions"])


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else "."
    print("| program | `cairn run -q` | with the summary |\n|---|--:|--:|")
    for row in PROGRAMS + NEW_PROGRAMS + THREADS_AND_TREES:
        if row.kind == PROCESS and re.search(pattern, row.name):
            print(f"| {row.name} | {count(row, '-q') / 1e6:,.0f} million | {count(row) / 1e6:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
