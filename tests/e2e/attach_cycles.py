#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach again and again: programs that do nothing but allocate and free, with 1 and with 16 threads,
none of which may be harmed; one process under load, of which attaching and leaving changes nothing but
the memory map; and threads that wait, which leaving stops no more often than all are. `make attach-long` does it 500 and 1,000 times (ATTACH_TARGETS, ATTACH_CYCLES)."""

import os
import re
import signal
import statistics
import subprocess
import time

from attached import Attached, files_mapped, settled, state_of
from cairn_test import (CAIRN, PATIENCE_S, PROGRAMS, check, check_equal, environment, finish, fresh_path,
                        need_attach)

TARGETS = int(os.environ.get("ATTACH_TARGETS", "4"))
CYCLES = int(os.environ.get("ATTACH_CYCLES", "6"))
WAITING_THREADS = 100
LEAVES = 3  # on a busy machine a stop may be tried again
IS_LONG = "ATTACH_CYCLES" in os.environ
UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1000}


def say(line):
    if IS_LONG:
        print(line, flush=True)


def start(name, threads):
    process = subprocess.Popen([str(PROGRAMS / name), str(threads)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=environment(), text=True)
    check_equal("the program starts", process.stdout.readline(), "ready\n")
    return process


def attach(pid, *options):
    """Attaches for a moment; the longest stops in ms, of beginning and leaving, or None if it gave up after
    its patience."""
    path = fresh_path("cycle") + ".cairn"
    command = [CAIRN, "attach", str(pid), "-o", path, "--record-for", "10ms", "--top", "1", *options]
    result = subprocess.run(command, env=environment(), stderr=subprocess.PIPE, text=True, check=False)
    if "no safe moment was found" in result.stderr:
        return None
    check_equal(f"attach: {result.stderr}", result.returncode, 0)
    os.unlink(path)
    found = re.findall(r"longest ([\d.,]+) (\S+)", result.stderr)
    return [float(number.replace(",", "")) * UNITS[unit] for number, unit in found]


def sum_up(pauses):
    """In words, of lists as attach() returns them; a process that has ended meanwhile was not left."""
    texts = []
    for name, which in (("beginning", 0), ("leaving", 1)):
        stops = sorted(pause[which] for pause in pauses if len(pause) > which)
        texts.append(f"{name} {statistics.median(stops):.1f} ms in the middle, 90 % {stops[len(stops) * 9 // 10]:.1f}, "
                     f"most {stops[-1]:.1f}")
    return "longest stop: " + "; ".join(texts)


def kind(turn):
    return ["--exact"] if turn % 2 else []


def tight_loops(threads, count):
    pauses, missed = [], 0
    for turn in range(count):
        with start("tight", threads) as process:
            pause = attach(process.pid, *kind(turn))
            missed += pause is None
            pauses += [] if pause is None else [pause]
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=PATIENCE_S)
            check_equal(f"tight loop, {threads} threads, turn {turn}", (rest, process.returncode),
                        ("sound\n", 0))
    check(pauses, "some were attached to")
    say(f"{count} targets with {threads} threads: 0 harmed, {missed} had no safe moment in 10 s; {sum_up(pauses)}")


def mapped_bytes(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        ends = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    return sum(end - begin for begin, end in ends)


def check_unchanged(what, state, before):
    threads, links = state["threads"], state["files"]
    check_equal(f"{what}: files", links, before["files"])
    check_equal(f"{what}: threads", sorted(threads), sorted(before["threads"]))
    for tid, fields in threads.items():
        check_equal(f"{what}: thread {tid}", fields, before["threads"].get(tid))


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cycles(count):
    slack_bytes = 4 << 20  # what the program's own heap may come and go by
    process = start("attached", 16)
    before = settled(process.pid)
    pauses, seconds = [], []
    for turn in range(count):
        begin = time.monotonic()
        pause = attach(process.pid, *kind(turn))
        seconds.append(time.monotonic() - begin)
        pauses += [] if pause is None else [pause]
        check_unchanged(f"cycle {turn}", state_of(process.pid), before)
        if turn == 1:
            files, size, resident = files_mapped(process.pid), mapped_bytes(process.pid), resident_bytes(process.pid)
        if turn % 100 == 99:
            say(f"  cycles {turn - 98} to {turn + 1}: {statistics.median(seconds[-100:]):.2f} s each in the middle, "
                f"{sum_up(pauses[-100:])}; resident {resident_bytes(process.pid) >> 10} KiB, "
                f"mapped {mapped_bytes(process.pid) >> 10} KiB")
    check_equal("mapped files", files_mapped(process.pid), files)
    check(mapped_bytes(process.pid) - size < slack_bytes,
          f"address space: {size} bytes, then {mapped_bytes(process.pid)}")
    check(resident_bytes(process.pid) - resident < slack_bytes,
          f"resident memory: {resident} bytes, then {resident_bytes(process.pid)}")
    rest, _ = process.communicate("end\n", timeout=PATIENCE_S)
    check_equal("the program's own look at its blocks", rest, "sound\n")
    check_equal("its status", process.returncode, 0)
    say(f"{count} cycles with 16 threads: nothing changed; {sum_up(pauses)}")


def waits_of(pid):
    """How often each thread but the first has begun to wait."""
    waits = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            waits[tid] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])
    del waits[str(pid)]
    return waits


def stops_by_leaving(pid):
    """How often leaving has stopped the thread that it stopped most: that begins to wait twice each time."""
    attached = Attached(pid, "--top", "1")
    before = waits_of(pid)
    attached.leave()
    return max(waits_of(pid)[tid] - begun for tid, begun in before.items()) // 2


def leaving_stops_few():
    """One thread is in a hook; only that is waited for, and all are stopped before and after."""
    process = start("waiting", WAITING_THREADS)
    stops = [stops_by_leaving(process.pid) for _ in range(LEAVES)]
    check(min(stops) <= 2, f"a thread that waits is stopped twice at most: {stops}")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=PATIENCE_S)
    check_equal("threads that wait", (rest, process.returncode), ("sound\n", 0))


need_attach()
tight_loops(1, (TARGETS + 1) // 2)
tight_loops(16, TARGETS // 2)
cycles(CYCLES)
leaving_stops_few()
finish()
