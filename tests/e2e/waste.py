#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of its blocks is of no use: a program knows it to the byte, live and in its core dump, recorded and not. What is
in its blocks is never printed."""

import glob
import re
import shutil
import subprocess

import cairn_test as t

PROGRAM = t.program("waste")
LARGE, ZEROED, TAILED, USED, COPIED, COUNT, COPIES = 4 << 20, 3000, 1000, 100, 504, 10, 20
PAGE, HEADER, FILLED = 4096, 16, 8
SMALL_BYTES_MOST = 10000
KINDS = ("untouched_bytes", "zero_bytes", "duplicate_bytes", "tail_bytes", "slack_bytes")
# usable bytes of malloc(25), as malloc_usable_size says
SLACK = 40 - 25


def of(**bytes_of):
    return tuple(bytes_of.get(kind.split("_")[0], 0) for kind in KINDS)


def expected(is_live, is_recorded):
    """By function, or by the size of the blocks, which only the program's own have."""
    there = PAGE - HEADER  # its mapping begins with the chunk's header; the last page is the allocator's rest
    rest = (LARGE + HEADER + PAGE - 1) // PAGE * PAGE - HEADER - LARGE
    large = LARGE if is_recorded else LARGE + rest
    slack = rest if is_recorded else 0
    rows = {
        "make_zeroed": (ZEROED, of(zero=COUNT * ZEROED)),
        "make_tailed": (TAILED, of(tail=COUNT * (TAILED - USED))),
        "make_copies": (COPIED, of(duplicate=(COPIES - 1) * COPIED)),
        "make_large": (large, of(untouched=large - there, tail=there - FILLED, slack=slack) if is_live else
                       of(tail=large - FILLED, slack=slack)),
    }
    if is_recorded:
        rows["make_slack"] = (25, of(slack=COUNT * SLACK))
    return rows


def check(what, subject, is_live, is_recorded, sparse):
    found = t.answer(subject, "waste")
    if not t.check(found, f"{what}: nothing"):
        return
    t.check_equal(f"{what}: facts", (found["pages_known"], found["recorded"]), (is_live, is_recorded))
    for name, (size, figures) in expected(is_live, is_recorded).items():
        if is_recorded:
            rows = [row for row in found["waste"] if row["name"].split()[0] == name]
        else:
            rows = [row for row in found["waste"] if row["kind"] == "size" and row["bytes"] == size * row["blocks"]
                    and row["blocks"] == {"make_large": 1, "make_copies": COPIES}.get(name, COUNT)]
        t.check_equal(f"{what}: {name}", [tuple(row[kind] for kind in KINDS) for row in rows], [figures])
    for kind in KINDS + ("wasted_bytes", "blocks", "bytes"):
        t.check_equal(f"{what}: sum of {kind}", sum(row[kind] for row in found["waste"]), found[kind])
    t.check(all(row["wasted_bytes"] == sum(row[kind] for kind in KINDS) and row["wasted_bytes"] <= row["bytes"]
                for row in found["waste"]), f"{what}: more waste than bytes: {found['waste']}")
    t.check(found["copies"] >= COPIES - 1 and 1 <= found["contents"] <= found["copies"], f"{what}: copies: {found}")
    small = [row for row in found["waste"] if row["name"].startswith("make_sparse") and row["bytes"] < SMALL_BYTES_MOST]
    if is_recorded:
        t.check_equal(f"{what}: pages that few bytes keep", sum(row["sparse_bytes"] for row in small), sparse)
    t.check(sparse <= found["sparse_bytes"] <= sparse + 100 * PAGE, f"{what}: {found['sparse_bytes']} of {sparse}")
    result = t.run_cairn("report", subject, "--view", "waste")
    t.check(b" SPARSE " in result.out and b"are of no use" in result.out and b"duplicates: " in result.out, f"{what}: {result.out}")
    made_from = b"from make_copies" if is_recorded else b""
    t.check(re.search(rb"string duplicates: .* copies of \d+ strings?, .*" + made_from, result.out),
            f"{what}: string duplicates: {result.out}")
    t.check(found["string_copies"] >= COPIES - 1 and found["string_bytes"] >= (COPIES - 1) * COPIED and
            1 <= found["strings"] <= found["string_copies"] <= found["copies"], f"{what}: strings: {found}")
    as_json = t.run_cairn("report", subject, "--view", "waste", "--json")
    t.check(b"SECRET" not in as_json.out + as_json.err, f"{what}: contents are in the JSON: {as_json.out}")
    t.check(b"SECRET" not in result.out + result.err, f"{what}: contents are printed: {result.out}")


