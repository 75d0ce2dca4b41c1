#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nothing leads to when a program ends (cairn run --unreachable, cairn check --max-leaked -- COMMAND): directly
and indirectly lost bytes and blocks of 45 programs are those of LeakSanitizer; what is not known says why."""

import re
import signal

import cairn_test as t

CASES = 45
CHAINS, NOTHING, OF_THREAD = 3, 15, 17
PROGRAM = t.program("lost")[0]
LEAK = re.compile(r"^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\)", re.M)
KINDS = ("direct_bytes", "direct_blocks", "indirect_bytes", "indirect_blocks")


def build(name, *options):
    made = t.fresh_path(name)
    source = str(t.SOURCE / "tests/programs/lost.c")
    return None if t.run(["gcc", "-w", "-O1", "-g", *options, "-pthread", "-o", made, source]).status else made


def build_judge():
    """The same program with LeakSanitizer; None: it is not here, or cannot work here."""
    judge = build("judge", "-fsanitize=leak")
    said = t.run([judge, "0"]).err.decode() if judge else ""
    return judge if "Direct leak of 24 byte(s) in 1 object(s)" in said else None


def judged(judge, number):
    sums = {"Direct": [0, 0], "Indirect": [0, 0]}
    for kind, size, count in LEAK.findall(t.run([judge, str(number)]).err.decode()):
        sums[kind][0] += int(size)
        sums[kind][1] += int(count)
    return tuple(sums["Direct"] + sums["Indirect"])


def end(argv, status=0, **how):
    """The recording of a program that is run to its end, and what is known of it."""
    result, path = t.record(argv, options=("--unreachable",), **how)
    t.check_equal(f"{argv}: status", result.status, status)
    return path, t.report(path).get("reachability")


def sums_of(found):
    return tuple(found[kind] for kind in KINDS)


def check_cases():
    judge = build_judge()
    if not judge:
        t.skip_part("LeakSanitizer, which does not work here")
        return
    for number in range(CASES):
        _, found = end([PROGRAM, str(number)])
        t.check_equal(f"case {number}: known", found["known_processes"], 1)
        t.check_equal(f"case {number}", sums_of(found), judged(judge, number))


def check_screen():
    path, _ = end([PROGRAM, str(CHAINS)])
    shown = t.run_cairn("leaks", "--unreachable", path).out
    for part in (b"directly lost: 672 B in 12 blocks; indirectly: 3.6 KiB in 66 blocks; still reachable", b"lose_chains"):
        t.check(part in shown, f"leaks --unreachable: {shown}")
    tree = t.run_cairn("leaks", "--unreachable", "--view", "tree", path).out
    t.check(b"lose_chains" in tree and b"4.3 KiB" in tree, f"tree: {tree}")
    none = t.run_cairn("leaks", "--unreachable", "--focus", "lose_tree", path)
    t.check_equal("a filter that matches nothing: status", none.status, 1)
    newer = t.run_cairn("leaks", "--unreachable", "--baseline", path, "--error-exitcode", "5", path)
    t.check_equal("nothing beyond the baseline: status", newer.status, 0)
    worse = t.run_cairn("leaks", "--unreachable", "--error-exitcode", "5", path)
    t.check_equal("something lost: status", worse.status, 5)
    said = t.run([t.CAIRN, "run", "--unreachable", "-o", t.fresh_path("said") + ".cairn", PROGRAM, str(CHAINS)]).err
    t.check(b"leaks        directly lost: 672 B in 12 blocks" in said and b"next: cairn leaks --unreachable" in said,
            f"summary: {said}")


def check_budget():
    for number, status in ((NOTHING, 0), (CHAINS, 1), (OF_THREAD, 1)):
        result = t.run_cairn("check", "--max-leaked", "0", "--", PROGRAM, str(number))
        t.check_equal(f"check {number}: status", result.status, status)
    t.check_equal("check 5K: status", t.run_cairn("check", "--max-leaked", "5K", "--", PROGRAM, str(CHAINS)).status, 0)
    result = t.run_cairn("check", "--max-leaked", "0", "--markdown", "end.md", "--", PROGRAM, str(CHAINS))
    t.check(b"lose_chains" in result.out, f"check: {result.out}")
    both = t.run_cairn("check", "--max-leaked", "0", "--", "sh", "-c", f"{PROGRAM} {CHAINS}; {PROGRAM} {NOTHING}; true")
    t.check(b"4.3 KiB in 78 blocks that nothing led to" in both.out, f"check of three processes: {both.out}")


def check_unknown():
    """What ended otherwise than by itself."""
    _, found = end(["sh", "-c", "kill -9 $$"], 128 + signal.SIGKILL)
    t.check_equal("killed", (found["known_processes"], found["unknown_processes"]), (0, 1))
    t.check("signal 9" in found["unknown_reason"], f"killed: {found}")
    path, _ = end(["sh", "-c", "kill -9 $$"], 128 + signal.SIGKILL)
    result = t.run_cairn("leaks", "--unreachable", path)
    t.check_equal("killed: status", result.status, 1)
    t.check(b"reachability not known: signal 9 ended it" in result.err, f"killed: {result.err}")
    failed = t.run_cairn("check", "--max-leaked", "0", "--", "sh", "-c", "kill -9 $$")
    t.check(failed.status == 1 and b"reachability not known" in failed.out, f"killed: {failed.out}")
    _, found = end([t.PYTHON, "-c", "import os; os._exit(3)"], 3)
    t.check_equal("_exit", found["known_processes"], 1)
    _, found = end(["sh", "-c", f"exec {PROGRAM} {CHAINS}"])
    t.check_equal("exec", sums_of(found), (672, 12, 3696, 66))
    for options in (["--exec"], ["--sample"]):
        t.check_equal(f"with {options}", t.run_cairn("run", "--unreachable", *options, "true").status, 2)


def check_timer():
    """Signals that come all the time do not cut the wait short."""
    _, found = end([PROGRAM, str(CHAINS), "timed"])
    t.check_equal("timer", sums_of(found), (672, 12, 3696, 66))


def check_low_heap():
    """Links of free blocks that look like links to others: of a program that is not position-independent."""
    program = build("low", "-no-pie", "-fno-pie")
    if not program:
        t.skip_part("a program that is not position-independent")
        return
    path, found = end([program, "scattered"])
    t.check_equal("free blocks in caches are not lost", sums_of(found), (0, 0, 0, 0))
    totals = t.report(path)["at_exit"]
    # glibc's own record of the cache is a block more
    t.check(0 <= found["reachable_blocks"] - totals["blocks"] <= 2,
            f"blocks: {found['reachable_blocks']} beside {totals['blocks']} recorded")


check_cases()
check_screen()
check_budget()
check_unknown()
check_timer()
check_low_heap()
t.finish()
