#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The probes with the tools that they are for (docs/explain/tracing.md): perf and bpftrace count the events of a real
program, and what they saw is what the recording says; OpenTelemetry's samples add up to its live bytes. Only
where these tools are installed and may be used. (tracing.py tests the same by gdb, event by event.)"""

import fcntl
import os
import re
import shutil
import signal
import subprocess

import cairn_test as t

QUERY = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
         "SELECT count(DISTINCT printf('%0*d', i % 300, i)), group_concat(i) FROM n;")
PROGRAM = ["sqlite3", ":memory:", QUERY]
LIBRARY = t.own_tool()
# The last probe fires once all of them are there.
SCRIPT = """usdt:L:cairn:alloc { @alloc[pid] = count(); @bytes[pid] = sum(arg1); }
usdt:L:cairn:free { @free[pid] = count(); }
usdt:L:cairn:realloc { @realloc[pid] = count(); @bytes[pid] = sum(arg1); }
usdt:L:cairn:new_stack { @stacks[pid] = count(); }
usdt:L:cairn:snapshot { @snapshots[pid] = count(); }
usdt:L:otel_memory:alloc { @weight[pid, arg0] = arg2; @samples[pid] = count(); }
usdt:L:otel_memory:free { delete(@weight[pid, arg0]); @dropped[pid] = count(); }
interval:ms:50 { if (!@is_ready) { printf("ready\\n"); @is_ready = 1; } }
"""


def recorded(*options):
    """(pid, report) of a run of the program."""
    path = t.fresh_path("traced") + ".cairn"
    result = t.run_cairn("run", "-q", *options, "-o", path, "--", *PROGRAM)
    t.check_equal(f"{options}: status", (result.status, result.err), (0, b""))
    found = t.report(path)
    return found["process"]["pid"], found


def end(tracer):
    """What it printed since; a signal that comes while it is busy with itself is lost."""
    for _ in range(20):
        tracer.send_signal(signal.SIGINT)
        try:
            return tracer.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            pass
    tracer.kill()
    return tracer.communicate()[0]


def check_bpftrace():
    tracer = subprocess.Popen(["bpftrace", "-e", SCRIPT.replace("usdt:L", f"usdt:{LIBRARY}")],
                              env=t.environment({"BPFTRACE_MAP_KEYS_MAX": "100000"}),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = "."
    while line and "ready" not in line:
        line = tracer.stdout.readline()
    if not line:
        print(f"bpftrace does not work here: {tracer.communicate()[1]}")
        return False
    exact_pid, exact = recorded()
    sampled_pid, sampled = recorded("--sample", "--rate", "8K", "--seed", "3")
    said = end(tracer)
    counts = {(name, int(pid)): int(value) for name, pid, value in re.findall(r"@(\w+)\[(\d+)\]: (\d+)", said)}
    for pid, found in (exact_pid, exact), (sampled_pid, sampled):
        reallocs = counts.get(("realloc", pid), 0)
        t.check_equal("bpftrace: calls", counts[("alloc", pid)] + reallocs, found["totals"]["allocations"])
        t.check_equal("bpftrace: bytes", counts[("bytes", pid)], found["totals"]["allocated_bytes"])
    t.check_equal("bpftrace: frees", counts[("free", exact_pid)] + counts.get(("realloc", exact_pid), 0),
                  exact["totals"]["frees"])
    t.check_equal("bpftrace: stacks", counts[("stacks", exact_pid)], len(exact["stacks"]))
    t.check(counts[("snapshots", exact_pid)] >= 1, f"bpftrace: snapshots {said}")
    t.check(("samples", exact_pid) not in counts, "bpftrace: samples of a recording without")
    live = [int(weight) for weight in re.findall(rf"@weight\[{sampled_pid}, \d+\]: (\d+)", said)]
    t.check(counts[("samples", sampled_pid)] > 50, f"bpftrace: {counts.get(('samples', sampled_pid))} samples")
    t.check_equal("bpftrace: samples that live", (sum(live), len(live)),
                  (sampled["at_exit"]["bytes"], sampled["sampling"]["at_exit_estimate"]["samples"]))
    return True


def perf(*words):
    """perf with a cache of its own."""
    return t.run(["perf", *words], env={"HOME": os.getcwd()})


def check_perf():
    if " " in os.path.realpath(LIBRARY):
        t.skip_part("perf cannot name a probe of a file with a blank in its path")
        return True
    perf("buildid-cache", "--add", LIBRARY)
    names = {}
    try:
        for probe in ("alloc", "free", "realloc"):
            # another test may have a probe of that name: perf says what it called this one
            said = perf("probe", "-x", LIBRARY, f"sdt_cairn:{probe}")
            made = re.search(rb"Added new events?:\n +(sdt_cairn:\S+)", said.out + said.err)
            if not made:
                print(f"perf may not make probes here: {said.err.decode()}")
                return False
            names[probe] = made[1].decode()
        path = t.fresh_path("traced") + ".cairn"
        events = [word for name in names.values() for word in ("-e", name)]
        made = perf("record", "-q", "-m", "8M", *events, "-o", "perf.data", "--", t.CAIRN, "run", "-q", "-o", path,
                    "--", *PROGRAM)
        if not t.check_equal(f"perf record: {made.err.decode()[-600:]}", made.status, 0):
            return True
        shown = perf("script", "-i", "perf.data", "--show-lost-events", "-F", "comm,event").out.decode()
    finally:
        for name in names.values():
            perf("probe", "-q", "-d", name)
    seen = {probe: len(re.findall(rf"^ *sqlite3 +{name}: *$", shown, re.M)) for probe, name in names.items()}
    totals = t.report(path)["totals"]
    t.check_equal(f"perf: calls and frees, {made.err.decode()[-300:]} {shown[:200]}",
                  (seen["alloc"] + seen["realloc"], seen["free"] + seen["realloc"]),
                  (totals["allocations"], totals["frees"]))
    return True


t.need("sqlite3")
FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of Linux
if os.readlink("/proc/self/ns/pid") != FIRST_PID_NAMESPACE:
    t.cannot_run_here("tracers say the kernel's pids, which are not those of this PID namespace")
if os.geteuid():
    t.cannot_run_here("probes are the kernel's: only root may make them")
# The kernel's probes have one name for all: the page of tracing and this test take turns.
turn = open(shutil.which("bash") or "/bin/sh", "rb")  # pylint: disable=consider-using-with
fcntl.flock(turn, fcntl.LOCK_EX)
ran = [check() for tool, check in (("bpftrace", check_bpftrace), ("perf", check_perf)) if shutil.which(tool)]
if not any(ran):
    t.cannot_run_here("neither perf nor bpftrace works here")
t.finish()
