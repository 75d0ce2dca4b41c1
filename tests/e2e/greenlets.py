#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Python code in greenlets (python3-greenlet), which have one native stack in turns: those of the one that runs, as
sys._getframe has them, stack by stack and as often, while they switch out of deep calls, begin and are thrown out of."""

import collections
import json
import pathlib

import cairn_test as t

SWITCHES = 5000 if t.IS_LONG else 1500
BYTES = 9973 + 33  # of the block, with the head of a bytes object

if t.run([t.PYTHON, "-c", "import greenlet"]).status:
    t.cannot_run_here("python3-greenlet is not installed")


def is_python(frame):
    return frame["function"] and frame["file"] and not frame["file"].endswith((".c", ".h", ".S"))


told_path = pathlib.Path("told.json").absolute()
result, recording = t.record([t.PYTHON, str(t.SOURCE / "tests/programs/greenlet_calls.py"), str(told_path), str(SWITCHES)],
                             python=True)
t.check_equal("status", (result.status, result.out), (0, b""))
told, found = collections.Counter(), collections.Counter()
for frames, calls in json.loads(told_path.read_text(encoding="utf-8")):
    told[tuple(map(tuple, frames))] += calls
for stack in t.report(recording)["stacks"]:
    if stack["allocations"] and stack["allocated_bytes"] == BYTES * stack["allocations"]:
        found[tuple((f["function"], f["file"], f["line"]) for f in stack["frames"] if is_python(f))] += stack["allocations"]
t.check(sum(told.values()) > SWITCHES and len(told) > 100, f"{sum(told.values())} calls of {len(told)} stacks")
t.check_equal("stacks that were not found", dict((told - found).most_common(2)), {})
t.check_equal("stacks that Python does not know", dict((found - told).most_common(2)), {})
t.finish()
