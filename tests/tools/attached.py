# SPDX-License-Identifier: Apache-2.0
"""Programs that do what they are told on stdin, and cairn attach beside them."""

import json
import os
import time
import pathlib
import signal
import subprocess

from cairn_test import (CAIRN, PATIENCE_S, PROGRAMS, check, check_equal, environment, fresh_path, report, run_cairn)


class Target:
    """tests/programs/attached.c, or another one that says "ready" and answers each line."""

    def __init__(self, threads=1, path=PROGRAMS / "attached", before=()):
        self.process = subprocess.Popen([*before, str(path), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment(), text=True)
        self.pid = self.process.pid
        check_equal("the program starts", self.process.stdout.readline(), "ready\n")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self, what):
        check_equal(f"{what}: the program's own look at its blocks", self.tell("end"), "sound", is_grave=True)
        self.process.stdin.close()
        check_equal(f"{what}: its status", self.process.wait(60), 0, is_grave=True)


class Attached:
    """cairn attach in the background; leave() has it leave and returns the report."""

    def __init__(self, pid, *options, before=()):
        self.path = fresh_path("attached") + ".cairn"
        self.process = subprocess.Popen(
            [*before, CAIRN, "attach", str(pid), "-o", self.path, *options], env=environment(),
            stderr=subprocess.PIPE, bufsize=0)  # of what is read as a line nothing behind it is lost
        self.first = self.process.stderr.readline().decode()
        check("cairn: recording" in self.first, f"attach begins: {self.first}")

    def leave(self, ask=None):
        if ask:
            ask()
        else:
            self.process.send_signal(signal.SIGINT)
        self.err = self.process.communicate(timeout=PATIENCE_S)[1].decode()
        check(self.process.returncode == 0, f"attach ends well: {self.process.returncode}: {self.err}")
        return report(self.path)


def is_recorded(pid):
    return run_cairn("ctl", str(pid), "status").status == 0


def running_report(pid):
    """The JSON report of a process that is being recorded; None if it is not, between two images for one."""
    result = run_cairn("report", "--json", str(pid))
    found = json.loads(result.out) if result.status == 0 else {}
    return found if found.get("schema", "").startswith("cairn.report/") else None


def recordings_of(path):
    """By pid the reports of a run's directory, or of its only recording; of several of a pid the last image's."""
    path = pathlib.Path(path)
    files = sorted(path.glob("*.cairn")) if path.is_dir() else [path]
    return {found["process"]["pid"]: found for found in map(report, files) if found}


def check_left(what, pid):
    """Nothing of a recording is left in the process, but the library, idle."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        mapped = {line.split(maxsplit=5)[5].strip() for line in maps if "memfd:" in line}
    check(mapped <= {"/memfd:libcairn.so (deleted)"}, f"{what}: mapped: {mapped}")
    links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    check(not [link for link in links if "memfd:" in link], f"{what}: files: {links}")
    check_equal(f"{what}: it is not recorded", is_recorded(pid), False)


CALL_BYTES = 512 << 10  # the least that a call of cairn attach maps


def mappings(pid):
    """(start, end, access, name) of each."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        lines = [line.split(maxsplit=5) for line in maps]
    return [(*(int(word, 16) for word in line[0].split("-")), line[1], line[5].strip() if len(line) > 5 else "")
            for line in lines]


def mapped_anew(before, after):
    """Memory that may be written, has no name and was not there before; but for arenas of malloc, behind which the
    rest of their place follows, and what is as small as the library's data."""
    known = {one[0] for one in before}
    arenas = {start for start, _, access, _ in after if access == "---p"}
    return [(hex(start), end - start) for start, end, access, name in after
            if access == "rw-p" and not name and start not in known and end not in arenas and end - start >= CALL_BYTES]


def state_of(pid):
    """What attaching must not change."""
    fields = ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "Seccomp", "NoNewPrivs", "TracerPid")
    threads = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        number = int(tid)
        threads[tid] = {name: lines.get(name) for name in fields}
        threads[tid]["scheduling"] = (os.sched_getscheduler(number), os.sched_getparam(number).sched_priority,
                                      os.getpriority(os.PRIO_PROCESS, number))
    links = {name: os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    return {"threads": threads, "files": links}


def settled(pid):
    """The state once no thread is just being started."""
    while True:
        state = state_of(pid)
        time.sleep(0.1)
        if state == state_of(pid) and all(int(thread["SigBlk"], 16) == 0 for thread in state["threads"].values()):
            return state


def files_mapped(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        lines = [line.split(maxsplit=5) for line in maps]
    return sorted(f"{line[1]} {line[5].strip()}" for line in lines if len(line) > 5 and line[5][0] in "/m")
