#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who keeps the blocks of a program whose graph is known, live and in its core dump, recorded and not: what a variable
keeps, what two keep together, what only a stack leads to, a ring that nothing leads to. Sizes to the byte."""

import shutil
import subprocess

import cairn_test as t

ITEMS, TEXT, SHARED, LOCAL, MIDST, THREAD_LOCAL = 400, 1000, 50000, 30000, 5000, 7000
OWN = t.program("owners")


def chunk(size):
    """What malloc_usable_size says of glibc's block of so many bytes."""
    return max(24, (size + 8 + 15) // 16 * 16 - 8)


ITEM = chunk(16)
SESSIONS = chunk(8 + 16 * 8) + ITEMS * (ITEM + chunk(TEXT))


def owners(subject):
    return t.answer(subject, "owners")


def roots_of(found):
    return {row["name"]: row for row in found["owners"] if row["level"] == 0 and row["kind"] == "root"}


def below(found, name):
    """The rows below a root."""
    rows, is_below = [], False
    for row in found["owners"]:
        if row["level"] == 0:
            is_below = row.get("name") == name
        elif is_below:
            rows.append(row)
    return rows


def check(what, found, is_recorded):
    if not t.check(found, f"{what}: nothing"):
        return
    roots = roots_of(found)
    t.check_equal(f"{what}: sessions", (roots["sessions"]["retained_bytes"], roots["sessions"]["retained_blocks"]),
                  (SESSIONS, 1 + 2 * ITEMS))
    rows = below(found, "sessions")
    t.check_equal(f"{what}: below sessions", [(row["level"], row["own_blocks"], row["own_bytes"]) for row in rows],
                  [(1, 1, chunk(8 + 16 * 8)), (2, ITEMS, ITEMS * ITEM), (3, ITEMS, ITEMS * chunk(TEXT))])
    if is_recorded:
        t.check([row["name"].split()[0] for row in rows] == ["fill", "make_item", "make_text"], f"{what}: {rows}")
    t.check_equal(f"{what}: leaked", (found["leaked_blocks"], found["leaked_bytes"]), (3, 2 * ITEM + chunk(TEXT)))
    t.check_equal(f"{what}: leaked, as a root", roots["leaked: no root leads there"]["retained_bytes"],
                  2 * ITEM + chunk(TEXT))
    # neither variable keeps what both lead to
    t.check_equal(f"{what}: shared", (found["shared_blocks"], found["shared_bytes"]), (1, ITEM))
    t.check_equal(f"{what}: led to inside only", (found["inner_blocks"], found["inner_bytes"]), (1, chunk(MIDST)))
    for name in ("first_of_two", "second_of_two"):
        t.check_equal(f"{what}: {name}", roots[name]["retained_bytes"], ITEM)
    both = [row for row in found["owners"] if row["level"] == 0 and row["kind"] in ("stack", "type", "size") and
            row["retained_bytes"] == ITEM + chunk(SHARED)]
    t.check_equal(f"{what}: what two keep", len(both), 1)
    stack = next(name for name in roots if name.startswith("stack and registers of thread"))
    t.check_equal(f"{what}: the stack's", roots[stack]["retained_bytes"], ITEM + chunk(LOCAL))
    local = next(name for name in roots if name.startswith("thread-local data of thread"))
    rows = below(found, local)
    t.check_equal(f"{what}: a thread's", [(row["name"], row["kind"], row["level"]) for row in rows][0],
                  ("thread_local_text", "root", 1))
    t.check_equal(f"{what}: a thread's", rows[1]["own_bytes"], chunk(THREAD_LOCAL))
    t.check_equal(f"{what}: all", sum(row["retained_bytes"] for row in found["owners"] if row["level"] == 0),
                  found["bytes"])


def look(what, command, is_recorded):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal(f"{what}: begins", process.stdout.readline(), b"ready\n")
        pid = process.pid
        if is_recorded:  # the tool has another child that watches signals
            pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "owners"))
        check(what, owners(str(pid)), is_recorded)
        screen = t.run_cairn("report", str(pid), "--view", "owners").out.decode()
        t.check("sessions" in screen and "RETAINED" in screen and "reached only by words that point inside" in screen, f"{what}: {screen}")
        if shutil.which("gcore"):
            made = t.run(["gcore", "-o", "dump", str(pid)])
            if t.check_equal(f"{what}: gcore", made.status, 0):
                check(f"{what}, core", owners(f"dump.{pid}"), is_recorded)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


def check_refused():
    _, path = t.record(t.program("leak"))
    result = t.run_cairn("report", path, "--view", "owners")
    t.check_equal("of a recording: status", result.status, 1)
    t.check(b"running process or a core dump" in result.err, f"of a recording: {result.err}")


look("plain", OWN, False)
look("recorded", [t.CAIRN, "run", "-q", "-o", t.fresh_path("owned") + ".cairn", *OWN], True)
check_refused()
t.finish()
