#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads of every kind are counted exactly: many short ones (10,000; 100,000 in `make check-long`) in
bounded memory with their names kept, cancelled ones, those on small or foreign stacks, those whose
first event comes in a handler on a small alternate stack, destructors of thread data. Hundreds at once take little
each, and what is said of cairn's own memory is what the kernel says of it."""

import os
import re
import subprocess

import cairn_test as t
import ledger

THREADS = 100000 if t.IS_LONG else 10000
MIB = 1 << 20
# What 100 threads at once need; it must not grow with the number of threads that ever ran.
OWN_MOST_BYTES = 64 * MIB
# 16,384 entries of the thread table, and the cells of those at once.
FILE_MOST_BYTES = 4 * MIB


def recorded(how, *arguments):
    argv = t.program("short_threads", *arguments)
    name = " ".join(map(str, arguments))
    result, path, accounts = ledger.recorded(argv, how=how)
    t.check_equal(f"{name}: end", (result.status, result.out, result.err),
                  (0, f"{arguments[0]} done\n".encode(), b""))
    found = ledger.reports(path)
    for pid, account in accounts.items():
        ledger.check(name, found.get(pid), account)
        if pid in found:
            t.check_nothing_lost(name, found[pid])
            t.check_sums(name, found[pid])
    return path, found[next(iter(accounts))]


def check_many(how):
    path, found = recorded(how, "many", THREADS)
    inside = t.stacks_through(found, "short_body")
    t.check_equal("many: calls", sum(s["allocations"] for s in inside), 3 * THREADS)
    names = {thread["name"] for thread in found["threads"]}
    t.check({f"short-{i}" for i in range(4)} <= names, f"many: names of threads {sorted(names)}")
    t.check(os.path.getsize(path) < FILE_MOST_BYTES, f"many: file of {os.path.getsize(path)} bytes")
    own = found["trust"]["own_bytes"]
    t.check(own < OWN_MOST_BYTES, f"many: cairn's own memory {own}")


def check_resident():
    """Ten times the threads do not need more memory."""
    peaks = []
    for count in (THREADS // 10, THREADS):
        _, found = recorded(t.record, "many", count)
        peaks.append(found["rss"]["peak_bytes"])
    t.check(peaks[1] < peaks[0] + 8 * MIB, f"resident peaks {peaks}")


# What a thread that sees two stacks may take: its state, its first tables, and its pages of the recording.
THREAD_MOST_KIB, DEEP_MOST_KIB, ALONE_MOST_KIB, POINTS_KIB = 20, 110, 1100, 256
# Steps by which a recording is uncovered: as many as its size takes, not as many as threads came meanwhile.
UNCOVERING_MOST = 80
# Threads that nobody hears end, and the slots that they may take together.
UNHEARD, UNHEARD_SLOTS_MOST = 800, 240


def own_kib(pid):
    """What mappings of cairn's hold by the kernel's account: its library, the recording, and memory that is mapped
    without reserving swap, as glibc's arenas are, of which there is one here."""
    own, is_own, name = 0, False, ""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps:
        for line in smaps:
            mapping = re.match(r"[\da-f]+-[\da-f]+ \S+ \S+ \S+ \d+ *(.*)$", line)
            if mapping:
                name, resident = mapping[1], 0
            elif line.startswith("Rss:"):
                resident = int(line.split()[1])
            elif line.startswith("VmFlags:"):
                is_own = "libcairn" in name or "cairn" in name.rpartition("/")[2] or (not name and " nr" in line)
                own += resident if is_own else 0
    return own


def check_own(what, count, options=()):
    path = t.fresh_path("crowd") + ".cairn"
    command = [t.CAIRN, "run", "-q", *options, "-o", path, "--", *t.program("threads", what, count)]
    with t.Process(command, env=t.environment({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}), stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE) as process:
        words = process.stdout.readline().split()
        name = f"{what} of {count} {' '.join(options)}"
        if not t.check_equal(f"{name}: ready", words[:1], [b"ready"]):
            process.kill()
            return
        true = own_kib(int(words[1]))
        process.stdin.close()
        process.stdout.read()
        t.check_equal(f"{name}: status", process.wait(), 0)
    found = t.report(path)
    t.check_nothing_lost(name, found)
    said = found["trust"]["own_bytes"] // 1024
    # the timeline grows while the program waits
    is_near = true * 0.8 - POINTS_KIB <= said <= true * 1.25 + POINTS_KIB
    t.check(is_near, f"{name}: cairn itself {said} KiB, by the kernel {true} KiB")
    most = ALONE_MOST_KIB + (THREAD_MOST_KIB if what == "crowd" else DEEP_MOST_KIB) * count
    t.check("--events" in options or true <= most, f"{name}: {true} KiB, more than {most}")
    if what == "deep" and not options:
        inside = t.stacks_through(found, "go_down")
        t.check_equal(f"{name}: calls", sum(s["allocations"] for s in inside), count)
        t.check(all(len(s["frames"]) > 300 for s in inside), f"{name}: frames {[len(s['frames']) for s in inside]}")


def check_uncovering():
    path = t.fresh_path("uncovered") + ".cairn"
    _, asked = t.asked_calls("mremap", [t.CAIRN, "run", "-q", "-o", path, "--", *t.program("threads", "crowd", 600)])
    t.check(0 < asked <= UNCOVERING_MOST, f"crowd of 600: uncovered by {asked} calls")


def check_unheard():
    result, path = t.record(t.program("threads", "unheard", UNHEARD))
    t.check_equal("unheard: status", result.status, 0)
    found = t.report(path)
    t.check_nothing_lost("unheard", found)
    t.check_equal("unheard: calls", sum(s["allocations"] for s in t.stacks_through(found, "unheard_body")), UNHEARD)
    slots = {thread["slot"] for thread in found["threads"]}
    t.check(len(slots) <= UNHEARD_SLOTS_MOST, f"unheard: {len(slots)} slots")


check_uncovering()
check_unheard()
for threads_count in (1, 40, 1600):
    check_own("crowd", threads_count)
    check_own("crowd", threads_count, ("--sample",))
check_own("crowd", 100, ("--events",))
check_own("deep", 60)
check_many(t.record)
check_many(t.record_alone)
check_resident()
for kind in ("cancel", "stacks", "handlers"):
    recorded(t.record, kind)
    recorded(t.record_alone, kind)

cxx_plain = t.run(t.program("thread_data"))
cxx, cxx_path = t.record(t.program("thread_data"))
cxx.check_like("thread_data", cxx_plain)
found = t.report(cxx_path)
if found:
    inside = t.stacks_through(found, "Late::~Late")
    t.check_equal("thread_data: allocated in destructors", sum(s["allocations"] for s in inside), 100)
    t.check_equal("thread_data: left by them", sum(s["at_exit_bytes"] for s in inside), 50 * 71)
    body = t.stacks_through(found, "Late::Late")
    t.check_equal("thread_data: left of the data", sum(s["at_exit_bytes"] for s in body), 0)
    t.check_equal("thread_data: the data", sum(s["allocated_bytes"] for s in body), 50 * 5000)
    t.check_nothing_lost("thread_data", found)
t.finish()
