#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime on aarch64, crossed by clang and run by qemu-user, each program writing its recording
itself; this machine's tool reads them. Totals against the counting preload and the programs' own
accounts; stacks against libgcc's unwinder in the program (the check build, every event) and against the
same program's on this machine; signed return addresses; a stack that is guessed; pages of 64 KiB. What differs by program
alone is left to `make check-long`, and so are pages of 16 KiB and the library as it is shipped: it is optimized less here, which
takes a compiler half the time."""

import gzip
import json
import os
import pathlib
import platform
import re
import struct
import subprocess

import cairn_test as t
import ledger
from kept_recordings import fields

SYSROOT = "/usr/aarch64-linux-gnu"
ARM = t.BUILD / ("aarch64" if t.IS_LONG else "aarch64-tested")
OPTIMIZED = () if t.IS_LONG else ("RUNTIME_OPTIMIZED=-O1 -g1",)
PLACE = str(ARM).removeprefix(f"{t.SOURCE}/")  # as the Makefile spells it
BUILT = ["runtime", "check-runtime", *(f"{PLACE}/tests/{name}" for name in (
    "count_preload.so", "programs/frames", "programs/shapes", "programs/containers", "programs/exceptions",
    "programs/signal_handler", "programs/coroutines", "programs/births", "programs/short_threads",
    "programs/blind", "programs/threads", "programs/moved_code", "programs/mappings"))]
HEADER_BYTES, PAGE_BYTES_AT = 16384, 0x170  # docs/reference/format.md
SIGNED = "-mbranch-protection=standard"


def target(name, *arguments):
    return [str(ARM / "tests/programs" / name), *map(str, arguments)]


def emulated(argv, preload=None, env=None, machine=(), **options):
    """Runs an aarch64 program, which sees `env` as well."""
    given = {**(env or {}), **({"LD_PRELOAD": str(preload)} if preload else {})}
    words = [word for name, value in given.items() for word in ("-E", f"{name}={value}")]
    return t.run(["qemu-aarch64", "-L", SYSROOT, *machine, *words, *argv], **options)


def record(argv, env=None, library="libcairn.so", **options):
    path = t.fresh_path("arm") + ".cairn"
    result = emulated(argv, ARM / library, {"CAIRN_OUTPUT": path, **(env or {})}, **options)
    return result, path


def report(path, *arguments):
    return t.report(path, "--sysroot", SYSROOT, *arguments)


def own_names(stack):
    """Functions of the program itself: libc is another build here."""
    return tuple(frame["function"] for frame in stack["frames"]
                 if "/tests/programs/" in (frame["file"] or ""))


def check_totals(*command, machine=()):
    prefix = t.fresh_path("count")
    emulated(target(*command), ARM / "tests/count_preload.so", {"COUNT_PRELOAD_OUT": prefix}, machine)
    counted = list(t.counts.read_all(prefix).values())
    _, path = record(target(*command), machine=machine)
    found = report(path)
    what = " ".join(map(str, (*command, *machine)))
    if found and t.check_equal(f"{what}: counted processes", len(counted), 1):
        t.check_totals(what, found, counted[0], with_peak=len(found["threads"]) == 1)
        t.check_sums(what, found)
        t.check_nothing_lost(what, found)
    return found


def check_against_libgcc(command, machine=()):
    """The check build aborts at the first stack that libgcc sees otherwise."""
    plain = emulated(command, machine=machine)
    for library in ("check/libcairn.so", "libcairn.so"):
        result, path = record(command, {"CAIRN_VERIFY": "1"}, library, machine=machine)
        result.check_like(f"{library}: {os.path.basename(command[0])}", plain)
    return path


def check_like_here(name):
    """The stacks of this machine's recording of the same source."""
    here, there = t.report(t.record_alone(t.program(name))[1]), report(record(target(name))[1])
    if not here or not there:
        return
    sums = []
    for found in (here, there):
        stacks = {}
        for stack in found["stacks"]:
            names = own_names(stack)
            if names[-1:] == ("main",):
                calls, size = stacks.get(names, (0, 0))
                stacks[names] = calls + stack["allocations"], size + stack["allocated_bytes"]
        sums.append(stacks)
    t.check(len(sums[0]) > 2, f"{name}: {len(sums[0])} stacks")
    t.check_equal(f"{name}: stacks", sums[1], sums[0])


