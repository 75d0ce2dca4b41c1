#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn serve --all` and `--cgroup`: one server for many recorded processes, which come and go; many of them take
little memory and few descriptors, also of `cairn push`; a process without a recording is served from when it has one."""

import os
import re
import signal
import subprocess

import cairn_test as t
import push_engine
from commanded import Commanded
from served import Server

MANY = 100 if t.IS_LONG else 40
# other programs of this machine may be recorded too


def key_of(values, pid, name, program):
    start = f'{name}{{name="{program}",pid="{pid}"'
    return next((key for key in values if key.startswith(start + "}") or key.startswith(start + ",")), None)


def row(values, pid, name="cairn_inuse_bytes", program="commands"):
    return values.get(key_of(values, pid, name, program))


def check_place(values, pid):
    """The cgroup is this test's own, and nothing where that is the root."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = [line.strip().split(":", 2)[2] for line in file]
    key = key_of(values, pid, "cairn_inuse_bytes", "commands")
    found = re.search(r'cgroup="([^"]*)"', key)
    t.check(found[1] in own if found else set(own) == {"/"}, f"the cgroup in {key}, one of {own}")


def held(pid):
    return t.report(pid)["at_exit"]["bytes"]


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) * 1024


def check_births_and_deaths():
    with Commanded("first.cairn") as first:
        first.do("early 70000")
        with Server("--all") as server:
            t.check_equal("there already", row(server.metrics(), first.pid), held(first.pid))
            check_place(server.metrics(), first.pid)
            with Commanded("second.cairn") as second:
                second.do("late 90000")
                t.wait_until(lambda: row(server.metrics(), second.pid) == held(second.pid))
                t.check_equal("of one", row(server.metrics(f"/pid/{second.pid}/metrics"), second.pid), held(second.pid))
                t.check("late" in unpacked(server.get(f"/pid/{second.pid}/debug/pprof/heap").body), "its profile")
                listed = server.get("/").text
                t.check(f'href="pid/{first.pid}/"' in listed and f'href="pid/{second.pid}/"' in listed, "the list")
                t.check('data-live="1"' in server.get(f"/pid/{second.pid}/").text, "its page")
                t.check_equal("redirected", server.get(f"/pid/{second.pid}").headers["Location"], f"/pid/{second.pid}/")
                answer = server.get("/debug/pprof/heap")
                t.check(answer.status == 404 and "of which process" in answer.text, f"without a pid: {answer.text}")
            t.wait_until(lambda: row(server.metrics(), second.pid) is None)
            t.check_equal("its profile, afterwards", server.get(f"/pid/{second.pid}/debug/pprof/heap").status, 404)
            t.check(row(server.metrics(), first.pid), "the other one goes on")


def unpacked(profile):
    open("one.pb.gz", "wb").write(profile)
    return t.run(["gzip", "-dc", "one.pb.gz"]).out.decode(errors="replace")


def check_parts(server):
    """The kernel's account of the cgroup, which adds up; none of one process alone."""
    values, path = server.metrics(), os.path.abspath("group")
    parts = {key.split('part="')[1].split('"')[0]: value for key, value in values.items() if "cgroup_memory_bytes{" in key}
    wanted = {"anonymous": 5000, "files": 3000, "shared": 0, "kernel": 500, "ahead": 500, "not_known": 0}
    t.check_equal("its memory by part", parts, wanted)
    of_group = [values.get(f'cairn_cgroup_{name}{{cgroup="{path}"}}') for name in ("used_bytes", "limit_bytes")]
    t.check_equal("used, and its limit", of_group, [9000, 10000])


