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
    flat = " ".join(re.sub(r" habits\.c:\d+", "", text).split())  # findings are wrapped
    t.check(re.search(pattern, text) or re.search(pattern, flat), f"{what}: no {pattern!r} in:\n{text}")


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
check_says("leak", r"findings lose_session grows by .*B/s, steadily \(fit (1\.00|0\.9\d)\)", summary)
check_says("leak: growth", r"1 stack grows .* snapshots.*\n.*\n\n +1 \+.*B/s +fit (1\.00|0\.9\d) .*\n +lose_session",
           view("growth", leak))
check_says("leak: timeline", r"the largest stacks over time[\s\S]* a +7\.[56] MiB at most  lose_session",
           view("timeline", leak))
check_widths(leak, "growth", "timeline", "sizes", "temporary", "ages", "memory", "threads")

summary, cache = run_habit("cache")
check_says("cache: what it holds", r"at the peak.*\n +9\d %.* cache_insert", summary)
t.check("grows by" not in summary, f"cache: taken for a leak:\n{summary}")
check_says("cache: growth", r"no stack grows by .* or more, 1 grew before[\s\S]* 1 grew .* to .*, flat since .*\n +cache_insert", view("growth", cache))

summary, store = run_habit("store")
check_says("store", r"add_item grows by .*B/s, steadily \(fit (1\.00|0\.9\d)\), freed at shutdown", summary)
grown = view("growth", store)
check_says("store: growth", r"1 stack grows[\s\S]*0 B → 7\.[456] MiB[\s\S]*freed at shutdown\n +add_item", grown)
spark = re.search(r"MiB +([▁▂▃▄▅▆▇]*█)", grown)  # up to the top; a machine with other work makes steps of it
t.check(spark and sorted(spark[1]) == list(spark[1]) and len(set(spark[1])) > 2, f"store: no ramp over time:\n{grown}")
check_says("store: focused", r"1 stack grows", view("growth", store, "--focus", "store_add"))
refused = t.run_cairn("report", "--by", "exit", "--focus", "store_add", store)
t.check(refused.status == 1 and b"matches 1 stack, but it has nothing" in refused.err, refused.err)

summary, parser = run_habit("parser")
check_says("parser", r"about (100|99) % of all blocks are short-lived, most of add_item", summary)
check_says("parser: temporary", r"2 stacks by their short-lived blocks[\s\S]* 1 +9\d % 1(60|59),\d+ ± [\d,]+ blocks[\s\S]*"
           r"add_item[\s\S]*parse ", view("temporary", parser))
check_says("parser: focused", r"add_item", view("temporary", parser, "--focus", "parse"))
totals = t.report(parser)["totals"]
t.check(totals["watched_short_lived"] <= totals["watched"] and 200 < totals["watched"] < 500, totals)

summary, table = run_habit("table")
snapshots = t.report(table)["snapshots"]
low = [m for m in snapshots if m["reason"] == "low"]
t.check(low and 1_000_000 <= low[0]["live_bytes"] < 1_200_000, f"table: {low}")
then = view("stacks", table, "--at", f"{(low[0]['at_ns'] + 1000) // 1000}us") if low else ""
check_says("table: then", r"shown: snapshot, at .*: (1,000|98\d|977) KiB|shown: snapshot, at .*: 1\.[01] MiB", then)
check_says("table: what was live", r"; (9\d\d KiB|1\.[01] MiB) were live at ", then)
check_says("table: span", r"from .* to .*, .* apart: ", view("stacks", table, "--between", "1us,exit"))

summary, sieve = run_habit("sieve")
rss = t.report(sieve)["rss"]
if rss["at_peak"] and len(rss["points"]) > 3:
    check_says("sieve", r"MiB of \d\d\.\d MiB resident are free in the heap, [23]\.\d MiB live", summary)
    check_says("sieve: memory", r"live heap|free in 1 arena", view("memory", sieve))
    for name in ("heap", "pages"):
        check_says(f"sieve: {name}", r"the heap at .*: .* resident, .* live on it[\s\S]*PID", view(name, sieve))

summary, builder = run_habit("builder")
check_says("builder", r"builder_append grows its buffer 1,953 times: reserve", summary)

summary, server = run_habit("server")
check_says("server", r"open_connection grows by .*, steadily", summary)
check_says("server: sizes", r"sizes 2\.9 KiB × 8,000", view("sizes", server))
check_says("server: at a moment", r"shown: snapshot, at .*, nearest to", view("stacks", server, "--at", "1ms"))
half = view("stacks", server, "--between", "1us,exit")
check_says("server: what grew", r"from .* to .* more in stacks that grew[\s\S]*open_connection", half)

pipe = t.run_cairn("run", "--", *t.program("threads", "pipe")).err.decode()
check_says("pipe", r"100 % of what producer allocates is freed by consumer: --view threads", pipe)

result = t.run_cairn("run", "--ages", "-o", "ages.cairn", "--", *t.program("threads", "short"))
short = t.report("ages.cairn")
least_ms = short["trust"]["ages_error_ms"]
bound_ms = next((bound for bound in (5, 10, 20, 50, 100) if bound >= least_ms), None)
flat = " ".join(result.err.decode().split())
told = re.search(r"at least ([\d.]+) % of all blocks live under ([\d.]+) ms, most of short_body threads\.c:\d+: --view ages", flat)
if bound_ms:
    ages = [count for stack in short["stacks"] if "ages" in stack for bucket, count in enumerate(stack["ages"]["ms"])
            if 2 ** bucket - 1 + least_ms <= bound_ms]
    share = 100 * sum(ages) / short["totals"]["allocations"]
    t.check(told and abs(float(told[1]) - share) < 0.6 and float(told[2]) == bound_ms, f"ages: {share} %, {bound_ms} ms in:\n{flat}")
else:
    t.check("of all blocks live" not in flat, f"ages: the clock was late by {least_ms} ms, but:\n{flat}")

summary, tidy = run_habit("tidy")
t.check("findings" not in summary, f"tidy: {summary}")
check_says("tidy: temporary", r"100 % 8,000 ± [\d,]+ blocks.*samples[\s\S]*100 % freed at once[\s\S]*handle_request",
           view("temporary", tidy))
t.check("no stack grows" in view("growth", tidy), view("growth", tidy))
t.finish()
