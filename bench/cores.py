#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory that `cairn core` and `cairn report CORE` take for a large core dump. Makes one of a program with a
heap of that many MiB (the kernel writes it, or gcore), asks one question after the other, and prints a line each:
seconds, those of the processor, and the most memory resident at once. Then the same of a program that was recorded, with
an eighth less of heap: the rest of its core is the map of its blocks. First of all the owners of a million blocks.

    bench/cores.py [MEBIBYTES]      4096 if it is not given; room for the core is needed in the current directory"""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", SOURCE / "build"))
MIB = 1 << 20
MILLION_MEBIBYTES = 124  # of which the program makes a million blocks
TAIL, SHOWN = 1 << 16, 100  # bytes in which an answer's last line is looked for, letters of it that are printed


def dump(directory, mebibytes, is_recorded):
    """The core, and what the program said of its blocks."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    recorder = [BUILD / "cairn", "run", "-q", "-o", "run.cairn", "--"] if is_recorded else []
    argv = [*recorder, BUILD / "bench/core_heap", str(mebibytes)]
    with subprocess.Popen(argv, cwd=directory, stdout=subprocess.PIPE) as child:
        line = child.stdout.readline().decode()
        pid = child.pid
        if is_recorded:
            pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
        by_kernel = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip() == "core"
        if not by_kernel:
            subprocess.run(["gcore", "-o", f"{directory}/core", str(pid)], stdout=subprocess.DEVNULL, check=True)
        os.kill(pid, signal.SIGABRT)
    return next(pathlib.Path(directory).glob("core*")), dict(word.split("=") for word in line.split())


def ask(core, *words, command="core"):
    """The answer as a file. This program stays small: as much as it ever had counts for those that it starts."""
    path = core.parent / "answer"
    start = time.monotonic()
    with open(path, "wb") as answer, subprocess.Popen([BUILD / "cairn", command, core, *words], stdout=answer) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} {' '.join(words)} ended with {child.returncode}")
    print(f"{time.monotonic() - start:6.1f} s {usage.ru_utime + usage.ru_stime:6.1f} s of the processor "
          f"{usage.ru_maxrss / 1024:6.0f} MiB  {command} {' '.join(words)}: {last_line(path)[:SHOWN]}", flush=True)
    return path


def last_line(path):
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line), "")


def middle_line(path):
    with open(path, "rb") as file:
        file.seek(path.stat().st_size // 2)
        file.readline()
        return file.readline().decode().strip()


def ask_all(directory, mebibytes, is_recorded):
    core, line = dump(os.path.abspath(directory), mebibytes, is_recorded)
    print(f"{'recorded: ' if is_recorded else ''}core of {core.stat().st_size / MIB:.0f} MiB, "
          f"{int(line['blocks']):,} blocks, {line['lost']} lost")
    ask(core)
    ask(core, "count", "used")
    ask(core, "summarize", "used")
    leaked = last_line(ask(core, "count", "leaked"))
    leaf = middle_line(ask(core, "enumerate", "used", "Leaf"))
    for verb in (("explain",), ("describe",), ("list", "incoming")):
        ask(core, *verb, leaf)
    ask(core, "explain", "leaked")
    for view in (("heap",), ("pages",), ("heap", "--json"), ("owners",), ("types",), ("waste",)):
        ask(core, "--view", *view, command="report")
    if int(leaked.split()[0]) != int(line["lost"]):
        sys.exit(f"leaked should be {line['lost']}")


def ask_million(directory):
    core, line = dump(os.path.abspath(directory), MILLION_MEBIBYTES, False)
    print(f"core of {core.stat().st_size / MIB:.0f} MiB, {int(line['blocks']):,} blocks")
    ask(core, "--view", "owners", command="report")


def main():
    mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    with tempfile.TemporaryDirectory(dir=".") as directory:
        ask_million(directory)
    for is_recorded in (False, True):
        with tempfile.TemporaryDirectory(dir=".") as directory:
            ask_all(directory, mebibytes * 7 // 8 if is_recorded else mebibytes, is_recorded)


main()
