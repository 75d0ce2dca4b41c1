# SPDX-License-Identifier: Apache-2.0
"""Runs one row under one variant and measures it: one Sample a run."""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import statistics
import struct
import subprocess
import threading
import time

import rows
import variants
from cairn_test import environment
from ports import free_port

TIMEOUT_S = 240
REDUCED_TIMEOUT_S = 60  # of a run on the small input
REPORT_TIMEOUT_S = 120
SERVER_START_S = 60
POLL_S = 0.05
STARTS, STARTS_S = 30, 2.0  # of a START row: so many, or as many as fit
MEASURE = str(variants.BUILD / "bench/measure")
FLOOR_SLOT = struct.Struct("<3Q40x")  # bench/programs/floor_preload.c


@dataclasses.dataclass
class Sample:
    """A run. Times are of a unit: the whole run, one operation of a PARTS row, one start."""
    wall_s: float
    cpu_s: float | None
    rss_bytes: int
    units: float = 1
    written_bytes: int = 0
    allocations: int | None = None  # a unit, where the floor counted them
    facts: dict = dataclasses.field(default_factory=dict)  # of cairn's recording
    report: tuple | None = None  # seconds, bytes of the reader
    problem: str = ""


class MemoryWatch(threading.Thread):
    """The most memory that the descendants of a process have at one time. What they share is counted
    once: cairn's tool maps the memory of the program it records."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most_bytes, self.is_over = pid, 0, threading.Event()

    def run(self):
        while not self.is_over.wait(POLL_S):
            self.most_bytes = max(self.most_bytes, self.look())

    def look(self):
        private, shared, pids = 0, 0, [self.pid]
        while pids:
            pid = pids.pop()
            try:
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
                status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            except OSError:
                continue
            pids += children.split()
            rss = {name: int(kib) * 1024 for name, kib in re.findall(r"(Rss\w+):\s+(\d+) kB", status)}
            if pid != self.pid:
                private += rss.get("RssAnon", 0) + rss.get("RssFile", 0)
            shared = max(shared, rss.get("RssShmem", 0))
        return private + shared


def run_timed(argv, env, is_watched=False, out=None, during=None, timeout=TIMEOUT_S):
    """Runs argv to its end; returns (Sample, exit status). `during` is called while it runs and returns
    the wall time that counts. A run that takes too long is ended, with status None."""
    figures = pathlib.Path("measured")
    figures.unlink(missing_ok=True)
    command = [MEASURE, str(figures), *(f"{name}={value}" for name, value in env.items()), *argv]
    with subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL,
                          stdout=out or subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as process:
        watch = MemoryWatch(process.pid)
        if is_watched:
            watch.start()
        try:
            wall = during(process) if during else None
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        except BaseException:  # Ctrl-C does not reach a session of its own
            os.killpg(process.pid, signal.SIGKILL)
            raise
        watch.is_over.set()
    if not figures.exists():
        return Sample(timeout, None, 0), None
    wall_ns, cpu_ns, rss_bytes, status = map(int, figures.read_text(encoding="ascii").split())
    return Sample(wall_ns / 1e9 if wall is None else wall, cpu_ns / 1e9,
                  watch.most_bytes or rss_bytes), status


def limit_s(variant):
    return REDUCED_TIMEOUT_S if variant.is_reduced else TIMEOUT_S


def run_parts(argv, env, variant, figure):
    with open("figures", "w+", encoding="utf-8") as out:
        sample, status = run_timed(argv, env, variant.has_helpers, out, timeout=limit_s(variant))
        out.seek(0)
        # heaptrack has lines of its own to print.
        found = re.search(r"^([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) (\d+)$", out.read(), re.MULTILINE)
    if not found:
        return sample, 1 if status == 0 else status
    least, middle, mean, processor, count = map(float, found.groups())
    sample.wall_s = {"least": least, "middle": middle, "mean": mean}[figure] / 1e9
    sample.cpu_s, sample.units = processor / 1e9, count
    return sample, status


def run_starts(argv, env, variant):
    samples, start = [], time.perf_counter()
    while len(samples) < 3 or (len(samples) < STARTS and time.perf_counter() - start < STARTS_S):
        sample, status = run_timed(argv, env)
        if status:
            return sample, status
        samples.append(sample)
    walls, cpus = [s.wall_s for s in samples], [s.cpu_s for s in samples]
    return Sample(statistics.median(walls), statistics.median(cpus), samples[-1].rss_bytes), 0


def run_server(argv, env, variant):
    """redis-benchmark against redis-server; the time is that of the requests."""
    port = str(free_port())
    client = ["redis-cli", "-p", port]

    def load(process):
        patience_ends = time.perf_counter() + SERVER_START_S
        while subprocess.run([*client, "ping"], capture_output=True, check=False).returncode:
            if process.poll() is not None or time.perf_counter() > patience_ends:
                return None
            time.sleep(0.02)
        start = time.perf_counter()
        subprocess.run(["redis-benchmark", "-p", port, "-n", env["BENCH_REQUESTS"], "-r", "50000",
                        "-P", "16", "-q", "-t", env["BENCH_TESTS"]],
                       stdout=subprocess.DEVNULL, check=False)
        wall = time.perf_counter() - start
        subprocess.run([*client, "shutdown", "nosave"], capture_output=True, check=False)
        return wall

    return run_timed([*argv, "--port", port], env, variant.has_helpers, during=load,
                     timeout=limit_s(variant))


def run(row, variant, argv, env, place, wants_report):
    """A Sample of the row. `place` is emptied afterwards."""
    command = variant.command(argv, place)
    env = {**env, **variant.environment(place)}
    if row.kind == rows.PARTS:
        sample, status = run_parts(command, env, variant, row.figure)
    elif row.kind == rows.SERVER:
        sample, status = run_server(command, env, variant)
    elif row.kind == rows.START:
        sample, status = run_starts(command, env, variant)
    else:
        sample, status = run_timed(command, env, variant.has_helpers, timeout=limit_s(variant))
    if status is None:
        sample.problem = "too slow"
    elif status:
        sample.problem = "fails"
    look_at_output(sample, row, variant, argv, place, wants_report)
    return sample


def look_at_output(sample, row, variant, argv, place, wants_report):
    files = [path for path in pathlib.Path(place).rglob("*") if path.is_file()]
    if variant.name == variants.FLOOR:
        sample.allocations = count_of_floor(files) / sample.units
    else:
        sample.written_bytes = sum(path.stat().st_size for path in files)
    if files and not sample.problem:
        largest = max(files, key=lambda path: path.stat().st_size)
        if wants_report and variant.name == variants.PRELOAD:
            sample.facts = facts_of(largest)
        if wants_report and variant.report and row.group != "pairs":  # theirs have a handful of stacks
            sample.report = read_back(variant, argv, str(largest))
    for entry in pathlib.Path(place).iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def count_of_floor(files):
    return sum(slot[0] for path in files for slot in FLOOR_SLOT.iter_unpack(path.read_bytes()))


def facts_of(recording):
    """Stacks, cells, threads and bytes of the peak, as `cairn info` says them."""
    text = subprocess.run([variants.CAIRN, "info", "--bytes", str(recording)], capture_output=True,
                          text=True, check=False).stdout
    facts = {name: int(number.replace(",", ""))
             for name, number in re.findall(r"\b(stacks|cells|threads) ([\d,]+)", text)}
    peak = re.search(r"counted ([\d,]+)", text)
    return {**facts, "peak": int(peak.group(1).replace(",", ""))} if peak and "cells" in facts else {}


def read_back(variant, argv, path):
    command = [part.format(file=path, program=variants.program_path(argv)) for part in variant.report]
    sample, status = run_timed(command, {}, timeout=REPORT_TIMEOUT_S)
    return None if status else (sample.wall_s, sample.rss_bytes)
