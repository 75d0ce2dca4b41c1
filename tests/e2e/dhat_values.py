#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals, peak and every stack's values equal those of `valgrind --tool=dhat`, to the byte.

Stacks of programs with debug information are compared by the names of their functions; those of
stripped system programs by their values alone (as a multiset), since the two tools name addresses
differently there. What may differ, and why: DHAT counts a request for 0 bytes as 1 (no program here
makes one, see the counts), walks at most 500 frames, and does not show what is below main."""

import collections

import cairn_test as t
import dhat_totals
import real_programs

OWN = [("leak",), ("mixed",), ("realloc_chain",), ("exceptions",), ("frames",), ("coroutines",),
       ("signal_handler",)]
ALLOCATORS = {"malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
              "memalign", "valloc", "pvalloc"}


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


def simple_name(function):
    """`thrower(int, int)` and `thrower` are one function; so are a clone and its origin."""
    function = function.split("(")[0].split("<")[0].split("[")[0].strip()
    return function.split(" ")[-1].split("::")[-1].split(".")[0].split("@")[0]


def key_of(functions):
    """Names from the caller of the allocator up to main."""
    names = [simple_name(function) for function in functions]
    while names and names[0] in ALLOCATORS:
        names = names[1:]
    if "main" in names:
        names = names[:names.index("main") + 1]
    return tuple(name for name in names if name not in ("operator", "new"))


def sums_by_key(stacks, functions, values):
    sums = collections.Counter()
    rows = {}
    for stack in stacks:
        key = key_of(functions(stack))
        if "main" not in key:
            continue  # before main, in handlers below a signal frame, on coroutine stacks
        old = rows.get(key, (0,) * 5)
        rows[key] = tuple(a + b for a, b in zip(old, values(stack)))
        sums[key] += 1
    return rows


def check_stacks_by_name(name, found, stacks):
    mine = sums_by_key(found["stacks"], t.functions, values_of_cairn)
    theirs = sums_by_key(stacks, lambda stack: stack.functions, values_of_dhat)
    for key in sorted(set(mine) | set(theirs)):
        t.check_equal(f"{name}: {' < '.join(key)[:200]}", mine.get(key), theirs.get(key))


def check_stacks_by_value(name, found, stacks):
    mine = collections.Counter(values_of_cairn(stack) for stack in found["stacks"])
    theirs = collections.Counter(values_of_dhat(stack) for stack in stacks)
    only_mine, only_theirs = mine - theirs, theirs - mine
    t.check(not only_mine and not only_theirs,
            f"{name}: {len(found['stacks'])} stacks, DHAT has {len(stacks)};"
            f" only here {only_mine.most_common(5)}, only there {only_theirs.most_common(5)}")


t.need("valgrind")
for command in OWN:
    argv = t.program(*command)
    judged = t.dhat(argv)
    _, path = t.record(argv)
    report = t.report(path)
    if report:
        check_totals(command[0], report, judged)
        check_stacks_by_name(command[0], report, judged)
for real in ("sqlite3", "xmllint", "jq"):
    argv, variables = real_programs.SINGLE[real]()
    judged = t.dhat(argv, env=variables)
    _, path = t.record(argv, env=variables)
    report = t.report(path)
    if report:
        check_totals(real, report, judged)
        check_stacks_by_value(real, report, judged)
t.finish()
