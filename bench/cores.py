#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory that `cairn core` and `cairn report CORE` take for a large core dump. Makes one of a program with a
heap of that many MiB (the kernel writes it, or gcore), asks one question after the other, and prints a line each:
seconds, those of the processor, and the most memory resident at once.

    bench/cores.py [MEBIBYTES]      4096 if it is not given; room for the core is needed in the current directory"""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", SOURCE / "build"))
MIB = 1 << 20


def dump(directory, mebibytes):
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    with subprocess.Popen([BUILD / "bench/core_heap", str(mebibytes)], cwd=directory, stdout=subprocess.PIPE) as child:
        line = child.stdout.readline().decode()
        by_kernel = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip() == "core"
        if not by_kernel:
            subprocess.run(["gcore", "-o", f"{directory}/core", str(child.pid)], stdout=subprocess.DEVNULL, check=True)
        child.send_signal(signal.SIGABRT)
    return next(pathlib.Path(directory).glob("core*")), dict(word.split("=") for word in line.split())


def ask(core, *words, command="core"):
    start = time.monotonic()
    with subprocess.Popen([BUILD / "cairn", command, core, *words], stdout=subprocess.PIPE) as child:
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    print(f"{time.monotonic() - start:6.1f} s {usage.ru_utime + usage.ru_stime:6.1f} s of the processor "
          f"{usage.ru_maxrss / 1024:6.0f} MiB  {command} {' '.join(words)}: {out.decode().splitlines()[-1] if out else ''}",
          flush=True)
    return out


def main():
    mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    with tempfile.TemporaryDirectory(dir=".") as directory:
        core, line = dump(os.path.abspath(directory), mebibytes)
        print(f"core of {core.stat().st_size / MIB:.0f} MiB, {int(line['blocks']):,} blocks, {line['lost']} lost")
        ask(core)
        ask(core, "count", "used")
        ask(core, "summarize", "used")
        leaked = ask(core, "count", "leaked")
        used = ask(core, "enumerate", "used", "Leaf").split()
        for verb in (("explain",), ("describe",), ("list", "incoming")):
            ask(core, *verb, used[len(used) // 2].decode())
        ask(core, "explain", "leaked")
        for view in (("heap",), ("pages",), ("heap", "--json")):
            ask(core, "--view", *view, command="report")
        if int(re.match(rb"\d+", leaked)[0]) != int(line["lost"]):
            sys.exit(f"leaked should be {line['lost']}")


main()
