#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --events and cairn events: the sums of a log are those of the recording, by stack and to the byte; no
block is freed before it was allocated, whatever thread frees it; filters, the life of an address, ages; CSV, Parquet
and heaptrack's format; a log that was cut, damaged or left alone."""

import collections
import pathlib
import re
import shutil
import sys

import cairn_test as t
import parquet
from event_rows import rows


def logged(argv, options=(), **how):
    """(result, recording, log) of a program of one process."""
    result, path = t.record(argv, options=["--events", *options], **how)
    return result, path, str(path).removesuffix(".cairn") + ".events"


# What allocates, and what frees.
ALLOCATES = {"alloc", "calloc", "realloc", "there"}
FREES = {"free", "realloc", "realloc-free", "unseen-free"}


def sums_by_stack(events):
    """Allocations, allocated bytes and live blocks of each stack, added up anew: blocks by their addresses."""
    sums, live = collections.defaultdict(lambda: [0, 0, 0]), {}
    for event in events:
        if event["event"] in FREES and event["realloc_of" if event["event"] == "realloc" else "address"]:
            address = event["realloc_of" if event["event"] == "realloc" else "address"]
            if address not in live:
                t.check(False, f"free of unknown block: {event}")
            sums[live.pop(address, None)][2] -= 1
        if event["event"] in ALLOCATES:
            if event["address"] in live:
                t.check(False, f"given twice: {event}")
            live[event["address"]] = event["stack"]
            entry = sums[event["stack"]]
            entry[0] += 1
            entry[1] += int(event["bytes"])
            entry[2] += 1
    return dict(sums)


def check_sums(name, path, log):
    found = t.report(path)
    events = rows(log)
    wanted = {s["id"]: [s["allocations"], s["allocated_bytes"], s["at_exit_blocks"]] for s in found["stacks"]}
    t.check_equal(f"{name}: sums by stack", sums_by_stack(events), wanted)
    t.check_nothing_lost(name, found)
    return events


# Programs with every kind of call, with threads that free each other's blocks, and real ones.
for name, argv in {
    "odd": t.program("odd_arguments"), "mixed": t.program("mixed"), "realloc": t.program("realloc_chain"),
    "aligned": t.program("aligned"), "threads": t.program("threads"), "short": t.program("short_threads", 300),
    "sqlite": ["sqlite3", ":memory:", "create table a(b); insert into a values (1),(2); select sum(b) from a"],
    "python": [sys.executable, "-c", "import json; print(len(json.dumps(list(range(3000)))))"],
}.items():
    if not pathlib.Path(argv[0]).exists() and not shutil.which(argv[0]):
        t.skip_part(f"{argv[0]} is not installed")
        continue
    result, path, log = logged(argv)
    result.check_like(name, t.run(argv))
    check_sums(name, path, log)



def temporaries_by_stack(events):
    """Blocks that their thread freed before it allocated again."""
    counts, last = collections.Counter(), {}
    for event in events:
        thread, block = event["thread"], (event["address"], event["stack"])
        if event["event"] in ALLOCATES:
            last[thread] = block
        elif event["event"] in FREES and last.get(thread) == block:
            counts[last.pop(thread)[1]] += 1
    return counts


# Stacks in turn, sizes in turn, a heap that grows: each is logged on a way of its own (runtime/record/event.h).
for words in ("one:4 5 1", "ring:random 20 1", "walk 20 16", "walk:3 20 16", "random:random 10 50", "grow:4 5 1"):
    for threads in (1, 2):
        result, path, log = logged([t.BUILD / "bench/pairs", *words.split(), "4000", str(threads)])
        name = f"pairs {words}, {threads} threads"
        events = check_sums(name, path, log)
        temporary = {s["id"]: s["temporary"] for s in t.report(path)["stacks"] if s["temporary"]}
        t.check_equal(f"{name}: temporary blocks", dict(temporaries_by_stack(events)), temporary)

