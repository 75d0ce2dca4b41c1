#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the user of `cairn run` sees: a summary on stderr only, silent with -q, in a file with
--summary; statuses; names of recordings that are never overwritten; clear refusals."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import cairn_test as t

LEAK = t.program("leak")


def check_summary(text, what):
    for pattern in (r"^cairn: leak ended with status 3 after [\d.]+ ", r"peak heap +[\d.]+ KiB in \d+",
                    r"allocated +[\d.]+ MiB in 6,513 calls", r"at exit +[\d.]+ KiB in 113 blocks",
                    r"exact", r"at the peak", r"leak_large", r"\.cairn"):
        t.check(re.search(pattern, text, re.M), f"{what}: no {pattern!r} in:\n{text}")
    t.check("\033" not in text, f"{what}: escape sequences where there is no terminal")


def scratch(name):
    directory = pathlib.Path(t.fresh_path(name))
    directory.mkdir()
    return directory


def check_blanks():
    """LD_PRELOAD allows no blank and no colon in a path: the library is found there all the same."""
    place = scratch("blanks") / "a place: with blanks"
    place.mkdir()
    for name in ("cairn", "libcairn.so", "libcairn-cxx.so"):
        shutil.copy(t.BUILD / name, place)
    for turn in range(2):
        argv = [str(place / "cairn"), "run", "-q", "-o", f"{turn}.cairn", "--", "sh", "-c", f"{LEAK[0]}; exit $?"]
        result = t.run(argv, cwd=place)
        t.check_equal(f"blanks: {result.err}", (result.status, result.err), (3, b""))
        found = t.run_cairn("report", f"{turn}.cairn", cwd=place)
        t.check(b"leak_large" in found.out, f"blanks: {found.out} {found.err}")


def check_default():
    place = scratch("default")
    result = t.run_cairn("run", *LEAK, cwd=place)
    t.check_equal("status", result.status, 3)
    t.check_equal("stdout", result.out, b"")
    check_summary(result.err.decode(), "default")
    names = [path.name for path in place.iterdir()]
    t.check(len(names) == 1 and re.fullmatch(r"leak\.\d+\.cairn", names[0]), f"files: {names}")
    t.check_equal("mode", os.stat(place / names[0]).st_mode & 0o777, 0o600)
    newest = t.run_cairn("report", cwd=place)
    t.check_equal("report of the newest: status", newest.status, 0)
    t.check(b"leak_large" in newest.out, f"report of the newest: {newest.out[:400]}")
    (place / "later.cairn").touch()
    passed = t.run_cairn("report", cwd=place)
    t.check(b"leak_large" in passed.out and b"later.cairn is empty or no recording" in passed.err,
            f"a newer file that is empty: {passed.out[:400]} {passed.err}")
    imported = t.run_cairn("import", names[0], cwd=place)
    t.check(imported.status == 1 and b"is a recording of cairn already" in imported.err, f"import: {imported.err}")
    exported = t.run_cairn("export", "-o", "x.json", names[0], cwd=place)
    t.check(exported.status == 0 and b"x.json: format json (everything" in exported.err, f"export: {exported.err}")


def check_languages():
    """Whose frames are missing is a line of the summary, once, with the option that records them."""
    place = scratch("languages")
    code = "kept = [str(i) for i in range(50000)]"
    python = t.run_cairn("run", "-o", "p.cairn", os.path.realpath(sys.executable), "-c", code, cwd=place)
    wanted = b"\n  Python: its own frames are missing, --python records them\n"
    t.check_equal(f"Python: {python.err}", python.err.count(wanted), 1)
    told = t.run_cairn("report", "p.cairn", cwd=place)
    t.check_equal(f"Python, later: {told.out}", told.out.count(wanted.strip()), 1)
    asked = t.run_cairn("run", "--python", "-o", "q.cairn", os.path.realpath(sys.executable), "-c", code, cwd=place)
    t.check(b"frames are missing" not in asked.err, f"--python: {asked.err}")
    if shutil.which("perl"):
        perl = t.run_cairn("run", "-o", "perl.cairn", "perl", "-e", "@kept = map { $_ } 1 .. 50000", cwd=place)
        t.check(b"\n  Perl: cairn does not read its frames, only those of the interpreter\n" in perl.err, f"Perl: {perl.err}")


def check_summary_file():
    place = scratch("summary")
    result = t.run_cairn("run", "--summary", "told", "-o", "x.cairn", "--", *LEAK, cwd=place)
    t.check_equal("--summary: streams", (result.out, result.err), (b"", b""))
    check_summary((place / "told").read_text(), "--summary")


def check_no_overwrite():
    place = scratch("again")
    lines = ("", *(f"cairn: x.cairn was there already: the recording is x.{number}.cairn\n" for number in (1, 2, 3)))
    for options, line in zip(([], [], [], ["--exec"]), lines):
        result = t.run_cairn("run", "-q", *options, "-o", "x.cairn", *LEAK, cwd=place)
        t.check_equal(f"again, {options}: status and stderr", (result.status, result.err.decode()), (3, line))
    names = sorted(path.name for path in place.iterdir())
    t.check_equal("again: as many recordings", len(names), len(lines))


