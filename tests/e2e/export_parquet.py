#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn export -f parquet: rows of single recordings against their JSON report, as a strict reader finds them
(tests/tools/parquet.py); of a fleet with labels, the answers of docs/howto/fleet-queries.md, by that reader and, in
`make check-long` where npm can fetch it, by DuckDB."""

import collections
import datetime
import json
import os
import pathlib
import shutil

import cairn_test as t
import fleet
import parquet

DUCKDB = "1.5.6-r.1"
MEASURES = ("allocations", "frees", "allocated_bytes", "freed_bytes", "slack_bytes")


def rows_of(*arguments):
    path = t.fresh_path("table") + ".parquet"
    result = t.run_cairn("export", "-o", path, *map(str, arguments))
    t.check_equal(f"{arguments}: status and words", (result.status, result.err), (0, b""))
    rows, _, creator = parquet.read(path)
    t.check(creator.startswith("cairn version "), creator)
    return rows, path


def of(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def total(rows, key):
    return sum(row[key] or 0 for row in rows)


def check_recording(what, recording, *options):
    found, (rows, _) = t.report(recording), rows_of(*options, recording)
    stacks = found["stacks"]
    peak, end = of(rows, moment="peak"), of(rows, moment="exit")
    for name, part, key in (("peak", peak, "peak"), ("exit", end, "at_exit")):
        t.check_equal(f"{what}: bytes of {name}", total(part, "live_bytes"), sum(s[key + "_bytes"] for s in stacks))
        t.check_equal(f"{what}: blocks of {name}", total(part, "live_blocks"), sum(s[key + "_blocks"] for s in stacks))
    for key in MEASURES:
        t.check_equal(f"{what}: {key} over all rows", total(rows, key), sum(s[key] for s in stacks))
        t.check(all(row[key] is None for row in peak), f"{what}: {key} in rows of the peak")
    t.check_equal(f"{what}: rows of the end", len(end), len(stacks))
    lines = collections.Counter((tuple(line["frames"]), line["at_exit_bytes"], line["allocations"])
                                for line in map(json.loads, t.export(recording, "ndjson").splitlines()))
    t.check_equal(f"{what}: frames", collections.Counter(
        (tuple(row["frames"]), row["live_bytes"], row["allocations"]) for row in end), lines)
    t.check(all(row["function"] == row["frames"][-1] and row["pid"] == found["process"]["pid"] for row in rows),
            f"{what}: functions, pids")
    at = {row["time"] - row["start"] for row in peak}
    late = datetime.timedelta(microseconds=found["peak"]["at_ns"] // 1000)
    t.check(len(at) <= 1 and all(abs(one - late) <= datetime.timedelta(microseconds=1) for one in at),
            f"{what}: the peak is at {at}, should be {late}")
    by_names = collections.defaultdict(set)
    for row in rows:
        by_names[row["stack"]].add(tuple(row["frames"]))
    t.check(all(len(names) == 1 for names in by_names.values()), f"{what}: stacks of the same number")
    return rows


_, leak = t.record(t.program("leak"))
_, exceptions = t.record(t.program("exceptions"))
rows = check_recording("leak", leak)
t.check(all(row["host"] is None and row["service"] == row["program"] == "leak" for row in rows), "usual labels")
t.check(all(row["live_interval_bytes"] is None for row in rows), "intervals of what was counted")
t.check(all("exact" in row["trust"] for row in rows), "trust")
large = of(rows, moment="exit", function="leak_large")
t.check_equal("what leak_large lost", [(row["live_bytes"], row["live_blocks"]) for row in large], [(150000, 3)])
check_recording("exceptions", exceptions)
_, sampled = t.record(t.program("leak"), options=("--sample", "--rate", "1KiB", "--seed", "1"))
rows = check_recording("a sample", sampled)
estimates = {s["id"]: s for s in t.report(sampled)["stacks"]}
t.check_equal("intervals of the peak",
              sorted(row["live_interval_bytes"] for row in of(rows, moment="peak")),
              sorted(s["peak_estimate"]["interval_bytes"] for s in estimates.values()
                     if s["peak_bytes"] or s["peak_blocks"]))
t.check(total(of(rows, moment="exit"), "allocated_interval_bytes") > 0, "intervals of what was allocated")

# snapshots: what report --at says of each
_, marked = t.record(t.program("leak"), options=("--snapshot-every", "100000"))
rows, _ = rows_of("--snapshots", marked)
taken = {row["time"] for row in of(rows, moment="snapshot")}
t.check(len(taken) > 1, f"snapshots: {taken}")
first = min(taken)
offset = (first - rows[0]["start"]) // datetime.timedelta(microseconds=1)
# to the nanosecond: between two that lie close together a time means that whose live bytes are nearer
first_ns = min(snapshot["at_ns"] for snapshot in t.report(marked)["snapshots"])
t.check(abs(first_ns / 1000 - offset) <= 2, f"the first snapshot: after {offset} us, {first_ns} ns")
shown = t.report(marked, "--at", f"{first_ns // 10**9}.{first_ns % 10**9:09}s")
t.check_equal("a snapshot", total([row for row in rows if row["time"] == first], "live_bytes"),
              sum(s.get("at_bytes", 0) for s in shown["stacks"]))
t.check(not of(rows_of(marked)[0], moment="snapshot"), "snapshots that were not asked for")

# many row groups
if (t.BUILD / "tests/large_recording").exists():
    t.run([str(t.BUILD / "tests/large_recording"), "large.cairn", "30000"])
    path = t.fresh_path("large") + ".parquet"
    t.check_equal("a large one: status", t.run_cairn("export", "-o", path, "large.cairn").status, 0)
    rows, groups, _ = parquet.read(path)
    t.check(groups > 1, f"a large one: {groups} row groups")
    found = t.report("large.cairn", "--top", "1")  # the sums of all: the stacks are 290 MB of JSON
    t.check_equal("a large one: peak", total(of(rows, moment="peak"), "live_bytes"), found["peak"]["bytes"])
    t.check_equal("a large one: allocated", total(rows, "allocated_bytes"), found["totals"]["allocated_bytes"])

# a fleet
made = fleet.make(t.CAIRN, t.SOURCE / "tests/programs/service.c", "fleet", 40, t.environment())
rows, table = rows_of("--label", "region=eu", "--label", "host=nowhere", "@fleet/list")
t.check_equal("processes", len({(row["pid"], row["start"]) for row in rows}), len(made))
t.check_equal("labels", {(row["host"], row["service"], row["version"], row["region"]) for row in rows},
              {(one["host"], one["service"], f"1.{one['release']}", "eu") for one in made})
t.check_equal("builds", len({row["build_id"] for row in rows}), len(fleet.RELEASES))
parsed = [row for row in of(rows, moment="exit") if "parse_name" in row["frames"]]
t.check_equal("stacks of parse_name over all builds", len({row["stack"] for row in parsed}), 1)
wanted = sum(512 + i % 64 for one in made if one["release"] >= 3 and not one["is_sampled"]
             for i in range(one["requests"]))
t.check_equal("what parse_name kept", total([row for row in parsed if row["live_samples"] is None], "live_bytes"),
              wanted)
for words in (["fleet/recordings"], [one["path"] for one in made]):
    t.check_equal(f"{words[0]}: rows", len(rows_of(*words)[0]), len(rows))
piped = t.run_cairn("export", "-f", "parquet", "-o", "piped.parquet", "@-", stdin=open("fleet/list", "rb").read())
t.check_equal("a list by stdin", (piped.status, len(parquet.read("piped.parquet")[0])), (0, len(rows)))
few, _ = rows_of("--focus", "parse_name", "@fleet/list")
t.check(few and all("parse_name" in row["frames"] for row in few), "--focus")
t.check(all(row["trust"].startswith("a part: --focus 'parse_name'") for row in few), "--focus: trust")
summed = json.loads(t.export("@fleet/list", "json"))
t.check_equal("the sum of a list", summed["peak"]["bytes"], total(of(rows, moment="peak"), "live_bytes"))

# bad input
pathlib.Path("bad_list").write_text(f"{leak}\tregion\n")
pathlib.Path("missing_list").write_text(f"{leak}\n\nnowhere.cairn\n")
pathlib.Path("hurt").mkdir()
shutil.copy(leak, "hurt/whole.cairn")
pathlib.Path("hurt/empty.cairn").write_text("no recording")
for arguments, status, words in ((["--label", "host", leak], 2, "KEY=VALUE"),
                                 (["--label", "1st=x", leak], 2, "KEY=VALUE"),
                                 (["--label", "live_bytes=1", leak], 1, "live_bytes"),
                                 (["--label", "frees=1", leak], 1, "frees"),
                                 (["@bad_list"], 1, "bad_list:1: a label is KEY=VALUE"),
                                 (["@no_list"], 1, "no_list: No such file"),
                                 (["--focus", "nowhere", leak], 1, "no stack"),
                                 (["--snapshots", "--thread", "main", leak], 2, "exclude each other")):
    result = t.run_cairn("export", "-f", "parquet", "-o", "bad.parquet", *arguments)
    t.check_equal(f"{arguments}: status", result.status, status)
    t.check(words in result.err.decode() and not os.path.exists("bad.parquet"), f"{arguments}: {result.err.decode()}")
# a list goes on without what cannot be read, names it, and ends with 1
pathlib.Path("cut.cairn").write_bytes(pathlib.Path(leak).read_bytes()[:5000])
pathlib.Path("missing_list").write_text(f"{leak}\n\nnowhere.cairn\ncut.cairn\n")
for form, name in (("parquet", "part.parquet"), ("csv", "part.csv")):
    result = t.run_cairn("export", "-f", form, "-o", name, "@missing_list")
    said = result.err.decode()
    t.check_equal(f"{form} of a list with bad files: {said}", (result.status, os.path.exists(name)), (1, True))
    t.check("left out: missing_list:3: nowhere.cairn: " in said and "left out: cut.cairn: " in said, said)
pathlib.Path("good_list").write_text(f"{leak}\n")
t.check_equal("what is left of it", pathlib.Path("part.csv").read_bytes(), t.export("@good_list", "csv"))
for option in (["--label", "a=b"], ["--snapshots"]):
    result = t.run_cairn("export", "-f", "csv", *option, leak)
    t.check(result.status == 2 and b"for parquet" in result.err, f"{option} for csv: {result.err}")
hurt = t.run_cairn("export", "-o", "hurt.parquet", "hurt")
t.check_equal("a directory with a bad file", (hurt.status, hurt.err), (0, b"cairn: 1 recording could not be read\n"))
t.check_equal("what is left of it", {row["program"] for row in parquet.read("hurt.parquet")[0]}, {"leak"})


def duckdb():
    """The path for node to find DuckDB at, or None; fetched once."""
    kept = t.BUILD / "tests/duckdb"
    if not (kept / "node_modules/@duckdb").is_dir() and shutil.which("npm"):
        t.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(kept),
               f"@duckdb/node-api@{DUCKDB}"], timeout=120)
    return kept if (kept / "node_modules/@duckdb/node-api").is_dir() else None


ASK = """const { DuckDBInstance } = require(process.argv[2] + '/node_modules/@duckdb/node-api');
(async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const answers = [];
  for (const query of process.argv.slice(3))
    answers.push((await connection.runAndReadAll(query)).getRowObjectsJson());
  console.log(JSON.stringify(answers));
})();"""


def ask(engine, *queries):
    pathlib.Path("ask.js").write_text(ASK)
    answer = t.run(["node", "ask.js", str(engine), *queries])
    if not t.check_equal("duckdb: status", answer.status, 0):
        print(answer.err.decode())
    return json.loads(answer.out)


def queries_of_page():
    """By their headings in docs/howto/fleet-queries.md."""
    found = {}
    for part in (t.SOURCE / "docs/howto/fleet-queries.md").read_text().split("\n## ")[1:]:
        if "```sql\n" in part:
            found[part.splitlines()[0]] = part.split("```sql\n")[1].split("```")[0].replace("fleet.parquet", table)
    return found


engine = duckdb() if t.IS_LONG else None
if engine:
    plain = f"select count(*) n, sum(live_bytes) live, sum(len(frames)) frames, sum(stack % 1000) s from '{table}'"
    [answer], *_ = ask(engine, plain)
    t.check_equal("duckdb: sums", [int(answer[key]) for key in ("n", "live", "frames", "s")],
                  [len(rows), total(rows, "live_bytes"), sum(len(row["frames"]) for row in rows),
                   sum((abs(row["stack"]) % 1000) * (1 if row["stack"] >= 0 else -1) for row in rows)])
    queries = queries_of_page()
    top, growth, release = ask(engine, *queries.values())
    t.check_equal("duckdb: services", {row["service"] for row in top}, set(fleet.SERVICES))
    t.check(len(growth) == len(fleet.SERVICES) * len(fleet.RELEASES), f"duckdb: growth by version: {growth}")
    t.check(release and release[0]["version"] == "1.3", f"duckdb: which release made parse_name grow: {release}")
elif t.IS_LONG:
    t.skip_part("npm cannot fetch DuckDB")
t.finish()
