#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is kept and said of a program does not depend on how its recording is read at its end: from its memory
while the file is written (a run with one process; without a summary for names alone), or from that file (all
names, several processes). The program's file is gone when it is asked, so that all names are kept ones."""

import os
import shutil

import cairn_test as t

LEAK = t.program("leak")


def copy_of_leak(name):
    directory = t.fresh_path(name)
    os.mkdir(directory)
    shutil.copy(LEAK[0], directory)
    return os.path.join(directory, "leak")


def recorded(name, *options, before=()):
    """Stacks with names, figures and the program's end of a recording whose program is gone, and the summary."""
    program, path = copy_of_leak(name), t.fresh_path(name) + ".cairn"
    result = t.run_cairn("run", *options, "-o", path, "--", *before, program, cwd=os.path.dirname(program))
    t.check_equal(f"{name}: status", result.status, 3)
    os.unlink(program)
    if os.path.isdir(path):
        path = next(entry.path for entry in os.scandir(path) if entry.name.startswith("leak."))
    return t.report(path), result.err.decode()


def frames(stack):
    return tuple((frame.get("function"), os.path.basename(frame.get("file") or ""), frame.get("line"))
                 for frame in stack["frames"])


def contents(found):
    """A stack's frames as far as they are the program's own: the linker's differ where a shell starts it."""
    stacks = {}
    for stack in found["stacks"]:
        own = tuple(frame for frame in frames(stack) if frame[1] == "leak.c")
        figures = [stack[key] for key in ("allocations", "allocated_bytes", "at_exit_bytes", "peak_bytes")]
        if own:
            stacks[own] = [a + b for a, b in zip(stacks.get(own, [0] * len(figures)), figures)]
    return stacks


def check_same():
    ways = {
        "quiet": recorded("quiet", "-q"),
        "summary": recorded("summary"),
        "all names": recorded("all", "-q", "--symbols", "all"),
        "several processes": recorded("several", "-q", before=("sh", "-c", '"$0"; exit $?')),
    }
    first, _ = ways["quiet"]
    t.check(any(frame[0] == "leak_large" and frame[2] for stack in contents(first) for frame in stack),
            f"quiet: no leak_large with its line in {list(contents(first))[:3]}")
    for name, (found, _) in ways.items():
        t.check_equal(f"{name}: stacks", contents(found), contents(first))
        t.check_equal(f"{name}: end", found["process"]["exit"], {"status": 3, "signal": 0})
        t.check_equal(f"{name}: totals", found["totals"]["allocations"] >= 6513, True)


def check_summary():
    """The summary, which is made of the memory, says what a report of the file says."""
    path = t.fresh_path("said") + ".cairn"
    result = t.run_cairn("run", "-o", path, "--", *LEAK)
    later = t.run_cairn("report", path).out.decode().splitlines()
    lines = [line for line in result.err.decode().splitlines() if ".cairn" not in line]
    t.check(len(lines) > 8, f"summary: {lines}")
    for line in lines[1:lines.index("")] if "" in lines else lines[1:]:
        t.check(line in later, f"the report has no line {line!r}:\n" + "\n".join(later))


def check_none():
    """Without names nothing is read, and no name is kept."""
    found, said = recorded("none", "-q", "--symbols", "none")
    t.check_equal("none: nothing is said", said, "")
    named = [frame for stack in found["stacks"] for frame in frames(stack) if frame[1] == "leak.c"]
    t.check_equal("none: names", named, [])


def check_directory():
    """A name with a slash at its end is a directory: one that is missing or a file is refused, one that is there gets the file."""
    place = t.fresh_path("named")
    for wanted, before in (("no such directory", None), ("not a directory", lambda: open(place, "w", encoding="utf-8").close()),
                           (None, lambda: (os.unlink(place), os.mkdir(place)))):
        if before:
            before()
        result = t.run_cairn("run", "-q", "-o", f"{place}/", "true")
        if wanted:
            t.check(result.status != 0 and f"{place}/: {wanted}".encode() in result.err, f"{wanted}: {result}")
        else:
            t.check_equal(f"there: {result}", (result.status, [name.split(".")[0] for name in os.listdir(place)]), (0, ["true"]))


check_same()
check_summary()
check_none()
check_directory()
t.finish()
