#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several subjects, and the processes of a run, are added up in an export, with the sums of their reports
and in memory that does not grow with their number."""

import json
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

named = t.fresh_path("named") + ".cairn"
t.run_cairn("import", "-o", named, t.export_file(first, "dhat"))
refused = t.run_cairn("export", "-f", "csv", first, named)
t.check(refused.status == 1 and b"has names of its own" in refused.err, f"{refused.err}")
both = t.run_cairn("export", "-f", "csv", "--process", "1", first, second)
t.check_equal("--process with several subjects", both.status, 2)
t.finish()
