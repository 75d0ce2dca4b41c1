#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However a program dies, its recording opens and lacks at most the event in flight of each thread, by
the program's own account; `cairn run` ends as a shell says it. CAIRN_CGROUP=DIR names a memory control
group (a directory below which groups may be made) for the out-of-memory kill, which is left out
otherwise."""

import os
import pathlib
import resource
import signal
import time

import cairn_test as t
import death_watch as watch
import ledger

ENDS = {"segv": 139, "abrt": 134, "term": 143, "kill": 137, "_exit": 7, "quick_exit": 7,
        "destructor": 134}
KILLS = 20 if os.environ.get("CAIRN_LONG") else 6
MIB = 1 << 20


def check_ends():
    for how, status in ENDS.items():
        for name, record in (("run", t.record), ("alone", t.record_alone)):
            what = f"{how} ({name})"
            result, path, accounts = ledger.recorded(t.program("doomed", how), how=record)
            t.check_equal(f"{what}: end", (result.status, result.out, result.err),
                          (status, b"", b""))
            found = t.report(path)
            ledger.check(what, found, next(iter(accounts.values())))
            if name == "run" and found:
                got = found["process"]["exit"]
                wanted = {"status": 0, "signal": status - 128} if status > 128 else \
                    {"status": status, "signal": 0}
                t.check_equal(f"{what}: exit in the report", got, wanted)


def check_said():
    """`cairn run` says in words what happened, and ends like the program."""
    result = t.run([t.CAIRN, "run", "-o", t.fresh_path("said"), "--", *t.program("doomed", "segv")])
    t.check_equal("said: status", result.status, 139)
    t.check(b"SIGSEGV" in result.err or b"signal 11" in result.err,
            f"said: {t.shorten(result.err)} does not name the signal")


def kill_at_work(number, threads, how):
    what = f"killed {number}, {threads} more threads, {how}"
    run = watch.start(how, "loop", threads)
    watch.wait_for_work(run, 20000)
    time.sleep(0.01 * (number % 7))
    os.kill(run.pid, signal.SIGKILL)
    t.check_equal(f"{what}: status", run.process.wait(t.PATIENCE_S), -9 if how == "alone" else 137)
    found = t.report(run.path)
    ledger.check(what, found, run.account(), in_flight=threads + 1)
    if found:
        t.check_nothing_lost(what, found)


def check_exhaustion():
    """Out of address space: malloc's NULL is the program's own business."""
    plain = t.run(t.program("doomed", "space"))
    for record in (t.record, t.record_alone):
        result, path, accounts = ledger.recorded(t.program("doomed", "space"), how=record)
        result.check_like("space", plain)
        found = t.report(path)
        ledger.check("space", found, next(iter(accounts.values())))
        if found:
            t.check_equal("space: failed calls", found["totals"]["failed"], 6)
    limited = t.fresh_path("limited") + ".cairn"
    account = t.fresh_path("account")
    shell = f"ulimit -v {300 * 1024}; exec {' '.join(t.program('doomed', 'exhaust'))}"
    result = t.run([t.CAIRN, "run", "-q", "-o", limited, "--", "sh", "-c", shell],
                   env={"LEDGER": account})
    t.check_equal("exhaust: status", result.status, 134)
    accounts = ledger.read(account)
    found = ledger.reports(limited)
    for pid, one in accounts.items():
        # The block that was not given is the one the account has too much: a failed call.
        one.allocations -= 1
        report = found.get(pid)
        untracked = report["trust"]["lost"].get("no_live_map", 0) if report else 0
        if not untracked:
            ledger.check("exhaust", report, one, in_flight=1)
            continue
        # The last blocks found no room in the live map: counted as gone at once, and as lost.
        t.check_equal("exhaust: frees", report["totals"]["frees"], untracked)
        t.check(0 <= one.allocations - report["totals"]["allocations"] <= 1,
                f"exhaust: {report['totals']['allocations']} calls, made {one.allocations}")


def check_group():
    parent = os.environ.get("CAIRN_CGROUP")
    if not parent:
        print("left out: the out-of-memory kill, since CAIRN_CGROUP is not set")
        return
    group = pathlib.Path(parent) / f"cairn-test-{os.getpid()}"
    group.mkdir()
    limit = "memory.max" if (group / "memory.max").exists() else "memory.limit_in_bytes"
    (group / limit).write_text(str(64 * MIB))
    path, account = t.fresh_path("group") + ".cairn", t.fresh_path("account")
    shell = f"echo $$ > {group}/cgroup.procs; exec {' '.join(t.program('doomed', 'exhaust'))}"
    result = t.run([t.CAIRN, "run", "-q", "-o", path, "--", "sh", "-c", shell],
                   env={"LEDGER": account})
    t.check_equal("group: status", result.status, 137)
    found = ledger.reports(path)
    for pid, one in ledger.read(account).items():
        ledger.check("group", found.get(pid), one, in_flight=1)
    group.rmdir()


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
check_ends()
check_said()
for number in range(KILLS):
    kill_at_work(number, number % 3 * 2, "alone" if number % 2 else "run")
check_exhaustion()
check_group()
t.finish()
