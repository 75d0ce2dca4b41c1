#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two threads that hand blocks over make of an allocation that takes longer, for whatever reason: the wall time
of the row "producer and consumer" under a preload that only delays malloc, beside a loop of pairs that says how long
the delay is, and beside cairn. Runs take turns; ratios to plain are medians of them.

    make all bench-programs && bench/delays.py [ROUNDS]
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parent.parent / "build").resolve()
BLOCKS, PAIRS = 3000000, 10000000
HANDOVER = [BUILD / "bench/handover", str(BLOCKS)]
LOOP = [BUILD / "bench/pairs", "one", "5", "1", str(PAIRS)]


def variants(place):
    delay = str(BUILD / "bench/delay_preload.so")
    yield "plain", {}
    for steps in (0, 5, 10, 20, 30):
        yield f"{steps} multiplications", {"LD_PRELOAD": delay, "DELAY_STEPS": str(steps)}
    yield "counting", {"LD_PRELOAD": str(BUILD / "bench/floor_preload.so"), "FLOOR_OUT": f"{place}/floor"}
    yield "cairn", {"LD_PRELOAD": str(BUILD / "libcairn.so"), "CAIRN_OUTPUT": f"{place}/x.cairn"}


def seconds(command, variables, place):
    for left in pathlib.Path(place).iterdir():
        left.unlink()
    start = time.monotonic()
    subprocess.run(command, env=dict(os.environ, **variables), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        found = {}
        for _ in range(rounds):
            for name, variables in variants(place):
                took = [seconds(command, variables, place) for command in (HANDOVER, LOOP)]
                found.setdefault(name, []).append(took)
    print("| malloc | a pair in a loop | producer and consumer |\n|---|--:|--:|")
    plain = found["plain"]
    for name, runs in found.items():
        ratio = statistics.median(mine[0] / base[0] for mine, base in zip(runs, plain))
        added = statistics.median(mine[1] - base[1] for mine, base in zip(runs, plain)) / PAIRS * 1e9
        print(f"| {name} | +{max(added, 0):.1f} ns | {ratio:.2f}x |")


if __name__ == "__main__":
    main()
