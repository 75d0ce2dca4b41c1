#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn export -f firefox: a profile of the documented form, whose native allocations add up to what the report says
of the peak, of each snapshot, of the end, and of all that was allocated."""

import collections
import json

import cairn_test as t
import firefox_profile


def by_names(recording, key, *options):
    sums = collections.Counter()
    for line in map(json.loads, t.export(recording, "ndjson", *options).splitlines()):
        sums[tuple(line["frames"])] += line[key]
    return +sums


def check_profile(what, recording, *options):
    profile = firefox_profile.Profile(t.export_file(recording, "firefox", *options))
    t.check_equal(f"{what}: retained", +profile.retained(), by_names(recording, "at_exit_bytes", *options))
    t.check_equal(f"{what}: allocated", +profile.allocated(), by_names(recording, "allocated_bytes", *options))
    t.check_equal(f"{what}: at the peak", profile.at_peak(), sum(by_names(recording, "peak_bytes", *options).values()))
    return profile


_, leak = t.record(t.program("leak"), options=("--snapshot-every", "100000"))
profile = check_profile("leak", leak)
found = t.report(leak)
taken = [time for time, name in profile.moments if name == "snapshot"]
t.check(len(taken) > 1, f"snapshots: {profile.moments}")
shown = t.report(leak, "--at", f"{taken[0]:.6f}ms")
t.check_equal("a snapshot", sum(profile.retained(taken[0]).values()), sum(s.get("at_bytes", 0) for s in shown["stacks"]))
counter = profile.data["counters"][0]["samples"]["count"]
heights = [sum(counter[:i + 1]) for i in range(len(counter))]
t.check(0 < max(heights) <= found["peak"]["bytes"], f"the counter rises to {max(heights)}")
t.check_equal("libraries", {lib["codeId"] for lib in profile.data["libs"]},
              {module["build_id"] for module in json.loads(t.export(leak, "json"))["modules"]})
t.check("exact" in profile.data["meta"]["extra"][0]["entries"][0]["value"], "trust")
check_profile("leak, all frames", leak, "--all-frames")
_, threads = t.record(t.program("threads", "pipe"))
check_profile("threads", threads)
check_profile("a part", threads, "--focus", "main")
_, exceptions = t.record(t.program("exceptions"))
check_profile("exceptions", exceptions)
if (t.BUILD / "tests/large_recording").exists():
    t.run([str(t.BUILD / "tests/large_recording"), "large.cairn", "5000"])
    check_profile("a large one", "large.cairn")
t.finish()
