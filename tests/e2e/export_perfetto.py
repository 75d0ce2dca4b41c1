#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn export -f perfetto: each dump of the trace has what the report says of that moment, with names that
resolve, and counters over the time of the process. There is no trace processor here; where CAIRN_PERFETTO names a
directory with the public schema (protos/perfetto/trace/trace.proto), protoc decodes the trace by it."""

import collections
import json
import os
import shutil

import cairn_test as t
import perfetto


def trace_of(recording, *options):
    path = t.export_file(recording, "perfetto", *options)
    return perfetto.Trace(path), path


def check_trace(what, recording):
    found, (trace, path) = t.report(recording, "--all-frames"), trace_of(recording)
    for name, key in (("peak", "peak_bytes"), ("exit", "at_exit_bytes")):
        live = trace.live_at(name)
        t.check_equal(f"{what}: {name}", sum(live.values()), sum(s[key] for s in found["stacks"]))
    total = [sum(values) for values in zip(*trace.dumps[-1][1].values())]
    t.check_equal(f"{what}: at the end, all there was", total[::2],
                  [sum(s["allocated_bytes"] for s in found["stacks"]), sum(s["allocations"] for s in found["stacks"])])
    names = collections.Counter((tuple(frame["function"] for frame in trace.stacks[number]), values[0])
                                for number, values in trace.dumps[-1][1].items())
    wanted = collections.Counter((tuple(line["frames"]), line["allocated_bytes"])
                                 for line in map(json.loads, t.export(recording, "ndjson", "--all-frames").splitlines())
                                 if line["allocations"])
    t.check_equal(f"{what}: stacks", names, wanted)
    for _, dump in trace.dumps:
        t.check(all(allocated >= freed and calls >= frees for allocated, freed, calls, frees in dump.values()),
                f"{what}: more is freed than allocated")
    for number in trace.stacks:
        sums = [dump[number] for _, dump in trace.dumps if number in dump]
        t.check(all(all(a <= b for a, b in zip(*pair)) for pair in zip(sums, sums[1:])), f"{what}: sums that sink")
    times = [time for time, _ in trace.dumps]
    t.check(times == sorted(times), f"{what}: times of dumps: {times}")
    t.check_equal(f"{what}: process", (trace.process["pid"], trace.process["name"]),
                  (found["process"]["pid"], os.path.basename(found["process"]["command"].split()[0])))
    live = [value for _, value in trace.counters["live heap"]]
    t.check_equal(f"{what}: live heap, at most", max(live), found["peak"]["bytes"])
    t.check(trace.counters["allocated per second"], f"{what}: no rates")
    return trace, path


_, leak = t.record(t.program("leak"), options=("--snapshot-every", "100000"))
trace, path = check_trace("leak", leak)
taken = [name for _, name in trace.names if name == "snapshot"]
t.check(len(taken) > 1, f"snapshots: {trace.names}")
modules = {mapping for frames in trace.stacks.values() for mapping in [frames[-1]["mapping"]]}
t.check(all(len(build_id) == 40 for _, build_id in modules), f"build-ids: {modules}")
_, threads = t.record(t.program("threads", "pipe"))
check_trace("threads", threads)
_, sampled = t.record(t.program("leak"), options=("--sample", "--rate", "1KiB", "--seed", "1"))
trace, _ = trace_of(sampled)
t.check_equal("a sample: peak", sum(trace.live_at("peak").values()), sum(s["peak_bytes"] for s in t.report(sampled)["stacks"]))
trace, _ = trace_of(threads, "--thread", "[^0-9]")
t.check_equal("of a thread: moments", sorted(name for _, name in trace.names), ["exit", "peak"])
if (t.BUILD / "tests/large_recording").exists():  # dumps and entries of many packets
    t.run([str(t.BUILD / "tests/large_recording"), "large.cairn", "5000"])
    trace, _ = trace_of("large.cairn")
    t.check(trace.index > len(trace.dumps), "a large one: one packet for each dump")
    t.check_equal("a large one: peak", sum(trace.live_at("peak").values()), t.sums_by_measure(t.report("large.cairn"))["peak"])

schema = os.environ.get("CAIRN_PERFETTO")
if schema and shutil.which("protoc"):
    decoded = t.run(["protoc", "-I", schema, "--decode=perfetto.protos.Trace",
                     f"{schema}/protos/perfetto/trace/trace.proto"], stdin=open(path, "rb").read())
    t.check_equal("protoc: status", decoded.status, 0)
    lines = [line.strip() for line in decoded.out.decode().splitlines()]
    t.check(not any(line[:1].isdigit() for line in lines), "protoc: fields that the schema does not have")
    t.check_equal("protoc: samples", lines.count("samples {"), sum(len(dump) for _, dump in perfetto.Trace(path).dumps))
else:
    t.skip_part("no schema of Perfetto (CAIRN_PERFETTO), or no protoc")
t.finish()
