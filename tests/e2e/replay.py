#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn replay and whatif: the driver makes the calls of the log, as a judge counts them that shares no code with
cairn, in threads that wait for each other's blocks; another allocator, one that crashes or has no memory; logs that
are not complete; the table of all allocators."""

import pathlib
import re
import subprocess

import cairn_test as t
import counts
from event_rows import rows

JUDGE = str(t.BUILD / "tests/count_preload.so")


def logged(argv, options=()):
    _, path = t.record(argv, options=["--events", *options])
    return path, str(path).removesuffix(".cairn") + ".events"


def replayed(log, *arguments, status=0):
    shown = t.run_cairn("replay", "--bytes", *arguments, log)
    t.check_equal(f"replay {arguments}: status", (shown.status, shown.err if not status else b""), (status, b""))
    return shown


def number(shown, pattern):
    found = re.search(pattern, shown.out.decode())
    t.check(found, f"{pattern} is not in {shown.out.decode()}")
    return int(found.group(1).replace(",", "")) if found else -1


# The judge counts what the driver does; a replay without a call beside tells what is not of the log.
for name, argv in {"mixed": t.program("mixed"), "odd": t.program("odd_arguments"),
                   "realloc": t.program("realloc_chain"), "pipe": t.program("threads", "pipe")}.items():
    path, log = logged(argv)
    found = t.report(path)
    for how in "as-recorded", "1":
        prefix = t.fresh_path(f"count-{name}")
        shown = replayed(log, "--threads", how, "-a", JUDGE, "-e", f"COUNT_PRELOAD_OUT={prefix}")
        judged = list(counts.read_all(prefix).values())
        t.check_equal(f"{name}: processes", len(judged), 1)
        totals = found["totals"]
        threads = number(shown, r"(\d+) thread")
        # what pthread_create allocates for a thread, a block of the driver's own, and one that fails or is empty
        more = judged[0]["allocations"] - totals["allocations"]
        t.check(0 <= more <= 2 * threads + 2, f"{name}, {how}: {more} more calls than in the log")
        spare = judged[0]["allocated_bytes"] - totals["allocated_bytes"]
        t.check(0 <= spare <= 2000 * threads, f"{name}, {how}: {spare} more bytes")
    live = number(shown, r"at the end +([\d,]+) live")
    t.check_equal(f"{name}: live at the end", live, found["at_exit"]["bytes"])
    if not found["peak"]["error_bytes"]:  # one thread; how several were interleaved is not known to the byte
        t.check_equal(f"{name}: peak", number(shown, r"peak +([\d,]+) live"), found["peak"]["bytes"])



# Recorded by cairn, with the log's cell for each call, what the driver does has the cells of the program's recording.
def calls(log):
    """(event, bytes, alignment, number of the block that goes) and (its stack, that of the block that goes) of each."""
    numbers, stacks, found, own = {}, {}, [], []
    for row in rows(log):
        if row["event"] == "realloc-fail":  # is left out
            continue
        gone = row["realloc_of"] if row["event"] == "realloc" else row["address"]
        number = numbers.pop(gone, None) if row["event"] in ("free", "realloc", "realloc-free") else None
        if row["event"] in ("alloc", "calloc", "realloc"):
            numbers[row["address"]] = len(stacks)
            stacks[len(stacks)] = row["stack"]
        event = "free" if row["event"] == "realloc-free" else row["event"]
        found.append((event, row["bytes"], row["alignment"], number))
        own.append((row["stack"], stacks.get(number)))
    return found, own


def check_cells(name, argv):
    path, log = logged(argv, ["--events-wait"])
    run = t.fresh_path(f"driver-{name}")
    shown = t.run_cairn("run", "-q", "--events", "--events-wait", "-o", run, "--", t.CAIRN, "replay", "--threads", "1",
                        "-a", t.RUNTIME, log)
    t.check_equal(f"{name}: recorded replay", shown.status, 0)
    driver = [str(found) for found in pathlib.Path(run).glob("cairn-replay*.events")]
    if not t.check(len(driver) == 1, f"{name}: {driver}"):
        return
    wanted, stacks = calls(log)
    got, _ = calls(driver[0])
    own, got = got[:2], [(*call[:3], call[3] and call[3] - 1) for call in got[2:]]  # a block of its own goes first
    t.check_equal(f"{name}: the driver's own", [call[:2] for call in own], [("alloc", "1"), ("free", "1")])
    wrong = [pair for pair in zip(wanted, got, strict=False) if pair[0] != pair[1]]
    if not t.check(len(got) >= len(wanted) > 0 and not wrong, f"{name}: {len(wanted)}, {len(got)}, {wrong[:3]}"):
        return
    t.check(all(call[0] == "free" for call in got[len(wanted):]), f"{name}: after the last call")
    cells = {}
    for (event, size, _, number), (stack, of_block) in zip(got, stacks, strict=False):
        if event in ("alloc", "calloc", "realloc"):
            entry = cells.setdefault(stack, [0, 0, 0])
            entry[0] += 1
            entry[1] += int(size)
        if number is not None:
            cells[of_block][2] += 1
    t.check_equal(f"{name}: cells", cells, {s["id"]: [s["allocations"], s["allocated_bytes"], s["frees"]]
                                            for s in t.report(path)["stacks"]})


for name, argv in {"mixed": t.program("mixed"), "realloc": t.program("realloc_chain"), "aligned": t.program("aligned"),
                   "pipe": t.program("threads", "pipe"),
                   "perl": ["perl", "-e", "my %h = map { $_ => [1 .. $_ % 9] } 1 .. 3000; delete @h{1 .. 2000}"]}.items():
    check_cells(name, argv)

# What is touched is resident. (As recorded, a page that the program had not come to when it was looked at is not.)
path, log = logged(["perl", "-e", "my @a = map { 'x' x 100000 } 1..100; my @b = map { qq(x$_) } 1..20000"])
resident = number(replayed(log, "--touch", "all"), r"peak.*live +([\d,]+) resident")
least = t.report(path)["peak"]["bytes"]
t.check(least * 0.95 < resident < least * 1.5, f"peak: {resident} resident of {least} live")
untouched = number(replayed(log, "--touch", "none"), r"peak.*live +([\d,]+) resident")
t.check(untouched < resident / 2, f"untouched: {untouched} of {resident}")

# Of what the program touches in part, as much is resident as there, and the answer says how much of it is known.
with t.Process([t.CAIRN, "run", "-q", "--events", "-o", "partly.cairn", "--", *t.program("partly")], stdin=-1,
               stdout=-1) as process:
    t.check_equal("partly", process.stdout.readline(), b"held\n")
    held = (32 << 20) + (8 << 20)  # that it writes to; the log's buffers are anonymous memory, too
    partly = pathlib.Path("partly.events")
    for _ in range(2):  # two looks after that: the second one began after it
        size = partly.stat().st_size if partly.exists() else 0
        t.wait_until(lambda known=size: partly.exists() and partly.stat().st_size > known)
    process.communicate(b"end\n", timeout=t.TIMEOUT_S)
shown = replayed("partly.events", "--touch", "recorded")
resident = number(shown, r"peak.*live +([\d,]+) resident")
t.check(held * 0.9 < resident < held * 1.1, f"partly: {resident} resident, {held} in the program")
t.check(b"touched as recorded: 100 % of what" in shown.out, f"partly: {shown.out!r}")
t.check_equal("partly: usual", replayed("partly.events").out.splitlines()[-1], shown.out.splitlines()[-1])
# What a short program writes to long after it allocated: it waits at its end for a last look, not for long: beside much
# load some looks come too late.
source = pathlib.Path("late.c")
source.write_text("""#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char *held = malloc(32 << 20);
    usleep(20000);
    memset(held, 1, 16 << 20);
    return held[getpid() & 1] == 2;
}
""", encoding="ascii")
subprocess.run(["gcc", "-O1", "-o", "late", source], check=True)
seen = []


def is_right():
    seen.append(number(replayed(logged(["./late"])[1]), r"peak.*live +([\d,]+) resident"))
    return 15 << 20 < seen[-1] < 18 << 20


t.check(t.wait_until(is_right), f"late: {seen}")
everything = number(replayed("partly.events", "--touch", "all"), r"peak.*live +([\d,]+) resident")
t.check(everything > held * 1.4, f"partly, all: {everything}")
shown = replayed(logged(t.program("mixed"))[1], "--touch", "recorded", status=1)
t.check(b"no pages were looked at" in shown.err, f"no pages: {shown.err!r}")

# An allocator that crashes, one that has no memory, none, and bad arguments.
source = pathlib.Path(t.fresh_path("bad") + ".c")
source.write_text("""#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
static int calls;
void *malloc(size_t size) {
    if (++calls > 500) { if (getenv("CRASH")) __builtin_trap(); if (getenv("HANG")) pause(); return 0; }
    return __libc_malloc(size);
}
""", encoding="ascii")
bad = str(source.with_suffix(".so"))
subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", bad, source], check=True)
shown = replayed(log, "-a", bad, "-e", "CRASH=1", status=1)
t.check(b"the allocator crashed" in shown.err, f"crash: {shown.err!r}")
shown = replayed(log, "-a", bad, status=1)
t.check(b"no memory for a call" in shown.err, f"no memory: {shown.err!r}")
# One that hangs: whoever kills cairn has the driver gone as well.
with t.Process([t.CAIRN, "replay", "-a", bad, "-e", "HANG=1", log]) as process:
    drivers = t.wait_until(lambda: [pid for pid in t.children_of(process.pid) if t.is_called(pid, "cairn-replay")])
    process.terminate()
t.wait_until(lambda: not any(t.is_called(pid, "cairn-replay") and not t.is_in_state(pid, "Z") for pid in drivers))
for arguments, status, word in ((["-a", "nosuch", log], 1, b"no allocator"), (["-a", "/no/such.so", log], 1, b"no such"),
                                (["-e", "X", log], 2, b"--env"), (["--threads", "2", log], 2, b"--threads"),
                                (["--touch", "some", log], 2, b"--touch"), (["--speed", "slow", log], 2, b"--speed"),
                                ([], 2, b"which log"), ([str(path)], 1, b"not an event log")):
    shown = t.run_cairn("replay", *arguments)
    t.check(shown.status == status and word in shown.err, f"{arguments}: {shown.status} {shown.err!r}")

# Allocators that give memory back after a time see the time of the log, however quickly the calls are made.
clock = pathlib.Path(t.fresh_path("clock") + ".c")
clock.write_text("""#include <stdio.h>
#include <stdlib.h>
#include <time.h>
extern void *__libc_malloc(size_t);
static long first, last;
void *malloc(size_t size) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    last = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (!first) first = last;
    return __libc_malloc(size);
}
static __attribute__((destructor)) void end(void) { fprintf(stderr, "%ld ms", last - first); }
""", encoding="ascii")
clocked = str(clock.with_suffix(".so"))
subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", clocked, clock], check=True)
PAUSE_MS = 1500
waits = f"@a = map {{ 'x' x $_ }} 1..99; select(undef, undef, undef, {PAUSE_MS / 1000}); @a = map {{ 'y' x $_ }} 1..99"
shown = t.run_cairn("replay", "-a", clocked, logged(["perl", "-e", waits])[1])
seen = re.fullmatch(rb"(\d+) ms", shown.err)
t.check(seen and int(seen.group(1)) >= PAUSE_MS, f"clock: {shown.err!r}")

# A log that was cut is refused, and replayed up to there if that is wanted.
cut = pathlib.Path(t.fresh_path("cut.events"))
whole = pathlib.Path(log).read_bytes()
cut.write_bytes(whole[:len(whole) * 2 // 3])
shown = replayed(str(cut), status=1)
t.check(b"the log was cut (--partial" in shown.err, f"cut: {shown.err!r}")
replayed(str(cut), "--partial")

# All that is there, as a table and a page.
page = t.fresh_path("whatif") + ".html"
shown = t.run_cairn("whatif", "--rounds", "1", "-o", page, log)
t.check_equal("whatif: status", (shown.status, shown.err), (0, b""))
t.check(b"MALLOC_ARENA_MAX=1" in shown.out and b"live at the peak" in shown.out, f"whatif: {shown.out!r}")
text = pathlib.Path(page).read_text(encoding="utf-8")
t.check("<svg" in text and "MALLOC_TRIM_THRESHOLD_" in text and "http" not in text, f"page: {text[:300]}")
# A bar and a line of spread for each measure of each row of the table, which says how to switch over.
shown_rows = len(re.findall(r"^  \w+ .* ns +\d+ %$", shown.out.decode(), re.M))
for what, pattern in {"peak": '<rect class="peak"', "freed": '<rect class="freed"', "time": '<rect class="time"'}.items():
    t.check_equal(f"page: bars of {what}", len(re.findall(pattern, text)), shown_rows)
t.check_equal("page: lines of spread", len(re.findall("<path d=", text)), 3 * shown_rows)
lines = re.findall("<tr>.*<code>(.*)</code>", text)
t.check_equal("page: rows", len(lines), shown_rows)
# What saves less than 2 % is not advised.
advice = shown.out.decode().split("\n\n")[1].splitlines()[0]
best = advice.rsplit(": ", 1)[1] if ": " in advice else None
t.check(best is None or (lines[0] == best and text.count(f"<code>{best}</code>") >= 2), f"page: {best} of {lines}")
t.finish()
