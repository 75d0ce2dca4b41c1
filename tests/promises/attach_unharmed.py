#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach beside threads that are being made, also on a busy machine: none of them is harmed. And the tool killed
by SIGKILL at any system call by which it changes the process, or at any time: the program goes on as before, no
thread stays stopped or with signals blocked, no memory of its calls and no descriptor stays, and the next attach works.
CAIRN_LONG=1 takes 1,000 cycles, and every second of the steps."""

import contextlib
import os
import random
import signal
import subprocess
import time

from attached import Target, check_left, mapped_anew, mappings
from cairn_test import (CAIRN, PROGRAMS, check, check_equal, environment, finish, fresh_path, need_attach, skip_part,
                        wait_until)

IS_LONG = bool(os.environ.get("CAIRN_LONG"))
MAKERS = [("joined", 120), ("stacks", 16), ("pool", 8), ("detached", 1)]
if IS_LONG:
    MAKERS += [("joined", 2), ("joined", 8), ("joined", 32), ("stacks", 64), ("pool", 32), ("detached", 4)]
CYCLES_A_MAKER = 50 if IS_LONG else 2
KILLED_AT = 5
KEPT, KEPT_LIST_BYTES = 60_000, 900_000  # blocks; cairn writes the list of them, and nothing else as large
KILLED_WHENEVER = 300 if IS_LONG else 3
BUSY_A_PROCESSOR = 4 if IS_LONG else 1
BUSY_LIMIT_S = "600"
USUAL_NICE = os.getpriority(os.PRIO_PROCESS, 0)


@contextlib.contextmanager
def busy_machine(is_busy):
    """Loops that want every processor."""
    count = BUSY_A_PROCESSOR * len(os.sched_getaffinity(0)) if is_busy else 0
    loops = [subprocess.Popen(["timeout", BUSY_LIMIT_S, "sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


def attach_command(pid, *options):
    return [CAIRN, "attach", "-q", str(pid), "-o", fresh_path("unharmed") + ".cairn", "--record-for", "5ms", *options]


def run_attach(what, pid, *options):
    result = subprocess.run(attach_command(pid, *options), env=environment(), stderr=subprocess.PIPE, text=True,
                            check=False)
    check_equal(f"{what}: {result.stderr}", result.returncode, 0)


def check_makers(kind, count, is_busy):
    what = f"{count} threads that make others, {kind}{', busy' if is_busy else ''}"
    process = subprocess.Popen([str(PROGRAMS / "thread_makers"), kind, str(count)], stdout=subprocess.PIPE,
                               env=environment(), text=True)
    check_equal(f"{what}: the program starts", process.stdout.readline(), "ready\n")
    with busy_machine(is_busy):
        for turn in range(CYCLES_A_MAKER):
            run_attach(f"{what}: attach", process.pid, *(["--exact"] if turn % 2 else []))
            if process.poll() is not None:
                break
    process.send_signal(signal.SIGTERM)
    check_equal(what, (process.communicate(timeout=120)[0], process.returncode), ("sound\n", 0))


def fields_of(pid, tid):
    try:
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as status:
            return dict(line.split(":\t", 1) for line in status if ":\t" in line)
    except OSError:
        return {}


def has_usual_priority(tid):
    """Without the flag that children do not inherit one (SCHED_RESET_ON_FORK)."""
    try:
        return os.sched_getscheduler(int(tid)) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, int(tid)) == USUAL_NICE
    except ProcessLookupError:
        return True


def is_free(process):
    """No thread is stopped, ahead of others, or has the signals blocked that calls block; or it has ended."""
    if process.poll() is not None:
        return True
    tids = os.listdir(f"/proc/{process.pid}/task")
    threads = [fields_of(process.pid, tid) for tid in tids]
    return (all(fields["State"][0] not in "tT" and int(fields["SigBlk"], 16) == 0 for fields in threads if fields)
            and all(map(has_usual_priority, tids)))


def check_goes_on(what, target):
    wait_until(lambda: is_free(target.process))
    return check(target.process.poll() is None, f"{what}: the program ended: {target.process.returncode}")


def files(pid):
    """What is open, by number."""
    return {number: os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}


def check_again(what, pid, before):
    run_attach(f"{what}: attach again", pid)
    check_left(what, pid)
    check_equal(f"{what}: memory of calls", mapped_anew(before, mappings(pid)), [])


def check_killed_at(step, *options):
    """A program of its own: what is loaded into it is there the next time."""
    what = f"killed at step {step}"
    target = Target(3)
    if "--scan-heap" in options:
        target.tell(f"keep {KEPT} 16")
    before, open_before = mappings(target.pid), files(target.pid)
    command = [str(PROGRAMS / "killed_at"), str(step), *attach_command(target.pid, *options)]
    result = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False)
    check(result.returncode in (0, 128 + signal.SIGKILL), f"{what}: {result.returncode}: {result.stderr}")
    if check_goes_on(what, target):
        check_equal(f"{what}: descriptors", files(target.pid), open_before)
        if int(step) % 3 == 0:
            check_again(what, target.pid, before)
        target.end(what)
    return int(result.stdout)


def check_steps():
    steps = check_killed_at("0")
    if not steps:
        skip_part("the kernel does not tell system calls (PTRACE_GET_SYSCALL_INFO, Linux 5.3)")
        return
    stride = 2 if IS_LONG else max(1, steps // KILLED_AT)
    for turn, step in enumerate(range(1 + stride // 2, steps, stride)):
        check_killed_at(str(step), *(["--exact"] * (turn % 2)))
    check_killed_at(f"+{KEPT_LIST_BYTES}", "--scan-heap")


def check_whenever():
    """At any time: a call may be under way then."""
    source = random.Random(7)
    target = Target(8)
    before, open_before = mappings(target.pid), files(target.pid)
    for turn in range(KILLED_WHENEVER):
        with subprocess.Popen(attach_command(target.pid), env=environment(), stderr=subprocess.DEVNULL) as process:
            time.sleep(source.uniform(0, 0.1))
            process.kill()
        if not check_goes_on(f"killed whenever, {turn}", target):
            return
        check_equal(f"killed whenever, {turn}: descriptors", files(target.pid), open_before)
    check_again("killed whenever", target.pid, before)
    target.end("killed whenever")


need_attach()
for number, (maker, makers) in enumerate(MAKERS):
    for is_busy_too in (False, True) if IS_LONG else (number == 0,):
        check_makers(maker, makers, is_busy_too)
check_steps()
check_whenever()
finish()
