#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn ctl: on and off without counting anything twice, of a program that waits; children inherit;
names, refusals, and a run that begins switched off."""

import re
import subprocess

import cairn_test as t
from commanded import Commanded, totals_of


def check_windows():
    with Commanded("windows.cairn") as program:
        program.do("early 1000", "early 2000")
        t.check(re.match(r"commands \d+ is on at .* live, peak .* calls", program.ctl("status")), "status")
        t.check("is now off" in program.ctl("off"), "off")
        t.check("was off" in program.ctl("off"), "off again")
        t.check("is off" in program.ctl("status"), "status: off")
        program.do("late 4000", "late 8000", "free 0")  # frees the first early one
        t.check("is now on" in program.ctl("on"), "on")
        program.do("late 16000", "free 0", "again 0 32000")  # frees the late one of 8000
    found = t.report("windows.cairn")
    t.check_equal("early", totals_of(found, "early"), (3000, 1000, 2000))
    t.check_equal("late: not recorded while off", totals_of(found, "late"), (16000, 16000, 0))
    t.check_equal("again", totals_of(found, "again"), (32000, 0, 32000))
    t.check(not found["trust"]["exact"], "exact")
    t.check_equal("unknown blocks", found["trust"]["lost"], {"unknown_free": 1})
    screen = t.run_cairn("report", "windows.cairn").out.decode()
    t.check("switched off at times" in screen and "from before" in screen, f"trust: {screen[:800]}")


def check_exact_sums():
    """What is allocated - freed is what lives, block by block, over several windows."""
    with Commanded("sums.cairn", "--off") as program:
        program.do("early 111")
        for round_number in range(3):
            program.ctl("on")
            program.do("early 1000", "late 100", "free 0")
            program.ctl("off")
            program.do("late 7777")
        t.check_equal("status is one line", program.ctl("status").count("\n"), 1)
    found = t.report("sums.cairn")
    for function, each in (("early", 1000), ("late", 100)):
        allocated, freed, held = totals_of(found, function)
        t.check_equal(f"{function}: allocated", allocated, 3 * each)
        t.check_equal(f"{function}: live is the difference", allocated - freed, held)
        t.check(0 <= held <= 3 * each, f"{function}: {held}")


def check_children():
    """A child is recorded if its parent is; --all switches all of a run."""
    script = ("import subprocess, sys\n"
              "for line in sys.stdin:\n"
              "    subprocess.run([sys.argv[1], 'x'], stdin=subprocess.DEVNULL) if 'child' in line else 0\n"
              "    print('ok', flush=True)\n"
              "    if 'end' in line: break\n")
    child = t.program("leak")[0]
    with Commanded("children.cairn", "--off", program=[t.PYTHON, "-c", script, child]) as program:
        program.do("child")
        program.ctl("on")
        program.do("child")
    runs = t.run_cairn("report", "--view", "processes", "children.cairn").out.decode()
    t.check_equal(f"children: recorded, {runs}", len(re.findall(r" 6,513 .* leak \d+", runs)), 1)
    t.check_equal(f"children: not recorded, {runs}", len(re.findall(r"  0 B +0  .* leak \d+", runs)), 1)


def check_refusals():
    with Commanded("refusals.cairn") as program:
        named = t.run_cairn("ctl", "commands", "status")
        t.check(program.pid.encode() in named.out, f"by name: {named.out}")
        everything = t.run_cairn("ctl", "--all", "status")
        t.check(program.pid.encode() in everything.out, f"--all: {everything.out}")
        for words, status, said in (
                (["nobody", "on"], 1, b"no process called \"nobody\""),
                (["4194305", "on"], 1, b"there is no process 4194305"),
                ([str(program.tool.pid), "on"], 1, b"cairn"),
                ([program.pid], 2, b"status, on, off"), ([program.pid, "frobnicate"], 2, b"status, on, off"),
                ([program.pid, "on", "now"], 2, b"\"now\" is one word too many"),
                ([program.pid, "mark", "x" * 40], 2, b"39 bytes"),
                (["--all", program.pid, "on"], 2, b"either --all")):
            result = t.run_cairn("ctl", *words)
            t.check_equal(f"{words}: status", result.status, status)
            t.check(said in result.err and result.err.count(b"\n") == 1, f"{words}: {result.err}")
        with subprocess.Popen(["sleep", "60"]) as other:
            result = t.run_cairn("ctl", str(other.pid), "off")
            t.check(result.status == 1 and b"not being recorded" in result.err, f"other: {result.err}")
            other.kill()
    result = t.run_cairn("ctl", program.pid, "on")
    t.check(result.status == 1 and b"no process" in result.err, f"ended: {result.err}")
    for options in (["--off", "--start-after", "1s"], ["--start-after", "soon"], ["--when", "rss=3"],
                    ["--when", "rss>"], ["--when", "heap>0%"], ["--off", "--exec"], ["--record-for", "0"]):
        result = t.run_cairn("run", *options, "true")
        t.check(result.status == 2 and result.err.count(b"\n") == 1, f"{options}: {result.err}")


check_windows()
check_exact_sums()
check_children()
check_refusals()
t.finish()
