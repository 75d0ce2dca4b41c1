#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs beside profilers that are newer than this system's: heaptrack, and memray where the program is Python
(it records nothing else), as a newer Debian has them. All run in the Debian tree DIR, the programs of that tree too, by
chroot as root; those of bench/rows.py that it does not have are left out.

    make all && bench/newer.py --chroot DIR [--rounds 3] [--share 1] [FILE]

Processor time of the program and of what a profiler runs beside it, as a ratio to the plain program: medians over rounds
in which every variant runs once, in an order that turns. The table goes to FILE, by default below build/bench/results."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/tools"))
import rows  # noqa: E402  (it finds the tests' tools by the line above)
from events import Place  # noqa: E402
from variants import BUILD, HEAPTRACK_PRELOADS  # noqa: E402

PYTHON = "/usr/bin/python3"
PACKAGES = "heaptrack", "python3-memray"


def variants(place, preload, is_python):
    """{name: (what goes before the program, variables)}"""
    libraries = {"LD_LIBRARY_PATH": str(place.inside / "lib")}
    cairn = [str(place.inside / "cairn"), "run", "-q", "-o", "out.cairn", "--"]
    found = {"plain": ([], {}),
             "cairn": ([], {"LD_PRELOAD": str(place.inside / "libcairn.so"), "CAIRN_OUTPUT": "out.alone.cairn"}),
             "cairn run": (cairn, libraries)}
    if preload:
        found["heaptrack raw"] = [], {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": "out.raw"}
        found["heaptrack"] = ["heaptrack", "-o", "out.heaptrack"], {}
    if is_python and pathlib.Path(place.root, "usr/lib/python3/dist-packages/memray").exists():
        memray = [PYTHON, "-m", "memray", "run", "-q", "-f", "-o", "out.memray"]
        found["memray"] = memray, {}
        found["memray --native"] = [*memray, "--native"], {}
    return found


def command(before, argv):
    """memray is told the script, not the interpreter."""
    return [*before, *(argv[1:] if "memray" in before else argv)]


def is_in(root, program):
    paths = [program] if program.startswith("/") else [f"/usr/bin/{program}"]
    return any(pathlib.Path(root + path).exists() for path in paths)


def inputs(place, share):
    """[(name, argv, variables)] of the programs that the tree has; their files are made in its directory."""
    os.chdir(place.real)
    for row in rows.PROGRAMS + rows.NEW_PROGRAMS:
        if row.kind != rows.PROCESS:
            continue
        argv, variables = row.prepare(share)
        if row.name == "python3":
            argv = [PYTHON, *argv[1:]]
        if is_in(place.root, argv[0]):
            yield row.name, argv, variables


def measure(place, name, argv, variables, preload, rounds):
    """{variant: ratio to plain}"""
    seconds, ways = {}, list(variants(place, preload, name == "python3").items())
    place.run(argv, variables)  # fills caches
    for number in range(rounds):
        turn = number % len(ways)
        for variant, (before, more) in ways[turn:] + ways[:turn]:
            seconds.setdefault(variant, []).append(place.run(command(before, argv), {**variables, **more}))
    return {variant: statistics.median(a / b for a, b in zip(times, seconds["plain"], strict=True))
            for variant, times in seconds.items()}


def versions(root):
    asked = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n", *PACKAGES],
                           capture_output=True, text=True, check=False).stdout
    return ", ".join(line for line in asked.splitlines() if len(line.split()) == 2)


def write(file, ratios, options):
    columns = list(dict.fromkeys(variant for of in ratios.values() for variant in of if variant != "plain"))
    print("# Beside newer profilers\n"
          f"`bench/newer.py`: {versions(options.chroot)}. Processor time over that of the plain program, all of one\n"
          f"Debian tree; medians of {options.rounds} rounds. memray records programs of Python only.\n", file=file)
    print("|", " | ".join(["program", *columns]), "|\n|---|" + "--:|" * len(columns), file=file)
    for name, of in ratios.items():
        print("|", " | ".join([name, *(f"{of[column]:.2f}" if column in of else "–" for column in columns)]), "|", file=file)
    means = [statistics.geometric_mean(of[column] for of in ratios.values())
             if all(column in of for of in ratios.values()) else None for column in columns]
    print("|", " | ".join(["geometric mean", *("–" if mean is None else f"{mean:.2f}" for mean in means)]), "|", file=file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chroot", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1, help="of the work of each row, to try things out")
    parser.add_argument("file", nargs="?", default=str(BUILD / "bench/results/newer.md"))
    options = parser.parse_args()
    options.chroot, options.file = options.chroot.rstrip("/"), pathlib.Path(options.file).resolve()
    preload = next((path for path in HEAPTRACK_PRELOADS if pathlib.Path(options.chroot + path).exists()), None)
    place, ratios = Place(options.chroot), {}
    try:
        for name, argv, variables in inputs(place, options.share):
            ratios[name] = measure(place, name, argv, variables, preload, options.rounds)
            print(name, *(f"{variant} {ratio:.2f}" for variant, ratio in ratios[name].items()), sep="  ", flush=True)
            os.chdir(place.real)
    finally:
        os.chdir(TOP)
        place.close()
    options.file.parent.mkdir(parents=True, exist_ok=True)
    with open(options.file, "w", encoding="utf-8") as out:
        write(out, ratios, options)


if __name__ == "__main__":
    main()
