#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals, bytes at exit and peak of real programs equal those of the counting preload.

Two runs are compared where the program does the same in every run. Some copy their environment into
the heap, so that cairn's own variables show: these run once with both libraries, the counter in front
of cairn (libc stays cairn's next allocator) and behind it (cairn sees a foreign allocator)."""

import glob

import cairn_test as t
import counts
import real_programs

# These neither copy their environment nor hash addresses or the time.
SAME_EVERY_RUN = ("sqlite3", "jq")


def check_two_runs(name, argv, env):
    _, counted = t.count(argv, env=env)
    _, path = t.record(argv, env=env)
    found = t.report(path)
    t.check_equal(f"{name}: processes", len(counted), 1)
    t.check_totals(name, found, list(counted.values())[0])
    t.check_sums(name, found)
    t.check_nothing_lost(name, found)
    t.check(found and found["trust"]["exact"], f"{name}: not exact")


def check_one_run(name, argv, env, preload):
    prefix = t.fresh_path("both")
    _, path = t.record_alone(argv, env={**env, "COUNT_PRELOAD_OUT": prefix}, preload=preload)
    counted = counts.read_all(prefix)
    t.check_equal(f"{name}: processes", len(counted), 1)
    found = t.report(path)
    threads = len(found["threads"]) if found else 0
    # With several threads the peak may be off by what they hold back, and says by how much.
    t.check_totals(name, found, list(counted.values())[0], with_peak=threads == 1)
    if threads > 1:
        wanted = list(counted.values())[0]["peak_bytes"]
        off, error = abs(found["peak"]["bytes"] - wanted), found["peak"]["error_bytes"]
        t.check(off <= error, f"{name}: peak is off by {off}, error_bytes says {error}")
    t.check_sums(name, found)
    t.check_nothing_lost(name, found)


for name, make in real_programs.EVERY.items():
    if name == "g++":
        continue  # several processes: children.py
    command, variables = make()
    t.need(command[0])
    if name in SAME_EVERY_RUN:
        check_two_runs(name, command, variables)
    check_one_run(f"{name} below the counter", command, variables, f"{t.COUNTER}:{t.RUNTIME}")
    check_one_run(f"{name} above the counter", command, variables, f"{t.RUNTIME}:{t.COUNTER}")
t.check(not glob.glob("core*"), "a core file was left")
t.finish()
