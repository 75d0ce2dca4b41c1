#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/compat/VERSION: small recordings by this version, with what it says of them, for all later ones to read
(tests/e2e/compat.py). dev/compat-recordings.py [BUILD-DIRECTORY] is run once before a release, and its files are committed;
those of versions that are released are never made again. Recordings keep their names, and name no place of this machine:
they are made in a directory of their own, of a copy of the tool."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests/tools"))
os.environ.setdefault("SOURCE_DIR", str(TOP))
if len(sys.argv) > 1:
    os.environ["BUILD_DIR"] = str(pathlib.Path(sys.argv[1]).resolve())

import cairn_test as t  # noqa: E402
import kept_recordings as kept  # noqa: E402

RUNS = {
    "exact": [],
    "values": ["--ages", "--free-stacks", "--mmap", "--snapshot-every", "64K"],
    "sampled": ["--sample", "--rate", "2KiB", "--seed", "7"],
    "counts": ["--no-stacks"],
}


def record_all(cairn):
    for name, options in RUNS.items():
        subprocess.run([cairn, "run", "-q", *options, "-o", f"{kept.PLACE}/{name}.cairn", "./program"], check=True)
    subprocess.run([cairn, "run", "-q", "-o", f"{kept.PLACE}/processes.cairn", "./program", "forks"], check=True)
    # By the library alone: another form of the file, without names.
    subprocess.run(["./program"], check=True,
                   env={"LD_PRELOAD": "./libcairn.so", "CAIRN_OUTPUT": f"{kept.PLACE}/alone.cairn", "PATH": os.environ["PATH"]})
    attach(cairn)


def attach(cairn):
    with subprocess.Popen(["./program", "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as program:
        program.stdout.readline()
        with subprocess.Popen([cairn, "attach", "--exact", "-o", f"{kept.PLACE}/attached.cairn", str(program.pid)],
                              stderr=subprocess.PIPE, bufsize=0) as attached:
            first = attached.stderr.readline()
            if b"recording" not in first:
                raise SystemExit(f"cairn attach: {first.decode()}")
            program.stdin.write(b"\n")
            program.stdout.readline()
            attached.send_signal(signal.SIGINT)
            attached.communicate()
        program.stdin.close()


def stage(place):
    """The tool and the program, where nothing tells of this machine."""
    for name in ("cairn", "libcairn.so", "libcairn-cxx.so"):
        shutil.copy2(t.BUILD / name, place / name)
    shutil.copytree(TOP / "include", place / "include")
    shutil.copy(kept.COMPAT / "program.c", place / "program.c")
    (place / kept.PLACE).mkdir()
    os.chdir(place)
    subprocess.run(["cc", "-g", "-O1", "-Wall", "-Iinclude", "-o", "program", "program.c", "-pthread"], check=True)


def archive(path):
    """Owners and times of files are no part of it."""
    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member
    with tarfile.open(path, "w:xz") as out:
        for each in sorted(pathlib.Path(kept.PLACE).rglob("*")):
            out.add(each, recursive=False, filter=plain)


def main():
    version = t.run_cairn("--version").out.split()[1].decode()
    release = kept.COMPAT / version
    with tempfile.TemporaryDirectory(prefix="cairn-compat.") as name:
        place = pathlib.Path(name)
        stage(place)
        record_all(str(place / "cairn"))
        for path in ("program", "program.c"):
            os.remove(path)
        said = kept.look(kept.PLACE)
        if str(TOP) in json.dumps(said) or t._failures:
            raise SystemExit("a recording names this tree, or cannot be read: nothing is kept")
        release.mkdir(exist_ok=True)
        archive(release / kept.RECORDINGS)
        (release / kept.EXPECTED).write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.chdir(TOP)
    print(f"{release}: {(release / kept.RECORDINGS).stat().st_size} bytes of recordings")


main()
