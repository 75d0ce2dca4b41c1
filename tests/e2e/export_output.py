#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `cairn export` writes: never over a file without --force, nothing half-done, no complaint about
a reader that left, clear words for what cannot be."""

import os
import pathlib
import subprocess

import cairn_test as t

_, recording = t.record(t.program("leak"))


def export(*arguments, status=0, says=""):
    result = t.run_cairn("export", *arguments, recording)
    t.check_equal(f"export {arguments}: status", result.status, status)
    t.check(says in result.err.decode(), f"export {arguments}: {result.err.decode()}")
    return result.out


there = pathlib.Path("there.folded")
there.write_text("mine")
export("-f", "collapsed", "-o", str(there), status=1, says="there.folded: exists; --force")
t.check_equal("file that was there", there.read_text(), "mine")
export("-f", "collapsed", "-o", str(there), "--force")
text = export("-f", "collapsed")
t.check_equal("with --force", there.read_bytes(), text)
export("-o", "by-ending.folded")
t.check_equal("format by the file's ending", pathlib.Path("by-ending.folded").read_bytes(), text)
export("-f", "collapsed", "-o", "/dev/null")
t.check_equal("to -", export("-f", "collapsed", "-o", "-"), text)

export("-f", "collapsed", "-o", "missing/x.folded", status=1, says="missing/x.folded: No such file")
os.mkdir("directory")
export("-f", "collapsed", "-o", "directory", status=1, says="directory: is a directory")
export("-f", "collapsed", "-o", "/dev/full", status=1, says="No space left")
export("-f", "tarot", status=2, says='no format "tarot", but pprof, collapsed')
export("-o", "x.unknown", status=2, says="names no format")
export(status=2, says="which format?")
export("-f", "collapsed", "--by", "weight", status=2, says='cannot rank by "weight"')
left = sorted(name for name in os.listdir(".") if ".part" in name)
t.check_equal("nothing half-done is left", left, [])

formats = [line.split()[0] for line in t.run_cairn("export", "--help").out.decode().splitlines()
           if line.startswith("  ") and not line.lstrip().startswith("-")]
t.check("pprof" in formats and "collapsed" in formats, f"help lists formats: {formats}")
for form in formats:
    binary = form == "sqlite"
    target = ["-o", f"again.{form}"] if binary else []
    export("-f", form, *target)
    if binary:
        continue
    reader = subprocess.run(f"'{t.CAIRN}' export -f {form} '{recording}' 2>err | :; "
                            "echo ${PIPESTATUS[0]}", shell=True, executable="/bin/bash",
                            env=t.environment(), stdout=subprocess.PIPE, check=False)
    t.check_equal(f"{form}: words about a reader that left", open("err").read(), "")
    t.check(reader.stdout.strip() in (b"0", b"141"), f"{form}: status {reader.stdout}")
t.finish()
