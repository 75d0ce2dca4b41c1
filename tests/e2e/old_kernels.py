#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On kernels that lack a call, back to Linux 3.10: each call of tests/tools/without_calls.c in turn, and all of them
together, is missing for cairn and the program. Recording, preloading, reading, attaching and leaving, cores and top
work as ever, or say in one line what is missing; children are told from their parents. `make check` tries all
commands where everything is missing, and recording and reading without each call."""

import os

import cairn_test as t
import ledger
from attached import Attached, Target
from commanded import Commanded

WITHOUT = str(t.BUILD / "tests/without_calls")
ALL = "all"
# A program whose kernel lacks the second cannot be attached to.
REFUSALS = {"PTRACE_GETSIGMASK": "this kernel cannot block its signals from outside (Linux 3.11)"}
THREADS = 2
BIRTHS = ("fork", "clone", "function")


def missing(names):
    return [WITHOUT, "--" + names]


def every_call():
    return t.run(missing("list")).out.decode().split()


def totals_of(found):
    return [found["totals"][name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes", "failed")]


def is_one_line(what, result, *words):
    lines = result.err.decode(errors="replace").splitlines()
    t.check(result.status == 1 and len(lines) == 1 and all(word in lines[0] for word in words),
            f"{what}: status {result.status}: {lines}")


def check_run(names, plain, usual):
    """A recording is made and saved by the one, and read by the other commands."""
    what, path = f"without {names}", t.fresh_path("run-" + names)
    result = t.run([*missing(names), t.CAIRN, "run", "-q", "-o", path, "--", *t.program("leak")])
    result.check_like(f"{what}: run", plain)
    folded = path + ".folded"
    for words in (["report", path], ["export", "--format", "collapsed", "-o", folded, path]):
        read = t.run([*missing(names), t.CAIRN, *words])
        t.check_equal(f"{what}: {words[0]}", (read.status, read.err), (0, b""))
    t.check(os.path.getsize(folded), f"{what}: the export is empty")
    found = t.report(path)
    t.check_equal(f"{what}: totals", totals_of(found), totals_of(usual))
    t.check_nothing_lost(what, found)


def check_alone(names, plain, usual):
    what, path = f"without {names}, alone", t.fresh_path("alone-" + names)
    # the calls are missing by a filter, which would pass for one that kills
    result = t.run([*missing(names), "env", f"LD_PRELOAD={t.RUNTIME}", f"CAIRN_OUTPUT={path}", "CAIRN_FILTERS=1000",
                    *t.program("leak")])
    result.check_like(what, plain)
    found = t.report(path)
    t.check_equal(f"{what}: totals", totals_of(found), totals_of(usual))
    t.check_nothing_lost(what, found)


def check_births(names):
    """Parent and children by whatever call: each has a recording of its own, and that is exact."""
    for birth in BIRTHS:
        what = f"without {names}, {birth}"
        argv = [*missing(names), t.CAIRN, "run", "-q", "-o", t.fresh_path("births-" + names) + ".cairn", "--",
                *t.program("births", birth)]
        account = t.fresh_path("account-" + names)
        result = t.run(argv, env={"LEDGER": account})
        t.check_equal(f"{what}: end", (result.status, result.out, result.err), (0, b"", b""))
        accounts, found = ledger.read(account), ledger.reports(argv[argv.index("-o") + 1])
        t.check_equal(f"{what}: processes", sorted(found), sorted(accounts))
        for pid, one in accounts.items():
            ledger.check(f"{what} {pid}", found.get(pid), one)


def check_attach(names):
    """Of the program's own kernel as well: it makes calls for cairn."""
    what = f"without {names}, attached"
    target = Target(THREADS, before=missing(names))
    refusal = next((text for name, text in REFUSALS.items() if names in (name, ALL)), None)
    if refusal:
        refused = t.run([*missing(names), t.CAIRN, "attach", "--ignore-checks", str(target.pid)])
        is_one_line(what, refused, refusal)
        target.end(what)
        return
    for _ in range(2):  # the library that is there is used again
        attached = Attached(target.pid, "--ignore-checks", "--exact", before=missing(names))
        target.tell("keep 100 1000")
        running = t.run([*missing(names), t.CAIRN, "report", "--json", str(target.pid)])
        t.check_equal(f"{what}: report of it", (running.status, running.err), (0, b""))
        found = attached.leave()
        kept = [s for s in found["stacks"] if s["at_exit_blocks"] == 100 and s["at_exit_bytes"] == 100000]
        t.check_equal(f"{what}: stacks that keep", len(kept), 1)
        lost = {reason for reason, count in found["trust"]["lost"].items() if count}
        t.check(lost <= {"implied_free"}, f"{what}: lost: {lost}")  # of blocks that threads were at as cairn came
        t.check("keep" in str(t.functions(kept[0])), f"{what}: no names: {kept[:1]}")
        t.check(0 < found["process"]["duration_ns"] < 3600e9, f"{what}: duration: {found['process']['duration_ns']}")
        target.tell("drop")
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
        left = {line.split(maxsplit=5)[5].strip() for line in maps if "memfd:" in line}
    t.check(all("memfd:libcairn.so" in name for name in left), f"{what}: mapped: {left}")
    target.end(what)
    leftovers = [name for place in ("/dev/shm", "/tmp", "/var/tmp") for name in os.listdir(place) if "memfd:" in name]
    t.check_equal(f"{what}: files left", leftovers, [])


def check_beside(names):
    """What looks at a running program: a report, top, a core of it."""
    what = f"without {names}, beside it"
    with Commanded(t.fresh_path("beside-" + names) + ".cairn", before=missing(names)) as program:
        program.do("early 100000")
        pid = str(program.pid)
        read = t.run([*missing(names), t.CAIRN, "report", "--json", pid])
        t.check_equal(f"{what}: report", (read.status, read.err), (0, b""))
        t.check(b'"early"' in read.out, f"{what}: the report has no such function: {read.out[:200]}")
        for words in (["top", "--once", "--json", "--interval", "100ms", pid],
                      ["top", "--once", "--interval", "100ms", pid], ["core", pid, "summarize"],
                      ["ctl", pid, "snapshot"]):
            shown = t.run([*missing(names), t.CAIRN, *words])
            t.check_equal(f"{what}: {words[0]}: status ({shown.err[-300:]})", shown.status, 0)
            t.check(shown.out or words[0] == "ctl", f"{what}: {words[0]} prints nothing")


def check_each(names, plain, usual):
    check_run(names, plain, usual)
    check_alone(names, plain, usual)
    if t.IS_LONG or names == ALL:
        check_beside(names)
        check_attach(names)


if t.run([*missing(ALL), "true"]).status:
    t.cannot_run_here("no system call can be withheld here (seccomp)")
PLAIN = t.run(t.program("leak"))
USUAL = t.report(t.record(t.program("leak"))[1])
for one in [*every_call(), ALL]:
    check_each(one, PLAIN, USUAL)
for one in ("MADV_WIPEONFORK", ALL):
    check_births(one)
t.finish()
