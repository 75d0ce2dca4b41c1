#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each finding promises that its fix saves, beside what the mended program has saved: the kinds of
tests/programs/findings.c, and all twins of tests/truth with a saving (TRUTH, in tests/e2e/truth.py, holds those to a fifth).

    make && make build/tests/programs/findings && bench/fixes.py [KIND ...]

Prints a line for each: kind, unit, promised, saved, promised / saved. Ends with 1 if one is beyond a fifth, but for `at
least`, which may be less. Bytes of resident memory vary from run to run; calls and blocks do not."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
CAIRN, PROGRAM = str(TOP / "build/cairn"), str(TOP / "build/tests/programs/findings")
WITHIN = 0.2
# kind: (claim, what it saves, the figure that it is saved of, options, settings that mend; none: the program's word "fixed")
KINDS = {
    "growth": ("growth", "bytes", ("at_exit", "bytes"), [], {}),
    "realloc": ("realloc", "calls", ("totals", "allocations"), [], {}),
    "temporary": ("short_lived", "calls", ("totals", "allocations"), [], {}),
    "reuse": ("reuse", "calls", ("totals", "allocations"), ["--free-stacks"], {}),
    "alike": ("alike", "calls", ("totals", "allocations"), [], {}),
    "untouched": ("untouched", "bytes", ("peak", "bytes"), [], {}),
    "free": ("free", "bytes", ("rss", "points", -1, "rss_bytes"), [], {}),  # at its end: it needs the peak either way
    "arenas": ("arenas", "bytes", ("rss", "peak_bytes"), [], {"MALLOC_ARENA_MAX": "1"}),
    "huge": ("huge", "faults", None, [], {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
}


def report_of(place, words, options=(), env=None):
    path = place / "recording.cairn"
    command = [CAIRN, "run", "-q", *options, "-o", str(path), PROGRAM, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | (env or {}))
    out = subprocess.run([CAIRN, "report", "--json", "--top", "1", str(path)], check=True, capture_output=True).stdout
    path.unlink()
    return json.loads(out)


def faults_of(words, env):
    """Page faults of the program alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL, env=os.environ | env)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before


def figure(report, path):
    for key in path:
        report = report[key]
    return report


def compare(place, kind):
    """(unit, promised, saved, is_least); None: the finding is not told."""
    key, unit, path, options, env = KINDS[kind]
    before = report_of(place, [kind], options)
    claim = next((one for one in before["claims"] if one["key"] == key), None)
    if not claim:
        return None
    words = [kind] if env else [kind, "fixed"]
    if path:
        saved = figure(before, path) - figure(report_of(place, words, options, env), path)
    else:
        saved = faults_of([kind], {}) - faults_of(words, env)
    return unit, claim["saves"][unit], saved, claim["saves"]["is_least"]


def main():
    is_right = True
    print(f"{'finding':<10} {'unit':<7} {'promised':>14} {'saved':>14}  promised / saved")
    with tempfile.TemporaryDirectory() as place:
        for kind in sys.argv[1:] or KINDS:
            found = compare(pathlib.Path(place), kind)
            if not found:
                print(f"{kind:<10} is not told in this run")
                continue
            unit, promised, saved, is_least = found
            ratio = promised / saved if saved else float("inf")
            is_kept = ratio <= 1 + WITHIN and (is_least or ratio >= 1 - WITHIN)
            is_right &= is_kept
            least = " (at least)" if is_least else ""
            print(f"{kind:<10} {unit:<7} {promised:>14,} {saved:>14,}  {ratio:.2f}{least}{'' if is_kept else '  beyond a fifth'}")
    return not is_right


sys.exit(main())
