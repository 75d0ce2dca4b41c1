#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A signal handler at one instruction after the other of events that are sampled, of those that only count
down, and of a thread's first: the program goes on, no call is counted twice, and none is missing that is not
counted as lost. A process that is killed has counted all it did."""

import platform
import signal
import subprocess
import time

import cairn_test as t

INTERRUPTIBLE = {"LD_PRELOAD": str(t.BUILD / "tests/interruptible_preload.so")}
# Rates at which every block is a sample, about every second one, and none.
RATES = ("1", "150", "1G")
STRIDES = {"malloc": 37, "free": 37, "resize": 907, "thread": 5003}
if t.IS_LONG:
    STRIDES = {"malloc": 1, "free": 1, "resize": 3, "thread": 29}
LONG_TIMEOUT_S = 1800
# What libc allocates besides, for streams and threads.
OTHERS = 24


def steps(how, kind, stack, rate):
    name = f"{how} {kind} {stack} {rate}"
    path = t.fresh_path("steps") + ".cairn"
    result = t.run([t.CAIRN, "run", "-q", "--sample", "--rate", rate, "--seed", "1", "-o", path, "--",
                    *t.program("steps", how, kind, stack, STRIDES[kind])], env=INTERRUPTIBLE,
                   timeout=LONG_TIMEOUT_S if t.IS_LONG else t.TIMEOUT_S)
    if not t.check_equal(f"{name}: status", (result.status, result.err), (0, b"")):
        return
    jumped, made = (int(result.out.split()[i]) for i in (1, 3))
    found = t.report(path)
    lost = sum(found["trust"]["lost"].values())
    counted = found["totals"]["allocations"]
    # a call that a jump cut off may have been counted or not
    others = OTHERS * (made if kind == "thread" else 1)
    t.check(made - lost <= counted <= made + 2 * jumped + others,
            f"{name}: {counted} counted + {lost} lost, should be {made} (+ up to {jumped})")
    at_exit = found["at_exit"]["bytes"]
    t.check(0 <= at_exit, f"{name}: {at_exit} bytes left")
    print(f"{name}: {made} made, {counted} counted, {jumped} jumps, {found['trust']['lost']}")


def killed():
    """The counters lie outside of the process: what it did before SIGKILL is there."""
    path = t.fresh_path("killed") + ".cairn"
    with t.Process([t.CAIRN, "run", "-q", "--sample", "-o", path, "--",
                           *t.program("sampled", "forever")], env=t.environment(),
                          stdout=subprocess.PIPE) as tool:
        line = tool.stdout.readline().split()
        pid, made = int(line[0]), int(line[1])
        time.sleep(0.1)
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
        tool.wait()
    t.check_equal("killed: status", tool.returncode, 128 + signal.SIGKILL)
    found = t.report(path)
    t.check(found["totals"]["allocations"] >= made, f"killed: {found['totals']}, at least {made} were made")
    t.check_equal("killed: lost", found["trust"]["lost"], {})


if platform.machine() != "x86_64":
    t.cannot_run_here("needs the trap flag of x86-64")
for rate in RATES:
    for how in "return", "jump":
        for kind in "malloc", "free", "resize":
            steps(how, kind, "same", rate)
    steps("jump", "malloc", "alternate", rate)
steps("return", "thread", "same", "150")
killed()
t.finish()