def check_signed():
    """Return addresses with signatures, as some distributions build everything."""
    program = os.path.abspath("signed")
    source = t.SOURCE / "tests/programs/frames.c"
    subprocess.run(["clang", "--target=aarch64-linux-gnu", "-fuse-ld=lld", "-D_GNU_SOURCE", "-O1", "-g",
                    "-fno-builtin", SIGNED, "-o", program, source], check=True)
    found = report(check_against_libgcc([program], ["-cpu", "max"]))
    if found:
        chains = {own_names(stack) for stack in found["stacks"]}
        t.check(("with_alloca", "with_aligned_local", "main") in chains, f"signed: {chains}")
        t.check_equal("signed: stacks that are cut", found["trust"]["stacks_incomplete"], {})


def check_guess():
    found = report(record(target("blind"))[1])
    if found:
        stacks = [stack for stack in found["stacks"] if stack["allocated_bytes"] == 505]
        names = t.functions(stacks[0]) if stacks else []
        t.check(names[:2] == ["take_block", "blind"] and "main" in names, f"guessed: {names}")
        t.check_equal("guessed: how", stacks[0]["incomplete"] if stacks else None, "guessed")


def check_account(*command, machine=()):
    account_path = t.fresh_path("ledger")
    pattern = os.path.join(t.fresh_path("many"), "%p.cairn")
    os.mkdir(os.path.dirname(pattern))
    result = emulated(target(*command), ARM / "libcairn.so", {"LEDGER": account_path, "CAIRN_OUTPUT": pattern}, machine)
    t.check_equal(f"{command}: status", result.status, 0)
    found = {one["process"]["pid"]: one for one in
             map(report, sorted(pathlib.Path(os.path.dirname(pattern)).glob("*.cairn"))) if one}
    accounts = ledger.read(account_path)
    for pid, account in accounts.items():
        ledger.check(f"{' '.join(command)}: process {pid}", found.get(pid), account)
    return len(accounts)


# Of the pages of 4 KiB that the rest of this test has. Emulated SVE asks whether memory is there by pages of 4 KiB,
# whatever size the program is told: at the end of the linker's data its libc's memcpy would end by a signal.
WITHOUT_SVE = ["-cpu", "max,sve=off"]
LARGER = (16384, 65536) if t.IS_LONG else (65536,)
PAGES = {size: [*WITHOUT_SVE, "-p", str(size)] for size in (4096, *LARGER)}


def own_sums(found):
    """Of each stack of the program's own functions: calls, bytes, bytes at the peak and at the end."""
    sums = {}
    for stack in found["stacks"]:
        names = own_names(stack)
        values = [stack[key] for key in ("allocations", "allocated_bytes", "peak_bytes", "at_exit_bytes")]
        sums[names] = tuple(map(sum, zip(values, sums.get(names, (0, 0, 0, 0)))))
    return sums


def check_mappings(machine):
    """The program's own list of pages; the map of qemu's process is not one of pages that large."""
    result, path = record(target("mappings", 2000, 7), {"CAIRN_MMAP": "1"}, machine=machine)
    said, found = json.loads(result.out), report(path)["mappings"]
    for place in [name for name in said if name.startswith("place")]:
        stacks = [stack for stack in found["stacks"] if place in t.functions(stack)]
        sums = [sum(stack[key] for stack in stacks) for key in ("at_exit_bytes", "peak_bytes")]
        t.check_equal(f"{place} {machine}", sums, said[place])
    t.check_equal(f"mappings {machine}: peak", found["peak_bytes"], said["highest"])


def check_said(path, size):
    """The page size of a recording, as its header, its information and its exports have it."""
    header = pathlib.Path(path).read_bytes()[:HEADER_BYTES]
    t.check_equal("page size in the header", struct.unpack_from("<I", header, PAGE_BYTES_AT)[0], size)
    lines = t.run_cairn("info", path, "--sysroot", SYSROOT).out.decode().splitlines()
    wanted = ["page", "size", f"{size / 1024:.1f}", "KiB"]
    t.check(wanted in [line.split() for line in lines], f"cairn info: {lines}")
    events = gzip.decompress(t.export(path, "heaptrack", "--sysroot", SYSROOT)).decode().splitlines()
    units = [line.split()[1] for line in events if line.startswith("I ")]
    t.check_equal("page size of an export to heaptrack", units, [f"{size:x}"])
    # field 3 of a profile is a mapping, whose field 2 is its start
    profile = gzip.decompress(t.export(path, "pprof", "--sysroot", SYSROOT))
    starts = [dict(fields(value)).get(2) for number, value in fields(profile) if number == 3]
    t.check(any(starts) and not any(start % size for start in starts if start), f"mappings of pprof: {starts}")


