#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report SUBJECT` is one screen of 40 lines at 80 columns for each kind of subject: how it ended, one sentence why it is
so big (whose truth tests/truth holds), and last a command that goes on and works. What is cut is in the view that is named."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile

import cairn_test as t
import kept_recordings as kept

LINES, COLUMNS = 40, 80
SENTENCES = ("came through", "is no live heap", "nothing stands out: ", " has ", "not known which function has most of ")

def report(*words):
    return t.run_cairn("report", *words, env={**os.environ, "COLUMNS": str(COLUMNS)})

def check_next(what, line):
    command = re.search(r"next: cairn (.*)$", line)
    if t.check(command, f"{what}: no command at the end: {line}"):
        done = t.run(["sh", "-c", f"exec {t.CAIRN} {command[1]}"])
        t.check(done.status == 0 and done.out, f"{what}: {command[1]}: {done}")

def check_width(what, screen):
    wide = [line for line in screen.splitlines() if len(line) > COLUMNS and "/" not in line]  # but for paths
    t.check(not wide, f"{what}: wide: {wide}")

def check_views(subject):
    """Estimates have their intervals behind each figure: all of it stays within the columns, and no figure loses its unit."""
    for words in (("--view", "stacks"), ("--view", "sizes"), ("--view", "growth"), ("--view", "heap"), ("--by", "allocated"), ()):
        screen = report(*words, subject).out.decode()
        check_width(f"{subject} {words}", screen)
        t.check(not re.search(r"[\d.] *\n +(?:[KMG]iB|B|ms|s|%)\b|±\n", screen), f"{subject} {words}: a figure is cut:\n{screen}")
    check_width(f"info {subject}", t.run_cairn("info", subject, env={**os.environ, "COLUMNS": str(COLUMNS)}).out.decode().split("\nmodules")[0])

def check(subject, may_be_silent=False):
    what = pathlib.Path(str(subject)).name
    result = report(str(subject))
    screen = result.out.decode()
    lines = screen.splitlines()
    t.check_equal(f"{what}: status {result.err}", result.status, 0)
    t.check(0 < len(lines) <= LINES, f"{what}: {len(lines)} lines:\n{screen}")
    check_width(what, screen)
    said = " ".join(line.strip() for line in lines[1:3])
    t.check(may_be_silent or any(words in said for words in SENTENCES), f"{what}: no sentence: {said}")
    check_next(what, lines[-1])
    return screen

def check_whole(subject):
    """Options of the list have it below; the view that is named where call sites are cut has them all."""
    screen, whole, alone = (report(*words, subject).out.decode() for words in ((), ("--top", "0"), ("--view", "stacks", "--top", "0")))
    facts = re.split(r"\n[^\n]* other call sites?: --view stacks", screen)
    t.check(len(facts) == 2 and whole.startswith(facts[0]), f"{subject}: --top 0 begins otherwise:\n{whole}")
    ranked = re.findall(r"^ +(\d+) +[\d.]+ % ", alone, re.M)
    t.check(len(ranked) > 5 and re.findall(r"^ +(\d+) +[\d.]+ % ", whole, re.M)[-len(ranked):] == ranked, f"{subject}: stacks:\n{alone}")

def unpack(name):
    with tarfile.open(kept.COMPAT / "0.2.0" / name) as archive:
        archive.extractall(".", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(".")

unpack(kept.RECORDINGS)
unpack(kept.LOGS)
for path in sorted(pathlib.Path(kept.PLACE).glob("*.cairn")):
    check(path)
check("logs/threads.events")

# a process that was left goes on: its end is not an exit
for name, word, other in (("attached", "at detach", "at exit"), ("exact", "at exit", "at detach")):
    compared = t.run_cairn("diff", *2 * [f"{kept.PLACE}/{name}.cairn"]).out.decode()
    t.check(word in compared and other not in compared, f"{name}: {compared}")

for form in ("heaptrack", "massif", "dhat", "pprof"):
    there = t.export_file(f"{kept.PLACE}/exact.cairn", form)
    t.check_equal(f"{form}: import", t.run_cairn("import", "-o", f"{form}.cairn", there).status, 0)
    check(f"{form}.cairn")

sampled = t.fresh_path("sampled") + ".cairn"
t.run_cairn("run", "-q", "--sample", "--rate", "128KiB", "-o", sampled, *t.program("containers", "20"))
for path in (sampled, f"{kept.PLACE}/sampled.cairn", f"{kept.PLACE}/processes.cairn"):
    check_views(path)

path = t.record(t.program("containers"))[1]
check(path)
check_whole(path)
path = t.fresh_path("python") + ".cairn"
script = pathlib.Path("rows.py")
for code, said in (("kept = list(map(bytes, [700] * 20000))", "<module> (rows.py)"),
                   ("def load(): return list(map(bytes, [700] * 20000))\nkept = load()", "load")):
    script.write_text(code)
    t.run_cairn("run", "-q", "--python", "--children", "none", "-o", path, os.path.realpath(sys.executable), "-IS", str(script))
    sentence = " ".join(check(path).split("\n  peak heap")[0].split())
    t.check(re.search(rf"( through| →) {re.escape(said)}$", sentence), f"code of a file is called by it, a function is not: {sentence}")
    os.unlink(path)

# more processes than rows: the others are one, and the view that is named has each
path = t.fresh_path("many") + ".cairn"
t.run_cairn("run", "-q", "-o", path, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=/dev/null bs=2M count=1; done")
screen = check(path)
t.check(re.search(r" 2 further processes\n(?:.*\n){1,2}  each process: --view processes\n", screen), f"of ten, eight are shown:\n{screen}")
listed = t.run_cairn("report", "--view", "processes", path).out.decode()
t.check_equal("each process", len(re.findall(r" dd \d+$", listed, re.M)), 10)

# a core of what is recorded, and the process itself
with t.Process([t.CAIRN, "run", "-q", *t.program("why_big", "used")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    pid = next(iter(t.children_of(process.pid)))
    check(pid)
    subprocess.run(["gcore", "-o", "dump", str(pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check(f"dump.{pid}")
    process.communicate(b"", timeout=t.PATIENCE_S)
t.finish()
