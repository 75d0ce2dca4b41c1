#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forks of a program whose other threads allocate all the time: no child and no parent hangs, and the
parent's recording is exact about its own five threads. 500 forks, 10,000 in `make check-long`."""


import cairn_test as t
import ledger

FORKS = 10000 if t.IS_LONG else 500


def check(name, how):
    # The parent's own work is over long before the time limit of the runner.
    result, path, accounts = ledger.recorded(t.program("fork_storm", FORKS), how=how, timeout=250)
    t.check_equal(f"{name}: end", (result.status, result.out),
                  (0, f"{FORKS} children, 0 failures\n".encode()))
    found = ledger.reports(path)
    t.check_equal(f"{name}: accounts", len(accounts), 1)
    for pid, account in accounts.items():
        ledger.check(name, found.get(pid), account)
        if pid in found:
            t.check_nothing_lost(name, found[pid])
    return found


found = check("run", t.record)
t.check_equal("run: recordings", len(found), 1)
t.finish()
