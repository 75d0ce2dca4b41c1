#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Aligned blocks: how many, to what, and what that took beyond plain blocks, against a program that works it
out from malloc_usable_size and from where its blocks lie; in all ways to record, and with another allocator."""

import csv
import os

import cairn_test as t

ALIGNMENTS = {"by_posix": {64: 300, 256: 100}, "by_aligned_alloc": {4096: 50}, "by_memalign": {128: 200},
              "by_valloc": {4096: 30}, "by_new": {64: 150}, "by_large": {64: 20}}
JEMALLOC = next((path for path in (f"/usr/lib/{machine}-linux-gnu/libjemalloc.so.2" for machine in
                                   ("x86_64", "aarch64")) if os.path.exists(path)), None)


def truth_of(result):
    """calls, slack and waste by function."""
    lines = [line.split() for line in result.out.decode().splitlines()]
    return {name: tuple(map(int, numbers)) for name, *numbers in lines}


def aligned_of(found, function):
    """What its stacks say together: calls by alignment, slack and waste."""
    calls, slack, waste = {}, 0, 0
    for stack in t.stacks_through(found, function):
        aligned = stack.get("aligned")
        if not aligned:
            continue
        for one in aligned["alignments"]:
            calls[one["alignment"]] = calls.get(one["alignment"], 0) + one["calls"]
        t.check_equal(f"{function}: calls", aligned["calls"], sum(one["calls"] for one in aligned["alignments"]))
        t.check_equal(f"{function}: largest", aligned["largest_alignment"],
                      max(one["alignment"] for one in aligned["alignments"]))
        slack += aligned["slack_bytes"] or 0
        waste += aligned["waste_bytes"] or 0
    return calls, slack, waste


def check_numbers(what, *options):
    result, path = t.record(t.program("aligned"), options=options)
    found, truth = t.report(path), truth_of(result)
    for function, (calls, slack, waste) in truth.items():
        got = aligned_of(found, function)
        t.check_equal(f"{what} {function}", got,
                      (ALIGNMENTS[function], slack, waste) if function in ALIGNMENTS else ({}, 0, 0))
        stacks = t.stacks_through(found, function)
        t.check(sum(s["allocations"] for s in stacks) == calls and waste >= 0, f"{what} {function}: {stacks}")
        t.check_equal(f"{what} {function}: all slack", sum(s["slack_bytes"] for s in stacks), slack)
        if function in ALIGNMENTS:
            t.check_equal(f"{what} {function}: waste", sum(s["alignment_waste_bytes"] for s in stacks), waste)
    wasted = sum(waste for function, (_, _, waste) in truth.items() if function in ALIGNMENTS)
    t.check_equal(f"{what}: all waste", found["totals"]["alignment_waste_bytes"], wasted)
    t.check(wasted > 0 and found["trust"]["lost"] == {}, f"{what}: {wasted}, {found['trust']}")
    return path, truth


def check_screens(path, truth):
    shown = t.run_cairn("report", "--view", "sizes", "--top", "0", path).out.decode()
    t.check("aligned to 64 B × 300: " in shown and "aligned to 4.0 KiB × 50: 0 B" in shown, f"sizes: {shown}")
    t.check("such a call needs up to 4.0 KiB more in one piece" in shown, f"sizes: {shown}")
    ranked = t.run_cairn("report", "--by", "alignment", path).out.decode()
    most = max((waste, function) for function, (_, _, waste) in truth.items() if function in ALIGNMENTS)[1]
    first = next((line for line in ranked.splitlines() if "by_" in line), "")
    t.check(most in first and "lost to alignment" in ranked, f"--by alignment: {ranked[:900]}")
    rows = list(csv.DictReader(t.export(path, "csv").decode().splitlines()))
    found = t.report(path)
    t.check_equal("csv", sum(int(row["alignment_waste_bytes"]) for row in rows),
                  found["totals"]["alignment_waste_bytes"])


def check_elsewhere():
    """Other allocators: the calls are known, what they took is not, and nothing is made up."""
    _, path = t.record(t.program("aligned"), env={"LD_PRELOAD": JEMALLOC})
    found = t.report(path)
    for function, alignments in ALIGNMENTS.items():
        t.check_equal(f"jemalloc {function}", aligned_of(found, function), (alignments, 0, 0))
    t.check(all(s["aligned"]["waste_bytes"] is None for s in found["stacks"] if "aligned" in s), "jemalloc: waste")
    shown = t.run_cairn("report", "--view", "sizes", "--top", "0", path).out.decode()
    t.check("what that took is known of glibc alone" in shown, f"jemalloc: {shown}")


check_screens(*check_numbers("exact"))
check_numbers("ages", "--ages")
check_numbers("sizes with stacks", "--min-size", "1")
sampled = t.report(t.record(t.program("aligned"), options=["--sample", "--rate", "1KiB"])[1])
t.check(not any("aligned" in stack for stack in sampled["stacks"]), "sampled: alignments of some blocks")
if JEMALLOC:
    check_elsewhere()
t.finish()
