#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every process has a recording of its own that is exact, blocks it inherited included, however it was
made; a parent's recording has nothing of its children, and children that only execute leave none."""

import ctypes
import errno
import os

import cairn_test as t
import ledger

SYS_CLONE3 = 435
ctypes.CDLL(None, use_errno=True).syscall(SYS_CLONE3, None, 0)
BIRTHS = ["fork", "clone", "function", *([] if ctypes.get_errno() == errno.ENOSYS else ["clone3"])]


def run(how, *arguments, **options):
    name = " ".join(map(str, arguments))
    result, path, accounts = ledger.recorded(t.program("births", *arguments), how=how, **options)
    t.check_equal(f"{name}: status", result.status, 0)
    t.check_equal(f"{name}: streams", (result.out, result.err), (b"", b""))
    return path, accounts


def check_all(name, path, accounts, in_flight=0):
    found = ledger.reports(path)
    t.check_equal(f"{name}: recorded processes", len(set(accounts) & set(found)), len(accounts))
    for pid, account in accounts.items():
        ledger.check(f"{name} {pid}", found.get(pid), account, in_flight)
        if pid in found and not in_flight:
            t.check_nothing_lost(f"{name} {pid}", found[pid])


def check_births():
    for name in BIRTHS:
        path, accounts = run(t.record, name)
        t.check_equal(f"{name}: processes", len(accounts), 3)
        check_all(name, path, accounts)
    for name in ("vm", "vfork", "spawn", "system"):
        path, accounts = run(t.record, name)
        t.check_equal(f"{name}: processes", len(accounts), 1)
        check_all(name, path, accounts)


def check_alone():
    """Without the tool each process writes a file; a child's is beside its parent's."""
    for name in BIRTHS + ["vm", "prefork"]:
        before = set(os.listdir("."))
        _, accounts = run(t.record_alone, name, 3)
        made = [f for f in set(os.listdir(".")) - before if f.endswith(".cairn")]
        found = {}
        for file in made:
            found.update(ledger.reports(file))
        t.check_equal(f"alone {name}: files", len(made), len(accounts))
        for pid, account in accounts.items():
            ledger.check(f"alone {name} {pid}", found.get(pid), account)


def check_daemon():
    """The first process is over at once, and with it `cairn run`; the daemon still leaves its own."""
    def ended():
        # whoever adopts it may take a while to reap it
        return {pid: one for pid, one in ledger.reports("daemon").items()
                if not os.path.exists(f"/proc/{pid}") or t.is_in_state(pid, "Z")}
    os.mkdir("daemon")
    os.environ["LEDGER"] = os.path.abspath("daemon/account")
    result = t.run([t.CAIRN, "run", "-q", "-o", "daemon/run.cairn", *t.program("births", "daemon")])
    t.check_equal("daemon: status", result.status, 0)
    t.wait_until(lambda: len(ended()) == 2, pause=0.5)
    found, accounts = ended(), ledger.read("daemon/account")
    t.check_equal("daemon: processes", len(accounts), 2)
    for pid, account in accounts.items():
        ledger.check(f"daemon {pid}", found.get(pid), account)


def check_handler():
    """A child of a handler that interrupted cairn differs by the interrupted event at most."""
    path, accounts = run(t.record, "handler", timeout=60)
    found = ledger.reports(path)
    parent = min(accounts, key=lambda pid: accounts[pid].inherited_blocks)
    ledger.check("handler: parent", found.get(parent), accounts[parent])
    t.check(len(found) > 5, f"handler: only {len(found)} recordings")
    for pid in set(found) - {parent}:
        ledger.check(f"handler: child {pid}", found[pid], accounts[pid], in_flight=1, missing=1)


def check_bare():
    """What was recorded before an exec without environment is kept, even if short."""
    path, accounts = run(t.record, "bare")
    check_all("bare", path, accounts)
    path, accounts = run(t.record_alone, "bare")
    check_all("bare alone", path, accounts)


check_births()
check_alone()
path, accounts = run(t.record, "prefork", 10)
t.check_equal("prefork: processes", len(accounts), 11)
check_all("prefork", path, accounts)
check_daemon()
check_handler()
check_bare()
t.check(not [name for name in os.listdir(".") if name.endswith(".tmp")], "temporary files were left")
t.finish()
