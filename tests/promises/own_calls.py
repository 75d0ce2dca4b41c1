#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library itself does in the process: it never calls the allocator (a counter behind it sees
no call that one before it did not see), leaves errno and dlerror alone, starts no thread, installs no
handler, keeps no descriptor open, and makes no system call for an event once everything it needs is
there, but for the timeline's pages; not for guessing the way through generated code either, which reads nothing that
a guess led to once and that is gone."""

import os
import re
import shutil
import subprocess

import cairn_test as t
import counts

BEFORE, BEHIND = t.COUNTER, os.path.abspath("behind_preload.so")
SCRIPT = "import json, re; x = [json.dumps({str(i): [i] * 9}) for i in range(3000)]; print(len(x))"
PROGRAMS = [t.program("mixed"), t.program("threads", "short"), t.program("dlopen_loop"),
            t.program("realloc_chain"), t.program("exceptions"), t.program("short_threads", "many", 300),
            [t.PYTHON, "-c", SCRIPT]]
FEW, MANY = 20000, 200000
GUESSED_FEW, GUESSED_MANY = 100, 5000
# The longer run touches more of the timeline: two calls for each chunk of it, however long it takes.
TIMELINE_CALLS = 32
# Only the longer run takes a snapshot by itself: it claims the memory of two sections.
SNAPSHOT_CALLS = 4
FIELDS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "failed")


def calls_not_passed_on(argv):
    """Calls seen before the library and not behind it: dlsym's, for functions that libc lacks, come
    before there is an allocator and are served from a buffer. Negative: the library's own."""
    name = os.path.basename(argv[0])
    prefix = t.fresh_path("count")
    env = {"LD_PRELOAD": f"{BEFORE}:{t.RUNTIME}:{BEHIND}", "COUNT_PRELOAD_OUT": prefix,
           "CAIRN_OUTPUT": t.fresh_path("counted"), "PYTHONMALLOC": "malloc"}
    result = t.run(argv, env=env)
    t.check_equal(f"{name}: status", result.status, 0)
    both = sorted(counts.read_all(prefix).values(), key=lambda one: -one["allocations"])
    t.check_equal(f"{name}: counters", len(both), 2)
    return {field: both[0][field] - both[1][field] for field in FIELDS}


def check_no_malloc():
    at_start = calls_not_passed_on(t.program("steady", 1))
    t.check(0 <= at_start["allocations"] < 10, f"calls of dlsym at the start: {at_start}")
    for argv in PROGRAMS:
        t.check_equal(f"{' '.join(argv)[-60:]}: calls not passed on", calls_not_passed_on(argv),
                      at_start)


def check_errno():
    argv = t.program("errno_kept")
    plain = t.run(argv)
    t.check_equal("errno: plain status", plain.status, 0)
    t.record(argv)[0].check_like("errno under run", plain)
    t.record_alone(argv)[0].check_like("errno, preload alone", plain)


LOOK = """
exec 2>&1
grep -E '^(SigB|SigI|SigC|SigP|Shd|Threads|Seccomp|NoNewPrivs)' /proc/self/status
ls /proc/self/fd | wc -l
"""


def check_dlerror():
    """The linker's last error is the program's, and its messages are no blocks of the program: also where functions
    that --wrap names are in no library, or are there."""
    argv = t.program("dlerror_kept")
    plain = t.run(argv)
    t.check_equal("dlerror: plain status", plain.status, 0)
    t.record_alone(argv)[0].check_like("dlerror, preload alone", plain)
    calls = set()
    for words in ((), ("--wrap", "alloc=no_such_alloc(size=1):free=no_such_free(ptr=1)"),
                  ("--wrap", "alloc=getcwd(size=2):free=rewind(ptr=1)")):
        result, path = t.record(argv, options=words)
        result.check_like(f"dlerror under run {words}", plain)
        calls.add(t.report(path)["totals"]["allocations"])
    t.check_equal("dlerror: calls of the program, whatever is wrapped", len(calls), 1)


def check_process():
    """The look of a process from inside, for an exec'd program and for a shell's forked child."""
    for argv in (["sh", "-c", LOOK], ["bash", "-c", f"({LOOK}); x=$({LOOK}); echo \"$x\""]):
        plain = t.run(argv)
        t.record(argv)[0].check_like("process under run", plain)
        t.record_alone(argv)[0].check_like("process, preload alone", plain)


def system_calls(name, count):
    env = {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": t.fresh_path("steady")}
    setting = [word for name, value in env.items() for word in ("-E", f"{name}={value}")]
    result = subprocess.run(["strace", "-f", *setting, *t.program(name, count)],
                            env=t.environment(), stderr=subprocess.PIPE, check=True)
    return len(re.findall(rb"^(?:\[pid +\d+\] )?(?!clock_|write|exit)[a-z0-9_]+\(", result.stderr,
                          re.MULTILINE))


def check_guess_gone():
    argv = t.program("generated", GUESSED_MANY, "gone")
    plain = t.run(argv)
    t.check_equal("gone: plain status", plain.status, 0)
    t.record(argv)[0].check_like("gone under run", plain)
    t.record_alone(argv)[0].check_like("gone, preload alone", plain)


def check_steady():
    if not shutil.which("strace"):
        t.skip_part("system calls, since strace is not installed")
        return
    for name, fewer, more in (("steady", FEW, MANY), ("generated", GUESSED_FEW, GUESSED_MANY)):
        few, many = system_calls(name, fewer), system_calls(name, more)
        t.check(many - few <= TIMELINE_CALLS + SNAPSHOT_CALLS,
                f"{name}: {few} system calls with {fewer} pairs of events, {many} with {more}")


shutil.copy(t.COUNTER, BEHIND)
check_no_malloc()
check_errno()
check_dlerror()
check_process()
check_guess_gone()
check_steady()
t.finish()
