#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals of the small programs of tests/programs equal the counting preload's, and what they leak on
purpose is found at the functions that leak it."""

import cairn_test as t

SINGLE = [
    ("leak",), ("realloc_chain",), ("deep_recursion",), ("exceptions",), ("exceptions", "refuse"),
    ("frames",), ("signal_handler",), ("coroutines",), ("mixed",), ("odd_arguments",),
    ("endings", "return", 7),
]
# The order of their threads differs between runs, the totals do not.
THREADED = [("threads", "short"), ("threads", "late")]


def compare(command, with_peak):
    name = " ".join(map(str, command))
    argv = t.program(*command)
    plain, counted = t.count(argv)
    recorded, path = t.record(argv)
    recorded.check_like(name, plain)
    found = t.report(path)
    t.check_totals(name, found, list(counted.values())[0], with_peak)
    t.check_sums(name, found)
    t.check_nothing_lost(name, found)
    return found


def leaked(found, function):
    stacks = t.stacks_through(found, function)
    return (sum(stack["at_exit_bytes"] for stack in stacks),
            sum(stack["at_exit_blocks"] for stack in stacks))


def check_leak(found):
    if found is None:
        return
    t.check_equal("leak_small", leaked(found, "leak_small"), (2400, 100))
    t.check_equal("leak_large", leaked(found, "leak_large"), (150000, 3))
    t.check_equal("leak_shared", leaked(found, "leak_shared"), (10000, 10))
    t.check_equal("caller_two", leaked(found, "caller_two"), (6000, 6))
    t.check_equal("work", leaked(found, "work"), (0, 0))
    stack = t.stacks_through(found, "caller_one")[0]
    names = t.functions(stack)
    t.check_equal("order of frames", names[names.index("leak_shared"):][:3],
                  ["leak_shared", "caller_one", "main"])
    frame = stack["frames"][names.index("caller_one")]
    t.check((frame["file"] or "").endswith("leak.c"), f"file of a frame: {frame['file']}")
    t.check(isinstance(frame["line"], int) and frame["line"] > 0, f"line: {frame['line']}")
    t.check((frame["module"] or "").endswith("leak"), f"module of a frame: {frame['module']}")


reports = {command: compare(command, True) for command in SINGLE}
check_leak(reports[("leak",)])
for threaded in THREADED:
    compare(threaded, False)
t.finish()