# Filters, and what is shown.
result, path, log = logged(t.program("mixed", 20000))
events = rows(log)
large = rows(log, "--min-size", "1000")
t.check_equal("min-size", large, [e for e in events if int(e["bytes"] or 0) >= 1000])
names = collections.Counter(e["function"] for e in events if e["event"] == "alloc")
most = max((n for n in names if re.fullmatch(r"\w+", n)), key=names.get)
focused = rows(log, "--focus", f"^{most}$")
t.check(len(focused) >= names[most] and len(focused) < len(events), f"focus: {len(focused)} of {len(events)}")
ignored = rows(log, "--ignore", f"^{most}$")
counted = lambda rows: collections.Counter(tuple(row.values()) for row in rows)
t.check_equal("focus and ignore", counted(focused + ignored), counted(events))
one = next(e for e in events if e["event"] == "alloc" and int(e["bytes"]) > 16)
inside = hex(int(one["address"], 16) + 8)
life = rows(log, "--address", inside)
t.check(one in life and all(int(e["address"], 16) <= int(inside, 16) for e in life), f"address: {life[:3]}")
tid = one["thread"].split()[0]
t.check_equal("thread", rows(log, "--thread", tid), [e for e in events if e["thread"].split()[0] == tid])
shown = t.run_cairn("events", "-n", "2", log)
t.check(b"complete: every event" in shown.out and b"alloc" in shown.out, f"text: {shown.out!r}")
t.check_equal("report of a log", t.run_cairn("report", log).out, t.run_cairn("report", path).out)

# The same rows as a table.
table = t.fresh_path("table") + ".parquet"
t.check_equal("parquet: status", t.run_cairn("events", "--format", "parquet", "-o", table, log).status, 0)


def as_csv(row):
    """A row of the table, as CSV has it."""
    said = {key: "" if value is None else str(value) for key, value in row.items()}
    for key in "address", "realloc_of":
        said[key] = row[key] and hex(row[key]) or ""
    said["stack"] = "" if row["stack"] is None else f"{row['stack'] & (1 << 64) - 1:016x}"
    return said


if shutil.which("zstd"):
    t.check_equal("parquet", [as_csv(row) for row in parquet.read(table)[0]], events)
else:
    t.skip_part("zstd is not installed")


# Ages by a log: those that --ages counts of blocks whose own thread frees them, and every freed block has one.
def ages_by_stack(path):
    return {stack["id"]: stack for stack in t.report(path)["stacks"]}


for name, argv in ("mixed", t.program("mixed")), ("one", t.program("exchange", 1, 20000)):
    by_log = ages_by_stack(logged(argv)[2])
    recorded = ages_by_stack(t.record(argv, options=["--ages"])[1])
    t.check_equal(f"ages of {name}: stacks", set(by_log), set(recorded))
    for number, stack in by_log.items():
        wanted = recorded.get(number, {}).get("ages", {})
        t.check_equal(f"ages of {name}, {number}", stack.get("ages", {}).get("calls"), wanted.get("calls"))
log_of_threads = logged(t.program("exchange", 3, 5000))[2]
for stack in ages_by_stack(log_of_threads).values():
    t.check_equal(f"ages: every freed block of {stack['id']}", sum(stack.get("ages", {}).get("ms", [])), stack["frees"])
    t.check(sum(stack.get("ages", {}).get("calls", [])) <= stack["frees"], f"ages: {stack}")
shown = t.run_cairn("report", "--view", "ages", log_of_threads)
t.check(re.search(rb"by the event log: [\d,]+ freed blocks, every one", shown.out), f"ages: {shown.out!r}")

# heaptrack's own reader counts the same.
if shutil.which("heaptrack_print"):
    exported = t.fresh_path("heaptrack") + ".gz"
    t.check_equal("heaptrack: status", t.run_cairn("events", "--format", "heaptrack", "-o", exported, log).status, 0)
    said = t.run(["heaptrack_print", exported]).out.decode()
    found = t.report(path)
    calls = re.search(r"calls to allocation functions: (\d+)", said)
    t.check_equal("heaptrack: calls", int(calls.group(1)) if calls else said[-300:], found["totals"]["allocations"])
else:
    t.skip_part("heaptrack_print is not installed")

