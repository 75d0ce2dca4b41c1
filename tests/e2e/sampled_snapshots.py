#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--at, --between, --since and --view growth of samples, against the exact recording of the same program: right
on average over seeds, within their intervals about as often as promised."""

import math
import re

import cairn_test as t

SEEDS = range(1, 13)
SITES = ("make_small", "make_page", "make_tiny")
QUERIES = (["--at", "first"], ["--at", "second"], ["--at", "third"], ["--between", "first,second"],
           ["--between", "second,third"], ["--between", "peak,third"], ["--since", "first"])


def record(*options, slice_ms=0):
    result, path = t.record(t.program("sampled", "phases", slice_ms), options=options)
    t.check_equal(f"{options}: status", (result.status, result.err), (0, b""))
    return path


def then_of(found, site):
    """What the stacks through `site` held then: bytes, their interval, blocks."""
    stacks = t.stacks_through(found, site)
    intervals = [s["at_estimate"]["interval_bytes"] for s in stacks if "at_estimate" in s]
    return (sum(s["at_bytes"] for s in stacks), math.sqrt(sum(i * i for i in intervals)),
            sum(s["at_blocks"] for s in stacks))


def check_mean(what, errors):
    mean = sum(errors) / len(errors)
    spread = math.sqrt(sum(error * error for error in errors) / len(errors) ** 2)
    t.check(abs(mean) <= 3 * spread + 64, f"{what} off by {mean:.0f} (+- {spread:.0f})")


def check_query(exact, sampled, query):
    """Returns how many intervals held the truth, of how many, and how wide they were in all."""
    truth = t.report(exact, *query)
    inside = looked = 0
    widths = dict.fromkeys(SITES, 0)
    errors = {site: ([], []) for site in SITES}
    for path in sampled:
        found = t.report(path, *query)
        for site in SITES:
            wanted, _, wanted_blocks = then_of(truth, site)
            got, interval, blocks = then_of(found, site)
            errors[site][0].append(got - wanted)
            errors[site][1].append(blocks - wanted_blocks)
            if wanted or got:
                looked += 1
                inside += abs(got - wanted) <= interval + 64
                widths[site] += interval
    for site in SITES:
        check_mean(f"{query} {site}: bytes", errors[site][0])
        check_mean(f"{query} {site}: blocks", errors[site][1])
    return inside, looked, widths


def check_estimates(exact, sampled):
    inside = looked = 0
    widths = {}
    for query in QUERIES:
        held, of, widths[query[1]] = check_query(exact, sampled, query)
        inside, looked = inside + held, looked + of
    t.check(inside >= 0.88 * looked, f"{inside} of {looked} intervals hold the truth")
    print(f"{inside} of {looked} intervals hold the truth")
    # blocks that were live at both snapshots cancel out
    both = math.hypot(widths["first"]["make_small"], widths["second"]["make_small"])
    t.check(widths["first,second"]["make_small"] < 0.95 * both,
            f"--between is as wide as two snapshots apart: {widths}")


def check_screens(path):
    shown = t.run_cairn("report", "--between", "first,second", path).out.decode()
    t.check('from mark "first"' in shown and "more in stacks that grew" in shown and "\u00b1" in shown, shown[:900])
    shown = t.run_cairn("report", "--at", "second", path).out.decode()
    t.check('shown: snapshot "second"' in shown and "in about" in shown and "\u00b1" in shown, shown[:900])
    slow = record("--sample", "--rate", "8KiB", "--snapshot-every", "0", "--seed", "1", slice_ms=250)
    grown = t.run_cairn("report", "--view", "growth", slow).out.decode()
    t.check("make_tiny" in grown and "\u00b1 is of the rise" in grown, grown[:900])
    # What the program frees before its end has grown until then, by how long its last phase takes, or has not.
    page = [entry for entry in grown.split("\n\n") if "make_page" in entry]
    t.check(all("freed at shutdown" in entry for entry in page), f"make_page is not left: {grown}")
    differ = t.run_cairn("diff", f"{path}@first", f"{path}@second").out.decode()
    t.check(re.search(r"  live .* \u00b1 .* samples\)", differ), f"live has no interval: {differ[:300]}")
    at_first = t.run_cairn("report", "--at", "peak", path)
    t.check(at_first.status == 0 and b"shown: the peak" in at_first.out, f"--at peak: {at_first.out!r}")


def check_nothing_since():
    """A stack whose samples are all from before a mark may have allocated since: a value of 0 has an interval, too."""
    path = record("--sample", "--rate", "4KiB", "--snapshot-every", "0", "--seed", "1")
    empty = [stack for stack in t.report(path, "--since", "first")["stacks"] if not stack["at_bytes"]]
    t.check(len(empty) > 1, f"stacks of before the mark: {empty}")
    t.check_equal("without an interval", [stack for stack in empty if not stack["at_estimate"]["interval_bytes"]], [])


def check_by_itself():
    """Samples have snapshots by churn and by new heights too, unless they are not wanted."""
    argv = t.program("sampled", "churn", 300000)
    for every, wanted in ("8MiB", True), ("0", False):
        _, path = t.record(argv, options=["--sample", "--rate", "16KiB", "--snapshot-every", every])
        reasons = [snapshot["reason"] for snapshot in t.report(path)["snapshots"]]
        t.check(("churn" in reasons) == wanted, f"--snapshot-every {every}: {reasons}")


made = [record("--sample", "--rate", "64KiB", "--snapshot-every", "0", "--seed", str(seed)) for seed in SEEDS]
check_estimates(record(), made)
check_screens(made[0])
check_nothing_since()
check_by_itself()
t.finish()
