#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Marks and snapshots of a running program: cairn ctl, --mark-every and --when; --at, --between and
--since tell exactly what a program held then, which it was told to, block by block."""

import re
import subprocess

import cairn_test as t
from commanded import Commanded


def held(path, *arguments):
    """Bytes by function that a report says, of the program's own functions."""
    text = t.run_cairn("report", "--view", "functions", "--bytes", "--all-frames", "--top", "0", *arguments, path)
    t.check_equal(f"{arguments}: status {text.err}", text.status, 0)
    rows = re.findall(r"^ +[\d.]+ % +(\d+) .* (early|late|again)(?: .*)?$", text.out.decode(), re.M)
    return {name: int(size) for size, name in rows}


def check_ctl():
    with Commanded("ctl.cairn") as program:
        program.do("early 1000", "early 1000", "late 500")
        t.check('mark "warm" at' in program.ctl("mark", "warm"), "mark")
        program.do("early 2000", "free 0", "late 700")
        t.check('snapshot "later" at' in program.ctl("snapshot", "later"), "snapshot")
        program.do("late 9000", "free 1", "again 0 50")
        status = program.ctl("status")
        t.check(re.search(r'1 mark, \d+ snapshots?, last label "later" at', status), status)
        live = t.run_cairn("report", "--since", "warm", program.pid)
        t.check_equal(f"--since of a running program: {live.err}", live.status, 0)
    # now: [0] is again 50 (of early 2000), [1] late 9000; early 1000 of the second place was freed
    path = "ctl.cairn"
    t.check_equal("--at warm", held(path, "--at", "warm"), {"early": 2000, "late": 500})
    t.check_equal("--at later", held(path, "--at", "later"), {"early": 3000, "late": 1200})
    grown = held(path, "--between", "warm,later")
    t.check_equal("--between", grown, {"early": 1000, "late": 700})
    now = held(path, "--at", "exit")
    t.check_equal("--at exit is the end", now, held(path, "--by", "exit"))
    since = held(path, "--since", "warm")
    t.check(all(since.get(name, 0) <= now.get(name, 0) for name in since), f"--since: {since} of {now}")
    shown = t.run_cairn("report", "--view", "stacks", "--at", "warm", path)
    t.check(re.search(rb"stacks?(?:, at that time| by what they held at the snapshot)", shown.out), f"--at: title: {shown}")
    # what each thread held at a snapshot is not known
    threads = t.answer(path, "threads", "--at", "warm")["threads"]
    t.check(all(row["value"] == row["allocations"] for row in threads), f"--at: threads: {threads}")
    text = t.run_cairn("report", "--view", "threads", "--at", "warm", path)
    t.check(b", by allocation calls\n" in text.out, f"--at: threads: {text}")
    for arguments, words in ((["--since", "later"], b"is a snapshot"), (["--at", "nothing"], b"warm, later"),
                             (["--between", "later,warm"], b"before the first")):
        result = t.run_cairn("report", *arguments, path)
        t.check(result.status == 1 and words in result.err, f"{arguments}: {result.err}")
    for arguments in (["--at", "1s", "--since", "warm"], ["--at", "1s", "--by", "calls"], ["--between", "1s"]):
        result = t.run_cairn("report", *arguments, path)
        t.check(result.status == 2 and result.err.count(b"\n") == 1, f"{arguments}: {result.err}")


def check_since_is_no_difference():
    """Old blocks that are freed after the mark do not hide new ones."""
    with Commanded("since.cairn") as program:
        program.do(*["early 1000"] * 10)
        program.ctl("mark", "here")
        program.do(*["free 0"] * 8, *["early 1000"] * 3)
    t.check_equal("--since", held("since.cairn", "--since", "here"), {"early": 3000})
    t.check_equal("--between", held("since.cairn", "--between", "here,exit"), {})


def check_rules():
    with Commanded("rules.cairn", "--when", "heap>20M", "--when", "rss>90%", "--mark-every", "200ms") as program:
        program.do("early 1000")
        program.do("late 30000000")
        t.wait_until(lambda: re.search(r", ([2-9]|\d\d+) marks", program.ctl("status")) and "20M" in t.run_cairn(
            "report", "--view", "timeline", program.pid).out.decode(), pause=0.05)
    screen = t.run_cairn("report", "--view", "timeline", "rules.cairn", env={"COLUMNS": "200"}).out.decode()
    t.check(re.search(r"marks: .*0\.20 s at .*", screen) and "heap>20M at" in screen, screen)
    at = t.run_cairn("report", "--at", "heap>20M", "rules.cairn").out.decode()
    t.check('snapshot "heap>20M"' in at and "28.6 MiB" in at, at)


def check_limited():
    """A limit on address space is cairn's too: it is still there to look at its rules."""
    code = "import os; block = bytearray(60 << 20); print(os.getpid(), flush=True); input()"
    with t.Process(["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", t.CAIRN, "run", "-q", "--when", "heap>50M",
                           "-o", "limited.cairn", "--", t.PYTHON, "-c", code], env=t.environment(),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        pid = tool.stdout.readline().strip()
        t.wait_until(lambda: t.report(pid)["snapshots"])
        _, err = tool.communicate("\n", timeout=t.PATIENCE_S)
    t.check_equal("limited", (tool.returncode, err), (0, ""))
    snapshots = t.report("limited.cairn")["snapshots"]
    t.check("heap>50M" in [snapshot["label"] for snapshot in snapshots], f"limited: {snapshots}")


check_ctl()
check_since_is_no_difference()
check_rules()
check_limited()
t.finish()
