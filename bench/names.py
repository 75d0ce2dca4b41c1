#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What names kept in a recording cost: time by the clock of `cairn run` with --symbols none, own and all, and the bytes
of the recording; medians of rounds that run in turn. The first round, which fills the cache by build-id, does not count.

    make all && bench/names.py [--rounds 7] [PROGRAM ARGUMENT...]
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAIRN = ROOT / "build/cairn"
CHOICES = ["none", "own", "all"]
SQL = "create table t(a, b); insert into t select value, hex(value) from generate_series(1, 20000); select count(*) from t;"
PROGRAMS = {"true": ["/bin/true"], "own program with -g": [ROOT / "build/tests/programs/habits", "server"],
            "cairn itself, with -g": [CAIRN, "help"], "sqlite3": ["sqlite3", ":memory:", SQL],
            "python3": ["python3", "-c", "import json, http.client; print(len(json.dumps(list(range(50000)))))"],
            "node": ["node", "-e", "console.log([...Array(9999).keys()].map(String).join('').length)"]}


def size_of(path):
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) if path.is_dir() else path.stat().st_size


def measure(command, choice):
    """Seconds, and bytes of the recording; of a run without cairn only the former."""
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "run.cairn"
        recorded = [CAIRN, "run", "-q", "--symbols", choice, "-o", path, "--"] if choice else []
        began = time.monotonic()
        subprocess.run([*recorded, *command], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.monotonic() - began, size_of(path) if choice else 0


def show_row(name, command, rounds):
    found = {choice: [] for choice in [None, *CHOICES]}
    for number in range(rounds + 1):
        for choice, results in found.items():
            result = measure(command, choice)
            if number:
                results.append(result)
    cells = [f"{1000 * statistics.median(seconds for seconds, _ in results):.0f} ms"
             + (f", {statistics.median(size for _, size in results) / 1024:.0f} KiB" if choice else "")
             for choice, results in found.items()]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("program", nargs=argparse.REMAINDER, help="instead of the list")
    arguments = parser.parse_args()
    print(machine.description() + "\n")
    print("| program | plain | " + " | ".join(f"`--symbols {choice}`" for choice in CHOICES) + " |")
    print("|---|--:|" + "--:|" * len(CHOICES))
    chosen = {" ".join(arguments.program): arguments.program} if arguments.program else PROGRAMS
    for name, command in chosen.items():
        show_row(name, command, arguments.rounds)


main()
