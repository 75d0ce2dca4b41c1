#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of a process with more than is copied unasked a part is drawn: the waste of a program that knows its own is estimated
from it, with intervals that cover what is true; recorded and not, also while the program changes. What is in its blocks
is never printed, and no more is copied than before."""

import json
import re
import subprocess

import cairn_test as t
from page_data import read_page

PROGRAM = t.program("waste_large")
SIZE = () if t.IS_LONG else ("200",)  # in MiB; 340
SEEDS, NOT_COVERED_MOST = 8, 4  # 95 % are covered: that more than half are not does not happen by chance
COPIED_MOST = 128 << 20
FIGURES = ("untouched_bytes", "zero_bytes", "tail_bytes", "wasted_bytes", "bytes", "blocks", "share")
MAKERS = {"make_zeroed": "zero_bytes", "make_copy": "duplicate_bytes"}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def waste(pid, *words):
    result = t.run_cairn("report", pid, "--view", "waste", "--json", *words)
    t.check_equal(f"waste {words}: status", (result.status, b"SECRET" in result.out + result.err), (0, False))
    copied = re.search(rb"([0-9.]+) ([KMG]?i?B) copied", result.err)
    if copied and not words[:1] == ("--no-copy-limit",):
        t.check(float(copied[1]) * UNITS[copied[2].decode()] <= COPIED_MOST, f"copied: {result.err}")
    found = json.loads(result.out)
    return {**found["facts"], "waste": found["rows"]}


def without_pause(found):
    return {**found, "pause_ns": None}


def check_intervals(what, pid):
    true = waste(pid, "--no-copy-limit")
    t.check_equal(f"{what}: all of it is no estimate", true["estimated"], False)
    true["share"] = true["wasted_bytes"] / true["bytes"]
    found = [waste(pid, "--seed", str(seed)) for seed in range(SEEDS)]
    for figure in FIGURES:
        values = [(each[f"{figure}_low"], each[figure], each[f"{figure}_high"]) for each in found]
        missed = [value for value in values if not value[0] <= true[figure] <= value[2]]
        t.check(len(missed) <= NOT_COVERED_MOST, f"{what}: {figure} is {true[figure]}: {values}")
        t.check(all(low <= value <= high for low, value, high in values), f"{what}: {figure}: {values}")
        mean = sum(value[1] for value in values) / SEEDS
        t.check(abs(mean - true[figure]) <= 0.1 * true[figure], f"{what}: {figure} is {true[figure]}: mean {mean}")
    # those that were not read may be copies too
    t.check(all(each["duplicate_bytes"] <= 1.5 * true["duplicate_bytes"] for each in found), f"{what}: copies: {found}")
    part = found[0]
    t.check(part["seed"] == 0 and 0 < part["windows"] < part["of_windows"], f"{what}: {part}")
    t.check_equal(f"{what}: a seed draws the same", without_pause(waste(pid, "--seed", "0")), without_pause(found[0]))
    return true


def check_truth(true, known):
    """All of it is what the program knows of itself, to the byte."""
    rows = {row["name"].split()[0]: row for row in true["waste"]}
    for maker, kind in MAKERS.items():
        t.check_equal(f"all of it: {maker}", rows[maker][kind], known[kind])
    tails = sum(rows[maker]["tail_bytes"] for maker in ("make_tailed", "make_wide", "make_large"))
    t.check_equal("all of it: tails", tails, known["tail_bytes"])
    t.check_equal("all of it: untouched", rows["make_large"]["untouched_bytes"], known["untouched_bytes"])


def check_screen(what, pid):
    result = t.run_cairn("report", pid, "--view", "waste", "--seed", "7")
    for words in (rb"about .* are of no use \(\d+ %: \d+ % to \d+ %\)", rb"estimated with intervals of 95 %: ",
                  rb"of [0-9,]+ windows of 64 KiB and ", rb"seed 7 \(--seed 7: the same again; --no-copy-limit: all",
                  rb"copies are estimated from those", rb" MiB to [0-9.]+ MiB +\d+ %"):
        t.check(re.search(words, re.sub(rb"\n  (?=\S)", b" ", result.out)), f"{what}: {words}: {result.out}")
    t.check(b"SECRET" not in result.out + result.err, f"{what}: contents are printed: {result.out}")


def check_budgets(pid):
    for share, status in (("99%", 0), ("1%", 1)):
        result = t.run_cairn("check", pid, "--max-waste", share, "--seed", "7", "--junit", "report.xml", "--sarif",
                             "report.sarif")
        t.check_equal(f"check {share}: status", result.status, status)
        said = rb"waste: [0-9.]+ % \([0-9.]+ % to [0-9.]+ %\) of about \d+ MiB, of .* of [0-9,]+ windows of 64 KiB"
        t.check(re.search(said, result.out), f"check {share}: {result.out}")
        for name in ("report.xml", "report.sarif"):
            with open(name, "rb") as file:
                t.check(b"SECRET" not in file.read(), f"check {share}: {name} has contents")
        t.check(b"SECRET" not in result.out + result.err, f"check {share}: {result.out}")
    for command in (("report", pid, "--view", "waste"), ("check", pid, "--max-waste", "1%")):
        result = t.run_cairn(*command, "--seed", "x")
        t.check_equal(f"{command}: a seed that is no number", result.status, 2)


def check_saved(pid):
    """A file of who keeps what has sums of it, and findings; nothing of what was in the blocks."""
    result = t.run_cairn("core", pid, "save", "saved.cairn", "--force", "--no-copy-limit")
    t.check_equal("save: status", result.status, 0)
    told = t.run_cairn("report", "saved.cairn", "--view", "findings")
    t.check(re.search(rb"MiB of equal strings, [0-9,]+ copies of 16 strings", told.out) and
            b"most of make_copy" in told.out.replace(b"\n", b" ") and b"#equal-strings" in told.out, f"findings: {told.out}")
    t.check(re.search(rb"MiB of \d+ MiB in blocks are of no use: ", told.out) and
            b"#zeros-and-unused-ends" in told.out, f"findings: {told.out}")
    page = t.run_cairn("open", "--owners", pid, "--no-copy-limit", "-o", "page.html", "--force")
    t.check_equal("open --owners: status", page.status, 0)
    for name in ("saved.cairn", "page.html"):
        with open(name, "rb") as file:
            t.check(b"SECRET" not in file.read(), f"{name} has contents")
    chunks = dict(read_page("page.html")[1])
    t.check("equal strings" in json.dumps(chunks["findings"]), f"findings of the page: {chunks['findings']}")
    compared = t.run_cairn("diff", "saved.cairn", "saved.cairn")
    t.check(re.search(rb"of no use +[0-9.]+ MiB .* unchanged", compared.out), f"diff: {compared.out}")
    t.check(b"SECRET" not in told.out + result.out + result.err + page.out + page.err, "contents are printed")


def look(what, command, is_recorded, is_changing):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        known = json.loads(process.stdout.readline())
        pid = str(process.pid)
        if is_recorded:
            pid = str(next(child for child in t.children_of(process.pid) if t.is_called(child, "waste_large")))
        if is_changing:
            for seed in range(4 if t.IS_LONG else 2):
                found = waste(pid, "--seed", str(seed))
                # it holds 200 MiB at first, and less the longer it replaces blocks by those of 1.5 KiB on average
                is_within = found["bytes_high"] > 64 << 20 and found["bytes_low"] < 350 << 20
                t.check(0 < found["share"] < 1 and is_within, f"{what}: {found['bytes']} bytes of {found['share']}")
                t.check(found["windows_left_out"] <= found["windows"] / 4, f"{what}: {found}")
        else:
            # how a part is drawn does not depend on who knows the blocks
            true = check_intervals(what, pid) if t.IS_LONG or not is_recorded else waste(pid, "--no-copy-limit")
            check_screen(what, pid)
            if is_recorded:
                check_truth(true, known)
                check_saved(pid)
            else:
                check_budgets(pid)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


def recorded(*words):
    return [t.CAIRN, "run", "-q", "-o", t.fresh_path("waste") + ".cairn", *PROGRAM, *words]


look("plain", [*PROGRAM, *SIZE], False, False)
look("recorded", recorded(*SIZE), True, False)
look("changing", [*PROGRAM, "200", "churn"], False, True)
if t.IS_LONG:
    look("recorded and changing", recorded("200", "churn"), True, True)
t.finish()
