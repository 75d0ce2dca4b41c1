#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals, peak and every stack's values equal those of `valgrind --tool=dhat`, to the byte.

Stacks of programs with debug information are compared by the functions and lines of their own source
file; those of stripped system programs by their values alone (as a multiset), since the two tools name
addresses differently there. What would differ, and why: DHAT counts a request for 0 bytes as 1 (no program here
makes one), walks at most 500 frames, and books a realloc on the stack of the block's first allocation:
tests/tools/steady_preload.c takes realloc out of both runs. `make check-long` has three real programs with it and two
without; `make check` one, and one of ours."""

import collections
import re

import cairn_test as t
import dhat_totals
import real_programs

# Program: its source file, or None where only totals can be compared: DHAT does not walk through signal
# frames.
OWN = {"leak": "leak.c", "mixed": "mixed.c", "realloc_chain": "realloc_chain.c",
       "exceptions": "exceptions.cc", "frames": "frames.c", "coroutines": "coroutines.c",
       "signal_handler": None}
FRAME = re.compile(r"^0x[0-9A-F]+: (?P<function>.*?) \((?P<file>[^():]*):(?P<line>\d+)\)$")


def values_of_cairn(stack):
    return (stack["allocations"], stack["allocated_bytes"], stack["peak_bytes"],
            stack["at_exit_bytes"], stack["at_exit_blocks"])


def values_of_dhat(stack):
    return (stack.allocations, stack.allocated_bytes, stack.peak_bytes, stack.end_bytes,
            stack.end_blocks)


def check_totals(name, found, stacks):
    wanted = dhat_totals.totals(stacks)
    pairs = [
        ("allocations", found["totals"]["allocations"], wanted["allocations"]),
        ("allocated bytes", found["totals"]["allocated_bytes"], wanted["allocated_bytes"]),
        ("peak bytes", found["peak"]["bytes"], wanted["peak_bytes"]),
        ("peak blocks", found["peak"]["blocks"], wanted["peak_blocks"]),
        ("bytes at exit", found["at_exit"]["bytes"], wanted["end_bytes"]),
        ("blocks at exit", found["at_exit"]["blocks"], wanted["end_blocks"]),
    ]
    for what, got, expected in pairs:
        t.check_equal(f"{name}: {what}", got, expected)


def name_of(function):
    """`thrower(int, int)` and `thrower` are one function."""
    return (function or "?").split("(")[0]


def own_frames_of_cairn(stack, source):
    return tuple((name_of(frame["function"]), frame["line"]) for frame in stack["frames"]
                 if (frame["file"] or "").endswith("/" + source))


def own_frames_of_dhat(stack, source):
    """From lines such as `0x109234: work (leak.c:38)`."""
    matches = (FRAME.match(frame) for frame in stack.frames)
    return tuple((name_of(found["function"]), int(found["line"])) for found in matches
                 if found and found["file"] == source)


def sums_by_frames(stacks, own_frames, values):
    """Values of all stacks with the same frames in the program's own source file."""
    sums = {}
    for stack in stacks:
        key = own_frames(stack)
        old = sums.get(key, (0,) * 5)
        sums[key] = tuple(a + b for a, b in zip(old, values(stack)))
    return sums


def check_stacks_by_lines(name, source, found, stacks):
    mine = sums_by_frames(found["stacks"], lambda s: own_frames_of_cairn(s, source), values_of_cairn)
    theirs = sums_by_frames(stacks, lambda s: own_frames_of_dhat(s, source), values_of_dhat)
    t.check(len(theirs) > 2, f"{name}: DHAT has no lines")
    for key in sorted(set(mine) | set(theirs)):
        where = " < ".join(f"{function}:{line}" for function, line in key)
        t.check_equal(f"{name}: {where[:200]}", mine.get(key), theirs.get(key))


def check_stacks_by_value(name, found, stacks):
    mine = collections.Counter(values_of_cairn(stack) for stack in found["stacks"])
    theirs = collections.Counter(values_of_dhat(stack) for stack in stacks)
    only_mine, only_theirs = mine - theirs, theirs - mine
    t.check(not only_mine and not only_theirs,
            f"{name}: {len(found['stacks'])} stacks, DHAT has {len(stacks)};"
            f" only here {only_mine.most_common(5)}, only there {only_theirs.most_common(5)}")


t.need("valgrind")
STEADY = {"LD_PRELOAD": t.STEADY}
for own, source_file in OWN.items():
    argv = t.program(own)
    judged = t.dhat(argv, env=STEADY)
    _, path = t.record_alone(argv, preload=f"{t.STEADY}:{t.RUNTIME}")
    report = t.report(path)
    if report:
        check_totals(own, report, judged)
        if source_file:
            check_stacks_by_lines(own, source_file, report, judged)
for real in ("sqlite3", "xmllint", "jq") if t.IS_LONG else ("sqlite3",):
    argv, variables = real_programs.SINGLE[real]()
    judged = t.dhat(argv, env={**variables, **STEADY})
    _, path = t.record_alone(argv, env=variables, preload=f"{t.STEADY}:{t.RUNTIME}")
    report = t.report(path)
    if report:
        check_totals(real, report, judged)
        check_stacks_by_value(real, report, judged)

# Without the help of the preload: totals only.
for real in ("realloc_chain", "sqlite3", "jq") if t.IS_LONG else ("realloc_chain",):
    argv, variables = real_programs.SINGLE[real]() if real in real_programs.SINGLE else (t.program(real), {})
    judged = t.dhat(argv, env=variables)
    _, path = t.record(argv, env=variables)
    report = t.report(path)
    if report:
        check_totals(f"{real} with its own realloc", report, judged)
t.finish()
