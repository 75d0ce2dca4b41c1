#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads: nothing of 80 short ones is lost, a producer's blocks are freed by a consumer, names and
figures of each thread are right, data freed by destructors of thread data is counted."""

import cairn_test as t


def recorded(*command):
    _, path = t.record(t.program(*command))
    return t.report(path)


short = recorded("threads", "short")
if short:
    inside = t.stacks_through(short, "short_body")
    t.check_equal("calls of short threads", sum(s["allocations"] for s in inside), 80 * 1001)
    t.check_equal("bytes they left", sum(s["at_exit_bytes"] for s in inside), 80 * 10)
    t.check_nothing_lost("short", short)
    t.check_sums("short", short)

pipe = recorded("threads", "pipe")
if pipe:
    inside = t.stacks_through(pipe, "produce")
    t.check_equal("produced", sum(s["allocated_bytes"] for s in inside), 2000000)
    t.check_equal("left of it", sum(s["at_exit_bytes"] for s in inside), 0)
    by_name = {thread["name"]: thread for thread in pipe["threads"]}
    t.check({"producer", "consumer"} <= set(by_name), f"names of threads: {sorted(by_name)}")
    if {"producer", "consumer"} <= set(by_name):
        t.check_equal("calls of the producer", by_name["producer"]["allocations"], 20000)
        t.check_equal("calls of the consumer", by_name["consumer"]["allocations"], 0)
    # At most 64 blocks wait and one is in each hand.
    peak = sum(s["peak_bytes"] for s in inside)
    allowed = 66 * 100 + pipe["peak"]["error_bytes"]
    t.check(peak <= allowed, f"peak of the pipe {peak} > {allowed}")
    t.check_sums("pipe", pipe)

# of threads that shared an account nothing is told that is not known
for command, is_shared in (("relay", True), ("pipe", False)):
    _, path = t.record(t.program("threads", command))
    view = t.run_cairn("report", "--view", "threads", path).out.decode()
    t.check(("which of them freed whose blocks is not known" in view) == is_shared, f"{command}: {view}")

late = recorded("threads", "late")
if late:
    inside = t.stacks_through(late, "late_destructor")
    t.check_equal("blocks left by destructors", sum(s["at_exit_bytes"] for s in inside), 100 * 77)
    body = t.stacks_through(late, "late_body")
    t.check_equal("thread data", sum(s["allocated_bytes"] for s in body if
                                     s["allocated_bytes"] % 55 == 0), 100 * 55)
    # A thread that is not done when it has given its slot up goes on under its entry.
    t.check_equal("threads with thread data", len(late["threads"]), 101)
    t.check_nothing_lost("late", late)
t.finish()
