#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach --children: a server with the workers that it has and those that it forks later, programs that
they become, forks of forks; exact counts of each; whose first process ends; what cannot be recorded, in one
line; a crowd of short-lived children; a killed cairn; a shell with the programs that it starts; nginx that is reloaded."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import urllib.request

from attached import Attached, Target, check_left, is_recorded, recordings_of, running_report
from cairn_test import (CAIRN, PATIENCE_S, PROGRAMS, PYTHON, Process, check, check_equal, children_of, environment,
                        finish, format_number, fresh_path, is_called, is_in_state, need_attach, report, run,
                        run_cairn, skip_part, stacks_through, wait_until)
from ports import free_port

SOUND = "7"
# Where a recording's version is, and that of a file that is complete.
PACKED_AT, PACKED = 8, format_number("CAIRN_VERSION_PACKED", "packed.h")


def prefork():
    return Target(path=PROGRAMS / "prefork")


def attach(pid, *options):
    return Attached(pid, "--children", "--exact", "--no-scan-heap", *options)


def settled(attached):
    """Those that were there at the start are recorded: it says so."""
    line = attached.process.stderr.readline().decode()
    check("descendant" in line, f"its descendants are recorded: {line}")
    return line


def check_worker(what, found, calls, size):
    if check(found is not None, f"{what}: it has a recording"):
        check_equal(f"{what}: calls", found["totals"]["allocations"], calls)
        check_equal(f"{what}: allocated", found["totals"]["allocated_bytes"], calls * size)
        check(stacks_through(found, "keep"), f"{what}: its stack goes through keep")
        check_equal(f"{what}: nothing is lost", found["trust"]["lost"], {})


def do_until_recorded(target, pid):
    """A program that was just started: its calls are seen from some time on."""
    def is_seen():
        target.tell(f"do {pid} 1 10")
        found = running_report(pid)
        return found and found["totals"]["allocations"] > 0
    check(wait_until(is_seen), f"process {pid} comes to be recorded")


def check_files(what, path):
    for file in pathlib.Path(path).glob("*.cairn*"):
        status = file.stat()
        version = struct.unpack_from("<I", file.read_bytes(), PACKED_AT)[0]
        check(status.st_size < 4 << 20 and ".save" not in file.name, f"{what}: {file.name}: {status.st_size} bytes")
        check_equal(f"{what}: {file.name} is complete", version, PACKED)


def workers_of_a_server():
    target = prefork()
    old = [int(target.tell("worker")) for _ in range(3)]
    attached = attach(target.pid)
    check("3 descendants" in settled(attached), "three workers were there")
    target.tell("own 20 100")
    for number, pid in enumerate(old):
        target.tell(f"do {pid} {300 + number} 1000")
    new = int(target.tell("worker"))
    target.tell(f"do {new} 400 1000")
    inner = int(target.tell(f"fork {new}"))
    program = int(target.tell("program"))
    do_until_recorded(target, program)
    target.tell(f"do {program} 500 2000")
    ended = int(target.tell("worker"))
    target.tell(f"do {ended} 1500 1000")
    check_equal("a worker ends while it is recorded", target.tell(f"end {ended}"), SOUND)
    check(wait_until(lambda: is_recorded(inner)), "a fork of a fork is recorded")
    attached.leave()
    found = recordings_of(attached.path)
    check_worker("the server", found.get(target.pid), 20, 100)
    for number, pid in enumerate(old):
        check_worker(f"worker {number}", found.get(pid), 300 + number, 1000)
    check_worker("a new worker", found.get(new), 400, 1000)
    check_worker("a worker that ended", found.get(ended), 1500, 1000)
    check(inner in found and found[inner]["totals"]["allocations"] > 0, "a fork of a fork")
    if program in found:
        totals = found[program]["totals"]
        check_equal("a program", totals["allocated_bytes"], 500 * 2000 + 10 * (totals["allocations"] - 500))
    summary = " ".join(attached.err.split())
    for words in ("prefork was left running", "8 processes recorded", "at detach", "detached from 7 processes"):
        check(words in summary, f"the summary: \"{words}\" in {attached.err}")
    check("not recorded" not in attached.err, f"all were: {attached.err}")
    for command in re.search(r"next: (.*)", attached.err).group(1).split(" · "):
        result = run_cairn(*command.split()[1:], attached.path)
        check_equal(f"{command}: status {result.err.decode()}", result.status, 0)
    check_files("a server", attached.path)
    everyone = [target.pid, *old, new, inner, program]
    for pid in everyone:
        check_left(f"process {pid}", pid)
    again(target, old, new)
    for pid in (*old, new, program):
        check_equal(f"worker {pid} is sound", target.tell(f"end {pid}"), SOUND)
    os.kill(inner, signal.SIGKILL)
    check_equal("the server is sound", target.tell("quit"), "sound")
    check_equal("its status", target.process.wait(60), int(SOUND))


