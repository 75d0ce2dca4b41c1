#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Findings on real programs (tests/programs/findings.c): each is told of the program that has the fault, with what a fix saves;
it is not told of the mended program, which has saved that. Every finding's page is there (docs/howto/findings.md)."""

import re
import subprocess

import cairn_test as t

TITLE = re.compile(r"^ +\d+ (?=\S)", re.MULTILINE)
PAGE = (t.SOURCE / "docs/howto/findings.md").read_text("utf-8")


def look(kind, *words, options=(), env=None):
    """The findings of a run, each one line of words; and the report."""
    path = t.fresh_path(kind) + ".cairn"
    result = t.run([t.CAIRN, "run", "-q", *options, "-o", path, *t.program("findings", kind, *words)], env=env)
    t.check_equal(f"{kind}: status", result.status, 0)
    text = t.run_cairn("report", "--view", "findings", "--bytes", path).out.decode()
    told = [" ".join(part.split()) for part in TITLE.split(text)[1:]]
    t.check(told or "no findings" in text, f"{kind}: {text}")
    for each in told:
        page = re.search(r"how: cairn help findings#([a-z-]+)$", each)
        titles = [re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-") for line in PAGE.splitlines() if line.startswith("## ")]
        t.check(page and page[1] in titles, f"{kind}: no page: {each}")
        t.check(re.search("a fix saves (up to|at least) ", each), f"{kind}: saves nothing: {each}")
    return told, t.report(path, "--top", "1")  # of one program all stacks take longer than all else


def find(told, pattern):
    return next((match for each in told if (match := re.search(pattern, each))), None)


def check(kind, pattern, options=(), env=None, is_mended=True):
    """(match, report, mended report): the finding is there, and not any more."""
    told, report = look(kind, options=options)
    match = find(told, pattern)
    t.check(match, f"{kind}: no {pattern!r} in {told}")
    mended, mended_report = look(kind, *(["fixed"] if is_mended else []), options=options, env=env)
    t.check(not find(mended, pattern.split("(")[0] if "(" in pattern else pattern), f"{kind}: told of the mended program: {mended}")
    return match, report, mended_report


def saved(before, after, *keys):
    values = [before, after]
    for key in keys:
        values = [value[key] for value in values]
    return values[0] - values[1]


match, before, after = check("growth", r"open_session findings\.c:\d+ grows by .*saves up to (\d+) of what is held")
# from the first snapshot to the end
t.check(match and 0.9 <= int(match[1]) / saved(before, after, "at_exit", "bytes") <= 1, f"growth: {match and match[0]}")

match, before, after = check("realloc", r"append_lines findings\.c:\d+ grows buffers .* times in all: reserve.* copying \d+, and ([\d,]+) of")
t.check_equal("realloc: calls", match and int(match[1].replace(",", "")), saved(before, after, "totals", "allocations"))

match, before, after = check("temporary", r"short-lived, most of parse_request .*saves up to some ([\d.]+) % of")
t.check(match and abs(float(match[1]) - 100 * saved(before, after, "totals", "allocations") / before["totals"]["allocations"]) < 1,
        f"temporary: {match and match[0]}")

match, before, after = check("reuse", r"greet findings\.c:\d+ frees what it allocates, 24,000 blocks of 120: a buffer on the stack "
                             r"will do: --view frees a fix saves up to ([\d,]+) of", options=["--free-stacks"])
t.check_equal("reuse: calls", match and int(match[1].replace(",", "")), saved(before, after, "totals", "allocations"))
told, _ = look("reuse")
t.check(not find(told, "frees what it allocates"), f"without --free-stacks: {told}")

match, before, after = check("alike", r"load_rows findings\.c:\d+ allocates 200,000 blocks of 24 one by one.*"
                             r"saves up to (\d+) of room around the blocks at the peak, and ([\d,]+) of")
calls = saved(before, after, "totals", "allocations")
t.check(match and 0.95 * calls <= int(match[2].replace(",", "")) <= calls, f"alike: {match and match[0]}, {calls} calls")
t.check_equal("alike: headers; 24 bytes need no rounding", match and int(match[1]), 200000 * 8)

match, before, after = check("untouched", r"(\d+) of \d+ live were never touched at .*make_buffers .*: reserve less")
# all but the pages around what was touched
share = int(match[1]) / saved(before, after, "peak", "bytes") if match else 0
t.check(0.99 < share <= 1, f"untouched: {share} of what the mended one does without")

match, _, _ = check("freed_by", r"100 % of what producer allocates is freed by consumer: --view threads a fix saves up to the "
                    r"locks of ([\d,]+) frees")
t.check_equal("freed_by: frees", match and match[1], "20,000")


def resident(report):
    return report["rss"]["peak_bytes"]


# Resident memory is looked at from time to time: what is told is what was seen.
told, before = look("free")
if before["rss"]["at_peak"] and len(before["rss"]["points"]) > 3:
    match = find(told, r"\d+ of \d+ resident are free in the heap, .*saves up to (\d+) resident")
    t.check(match and 40e6 < int(match[1]) < 60e6, f"free: {told}")
mended, after = look("free", "fixed")
t.check(not find(mended, "resident are free in the heap"), f"free: told of the mended program: {mended}")

# With very many stacks looks are rare, and most of what is resident is cairn's own.
told, _ = look("stacks")
t.check(not find(told, "free in the heap"), f"stacks: {told}")

told, before = look("arenas")
match = find(told, r"7 arenas hold \d+ free at .*, (\d+) beyond the heap's peak: MALLOC_ARENA_MAX=1: .*saves (?:up to|at least) (\d+) resident")
pictures = [before["rss"][name] for name in ("at_peak", "last") if before["rss"][name]]
if any(picture.get("arenas", 0) > 2 and (picture["free_bytes"] or 0) > 40e6 for picture in pictures):
    t.check(match and match[1] == match[2], f"arenas: {told}")
mended, after = look("arenas", env={"MALLOC_ARENA_MAX": "1"})
t.check(not find(mended, "arenas hold"), f"arenas: told with one arena: {mended}")
if match:
    least = 0 if "saves at least" in match[0] else 0.75  # "at least": nobody looked at the peak itself
    t.check(least < int(match[1]) / saved(before, after, "rss", "peak_bytes") < 1.1,
            f"arenas: {match[1]} told, {saved(before, after, 'rss', 'peak_bytes')} saved")

def faults(env):
    """Page faults of the program alone, whose fix is in the environment."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)")
    result = t.run([t.PYTHON, "-c", script, *t.program("findings", "huge")], env=env)
    return int(result.out)


def refused_pages():
    """How often the kernel had no huge page to give, to whomever."""
    with open("/proc/vmstat", encoding="ascii") as file:
        return next((line for line in file if line.startswith("thp_fault_fallback ")), "")


def look_into(*words):
    """What --view waste says of a program that waits, its JSON, and the heap at its end."""
    path = t.fresh_path("strings") + ".cairn"
    command = [t.CAIRN, "run", "-q", "-o", path, *t.program("findings", "strings", *words)]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("strings: begins", process.stdout.readline(), b"ready\n")
        pid = str(next(child for child in t.children_of(process.pid) if t.is_called(child, "findings")))
        said = t.run_cairn("report", pid, "--view", "waste", "--bytes").out.decode()
        found = t.answer(pid, "waste")
        process.stdin.close()
        process.wait()
    return said, [one for one in found["claims"] if one["key"] == "strings"], t.report(path)["at_exit"]["bytes"]


said, told, held = look_into()
mended, none, less = look_into("fixed")
said = said.replace("\n  take_name", " take_name")  # at 80 columns
match = re.search(r"^finding: (\d+) of equal strings, 19,975 copies of 25 strings, most of take_name.*: keep each once\n"
                  r"a fix saves up to (\d+) of the heap; how: cairn help findings#equal-strings$", said, re.MULTILINE)
t.check(match and len(told) == 1, f"strings: {said} {told}")
t.check_equal("strings: saved", match and int(match[2]), held - less)
t.check_equal("strings: of the mended program", (none, "finding:" in mended), ([], False))

TUNABLE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
told, before = look("huge")
match = find(told, r"(\d+) of \d+ resident are heap on small pages at .*hugetlb=1 a fix saves (?:up to|at least) ([\d,]+) page faults")
with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
    pages = file.read()
# resident memory is looked at from time to time: of a slow machine not when all of it was there
if "[always]" not in pages and (before["rss"]["last"] or {"rss_bytes": 0})["rss_bytes"] > 150e6:
    t.check(match, f"huge: {told}")
if match and "[madvise]" in pages:
    before = refused_pages()
    less = faults({}) - faults(TUNABLE)
    if refused_pages() != before or less <= 1000:
        t.skip_part("huge pages: the kernel had too few to give")
    else:
        promised = int(match[2].replace(",", ""))
        t.check(0.95 < less / (64 * 1024 - 128) < 1.05 and promised <= 64 * 1024, f"huge: {promised} told, {less} saved")
        if int(match[1]) > 255e6:
            t.check(0.95 < less / promised < 1.05, f"huge: {promised} told, {less} saved")
        mended, _ = look("huge", env=TUNABLE)
        t.check(not find(mended, "on small pages"), f"huge: told of huge pages: {mended}")

t.check_equal("a run", t.run([t.CAIRN, "run", "-q", "-o", "run.cairn", "sh", "-c", f"'{t.PROGRAMS}/findings' realloc & "
                              f"'{t.PROGRAMS}/findings' alike; wait"]).status, 0)
told = t.run_cairn("report", "--view", "findings", "run.cairn").out.decode()
t.check(re.search(r"1 of \d+ processes", told) and "grows buffers" in told, f"of a run, the process with the highest peak: {told}")
summed = t.run_cairn("report", "--view", "findings", "--process", "all", "run.cairn")
t.check(summed.status == 1 and b"findings are of one process: give --process" in summed.err, f"{summed.err}")
refused = t.run_cairn("report", "--view", "findings", "--process", "nobody", "realloc.0.cairn")
t.check(refused.status == 1, f"{refused.err}")
t.finish()
