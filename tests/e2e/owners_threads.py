#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What thread-local variables of a library keep that was loaded while the program ran: the dynamic linker has their
data in blocks. They are roots by their names, of each thread, and nothing behind them is lost; live and in a core dump,
recorded and not."""

import json
import shutil
import subprocess

import cairn_test as t

SLOTS, TEXT, THREADS = 4, 3000, 2
TABLE_ROOM, TEXT_ROOM = 40, 3000  # glibc's blocks of 32 and of 3,000 bytes
KEPT = {"kept_here": (TABLE_ROOM + SLOTS * TEXT_ROOM, 1 + SLOTS), "kept_text": (TEXT_ROOM, 1)}


def variables(found):
    """(bytes, blocks) of each variable of threads' data, by its name."""
    rows, is_local = {}, False
    for row in found["owners"]:
        if row["level"] == 0:
            is_local = row["name"].startswith("thread-local data of thread ")
        elif is_local and row["level"] == 1 and row["kind"] == "root":
            rows.setdefault(row["name"], []).append((row["retained_bytes"], row["retained_blocks"]))
    return rows


def check(what, subject):
    found = t.answer(subject, "owners")
    if not t.check(found, f"{what}: nothing"):
        return
    kept = variables(found)
    for name, figures in KEPT.items():
        t.check_equal(f"{what}: {name}", kept.get(name), [figures] * THREADS)
    t.check_equal(f"{what}: leaked", found["leaked_blocks"], 0)
    lost = json.loads(t.run_cairn("leaks", "--unreachable", "--json", subject).out)
    t.check_equal(f"{what}: lost", (lost["direct_blocks"], lost["indirect_blocks"]), (0, 0))


def look(what, command, is_recorded):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal(f"{what}: begins", process.stdout.readline(), b"ready\n")
        pid = process.pid
        if is_recorded:  # the tool has another child that watches signals
            pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "thread_keepers"))
        check(what, str(pid))
        if shutil.which("gcore"):
            t.check_equal(f"{what}: gcore", t.run(["gcore", "-o", "dump", str(pid)]).status, 0)
            check(f"{what}, core", f"dump.{pid}")
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


COMMAND = t.program("thread_keepers", t.PROGRAMS / "libkeeper.so")
look("plain", COMMAND, False)
look("recorded", [t.CAIRN, "run", "-q", "-o", t.fresh_path("kept") + ".cairn", *COMMAND], True)
t.finish()
