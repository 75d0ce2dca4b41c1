#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn check: limits just above and just below what is known to be taken, baselines, files of budgets,
commands, JUnit and Markdown; the same results each time."""

import os
import pathlib
import re
import xml.etree.ElementTree as xml

import cairn_test as t

REPEATS = 100 if os.environ.get("CAIRN_LONG") else 8


def check(*arguments, status, env=None):
    result = t.run_cairn("check", *map(str, arguments), env=env)
    t.check_equal(f"check {arguments}: status", result.status, status)
    return result.out.decode() + result.err.decode()


_, one = t.record(t.program("containers", 1))
_, three = t.record(t.program("containers", 3))
report = t.report(one)
peak, calls = report["peak"]["bytes"], report["totals"]["allocations"]
allocated, slack = report["totals"]["allocated_bytes"], report["peak"]["error_bytes"]

check(one, "--max-peak", peak, status=0)
check(one, "--max-peak", peak - slack - 1, status=1)
check("--max-calls", calls, one, status=0)
text = check(one, "--max-calls", calls - 1, status=1)
t.check(re.search(r"FAIL containers \(\d+\) calls: .*more than", text) and "churn" in text,
        f"the guilty are named: {text}")
check(one, "--max-allocated", allocated, "--max-calls", "1e9", status=0)
check(one, "--max-allocated", allocated - 1, "--max-calls", "1e9", status=1)
text = check(one, "--max-temporary", "100%", status=0
             if sum(s["temporary"] for s in report["stacks"]) else 1)
passing = sum(s["temporary"] for s in report["stacks"])
if passing:
    check(one, "--max-temporary", passing, status=0)
    check(one, "--max-temporary", passing - 1, status=1)
    check(one, "--max-temporary", f"{100 * passing / calls + 0.01}%", status=0)
    text = check(one, "--max-temporary", f"{100 * passing / calls - 0.01}%", status=1)
    t.check("more than" in text and f"of {calls:,} calls" in text, f"temporary: {text}")
else:
    t.check("does not count them" in text, f"temporary: {text}")
check(one, "--max-exit", 0, status=0)
check(one, "--max-exit", 0, "--no-suppressions", status=1)
text = check(three, "--max-exit", 0, status=1)
t.check("leak_one" in text, f"the leak is named: {text}")
check(three, "--max-exit", 5000, status=0)

check(one, "--baseline", one, status=0)
text = check(three, "--baseline", one, "--tolerance", "2%", status=1)
t.check("fill_map" in text and "leak_one" in text, f"what grew is named: {text}")
check(three, "--baseline", one, "--tolerance", "100000", status=1)  # a leak of nothing before
check(one, "--baseline", three, status=0)
text = check(three, "--baseline", f"{one},{one},{one}", "--tolerance", "2%", status=1)
t.check("that the baselines allow" in text, f"several baselines: {text}")
check(three, "--baseline", f"{one},{three}", status=0)  # within what they took
t.check("no_such" in check(one, "--baseline", f"{one},no_such.cairn", status=1), "a missing baseline is named")

BUDGETS = """# limits of the test
max-calls = 1_000_000
["cont*"]
max-peak = "{peak}"
max-exit = 0
"""
pathlib.Path("good.toml").write_text(BUDGETS.format(peak=peak + slack), encoding="utf-8")
pathlib.Path("bad.toml").write_text(BUDGETS.format(peak="1 KiB"), encoding="utf-8")
pathlib.Path("typo.toml").write_text("[a]\nmax-peek = 1\n", encoding="utf-8")
pathlib.Path("other.toml").write_text("[no_such_program]\nmax-calls = 1\n", encoding="utf-8")
command = ["--", *t.program("containers", 1)]
temporary = pathlib.Path("scratch").absolute()
temporary.mkdir()
place = {"TMPDIR": str(temporary)}
for _ in range(REPEATS):
    check("--budgets", "good.toml", *command, status=0, env=place)
t.check_equal("recordings of checks that hold are removed", list(temporary.iterdir()), [])
text = check("--budgets", "bad.toml", "--junit", "out.xml", "--markdown", "out.md", *command, status=1,
             env=place)
t.check("the recording: " in text, f"the recording is kept and named: {text}")
check("--budgets", "good.toml", "--junit", "out.xml", "--markdown", "out.md", *command, status=0, env=place)
t.check_equal("a report is replaced", xml.parse("out.xml").getroot().find("testsuite").get("failures"), "0")
check("--budgets", "bad.toml", "--junit", "out.xml", "--markdown", "out.md", *command, status=1, env=place)
suite = xml.parse("out.xml").getroot().find("testsuite")
t.check_equal("JUnit: numbers", (suite.get("tests"), suite.get("failures")), ("3", "1"))
failed = [case for case in suite if case.find("failure") is not None]
t.check_equal("JUnit: the failure", [(c.get("classname"), c.get("name")) for c in failed],
              [("containers", "peak")])
t.check("fill_map" in failed[0].find("failure").text, "JUnit: the guilty")
markdown = pathlib.Path("out.md").read_text(encoding="utf-8")
t.check("| **FAIL** | containers | peak |" in markdown and "    " in markdown, f"Markdown: {markdown}")
text = check("--budgets", "other.toml", *command, status=1, env=place)
t.check("no process of this name" in text, f"a name that is not there: {text}")
for words in (["no_such_file.cairn"], ["--", "./no_such_program"]):
    pathlib.Path("stale.xml").write_text('<testsuites><testsuite failures="0"/></testsuites>', encoding="utf-8")
    check("--max-calls", "1e9", "--junit", "stale.xml", *words, status=1, env=place)
    suite = xml.parse("stale.xml").getroot().find("testsuite")
    t.check_equal(f"what cannot be checked fails in the report: {words}", suite.get("failures"), "1")
text = check("--max-calls", "1e9", "--", "sh", "-c", "exit 3", status=1, env=place)
t.check("status 3" in text, f"a command that fails: {text}")
text = check("--max-calls", "1e9", "--time-limit", "500ms", "--", "sh", "-c", "sleep 1000 & echo $! > sleeper; wait",
             status=1, env=place)
t.check("did not end within 0.5" in text and "was killed" in text, f"a command that does not end: {text}")
sleeper = pathlib.Path("sleeper").read_text(encoding="ascii").strip()
t.check(not pathlib.Path(f"/proc/{sleeper}").exists() or "Z" in pathlib.Path(f"/proc/{sleeper}/stat").read_text(
    encoding="ascii").split(")")[1], "what it started is killed as well")
check("--max-calls", "1e9", "--time-limit", "1h", *command, status=0)
check("--max-calls", "1e9", "--time-limit", "1h", one, status=2)
check("--max-calls", "1e9", "-o", "kept.cairn", *command, status=0)
t.check(os.path.exists("kept.cairn"), "-o keeps the recording")

_, several = t.record(["sh", "-c", " & ".join(" ".join(t.program("containers", n)) for n in (1, 3)) +
                       " & wait"])
text = check(several, "--budgets", "good.toml", status=1)
t.check(re.search(r"FAIL containers \(\d+, of 2\) peak", text), f"the worst of a run: {text}")



def is_gone(claim, before, after, status, words):
    text = check("--gone", claim, "--baseline", before, after, status=status)
    t.check(words in text, f"{claim}, {before}, {after}: {text}")


made = {name: t.record(t.program("fixed", *name.split()))[1] for name in ("leak temporary", "leak", "temporary", "none")}
both = made["leak temporary"]
for claim, still, gone in (("left:open_session", "leak", "temporary"), ("left", "leak", "temporary"),
                           ("temporary:parse_row", "temporary", "leak"), ("temporary", "temporary", "leak"),
                           ("short_lived", "temporary", "none")):
    is_gone(claim, both, made[gone], 0, "finding: gone")
    is_gone(claim, both, made[still], 1, "finding: still there")
is_gone("left:open_session", both, made["none"], 0, "before, 0 B now; 40,400 calls before, 400 now")
is_gone("left:open_session", both, both, 1, "open_session fixed.c:")
is_gone("growth", both, both, 1, "has no such finding; it has: temporary:parse_row")
is_gone("left:parse_row", both, both, 1, "has no such finding")
_, aged = t.record(t.program("fixed", "temporary"), options=["--ages"])
is_gone("ages:parse_row", aged, made["temporary"], 1, "not known, of the later recording: it was made without --ages")
is_gone("ages:parse_row", aged, aged, 1, "still there")
check("--gone", "left", "--baseline", both, "--", *t.program("fixed"), status=0)
check("--gone", "left", both, status=2)

for arguments, words in (([one], "no budget"), ([one, "--max-peak", "much"], "max-peak"),
                         ([one, "--max-calls", "1x"], "max-calls"),
                         ([one, "--baseline", one, "--tolerance", "x"], "tolerance"),
                         ([one, "--max-peak", 1, "--tolerance", "1%"], "tolerance"),
                         ([one, two := "more", "--max-peak", 1], two),
                         ([one, "--budgets", "typo.toml"], "typo.toml:2"),
                         ([one, "--budgets", "none.toml"], "none.toml")):
    message = check(*arguments, status=2)
    t.check(words in message, f"{arguments}: {message}")
t.finish()
