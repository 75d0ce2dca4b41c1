#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn core PID`: every answer is that of gcore's core of the same process, which stands still: recorded, sampled,
attached to, with another allocator, static, in Python; and a process that moves, is large, is refused or goes away."""

import ctypes
import glob
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import types

import cairn_test as t
import death_watch

t.need("gcore", "g++", "gcc")
PTRACE_SEIZE = 0x4206
VERBS = ("count", "list", "summarize", "explain")
SETS = ("used", "free", "allocations", "leaked", "unreferenced", "anchored")
PAUSE = re.compile(rb"cairn: process (\d+) was paused for [\d.]+ \w+ \((\d+) threads?, [\d.]+ \w+ copied\)\n")


class Still:
    """A program that has said its line and waits; `under`: what runs it, as its parent."""

    def __init__(self, argv, under=(), env=None):
        self.process = subprocess.Popen([*under, *argv], env=t.environment(env), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.line = self.process.stdout.readline().decode()
        self.words = dict(word.split("=") for word in self.line.split() if "=" in word)
        self.pid = self.process.pid
        if under:
            children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii")
            self.pid = int(children.split()[0])
        t.wait_until(self.waits)

    def waits(self):
        """It is in read(): from then on nothing of it changes."""
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("0 ")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait(timeout=t.PATIENCE_S)


def ask(subject, *words):
    result = t.run_cairn("core", str(subject), *words)
    t.check_equal(f"{subject} {' '.join(words)}: status ({result.err.decode()[-200:]})", result.status, 0)
    return result


def questions(pid, is_thorough):
    """About all blocks, and why they live; thoroughly: of all verbs, about all sets (in `make check-long` of each verb about
    each set), and about some blocks in each way."""
    yield ()
    yield from (("explain", "used"), ("list", "leaked"))
    if not is_thorough:
        return
    yield ("summarize",)
    yield from ((verb, which) for verb in VERBS for which in SETS) if t.IS_LONG else zip(VERBS + VERBS, SETS)
    for block in random.Random(7).sample(ask(pid, "enumerate", "used").out.decode().split(), 2):
        yield from (("list", which, block) for which in ("incoming", "outgoing", "allocation"))
        yield ("describe", block)


def check_same(what, still, *options, is_thorough=False):
    pid = str(still.pid)
    done = subprocess.run(["gcore", "-o", what, pid], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    core = f"{what}.{pid}"
    if not t.check(os.path.exists(core), f"{what}: no core: {done.stdout.decode()[-300:]}"):
        return
    for question in questions(pid, is_thorough):
        alive, dead = t.run_cairn("core", pid, *question), t.run_cairn("core", *options, core, *question)
        t.check_equal(f"{what}: {question}: status ({alive.err})", alive.status, dead.status)
        t.check(dead.out.replace(core.encode(), pid.encode()) == alive.out,
                f"{what}: {question}: {difference(dead.out, alive.out)}")
        pause = PAUSE.match(alive.err)
        t.check(pause and pause[1] == pid.encode(), f"{what}: {question}: no pause in {alive.err}")
        doubts = re.sub(rb".*/dev/zero.*\n", b"", dead.err.replace(b"cairn: " + core.encode(), b"cairn: process " + pid.encode()))
        t.check(PAUSE.sub(b"", alive.err) == doubts, f"{what}: {question}: {alive.err} and {doubts}")
    os.remove(core)
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    t.check("TracerPid:\t0\n" in status, f"{what}: somebody traces it")


def difference(dead, alive):
    lines = [pair for pair in zip(dead.split(b"\n"), alive.split(b"\n")) if pair[0] != pair[1]]
    return f"core, process: {lines[:2]}, {dead.count(10)} and {alive.count(10)} lines"


def count(pid, *words):
    found = re.search(rb"(\d+) allocations use 0x", ask(pid, "count", *words).out)
    return int(found[1]) if found else -1


def check_reach(what, still, own=0):
    """By the program's own account, which LeakSanitizer shares (tests/e2e/core_reach.py); `own`: that its allocator leaks."""
    for which in ("leaked", "unreferenced"):
        t.check_equal(f"{what}: {which}", count(still.pid, which), int(still.words[which]) + own)


