#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules in other link-map namespaces (dlmopen), whose libc is another one: what they allocate, to the
call and byte as they account for it themselves, under cairn run, the preload alone and cairn attach;
threads that this libc starts; modules that come later; namespaces that go, and that come while attached;
attaching and leaving again and again while threads allocate in two namespaces."""

import os

from attached import Attached, Target
from cairn_test import (IS_LONG, PROGRAMS, PYTHON, cannot_run_here, check, check_equal, finish, record,
                        record_alone, report, run, stacks_through, wait_until)

PROGRAM = PROGRAMS / "elsewhere"
CYCLES = 24 if IS_LONG else 4
# What a namespace does, and what the program does with several.
ONE = ["keep 0 40 100", "copy 0 10 20", "grow 0 300", "work 0 3 200", "load 0 5 77"]
SEVERAL = ["open", *ONE, "open", "keep 1 8 1000", "drop 0", "keep 0 12 64", "work 1 4 300"]


def own(found):
    """Calls, bytes and what is held of the stacks that lead through the library: as it says itself."""
    inside = [stack for stack in found["stacks"]
              if any(os.path.basename(frame["module"] or "") == "libelsewhere.so"
                     for frame in stack["frames"])
              and not any(os.path.basename(frame["module"] or "").startswith("ld-linux")
                          for frame in stack["frames"])]
    return tuple(sum(stack[key] for stack in inside)
                 for key in ("allocations", "allocated_bytes", "at_exit_bytes"))


def numbers(line):
    return tuple(int(word) for word in line.split())


def recorded_from_the_start(what, lines, unknown_frees):
    """`unknown_frees`: of blocks that constructors made before dlmopen or dlopen returned."""
    text = "\n".join([*lines, "end", ""]).encode()
    plain = run([PROGRAM, "0"], stdin=text)
    check_equal(f"{what}: plain", (plain.status, plain.out.splitlines()[-1]), (0, b"sound"))
    for how in (record, record_alone):
        result, path = how([PROGRAM, "0"], stdin=text)
        result.check_like(what, plain)
        found = report(path, "--all-frames")
        if found:
            check_equal(f"{what}: account", own(found), numbers(plain.out.splitlines()[-2].decode()))
            check_equal(f"{what}: lost", found["trust"]["lost"],
                        {"unknown_free": unknown_frees} if unknown_frees else {})
            check_equal(f"{what}: stacks", found["trust"]["stacks_incomplete"], {})


def another_allocator():
    """A namespace whose malloc is not its libc's is left alone, and counted."""
    code = ("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.dlmopen.restype = ctypes.c_void_p\n"
            "libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]\nlibc.dlsym.restype = ctypes.c_void_p\n"
            f"handle = libc.dlmopen(-1, b'{PROGRAMS / 'libowned.so'}', 2)\n"
            "use = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t)(libc.dlsym(handle, b'owned_use'))\n"
            "print('used', use(20))\n")
    result, path = record([PYTHON, "-c", code])
    check_equal("another allocator: end", (result.status, result.out), (0, b"used 0\n"))
    found = report(path)
    check_equal("another allocator: counted", found["trust"]["lost"].get("deepbind"), 1)
    check_equal("another allocator: calls", stacks_through(found, "owned_use"), [])


def difference(after, before):
    return tuple(one - other for one, other in zip(after, before))


def attached_to():
    target = Target(0, path=PROGRAM)
    target.tell("open")
    before = numbers(target.tell("keep 0 20 100"))  # unknown to cairn
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    check("dlmopen" not in attached.first, f"nothing is left: {attached.first}")
    for line in ONE[1:-1]:
        target.tell(line)
    target.tell("drop 0")
    after = numbers(target.tell("keep 0 30 50"))
    found = attached.leave()
    check("other namespaces" not in attached.err, f"nothing is left: {attached.err}")
    calls, size, held = own(found)
    check_equal("attached: calls and bytes", (calls, size), difference(after, before)[:2])
    check_equal("attached: held", held, 30 * 50)
    check_equal("attached: pre-existing blocks that were freed", found["trust"]["earlier_frees"], 20)

    between = numbers(target.tell("keep 0 7 500"))  # not recorded
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    after = numbers(target.tell("keep 0 9 600"))
    found = attached.leave()
    check_equal("again", own(found), difference(after, between))
    target.tell("drop 0")
    target.end("attached")


def calls_through(found, name):
    return sum(stack["allocations"] for stack in stacks_through(found, name))


def wait_until_found(target, which):
    """Modules that come are found several times a second: other calls of theirs are seen by then."""
    before = calls_through(report(str(target.pid)), "elsewhere_copy")

    def is_found():
        target.tell(f"copy {which} 1 5")
        return calls_through(report(str(target.pid)), "elsewhere_copy") > before
    check(wait_until(is_found, pause=0.05), f"namespace {which} is found")


def namespaces_that_come_and_go():
    target = Target(0, path=PROGRAM)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("open")
    wait_until_found(target, 0)
    target.tell("keep 0 10 100")
    target.tell("open")
    wait_until_found(target, 1)
    target.tell("keep 1 10 200")
    target.tell("drop 1")
    target.tell("close 1")
    target.tell("open")  # in its place
    wait_until_found(target, 2)
    target.tell("keep 2 10 300")
    target.tell("close 0")
    found = attached.leave()
    inside = stacks_through(found, "elsewhere_keep")
    check_equal("that come: calls, bytes, held",
                [sum(stack[key] for stack in inside)
                 for key in ("allocations", "allocated_bytes", "at_exit_bytes")],
                [30, 10 * (100 + 200 + 300), 10 * (100 + 300)])
    target.tell("keep 2 5 10")
    target.tell("drop 2")
    target.tell("close 2")
    target.end("that come")


def again_and_again():
    target = Target(6, path=PROGRAM)
    target.tell("open")
    for turn in range(CYCLES):
        attached = Attached(target.pid, *(["--exact"] if turn % 2 else []))
        target.tell("keep 1 20 100")
        target.tell("drop 1")
        found = attached.leave()
        if turn % 2 and found:
            calls = [stack["allocations"] for stack in stacks_through(found, "obey")]
            check_equal(f"cycle {turn}: calls of the first thread", sum(calls), 20)
    target.end("again and again")


def under_run_with_threads():
    text = "\n".join(["open", "keep 1 100 50", "drop 1", "close 1"] * 20 + ["end", ""])
    text = text.replace("open\nkeep 1", "open\nkeep @")
    lines, which = [], 0
    for line in text.split("\n"):
        which += line == "open"
        lines.append(line.replace("@", str(which)).replace("drop 1", f"drop {which}")
                     .replace("close 1", f"close {which}"))
    result, path = record([PROGRAM, "6"], stdin="\n".join(lines).encode())
    check_equal("with threads: end", (result.status, result.out.splitlines()[-1]), (0, b"sound"))
    found = report(path)
    check_equal("with threads: held", own(found)[2], 0)
    check_equal("with threads: lost", found["trust"]["lost"], {})


if os.uname().machine != "x86_64":
    cannot_run_here("other namespaces are recorded on x86-64")
recorded_from_the_start("one", ["open", *ONE[:-1]], 0)
recorded_from_the_start("several", SEVERAL, 1)
recorded_from_the_start("closed", [*SEVERAL, "drop 0", "close 0", "open", "keep 2 10 10", "close 1"], 1)
under_run_with_threads()
another_allocator()
attached_to()
namespaces_that_come_and_go()
again_and_again()
finish()
