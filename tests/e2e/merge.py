#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn merge: recordings of several builds become one, which has their sums, by the names of functions, with
the intervals of samples, and which every command reads that reads a recording."""

import collections
import json
import os
import pathlib
import re
import resource
import shutil

import cairn_test as t
import fleet

KEYS = ("peak_bytes", "peak_blocks", "at_exit_bytes", "at_exit_blocks", "allocations", "allocated_bytes",
        "frees", "freed_bytes", "slack_bytes", "temporary")


def merge(*words, **how):
    path = t.fresh_path("merged") + ".cairn"
    result = t.run_cairn("merge", *map(str, words), "-o", path, **how)
    t.check_equal(f"merge {words[:2]}: status", result.status, 0)
    return path, result.err.decode()


def by_names(*reports):
    """Values of all stacks by the names of their functions."""
    sums = collections.defaultdict(lambda: collections.Counter(dict.fromkeys(KEYS, 0)))
    for found in reports:
        for stack in found["stacks"]:
            names = tuple(f.get("function") or f"{os.path.basename(f['module'])}+{f['offset']:#x}" for f in stack["frames"])
            sums[names, stack["incomplete"]].update({key: stack[key] for key in KEYS})
    return {names: {key: values[key] for key in KEYS} for names, values in sums.items()}


def check_sum(what, merged, reports):
    found = t.report(merged, "--all-frames")
    t.check_equal(f"{what}: values by names", by_names(found), by_names(*reports))
    for part, key in (("peak", "bytes"), ("peak", "blocks"), ("at_exit", "bytes"), ("at_exit", "blocks"),
                      ("totals", "allocations"), ("totals", "allocated_bytes"), ("totals", "frees")):
        t.check_equal(f"{what}: {part} {key}", found[part][key], sum(one[part][key] for one in reports))
    return found


made = fleet.make(t.CAIRN, t.SOURCE / "tests/programs/service.c", "fleet", 15, t.environment())
exact = [one["path"] for one in made if not one["is_sampled"]]
reports = [t.report(path, "--all-frames") for path in exact]
merged, said = merge(*exact)
found = check_sum("builds", merged, reports)
t.check_equal("what it says", said, f"cairn: {merged}: {len(exact)} recordings, 3 stacks\n")
t.check("14 recordings, each at its own peak" in found["trust"]["imported"], found["trust"]["imported"])
t.check(found["trust"]["exact"], f"{found['trust']}")

# a list, a directory, a sum of sums
listed, _ = merge("@fleet/list")
inside, _ = merge("fleet/recordings")
t.check_equal("a directory is as its list", by_names(t.report(inside)), by_names(t.report(listed)))
halves = [merge(*exact[:5])[0], merge(*exact[5:])[0]]
check_sum("a sum of sums", merge(*halves)[0], reports)

# lines
lines = {path: {(f["function"], f["line"]) for f in t.report(path)["stacks"][0]["frames"]} for path in exact}
alone, _ = merge("--lines", exact[0], exact[0])
t.check_equal("one build: lines", {(f["function"], f["line"]) for f in t.report(alone)["stacks"][0]["frames"]},
              lines[exact[0]])

# code without a name, of libraries that have the same offsets or not
_, exceptions = t.record(t.program("exceptions"))
_, leak = t.record(t.program("leak"))
several = [t.report(path, "--all-frames") for path in (exceptions, leak, exceptions)]
check_sum("code without names", merge(exceptions, leak, exceptions)[0], several)
check_sum("code without names, twice", merge(merge(exceptions, leak)[0], exceptions)[0], several)

# samples: what is added up without merging has the same values, and no wider intervals than it
sampled = []
for seed in range(1, 5 if t.IS_LONG else 3):
    _, path = t.record(t.program("leak"), options=("--sample", "--rate", "2KiB", "--seed", str(seed)))
    sampled.append(path)
added = json.loads(t.export(sampled[0], "json", *sampled[1:]))
found = t.report(merge(*sampled)[0])
for key in ("peak_bytes", "peak_blocks", "at_exit_bytes", "allocations", "allocated_bytes"):
    t.check_equal(f"samples: {key}", sum(s[key] for s in found["stacks"]), sum(s[key] for s in added["stacks"]))
t.check_equal("samples: calls are exact", found["totals"]["allocations"], added["totals"]["allocations"])


def intervals(stacks, key):
    return sorted((s["peak_bytes"], s[key]["interval_bytes"], s[key]["samples"]) for s in stacks if s["peak_bytes"])


for key in ("peak_estimate", "at_exit_estimate"):
    got, wanted = intervals(found["stacks"], key), intervals(added["stacks"], key)
    t.check_equal(f"samples: {key}: stacks", len(got), len(wanted))
    # of a peak above which an interval is wider, a file has that as variance, and by that its number of samples
    t.check(all(abs(a[1] - b[1]) <= 0.02 * b[1] + 2 and (a[2] >= b[2] if key == "peak_estimate" else a[2] == b[2])
                for a, b in zip(got, wanted)),
            f"samples: {key}: {got} should be {wanted}")
mixed, _ = merge(sampled[0], *exact)
t.check(t.report(mixed)["stacks"][0]["peak_estimate"]["interval_bytes"] > 0, "one sample among many: an interval")

# what has no stack, or not the whole of it; code in Python
_, uncounted = t.record(t.program("leak"), options=("--no-stacks",))
_, small = t.record(t.program("leak"), options=("--min-size", "1000"))
check_sum("stacks that end early", merge(uncounted, small, leak)[0],
          [t.report(path, "--all-frames") for path in (uncounted, small, leak)])
_, python = t.record([t.PYTHON, "-c", "def keep():\n  return ['a' * 9000 for _ in range(50)]\nx = keep()"], python=True)
found = t.report(merge(python, python)[0])
held = [s for s in found["stacks"] if "keep" in t.functions(s)]
t.check(held and not any("_PyEval" in name for s in held for name in t.functions(s)), "python: keep")
twice = t.report(merge(merge(python, python)[0], python)[0])
t.check_equal("python: stacks of a sum of sums", len(by_names(twice)), len(twice["stacks"]))
t.check_equal("python: peak", found["peak"]["bytes"], 2 * t.report(python)["peak"]["bytes"])

# forks: what they inherited stands with the process that allocated it
_, run = t.record(["sh", "-c", f"{t.program('exceptions')[0]}; {t.program('leak')[0]}; true"])
added, found = json.loads(t.export(run, "json")), t.report(merge(run)[0])
for part in ("peak", "at_exit"):
    t.check_equal(f"a run: {part}", (found[part]["bytes"], found[part]["blocks"]),
                  (added[part]["bytes"], added[part]["blocks"]))

# what reads it
old, new = ([one["path"] for one in made if one["release"] == release and not one["is_sampled"]] for release in (2, 3))
before, after = merge(*old)[0], merge(*new)[0]
shown = t.run_cairn("diff", before, after).out.decode()
t.check(re.search(r"KiB +grown\n +parse_name ", shown), f"diff: {shown}")
t.check_equal("open", t.run_cairn("open", "-o", "page.html", before, after).status, 0)
t.check(any("main;handle_request;parse_name" in line for line in t.export(after, "collapsed").decode().splitlines()),
        "collapsed")
for view in ("tree", "functions", "lines", "modules", "leaks", "timeline"):
    t.check_equal(f"--view {view}", t.run_cairn("report", "--view", view, after).status, 0)


def memory_of(count):
    result = t.run_cairn("merge", "--force", "-o", "many.cairn", *([exact[0]] * count))
    t.check_equal(f"{count} recordings: status", result.status, 0)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


few, many = memory_of(2), memory_of(200)
t.check(many < few + 4096, f"200 recordings take {many} KB, 2 of them {few} KB")

# bad input
pathlib.Path("hurt").mkdir()
shutil.copy(leak, "hurt/whole.cairn")
pathlib.Path("hurt/empty.cairn").write_text("no recording")
_, said = merge("hurt")
t.check(said.endswith("; 1 recording could not be read\n"), said)
pathlib.Path("hurt.list").write_text(f"{leak}\nhurt/empty.cairn\nnowhere.cairn\n")
partly = t.run_cairn("merge", "-o", "partly.cairn", "@hurt.list")
said = partly.err.decode()
t.check_equal(f"a list with bad files: {said}", (partly.status, said.endswith("; 2 recordings could not be read\n")), (1, True))
t.check("left out: hurt/empty.cairn: " in said and "left out: hurt.list:3: nowhere.cairn: " in said, said)
t.check_equal("what is left of it", by_names(t.report("partly.cairn", "--all-frames")),
              by_names(t.report(leak, "--all-frames")))
before_bytes = pathlib.Path(merged).read_bytes()
for arguments, status, words in (([], 2, "which recordings?"), ([leak], 2, "where to?"),
                                 ([leak, "-o", merged], 1, "exists"),
                                 (["nowhere.cairn", "-o", "x.cairn"], 1, "nowhere.cairn"),
                                 (["hurt/empty.cairn", "-o", "x.cairn"], 1, "hurt/empty.cairn")):
    result = t.run_cairn("merge", *arguments)
    t.check(result.status == status and words in result.err.decode(), f"{arguments}: {result.status} {result.err}")
t.check(pathlib.Path(merged).read_bytes() == before_bytes and not os.path.exists("x.cairn"), "a file was lost")
t.finish()
