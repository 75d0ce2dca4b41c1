#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The probes for tracers (docs/explain/tracing.md). gdb stands in for perf and bpftrace, which need privileges: it reads
the same notes, counts the same semaphores up and takes the arguments from the same operands. What it is told
must add up to the recording of the same process."""

import collections
import json
import re
import shutil

import cairn_test as t

CAIRN_PROBES = ["cairn:alloc", "cairn:free", "cairn:realloc", "cairn:new_stack", "cairn:snapshot"]
OTEL_PROBES = ["otel_memory:alloc", "otel_memory:free"]
ARGUMENTS = {"cairn:alloc": 3, "cairn:free": 3, "cairn:realloc": 5, "cairn:new_stack": 4, "cairn:snapshot": 4,
             "otel_memory:alloc": 3, "otel_memory:free": 1}
EXIT_SNAPSHOT, FIRST_CELL = 5, 32
# The kernel's probes in a file, which another test may set, would take gdb's breakpoints for their own.
LIBRARY = shutil.copy(t.RUNTIME, t.fresh_path("library") + ".so")


def traced(program, probes, settings):
    """Runs the program with tracers on these probes; (events, path of its recording)."""
    path, out = t.fresh_path("traced") + ".cairn", t.fresh_path("events")
    words = " ".join(f"{name}={value}" for name, value in
                     {"LD_PRELOAD": LIBRARY, "CAIRN_OUTPUT": path, **settings}.items())
    result = t.run(["gdb", "-q", "-nx", "-batch", "-ex", f"set exec-wrapper env {words}",
                    "-x", str(t.SOURCE / "tests/tools/gdb_probes.py"), "--args", *program],
                   env={"PROBES_LIBRARY": LIBRARY, "PROBES": ",".join(probes), "PROBES_OUT": out})
    try:
        with open(out, encoding="utf-8") as file:
            return [json.loads(line) for line in file], path
    except OSError:
        t.check(False, f"gdb: {(result.out + result.err).decode(errors='replace')}")
        return [], path


def check_notes(file):
    text = t.run(["readelf", "-nW", file]).out.decode()
    found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x0*([0-9a-f]+), Base: 0x0*([0-9a-f]+), "
                       r"Semaphore: 0x0*([0-9a-f]+)\s+Arguments: (.*)", text)
    t.check_equal(f"{file}: probes", {f"{provider}:{name}": len(arguments.split())
                                      for provider, name, _, _, _, arguments in found}, ARGUMENTS)
    t.check_equal(f"{file}: probes, each once", len(found), len(ARGUMENTS))
    sections = t.run(["readelf", "-SW", file]).out.decode()
    for section, place in ((".stapsdt.base", 3), (".probes", 4)):
        match = re.search(rf"{re.escape(section)} +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", sections)
        if not t.check(match, f"{file}: no section {section}"):
            continue
        start, size = int(match[1], 16), int(match[2], 16)
        for probe in found:
            t.check(start <= int(probe[place], 16) < start + size, f"{file}: {probe} is not in {section}")


class Replay:
    """What the events of a process add up to."""

    def __init__(self, events):
        self.live, self.by_stack = {}, collections.Counter()
        self.allocations = self.frees = self.allocated_bytes = 0
        self.stacks, self.snapshots = {}, []
        for provider, name, arguments, caller, frames in events:
            getattr(self, f"on_{name}")(caller, frames, *arguments)

    def on_alloc(self, caller, _, block, size, stack):
        t.check(block not in self.live, f"{block:#x} allocated twice")
        t.check(stack in self.stacks, f"stack {stack} was not announced")
        if stack in self.stacks:
            t.check_equal("the caller by frame pointers", caller, self.stacks[stack][0])
        self.live[block] = size, stack
        self.by_stack[stack] += size
        self.allocations += 1
        self.allocated_bytes += size

    def on_free(self, _caller, _frames, block, size, stack):
        t.check_equal("freed as it was allocated", (size, stack), self.live.pop(block, None))
        self.frees += 1

    def on_realloc(self, caller, frames, block, size, stack, old_block, old_size):
        old = self.live.pop(old_block, (None, None))
        t.check_equal("reallocated from", old_size, old[0])
        self.frees += 1
        self.on_alloc(caller, frames, block, size, stack)

    def on_new_stack(self, caller, frames, stack, *_):
        t.check(stack >= FIRST_CELL and stack not in self.stacks, f"stack {stack} is not new")
        t.check_equal("the innermost frame", frames[0], caller)
        self.stacks[stack] = frames

    def on_snapshot(self, _caller, _frames, reason, _label, live_bytes, live_blocks):
        self.snapshots.append((reason, live_bytes, live_blocks))


def check_exact():
    events, path = traced(t.program("realloc_chain"), CAIRN_PROBES, {})
    replay, report = Replay(events), t.report(path)
    totals, stacks = report["totals"], report["stacks"]
    live = sum(size for size, _ in replay.live.values()), len(replay.live)
    t.check(replay.allocations > 300, f"only {replay.allocations} events")
    for name in ("allocations", "frees", "allocated_bytes"):
        t.check_equal(f"exact: {name}", getattr(replay, name), totals[name])
    t.check_equal("exact: live", live, (report["at_exit"]["bytes"], report["at_exit"]["blocks"]))
    t.check_equal("exact: bytes of each stack", sorted(replay.by_stack.values()),
                  sorted(stack["allocated_bytes"] for stack in stacks))
    t.check_equal("exact: frames of each stack", sorted(len(frames) for frames in replay.stacks.values()),
                  sorted(sum(not frame["inlined"] for frame in stack["frames"]) for stack in stacks))
    t.check_equal("exact: the last snapshot", replay.snapshots[-1:], [(EXIT_SNAPSHOT, *live)])


def check_every_mode():
    """Whatever is recorded of an event, tracers are told of each."""
    for settings in ({"CAIRN_STACKS": "0"}, {"CAIRN_MIN_SIZE": "1000"}, {"CAIRN_AGES": "1"},
                     {"CAIRN_SAMPLE": "1", "CAIRN_RATE": "65536"}):
        events, path = traced(t.program("realloc_chain"), ["cairn:alloc", "cairn:free", "cairn:realloc"], settings)
        totals, names = t.report(path)["totals"], collections.Counter(event[1] for event in events)
        sizes = sum(event[2][1] for event in events if event[1] != "free")
        t.check_equal(f"{settings}: calls", names["alloc"] + names["realloc"], totals["allocations"])
        t.check_equal(f"{settings}: bytes", sizes, totals["allocated_bytes"])
        t.check_equal(f"{settings}: frees", names["free"], 5)
    events, _ = traced(t.program("realloc_chain"), ["cairn:alloc"], {"CAIRN_OFF": "1"})
    t.check_equal("switched off: events", len(events), 0)


def check_sampled():
    events, path = traced(t.program("realloc_chain"), OTEL_PROBES,
                          {"CAIRN_SAMPLE": "1", "CAIRN_RATE": "262144", "CAIRN_SEED": "7"})
    live, report, heavier = {}, t.report(path), 0
    for _, name, arguments, _, _ in events:
        if name == "alloc":
            block, size, weight = arguments
            t.check(block not in live and weight >= max(size, 262144 if size < 262144 else size),
                    f"sample of {size} bytes stands for {weight}")
            live[block] = weight
            heavier += weight > size
        else:
            t.check(live.pop(arguments[0], None), f"{arguments[0]:#x} was not sampled")
    t.check(heavier > 20, f"only {heavier} samples stand for more than themselves")
    t.check_equal("sampled: live", (sum(live.values()), len(live)),
                  (report["at_exit"]["bytes"], report["sampling"]["at_exit_estimate"]["samples"]))


t.need("gdb", "readelf")
for library in (t.RUNTIME, str(t.BUILD / "libcairn-cxx.so")):
    check_notes(library)
check_exact()
check_every_mode()
check_sampled()
t.finish()
