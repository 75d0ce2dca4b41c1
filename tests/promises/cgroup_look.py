#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report --cgroup` harms no process that it looks at: while it looks again and again, locks of flock are free as soon
as they are given up, a file that was just written can be executed, no lease is broken, no call is interrupted, and
descriptors and memory stay as they are."""

import os
import pathlib
import subprocess

import cairn_test as t

LOOKS = 12
# It goes on until its input says "end"; then it prints what went wrong.
TARGET = r"""
import errno, fcntl, os, shutil, signal, subprocess, sys, threading
wrong, done = [], threading.Event()
signal.signal(signal.SIGIO, lambda *_: wrong.append("a lease was broken"))
leased = open("leased", "wb+")
leased.write(bytes(1 << 20))
leased.flush()
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)

def lock():
    while not done.is_set():
        with open("locked", "ab+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wrong.append("a lock that was given up was held")

def write_and_execute():
    while not done.is_set():
        shutil.copy("/bin/true", "written")
        try:
            subprocess.run(["./written"], check=True)
        except OSError as error:
            wrong.append(f"a file that was just written: {error}")
        os.unlink("written")

open("locked", "wb").write(bytes(1 << 20))
threads = [threading.Thread(target=one) for one in (lock, write_and_execute)]
kept = os.listdir("/proc/self/fd")
for one in threads:
    one.start()
print("ready", flush=True)
sys.stdin.readline()
done.set()
for one in threads:
    one.join()
if os.listdir("/proc/self/fd") != kept:
    wrong.append("other descriptors than before")
if fcntl.fcntl(leased, fcntl.F_GETLEASE) != fcntl.F_WRLCK:
    wrong.append("the lease is gone")
print("; ".join(sorted(set(wrong))) or "well", flush=True)
"""

target = subprocess.Popen([t.PYTHON, "-c", TARGET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
t.check_equal("it begins", target.stdout.readline(), "ready\n")
group = pathlib.Path("group").absolute()
group.mkdir()
for name, text in (("cgroup.procs", f"{target.pid}\n"), ("memory.current", "9000000\n"), ("memory.stat", "anon 9000000\n")):
    (group / name).write_text(text, encoding="ascii")
for _ in range(LOOKS):
    result = t.run_cairn("report", "--json", "--cgroup", str(group))
    t.check(result.status == 0 and b'"heap_in_use": 0,' not in result.out.split(b'"processes"')[1], f"a look: {result}")
said, _ = target.communicate("end\n", timeout=t.PATIENCE_S)
t.check_equal("it noticed nothing", said, "well\n", is_grave=True)
t.check_equal("its end", target.returncode, 0, is_grave=True)
t.check(os.path.exists("leased"), "the target ran here")
t.finish()
