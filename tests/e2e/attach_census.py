#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks that there were before cairn attached: all of them, by size and by the class that they are of;
their frees and reallocs are those of blocks that cairn knows; sampled, as estimates; left out where it was
asked for or would take long. The same with jemalloc, mimalloc and tcmalloc, with threads that allocate meanwhile."""

import glob
import os
import re

from attached import Attached, Target
from cairn_test import (PROGRAMS, check, check_equal, environment, finish, fresh_path, functions, need_attach, run,
                        run_cairn, skip_part, stacks_through)

GROUP = "allocated before attach"
# Usable bytes of blocks that were asked for with 32, 112, 100 and 1 MiB.
KINDS = {"drawing::Circle": (300, 40), "drawing::Square": (200, 120)}
TEXTS, TEXT_ROOM, LARGE, LARGE_ROOM = 1000, 104, 5, (1 << 20) + 4096 - 16
# The program's vectors, libc's and the dynamic linker's own.
OTHERS_MOST, OTHERS_MOST_BYTES = 60, 150_000
MARKS, KINDS_MAX = 4000, 4096


def group_of(found):
    return {functions(stack)[0]: stack for stack in stacks_through(found, GROUP)}


def check_kinds(what, found, freed):
    group = group_of(found)
    for name, (count, room) in KINDS.items():
        check(name in group, f"{what}: {name} among {list(group)}")
        stack = group[name]
        check_equal(f"{what}: {name}", (stack["inherited"]["blocks"], stack["inherited"]["bytes"]),
                    (count, count * room))
        check_equal(f"{what}: calls of {name}", (stack["allocations"], stack["allocated_bytes"]), (0, 0))
        check_equal(f"{what}: {name} left", (stack["at_exit_blocks"], stack["at_exit_bytes"]),
                    (count - freed, (count - freed) * room))
    return group


def exactly():
    target = Target(path=PROGRAMS / "before")
    attached = Attached(target.pid, "--exact")
    target.tell("free 3")
    target.tell("grow 10")
    found = attached.leave()
    group = check_kinds("exact", found, 3)
    texts = group["unknown type"]
    before = texts["inherited"]
    known = TEXTS * TEXT_ROOM + LARGE * LARGE_ROOM
    check(0 <= before["blocks"] - TEXTS - LARGE <= OTHERS_MOST, f"blocks: {before['blocks']}")
    check(0 <= before["bytes"] - known <= OTHERS_MOST_BYTES,
          f"bytes: {before['bytes']}, of which {known} are known")
    gone = 3 * TEXT_ROOM + 3 * LARGE_ROOM + 10 * TEXT_ROOM
    check_equal("texts and large blocks that are gone", before["bytes"] - before["at_exit_bytes"],
                gone)
    tids = [one["tid"] for one in found["threads"] if one["tid"]]
    check_equal("threads named once", len(tids), len(set(tids)))
    check_equal("no free is unknown", found["trust"]["earlier_frees"], 0)
    totals = found["totals"]
    had = found["inherited"]["bytes"] + totals["allocated_bytes"]
    check_equal("totals add up", had - totals["freed_bytes"],
                sum(stack["at_exit_bytes"] for stack in found["stacks"]))
    check_equal("and are what is left", found["at_exit"]["bytes"], had - totals["freed_bytes"])
    check("allocated before attach" in attached.err, f"the summary names them: {attached.err}")
    tree = run_cairn("report", "--view", "tree", "--threshold", "0", attached.path).out.decode()
    check(GROUP in tree and "drawing::Circle" in tree, f"the tree has the group: {tree}")
    leaks = run_cairn("leaks", attached.path).out.decode()
    check(GROUP in leaks, f"and so has what was never freed: {leaks}")

    again = Attached(target.pid, "--exact")
    target.tell("free 7")
    found = again.leave()
    group = group_of(found)
    check_equal("a second time", group["drawing::Circle"]["inherited"]["blocks"], 297)
    check_equal("left of them", group["drawing::Circle"]["at_exit_blocks"], 290)
    target.process.communicate("end\n")
    check_equal("its status", target.process.returncode, 0)


def stripped():
    """Names of classes are in the process itself."""
    path = fresh_path("before")
    run(["strip", "-o", path, PROGRAMS / "before"])
    target = Target(path=path)
    attached = Attached(target.pid, "--exact", "--record-for", "50ms")
    check_kinds("stripped", attached.leave(lambda: None), 0)
    target.process.communicate("end\n")


def many_kinds():
    """Places take half of the kinds at most, so that classes are named behind them."""
    target = Target(path=PROGRAMS / "before")
    target.tell(f"point {MARKS}")
    attached = Attached(target.pid, "--exact", "--record-for", "50ms")
    group = check_kinds("many kinds", attached.leave(lambda: None), 0)
    marks = [name for name in group if name.startswith("drawing::marks")]
    check("drawing::marks" in marks and "drawing::marks+0x1" in marks, f"places: {marks[:5]}")
    check(KINDS_MAX / 2 - OTHERS_MOST <= len(marks) <= KINDS_MAX / 2, f"{len(marks)} of {MARKS} places")
    check("drawing::Late" in group, "a class that is found last")
    lost = MARKS - len(marks)
    check(0 <= group["unknown type"]["inherited"]["blocks"] - TEXTS - LARGE - lost <= OTHERS_MOST,
          f"{group['unknown type']['inherited']['blocks']} blocks of no kind, {lost} beyond the places")
    target.process.communicate("end\n")


def own_blocks():
    """What the dynamic linker allocates for the library is not the program's, but for a table that it keeps of all."""
    target = Target()
    target.tell("keep 100 1000")
    said = run_cairn("core", str(target.pid), "count", "used").out.decode()
    before = int(said.split()[0].replace(",", ""))
    check(before >= 100, f"blocks before: {said}")
    for turn in ("first", "second"):
        attached = Attached(target.pid, "--exact", "--scan-heap")
        found = attached.leave()
        blocks = sum(stack["inherited"]["blocks"] for stack in stacks_through(found, GROUP))
        check(before <= blocks <= before + 1, f"{turn} time: {before} blocks, {blocks} were counted")
    target.end("own blocks")


