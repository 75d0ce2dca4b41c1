#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the process do not become its death: small address space, small files, few descriptors, no
locked memory, a full disk for the recording. A program that limits its own address space has as much memory as without
cairn, and is recorded whole. `make check-long` has more limits between."""

import os
import pathlib
import re
import resource
import shutil
import subprocess

import cairn_test as t
import ledger

KIB, MIB = 1 << 10, 1 << 20


def with_limit(name, kind, value, how):
    argv = t.program("leak")
    path = t.fresh_path("limited") + ".cairn"
    if how == "run":
        command, env = [t.CAIRN, "run", "-q", "-o", path, "--", *argv], {}
    else:
        command, env = argv, {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": path}

    def lower():
        resource.setrlimit(kind, (value, value))

    # Under `run` only the program is limited, not the tool: a shell lowers it between the two.
    if how == "run":
        option = {resource.RLIMIT_AS: "-v", resource.RLIMIT_FSIZE: "-f",
                  resource.RLIMIT_NOFILE: "-n", resource.RLIMIT_MEMLOCK: "-l"}[kind]
        amount = {resource.RLIMIT_AS: value // KIB, resource.RLIMIT_FSIZE: value // 512,
                  resource.RLIMIT_NOFILE: value, resource.RLIMIT_MEMLOCK: value // KIB}[kind]
        shell = f"ulimit {option} {amount}; exec {argv[0]}"
        command = [t.CAIRN, "run", "-q", "-o", path, "--", "sh", "-c", shell]
        lower = None
    done = subprocess.run(command, env=t.environment(env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=lower, timeout=t.PATIENCE_S, check=False)
    t.check_equal(f"{name} ({how})", (done.returncode, done.stdout), (3, b""))


def told_limit():
    """Limited with the tool: the program goes on, and the one line says why nothing is recorded."""
    result = t.run(["sh", "-c", f"ulimit -v {100 * KIB}; exec {t.CAIRN} run -o none.cairn {t.program('leak')[0]}"])
    t.check_equal("100 MiB with the tool", (result.status, result.out), (3, b""))
    t.check(b"nothing was recorded: cairn needs" in result.err and b"ulimit -v" in result.err, f"100 MiB: {result.err}")


def with_the_tool():
    """Stacks and descriptors limited with the tool: where it can do without, or as root, all is recorded; else the
    program runs, and one line says that nothing is."""
    argv = t.program("leak")[0]
    may_raise = t.run(["sh", "-c", "ulimit -n 8; ulimit -n 64"]).status == 0
    poor = ["setpriv", "--bounding-set=-sys_resource"] if may_raise else []
    for number, (before, limit, is_recorded) in enumerate((
            ([], "-s 128", True), (poor, "-s 64", True), ([], "-n 8", may_raise), (poor, "-n 8", False), (poor, "-n 4", False))):
        path = t.fresh_path(f"with{number}") + ".cairn"
        result = t.run([*before, "sh", "-c", f"ulimit {limit}; exec {t.CAIRN} run -o {path} {argv}"])
        t.check_equal(f"{limit} with the tool", (result.status, result.out), (3, b""))
        t.check_equal(f"{limit}: recorded", os.path.exists(path), is_recorded)
        says = re.search(rb"leak runs, and nothing is recorded: .*Too many open files", result.err)
        t.check(bool(says) != is_recorded, f"{limit}: {result.err}")
    static_with_the_tool(poor)


def static_with_the_tool(poor):
    """A static program takes the tool more of them. With any number it runs, and is recorded or the line says why not."""
    with open("static.c", "w", encoding="ascii") as source:
        source.write("#include <stdlib.h>\nint main(void) { void *volatile block = malloc(100); return block ? 3 : 4; }\n")
    if t.run(["gcc", "-static", "-o", "static", "static.c"]).status:
        return t.skip_part("static programs cannot be built here")
    for limit in range(8, 18):
        path = t.fresh_path("static") + ".cairn"
        result = t.run([*poor, "sh", "-c", f"ulimit -n {limit}; exec {t.CAIRN} run -o {path} ./static"])
        t.check_equal(f"static, {limit} descriptors: status", result.status, 3, is_grave=True)
        says = b"runs, and nothing is recorded: Too many open files" in result.err
        t.check(says != os.path.exists(path), f"static, {limit} descriptors: {result.err}")
    return t.check(os.path.exists(path), "static, 17 descriptors: recorded")


def own_limit(mebibytes):
    """Set by the program itself, when the recording's address space is there already; then memory that
    was given back is the program's, also in a forked child."""
    argv = t.program("limited", mebibytes)
    plain = t.run(argv)
    name = f"{mebibytes} MiB by the program"
    t.check(b"child: 0" in plain.out, f"{name}: plain: {plain.out}")
    for options in ((), ("--sample",)):
        result, _ = t.record(argv, options=options)
        result.check_like(f"{name} {options}", plain)
    result, path = t.record_alone(argv)
    result.check_like(f"{name}, preload alone", plain)
    found = t.report(path)
    # a forked child has a recording beside what it inherited, or is named
    lost = found["trust"]["lost"] if found else None
    t.check(lost == {} or (mebibytes < 100 and lost == {"processes": 1}), f"{name}: lost {lost}")
    t.check(found and found["totals"]["allocations"] >= 40000, f"{name}: {found and found['totals']}")


