#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event logs that do not begin with the process: cairn ctl switches them on and off, any number of times, and each
begins with the blocks that live then; --events-for, --events-keep, also where cairn is killed; what a log that begins in
the middle does not know is said, and replayed only if that is wanted; the recording beside it stays exact."""

import pathlib
import re
import signal

import cairn_test as t
from commanded import Commanded, totals_of
from event_rows import rows, summary

CHURN = t.program("exchange", 1)


def sizes(events, kind, function):
    return sorted(int(row["bytes"]) for row in events if row["event"] == kind and row["function"] == function)


def check_switched():
    with Commanded("switched.cairn") as program:
        program.do("early 1000", "early 2000", "early 3000")
        # commands allocates with the next line: the log begins there
        t.check(re.search(r"events are logged from", program.ctl("events", "on")), "on")
        t.check("already" in t.run_cairn("ctl", program.pid, "events", "on").err.decode(), "on again")
        program.do("touch")
        program.do("late 4000", "free 0", "again 1 8000", "late 5000")
        t.check("the log ends" in program.ctl("events", "off"), "off")
        program.do("late 6000", "free 1")
        t.check("no log" in t.run_cairn("ctl", program.pid, "events", "off").err.decode(), "off again")
        program.ctl("events", "on")
        program.do("late 7000")
        t.wait_until(lambda: pathlib.Path("switched.1.events").exists())  # blocks are known
        program.do("free 2")
        program.ctl("events", "off")
        program.do("late 9000")
    return t.report("switched.cairn")


found = check_switched()
t.check(found["trust"]["exact"] and not found["trust"]["lost"], f"trust: {found['trust']}")
t.check_equal("early", totals_of(found, "early")[0], 6000)
t.check_equal("late", totals_of(found, "late")[0], 4000 + 5000 + 6000 + 7000 + 9000)
first, second = rows("switched.events"), rows("switched.1.events")
t.check_equal("what was there", sizes(first, "there", "early"), [1000, 2000, 3000])
t.check_equal("allocated", sizes(first, "alloc", "late"), [4000, 5000])
t.check_equal("freed", sizes(first, "free", "early"), [1000])
t.check_equal("grown", [row["bytes"] for row in first if row["event"] == "realloc"], ["8000"])
t.check_equal("unknown", [row for row in first if not row["bytes"]], [])
# the block that it began with may be there as well as allocated
t.check_equal("there, the second time", sizes(second, "there", "late")[:3], [4000, 5000, 6000])
t.check_equal("allocated, the second time", sizes(second, "alloc", "late"), [7000])
t.check_equal("freed, the second time", sizes(second, "free", "early"), [3000])
said = summary("switched.1.events")
t.check(re.search(r"\d blocks of .* were live when it began.* the log begins .* after the process", said), f"said: {said}")
shown = t.run_cairn("replay", "switched.events")
t.check(shown.status == 1 and re.search(rb"the log begins .* after the process: \d+ blocks .* known.*--partial", shown.err),
        f"replay: {shown.err!r}")
t.check_equal("replay --partial", t.run_cairn("replay", "--partial", "switched.events").status, 0)
text = t.run_cairn("events", "--address", next(row["address"] for row in first if row["bytes"] == "4000"),
                   "switched.events").out.decode()
t.check("4,000" in text, f"address: {text}")


def switch_again_and_again(argv):
    """Returns the program's output, and the logs: none where it ended before the first switch, on a busy machine."""
    with t.Process([t.CAIRN, "run", "-q", "-o", "threads.cairn", "--", *argv], stdout=-1) as process:
        t.wait_until(lambda: t.children_of(process.pid) or process.poll() is not None)
        pid = next(iter(t.children_of(process.pid)), "")
        while pid and process.poll() is None:
            t.run_cairn("ctl", pid, "events", "on")
            t.run_cairn("ctl", pid, "events", "off")
        output = process.communicate()[0]
        t.check_equal("threads: status", process.returncode, 0)
    return output, sorted(map(str, pathlib.Path(".").glob("threads*.events")))


# Of many threads, again and again: each log is in order, and the recording is that of a run without.
for rounds in (600000,) if t.IS_LONG else (200000, 800000, 3200000):
    EXCHANGE = t.program("exchange", 4, rounds)
    pathlib.Path("threads.cairn").unlink(missing_ok=True)
    out, logs = switch_again_and_again(EXCHANGE)
    if logs:
        break
t.check(logs, "threads: logs")
result, plain = t.record(EXCHANGE)
t.check_equal("threads: output", out, result.out)
found, wanted = t.report("threads.cairn"), t.report(plain)
for key in "allocations", "allocated_bytes", "frees":
    t.check_equal(f"threads: {key}", found["totals"][key], wanted["totals"][key])
t.check(found["trust"]["exact"], f"threads: {found['trust']}")
for log in logs:
    live = {}
    for row in rows(log):
        if row["event"] in ("alloc", "calloc", "realloc", "there"):
            if live.get(row["address"], "there") != "there":
                t.check(False, f"{log}: {row} where a block lives")
            live[row["address"]] = row["event"]
        if row["event"] in ("free", "realloc-free"):
            live.pop(row["address"], None)

