#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that take things from themselves: all descriptors, their directory, root, rights, address space,
the file size, system calls. They say and end as without cairn, and what is not in the recording is
counted there or said by `cairn run`."""

import os

import cairn_test as t
import ledger

HOWS = ["closefrom", "close_range", "closes", "chdir", "fsize", "nofile", "space", "data", "filter",
        "strict", "asks"]
AS_ROOT = ["chroot", "setuid"]
LESS = {"filter", "strict"}  # what those may lose, they must say


def check_run(how, plain):
    result, path, accounts = ledger.recorded(t.program("confined", how))
    result.check_like(how, plain)
    if not t.check(os.path.exists(path), f"{how}: nothing was recorded"):
        return
    found = ledger.reports(path)
    for pid, account in accounts.items():
        one = found.get(pid)
        if how in LESS and one and one["trust"]["lost"]:
            print(f"{how}: lost {one['trust']['lost']}")
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
                print(f"{how}, alone: lost {found[pid]['trust']['lost']}")
                continue
            ledger.check(f"{how}, alone", found.get(pid), one)


for how in HOWS + (AS_ROOT if os.geteuid() == 0 else []):
    plain = t.run(t.program("confined", how))
    t.check_equal(f"{how}: plain", (plain.status, plain.out), (5, b"done\n"))
    check_run(how, plain)
    check_alone(how, plain)
if os.geteuid() != 0:
    t.skip_part("chroot and setuid, since this is not root")
t.finish()
