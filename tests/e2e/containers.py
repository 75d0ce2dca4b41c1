#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containers with little in them: a root directory that has a program, its libraries and cairn, no shell and no
development files, and in turn no /proc, nothing that can be written to, another user, no HOME. Recordings are whole,
with the executable as a module that has its name and build-id; what cannot be done is said in one line."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
import ledger

if os.geteuid():
    t.cannot_run_here("a root directory of its own needs root")
t.need("ldd", "readelf")

CLONE_NEWNS, MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 1, 32, 4096, 1 << 14, 1 << 18, 2
NOBODY = 65534
LIBC = ctypes.CDLL(None, use_errno=True)
JAIL = pathlib.Path("jail").absolute()
STATUS_CANNOT_RUN = 125


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)


def copy_in(path, name=None):
    """A file, and the libraries that it needs."""
    shutil.copy(path, JAIL / "bin" / (name or os.path.basename(path)))
    told = subprocess.run(["ldd", path], stdout=subprocess.PIPE, check=False, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", told):
        there = JAIL / library[1:]
        there.parent.mkdir(parents=True, exist_ok=True)
        if not there.exists():
            shutil.copy(os.path.realpath(library), there)


def build():
    for name in ("bin", "proc", "data"):
        (JAIL / name).mkdir(parents=True)
    for path in (t.CAIRN, t.RUNTIME, t.BUILD / "libcairn-cxx.so", t.PROGRAMS / "leak", t.PROGRAMS / "births"):
        copy_in(str(path))
    script = JAIL / "bin/script"
    script.write_text("#! /bin/leak again\n", encoding="ascii")
    script.chmod(0o755)
    os.chmod(JAIL / "data", 0o777)
    for path in (pathlib.Path.cwd(), JAIL):
        os.chmod(path, 0o755)
    for user in (0, NOBODY):  # where the tool as one file puts the library
        (JAIL / "data" / str(user)).mkdir()
        os.chown(JAIL / "data" / str(user), user, user)


def run(argv, env=None, has_proc=False, is_read_only=False, user=0):
    """In the jail, whose /data can always be written to."""
    def enter():
        call("unshare", CLONE_NEWNS)
        jail = os.fsencode(JAIL)
        call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
        call("mount", jail, jail, None, MS_BIND, None)
        call("mount", jail + b"/data", jail + b"/data", None, MS_BIND, None)
        if has_proc:
            call("mount", b"proc", jail + b"/proc", b"proc", 0, None)
        if is_read_only:
            call("mount", None, jail, None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)
        os.chroot(JAIL)
        os.chdir("/")
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    done = subprocess.run(argv, env={"XDG_CACHE_HOME": f"/data/{user}", **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          preexec_fn=enter, timeout=t.TIMEOUT_S)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return t.Result(status, done.stdout, done.stderr)


def says(what, result, status, *words):
    lines = result.err.decode().splitlines()
    t.check(result.status == status and len(lines) == 1 and lines[0].startswith("cairn: ") and
            all(word in lines[0] for word in words), f"{what}: status {result.status}, should be {status}: {lines}")


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def check_recording(what, name, command):
    """Its executable and libc are modules, its frames have names, from the jail's own files."""
    path = str(JAIL / "data" / name)
    info = t.run_cairn("info", path).out.decode()
    modules = dict(re.findall(r"^ +\w+-\w+ +(\w+) +(/\S+)$", info, re.M)[::-1])
    names = {os.path.basename(module): one for one, module in modules.items()}
    t.check_equal(f"{what}: the build-id of its executable", names.get("leak"), build_id(JAIL / "bin/leak"))
    t.check("libc.so.6" in names, f"{what}: modules: {names}")
    found = t.report(path, "--sysroot", str(JAIL))
    if found:
        t.check_equal(f"{what}: command", found["process"]["command"], command)
        t.check_equal(f"{what}: totals", totals_of(found), USUAL)
        t.check(t.stacks_through(found, "leak_small", "main"), f"{what}: no stacks with names")
        t.check_nothing_lost(what, found)


def totals_of(found):
    return [found["totals"][name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes")]


def check_preloaded(what, has_proc):
    ways = {"path": (["/bin/leak"], "/bin/leak"), "relative path": (["bin/leak", "a b"], "bin/leak 'a b'"),
            "script": (["/bin/script"], "/bin/leak again /bin/script")}
    for number, (way, (argv, command)) in enumerate(ways.items()):
        name = f"{what.replace(' ', '-')}-{number}.cairn"
        result = run(argv, {"LD_PRELOAD": "/bin/libcairn.so", "CAIRN_OUTPUT": f"/data/{name}"}, has_proc)
        result.check_like(f"{what}, {way}", PLAIN)
        check_recording(f"{what}, {way}", name, command)


def check_without_proc():
    check_preloaded("without proc", False)
    result = run(["/bin/cairn", "run", "-q", "-o", "/data/run.cairn", "--", "/bin/leak"])
    result.check_like("without /proc, run", PLAIN)
    check_recording("without /proc, run", "run.cairn", "/bin/leak")
    births = run(["/bin/cairn", "run", "-q", "-o", "/data/births.cairn", "--", "/bin/births", "fork"],
                 {"LEDGER": "/data/account"})
    t.check_equal("without /proc, children", (births.status, births.err), (0, b""))
    accounts, found = ledger.read(JAIL / "data/account"), ledger.reports(JAIL / "data/births.cairn")
    t.check_equal("without /proc, recorded processes", sorted(found), sorted(accounts))
    for pid, account in accounts.items():
        ledger.check(f"without /proc, child {pid}", found.get(pid), account)
    read = run(["/bin/cairn", "report", "/data/run.cairn"])
    t.check(read.status == 0 and b"leak_small" in read.out, f"without /proc, report: {read.out} {read.err}")
    for words in (["attach", "1"], ["report", "1"], ["core", "1", "summarize"], ["ctl", "1", "status"], ["top"]):
        says(f"without /proc, {words}", run(["/bin/cairn", *words]), 1, "/proc")


def check_read_only():
    refused = run(["/bin/cairn", "run", "/bin/leak"], has_proc=True, is_read_only=True)
    says("read-only, run", refused, STATUS_CANNOT_RUN, "cannot write", "Read-only")
    result = run(["/bin/cairn", "run", "-q", "-o", "/data/ro.cairn", "--", "/bin/leak"], None, True, True)
    result.check_like("read-only, run elsewhere", PLAIN)
    check_recording("read-only, run elsewhere", "ro.cairn", "/bin/leak")
    alone = run(["/bin/leak"], {"LD_PRELOAD": "/bin/libcairn.so"}, True, True)
    t.check_equal("read-only, alone", (alone.status, alone.out), (PLAIN.status, PLAIN.out))
    t.check(re.fullmatch(rb"cairn: /leak\.\d+\.cairn: this file cannot be made: nothing is recorded\n", alone.err),
            f"read-only, alone: {alone.err}")


def check_nobody():
    """Another user who has no name, no home and no place for a cache."""
    for has_proc in (True, False):
        what = f"nobody, {'with' if has_proc else 'without'} /proc"
        name = f"nobody{int(has_proc)}.cairn"
        result = run(["/bin/cairn", "run", "-q", "-o", f"/data/{name}", "--", "/bin/leak"], None, has_proc, True, NOBODY)
        result.check_like(what, PLAIN)
        check_recording(what, name, "/bin/leak")
        read = run(["/bin/cairn", "report", f"/data/{name}"], None, has_proc, True, NOBODY)
        t.check(read.status == 0 and b"leak_small" in read.out and not read.err, f"{what}, report: {read.err}")
        says(f"{what}, no place", run(["/bin/cairn", "run", "/bin/leak"], None, has_proc, True, NOBODY),
             STATUS_CANNOT_RUN, "cannot write")
        alone = run(["/bin/leak"], {"LD_PRELOAD": "/bin/libcairn.so", "CAIRN_OUTPUT": f"/data/alone-{name}"},
                    has_proc, True, NOBODY)
        alone.check_like(f"{what}, alone", PLAIN)
        check_recording(f"{what}, alone", f"alone-{name}", "/bin/leak")


PLAIN = t.run(t.program("leak"))
USUAL = totals_of(t.report(t.record(t.program("leak"))[1]))
build()
check_preloaded("with proc", True)
check_without_proc()
check_read_only()
check_nobody()
t.finish()
