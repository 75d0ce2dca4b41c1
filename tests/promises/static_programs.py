#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the other tests here promise to dynamic programs, to static ones of glibc and musl: however they die the recording
has what their own account has; forks by any call; threads that allocate while others fork; handlers that come in the
midst of malloc; errno; descriptors that are all closed."""

import os
import pathlib
import re
import signal

import cairn_test as t
import ledger
import static_counter

ENDS = {"segv": 139, "abrt": 134, "term": 143, "kill": 137, "_exit": 7, "quick_exit": 7, "destructor": 134}
FORKS = 2000 if t.IS_LONG else 100
BIRTHS = {"fork": 3, "clone": 3, "function": 3, "vm": 1, "vfork": 1, "spawn": 1, "system": 1}
ENDINGS = ["return 3", "exit 4", "_exit 5", "quick_exit 6", "abort", f"signal {int(signal.SIGUSR1)}", "closed", "thread"]
HANDLED = re.compile(rb"errno kept, handled (\d+), jumped (\d+)\n")
THREADS, EVENTS = 2, 20000
KERNEL_HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]  # musl's has none


# No thread but these allocates: of musl nothing does before them.
FIRST_EVENTS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static void *go(void *unused) {
    void *ring[64] = {0};
    pthread_barrier_wait(&all);
    for (int i = 0; i < 3000; i++) {
        free(ring[i % 64]);
        ring[i % 64] = malloc(1 + i);
    }
    return unused;
}
int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, go, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
"""


def build(name, libc):
    output, source = str(pathlib.Path(f"{name}-{libc}").absolute()), pathlib.Path(f"{name}.c")
    source = source if source.exists() else t.SOURCE / f"tests/programs/{name}.c"
    done = static_counter.must([libc, "-D_GNU_SOURCE", "-O1", "-g", "-w", "-fno-builtin", f"-I{t.SOURCE}", f"-I{t.SOURCE}/include",
                                "-static", source, "-o", output, "-pthread", *KERNEL_HEADERS])
    return output if done else None


def deaths(libc):
    program = build("doomed", libc)
    for how, status in ENDS.items():
        what = f"{libc}, {how}"
        result, path, accounts = ledger.recorded([program, how])
        t.check_equal(f"{what}: end", (result.status, result.out, result.err), (status, b"", b""), is_grave=True)
        ledger.check(what, t.report(path), next(iter(accounts.values())))
    what = f"{libc}, killed at work"
    path, account = t.fresh_path("killed") + ".cairn", t.fresh_path("ledger")
    with t.Process([t.CAIRN, "run", "-q", "-o", path, "--", program, "loop", str(THREADS)],
                   env=t.environment({"LEDGER": account})) as process:
        t.wait_until(lambda: ledger.at_work(account, EVENTS))
        os.kill(ledger.at_work(account, EVENTS), signal.SIGKILL)
        t.check_equal(f"{what}: status", process.wait(t.PATIENCE_S), 128 + signal.SIGKILL)
    found = t.report(path)
    ledger.check(what, found, next(iter(ledger.read(account).values())), in_flight=THREADS + 1)
    if found:
        t.check_nothing_lost(what, found)


def first_events(libc):
    """Of threads whose first events come at once, by whichever the recording is opened."""
    pathlib.Path("first_events.c").write_text(FIRST_EVENTS, "ascii")
    _, path = t.record([build("first_events", libc)])
    found = t.report(path)
    stacks = t.stacks_through(found, "go")
    t.check_equal(f"{libc}, first events", [sum(s[name] for s in stacks) for name in ("allocations", "at_exit_blocks")],
                  [4 * 3000, 4 * 64], is_grave=True)
    t.check_nothing_lost(f"{libc}, first events", found)


def births(libc):
    program = build("births", libc)
    if not program:
        return
    for how, processes in BIRTHS.items():
        what = f"{libc}, {how}"
        result, path, accounts = ledger.recorded([program, how])
        t.check_equal(f"{what}: end", (result.status, result.out, result.err), (0, b"", b""), is_grave=True)
        found = ledger.reports(path)
        t.check_equal(f"{what}: processes", (len(accounts), len(set(accounts) & set(found))), (processes, processes))
        for pid, account in accounts.items():
            ledger.check(f"{what} {pid}", found.get(pid), account)
            if pid in found:
                t.check_nothing_lost(f"{what} {pid}", found[pid])


def fork_storm(libc):
    result, path, accounts = ledger.recorded([build("fork_storm", libc), str(FORKS)], timeout=250)
    t.check_equal(f"{libc}, forks: end", (result.status, result.out), (0, f"{FORKS} children, 0 failures\n".encode()), is_grave=True)
    found = ledger.reports(path)
    for pid, account in accounts.items():
        ledger.check(f"{libc}, forks", found.get(pid), account)


def storm(libc):
    """A handler that only counts comes wherever the program is: nothing of it is lost."""
    result, path, accounts = ledger.recorded([build("storms", libc), "count", "1", "1000"])
    said = HANDLED.fullmatch(result.out)
    t.check(result.status == 0 and said and int(said[1]) > 0, f"{libc}, storm: {result.status}, {result.out!r}", is_grave=True)
    found = t.report(path)
    ledger.check(f"{libc}, storm", found, next(iter(accounts.values())))
    t.check_nothing_lost(f"{libc}, storm", found)


def endings(libc):
    program = build("endings", libc)
    for how in ENDINGS:
        argv = [program, *how.split()]
        plain = t.run(argv)
        result, path = t.record(argv)
        result.check_like(f"{libc}, {how}", plain)
        leaked = t.stacks_through(t.report(path), "leak_here")
        t.check_equal(f"{libc}, {how}: leaked", sum(s["at_exit_bytes"] for s in leaked), 100 * 1000)
    if libc == "gcc":  # musl lacks some of the functions
        kept = build("errno_kept", libc)
        t.record([kept])[0].check_like(f"{libc}, errno", t.run([kept]))


t.need("gcc", "musl-gcc", "objcopy")
for libc in ("gcc", "musl-gcc"):
    deaths(libc)
    first_events(libc)
    births(libc)
    fork_storm(libc)
    storm(libc)
    endings(libc)
t.finish()
