#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cairn top` itself costs: its processor time as a share of one core while it shows a program with
many stacks under load, two looks a second. bench/top.py [--stacks N] [--seconds S] [--build-dir DIR]"""

import argparse
import os
import pathlib
import pty
import select
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
SETTLE_S = 3  # the first look reads everything, and finds names


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


def watch(cairn, pid, seconds):
    """Shows the process for some time; (start, share of a core afterwards)."""
    screen, other = pty.openpty()
    os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40", LC_ALL="C.UTF-8")
    with subprocess.Popen([cairn, "top", str(pid)], stdin=other, stdout=other, stderr=other) as top:
        os.close(other)
        marks = []
        began = time.monotonic()
        for wanted in (SETTLE_S, SETTLE_S + seconds):
            while time.monotonic() - began < wanted:
                if select.select([screen], [], [], 0.1)[0]:
                    os.read(screen, 65536)
            marks.append((time.monotonic(), processor_s(top.pid)))
        os.write(screen, b"q")
        top.wait(timeout=30)
    (from_s, start_s), (to_s, end_s) = marks
    return start_s, (end_s - start_s) / (to_s - from_s)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default=str(TOP / "build"))
    parser.add_argument("--stacks", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    build = pathlib.Path(options.build_dir).resolve()
    cairn = str(build / "cairn")
    with tempfile.TemporaryDirectory() as scratch:
        argv = [cairn, "run", "-q", "-o", scratch + "/many.cairn", "--", str(build / "bench/many_stacks"),
                str(options.stacks), str(options.seconds + SETTLE_S + 5)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as run:
            run.stdout.readline()
            start, share = watch(cairn, child_of(run.pid), options.seconds)
            run.wait(timeout=120)
    print(f"{options.stacks} stacks: {100 * share:.2f} % of a core at two looks a second; "
          f"{start:.2f} s of processor time in the first {SETTLE_S} s")


if __name__ == "__main__":
    main()
