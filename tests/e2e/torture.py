#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn torture`: every planted bug of tests/programs/torture.cc is found, as what it is, at its stack, and nothing in
what is right; a target that never ends, floods, fills the disk or leaves a daemon is bounded; what is interrupted goes
on; SQLite's library comes out clean."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as xml

import cairn_test as t

PROGRAM = t.program("torture")[0]
# Mode: the kind of its findings, the function whose allocation fails, the signal, what it says; for leaks --no-leaks
# is left out.
BUGS = {
    "unchecked": ("crash", "unchecked", signal.SIGSEGV, ""),
    "unchecked_calloc": ("crash", "unchecked_calloc", signal.SIGSEGV, ""),
    "unchecked_strdup": ("crash", "unchecked_strdup", signal.SIGSEGV, ""),
    "unchecked_aligned": ("crash", "unchecked_aligned", signal.SIGSEGV, ""),
    "leak": ("leak", "leak", 0, "nothing leads to, from get"),
    "lost_by_realloc": ("leak", "lost_by_realloc", 0, "nothing leads to, from get"),
    "ends_later": ("leak", "lose_or_grow", 0, "nothing leads to, from get"),
    "leak_by_exception": ("leak", "leak_by_exception", 0, "from leak_by_exception"),
    "double_free": ("crash", "double_free", signal.SIGABRT, "double free"),
    "wild_free": ("crash", "wild_free", None, ""),
    "uncaught": ("abort", "uncaught", signal.SIGABRT, "std::bad_alloc"),
    "broken_promise": ("abort", "promise", signal.SIGABRT, "std::bad_alloc"),
    "gives_up": ("abort", "gives_up", signal.SIGABRT, ""),
    "asserts": ("abort", "asserts", signal.SIGABRT, "Assertion `block' failed"),
    "divides": ("crash", "divides", signal.SIGFPE, ""),
    "wrong_index": ("crash", "wrong_index", signal.SIGSEGV, ""),
    "endless_recursion": ("crash", "endless_recursion", signal.SIGSEGV, ""),
    "waits": ("hang", "waits", 0, ""),
    "stays_locked": ("hang", "locked", 0, ""),
    "chatters": ("flood", "chatters", 0, ""),
    "fills_disk": ("flood", "fills_disk", signal.SIGXFSZ, ""),
    "skips": ("silent", "skips", 0, ""),
    "second_time": ("crash", "second_time", signal.SIGSEGV, ""),
    "in_thread": ("crash", "work", signal.SIGSEGV, ""),
    "in_child": ("silent", "in_child", 0, ""),
}
FINE = ("right", "without", "caught", "leaves_daemon", "ends_at_once")
OWN = r"torture\.cc"  # stacks of the program: not what C++'s library allocates before main


def torture(*arguments, timeout=120):
    """Exit status, JSON and stderr of a quiet run."""
    result = t.run_cairn("torture", "-q", "--json", *arguments, timeout=timeout)
    try:
        found = json.loads(result.out)
    except ValueError:
        found = None
    return result.status, found, result.err.decode(errors="replace")


def check_mode(mode):
    options = ["--stacks", OWN, "--max-output", "1M"]
    kind, function, end, words = BUGS.get(mode, ("", "", 0, ""))
    options += [] if kind in ("leak", "") else ["--no-leaks"]
    options += ["--time-limit", "4s"] if kind == "hang" else []
    return mode, torture(*options, "--", PROGRAM, mode)


with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
    outcomes = dict(pool.map(check_mode, [*BUGS, *FINE]))
for mode, (kind, function, end, words) in BUGS.items():
    status, found, err = outcomes[mode]
    if not t.check(found, f"{mode}: {err}"):
        continue
    findings = [f for f in found["findings"] if any(frame["function"] == function for frame in f["frames"])]
    t.check_equal(f"{mode}: kinds", {f["kind"] for f in found["findings"]}, {kind})
    t.check(status == 1 and findings, f"{mode}: status {status}, {len(findings)} findings at {function}")
    for finding in findings:
        t.check(end is None or finding["signal"] == end, f"{mode}: ended by {finding['signal']}, not {end}")
        t.check(words in finding["detail"], f"{mode}: says {finding['detail']!r}")
        died_at = {"endless_recursion": "recurses", "stays_locked": ""}.get(mode, mode if function == "get" else function)
        died_at = died_at if kind in ("crash", "abort") else ""
        t.check(died_at in (finding["died_at"] or ""), f"{mode}: died at {finding['died_at']!r}")
        t.check_equal(f"{mode}: within", finding["within"], None)
        t.check(finding["again"].startswith(f"cairn torture --only {finding['stack']}:{finding['nth']} -- "),
                f"{mode}: again: {finding['again']}")
    if mode == "second_time":
        t.check(all(f["nth"] > 1 and f["count"] == 4 for f in findings), "second_time: only a later one is wrong")
