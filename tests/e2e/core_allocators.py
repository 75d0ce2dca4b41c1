#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of jemalloc's and mimalloc's heaps in processes and cores that nobody recorded: the same as the program
holds, with the sizes that the allocator tells, preloaded or linked in and stripped, under its options, and wherever
threads are as it is stopped, but for what they move just then. A damaged heap ends nothing. `make check-long` has more
options, damage and load of each allocator."""

import glob
import os
import pathlib
import random
import re
import subprocess

import cairn_test as t
from held_blocks import blocks_of, dump, recorded, stops, under_load

MIMALLOC = next(iter(glob.glob("/usr/lib/*/libmimalloc.so.2.*")), None)
LOADED = 100 if t.IS_LONG else 3  # stops under load
TCMALLOC = next(iter(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")), None)
LIBRARY = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)


def linked_in(name, archive):
    """The library is part of the program, without a symbol; the program may be static, and has an array of pointers in
    front of the library's data."""
    source = str(t.SOURCE / "tests/programs/held_blocks.c")
    whole = ["-Wl,--whole-archive", f"-l:{archive}", "-Wl,--no-whole-archive"]
    for kind in ([], ["-static"]):
        done = subprocess.run(["gcc", "-O1", "-s", "-w", "-pthread", "-D_GNU_SOURCE", *kind, "-o", "linked", source,
                               *whole, "-lstdc++", "-ldl", "-lm"], check=False, stderr=subprocess.PIPE)
        if done.returncode:
            t.skip_part(f"{name} linked in {kind}, since there is no library for that")
        else:
            stops(f"{name}, linked in {kind}", ["./linked"])


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
        t.check(result.status == 1 and re.search(rb"or tcmalloc \(gperftools [\d. to]+\) as they are usually built; it used libtcmalloc_minimal_debug.so", result.err),
                f"tcmalloc for debugging: {result.err}")
        for view in ("heap", "pages", "remedies"):
            result = t.run_cairn("report", "--view", view, str(process.pid))
            t.check(b"it used libtcmalloc_minimal_debug.so" in result.out + result.err, f"tcmalloc for debugging: {view}: {result}")
    argv = [t.CAIRN, "run", "-q", "-o", "debugging.cairn", "--", "env", f"LD_PRELOAD={library}", "cat"]
    with t.Process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"it has begun\n")
        process.stdin.flush()
        process.stdout.readline()
        pid = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()[0]
        result = t.run_cairn("report", "--view", "waste", pid)
        t.check(b"slack is not known: sizes are those asked for" in result.out, f"tcmalloc for debugging, recorded: {result}")
        process.stdin.close()


if LIBRARY:
    preload = {"LD_PRELOAD": LIBRARY}
    stops("preloaded", t.program("held_blocks"), preload, has_core=True)
    stops("without caches", t.program("held_blocks"), {**preload, "MALLOC_CONF": "tcache:false,narenas:1"})
    if t.IS_LONG:
        recorded("preloaded", LIBRARY)
        stops("decay", t.program("held_blocks"),
              {**preload, "MALLOC_CONF": "background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0"})
        under_load("one arena, whose lock a thread holds as a rule", LIBRARY, LOADED, env={"MALLOC_CONF": "tcache:false,narenas:1"})
    under_load("preloaded", LIBRARY, LOADED)
    linked_in("jemalloc", "libjemalloc.a")
    damaged(LIBRARY)
    others()
else:
    t.skip_part("jemalloc, since libjemalloc.so.2 is not here")
if MIMALLOC:
    stops("mimalloc", t.program("held_blocks"), {"LD_PRELOAD": MIMALLOC}, has_core=True)
    recorded("mimalloc", MIMALLOC)
    under_load("mimalloc", MIMALLOC, LOADED if t.IS_LONG else 1)
    if t.IS_LONG:
        damaged(MIMALLOC)
else:
    t.skip_part("mimalloc, since its library is not here")
if TCMALLOC:
    stops("tcmalloc", t.program("held_blocks"), {"LD_PRELOAD": TCMALLOC}, has_core=True)
    under_load("tcmalloc", TCMALLOC, LOADED if t.IS_LONG else 1)
    if t.IS_LONG:
        recorded("tcmalloc", TCMALLOC)
        linked_in("tcmalloc", "libtcmalloc_minimal.a")
        stops("tcmalloc with a profiler", t.program("held_blocks"), {"LD_PRELOAD": TCMALLOC.replace("_minimal", "")})
        damaged(TCMALLOC)
else:
    t.skip_part("tcmalloc, since its library is not here")
t.finish()
