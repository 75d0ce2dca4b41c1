#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that locks its memory (mlockall) gets the answer that it gets without cairn, under the same
RLIMIT_MEMLOCK too; as much is locked, before and afterwards; and no more memory comes to be than what cairn uses. In
a control group of memory, so that it takes no more from the machine if it fails."""

import os
import re
import subprocess

import cairn_test as t
from attached import Attached
from memory_cgroup import Cgroup

CURRENT, FUTURE, ONFAULT, NO_SUCH, NONE = 1, 2, 4, 8, 0
CANNOT_LIMIT = 4
CGROUP_MIB = 512
MOST_MORE_KIB, MOST_LOCKED_KIB, NEAR_KIB = 64 << 10, 64, 512


def numbers(result):
    found = re.search(rb"resident (\d+) locked (-?\d+) size (\d+)", result.err)
    return [int(number) for number in found.groups()] if found else [0, 0, 0]


def check(name, got, plain):
    """As without cairn; what is said on stderr is compared with a margin for what cairn uses."""
    t.check_equal(f"{name}: status", got.status, plain.status, is_grave=True)
    t.check_equal(f"{name}: output", got.out, plain.out, is_grave=True)
    (resident, locked, _), (plain_resident, plain_locked, _) = numbers(got), numbers(plain)
    t.check(plain_resident <= resident <= plain_resident + MOST_MORE_KIB,
            f"{name}: resident {resident} KiB, {plain_resident} without cairn", is_grave=True)
    t.check(abs(locked - plain_locked) <= MOST_LOCKED_KIB,
            f"{name}: locked {locked} KiB, {plain_locked} without cairn", is_grave=True)


def try_all(cgroup, how, flags, limit_kib=0, ways=("run",)):
    argv = cgroup.within(*t.program("locked", how, ",".join(map(str, flags)), str(limit_kib)))
    plain = t.run(argv)
    if limit_kib and plain.status == CANNOT_LIMIT:
        t.skip_part("RLIMIT_MEMLOCK cannot be raised to what the program needs")
        return plain
    t.check_equal(f"{how} {flags} {limit_kib}: plain", plain.status, 3)
    for way in ways:
        if way == "alone":
            got, path = t.record_alone(argv)
        else:
            got, path = t.record(argv, options=[] if way == "run" else [way])
        name = f"{how} {flags} {limit_kib} {way}"
        check(name, got, plain)
        one = t.report(path) if len(ways) > 1 else None
        t.check(len(ways) == 1 or one and (one["trust"]["exact"] or way == "--sample") and not one["trust"]["lost"],
                f"{name}: {one and one['trust']}")
    return plain


def filtered(cgroup, flags):
    """Under seccomp cairn cannot tell mappings apart: memory is locked as it is touched, and no more comes to be."""
    argv = cgroup.within(*t.program("locked", "libc-filtered", str(flags), "0"))
    plain, (got, _) = t.run(argv), t.record(argv)
    t.check_equal(f"filtered {flags}: status", (plain.status, got.status), (3, 3), is_grave=True)
    t.check_equal(f"filtered {flags}: answer", got.out.splitlines()[:1], plain.out.splitlines()[:1], is_grave=True)
    more = numbers(got)[0] - numbers(plain)[0]
    t.check(more <= MOST_MORE_KIB, f"filtered {flags}: {more} KiB more are resident", is_grave=True)


def limited(cgroup, flags, kib, answer):
    plain = try_all(cgroup, "libc", flags, kib)
    t.check(plain.status == CANNOT_LIMIT or answer in plain.out, f"{flags}, {kib} KiB: {plain.out}")


def attached(cgroup, flags):
    """A program that locks its memory once cairn records it, and goes on after cairn has left."""
    plain, got = None, None
    for is_attached in (False, True):
        program = cgroup.start(*t.program("locked", "libc-told", ",".join(map(str, flags)), "0"), stderr=subprocess.PIPE)
        t.check_equal("ready", program.stdout.readline(), "ready\n")
        recording = Attached(program.pid, "--exact") if is_attached else None
        out, err = program.communicate("\n", timeout=t.PATIENCE_S)
        plain, got = got, t.Result(program.returncode, out.encode(), err.encode())
        if recording:
            found = recording.leave(lambda: None)
            t.check(found and found["trust"]["exact"], f"attached {flags}: {found and found['trust']}")
    check(f"attached {flags}", got, plain)


with Cgroup("locked", CGROUP_MIB) as group:
    if not group.path:
        t.cannot_run_here(group.reason)
    size_kib = numbers(try_all(group, "libc", [CURRENT], ways=("run", "--sample", "alone")))[2]
    for several in ([CURRENT | FUTURE, NONE], [FUTURE, CURRENT], [CURRENT | FUTURE | ONFAULT], [FUTURE | ONFAULT, NO_SUCH]):
        try_all(group, "libc", several)
    try_all(group, "number-child", [CURRENT | FUTURE])
    filtered(group, CURRENT | FUTURE)
    limited(group, [CURRENT | FUTURE], size_kib + NEAR_KIB, b": 0, ")
    limited(group, [CURRENT], size_kib - NEAR_KIB, b": -1, Cannot allocate")
    if os.uname().machine == "x86_64":  # where cairn attach is tried
        attached(group, [CURRENT | FUTURE])
t.finish()
