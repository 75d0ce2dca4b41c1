#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event logs under bad circumstances: the disk is full in the middle, more threads than the machine has processors, a
machine with pages of another size, a log that was cut anywhere. The program never notices, the recording stays exact,
and what there is of the log is read, counted and replayed."""

import os
import pathlib
import re
import struct
import subprocess

import cairn_test as t
import counts
from event_rows import summary

JUDGE = str(t.BUILD / "tests/count_preload.so")


def has_namespaces():
    """Whether a file system can be mounted for this test alone."""
    return subprocess.run([*ISOLATED, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False,
                          capture_output=True).returncode == 0


ISOLATED = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
EXCHANGE = t.program("exchange", 2, 300000)
PLAIN = t.run(EXCHANGE).out


def on_small_disk(name, *options):
    """Runs the program with its log on a disk of 512 KiB; (stdout, stderr, copy of the log)."""
    copy = t.fresh_path(name) + ".events"
    script = (f"mount -t tmpfs -o size=512k tmpfs /mnt && \"$@\"; status=$?;"
              f" cp /mnt/log {copy}; exit $status")
    result = subprocess.run([*ISOLATED, "sh", "-c", script, "sh", t.CAIRN, "run", "--top", "1", "-o", f"{name}.cairn",
                             "--events=/mnt/log", *options, "--", *EXCHANGE], env=t.environment(), check=False,
                            capture_output=True, timeout=t.TIMEOUT_S)
    t.check_equal(f"{name}: status, {result.stderr}", result.returncode, 0)
    t.check_equal(f"{name}: output", result.stdout, PLAIN)
    found = t.report(f"{name}.cairn")
    t.check(found["trust"]["exact"] and found["totals"]["allocations"] >= 600000, f"{name}: {found['trust']}")
    return result.stderr, copy


if has_namespaces():
    for name, options in (("full", ()), ("waiting", ("--events-wait",)), ("ring", ("--events-keep", "4M"))):
        err, log = on_small_disk(name, *options)
        t.check(b"No space left on device" in err, f"{name}: {err}")
        said = summary(log)
        events = int(re.search(r"([\d,]+) events", said).group(1).replace(",", ""))
        t.check(10000 < events < 600000, f"{name}: {said}")
        t.check("the log was cut" in said or "could not be written" in said, f"{name}: {said}")
        shown = t.run_cairn("replay", log)
        t.check(shown.status == 1 and b"--partial" in shown.err, f"{name}: {shown.err!r}")
        t.check_equal(f"{name}: replay --partial", t.run_cairn("replay", "--partial", log).status, 0)
else:
    t.skip_part("a small disk needs a mount namespace")

# More threads than any machine that this runs on is likely to have; the judge counts what the driver does.
THREADS = 300
result, path = t.record(t.program("exchange", THREADS, 1000 if t.IS_LONG else 400), options=["--events", "--events-wait"])
t.check_equal("threads: status", result.status, 0)
log = str(path).removesuffix(".cairn") + ".events"
shown = t.run_cairn("replay", "-a", JUDGE, "-e", "COUNT_PRELOAD_OUT=counted", log)
t.check_equal("threads: replay", (shown.status, shown.err), (0, b""))
replayed = int(re.search(r"(\d+) threads", shown.out.decode()).group(1))
t.check(1 < replayed <= THREADS + 1, f"threads: {shown.out.decode()}")
judged, totals = list(counts.read_all("counted").values())[0], t.report(path)["totals"]
more = judged["allocations"] - totals["allocations"]
t.check(0 <= more <= 2 * replayed + 2, f"threads: {more} more calls than in the log")
# Threads that wait sleep: those that only look would change places all the time.
with subprocess.Popen([t.CAIRN, "replay", log], stdout=subprocess.DEVNULL) as process:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
calls = totals["allocations"] + totals["frees"]
t.check(usage.ru_nvcsw + usage.ru_nivcsw < calls / 2, f"threads: {usage.ru_nvcsw} + {usage.ru_nivcsw} changes of {calls} calls")
t.check_equal("threads: replay as recorded", process.returncode, 0)

# Pages of another size: they are touched as this machine has them, and that is said.
PAGE_BYTES_AT = 20
other = pathlib.Path(t.fresh_path("pages") + ".events")
content = bytearray(pathlib.Path(log).read_bytes())
t.check_equal("pages: here", struct.unpack_from("<I", content, PAGE_BYTES_AT)[0], os.sysconf("SC_PAGESIZE"))
theirs = 65536 if os.sysconf("SC_PAGESIZE") != 65536 else 4096
struct.pack_into("<I", content, PAGE_BYTES_AT, theirs)
other.write_bytes(content)
shown = t.run_cairn("replay", "--bytes", "--threads", "1", str(other))
own = t.run_cairn("replay", "--bytes", "--threads", "1", log)
t.check(re.search(rb"pages of .* KiB, where the program had .* KiB", shown.out), f"pages: {shown.out!r}")
t.check(b"where the program had" not in own.out, f"pages: {own.out!r}")


def peak(shown):
    return int(re.search(rb"peak +[\d,]+ live +([\d,]+) resident", shown.out).group(1).replace(b",", b""))


t.check(abs(peak(shown) - peak(own)) <= peak(own) * 0.2, f"pages: {peak(shown)} and {peak(own)} resident")

# A log without one of its pieces: what is missing is said, and the rest replayed if that is wanted.
whole = pathlib.Path(log).read_bytes()
starts = [found.start() for found in re.finditer(b"fram", whole)]
t.check(len(starts) > 2 and starts[0] == 648, f"pieces: {starts[:5]}")
gap = pathlib.Path("gap.events")
gap.write_bytes(whole[:starts[1]] + whole[starts[2]:])
t.check("1 piece is missing" in summary(str(gap)), f"gap: {summary(str(gap))}")
shown = t.run_cairn("replay", str(gap))
t.check_equal("gap: replay", (shown.status, shown.err),
              (1, b"cairn: gap.events: missing in the log: 1 piece (--partial replays the rest)\n"))
shown = t.run_cairn("replay", "--partial", "--threads", "1", str(gap))
t.check(shown.status == 0 and b"missing: 1 piece" in shown.out, f"gap: {shown.out!r} {shown.err!r}")

# A log that was cut anywhere is replayed up to there; one without a whole frame has nothing to replay.
CUTS = 9 if t.IS_LONG else 4
last = 0
for cut_at in (3, 300, 700, *range(20000, len(whole), max(1, (len(whole) - 20000) // CUTS))):
    cut = pathlib.Path("cut.events")
    cut.write_bytes(whole[:cut_at])
    shown = t.run_cairn("replay", "--partial", "--threads", "1", str(cut))
    calls = re.search(rb"([\d,]+) calls", shown.out)
    if calls:
        count = int(calls.group(1).replace(b",", b""))
        t.check(count >= last, f"cut at {cut_at}: {count} calls after {last}")
        last = count
    else:
        t.check(shown.status == 1 and cut_at <= 20000 and re.search(rb"cut|no call|not an event log", shown.err),
                f"cut at {cut_at}: {shown.status} {shown.err!r}")
t.check(last > 60000, f"cut: {last}")
t.finish()
