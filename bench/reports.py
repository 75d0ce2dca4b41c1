#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reading a large recording costs: 100,000 stacks and 4,096 points (tests/tools/large_recording.c),
each report and export against its goal, the least of some runs. Prints a table in Markdown.

    bench/reports.py [--build-dir build] [--runs 3] > bench/results/reports.md

Time is processor time, so that other work on the machine counts little; memory is the highest resident
size."""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

STACKS, MEMORY_GOAL_MB, MERGED = 100000, 200, 100
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


def measure(command, env):
    """Seconds of processor time and MB of one run."""
    with open(os.devnull, "wb") as nowhere:
        with subprocess.Popen(command, stdout=nowhere, env=env) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
    if status:
        sys.exit(f"{' '.join(command[:6])}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    build = args.build_dir.resolve()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        env = dict(os.environ, XDG_CACHE_HOME=scratch)
        subprocess.run([build / "tests/large_recording", "large.cairn", str(STACKS)], check=True)
        merged = [f"part{number}.cairn" for number in range(MERGED)]
        for number, path in enumerate(merged):
            subprocess.run([build / "tests/large_recording", path, "2000", str(number % 5 + 1)], check=True)
        print(f"A recording of {STACKS:,} stacks and 4,096 points; the least of {args.runs} runs of "
              "processor time (bench/reports.py). Goals are those of the project; all are to stay "
              f"below {MEMORY_GOAL_MB} MB.\n")
        print("| | seconds | goal | MB |\n|---|--:|--:|--:|")
        for name, arguments, goal in rows("large.cairn", merged):
            found = [measure([str(build / "cairn"), *arguments], env) for _ in range(args.runs)]
            seconds, megabytes = min(one for one, _ in found), max(one for _, one in found)
            print(f"| {name} | {seconds:.2f} | {goal or '–'} | {megabytes:.0f} |", flush=True)


main()
