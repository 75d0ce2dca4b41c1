#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What frames of another language cost: processor time of a program without cairn, recorded, and recorded with them, in
turns; the least of each counts. bench/frames.py OPTION [RUNS] -- PROGRAM ARGUMENT... , as
bench/frames.py --frames=java 5 -- javac -d /tmp/out *.java
bench/frames.py --frames=php 5 -- php script.php
bench/frames.py --frames=ruby 5 -- ruby bench/programs/tables.rb
bench/frames.py --python 5 -- python3 bench/programs/python/work.py recursion 100"""

import os
import resource
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAIRN = os.path.join(os.environ.get("BUILD_DIR", f"{TOP}/build"), "cairn")


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if "--" not in sys.argv or len(sys.argv) < 4:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    option, program = sys.argv[1], sys.argv[split + 1:]
    runs = int(sys.argv[2]) if split > 2 else 5
    with tempfile.TemporaryDirectory() as place:
        record = [CAIRN, "run", "-q", "-o", f"{place}/"]
        ways = {"plain": program, "recorded": [*record, "--", *program], "with frames": [*record, option, "--", *program]}
        least = {}
        for _ in range(runs):
            for name, command in ways.items():
                least[name] = min(least.get(name, float("inf")), seconds_of(command))
    for name, seconds in least.items():
        print(f"{name:12} {seconds:7.2f} s  {seconds / least['plain']:5.2f} of plain  {seconds / least['recorded']:5.2f} of recorded")


if __name__ == "__main__":
    main()
