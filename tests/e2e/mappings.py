#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --mmap: what each place of a program has mapped, at the end and at the peak, is what the
program's own list of pages and the kernel say, with pieces cut out, replaced and moved; threads and
forks lose nothing; Python's arenas are found by their caller. Without --mmap nothing is recorded."""

import json
import re

import cairn_test as t

MIB = 1 << 20


def record(argv, *options):
    path = t.fresh_path("mapped") + ".cairn"
    result = t.run_cairn("run", "-q", *options, "-o", path, "--", *argv)
    t.check_equal(f"{argv}: status", result.status, 0)
    return result, path


def by_function(mappings, wanted):
    """Bytes at the end, bytes at the peak and reserved ones of the stacks through a function."""
    stacks = [stack for stack in mappings["stacks"] if wanted in t.functions(stack)]
    return [sum(stack[key] for stack in stacks) for key in ("at_exit_bytes", "peak_bytes", "reserved_bytes")]


def check_random(seed):
    result, path = record(t.program("mappings", 3000, seed), "--mmap")
    said = json.loads(result.out)
    found = t.report(path)
    mappings = found["mappings"]
    places = [name for name in said if name.startswith("place")]
    t.check_equal("the program's list and the kernel's", sum(said[name][0] for name in places), said["kernel"])
    for name in places:
        t.check_equal(f"{seed}: {name}", by_function(mappings, name)[:2], said[name])
    t.check_equal(f"{seed}: at the end", mappings["at_exit_bytes"], said["kernel"])
    t.check_equal(f"{seed}: peak", mappings["peak_bytes"], said["highest"])
    t.check_equal(f"{seed}: reserved and left", by_function(mappings, "reserve")[2],
                  mappings["kinds"]["reserved"]["at_exit_bytes"])
    t.check_equal(f"{seed}: lost", mappings["lost"], 0)
    t.check(found["totals"]["allocated_bytes"] < MIB, "mappings are in the heap")


def check_threads():
    _, path = record(t.program("mappings", "threads", 8, 2000), "--mmap")
    mappings = t.report(path)["mappings"]
    t.check_equal("threads: lost", mappings["lost"], 0)
    t.check_equal("threads: left", by_function(mappings, "place_thread")[0], 8 * MIB)
    t.check_equal("threads: calls", mappings["kinds"]["memory"]["calls"], 8 * 2001)


def check_fork():
    _, path = record(t.program("mappings", "fork"), "--mmap")
    processes = t.report(path)["processes"]
    left = sorted(process["mappings"]["at_exit_bytes"] for process in processes if process.get("mappings"))
    t.check_equal("fork: parent and child", left, [MIB, MIB - MIB // 4 + 2 * MIB])


def check_python():
    code = "kept = [str(i) for i in range(200000)]"
    _, path = record([t.PYTHON, "-c", code], "--mmap")
    mappings = t.report(path)["mappings"]
    arenas = [stack for stack in mappings["stacks"] if "PyObject_Str" in t.functions(stack)]
    held = sum(stack["peak_bytes"] for stack in arenas)
    t.check(held >= 8 * MIB, f"Python's arenas: {held} in {len(arenas)} stacks")
    t.check(all(stack["mapped_bytes"] % (256 << 10) == 0 for stack in arenas), "no whole arenas")


def check_screens(path):
    text = t.run_cairn("report", "--view", "mappings", path).out.decode()
    for words in ("peak mapped", "private memory", "reserved: mapped without access", "stacks by what they held",
                  "place_first", "reserved, without access"):
        t.check(words in text, f"no {words!r} in {text}")
    t.check("block" not in text, f"blocks of mappings: {text}")
    summary = t.run_cairn("report", path).out.decode()
    t.check(re.search(r"^  mapped +[\d.]+ MiB in ", summary, re.M), f"summary: {summary}")
    refused = t.run_cairn("report", "--view", "mappings", "--thread", "1", path)
    t.check_equal("--thread", (refused.status, b"--view mappings and --thread exclude each other" in refused.err), (2, True))


def check_without():
    _, path = record(t.program("mappings", 100, 1))
    t.check_equal("without --mmap", t.report(path)["mappings"], None)
    result = t.run_cairn("report", "--view", "mappings", path)
    t.check_equal("without --mmap: status", (result.status, b"cairn run --mmap" in result.err), (1, True))


for number in (1, 2, 3):
    check_random(number)
check_threads()
check_fork()
check_python()
check_screens(record(t.program("mappings", 500, 9), "--mmap")[1])
check_without()
t.finish()
