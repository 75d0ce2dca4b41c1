#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Core dumps of gcore and of the kernel: every live block with size and stack, from the core alone, as many as
the program itself counts; damaged, foreign and unrecorded ones are refused by name."""

import os
import pathlib
import re
import resource
import subprocess

import cairn_test as t
import ledger

t.need("gcore")
COUNT = re.compile(rb"(\d+) allocations use 0x([0-9a-f]+) \(([\d,]+)\) bytes\.\n$")
HELD_BLOCKS, HELD_BYTES = 20000, 500
SNAPSHOTS = 5


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def gcore(name, pid):
    done = subprocess.run(["gcore", "-o", name, str(pid)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    path = f"{name}.{pid}"
    t.check(os.path.exists(path), f"{name}: {done.stdout.decode()[-300:]}")
    return path


def ask(core, *words, status=0):
    result = t.run_cairn("core", core, *words)
    t.check_equal(f"core {' '.join(words)}: status", result.status, status)
    return result.err if status else result.out


def count_of(core, *options):
    found = COUNT.search(ask(core, "count", "used", *options))
    return (int(found[1]), int(found[2], 16)) if t.check(found, f"{core}: no count") else (0, 0)


def hold(env, run, *options):
    """A core of a program that holds known blocks; returns its path."""
    argv = [*run, *t.program("hold")]
    with t.Process(argv, env=t.environment(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        t.check_equal("hold: starts", child.stdout.readline(), b"holding\n")
        core = gcore("held", child_of(child.pid) if run else child.pid)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)
    t.check_equal("held", count_of(core, *options), (HELD_BLOCKS, HELD_BLOCKS * HELD_BYTES))
    return core


def check_answers(core):
    lines = ask(core, "list", "used").split(b"\n")
    t.check_equal("list: blocks", sum(line.endswith(b" of size 1f4") for line in lines), HELD_BLOCKS)
    first = re.fullmatch(rb"Used allocation at ([0-9a-f]+) of size 1f4", lines[0])
    if not t.check(first, f"list: {lines[0]}"):
        return
    inside = f"{int(first[1], 16) + 16:x}"
    about = ask(core, "describe", inside)
    t.check(about.startswith(b"Address %s is at offset 10 of\nan anchored allocation at %s of size 1f4\n"
                             % (inside.encode(), first[1])), f"describe: {about[:200]}")
    t.check(b"main" in about and b"hold.c" in about and b"hhhhhhhh" in about, f"describe: {about}")
    for words, wanted in ((("summarize",), b"100 %  hold\n"), (("summarize", "hold"), b"100 %  main\n"),
                          (("summarize", "hold", "main"), b"  hold.c:15\n")):
        t.check(wanted in ask(core, *words), f"{words}: no {wanted}")
    found = t.report(core)
    if found:
        t.check_equal("report", sum(s["at_exit_bytes"] for s in found["stacks"]), HELD_BLOCKS * HELD_BYTES)
    screen = t.run_cairn("report", core).out
    t.check(core.encode() in screen and b"/proc/" not in screen, f"report: {screen[-300:]}")


def check_refusals(core):
    for words, status, wanted in (
            (("describe", "10"), 1, b"in no block"), (("summarize", "libnone.so"), 1, b"no block is of"),
            (("list", "blocks"), 2, b"'list used' is what can be asked for"), (("describe", "xyz"), 2, b"hexadecimal"),
            (("shrink",), 2, b"none of"), (("list", "incoming"), 2, b"wants an address"),
            (("list", "used", "-", "more"), 2, b"too much"), (("explain",), 2, b"one address")):
        said = ask(core, *words, status=status)
        t.check(wanted in said, f"{words}: {said}")
    pathlib.Path("text").write_text("no core\n", encoding="ascii")
    data = pathlib.Path(core).read_bytes()
    pathlib.Path("class32").write_bytes(data[:4] + b"\1" + data[5:])
    for name, wanted in (("text", b"not a core dump"), (t.CAIRN, b"not a core dump"),
                         ("class32", b"64-bit"), ("missing", b"No such file")):
        said = ask(name, "count", "used", status=1)
        t.check(wanted in said, f"{name}: {said}")
    for size in (70, 5000, len(data) // 3, len(data) - 100000):
        pathlib.Path("cut").write_bytes(data[:size])
        for command in (["core", "cut"], ["report", "cut"]):
            result = t.run_cairn(*command)
            t.check(result.status in (0, 1), f"cut to {size}: {result.status} {result.err}")


def addresses(core, which):
    """{address: size} of the blocks that `list used` or `list free` tells of."""
    found = re.findall(rb"allocation at ([0-9a-f]+) of size ([0-9a-f]+)\n", ask(core, "list", which))
    return {int(address, 16): int(size, 16) for address, size in found}


def check_unrecorded():
    """Of a process that was not recorded: glibc's chunks, as many in use and free as the program left."""
    with t.Process(t.program("heap_shapes"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        wanted = {name: int(value) for name, value in
                  (word.split("=") for word in child.stdout.readline().decode().split())}
        core = gcore("plain", child.pid)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)
    used, free = addresses(core, "used"), addresses(core, "free")
    t.check(not set(used) & set(free), "unrecorded: blocks that are in use and free")
    size = wanted["size"]
    t.check_equal("unrecorded: blocks in use", sum(size <= got < size + 16 for got in used.values()), wanted["used"])
    t.check_equal("unrecorded: blocks with a mapping", sum(got >= wanted["large"] for got in used.values()),
                  wanted["mapped"])
    t.check_equal("unrecorded: free blocks", sum(size <= got < size + 16 for got in free.values()), wanted["free"])
    overview = ask(core)
    t.check(b"free, at the end of %d arenas" % wanted["arenas"] in overview, f"unrecorded: {overview}")
    said = ask(core, "describe", "10", status=1)
    t.check(b"in no block" in said, f"unrecorded: {said}")
    said = ask(core, "summarize", "heap_shapes", status=1)
    t.check(b"not recorded" in said, f"unrecorded: {said}")


def check_busy():
    """Stopped at any moment: nearly all of what the ledger knows, nothing that it does not."""
    account = t.fresh_path("account")
    with t.Process([t.CAIRN, "run", "-q", "-o", "busy.cairn", "--", *t.program("doomed", "loop", 2)],
                          env=t.environment({"LEDGER": account})) as child:
        t.check(t.wait_until(lambda: ledger.at_work(account, 50000)), "busy: the program does not begin")
        for number in range(SNAPSHOTS):
            core = gcore(f"busy{number}", child_of(child.pid))
            overview = ask(core)
            t.check(b"allocations use" in overview, f"busy: {overview}")
            blocks, size = count_of(core)
            found = t.report(core)
            held = sum(s["at_exit_blocks"] for s in found["stacks"]) if found else 0
            t.check(abs(blocks - held) <= 3 and size > 0, f"busy: {blocks} blocks, counted {held}")
            both = set(addresses(core, "used")) & set(addresses(core, "free"))
            t.check(len(both) <= 3, f"busy: {len(both)} blocks are in use, and free in glibc's own lists")
        subprocess.run(["pkill", "-KILL", "-P", str(child.pid)], check=False)
        child.wait(timeout=t.PATIENCE_S)


def check_kernel():
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    uses_pid = pathlib.Path("/proc/sys/kernel/core_uses_pid").read_text(encoding="ascii").strip()
    if pattern != "core" or uses_pid != "0":
        t.skip_part(f"the kernel's own core, since it goes to {pattern}")
        return
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    result, path, accounts = ledger.recorded(t.program("doomed", "abrt"))
    t.check_equal("kernel: status", result.status, 134)
    if not os.path.exists("core"):
        t.skip_part("the kernel's own core, since it wrote none here")
        return
    found = t.report(path)
    one = next(iter(accounts.values()))
    t.check_equal("kernel: blocks", count_of("core"),
                  (one.allocations - one.frees, one.allocated_bytes - one.freed_bytes))
    if found:
        inside = t.report("core")
        t.check_equal("kernel: stacks", sorted((s["at_exit_bytes"], s["allocations"]) for s in inside["stacks"]),
                      sorted((s["at_exit_bytes"], s["allocations"]) for s in found["stacks"]))


held = hold({}, [t.CAIRN, "run", "-q", "-o", "run.cairn", "--"])
check_answers(held)
check_refusals(held)
hold({"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": os.path.abspath("alone.cairn")}, [],
     "--recording", "alone.cairn")
check_unrecorded()
check_busy()
check_kernel()
t.finish()