def many_threads():
    """Threads that share arenas: what lies in the cache of any of them is free. Each has its 64 blocks, a cache and
    a few of libc's and the linker's."""
    for count in (64, 256):
        target = Target(count + 1)
        held = int(target.tell("rest"))
        check(50 * count <= held <= 64 * count + 640, f"{count} threads have {held} blocks")
        attached = Attached(target.pid, "--exact", "--scan-heap")
        found = attached.leave()
        blocks = sum(stack["inherited"]["blocks"] for stack in stacks_through(found, GROUP))
        check(held <= blocks <= held + 3 * count + 50, f"{count} threads: {held} blocks, {blocks} were counted")
        check_equal(f"{count} threads: exact", (found["trust"]["exact"], found["trust"]["lost"]), (True, {}))
        target.end(f"{count} threads")


def threads():
    """Arenas of threads that allocate and free all the time; nothing is freed twice or never."""
    target = Target(8)
    target.tell("keep 500 100")
    attached = Attached(target.pid, "--exact")
    target.tell("drop")
    found = attached.leave()
    left = sum(stack["at_exit_blocks"] for stack in stacks_through(found, GROUP))
    blocks = sum(stack["inherited"]["blocks"] for stack in stacks_through(found, GROUP))
    check(blocks >= 500, f"{blocks} blocks were there")
    check(left <= blocks - 500, f"{left} of {blocks} blocks are left")
    # of each thread the one that it was about to allocate or to free may be wrong
    check(found["trust"]["earlier_frees"] <= 8, f"unknown: {found['trust']}")
    check(found["trust"]["lost"].get("implied_free", 0) <= 8, f"implied: {found['trust']['lost']}")
    target.end("threads")


def sampled():
    target = Target()
    target.tell("keep 20000 1000")
    attached = Attached(target.pid, "--rate", "16K", "--scan-heap")
    target.tell("drop")
    found = attached.leave()
    group = stacks_through(found, GROUP)
    bytes_found = sum(stack["inherited"]["bytes"] for stack in group)
    # some 1,200 samples: six times the standard deviation of 0.6 MB on both sides
    check(16_500_000 < bytes_found < 23_900_000, f"an estimate of 20 MB: {bytes_found}")
    left = sum(stack["at_exit_bytes"] for stack in group)
    check(left < 2_000_000, f"their frees are seen: {left} bytes are left")
    target.end("sampled")


def sampled_few():
    """Of a small heap few blocks or none are samples. How many there were was counted, and intervals reach to that."""
    target = Target()
    target.tell("keep 20000 40")
    target.tell("keep 7 600000")
    attached = Attached(target.pid, "--scan-heap", "--record-for", "50ms")
    found = attached.leave(lambda: None)
    sampling, least = found["sampling"], 20007
    check(least <= sampling["found_blocks"] < least + 100, f"counted: {sampling}")
    check(f" in {sampling['found_blocks']:,} blocks allocated before attach" in attached.err, f"it is said: {attached.err}")
    estimate, blocks = sampling["at_exit_estimate"], found["at_exit"]["blocks"]
    lowest, most = blocks - estimate["interval_blocks"], min(blocks + estimate["interval_blocks"], estimate["most_blocks"])
    check(lowest <= least <= most, f"the interval has the truth: {lowest} to {most}, {estimate}")
    peak = next(claim["evidence"] for claim in found["claims"] if claim["key"] == "peak")
    check(peak["blocks"] >= least and found["sampling"]["peak_estimate"]["least_blocks"] >= least, f"the peak was no less than what was counted: {peak}")
    target.end("few samples")


