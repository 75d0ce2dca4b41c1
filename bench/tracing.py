#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tracers cost the program that they trace: processor time of a malloc and its free at 20 frames (the
table of docs/explain/tracing.md), medians over the rounds. As root, since probes are the kernel's; needs perf, and for
its row bpftrace. Each row is checked to have seen every event.

    make all bench-programs && sudo bench/tracing.py [--rounds 3] [--pairs 50000]
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import machine
from variants import BUILD

RUNTIME, PROGRAM = str(BUILD / "libcairn.so"), str(BUILD / "bench/pairs")
LIBC = f"cairn_bench_{os.getpid()}"  # perf's names of probes: a group of our own, but for USDT
USDT = "sdt_cairn"
CAIRN = {"LD_PRELOAD": RUNTIME, "CAIRN_OUTPUT": "traced.cairn"}


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=True, **more)


def program(pairs, variables):
    """The command, with the library for it alone, not for the tracer."""
    return ["env", *(f"{name}={value}" for name, value in variables.items()), PROGRAM, "one", "20", "1", str(pairs)]


def processor_ns(said):
    """Of a pair, and how many there were."""
    words = said.split()
    return float(words[3]), int(words[4])


def libc():
    found = run("ldd", PROGRAM).stdout
    return os.path.realpath(re.search(r"libc\.so\S* => (\S+)", found)[1])


@contextlib.contextmanager
def probes(file, group, *definitions):
    made = []
    try:
        for definition in definitions:
            run("perf", "probe", "-q", "-x", file, "--add", f"{group}:{definition}")
            made.append(definition.split("=")[0])
        yield
    finally:
        for name in made:
            subprocess.run(["perf", "probe", "-q", "-d", f"{group}:{name}*"], capture_output=True, check=False)


def alone(pairs, variables):
    return processor_ns(run(*program(pairs, variables)).stdout)[0]


def with_perf(group, pairs, variables, *options):
    result = run("perf", "record", "-o", "perf.data", "-m", "8M", "-e", f"{group}:*", *options, "--",
                 *program(pairs, variables))
    ns, count = processor_ns(result.stdout)
    counted = re.search(r"\((\d+) samples\)", result.stderr)
    lost = sum(map(int, re.findall(r"lost (\d+)", result.stderr)))
    if not counted or int(counted[1]) + lost < 2 * count:
        raise SystemExit(f"perf has not seen {2 * count} events: {result.stderr}")
    return ns


def with_bpftrace(pairs, variables):
    script = f"usdt:{RUNTIME}:cairn:alloc, usdt:{RUNTIME}:cairn:free {{ @count++; }}" \
             ' interval:ms:50 { if (!@is_ready) { printf("ready\\n"); @is_ready = 1; } }'
    with subprocess.Popen(["bpftrace", "-e", script], stdout=subprocess.PIPE, text=True) as tracer:
        for line in tracer.stdout:
            if "ready" in line:
                break
        ns, count = processor_ns(run(*program(pairs, variables)).stdout)
        time.sleep(1)
        tracer.send_signal(signal.SIGINT)
        said = tracer.stdout.read()
    if int(re.search(r"@count: (\d+)", said)[1]) < 2 * count:
        raise SystemExit(f"bpftrace has not seen {2 * count} events: {said}")
    return ns


def rows(pairs):
    """(name, how to take one figure); probes are there as long as the generator stands still."""
    yield "plain", lambda: alone(pairs, {})
    yield "cairn, nobody listens", lambda: alone(pairs, CAIRN)
    if shutil.which("bpftrace"):
        yield "`cairn:alloc` and `cairn:free`, counted by bpftrace", lambda: with_bpftrace(pairs, CAIRN)
    run("perf", "buildid-cache", "--add", RUNTIME)
    with probes(RUNTIME, USDT, "alloc", "free"):
        yield "`cairn:alloc` and `cairn:free`, `perf record`", lambda: with_perf(USDT, pairs, CAIRN)
        yield "the same with stacks, `perf record -g`", lambda: with_perf(USDT, pairs, CAIRN, "-g")
    with probes(libc(), LIBC, "malloc=malloc", "free=free"):
        yield "uprobes on libc's malloc and free, `perf record`", lambda: with_perf(LIBC, pairs, {})
    with probes(libc(), LIBC, "malloc=malloc bytes=%di", "block=malloc%return block=$retval", "free=free block=%di"):
        yield "all that the import needs (below): returns and stacks too", lambda: with_perf(LIBC, pairs, {}, "-g")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=50000)
    wanted = parser.parse_args()
    if os.geteuid() or not shutil.which("perf"):
        raise SystemExit("bench/tracing.py: needs root and perf")
    print(f"{machine.description()}\n\n| | a pair |\n|---|---|")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        os.environ["HOME"] = place  # perf's cache
        for name, take in rows(wanted.pairs):
            ns = statistics.median(take() for _ in range(wanted.rounds))
            print(f"| {name} | {ns / 1000:.{2 if ns < 1000 else 1}f} µs |", flush=True)
            for file in pathlib.Path(place).glob("*.cairn"):
                file.unlink()


if __name__ == "__main__":
    main()
