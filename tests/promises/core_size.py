#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A core of a recorded process grows by what cairn uses plus at most 2 MiB, and contains its header. Where all that
is mapped is dumped (gcore -a), it is 24 MiB more at most, and so much of the process becomes resident by that."""

import os
import subprocess

import cairn_test as t

t.need("gcore")
ALLOWED_BYTES = 2 << 20
ALLOWED_ALL_BYTES = 24 << 20
MAGIC = b"cairn\r\n\x1a"


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def dump_all(name, pid):
    """Dumps all that is mapped; the size of that, and what became resident meanwhile."""
    before = resident_bytes(pid)
    subprocess.run(["gcore", "-a", "-o", name, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False)
    return os.stat(f"{name}.{pid}").st_size, resident_bytes(pid) - before


def core_of(name, env):
    """Size of a core of a program that waits, and how often the magic is in it."""
    with t.Process(t.program("hold"), env=t.environment(env), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        t.check_equal(f"{name}: starts", process.stdout.readline(), b"holding\n")
        done = subprocess.run(["gcore", "-o", name, str(process.pid)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        process.stdin.close()
        process.wait(timeout=t.PATIENCE_S)
    path = f"{name}.{process.pid}"
    if not t.check(os.path.exists(path), f"{name}: {done.stdout.decode()[-300:]}"):
        return 0, 0
    with open(path, "rb") as core:
        data = core.read()
    return len(data), data.count(MAGIC)


plain_bytes, _ = core_of("plain", {})
path = t.fresh_path("held") + ".cairn"
bytes_alone, _ = core_of("alone", {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": path})
found = t.report(path)
if found:
    own = found["trust"]["own_bytes"] + os.stat(path).st_size
    grown = bytes_alone - plain_bytes
    print(f"plain {plain_bytes}, recorded {bytes_alone}, cairn's own {own}")
    t.check(grown <= own + ALLOWED_BYTES, f"a core grew by {grown} bytes, cairn uses {own}")

# Under `cairn run` the recording itself is in the core.
held = t.fresh_path("run") + ".cairn"
with t.Process([t.CAIRN, "run", "-q", "-o", held, "--", *t.program("hold")],
                      env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tool:
    t.check_equal("run: starts", tool.stdout.readline(), b"holding\n")
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(tool.pid)], stdout=subprocess.PIPE,
                            check=False).stdout.split()
    target = int(listed[0])
    subprocess.run(["gcore", "-o", "inside", str(target)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    all_bytes, filled_bytes = dump_all("all", target)
    print(f"all {all_bytes}, resident since {filled_bytes}")
    t.check(all_bytes <= plain_bytes + ALLOWED_ALL_BYTES, f"run, gcore -a: {all_bytes} bytes")
    t.check(filled_bytes <= ALLOWED_ALL_BYTES, f"run, gcore -a: {filled_bytes} bytes became resident")
    tool.stdin.close()
    tool.wait(timeout=t.PATIENCE_S)
with open(f"inside.{target}", "rb") as core:
    inside = core.read()
t.check(MAGIC in inside, "the recording's header is not in the core")
run_report = t.report(held)
if run_report:
    own = run_report["trust"]["own_bytes"] + os.stat(held).st_size
    t.check(len(inside) - plain_bytes <= own + ALLOWED_BYTES,
            f"run: a core grew by {len(inside) - plain_bytes} bytes, cairn uses {own}")
t.finish()
