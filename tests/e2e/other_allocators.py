#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With jemalloc, tcmalloc or mimalloc behind cairn the totals are those of the same program on libc: each
operator new is counted once, each free finds its block."""

import os

import cairn_test as t

ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]
DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
LIVE_LEAST = 10 << 20
# Program: functions whose stacks are compared. The rest belongs to the C++ runtime that the allocator's
# library brings along, and to libc's own tables of threads.
PROGRAMS = {
    ("leak",): ["leak_small", "leak_large", "caller_one", "caller_two", "work"],
    ("mixed",): ["as_parser", "as_cache", "as_buffer", "as_page"],
    ("realloc_chain",): ["chain_begin", "chain_grow", "chain_shrink"],
    ("threads", "short"): ["short_body"],
    ("coroutines",): ["turn"],
    ("exceptions",): ["all_forms", "catcher"],
}


def library_path(name):
    paths = [os.path.join(directory, name) for directory in DIRECTORIES]
    return next((path for path in paths if os.path.exists(path)), None)


def sums(found, function):
    stacks = [stack for stack in found["stacks"]
              if any(name.split("(")[0] == function for name in t.functions(stack))]
    return tuple(sum(stack[field] for stack in stacks)
                 for field in ("allocations", "allocated_bytes", "at_exit_bytes", "at_exit_blocks"))


def compare(allocator, library, command, functions):
    what = f"{' '.join(command)} with {allocator}"
    argv, env = t.program(*command), {"LD_PRELOAD": library}
    on_libc = t.report(t.record(argv)[1])
    result, path = t.record(argv, env=env)
    result.check_like(what, t.run(argv, env=env))
    found = t.report(path)
    if not found or not on_libc:
        return
    for function in functions:
        t.check(sums(on_libc, function)[0] > 0, f"{command[0]}: nothing through {function}")
        t.check_equal(f"{what}: {function}", sums(found, function), sums(on_libc, function))
    t.check_sums(what, found)
    t.check_nothing_lost(what, found)


def check_own(allocator, library):
    """cairn's tables are no memory of the allocator's."""
    words = "kept = [bytes(200) for i in range(200000)]"
    path = t.record([t.PYTHON, "-c", words], env={"LD_PRELOAD": library, "PYTHONMALLOC": "malloc"})[1]
    found = t.report(path)
    looks = [one for one in (found["rss"]["at_peak"], found["rss"]["last"]) if one and one["heap_live_bytes"] > LIVE_LEAST]
    if not looks:
        t.skip_part(f"cairn's memory beside {allocator}, since it was not looked at when there was much")
        return
    # 8 bytes of the live map for each 16 of the heap
    own, least = looks[0]["own_bytes"], 0.4 * looks[0]["heap_live_bytes"]
    t.check(least < own < 1.2 * found["trust"]["own_bytes"], f"{allocator}: cairn's {own}, not {least} and more")
    said = t.run_cairn("report", "--view", "memory", path).out.decode()
    t.check("allocates: of its memory, free and cached is one part" in said, f"{allocator}: {said}")


for name in ALLOCATORS:
    place = library_path(name)
    if t.check(place is not None, f"{name} is not installed"):
        check_own(name, place)
        for program, names in PROGRAMS.items():
            compare(name, place, program, names)
t.finish()
