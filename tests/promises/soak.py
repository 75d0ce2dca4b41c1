#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long work with threads, forks and libraries that come and go (tests/programs/soak.c): every
process' counts are exact at the end, nothing is lost, and neither the program's memory nor the
recording grows with the number of events. 2 * 10^6 events here; dev/soak.sh gives other numbers in
CAIRN_SOAK_EVENTS."""

import os
import pathlib
import re

import cairn_test as t
import ledger

EVENTS = int(os.environ.get("CAIRN_SOAK_EVENTS", 2000000))
PATIENCE_S = int(os.environ.get("CAIRN_SOAK_SECONDS", 250))
MIB = 1 << 20
# The threads' table and the unloaded libraries' names are bounded, but not yet full after a tenth.
GROWTH_MOST_KIB = 32 * 1024
RECORDING_MOST_BYTES = 8 * MIB
END = re.compile(rb"(\d+) events, (\d+) threads, (\d+) forks, (\d+) loads,"
                 rb" resident \+(-?\d+) KiB, left 1\n")


def images(path):
    """{pid: report} of the images that are the program itself: some became another program."""
    found = {}
    for file in ledger.files(path):
        report = t.report(file)
        if report and t.stacks_through(report, "ledger_take"):
            found[report["process"]["pid"]] = (report, os.path.getsize(file))
    return found


def index_rows(path):
    """{pid: [{column: text}]} of the program's own images: beyond some small ones a process has no file."""
    lines = (pathlib.Path(path) / "index").read_text().splitlines()
    columns = lines[0].split(":", 1)[1].split()
    rows = (dict(zip(columns, line.split("\t"))) for line in lines[1:])
    found = {}
    for row in rows:
        if row["name"] == "soak":
            found.setdefault(int(row["pid"]), []).append(row)
    return found


def check_rows(path, accounts, parent):
    """The index of all children: what they did is in the ledger, and nothing else allocates there."""
    rows = index_rows(path)
    t.check_equal("processes in the index", sorted(rows), sorted(accounts))
    for pid, same_pid in rows.items():
        account = accounts.get(pid)
        if pid == parent or not account:
            continue
        names = ("allocations", "allocated_bytes", "frees", "lost")
        t.check_equal(f"index of process {pid}", [sum(int(row[name]) for row in same_pid) for name in names],
                      [account.allocations, account.allocated_bytes, account.frees, 0])
    return rows


def check_counts(path, accounts, rows):
    found = images(path)
    t.check(found.keys() <= accounts.keys(), f"no account of {found.keys() - accounts.keys()}")
    for pid, (report, size) in found.items():
        # The account of a pid that came twice is that of two processes; the index has their sum.
        if len(rows.get(pid, [])) == 1:
            ledger.check(f"process {pid}", report, accounts.get(pid))
        t.check_nothing_lost(f"process {pid}", report)
        t.check_sums(f"process {pid}", report)
        t.check(size < RECORDING_MOST_BYTES, f"process {pid}: recording of {size} bytes")
    return found


def main():
    result, path, accounts = ledger.recorded(t.program("soak", EVENTS), timeout=PATIENCE_S)
    end = END.fullmatch(result.out)
    t.check_equal("status", (result.status, result.err), (0, b""))
    if not t.check(end, f"end: {result.out!r}"):
        return
    events, _, forks, _, growth_kib = map(int, end.groups())
    print(result.out.decode(), end="")
    t.check(events >= EVENTS, f"{events} events")
    t.check(growth_kib < GROWTH_MOST_KIB, f"resident size grew by {growth_kib} KiB")
    parent = max(accounts, key=lambda pid: accounts[pid].threads)
    rows = check_rows(path, accounts, parent)
    t.check_equal("processes", sum(map(len, rows.values())), forks + 1)
    found = check_counts(path, accounts, rows)
    t.check(len(rows.get(parent, [])) == 1, "a child has the parent's pid")
    if not t.check(parent in found, "the parent has no recording"):
        return
    report, size = found[parent]
    print(f"{report['totals']['allocations']} allocations in the parent's recording of {size} bytes,"
          f" {forks} children; cairn's own memory was {report['trust']['own_bytes']} bytes")


main()
t.finish()