def check_larger_pages():
    """Kernels with larger pages: the same figures and stacks, and the recording says which."""
    for name in ("frames", "shapes", "containers", "exceptions") if t.IS_LONG else ("frames", "containers"):
        found = {size: check_totals(name, machine=machine) for size, machine in PAGES.items()}
        if not all(found.values()):
            continue
        for size in LARGER:
            t.check_equal(f"{name}: stacks with pages of {size}", own_sums(found[size]), own_sums(found[4096]))
    for size in LARGER:
        machine = PAGES[size]
        result, path = record(target("frames"), machine=machine)
        t.check_equal(f"pages of {size}: stderr", result.err, b"")
        check_said(path, size)
        check_mappings(machine)
        for name in ("frames", "exceptions", "coroutines", "signal_handler") if t.IS_LONG else ("signal_handler",):
            check_against_libgcc(target(name), machine)
        check_account("short_threads", "pool", machine=machine)
        t.check_equal(f"pages of {size}: processes of births", check_account("births", "fork", machine=machine), 3)


def check_compiles():
    """The parts of the tool that know processors or system calls, by the headers of this machine."""
    sources = [path for path in sorted((t.SOURCE / "tool").rglob("*.c")) if not path.name.endswith("_x86_64.c") and
               re.search(r"\bSYS_\w|__x86_64__|__aarch64__|registers\.h|code\.h|stopped\.h", path.read_text(encoding="utf-8"))]
    t.check(len(sources) > 10, f"sources: {sources}")
    for start in range(0, len(sources), 8):
        made = t.run(["clang", "--target=aarch64-linux-gnu", "-fsyntax-only", "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-Iinclude",
                      "-idirafter", "/usr/include", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-warning-option",
                      *map(str, sources[start:start + 8])], cwd=t.SOURCE)
        t.check_equal(f"the tool for aarch64: {made.err.decode()[-2000:]}", made.status, 0)


t.need("qemu-aarch64", "clang", "ld.lld", "make")
if platform.machine() != "x86_64" or not os.path.exists(SYSROOT + "/lib/libstdc++.so.6"):
    t.cannot_run_here("not an x86-64 machine with Debian's libraries of aarch64 (dev/deps.sh check)")
made = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "ARCH=aarch64", f"BUILD={ARM}", *OPTIMIZED, *BUILT], cwd=t.SOURCE,
                      env={name: value for name, value in t.environment().items() if not name.startswith("MAKE")},
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
if t.check_equal("make ARCH=aarch64: status", made.returncode, 0):
    promises = t.run([str(t.SOURCE / "dev/check-runtime.sh"), str(ARM / "libcairn.so")])
    t.check_equal("dev/check-runtime.sh", (promises.status, promises.out), (0, b""))
    # `frames` and `containers` are counted beside larger pages, stacks of `frames` are compared where they are signed
    for name in ("frames", "shapes", "containers", "exceptions") if t.IS_LONG else ("shapes",):
        check_totals(name)
    for name in ("frames", "exceptions", "coroutines", "signal_handler", "shapes") if t.IS_LONG else ("exceptions", "coroutines"):
        found = report(check_against_libgcc(target(name)))
        if found:
            t.check_equal(f"{name}: stacks that are cut", found["trust"]["stacks_incomplete"], {})
    for name in ("frames", "shapes") if t.IS_LONG else ("frames",):
        check_like_here(name)
    check_compiles()
    check_signed()
    check_guess()
    moved = emulated(target("moved_code"))
    t.check_equal("moved code", (moved.status, moved.out), (0, b""))
    check_account("short_threads", "pool")
    t.check_equal("processes of births", check_account("births", "fork"), 3)
    check_larger_pages()
else:
    print(made.stdout.decode(errors="replace")[-2000:])
t.finish()