def check_statuses():
    place = scratch("statuses")
    (place / "text").write_text("not a program\n")
    (place / "text").chmod(0o644)
    cases = [(["there-is-no-such-program"], 127), (["./text"], 126), (["sh", "-c", "exit 42"], 42),
             (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM), (["true"], 0)]
    for argv, wanted in cases:
        result = t.run_cairn("run", "-q", "--", *argv, cwd=place)
        t.check_equal(f"status of {argv}", result.status, wanted)
        if wanted in (126, 127):
            t.check(argv[0].encode() in result.err, f"{argv}: {result.err!r} does not name it")
    (place / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-Wl,--dynamic-linker=/lib/ld-none.so.1", "-o", "foreign", "main.c"], cwd=place, check=True)
    (place / "script").write_text("#! /usr/bin/no-such-interpreter -x\n")
    (place / "script").chmod(0o755)
    for name, missing in (("./foreign", "/lib/ld-none.so.1"), ("./script", "/usr/bin/no-such-interpreter")):
        result = t.run_cairn("run", "-q", name, cwd=place)
        t.check_equal(f"{name}: status", result.status, 127)
        t.check(result.err.endswith(f"{name} needs {missing}, which is not there\n".encode()), f"{name}: {result.err!r}")
    t.check_equal("no program", t.run_cairn("run", cwd=place).status, 2)
    t.check_equal("no such option", t.run_cairn("run", "--no-such-option", "true").status, 2)
    t.check_equal("no such command", t.run_cairn("no-such-command").status, 2)
    t.check_equal("no recording here", t.run_cairn("report", cwd=scratch("empty")).status, 1)


def check_refusals():
    place = scratch("refusals")
    (place / "static.c").write_text("int main(void) { return 9; }\n")
    subprocess.run(["gcc", "-static", "-s", "-o", "static", "static.c"], cwd=place, check=True)
    refused = t.run_cairn("run", "./static", cwd=place)
    t.check_equal("static: status", refused.status, 125)
    t.check(b"static" in refused.err, f"static: {refused.err!r}")
    anyway = t.run_cairn("run", "-q", "--ignore-checks", "./static", cwd=place)
    t.check_equal("static --ignore-checks: status", anyway.status, 9)
    if os.geteuid() == 0:
        subprocess.run(["cp", LEAK[0], place / "raised"], check=True)
        os.chown(place / "raised", 65534, 65534)
        os.chmod(place / "raised", 0o4755)
        raised = t.run_cairn("run", "./raised", cwd=place)
        t.check_equal("setuid: status", raised.status, 125)
        t.check(b"setuid" in raised.err.lower().replace(b"-", b""), f"setuid: {raised.err!r}")
    result = t.run_cairn("run", "-o", "/proc/no/such/place.cairn", "touch", "was-run", cwd=place)
    t.check_equal("unwritable: status", result.status, 125)
    t.check(not (place / "was-run").exists(), "unwritable: the program was started")


def check_interrupt():
    """Ctrl-C reaches both; the program decides, cairn waits for it and then reports."""
    place = scratch("interrupt")
    # nothing is forked: between fork and exec a child of the shell has its trap too
    script = "trap 'echo caught; exit 5' INT; echo ready; while :; do read line; done"
    with t.Process([t.CAIRN, "run", "sh", "-c", script], cwd=place, env=t.environment(), stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        t.check_equal("interrupt: starts", process.stdout.readline(), b"ready\n")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=t.PATIENCE_S)
    t.check_equal("interrupt: status", process.returncode, 5)
    t.check_equal("interrupt: the program's own handler", out, b"caught\n")
    t.check(b"ended with status 5" in err, f"interrupt: {err!r}")


COUNTER = """
import os, signal, sys
count = 0
def come(number, frame):
    global count
    count += 1
    os.write(1, b"%d\\n" % count)
signal.signal(signal.SIGUSR1, come)
os.write(1, b"ready\\n")
sys.stdin.read()
os.write(1, b"all %d\\n" % count)
"""


def is_pending(pid, number):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> number - 1 & 1 for mask in masks)


def check_group():
    """A signal for the whole process group comes once, and so does one for cairn alone."""
    place = scratch("group")
    with t.Process([t.CAIRN, "run", "-q", t.PYTHON, "-c", COUNTER], cwd=place, env=t.environment(),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        for number in range(1, 21):
            (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGUSR1)
            t.check_equal("a signal", process.stdout.readline(), b"%d\n" % number)
            if number % 2:
                # the next one would be the same one to cairn, if this one still waits for it
                t.wait_until(lambda: not is_pending(process.pid, signal.SIGUSR1))
                time.sleep(0.01)  # in which it would come again
        out, _ = process.communicate(timeout=t.PATIENCE_S)
    t.check_equal("all signals", out, b"all 20\n")


def check_stdin():
    result, _ = t.record(["cat"], stdin=b"through\0it\n")
    t.check_equal("stdin", (result.status, result.out), (0, b"through\0it\n"))


check_blanks()
check_default()
check_languages()
check_summary_file()
check_no_overwrite()
check_statuses()
check_refusals()
check_interrupt()
check_group()
check_stdin()
t.finish()
