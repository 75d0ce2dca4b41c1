#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs with and without cairn: streams, status, files, processes and shared memory that they leave.

    bench/harm/programs.py [NAME-PART ...]     all of programs.txt that are installed, or these

Each script runs plainly twice, then in three ways: the program itself is recorded exactly (run), with `--preset
production`, and as what a recorded shell starts (child). A script whose plain runs differ says nothing, and is named
(unsteady). Prints a table; status 1 if a program was changed. `make harm` runs it."""

import contextlib
import ctypes
import fnmatch
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests/tools")]
sys.dont_write_bytecode = True
SCRATCH = pathlib.Path(os.environ.get("HARM_DIR") or tempfile.mkdtemp(prefix="harm."))
shutil.rmtree(SCRATCH, ignore_errors=True)
SCRATCH.mkdir(mode=0o755, parents=True)
os.chdir(SCRATCH)
import cairn_test as t  # noqa: E402
import identity  # noqa: E402
import inputs  # noqa: E402
from patience import Patience  # noqa: E402
from ports import free_port  # noqa: E402

LIMIT_S = 240
LEFT_S = 5
CLONE_NEWNS = 0x20000
PR_SET_CHILD_SUBREAPER = 36
WAYS = {"run": [], "production": ["--preset", "production"]}
HELPERS = """
serve() {
    python3 -c 'import http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Quiet).serve_forever()' "$PORT" 2>/dev/null &
    HELPER=$!
    trap 'kill $HELPER' EXIT
    wait_port "$PORT"
}
wait_port() { for i in $(seq 400); do (: <>/dev/tcp/127.0.0.1/$1) 2>/dev/null && return; sleep 0.05; done; }
"""
# A program that is recorded itself is found as the program that $! and `kill` mean.
WRAPPER = """#!/bin/sh
n=0
while [ -e "$RECORDINGS/$n" ]; do n=$((n + 1)); done
mkdir "$RECORDINGS/$n"
exec {cairn} run -q {options} -o "$RECORDINGS/$n/r.cairn" -- "$@"
"""


class Script:
    """A section of programs.txt."""

    def __init__(self, head, body):
        self.name, _, self.kind = (word.strip() for word in head.partition("|"))
        lines = body.strip().splitlines()
        self.ignored = [word for line in lines if line.startswith("!ignore ") for word in line.split()[1:]]
        self.seen = [line[5:] for line in lines if line.startswith("!see ")]
        self.is_refused = "!refused" in lines
        self.text = "\n".join(line for line in lines if not line.startswith("!"))
        self.programs = re.findall(r"\$RUN (?!\./)([\w.+-]+)", self.text)

    def missing(self):
        return [name for name in self.programs if not shutil.which(name)]

    def cleaned(self, text):
        for pattern in self.seen:
            text = re.sub(pattern.encode(), b"", text)
        return text


def read_scripts(wanted):
    parts = re.split(r"^\[(.*)\]$", (HERE / "programs.txt").read_text("utf-8"), flags=re.M)
    scripts = [Script(head, body) for head, body in zip(parts[1::2], parts[2::2])]
    return [one for one in scripts if not wanted or any(word in one.name for word in wanted)]


def end_leftovers():
    """Ends processes that the script left, and names them; those that are about to end by themselves get the time."""
    left, patience = [], Patience(LEFT_S)
    while t.children_of(os.getpid()) and patience.lasts():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.02)
    for pid in t.children_of(os.getpid()):
        try:
            left.append(pathlib.Path(f"/proc/{pid}/comm").read_text("utf-8").strip())
            if not t.is_in_state(pid, "Z"):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (OSError, ChildProcessError):
            pass
    return sorted(name for name in left if not name.startswith("cairn"))


def perform(script, prefix, wrapper, ports):
    """All that one run does: (status, out, err, files, processes left, shared memory left)."""
    identity.make_place(inputs.fill)
    recordings = SCRATCH / "recordings"
    shutil.rmtree(recordings, ignore_errors=True)
    recordings.mkdir()
    recordings.chmod(0o1777)
    shared = set(os.listdir("/dev/shm"))
    env = {**identity.ENVIRONMENT, "RUN": wrapper, "RECORDINGS": str(recordings), "PORT": str(ports[0]),
           "PORT2": str(ports[1]), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin:/usr/games"}
    result = t.run([*prefix, "bash", "-c", HELPERS + script.text], env=env, cwd=identity.PLACE, timeout=LIMIT_S)
    left = end_leftovers()
    temporary = {f"TMPDIR/{name}": True for name in os.listdir(identity.TEMPORARY)}
    files = {**identity.tree(script.ignored), **temporary}
    for pattern in script.ignored:
        files = {name: what for name, what in files.items() if not fnmatch.fnmatch(name, pattern)}
    new = sorted(set(os.listdir("/dev/shm")) - shared)
    return [result.status, script.cleaned(result.out), script.cleaned(result.err), files, left, new]


def difference(plain, other):
    """In words, the first that differs; None if nothing does."""
    for name, mine, theirs in zip(("status", "stdout", "stderr", "files", "processes", "shared memory"), plain, other):
        if name == "files":
            paths = [path for path in sorted(mine.keys() | theirs.keys()) if mine.get(path) != theirs.get(path)]
            if paths:
                return f"{len(paths)} files: {paths[:4]}"
        elif mine != theirs:
            if isinstance(mine, bytes):
                return f"{name}: {t.shorten(theirs)} instead of {t.shorten(mine)}"
            return f"{name}: {theirs} instead of {mine}"
    return None


def make_wrapper(way, options):
    path = SCRATCH / f"record-{way}"
    path.write_text(WRAPPER.format(cairn=t.CAIRN, options=" ".join(options)))
    path.chmod(0o755)
    return str(path)


def recorded_count():
    return sum(1 for path in (SCRATCH / "recordings").rglob("*.cairn") if path.is_file())


def compare(script):
    """By way of recording, the difference (None: none), with how many recordings were made."""
    ports = free_port(), free_port()
    plain = perform(script, [], "env", ports)
    unsteady = difference(plain, perform(script, [], "env", ports))
    if unsteady:
        return {"plain": (unsteady, 0)}
    found = {}
    for way, options in WAYS.items():
        found[way] = difference(plain, perform(script, [], make_wrapper(way, options), ports)), recorded_count()
    shutil.rmtree(SCRATCH / "child", ignore_errors=True)
    prefix = [t.CAIRN, "run", "-q", "-o", str(SCRATCH / "child/r.cairn"), "--"]
    (SCRATCH / "child").mkdir()
    different = difference(plain, perform(script, prefix, "env", ports))
    found["child"] = different, sum(1 for path in (SCRATCH / "child").rglob("*.cairn") if path.is_file())
    return found


def word_of(script, way, different, count):
    if different and script.is_refused and way != "child":
        return "refused"
    return ("same" if not different else "DIFFERENT") + f" ({count})"


def say(script, found):
    """A row of the table; true if nothing was changed."""
    if "plain" in found:
        print(f"| {script.name} | {script.kind} | unsteady: {found['plain'][0]} |", flush=True)
        return True
    print(f"| {script.name} | {script.kind} | " + " | ".join(word_of(script, way, *one) for way, one in found.items()) + " |", flush=True)
    bad = {way: one[0] for way, one in found.items() if one[0] and not (script.is_refused and way != "child")}
    for way, different in bad.items():
        print(f"    {way}: {different}", flush=True)
    return not bad


def seclude():
    """Has shared memory of its own, where that is allowed; and processes that are left become children."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if libc.unshare(CLONE_NEWNS) == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], check=False)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"], check=False)


def main():
    seclude()
    right = wrong = 0
    print("| program | kind | run (recordings) | production | child of a shell |\n|---|---|---|---|---|")
    for script in read_scripts(sys.argv[1:]):
        if script.missing():
            print(f"| {script.name} | not installed: {' '.join(script.missing())} |", flush=True)
            continue
        is_same = say(script, compare(script))
        right, wrong = right + is_same, wrong + (not is_same)
    print(f"{right} the same, {wrong} different")
    return 1 if wrong else 0


sys.exit(main())
