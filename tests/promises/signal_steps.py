#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A signal handler at one instruction of an event after the other, also of a thread's first one:
whether it returns or jumps out, nothing is entered twice, nothing is lost without being counted, and from the
first call after a jump on the thread records as before. With CAIRN_LONG=1 no instruction of malloc and
free is left out."""

import platform

import cairn_test as t

LONG = t.IS_LONG
STRIDES = {"malloc": 37, "free": 37, "resize": 907, "new": 3989, "thread": 2503}
LONG_STRIDES = {"malloc": 1, "free": 1, "resize": 3, "new": 5, "thread": 29}
# A free with its stack, the first time, takes as many instructions as a new one's malloc.
FREE_STACKS = ["--ages", "--free-stacks"]
FREE_STACKS_STRIDE = 907
LONG_TIMEOUT_S = 1800
# cairn runs with this allocator too, whose memory is too small to read names with.
NO_NAMES = ["--symbols", "none"]
INTERRUPTIBLE = {"LD_PRELOAD": str(t.BUILD / "tests/interruptible_preload.so")}
# A cut-off realloc may have been a free, an allocation, both or none.
MOST_CALLS_CUT = {"resize": 2}


def steps(how, kind, stack, options=()):
    name = f"{how} {kind} {stack} {' '.join(options)}"
    stride = LONG_STRIDES[kind] if LONG else FREE_STACKS_STRIDE if options == FREE_STACKS else STRIDES[kind]
    result, path = t.record(t.program("steps", how, kind, stack, stride), env=INTERRUPTIBLE, options=[*NO_NAMES, *options],
                            timeout=LONG_TIMEOUT_S if LONG else t.TIMEOUT_S)
    if not t.check_equal(f"{name}: status", (result.status, result.err), (0, b"")):
        return
    made, jumped, after, _ = map(int, result.out.split())
    found = t.report(path)
    # What the program does besides: a thread's own blocks of libc.
    stacks = t.stacks_through(found, "on_trap") + [
        s for s in t.stacks_through(found, "one_round") if "on_trap" not in t.functions(s)]
    lost = sum(found["trust"]["lost"].values())
    seen = sum(s["allocations"] + s["allocations"] - s["at_exit_blocks"] for s in stacks)
    most = MOST_CALLS_CUT.get(kind, 1) * jumped
    t.check(0 <= seen + lost - made <= most,
            f"{name}: {seen} recorded + {lost} lost, should be {made} (+ up to {most})")
    recorded = sum(s["allocations"] for s in t.stacks_through(found, "after_jump"))
    t.check_equal(f"{name}: blocks after a jump", recorded, after)
    t.check(how == "return" or jumped > 4, f"{name}: only {jumped} jumps")
    print(f"{name}: {made} calls, {jumped} jumps, {found['trust']['lost']}")


if platform.machine() != "x86_64":
    t.cannot_run_here("needs the trap flag of x86-64")
for how in "return", "jump":
    for kind in "malloc", "free", "resize", "new", "thread":
        steps(how, kind, "same")
        if LONG or kind == "malloc":
            steps(how, kind, "alternate")
    for kind in "free", "resize":
        steps(how, kind, "same", FREE_STACKS)
    for kind in "malloc", "free":
        steps(how, kind, "same", ["--ages"])
t.finish()
