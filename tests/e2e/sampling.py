#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --sample against the truth: what the program itself says it holds, and the exact recording of the
same program. Totals are equal, estimates right on average over seeds and within their intervals about as
often as promised, and the same seed gives the same samples."""

import csv
import glob
import io
import json
import math
import os
import re
import signal
import subprocess

import cairn_test as t

RATE = "64KiB"
SEEDS = range(1, 13 if t.IS_LONG else 7)


def record(argv, *options, env=None):
    path = t.fresh_path("sampled") + ".cairn"
    result = t.run([t.CAIRN, "run", "-q", "--sample", *options, "-o", path, "--", *argv], env=env)
    t.check_equal(f"{argv[1:]} {options}: status", (result.status, result.err), (0, b""))
    return result, path


def truth_of(result):
    return {name.decode(): (int(size), int(blocks))
            for name, size, blocks in map(bytes.split, result.out.splitlines())}


def left_of(found, site):
    """What the stacks through `site` hold at the end: bytes, their interval, blocks."""
    stacks = t.stacks_through(found, site)
    variance = sum((s["at_exit_estimate"]["interval_bytes"] / 1.96) ** 2 for s in stacks)
    return (sum(s["at_exit_bytes"] for s in stacks), 1.96 * math.sqrt(variance),
            sum(s["at_exit_blocks"] for s in stacks))


class Site:
    """The estimates of one site over the seeds."""

    def __init__(self):
        self.errors, self.block_errors, self.inside = [], [], 0

    def add(self, estimate, truth):
        found_bytes, interval, blocks = estimate
        self.errors.append(found_bytes - truth[0])
        self.block_errors.append(blocks - truth[1])
        self.inside += abs(found_bytes - truth[0]) <= interval + 64

    def check(self, name):
        for what, errors in ("bytes", self.errors), ("blocks", self.block_errors):
            mean = sum(errors) / len(errors)
            spread = math.sqrt(sum(error * error for error in errors) / len(errors) ** 2)
            t.check(abs(mean) <= 3 * spread + 64, f"{name}: {what} off by {mean:.0f} (+- {spread:.0f})")


def estimates(what, *arguments):
    """One program, all seeds: totals, means, intervals. The seeds are fixed: no run differs from another."""
    argv = t.program("sampled", what, *arguments)
    plain, exact_path = t.record(argv)
    exact, truth = t.report(exact_path), truth_of(plain)
    sites = {name: Site() for name in truth}
    for seed in SEEDS:
        _, path = record(argv, "--rate", RATE, "--seed", str(seed))
        found = t.report(path)
        for name in "allocations", "allocated_bytes", "failed":
            t.check_equal(f"{what}: {name}", found["totals"][name], exact["totals"][name])
        t.check_equal(f"{what}: lost", found["trust"]["lost"], {})
        t.check(not found["trust"]["exact"] and found["sampling"]["rate_bytes"] == 65536, f"{what}: {found['sampling']}")
        for name, site in sites.items():
            site.add(left_of(found, name), truth[name])
    for name, site in sites.items():
        site.check(f"{what} {name}")
    inside, runs = sum(site.inside for site in sites.values()), len(SEEDS) * len(sites)
    t.check(inside >= 0.85 * runs, f"{what}: {inside} of {runs} intervals hold the truth")
    print(f"{what}: {inside} of {runs} intervals hold the truth")
    return truth, exact


def trials(found, truth):
    """Each stack of `together` by its depth: how far the estimate is off, and whether its interval holds the truth."""
    variances, sums = {}, {}
    for stack in found["stacks"]:
        depth = sum(frame["function"] == "deeper" for frame in stack["frames"])
        if depth:
            interval = stack["at_exit_estimate"]["interval_bytes"] / 1.96
            variances[depth] = variances.get(depth, 0) + interval ** 2
            sums[depth] = sums.get(depth, 0) + stack["at_exit_bytes"]
    depths = range(1, 65)
    errors = [sums.get(depth, 0) - truth for depth in depths]
    inside = [abs(error) <= 1.96 * math.sqrt(variances.get(depth, 0)) + 64 for depth, error in zip(depths, errors)]
    return errors, inside


def coverage(name, runs, *options):
    """Several threads at once, 64 stacks a run: right on average, and about 95 of 100 intervals hold the truth. Where
    the rate follows the samples or the clock no run is like another, so the bounds are wider than for a simulation
    (tests/unit/runtime/sample/estimate_test.c), which has exactly 93 to 97."""
    argv, errors, inside, adapted = t.program("sampled", "together", 3), [], [], 0
    truth = truth_of(t.run(argv))["deeper"][0]
    for seed in range(1, runs + 1):
        found = t.report(record(argv, *options, "--seed", str(seed))[1])
        adapted += found["sampling"]["thinned"] + found["sampling"]["slowed"]
        more, held = trials(found, truth)
        errors += more
        inside += held
    mean, spread = sum(errors) / len(errors), math.sqrt(sum(e * e for e in errors)) / len(errors)
    t.check(abs(mean) <= 4 * spread, f"{name}: off by {mean:.0f} (+- {spread:.0f})")
    share = sum(inside) / len(inside)
    t.check(0.92 <= share <= 0.99, f"{name}: {share:.3f} of {len(inside)} intervals hold the truth")
    print(f"{name}: {share:.3f} of {len(inside)} intervals hold the truth, off by {mean:.0f} +- {spread:.0f}")
    return adapted


def same_bytes():
    """The same program, the same seed: the same samples in every thread, so the same file, byte for byte."""
    for what, *arguments in ["sizes"], ["threads"], ["growth"], ["together", 3]:
        argv = t.program("sampled", what, *arguments)
        first, second, other = (t.export(record(argv, "--rate", RATE, "--seed", seed)[1], "csv", "--by", "allocated")
                                for seed in ("7", "7", "8"))
        # what was held at the peak of several threads depends on which was first
        if what == "together":
            first, second = ([{k: v for k, v in row.items() if not k.startswith("peak")}
                              for row in csv.DictReader(io.StringIO(text.decode()))] for text in (first, second))
        t.check(first == second, f"{what}: the same seed, and another recording")
        t.check(first != other, f"{what}: another seed, and the same recording")


def same_seed():
    argv = t.program("sampled", "sizes")
    first, second, other = (t.report(record(argv, "--seed", seed)[1]) for seed in ("7", "7", "8"))
    t.check_equal("same seed", [s["peak_bytes"] for s in first["stacks"]],
                  [s["peak_bytes"] for s in second["stacks"]])
    t.check(first["at_exit"] != other["at_exit"], "another seed: the same samples")
    t.check_equal("seed told", first["sampling"]["seed"], 7)


def large_blocks_are_exact():
    """Where no smaller block has a stack; where one may have, at most so much was missed."""
    argv, rate = t.program("sampled", "sizes"), 512 << 10
    found = t.report(record(argv, "--min-size", "512KiB")[1])
    t.check_equal("blocks above the rate", left_of(found, "make_huge"), (40 << 20, 0.0, 10))
    found = t.report(record(argv)[1])
    [huge] = [s for s in t.stacks_through(found, "make_huge") if s["at_exit_blocks"]]
    sure = huge["at_exit_estimate"]
    t.check_equal("blocks above the rate", (huge["at_exit_bytes"], huge["at_exit_blocks"], sure["samples"],
                                            sure["block_samples"], sure["certain_samples"]), (40 << 20, 10, 0, 0, 10))
    t.check(3.6 * rate < sure["interval_bytes"] < 3.7 * rate, f"what may have been missed: {sure}")


def mixed_sizes():
    """Large blocks are certain, and say nothing of the small ones beside them: these are never exact, and no interval goes
    beyond what was allocated in all. Seeds are fixed."""
    argv = t.program("sampled", "mixed")
    truth_bytes, truth_blocks = truth_of(t.run(argv))["make_mixed"]
    held_bytes = held_blocks = 0
    for seed in SEEDS:
        _, path = record(argv, "--rate", "16KiB", "--seed", str(seed))
        found = t.report(path)
        [stack] = t.stacks_through(found, "make_mixed")
        sure, totals = stack["at_exit_estimate"], found["totals"]
        t.check_equal("large ones", sure["certain_samples"], 21)
        t.check(sure["samples"] < 21, f"samples of small ones: {sure}")
        t.check(sure["interval_bytes"] > 0 and sure["interval_blocks"] > 0, f"mixed sizes are exact: {sure}")
        t.check(stack["at_exit_bytes"] >= 21 * 60000, f"less than is certain: {stack}")
        t.check(sure["interval_blocks"] <= max(totals["allocations"], stack["at_exit_blocks"]), f"more than all: {sure}")
        t.check(sure["interval_bytes"] <= 1.6 * totals["allocated_bytes"], f"more than all: {sure}")
        held_bytes += abs(stack["at_exit_bytes"] - truth_bytes) <= sure["interval_bytes"]
        held_blocks += abs(stack["at_exit_blocks"] - truth_blocks) <= sure["interval_blocks"]
        shown = t.run_cairn("report", "--by", "exit", "--focus", "make_mixed", path).out.decode()
        t.check("certain" in shown and not re.search(r"± -|\(-", shown), f"seed {seed}: {shown}")
    t.check_equal("intervals that hold the truth", (held_bytes, held_blocks), (len(SEEDS), len(SEEDS)))


def nothing_above_all():
    """Each sample stands for more than the program ever allocated: no figure says more than that, and none says 0 without
    what may have been missed."""
    argv, shown, paths = t.program("sampled", "mixed"), [], []
    for seed in "1", "3", "5", "6":
        _, path = record(argv, "--rate", "16MiB", "--seed", seed)
        text = t.run_cairn("report", "--bytes", path).out.decode()
        found = re.search(r"peak heap +(\d+)( \(up to \d+\))?.*allocated +(\d+)", text, re.DOTALL)
        peak, allocated = int(found[1]), int(found[3])
        t.check(peak <= allocated and (peak or found[2]), f"seed {seed}: {text}")
        t.check(peak or "live or free" in text, f"what is live was not seen: {text}")
        shown.append(peak)
        paths.append((peak, allocated, path))
    (_, before, first), (_, after, second) = sorted(paths)[-2:]
    text = t.run_cairn("diff", "--bytes", first, second).out.decode()
    found = re.search(r"peak heap +(\d+) → (\d+)", text)
    t.check(found and int(found[1]) <= before and int(found[2]) <= after, f"a difference of more than all: {text}")
    t.check(0 in shown and max(shown) > 0, f"samples and none: {shown}")


def bounded_samples():
    argv = t.program("sampled", "sizes")
    inside = 0
    for seed in SEEDS:
        _, path = record(argv, "--rate", "4KiB", "--max-samples", "500", "--seed", str(seed))
        found = t.report(path)
        t.check(found["sampling"]["thinned"] > 0 and found["sampling"]["rate_most_bytes"] > 4096,
                f"never thinned: {found['sampling']}")
        t.check(found["sampling"]["at_exit_estimate"]["samples"] <= 500, "more samples than allowed")
        interval = found["sampling"]["at_exit_estimate"]["interval_bytes"]
        inside += abs(found["at_exit"]["bytes"] - (140 << 20)) <= interval + (64 << 10)
    t.check(inside >= 0.75 * len(SEEDS), f"bounded: {inside} of {len(SEEDS)} intervals hold the truth")


def children():
    """Each child knows what it inherited and what it did; no two have the same random numbers."""
    argv = t.program("sampled", "fork", 3)
    truth = truth_of(t.run(argv))
    _, path = record(argv, "--rate", RATE, "--seed", "3", env={"CAIRN_KEEP": "1"})
    found = [t.report(child) for child in sorted(glob.glob(os.path.join(path, "*.cairn")))]
    forks = [f for f in found if t.stacks_through(f, "in_child")]
    t.check_equal("children", len(forks), 3)
    for fork in forks:
        for name in "in_child", "make_small":
            got, interval, _ = left_of(fork, name)
            t.check(abs(got - truth[name][0]) <= 2 * interval, f"{name}: {got}, should be {truth[name][0]}")
    t.check_equal("different children", len({f["at_exit"]["bytes"] for f in forks}), 3)


def sums_agree():
    """Exports carry the same estimates."""
    _, path = record(t.program("sampled", "sizes"), "--rate", RATE, "--seed", "5")
    found = t.report(path)
    wanted = sum(s["peak_bytes"] for s in found["stacks"])
    lines = t.export(path, "collapsed").splitlines()
    t.check_equal("collapsed", sum(int(line.rsplit(b" ", 1)[1]) for line in lines), wanted)
    t.check_equal("peak", found["peak"]["bytes"], wanted)


def screens():
    _, path = record(t.program("sampled", "sizes"), "--seed", "5")
    for arguments in [], ["--view", "functions"], ["--view", "tree", "--print"], ["--view", "leaks"]:
        shown = t.run_cairn("report", *arguments, path).out.decode()
        t.check("sampled, 1 in 512 KiB" in shown and "exact" in shown, f"{arguments}: {shown[:500]}")
        t.check("\u00b1" in shown, f"{arguments}: no interval: {shown[:500]}")
    tree = t.run_cairn("report", "--view", "tree", "--print", path).out.decode()
    figured = [line for line in tree.splitlines() if re.match(r" *(\d+|\d\.\d) %", line)]
    t.check(figured and all(re.search(r"% +\S+ \w+  (± \S+ %, |\+ \S+ %, |exact |\d+ samples?, unreliable)", line)
                            for line in figured), f"every line of the tree says how sure it is: {tree[:800]}")
    for view in "ages", "temporary":
        shown = t.run_cairn("report", "--view", view, path)
        t.check(shown.status == 1 and b"samples" in shown.err, f"{view}: {shown.status} {shown.err!r}")
    few = t.run_cairn("report", "--by", "exit", "--focus", "make_tiny",
                      record(t.program("sampled", "sizes"), "--rate", "12MiB", "--seed", "5")[1]).out
    t.check(b"unreliable" in few, f"few samples: {few.decode()[:800]}")


def threads():
    """A thread that is alone has an interval; of those that followed each other only the sum is known, with its own
    interval. More seems to be left than was allocated: nothing was freed, then."""
    _, alone = record(t.program("sampled", "sizes"), "--seed", "5")
    shown = t.run_cairn("report", "--view", "threads", alone).out.decode()
    t.check(re.search(r"sampled \d+\n  at the peak \u00b1 \S+ MiB \([\d,]+ samples(?:, [\d,]+ certain)?\)(?: \u00b7|\n ) at the end \u00b1 ", shown),
            f"one thread: {shown}")
    few = t.run_cairn("report", "--view", "threads",
                      record(t.program("sampled", "growth"), "--rate", "64MiB", "--seed", "5")[1]).out.decode()
    t.check("no sample" in few or "unreliable" in few, f"few samples of a thread: {few}")
    above = 0
    for seed in SEEDS:
        _, path = record(t.program("sampled", "threads"), "--rate", RATE, "--seed", str(seed))
        found = t.report(path)
        short = [thread for thread in found["threads"] if thread["allocations"] == 40]
        t.check_equal("short threads", len(short), 400)
        accounts = found["thread_accounts"]
        t.check_equal("threads add up", sum(one["at_exit_bytes"] or 0 for one in found["threads"] + accounts),
                      found["at_exit"]["bytes"])
        t.check(sum(one["threads"] for one in accounts) > 300 and all(one["at_exit_estimate"] for one in accounts),
                f"accounts that are shared: {accounts}")
        above += found["at_exit"]["bytes"] > found["totals"]["allocated_bytes"]
        for name in "frees", "freed_bytes":
            t.check(found["totals"][name] < 1 << 40, f"{name} below none: {found['totals']}")
    t.check(0 < above < len(SEEDS), f"{above} of {len(SEEDS)} estimates above what was allocated")
    shown = t.run_cairn("report", "--view", "threads", path).out.decode()
    t.check("threads share an account)" in shown, f"shared accounts: {shown[:900]}")


def thresholds():
    """Blocks outside of the bounds are one entry without a stack, counted to the byte."""
    argv = t.program("sampled", "sizes")
    exact = t.report(t.record(argv)[1])
    path = t.fresh_path("bounded") + ".cairn"
    t.check_equal("bounds", t.run_cairn("run", "-q", "--min-size", "512", "--max-size", "100KiB", "-o", path,
                                        "--", *argv).status, 0)
    found = t.report(path)
    t.check_equal("bounds: at_exit", found["at_exit"], exact["at_exit"])
    # which blocks are watched is chance
    sums = [{key: value for key, value in one["totals"].items() if "watched" not in key} for one in (found, exact)]
    t.check_equal("bounds: totals", *sums)
    t.check_equal("bounds: peak", found["peak"]["bytes"], exact["peak"]["bytes"])
    small, large = (t.stacks_through(found, name) for name in ("make_tiny", "make_huge"))
    t.check_equal("bounds: stacks of what is outside", (small, large), ([], []))
    for name in "make_small", "make_middle":
        got, wanted = (sum(s["allocated_bytes"] for s in t.stacks_through(f, name)) for f in (found, exact))
        t.check_equal(f"bounds: {name}", got, wanted)
    for arguments in [], ["--view", "functions"], ["--view", "tree", "--print"]:
        shown = t.run_cairn("report", *arguments, path).out
        t.check(b"small allocations" in shown and b"large allocations" in shown, f"bounds: {shown.decode()[:900]}")


# Which sites have no stack with these options, and what stands for them.
BOUNDS = ((("--min-size", "512"), {"make_tiny"}, {"small"}), (("--max-size", "100KiB"), {"make_large", "make_huge"}, {"large"}),
          (("--min-size", "512", "--max-size", "100KiB"), {"make_tiny", "make_large", "make_huge"}, {"small", "large"}),
          (("--no-stacks",), None, {"no_stacks"}), (("--no-stacks", "--min-size", "512"), None, {"no_stacks"}))


def thresholds_alone_and_sampled():
    """What has no stack is one entry for its reason: exact in a whole recording, an estimate in a sample; what has one is
    as it was."""
    argv = t.program("sampled", "sizes")
    plain, exact_path = t.record(argv)
    truth, exact = truth_of(plain), t.report(exact_path)
    for options, without, reasons in BOUNDS:
        without = truth.keys() if without is None else without
        for sampled in [], ["--sample", "--rate", RATE, "--seed", "6"]:
            path = t.fresh_path("threshold") + ".cairn"
            t.check_equal(f"{options}", t.run_cairn("run", "-q", *options, *sampled, "-o", path, "--", *argv).status, 0)
            found, name = t.report(path), f"{' '.join(options)} {sampled[:1]}"
            for total in "allocations", "allocated_bytes":
                t.check_equal(f"{name}: {total}", found["totals"][total], exact["totals"][total])
            buckets = [stack for stack in found["stacks"] if not stack["frames"] and stack["allocations"]]
            t.check_equal(f"{name}: entries without a stack", {stack["incomplete"] for stack in buckets}, reasons)
            held = sum(stack["at_exit_bytes"] for stack in buckets)
            wanted = sum(truth[site][0] for site in without)
            room = sum(stack.get("at_exit_estimate", {"interval_bytes": 0})["interval_bytes"] for stack in buckets)
            t.check(abs(held - wanted) <= 2 * room + (128 << 10), f"{name}: {held} bytes, should be {wanted} +- {room}")
            for site, (size, _) in truth.items():
                got = left_of(found, site) if sampled else (sum(s["at_exit_bytes"] for s in t.stacks_through(found, site)), 0)
                wanted = 0 if site in without else size
                t.check(abs(got[0] - wanted) <= 2 * got[1], f"{name}: {site} {got}, should be {wanted}")


def budgets():
    """Past --max-overhead blocks are sampled; with a tiny --cpu-budget samples become rarer."""
    argv = t.program("sampled", "sizes")
    exact = t.report(t.record(argv)[1])
    path = t.fresh_path("overhead") + ".cairn"
    t.check_equal("overhead", t.run_cairn("run", "-q", "--max-overhead", "1600K", "--rate", "64K", "-o", path,
                                          "--", *argv).status, 0)
    found = t.report(path)
    for name in "allocations", "allocated_bytes":
        t.check_equal(f"overhead: {name}", found["totals"][name], exact["totals"][name])
    t.check(found.get("sampling", {}).get("start_ns", 0) > 0, f"overhead: {found.get('sampling')}")
    interval = found["sampling"]["at_exit_estimate"]["interval_bytes"]
    t.check(abs(found["at_exit"]["bytes"] - exact["at_exit"]["bytes"]) <= 2 * interval,
            f"overhead: {found['at_exit']}, should be {exact['at_exit']}")
    _, slow = record(t.program("sampled", "churn", 3000000), "--rate", "2KiB", "--cpu-budget", "0.01%")
    found = t.report(slow)
    t.check(found["sampling"]["slowed"] > 0 and found["sampling"]["rate_most_bytes"] > 2048,
            f"never slowed: {found['sampling']}")
    t.check(found["totals"]["allocations"] >= 3000000, f"slowed: {found['totals']}")
    shown = b" ".join(t.run_cairn("report", slow).out.split())
    t.check(b"--cpu-budget 0.01% left one in up to" in shown and b"take a higher one" in shown, f"what to do: {shown[:900]}")


def presets():
    """A preset is options by another name; what is given besides goes first."""
    argv = t.program("sampled", "growth")
    for name, word in ("leaks", b"at the end"), ("churn", b"allocation calls"), ("peak", b"at the peak"):
        shown = t.run([t.CAIRN, "run", "--preset", name, "-o", t.fresh_path(name) + ".cairn", "--", *argv])
        t.check(shown.status == 0 and word in shown.err and b"sampled, 1" not in shown.err, f"{name}: {shown.err!r}")
    path = t.fresh_path("production") + ".cairn"
    t.run_cairn("run", "-q", "--preset", "production", "--rate", "1MiB", "-o", path, "--", *argv)
    t.check_equal("production", t.report(path)["sampling"]["rate_bytes"], 1 << 20)


def rate_of_a_running_process():
    path = t.fresh_path("rate") + ".cairn"
    with t.Process([t.CAIRN, "run", "-q", "--sample", "--rate", "1MiB", "--seed", "1", "-o", path, "--",
                           *t.program("sampled", "forever")], env=t.environment(),
                          stdout=subprocess.PIPE) as tool:
        pid = tool.stdout.readline().split()[0].decode()
        said = t.run_cairn("ctl", pid, "rate", "8KiB")
        t.check(said.status == 0 and b"8.0 KiB" in said.out, f"rate: {said.out!r} {said.err!r}")
        t.check_equal("rate 0", t.run_cairn("ctl", pid, "rate", "0").status, 2)
        t.wait_until(lambda: b"1 in 8.0 KiB to 1.0 MiB" in t.run_cairn("report", pid).out, pause=0.05)
        os.kill(int(pid), signal.SIGKILL)


def run_of_processes():
    """The processes of a run and what they held together, in every form, with intervals; a row without a recording is no
    more exact than one with, and its sums do not wrap."""
    argv = t.program("sampled", "fork", 3)
    path = t.fresh_path("several")
    t.run_cairn("run", "-q", "--sample", "--rate", RATE, "--seed", "3", "-o", path, "--", *argv)
    found = json.loads(t.run_cairn("report", "--json", path).out)
    alone = [one["sampling"]["peak_estimate"]["interval_bytes"] for one in found["processes"]]
    combined = found["combined_peak"]
    t.check(max(alone) < combined["interval_bytes"] <= sum(alone) and combined["samples"] >= 500, f"{combined}, {alone}")
    for view in "processes", "timeline":
        shown = t.run_cairn("report", "--view", view, path).out.decode()
        t.check(re.search(r"[KM]iB \u00b1 \S+ [KM]iB \([\d,]+ samples(?:, [\d,]+ certain)?\)", shown), f"{view}: {shown}")
    table = t.run_cairn("report", "--view", "processes", path).out.decode()
    t.check_equal("lines with intervals", len(re.findall(r"\n  peak heap \u00b1 \S+ MiB \(\d+ samples(?:, [\d,]+ certain)?\) \u00b7 at exit \u00b1 ", table)),
                  len(found["processes"]))
    for recording in glob.glob(os.path.join(path, "*.cairn")):
        os.unlink(recording)
    rows = json.loads(t.run_cairn("report", "--json", path).out)["processes"]
    for row, whole in zip(rows, found["processes"]):
        known = row["sampling"]["at_exit_estimate"]
        t.check_equal("a row's estimate", known, {key: whole["sampling"]["at_exit_estimate"][key] for key in known})
        t.check(not row["trust"]["exact"], f"a row of samples is exact: {row}")
        for name in "frees", "freed_bytes":
            t.check(row["totals"][name] < 1 << 40, f"{name} below none: {row['totals']}")


def sizes():
    """How many blocks of which sizes, in groups of as many bits: each within twice its interval; with their sums the calls."""
    argv = t.program("sampled", "together", 3)
    found = t.report(record(argv, "--rate", "4KiB", "--seed", "9")[1])
    calls, variances = {}, {}
    for stack in t.stacks_through(found, "deeper"):
        told = stack["sizes_estimate"]
        sums = sum(one["calls"] for one in told["log2"]) + told["unknown"]
        t.check(abs(sums - stack["allocations"]) <= 40, f"sizes: {sums} of {stack['allocations']} calls: {told}")
        for one in told["log2"]:
            bits = one["least_bytes"].bit_length()
            t.check(one["most_bytes"].bit_length() == bits and one["samples"] > 0, f"sizes: {one}")
            calls[bits] = calls.get(bits, 0) + one["calls"]
            variances[bits] = variances.get(bits, 0) + (one["interval_calls"] / 1.96) ** 2
    made = 2 * 3 * 20 * 64
    t.check_equal("sizes: groups", sorted(calls), [7, 9, 10, 11, 14])
    for bits in calls:
        interval = 1.96 * math.sqrt(variances[bits])
        # of five sizes a cell keeps four
        t.check(calls[bits] <= made + 2 * interval, f"sizes of {bits} bits: {calls[bits]} +- {interval:.0f}, should be {made}")
    shown = t.run_cairn("report", "--view", "sizes", "--top", "3", record(t.program("sampled", "sizes"), "--seed", "5")[1]).out.decode()
    t.check(re.search(r"sizes 64 B \u00d7 [\d,]+ \u00b1 [\d,]+ \(\d+ samples(?:, [\d,]+ certain)?\)", shown), f"sizes: {shown[-900:]}")


def formats():
    """What other programs read says how sure it is, where it has a place for it."""
    path = record(t.program("sampled", "sizes"), "--seed", "5")[1]
    sure = re.compile("peak \\d+ MiB \u00b1 \\S+ MiB \\(\\d+ samples, \\d+ certain\\)")
    for name in "massif", "callgrind", "speedscope", "dhat", "flamegraph":
        text = t.export(path, name).decode()
        t.check(sure.search(text), f"{name}: {text[:900]}")
    rows = t.run_cairn("sql", path, "select peak_interval_bytes, peak_samples from summary").out.decode()
    t.check(re.search(r"\n\d{6,}\t\d+", rows), f"sql: {rows}")
    for arguments, said in ((["info"], "stacks add up to"), (["check", "--max-peak", "1M"], "more than 1.0 MiB")):
        shown = " ".join(t.run_cairn(*arguments, path).out.decode().split())
        t.check(re.search(r"MiB \u00b1 \S+ MiB \([\d,]+ samples(?:, [\d,]+ certain)?\)", shown) and said in shown, f"{arguments}: {shown}")
    interval = t.report(path)["sampling"]["peak_estimate"]["interval_bytes"]
    peak = t.report(path)["peak"]["bytes"]
    for limit, status in (peak - interval // 2, 0), (peak - 2 * interval, 1):
        t.check_equal(f"check: {limit}", t.run_cairn("check", "--max-peak", str(limit), path).status, status)


def differences():
    """Samples of the same run differ by less than their intervals say, but for one stack in twenty; a heap that
    doubled shows beside an exact recording, and what a sample does not have is not gone."""
    paths = [record(t.program("sampled", "sizes"), "--rate", RATE, "--seed", str(seed))[1] for seed in (1, 2)]
    exact = t.record(t.program("sampled", "sizes"))[1]
    for pair, said in ((paths, b"these are samples"), ([exact, paths[0]], b"others exact")):
        screen = t.run_cairn("diff", *pair)
        t.check(said in screen.out and screen.status == 0, f"differences: {screen.out.decode()[:900]}")
        rows = json.loads(t.run_cairn("diff", "--json", *pair).out)["rows"]
        told = [row for row in rows if row["change"] != "same"]
        t.check(len(told) <= max(1, len(rows) // 5), f"differences: {told}")
        t.check(any(row["delta_interval"] > 0 for row in rows), f"differences without intervals: {rows}")


def steady_heap():
    """Of a heap that stays as it is while its blocks come and go the peak is its level, everywhere, and its interval holds
    the truth."""
    argv = [str(t.BUILD / "tests/truth/peak_sampled-0-1")]
    truth, exact = 5200 * 100, t.record(argv)[1]
    said = []
    for seed in SEEDS:
        path = record(argv, "--rate", "32KiB", "--seed", str(seed))[1]
        found = t.report(path)
        peak, estimate = found["peak"]["bytes"], found["sampling"]["peak_estimate"]
        stacks = t.stacks_through(found, "block_of")
        held, wide = (sum(one["peak_bytes"] for one in stacks), sum(one["peak_estimate"]["interval_bytes"] for one in stacks))
        t.check(estimate["least_bytes"] <= truth <= peak + estimate["interval_bytes"], f"seed {seed}: {peak} {estimate}")
        t.check(abs(held - truth) <= wide, f"seed {seed}: by stack {held} +- {wide}")
        t.check(abs(peak - sum(one["peak_bytes"] for one in found["stacks"])) <= 1, f"seed {seed}: stacks do not add up to {peak}")
        t.check_equal(f"seed {seed}: check", t.run_cairn("check", "--max-peak", str(int(truth * 1.1)), path).status, 0)
        t.check(any(row["change"] == "same" for row in json.loads(t.run_cairn("diff", "--json", exact, path).out)["rows"]), f"seed {seed}: diff")
        said.append(peak / truth)
    t.check(abs(sum(said) / len(said) - 1) < 0.2, f"in the mean: {said}")


def usage():
    for arguments, word in ((["--rate", "4K"], b"--sample"), (["--sample", "--rate", "x"], b"x"),
                            (["--sample", "--max-samples", "0"], b"max-samples"),
                            (["--sample", "--cpu-budget", "200%"], b"cpu-budget"),
                            (["--min-size", "2K", "--max-size", "1K"], b"max-size")):
        result = t.run_cairn("run", *arguments, "true")
        t.check(result.status == 2 and word in result.err, f"{arguments}: {result.status} {result.err!r}")
    shown = t.run_cairn("env", "--sample", "--rate", "1M", "--seed", "3", "--cpu-budget", "0.5%").out
    for word in b"CAIRN_SAMPLE='1'", b"CAIRN_RATE='1048576'", b"CAIRN_SEED='3'", b"CAIRN_CPU_BUDGET='0.5000'":
        t.check(word in shown, f"env: {shown!r}")


estimates("sizes")
estimates("threads")
estimates("growth")
same_bytes()
coverage("several threads", len(SEEDS), "--rate", "4KiB")
# no run of these is like another: fewer of them, and chance leaves the bounds
t.check(coverage("thinned", 12, "--rate", "1KiB", "--max-samples", "2000") >= 12, "thinned: never")
coverage("budget", 12, "--rate", "2KiB", "--cpu-budget", "20%")
same_seed()
large_blocks_are_exact()
mixed_sizes()
nothing_above_all()
bounded_samples()
children()
sums_agree()
screens()
threads()
thresholds()
thresholds_alone_and_sampled()
run_of_processes()
sizes()
formats()
budgets()
presets()
rate_of_a_running_process()
differences()
steady_heap()
usage()
t.finish()
