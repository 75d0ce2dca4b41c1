#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who frees what: allocating and freeing stacks, and allocating and freeing threads, against a program
that keeps a ledger of both, with threads at the same time, reallocations and a fork; and what does not fit
is said."""

import collections
import re

import cairn_test as t

MAKERS = ["make_0", "make_1", "make_2", "make_3", "resize_it"]
FREERS = ["free_0", "free_1", "free_2", "free_3", "resize_it"]


def record(*arguments, options=("--free-stacks",)):
    path = t.fresh_path("freers") + ".cairn"
    result = t.run([t.CAIRN, "run", "-q", *options, "-o", path, *t.program("freers", *arguments)])
    t.check_equal(f"{arguments}: status", (result.status, result.err), (0, b""))
    return path, result.out.decode().splitlines()


def ledger_of(lines, what):
    """By pid: (one, other) -> (blocks, bytes)."""
    ledger = collections.defaultdict(dict)
    for line in lines:
        pid, kind, *numbers = line.split()
        if kind == what:
            one, other, blocks, size = map(int, numbers)
            ledger[int(pid)][one, other] = (blocks, size)
    return ledger


def index_in(names, frames):
    """Of the innermost frame that is one of them."""
    return next((names.index(f["function"]) for f in frames if f["function"] in names), None)


def recorded_pairs(found):
    pairs = collections.Counter(), collections.Counter()
    frames_of = {stack["id"]: stack["frames"] for stack in found["freeing_stacks"]}
    for stack in found["stacks"]:
        maker = index_in(MAKERS, stack["frames"])
        freers = stack["free_stacks"]
        t.check(sum(f["frees"] for f in freers) <= stack["frees"], f"more than the frees: {stack}")
        for freer in freers if maker is not None else []:
            key = maker, index_in(FREERS, frames_of[freer["id"]])
            pairs[0][key] += freer["frees"]
            pairs[1][key] += freer["bytes"]
    return {key: (pairs[0][key], pairs[1][key]) for key in pairs[0]}


def recorded_threads(found):
    number = {thread["slot"]: int(thread["name"].split("-")[1]) for thread in found["threads"]
              if thread["name"].startswith("worker-")}
    return {(number[p["owner_slot"]], number[p["freer_slot"]]): (p["frees"], p["bytes"])
            for p in found["freed_by"] if p["owner_slot"] in number and p["freer_slot"] in number}


def check_threads(count, options):
    name = f"{count} threads {' '.join(options)}"
    path, lines = record("threads", count, options=options)
    found = t.report(path)
    (wanted,) = ledger_of(lines, "thread").values()
    # the threads' own blocks of libc are freed by nobody of them
    t.check_equal(f"{name}: by threads", recorded_threads(found), wanted)
    if "--free-stacks" in options:
        (wanted,) = ledger_of(lines, "stack").values()
        t.check_equal(f"{name}: by stacks", recorded_pairs(found), wanted)
        t.check(found["trust"]["exact"], f"{name}: {found['trust']}")
        t.check_equal(f"{name}: frees with a stack", sum(f["frees"] for s in found["stacks"]
                                                         for f in s["free_stacks"]),
                      found["totals"]["frees"])
    else:
        t.check("free_stacks" not in found["stacks"][0] and "freeing_stacks" not in found,
                "without the option none are told")
    return path


def check_fork():
    path, lines = record("fork", 3)
    ledger = ledger_of(lines, "stack")
    t.check_equal("processes", len(ledger), 2)
    for pid, wanted in ledger.items():
        found = t.report(path, "--process", str(pid))
        t.check_equal(f"process {pid}", recorded_pairs(found), wanted)
    for view in "frees", "ages":
        refused = t.run_cairn("report", "--view", view, "--process", "all", path)
        t.check(refused.status == 1 and b"each process alone" in refused.err, f"of a run: {refused.err}")


def check_many():
    path, lines = record("many")
    rounds = int(lines[0].split()[2])
    found = t.report(path)
    stacks = t.stacks_through(found, "make_kept")
    frees = sum(stack["frees"] for stack in stacks)
    told = sum(freer["frees"] for stack in found["stacks"] for freer in stack["free_stacks"])
    t.check_equal("many: frees", frees, rounds)
    t.check_equal("many: with their stack", told, 1 << 18)
    t.check(found["trust"]["exact"], f"many: {found['trust']}")
    screen = t.run_cairn("report", "--view", "frees", "--top", "2", path, env={"COLUMNS": "200"}).out
    t.check(re.search(rb" 1[34]\d blocks +where, was not recorded", screen), f"many: {screen[-700:]}")


def check_screen(path):
    screen = t.run_cairn("report", "--view", "frees", "--bytes", path, env={"COLUMNS": "200"})
    t.check_equal("view", screen.status, 0)
    found = t.report(path)
    stack = max((s for s in found["stacks"]), key=lambda s: s["allocated_bytes"])
    text = screen.out.decode().split("freed by")[1]
    frames_of = {stack["id"]: stack["frames"] for stack in found["freeing_stacks"]}
    sums = collections.Counter()
    for freer in stack["free_stacks"]:
        sums[index_in(FREERS, frames_of[freer["id"]])] += freer["bytes"]
    for number, size in sums.items():
        t.check(re.search(rf" {size}(?: B)? in +[\d,]+ blocks? +{FREERS[number]} ", text),
                f"{FREERS[number]} with {size} in {text[:800]}")
    one = t.run_cairn("report", "--view", "frees", "--focus", "make_2", "--top", "1", path).out
    t.check_equal("frames of one", [one.count(name.encode()) for name in ("make_2", "free_3")], [2, 1])
    plain = t.record(t.program("leak"))[1]
    refused = t.run_cairn("report", "--view", "frees", plain)
    t.check(refused.status == 1 and b"--free-stacks" in refused.err, f"not recorded: {refused.err}")


def check_refusals():
    for other in ("--sample", "--no-stacks", "--python"):
        refused = t.run_cairn("run", "--free-stacks", other, "true")
        t.check(refused.status == 2 and b"--free-stacks" in refused.err and other.encode() in refused.err,
                f"with {other}: {refused.status} {refused.err}")


check_screen(check_threads(4, ("--free-stacks",)))
check_threads(7, ("--free-stacks", "--ages"))
check_threads(5, ())
check_fork()
check_many()
check_refusals()
t.finish()
