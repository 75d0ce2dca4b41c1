#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that take things from themselves: all descriptors, their directory, root, rights, address space,
the file size, system calls. They say and end as without cairn, and what is not in the recording is
counted there or said by `cairn run`."""

import os

import cairn_test as t
import ledger

HOWS = ["closefrom", "close_range", "closes", "chdir", "fsize", "nofile", "space", "data", "filter",
        "strict", "far", "asks", "mdwe", "seal"]
AS_ROOT = ["chroot", "setuid"]
LESS = {"filter", "strict", "far"}  # what those may lose, they must say


def check_less(what, found, account):
    """Stacks found no room where no memory may be mapped: they are missing, and counted, but not what was allocated.
    The same goes for the entries of blocks that lie in a part of the heap that had none before, as addresses have it:
    those blocks count as freed at once, and their frees as those of unknown ones."""
    lost, totals = found["trust"]["lost"], found["totals"]
    print(f"{what}: lost {lost}")
    t.check(set(lost) <= {"no_memory", "no_live_map", "unknown_free"}, f"{what}: lost: {lost}", is_grave=True)
    unseen = lost.get("no_live_map", 0)
    t.check(lost.get("unknown_free", 0) <= unseen, f"{what}: frees of unknown blocks: {lost}", is_grave=True)
    for name in ("allocations", "allocated_bytes"):
        t.check_equal(f"{what}: {name}", totals[name], getattr(account, name), is_grave=True)
    t.check(account.frees <= totals["frees"] <= account.frees + unseen, f"{what}: frees: {totals}", is_grave=True)
    t.check(totals["freed_bytes"] == account.freed_bytes if not unseen else totals["freed_bytes"] > account.freed_bytes,
            f"{what}: freed bytes: {totals}", is_grave=True)
    t.check(unseen or not what.startswith("far"), f"{what}: each block had an entry", is_grave=True)
    t.check_sums(what, found)


def check_run(how, plain):
    result, path, accounts = ledger.recorded(t.program("confined", how))
    result.check_like(how, plain)
    if not t.check(os.path.exists(path), f"{how}: nothing was recorded"):
        return
    found = ledger.reports(path)
    for pid, account in accounts.items():
        one = found.get(pid)
        if how in LESS and one and one["trust"]["lost"]:
            check_less(how, one, account)
            continue
        ledger.check(how, one, account)
        if one:
            t.check_nothing_lost(how, one)
        if one and how == "asks":
            t.check_equal("asks: incomplete stacks", one["trust"]["stacks_incomplete"], {})


def check_alone(how, plain):
    """A file the process writes itself: counted in place, so it is whole even if it was not packed."""
    os.mkdir(f"alone-{how}")
    os.chmod(f"alone-{how}", 0o777)
    path, account = os.path.abspath(f"alone-{how}/x.cairn"), t.fresh_path("account")
    result = t.run(t.program("confined", how),
                   env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": path, "LEDGER": account})
    result.check_like(f"{how}, alone", plain)
    if t.check(os.path.exists(path), f"{how}, alone: nothing was recorded"):
        found = ledger.reports(path)
        for pid, one in ledger.read(account).items():
            if how in LESS and found.get(pid) and found[pid]["trust"]["lost"]:
                check_less(f"{how}, alone", found[pid], one)
                continue
            ledger.check(f"{how}, alone", found.get(pid), one)


for how in HOWS + (AS_ROOT if os.geteuid() == 0 else []):
    plain = t.run(t.program("confined", how))
    t.check_equal(f"{how}: plain", (plain.status, plain.out), (5, b"done\n"))
    check_run(how, plain)
    check_alone(how, plain)


def inherited(action, way, start, options=()):
    """A filter that was set before a program began: by whoever executed it, or forked it. Nothing but what it would call
    itself is called there, and who started it says that it was not recorded."""
    name = f"filter: {action}, {way}, {start} {options}"
    argv = t.program("filtered", action, way, start, t.program("filtered")[0])
    plain = t.run(argv)
    t.check_equal(f"{name}: plain", plain.status, 5)
    result, path = t.record(argv, options=options)
    result.check_like(name, plain)
    found = t.report(path)
    t.check(found and found["trust"]["lost"].get("processes") == (3 if start == "many" else 1), f"{name}: {found}")
    t.check(found and found["trust"]["exact"] != ("--sample" in options), f"{name}: {found and found['trust']}")
    result, path = t.record_alone(argv)
    result.check_like(f"{name}, alone", plain)


def named():
    """The summary has it, and says nothing of a program that could not be started after all."""
    argv = t.program("filtered", "kill", "prctl")
    said = t.run_cairn("run", "-o", "named.cairn", *argv, "exec", t.program("filtered")[0])
    t.check(b"1 process unrecorded" in said.err, f"named: {said.err}")
    result, path = t.record([*argv, "spawn", "/no/such/program"])
    t.check_equal("nothing there: status", result.status, 2)
    t.check_nothing_lost("nothing there", t.report(path))


def harmless():
    """A filter that only lets calls fail, set through libc: what begins under it is recorded, as deep as that goes."""
    worker = t.program("filtered")[0]
    for way, start in ("prctl", "exec"), ("seccomp", "spawn"), ("thread", "exec"), ("prctl", "fork"):
        name = f"harmless: {way}, {start}"
        twice = t.program("filtered", "refuse", "prctl", "exec") if start == "exec" else []
        argv = [*twice, *t.program("filtered", "refuse", way, start, worker)]
        plain = t.run(argv)
        result, path = t.record(argv)
        result.check_like(name, plain)
        found = [one for one in map(t.report, ledger.files(path)) if one]
        t.check(any(one["totals"]["allocations"] >= 3000 for one in found), f"{name}: not recorded")
        t.check(not any("processes" in one["trust"]["lost"] for one in found), f"{name}: {[one['trust'] for one in found]}")


def surroundings():
    """A filter that the tool lives under too is that of a container: what it starts is recorded."""
    path = t.fresh_path("around") + ".cairn"
    worker = t.program("filtered")[0]
    result = t.run(t.program("filtered", "refuse", "prctl", "exec", t.CAIRN, "run", "-q", "-o", path, worker))
    t.check_equal("around: end", (result.status, result.out), (5, b"done\n"))
    found = t.report(path) if os.path.exists(path) else None
    t.check(found and found["totals"]["allocations"] >= 3000, f"around: {found and found['totals']}")


for way in ("prctl", "seccomp", "raw", "thread"):
    inherited("kill", way, "exec")
for start in ("spawn", "many", "fork"):
    inherited("kill", "prctl", start)
inherited("spare", "prctl", "system")
inherited("refuse", "raw", "exec", ("--sample",))
inherited("kill", "raw", "exec", ("--events",))
named()
harmless()
surroundings()
if os.geteuid() != 0:
    t.skip_part("chroot and setuid, since this is not root")
t.finish()
