#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nothing leads to any more, of running programs, recorded and not, and of a core dump: directly and indirectly
lost bytes and blocks of 63 programs are those of LeakSanitizer (unreachable_end.py has real ones). `make check` has every
third of the programs here, and the others there; `make check-long` all of them in both."""

import json
import shlex
import shutil
import subprocess

import cairn_test as t
import leak_judge
from leak_judge import NOTHING

PROGRAM = t.program("lost")[0]


def lost(subject):
    result = t.run_cairn("leaks", "--unreachable", "--json", subject)
    if not t.check_equal(f"{subject}: status", result.status, 0):
        return None
    found = json.loads(result.out)
    t.check_equal("schema", found["schema"], "cairn.unreachable/1")
    for kind in ("direct_bytes", "direct_blocks"):
        t.check_equal(f"{subject}: {kind}, by line", sum(row[kind] for row in found["lost"]), found[kind])
    return tuple(found[kind] for kind in ("direct_bytes", "direct_blocks", "indirect_bytes", "indirect_blocks"))


def look(number, command, see):
    with t.Process(command + [str(number), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   env=t.environment()) as process:
        t.check_equal(f"{number}: begins", process.stdout.readline(), b"ready\n")
        see(process)
        process.stdin.close()
        t.check_equal(f"{number}: status", process.wait(), 0)


def check_cases(name, count):
    if not leak_judge.built(name):
        t.skip_part(f"{name}, since LeakSanitizer does not work here")
        return
    for number in leak_judge.cases(count, of_living=True):
        expected = leak_judge.of_case(name, number)
        t.check(any(expected) or (name, number) == ("lost", NOTHING), f"{name} {number}: the judge found nothing")
        look(number, t.program(name), lambda process, number=number, expected=expected:
             leak_judge.check(f"{name} {number}", lost(str(process.pid)), expected,
                              leak_judge.RINGS.get((name, number), 0)))


def recorded_child(process):
    return str(next(child for child in t.children_of(process.pid) if t.is_called(child, "lost")))


def check_recorded():
    def see(process):
        pid = recorded_child(process)
        t.check_equal("recorded: chains", lost(pid), (12 * 56, 12, 66 * 56, 66))
        result = t.run_cairn("leaks", "--unreachable", pid)
        t.check(b"lose_chains" in result.out or b"make  lost.c" in result.out, f"recorded: {result.out}")
        t.check(b"directly lost: 672 B in 12 blocks; indirectly: 3.6 KiB in 66 blocks" in result.out, result.out)
        last = result.out.decode().splitlines()[-1]
        t.check_equal("what is next", last, f"next: cairn leaks --focus '^make$' {pid}")
        stack = t.run_cairn(*shlex.split(last.removeprefix("next: "))[1:]).out.decode()
        t.check("lose_chains" in stack and "without a stack" not in result.out.decode(), f"its stack: {stack}")
    look(3, [t.CAIRN, "run", "-q", "-o", t.fresh_path("lost") + ".cairn", PROGRAM], see)


def check_core():
    if not shutil.which("gcore"):
        t.skip_part("a core dump, since gcore is not here")
        return

    def see(process):
        t.check_equal("gcore", t.run(["gcore", "-o", "dump", str(process.pid)]).status, 0)
        t.check_equal("core: tree", lost(f"dump.{process.pid}"), (24, 1, 62 * 24, 62))
    look(4, [PROGRAM], see)


def check_status():
    def see(process):
        result = t.run_cairn("leaks", "--unreachable", "--error-exitcode", "7", str(process.pid))
        t.check_equal("status where something is lost", result.status, 7)
        said = result.out.decode()
        t.check("672 B in 12 blocks without a stack: nothing was recorded" in said and
                said.endswith(f"next: cairn core {process.pid} list leaked\n"), f"not recorded: {said}")
        listed = t.run_cairn("core", str(process.pid), "list", "leaked").out.decode()
        t.check_equal("the blocks", listed.count("Used allocation at"), 12)
        result = t.run_cairn("check", str(process.pid), "--max-leaked", "0")
        t.check_equal("check: status", (result.status, b"672 B in 12 blocks that nothing leads to" in result.out), (1, True))
    look(1, [PROGRAM], see)

    def see_none(process):
        result = t.run_cairn("leaks", "--unreachable", "--error-exitcode", "7", str(process.pid))
        t.check_equal("status where nothing is lost", result.status, 0)
        t.check(b"directly lost: 0 B in 0 blocks" in result.out, f"nothing: {result.out}")
        t.check_equal("check: status", t.run_cairn("check", str(process.pid), "--max-leaked", "0").status, 0)
    look(NOTHING, [PROGRAM], see_none)
    _, path = t.record(t.program("leak"))
    result = t.run_cairn("leaks", "--unreachable", path)
    t.check_equal("of a recording: status", result.status, 1)
    t.check(b"was not looked at when it was recorded" in result.err, f"of a recording: {result.err}")
    result = t.run_cairn("leaks", "--unreachable", "--baseline", path, "1")
    t.check_equal("with --baseline: status", result.status, 2)


check_cases("lost", leak_judge.WRITTEN)
check_cases("lost_kinds", leak_judge.KINDS)
check_recorded()
check_core()
check_status()
t.finish()
