#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=go: the Go frames of memory that C allocates are those that runtime.Callers tells at the same time,
at 100,000 calls of every kind, also where C calls Go back, on its own threads too, in a stripped program, and in one at
any address. Without the option a line of the report says so. A program without Go is none the wiser."""

import collections
import os
import pathlib
import re

import cairn_test as t

CALLS = 50000  # walk() allocates about twice each
place = t.fresh_path("go")
os.makedirs(place)
told, source = f"{place}/told", f"{t.SOURCE}/tests/programs/calls.go"


def is_plumbing(function):
    return function.startswith(("runtime.", "_cgo", "main._Cfunc_", "crosscall2"))


def told_stacks():
    stacks = collections.Counter()
    for line in pathlib.Path(told).read_text(encoding="utf-8").splitlines():
        count, *frames = line.split(" ")
        stacks[tuple(frame for frame in frames if not is_plumbing(frame))] += int(count)
    return stacks


def stacks_of(found, has_names_of_c):
    stacks, without_c = collections.Counter(), []
    for stack in found["stacks"]:
        if "main.place.leaf" not in [frame["function"] for frame in stack["frames"]]:
            continue
        frames = [frame for frame in stack["frames"] if (frame["file"] or "").endswith("calls.go")]
        # types of generic functions are not in what Callers says
        names = [(re.sub(r"\[.*\]", "[...]", frame["function"]), frame["line"]) for frame in frames]
        shown = [f"{name}:{line}" for name, line in names if "." in name]
        stacks[tuple(frame for frame in shown if not is_plumbing(frame))] += stack["allocations"]
        callbacks = [frame["function"] for frame in stack["frames"] if frame["function"] == "call_back"]
        backs = [frame for frame in shown if frame.startswith("main.goBack:")]
        if has_names_of_c and len(backs) - len(callbacks) not in (0, 1):
            without_c.append(shown)
    t.check(not without_c, f"each call back has its frame of C: {without_c[:2]}")
    return stacks


def build(name, *options):
    made = t.run(["go", "build", *options, "-o", f"{place}/{name}", source], env=environment)
    t.check_equal(f"{name} is built", made.status, 0)
    return f"{place}/{name}"


def compare(name, *options):
    program = build(name, *options)
    result, recording = t.record([program, told, str(CALLS)], options=["--frames=go"])
    t.check_equal(f"{name}: status", (result.status, result.out), (0, b""))
    wanted, found = told_stacks(), stacks_of(t.report(recording), name != "stripped")
    t.check(sum(wanted.values()) >= 2 * CALLS, f"{name}: {sum(wanted.values())} calls were told")
    lost, more = wanted - found, found - wanted
    t.check_equal(f"{name}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:2] + list(more)[:2]:
        print(name, "told" if stack in lost else "recorded", stack)


def without(program):
    _, recording = t.record([program, told, "100"])
    text = t.run_cairn("report", recording).out.decode()
    t.check("Go: its own frames are missing, --frames=go records them" in text, text)
    _, recording = t.record([program, told, "100"], options=["--frames=go"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "calls", recording).out.decode()
    t.check("Go: its own frames" not in text and "main.walk" in text and "runtime.cgocall" not in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


if t.run(["sh", "-c", "go version && gcc --version"]).status != 0:
    t.cannot_run_here("Go is not installed (golang-go)")
environment = {**os.environ, "GOCACHE": f"{place}/cache", "GO111MODULE": "off", "GOFLAGS": "", "HOME": place}
compare("plain")
compare("anywhere", "-buildmode=pie")
compare("unoptimized", "-gcflags=-N -l")
compare("stripped", "-ldflags=-s -w")
without(f"{place}/plain")
t.finish()
