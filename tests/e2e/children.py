#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with children: one recording a process below one path, every one exact; g++ with its cc1plus,
as, collect2 and ld; forks of a threaded program that do not deadlock; a chain of execs."""

import os
import pathlib

import cairn_test as t
import counts
import real_programs


def recordings(path):
    path = pathlib.Path(path)
    return sorted(path.rglob("*.cairn")) if path.is_dir() else [path]


def reports(path):
    return [report for report in (t.report(file) for file in recordings(path)) if report]


def check_gxx():
    argv, env = real_programs.gxx()
    prefix = t.fresh_path("count")
    # The counter in front of cairn's library: both see each process once, in one run.
    result, path = t.record(argv, env={**env, "LD_PRELOAD": t.COUNTER, "COUNT_PRELOAD_OUT": prefix})
    t.check_equal("g++: status", result.status, 0)
    t.check_equal("g++: streams", (result.out, result.err), (b"", b""))
    t.check_equal("g++: its program", t.run(["./walk-program"]).out, b"97\n")
    wanted = {one["pid"]: one for one in counts.read_all(prefix).values()}
    found = {one["process"]["pid"]: one for one in reports(path)}
    for one in found.values():
        if one["process"]["ppid"] not in found:
            wanted.pop(one["process"]["ppid"], None)  # cairn itself
    t.check(len(wanted) >= 4, f"g++ ran only {len(wanted)} processes")
    t.check_equal("g++: recorded processes", sorted(found), sorted(wanted))
    for pid in set(found) & set(wanted):
        name = f"g++: {found[pid]['process']['command'].split()[0]}"
        t.check_totals(name, found[pid], wanted[pid], with_peak=len(found[pid]["threads"]) == 1)
        t.check_nothing_lost(name, found[pid])


def check_forks():
    for attempt in range(5):
        result, path = t.record(t.program("processes", "fork", 8), timeout=60)
        t.check_equal(f"fork {attempt}: status", result.status, 0)
        t.check_equal(f"fork {attempt}: output", result.out, b"fork: 0 failures\n")
        found = reports(path)
        t.check_equal(f"fork {attempt}: recordings", len(found), 9)
        for child in found:
            inside = t.stacks_through(child, "child_work")
            left = sum(s["at_exit_bytes"] for s in inside)
            is_parent = child["process"]["ppid"] not in [one["process"]["pid"] for one in found]
            t.check_equal("fork: bytes of child_work", left, 0 if is_parent else 100000)


def check_execs():
    result, path = t.record(t.program("processes", "exec", 3))
    t.check_equal("exec: status", result.status, 0)
    found = reports(path)
    t.check_equal("exec: recordings", len(found), 4)
    for one in found:
        inside = t.stacks_through(one, "child_work")
        t.check_equal("exec: bytes", sum(s["at_exit_bytes"] for s in inside), 100000)


def check_spawns():
    for kind in ("vfork", "spawn"):
        result, path = t.record(t.program("processes", kind))
        t.check_equal(f"{kind}: status", result.status, 0)
        parents = [one for one in reports(path) if one["process"]["command"].endswith(" " + kind)]
        t.check_equal(f"{kind}: the program's own recording", len(parents), 1)
        if parents:
            sixties = [s for s in parents[0]["stacks"] if s["allocated_bytes"] == 20 * 60]
            t.check_equal(f"{kind}: its blocks", len(sixties), 1)


def check_raw_clone():
    """A child that no handler of libc announces must not write into its parent's recording."""
    result, path = t.record(t.program("processes", "clone"))
    t.check_equal("clone: status", result.status, 0)
    parents = [one for one in reports(path) if one["process"]["command"].endswith(" clone")]
    left = [sum(s["at_exit_bytes"] for s in t.stacks_through(one, "child_work")) for one in parents]
    t.check(left and min(left) == 0, f"clone: the child's blocks are in the parent's file: {left}")


check_gxx()
check_forks()
check_execs()
check_spawns()
check_raw_clone()
t.check(not [name for name in os.listdir(".") if name.endswith(".tmp")], "temporary files were left")
t.finish()
