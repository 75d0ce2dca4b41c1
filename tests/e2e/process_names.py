#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process has one name: the one by which cairn attach finds it is taken by ctl, top, report and core, and
stands on every screen, whatever title the program gives itself; several of one name are told apart. Words of
cairn ctl that change something mean one process."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import cairn_test as t
from attached import Attached

t.need_attach()

NAME = f"srv{os.getpid()}"  # other tests run beside this one
os.mkdir("bin")  # a word that is a file is no process
EXECUTABLE = f"exe{os.getpid()}"
shutil.copy(t.PROGRAMS / "attached", f"bin/{EXECUTABLE}")
os.symlink(EXECUTABLE, f"bin/{NAME}")


class Titled:
    """The program under the name of a symbolic link, with a title instead of its arguments."""

    def __init__(self, title):
        self.process = subprocess.Popen([title], executable=f"bin/{NAME}", stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(), text=True)
        self.pid = self.process.pid
        t.check_equal("the program starts", self.process.stdout.readline(), "ready\n")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        t.check_equal("its blocks", self.tell("end"), "sound")
        self.process.communicate(timeout=t.PATIENCE_S)


def accepted(what, *words, says=()):
    result = t.run_cairn(*words)
    t.check_equal(f"{what}: status ({result.err})", result.status, 0)
    for word in says:
        t.check(word.encode() in result.out + result.err, f"{what}: \"{word}\" in {result.out[:400]} {result.err}")
    return result.out.decode()


def by_name():
    target = Titled(f"{NAME} *:7391 {os.getcwd()}/other")
    t.check_equal("not recorded", t.run_cairn("ctl", NAME, "status").status, 1)
    attached = Attached(NAME, "--exact", "--no-scan-heap")
    called = f"{NAME} {target.pid}"
    t.check(f"recording {called} to " in attached.first, f"attach: {attached.first}")
    target.tell("keep 300 1000")
    accepted("status", "ctl", NAME, "status", says=[f"{called} recording, "])
    accepted("mark", "ctl", NAME, "mark", "warm", says=[f"{called}: mark \"warm\""])
    accepted("executable", "ctl", EXECUTABLE, "status", says=[called])
    accepted("top", "top", "--once", NAME, says=[f"{called} recording, "])
    t.check(NAME in accepted("list", "top", "--once").split(), "top lists it under this name")
    found = accepted("report", "report", "--json", NAME)
    t.check('"keep"' in found, f"its stacks: {found[:200]}")
    accepted("summary", "report", NAME, says=[f"{NAME} is running"])
    accepted("heap", "report", "--view", "heap", NAME)
    accepted("core", "core", NAME, "count", "used", says=["allocations use"])
    unknown = t.run_cairn("ctl", NAME + "x", "on")
    t.check(f'no process called "{NAME}x" is being recorded; recorded: '.encode() in unknown.err and
            unknown.status == 1, f"unknown: {unknown.err}")
    missing = t.run_cairn("report", NAME + "x")
    t.check(b"no such file: no process called" in missing.err and missing.status == 1, f"missing: {missing.err}")
    accepted("detach", "ctl", NAME, "detach")
    attached.leave(lambda: None)
    t.check(f"{NAME} was left running" in attached.err, f"summary: {attached.err}")
    accepted("its file", "report", attached.path, says=[f"{NAME} was left running"])
    os.mkdir("here")
    t.run_cairn("attach", "-q", NAME, "--record-for", "1ms", cwd="here")
    t.check_equal("the file's name", os.listdir("here"), [f"{NAME}.{target.pid}.cairn"])
    target.end()


def several():
    first = Titled(f"{NAME}: master process")
    second = Titled(f"{NAME}: other")
    child = first.tell("child")
    result = t.run_cairn("attach", NAME)
    text = result.err.decode()
    t.check_equal("several: status", result.status, 1)
    t.check_equal(f"several: one line, {text}", text.count("\n"), 1)
    for words in (f"3 processes are called \"{NAME}\"", f"{first.pid} (parent of 1: {NAME}: master process)",
                  f"{child} (child of {first.pid}: {NAME}: master process)", f"{second.pid} ({NAME}: other)"):
        t.check(words in text, f"several: \"{words}\" in {text}")
    attached = [Attached(target.pid, "--exact", "--no-scan-heap") for target in (first, second)]
    told = t.run_cairn("ctl", NAME, "mark")
    t.check(told.status == 1 and f"2 recorded processes are called \"{NAME}\"".encode() in told.err,
            f"ctl: {told.err}")
    both = accepted("status of both", "ctl", NAME, "status")
    t.check_equal(f"status of both: {both}", both.count("\n"), 2)
    for one in attached:
        found = one.leave()
        t.check_equal("no mark was set", [m for m in found["snapshots"] if m["reason"] == "mark"], [])
    first.tell("end-child")
    first.end()
    second.end()


def another_user():
    """Root's words by name are not for what others record."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        return
    become = ["setpriv", "--reuid=65534", "--clear-groups"]
    if t.run([*become, t.CAIRN, "--version"], env=t.environment()).status != 0:
        return
    with tempfile.TemporaryDirectory() as path:
        os.chown(path, 65534, 65534)
        theirs = pathlib.Path(path) / f"{NAME}b"
        theirs.symlink_to(t.PROGRAMS / "commands")
        recorded_by(become, theirs)


def recorded_by(become, theirs):
    with t.Process([*become, t.CAIRN, "run", "-q", "-o", f"{theirs}.cairn", str(theirs)],
                          env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
        tool.stdin.write("hello\n")
        tool.stdin.flush()
        t.check_equal("it runs", tool.stdout.readline(), "ok\n")
        with open(f"/proc/{tool.pid}/task/{tool.pid}/children", encoding="ascii") as children:
            pid = children.read().split()[0]
        by_name = t.run_cairn("ctl", theirs.name, "mark")
        t.check(by_name.status == 1 and b"recorded by another user: give its pid" in by_name.err,
                f"another's by name: {by_name}")
        accepted("another's by pid", "ctl", pid, "mark", "x", says=[f"{theirs.name} {pid}: mark"])
        tool.communicate("end\n", timeout=t.PATIENCE_S)


by_name()
several()
another_user()
t.finish()
