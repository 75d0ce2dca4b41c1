#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats with all values of a stack - JSON, CSV, SQLite, mptrace, heaptrack - read by other programs
and added up."""

import csv
import io
import json
import pathlib
import re

import cairn_test as t

t.need("sqlite3", "heaptrack_print")


def values_of(found):
    """What the stacks add up to, under the names of the columns."""
    return {"allocations": found["totals"]["allocations"], "frees": found["totals"]["frees"],
            "allocated_bytes": found["totals"]["allocated_bytes"],
            "freed_bytes": found["totals"]["freed_bytes"],
            "peak_blocks": found["peak"]["blocks"], "peak_bytes": found["peak"]["bytes"],
            "at_exit_blocks": found["at_exit"]["blocks"],
            "at_exit_bytes": found["at_exit"]["bytes"]}


def check_json(what, recording, found, wanted):
    data = json.loads(t.export(recording, "json"))
    t.check_equal(f"{what}: schema", data["schema"], "cairn.export/1")
    for key in ("process", "totals", "peak", "at_exit", "rss", "trust", "threads"):
        t.check_equal(f"{what}: json {key}", data[key], found[key])
    sums = {key: sum(stack[key] for stack in data["stacks"]) for key in wanted}
    t.check_equal(f"{what}: json", sums, wanted)
    spelled = {}
    for stack in data["stacks"]:
        frames = []
        for number in stack["locations"]:
            place = data["locations"][number]
            module = place["module"]
            path = None if module is None else data["modules"][module]["path"]
            frames += [(frame["function"], frame["line"], path, place["offset"])
                       for frame in place["functions"] or [{"function": None, "line": None}]]
        spelled[stack["id"]] = frames
    for stack in found["stacks"]:
        frames = [(frame["function"], frame["line"], frame["module"], frame["offset"])
                  for frame in stack["frames"]]
        t.check_equal(f"{what}: frames of {stack['id']}", spelled[stack["id"]], frames)
    t.check(data["timeline"] and data["timeline_interval_ns"] > 0, f"{what}: has a timeline")
    most = max(point["max_bytes"] for point in data["timeline"])
    t.check(most <= found["peak"]["bytes"] + found["peak"]["error_bytes"],
            f"{what}: timeline's highest {most}")


def check_csv(what, recording, found, wanted):
    rows = list(csv.DictReader(io.StringIO(t.export(recording, "csv").decode())))
    sums = {key: sum(int(row[key]) for row in rows) for key in wanted}
    t.check_equal(f"{what}: csv", sums, wanted)
    t.check_equal(f"{what}: csv ids", {row["id"] for row in rows},
                  {stack["id"] for stack in found["stacks"]})
    t.check(all(row["frames"] for row in rows), f"{what}: csv frames")


def check_ndjson(what, recording, found, wanted):
    rows = {row["id"]: row for row in map(json.loads, t.export(recording, "ndjson", "--all-frames").decode().splitlines())}
    t.check_equal(f"{what}: ndjson", {key: sum(row[key] for row in rows.values()) for key in wanted}, wanted)
    t.check_equal(f"{what}: ndjson ids", set(rows), {stack["id"] for stack in found["stacks"]})
    for stack in found["stacks"]:
        for key in (key for key in stack if key.endswith("_estimate")):
            t.check_equal(f"{what}: ndjson {key}", rows[stack["id"]][key], stack[key])
        named = [frame["function"] for frame in stack["frames"] if frame["function"]]
        frames = [frame for frame in reversed(rows[stack["id"]]["frames"]) if frame in named]
        t.check_equal(f"{what}: ndjson frames of {stack['id']}", frames, named)


def sql(path, statement):
    result = t.run(["sqlite3", "-json", path, statement])
    t.check_equal(f"sqlite3 {statement}", (result.status, result.err), (0, b""))
    return json.loads(result.out or "[]")


def check_sqlite(what, recording, found, wanted):
    path = t.export_file(recording, "sqlite")
    summary = sql(path, "select * from summary")[0]
    t.check_equal(f"{what}: sqlite", {key: summary[key] for key in wanted}, wanted)
    t.check_equal(f"{what}: integrity", sql(path, "pragma integrity_check"),
                  [{"integrity_check": "ok"}])
    t.check_equal(f"{what}: foreign keys", sql(path, "pragma foreign_key_check"), [])
    own = sql(path, "select sum(self_calls) c, sum(self_allocated_bytes) b, "
              "sum(self_peak_bytes) p, sum(self_at_exit_bytes) e from functions")[0]
    t.check_equal(f"{what}: own values of functions", tuple(own.values()),
                  (wanted["allocations"], wanted["allocated_bytes"], wanted["peak_bytes"],
                   wanted["at_exit_bytes"]))
    for view, key, bytes_key in (("top", "peak_bytes", "peak_bytes"),
                                 ("leaks", "at_exit_bytes", "at_exit_bytes")):
        rows = sql(path, f"select * from {view}")
        best = sorted((stack[bytes_key] for stack in found["stacks"]), reverse=True)[:len(rows)]
        t.check_equal(f"{what}: view {view}", [row[key] for row in rows if row[key]],
                      [value for value in best if value])
        t.check(all(row["frames"] for row in rows), f"{what}: frames in {view}: {rows[:2]}")
    by_module = sql(path, "select sum(peak_bytes) p from by_module")[0]["p"]
    t.check_equal(f"{what}: by_module", by_module, wanted["peak_bytes"])
    t.check(sql(path, "select count(*) n from timeline")[0]["n"] > 0, f"{what}: timeline")
    info = {row["key"]: row["value"] for row in sql(path, "select * from info")}
    t.check_equal(f"{what}: command", info["command"], found["process"]["command"])
    t.check("exact" in info["trust"], f"{what}: {info['trust']}")


def check_mptrace(what, recording, found, wanted):
    lines = t.export(recording, "mptrace").decode().splitlines()
    t.check_equal(f"{what}: mptrace stacks", len(lines), len(found["stacks"]))
    rows = [re.fullmatch(r"_mpTrace_(?:;[^;]+)+ \$(\d+)\$(\d+)\$(-?\d+)\$(-?\d+)", line)
            for line in lines]
    if t.check(all(rows), f"{what}: mptrace: {lines[:3]}"):
        columns = list(zip(*(map(int, row.groups()) for row in rows)))
        t.check_equal(f"{what}: mptrace", [sum(column) for column in columns[:3]],
                      [wanted["allocations"], wanted["allocated_bytes"], wanted["at_exit_bytes"]])
        t.check_equal(f"{what}: mptrace max", sum(columns[3]),
                      sum(max(s["peak_bytes"], s["at_exit_bytes"]) for s in found["stacks"]))


def check_heaptrack(what, recording, wanted):
    path = t.fresh_path("heaptrack") + ".gz"
    t.run_cairn("export", "-f", "heaptrack", "-o", path, recording)
    printed = t.run(["heaptrack_print", "--filter-bt-function", "", "--print-leaks", "1",
                     "--disable-builtin-suppressions", "--disable-embedded-suppressions",
                     "-H", "sizes", path])
    text = printed.out.decode()
    t.check_equal(f"{what}: heaptrack_print", printed.status, 0)
    t.check_equal(f"{what}: heaptrack calls",
                  re.search(r"calls to allocation functions: (\d+)", text)[1],
                  str(wanted["allocations"]))
    # the sizes of blocks with their numbers add up to the bytes, to the last one
    sizes = [tuple(map(int, line.split())) for line in open("sizes")]
    t.check_equal(f"{what}: heaptrack bytes", sum(size * count for size, count in sizes),
                  wanted["allocated_bytes"])
    for word, key in (("peak heap memory consumption", "peak_bytes"),
                      ("total memory leaked", "at_exit_bytes")):
        shown = re.search(rf"{word}: (.*)", text)[1]
        t.check_equal(f"{what}: heaptrack {word}", shown, heaptrack_units(wanted[key]))
    t.check("failed" not in printed.err.decode(), printed.err.decode()[:300])


def check_heaptrack_sites():
    """Its list is by who calls operator new, as in heaptrack's own files, and not one entry for all."""
    _, recording = t.record(t.program("exceptions"))
    path = t.fresh_path("sites") + ".gz"
    t.run_cairn("export", "-f", "heaptrack", "-o", path, recording)
    text = t.run(["heaptrack_print", path]).out.decode()
    sites = re.findall(r"calls to allocation functions with \S+ peak consumption from\n(.*)", text)
    t.check(len(sites) > 3 and not any("operator new" in site for site in sites), f"call sites: {sites}")