def check_budgets(what, subject):
    result = t.run_cairn("check", subject, "--max-waste", "99.99%")
    t.check_equal(f"{what}: within the budget", (result.status, b"the budget holds" in result.out), (0, True))
    result = t.run_cairn("check", subject, "--max-waste", "1%", "--max-leaked", "1GiB", "--junit", "report.xml")
    t.check_equal(f"{what}: over the budget", (result.status, b"1 of 2 budgets exceeded" in result.out), (1, True))
    t.check(b"waste: " in result.out and b"make_large" in result.out, f"{what}: offenders: {result.out}")
    with open("report.xml", encoding="utf-8") as report:
        t.check('failures="1"' in report.read(), f"{what}: the report")


def check_bad_budgets():
    _, path = t.record(t.program("leak"))
    for words, status, said in (((path, "--max-waste", "20%"), 1, b"running process or a core dump"),
                                ((path, "--max-waste", "much"), 2, b"needs a share such as 20%"),
                                ((path, "--max-leaked", "-1"), 2, b"needs a size such as 0"),
                                (("--max-waste", "1%", "--", "true"), 2, b"not of a command")):
        result = t.run_cairn("check", *words)
        t.check(result.status == status and said in result.err, f"check {words}: {result.status} {result.err}")


def look(what, command, is_recorded):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal(f"{what}: begins", process.stdout.readline(), b"ready\n")
        sparse = int(process.stdout.readline())
        pid = process.pid
        if is_recorded:  # the tool has another child that watches signals
            pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "waste"))
        check(what, str(pid), True, is_recorded, sparse)
        if is_recorded:
            check_budgets(what, str(pid))
        if shutil.which("gcore"):
            made = t.run(["gcore", "-o", "dump", str(pid)])
            if t.check_equal(f"{what}: gcore", made.status, 0):
                check(f"{what}, core", f"dump.{pid}", False, is_recorded, sparse)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


def check_jemalloc():
    """Blocks at odd multiples of 8, whose map is another one, stand in their places."""
    library = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if not library:
        t.skip_part("another allocator, since libjemalloc.so.2 is not here")
        return
    command = [t.CAIRN, "run", "-q", "-o", t.fresh_path("odd") + ".cairn", *PROGRAM]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   env=t.environment({"LD_PRELOAD": library[0]})) as process:
        t.check_equal("jemalloc: begins", process.stdout.readline(), b"ready\n")
        pid = str(next(child for child in t.children_of(process.pid) if t.is_called(child, "waste")))
        listed = t.run_cairn("core", pid, "list", "used").out.decode().splitlines()
        places = [int(line.split()[3], 16) for line in listed if line.startswith("Used allocation at ")]
        t.check(any(place % 16 == 8 for place in places), "jemalloc: no block is at an odd multiple of 8")
        t.check_equal("jemalloc: in order", places, sorted(places))
        found = t.answer(pid, "waste")
        rows = [row for row in found["waste"] if row["name"].split()[0] == "make_copies"] if found else []
        t.check_equal("jemalloc: copies", [row["duplicate_bytes"] for row in rows], [(COPIES - 1) * COPIED])
        process.stdin.close()
        t.check_equal("jemalloc: status", process.wait(), 3)


look("plain", PROGRAM, False)
look("recorded", [t.CAIRN, "run", "-q", "-o", t.fresh_path("waste") + ".cairn", *PROGRAM], True)
check_jemalloc()
check_bad_budgets()
t.finish()