# A log that was cut anywhere, damaged, or is none.
whole = pathlib.Path(log).read_bytes()
cut = pathlib.Path(t.fresh_path("cut.events"))
for length in (len(whole) - 1, len(whole) // 2, 700):
    cut.write_bytes(whole[:length])
    shown = t.run_cairn("events", "-n", "1", str(cut))
    t.check(shown.status == 0 and b"the log was cut" in shown.out, f"cut at {length}: {shown.status} {shown.out!r}")
cut.write_bytes(whole[:3000] + bytes([whole[3000] ^ 0xff]) + whole[3001:])
shown = t.run_cairn("events", str(cut))
t.check(shown.status == 1 and b"damaged" in shown.err, f"damaged: {shown.status} {shown.err!r}")
cut.write_bytes(b"not a log")
shown = t.run_cairn("events", str(cut))
t.check(shown.status == 1 and b"not an event log" in shown.err, f"none: {shown.err!r}")
alone = pathlib.Path(t.fresh_path("alone")) / "x.events"
alone.parent.mkdir()
alone.write_bytes(whole)
shown = t.run_cairn("events", "-n", "1", str(alone))
t.check(shown.status == 0 and b"stack " in shown.out, f"without its recording: {shown.out!r}")
shown = t.run_cairn("events", "--focus", "main", str(alone))
t.check(shown.status == 1 and b"not beside it" in shown.err, f"without its recording: {shown.err!r}")

# Usage.
for arguments, word in ((["events"], b"which log"), (["events", "--address", "x y", log], b"--address"),
                        (["events", "--format", "xml", log], b"no format"),
                        (["run", "--events", "--ages", "true"], b"--ages"),
                        (["run", "--events-wait", "true"], b"--events"),
                        (["run", "--events", "--sample", "true"], b"--events")):
    shown = t.run_cairn(*arguments)
    t.check(shown.status in (2, 125) and word in shown.err, f"{arguments}: {shown.status} {shown.err!r}")
shown = t.run_cairn("run", f"--events={log}", "true")
t.check(shown.status == 125 and b"there is a file already" in shown.err, f"log exists: {shown.err!r}")
shown = t.run_cairn("run", "--events", "-o", t.fresh_path("said") + ".cairn", *t.program("mixed"))
t.check(re.search(rb"events are in said\.\d+\.events", shown.err), f"said: {shown.err!r}")
named = t.fresh_path("named.log")
result, path = t.record(t.program("mixed"), options=[f"--events={named}"])
check_sums("named", path, named)

# A log that lies elsewhere is said with its path, so that the command named can read it.
elsewhere = pathlib.Path(t.fresh_path("elsewhere"))
elsewhere.mkdir()
shown = t.run_cairn("run", "--events=" + str(elsewhere / "x.events"), "-o", t.fresh_path("said") + ".cairn",
                    *t.program("mixed"))
t.check(f"events are in {elsewhere}/x.events, for".encode() in shown.err, f"elsewhere: {shown.err!r}")

# It knows where its recording was made; if that has moved, where it was looked for is said.
own, place = pathlib.Path("own").resolve(), pathlib.Path("place")
own.mkdir()
place.mkdir()
log = str(place / "x.events")
for options in [], ["--events-keep", "1M"]:
    t.run_cairn("run", "-q", f"--events={log}", *options, "-o", str(own / "x.cairn"), "--", *t.program("mixed"))
    by_recording = t.run_cairn("report", str(own / "x.cairn")).out
    t.check_equal(f"{options}: report of a log elsewhere", t.run_cairn("report", log).out, by_recording)
    shown = t.run_cairn("events", "--focus", "main", "-n", "1", log)  # its stack may be longer than the line
    t.check(b"stack that allocated" in shown.out and b" mixed " in shown.out,
            f"{options}: events of a log elsewhere: {shown}")
    (own / "x.cairn").rename(own / "moved.cairn")
    t.check_equal(f"{options}: moved", t.run_cairn("report", log).err.decode(),
                  f"cairn: {log}: its recording, x.cairn, is not beside it, and not in {own}: put it beside the log\n")
    t.run_cairn("run", "-q", "-o", str(own / "x.cairn"), "--", *t.program("mixed"))
    t.check(b"what is called so there is another process's" in t.run_cairn("report", log).err, f"{options}: another's")
    shutil.copy(own / "moved.cairn", place / "x.cairn")
    t.check_equal(f"{options}: put beside it", t.report(log)["totals"], t.report(own / "moved.cairn")["totals"])
    for file in log, place / "x.cairn", own / "x.cairn", own / "moved.cairn":
        pathlib.Path(file).unlink()
shown = t.run_cairn("report", "--view", "pool-candidates", str(path))
t.check(shown.status == 1 and b"name the log in its place" in shown.err, f"log elsewhere: {shown.err!r}")
t.finish()
