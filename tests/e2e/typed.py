#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types of blocks and the ways to them by debug information: what a program knows of its own objects, live and in its
core dump, recorded, sampled and not (typed_gdb.py has gdb's answers); how full its containers are; without debug information
only what objects say themselves. What a sample has of them, and what clang's debug information has, is left to
`make check-long`."""

import os
import re
import shutil
import subprocess

import cairn_test as t
import leak_judge

REGISTRIES, COUNT = 3, 20
# the list's, deque's, optional's and variant's items lie in other blocks
ITEMS = REGISTRIES * (7 * COUNT + 2) + 2
PROGRAM = t.program("typed")[0]
BLOCK = re.compile(r"allocation at ([0-9a-f]+) of size (\d+)")


def explained(subject):
    """By address: type, path and gdb's expression of each block in use."""
    blocks = {}
    for text in t.run_cairn("core", subject, "explain", "used").out.decode().split("\n\n"):
        block = BLOCK.search(text)
        if block:
            lines = dict(line.split(": ", 1) for line in text.split("\n") if re.match(r"(type|path|gdb): ", line))
            blocks[int(block[1], 16)] = (int(block[2]), lines)
    return blocks


def check_ways(what, known, blocks):
    for way, address, kind in known:
        _, lines = blocks.get(int(address, 16), (0, {}))
        path = lines.get("path", "").split("  (")[0]
        t.check_equal(f"{what}: {way}", (path, lines.get("type", "")), (way, kind))


def check_of_threads(what, blocks):
    """libc's own thread-local variables are not where the program's are."""
    ways = [lines["path"].split("  (")[0] for _, lines in blocks.values() if "(of thread" in lines.get("path", "")]
    t.check({"of_thread", "of_thread->text"} <= set(ways), f"{what}: of threads: {ways}")
    t.check(all(way.startswith(("of_thread", "tcache")) for way in ways), f"{what}: of threads: {ways}")


def check_of_library():
    """A variable of each thread that a library has, which was loaded when threads ran already."""
    with t.Process(t.program("lost_kinds", leak_judge.LOADED_THREAD_LOCAL, "wait"), stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("of a library: begins", process.stdout.readline(), b"ready\n")
        ways = [lines.get("path", "") for _, lines in explained(str(process.pid)).values()]
        t.check(f"lost_of_thread  (of thread {process.pid})" in ways, f"of a library: {ways}")
        process.stdin.close()
        process.wait()


def check_types(what, subject):
    found = t.answer(subject, "types")
    if not t.check(found, f"{what}: nothing"):
        return
    counts = {row["type"]: row["blocks"] for row in found["types"]}
    expected = {"Item": ITEMS, "Derived": REGISTRIES * COUNT, "Registry": 1, "Table::Entry": REGISTRIES * 16,
                "std::_Rb_tree_node<Item*>": REGISTRIES * COUNT, "std::_List_node<Item>": REGISTRIES * COUNT,
                "std::_Fwd_list_node<Item*>": REGISTRIES * COUNT,
                "std::__detail::_Hash_node<Item*, false>": REGISTRIES * COUNT}
    t.check_equal(f"{what}: types", {name: counts.get(name) for name in expected}, expected)
    t.check_equal(f"{what}: all", sum(row["bytes"] for row in found["types"]), found["bytes"])


def check_containers(what, subject):
    found = t.answer(subject, "containers")
    if not t.check(found, f"{what}: nothing"):
        return
    rows = {row["type"]: row for row in found["containers"]}
    for name, count, elements, capacity in (
            ("std::vector<Base*>", REGISTRIES, REGISTRIES * COUNT, REGISTRIES * 32 * 8),
            ("std::vector<Item>", REGISTRIES, REGISTRIES * 5, REGISTRIES * 5 * 48),
            ("std::unordered_set<Item*>", REGISTRIES, REGISTRIES * COUNT, None),
            ("std::deque<Item>", REGISTRIES, REGISTRIES * COUNT, REGISTRIES * 3 * 480),
            ("std::vector<int>", REGISTRIES * (COUNT + 1), REGISTRIES * COUNT * 100, REGISTRIES * COUNT * 400)):
        row = rows.get(name, {})
        t.check_equal(f"{what}: {name}", (row.get("containers"), row.get("elements")), (count, elements))
        if capacity is not None:
            t.check_equal(f"{what}: {name}: capacity", row.get("capacity_bytes"), capacity)
    t.check_equal(f"{what}: left out", found["left_out"], 0)
    row = rows.get("std::vector<Base*>", {})
    t.check_equal(f"{what}: used", row.get("used_bytes"), REGISTRIES * COUNT * 8)
    t.check(str(row.get("largest_unused")).endswith("bases"), f"{what}: the way to one: {row}")


def look(what, command, is_recorded):
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        known = [line.decode().rstrip("\n").split("\t") for line in iter(process.stdout.readline, b"ready\n") if line]
        t.check(len(known) == 20 * REGISTRIES + 4, f"{what}: it knows {len(known)} blocks")
        pid = process.pid
        if is_recorded:  # the tool has another child that watches signals
            pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "typed"))
        blocks = explained(str(pid))
        check_ways(what, known, blocks)
        check_of_threads(what, blocks)
        check_types(what, str(pid))
        check_containers(what, str(pid))
        screen = t.run_cairn("report", str(pid), "--view", "owners").out.decode()
        t.check(is_recorded or ("Registry  1 block" in screen and "Derived  " in screen), f"{what}: owners: {screen}")
        summary = t.run_cairn("core", str(pid), "summarize", "used").out.decode()
        t.check(re.search(rf"Type \(Item\) has {ITEMS} instances", summary), f"{what}: summary: {summary[:800]}")
        if shutil.which("gcore") and (t.IS_LONG or not is_recorded):
            made = t.run(["gcore", "-o", "dump", str(pid)])
            if t.check_equal(f"{what}: gcore", made.status, 0):
                core = f"dump.{pid}"
                check_ways(f"{what}, core", known, explained(core))
                check_types(f"{what}, core", core)
                check_containers(f"{what}, core", core)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)