def own_small_limit(how, kind, mebibytes, options=()):
    """A process that is limited before it allocates, by every way that there is: each call that succeeds without cairn
    does so with it. From 30 MiB of address space and 16 MiB of data on it is recorded if the limit was seen coming;
    otherwise somebody says that it was not, but where 64 MiB of data are enough for it."""
    argv = t.program("limited_child", how, kind, mebibytes)
    name = f"{how}, {mebibytes} MiB of {kind} {options}"
    plain = t.run(argv)
    t.check_equal(f"{name}: plain", (plain.status, plain.out), (3, b"0 failed\n"))
    result, path = t.record(argv, options=options)
    result.check_like(name, plain)
    is_small = mebibytes < (30 if kind == "space" else 16)
    t.check(os.path.exists(path), f"{name}: nothing was recorded")
    shown = t.run_cairn("report", path).out
    is_unseen = how in ("raw", "outside") and (kind, mebibytes) != ("data", 64)
    is_whole = not is_small and not is_unseen and how != "exec" or how == "vfork"
    if how != "exec":
        t.check((b"unrecorded" in shown) == (not is_whole), f"{name}: {shown}")
    if is_whole:
        calls = [t.report(one)["totals"]["allocations"] for one in ledger.files(path)]
        t.check(max(calls) > 16000, f"{name}: {calls} calls recorded")


def limits_of_children():
    hows = ["fork", "clone", "grandchild", "call", "raw", "outside", "exec", "self", "self-raw", "vfork"]
    for number, how in enumerate(hows):
        options = [(), ("--sample",), ("--no-stacks",), ("--events",)][number % 4]
        for kind, mebibytes in ("space", 20), ("space", 200), ("data", 4), ("data", 64):
            own_small_limit(how, kind, mebibytes, options)
    own_small_limit("threads", "space", 1500)
    own_small_limit("threads", "data", 100)
    said = t.run_cairn("run", "-o", "said.cairn", *t.program("limited_child", "fork", "data", 4))
    t.check(b"was not recorded: a memory limit" in said.err, f"limited child: {said.err}")
    for mebibytes in 100, 250:  # the shell's own recording is no word about what it becomes
        shell = f"ulimit -v {mebibytes * KIB}; exec {t.program('leak')[0]}"
        said = t.run_cairn("run", "-o", f"becomes-{mebibytes}.cairn", "sh", "-c", shell)
        t.check(b"leak was not recorded: a memory limit" in said.err, f"exec with {mebibytes} MiB: {said.err}")
    alone, _ = t.record_alone(t.program("limited_child", "fork", "data", 4))
    t.check_equal("limited child, alone", (alone.status, alone.out), (3, b"0 failed\n"))


def limited_tool():
    """Files limited with the tool, too: root's tool raises that for itself; others say that they cannot, and leave the
    program alone, whether they start it or attach to it."""
    command = ["sh", "-c", "ulimit -f"]
    can_raise = t.run(["sh", "-c", "ulimit -f 10; ulimit -f unlimited"]).status == 0
    for kibibytes in (0, 8, 5000, 30000, 4000000):
        path = t.fresh_path("limited") + ".cairn"
        shell = ["sh", "-c", f"ulimit -f {2 * kibibytes}; exec \"$@\"", "sh"]
        plain = t.run([*shell, *command])
        result = t.run([*shell, t.CAIRN, "run", "-q", "-o", path, *command])
        told = result.err
        result.err = b"" if told.startswith(b"cairn: nothing was recorded: files may become") else told
        result.check_like(f"{kibibytes} KiB with the tool", plain)
        if can_raise or kibibytes > 20 * KIB:
            t.check(t.report(path), f"{kibibytes} KiB with the tool: nothing recorded")
        else:
            said = t.run([*shell, t.CAIRN, "run", "-o", t.fresh_path("limited") + ".cairn", *command])
            t.check(b"ulimit -f" in said.err, f"{kibibytes} KiB with the tool: {said.err}")
    if os.getuid() != 0:
        return t.skip_part("another user's limits need root")
    place = pathlib.Path("tool").resolve()
    place.mkdir()
    for name in ("cairn", "libcairn.so", "libcairn-cxx.so"):
        shutil.copy(t.BUILD / name, place)
    pathlib.Path(".").resolve().chmod(0o777)
    become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    shell = [*become, "sh", "-c", "ulimit -f 10000; exec \"$@\"", "sh", str(place / "cairn")]
    result = t.run([*shell, "run", "-o", "other.cairn", "sh", "-c", "echo alive; exit 6"])
    t.check_equal("another user: end", (result.status, result.out), (6, b"alive\n"))
    t.check(b"ulimit -f" in result.err and b"Bus error" not in result.err, f"another user: {result.err}")
    with t.Process([*become, "sleep", "60"]) as process:
        t.wait_until(lambda: t.is_called(process.pid, "sleep"))
        result = t.run([*shell, "attach", str(process.pid), "-o", "attached.cairn", "--record-for", "10ms"])
        t.check_equal("another user, attach: status", result.status, 1)
        t.check(result.err.count(b"\n") == 1 and b"ulimit -f" in result.err, f"another user, attach: {result.err}")
        t.check(process.poll() is None and not os.path.exists("attached.cairn"), "another user, attach: it left traces")
        process.kill()


