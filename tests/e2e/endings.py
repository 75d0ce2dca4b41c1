#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However a program ends, its status passes through and nothing that was counted is lost: return,
exit, _exit, quick_exit, abort, signals, an illegal instruction, a last thread after main, and a program
that closes every descriptor before it goes on."""

import os
import signal

import cairn_test as t

LEAKED = 100 * 1000
ENDINGS = [  # arguments, expected exit of the report
    (("return", 0), (0, 0)), (("return", 3), (3, 0)), (("exit", 5), (5, 0)),
    (("_exit", 6), (6, 0)), (("quick_exit", 7), (7, 0)),
    (("abort",), (0, signal.SIGABRT)), (("signal", int(signal.SIGTERM)), (0, signal.SIGTERM)),
    (("signal", int(signal.SIGKILL)), (0, signal.SIGKILL)),
    (("signal", int(signal.SIGSEGV)), (0, signal.SIGSEGV)), (("trap",), (0, signal.SIGILL)),
]


def check_ending(arguments, wanted_exit):
    name = "endings " + " ".join(map(str, arguments))
    argv = t.program("endings", *arguments)
    plain = t.run(argv)
    recorded, path = t.record(argv)
    recorded.check_like(name, plain)
    found = t.report(path)
    if found is None:
        return
    leaked = sum(s["at_exit_bytes"] for s in t.stacks_through(found, "leak_here"))
    t.check_equal(f"{name}: leaked", leaked, LEAKED)
    status, number = wanted_exit
    got = found["process"]["exit"]
    t.check_equal(f"{name}: signal", got["signal"] or 0, int(number))
    if not number:
        t.check_equal(f"{name}: status", got["status"], status)


def check_alone(arguments):
    """The preload alone has no one to see the end, but the counters are there."""
    name = "alone: endings " + " ".join(map(str, arguments))
    _, path = t.record_alone(t.program("endings", *arguments))
    found = t.report(path)
    if found:
        leaked = sum(s["at_exit_bytes"] for s in t.stacks_through(found, "leak_here"))
        t.check_equal(f"{name}: leaked", leaked, LEAKED)


def check_closed(how):
    """The program's own files hold only what it wrote, although it closed our descriptors."""
    argv = t.program("endings", "closed")
    result, path = how(argv)
    t.check_equal("closed: status", result.status, 0)
    with open("written-after-close", "rb") as file:
        t.check_equal("closed: file", file.read(), b"only this\n")
    os.unlink("written-after-close")
    found = t.report(path)
    if found:
        # 100 blocks, one of 1 MiB, and libc's FILE with its buffer.
        t.check_equal("closed: allocations", found["totals"]["allocations"], 103)
        t.check_equal("closed: at exit", found["at_exit"]["bytes"], LEAKED)


for given, wanted in ENDINGS:
    check_ending(given, wanted)
    check_alone(given)
check_closed(t.record)
check_closed(t.record_alone)
late, late_path = t.record(t.program("endings", "thread"))
t.check_equal("thread: status", late.status, 0)
late_found = t.report(late_path)
if late_found:
    last = [s for s in t.stacks_through(late_found, "last_thread") if s["at_exit_bytes"] == 3000]
    t.check_equal("thread: the last thread's block", len(last), 1)
t.finish()