def check_allocated():
    """What calls of operator new say, which clang notes from 22 on, where only void pointers lead to an object: of a
    recorded process. Elements behind their own count are left as they are."""
    if os.uname().machine != "x86_64":
        t.skip_part("what calls allocate: the program is in the assembler of x86-64")
        return
    source, programs = t.SOURCE / "tests/programs/clang22", [t.fresh_path("allocated")]
    made = t.run(["g++", "-o", programs[0], str(source / "allocated.s")])
    t.check_equal(f"what calls allocate: built {made.err}", made.status, 0)
    if shutil.which("clang++-22"):
        programs.append(t.fresh_path("by-clang"))
        made = t.run(["clang++-22", "-O1", "-g", "-o", programs[1], str(source / "allocated.cc")])
        t.check_equal(f"clang 22: {made.err}", made.status, 0)
    for path in programs:
        for before in ([], [t.CAIRN, "run", "-q", "-o", t.fresh_path("allocated") + ".cairn"]):
            with t.Process([*before, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           env=t.environment()) as process:
                t.check_equal("what calls allocate: begins", process.stdout.readline(), b"ready\n")
                pid = process.pid
                if before:
                    name = os.path.basename(path)[:15]
                    pid = next(child for child in t.children_of(process.pid) if t.is_called(child, name))
                counts = {row["type"]: row["blocks"] for row in t.answer(str(pid), "types")["types"]}
                t.check_equal(f"what calls allocate: {before}",
                              [counts.get(name) for name in ("Item", "Row[]", "Counted[]")],
                              [7, 1, None] if before else [None] * 3)
                process.stdin.close()
                process.wait()


def check_fills(programs):
    """Elements are what containers say, not what lies behind them; those of main's variables are listed as well."""
    for program in programs:
        with t.Process([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
            t.check_equal("fills: begins", process.stdout.readline(), b"ready\n")
            types = {row["type"]: row["blocks"] for row in t.answer(str(process.pid), "types")["types"]}
            t.check_equal("fills: types", [types.get(name) for name in ("Point", "long int[]", "long[]", "std::string")],
                          [10, *((101, None) if "long int[]" in types else (None, 101)), None])
            t.check(1000 <= types.get("char[]", 0) <= 1003, f"fills: texts: {types}")
            found = t.answer(str(process.pid), "containers")
            rows = {row["type"].replace("long int", "long").replace(" *", "*"):
                    (row["containers"], row["elements"], row["capacity_bytes"]) for row in found["containers"]}
            for name, wanted in (("std::vector<Point*>", (1, 10, 32000)), ("std::deque<long>", (1, 6400, 101 * 512)),
                                 ("std::vector<double>", (1, 1, 80000)), ("std::vector<int>", (1, 0, 20000)),
                                 ("std::vector<float>", (1, 0, 12000))):
                t.check_equal(f"{program}: {name}", rows.get(name), wanted)
            t.check_equal(f"{program}: strings", rows.get("std::string", ())[:2], (1001, 20005))
            t.check("std::unordered_map<int, int>" in rows, f"{program}: tables: {rows}")
            t.check_equal(f"{program}: left out", found["left_out"], 0)
            kept = {row["name"]: row["retained_bytes"] for row in t.answer(str(process.pid), "owners")["owners"]
                    if row["kind"] == "root" and row["level"] == 2}
            t.check(kept.get("rooms", 0) >= 7000 and kept.get("local", 0) >= 80000, f"{program}: variables: {kept}")
            process.stdin.close()
            t.check_equal("fills: status", process.wait(), 0)


def fills():
    programs = t.program("fills")
    if t.IS_LONG and shutil.which("clang++"):
        programs.append(t.fresh_path("fills-by-clang"))
        made = t.run(["clang++", "-g", "-O1", "-std=c++17", "-o", programs[1], str(t.SOURCE / "tests/programs/fills.cc")])
        t.check_equal(f"fills: by clang: {made.err}", made.status, 0)
    return programs


UNPLACED = """#include <deque>
#include <string>
#include <unistd.h>
#include <vector>
__attribute__((noinline)) static int work(int n) {
    std::vector<int> numbers;
    numbers.reserve(100000);
    numbers.push_back(n);
    std::string text(1000, 'x');
    std::deque<int> line(500, n);
    char byte;
    return (int)write(1, "ready\\n", 6) + (int)read(0, &byte, 1) + numbers[0] + text[0] + line[0];
}
int main(int argc, char **) { return work(argc) == 0; }
"""


def check_unplaced():
    """A variable that optimized code has no place for is not listed, which is said."""
    with open("unplaced.cc", "w", encoding="ascii") as file:
        file.write(UNPLACED)
    for level in ("-O0", "-O2"):
        made = t.run(["g++", "-g", level, "-o", f"unplaced{level}", "unplaced.cc"])
        t.check_equal(f"unplaced {level}: built", (made.status, made.err), (0, b""))
        with t.Process([f"./unplaced{level}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
            process.stdout.readline()
            listed = sum(row["containers"] for row in t.answer(str(process.pid), "containers")["containers"])
            said = t.run_cairn("report", "--view", "containers", str(process.pid)).out.decode()
            found = re.search(r"^(\d+) containers? of functions that run, for which optimized code has no place", said, re.M)
            t.check_equal(f"unplaced {level}: listed and told", listed + (int(found.group(1)) if found else 0), 3, is_grave=True)
            t.check(level == "-O2" or not found, f"unplaced {level}: {said}")
            process.stdin.close()
            process.wait()


def check_rust_tables():
    """A place of a table that has no element holds no container, whatever was left there."""
    built = t.fresh_path("tables")
    source = str(t.SOURCE / "tests/programs/rust/tables.rs")
    if not shutil.which("rustc") or t.run(["rustc", "-g", "-O", "-o", built, source]).status:
        t.skip_part("Rust, which is not here")
        return
    with t.Process([built], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("tables: begins", process.stdout.readline(), b"ready\n")
        found = t.answer(str(process.pid), "containers")
        rows = {row["type"]: (row["containers"], row["elements"]) for row in found["containers"]}
        t.check_equal("tables: texts", rows.get("alloc::vec::Vec<u8>", ())[:1], (300,))
        t.check_equal("tables: lists", rows.get("alloc::vec::Vec<u32>"), (10, 1000))
        process.stdin.close()
        t.check_equal("tables: status", process.wait(), 0)


def check_stripped():
    stripped = t.fresh_path("stripped")
    t.run(["strip", "-o", stripped, PROGRAM])
    with t.Process([stripped], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        for line in iter(process.stdout.readline, b"ready\n"):
            t.check(line, "stripped: it ended")
        found = t.answer(str(process.pid), "types")
        counts = {row["type"]: row["blocks"] for row in found["types"]} if found else {}
        t.check_equal("stripped: what objects say", (counts.get("Derived"), counts.get("Item")),
                      (REGISTRIES * COUNT, None))
        process.stdin.close()
        process.wait()


def check_refused():
    _, path = t.record(t.program("leak"))
    result = t.run_cairn("report", path, "--view", "containers")
    t.check_equal("of a recording: status", result.status, 1)
    t.check(b"view containers needs a running process or a core dump" in result.err, f"of a recording: {result.err}")


def check_attached():
    """A sample of what a process allocates says nothing about which blocks are in use: they are the heap's."""
    with t.Process([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        for line in iter(process.stdout.readline, b"ready\n"):
            t.check(line, "attached: it ended")
        before = t.answer(str(process.pid), "types")
        with t.Process([t.CAIRN, "attach", "-o", t.fresh_path("attached"), str(process.pid)], env=t.environment(),
                       stderr=subprocess.PIPE) as attach:
            said = attach.stderr.readline()
            if t.check(b"recording typed" in said, f"attached: does not begin: {said}"):
                check_types("attached", str(process.pid))
                check_containers("attached", str(process.pid))
                found = t.answer(str(process.pid), "types")
                t.check(found and found["bytes"] >= before["bytes"], f"attached: fewer bytes: {found} {before}")
            attach.terminate()
        process.stdin.close()
        process.wait()


look("plain", [PROGRAM], False)
if t.IS_LONG:
    look("sampled", [t.CAIRN, "run", "-q", "--sample", "-o", t.fresh_path("sampled") + ".cairn", PROGRAM], True)
check_attached()
look("recorded", [t.CAIRN, "run", "-q", "-o", t.fresh_path("typed") + ".cairn", PROGRAM], True)
check_of_library()
check_allocated()
check_fills(fills())
check_unplaced()
check_rust_tables()
check_stripped()
check_refused()
t.finish()
