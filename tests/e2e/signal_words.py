#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --signal: words by signal of a program that waits; a handler of the program's own stays its own, and
without the option no signal is handled."""

import os
import re
import signal
import subprocess

import cairn_test as t
from commanded import Commanded, totals_of


def caught(pid):
    """The signals that a process handles."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        mask = int(re.search(r"SigCgt:\t(\w+)", status.read()).group(1), 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


with Commanded("plain.cairn") as program:
    t.check_equal("handled without the option", caught(program.pid), set())

LIST = "USR1=mark,SIGUSR2=toggle,URG=snapshot,34=off,PWR=on"
with Commanded("signals.cairn", "--signal", LIST) as program:
    pid = int(program.pid)
    t.check_equal("handled", caught(pid), {signal.SIGUSR1, signal.SIGUSR2, signal.SIGURG, 34, signal.SIGPWR})
    program.do("early 1000")
    os.kill(pid, signal.SIGUSR1)
    program.do("late 2000")
    os.kill(pid, signal.SIGUSR2)
    program.do("early 7777")
    t.check("not recording" in program.ctl("status"), "toggled off")
    os.kill(pid, signal.SIGUSR2)
    program.do("late 4000")
    t.check(" recording" in program.ctl("status").replace("not recording", ""), "toggled on")
    os.kill(pid, 34)
    program.do("late 7777")
    os.kill(pid, signal.SIGPWR)
    os.kill(pid, signal.SIGURG)
    program.do("early 3000")
    t.check("1 mark, " in program.ctl("status"), f"marks: {program.ctl('status')}")
found = t.report("signals.cairn")
t.check_equal("early", totals_of(found, "early")[0], 4000)
t.check_equal("late", totals_of(found, "late")[0], 6000)

# the program's own handler, set later, is the only one; what it prints is the same
OWN = ("import os, signal\n"
       "signal.signal(signal.SIGUSR1, lambda number, frame: print('got', number))\n"
       "os.kill(os.getpid(), signal.SIGUSR1)\n"
       "signal.signal(signal.SIGUSR1, signal.SIG_DFL)\n"
       "os.kill(os.getpid(), signal.SIGUSR1)\n")
argv = [t.PYTHON, "-u", "-c", OWN]
plain = t.run(argv)
t.run_cairn("run", "-q", "-o", "own.cairn", "--signal", "USR1=mark", *argv).check_like("own handler", plain)

# whatever it interrupts: many signals while blocks are allocated and freed
work = [t.PYTHON, "-c", "print(sum(len(bytes(i % 3000)) for i in range(400000)))"]
with t.Process([t.CAIRN, "run", "-q", "-o", "storm.cairn", "--signal", "USR1=snapshot,USR2=toggle", *work],
                      env=t.environment({"PYTHONMALLOC": "malloc"}), stdout=subprocess.PIPE) as tool:
    children, sent = f"/proc/{tool.pid}/task/{tool.pid}/children", 0
    while tool.poll() is None and sent < 20000:
        with open(children, encoding="ascii") as listed:
            pids = listed.read().split()
        try:
            if pids and {signal.SIGUSR1, signal.SIGUSR2} <= caught(pids[0]):
                os.kill(int(pids[0]), (signal.SIGUSR1, signal.SIGUSR2)[sent % 2])
                sent += 1
        except (OSError, AttributeError):
            pass
    out = tool.communicate()[0]
t.check_equal("storm", (tool.returncode, out), (0, t.run(work).out))
t.check(sent > 20, f"storm: only {sent} signals")
t.check(t.report("storm.cairn") is not None, "storm: the recording")

for words, said in (("USR1", "SIGNAL=WORD"), ("=mark", "SIGNAL=WORD"), ("USR9=mark", "there is no signal USR9"),
                    ("USR1=make", "not one of mark, snapshot, toggle, on, off"), ("KILL=mark", "is not for words"),
                    ("SEGV=mark", "is not for words"), ("0=mark", "no signal 0"), ("99=mark", "no signal 99"),
                    ("", "SIGNAL=WORD"), ("USR1=mark,", "SIGNAL=WORD")):
    result = t.run_cairn("run", "--signal", words, "true")
    t.check(result.status == 2 and said in result.err.decode(), f"{words}: {result.status} {result.err}")
t.finish()
