#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""valgrind's DHAT counts the accesses to each byte of blocks of up to 1024 bytes. What nobody ever accessed behind the
last byte that somebody did is of no use: `--view waste` finds no less in real programs. MALLOC_PERTURB_=255 has glibc
fill new blocks with zeros, so that what was never written is zero also where memory is used again."""

import json
import shutil
import signal
import subprocess

import cairn_test as t

QUERY = """PRAGMA page_size = 512;
CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT, other BLOB);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO words SELECT i, printf('word %d', i), zeroblob(100) FROM n;
CREATE INDEX by_word ON words (word);
.print ready
"""
SCRIPT = """$| = 1; my %h; for (1 .. 1000) { $h{"k$_"} = {a => $_, b => "x$_"} } print "ready\n"; <STDIN>;"""
SURE = 0.98  # hash seeds and paths make blocks a little different


def counts_of(acc):
    """Accesses by byte: -n and the next number are n times that number."""
    counts, index = [], 0
    while index < len(acc):
        if acc[index] < 0:
            counts += [acc[index + 1]] * -acc[index]
            index += 1
        else:
            counts.append(acc[index])
        index += 1
    return counts


def never_accessed(path):
    """Bytes at the ends of the blocks that live at the end, as DHAT has them."""
    with open(path, encoding="utf-8") as file:
        points = json.load(file)["pps"]
    never = 0
    for point in points:
        counts = counts_of(point.get("acc", []))
        used = max((at + 1 for at, count in enumerate(counts) if count), default=0)
        never += (len(counts) - used) * point["ebk"]
    return never


def run(command, words, look):
    """Starts it, feeds it, waits until it is ready, and looks at it."""
    variables = t.environment({"MALLOC_PERTURB_": "255", "PERL_HASH_SEED": "0"})
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        process.stdin.write(words.encode())
        process.stdin.flush()
        t.check_equal(f"{command[0]}: begins", process.stdout.readline(), b"ready\n")
        result = look(str(process.pid))
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        process.wait()
    return result


def compare(what, command, words, least):
    found = run(command, words, lambda pid: t.answer(pid, "waste"))
    path = t.fresh_path("dhat")
    run(["valgrind", "--tool=dhat", "-q", f"--dhat-out-file={path}", *command], words, lambda pid: None)
    never = never_accessed(path)
    t.check(never >= least, f"{what}: DHAT knows of {never} bytes alone")
    t.check(found["wasted_bytes"] >= SURE * never,
            f"{what}: DHAT has {never} bytes that were never accessed, waste {found['wasted_bytes']}")
    print(f"{what}: never accessed {never}, of no use {found['wasted_bytes']} of {found['bytes']}")


if not shutil.which("valgrind"):
    t.skip_part("valgrind is not installed")
else:
    compare("sqlite3", ["sqlite3", ":memory:"], QUERY, 200)
    compare("perl", ["perl", "-e", SCRIPT], "", 5000)
t.finish()
