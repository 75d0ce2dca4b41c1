#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pid as the subject: a program that runs under `cairn run` or with the library alone is read as it is
now, exact to the byte; other processes are refused by name."""

import os
import pathlib
import shutil
import subprocess

import cairn_test as t
from commanded import Commanded

HOLD = ("import sys, ctypes\n"
        "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p\n"
        "libc.malloc.argtypes = [ctypes.c_size_t]\n"
        "for _ in range(100): libc.malloc(12345)\n"
        "print('ready', flush=True); sys.stdin.read()\n")


def check_live(what, argv, env=None):
    with t.Process(argv, env=t.environment(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        t.check_equal(f"{what}: start", child.stdout.readline(), b"ready\n")
        pid = child.pid
        if what == "run":
            with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as children:
                pid = int(children.read().split()[0])
        found = t.report(pid)
        if found is not None:
            t.check_equal(f"{what}: pid", found["process"]["pid"], pid)
            held = sum(s["at_exit_bytes"] for s in found["stacks"]
                       if s["at_exit_blocks"] == 100 and s["at_exit_bytes"] == 1234500)
            t.check_equal(f"{what}: bytes held now", held, 1234500)
        screen = t.run_cairn("report", "--view", "functions", "--summary", str(pid)).out
        t.check(b"is running" in screen, f"{what}: {screen[:200]}")
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)


def check_beside():
    """`./program` lies where its name is given: it is the process that is meant."""
    for place in ("beside", "noted", "taken"):
        os.mkdir(place)
    pathlib.Path("noted/holds").write_text("what it holds\n", encoding="ascii")
    _, path = t.record(["true"])
    os.rename(path, "taken/recording")
    for name, text in (("beside/holds", None), ("beside/script", "#!/bin/sh\necho holding\nread -r line\n")):
        if text:
            pathlib.Path(name).write_text(text, encoding="ascii")
        else:
            shutil.copy(t.program("hold")[0], name)
        os.chmod(name, 0o755)
        word = os.path.basename(name)
        argv = [t.CAIRN, "run", "-q", "-o", f"{word}.cairn", "--", f"./{word}"]
        with t.Process(argv, env=t.environment(), cwd="beside", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            t.check_equal(f"{word}: start", child.stdout.read(7), b"holding")
            result = t.run_cairn("report", word, cwd="beside")
            t.check(result.status == 0 and b"is running" in result.out, f"{word}: {result.out[:200]} {result.err}")
            if not text:
                check_memory_of(word)
            child.communicate(b"", timeout=t.PATIENCE_S)
        result = t.run_cairn("report", word, cwd="beside")
        t.check_equal(f"{word} has ended", (result.status, b"is not a cairn recording" in result.err), (1, True))


def check_memory_of(word):
    """What asks for the memory of a process takes it beside any file that is neither a recording nor a core."""
    for place in ("beside", "noted"):
        for words in (("report", "--view", "heap", word), ("report", "--view", "owners", "--print", word),
                      ("core", word, "count", "used"), ("leaks", "--unreachable", word)):
            result = t.run_cairn(*words, cwd=place)
            t.check_equal(f"{place}: {words}: {result.err}", result.status, 0)
    os.rename("taken/recording", f"taken/{word}")
    result = t.run_cairn("report", word, cwd="taken")
    t.check(result.status == 0 and b"the file is taken; process" in result.err and b"is running" not in result.out,
            f"a recording of that name: {result.out[:200]} {result.err}")


def check_begun():
    """Nothing is saved yet: the name of a recording leads to its process, until there is a file."""
    os.mkdir("begun")
    os.mkdir("begun/none")
    with Commanded("begun/one.cairn") as program:
        program.do("early 100000")
        for words, where in (((), "begun"), (("one.cairn",), "begun"), ((".",), "begun/one.cairn")):
            found = t.run_cairn("report", "--json", *words, cwd=where)
            t.check(found.status == 0 and b'"early"' in found.out, f"{words}: {found.out[:200]} {found.err}")
        page = t.run_cairn("open", "-o", "-", "begun/one.cairn")
        # on a busy machine there is a checkpoint by now, a file of its own name
        t.check(b"<title>one.cairn" in page.out or b"checkpoint at" in page.err, f"a page of it: {page.out[:200]} {page.err}")
    none = t.run_cairn("report", "begun/none")
    t.check(b"begun/none: no recording in this directory" in none.err, f"none: {none.err}")
    argv = [t.CAIRN, "run", "-q", "-o", "several.cairn", "--", "sh", "-c", " ".join(t.program("commands")) + "; true"]
    with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        run.stdin.write(b"hello\n")
        run.stdin.flush()
        run.stdout.readline()
        several = t.run_cairn("report", "several.cairn")
        if not os.listdir("several.cairn"):
            t.check(b"has just begun" in several.err and several.status == 1, f"several: {several}")
        run.communicate(b"end\n", timeout=t.PATIENCE_S)


check_beside()
check_begun()
check_live("run", [t.CAIRN, "run", "-q", "-o", "run.cairn", "--", t.PYTHON, "-c", HOLD])
check_live("alone", [t.PYTHON, "-c", HOLD],
           {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": os.path.abspath("alone.cairn")})
with t.Process(["sleep", "30"]) as other:
    t.wait_until(lambda: t.is_in_state(other.pid, "S"))
    glance = t.run_cairn("report", str(other.pid))
    t.check(glance.status == 0 and b"resident, not recorded" in glance.out, f"other: {glance}")
    refused = t.run_cairn("leaks", str(other.pid))
    t.check(refused.status == 1 and b"not being recorded" in refused.err, f"other: {refused.err}")
    other.kill()
gone = t.run_cairn("report", "4194305")
t.check(gone.status == 1 and b"no process" in gone.err, f"gone: {gone.err}")
t.finish()
