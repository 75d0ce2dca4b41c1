#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach --children again and again to a server and its workers, old and new: what each of them has -
descriptors, signals, scheduling, mapped files - is as it was when they are left, but for the idle library;
their blocks are sound, and their status is their own. Also when they are left at any moment, while they fork."""

import os
import signal
import subprocess

from attached import Attached, Target, check_left, files_mapped, state_of
from cairn_test import (CAIRN, PATIENCE_S, PROGRAMS, Process, check, check_equal, environment, finish, fresh_path,
                        need_attach, wait_until)

ROUNDS = 20 if os.environ.get("CAIRN_LONG") else 5
SOUND = "7"


def without_library(lines):
    return [line for line in lines if "/memfd:libcairn" not in line]


def looks(pids):
    return {pid: (state_of(pid), without_library(files_mapped(pid))) for pid in pids}


def check_as_before(what, before):
    for pid, (state, files) in before.items():
        check_left(f"{what}: {pid}", pid)
        now, files_now = state_of(pid), files_mapped(pid)
        check_equal(f"{what}: {pid}: threads and files", now, state)
        check_equal(f"{what}: {pid}: mapped files", without_library(files_now), files)


def attach_to_server():
    server = Target(path=PROGRAMS / "prefork")
    workers = [int(server.tell("worker")) for _ in range(3)]
    workers.append(int(server.tell("program")))
    for worker in workers:
        server.tell(f"do {worker} 1 1")  # it has closed what it does not need
    before = looks([server.pid, *workers])
    for turn in range(ROUNDS):
        attached = Attached(server.pid, "--children", *(["--exact"] if turn % 2 else []))
        check("of it too" in attached.process.stderr.readline().decode(), f"turn {turn}: all are recorded")
        for worker in workers:
            server.tell(f"do {worker} 50 {100 + turn}")
        new = int(server.tell("worker"))
        server.tell(f"do {new} 20 100")
        attached.leave()
        # what a fork has is its parent's, but for the sockets
        check_equal(f"turn {turn}: signals of the new one", [*state_of(new)["threads"].values()],
                    [*before[workers[0]][0]["threads"].values()])
        check_equal(f"turn {turn}: its mapped files", without_library(files_mapped(new)), before[workers[0]][1])
        check_left(f"turn {turn}: the new one", new)
        server.tell(f"do {new} 20 100")
        check_equal(f"turn {turn}: its blocks", server.tell(f"end {new}"), SOUND)
        check_as_before(f"turn {turn}", before)
    for worker in workers:
        check_equal(f"blocks of {worker}", server.tell(f"end {worker}"), SOUND)
    check_equal("blocks of the server", server.tell("quit"), "sound")
    check_equal("its status", server.process.wait(60), int(SOUND))


def leave_while_it_forks():
    """Asked to leave while the server forks as fast as it can."""
    for turn in range(ROUNDS):
        server = Target(path=PROGRAMS / "prefork")
        path = fresh_path("forks") + ".cairn"
        with Process([CAIRN, "attach", "--children", str(server.pid), "-o", path, "-q",
                               *(["--exact"] if turn % 2 else [])], env=environment(), stderr=subprocess.PIPE) as process:
            wait_until(lambda: has_recording(server.pid))
            server.process.stdin.write("crowd 1000\n")
            server.process.stdin.flush()
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=PATIENCE_S)[1].decode()
        check_equal(f"turn {turn}: attach ends well: {err}", process.returncode, 0)
        check_equal(f"turn {turn}: no child was harmed", server.process.stdout.readline(), "done\n")
        check_left(f"turn {turn}: the server", server.pid)
        check_equal(f"turn {turn}: sound", server.tell("quit"), "sound")
        check_equal(f"turn {turn}: its status", server.process.wait(60), int(SOUND))


def has_recording(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return "/memfd:cairn" in maps.read()


need_attach()
attach_to_server()
leave_while_it_forks()
finish()
