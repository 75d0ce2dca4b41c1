#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reading a large recording costs: 100,000 stacks and 4,096 points (tests/tools/large_recording.c),
each report and export against its goal, the least of some runs; and what is asked most, of 772,000 and of a
million stacks too. Prints tables in Markdown.

    bench/reports.py [--build-dir build] [--runs 3] [--sizes 100000,772000] > bench/results/reports.md

Time is processor time, so that other work on the machine counts little, and the time until it was there;
memory is the highest resident size."""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

STACKS, MEMORY_GOAL_MB, MERGED = 100000, 200, 100
SIZES = (100000, 772000, 1000000)
# What a recording of 772,000 stacks is to take.
GOAL_STACKS, GOAL_S, GOAL_MIB = 772000, 0.8, 400
FORMATS = ("pprof", "collapsed", "speedscope", "json", "flamegraph", "sqlite", "dhat", "massif", "csv",
           "mptrace", "callgrind", "heaptrack")
TOP = pathlib.Path(__file__).resolve().parent.parent


def rows(large, merged):
    """What is measured: its name, the command, the goal in seconds."""
    yield "summary and stacks", ["report", large], 0.3
    yield "stacks alone", ["report", "--view", "stacks", large], 0.3
    yield "tree", ["report", "--view", "tree", "--print", large], 1
    for view in ("functions", "lines", "types", "leaks"):
        yield view, ["report", "--view", view, large], 1
    yield "report --json", ["report", "--json", large], 2
    yield "diff", ["diff", large, large], 2
    for form in FORMATS:
        yield f"export {form}", ["export", "-f", form, "--force", "-o", f"out.{form}", large], 2
    yield f"export of {MERGED} recordings", ["export", "-f", "pprof", "--force", "-o", "out.pb.gz",
                                             *merged], None


def asked_most(large):
    """The same of recordings of any size: its name and the command."""
    yield "report", ["report", large]
    yield "tree", ["report", "--view", "tree", "--print", large]
    yield "page", ["open", "--force", "-o", "out.html", large]
    yield "export pprof", ["export", "-f", "pprof", "--force", "-o", "out.pb.gz", large]


def measure(command, env):
    """Seconds of processor time, seconds and MB of one run."""
    start = time.monotonic()
    with open(os.devnull, "wb") as nowhere:
        with subprocess.Popen(command, stdout=nowhere, env=env) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
    if status:
        sys.exit(f"{' '.join(command[:6])}: status {status}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def least(build, arguments, env, runs):
    """The least times and the most memory of some runs."""
    found = [measure([str(build / "cairn"), *arguments], env) for _ in range(runs)]
    return min(one[0] for one in found), min(one[1] for one in found), max(one[2] for one in found)


def print_views(build, env, runs):
    subprocess.run([build / "tests/large_recording", "large.cairn", str(STACKS)], check=True)
    merged = [f"part{number}.cairn" for number in range(MERGED)]
    for number, path in enumerate(merged):
        subprocess.run([build / "tests/large_recording", path, "2000", str(number % 5 + 1)], check=True)
    print(f"A recording of {STACKS:,} stacks and 4,096 points; the least of {runs} runs of "
          "processor time (bench/reports.py). Goals are those of the project; all are to stay "
          f"below {MEMORY_GOAL_MB} MB.\n")
    print("| | seconds | goal | MB |\n|---|--:|--:|--:|")
    for name, arguments, goal in rows("large.cairn", merged):
        seconds, _, megabytes = least(build, arguments, env, runs)
        print(f"| {name} | {seconds:.2f} | {goal or '–'} | {megabytes:.0f} |", flush=True)


def print_sizes(build, sizes, env, runs):
    print("\nBy the number of stacks: seconds of processor time, seconds until it is there, MiB. "
          f"Of {GOAL_STACKS:,} stacks each is to take at most {GOAL_S} s and {GOAL_MIB} MiB.\n")
    print("| stacks | | processor | seconds | MiB |\n|--:|---|--:|--:|--:|")
    for stacks in sizes:
        subprocess.run([build / "tests/large_recording", "sized.cairn", str(stacks)], check=True)
        for name, arguments in asked_most("sized.cairn"):
            processor, seconds, mebibytes = least(build, arguments, env, runs)
            print(f"| {stacks:,} | {name} | {processor:.2f} | {seconds:.2f} | {mebibytes:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="in stacks, of the second table")
    parser.add_argument("--sizes-only", action="store_true", help="without the first table")
    args = parser.parse_args()
    build = args.build_dir.resolve()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        env = dict(os.environ, XDG_CACHE_HOME=scratch)
        if not args.sizes_only:
            print_views(build, env, args.runs)
        print_sizes(build, [int(size) for size in args.sizes.split(",") if size], env, args.runs)


main()