# Only the first of it.
with t.Process([t.CAIRN, "run", "-q", "--events", "--events-for", "100ms", "-o", "for.cairn", "--",
                *t.program("commands")], stdin=-1, stdout=-1) as process:
    def do(line):
        process.stdin.write(line)
        process.stdin.flush()
        t.check_equal(line, process.stdout.readline(), b"ok\n")

    do(b"early 1000\n")

    def is_over():
        do(b"late 10\n")
        return b"writes no log" in t.run_cairn("ctl", t.children_of(process.pid)[0], "events", "off").err

    t.wait_until(is_over)
    do(b"late 5000\n")
    process.communicate(b"end\n", timeout=t.TIMEOUT_S)
events = rows("for.events")
t.check_equal("for: before", sizes(events, "alloc", "early"), [1000])
t.check_equal("for: after", [row for row in events if row["bytes"] == "5000"], [])
t.check("complete" in summary("for.events"), f"for: {summary('for.events')}")

# Only the last of it, from one thread: as many blocks are unknown as lived when it begins.
path, log = "keep.cairn", "keep.events"
result = t.run_cairn("run", "-o", path, "--events", "--events-keep", "1M", "--", *CHURN, "1000000")
t.check_equal("keep: status", result.status, 0)
t.check((1 << 19) < pathlib.Path(log).stat().st_size <= (1 << 20) + 1000, f"keep: {pathlib.Path(log).stat()}")
said = summary(log)
BOUND = r"the log begins [\d,]+ events after the start: the last 1.0 MiB were kept"
t.check(re.search(BOUND, said), f"keep: {said}")
t.check(b"the last 1.0 MiB of events are in" in result.err, f"keep: {result.err}")
live, unknown = set(), 0
for row in rows(log):
    if row["event"] in ("free", "realloc-free"):
        unknown += row["address"] not in live
        live.discard(row["address"])
    if row["event"] == "realloc":
        unknown += row["realloc_of"] not in live
        live.discard(row["realloc_of"])
    if row["event"] in ("alloc", "calloc", "realloc"):
        if row["address"] in live:
            t.check(False, f"keep: {row} where a block lives")
        live.add(row["address"])
t.check_equal("keep: unknown", unknown <= t.report(path)["peak"]["blocks"], True)
shown = t.run_cairn("replay", log)
t.check(shown.status == 1 and re.search(BOUND.encode(), shown.err) and b"--partial" in shown.err, f"keep: {shown.err!r}")
shown = t.run_cairn("replay", "--partial", log)
t.check(shown.status == 0 and b"of unknown blocks left out" in shown.out and
        re.search(BOUND.encode(), shown.out.replace(b"\n", b" ")), f"keep: {shown.out!r}")

# cairn is killed meanwhile: the last part up to then is there.
with t.Process([t.CAIRN, "run", "-q", "--events", "--events-keep", "1M", "-o", "killed.cairn", "--", *CHURN,
                "1000000000"]) as process:
    t.wait_until(lambda: pathlib.Path("killed.events").exists() and
                 pathlib.Path("killed.events").stat().st_size > 1 << 19)
    pid = t.children_of(process.pid)[0]
    process.send_signal(signal.SIGKILL)
    process.wait()
    t.run(["kill", "-9", str(pid)])
said = summary("killed.events")
t.check("the log was cut" in said and "allocations" in said, f"killed: {said}")

# Switched on, and cairn is killed: what was written up to then is read, and its beginning is said.
with t.Process([t.CAIRN, "run", "-q", "-o", "late.cairn", "--", *CHURN, "1000000000"]) as process:
    t.wait_until(lambda: t.children_of(process.pid))
    pid = t.children_of(process.pid)[0]
    t.wait_until(lambda: t.run_cairn("ctl", pid, "events", "on").status == 0)  # once it is recorded
    t.wait_until(lambda: pathlib.Path("late.events").exists() and pathlib.Path("late.events").stat().st_size > 1 << 18)
    process.send_signal(signal.SIGKILL)
    process.wait()
    t.run(["kill", "-9", str(pid)])
said = summary("late.events")
t.check("the log was cut" in said and re.search("the log begins .* after the process", said), f"late: {said}")
shown = t.run_cairn("replay", "--partial", "late.events")
t.check(shown.status == 0 and b"the log begins" in shown.out, f"late: {shown.err!r}")

# The program is killed: its log is whole.
program = Commanded("shot.cairn")
program.ctl("events", "on")
program.do("late 4000", "early 5000")
t.run(["kill", "-9", program.pid])
program.tool.communicate(timeout=t.TIMEOUT_S)
t.check_equal("shot: status", program.tool.returncode, 128 + signal.SIGKILL)
events = rows("shot.events")
t.check_equal("shot: allocated", sizes(events, "alloc", "late") + sizes(events, "alloc", "early"), [4000, 5000])

# Where there can be no log.
with Commanded("sampled.cairn", "--sample") as program:
    shown = t.run_cairn("ctl", program.pid, "events", "on")
    t.check(shown.status == 1 and b"every block with its stack" in shown.err, f"sampled: {shown.err!r}")
for arguments, word in ((["ctl", "1", "events", "maybe"], b"on or off"), (["ctl", "1", "events"], b"on or off"),
                        (["ctl", "1", "off", "--events-for", "1s"], b"--events-for"),
                        (["run", "--events-for", "1s", "true"], b"--events-for needs --events"),
                        (["run", "--events-keep", "1M", "true"], b"--events"),
                        (["run", "--events", "--events-keep", "10K", "true"], b"1 MiB")):
    shown = t.run_cairn(*arguments)
    t.check(shown.status in (2, 125) and word in shown.err, f"{arguments}: {shown.status} {shown.err!r}")
t.finish()
