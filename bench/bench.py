#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs: every row of rows.py under every variant of variants.py, in interleaved rounds.
A round runs all rows, and each row under all its variants, so that a slow phase of the machine meets all
of them and spoils one round only; the order of the variants turns from round to round.

    bench/bench.py [--rounds 3] [--rows PATTERN] [--variants PATTERN] [--out DIRECTORY]

Writes performance.md, performance.csv, performance.svg and glance.svg, anew after each round. A pattern is a
regular expression that is looked for in names, and for rows in their groups: --rows 'sqlite3|depth 20$'."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/tools"))
import chart  # noqa: E402  (they find the tests' tools by the line above)
import glance  # noqa: E402
import rows  # noqa: E402
import runner  # noqa: E402
import tables  # noqa: E402
import variants  # noqa: E402
from figures import Results, reduced  # noqa: E402

MEMORY_DIRECTORY = "/dev/shm"  # where no disk is measured
SLOW_S = 15  # a run that takes longer is not repeated


def chosen(items, pattern, texts_of):
    found = [item for item in items if any(re.search(pattern, text) for text in texts_of(item))]
    if not found:
        sys.exit(f"bench: nothing matches {pattern!r}; there are: "
                 + "; ".join(texts_of(item)[0] for item in items))
    return found


class Bench:
    def __init__(self, chosen_rows, chosen_variants, share, work):
        self.results = Results(chosen_rows, chosen_variants, share)
        self.place = os.path.join(work, "out")
        os.mkdir(self.place)
        self.inputs = {}  # (row, is reduced) -> (directory, argv, environment)
        self.slow = set()
        for number, row in enumerate(chosen_rows):
            for is_reduced in sorted({variant.is_reduced for variant in self.variants_of(row)}):
                directory = os.path.join(work, f"input.{number}.{is_reduced:d}")
                os.mkdir(directory)
                os.chdir(directory)
                part = share * (rows.REDUCED_SHARE if is_reduced else 1)
                self.inputs[row.name, is_reduced] = (directory, *row.prepare(part))

    def variants_of(self, row):
        return [variant for variant in self.results.variants
                if variant.skips != row.group and (not row.variants or variant.name in row.variants)]

    def measure(self, row, variant, name, is_reduced, number):
        directory, argv, env = self.inputs[row.name, is_reduced]
        os.chdir(directory)
        start = time.monotonic()
        sample = runner.run(row, variant, argv, env, self.place, wants_report=number == 1)
        seconds = time.monotonic() - start
        if seconds > SLOW_S or sample.problem:
            self.slow.add((row.name, name))
        self.results.add(row, name, number, sample)
        return seconds

    def jobs(self, row, number):
        """[(variant, name, is reduced)] of a round. Plain and floor run on the small input too, beside
        the variants that need it."""
        own = [v for v in self.variants_of(row) if number == 1 or not (v.is_once or v.is_reduced)]
        large = [(v, v.name, False) for v in own if not v.is_reduced]
        small = [(v, v.name, True) for v in own if v.is_reduced]
        if small:
            small = [(v, reduced(v.name), True) for v in own
                     if v.name in (variants.PLAIN, variants.FLOOR)] + small
        turn = number % len(large)
        return [job for job in large[turn:] + large[:turn] + small if (row.name, job[1]) not in self.slow]

    def round(self, number):
        for row in self.results.rows:
            if number == 1:  # warms caches, and is not kept
                directory, argv, env = self.inputs[row.name, False]
                os.chdir(directory)
                runner.run(row, variants.Variant("warm-up"), argv, env, self.place, False)
            print(f"round {number}: {row.name}:", end="", flush=True)
            for variant, name, is_reduced in self.jobs(row, number):
                seconds = self.measure(row, variant, name, is_reduced, number)
                print(f" {name} {seconds:.1f}", end="", flush=True)
            print(flush=True)


def write_all(results, rounds, out):
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (("performance.md", tables.markdown(results, rounds)),
                       ("performance.csv", tables.csv(results)), ("performance.svg", chart.svg(results))):
        (out / name).write_text(text, encoding="utf-8")
    if any(row.group.endswith("programs") for row in results.rows):
        (out / "glance.svg").write_text(glance.picture(glance.ratios(out / "performance.csv")), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="", help="a regular expression on names and groups")
    parser.add_argument("--variants", default="", help="the same on names")
    parser.add_argument("--share", type=float, default=1, help="of the work of each row, to try things out")
    parser.add_argument("--out", default=str(TOP / "bench/results"))
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    found = chosen(rows.ROWS, options.rows, lambda row: (row.name, row.group))
    here = variants.all_variants()
    kept = chosen(here, options.variants, lambda variant: (variant.name,))
    kept = [v for v in here if v in kept or v.name in (variants.PLAIN, variants.FLOOR)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended by SIGTERM"))
    work = tempfile.mkdtemp(prefix="cairn-bench.", dir=MEMORY_DIRECTORY)
    try:
        bench = Bench(found, kept, options.share, work)
        for number in range(1, options.rounds + 1):
            bench.round(number)
            write_all(bench.results, number, out)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    print(*(out / f"performance.{kind}" for kind in ("md", "csv", "svg")), sep="\n")


if __name__ == "__main__":
    main()
