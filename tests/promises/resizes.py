#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What realloc does is counted as the program itself counts it, and the ways that are fast count nothing else
than those that know every case: a recording of each mode that has fast ways is that of a mode that has none, stack by
stack, also in regions, after marks, in a slot whose last thread ended in a region, with blocks of other threads and
in a forked child. And nearly all events take the fast ways."""

import collections
import pathlib
import re
import subprocess

import cairn_test as t

# Each mode, and another one whose events all go the way that knows every case.
FULL, TOTALS = ({}, {"CAIRN_VERIFY": "1"}), ({"CAIRN_STACKS": "0"}, {"CAIRN_STACKS": "0", "CAIRN_AGES": "1"})
SEEDS, STEPS = (1, 2, 3) if t.IS_LONG else (1,), 20000
# What a sample of the blocks says, which is another one each time, and what one of two modes has alone.
UNLIKE = {"watched", "watched_short_lived", "ages", "ages_error_ms"}
# Of a hundred events at most so many may take a way that knows every case.
RARE = 3


def without(found):
    if isinstance(found, dict):
        return {key: without(value) for key, value in found.items() if key not in UNLIKE}
    return [without(one) for one in found] if isinstance(found, list) else found


def stacks_of(path):
    found = without(t.report(path))
    names = ("totals", "at_exit", "stacks", "freed_by", "inherited", "trust", "regions")
    kept = {name: found.get(name) for name in names}
    kept["trust"].pop("own_bytes")
    kept["peak"] = {name: found["peak"][name] for name in ("bytes", "blocks")}
    kept["stacks"].sort(key=lambda stack: stack["id"])
    return kept


def recorded(mode, *arguments):
    """(what the program counted, recordings: its own and its child's)"""
    place = pathlib.Path(t.fresh_path("run"))
    place.mkdir()
    result = t.run(t.program("resizes", *arguments),
                   env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": str(place / "run.cairn"), **mode})
    t.check_equal(f"{mode}: status", (result.status, result.err), (0, b""))
    files = sorted(place.glob("*.cairn"), key=lambda path: len(path.name))
    return list(map(int, result.out.split())), [stacks_of(path) for path in files]


def check_own(name, counted, found):
    """Against the program's own account; its threads and its output allocate a little besides."""
    own = dict(zip("allocations frees allocated freed failed temporary most resized grown in_place copied".split(),
                   counted))
    totals = found["totals"]
    t.check_equal(f"{name}: totals",
                  [totals[key] for key in ("allocations", "frees", "allocated_bytes", "freed_bytes", "failed",
                                           "temporary")],
                  [own[key] for key in ("allocations", "frees", "allocated", "freed", "failed", "temporary")])
    t.check_equal(f"{name}: peak", found["peak"]["bytes"], own["most"])
    reallocs = [stack["reallocs"] for stack in found["stacks"] if "reallocs" in stack]
    t.check_equal(f"{name}: reallocs",
                  [sum(one[key] for one in reallocs) for key in ("calls", "grown", "in_place", "copied_bytes")],
                  [own[key] for key in ("resized", "grown", "in_place", "copied")])


def check_parts(name, mode, twin, seed):
    counted, found = recorded(mode, seed, STEPS, "parts")
    regions = [one["allocations"] for one in found[0]["regions"] if one["name"] == "thread"]
    t.check_equal(f"{name}: allocations in the threads' region", regions, counted[-2:-1])
    check_alike(name, found, recorded(twin, seed, STEPS, "parts")[1])


def check_small(mode, seed):
    """Blocks that get no stack because they are small have a cell of their own for what realloc made of them."""
    counted, found = recorded(mode, seed, STEPS)
    check_own(f"{mode}", counted, found[0])
    reallocs = [stack.get("reallocs", {}).get("calls") for stack in found[0]["stacks"] if stack["incomplete"] == "small"]
    t.check_equal(f"{mode}: small blocks that realloc made", reallocs, counted[-1:])


def check_alike(name, found, twin):
    t.check_equal(f"{name}: recordings", len(found), len(twin))
    for number, (one, other) in enumerate(zip(found, twin)):
        for key, value in one.items():
            if key == "stacks":
                differing = [pair for pair in zip(value, other[key]) if pair[0] != pair[1]]
                t.check(len(value) == len(other[key]) and not differing,
                        f"{name}, process {number}: {len(differing)} of {len(value)} stacks differ, {differing[:1]}")
            else:
                t.check_equal(f"{name}, process {number}: {key}", value, other[key])


def calls_in(counts):
    """{(caller, function): calls} of a file of callgrind's."""
    names, now, calls = {}, {}, collections.Counter()
    for line in counts.read_text().splitlines():
        if name := re.match(r"(c?fn)=\((\d+)\)(?: (\S+))?", line):
            if name[3]:
                names[name[2]] = name[3].split(".")[0]
            now[name[1]] = names[name[2]]
        elif line.startswith("calls="):
            calls[now["fn"], now["cfn"]] += int(line[6:].split()[0])
    return calls


def check_fast(mode, rare, most):
    """That functions which rare events call are called, but not often."""
    counts = pathlib.Path(t.fresh_path("counts"))
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", *t.program("resizes", 1, STEPS)],
                   env=t.environment({"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": str(counts) + ".cairn", **mode}),
                   capture_output=True, check=True)
    found = calls_in(counts)
    for callers, function in rare:
        calls = sum(count for (caller, called), count in found.items()
                    if called == function and re.fullmatch(callers, caller))
        print(f"{mode}: {function} called {calls} times")
        t.check(0 < calls <= most, f"{mode}: {function} called {calls} times, should be some, and at most {most}")


for mode, twin in FULL, TOTALS:
    for seed in SEEDS:
        name = f"{mode}, seed {seed}"
        counted, found = recorded(mode, seed, STEPS)
        check_own(name, counted, found[0])
        check_alike(name, found, recorded(twin, seed, STEPS)[1])
        check_parts(f"{name}, parts", mode, twin, seed)
check_small({"CAIRN_MIN_SIZE": "40"}, SEEDS[0])
if t.shutil.which("valgrind"):
    most = STEPS * RARE // 100
    check_fast({}, [("realloc_block", "realloc_unusual")], most)
    check_fast({"CAIRN_STACKS": "0"}, [(".*", "stack_intern"), ("realloc_block", "realloc_unusual")], most)
else:
    t.skip_part("whether events take the fast ways: valgrind is not here")
t.finish()
