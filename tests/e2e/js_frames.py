#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=js: the frames of JavaScript of native allocations are those that V8's own interface for stacks tells
at the same time, at calls of many kinds, interpreted, of baseline code, optimized with what is inlined there, and with
objects that move (CAIRN_LONG=1: at 100,000 calls each way). Sampled stacks have them, and those of a node that was
attached to. Without the option a line of the report says so, and other versions are refused by name. The first node of
PATH is tried."""

import collections
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
from attached import Attached
from told_frames import told_stacks

CALLS, CALLS_COMPILED = (100000, 100000) if os.environ.get("CAIRN_LONG") else (1000, 10000)
place = t.fresh_path("js")
os.makedirs(place)
library, told = str(t.BUILD / "tests/programs/libjscalls.so"), f"{place}/told"
program = f"{place}/calls.js"
MODES = {
    "interpreted": ["--jitless"],
    "interpreted, lines at once": ["--no-opt", "--no-sparkplug", "--no-enable-lazy-source-positions"],
    "baseline": ["--no-opt", "--always-sparkplug"],
    "optimized": [],
    "moving": ["--expose-gc", "--compact-on-every-full-gc", "--semi-space-growth-factor=1"],
}


def report(recording):
    """Without what node itself allocates, which is most of it."""
    return t.report(recording, "--focus", "^js_calls_allocate$", "--by", "calls")


def stacks_of(found, mode):
    """Of the blocks of js_calls_allocate, as calls.js tells them: without functions that have no file."""
    stacks, unknown = collections.Counter(), 0
    for stack in found["stacks"]:
        functions = [frame["function"] for frame in stack["frames"]]
        if functions[:1] != ["js_calls_allocate"]:
            continue
        shown = [frame for frame in stack["frames"] if (frame["file"] or "").startswith((place, "node:"))]
        stacks[" ".join(f"{frame['function']}:{frame['file']}:{frame['line']}" for frame in shown)] += stack["allocations"]
        unknown += sum(frame["function"] is None and frame["module"] is None for frame in stack["frames"])
    t.check_equal(f"{mode}: frames of nothing that is known", unknown, 0)
    return stacks


def compare(node, mode, options, calls):
    result, recording = t.record([node, *options, program, library, told, str(calls)], options=["--frames=js"])
    t.check_equal(f"{mode}: status", (result.status, result.out), (0, b""))
    wanted, found = told_stacks(told), stacks_of(report(recording), mode)
    t.check(sum(wanted.values()) >= calls, f"{mode}: {sum(wanted.values())} calls were told")
    lost, more = wanted - found, found - wanted
    t.check_equal(f"{mode}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:2] + list(more)[:2]:
        print(mode, "told" if stack in lost else "recorded", stack)


def sampled(node):
    options = ["--frames=js", "--sample", "--rate", "1000", "--seed", "1"]
    _, recording = t.record([node, program, library, told, str(CALLS_COMPILED)], options=options)
    wanted, found = told_stacks(told), stacks_of(report(recording), "sampled")
    t.check(len(found) > 10, f"sampled: {len(found)} stacks")
    t.check_equal("sampled: stacks that were not told", [stack for stack in found if stack not in wanted][:2], [])


def attached(node):
    """Functions that were compiled before are read like others."""
    script = pathlib.Path(place) / "waits.js"
    script.write_text("const native = { exports: {} };\nprocess.dlopen(native, process.argv[2]);\n"
                      "function leaf() { native.exports.allocate(); }\n"
                      "function round() { for (let i = 0; i < 3000; i++) leaf(); }\n"
                      "process.stdin.on('data', () => { round(); console.log('done'); });\n"
                      "for (let i = 0; i < 10; i++) round();\nconsole.log('ready');\n", encoding="ascii")
    with t.Process([node, str(script), library], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        t.check_equal("attached: it starts", process.stdout.readline(), b"ready\n")
        beside = Attached(process.pid, "--frames=js", "--exact")
        process.stdin.write(b"\n")
        process.stdin.flush()
        t.check_equal("attached: it goes on", process.stdout.readline(), b"done\n")
        beside.leave()
        found = stacks_of(report(beside.path), "attached")
        whole = sum(calls for stack, calls in found.items() if stack.startswith(f"leaf:{script}:3 round:{script}:4 "))
        t.check_equal("attached: calls with their functions and lines", whole, 3000)
        t.check_equal("attached: it ends", process.communicate()[0], b"")
        t.check_equal("attached: its status", process.wait(t.PATIENCE_S), 0)


def without(node):
    argv = [node, program, library, told, "100"]
    _, recording = t.record(argv)
    text = t.run_cairn("report", recording).out.decode()
    t.check("JavaScript: its own frames are missing, --frames=js records them" in text, text)
    _, recording = t.record(argv, options=["--frames=js"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "calls", "--top", "0", recording).out.decode()
    t.check("JavaScript: its own frames" not in text and "leaf" in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def summary(node):
    """A row begins with the first function of the script, not with node's."""
    script = pathlib.Path(place) / "sessions.js"
    script.write_text("const kept = [];\nfunction session(i) { kept.push(Buffer.alloc(300000, i)); }\n"
                      "for (let i = 0; i < 200; i++) session(i);\n", encoding="ascii")
    _, recording = t.record([node, str(script)], options=["--frames=js"])
    rows = t.run_cairn("report", recording).out.decode().split("at the peak", 1)[1].splitlines()
    t.check(re.search(r"session +sessions\.js:2", rows[1]), f"the first row: {rows[:3]}")


node = shutil.which("node")
if node and "--maglev-osr " in t.run([node, "--v8-options"]).out.decode():
    MODES["optimized by Maglev alone"] = ["--no-turbofan"]
if not node:
    t.cannot_run_here("node is not installed")
shutil.copy(f"{t.SOURCE}/tests/programs/calls.js", program)
_, probe = t.record([node, "-e", "0"], options=["--frames=js"])
if not t.report(probe)["stacks"] or "stacks have its frames" not in t.run_cairn("info", probe).out.decode():
    text = t.run_cairn("report", probe).out.decode()
    t.check("JavaScript frames are missing, cairn reads those of V8" in text, text)
    t.cannot_run_here("this node's V8 is another version than those that are read")
for mode, options in MODES.items():
    compare(node, mode, options, CALLS_COMPILED if mode.startswith("optimized") else CALLS)
sampled(node)
attached(node)
without(node)
summary(node)
t.finish()
