#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that hand blocks to each other: in a log no block is freed before it was allocated and no address given again
before it was freed, whatever thread does it, and the driver of cairn replay, built with ThreadSanitizer, makes the
calls without a data race, which it would find: a driver whose turns order nothing has some; so does the log's
writer. Memory does not grow with the length of the log. CAIRN_LOG_EVENTS: events of the log, 500,000 here (make
soak-events EVENTS=N)."""

import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

EVENTS = int(os.environ.get("CAIRN_LOG_EVENTS", 500000))
PATIENCE_S = int(os.environ.get("CAIRN_SOAK_SECONDS", 250))
THREADS = 4
DRIVER_FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", f"-I{t.SOURCE}", "-O1", "-g", "-pthread"]
MIB = 1 << 20


def logged(events):
    """A log of some events more, of a program whose threads free each other's blocks; they wait for cairn."""
    result, path = t.record(t.program("exchange", THREADS, events // 2 // THREADS), options=["--events", "--events-wait"],
                            timeout=PATIENCE_S)
    t.check_equal("status", result.status, 0)
    return str(path).removesuffix(".cairn") + ".events"


def checked(log, events):
    """KiB that the check took."""
    found = t.run([t.BUILD / "tests/event_order", log], timeout=PATIENCE_S)
    told = re.match(rb"(\d+) events, 0 frees of unknown blocks, 0 where a block lives, 0 forced, (\d+) KiB\n", found.out)
    if not t.check(found.status == 0 and told and int(told.group(1)) >= events, f"order: {found.out!r} {found.err!r}"):
        return 0
    print(f"{told.group(1).decode()} events in order, {os.path.getsize(log) / int(told.group(1)):.2f} bytes each")
    return int(told.group(2))


def replayed(log):
    """KiB that cairn or the driver took at most."""
    with open(os.devnull, "wb") as nowhere, subprocess.Popen([t.CAIRN, "replay", log], stdout=nowhere) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    t.check_equal("replay", process.returncode, 0)
    return usage.ru_maxrss


SHORT = EVENTS // 10
short = logged(SHORT)
check_kib, replay_kib = checked(short, SHORT), replayed(short)
pathlib.Path(short).unlink()
long = logged(EVENTS)
check_most, replay_most = checked(long, EVENTS), replayed(long)
check_more, replay_more = check_most - check_kib, replay_most - replay_kib
# what is read of each thread at a time, and pages of the calls' file
t.check(check_more < 16 * 1024, f"ten times as long: {check_more} KiB more to read it")
t.check(replay_more < 64 * 1024, f"ten times as long: {replay_more} KiB more to replay it")
print(f"{check_most} KiB to read, {replay_most} KiB to replay; ten times as long: {check_more} and {replay_more} KiB more")
pathlib.Path(long).unlink()


def build(out, source, *flags):
    """Builds a part of cairn with ThreadSanitizer."""
    return subprocess.run(["gcc", *DRIVER_FLAGS, "-fsanitize=thread", *flags, "-o", out, source], check=False,
                          capture_output=True)


def driven(log, name, *flags):
    """What a driver that is built with these flags says, and its status by that of cairn replay."""
    place = pathlib.Path(name)
    place.mkdir()
    built = build(place / "cairn-replay", f"{t.SOURCE}/replay/driver.c", *flags)
    t.check_equal(f"{name}: build, {built.stderr!r}", built.returncode, 0)
    shutil.copy(t.BUILD / "cairn", place / "cairn")
    return t.run([str(place / "cairn"), "replay", log], env={"TSAN_OPTIONS": "halt_on_error=1"}, timeout=PATIENCE_S)


# The log's writer in the program, with somebody who takes its chunks as the tool does, in the same way.
def written(name, *flags):
    built = build(name, f"{t.SOURCE}/tests/tsan/log_writer.c", *flags)
    t.check_equal(f"{name}: build, {built.stderr!r}", built.returncode, 0)
    return t.run([f"./{name}", "400000"], env={"TSAN_OPTIONS": "halt_on_error=1"}, timeout=PATIENCE_S)


RELAXED = ["-w", "-U__ATOMIC_ACQUIRE", "-D__ATOMIC_ACQUIRE=__ATOMIC_RELAXED", "-U__ATOMIC_RELEASE",
           "-D__ATOMIC_RELEASE=__ATOMIC_RELAXED"]
pathlib.Path("nothing.c").write_text("int main(void) { return 0; }\n", encoding="ascii")
if build("nothing", "nothing.c").returncode or t.run(["./nothing"]).status:
    t.skip_part("gcc has no ThreadSanitizer here, or it does not run")
else:
    shown = written("writer")
    t.check_equal(f"writer: {shown.out!r}", (shown.status, shown.err), (0, b""))
    loose = written("loose_writer", *RELAXED)
    t.check(b"data race" in loose.err, f"loose writer: {loose.err!r}")
    log = logged(100000)
    shown = driven(log, "checked")
    t.check(shown.status == 0 and b"data race" not in shown.err, f"driver: {shown.err.decode()[:3000]}")
    loose = driven(log, "loose", *RELAXED)
    t.check(b"data race" in loose.err, f"loose driver: {loose.err!r}")
t.finish()
