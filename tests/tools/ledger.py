# SPDX-License-Identifier: Apache-2.0
"""Compares recordings with the accounts that programs with tests/programs/ledger.h keep of their own
blocks, one line a thread, complete however the program ended."""

import pathlib
import struct

import cairn_test as t

LINE = struct.Struct("<8Q")
FIELDS = ("pid tid allocations allocated_bytes frees freed_bytes "
          "inherited_blocks inherited_bytes").split()


class Account:
    """What one process did, the sum of its threads' lines."""

    def __init__(self):
        self.threads = 0
        for name in FIELDS[2:]:
            setattr(self, name, 0)

    def add(self, line):
        self.threads += 1
        for name in FIELDS[2:]:
            setattr(self, name, getattr(self, name) + line[name])


def read(path):
    """{pid: Account}."""
    accounts = {}
    with open(path, "rb") as file:
        count = LINE.unpack(file.read(LINE.size))[0]
        for _ in range(count):
            line = dict(zip(FIELDS, LINE.unpack(file.read(LINE.size))))
            accounts.setdefault(line["pid"], Account()).add(line)
    return accounts


def at_work(path, allocations):
    """The pid of a process that made so many allocations; 0: not yet. Its file may be there, but not whole."""
    try:
        accounts = read(path)
    except (OSError, struct.error):
        return 0
    return next((pid for pid, one in accounts.items() if one.allocations > allocations), 0)


def recorded(argv, how=t.record, env=None, **options):
    """Runs argv with a ledger; returns (Result, path of the recording, accounts)."""
    path = t.fresh_path("ledger")
    result, recording = how(argv, env={"LEDGER": path, **(env or {})}, **options)
    return result, recording, read(path)


def files(path):
    """The recordings of one run: the file, or those of the directory."""
    path = pathlib.Path(path)
    return sorted(file for file in path.rglob("*.cairn") if file.is_file()) if path.is_dir() else [path]


def reports(path):
    """{pid: report of its last image}."""
    every = [found for found in (t.report(file) for file in files(path)) if found]
    return {found["process"]["pid"]: found for found in every}


def check(what, found, account, in_flight=0, missing=0):
    """The recording has what the account has, with at most `in_flight` events more of each kind, or
    `missing` less."""
    if not t.check(found is not None and account is not None, f"{what}: no recording or no account"):
        return
    stacks = t.stacks_through(found, "ledger_take")
    got_allocations = sum(stack["allocations"] for stack in stacks)
    got_left = sum(stack["at_exit_blocks"] for stack in stacks)
    inherited = [stack["inherited"] for stack in stacks if "inherited" in stack]
    got_inherited = sum(one["blocks"] for one in inherited)
    for name, got, wanted in (
            ("allocations", got_allocations, account.allocations),
            ("frees", got_allocations + got_inherited - got_left, account.frees),
            ("inherited blocks", got_inherited, account.inherited_blocks)):
        t.check(-missing <= got - wanted <= in_flight, f"{what}: {name} {got}, should be {wanted}")
    if in_flight or missing:
        return
    t.check_equal(f"{what}: allocated bytes", sum(s["allocated_bytes"] for s in stacks),
                  account.allocated_bytes)
    t.check_equal(f"{what}: inherited bytes", sum(one["bytes"] for one in inherited),
                  account.inherited_bytes)
    t.check_equal(f"{what}: freed bytes", sum(s["freed_bytes"] for s in stacks),
                  account.freed_bytes)
    t.check_equal(f"{what}: bytes at exit", sum(s["at_exit_bytes"] for s in stacks),
                  account.inherited_bytes + account.allocated_bytes - account.freed_bytes)
