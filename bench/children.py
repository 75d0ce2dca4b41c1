#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a short child of a shell costs: a loop of /bin/true in dash, plain, with the library preloaded alone
and under `cairn run`. Processor time (of all processes together) and time by the clock, a child, medians of
rounds that run in turn; and the system calls of the tool a child.

    make all && bench/children.py [--children 400] [--rounds 7]
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
LOOP = "i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); done"
RUN = [BUILD / "cairn", "run", "-q", "-o", "run.cairn", "--"]


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command, env):
    with tempfile.TemporaryDirectory() as place:
        before, began = spent(), time.monotonic()
        subprocess.run(command, env={**os.environ, **env}, cwd=place, check=True)
        return spent() - before, time.monotonic() - began


def tool_calls(children):
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["strace", "-c", "-o", "calls", *RUN, "dash", "-c", LOOP.format(children)], cwd=place,
                       check=True)
        total = pathlib.Path(place, "calls").read_text(encoding="ascii").splitlines()[-1]
        return int(total.split()[3])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--children", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    shell = ["dash", "-c", LOOP.format(options.children)]
    ways = {"plain": (shell, {}),
            "preload alone": (shell, {"LD_PRELOAD": str(BUILD / "libcairn.so"), "CAIRN_OUTPUT": "%p.cairn"}),
            "cairn run": ([*RUN, *shell], {})}
    found = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, (command, env) in ways.items():
            found[name].append(measure(command, env))
    for name, rounds in found.items():
        cpu, clock = (statistics.median(values) * 1000 / options.children for values in zip(*rounds))
        print(f"{name:14} {cpu:6.2f} ms of processor time a child, {clock:6.2f} ms by the clock")
    if shutil.which("strace"):
        few, many = tool_calls(20), tool_calls(120)
        print(f"system calls of the tool a child: {(many - few) / 100:.0f}")


main()
