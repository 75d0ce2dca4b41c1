#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dev/run-tests.py on a small tree of tests that behave badly: which get a second try, what is said of them, that
those which hang are ended with all that they started, that a full disk ends the run with one line, and what of the
tool clang-tidy sees."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import cairn_test as t

TREE = pathlib.Path("tree").absolute()
SECOND_TIME = "import os, sys\nif os.path.exists('{0}'): sys.exit(0)\nopen('{0}', 'w').close()\nprint('the first try'); {1}\n"
TESTS = {
    "e2e/good": "",
    "e2e/bad": "import sys; sys.exit(3)",
    "e2e/unsteady": SECOND_TIME.format(TREE / "seen-1", "sys.exit(1)"),
    "e2e/figure": SECOND_TIME.format(TREE / "seen-2", "sys.exit(70)"),
    "e2e/killed": SECOND_TIME.format(TREE / "seen-3", "os.kill(os.getpid(), 11)"),
    "e2e/sanitizer": SECOND_TIME.format(TREE / "seen-4", "print('==1==ERROR: AddressSanitizer: x'); sys.exit(1)"),
    "promises/promise": SECOND_TIME.format(TREE / "seen-5", "sys.exit(1)"),
}
HANGS = ("import subprocess, time\n"
         "print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid, flush=True)\ntime.sleep(1000)\n")


def make_tree(tests):
    shutil.rmtree(TREE, ignore_errors=True)
    for name in ("unit", "fuzz", "e2e", "promises", "tools"):
        (TREE / "tests" / name).mkdir(parents=True)
    (TREE / "dev").mkdir()
    shutil.copy(t.SOURCE / "dev/run-tests.py", TREE / "dev")
    shutil.copy(t.SOURCE / "tests/tools/patience.py", TREE / "tests/tools")
    for name, text in tests.items():
        (TREE / "tests" / f"{name}.py").write_text(text)
    (TREE / "tests/unsteady.tsv").write_text("test\tdate\tcause\n")
    run("--list")


def run(*arguments, **how):
    return t.run([sys.executable, str(TREE / "dev/run-tests.py"), "--no-build", *arguments], **how)


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments], cwd=TREE, check=True,
                   stdout=subprocess.DEVNULL)


def lines_of(result):
    return result.out.decode().splitlines()


def second_tries():
    make_tree(TESTS)
    result = run("e2e/", "promises/")
    lines = lines_of(result)
    t.check_equal("status", result.status, 1)
    t.check_equal("last lines", lines[-2:], ["1 unsteady: e2e/unsteady", "2 passed, 5 failed"])
    tried = [line.split()[1] for line in lines if line.startswith(("ok ", "FAIL "))]
    t.check_equal("tried twice", sorted(tried), sorted([*TESTS, "e2e/bad", "e2e/unsteady"]))
    t.check_equal("after all others", sorted(tried[-2:]), ["e2e/bad", "e2e/unsteady"])
    named = [line.split()[1] for line in lines[:-2] if line.startswith("failed: ")]
    t.check_equal("what failed is named at the end, too", (len(named), "e2e/bad" in named), (5, True))
    logs = TREE / "build/test-logs"
    t.check_equal("both logs", ["the first try" in (logs / f"e2e-unsteady{one}.log").read_text() for one in (".first", "")],
                  [True, False])
    costs = [line.split("\t") for line in (TREE / "build/test-costs.tsv").read_text().splitlines()]
    t.check_equal("costs: head", costs[0], ["test", "wall", "cpu"])
    t.check_equal("costs: a row for each", sorted(row[0] for row in costs[1:]), sorted(TESTS))
    spent = [float(row[2]) for row in costs[1:]]
    t.check_equal("costs: the dearest first", spent, sorted(spent, reverse=True))
    t.check(any(re.fullmatch(r"\d+ s of a processor in all", line) for line in lines), f"the sum: {lines[-4:]}")
    row = (TREE / "tests/unsteady.tsv").read_text().splitlines()[1].split("\t")
    t.check_equal("a row for the cause", (row[0], len(row), row[2]), ("e2e/unsteady", 3, ""))


def without_second_tries():
    make_tree({"e2e/unsteady": TESTS["e2e/unsteady"]})
    lines = lines_of(run("--strict", "e2e/"))
    t.check_equal("strict", lines[-1], "0 passed, 1 failed")
    shutil.rmtree(TREE / "build")
    four = {f"e2e/unsteady{number}": SECOND_TIME.format(TREE / f"seen-{number}", "sys.exit(1)") for number in range(4)}
    make_tree(four)
    t.check_equal("three in a run", lines_of(run("e2e/"))[-1], "3 passed, 1 failed")