def reach():
    program = t.program("reach")
    with Still(program) as still:
        check_reach("plain", still)
        check_same("plain", still, is_thorough=True)
        way = re.findall(rb"references (?:anchor point )?0x([0-9a-f]+)\n", ask(still.pid, "explain", still.words["last"]).out)
        t.check(len(way) == 4 and way[-1] == still.words["last"].encode(), f"plain: {way}")
    with Still(program, [t.CAIRN, "run", "-q", "-o", "run.cairn", "--"]) as still:
        check_reach("recorded", still)
        check_same("recorded", still, is_thorough=t.IS_LONG)
        t.check(b"lose " in ask(still.pid, "describe", "leaked").out, "recorded: no stacks")
    with Still(program, [t.CAIRN, "run", "-q", "--sample", "-o", "sample.cairn", "--"]) as still:
        check_same("sampled", still)
    with Still(program, env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": os.path.abspath("alone.cairn")}) as still:
        check_reach("alone", still)
        check_same("alone", still, "--recording", "alone.cairn")
    with Still(program) as still:
        with t.Process([t.CAIRN, "attach", "-o", "attached.cairn", str(still.pid)], env=t.environment(),
                              stderr=subprocess.PIPE) as attach:
            said = attach.stderr.readline()
            if t.check(b"recording reach" in said, f"attach: does not begin: {said}"):
                t.check(b" of size " in ask(still.pid, "list", "allocations").out, "attached: cannot be read")
                check_reach("attached", still)
            attach.terminate()
    library = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if library:
        with Still(program, ["env", f"LD_PRELOAD={library[0]}", t.CAIRN, "run", "-q", "-o", "other.cairn", "--"]) as still:
            check_same("other", still)
        with Still(program, ["env", f"LD_PRELOAD={library[0]}", t.CAIRN, "run", "-q", "--sample", "-o", "few.cairn",
                             "--"]) as still:
            check_reach("jemalloc, sampled", still)
        with Still(program, env={"LD_PRELOAD": library[0]}) as still:
            check_reach("jemalloc", still)
    mimalloc = glob.glob("/usr/lib/*/libmimalloc.so.2.*")
    if mimalloc:
        with Still(program, env={"LD_PRELOAD": mimalloc[0]}) as still:
            check_reach("mimalloc", still)
    tcmalloc = glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")
    if tcmalloc:
        with Still(program, env={"LD_PRELOAD": tcmalloc[0]}) as still:
            check_reach("tcmalloc", still, own=1)  # its first MallocExtension, which another one replaces
    other = glob.glob("/usr/lib/*/libtcmalloc_minimal_debug.so.4")
    if other:
        with Still(program, ["env", f"LD_PRELOAD={other[0]}", t.CAIRN, "run", "-q", "--sample", "-o", "fewer.cairn",
                             "--"]) as still:
            result = t.run_cairn("core", str(still.pid), "count", "leaked")
            t.check(result.status == 1 and b"its blocks are libtcmalloc_minimal_debug.so.4" in result.err
                    and b"and a sample was recorded" in result.err, f"another allocator, sampled: {result.err}")
    static = subprocess.run(["g++", "-O1", "-fno-builtin", "-static", "-pthread", "-o", "standalone",
                             str(t.SOURCE / "tests/programs/reach.cc")], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if static.returncode == 0:
        with Still(["./standalone"]) as still:
            check_reach("static", still)
            check_same("static", still)
    with Still([t.PYTHON, "-c", "import json, sys; held = [str(n) for n in range(100000)]; print('ready', flush=True); "
                                "sys.stdin.read()"]) as still:
        check_same("python", still)


def places():
    """Blocks that only one place refers to, of every kind: none is leaked."""
    with Still(t.program("references")) as still:
        check_same("places", still)
        for name, way in (("register", rb"\nRegister r12 for thread 2 references "),
                          ("stack", rb"\nThread 2 is currently using this stack.\nStack address 0x[0-9a-f]+ references "),
                          ("thread_local", rb"\n(?:Thread 2 .*\n)?(?:Stack|Static) address 0x[0-9a-f]+ references "),
                          ("mapped", rb"\nStatic address 0x[0-9a-f]+800 references "),
                          ("read_only", rb"\nStatic address 0x[0-9a-f]+800 references "),
                          ("shared", rb"\nStatic address 0x[0-9a-f]+800 references "),
                          ("large", rb" \(large\) references anchor point 0x[0-9a-f]+\nwhich references ")):
            told = ask(still.pid, "explain", still.words[name]).out
            t.check(b"an anchored allocation" in told and re.search(way + b"0x" + still.words[name].encode(), told),
                    f"{name}: {told}")
        hidden = ask(still.pid, "explain", still.words["hidden"]).out
        t.check(b"an unreferenced allocation" in hidden, f"kept out of cores: {hidden}")


# A thread that is stopped between changing a list of its cache and counting it, for good.
INTERRUPTED = """
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
enum { BLOCKS = 5, BYTES = 200, LIST = (BYTES + 8 + 15) / 16 - 2, HEADER = 16 };
int main(int argc, char **argv) {
    void *blocks[BLOCKS];
    char byte;
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BYTES);
    uint16_t *counts = (uint16_t *)(((uintptr_t)blocks[0] & -4096) + HEADER);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    if (counts[LIST] != BLOCKS) {
        write(1, "other\\n", 6);
    } else {
        counts[LIST] += argc > 1 ? 1 : -1;
        write(1, "ready\\n", 6);
    }
    return (int)read(0, &byte, 1) + (argv == 0);
}
"""


def caches():
    """The cache of such a thread is known even if it has no other list."""
    pathlib.Path("interrupted.c").write_text(INTERRUPTED, encoding="ascii")
    subprocess.run(["gcc", "-O1", "-w", "-fno-builtin", "-o", "interrupted", "interrupted.c"], check=True)
    for argv in (["./interrupted"], ["./interrupted", "more"]):
        with Still(argv) as still:
            if still.line != "ready\n":
                return t.skip_part("interrupted caches: glibc has another form of them here")
            cached = re.search(rb"(\d+) +\S+ \S+  free, in caches", ask(still.pid).out)
            t.check_equal(f"{argv}: free, in caches", int(cached[1]) if cached else None, 5)
    return None


def names():
    with Still(t.program("reach")) as still:
        os.mkdir("bin")
        os.symlink(t.program("reach")[0], "bin/only_of_this_test")
        with Still(["bin/only_of_this_test"]) as named:
            result = ask("only_of_this_test", "count", "leaked")
            t.check(result.err.startswith(b"cairn: process %d was" % named.pid), f"by name: {result.err}")
            with Still(["bin/only_of_this_test"]):
                result = t.run_cairn("core", "only_of_this_test", "count", "leaked")
                t.check(result.status == 1 and b"2 processes are called" in result.err, f"two: {result.err}")
        pathlib.Path(str(still.pid)).write_text("a file of that name\n", encoding="ascii")
        result = t.run_cairn("core", str(still.pid), "count", "leaked")
        t.check(result.status == 1 and b"is not a core dump" in result.err, f"file wins: {result.err}")
        os.remove(str(still.pid))
        result = t.run_cairn("core", "--recording", "run.cairn", str(still.pid), "count", "used")
        t.check(result.status == 1 and b"--recording is for core dumps" in result.err, f"--recording: {result.err}")
        result = t.run_cairn("core", str(still.pid), "summarize", "libc.so.6")
        t.check(result.status == 1 and b"it is not recorded, so" in result.err, f"by module: {result.err}")


def large():
    """More than 128 MiB are copied only when asked for."""
    with Still(t.program("references", "200")) as still:
        result = t.run_cairn("core", str(still.pid), "count", "leaked")
        said = re.fullmatch(rb"cairn: process \d+: (\d+) MiB of its memory are to be copied, for which it would be paused "
                            rb"for some [\d.]+ \w+: --no-copy-limit does that\n", result.err)
        t.check(result.status == 1 and said and 200 <= int(said[1]) < 250, f"large: {result.status} {result.err}")
        t.check(count(still.pid, "used") > 0, "large: its blocks alone take little")
        result = ask(still.pid, "--no-copy-limit", "explain", still.words["large"])
        t.check(b"an anchored" in result.out and PAUSE.match(result.err), f"large: {result.out} {result.err}")


def busy():
    """Threads in the midst of malloc; killed tools; and the process killed while it is looked at."""
    account = t.fresh_path("account")
    with t.Process(t.program("doomed", "loop", 3), env=t.environment({"LEDGER": account})) as child:
        death_watch.wait_for_work(types.SimpleNamespace(account_path=account), 20000)
        for _ in range(6 if t.IS_LONG else 3):
            result = t.run_cairn("core", str(child.pid), "count", "leaked")
            t.check(result.status == 0, f"busy: {result.status} {result.err}")
        for turn in range(8 if t.IS_LONG else 4):
            with t.Process([t.CAIRN, "core", str(child.pid), "count", "leaked"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as one:
                time.sleep(random.Random(turn).uniform(0.001, 0.03))
                one.kill()
        with t.Process([t.CAIRN, "core", str(child.pid), "count", "leaked"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as one:
            os.kill(child.pid, signal.SIGKILL)
            out, err = one.communicate(timeout=t.PATIENCE_S)
            t.check(one.returncode == 0 or (one.returncode == 1 and err.count(b"\n") == 1 and not out),
                    f"ends meanwhile: {one.returncode} {out} {err}")


def check_refused(what, pid, word, argv=None):
    result = t.run(argv or [t.CAIRN, "core", str(pid), "count", "leaked"])
    t.check(result.status == 1 and result.err.count(b"\n") == 1 and word in result.err and not result.out,
            f"{what}: {result.status} {result.err}")


def refused():
    check_refused("no process", 2 ** 22 - 7, b"no such process")
    check_refused("no name", "nothing_is_called_so", b"no process is called")
    check_refused("itself", 0, b"cairn itself", ["sh", "-c", f"exec {t.CAIRN} core $$ count leaked"])
    if os.path.exists("/proc/2/comm") and pathlib.Path("/proc/2/comm").read_text(encoding="ascii") == "kthreadd\n":
        check_refused("kernel", 2, b"thread of the kernel")
    with t.Process(["sleep", "60"]) as process:
        t.wait_until(lambda: t.is_in_state(process.pid, "S"))
        if ctypes.CDLL(None).ptrace(PTRACE_SEIZE, process.pid, None, None) == 0:
            check_refused("traced", process.pid, b"traced already")
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        check_refused("zombie", process.pid, b"has ended")
    result = t.run_cairn("core")
    t.check(result.status == 2 and b"cairn core CORE|PID|NAME" in result.err, f"nothing named: {result.err}")


if os.uname().machine != "x86_64":
    t.cannot_run_here("stopping a process to look at it is for x86-64")
reach()
places()
caches()
names()
large()
busy()
refused()
t.finish()
