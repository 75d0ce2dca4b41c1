#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads: nothing of 80 short ones is lost, a producer's blocks are freed by a consumer, names and
figures of each thread are right or one row says who shares an account, data freed by destructors of thread data is
counted."""

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
    view = " ".join(t.run_cairn("report", "--view", "threads", path).out.decode().split())
    t.check(("which of them freed whose blocks is not known" in view) == is_shared, f"{command}: {view}")

# 12 jobs one after the other, each but the last leaves 10 blocks of 100 bytes; then four that leave nothing
_, path = t.record(t.program("threads", "jobs"))
jobs = t.report(path)
by_name = {thread["name"]: thread for thread in jobs["threads"]}
names = [f"job{i}" for i in range(12)]
for name in names:
    t.check_equal(f"{name}: calls, bytes", (by_name[name]["allocations"], by_name[name]["allocated_bytes"]), (1000, 100000))
    t.check_equal(f"{name}: what it holds", (by_name[name]["at_exit_bytes"], by_name[name]["peak_bytes"]), (None, None))
accounts = jobs.get("thread_accounts", [])
t.check_equal("accounts that are shared", [(one["name"], one["threads"], one["at_exit_bytes"]) for one in accounts],
              [("job0 ... tidy3 (16 threads share an account)", 16, 11 * 1000)])
t.check_equal("account of the jobs", {by_name[name].get("account") for name in names}, {one["account"] for one in accounts})
for arguments in (("report", "--view", "threads"), ("report", "--view", "threads", "--group")):
    shown = t.run_cairn(*arguments, path).out.decode()
    t.check("10.7 KiB  job0 ... tidy3 (16 threads share an account)" in shown and "job3" not in shown, shown)
shown = " ".join(t.run_cairn("info", path).out.decode().split())
t.check_equal("info", shown.count("10.7 KiB left of the 16 threads that share its account"), 16)
for command in ("report", "leaks"):
    shown = t.run_cairn(command, "--thread", "^job3$", path).out.decode()
    t.check("(with 15 threads that shared its account)" in shown, f"{command}: {shown}")
shown = t.run_cairn("report", "--thread", "job|tidy", path).out.decode()
t.check("shared its account" not in shown, f"all that share: {shown}")
shown = t.run_cairn("sql", path, "select count(*), count(at_exit_bytes) from threads where name like 'job%'").out.decode()
t.check("12\t0" in shown, f"sql: {shown}")

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