def check_group():
    """A cgroup is a directory whose cgroup.procs lists processes, here one that says what we want."""
    os.makedirs("group/below/deeper")
    with Commanded("in.cairn") as inside, Commanded("out.cairn") as outside:
        for directory, pid in (("group", ""), ("group/below", os.getpid()), ("group/below/deeper", inside.pid)):
            with open(f"{directory}/cgroup.procs", "w", encoding="ascii") as procs:
                procs.write(f"{pid}\n" if pid else "")
        for name, text in (("current", "9000\n"), ("max", "10000\n"), ("stat", "anon 5000\nfile 3000\nkernel 500\n")):
            with open(f"group/memory.{name}", "w", encoding="ascii") as file:
                file.write(text)
        with Server("--cgroup", os.path.abspath("group")) as server:
            check_parts(server)
            t.check("1 recorded process at" in server.said, server.said)
            t.check_equal("in the cgroup", row(server.metrics(), inside.pid), held(inside.pid))
            t.check_equal("not in the cgroup", row(server.metrics(), outside.pid), None)
            open("group/cgroup.procs", "a", encoding="ascii").write(f"{outside.pid}\n")
            t.wait_until(lambda: row(server.metrics(), outside.pid))
    for path, reason in (("nowhere", b"there is no such cgroup"), (os.getcwd(), b"no cgroup")):
        result = t.run_cairn("serve", "--cgroup", path)
        t.check(result.status == 1 and reason in result.err, f"--cgroup {path}: {result.err}")


def check_container():
    """A process in a file system of its own that records alone, as in a container."""
    os.mkdir("inside")
    output = os.path.abspath("inside") + "/own.cairn"
    library = f"LD_PRELOAD={t.loaded_library()} CAIRN_OUTPUT={output}"
    script = f"mount -t tmpfs none inside && echo in && {library} exec {t.program('commands')[0]}"
    with t.Process(["unshare", "-m", "sh", "-c", script], env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   stderr=subprocess.DEVNULL, text=True) as process:
        if process.stdout.readline() != "in\n":
            t.skip_part("no file system can be mounted in a name space of its own")
            return
        process.stdin.write("early 50000\n")
        process.stdin.flush()
        process.stdout.readline()
        t.check(not os.path.exists(output), "the recording is not to be seen from here")
        with Server("--all") as server:
            t.check((row(server.metrics(), process.pid) or 0) >= 50000, "a recording in a container")
            t.check("early" in unpacked(server.get(f"/pid/{process.pid}/debug/pprof/heap").body), "its names")
        process.communicate("end\n", timeout=t.PATIENCE_S)


def push_many(engine):
    """Pushes their profiles: 0.3 MiB for each process, and 10 in all."""
    pushing = subprocess.Popen([t.CAIRN, "push", "sleep", "--to", engine.url, "--format", "pyroscope", "--every", "2s"],
                               env=t.environment({"XDG_STATE_HOME": os.path.abspath("state"), "no_proxy": "*"}),
                               stderr=subprocess.DEVNULL)
    t.wait_until(lambda: len(engine.taken) >= MANY)
    t.check(resident_bytes(pushing.pid) < 40 << 20, f"push, resident: {resident_bytes(pushing.pid)}")
    return pushing


def check_many():
    script = f"import subprocess; all = [subprocess.Popen(['sleep', '600']) for _ in range({MANY})]\nprint('up', flush=True); input()\nfor one in all: one.kill()\n"
    argv = [t.CAIRN, "run", "-q", "-o", "many.cairn", "--", t.PYTHON, "-c", script]
    with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        python = t.children_of(run.pid)[0]
        with push_engine.Engine() as engine, Server("--all") as server:
            pids = t.children_of(python)
            t.wait_until(lambda: all(row(server.metrics(), pid, program="sleep") for pid in pids))
            t.check_equal("many", len(pids), MANY)
            t.check(resident_bytes(server.process.pid) < 40 << 20, f"resident: {resident_bytes(server.process.pid)}")
            pushing = push_many(engine)
            run.stdin.write(b"\n")
            run.stdin.flush()
            run.wait(timeout=t.PATIENCE_S)
            t.wait_until(lambda: not any(row(server.metrics(), pid, program="sleep") for pid in pids))
            t.check(len(os.listdir(f"/proc/{server.process.pid}/fd")) < MANY, "descriptors are given back")
            t.wait_until(lambda: resident_bytes(pushing.pid) < 20 << 20)
            pushing.send_signal(signal.SIGINT)
            t.check_equal("push", pushing.wait(timeout=t.PATIENCE_S), 0)


check_births_and_deaths()
check_group()
check_container()
check_many()
t.finish()
