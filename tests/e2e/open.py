#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn open` without a browser: the page's data are those of the report, files are not overwritten, what
cannot be read is an error, $BROWSER is started. tests/e2e/open_page.py looks at the page itself."""

import os
import pathlib
import stat

import cairn_test as t
from page_data import read_page

CODE_BUDGET = 195_000
COLUMNS = {"peak": "stack.peak_bytes", "exit": "stack.at_exit_bytes", "allocated": "stack.allocated_bytes",
           "calls": "stack.allocations"}


def make_page(*arguments, status=0):
    path = t.fresh_path("page") + ".html"
    result = t.run_cairn("open", "-o", path, *arguments)
    t.check_equal(f"open {arguments}: status", result.status, status)
    t.check_equal(f"open {arguments}: file", os.path.exists(path), status == 0)
    return path, result


def check_sums(what, recording, *arguments):
    found = t.report(recording)
    path, _ = make_page(recording, *arguments)
    code, chunks = read_page(path)
    t.check(code <= CODE_BUDGET, f"{what}: {code} bytes of code")
    columns = dict(chunks)
    for measure, wanted in t.sums_by_measure(found).items():
        t.check_equal(f"{what}: {measure}", sum(columns[COLUMNS[measure]]), wanted)
    t.check_equal(f"{what}: stacks", len(columns["stack.node"]), len(found["stacks"]))
    t.check_equal(f"{what}: totals", columns["profile"]["totals"], found["totals"])
    names = {frame.get("function") for stack in found["stacks"] for frame in stack["frames"]}
    t.check(names - {None} <= set(columns["texts"]), f"{what}: lacks {names - set(columns['texts'])}")
    return path, columns


_, leak = t.record(t.program("leak"))
_, threads = t.record(t.program("threads", "pipe"))
page, data = check_sums("leak", leak)
_, cells = check_sums("threads", threads)
for thread in t.report(threads)["threads"]:
    t.check_equal(f"what {thread['name']} allocated",
                  sum(size for size, slot in zip(cells["cell.allocated"], cells["cell.slot"]) if slot == thread["slot"]),
                  thread["allocated_bytes"])
flow = [one for one in cells["findings"] if one["kind"] == "freed_by"]
t.check(flow and (flow[0]["from"], flow[0]["to"]) == ("producer", "consumer"), f"who frees what: {cells['findings']}")
for habit, kind in (("sieve", "free"), ("parser", "temporary")):  # what the summary finds, the page finds
    _, recording = t.record(t.program("habits", habit))
    _, chunks = read_page(make_page(recording)[0])
    found = [one for one in dict(chunks)["findings"] if one["kind"] == kind]
    t.check(found and (found[0]["bytes"] or found[0]["count"]), f"{habit}: no {kind} in {dict(chunks)['findings']}")
_, recording = t.record(t.program("findings", "reuse"), options=["--free-stacks"])
_, chunks = read_page(make_page(recording)[0])
first = dict(chunks)["findings"][0]
t.check(first["text"].startswith("greet findings.c:") and "24,000 of 24,001 calls" in first["saves"] and
        first["page"] == "docs/howto/findings.md#freed-where-it-was-allocated", f"in the tool's words: {first}")
t.check(any(shape["sizes"] == [[50000, 3]] for shape in data["shapes"]) and
        any(shape["sizes"] == [[24, 100]] for shape in data["shapes"]), f"sizes: {data['shapes']}")
sources = data["sources"]
lines = [line for pieces in sources.values() for piece in pieces for line in piece[1:]]
t.check(any(path.endswith("leak.c") for path in sources) and any("malloc" in line for line in lines),
        f"lines of leak.c: {list(sources)}")

t.run_cairn("run", "-q", "--sample", "--rate", "1KiB", "-o", "sampled.cairn", "--", *t.program("leak"))
_, chunks = read_page(make_page("sampled.cairn")[0])
columns = dict(chunks)
t.check("sampling" in columns["profile"] and len(columns["stack.allocated_interval"]) == len(columns["stack.node"])
        and any(columns["stack.allocated_interval"]), "intervals of a sample")
t.check(not any(shape["sizes"] for shape in columns["shapes"]), "a sample tells no sizes")

_, chunks = read_page(make_page(leak, threads)[0])
t.check_equal("two recordings", [content["role"] for name, content in chunks if name == "profile"],
              ["before", "after"])
t.check_equal("three recordings", make_page(leak, leak, leak, status=2)[1].out, b"")

t.run([str(t.BUILD / "tests/snapshots_recording"), "snapshots.cairn"])
_, chunks = read_page(make_page("snapshots.cairn@780ms", "snapshots.cairn@warm")[0])
sides = [content for name, content in chunks if name == "profile"]
held = [content for name, content in chunks if name == "stack.at"]
for side, values, snapshot in zip(sides, held, ("780ms", "warm")):
    told = t.report("snapshots.cairn", "--at", snapshot)["stacks"]
    t.check_equal(f"live at {snapshot}", (sorted(values), side["at_bytes"]),
                  (sorted(stack["at_bytes"] for stack in told), sum(stack["at_bytes"] for stack in told)))
t.check('"warm"' in sides[1]["at_text"], f"which snapshot: {sides[1]['at_text']}")
_, chunks = read_page(make_page("snapshots.cairn@exit", "snapshots.cairn")[0])
t.check("peak" in [content["at_text"] for name, content in chunks if name == "profile"][1], "beside a snapshot: the peak")
_, chunks = read_page(make_page("snapshots.cairn@3.9s")[0])
t.check_equal("one snapshot", sum(dict(chunks)["stack.at"]), 8 << 20)
t.check(b'"never"' in make_page("snapshots.cairn@never", status=1)[1].err, "a snapshot that is none")

result, tree = t.record(["sh", "-c", " ".join(t.program("leak")) + "; " + " ".join(t.program("threads", "pipe")) + "; true"])
t.check(os.path.isdir(tree), "a run of several processes")
_, chunks = read_page(make_page(tree)[0])
t.check("rows" in dict(chunks)["run"] and chunks[0][0] == "run", "a run starts with its table")
_, chunks = read_page(make_page(tree, "--process", "leak")[0])
t.check(b"--process" in make_page(f"{tree}@1s", status=1)[1].err, "a snapshot of a run")
t.check_equal("a process of it", [content["role"] for name, content in chunks if name == "profile"], ["one"])

result = t.run_cairn("open", "-o", page, leak)
t.check_equal("a file that is there", (result.status, b"--force" in result.err), (1, True))
t.check_equal("--force", t.run_cairn("open", "--force", "-o", page, leak).status, 0)
t.check_equal("--force alone", t.run_cairn("open", "--force", leak).status, 2)
t.check_equal("to stdout", t.run_cairn("open", "-o", "-", leak).out[:15], b"<!doctype html>")
pathlib.Path("no.cairn").write_bytes(b"nothing")
make_page("no.cairn", status=1)
make_page("none.cairn", status=1)
half = pathlib.Path("half.cairn")
half.write_bytes(pathlib.Path(t.record_alone(t.program("leak"))[1]).read_bytes()[:-1000])
path, told = make_page(str(half))
_, chunks = read_page(path)
t.check(b"half.cairn: " in told.err and b"cut off" in told.err and told.err.count(b"\n") == 1, f"half a recording: {told.err}")
t.check_equal("a whole recording says nothing", make_page(leak)[1].err, b"")
t.check("cut off" in dict(chunks)["profile"]["trust_line"], "half a recording says so")
if t.run(["/bin/true"]).status == 0:
    _, empty = t.record(["/bin/true"])
    if os.path.exists(empty):
        read_page(make_page(empty)[0])

browser = pathlib.Path("browser")
browser.write_text('#!/bin/sh\necho "$1" > shown\n')
browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
here = {"BROWSER": str(browser.resolve()), "TMPDIR": os.getcwd()}
result = t.run_cairn("open", leak, env=here)
shown = pathlib.Path("shown").read_text().strip()
t.check_equal("$BROWSER", (result.status, shown in result.err.decode()), (0, True))
t.check_equal("who may read it", stat.S_IMODE(os.stat(shown).st_mode), 0o600)
read_page(shown)
pathlib.Path("shown").unlink()
result = t.run([t.CAIRN, "run", "-q", "--open", "-o", "opened.cairn", "--", *t.program("leak")], env=here)
t.check("leak" in read_page(pathlib.Path("shown").read_text().strip())[1][0][1]["program"], "run --open")
result = t.run_cairn("open", leak, env={"BROWSER": "/nonexistent", "TMPDIR": os.getcwd()})
t.check_equal("no browser", (result.status, b".html" in result.err), (1, True))
t.check_equal("run --open --exec", t.run_cairn("run", "--open", "--exec", "true").status, 2)
t.finish()
