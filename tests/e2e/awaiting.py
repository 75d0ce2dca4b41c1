#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=async: stacks of coroutines have those that await them, by cairn::context_promise, whoever resumes them;
never one twice; by g++ with optimization and clang++ without, both with both in `make check-long`. Without the option
stacks are native ones."""

import os
import re
import subprocess

import cairn_test as t

SOURCE = t.SOURCE / "tests/programs/awaiting/chain.cc"
# by size: the coroutines from the inside out
WANTED = {3000: ["detached"]}
for base in (1000, 2000):
    WANTED.update({base: ["leaf", "middle", "outer"], base + 1: ["leaf", "middle", "outer"], base + 2: ["middle", "outer"],
                   base + 3: ["middle", "outer"], base + 10: ["leaf", "middle", "outer"], base + 11: ["leaf", "middle", "outer"],
                   base + 4: ["outer"]})
LINES = {name: number for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
         for name, text in (("outer", "co_await middle"), ("middle 1", "co_await leaf<how>(size);"),
                            ("middle 2", "co_await leaf<how>(size + 10)")) if text in line}


def coroutine(frame):
    found = re.match(r"(?:task<.*> )?(leaf|middle|outer|detached)\b", frame["function"] or "")
    return found[1] if found else None


def stacks_of(found):
    by_size = {}
    for stack in found["stacks"]:
        if "take" in t.functions(stack) and stack["allocations"] == 1:
            by_size[stack["allocated_bytes"]] = stack
    return by_size


def check(name, program):
    result, recording = t.record([program], options=["--frames=async"])
    t.check_equal(f"{name}: recorded", (result.status, result.out, result.err), (0, b"done\n", b""))
    stacks = stacks_of(t.report(recording, "--all-frames"))
    for size, wanted in WANTED.items():
        frames = stacks[size]["frames"] if size in stacks else []
        names = [coroutine(frame) for frame in frames if coroutine(frame)]
        if name != "g++-O2":  # without tail calls, what has ended is still on the stack further out
            names = names[:len(wanted)]
        t.check_equal(f"{name}: {size}", names, wanted)
    chain = [f"{frame['function']}:{frame['line']}" for frame in stacks[1001]["frames"] if coroutine(frame)]
    t.check(len(chain) == 3 and chain[1].endswith(f":{LINES['middle 1']}") and chain[2].endswith(f":{LINES['outer']}"),
            f"{name}: lines at which they await {LINES}: {chain}")
    functions = [frame["function"] or "" for frame in stacks[1001]["frames"]]
    last = max(at for at, frame in enumerate(stacks[1001]["frames"]) if coroutine(frame))
    t.check(any(one.startswith("run_all") for one in functions[last:]), f"{name}: the scheduler is further out: {functions}")
    shown = t.run_cairn("report", "--view", "stacks", "--top", "0", recording).out.decode()
    t.check(re.search(r"take +chain.*\n +(task<.*> )?leaf.*\n +(task<.*> )?middle.*\n +(task<.*> )?outer.*\n +run_all", shown),
            f"{name}: without internal frames: {shown}")
    plain = t.report(t.record([program])[1])
    of_scheduler = [[coroutine(frame) for frame in stack["frames"] if coroutine(frame)]
                    for stack in t.stacks_through(plain, "take") if "run_all" in t.functions(stack)]
    t.check(["leaf"] in of_scheduler, f"{name}: without the option: {of_scheduler}")


t.need("g++")
for compiler, standard in (("g++", "-std=c++20"), ("clang++", "-std=c++20")):
    if t.run(["which", compiler]).status != 0:
        t.skip_part(f"{compiler} is not installed")
        continue
    for level in ("-O0", "-O2") if t.IS_LONG else ("-O2",) if compiler == "g++" else ("-O0",):
        name = f"{compiler}{level}"
        built = subprocess.run([compiler, standard, "-g", level, "-I", t.SOURCE / "include", SOURCE, "-o", name, "-pthread"],
                               capture_output=True, text=True, check=False)
        if t.check(built.returncode == 0, f"{name}: {built.stderr[-3000:]}"):
            t.check_equal(f"{name}: without cairn", t.run([os.path.abspath(name)]).out, b"done\n")
            check(name, os.path.abspath(name))
refused = t.run_cairn("run", "--frames=fibers", "true")
t.check_equal("no such frames", (refused.status, b"java, go, js, php, ruby or async" in refused.err), (2, True))
t.finish()
