#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever may write a recording's control words may write anything: random and extreme values, over and over,
while a program runs. Its output and status stay, it ends, and the recording can be opened."""

import mmap
import os
import random
import re
import struct
import subprocess
import time

import cairn_test as t

SECONDS = 15 if t.IS_LONG else 0.3
WORK = """
import sys, threading, time
def work(number, sums):
    end, held, total = time.monotonic() + float(sys.argv[1]), {}, 0
    for i in range(10**9):
        if i % 64 == 0 and time.monotonic() > end:
            break
        held[i % 500] = bytes(i * 37 % 3000 + i % 7 * 1000)
    for i in range(2000):
        held[i] = bytes([i % 251]) * (i * 37 % 3000)
        total += sum(held[i][:3]) + len(held[i])
    sums[number] = total
sums = {}
threads = [threading.Thread(target=work, args=(i, sums)) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(sums.items()))
sys.exit(7)
"""
EXTREMES = [0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff]


def offsets(structure):
    """Field: (offset, bytes), as docs/reference/format.md has them."""
    text = (t.SOURCE / "docs/reference/format.md").read_text()
    part = text.split(f"### `{structure}`")[1].split("\n#")[0]
    return {name: (int(at, 16), int(size)) for at, size, name in
            re.findall(r"\| (0x[0-9a-f]+) \| (\d+) \| `(\w+)` \|", part)}


HEADER, SECTION = offsets("cairn_header"), offsets("cairn_section")
# Sections with a word for the process, and where in their entry it is.
WORDS_IN_SECTIONS = {22: offsets("cairn_sampling")["wanted_bytes"], 20: offsets("cairn_guard")["checks_wanted"]}


def open_memory(tool_pid):
    """The memfd that `cairn run` shares with its process, mapped for writing; None before it is there."""
    for name in os.listdir(f"/proc/{tool_pid}/fd"):
        path = f"/proc/{tool_pid}/fd/{name}"
        try:
            if "memfd:" not in os.readlink(path):
                continue
            file = os.open(path, os.O_RDWR)
        except OSError:
            continue
        with os.fdopen(file, "r+b", buffering=0) as memory:
            size = os.fstat(memory.fileno()).st_size
            if size > 1 << 16 and memory.read(5) == b"cairn":
                return mmap.mmap(memory.fileno(), size)
    return None


def targets(memory):
    """Where words are that the tool writes: (offset, bytes)."""
    control, size = HEADER["control"]
    found = [(control + at, 4) for at in range(0, size, 4)]
    start = HEADER["sections"][0]
    count = struct.unpack_from("<I", memory, HEADER["section_count"][0])[0]
    for i in range(count):
        kind, _, offset = struct.unpack_from("<IIQ", memory, start + 32 * i)
        if kind in WORDS_IN_SECTIONS:
            at, bytes_ = WORDS_IN_SECTIONS[kind]
            found.append((offset + at, bytes_))
    return found


def hostile(name, seed, *options):
    rng, path = random.Random(seed), t.fresh_path("hostile") + ".cairn"
    argv = [t.PYTHON, "-c", WORK, str(SECONDS)]
    writes = 0
    with t.Process([t.CAIRN, "run", "-q", "-o", path, *options, "--", *argv],
                          env=t.environment({"PYTHONMALLOC": "malloc"}), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as tool:
        memory = t.wait_until(lambda: open_memory(tool.pid))
        if t.check(memory is not None, f"{name}: no memory of the recording was found"):
            places = targets(memory)
            while tool.poll() is None and writes < 10**6:
                at, size = rng.choice(places)
                value = rng.choice(EXTREMES + [rng.getrandbits(8 * size)])
                memory[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
                writes += 1
                if writes % 100 == 0:
                    time.sleep(0.001)
        out, err = tool.communicate(timeout=t.TIMEOUT_S)
    t.check(writes > 1000, f"{name}: only {writes} writes")
    plain = t.run(argv[:-1] + ["0"])
    t.check_equal(f"{name} (seed {seed}): status", tool.returncode, plain.status)
    t.check_equal(f"{name} (seed {seed}): output", (out, err), (plain.out, plain.err))
    t.check(t.report(path) is not None, f"{name} (seed {seed}): the recording cannot be read")


base = int.from_bytes(os.urandom(4), "little")
for number, (each, wanted) in enumerate({
        "exact": [], "sampled": ["--sample", "--rate", "4K"], "bands": ["--guard"], "ages": ["--ages"],
        "begun off": ["--off"], "no stacks": ["--no-stacks"], "small": ["--max-overhead", "6M"]}.items()):
    hostile(each, base + number, *wanted)
t.finish()
