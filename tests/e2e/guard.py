#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --guard finds the writes beside blocks that valgrind's memcheck finds, and says whose blocks
they were; those that nobody frees at the end, or when they are asked for."""

import re
import subprocess
import time

import cairn_test as t

t.need("valgrind")


def child_of(tool):
    with open(f"/proc/{tool.pid}/task/{tool.pid}/children", encoding="ascii") as children:
        return children.read().split()[0]


def damages(way, *options):
    """What the recording of one way says, after its output and status were compared."""
    argv, path = t.program("overruns", way), t.fresh_path(way) + ".cairn"
    result = t.run_cairn("run", "-q", *(options or ["--guard"]), "-o", path, *argv)
    t.check_equal(f"{way}: status", result.status, 0)
    return t.report(path)["guard"], path


def memcheck(way):
    """(side, distance, size of the block, allocating functions) of each write that memcheck finds."""
    result = t.run(["valgrind", "--error-exitcode=0", *t.program("overruns", way)])
    text = re.sub(r"==\d+== ?", "", result.err.decode())
    found = re.findall(r"Address \S+ is (\d+) bytes (before|after|inside) a block of size ([\d,]+) alloc'd\n"
                       r"((?:   .*\n)+)", text)
    return [(side, int(distance), int(size.replace(",", "")), re.findall(r"0x\w+: (\w+)", stack))
            for distance, side, size, stack in found]


def names(frames):
    return [frame["function"].split("(")[0] for frame in frames]


def check_like_memcheck(way):
    """The first byte that memcheck complains of, and the stack of the block."""
    side, distance, size, stack = memcheck(way)[0]
    guard, _ = damages(way)
    found = guard["overruns"][0]
    key, offset = ("before", -distance) if side == "before" else ("behind", size + distance)
    if not t.check(found[key] is not None, f"{way}: {found}"):
        return
    t.check_equal(f"{way}: offset", found[key]["offset"], offset)
    t.check_equal(f"{way}: size", found["size"], size)
    callers = [name for name in stack if name in names(found["allocated_by"])]
    t.check(callers and callers[-1] == "main", f"{way}: {stack} and {names(found['allocated_by'])}")


for each in ("right", "left", "fill", "aligned", "object", "left_over"):
    check_like_memcheck(each)
t.check_equal("clean: memcheck", memcheck("clean"), [])

guard, path = damages("right")
only = guard["overruns"][0]
t.check_equal("right: behind", only["behind"], {"changed_bytes": 1, "offset": 24, "span_bytes": 1, "hex": "00"})
t.check_equal("right: found", (only["found_at"], names(only["freed_by"])[:3], names(only["allocated_by"])[:3]),
              ("free", ["release", "right", "main"], ["make", "right", "main"]))
screen = t.run_cairn("report", "--view", "overruns", "--summary", path).out.decode()
t.check(re.search(r"1 byte behind a block of 24 B at 0x\w+, found when it was freed\n +offset 24: 00\n +allocated by\n"
                  r" +make +overruns.cc:\d+\n +right .*\n +main .*\n +freed by\n +release ", screen), screen)
t.check("1 block was written past: --view overruns (guard bands of 16 bytes)" in screen, screen)
for most, status in ((0, 1), (1, 0)):
    result = t.run_cairn("check", path, "--max-overruns", str(most))
    t.check_equal(f"check --max-overruns {most}", result.status, status)
result = t.run_cairn("check", "--max-overruns", "0", "--", *t.program("overruns", "right"))
t.check_equal("check of a command", (result.status, b"1 block, more than 0 blocks" in result.out), (1, True))
t.check(b"behind 24 B from make overruns.cc" in t.run_cairn("check", path, "--max-overruns", "0").out, "guilty")

guard, _ = damages("under")
t.check_equal("under: before", guard["overruns"][0]["before"],
              {"changed_bytes": 8, "offset": -8, "span_bytes": 8, "hex": "01" * 8})
guard, _ = damages("grown")
t.check_equal("grown", [(d["found_at"], d["behind"]["offset"], names(d["freed_by"])[0]) for d in guard["overruns"]],
              [("realloc", 130, "grown"), ("free", 50, "release")])
guard, _ = damages("left_over")
t.check_equal("left over: found", guard["overruns"][0]["found_at"], "exit")
t.check(guard["checked_blocks"] >= 1, f"left over: {guard}")
guard, _ = damages("threads")
t.check_equal("threads", (guard["overrun_blocks"], len(guard["overruns"])), (16, 16))
guard, _ = damages("clean")
t.check_equal("clean", (guard["overrun_blocks"], guard["unguarded_blocks"]), (0, 0))
# a wider band sees what is further away
guard, _ = damages("under", "--guard=4K")
t.check_equal("wide: bytes", (guard["band_bytes"], guard["overrun_blocks"]), (4096, 1))

# of two processes, each tells its own
_, path = t.record(t.program("overruns", "in_child"), env={"CAIRN_GUARD": "16"})
t.check(b"overruns " in t.run_cairn("report", "--view", "overruns", path).out, "the run says which process")
found = t.report(path)["processes"]
t.check_equal("fork", sorted(process["guard"]["overrun_blocks"] for process in found), [0, 1])
for process in found:
    for damage in process["guard"]["overruns"]:
        t.check_equal("fork: allocated by", names(damage["allocated_by"])[:2], ["make", "in_child"])
t.check(b"1 block was written past" in t.run_cairn("report", path).out, "the run does not tell of damage")

# on demand: a process that waits is looked at from outside
argv = [t.CAIRN, "run", "-q", "--guard", "-o", "idle.cairn", *t.program("overruns", "asked")]
with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
    tool.stdout.readline()
    for again in ("idle", "idle, again"):
        idle = t.run_cairn("ctl", child_of(tool), "check")
        t.check_equal(f"{again}: status", idle.status, 0)
        t.check(re.match(rb"overruns \d+: \d+ live blocks looked at, 1 found overrun so far: cairn report \d+ "
                         rb"--view overruns\n$", idle.out), f"{again}: {idle.out} {idle.err}")
    tool.communicate()
found = t.report("idle.cairn")["guard"]
t.check_equal("idle: found once, by the tool", [(d["found_at"], d["size"], d["behind"]["offset"], names(d["allocated_by"])[:2])
                                                for d in found["overruns"]], [("asked", 70, 70, ["make", "asked"])])

# one that allocates looks itself
argv = [t.CAIRN, "run", "-q", "--guard", "-o", "asked.cairn", *t.program("overruns", "asked")]
with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
    tool.stdout.readline()
    with t.Process([t.CAIRN, "ctl", child_of(tool), "check"], env=t.environment(),
                          stdout=subprocess.PIPE, text=True) as asking:
        while asking.poll() is None:
            tool.stdin.write("go\n")
            tool.stdin.flush()
            tool.stdout.readline()
            time.sleep(0.02)
        said = asking.stdout.read()
    tool.communicate()
t.check(re.match(r"overruns \d+: \d+ live blocks looked at, 1 found overrun so far: cairn report \d+ --view overruns\n$",
                 said), f"asked: {said}")
found = t.report("asked.cairn")["guard"]["overruns"]
t.check_equal("asked: found", [(d["found_at"], d["size"]) for d in found], [("asked", 70)])
for options, status in ((["--guard=8"], 2), (["--guard=9999"], 2), (["--guard=x"], 2), (["--guard", "--sample"], 2),
                        (["--guard", "--no-stacks"], 2)):
    result = t.run_cairn("run", *options, "true")
    t.check(result.status == status and b"--guard" in result.err, f"{options}: {result.err}")
t.finish()
