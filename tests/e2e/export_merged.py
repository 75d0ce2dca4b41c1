#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several subjects, and the processes of a run, are added up in an export, with the sums of their reports
and in memory that does not grow with their number."""

import json
import re
import resource

import cairn_test as t


def check_sum(what, subjects, reports, processes):
    data = json.loads(t.export(subjects[0], "json", *subjects[1:]))
    for key in ("allocations", "frees", "allocated_bytes", "freed_bytes", "failed"):
        t.check_equal(f"{what}: {key}", data["totals"][key],
                      sum(found["totals"][key] for found in reports))
    for part, key in (("peak", "bytes"), ("peak", "blocks"), ("at_exit", "bytes"),
                      ("at_exit", "blocks")):
        t.check_equal(f"{what}: {part} {key}", data[part][key],
                      sum(found[part][key] for found in reports))
    for key in ("allocations", "peak_bytes", "at_exit_bytes"):
        t.check_equal(f"{what}: {key} of the stacks", sum(s[key] for s in data["stacks"]),
                      sum(s[key] for found in reports for s in found["stacks"]))
    t.check_equal(f"{what}: processes", data["processes"], processes)
    ids = {stack["id"] for found in reports for stack in found["stacks"]}
    t.check_equal(f"{what}: stacks", {stack["id"] for stack in data["stacks"]}, ids)
    text = t.export(subjects[0], "speedscope", *subjects[1:]).decode()
    t.check(f"{processes} processes, each at its own peak" in text, f"{what}: trust")


_, first = t.record(t.program("exceptions"))
_, second = t.record(t.program("leak"))
check_sum("two programs", [first, second], [t.report(first), t.report(second)], 2)
check_sum("the same twice", [first, first], [t.report(first)] * 2, 2)

_, run = t.record(["sh", "-c", f"{t.program('exceptions')[0]}; {t.program('leak')[0]}; true"])
whole = t.report(run)
processes = [process for process in whole["processes"] if process["file"]]
t.check(len(processes) > 1, f"a run of {len(processes)} processes")
check_sum("a run", [run], processes, len(processes))


def memory_of(count):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result = t.run([t.CAIRN, "export", "-f", "pprof", *([first] * count)])
    t.check_equal(f"{count} recordings: status", result.status, 0)
    return max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


few, many = memory_of(2), memory_of(100)
t.check(many < few + 4096, f"100 recordings take {many} KB, 2 of them {few} KB")

# recordings that bring their names: of an import, and of a run that keeps all names
named = t.fresh_path("named") + ".cairn"
t.run_cairn("import", "-o", named, t.export_file(first, "dhat"))
imported = t.report(named)
data = json.loads(t.export(named, "json", named, first))
t.check_equal("imported, twice, and recorded: peak", data["peak"]["bytes"],
              2 * imported["peak"]["bytes"] + t.report(first)["peak"]["bytes"])
lines = t.export(named, "collapsed", named).decode().splitlines()
t.check_equal("imported twice: stacks", len(lines),
              len(t.export(named, "collapsed").decode().splitlines()))
t.check(any("main" in line for line in lines), f"imported twice: names: {lines[:3]}")
portable = t.fresh_path("portable") + ".cairn"
t.run_cairn("run", "-q", "--symbols", "all", "-o", portable, "sh", "-c",
            f"{t.program('exceptions')[0]}; {t.program('leak')[0]}; true")


def own_lines(subject):
    """Collapsed stacks of the test's programs: those of the shell are not the same twice."""
    return sorted(line for line in t.export(subject, "collapsed").decode().splitlines()
                  if "main" in line and "sh+" not in line)


t.check_equal("a run with all names", own_lines(portable), own_lines(run))
t.check(len(own_lines(run)) > 5, f"stacks of the run: {own_lines(run)}")

# views of a run are of all its processes
for view in ("stacks", "tree", "functions", "files", "threads", "leaks"):
    shown = t.run_cairn("report", "--view", view, run)
    t.check_equal(f"--view {view} of a run: status", shown.status, 0)
    t.check(f"all {len(processes)} processes" in shown.out.decode(), f"--view {view}: {shown.out}")
shown = t.run_cairn("report", "--view", "functions", "--bytes", "--top", "0", run).out.decode()
own = sum(int(match[1].replace(",", "")) for match in
          re.finditer(r"^ *[\d.]+ % +([\d,]+) +[\d.]+ % +[\d,]+  \S", shown, re.M))
t.check_equal("functions of a run add up", own, sum(one["peak"]["bytes"] for one in processes))
narrowed = t.report(run, "--focus", "^main$")
for whole_one, one in zip(whole["processes"], narrowed["processes"]):
    t.check_equal(f"--focus of {one['file']}", [s["id"] for s in one["stacks"]],
                  [s["id"] for s in whole_one["stacks"] if "main" in (f["function"] for f in s["frames"])])
nowhere = t.run_cairn("report", "--json", "--focus", "nowhere_at_all", run)
t.check(nowhere.status == 1 and b"matches nothing" in nowhere.err, f"nowhere: {nowhere.err}")
both = t.run_cairn("export", "-f", "csv", "--process", "1", first, second)
t.check_equal("--process with several subjects", both.status, 2)
t.finish()
