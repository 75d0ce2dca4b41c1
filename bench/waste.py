#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the intervals of `cairn report --view waste` cover what is true, where a part of a process is drawn: a
program that knows its waste to the byte, recorded and not, seed after seed. Also how long it stood, beside a copy of
the largest process that is copied as a whole.

    bench/waste.py [SEEDS]        (100; build first: make all build/tests/programs/waste_large)
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
CAIRN, PROGRAM = TOP / "build/cairn", TOP / "build/tests/programs/waste_large"
KINDS = ("untouched_bytes", "zero_bytes", "duplicate_bytes", "tail_bytes", "bytes", "blocks", "wasted_bytes", "share")


def waste(pid, *words):
    done = subprocess.run([CAIRN, "report", str(pid), "--view", "waste", "--json", *words], capture_output=True,
                          check=True, text=True)
    pause = re.search(r"paused for ([0-9.]+) (m?s)", done.stderr)
    found = json.loads(done.stdout)
    return {**found["facts"], "waste": found["rows"]}, float(pause[1]) / (1 if pause[2] == "ms" else 0.001)


def summed(found):
    """What is true, by stack or size and in all."""
    return {row["name"]: row for row in found["waste"]} | {"": found}


def look(what, pid, seeds):
    whole, whole_pause = waste(pid, "--no-copy-limit")
    true = summed(whole)
    true[""]["share"] = whole["wasted_bytes"] / whole["bytes"]
    misses, pauses, wide = dict.fromkeys(KINDS, 0), [], []
    for seed in range(seeds):
        found, pause = waste(pid, "--seed", str(seed))
        pauses.append(pause)
        wide.append(found["share_high"] - found["share_low"])
        for kind in KINDS:
            low, high = found[f"{kind}_low"], found[f"{kind}_high"]
            misses[kind] += not low <= true[""][kind] <= high
    print(f"{what}: {found['windows']} of {found['of_windows']} windows, share "
          f"{true['']['share']:.3f}, interval {sum(wide) / len(wide):.3f} wide; not covered of {seeds}: " +
          ", ".join(f"{kind} {count}" for kind, count in misses.items()) +
          f"; paused {sorted(pauses)[len(pauses) // 2]:.1f} ms, all of it {whole_pause:.1f} ms", flush=True)


def main(scratch):
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for what, command in (("plain", [PROGRAM]),
                          ("recorded", [CAIRN, "run", "-q", "-o", f"{scratch}/waste.cairn", PROGRAM])):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            pid = process.pid
            if what == "recorded":
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
                pid = next(child for child in children
                           if "waste" in pathlib.Path(f"/proc/{child}/comm").read_text(encoding="ascii"))
            look(what, pid, seeds)
            process.stdin.close()


with tempfile.TemporaryDirectory() as directory:
    main(directory)