def again(target, old, new):
    """A second time in the same processes, which carry the library; and left by a word to one of them."""
    attached = attach(target.pid)
    settled(attached)
    target.tell(f"do {old[0]} 30 100")
    target.tell(f"do {new} 40 100")
    attached.leave(lambda: run_cairn("ctl", old[0], "detach"))
    found = recordings_of(attached.path)
    check_worker("again: a worker", found.get(old[0]), 30, 100)
    check_worker("again: one that was forked while recorded", found.get(new), 40, 100)


def first_process_ends():
    target = prefork()
    worker = int(target.tell("worker"))
    attached = attach(target.pid)
    settled(attached)
    target.tell(f"do {worker} 10 100")
    check_equal("the first process ends", target.tell("quit"), "sound")
    target.process.wait(60)
    later = report(worker)["totals"]["allocations"]
    check(wait_until(lambda: report(worker)["totals"]["allocations"] > later), "its worker is recorded further")
    check_equal("attach stays", attached.process.poll(), None)
    os.kill(worker, signal.SIGTERM)
    attached.leave(lambda: None)
    found = recordings_of(attached.path)
    check_equal("both have recordings", sorted(found), sorted([target.pid, worker]))
    check("prefork ended" in attached.err, f"how it ended: {attached.err}")


def alone():
    """Without descendants it is as ever."""
    target = prefork()
    attached = attach(target.pid, "--record-for", "300ms")
    target.tell("own 10 100")
    found = attached.leave(lambda: None)
    check(pathlib.Path(attached.path).is_file(), "one file")
    check("was left running" in attached.err and found["totals"]["allocations"] in (0, 10), attached.err)
    target.tell("quit")


def crowd():
    target = prefork()
    attached = attach(target.pid)
    check_equal("a crowd of children", target.tell("crowd 300"), "done")
    target.tell("own 10 100")
    attached.leave()
    found = recordings_of(attached.path)
    check_worker("the parent of a crowd", found.get(target.pid), 10, 100)
    check_files("a crowd", attached.path)
    check_left("a crowd's parent", target.pid)
    check_equal("sound", target.tell("quit"), "sound")


def tool_dies():
    """Killed, it leaves forks that record into nowhere, and others that wait to; the next attach takes them over."""
    target = prefork()
    pids = [int(target.tell("worker"))]
    attached = attach(target.pid)
    settled(attached)
    pids += [int(target.tell("worker")) for _ in range(2)]
    target.tell(f"do {pids[1]} 10 10")
    attached.process.kill()
    attached.process.communicate()
    target.tell(f"do {pids[1]} 10 10")
    pids.append(int(target.tell("worker")))
    target.tell(f"do {pids[3]} 5 10")
    attached = attach(target.pid)
    settled(attached)
    for pid in pids:
        target.tell(f"do {pid} 11 100")
    attached.leave()
    found = recordings_of(attached.path)
    for pid in pids:
        check_worker("after a killed cairn", found.get(pid), 11, 100)
        check_left("after a killed cairn", pid)
        check_equal("after a killed cairn: sound", target.tell(f"end {pid}"), SOUND)
    check_equal("the server is sound", target.tell("quit"), "sound")


