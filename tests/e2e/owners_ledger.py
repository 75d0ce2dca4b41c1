#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who keeps the objects of a program that works that out by itself (tests/programs/objects.cc): what each variable
keeps, what no single one does and what is lost, by class, to the byte; live and in a core dump, recorded and not."""

import re
import shutil
import subprocess

import cairn_test as t

SEEDS = (1, 77)
LEAKED = "leaked: no root leads there"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
MAKERS = {f"new_{name.lower()}": name for name in ("Class", "String", "Number", "Array", "Node", "Entry", "Cache", "Weak", "Link")}


def read_ledger(stream):
    """(bytes, blocks) by the words in front of them."""
    ledger = {}
    for line in iter(stream.readline, b"ready\n"):
        *words, size, count = line.decode().split()
        ledger[tuple(words)] = (int(size), int(count))
    return ledger


def class_of(row):
    """By its name, or by the function that allocated it."""
    if row["kind"] == "stack":
        return MAKERS.get(re.split(r"[ (]", row["name"])[0])
    return row["name"].removesuffix("[]")


def add(sums, key, size, count):
    before = sums.get(key, (0, 0))
    sums[key] = (before[0] + size, before[1] + count)


def ledger_of(found, variables):
    """The same ledger from an answer of cairn."""
    sums, owner = {}, None
    for row in found["owners"]:
        if row["level"] == 0:
            is_root = row["kind"] == "root"
            owner = "several" if not is_root else "lost" if row["name"] == LEAKED else row["name"]
            if owner == "several" and not class_of(row):
                owner = None  # the C++ library's
            if owner in variables:
                add(sums, ("root", owner), row["retained_bytes"], row["retained_blocks"])
        if owner in variables and row["own_blocks"]:
            add(sums, ("type", owner, class_of(row)), row["own_bytes"], row["own_blocks"])
        if owner == "cache" and class_of(row) == "Entry":
            add(sums, ("inner", "Entry"), row["retained_bytes"], row["retained_blocks"])
    return sums


def check(what, subject, ledger):
    found = t.answer(subject, "owners")
    if not t.check(found, f"{what}: nothing"):
        return
    variables = {key[1] for key in ledger if key[0] == "root"}
    got = ledger_of(found, variables)
    for key in sorted(set(ledger) | set(got), key=str):
        t.check_equal(f"{what}: {' '.join(map(str, key))}", got.get(key), ledger.get(key))
    t.check_equal(f"{what}: leaked", (found["leaked_bytes"], found["leaked_blocks"]), ledger[("root", "lost")])


def check_screen(what, subject, ledger):
    """Its sizes are rounded, its numbers of blocks are not."""
    screen = t.run_cairn("report", subject, "--view", "owners", "--top", "0", "--threshold", "0").out.decode()
    rows = re.findall(r"^ *([\d.]+) (B|KiB|MiB) +[\d.]+ % +([\d,]+)  (\S.*)$", screen, re.M)
    shown = {name: (number, UNITS[unit], int(count.replace(",", ""))) for number, unit, count, name in rows}
    for (word, *names), (size, count) in ledger.items():
        if word != "root" or names[0] == "several":
            continue
        row = shown.get(LEAKED if names[0] == "lost" else names[0])
        is_right = row and row[2] == count and f"{size / row[1]:.{len(row[0].partition('.')[2])}f}" == row[0]
        t.check(is_right, f"{what}: {names[0]} is {row}, should be {size} in {count}")


def look(what, command, is_recorded):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        ledger = read_ledger(process.stdout)
        t.check(len(ledger) > 20 and ("root", "lost") in ledger, f"{what}: the ledger is {ledger}")
        pid = process.pid
        if is_recorded:  # the tool has another child that watches signals
            pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "objects"))
        check(what, str(pid), ledger)
        check_screen(what, str(pid), ledger)
        if shutil.which("gcore"):
            t.check_equal(f"{what}: gcore", t.run(["gcore", "-o", "dump", str(pid)]).status, 0)
            check(f"{what}, core", f"dump.{pid}", ledger)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


def look_at_daemon():
    """After a fork brk adds mappings that the kernel does not join with the one before."""
    with t.Process(t.program("objects", SEEDS[0], "fork"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   env=t.environment()) as process:
        ledger = read_ledger(process.stdout)
        (pid,) = t.children_of(process.pid)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            if sum(line.rstrip().endswith("[heap]") for line in maps) < 2:
                t.skip_part("a heap of two mappings, since the kernel joined them")
        check("daemon", str(pid), ledger)
        if shutil.which("gcore"):
            t.check_equal("daemon: gcore", t.run(["gcore", "-o", "dump", str(pid)]).status, 0)
            check("daemon, core", f"dump.{pid}", ledger)
        pages = t.answer(str(pid), "heap")
        t.check_equal("daemon: broken", pages.get("broken_stretches"), 0)
        process.stdin.close()
        t.check_equal("daemon: status", process.wait(), 3)


for seed in SEEDS if t.IS_LONG else SEEDS[:1]:
    look(f"seed {seed}", t.program("objects", seed), False)
look("recorded", [t.CAIRN, "run", "-q", "-o", t.fresh_path("objects") + ".cairn", *t.program("objects", SEEDS[0])], True)
look_at_daemon()
t.finish()
