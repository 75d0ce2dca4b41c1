#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The event log never changes the program: the same output, status, descriptors, mask and limits, also where it is
switched on and off in between; a signal handler
at an instruction of an event, whether it returns or jumps out, leaves a log that agrees with the recording; forked
children have logs of their own; a killed process loses nothing; a program never waits for the disk unless that is
wanted, and what is dropped is counted."""

import collections
import os
import pathlib
import platform
import signal
import sys

import cairn_test as t
import ledger
from event_rows import rows, summary

LONG = t.IS_LONG


def log_of(path):
    return str(path).removesuffix(".cairn") + ".events"


def logged(argv, options=(), **how):
    result, path = t.record(argv, options=["--events", *options], **how)
    return result, path, log_of(path)


# What a program can see of itself.
SELF = [sys.executable, "-c", """
import os, signal, resource
print(sorted(os.listdir('/proc/self/fd')), signal.pthread_sigmask(signal.SIG_BLOCK, []),
      [resource.getrlimit(i) for i in range(16)], len(os.listdir('/proc/self/task')))
"""]
result, path, log = logged(SELF)
result.check_like("descriptors, mask, limits, threads", t.record(SELF)[0])
for argv in t.program("odd_arguments"), t.program("endings", "abort"), t.program("errno_kept"):
    result, path, log = logged(argv)
    result.check_like(argv[0], t.run(argv))

# The same of a program whose log is switched on and off: it sees nothing of that, its mappings included, beside those
# that it makes itself.
SEEN = [sys.executable, "-S", "-c", """
import os, signal, resource, sys
for line in sys.stdin:
    kept = [bytearray(1000 + i) for i in range(100)]
    with open('/proc/self/maps') as maps:
        mapped = sorted(' '.join(line.split()[i] for i in (0, 1, 5)) for line in maps
                        if line.count('/') > 1 and not line.endswith('/cairn\\n'))  # what covers its reserve
    print(sorted(os.listdir('/proc/self/fd')), signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getcwd(),
          [resource.getrlimit(i) for i in range(16)], [signal.getsignal(i) for i in range(1, 65)],
          len(os.listdir('/proc/self/task')), mapped, flush=True)
"""]


def count_logs():
    return len(list(pathlib.Path(".").glob("seen*.events")))


with t.Process([t.CAIRN, "run", "-q", "-o", "seen.cairn", "--", *SEEN], stdin=-1, stdout=-1) as process:
    def ask():
        process.stdin.write(b"\n")
        process.stdin.flush()
        return process.stdout.readline()

    before = ask()
    pid = t.children_of(process.pid)[0]
    for turn in range(3):
        for word in "on", "off":
            t.run_cairn("ctl", pid, "events", word)
            t.check_equal(f"switched {word}, {turn}", ask(), before)
            t.wait_until(lambda logs=turn + 1: ask() and count_logs() == logs)  # one that ends before it began is none
    process.communicate(timeout=t.TIMEOUT_S)
t.check(b"libcairn" in before, f"seen: {before!r}")
t.check_equal("switched: logs", count_logs(), 3)


def steps(how, kind, stride):
    name = f"{how} {kind}"
    result, path, log = logged(t.program("steps", how, kind, "same", stride), ["--symbols", "none"],
                               env={"LD_PRELOAD": str(t.BUILD / "tests/interruptible_preload.so")})
    if not t.check_equal(f"{name}: status", (result.status, result.err), (0, b"")):
        return
    made, jumped, _, _ = map(int, result.out.split())
    found = t.report(path)
    if not found:
        return
    events = collections.Counter(row["event"] for row in rows(log))
    allocations = events["alloc"] + events["calloc"] + events["realloc"]
    t.check(abs(allocations - found["totals"]["allocations"]) <= 2 * jumped,
            f"{name}: {allocations} logged, {found['totals']['allocations']} recorded, {jumped} jumps")
    t.check(how == "return" or jumped > 4, f"{name}: only {jumped} jumps")
    t.check(made > 0, f"{name}: no calls")


if platform.machine() == "x86_64":
    for how in "return", "jump":
        for kind, stride in (("malloc", 17), ("free", 17), ("resize", 421)):
            steps(how, kind, 1 if LONG and kind != "resize" else stride)
else:
    t.skip_part("a handler at each instruction needs the trap flag of x86-64")

# Forks: each process has a log, a child's with the blocks that it found.
FORKS = 200 if LONG else 12
result, path, _ = logged(t.program("fork_storm", FORKS), ["--children", "all"], timeout=250)
t.check_equal("forks: end", (result.status, result.out), (0, f"{FORKS} children, 0 failures\n".encode()))
FORKER = [sys.executable, "-c", """
import os
kept = [bytearray(1000 + i) for i in range(2000)]
child = os.fork()
del kept[::2]
more = [bytearray(2000 + i) for i in range(3000)]
if child: os.waitpid(child, 0)
"""]
result, path, _ = logged(FORKER)
t.check_equal("fork: status", result.status, 0)
logs = [log_of(path), *map(str, pathlib.Path(path).glob("*.events"))]
t.check_equal("fork: logs", len(logs), 2)
there = []
for log in logs:
    events = rows(log)
    unknown = [event for event in events if event["event"] in ("free", "realloc") and not event["bytes"]]
    t.check_equal(f"fork: {log}: frees of unknown blocks", unknown, [])
    there.append(sum(event["event"] == "there" for event in events))
    t.check("complete" in summary(log), f"fork: {log}: {summary(log)}")
t.check(there[0] == 0 and there[1] > 1000, f"fork: blocks that were there {there}")

# Killed in the middle: whatever it logged is there.
KILLED = [sys.executable, "-c", """
import os
kept = [bytearray(600 + i) for i in range(5000)]
os.kill(os.getpid(), 9)
"""]
result, path, log = logged(KILLED)
t.check_equal("killed: status", result.status, 128 + signal.SIGKILL)
found = t.report(path)
allocations = sum(row["event"] in ("alloc", "calloc", "realloc") for row in rows(log))
t.check_equal("killed: allocations", allocations, found["totals"]["allocations"])

# The tool stands still: the program goes on, or waits for it. 200 blocks a round.
BUSY = ["perl", "-e", "open(F, '<', shift); <F>; for (1..shift) { my @a = split //, 'x' x 200; } print 1"]


def stopped(options, rounds):
    path, gate = t.fresh_path("stopped") + ".cairn", t.fresh_path("gate")
    os.mkfifo(gate)
    with t.Process([t.CAIRN, "run", "-q", "--events", *options, "-o", path, "--", *BUSY, gate, str(rounds)],
                   stdout=-1) as process:
        t.wait_until(lambda: t.children_of(process.pid))
        with open(gate, "w", encoding="ascii") as opened:
            process.send_signal(signal.SIGSTOP)
            t.wait_until(lambda: t.is_in_state(process.pid, "T"))
            opened.write("go\n")
        yield process, path
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=t.TIMEOUT_S)
        t.check_equal(f"stopped {options}: end", (process.returncode, out), (0, b"1"))


ROUNDS = 40000
for process, path in stopped([], ROUNDS):
    t.wait_until(lambda: all(t.is_in_state(child, "Z") for child in t.children_of(process.pid)
                             if t.is_called(child, "perl")))
said = summary(log_of(path))
t.check("lost, as cairn was behind" in said, f"dropped: {said}")
found = t.report(path)
t.check("events" in found["trust"]["lost"], f"dropped: {found['trust']}")
for process, path in stopped(["--events-wait"], ROUNDS):
    pass
said = summary(log_of(path))
t.check("complete: every event" in said, f"waited: {said}")
t.finish()
