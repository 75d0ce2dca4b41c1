#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach on dynamic programs of musl: by the library that is built for its dlopen, chosen by the program's
interpreter. What is recorded is exact; attaching and leaving, again and again, changes neither output, status, files,
masks nor blocks. Pre-existing blocks and views of a heap that is not recorded are glibc's, and refused in one line."""

import os
import re
import shutil
import signal
import subprocess

import cairn_test as t
from attached import Attached, Target, check_left, recordings_of, settled, state_of

t.need_attach()
t.need("musl-gcc")
CYCLES, THREADS = int(os.environ.get("ATTACH_CYCLES", "12" if t.IS_LONG else "4")), 4
# Threads that wait for one another, each with a block of its own, until the first line comes.
WAITING = """
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_over;
static void *wait_long(void *unused) {
    void *block = malloc(100);
    pthread_mutex_lock(&lock);
    while (!is_over) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    free(block);
    return unused;
}
static void *read_line(void *unused) {
    char line[100];
    if (fgets(line, sizeof line, stdin)) free(malloc(4321));
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t threads[4];
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i ? wait_long : read_line, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    puts("over");
    return 5;
}
"""


def build(name, source, *options):
    path = os.path.abspath(name)
    done = subprocess.run(["musl-gcc", "-D_GNU_SOURCE", f"-I{t.SOURCE}", "-O1", "-g", "-fno-builtin", *options, "-o", path,
                           str(source)], stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        t.cannot_run_here(f"musl-gcc cannot build here: {done.stderr}")
    return path


def is_refused(what, result, *words):
    lines = [line for line in result.err.decode().splitlines() if "was paused" not in line]
    t.check(result.status == 1 and len(lines) == 1 and all(word in lines[0] for word in words),
            f"{what}: status {result.status}: {lines}")


def stacks_that_keep(found, blocks, size):
    return [s for s in found["stacks"] if s["at_exit_blocks"] == blocks and s["at_exit_bytes"] == blocks * size]


def exactly(path):
    """What a thread keeps, frees and has a library allocate, stack by stack, and nothing of its children."""
    target = Target(1, path)
    attached = Attached(target.pid, "--exact", "--scan-heap")
    target.tell("keep 100 1000")
    t.wait_until(lambda: target.tell("plugin 1 10") and
                 t.run_cairn("report", "--json", target.pid).out.count(b"plugin_allocate"))
    target.tell("plugin 40 3000")
    t.check_equal("a child's status", target.tell("fork 3 50"), "child 7")
    target.tell("vfork 1")
    found = attached.leave()
    told = [line for line in (attached.first + attached.err).splitlines() if "pre-existing" in line]
    t.check(len(told) == 1 and "not counted" in told[0], f"pre-existing blocks: {told}")
    t.check(re.search("before +not counted: what was allocated before attach\n", attached.err), f"no advice that would not help: {attached.err}")
    kept, loaded = stacks_that_keep(found, 100, 1000), t.stacks_through(found, "plugin_allocate")
    t.check(len(kept) == 1 and "keep" in t.functions(kept[0]), f"keep: {kept}")
    t.check(sum(stack["allocations"] for stack in loaded) >= 40, f"blocks of the plug-in: {loaded}")
    t.check_nothing_lost("exactly", found)
    check_left("exactly", target.pid)
    target.tell("drop")
    target.end("exactly")


def with_children(path):
    """A child that was there is attached to, one that is forked later records itself; both are left."""
    target = Target(1, path)
    attached = Attached(target.pid, "--children", "--exact")
    child = int(target.tell("child"))
    t.wait_until(lambda: t.run_cairn("ctl", str(child), "status").status == 0)
    attached.process.send_signal(signal.SIGINT)
    err = attached.process.communicate(timeout=t.PATIENCE_S)[1].decode()
    t.check_equal(f"children: {err}", attached.process.returncode, 0)
    t.check_equal("children: recordings", sorted(recordings_of(attached.path)), sorted([target.pid, child]))
    check_left("children: parent", target.pid)
    check_left("children: child", child)
    t.check_equal("children: the child's end", target.tell("end-child"), str(int(signal.SIGTERM)))
    target.end("children")


def again_and_again(path):
    target = Target(THREADS, path)
    before = settled(target.pid)
    for cycle in range(CYCLES):
        attached = Attached(target.pid, *([] if cycle % 3 else ["--exact"]))
        target.tell("keep 50 2000")
        found = attached.leave()
        t.check(found["totals"]["allocations"] >= 50, f"cycle {cycle}: {found['totals']}")
        t.check(cycle % 3 or len(stacks_that_keep(found, 50, 2000)) == 1, f"cycle {cycle}: stacks that keep")
        target.tell("drop")
        now = state_of(target.pid)
        t.check_equal(f"cycle {cycle}: files", now["files"], before["files"])
        for tid, fields in before["threads"].items():
            t.check_equal(f"cycle {cycle}: thread {tid}", now["threads"].get(tid), fields)
    check_left("again and again", target.pid)
    target.end("again and again")


def tight(path):
    """Threads that do nothing but allocate and free are not harmed, whether there is a safe moment or not."""
    for threads in (1, 6):
        with t.Process([path, str(threads)], stdout=subprocess.PIPE, env=t.environment()) as process:
            t.check_equal("tight: it starts", process.stdout.readline(), b"ready\n")
            for _ in range(CYCLES):
                result = t.run_cairn("attach", str(process.pid), "-o", t.fresh_path("tight"), "--record-for", "10ms")
                t.check(result.status == 0 or b"no safe moment" in result.err, f"tight, {threads}: {result.err}")
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=t.PATIENCE_S)
            t.check_equal(f"tight, {threads} threads: end", (rest, process.returncode), (b"sound\n", 0))