for mode in FINE:
    status, found, err = outcomes[mode]
    t.check(status == 0 and found and not found["findings"] and found["results"]["clean"],
            f"{mode}: {status} {found and found['findings']} {err}")
daemons = subprocess.run(["pgrep", "-f", f"^{PROGRAM} leaves_daemon"], capture_output=True, check=False).stdout
t.check_equal("daemons that are left", daemons, b"")

# again, as the finding says it; on the screen; as JUnit
status, found, _ = outcomes["unchecked"]
again = found["findings"][0]["again"].split()[1:]
result = t.run_cairn(again[0], *again[1:])
screen = result.out.decode()
t.check(result.status == 1 and "crashes (SIGSEGV) when this allocation fails:" in screen and
        re.search(r"^    unchecked +torture\.cc:\d+$", screen, re.M), f"again: {result.status} {screen} {result.err}")
result = t.run_cairn("torture", "-q", "--stacks", OWN, "--no-leaks", "--junit", "found.xml", "--", PROGRAM, "unchecked")
suite = xml.parse("found.xml").getroot().find("testsuite")
t.check_equal("JUnit: failures", suite.get("failures"), "1")
failed = [case for case in suite if case.find("failure") is not None]
t.check(len(failed) == 1 and "unchecked" in failed[0].find("failure").text, "JUnit: the failing case")
result = t.run_cairn("torture", "-q", "--stacks", OWN, "--no-leaks", "--sarif", "found.sarif", "--markdown", "found.md",
                     "--annotations", "--", PROGRAM, "unchecked")
sarif = json.loads(pathlib.Path("found.sarif").read_text())["runs"][0]
place = sarif["results"][0]["locations"][0]["physicalLocation"]
t.check(len(sarif["results"]) == 1 and sarif["results"][0]["ruleId"] == "memory/crash" and
        place["artifactLocation"]["uri"].endswith("torture.cc") and place["region"]["startLine"], f"SARIF: {sarif}")
t.check("crashes when an allocation of get fails" in pathlib.Path("found.md").read_text(), "Markdown")
t.check(re.search(rb"^::error file=.*torture.cc,line=\d+", result.out, re.M), f"annotations: {result.out}")
allowed = t.run_cairn("torture", "-q", "--stacks", OWN, "--no-leaks", "--allow", "crash", "--", PROGRAM, "unchecked")
t.check(allowed.status == 0 and b"no findings" in allowed.out, f"--allow: {allowed.out}")

status, found, _ = torture("--stacks", OWN, "--no-leaks", "--stdin", "found.xml", "--", PROGRAM, "unchecked")
t.check(" --stdin found.xml -- " in found["findings"][0]["again"], f"again, with what it reads: {found['findings'][0]['again']}")

# later allocations are chosen by the seed, the same ones again
def steps_of(seed):
    _, result, _ = torture("--stacks", OWN, "--no-leaks", "--seed", seed, "--", PROGRAM, "second_time")
    return [(f["stack"], f["nth"]) for f in result["findings"]]


t.check_equal("the same seed", steps_of("5"), steps_of("5"))

# resumed: what is done is not run again, and another command is refused
state = ["--state", "state", "--stacks", OWN, "--no-leaks", "-j", "2"]
first = torture(*state, "--budget", "1us", "--", PROGRAM, "second_time")
t.check(first[1] and not sum(first[1]["results"].values()), f"no budget: {first}")
second = torture(*state, "--", PROGRAM, "second_time")
t.check_equal("without one", sum(second[1]["results"].values()), first[1]["planned"])
log = pathlib.Path("state/results")
lines = log.read_text().splitlines()
log.write_text("\n".join(lines[:2]) + "\n" + lines[2][:20])  # killed in the middle of a line
third = torture(*state, "--", PROGRAM, "second_time")
t.check_equal("resumed", third[1]["results"], second[1]["results"])
t.check_equal("lines of the log", len([line for line in log.read_text().splitlines() if line.endswith("}")]),
              1 + first[1]["planned"])
t.check_equal("files of runs that are left", sorted(os.listdir("state")), ["results"])
other = torture(*state, "--", PROGRAM, "right")
t.check(other[0] == 1 and "of another command" in other[2], f"--state of another command: {other}")

