#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn import`: files of heaptrack, massif, DHAT and pprof, and what tracers print, as recordings. What cairn exports comes back
with the same sums; files that the other tools wrote say the same as they do; damaged ones are errors."""

import gzip
import json
import pathlib
import random
import re
import shutil

import cairn_test as t

t.need("valgrind", "heaptrack")


def import_file(path, *arguments):
    name = t.fresh_path("imported") + ".cairn"
    result = t.run_cairn("import", "-o", name, *arguments, str(path))
    if not t.check_equal(f"import {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None, ""
    return t.report(name), result.err.decode()


def check_views(name, recording):
    for view in ("stacks", "tree", "functions", "files", "modules", "timeline", "leaks"):
        result = t.run_cairn("report", "--view", view, recording)
        t.check(result.status == 0 or b"nothing" in result.err or b"no " in result.err,
                f"{name}: --view {view}: {result.err.decode()}")


NOT_IN_OTHERS = ("at_ns", "failed", "error_bytes", "temporary", "watched", "watched_short_lived", "slack_bytes")


def check_same(what, found, wanted, keys=("totals", "peak", "at_exit")):
    """Sums, and those of each function, which have other ids and addresses now."""
    for key in keys:
        got = {k: v for k, v in found[key].items() if k not in NOT_IN_OTHERS}
        t.check_equal(f"{what}: {key}", got, {k: wanted[key][k] for k in got})
    t.check_sums(what, found)


def through(found, function, key):
    return sum(stack[key] for stack in t.stacks_through(found, function))


argv = t.program("exceptions")
_, recording = t.record(argv)
wanted = t.report(recording)
found, told = import_file(t.export_file(recording, "perfetto"))
if found:
    check_same("back from perfetto", found, wanted, ("totals", "at_exit"))
    t.check_equal("back from perfetto: through main", through(found, "main", "allocations"),
                  through(wanted, "main", "allocations"))
for form, keys in (("heaptrack", ("totals", "peak", "at_exit")),
                   ("dhat", ("totals", "peak", "at_exit")),
                   ("pprof", ("totals", "peak", "at_exit"))):
    found, told = import_file(t.export_file(recording, form))
    if found:
        check_same(f"back from {form}", found, wanted, keys)
        t.check("threads" in told and "threads" in found["trust"]["imported"], f"{form}: {told}")
        for key in ("peak_bytes", "allocated_bytes", "allocations"):
            t.check_equal(f"back from {form}: {key} through main", through(found, "main", key),
                          through(wanted, "main", key))
found, told = import_file(t.export_file(recording, "massif"))
if found:
    t.check_equal("back from massif: peak", found["peak"]["bytes"], wanted["peak"]["bytes"])
    t.check_equal("back from massif: end", found["at_exit"]["bytes"], wanted["at_exit"]["bytes"])
    t.check(not found["trust"]["exact"] and "calls" in told, f"massif: {told}")
    t.check_equal("massif: calls are not known", {found["totals"][key] for key in ("allocations", "allocated_bytes", "frees", "freed_bytes")}, {None})
    live = t.fresh_path("live") + ".cairn"
    t.run_cairn("import", "-o", live, t.export_file(recording, "massif"))
    screen, refused = t.run_cairn("report", live), t.run_cairn("report", "--by", "allocated", live)
    t.check(screen.status == 0 and not re.search(rb"(?m)^  allocated ", screen.out), f"massif: {screen.out}", is_grave=True)
    t.check(refused.status != 0 and b"does not say what was allocated" in refused.err, f"massif: --by allocated: {refused}")
    stacks = [one for one in found["stacks"] if one["peak_bytes"] or one["at_exit_bytes"]]
    unknown = ("allocations", "allocated_bytes", "frees", "peak_blocks", "at_exit_blocks")
    t.check_equal("massif: of stacks, too", {one[key] for one in stacks for key in unknown}, {None})
    t.check_equal("massif: blocks are not known", {found["peak"]["blocks"], found["at_exit"]["blocks"]}, {None})
    views = [t.run_cairn("report", live, "--view", view).out for view in ("stacks", "functions", "tree")]
    for shown in (screen.out, t.run_cairn("leaks", live).out, *views):
        t.check(b"KiB" in shown and not re.search(rb"\d blocks?\b|\d calls?\b", shown), f"massif: {shown.decode()}", is_grave=True)
    rows = t.run_cairn("sql", live, "select count(*), count(peak_blocks), count(at_exit_bytes) from stacks").out.split()
    t.check_equal("massif: SQL", rows[-3:], [b"%d" % len(found["stacks"]), b"0", b"%d" % len(found["stacks"])])

# files of the tools themselves
t.run(["valgrind", "--tool=dhat", "--dhat-out-file=dhat.json", *argv])
dhat = json.loads(pathlib.Path("dhat.json").read_text())
found, _ = import_file("dhat.json")
sums = {key: sum(point[key] for point in dhat["pps"]) for key in ("tb", "tbk", "gb", "gbk", "eb")}
t.check_equal("DHAT's own", sums, {
    "tb": found["totals"]["allocated_bytes"], "tbk": found["totals"]["allocations"],
    "gb": found["peak"]["bytes"], "gbk": found["peak"]["blocks"], "eb": found["at_exit"]["bytes"]})
t.check(through(found, "main", "peak_bytes") > 0, "DHAT's names")

t.run(["valgrind", "--tool=massif", "--time-unit=ms", "--massif-out-file=massif.txt", *argv])
massif = pathlib.Path("massif.txt").read_text()
peak = re.search(r"mem_heap_B=(\d+)\n.*\n.*\nheap_tree=peak", massif)
found, _ = import_file("massif.txt")
if peak:
    t.check_equal("massif's own peak", found["peak"]["bytes"], int(peak[1]))

t.run(["heaptrack", "-o", "ht", *argv], timeout=120)
data = next(pathlib.Path().glob("ht.*"))
found, _ = import_file(data)
printed = t.run(["heaptrack_print", "--disable-builtin-suppressions", str(data)]).out.decode()
t.check_equal("heaptrack's calls", str(found["totals"]["allocations"]),
              re.search(r"calls to allocation functions: (\d+)", printed)[1])
t.check_equal("heaptrack's calls and cairn's", found["totals"]["allocations"],
              wanted["totals"]["allocations"])
t.check_equal("heaptrack's bytes and cairn's", found["totals"]["allocated_bytes"],
              wanted["totals"]["allocated_bytes"])
t.check(through(found, "main", "allocations") > 1000, "heaptrack's names")
shutil.copy(data, "again" + data.suffix)
t.check_equal("default name", t.run_cairn("import", "again" + data.suffix).status, 0)
check_views("heaptrack", "again" + data.suffix + ".cairn")
again = t.run_cairn("import", "again" + data.suffix)
t.check(again.status == 1 and b"exists" in again.err, f"over an existing file: {again.err}")

# a heap profile of Go's runtime: its writer orders fields in its own way
GO = """package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

