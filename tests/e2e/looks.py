#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the heap while it is recorded (cairn run --look): owners, types, containers, waste, pages, the heap and remedies
of a recording are what they were of the process, row by row and in every form; a look while it runs has what is freed at the end; at most
three, each at a quarter more resident memory; pauses and what is not known are said; without --look there are none."""

import json
import os
import pathlib
import struct
import subprocess

import cairn_test as t

PROGRAM = t.program("looked")
ITEMS, CAPACITY, USED, INT, ZEROED = 5000, 3000, 1000, 4, 256 << 10
VIEWS = {"owners": "owners", "types": "types", "containers": "containers", "waste": "waste", "pages": "pages"}
KEYS = {"owners": ("name", "kind", "retained_bytes", "retained_blocks", "own_bytes"), "types": ("type", "bytes", "blocks"),
        "containers": ("type", "containers", "capacity_bytes", "used_bytes", "elements", "largest_unused"),
        "waste": ("name", "bytes", "blocks", "zero_bytes", "duplicate_bytes", "tail_bytes", "slack_bytes"),
        "pages": ("live_bytes", "live_blocks")}
UNKNOWN_KIND, SLACK = 1000, 16 << 10  # what streams take
LEVELS = ("--top", "8", "--depth", "4", "--threshold", "1%")


def shown(subject, view, *options):
    result = t.run_cairn("report", subject, "--view", view, "--json", *options)
    t.check_equal(f"{view} of {subject}: {result.err}", result.status, 0)
    return json.loads(result.out) if result.status == 0 else {}


def rows(view, found):
    """As they are told of a process and of a recording, which has them as an answer."""
    listed = found.get("rows", found.get(VIEWS[view]))
    if isinstance(listed, dict):
        listed = listed["owners"]
    return [tuple(row.get(key) for key in KEYS[view]) for row in listed]


def is_of_program(row):
    """Not what the C library has at one time and not at the other: buffers of streams, what reads them."""
    return not any(isinstance(value, str) and ("libc.so" in value or "stack not recorded" in value) for value in row)


def both(program, questions):
    """The answers of a process that is recorded with looks, by view, and its recording."""
    path = t.fresh_path("same") + ".cairn"
    command = [t.CAIRN, "run", "-q", "--look", "-o", path, *program]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("begins", process.stdout.readline(), b"ready\n")
        name = os.path.basename(program[0])
        pid = next(child for child in t.children_of(process.pid) if t.is_called(child, name))
        live = {view: shown(str(pid), view, *options) for view, options in questions.items()}
        process.stdin.close()
        t.check_equal("status", process.wait(), 0)
    return live, path


def check_same():
    live, path = both(PROGRAM, {view: LEVELS if view == "owners" else () for view in VIEWS})
    live = {view: rows(view, found) for view, found in live.items()}
    for view, wanted in live.items():
        found = rows(view, shown(path, view))
        kept = [row for row in wanted if is_of_program(row)]
        t.check(len(kept) >= 1, f"{view}: nothing of the program in {wanted}")
        missing = [row for row in kept if row not in found]
        t.check(not missing, f"{view}: {missing} of the process are not in {found}")
    types = {row[0]: row[1:] for row in rows("types", shown(path, "types"))}
    t.check_equal("items", types.get("Item", (0, 0))[1], ITEMS)
    vector = [row for row in rows("containers", shown(path, "containers")) if row[0] == "std::vector<int>"]
    t.check_equal("vector", [row[2:4] for row in vector], [(CAPACITY * INT, USED * INT)])
    zeros = sum(row[3] for row in rows("waste", shown(path, "waste")))
    t.check(ZEROED <= zeros <= ZEROED + (64 << 10), f"zeros: {zeros}")
    return path


def check_remedies():
    """What would help, and how the heap lies, is what it was of the process: with the stack of the block that pins its end."""
    live, path = both(t.program("remedies", "pinned"), {"remedies": (), "heap": ()})
    found = {view: shown(path, view) for view in live}
    t.check_equal("remedies: title", found["remedies"]["title"], live["remedies"]["title"])
    wanted, kept = ({row["remedy"]: row for row in one["remedies"]["rows"] if row["part"] == "remedy"} for one in (live, found))
    t.check_equal("remedies", sorted(kept), sorted(wanted))
    for remedy in ("malloc_trim", "pinned_end", "threshold"):
        t.check(abs(kept[remedy]["bytes"] - wanted[remedy]["bytes"]) <= SLACK, f"{remedy}: {kept[remedy]}, {wanted[remedy]}")
        t.check_equal(f"{remedy}: class", kept[remedy]["class"], wanted[remedy]["class"])
    t.check_equal("who pins", *([frame["function"] for frame in one["pinned_end"]["frames"]] for one in (kept, wanted)))
    wanted, kept = ({row["name"]: row["bytes"] for row in one["heap"]["rows"] if row["part"] == "state"} for one in (live, found))
    t.check(sorted(kept) == sorted(wanted) and all(abs(kept[name] - wanted[name]) <= SLACK for name in wanted),
            f"heap: {kept}, {wanted}")
    cells = [[row for row in one["heap"]["rows"] if row["part"] == "cell"] for one in (live, found)]
    t.check_equal("heap: cells", *map(len, cells))
    screen = t.run_cairn("report", path, "--view", "remedies").out.decode()
    t.check("would give back" in screen and "\n      apply: malloc_trim(0) in the program" in screen, f"remedies: {screen}")
    t.check("cairn core" not in json.dumps(found["remedies"]), f"remedies lead to a process that has ended: {found}")


def check_forms(path):
    for view in VIEWS:
        text = t.run_cairn("report", path, "--view", view).out
        t.check(b"look at the heap at the end" in text and b"paused for " in text, f"{view}: {text}")
    top = t.run_cairn("report", path, "--view", "pages", "--top", "1").out
    t.check(b"the first 1 (--top 0: all)" in top, f"pages --top 1: {top}")
    for form in ("csv", "ndjson", "md"):
        text = t.run_cairn("report", path, "--view", "types", "--format", form)
        t.check(text.status == 0 and b"Item" in text.out, f"types as {form}: {text.out} {text.err}")
    memory = t.run_cairn("report", path, "--view", "memory").out
    t.check(b"at the end" in memory and b"live heap" in memory, f"memory: {memory}")
    summary = t.run_cairn("report", path, "--summary").out
    t.check(b"looked at " in summary and b"paused for " in summary, f"trust: {summary}")
    refused = t.run_cairn("report", path, "--view", "owners", "--focus", "main")
    t.check(refused.status == 1 and b"it takes no measure, filter or time" in refused.err, f"a filter: {refused}")
    for options in (("--by", "peak"), ("--focus", "fill")):
        templates = t.run_cairn("report", path, "--view", "types", *options).out
        t.check(b"look at the heap" not in templates, f"types with {options}: {templates}")


def check_older(path):
    """A tool that does not know their sections passes over them."""
    count_at, table_at, kinds = 0x30, 0x188, [t.format_number(f"CAIRN_SECTION_{name}", "looks.h") for name in ("LOOKS", "LOOK_ANSWERS")]
    bytes_of = bytearray(pathlib.Path(path).read_bytes())
    count, = struct.unpack_from("<I", bytes_of, count_at)
    found = [at for at in range(table_at, table_at + 32 * count, 32) if struct.unpack_from("<I", bytes_of, at)[0] in kinds]
    t.check_equal("sections of looks", len(found), len(kinds))
    for at in found:
        struct.pack_into("<I", bytes_of, at, struct.unpack_from("<I", bytes_of, at)[0] + UNKNOWN_KIND)
    pathlib.Path("older.cairn").write_bytes(bytes_of)
    here, older = t.report(path), t.report("older.cairn")
    t.check(here.pop("looks") and "looks" not in older, "looks in sections of another kind")
    t.check_equal("the rest for an older tool", [key for key in here if here[key] != older.get(key)], [])


def check_early():
    """A program that frees all: a look while it ran has it, if it ran long enough for one."""
    for life_ms in (400, 1600, 6400, 25600):
        _, path = t.record([*PROGRAM, str(life_ms)], options=("--look",))
        looks = t.report(path)["looks"]
        if any(look["live_bytes"] > looks[-1]["live_bytes"] for look in looks):
            break
    early, end = looks[:-1], looks[-1]
    t.check(1 <= len(early) <= 3, f"looks: {looks}")
    t.check_equal("ends", [look["at_end"] for look in looks], [False] * len(early) + [True])
    for one, next_one in zip(early, early[1:]):
        t.check(next_one["rss_bytes"] >= one["rss_bytes"] * 1.25, f"looks: {looks}")
    t.check(all(look["pause_ns"] > 0 and not look["reason"] for look in looks), f"looks: {looks}")
    t.check(any(look["live_bytes"] > end["live_bytes"] for look in early), f"no look before all was freed: {looks}")
    types = {row[0]: row[1:] for row in rows("types", shown(path, "types"))}
    t.check_equal("items before they were freed", types.get("Item", (0, 0))[1], ITEMS)


def check_destroyed():
    """What a variable says of its elements when it was destroyed is no container."""
    _, path = t.record([*PROGRAM, "doomed"], options=("--look",))
    found = [row[0] for row in rows("containers", shown(path, "containers"))]
    t.check("std::vector<int>" in found and not {"std::vector<double>", "std::vector<short>"} & set(found), f"destroyed: {found}")


def check_unknown():
    crash = ["sh", "-c", "kill -SEGV $$"]
    _, path = t.record(crash, options=("--look",))
    result = t.run_cairn("report", path, "--view", "owners")
    t.check(result.status == 1 and b"not known" in result.err and b"signal 11" in result.err, f"crash: {result.err}")
    _, plain = t.record([*PROGRAM, "0"])
    result = t.run_cairn("report", plain, "--view", "owners")
    t.check(result.status == 1 and b"--look" in result.err, f"without a look: {result.err}")
    t.check("looks" not in t.report(plain), "looks without --look")
    _, both = t.record(t.program("lost", 3), options=("--look", "--unreachable"))
    t.check_equal("with --unreachable", t.report(both, "--top", "1")["reachability"]["known_processes"], 1)
    for options in (("--exec",),):
        t.check_equal(f"with {options}", t.run_cairn("run", "--look", *options, "true").status, 2)


SAME = check_same()
check_forms(SAME)
check_remedies()
check_older(SAME)
check_early()
check_destroyed()
check_unknown()
t.finish()