def heaptrack_units(amount):
    for unit in ("B", "K", "M", "G"):
        if amount < 1000:
            return f"{amount}B" if unit == "B" else f"{amount:.2f}{unit}"
        amount /= 1000
    return "too much"


check_heaptrack_sites()
recording = None
for command in (t.program("exceptions"), t.program("threads", "pipe"), t.program("leak"),
                ["sqlite3", ":memory:", "create table t(a); insert into t values(zeroblob(99999));"]):
    _, recording = t.record(command)
    found = t.report(recording)
    values, name = values_of(found), pathlib.Path(command[0]).name
    check_json(name, recording, found, values)
    check_csv(name, recording, found, values)
    check_ndjson(name, recording, found, values)
    check_sqlite(name, recording, found, values)
    check_mptrace(name, recording, found, values)
    check_heaptrack(name, recording, values)

answer = t.run_cairn("sql", recording, "select allocations, at_exit_bytes from summary; select 'a\tb'")
t.check_equal("cairn sql", answer.out.decode(),
              f"allocations\tat_exit_bytes\n{values['allocations']}\t{values['at_exit_bytes']}\n"
              "'a\\x09b'\na\\x09b\n")
for statement, words in (("select", "incomplete input"), ("select * from nowhere", "no such table"),
                         ("attach 'x.db' as x", "too many attached databases")):
    answer = t.run_cairn("sql", recording, statement)
    t.check_equal(f"sql {statement}: status", answer.status, 1)
    t.check(words in answer.err.decode(), f"sql {statement}: {answer.err.decode()}")
t.check_equal("sql without a statement", t.run_cairn("sql").status, 2)
t.check(not pathlib.Path("x.db").exists(), "a statement wrote a file")
t.finish()
