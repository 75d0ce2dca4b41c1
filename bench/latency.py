#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a single allocation takes (bench/programs/latency.c: one free and one malloc, timed one by
one), plain and under `cairn run`, on a quiet disk and with `dd conv=fsync` writing beside it into the
directory of the recording. Variants run in turn, round by round; figures are medians over the rounds, a
ratio is the median of the rounds' ratios. Exits with 1 if the goal is missed.

    bench/latency.py [--rounds 5] [--calls 3000000] [--out bench/results/latency.md]
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import machine
from variants import BUILD, CAIRN, TOP

FIGURES = ("p50", "p99", "p99.9", "most")
GOAL = 2.0  # of plain, at p99.9, under disk load
DISK_LOAD = ("while :; do dd if=/dev/zero of=load bs=1M count=256 conv=fsync status=none; done")


class DiskLoad:
    """`dd` in a loop, in a process group that ends as one."""

    def __enter__(self):
        self.process = subprocess.Popen(["sh", "-c", DISK_LOAD], start_new_session=True)

    def __exit__(self, *_):
        os.killpg(self.process.pid, 9)
        self.process.wait()


def time_calls(program, calls, is_recorded):
    wrap = [CAIRN, "run", "-q", "-o", "latency.cairn", "--"] if is_recorded else []
    shutil.rmtree("latency.cairn", ignore_errors=True)
    pathlib.Path("latency.cairn").unlink(missing_ok=True)
    result = subprocess.run([*wrap, program, str(calls)], stdout=subprocess.PIPE, check=True)
    return dict(zip(FIGURES, map(int, result.stdout.split())))


def measure(program, calls, rounds):
    """[(plain, recorded)], one pair a round; the first round warms up."""
    pairs = [(time_calls(program, calls, False), time_calls(program, calls, True))
             for _ in range(rounds + 1)]
    return pairs[1:]


def ratio(pairs, figure):
    return statistics.median(recorded[figure] / plain[figure] for plain, recorded in pairs)


def rows(name, pairs):
    lines = []
    for index, variant in enumerate(("plain", "cairn run")):
        middle = (f"{statistics.median(pair[index][figure] for pair in pairs):.0f}" for figure in FIGURES)
        lines.append(f"| {name} | {variant} | " + " | ".join(middle) + " |")
    lines.append(f"| {name} | ratio | " + " | ".join(f"{ratio(pairs, f):.2f}x" for f in FIGURES) + " |")
    return lines


def table(results, calls, rounds):
    lines = ["# Latency of one free and one malloc, in nanoseconds", "",
             f"{machine.description()}. {calls} calls a run, medians of {rounds} interleaved rounds;"
             " made by `bench/latency.py`."
             " The disk load is `dd conv=fsync` into the recording's directory, without pause.", "",
             "| disk | variant | " + " | ".join(FIGURES) + " |", "|---|---|--:|--:|--:|--:|"]
    for name, pairs in results.items():
        lines += rows(name, pairs)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000000)
    parser.add_argument("--out", default=str(TOP / "bench/results/latency.md"))
    parser.add_argument("--directory", help="where to record; must be on a disk", default=None)
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    work = tempfile.mkdtemp(prefix="cairn-latency.", dir=options.directory)
    os.chdir(work)
    results = {}
    try:
        program = str(BUILD / "bench/latency")
        results["quiet"] = measure(program, options.calls, options.rounds)
        with DiskLoad():
            results["dd conv=fsync"] = measure(program, options.calls, options.rounds)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(table(results, options.calls, options.rounds), encoding="utf-8")
    print(out.read_text(encoding="utf-8"))
    sys.exit(ratio(results["dd conv=fsync"], "p99.9") > GOAL)


if __name__ == "__main__":
    main()
