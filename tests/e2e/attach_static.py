#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach of static programs of glibc and musl, at fixed addresses and at any: exact from then on, with the blocks of
before where libc is glibc; again and again under load, with threads that take the place of others; forks; a killed tool.
Nothing is left in the process. Who cannot be attached to is told in one line."""

import os
import pathlib
import shutil
import signal
import subprocess

import cairn_test as t
import static_counter
from attached import Attached, Target, files_mapped, is_recorded, recordings_of, settled, state_of

t.need_attach()
t.need("gcc", "musl-gcc", "strip")
CYCLES = int(os.environ.get("ATTACH_CYCLES", "20" if t.IS_LONG else "3"))
# Does what a line says: a number of threads one after the other, each of which allocates 10 blocks and frees 9.
IN_TURN = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static __thread void *volatile blocks[10];
__attribute__((noinline)) static void *work(void *unused) {
    for (int i = 0; i < 10; i++) blocks[i] = malloc(333);
    for (int i = 0; i < 9; i++) free(blocks[i]);
    return unused;
}
int main(void) {
    int count;
    static char in[4096], out[4096];
    setvbuf(stdin, in, _IOLBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    puts("ready");
    while (scanf("%d", &count) == 1) {
        for (int i = 0; i < count; i++) {
            pthread_t threads[3];
            for (int k = 0; k < 3; k++) pthread_create(&threads[k], NULL, work, NULL);
            for (int k = 0; k < 3; k++) pthread_join(threads[k], NULL);
        }
        puts("done");
    }
    return 6;
}
"""

