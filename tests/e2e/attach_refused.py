#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who cannot be attached to: one line says why, the status is 1, and nothing is left behind in the target;
and who can although it lives in namespaces of its own, without the files and the pids of this one."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from attached import Attached, Target
from cairn_test import (CAIRN, PATIENCE_S, PROGRAMS, PYTHON, Process, check, check_equal, environment, finish,
                        fresh_path, is_called, is_in_state, need_attach, report, run, run_cairn, stacks_through,
                        wait_until)

PR_SET_DUMPABLE, PR_SET_SECCOMP, SECCOMP_STRICT = 4, 22, 1
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
NOBODY = 65534
LIBC = ctypes.CDLL(None, use_errno=True)


def traces(pid):
    """What could tell that somebody was there."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        mapped = [line for line in maps if "cairn" in os.path.basename(line)]
    links = sorted(os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd"))
    return mapped, links


def check_line(what, result, *words):
    text = result.err.decode()
    check_equal(f"{what}: status", result.status, 1)
    check_equal(f"{what}: one line in {text!r}", text.count("\n"), 1)
    for word in words:
        check(word in text, f"{what}: \"{word}\" in {text!r}")


def refused(what, pid, *words, before=()):
    seen, files = traces(pid), sorted(os.listdir("."))
    command = [*before, CAIRN, "attach", str(pid), "--record-for", "10ms"]
    check_line(what, run(command, env=environment()), *words)
    check_equal(f"{what}: nothing is left behind", traces(pid), seen)
    check_equal(f"{what}: no file is left", sorted(os.listdir(".")), files)


def child(code, before=()):
    """A Python process that runs `code` after it said so."""
    setup = f"import ctypes, time\nlibc = ctypes.CDLL(None)\n{code}\n"
    return subprocess.Popen([*before, PYTHON, "-c", setup], stdout=subprocess.PIPE)


def is_ready(what, process):
    """What comes instead of the word, the reason why it cannot be tested, is a failure."""
    return check_equal(f"{what}: the program says", process.stdout.readline(), b"ready\n")


SAY = "import os\nos.write(1, b'ready\\n')\n"


def sleeps(pid):
    """Its start, in which files are opened and mapped, is over."""
    return is_called(pid, "sleep") and is_in_state(pid, "S")


def traced():
    with Process(["sleep", "60"]) as process:
        wait_until(lambda: sleeps(process.pid))
        check_equal("seized", LIBC.ptrace(PTRACE_SEIZE, process.pid, None, None), 0)
        refused("traced", process.pid, "traced already", f"by process {os.getpid()}")
        process.kill()


def own_pid():
    result = run(["/bin/sh", "-c", f'exec "{CAIRN}" attach $$'], env=environment())
    check_line("own pid", result, "this cairn itself")


def another_user():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        return
    become = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
    with Process(["sleep", "60"]) as process:
        wait_until(lambda: sleeps(process.pid))
        reachable = run([*become, CAIRN, "--version"], env=environment()).status == 0
        if reachable:
            refused("another user", process.pid, "permission denied", "belongs to user 0", before=become)
        process.kill()
    if not reachable:
        return
    with child(f"libc.prctl({PR_SET_DUMPABLE}, 0)\n{SAY}time.sleep(60)", before=become) as process:
        is_ready("protected", process)
        refused("protected", process.pid, "protected", before=become)
        own_scope(process.pid, become)
        process.kill()


def own_scope(pid, become):
    """A kernel that says that ptrace is for parents only, as far as cairn can see."""
    script = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
              "echo 1 > /proc/sys/kernel/yama/ptrace_scope && exec \"$@\"")
    into = ["unshare", "-m", "/bin/sh", "-c", script, "sh"]
    if run([*into, "true"]).status == 0:
        refused("ptrace_scope", pid, "ptrace_scope is 1", before=[*into, *become])


def under_seccomp():
    strict = f"{SAY}libc.prctl({PR_SET_SECCOMP}, {SECCOMP_STRICT})\nwhile True: pass"
    with child(strict) as process:
        is_ready("seccomp's strict mode", process)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        wait_until(lambda: "Seccomp:\t1" in status.read_text())
        refused("seccomp's strict mode", process.pid, "seccomp's strict mode")
        process.kill()
    # a filter of one instruction that allows everything
    code = ("import struct\n"
            "rule = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))\n"
            "head = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(rule)))\n"
            f"libc.prctl(38, 1, 0, 0, 0)\nassert libc.prctl({PR_SET_SECCOMP}, 2, head) == 0\n"
            f"{SAY}keep = []\nwhile True: keep.append(bytearray(5000)); time.sleep(0.001)")
    with child(code) as process:
        if is_ready("a filter", process):
            refused("a filter", process.pid, "seccomp filter", "--ignore-checks")
            attached = Attached(process.pid, "--exact", "--ignore-checks", "--record-for", "60s")
            wait_until(lambda: report(process.pid)["totals"]["allocations"] > 50)
            found = attached.leave()
            check(found["totals"]["allocations"] > 50, "with --ignore-checks it is recorded")
            check_equal("and runs on", process.poll(), None)
        process.kill()


def locked_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(status.read().split("VmLck:")[1].split()[0])


def locks_its_memory():
    """All that is mapped in such a process is filled and locked: gigabytes, of cairn's address space."""
    process = child("import resource\nresource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
                    "print('ready' if libc.mlockall(2) == 0 else 'no right to lock', flush=True)\ntime.sleep(1000)")
    with process:
        if process.stdout.readline() == b"ready\n":
            wait_until(lambda: is_in_state(process.pid, "S"))
            before = locked_kib(process.pid)
            refused("locked memory", process.pid, "mlockall")
            wait_until(lambda: is_in_state(process.pid, "S"))  # the program goes on
            check_equal("locked memory: KiB that are locked", locked_kib(process.pid), before, is_grave=True)
        process.kill()


