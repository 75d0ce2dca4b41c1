#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn ctl: on and off without counting anything twice, of a program that waits; children inherit;
names, refusals, and a run that begins switched off; what being switched off costs."""

import re
import subprocess
import time

import cairn_test as t
from commanded import Commanded, totals_of


def check_windows():
    with Commanded("windows.cairn") as program:
        program.do("early 1000", "early 2000")
        t.check(re.match(r"commands \d+ recording, .* live, peak .* calls", program.ctl("status")), "status")
        t.check("is now off" in program.ctl("off"), "off")
        t.check("was off" in program.ctl("off"), "off again")
        t.check("not recording" in program.ctl("status"), "status: off")
        program.do("late 4000", "late 8000", "free 0")  # frees the first early one
        t.check("is now on" in program.ctl("on"), "on")
        program.do("late 16000", "free 0", "again 0 32000")  # frees the late one of 8000
    found = t.report("windows.cairn")
    t.check_equal("early", totals_of(found, "early"), (3000, 1000, 2000))
    t.check_equal("late: not recorded while off", totals_of(found, "late"), (16000, 16000, 0))
    t.check_equal("again", totals_of(found, "again"), (32000, 0, 32000))
    t.check(found["trust"]["exact"], "what was recorded is exact")
    t.check_equal("unknown blocks", (found["trust"]["lost"], found["trust"]["earlier_frees"]), ({}, 1))
    screen = t.run_cairn("report", "windows.cairn").out.decode()
    screen = " ".join(screen.split())
    for words in ("exact · switched off at times: allocations then are not counted · nothing lost",
                  "1 free of an earlier block (expected)"):
        t.check(words in screen, f"trust: {screen[:800]}")


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


def check_switching():
    """Off and on again while threads are at it: whatever was recorded is known when it is freed."""
    for options in ([], ["--ages"], ["--sample", "--rate", "4K"]):
        path = t.fresh_path("switched") + ".cairn"
        with t.Process([t.CAIRN, "run", "-q", *options, "-o", path, "--", *t.program("swappers")],
                              env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tool:
            tool.stdout.readline()
            with open(f"/proc/{tool.pid}/task/{tool.pid}/children", encoding="ascii") as children:
                pid = children.read().split()[0]
            for _ in range(5):
                for word in ("off", "on"):
                    t.check_equal(word, t.run_cairn("ctl", pid, word).status, 0)
            tool.communicate(b"\n")
        t.check_equal(f"{options}: status", tool.returncode, 0)
        found = t.report(path)
        workers = t.stacks_through(found, "work")
        t.check(sum(s["allocations"] for s in workers) > 1000, f"{options}: hardly anything was recorded")
        keys = ["at_exit_bytes"] + ["at_exit_blocks"] * ("--sample" not in options)  # estimates are rounded
        t.check_equal(f"{options}: left", sum(abs(s[key]) for s in workers for key in keys), 0)


FORKS = """
import os, sys, time
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
    sys.exit()
early = [bytes(5000) for _ in range(100)]
with open("child.new", "w") as file:
    print(os.getpid(), file=file)
os.rename("child.new", "child")
late = []
while os.path.exists("child"):
    late.append(bytes(7000))
    time.sleep(0.001)