def waiting():
    """Every thread waits: for a line, a condition, the end of another."""
    with open("waiting.c", "w", encoding="ascii") as file:
        file.write(WAITING)
    path = build("waiting", "waiting.c", "-pthread")
    with t.Process([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("waiting: it starts", process.stdout.readline(), b"ready\n")
        t.wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 5 and
                     all(t.is_in_state(int(tid), "S") for tid in os.listdir(f"/proc/{process.pid}/task")))
        for words in (["core", str(process.pid), "summarize"], ["report", "--view", "heap", str(process.pid)]):
            is_refused(f"{words} of its own heap", t.run_cairn(*words), "no arena of glibc's lies in the data")
        first = Attached(process.pid, "--exact")
        t.check_equal("waiting: allocations", first.leave()["totals"]["allocations"], 0)
        attached = Attached(process.pid, "--exact")
        heap = t.run_cairn("report", "--view", "heap", str(process.pid))
        t.check(b"its allocator is not glibc's: what is recorded is shown" in heap.out, f"heap: {heap.out}")
        out, _ = process.communicate(b"line\n", timeout=t.PATIENCE_S)
        t.check_equal("waiting: end", (out, process.returncode), (b"over\n", 5))
        attached.process.wait(t.PATIENCE_S)
        found = t.report(attached.path)
        t.check("read_line" in str([t.functions(s) for s in found["stacks"] if s["allocated_bytes"] == 4321]),
                f"waiting: {found['stacks']}")
        t.check(found["trust"]["earlier_frees"] >= 3, f"waiting: {found['trust']}")


def without_the_library(path):
    """An installation that lacks it says so, and leaves the program alone."""
    os.mkdir("lacking")
    for name in (t.BUILT_CAIRN, t.RUNTIME):
        shutil.copy(name, "lacking")
    target = Target(1, path)
    result = t.run(["lacking/cairn", "attach", str(target.pid)])
    is_refused("without the library", result, "musl", "libcairn-musl.so")
    target.end("without the library")


ATTACHED = build("attached", t.SOURCE / "tests/programs/attached.c", "-pthread")
build("libplugin.so", t.SOURCE / "tests/programs/libplugin.c", "-fPIC", "-shared")
exactly(ATTACHED)
with_children(ATTACHED)
again_and_again(ATTACHED)
tight(build("tight", t.SOURCE / "tests/programs/tight.c", "-pthread"))
waiting()
without_the_library(ATTACHED)
t.finish()
