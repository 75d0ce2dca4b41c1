#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool without memory. Each of its allocations fails, and all from one on, while it has stopped a process (cairn
attach) and from the end of a program on (cairn run); and while it leaves a process there is none but what it put aside.
The process goes on unharmed, is recorded or one line says why not, and can be attached to again; what a program
recorded is kept. `cairn serve` loses requests at most: it answers again as soon as there is memory (tests/e2e/oom has the
same of the guard of a cgroup). CAIRN_LONG=1 leaves none out."""

import http.client
import os
import pathlib

from attached import Target
from cairn_test import (BUILD, BUILT_CAIRN, CAIRN, PATIENCE_S, Process, cannot_run_here, check, check_equal, finish,
                        fresh_path, need_attach, report, run, run_cairn, wait_until)
from served import Server

STARVED = str(BUILD / "tests/starved_preload.so")
IS_LONG = bool(os.environ.get("CAIRN_LONG"))
EVERY = 1 if IS_LONG else 6
SAVING = 1 << 30 if IS_LONG else 25  # that many of a run's are about its recording, not about names
LATER = 10
ALL = 1 << 32
STATUS = 7


def starved(numbers, since, *arguments):
    """What the tool said with these allocations failing, and how many it asked for."""
    told = pathlib.Path(fresh_path("told"))
    result = run([CAIRN, *arguments], env={"LD_PRELOAD": STARVED, "STARVED": numbers, "STARVED_SINCE": since,
                                           "STARVED_TOLD": str(told)})
    return result, int(told.read_text(encoding="ascii")) if told.exists() else 0


def numbers(asked, first_count):
    """Each of the first ones alone, and of some of them and of the others all from it on."""
    first = range(1, min(asked, first_count) + 1)
    later = range(len(first) + 1, asked + 1, max(1, (asked - len(first)) // LATER))
    return [f"{number}-{number}" for number in first] + [f"{number}-{ALL}" for number in [*first[::EVERY], *later]]


def process_of(path):
    return (report(path) or {}).get("process", {})


def attached(target, which):
    path = fresh_path("starved") + ".cairn"
    result, asked = starved(which, "stop", "attach", str(target.pid), "--exact", "--record-for", "1ms", "-o", path)
    what, text = f"attach without {which}", result.err.decode()
    check(result.status in (0, 1), f"{what}: status {result.status}: {text}", is_grave=True)
    check_equal(f"{what}: the program goes on", target.tell("keep 1 100"), "done", is_grave=True)
    if result.status == 0 or "cairn: recording" in text:
        check_equal(f"{what}: the recording", process_of(path).get("pid"), target.pid)
    else:
        check_equal(f"{what}: one line in {text!r}", text.count("\n"), 1)
        check("memory" in text or "cannot be read" in text, f"{what}: why: {text!r}")
    return asked


def ran(which):
    path = fresh_path("starved") + ".cairn"
    result, asked = starved(which, "end", "run", "-q", "-o", path, "--", "sh", "-c", f"exit {STATUS}")
    what, text = f"run without {which}", result.err.decode()
    check_equal(f"{what}: status of the program ({text})", result.status, STATUS, is_grave=True)
    check_equal(f"{what}: the end is in the recording", process_of(path).get("exit", {}).get("status"), STATUS)
    check("lost" not in text or "nothing lost" in text, f"{what}: nothing is lost: {text}")
    return asked


def asked_of(server, path):
    """The status of the answer; None: the connection was given up."""
    try:
        return server.get(path).status
    except (http.client.HTTPException, OSError):
        return None


def served(target, every):
    """Each such allocation of the server fails while a file is there."""
    starve = pathlib.Path(fresh_path("starve")).absolute()
    env = {"LD_PRELOAD": STARVED, "STARVED": f"%{every}", "STARVED_SINCE": str(starve)}
    what = f"serve, each {every}th"
    with Server(target.pid, env=env) as server:
        check_equal(f"{what}: before", asked_of(server, "/metrics"), 200)
        starve.touch()
        got = [asked_of(server, path) for path in ("/", "/metrics", "/processes", "/debug/pprof/heap?gc=1", "/recording")]
        starve.unlink()
        check(all(status in (None, 200, 404, 500, 503) for status in got), f"{what}: {got}")
        check(every > 1 or None in got, f"{what}: nothing failed: {got}")
        check_equal(f"{what}: afterwards", [asked_of(server, path) for path in ("/metrics", "/debug/pprof/heap")], [200, 200])
    check_equal(f"{what}: the program goes on", target.tell("keep 1 100"), "done", is_grave=True)


need_attach()
program = Target(threads=2)
program.tell("keep 20 100")
program.tell("rest")
stops = attached(program, "0")
if not stops and CAIRN != BUILT_CAIRN:
    cannot_run_here("this tool brings its own allocator")
check(stops > 1, f"{stops} allocations while it is stopped")
for chosen in numbers(stops, stops):
    attached(program, chosen)
attached(program, "all")
with Process([CAIRN, "attach", str(program.pid), "-q", "-o", fresh_path("served") + ".cairn"]) as recorder:
    wait_until(lambda: run_cairn("ctl", program.pid, "status").status == 0)
    for number in (1, 2, 3, 5, 7, 11, 13, 29) if not IS_LONG else range(1, 60):
        served(program, number)
    program.end("starved")
    check_equal("its recorder", recorder.wait(timeout=PATIENCE_S), 0)
crowd = Target(threads=60)
attached(crowd, "all")
crowd.end("a crowd without memory")
ends = ran("0")
check(ends > 1, f"{ends} allocations from the end on")
for chosen in numbers(ends, SAVING):
    ran(chosen)
finish()