"""


NOTHING = re.compile(rb" 0 B (\(up to [^)]*\) )?live")


def check_forked(*options):
    """A child that was forked while recording is off is a process of its own: it can be asked by its pid."""
    with t.Process([t.CAIRN, "run", "-q", *options, "-o", "forked.cairn", "--", t.PYTHON, "-c", FORKS],
                          env=t.environment({"PYTHONMALLOC": "malloc"})) as tool:
        t.wait_until(lambda: t.os.path.exists("child"))
        child = t.pathlib.Path("child").read_text(encoding="ascii").strip()
        status = t.run_cairn("ctl", child, "status")
        t.check(b" not recording, " in status.out and NOTHING.search(status.out), f"{options}: {status.out} {status.err}")
        t.check_equal(f"{options}: on", t.run_cairn("ctl", child, "on").status, 0)
        status = b""

        def holds_something():
            nonlocal status
            status = t.run_cairn("ctl", child, "status").out
            return b" recording, " in status and b" not recording" not in status and not NOTHING.search(status)
        t.check(t.wait_until(holds_something), f"{options}: {status}")
        t.os.unlink("child")
        t.check_equal(f"{options}: status", tool.wait(t.TIMEOUT_S), 0)


def check_refusals():
    with Commanded("refusals.cairn") as program:
        named = t.run_cairn("ctl", "commands", "status")
        t.check(program.pid.encode() in named.out, f"by name: {named.out}")
        everything = t.run_cairn("ctl", "--all", "status")
        t.check(program.pid.encode() in everything.out, f"--all: {everything.out}")
        without = t.run_cairn("ctl", "status")
        t.check(program.pid.encode() in without.out, f"status of all: {without.out}")
        for words, status, said in (
                (["nobody", "on"], 1, b"no process called \"nobody\""),
                (["4194305", "on"], 1, b"there is no process 4194305"),
                ([str(program.tool.pid), "on"], 1, b"cairn"),
                *(([word], 2, b": of which process?") for word in ("on", "off", "mark", "snapshot", "check", "detach")),
                (["rate", "64K"], 2, b": of which process?"), (["mark", "warm"], 2, b": of which process?"),
                ([program.pid], 2, b"status, on, off"),
                ([program.pid, "frobnicate"], 2, b"\"frobnicate\" is unknown, give what to do: status, on, off"),
                ([program.pid, "on", "now"], 2, b"\"now\" is one word too many"),
                ([program.pid, "mark", "x" * 40], 2, b"39 bytes"),
                ([program.pid, "rate"], 2, b"give a size"), ([program.pid, "rate", "abc"], 2, b"give a size"),
                ([program.pid, "rate", "1M"], 1, b"not samples"),
                (["--all", program.pid, "on"], 2, b"either --all")):
            result = t.run_cairn("ctl", *words)
            t.check_equal(f"{words}: status", result.status, status)
            t.check(said in result.err and result.err.count(b"\n") == 1, f"{words}: {result.err}")
        with t.Process(["sleep", "60"]) as other:
            result = t.run_cairn("ctl", str(other.pid), "off")
            t.check(result.status == 1 and b"not being recorded" in result.err, f"other: {result.err}")
            other.kill()
    result = t.run_cairn("ctl", program.pid, "on")
    t.check(result.status == 1 and b"no process" in result.err, f"ended: {result.err}")
    for options in (["--off", "--start-after", "1s"], ["--start-after", "soon"], ["--when", "rss=3"],
                    ["--when", "rss>"], ["--when", "heap>0%"], ["--off", "--exec"], ["--record-for", "0"]):
        result = t.run_cairn("run", *options, "true")
        t.check(result.status == 2 and result.err.count(b"\n") == 1, f"{options}: {result.err}")


INPUT_BYTES = 4096  # of the program's standard input


def check_modes():
    """Windows in each way of recording: known blocks are recognised, others are not counted while off."""
    for options in (["--ages"], ["--no-stacks"], ["--min-size", "500"], ["--free-stacks"], ["--guard"], ["--mmap"],
                    ["--sample", "--rate", "16"]):
        path = t.fresh_path("mode") + ".cairn"
        with Commanded(path, *options) as program:
            program.do("early 100000", "early 200000", "again 0 300000")
            program.ctl("off")
            program.do("late 400000", "free 1", "again 0 500000", "free 0", "late 50", "again 0 600000")
            program.ctl("on")
            program.do("free 0", "late 700000")
        found = t.report(path)
        t.check_equal(f"{options}: exit", sum(s["at_exit_bytes"] for s in found["stacks"]), 700000 + INPUT_BYTES)
        if "--no-stacks" not in options:
            t.check_equal(f"{options}: freed while off", totals_of(found, "early"), (300000, 300000, 0))
            t.check_equal(f"{options}: while off", totals_of(found, "late")[0], 700000)


def check_only_realloc():
    """A program that only reallocates is heard again as well."""
    with Commanded("realloc.cairn") as program:
        program.do("early 1000")
        program.ctl("off")
        program.do("late 2000", "again 0 1500")
        program.ctl("on")
        program.do("again 0 3000")
    found = t.report("realloc.cairn")
    t.check_equal("again", totals_of(found, "again"), (3000, 0, 3000))


def instructions(argv, variables):
    result = t.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, argv)], env=variables)
    return int(re.search(rb"refs:\s+([\d,]+)", result.err)[1].replace(b",", b""))


def check_cost():
    """Switched off after a time, a pair takes little more than if it was never on: free asks for blocks of before."""
    pair = {}
    for name, variables in (("never on", {"LD_PRELOAD": t.RUNTIME, "CAIRN_OFF": "1"}),
                            ("was on", {"LD_PRELOAD": f"{t.RUNTIME}:{t.BUILD}/bench/switched_preload.so"})):
        few, many = (instructions([t.BUILD / "bench/pairs", "one", 20, 1, pairs],
                                  {**variables, "CAIRN_OUTPUT": t.fresh_path("cost") + ".cairn"})
                     for pairs in (1000, 21000))
        pair[name] = (many - few) / 20000
    t.check(pair["was on"] - pair["never on"] < 60, f"instructions a pair, switched off: {pair}")


check_windows()
check_exact_sums()
check_modes()
check_only_realloc()
check_switching()
check_children()
check_forked("--off")
check_forked("--off", "--sample", "--rate", "4K")
check_refusals()
if t.shutil.which("valgrind"):
    check_cost()
t.finish()
