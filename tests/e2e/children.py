#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with children: one recording a process below one path, every one exact; g++ with its cc1plus,
as, collect2 and ld; forks of a threaded program that do not deadlock; a chain of execs."""

import json
import os
import pathlib

import cairn_test as t
import counts
import ledger
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


COPIED, CHILDREN, FRESH, FREED, BLOCK = 100000, 8, 2000, 1000, 200


def check_copies():
    """Blocks that children inherit are no calls of theirs, on no screen and in no sum."""
    result, path, accounts = ledger.recorded(t.program("births", "copies", CHILDREN))
    t.check_equal("copies: status", result.status, 0)
    for pid, found in ledger.reports(path).items():
        ledger.check(f"copies {pid}", found, accounts.get(pid))
    whole = json.loads(t.run_cairn("report", "--json", path).out)
    calls = sum(one["totals"]["allocations"] for one in whole["processes"])
    size = sum(one["totals"]["allocated_bytes"] for one in whole["processes"])
    t.check_equal("copies: calls", calls, sum(one.allocations for one in accounts.values()))
    t.check_equal("copies: bytes", size, sum(one.allocated_bytes for one in accounts.values()))
    combined, copies = whole["combined_peak"], CHILDREN * COPIED * BLOCK
    t.check(copies <= combined["inherited_bytes"] <= copies * 1.02, f"copies: inherited: {combined}")
    # blocks that were not written to are there once
    t.check(combined["pss_bytes"] and combined["pss_bytes"] < combined["high_bytes"] / 2, f"copies: PSS: {combined}")

    leaks = t.run_cairn("leaks", "--summary", path).out.decode()
    kept = t.run_cairn("export", "--format", "json", path).out
    lines = [line.strip() for line in leaks.splitlines()]
    t.check(f"allocated {size / 2**20:.1f} MiB in {calls:,} calls" in " ".join(leaks.split()), f"copies: {leaks}")
    t.check("allocated 19.1 MiB in 100,000 calls, 19.1 MiB at the peak" in lines, f"copies: the parent's line: {leaks}")
    t.check(any(line.endswith("19.1 MiB in 100,000 blocks") for line in lines), f"copies: left: {leaks}")
    merged = json.loads(kept)
    t.check_equal("copies: calls of the sum", merged["totals"]["allocations"], calls)
    stack = max(merged["stacks"], key=lambda one: one["allocated_bytes"])
    t.check_equal("copies: calls of the parent's stack", stack["allocations"], COPIED)
    t.check_equal("copies: inherited of it", stack["inherited"]["blocks"], CHILDREN * COPIED)
    t.check_equal("copies: still there", stack["inherited"]["at_exit_blocks"], CHILDREN * (COPIED - FREED))


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
check_copies()
check_execs()
check_spawns()
check_raw_clone()
t.check(not [name for name in os.listdir(".") if name.endswith(".tmp")], "temporary files were left")
t.finish()
