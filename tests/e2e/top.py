#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn top on a program that does what it is told: the numbers are those of the report, exactly; the
screen by its keys; what each context holds; a process that ends, names, refusals; narrow, ASCII, no colours, no terminal."""

import json
import os
import re
import shutil
import subprocess

import cairn_test as t
from commanded import Commanded
from tmux_screen import Screen


def top_json(*arguments):
    result = t.run_cairn("top", "--json", "--interval", "100ms", *map(str, arguments))
    t.check_equal(f"top --json {arguments}: status, {result.err}", result.status, 0)
    return json.loads(result.out) if result.status == 0 else None


def named(name):
    """The program under a name that no other process has, so that it can be meant by it."""
    path = os.path.abspath(f"{name}-{os.getpid()}")
    shutil.copy(t.program("commands")[0], path)
    return [path]


def check_numbers():
    """Of a program that waits: the report of its pid says the same of every stack."""
    with Commanded("numbers.cairn") as program:
        program.do("early 1000", "early 2000", "late 500", "again 2 9000", "free 0")
        found, whole = top_json(program.pid), t.report(program.pid)
        t.check_equal("schema", found["schema"], "cairn.top/1")
        t.check_equal("program", (found["program"], found["pid"]), ("commands", int(program.pid)))
        t.check_equal("live", found["live_bytes"], whole["at_exit"]["bytes"])
        t.check_equal("blocks", found["live_blocks"], whole["at_exit"]["blocks"])
        t.check_equal("allocated", found["allocated_bytes"], whole["totals"]["allocated_bytes"])
        t.check_equal("calls", found["allocations"], whole["totals"]["allocations"])
        t.check_equal("peak", found["peak_bytes"], whole["peak"]["bytes"])
        t.check(found["exact"] and not found["sampled"] and not found["is_off"], f"exact: {found}")
        t.check_equal("nothing allocates", (found["allocated_bytes_per_s"], found["live_bytes_per_s"]), (0, 0))
        held = {stack["id"]: (stack["at_exit_bytes"], stack["at_exit_blocks"], stack["allocated_bytes"],
                              stack["temporary"], t.functions(stack))
                for stack in whole["stacks"] if stack["at_exit_bytes"] or stack["at_exit_blocks"]}
        live = {stack["id"]: (stack["live_bytes"], stack["live_blocks"], stack["allocated_bytes"],
                              stack["temporary"], t.functions(stack))
                for stack in found["stacks"]}
        t.check_equal("stacks", live, held)
        listed = top_json()["processes"]
        t.check_equal("the list", [(one["pid"], one["live_bytes"]) for one in listed
                                   if one["pid"] == int(program.pid)],
                      [(int(program.pid), whole["at_exit"]["bytes"])])
        printed = t.run_cairn("top").out.decode()  # no terminal
        t.check(re.search(rf"{program.pid} .* commands( at |\n)", printed), f"printed list: {printed}")


def check_keys():
    with Commanded("keys.cairn") as program:
        program.do("early 100000", "late 50000")
        screen = Screen(f"{t.CAIRN} top --interval 100ms {program.pid}")
        screen.wait_for(r"LIVE +GROWTH.*\n +97\.7 KiB .*early commands\.c:\d+ \u2190 main", "the list")
        t.check("exact \u00b7 nothing lost" in screen.text, f"trust: {screen.text}")
        t.check(re.search(r"97\.7 KiB .*early", screen.text.splitlines()[3]), f"line 4 is the answer: {screen.text}")
        screen.press("Down", r"late commands", "move")
        screen.press("Enter", r"live 48\.8 KiB in 1 block, 32 % of the heap", "a stack alone")
        screen.wait_for(r"late +commands\.c:\d+\n +main +commands\.c:\d+", "its frames")
        program.do("late 50000")
        screen.wait_for(r"live 97\.7 KiB in 2 blocks.*\n? .*growth \+48\.8 KiB since", "it is live")
        screen.press("Escape", r"LIVE +GROWTH", "back")
        screen.press("2", r"by growth.*(\n.*){2}\+48\.8 KiB .*late", "by growth")
        t.check("early" not in screen.text, f"what did not grow is not there: {screen.text}")
        screen.press("1", r"early", "by live bytes")
        screen.press("/ l a t e Enter", r"1 stack through \"late\"", "search")
        t.check("early" not in screen.text, f"search: {screen.text}")
        screen.press("/ x ( Enter", r"parenthesis", "a bad expression")
        screen.press("/ z z z Enter", r"nothing matches", "nothing")
        screen.press("/ Escape", r"early", "all again")
        screen.press("v", r"no mark yet", "survivors of no mark")
        screen.press("m", r"mark at .*: growth counts from here", "mark")
        program.do("early 3000", "late 2000", "free 0")  # frees an old one
        screen.press("v", r"of what came since the mark: 4\.9 KiB in 2 blocks", "survivors")
        screen.wait_for(r"LEFT +GROWTH.*\n +2\.9 KiB -94\.7 KiB .*early", "what is left, and growth")
        screen.press("v", r"LIVE +GROWTH", "all again")
        screen.press("Space", r"\(frozen\)", "freeze")
        frozen = screen.look()
        program.do("early 700000")
        t.check_equal("frozen", screen.look(), frozen)
        screen.press("Space", r"68[0-9] KiB .*early", "goes on")
        screen.press("t", r"snapshot at ", "snapshot")
        t.check(re.search(r", 1 mark, [1-9]\d* snapshot", program.ctl("status")), "they are in the recording")
        screen.press("o", r"commands \d+ not recording", "off")
        t.check("not recording" in program.ctl("status"), "it is off")
        screen.press("o", r"commands \d+ recording", "on")
        screen.press("r 1 M Enter", r"records every block, not samples", "rate of no samples")
        screen.press("a", r"\u2190 main .*_start", "internal")
        screen.press("?", r"freeze: no more looks", "help")
        screen.press("q", r"LIVE", "q closes the help, not the program")
        screen.press("p", r"enter looks at one", "processes")
        t.check(re.search(rf"{program.pid} .* commands at ", screen.text), f"processes: {screen.text}")
        screen.press("Enter", r"commands \d+ recording", "the same again")
        for columns, lines in ((40, 20), (40, 8), (20, 6), (10, 3), (160, 50)):
            screen.resize(columns, lines)
            screen.wait_for(r"too small" if columns < 20 else r"commands \d+", f"{columns}x{lines}")
        screen.press("q", r"(?m)^status 0", "leave")


def check_contexts():
    """What each tenant holds, by key and by sets, as numbers and on the screen; labels that come while it is watched."""
    with Commanded("contexts.cairn") as program:
        program.do("early 1000", "enter tenant=7", "early 20000", "enter endpoint=/b", "late 30000", "leave", "leave",
                   "enter tenant=8", "early 5000", "leave")
        def held(*arguments):
            found = top_json(program.pid, *arguments)
            return found, {" ".join(sorted(f"{k}={v}" for k, v in one["labels"].items())): one["live_bytes"] for one in found["contexts"]}
        whole, by_tenant = held("--context", "tenant")
        outside = whole["live_bytes"] - 55000
        t.check_equal("by tenant", by_tenant, {"": outside, "tenant=7": 50000, "tenant=8": 5000})
        t.check_equal("by sets", held("--context", "")[1],
                      {"": outside, "tenant=7": 20000, "endpoint=/b tenant=7": 30000, "tenant=8": 5000})
        of_seven = top_json(program.pid, "--context", "tenant=7")
        t.check_equal("stacks of tenant 7", sorted((stack["live_bytes"], t.functions(stack)[0]) for stack in of_seven["stacks"]),
                      [(20000, "early"), (30000, "late")])
        t.check_equal("its labels, and the process' own figures", (of_seven["labels"], of_seven["live_bytes"]),
                      ({"tenant": "7"}, whole["live_bytes"]))
        t.check_equal("no such tenant", top_json(program.pid, "--context", "tenant=9")["stacks"], [])
        for absent in ("tenant=9", "tenan", "tenants", "tenant=", "k" * 200):
            said = t.run_cairn("top", "--once", "--interval", "100ms", "--context", absent, program.pid)
            t.check_equal(f"{absent}: it is said", (said.status, said.err.decode()),
                          (0, f"cairn: top: --context {absent}: the program has no such label so far\n"))
        for there in ("tenant", "tenant=7", ""):
            t.check_equal(f"{there} is there", t.run_cairn("top", "--once", "--interval", "100ms", "--context", there, program.pid).err, b"")
        t.check_equal("no key is so long", t.run_cairn("top", "--once", "--context", "k" * 256, program.pid).status, 2)
        printed = t.run_cairn("top", "--once", "--interval", "100ms", "--context", "tenant", program.pid).out.decode()
        t.check(re.search(r"3 values of tenant by what they hold: .*\n +LIVE .* CONTEXT\n +48\.8 KiB .*  7\n", printed),
                f"printed: {printed}")
        refused = t.run_cairn("top", "--once", "--context", "tenant")
        t.check_equal("of no process", (refused.status, b"needs the PID" in refused.err), (2, True))
        screen = Screen(f"{t.CAIRN} top --interval 100ms {program.pid}")
        screen.wait_for(r"LIVE +GROWTH", "the list")
        screen.press("c", r"values of endpoint by what they hold.*(\n.*)* 29\.3 KiB .*  /b", "the first key")
        screen.press("c", r"3 values of tenant by what they hold.*\n.*CONTEXT\n +48\.8 KiB +- .*  7\n", "the next one")
        program.do("enter tenant=9", "late 70000", "leave", "enter tenant=8", "early 90000", "leave")
        screen.wait_for(r"4 values .*\n.*\n +92\.8 KiB \+87\.9 KiB .*  8\n +68\.4 KiB \+68\.4 KiB .*  9\n +48\.8 KiB +- ",
                        "new labels, and what grew")
        screen.press("Enter", r"1 stack of tenant=8 by .*\n.*STACK\n +92\.8 KiB .*early commands\.c:\d+ \u2190 main", "one tenant")
        screen.press("Enter", r"92\.8 KiB in 2 blocks", "a stack of it")
        screen.press("Escape", r"1 stack of tenant=8", "back to the tenant")
        screen.press("Escape", r"4 values of tenant", "back to the tenants")
        screen.press("/ 9 Enter", r'1 value of tenant with "9"', "search")
        screen.press("c", r"contexts by what they hold(.*\n)* .*endpoint=/b tenant=7", "whole sets")
        screen.press("c", r"stacks by what they hold", "all stacks")
        screen.press("c", r"values of endpoint", "and on")
        screen.press("Escape", r"stacks by what they hold", "back to all")
        screen.press("q", r"(?m)^status 0", "leave")
        screen.close()
    with Commanded("no_contexts.cairn") as program:
        screen = Screen(f"{t.CAIRN} top --interval 100ms {program.pid}")
        screen.wait_for(r"LIVE +GROWTH", "the list")
        screen.press("c", r"entered no context", "it is said")
        screen.press("q", r"(?m)^status 0", "leave")
        screen.close()


def check_end():
    program = Commanded("end.cairn", program=named("ending"))
    program.do("early 100000")
    name = f"ending-{os.getpid()}"
    by_name = t.run_cairn("top", "--once", "--interval", "100ms", "--top", "1", name)
    t.check(re.search(rb"ending-\d+ \d+ recording, ", by_name.out), f"by name, printed: {by_name.out}")
    screen = Screen(f"{t.CAIRN} top --interval 100ms {name}")
    screen.wait_for(r"97\.7 KiB .*early", "before the end")
    program.tool.communicate("end\n", timeout=t.PATIENCE_S)
    screen.wait_for(r"ending-\d+ \d+ ended, ", "it says so")
    t.check("97.7 KiB" in screen.text, f"the last look stays: {screen.text}")
    screen.press("m", r"it has ended", "nothing to be done to it")
    screen.press("q", r"(?m)^status 0", "leave")
    screen.close()


def check_exec():
    """The same process runs another program: it says so, and the list has the new one."""
    argv = [t.CAIRN, "run", "-q", "-o", "exec.cairn", "--", "sh", "-c", f"read line; exec {t.program('commands')[0]}"]
    with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        def pid_of_run():
            one = [one["pid"] for one in top_json()["processes"] if one["run"] == run.pid]
            return one[0] if one else None
        pid = None
        while not pid and run.poll() is None:
            pid = pid_of_run()
        screen = Screen(f"{t.CAIRN} top --interval 100ms {pid}")
        screen.wait_for(rf"sh {pid} recording", "before")
        run.stdin.write("\nhello\n")
        run.stdin.flush()
        t.check_equal("the new program", run.stdout.readline(), "ok\n")
        screen.wait_for(rf"sh {pid} became another program", "it says so")
        screen.press("p", rf"{pid} .* commands at ", "the new one is listed")
        screen.press("q", r"(?m)^status 0", "leave")
        screen.close()
        run.communicate("end\n", timeout=t.PATIENCE_S)


def check_forms():
    with Commanded("forms.cairn") as program:
        program.do("early 100000")
        screen = Screen(f"{t.CAIRN} top {program.pid}", locale="C")
        screen.wait_for(r"early commands\.c:\d+ < main", "ASCII")
        t.check(screen.text.isascii(), f"ASCII: {screen.text}")
        screen = Screen(f"NO_COLOR=1 {t.CAIRN} top {program.pid}", columns=60)
        screen.wait_for(r"early", "NO_COLOR")
        colours = re.findall(r"\033\[[0-9;]*3[0-7]m", screen.styled())
        t.check_equal("NO_COLOR", colours, [])
        screen = Screen(f"TERM=dumb {t.CAIRN} top {program.pid}", columns=100)
        screen.wait_for(r"(?s)early.*\nstatus 0", "a terminal without a cursor: printed once")
        screen.close()


def check_refusals():
    nobody = t.run_cairn("top", "--once", "nobody")
    t.check(nobody.status == 1 and b'no process called "nobody"' in nobody.err, f"nobody: {nobody.err}")
    program, name = named("twice"), f"twice-{os.getpid()}"
    with Commanded("one.cairn", program=program) as one, Commanded("two.cairn", program=program) as two, \
            t.Process(["sleep", "60"]) as other:
        for words, status, said in (
                ([name], 1, f"2 recorded processes are called \"{name}\", give a pid: "
                            f"{min(one.pid, two.pid, key=int)} ("),
                ([name], 1, f", {max(one.pid, two.pid, key=int)} ("),
                (["4194305"], 1, "there is no process 4194305"),
                ([str(other.pid)], 1, "not being recorded"), ([str(one.tool.pid)], 1, "it is cairn"),
                (["--by", "peak", one.pid], 2, "live, growth, rate or temporary"),
                (["--interval", "1ms", one.pid], 2, "100ms to 1h"), ([one.pid, "more"], 2, "unexpected")):
            result = t.run_cairn("top", "--once", *words)
            t.check_equal(f"{words}: status", result.status, status)
            t.check(said in result.err.decode(), f"{words}: {result.err}")
        other.kill()
        if os.getuid() == 0:
            drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", t.CAIRN, "top", "--once"]
            denied = t.run([*drop, one.pid])
            t.check(denied.status != 0 and b"somebody else" in denied.err, f"denied: {denied.err}")


check_numbers()
check_keys()
check_contexts()
check_end()
check_exec()
check_forms()
check_refusals()
t.finish()