def causes_are_asked_for():
    """A row may stand without a cause in its own commit and the next one."""
    make_tree({"e2e/good": ""})
    row = "e2e/good\t2026-01-02\t"
    (TREE / "tests/unsteady.tsv").write_text("test\tdate\tcause\n" + row + "\n")
    git("init", "-q")
    for commits, status in enumerate((0, 0, 1)):
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", str(commits))
        t.check_equal(f"{commits} commits later", run("e2e/").status, status)
    (TREE / "tests/unsteady.tsv").write_text("test\tdate\tcause\n" + row + "a port was taken\n")
    t.check_equal("with its cause", run("e2e/").status, 0)
    (TREE / "tests/unsteady.tsv").write_text("test\tdate\tcause\ne2e/gone\t2026-01-02\tnone\n")
    t.check_equal("a test that is not there", run("e2e/").status, 1)


def tidied():
    """Of the tool what has changed, all of it by name and in the long run; the runtime always."""
    make_tree({})
    for name in ("runtime/sys/calls.c", "tool/base/old.c", "tool/model/old.c", "tool/model/new.c"):
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        (TREE / name).write_text("")
    (TREE / "Makefile").write_text("build/tidy/%.ok:\n\t@echo tidy $*\n")
    run("--list")
    git("init", "-q")
    git("add", "-A")
    for commit in ("one", "another"):
        git("commit", "-q", "--allow-empty", "-m", commit)

    def seen(*arguments, **how):
        lines = lines_of(run(*arguments, **how))
        logs = {line.split()[1]: (TREE / "build/test-logs" / (line.split()[1].replace("/", "-") + ".log")).read_text().split()[1::2]
                for line in lines if "lint/tidy/" in line and not line.startswith("left ")}
        return sorted(one for found in logs.values() for one in found), [one for one in lines if one.startswith("left ")]
    others = [word for kind in ("style", "directions", "spelling", "prose", "runtime-") for word in ("--except", f"lint/{kind}")]
    everything = ["runtime/sys/calls", "tool/base/old", "tool/model/new", "tool/model/old"]
    (TREE / "tool/model/new.c").write_text("int changed;\n")
    t.check_equal("in check", seen(*others, "--except", "lint/runtime"),
                  (["runtime/sys/calls", "tool/model/new"], ["left to make check-long: lint/tidy/tool/base"]))
    t.check_equal("in check-long", seen(*others, "--except", "lint/runtime", env={"CAIRN_LONG": "1"}), (everything, []))
    t.check_equal("by name", seen("lint/tidy/tool/base"), (["tool/base/old"], []))
    git("commit", "-qam", "changed")
    t.check_equal("once it is committed", seen(*others, "--except", "lint/runtime")[0], ["runtime/sys/calls", "tool/model/new"])


def hanging():
    make_tree({"e2e/hangs": HANGS})
    lines = lines_of(run("--limit", "1", "e2e/"))
    t.check_equal("it fails, without a second try", lines[-1], "0 passed, 1 failed")
    words = (TREE / "build/test-logs/e2e-hangs.log").read_text().split()
    t.check("ended by the runner after 1.0 s" in " ".join(words), f"its log is kept: {words}")
    t.wait_until(lambda: not os.path.exists(f"/proc/{words[0]}") or t.is_in_state(words[0], "Z"))


def full_disk():
    """A disk of one MiB for the logs, in a mount namespace of its own."""
    make_tree({"e2e/good": "", "e2e/bad": "import sys; sys.exit(1)"})
    if t.run(["unshare", "-m", "true"]).status:
        t.skip_part("no mount namespace can be made here")
        return
    (TREE / "logs").mkdir()
    result = t.run(["unshare", "-m", "sh", "-c",
                    f"mount -t tmpfs -o size=1m tmpfs {TREE}/logs && dd if=/dev/zero of={TREE}/logs/x bs=64k 2>&-;"
                    f"{sys.executable} {TREE}/dev/run-tests.py --no-build --jobs 1 --logs {TREE}/logs e2e/"])
    text = result.out.decode() + result.err.decode()
    t.check_equal("status", result.status, 1)
    t.check(f"the disk of {TREE}/logs is full" in text and "Traceback" not in text, f"one line: {text}")
    t.check(text.splitlines()[-1].endswith("failed"), f"the last line: {text}")


second_tries()
without_second_tries()
causes_are_asked_for()
tidied()
hanging()
full_disk()
t.finish()