# 70 threads at a time whose thread pointers lie so far apart that their thread-locals would lie in one place.
APART = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
enum { THREADS = 70, STACK = 256 << 10 };
static pthread_barrier_t all;
static void *volatile kept[THREADS];
static void *work(void *number) {
    pthread_barrier_wait(&all);
    for (int i = 0; i < 100; i++) {
        free(kept[(long)number]);
        kept[(long)number] = malloc(333);
    }
    pthread_barrier_wait(&all);
    return NULL;
}
int main(void) {
    const size_t apart = 256 << 20;
    char *place = mmap(NULL, THREADS * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_t threads[THREADS];
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_barrier_init(&all, NULL, THREADS);
    puts("ready");
    fflush(stdout);
    getchar();
    for (long i = 0; i < THREADS; i++) {
        mprotect(place + i * apart, STACK, PROT_READ | PROT_WRITE);
        pthread_attr_setstack(&how, place + i * apart, STACK);
        pthread_create(&threads[i], &how, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("done");
    fflush(stdout);
    getchar();
    getchar();
    return 6;
}
"""


def build(source, name, libc, kind):
    output = str(pathlib.Path(name).absolute())
    options = static_counter.MUSL_PIE if libc == "musl-gcc" and kind == "-static-pie" else [kind]
    return output if static_counter.must([libc, "-D_GNU_SOURCE", "-O1", "-g", "-w", *options, source, "-o", output, "-pthread"]) else None


def check_as_before(what, pid, before):
    t.check_equal(f"{what}: files that are mapped", files_mapped(pid), before)
    t.check_equal(f"{what}: it is not recorded", is_recorded(pid), False)


def check_kept(what, found, calls, size, kept):
    totals = found["totals"]
    t.check_equal(f"{what}: calls, bytes", (totals["allocations"], totals["allocated_bytes"]), (calls, calls * size))
    t.check_equal(f"{what}: left", found["at_exit"]["bytes"], kept * size)
    t.check_equal(f"{what}: lost", (found["trust"]["exact"], found["trust"]["lost"]), (True, {}))
    t.check_equal(f"{what}: stacks that are cut", found["trust"]["stacks_incomplete"], {})


def exactly(what, path):
    target = Target(path=path)
    target.tell("keep 50 100")  # unknown to cairn
    mapped, state = files_mapped(target.pid), state_of(target.pid)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 300 1000")
    found = attached.leave()
    check_kept(what, found, 300, 1000, 300)
    t.check(t.stacks_through(found, "keep"), f"{what}: the stack goes through keep")
    check_as_before(what, target.pid, mapped)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 200 500")
    target.tell("drop")  # 550, of which 200 are known
    target.tell("keep 10 500")
    found = attached.leave()
    check_kept(f"{what}, again", found, 210, 500, 10)
    t.check_equal(f"{what}: pre-existing blocks that were freed", found["trust"]["earlier_frees"], 350)
    check_as_before(what, target.pid, mapped)
    t.check_equal(f"{what}: its state", state_of(target.pid), state)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 20 20")
    target.end(what)
    check_kept(f"{what}, to its end", attached.leave(lambda: None), 20, 20, 20)


def of_before(path):
    """What glibc's allocator holds already."""
    target = Target(path=path)
    target.tell("keep 500 100")
    attached = Attached(target.pid, "--exact", "--scan-heap")
    target.tell("keep 100 40")
    target.tell("drop")
    found = attached.leave()
    t.check_equal("of before: frees that are not known", found["trust"]["earlier_frees"], 0)
    t.check(found["at_exit"]["blocks"] < 20, f"of before: left: {found['at_exit']}")
    target.end("of before")


def again_and_again(what, path):
    target = Target(4, path)
    before, mapped, recorded = settled(target.pid), files_mapped(target.pid), 0
    for turn in range(CYCLES):
        attached = Attached(target.pid, *([] if turn % 2 else ["--exact"]), "--record-for", "50ms")
        recorded += attached.leave(lambda: None)["totals"]["allocations"]
        check_as_before(f"{what}, turn {turn}", target.pid, mapped)
        t.check_equal(f"{what}, turn {turn}: its state", state_of(target.pid), before)
    t.check(recorded > 0, f"{what}: something is recorded")
    target.end(what)


def in_turn(what, path):
    """A thread that has the thread pointer of one that ended is another thread."""
    target = Target(path=path)
    target.tell("5")
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("40")
    found = attached.leave()
    stacks = [s for s in t.stacks_through(found, "work") if s["allocated_bytes"] == 333 * s["allocations"]]
    t.check_equal(f"{what}: blocks of all threads", sum(s["allocations"] for s in stacks), 40 * 3 * 10)
    t.check_equal(f"{what}: left", sum(s["at_exit_blocks"] for s in stacks), 40 * 3)
    t.check_equal(f"{what}: lost", found["trust"]["lost"], {})
    threads = [one for one in found["threads"] if one["tid"] != target.pid]
    t.check_equal(f"{what}: threads", len({one["tid"] for one in threads}), 40 * 3)
    target.process.stdin.close()
    t.check_equal(f"{what}: status", target.process.wait(t.PATIENCE_S), 6)


def apart(path):
    """There is no room for the thread-locals of all: the recording ends there, and says so."""
    process = t.Process([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal("apart: it starts", process.stdout.readline(), b"ready\n")
    attached = Attached(process.pid, "--exact")
    process.stdin.write(b"\n")
    process.stdin.flush()
    t.check_equal("apart: it goes on", process.stdout.readline(), b"done\n")
    trust = attached.leave()["trust"]
    t.check_equal("apart: lost", (trust["exact"], trust["lost"].get("rest")), (False, 1))
    t.check_equal("apart: its end", (process.communicate(b"\n\n")[0], process.returncode), (b"", 6))


def forks(path):
    target = Target(path=path)
    attached = Attached(target.pid, "--children", "--exact", "--no-scan-heap")
    child = int(target.tell("child"))
    target.tell("keep 100 100")
    t.wait_until(lambda: is_recorded(child))
    t.check_equal("a child that ends at once", target.tell("fork 100 100"), "child 7")
    attached.leave()
    found = recordings_of(attached.path)
    check_kept("forks: the parent", found[target.pid], 100, 100, 100)
    t.check(child in found and found[child]["totals"]["allocations"] > 0, f"forks: the child in {sorted(found)}")
    of_child = Attached(child, "--exact", "--no-scan-heap")
    t.wait_until(lambda: t.report(child)["totals"]["allocations"] > 0)
    totals = of_child.leave()["totals"]
    t.check_equal("forks: what the child allocates", totals["allocated_bytes"], 1000 * totals["allocations"])
    t.check_equal("forks: it lived until it was ended", target.tell("end-child"), str(int(signal.SIGTERM)))
    target.end("forks")


def killed_tool(path):
    """The program goes on, and the next tool takes over and leaves nothing."""
    target = Target(path=path)
    mapped = files_mapped(target.pid)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 100 100")
    attached.process.kill()
    attached.process.wait()
    target.tell("keep 100 100")
    again = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 30 300")
    check_kept("after a killed tool", again.leave(), 30, 300, 30)
    check_as_before("after a killed tool", target.pid, mapped)
    target.end("after a killed tool")


def killed(path):
    target = Target(path=path)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 77 10")
    target.process.kill()
    check_kept("killed", attached.leave(lambda: None), 77, 10, 77)
    target.process.wait()


def becomes_another(path):
    target = Target(path=path)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 20 20")
    target.process.stdin.write("exec /bin/sleep\n")
    target.process.stdin.flush()
    t.check_equal("exec: calls before", attached.leave(lambda: None)["totals"]["allocations"], 20)
    target.process.kill()
    target.process.wait()


def check_refused(what, pid, *said, options=()):
    mapped = files_mapped(pid)
    result = t.run_cairn("attach", str(pid), "--record-for", "10ms", *options)
    text = result.err.decode()
    t.check_equal(f"{what}: status, lines", (result.status, text.count("\n")), (1, 1))
    t.check(all(word in text for word in said), f"{what}: {said} in {text!r}")
    t.check_equal(f"{what}: nothing is left", files_mapped(pid), mapped)


def refused(path):
    subprocess.run(["strip", "-o", "stripped", path], check=True)
    target = Target(path=os.path.abspath("stripped"))
    check_refused("stripped", target.pid, "statically linked", "stripped?")
    target.end("stripped")
    tool = subprocess.Popen([t.CAIRN, "run", "-q", "-o", t.fresh_path("run"), "--", path], env=t.environment(),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal("under cairn run", tool.stdout.readline(), b"ready\n")
    check_refused("under cairn run", t.children_of(tool.pid)[0], "cairn run has started it")
    tool.communicate(b"end\n", timeout=t.PATIENCE_S)
    os.mkdir("lacking")
    for name in (t.BUILT_CAIRN, t.RUNTIME):
        shutil.copy(name, "lacking")
    target = Target(path=path)
    result = t.run(["lacking/cairn", "attach", str(target.pid)])
    t.check(result.status == 1 and b"libcairn-bare.so" in result.err, f"without the library: {result.err!r}")
    for option in ("--signal=USR1=mark", "--wrap=postgresql"):
        check_refused(option, target.pid, option.split("=", 1)[0], "statically linked", options=[option])
    attached = Attached(target.pid, "--exact")
    check_refused("twice", target.pid, "being recorded by process")
    attached.leave()
    target.end("refused")


pathlib.Path("in_turn.c").write_text(IN_TURN, "ascii")
built = {}
for libc in ("gcc", "musl-gcc"):
    for kind in ("-static", "-static-pie"):
        what = f"{libc} {kind}"
        built[what] = build(t.SOURCE / "tests/programs/attached.c", f"attached-{libc}{kind}", libc, kind)
        exactly(what, built[what])
        in_turn(what, build("in_turn.c", f"in_turn-{libc}{kind}", libc, kind))
of_before(built["gcc -static"])
of_before(built["gcc -static-pie"])
for what in ("gcc -static", "musl-gcc -static-pie"):
    again_and_again(what, built[what])
    killed_tool(built[what])
pathlib.Path("apart.c").write_text(APART, "ascii")
apart(build("apart.c", "apart", "gcc", "-static"))
forks(built["gcc -static"])
forks(built["musl-gcc -static"])
killed(built["gcc -static-pie"])
becomes_another(built["musl-gcc -static"])
refused(built["gcc -static"])
t.finish()