# a sanitizer's report
pathlib.Path("after.c").write_text("""#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *one = malloc(10), *other = malloc(2000);
    if (!other) { free(one); return one[0]; }
    free(other); free(one); puts("done"); return 0;
}
""")
built = t.run(["gcc", "-g", "-O0", "-fsanitize=address", "-o", "after", "after.c"])
if built.status == 0:
    status, found, err = torture("--stacks", r"^main$", "--", "./after")
    t.check(found and [f["kind"] for f in found["findings"]] == ["sanitizer"] and
            "heap-use-after-free" in found["findings"][0]["detail"], f"a sanitizer: {found and found['findings']} {err}")
else:
    t.skip_part("gcc has no AddressSanitizer")

# The shell of SQLite comes out clean, leaks looked for too; what is wrong within glibc is glibc's, and is counted.
# `make check-long`: all allocations of a whole script, else those that fit into a moment.
if shutil.which("sqlite3"):
    COMMAND = ["sqlite3", ":memory:", "select 1"]
    result = t.run_cairn("torture", "-q", "--no-leaks", "-j", "2", "--allow-in", r"libc\.so", "--", *COMMAND, timeout=240)
    said = result.out.decode()
    t.check(result.status == 0 and re.search(r"^\d{3} failing allocations of \d+ stacks: no findings", said) and
            " left;" not in said and not said.rstrip().endswith(" left"), f"sqlite3: {result.status} {said} {result.err}")
    day, is_whole = str(t.SOURCE / "tests/programs/torture/day.sql"), t.IS_LONG
    result = t.run_cairn("torture", "-q", "-j", "2", "--allow-in", r"libc\.so", "--stdin", day,
                         *([] if is_whole else ["--budget", f"{t.load():.0f}s"]), "--", "sqlite3", ":memory:", timeout=3600)
    said_of_day = result.out.decode()
    done = re.search(r"^([\d,]+) failing allocations of [\d,]+ stacks: no findings", said_of_day, re.M)
    t.check(result.status == 0 and done and int(done[1].replace(",", "")) > (2000 if is_whole else 0) and
            "not looked for" not in said_of_day, f"sqlite3, a day: {result.status} {said_of_day} {result.err}")
    t.check(not is_whole or not re.search(r"; \d+ left(;|$)", said_of_day, re.M), f"sqlite3, all of a day: {said_of_day}")
    status, found, err = torture("--stacks", "getpw|nss", "--no-leaks", "--", *COMMAND)
    if found and found["findings"]:
        t.check_equal("within", {finding["within"] for finding in found["findings"]}, {"libc.so.6"})
        t.check("nss_database" in found["findings"][0]["died_at"] or not any(
            frame["file"] for frame in found["findings"][0]["frames"]), f"died at {found['findings'][0]['died_at']}")
        t.check(f"{len(found['findings'])} left out, within libraries of --allow-in" in said, said)
        status, allowed, _ = torture("--stacks", "getpw|nss", "--no-leaks", "--allow-in", "libz", "--", *COMMAND)
        t.check_equal("another library", len(allowed["findings"]), len(found["findings"]))
else:
    t.skip_part("sqlite3 is not here")

for arguments, status, words in (
        ([], 2, "no program given"), (["--jobs", "0", "--", PROGRAM, "right"], 2, "nothing would run"),
        (["--budget", "soon", "--", PROGRAM, "right"], 2, '"soon" is no duration'),
        (["--allow", "crash,rain", "--", PROGRAM, "right"], 2, 'not "rain"'),
        (["--only", "x", "--", PROGRAM, "right"], 2, "--only takes what a finding says"),
        (["--stacks", "(", "--", PROGRAM, "right"], 2, "--stacks"),
        (["--allow-in", "(", "--", PROGRAM, "right"], 2, "--allow-in"),
        (["--only", "12ab", "--", PROGRAM, "right"], 1, "has no such stack"),
        (["--time-limit", "300ms", "--", "sleep", "60"], 1, "did not end within"),
        (["--max-output", "1K", "--", "seq", "100000"], 1, "writes more than"),
        (["--", "./nothing-there"], 1, "cannot be started: ./nothing-there"),
        (["--", "/sbin/ldconfig", "-V"], 1, "no allocation was seen")):
    result = t.run_cairn("torture", "-q", "--no-leaks", *arguments)
    t.check(result.status == status and words in result.err.decode(), f"{arguments}: {result.status} {result.err}")
t.finish()
