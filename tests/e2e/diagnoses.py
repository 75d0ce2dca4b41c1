#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with one bad habit each (tests/programs/habits.c), recorded without any option: the summary
of `cairn run`, or the one view named for it, says what it is and where."""

import re

import cairn_test as t


def run_habit(habit):
    path = t.fresh_path(habit) + ".cairn"
    result = t.run_cairn("run", "-o", path, "--", *t.program("habits", habit))
    t.check_equal(f"{habit}: status", result.status, 0)
    return result.err.decode(), path


def view(name, path, *arguments):
    return t.run_cairn("report", "--view", name, *arguments, path).out.decode()


def check_says(what, pattern, text):
    t.check(re.search(pattern, text), f"{what}: no {pattern!r} in:\n{text}")


def check_widths(path, *names):
    for name in names:
        for columns in (80, 120, 200):
            result = t.run_cairn("report", "--view", name, path,
                                 env={"COLUMNS": str(columns), "NO_COLOR": "1"})
            lines = result.out.decode().splitlines()
            wide = [line for line in lines if len(line) > columns]
            t.check(not wide, f"{name} in {columns} columns: {wide[:2]}")
            t.check(b"\033" not in result.out, f"{name}: colours in a pipe")


summary, leak = run_habit("leak")
check_says("leak", r"what stands out\n +lose_session grows by .*B/s, steadily \(fit (1\.00|0\.9\d)\)", summary)
check_says("leak: growth", r"1 stack grows .* moments.*\n.*\n\n +1 \+.*B/s +fit (1\.00|0\.9\d) .*\n +lose_session",
           view("growth", leak))
check_says("leak: timeline", r"the largest stacks over time[\s\S]* a +7\.[56] MiB at most  lose_session",
           view("timeline", leak))
check_widths(leak, "growth", "timeline", "sizes", "temporary", "ages", "memory", "threads")

summary, cache = run_habit("cache")
check_says("cache: what it holds", r"at the peak.*\n +9\d %.* cache_insert", summary)
t.check("grows by" not in summary, f"cache: taken for a leak:\n{summary}")
check_says("cache: growth", r"fit 0\.[3-8]\d.*\n +cache_insert", view("growth", cache))

summary, builder = run_habit("builder")
check_says("builder", r"builder_append grows its buffer 1,953 times: reserve", summary)

summary, server = run_habit("server")
check_says("server", r"open_connection grows by .*, steadily", summary)
check_says("server: sizes", r"sizes 2\.9 KiB × 8,000", view("sizes", server))
check_says("server: at a moment", r"then: snapshot, at .*, nearest to", view("stacks", server, "--at", "1ms"))
half = view("stacks", server, "--between", "1us,exit")
check_says("server: what grew", r"from .* to .* more in stacks that grew[\s\S]*open_connection", half)

pipe = t.run_cairn("run", "--", *t.program("threads", "pipe")).err.decode()
check_says("pipe", r"100 % of what producer allocates is freed by consumer: --view threads", pipe)

result = t.run_cairn("run", "--ages", "-o", "ages.cairn", "--", *t.program("threads", "short"))
ages = [item for stack in t.report("ages.cairn")["stacks"] if "ages" in stack for item in [stack["ages"]["ms"][0]]]
share = 100 * sum(ages) / t.report("ages.cairn")["totals"]["allocations"]
told = re.search(r"([\d.]+) % of all blocks live under 1 ms, most of short_body: --view ages", result.err.decode())
t.check(told and abs(float(told[1]) - share) < 0.6, f"ages: {share} % in:\n{result.err.decode()}")

summary, tidy = run_habit("tidy")
t.check("stands out" not in summary, f"tidy: {summary}")
check_says("tidy: temporary", r"100 % 8,000 blocks[\s\S]*100 % of its calls[\s\S]*handle_request",
           view("temporary", tidy))
t.check("0 stacks grow" in view("growth", tidy), view("growth", tidy))
t.finish()
