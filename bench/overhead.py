#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs on real programs, against heaptrack: wall time as a ratio to the plain program.

Variants run in turn, round by round, so that a change of the machine's speed meets all of them; the
figures are medians over the rounds. bench/README.md says what each variant is.

    bench/overhead.py [--rounds 7] [--out bench/results/foundation.md] [PROGRAM ...]
"""

import argparse
import os
import pathlib
import platform
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/tools"))
import real_programs  # noqa: E402  (found by the line above)
from cairn_test import environment  # noqa: E402

CAIRN = TOP / "build/cairn"
RUNTIME = TOP / "build/libcairn.so"
HEAPTRACK_PRELOADS = ["/usr/lib/heaptrack/libheaptrack_preload.so",
                      "/usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so"]
MEMORY_DIRECTORY = "/dev/shm"  # where no disk is measured
REDIS_REQUESTS = 150000
NOISE = 0.03  # of the plain time


def compiler():
    """The compiler proper: heaptrack does not follow g++ into its children."""
    real_programs.gxx()
    with open("walk.cc", "a", encoding="ascii") as source:
        source.write("#include <regex>\nbool stone(const std::string &s)"
                     " { return std::regex_match(s, std::regex(\"s.*e\")); }\n")
    subprocess.run(["g++", "-E", "-o", "walk.ii", "walk.cc"], check=True)
    path = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                          check=True).stdout.strip()
    return [path, "-quiet", "-O1", "-fpreprocessed", "-o", "/dev/null", "walk.ii"], {}


PROGRAMS = {  # each takes half a second or more alone
    "sqlite3": lambda: real_programs.sqlite3(20),
    "python3 (malloc)": lambda: real_programs.python3(45),
    "perl": lambda: real_programs.perl(20),
    "xmllint": lambda: real_programs.xmllint(60),
    "jq": lambda: real_programs.jq(18),
    "git log": lambda: real_programs.git_log(160),
    "cc1plus": compiler,
    "node": lambda: real_programs.node(8),
}


def heaptrack_preload():
    return next((path for path in HEAPTRACK_PRELOADS if os.path.exists(path)), None)


class Variant:
    def __init__(self, name, prefix=(), env=None):
        self.name, self.prefix, self.env = name, list(prefix), env or {}


def variants(place):
    """`place` is a directory in memory for all that the profilers write."""
    found = [
        Variant("plain"),
        Variant("cairn preload", env={"LD_PRELOAD": str(RUNTIME),
                                      "CAIRN_OUTPUT": f"{place}/alone.%p.cairn"}),
        Variant("cairn run", [str(CAIRN), "run", "-q", "-o", f"{place}/run.cairn", "--"]),
    ]
    if heaptrack_preload():
        found += [
            Variant("heaptrack preload", env={"LD_PRELOAD": heaptrack_preload(),
                                              "DUMP_HEAPTRACK_OUTPUT": f"{place}/heaptrack.%p"}),
            Variant("heaptrack", ["heaptrack", "-o", f"{place}/whole.%p"]),
        ]
    return found


def empty(place):
    for entry in pathlib.Path(place).iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def time_program(argv, env, variant):
    """(wall seconds, processor seconds of the program and all that helps it)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(variant.prefix + argv, env=environment({**env, **variant.env}),
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def time_redis(variant):
    """Wall seconds of redis-benchmark against a server under the variant, and None."""
    port = str(free_port())
    argv = variant.prefix + ["redis-server", "--port", port, "--save", "", "--appendonly", "no"]
    with subprocess.Popen(argv, env=environment(variant.env), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        while subprocess.run(["redis-cli", "-p", port, "ping"], capture_output=True,
                             check=False).returncode:
            time.sleep(0.02)
        load = ["redis-benchmark", "-p", port, "-n", str(REDIS_REQUESTS), "-r", "50000", "-P", "16",
                "-q", "-t", "set,lpush,hset,zadd"]
        start = time.monotonic()
        subprocess.run(load, stdout=subprocess.DEVNULL, check=True)
        wall = time.monotonic() - start
        subprocess.run(["redis-cli", "-p", port, "shutdown", "nosave"], capture_output=True,
                       check=False)
        server.wait()
    return wall, None


def measure(name, rounds, place):
    """{variant: [(wall, cpu), ...]} over interleaved rounds; the first round only warms up."""
    results = {}
    if name != "redis-server":
        argv, env = PROGRAMS[name]()
    for number in range(rounds + 1):
        for variant in variants(place):
            pair = time_redis(variant) if name == "redis-server" else time_program(argv, env, variant)
            empty(place)
            if number:
                results.setdefault(variant.name, []).append(pair)
    return results


def median_wall(results, variant):
    return statistics.median(wall for wall, _ in results[variant])


def ratio(results, variant):
    """Median over the rounds of (variant / plain of the same round)."""
    pairs = zip(results[variant], results["plain"])
    return statistics.median(mine[0] / plain[0] for mine, plain in pairs)


def cpu_ratio(results, variant):
    if results["plain"][0][1] is None:
        return None
    return (statistics.median(cpu for _, cpu in results[variant])
            / statistics.median(cpu for _, cpu in results["plain"]))


def version_of(*command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return out.strip().splitlines()[0] if out.strip() else command[0]
    except OSError:
        return f"no {command[0]}"


def processor_name():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(all_results, rounds):
    names = [variant.name for variant in variants("/")]
    lines = ["# Cost of recording: wall time as a ratio to the plain program", "",
             f"{processor_name()}, {os.cpu_count()} processors, Linux {platform.release()},"
             f" {version_of('ldd', '--version')}, {version_of('heaptrack', '--version')}."
             f" Medians of {rounds} interleaved rounds; made by `make bench-foundation`"
             " (bench/README.md).", "",
             "| program | plain | " + " | ".join(names[1:])
             + " | heaptrack preload's extra time / cairn preload's |",
             "|---|--:|" + "--:|" * len(names)]
    for program, results in all_results.items():
        cells = [f"{ratio(results, name):.2f}x" for name in names[1:]]
        extra = "-"
        if "heaptrack preload" in results:
            mine = ratio(results, "cairn preload") - 1
            theirs = ratio(results, "heaptrack preload") - 1
            # Below some percent both are noise, and so is their quotient.
            extra = f"{theirs / mine:.1f}" if min(mine, theirs) > NOISE else "-"
        lines.append(f"| {program} | {median_wall(results, 'plain'):.2f} s | "
                     + " | ".join(cells) + f" | {extra} |")
    lines += ["", "Processor time of the program and all helper processes, same runs:", "",
              "| program | " + " | ".join(names[1:]) + " |", "|---|" + "--:|" * (len(names) - 1)]
    for program, results in all_results.items():
        cells = [cpu_ratio(results, name) for name in names[1:]]
        if None not in cells:
            lines.append(f"| {program} | " + " | ".join(f"{cell:.2f}x" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", default=str(TOP / "bench/results/foundation.md"))
    parser.add_argument("programs", nargs="*", help="default: all")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    chosen = options.programs or [*PROGRAMS, "redis-server"]
    work = tempfile.mkdtemp(prefix="cairn-bench.", dir=MEMORY_DIRECTORY)
    place = os.path.join(work, "out")
    os.mkdir(place)
    os.chdir(work)
    all_results = {}
    try:
        for name in chosen:
            all_results[name] = measure(name, options.rounds, place)
            print(name, *(f"{variant} {ratio(all_results[name], variant):.2f}x"
                          for variant in all_results[name]), flush=True)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(table(all_results, options.rounds), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
