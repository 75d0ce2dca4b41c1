#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nothing leads to when a program ends (cairn run --unreachable, cairn check --max-leaked -- COMMAND): directly
and indirectly lost bytes and blocks of 63 written programs, 26 random graphs, and of jq, xmllint, sqlite3 and python3
are those of LeakSanitizer; what is not known says why. `make check` has two of three programs (unreachable.py the
others), one of ten graphs, and of each real program those ways that lose something, or one."""

import shutil
import signal

import cairn_test as t
import leak_judge
from leak_judge import NOTHING

CHAINS, OF_THREAD = 3, 17
PROGRAM = t.program("lost")[0]
KINDS = ("direct_bytes", "direct_blocks", "indirect_bytes", "indirect_blocks")


def build(name, *options):
    made = t.fresh_path(name)
    source = str(t.SOURCE / "tests/programs/lost.c")
    return None if t.run(["gcc", "-w", "-O1", "-g", *options, "-pthread", "-o", made, source]).status else made


def end(argv, status=0, **how):
    """The recording of a program that is run to its end, and what is known of it."""
    result, path = t.record(argv, options=("--unreachable",), **how)
    t.check_equal(f"{argv}: status", result.status, status)
    return path, t.report(path, "--top", "1").get("reachability")


def sums_of(found):
    return tuple(found[kind] for kind in KINDS)


def check_cases(name, numbers):
    if not leak_judge.built(name):
        t.skip_part(f"{name}, since LeakSanitizer does not work here")
        return
    for number in numbers:
        _, found = end(t.program(name, number))
        t.check_equal(f"{name} {number}: known", found["known_processes"], 1)
        leak_judge.check(f"{name} {number}", sums_of(found), leak_judge.of_case(name, number),
                         leak_judge.RINGS.get((name, number), 0))


XML = "<r>" + "".join(f"<i n='{number}'>text {number}</i>" for number in range(2000)) + "</r>"
SQL = b"""create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000) insert into t select x, 'row ' || x from c;
create index i on t(b);
select count(*), max(b) from t where b like '%9%';
"""
USE_TABLE = "create table t(a); insert into t values (1), (2); select sum(a) from t"
LOSE = "import ctypes; f = ctypes.CDLL(None).calloc; f.restype = None; [f(i, 8) for i in range(3, 30)]"
REAL = (  # command, input, settings, directly lost blocks that there are at least, rings
    (("jq", ".a", "x.json"), None, {}, 0, 0),
    (("jq", '.a | map(tostring) | join("-") | test("1.*c")', "x.json"), None, {}, 0, 0),
    (("jq", "-n", "reduce range(3000) as $i ({}; .[($i | tostring)] = $i) | length"), None, {}, 0, 0),
    (("jq", "halt_error", "x.json"), None, {}, 1, 0),
    (("xmllint", "--noout", "x.xml"), None, {}, 0, 0),
    (("xmllint", "--xpath", "count(//i[@n > 5])", "x.xml"), None, {}, 0, 0),
    (("xmllint", "--pattern", "r/i", "--stream", "--noout", "x.xml"), None, {}, 1, 0),
    (("sqlite3", ":memory:"), SQL, {}, 0, 0),
    (("sqlite3", ":memory:", "select nope"), None, {}, 0, 0),
    (("sqlite3", ":memory:", f".load {leak_judge.LOST_LIBRARY} lost_extension", USE_TABLE), None, {}, 3, 1),
    ((t.PYTHON, "-c", "import json; print(len(json.dumps(list(range(1000)))))"), None, {}, 0, 0),
    ((t.PYTHON, "-c", "import threading; t = threading.Thread(target=print); t.start(); t.join()"), None, {}, 0, 0),
    ((t.PYTHON, "-c", "import json; print(len(json.dumps([1] * 999)))"), None, {"PYTHONMALLOC": "malloc"}, 0, 0),
    ((t.PYTHON, "-c", LOSE), None, {"PYTHONMALLOC": "malloc"}, 27, 0),
)
# In `make check` those that lose something, and the first of each program and settings.
TRIED = [one for at, one in enumerate(REAL) if t.IS_LONG or one[3] or
         (one[0][0], one[2]) not in [(other[0][0], other[2]) for other in REAL[:at]]]
# glibc fills what it gives and takes back: what was in a block before is no reference in the next one, as it never is
# with LeakSanitizer's allocator, which gives zeroed memory
FILLED = {"MALLOC_PERTURB_": "165"}
# where python3's objects lie depends on it, and so whether a word that is left in one looks like a reference
SEEDED = {"PYTHONHASHSEED": "0"}
# the same of where the kernel maps them: a run in five has such a word, of all runs one has none
RUNS_AT_MOST = 5


def check_real_programs():
    """Mappings of the program's own are searched as cairn does: what only they refer to is not lost."""
    with open("x.json", "w", encoding="ascii") as out:
        out.write('{"a": [1, 2, {"b": "c"}]}\n')
    with open("x.xml", "w", encoding="ascii") as out:
        out.write(XML)
    for argv, given, settings, least, rings in TRIED:
        what = " ".join((*argv, *settings))
        if not shutil.which(argv[0]) or not leak_judge.library():
            t.skip_part(f"{argv[0]}, since it or LeakSanitizer is not here")
            continue
        settings = {**settings, **SEEDED}
        wanted, judged = leak_judge.of_program(argv, given, settings)
        for _ in range(RUNS_AT_MOST):
            result, path = t.record(argv, options=("--unreachable",), stdin=given, env={**settings, **FILLED})
            t.check_equal(f"{what}: status and output", (result.status, result.out), (judged.status, judged.out))
            found = sums_of(t.report(path, "--top", "1")["reachability"])
            if found[1] + found[3] == wanted[1] + wanted[3]:
                break
        leak_judge.check(what, found, wanted, rings, 16)
        t.check(wanted[1] + rings >= least, f"{what}: the judge found {wanted}")
    argv, settings = REAL[-4][0], REAL[-4][2]
    if shutil.which(argv[0]) and leak_judge.library():
        narrow, _ = leak_judge.of_program(argv, None, settings, are_mappings_searched=False)
        t.check(narrow[1], f"python3 has its objects in mappings: {narrow}")


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
    # as PHP does, and what changes its title
    _, found = end([t.PYTHON, "-c", "import ctypes; ctypes.CDLL(None).clearenv()"])
    t.check_equal("without an environment at the end", found["known_processes"], 1)
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
    program, source = t.fresh_path("low"), str(t.SOURCE / "tests/programs/lost.c")
    if t.run(["gcc", "-w", "-O1", "-g", "-no-pie", "-fno-pie", "-pthread", "-o", program, source]).status:
        t.skip_part("a program that is not position-independent")
        return
    path, found = end([program, "scattered"])
    t.check_equal("free blocks in caches are not lost", sums_of(found), (0, 0, 0, 0))
    totals = t.report(path, "--top", "1")["at_exit"]
    # glibc's own record of the cache is a block more
    t.check(0 <= found["reachable_blocks"] - totals["blocks"] <= 2,
            f"blocks: {found['reachable_blocks']} beside {totals['blocks']} recorded")


graphs = range(leak_judge.WRITTEN, leak_judge.WRITTEN + leak_judge.GRAPHS)
check_cases("lost", leak_judge.cases(leak_judge.WRITTEN, of_living=False))
check_cases("lost", graphs if t.IS_LONG else graphs[::10])
check_cases("lost_kinds", leak_judge.cases(leak_judge.KINDS, of_living=False))
check_real_programs()
check_screen()
check_budget()
check_unknown()
check_timer()
check_low_heap()
t.finish()
