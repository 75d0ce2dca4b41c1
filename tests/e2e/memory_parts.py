#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What resident memory consists of: the parts add up to what /proc/PID/smaps_rollup says, each is what
an own reading of smaps says, and what is free in glibc's arenas is what mallinfo2 says. What the program
maps itself is told from malloc's large blocks, with --mmap and without. Free memory between blocks and rooms that were
never touched are not called live, and a reading at the end is not that of the peak."""

import re
import subprocess

import cairn_test as t

NEAR = 1 << 20
SHARED, LARGE, STACKS, MAPPED = 4 << 20, 8 << 20, 2 * 300000, 3 << 20


def rollup(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        values = dict(re.findall(r"^(\w+): +(\d+) kB", lines.read(), re.M))
    return {name: int(kib) * 1024 for name, kib in values.items()}


def named_bytes(pid, pattern):
    """Resident bytes of the mappings whose name matches."""
    total, is_wanted = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as lines:
        for line in lines:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                is_wanted = re.search(pattern, line.rstrip("\n").partition(":")[2][5:]) is not None
            elif is_wanted and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
    return total


def steady_picture(pid):
    """The last picture, once it is one of the process at rest."""
    def picture_at_rest():
        found = t.report(pid)
        last = found["rss"]["last"]
        is_at_rest = last and last["rss_bytes"] == rollup(pid)["Rss"] and last["free_bytes"] is not None
        return (found, last) if is_at_rest else None
    return t.wait_until(picture_at_rest, pause=0.05)


def check_picture(found, last, free, slack, pid):
    now = rollup(pid)
    parts = ("live", "slack", "free", "rest", "mapped", "stacks", "files", "shared", "own", "other")
    t.check_equal("sum of the parts", sum(last[f"{part}_bytes"] or 0 for part in parts), now["Rss"])
    # pages of libraries have more or fewer users from one look to the next
    t.check(abs(last["pss_bytes"] - now["Pss"]) <= now["Shared_Clean"], f"PSS {last['pss_bytes']}: {now}")
    t.check_equal("swap", last["swap_bytes"], now["Swap"])
    t.check_equal("live", last["heap_live_bytes"], found["at_exit"]["bytes"])
    t.check_equal("live is a part", last["live_bytes"], last["heap_live_bytes"])
    t.check_equal("arenas", last["arenas"], 3)
    t.check_equal("free in arenas", last["arena_chunk_bytes"] + last["arena_top_bytes"], free)
    t.check(0 < last["free_bytes"] <= free, f"resident of it: {last['free_bytes']}")
    t.check_equal("shared", last["shared_bytes"], SHARED)
    # pages that threads mapped for libc are of no malloc either
    t.check(MAPPED <= last["mapped_bytes"] <= MAPPED + (256 << 10), f"mapped: {last['mapped_bytes']}")
    t.check(abs(last["slack_bytes"] - slack) <= slack // 20, f"slack: {last['slack_bytes']}, should be {slack}")
    own = named_bytes(pid, r"/memfd:cairn|libcairn")
    t.check(own <= last["own_bytes"] <= own + found["trust"]["own_bytes"], f"own: {own}, {last}")
    main_stack = named_bytes(pid, r"\[stack\]$")
    t.check(main_stack + STACKS <= last["stacks_bytes"] <= main_stack + STACKS + (256 << 10),
            f"stacks: {last['stacks_bytes']}")
    files = named_bytes(pid, r" /") - named_bytes(pid, r"/memfd:|libcairn")
    t.check(files <= last["files_bytes"] <= files + (1 << 20), f"files: {files}, {last}")


def check_points(found):
    points = found["rss"]["points"]
    t.check(points and points == sorted(points, key=lambda point: point["at_ns"]), "points: no order")
    t.check(any(point["pss_bytes"] for point in points), "points: no PSS")
    highest = max(point["rss_bytes"] for point in points)
    t.check(highest >= LARGE + SHARED, f"points: {highest}")


def check_screen(path):
    for columns in (60, 80, 200):
        text = t.run_cairn("report", "--view", "memory", path, env={"COLUMNS": str(columns)}).out.decode()
        lines = [line for line in text.splitlines() if line.startswith("  ")]
        t.check(max(map(len, lines)) <= columns, f"{columns}: {text}")
        flat = " ".join(text.split())
        for words in ("live heap, ", "free in 3 arenas: ", " at the ends", " 3 stacks", " shared memory", " resident;"):
            t.check(words in flat, f"{columns}: no {words!r} in {text}")


def wait_for_recorder(pid):
    """Waits for a look of the tool that records at the process at rest; that of a report is its own."""
    t.wait_until(lambda: any(point["pss_bytes"] and point["rss_bytes"] >= 0.995 * rollup(pid)["Rss"]
                             for point in t.report(pid)["rss"]["points"]), pause=0.05)


def watch(path, *options):
    with t.Process([t.CAIRN, "run", "-q", *options, "-o", path, "--", *t.program("memory_parts")],
                          env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        said = child.stdout.readline().split()
        with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as children:
            process = int(children.read().split()[0])
        check_picture(*steady_picture(process), int(said[0]), int(said[2]), process)
        wait_for_recorder(process)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)


def check_holes():
    """Of a process, then of its recording: what is live was touched, and is of a reading before all of it was freed."""
    with t.Process([t.CAIRN, "run", "-q", "-o", "holes.cairn", "--", *t.program("holes")], env=t.environment(),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        touched, free = (int(word) for word in child.stdout.readline().split())
        process = t.wait_until(lambda: [pid for pid in t.children_of(child.pid) if t.is_called(pid, "holes")])[0]
        last = t.report(process)["rss"]["last"]
        t.check_equal("holes: all counted", (last["free_is_partial"], last["arena_chunk_bytes"] + last["arena_top_bytes"]),
                      (False, free))
        t.check(last["heap_live_bytes"] > 1.5 * touched, f"holes: {touched}, {last}")
        t.check(abs(last["live_bytes"] - touched) <= NEAR, f"holes: {touched} are touched: {last}")
        wait_for_recorder(process)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)
    peak = t.report("holes.cairn")["rss"]["at_peak"]
    t.check(peak["heap_live_bytes"] >= 0.95 * last["heap_live_bytes"], f"holes: not of the peak: {peak}")
    t.check(peak["live_bytes"] is None or abs(peak["live_bytes"] - touched) <= NEAR, f"holes: {peak}")
    for view in ("pages", "memory", "heap"):
        text = t.run_cairn("report", "--view", view, "holes.cairn").out.decode()
        t.check(" live on it (100 %)" not in text, f"holes: {view}: {text}")


watch("mapped.cairn", "--mmap")
watch("run.cairn")
ended = t.report("run.cairn")
check_points(ended)
t.check_equal("the last picture stays", ended["rss"]["last"]["shared_bytes"], SHARED)
check_screen("run.cairn")
check_holes()
t.finish()