def unrecordable():
    pathlib.Path("static_loop.c").write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    if not shutil.which("gcc") or run(["gcc", "-static", "-s", "-o", "static_loop", "static_loop.c"]).status:
        skip_part("no static libc")
        return
    target = prefork()
    program = os.path.abspath("static_loop")
    children = [int(target.tell(f"become {program}")) for _ in range(2)]
    worker = int(target.tell("worker"))
    attached = attach(target.pid)
    lines = [attached.process.stderr.readline().decode() for _ in range(2)]
    said = [line for line in lines if "not recorded: static_loop" in line]
    check_equal(f"said once in {lines}", len(said), 1)
    check("statically linked" in said[0], f"why: {said}")
    check(any("1 descendant of it too" in line for line in lines), f"the other one is: {lines}")
    target.tell(f"do {worker} 25 100")
    attached.leave()
    check("1 process more of such programs" in attached.err, f"how many: {attached.err}")
    check_worker("its sibling", recordings_of(attached.path).get(worker), 25, 100)
    for child in children:
        os.kill(child, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    target.tell("quit")


SCRIPT = """
echo ready
while read line; do
    case "$line" in
    start) "$@" & echo $! ;;
    exec) exec "$@" ;;
    esac
done
"""
LOOP = ("import time\nkeep = []\nwhile True:\n    keep.append(bytearray(50000)); time.sleep(0.002)\n"
        "    if len(keep) > 100: keep.clear()\n")


def has_large(pid):
    found = running_report(pid)
    return found and found["totals"]["allocated_bytes"] > 1000000 and \
        stacks_through(found, "PyByteArray_Resize", "_PyEval_EvalFrameDefault")


def shell():
    command = ["/bin/sh", "-c", SCRIPT, "sh", PYTHON, "-c", LOOP]
    with Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        def tell(line):
            process.stdin.write(line + b"\n")
            return process.stdout.readline()
        process.stdout.readline()
        before = int(tell(b"start"))
        wait_until(lambda: is_called(before, "python3"))
        attached = attach(process.pid)
        settled(attached)
        after = int(tell(b"start"))
        check(wait_until(lambda: has_large(before)), "a program from before is recorded")
        check(wait_until(lambda: has_large(after)), "a program that the shell starts is recorded")
        process.stdin.write(b"exec\n")
        check(wait_until(lambda: has_large(process.pid)), "what the shell becomes is recorded")
        attached.leave()
        check("not recorded" not in attached.err, f"all are: {attached.err}")
        images = [file.name for file in pathlib.Path(attached.path).glob(f"*.{process.pid}*.cairn")]
        check_equal(f"the shell, and what it became: {images}", len(images), 2)
        for pid in (before, after, process.pid):
            check_left(f"python {pid}", pid)
            check(not is_in_state(pid, "ZX"), f"{pid} runs on")
            os.kill(pid, signal.SIGKILL)


NGINX = """
daemon off; master_process on; worker_processes 2; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
server {{ listen 127.0.0.1:{port}; location / {{ return 200 'hello'; }} }} }}
"""


def fetch(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as answer:
            return answer.read()
    except OSError:
        return b""


def nginx():
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not program:
        skip_part("no nginx")
        return
    directory, port = os.path.abspath(fresh_path("nginx")), free_port()
    os.mkdir(directory)
    os.chmod(directory, 0o755)
    config = pathlib.Path(directory, "nginx.conf")
    config.write_text(NGINX.format(directory=directory, port=port))
    messages = pathlib.Path(directory, "messages")
    with open(messages, "wb") as stderr, Process([program, "-p", directory, "-c", str(config)], stderr=stderr) as process:
        wait_until(lambda: process.poll() is not None or fetch(port) == b"hello")
        if not check(process.poll() is None and fetch(port) == b"hello",
                     f"nginx answers: status {process.poll()}: {messages.read_text(errors='replace')}"):
            process.kill()
            return
        old = children_of(process.pid)
        attached = attach(process.pid)
        settled(attached)
        process.send_signal(signal.SIGHUP)
        check(wait_until(lambda: not set(old) & set(children_of(process.pid)) and len(children_of(process.pid)) == 2),
              "workers are replaced")
        new = children_of(process.pid)
        twice = run_cairn("attach", "--children", "--record-for", "10ms", "nginx")
        said = twice.err.decode()
        # another test may have an nginx too: then the name is not enough
        check(twice.status == 1 and (f"not recorded: nginx {process.pid}: it is being recorded" in said
                                     or 'processes are called "nginx", give a pid' in said),
              f"by name, the master: {twice.status}: {said}")

        def are_recorded():
            return fetch(port) == b"hello" and all(is_recorded(pid) for pid in new)
        check(wait_until(are_recorded), "new workers are recorded")
        attached.leave()
        found = recordings_of(attached.path)
        check({process.pid, *new} <= set(found), f"master and new workers: {sorted(found)}, {process.pid}, {new}")
        check("nginx was left running" in attached.err, attached.err)
        for pid in (process.pid, *new):
            check_left(f"nginx {pid}", pid)
        check_equal("it answers", fetch(port), b"hello")
        process.send_signal(signal.SIGTERM)
        check_equal("nginx ends well", process.wait(60), 0)


need_attach()
for part in (workers_of_a_server, first_process_ends, alone, crowd, tool_dies, unrecordable, shell, nginx):
    part()
finish()
