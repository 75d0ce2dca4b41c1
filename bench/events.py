#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a log of all events costs, and how large it is: cairn run --events beside cairn run, heaptrack's raw output and,
for Python, memray. Processor time of the program and of what runs beside it, medians over rounds in which every variant
runs once, and bytes on disk an event. Then what a log adds to a malloc and free, by the processor time of the program
alone (bench/programs/pairs.c).

    make all tests bench-programs && bench/events.py [--rounds 3] [--chroot DIR] [--only-pairs] [FILE]

Programs of a Debian tree elsewhere, which may have newer profilers, run by chroot as root (--chroot: its python3 and
memray). The table goes to FILE, by default below build/bench/results. What is not here is left out."""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

from variants import BUILD, heaptrack_preload

SQL = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n "
       "where i<200000) insert into t select i, hex(i) from n; create index tb on t(b); select count(*) from t;")
PYTHON = "import json\nd=[{'a':i,'b':str(i)*3} for i in range(60000)]\nprint(len(json.loads(json.dumps(d))))"
PROGRAMS = {
    "pairs, depth 20": [str(BUILD / "bench/pairs"), "one", "20", "1", "2000000"],
    "two threads, random": [str(BUILD / "tests/programs/exchange"), "2", "1000000"],
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "python3": ["/usr/bin/python3", "-c", PYTHON],
}
# What blocks and stacks are like: the words of bench/programs/pairs.c.
PAIRS = {
    "one stack, blocks of one size": ("one", 1), "of four sizes in turn": ("one:4", 1),
    "of random sizes": ("one:random", 1),
    "the same, 1,000 blocks live: of one size": ("ring", 1), "of four sizes": ("ring:4", 1),
    "of random size": ("ring:random", 1),
    "256 stacks in order": ("walk", 256), "with three sizes in turn": ("walk:3", 256),
    "1,024 stacks in random order": ("random", 1024),
    "a heap that grows, each free leaves a peak": ("grow", 1),
}
PAIRS_DEPTH, PAIRS_COUNT = 20, 3000000
PAIRS_HEADING = "\n## A malloc and free\n"
CAIRN = ["cairn", "libcairn.so", "libcairn-cxx.so"]


class Place:
    """Where programs run: this system, or a tree below a directory."""

    def __init__(self, root):
        self.root = root
        self.real = pathlib.Path(tempfile.mkdtemp(prefix="events-", dir=f"{root}/tmp" if root else None))
        self.inside = pathlib.Path(str(self.real)[len(root):]) if root else self.real
        for name in CAIRN:
            shutil.copy(BUILD / name, self.real / name)
        (self.real / "lib").mkdir()
        needed = subprocess.run(["ldd", BUILD / "cairn"], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"=> (/\S+)", needed):  # that the other tree does not have
            if not pathlib.Path(root + library).exists():
                shutil.copy(library, self.real / "lib")

    def run(self, argv, variables):
        """(seconds of processor time, output)"""
        for old in self.real.glob("out*"):
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()
        words = ["env", "-C", str(self.inside), *(f"{name}={value}" for name, value in variables.items()), *argv]
        if self.root:
            words = ["chroot", self.root, *words]
        with open(self.real / "said", "wb") as said, \
                subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        text = (self.real / "said").read_text(errors="replace")
        if process.returncode:
            raise RuntimeError(f"{words}: {process.returncode}\n{text[-500:]}")
        return usage.ru_utime + usage.ru_stime

    def written(self):
        return sum(file.stat().st_size for file in self.real.glob("out*") if file.is_file())

    def close(self):
        shutil.rmtree(self.real)


def cairn_run(place):
    return [str(place.inside / "cairn"), "run", "-q", "--symbols", "none"]


def variants_of(place, name):
    """(name, what goes before the program, variables, whether a log is written)"""
    cairn = cairn_run(place)
    libraries = {"LD_LIBRARY_PATH": str(place.inside / "lib")} if place.root else {}
    yield "plain", [], {}, False
    yield "cairn run", [*cairn, "-o", "recording.cairn"], libraries, False
    yield "cairn run --events", [*cairn, "--events=out.events", "-o", "recording.cairn"], libraries, True
    preload = heaptrack_preload()
    if preload and not place.root:
        yield "heaptrack raw", [], {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": "out.heaptrack"}, True
    if place.root and name == "python3" and pathlib.Path(place.root, "usr/lib/python3/dist-packages/memray").exists():
        yield "memray", ["memray", "out.memray"], {}, True
        yield "memray --no-compress", ["memray", "--no-compress", "out.memray"], {}, True
        yield "memray --native", ["memray", "--native", "out.memray"], {}, True


def command(before, program):
    if before[:1] == ["memray"]:
        *options, file = before[1:]
        return [program[0], "-m", "memray", "run", "-q", "-f", *options, "-o", file, *program[1:]]
    return [*before, *(["--"] if before else []), *program]


def events_in(place):
    """Of the log that was written last: how many."""
    shown = subprocess.run([BUILD / "cairn", "events", "-n", "1", place.real / "out.events"], capture_output=True,
                           text=True, check=True).stdout
    return int(re.search(r"^([\d,]+) events", shown, re.M)[1].replace(",", ""))


def measured(place, name, program, rounds):
    """{variant: (seconds a round, bytes of its log)} and the number of events."""
    seconds, sizes, events = {}, {}, 0
    for number in range(rounds):
        variants = list(variants_of(place, name))
        for variant, before, variables, is_log in variants[number % len(variants):] + variants[:number % len(variants)]:
            (place.real / "recording.cairn").unlink(missing_ok=True)
            if name == "python3":  # or most of its blocks would be in pools of its own, which only some profilers see
                variables = {**variables, "PYTHONMALLOC": "malloc"}
            seconds.setdefault(variant, []).append(place.run(command(before, program), variables))
            if is_log:
                sizes[variant] = place.written()
            if variant == "cairn run --events":
                events = events_in(place)
    return seconds, sizes, events


def rows(place, where, programs, rounds):
    for name, program in programs.items():
        if not place.root and not shutil.which(program[0]):
            continue
        seconds, sizes, events = measured(place, name, program, rounds)
        for variant, times in seconds.items():
            added = statistics.median(a - b for a, b in zip(times, seconds["plain"], strict=True))
            size = sizes.get(variant)
            yield [name + where, variant, f"{statistics.median(times):.2f}",
                   "" if variant == "plain" else f"{added * 1e9 / events:.0f}",
                   f"{size / 1e6:.1f}" if size else "", f"{size / events:.2f}" if size else ""]
            print(*(f"{word:>22}" for word in (name, variant, f"{statistics.median(times):.2f} s",
                                               f"{added * 1e9 / events:.0f} ns", size or "")), flush=True)


def pair_rows(place, rounds):
    """What the program says of its own processor time, in nanoseconds a pair: the fourth figure of its line."""
    variants = {"plain": [], "default": [*cairn_run(place), "-o", "recording.cairn"],
                "log": [*cairn_run(place), "--events=out.events", "-o", "recording.cairn"]}
    times = {(name, variant): [] for name in PAIRS for variant in variants}
    for _ in range(rounds):
        for name, (mode, stacks) in PAIRS.items():
            program = [str(BUILD / "bench/pairs"), *map(str, (mode, PAIRS_DEPTH, stacks, PAIRS_COUNT))]
            for variant, before in variants.items():
                (place.real / "recording.cairn").unlink(missing_ok=True)
                place.run(command(before, program), {})
                times[name, variant].append(float((place.real / "said").read_text().split()[3]))
    for name in PAIRS:
        plain, default, log = (times[name, variant] for variant in variants)
        added = [b - a for a, b in zip(default, log, strict=True)]
        yield [name, *(f"{statistics.median(figures):.0f}" for figures in (plain, default, log)),
               f"{statistics.median(added):.0f}", f"{min(added):.0f} to {max(added):.0f}"]
        print(f"{name:44} {statistics.median(default):6.1f} {statistics.median(log):6.1f} "
              f"{statistics.median(added):6.1f}", flush=True)


def print_programs(table, rounds, out):
    print("# What a log of all events costs\nProcessor time, of the program and what runs beside it, and the log's size"
          f" (`bench/events.py`), medians of {rounds} rounds. An event is an allocation or a free, as cairn's"
          " log counts them. heaptrack and memray are run; bytehound, which no distribution packages and whose"
          " documentation has no figures, is not here.\n\n| program | | seconds | ns added an event | MB | bytes an event |\n"
          "|---|---|--:|--:|--:|--:|", file=out)
    for row in table:
        print("|", " | ".join(row), "|", file=out)


def print_pairs(table, rounds, out):
    print(PAIRS_HEADING + "Processor time of the program alone, whose threads write the log, in nanoseconds a malloc"
          f" and free (`bench/programs/pairs.c`, depth {PAIRS_DEPTH}), medians of {rounds} rounds; what cairn needs beside it"
          f" is not in these. {load()}\n\n| | alone | cairn run | with --events | the log adds | least to most |\n"
          "|---|--:|--:|--:|--:|--:|", file=out)
    for row in table:
        print("|", " | ".join(row), "|", file=out)


def load():
    return f"Load as they ended: {os.getloadavg()[2]:.1f} over 15 minutes on {os.cpu_count()} processors."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chroot", default="")
    parser.add_argument("--only-pairs", action="store_true", help="FILE keeps what it says of programs")
    parser.add_argument("file", nargs="?", default=str(BUILD / "bench/results/events.md"))
    options = parser.parse_args()
    table, pairs, roots = [], [], [("", "", {} if options.only_pairs else PROGRAMS)]
    if options.chroot:
        roots.append((options.chroot.rstrip("/"), ", newer system", {"python3": PROGRAMS["python3"]}))
    for root, where, programs in roots:
        place = Place(root)
        try:
            table += rows(place, where, programs, options.rounds)
            pairs = pairs or list(pair_rows(place, options.rounds))
        finally:
            place.close()
    file = pathlib.Path(options.file)
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = file.read_text(encoding="utf-8").split(PAIRS_HEADING)[0] if options.only_pairs and file.exists() else ""
    with open(file, "w", encoding="utf-8") as out:
        out.write(kept)
        if not options.only_pairs:
            print_programs(table, options.rounds, out)
        print_pairs(pairs, options.rounds, out)


if __name__ == "__main__":
    main()
