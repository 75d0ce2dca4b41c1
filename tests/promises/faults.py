#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The N-th system call that the runtime makes fails, for every N that a run meets, and in a second round
all from the N-th on: output and status of the program never change. The check build understands
CAIRN_FAULT=N and CAIRN_FAULT=N+. With CAIRN_LONG=1 every N, else every one up to 30, by when a thread records, and then
samples; but for a program that forks, whose child opens a recording of its own, every third N+ (alone)."""

import concurrent.futures
import os
import shutil
import subprocess

import cairn_test as t

IS_LONG = t.IS_LONG
EVERY_UP_TO = 30
SAMPLES = 6
RETRY_EVENTS = 4096
RETRY_FAULTS = 140  # calls until all threads of that program are there
THREADS_REFUSED = 1  # besides the main one: one call brings memory for thirty
NOTHING = b"cairn: nothing was recorded\n"  # the tool's one line, behind the program's own
PROGRAMS = {"one thread": t.program("leak"), "threads": t.program("short_threads", "many", 300),
            "fork": t.program("births", "fork"), "modules": t.program("dlopen_loop")}


def run(argv, fault, directory, how):
    path = f"{directory}/x.cairn"
    env = {"CAIRN_FAULT": fault, "LEDGER": f"{directory}/account"}
    if how == "alone":
        env.update(LD_PRELOAD=t.CHECK_RUNTIME, CAIRN_OUTPUT=path)
    else:
        argv = ["tool/cairn", "run", "-q", "-o", path, "--", *argv]
    return t.run(argv, env=env, timeout=60)


def try_one(name, argv, plain, fault, how):
    """Returns what was wrong, or None."""
    directory = f"{name.replace(' ', '-')}.{how}.{fault}"
    os.mkdir(directory)
    result = run(argv, fault, directory, how)
    shutil.rmtree(directory)
    err = result.err.removesuffix(NOTHING) if how == "run" else result.err
    got, wanted = (result.status, result.out, err), (plain.status, plain.out, plain.err)
    return None if got == wanted else f"{name} ({how}), fault {fault}: {got}, should be {wanted}"


def count_calls(argv):
    """How many calls the runtime makes: as many as strace sees more with it than without."""
    def calls(env):
        subprocess.run(["strace", "-f", "-o", "trace", *argv], env=t.environment(env),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with open("trace", "rb") as file:
            return len(file.readlines())
    extra = {"LD_PRELOAD": t.CHECK_RUNTIME, "CAIRN_OUTPUT": t.fresh_path("traced")}
    return max(0, calls(extra) - calls({}))


def faults(last, has_more_lasting):
    every = range(1, last + 2)
    if IS_LONG or last <= EVERY_UP_TO:
        return [f"{number}{more}" for number in every for more in ("", "+")]
    step = max(1, (last - EVERY_UP_TO) // SAMPLES)
    chosen = {*range(1, EVERY_UP_TO + 1), *range(EVERY_UP_TO + 1, last + step, step)}
    lasting = chosen.union(every[::3]) if has_more_lasting else chosen
    return [str(number) for number in sorted(chosen)] + [f"{number}+" for number in sorted(lasting)]


def check(name, argv):
    plain = t.run(argv, env={"LEDGER": t.fresh_path("account")})
    hows = ["alone", "run"] if IS_LONG or name == "fork" else ["alone"]
    last = min(count_calls(argv), count_calls(argv)) if shutil.which("strace") else 400
    tried = [(name, argv, plain, fault, how) for how in hows
             for fault in faults(last, (name, how) == ("fork", "alone"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for wrong in pool.map(lambda one: try_one(*one), tried):
            t.check(not wrong, wrong)
    print(f"{name}: {len(tried)} faults")


def check_retry():
    """A thread that once finds no memory for its slot gets it at a later event, and records from then on; what
    went by is counted. (Where the recording itself finds none, its list of threads stays as it is.)"""
    argv = t.program("threads", "pipe")
    retried = 0
    for fault in range(1, RETRY_FAULTS):
        if retried >= THREADS_REFUSED and not IS_LONG:
            break
        path = t.fresh_path("retry") + ".cairn"
        t.run(argv, env={"CAIRN_FAULT": str(fault), "LD_PRELOAD": t.CHECK_RUNTIME, "CAIRN_OUTPUT": path})
        found = t.report(path) if os.path.exists(path) else None
        lost = found["trust"]["lost"].get("no_thread", 0) if found else 0
        retried += 0 < lost <= RETRY_EVENTS and found["totals"]["allocations"] > 0
    t.check(retried >= THREADS_REFUSED, f"retry: after {retried} faults only a thread came back")


# The tool takes the library that lies beside it.
os.mkdir("tool")
shutil.copy(t.BUILT_CAIRN, "tool/cairn")
shutil.copy(t.CHECK_RUNTIME, "tool/libcairn.so")
for program, command in PROGRAMS.items():
    check(program, command)
check_retry()
t.finish()
