#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Python code at the end of 20,000 calls, 100,000 in `make check-long` (tests/programs/python_calls.py), are, stack by stack and as often,
those that sys._getframe and traceback have: in this machine's Python, and in those of other Debians, in chroots that
are in $CHROOTS/SUITE-python, or that CAIRN_LONG=1 makes there (build/chroots)."""

import collections
import json
import os
import pathlib
import shutil

import cairn_test as t
import chroots

CALLS = 100000 if t.IS_LONG else 20000
BLOCK = 9973  # and the head of a bytes object
PROGRAM = t.SOURCE / "tests/programs/python_calls.py"
OTHERS = {"bullseye": ["3.9"], "trixie": ["3.13"], "sid": ["3.14", "3.15"]}


def is_python(frame):
    return frame["function"] and frame["file"] and not frame["file"].endswith((".c", ".h", ".S"))


def found_stacks(recording, size, *options):
    found = collections.Counter()
    for stack in (t.report(recording, *options) or {"stacks": []})["stacks"]:
        if stack["allocations"] and stack["allocated_bytes"] == size * stack["allocations"]:
            frames = tuple((f["function"], f["file"], f["line"]) for f in stack["frames"] if is_python(f))
            found[frames] += stack["allocations"]
    return found


def compare(what, told_path, recording, *options, head=33):
    told = collections.Counter()
    for frames, calls in json.loads(told_path.read_text()):
        told[tuple(map(tuple, frames))] += calls
    found = found_stacks(recording, BLOCK + head, *options)
    t.check(sum(told.values()) > CALLS and len(told) > 500, f"{what}: {sum(told.values())} calls of {len(told)} stacks")
    t.check_equal(f"{what}: stacks that were not found", dict((told - found).most_common(2)), {})
    t.check_equal(f"{what}: stacks that Python does not know", dict((found - told).most_common(2)), {})


def try_here(python):
    """The objects of a free-threaded one, with larger heads, are found by the tool."""
    told = pathlib.Path("told.json").absolute()
    argv, head = [python, str(PROGRAM), str(told), str(CALLS)], int(t.run([python, "-c", "print(b''.__sizeof__())"]).out)
    result, recording = t.record(argv, python=True) if head != 33 else t.record_alone(argv, env={"CAIRN_PYTHON": "1"})
    if t.check_equal(python, (result.status, result.err), (0, b"")):
        only = ["--focus", "^leaf$", "--by", "allocated"] if head != 33 else []  # all objects are recorded
        compare(python, told, recording, *only, head=head)


def try_inside(suite, version, root):
    place = root / "tmp/cairn"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for file in (t.RUNTIME, PROGRAM):
        shutil.copy(file, place)
    words = chroots.inside(root, ["CAIRN_PYTHON=1", "CAIRN_OUTPUT=/tmp/cairn/out.cairn", "LD_PRELOAD=/tmp/cairn/libcairn.so",
                                  f"python{version}", "/tmp/cairn/python_calls.py", "/tmp/cairn/told.json", str(CALLS)])
    result = t.run(words)
    outputs = sorted(place.glob("out*.cairn"), key=lambda path: path.stat().st_size)
    if t.check_equal(f"{suite}: Python {version}", (result.status, result.err, bool(outputs)), (0, b"", True)):
        compare(f"{suite}: Python {version}", place / "told.json", str(outputs[-1]), "--sysroot", str(root))


for python in os.environ.get("CAIRN_TEST_PYTHONS", t.PYTHON).split(":"):
    try_here(python)
for suite, versions in OTHERS.items():
    root = chroots.find(suite, "python", ["python3"] + [f"python{version}" for version in versions])
    for version in versions if root else []:
        try_inside(suite, version, root)
t.finish()