def ends_meanwhile():
    """Killed at some time of the attach: the status is 1 with one line, or what there was is kept."""
    for turn in range(12):
        process = subprocess.Popen([str(PROGRAMS / "tight"), "4"], stdout=subprocess.PIPE)
        process.stdout.readline()
        path = fresh_path("ends") + ".cairn"
        with Process([CAIRN, "attach", str(process.pid), "-o", path, "--exact"],
                              env=environment(), stderr=subprocess.PIPE, text=True) as attaching:
            time.sleep(0.02 * turn)
            process.kill()
            process.communicate()
            _, err = attaching.communicate(timeout=PATIENCE_S)
        check(attaching.returncode in (0, 1), f"turn {turn}: status {attaching.returncode}")
        if attaching.returncode == 1:
            check_equal(f"turn {turn}: one line in {err!r}", err.count("\n"), 1)
            check(not os.path.exists(path), f"turn {turn}: no file")
        else:
            os.unlink(path)


def ignores_faults():
    """A program that ignores SIGSEGV goes on ignoring it: calls in it then end another way."""
    with child(f"import signal\nsignal.signal(signal.SIGSEGV, signal.SIG_IGN)\n{SAY}time.sleep(60)") as process:
        is_ready("it ignores faults", process)
        status = pathlib.Path(f"/proc/{process.pid}/status")

        def signals():
            return [line for line in status.read_text().splitlines() if line.startswith("Sig")][2:]

        before = signals()
        attached = Attached(process.pid, "--exact", "--record-for", "50ms")
        attached.leave(lambda: None)
        check_equal("signals as before", signals(), before)
        process.kill()


def another_namespace():
    """A library in a namespace of its own (dlmopen) whose malloc is not its libc's: said, and left alone."""
    library = PROGRAMS / "libowned.so"
    code = (f"libc.dlmopen.restype = ctypes.c_void_p\nlibc.dlerror.restype = ctypes.c_char_p\n"
            f"handle = libc.dlmopen(-1, b'{library}', 2)\n"
            f"if not handle: raise SystemExit(print(libc.dlerror()))\n{SAY}time.sleep(60)")
    with child(code) as process:
        if is_ready("another namespace", process):
            attached = Attached(process.pid, "--exact", "--record-for", "50ms")
            attached.leave(lambda: None)
            check("not recorded: 2 modules of other namespaces (dlmopen)" in attached.err,
                  f"it is said: {attached.err}")
            check_equal("it runs on", process.poll(), None)
        process.kill()


def last_child(pid):
    """The innermost of a chain of processes that wait for each other."""
    while True:
        path = f"/proc/{pid}/task/{pid}/children"
        children = pathlib.Path(path).read_text(encoding="utf-8").split()
        if not children:
            return pid
        pid = int(children[0])


def in_container(what, script, *options):
    """The program runs as `script` has it, in other namespaces; cairn stays in this one."""
    program = fresh_path("container")
    shutil.copy(PROGRAMS / "attached", program)
    if run(["unshare", *options, "/bin/sh", "-c", script.replace("exec", "true")]).status != 0:
        print(f"{what}: not possible here", file=sys.stderr)
        return
    target = Target(4, path=program, before=["unshare", *options, "/bin/sh", "-c",
                                             f'{script} "$0" "$@"'])
    attached = Attached(last_child(target.pid), "--exact", "--no-scan-heap")
    target.tell("keep 300 1000")
    found = attached.leave()
    check(found["totals"]["allocations"] >= 300, f"{what}: calls are recorded")
    check(stacks_through(found, "keep"), f"{what}: names are found")
    target.end(what)


def few_descriptors():
    """A cairn that may open few files says so of each program, and of none that it has ended or cannot be read."""
    poor = ["setpriv", "--bounding-set=-sys_resource"] if os.getuid() == 0 else []
    crowd = subprocess.Popen([PYTHON, "-c", f"import ctypes, ssl, threading, time\nfor _ in range(20): threading.Thread("
                              f"target=time.sleep, args=(600,), daemon=True).start()\n{SAY}time.sleep(600)"],
                             stdout=subprocess.PIPE)
    with Process(["sleep", "600"]) as small, crowd:
        is_ready("many threads", crowd)
        wait_until(lambda: sleeps(small.pid))
        for process, limits in (small, (6, 9, 14)), (crowd, (33,)):
            for limit in limits:
                before = [*poor, "/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]
                refused(f"{limit} descriptors", process.pid, "Too many open files", before=before)
        small.kill()
        crowd.kill()


def without_proc():
    script = "umount -l /proc && exec sleep 60"
    with Process(["unshare", "-m", "/bin/sh", "-c", script]) as process:
        wait_until(lambda: is_called(process.pid, "sleep") and is_in_state(process.pid, "S"))
        if not os.path.exists(f"/proc/{process.pid}/root/proc/version"):
            refused("without /proc", process.pid, "no /proc")
        process.kill()


def containers():
    if os.getuid() != 0 or not shutil.which("unshare"):
        return
    in_container("mount and pid namespaces", "exec", "-m", "-p", "--fork", "--mount-proc", "--kill-child")
    hide = f'mount -t tmpfs none "{pathlib.Path(CAIRN).parent}" && exec'
    in_container("without cairn's files", hide, "-m")
    without_proc()


need_attach()
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
traced()
own_pid()
few_descriptors()
another_user()
under_seccomp()
locks_its_memory()
ends_meanwhile()
ignores_faults()
another_namespace()
containers()
finish()
