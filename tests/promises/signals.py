#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A storm of signals over a loop of malloc and free, with handlers that allocate, free and jump out:
the program goes on, what was recorded and what was counted as lost add up to what it did, and
afterwards the thread records as before. 2 seconds each, 20 in `make check-long`. A stack that
overflowed twice, with frames of other sizes, is one of these jumps."""

import os
import re

import cairn_test as t
import ledger

SECONDS = 20 if os.environ.get("CAIRN_LONG") else 2
EVENTS_OF_HANDLER = 4  # two blocks, made and freed
AFTER_BLOCKS = 1000
OVERFLOW_BLOCKS = 1000
LEAST_SIGNALS = 5  # how many come is a matter of the machine; one that is busy gives a few a second
INTERRUPTIBLE = str(t.BUILD / "tests/interruptible_preload.so")
SAYS = re.compile(rb"errno kept, handled (\d+), jumped (\d+)\n")


def storm(kind, hertz, how, env):
    name = f"{kind} {hertz} Hz"
    argv = t.program("storms", kind, SECONDS, hertz)
    result, path, accounts = ledger.recorded(argv, how=how, env=env, timeout=SECONDS * 5 + 20)
    said = SAYS.fullmatch(result.out)
    t.check_equal(f"{name}: status", (result.status, result.err), (0, b""))
    if not t.check(said, f"{name}: output {result.out!r}"):
        return
    handled, jumped = int(said[1]), int(said[2])
    found = t.report(path)
    account = next(iter(accounts.values()))
    made = account.allocations + account.frees + (kind != "count") * EVENTS_OF_HANDLER * handled
    lost = sum(found["trust"]["lost"].values())
    seen = found["totals"]["allocations"] + found["totals"]["frees"]
    t.check(0 <= seen + lost - made <= jumped,
            f"{name}: {seen} recorded + {lost} lost, should be {made} (+ up to {jumped})")
    t.check(handled >= LEAST_SIGNALS, f"{name}: only {handled} signals came")
    after = t.stacks_through(found, "afterwards")
    t.check_equal(f"{name}: afterwards", [(s["allocations"], s["at_exit_bytes"]) for s in after],
                  [(AFTER_BLOCKS, AFTER_BLOCKS * 1000)])
    print(f"{name}: {handled} handled, {jumped} jumps, {lost} of {made} events lost: {found['trust']['lost']}")


def overflow(*sizes):
    """Of each overflow the event that was left is lost, and the one that finds it at most."""
    name = f"overflows with {sizes[0]} and {sizes[1]} bytes more"
    result, path = t.record(t.program("overflowed", *sizes))
    t.check_equal(f"{name}: output", (result.status, result.out, result.err), (0, b"recovered\n", b""))
    found = t.report(path)
    after = [stack for stack in t.stacks_through(found, "recover") if stack["at_exit_bytes"]]
    t.check_equal(f"{name}: afterwards", [(s["allocations"], s["at_exit_bytes"]) for s in after],
                  [(OVERFLOW_BLOCKS, OVERFLOW_BLOCKS * 100)])
    lost = sum(found["trust"]["lost"].values())
    t.check(lost <= 4, f"{name}: {lost} events are lost: {found['trust']['lost']}")


overflow(0, 32)
overflow(32, 80)
run_env = {"LD_PRELOAD": INTERRUPTIBLE}
alone_env = {"LD_PRELOAD": f"{t.RUNTIME}:{INTERRUPTIBLE}"}
storm("count", 1000, t.record, {})
storm("allocate", 1000, t.record, run_env)
storm("allocate", 5000, t.record_alone, alone_env)
storm("jump", 1000, t.record_alone, alone_env)
storm("jump", 5000, t.record, run_env)
t.finish()