told_limit()
with_the_tool()
limits_of_children()
limited_tool()
for own_mebibytes in (30, 40, 50, 64, 100, 150, 300, 2000) if t.IS_LONG else (30, 50, 100, 2000):
    own_limit(own_mebibytes)
for how in ("run", "alone"):
    for mebibytes in (8, 16, 48, 100, 200, 300, 1000) if t.IS_LONG else (8, 48, 200, 1000):
        with_limit(f"{mebibytes} MiB of address space", resource.RLIMIT_AS, mebibytes * MIB, how)
    for kibibytes in (0, 4, 64, 1024):
        with_limit(f"files of {kibibytes} KiB", resource.RLIMIT_FSIZE, kibibytes * KIB, how)
    with_limit("4 descriptors", resource.RLIMIT_NOFILE, 4, how)
    with_limit("no locked memory", resource.RLIMIT_MEMLOCK, 0, how)


def few_descriptors():
    """One is left, for the question to the tool, and none for the answer: the program makes a file of its own."""
    app, path = t.program("leak")[0], t.fresh_path("few") + ".cairn"
    result = t.run_cairn("run", "-q", "-o", path, "--", "sh", "-c", f"ulimit -n 4; {app}; exit 4")
    t.check_equal("one descriptor: end", (result.status, result.err), (4, b""))
    found = [one for file in ledger.files(path) if (one := t.report(file))]
    commands = [one["process"]["command"] for one in found]
    t.check(app in commands and not any(one["trust"]["lost"] for one in found), f"one descriptor: {commands}", is_grave=True)


few_descriptors()


def full_disk(size):
    """A file system of so many bytes for the recording of a program that makes 20,000 allocations: the file
    counts them, says that it lost some, or says that there was no room; it never passes for exact and empty."""
    place = t.fresh_path("disk")
    os.mkdir(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        print("left out: full disks, since no file system can be mounted here")
        return False
    argv, path = t.program("limited", 4096), f"{place}/full.cairn"
    try:
        for command, env in (([t.CAIRN, "run", "--exec", "-o", path, "--", *argv], None),
                             (argv, {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": path})):
            result = t.run(command, env=env)
            t.check_equal(f"disk of {size} bytes: status", result.status, 3)
            if not os.path.exists(path):
                continue
            found = t.report(path)
            shown = t.run_cairn("report", path).out.decode()
            is_whole = found["trust"]["exact"]
            t.check(found["totals"]["allocations"] > 20000 or not is_whole, f"disk of {size}: {shown}")
            t.check(is_whole or "not exact" in shown, f"disk of {size}: {shown}")
            if found["totals"]["allocations"] == 0:
                t.check("without room" in shown, f"disk of {size}: {shown}")
                t.check(os.path.getsize(path) < MIB, f"disk of {size}: {os.path.getsize(path)} bytes")
            for left in os.listdir(place):
                os.unlink(f"{place}/{left}")
    finally:
        subprocess.run(["umount", "-l", place], check=True)
    return True


for disk_bytes in (4 * KIB, 24 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB) if t.IS_LONG else (4 * KIB, 64 * KIB, 256 * KIB):
    if not full_disk(disk_bytes):
        break
for full in ("/dev/full", "/no/such/directory/x.cairn", "/proc/x.cairn"):
    result = t.run(t.program("leak"), env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": full})
    t.check_equal(f"recording to {full}", (result.status, result.out), (3, b""))
t.finish()
