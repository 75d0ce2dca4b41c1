#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of jemalloc's and mimalloc's heaps in processes and cores that nobody recorded: the same as the program
holds, with the sizes that the allocator tells, preloaded or linked in and stripped, under its options. A damaged heap
ends nothing."""

import bisect
import glob
import json
import os
import pathlib
import random
import re
import subprocess

import cairn_test as t

MIMALLOC = next(iter(glob.glob("/usr/lib/*/libmimalloc.so.2.*")), None)
TCMALLOC = next(iter(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")), None)
LIBRARY = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
ROUNDS = 2
OTHERS = 40  # blocks of libc, the dynamic linker and libstdc++: streams, threads' tables, a reserve


def blocks_of(subject, *words):
    result = t.run_cairn("core", subject, *words)
    t.check_equal(f"{subject} {words}: status", (result.status, b"not known" in result.err), (0, False))
    found = re.findall(rb"allocation at ([0-9a-f]+) of size ([0-9a-f]+)", result.out)
    return {int(address, 16): int(size, 16) for address, size in found}


def holding(blocks, address, starts):
    """The block that an address lies in: mimalloc aligns within a larger one."""
    place = bisect.bisect_right(starts, address) - 1
    found = starts[place] if place >= 0 else None
    return found if found is not None and address - found < max(blocks[found], 1) else None


def compare(what, subject, wanted):
    used, free = blocks_of(subject, "list", "used"), blocks_of(subject, "list", "free")
    if not used:  # it was refused, which is told above, and no wrong figure
        return
    starts = sorted(used)
    held = {address: holding(used, address, starts) for address in wanted}
    t.check(None not in held.values(), f"{what}: missing: {list(held.values()).count(None)}", is_grave=True)
    t.check(not wanted.keys() & free.keys(), f"{what}: called free: {wanted.keys() & free.keys()}", is_grave=True)
    wrong = [hex(one) for one, size in wanted.items() if used.get(one, size) != size]
    t.check(not wrong, f"{what}: another size: {wrong[:5]}", is_grave=True)
    t.check(sum(at == one for one, at in held.items()) > len(wanted) * 0.9, f"{what}: few begin where they are used")
    others = used.keys() - set(held.values())
    t.check(len(others) <= OTHERS, f"{what}: {len(others)} blocks that the program does not hold", is_grave=True)


def view_of(subject, view):
    result = t.run_cairn("report", "--json", "--view", view, subject)
    t.check_equal(f"{subject}: {view}: status", (result.status, b"not known" in result.out), (0, False))
    return json.loads(result.out)


def check_views(what, subject, wanted, beside):
    """The views heap and pages have the same blocks, and what the allocator's statistics leave of pages beside blocks
    (`beside`; jemalloc's of small blocks, 0: it keeps none); who keeps pages adds up."""
    answer = view_of(subject, "heap")
    states = {row["name"]: row for row in answer["rows"] if row["part"] == "state"}
    classes = [row for row in answer["rows"] if row["part"] == "class"]
    used = sum(row["used_bytes"] for row in classes)
    t.check(sum(wanted.values()) <= used <= sum(wanted.values()) + (1 << 20), f"{what}: used {used}", is_grave=True)
    t.check(states["used"]["bytes"] <= used <= states["used"]["bytes"] + (1 << 20), f"{what}: {states['used']}, {used}")
    largest = 14 << 10 if answer["facts"]["allocator"] == "jemalloc" else 1 << 40
    found = sum(row["wasted_bytes"] for row in classes if row["size_from"] <= largest)
    t.check(not beside or abs(found - beside) <= 0.001 * beside, f"{what}: beside blocks: {found}, truth {beside}", is_grave=True)
    pages = view_of(subject, "pages")
    t.check_equal(f"{what}: pages", sum(row["kept_bytes"] for row in pages["rows"]), pages["facts"]["kept_bytes"], is_grave=True)
    t.check(pages["facts"]["live_bytes"] <= pages["facts"]["kept_bytes"], f"{what}: {pages['facts']}")


def dump(pid):
    subprocess.run(["gcore", "-o", "dump", str(pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"dump.{pid}"


def stops(what, argv, env=None, has_core=False):
    """Stands still some times; of the last time there is a core, too."""
    with t.Process(argv, env={**t.environment(), **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(ROUNDS):
            path = os.path.abspath(f"held-{number}")
            process.stdin.write(path.encode() + b"\n")
            process.stdin.flush()
            ready, *beside = process.stdout.readline().split() or [b""]
            if not t.check(ready == b"ready", f"{what}: the program has ended"):
                return
            lines = pathlib.Path(path).read_text(encoding="ascii").split("\n")
            wanted = {int(a, 16): int(b, 16) for a, b in (line.split() for line in lines if line)}
            t.check(len(wanted) > 1000, f"{what}: only {len(wanted)} blocks")
            compare(f"{what}, stop {number}", str(process.pid), wanted)
            if not number:
                check_views(what, str(process.pid), wanted, int(beside[0]))
            if number < ROUNDS - 1:
                process.stdin.write(b"on\n")
                process.stdin.flush()
        if has_core:
            core = dump(process.pid)
            compare(f"{what}, core", core, wanted)
            answer = json.loads(t.run_cairn("report", "--json", core).out)
            used = sum(row["bytes"] for row in answer["resident"] if re.match(r"in use in (jemalloc|mimalloc|tcmalloc)", row["what"]))
            t.check(used >= sum(wanted.values()), f"{what}, core: in use: {answer['resident']}", is_grave=True)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 0)


def linked_in():
    """The library is part of the program, without a symbol."""
    source = str(t.SOURCE / "tests/programs/held_blocks.c")
    done = subprocess.run(["gcc", "-O1", "-s", "-pthread", "-I", str(t.SOURCE), "-o", "linked", source, "-l:libjemalloc.a",
                           "-lstdc++", "-ldl", "-lm"], check=False, stderr=subprocess.PIPE)
    if done.returncode:
        t.skip_part("jemalloc linked in, since there is no libjemalloc.a")
        return
    stops("linked in", ["./linked"])


def damaged(library):
    """Words of the heap and of its tables, at random: an answer or a reason."""
    with t.Process(["cat"], env={**t.environment(), "LD_PRELOAD": library}, stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE) as process:
        process.stdin.write(b"it has begun\n")
        process.stdin.flush()
        process.stdout.readline()
        core = dump(process.pid)
        t.check(blocks_of(core, "list", "used"), "cat: no block")
        process.stdin.close()
    data = pathlib.Path(core).read_bytes()
    chance = random.Random(7)
    places = [at for at in range(0, len(data) - 64, 64) if any(data[at : at + 64])]
    for number in range(8):
        damage = bytearray(data)
        for place in chance.sample(places, len(places) // 4 if number % 2 else 100):
            damage[place + chance.randrange(64)] = chance.randrange(256)
        pathlib.Path("damaged").write_bytes(damage)
        result = t.run_cairn("core", "damaged", "count", "used")
        t.check(result.status in (0, 1) and result.err.count(b"\n") <= 2,
                f"damaged {number}: {result.status} {result.err}")


def others():
    """Allocators that are not read are named: tcmalloc's variant for debugging puts words of its own into each block."""
    library = next(iter(glob.glob("/usr/lib/*/libtcmalloc_minimal_debug.so.4")), None)
    if not library:
        t.skip_part("tcmalloc for debugging, since its library is not here")
        return
    with t.Process(t.program("held_blocks"), env={**t.environment(), "LD_PRELOAD": library}, stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE) as process:
        process.stdin.write(os.path.abspath("held").encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        result = t.run_cairn("core", str(process.pid), "count", "used")
        t.check(result.status == 1 and b"or tcmalloc (gperftools 2.10); it used libtcmalloc_minimal_debug.so" in result.err,
                f"tcmalloc for debugging: {result.err}")
        for view in ("heap", "pages", "remedies"):
            result = t.run_cairn("report", "--view", view, str(process.pid))
            t.check(b"it used libtcmalloc_minimal_debug.so" in result.out + result.err, f"tcmalloc for debugging: {view}: {result}")


if LIBRARY:
    preload = {"LD_PRELOAD": LIBRARY}
    stops("preloaded", t.program("held_blocks"), preload, has_core=True)
    stops("without caches", t.program("held_blocks"), {**preload, "MALLOC_CONF": "tcache:false,narenas:1"})
    stops("decay", t.program("held_blocks"),
          {**preload, "MALLOC_CONF": "background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0"})
    linked_in()
    damaged(LIBRARY)
    others()
else:
    t.skip_part("jemalloc, since libjemalloc.so.2 is not here")
if MIMALLOC:
    stops("mimalloc", t.program("held_blocks"), {"LD_PRELOAD": MIMALLOC}, has_core=True)
    damaged(MIMALLOC)
else:
    t.skip_part("mimalloc, since its library is not here")
if TCMALLOC:
    stops("tcmalloc", t.program("held_blocks"), {"LD_PRELOAD": TCMALLOC}, has_core=True)
    stops("tcmalloc with a profiler", t.program("held_blocks"), {"LD_PRELOAD": TCMALLOC.replace("_minimal", "")})
    damaged(TCMALLOC)
else:
    t.skip_part("tcmalloc, since its library is not here")
t.finish()