func fill(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 10000))
	}
}

func main() {
	runtime.MemProfileRate = 1
	fill(300)
	runtime.GC()
	for _, kind := range []string{"heap", "allocs", "goroutine"} {
		file, _ := os.Create(kind + ".pb.gz")
		pprof.Lookup(kind).WriteTo(file, 0)
		file.Close()
	}
}
"""
if shutil.which("go"):
    home = {"HOME": str(pathlib.Path.cwd()), "GO111MODULE": "off", "GOCACHE": str(pathlib.Path("go").absolute())}
    pathlib.Path("heap.go").write_text(GO)
    built = t.run(["go", "build", "-o", "heap", "heap.go"], env=home)
    t.check_equal("go build", built.status, 0)
    t.run(["./heap"])
    for kind in ("heap", "allocs"):
        raw = t.run(["go", "tool", "pprof", "-raw", f"{kind}.pb.gz"], env=home).out.decode()
        samples = raw.split("Samples:\n")[1].split("Locations\n")[0]
        rows = [list(map(int, line.split(":")[0].split())) for line in samples.splitlines()
                if re.match(r" *\d[\d ]*:", line)]
        found, _ = import_file(f"{kind}.pb.gz")
        t.check_equal(f"Go's {kind}: sums",
                      (found["totals"]["allocations"], found["totals"]["allocated_bytes"],
                       found["at_exit"]["blocks"], found["at_exit"]["bytes"]),
                      tuple(sum(row[column] for row in rows) for column in range(4)))
        t.check(through(found, "main.fill", "at_exit_bytes") >= 3000000, f"Go's {kind}: main.fill")
    refused = t.run_cairn("import", "goroutine.pb.gz")
    t.check(refused.status == 1 and b"no heap in it" in refused.err, f"goroutines: {refused.err}")
else:
    t.skip_part("go is not here")

# what perf script and bpftrace print: samples of a real trace of a program that does all kinds of calls three
# times; cairn's recording of the same program has 21 calls of 214,602 bytes, of which 9 blocks of 3,246 are left
TRACES = t.SOURCE / "tests/fuzz/corpus/import"
ALIGNED = 3 * (1000 + 64)  # the trace of perf has no posix_memalign and aligned_alloc
for form, calls, allocated, left, left_bytes in (("bpftrace", 21, 214602, 9, 3246),
                                                 ("perf", 15, 214602 - ALIGNED, 3, 3246 - ALIGNED)):
    trace = (TRACES / form).read_bytes()[1:]
    pathlib.Path(form).write_bytes(trace)
    found, told = import_file(form)
    if not found:
        continue
    t.check_sums(form, found)
    t.check_equal(f"{form}: sums", (found["totals"]["allocations"], found["totals"]["allocated_bytes"],
                                    found["at_exit"]["blocks"], found["at_exit"]["bytes"]),
                  (calls, allocated, left, left_bytes))
    t.check_equal(f"{form}: program", found["process"]["command"], "x")
    t.check_equal(f"{form}: through outer", (through(found, "outer", "allocations"),
                                             through(found, "outer", "allocated_bytes")), (3, 303))
    t.check_equal(f"{form}: stack", [frame["function"] for frame in
                                     t.stacks_through(found, "outer")[0]["frames"]][:3], ["inner", "outer", "main"])
    # the beginning of a trace is one
    events = re.split(rb"(?m)^(?=[arf] |\S.*probe_libc:)", trace)
    pathlib.Path("half").write_bytes(b"".join(events[:len(events) // 2]))
    half, _ = import_file("half")
    t.check(half and 0 < half["totals"]["allocations"] < calls, f"{form}: half of it")

# what is damaged is an error with a place, or what is left of it; never a crash
random.seed(7)
for form in ("heaptrack", "dhat", "pprof", "massif"):
    good = pathlib.Path(t.export_file(recording, form)).read_bytes()
    plain = gzip.decompress(good) if good[:2] == b"\x1f\x8b" else good
    for number in range(25):
        bad = bytearray(plain)
        if number % 2:
            del bad[random.randrange(len(bad)):]
        for _ in range(random.randrange(8) if number else 0):
            if bad:
                bad[random.randrange(len(bad))] = random.randrange(256)
        pathlib.Path("bad").write_bytes(bad)
        result = t.run_cairn("import", "--force", "-f", form, "-o", "bad.cairn", "bad")
        t.check(result.status in (0, 1), f"{form}: status {result.status} of damaged data {number}")
        if result.status == 0:
            t.check_equal(f"{form}: report of damaged data", t.run_cairn("report", "bad.cairn").status, 0)
        else:
            t.check(result.err.startswith(b"cairn: "), f"{form}: {result.err}")

PERF = b"prog 7/7 1.000000: probe_libc:"
for content, words in ((PERF + b"malloc: (1) size=5\n", "line 1: probe_libc:malloc has no bytes="),
                       (PERF + b"free: (1) block=0x10\nnonsense\n", "line 2: neither an event nor a frame"),
                       (PERF + b"free: (1) block=0x10\n" + PERF.replace(b"7/7", b"8/8") + b"free: (1) block=1\n",
                        "line 2: events of the processes 7 and 8"),
                       (PERF + b"open: (1) x=2\n", "no event of malloc"),
                       (b"cairn trace 1\na 5 7 100\n", "line 2: a number is missing"),
                       (b"cairn trace 1\na 5 7 100 0x10 9\n", "line 2: more than an event"),
                       (b"cairn trace 1\nf 5 7 0x10\nf 6 8 0x10\n", "line 3: events of the processes 7 and 8"),
                       (b"cairn trace 1\na 5 7 0xffffffffffff0000 0x10\n", "more memory than there can be"),
                       (b"", "no known format"), (b"hello\n", "no known format"),
                       (b"v 10400 9\n", "file version 9"),
                       (b"v 10400 3\n+ 5\n", "line 2: an allocation that is not there"),
                       (b'{"dhatFileVersion":2,"mode":"ad-hoc"}', 'mode is "ad-hoc"'),
                       (b"desc: x\ncmd: y\n", "no snapshot")):
    pathlib.Path("bad").write_bytes(content)
    result = t.run_cairn("import", "--force", "bad")
    t.check(result.status == 1 and words in result.err.decode(), f"{content}: {result.err}")
t.check_equal("no file", t.run_cairn("import").status, 2)
t.finish()
