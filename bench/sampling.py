#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the 95 % intervals of a sampled stack hold the truth, by simulation: blocks that are all live are sampled
as docs/explain/sampling.md says, and tool/model/estimate.c makes the intervals. V alone is what they were without the part for
blocks that no sample met. The limits that the process' exact totals set are left out: they make intervals narrower only
where the truth cannot be. The tables of docs/explain/sampling.md.

    bench/sampling.py [--runs 2000]
"""

import argparse
import ctypes
import math
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KIB = 1024


def octaves(random_numbers, low, high):
    """20,000 sizes, as many of each octave."""
    return [int(2 ** random_numbers.uniform(math.log2(low), math.log2(high))) for _ in range(20000)]


# Name, sizes of its blocks, rates.
STACKS = (("20,000 of 32 B", lambda _: [32] * 20000, (32, 128, 512)),
          ("1,585 of 32 B, 21 of 60,000 B", lambda _: [32] * 1585 + [60000] * 21, (16, 128, 512)),
          ("5,000 of 48 B, 300 of 8,000 B", lambda _: [48] * 5000 + [8000] * 300, (16, 128, 512)),
          ("20,000 of 16 B to 4 KiB, as many of each octave", lambda numbers: octaves(numbers, 16, 4096), (16, 64, 512)),
          ("2,000 of 64 B, 1,000 of 4,000 B", lambda _: [64] * 2000 + [4000] * 1000, (128,)))


class Estimate(ctypes.Structure):
    """struct estimate of tool/model/estimate.h."""
    _fields_ = [("samples", ctypes.c_int64), *((name, ctypes.c_double) for name in (
        "bytes_variance", "blocks_variance", "uncertain", "extra_blocks", "bytes_weight", "blocks_weight",
        "bytes_limit", "blocks_limit", "own_bytes_most", "own_blocks_most", "before_bytes_most", "before_blocks_most",
        "bytes_least", "blocks_least", "bytes_over", "blocks_over"))]


def build_estimator(place):
    library, exports = pathlib.Path(place) / "estimate.so", pathlib.Path(place) / "exports"
    exports.write_text("{ global: estimate_*; local: *; };", encoding="ascii")  # what reads recordings is left out
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-fPIC", "-shared", "-ffunction-sections", "-Wl,--gc-sections",
                    f"-Wl,--version-script={exports}", f"-I{ROOT}", "-o", library, ROOT / "tool/model/estimate.c", "-lm"],
                   check=True)
    estimator = ctypes.CDLL(str(library))
    for name in "estimate_bytes_interval", "estimate_blocks_interval", "estimate_interval":
        getattr(estimator, name).restype = ctypes.c_int64
    estimator.estimate_interval.argtypes = [ctypes.c_double]
    return estimator


def sample(counts, rate, numbers):
    """What samples say: the estimate, its bytes and its blocks; `counts`: how many blocks of each size."""
    estimate, total_bytes, blocks, smallest = Estimate(bytes_weight=rate), 0.0, 0.0, 32
    for size, count in counts.items():
        chance = -math.expm1(-size / rate) if size < rate else 1.0
        if chance == 1:
            met = count
        else:  # the blocks that are not met lie in runs between those that are
            met, at = 0, int(math.log(1 - numbers.random()) / math.log1p(-chance))
            while at < count:
                met, at = met + 1, at + 1 + int(math.log(1 - numbers.random()) / math.log1p(-chance))
        if not met:
            continue
        smallest = min(smallest, size)
        extra = 1 / chance - 1
        estimate.samples += met
        estimate.extra_blocks += met * extra
        estimate.blocks_variance += met * extra / chance
        estimate.bytes_variance += met * size * size * extra / chance
        total_bytes += met * size / chance
        blocks += met / chance
    estimate.uncertain = estimate.bytes_variance / rate ** 2
    estimate.blocks_weight = rate / smallest
    return estimate, total_bytes, blocks


def coverage(estimator, sizes, rate, runs, numbers):
    """Of bytes by V alone and now, of blocks the same, in percent."""
    counts, held = {}, [0] * 4
    for size in sizes:
        counts[size] = counts.get(size, 0) + 1
    for _ in range(runs):
        estimate, total_bytes, blocks = sample(counts, rate, numbers)
        intervals = (estimator.estimate_interval(estimate.bytes_variance),
                     estimator.estimate_bytes_interval(ctypes.byref(estimate)),
                     estimator.estimate_interval(estimate.blocks_variance),
                     estimator.estimate_blocks_interval(ctypes.byref(estimate)))
        off = (abs(total_bytes - sum(sizes)), abs(blocks - len(sizes)))
        for i, interval in enumerate(intervals):
            held[i] += off[i // 2] <= interval + 1
    return [round(100 * one / runs) for one in held]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs, numbers = parser.parse_args().runs, random.Random(1)
    print("| stack | T | bytes: V alone, now | blocks: V alone, now |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        estimator = build_estimator(place)
        for name, make, rates in STACKS:
            found = [coverage(estimator, make(numbers), rate * KIB, runs, numbers) for rate in rates]
            cells = [", ".join(str(one[i]) for one in found) for i in range(4)]
            print(f"| {name} | {', '.join(f'{rate} KiB' for rate in rates)} | {cells[0]} → {cells[1]} | "
                  f"{cells[2]} → {cells[3]} |", flush=True)


main()