LIBRARIES = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4",
             "tcmalloc for debugging": "libtcmalloc_minimal_debug.so.4"}


def preload_of(allocator):
    library = next(iter(glob.glob(f"/usr/lib/*/{LIBRARIES[allocator]}")), None)
    if not library:
        skip_part(f"{allocator}, since its library is not here")
    return ("env", f"LD_PRELOAD={library}") if library else None


def another_allocator(allocator):
    """Its blocks are those that a look has, C++'s operators are seen, and little is on its way."""
    before = preload_of(allocator)
    if not before:
        return
    target = Target(path=PROGRAMS / "before", before=before)
    said = int(run_cairn("core", str(target.pid), "count", "used").out.decode().split()[0].replace(",", ""))
    attached = Attached(target.pid, "--exact", "--scan-heap")
    target.tell("free 3")
    target.tell("grow 10")
    found = attached.leave()
    group = group_of(found)
    blocks = sum(stack["inherited"]["blocks"] for stack in group.values())
    check(said <= blocks <= said + 1, f"{allocator}: {said} blocks, {blocks} were counted", is_grave=True)
    for name, (count, _) in KINDS.items():
        check(name in group, f"{allocator}: {name} among {list(group)}")
        kept = (group[name]["inherited"]["blocks"], group[name]["at_exit_blocks"])
        check_equal(f"{allocator}: {name}, and what is left", kept, (count, count - 3), is_grave=True)
    left = group["unknown type"]
    check_equal(f"{allocator}: others that are gone", left["inherited"]["blocks"] - left["at_exit_blocks"], 16, is_grave=True)
    check_equal(f"{allocator}: exact", (found["trust"]["earlier_frees"], found["trust"]["lost"]), (0, {}))
    target.process.communicate("end\n")
    busy = Target(8, before=before)
    busy.tell("keep 500 100")
    attached = Attached(busy.pid, "--exact", "--scan-heap")
    busy.tell("drop")
    found = attached.leave()
    left, blocks = (sum(stack[kind]["blocks"] if kind == "inherited" else stack[kind] for stack in stacks_through(found, GROUP))
                    for kind in ("at_exit_blocks", "inherited"))
    check(blocks >= 500 and left <= blocks - 500, f"{allocator}, threads: {left} of {blocks} blocks are left")
    wrong = found["trust"]["earlier_frees"] + found["trust"]["lost"].get("implied_free", 0)
    # what these two move between a thread's cache and the others' store at a time may be on its way; of mimalloc the block
    # of a call, and one of a list that a thread takes over
    most = 8 * 2 if allocator == "mimalloc" else 8 * 32
    check(wrong <= most, f"{allocator}, threads: {found['trust']}", is_grave=True)
    busy.end(f"{allocator}, threads")


def unread_allocator():
    before = preload_of("tcmalloc for debugging")
    if not before:
        return
    target = Target(path=PROGRAMS / "before", before=before)
    attached = Attached(target.pid, "--exact", "--scan-heap", "--record-for", "50ms")
    attached.leave(lambda: None)
    check("not counted: its allocator is not glibc's, nor jemalloc 5.2 or 5.3, mimalloc 2.0.9 or tcmalloc" in attached.err, f"tcmalloc: {attached.err}")
    target.process.communicate("end\n")


def left_out():
    """More than is read unasked, by size or by number."""
    target = Target()
    target.tell("keep 65000 16")
    attached = Attached(target.pid, "--exact", "--record-for", "50ms")
    attached.leave(lambda: None)
    check("not counted" not in attached.err, f"65,000 small ones: {attached.err}")
    target.tell("keep 536 16")
    attached = Attached(target.pid, "--exact", "--record-for", "50ms")
    attached.leave(lambda: None)
    check("not counted" in attached.err and "--scan-heap" in attached.err, f"more than 65,536: {attached.err}")
    target.end("many")

    target = Target()
    target.tell("keep 5000 4000")
    attached = Attached(target.pid, "--exact", "--record-for", "50ms")
    found = attached.leave(lambda: None)
    check("not counted" in attached.err and "--scan-heap" in attached.err, f"it is said: {attached.err}")
    check_equal("nothing of them", stacks_through(found, GROUP), [])
    attached = Attached(target.pid, "--exact", "--scan-heap", "--record-for", "50ms")
    found = attached.leave(lambda: None)
    counted = sum(stack["inherited"]["blocks"] for stack in stacks_through(found, GROUP))
    check(counted >= 5000, f"when asked for: {counted}")
    target.end("left out")
    both = run_cairn("attach", "--scan-heap", "--no-scan-heap", str(os.getpid()))
    check_equal("both at once", (both.status, both.err.count(b"\n")), (2, 1))


need_attach()
exactly()
stripped()
many_kinds()
threads()
many_threads()
own_blocks()
sampled()
sampled_few()
another_allocator("jemalloc")
another_allocator("mimalloc")
another_allocator("tcmalloc")
unread_allocator()
left_out()
finish()
