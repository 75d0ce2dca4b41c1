#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What many threads at once cost: so many that live together, each with a block and two calls, plain, under
`cairn run` and sampled. Time by the clock from the tool's start to its end, and processor time of the program and
the tool together, medians of rounds that run in turn, and how many times the plain ones that is.

    make all build/tests/programs/threads && bench/crowds.py [--rounds 5] [THREADS ...]
"""

import argparse
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
RUN = [BUILD / "cairn", "run", "-q", "-o", "run.cairn"]
WAYS = {"plain": [], "cairn run": [*RUN, "--"], "cairn run --sample": [*RUN, "--sample", "--"]}


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(way, threads):
    with tempfile.TemporaryDirectory() as place:
        before, began = spent(), time.monotonic()
        subprocess.run([*way, BUILD / "tests/programs/threads", "crowd", str(threads)], cwd=place, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return time.monotonic() - began, spent() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("threads", type=int, nargs="*", default=[1000, 3000, 10000])
    options = parser.parse_args()
    for threads in options.threads:
        found = {name: [] for name in WAYS}
        for _ in range(options.rounds):
            for name, way in WAYS.items():
                found[name].append(measure(way, threads))
        plain = [statistics.median(values) for values in zip(*found["plain"])]
        for name, rounds in found.items():
            clock, processor = (statistics.median(values) for values in zip(*rounds))
            print(f"{threads:6} threads, {name:18} {clock:5.2f} s by the clock ({clock / plain[0]:.1f}x), "
                  f"{processor:5.2f} s of processors ({processor / plain[1]:.1f}x)")


if __name__ == "__main__":
    main()
