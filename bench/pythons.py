#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Five Python programs (bench/programs/python/work.py) beside memray and tracemalloc: what they cost, as ratios to the plain
program, medians over rounds in which every variant runs once; and whether what was counted below work() is the same.

    make all && bench/pythons.py --chroot DIR [--rounds 5] [--scale 100] [FILE]

All run in the Debian tree DIR (sid's, with python3-memray), by chroot as root. PYTHONMALLOC=malloc for all of them, so that
each object is an allocation for everybody. The table goes to FILE, by default below build/bench/results."""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from events import Place
from variants import BUILD

SOURCE = pathlib.Path(__file__).resolve().parent / "programs/python/work.py"
NAMES = ["documents", "objects", "texts", "rows", "sources"]
EVERY_OBJECT = {"PYTHONMALLOC": "malloc"}
# What memray has of calls below work(): by its own library, in that tree.
COUNT = """
import memray, sys
kinds = {memray.AllocatorType[name] for name in ("MALLOC", "CALLOC", "REALLOC", "POSIX_MEMALIGN", "ALIGNED_ALLOC", "MEMALIGN")}
calls = size = 0
for record in memray.FileReader(sys.argv[1]).get_allocation_records():
    if record.allocator in kinds and any(frame[0] == "work" for frame in record.stack_trace()):
        calls += record.n_allocations
        size += record.size
print(calls, size)
"""
# The same program while a profile function of C is set that does nothing, as memray sets one of its own: CPython makes a
# frame object for each call then, and takes slower ways that make other objects.
PROFILED = """
import ctypes, sys
nothing = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p)  # returns 0
sys.argv = sys.argv[1:]
code = compile(open(sys.argv[0]).read(), sys.argv[0], "exec")
ctypes.pythonapi.PyEval_SetProfile.argtypes = [ctypes.c_void_p, ctypes.py_object]
ctypes.pythonapi.PyEval_SetProfile(nothing, None)
exec(code, {"__name__": "__main__", "__file__": sys.argv[0]})
"""


def variants(place):
    python = ["/usr/bin/python3"]
    memray = [*python, "-m", "memray", "run", "-q", "-f"]
    cairn, libraries = [str(place.inside / "cairn"), "run", "-q", "--symbols", "none"], {"LD_LIBRARY_PATH": str(place.inside / "lib")}
    return {
        "plain": (python, {}),
        "cairn run": ([*cairn, "-o", "out.cairn", "--", *python], libraries),
        "cairn run --python": ([*cairn, "--python", "-o", "out.cairn", "--", *python], libraries),
        "memray": ([*memray, "-o", "out.memray"], {}),
        "memray --native": ([*memray, "--native", "-o", "out.memray"], {}),
        "tracemalloc": ([*python, "-X", "tracemalloc=1"], {}),
        "tracemalloc, 25 frames": ([*python, "-X", "tracemalloc=25"], {}),
    }


def costs(place, scale, rounds):
    """{program: {variant: ratio to plain}}"""
    found = {}
    for name in NAMES:
        seconds, ways = {}, list(variants(place).items())
        for number in range(rounds):
            for variant, (before, more) in ways[number % len(ways):] + ways[:number % len(ways)]:
                time = place.run([*before, "work.py", name, str(scale)], {**EVERY_OBJECT, **more})
                seconds.setdefault(variant, []).append(time)
        found[name] = {variant: statistics.median(a / b for a, b in zip(times, seconds["plain"], strict=True))
                       for variant, times in seconds.items()}
        print(name, *(f"{variant} {ratio:.2f}" for variant, ratio in found[name].items()), sep="  ", flush=True)
    return found


def of_cairn(place, live):
    """(calls, bytes) of stacks through work(); `live`: (bytes, blocks) at the end."""
    argv = [BUILD / "cairn", "report", "--json", "--sysroot", place.root, "--all-frames", place.real / "out.cairn"]
    report = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    stacks = [stack for stack in report["stacks"] if "work" in [frame["function"] for frame in stack["frames"]]]
    keys = ("at_exit_bytes", "at_exit_blocks") if live else ("allocations", "allocated_bytes")
    return tuple(sum(stack[key] for stack in stacks) for key in keys)


def said(place):
    return tuple(map(int, (place.real / "said").read_text().split()))


def totals(place, scale):
    """{program: (cairn's calls and bytes, the same with a profile function, memray's, cairn's live bytes and blocks, tracemalloc's)}"""
    found = {}
    (place.real / "count.py").write_text(COUNT)
    (place.real / "profiled.py").write_text(PROFILED)
    for name in NAMES:
        words, ways = ["work.py", name, str(scale)], variants(place)
        before, more = ways["cairn run --python"]
        place.run([*before, *words], {**EVERY_OBJECT, **more})
        calls = of_cairn(place, False)
        place.run([*before, "profiled.py", *words], {**EVERY_OBJECT, **more})
        profiled = of_cairn(place, False)
        place.run([*before, *words, "exit"], {**EVERY_OBJECT, **more})
        live = of_cairn(place, True)
        place.run([*ways["memray"][0], *words], EVERY_OBJECT)
        counted = pathlib.Path(place.real / "out.memray").rename(place.real / "counted.memray")
        place.run(["/usr/bin/python3", "count.py", counted.name], {})
        memray = said(place)
        place.run(["/usr/bin/python3", "-X", "tracemalloc=500", *words, "tracemalloc"], EVERY_OBJECT)
        found[name] = (calls, profiled, memray, live, said(place))
        print(name, *found[name], flush=True)
    return found


def write(file, ratios, counted, options):
    columns = list(next(iter(ratios.values())))
    print("# Python programs beside memray and tracemalloc\n"
          f"`bench/pythons.py` on five programs of Python's library, PYTHONMALLOC=malloc. Processor time over that of the plain\n"
          f"program, medians of {options.rounds} rounds in which every variant runs once.\n", file=file)
    print("|", " | ".join(["program", *columns[1:]]), "|\n|---|" + "--:|" * (len(columns) - 1), file=file)
    for name, of in ratios.items():
        print("|", " | ".join([name, *(f"{of[column]:.2f}" for column in columns[1:])]), "|", file=file)
    print("\nWhat was allocated below `work()`, calls and bytes, and what of it is alive at its end, bytes and blocks.\n"
          "memray sets a profile function, with which CPython makes a frame object for each call and others that the program\n"
          "alone does not make; the second column is cairn with a profile function that does nothing. tracemalloc counts\n"
          "an object that comes from one of Python's free lists as a new one, and sees nothing that a library takes from C.\n\n"
          "| program | cairn | with a profile function | memray | alive: cairn | tracemalloc |\n|---|--:|--:|--:|--:|--:|", file=file)
    for name, numbers in counted.items():
        print("|", " | ".join([name, *(" · ".join(f"{number:,}" for number in pair) for pair in numbers)]), "|", file=file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chroot", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=100)
    parser.add_argument("file", nargs="?", default=str(BUILD / "bench/results/pythons.md"))
    options = parser.parse_args()
    if not pathlib.Path(options.chroot, "usr/lib/python3/dist-packages/memray").exists():
        sys.exit("bench/pythons.py: python3-memray is not installed in that tree")
    place = Place(options.chroot.rstrip("/"))
    try:
        shutil.copy(SOURCE, place.real / "work.py")
        counted = totals(place, max(options.scale // 20, 1))
        ratios = costs(place, options.scale, options.rounds)
    finally:
        place.close()
    pathlib.Path(options.file).parent.mkdir(parents=True, exist_ok=True)
    with open(options.file, "w", encoding="utf-8") as out:
        write(out, ratios, counted, options)


main()
