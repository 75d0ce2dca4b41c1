#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/mcp/answers.txt, what cairn mcp answers to the questions of tests/tools/mcp_asked.py; read its difference
like code. dev/mcp-answers.py [--record] [BUILD-DIRECTORY]; with --record the recordings are made anew first."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests/tools"))
os.environ.setdefault("SOURCE_DIR", str(TOP))
words = [word for word in sys.argv[1:] if word != "--record"]
if words:
    os.environ["BUILD_DIR"] = str(pathlib.Path(words[0]).resolve())

import cairn_test as t  # noqa: E402
import mcp_asked as asked  # noqa: E402

RUNS = {"serve": ["--ages"], "load": [], "parse": [], "parse-copies": ["--free-stacks"]}


def record():
    """In a directory of their own, of a copy of the tool, so that recordings name no place of this machine."""
    for name in ("cairn", "libcairn.so", "libcairn-cxx.so"):
        shutil.copy2(t.BUILD / name, name)
    shutil.copy(asked.KEPT / "shop.c", "shop.c")
    subprocess.run(["cc", "-g", "-O1", "-Wall", "-o", "shop", "shop.c"], check=True)
    for name, options in RUNS.items():
        subprocess.run(["./cairn", "run", "-q", *options, "-o", f"{name}.cairn", "./shop", name], check=True)
    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member
    with tarfile.open(asked.RECORDINGS, "w:xz") as out:
        for name in RUNS:
            out.add(f"{name}.cairn", filter=plain)


with tempfile.TemporaryDirectory(prefix="cairn-mcp.") as place:
    os.chdir(place)
    if "--record" in sys.argv:
        record()
    asked.ANSWERS.write_text("\n".join(asked.ask_all(asked.unpack("root"))), "utf-8")
    os.chdir(TOP)
