#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recording without the tool: the preload alone, `cairn env` and `cairn run --exec`."""

import os
import pathlib
import re

import cairn_test as t

LEAK = t.program("leak")


def scratch(name):
    directory = pathlib.Path(t.fresh_path(name))
    directory.mkdir()
    return directory


def check_recording(what, path):
    found = t.report(path)
    if found:
        t.check_equal(f"{what}: allocations", found["totals"]["allocations"], 6513)
        t.check_equal(f"{what}: at exit", found["at_exit"]["bytes"], 162400)
        t.check_nothing_lost(what, found)


def only_file(directory):
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    t.check_equal(f"{directory.name}: files", len(files), 1)
    return files[0] if files else None


def check_default_name():
    place = scratch("default")
    result = t.run(LEAK, env={"LD_PRELOAD": t.RUNTIME}, cwd=place)
    t.check_equal("alone: status and streams", (result.status, result.out, result.err), (3, b"", b""))
    path = only_file(place)
    t.check(path and re.fullmatch(r"leak\.\d+\.cairn", path.name), f"alone: {path}")
    t.check(path and os.stat(path).st_mode & 0o777 == 0o600, "alone: mode of the file")
    if path:
        check_recording("alone", path)


def check_same_name():
    """In containers every program is PID 1: the second recording gets another name."""
    place = scratch("same")
    for _ in range(3):
        t.run(LEAK, env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": str(place / "x.cairn")})
    files = sorted(path.name for path in place.iterdir())
    t.check_equal("same name: files", len(files), 3)
    for name in files:
        check_recording(f"same name: {name}", place / name)


def check_pid_in_name():
    place = scratch("pid")
    t.run(LEAK, env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": str(place / "at-%p.cairn")})
    path = only_file(place)
    t.check(path and re.fullmatch(r"at-\d+\.cairn", path.name), f"%p: {path}")


def check_env_command():
    place = scratch("env")
    lines = t.run_cairn("env", "-o", str(place / "x.cairn"))
    t.check_equal("env: status", lines.status, 0)
    script = lines.out.decode() + f"\n'{LEAK[0]}'\n"
    t.check_equal("env: program", t.run(["sh", "-c", script]).status, 3)
    files = [path for path in place.rglob("*.cairn") if path.is_file()]
    commands = [t.report(path)["process"]["command"] for path in files]
    t.check(any(command.endswith("leak") for command in commands), f"env: recorded {commands}")


def check_exec():
    place = scratch("exec")
    shell = f"echo $$; exec '{t.CAIRN}' run --exec -o '{place}/x.cairn' sh -c 'echo $$; exit 4'"
    result = t.run(["sh", "-c", shell])
    t.check_equal("--exec: status", result.status, 4)
    pids = result.out.split()
    t.check(len(pids) == 2 and pids[0] == pids[1], f"--exec: another process: {result.out!r}")
    path = only_file(place)
    if path:
        found = t.report(path)
        t.check_equal("--exec: pid", found and found["process"]["pid"], int(pids[0]))


check_default_name()
check_same_name()
check_pid_in_name()
check_env_command()
check_exec()
t.finish()
