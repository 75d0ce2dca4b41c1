#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server shaped like one for inference, Python with C++ threads and blocks of 1 KiB to 1 GiB (64 MiB here), that cairn
attaches to again and again: no block changes, requests go on, it ends as it would, and neither what is left in it nor what
cairn itself takes grows. `make check-long` does it for an hour, 200 times; SERVING_SECONDS and SERVING_CYCLES say otherwise."""

import os
import re
import resource
import subprocess
import time

import cairn_test as t

SECONDS = int(os.environ.get("SERVING_SECONDS", "3600" if t.IS_LONG else "0"))
CYCLES = int(os.environ.get("SERVING_CYCLES", "200" if t.IS_LONG else "4"))
IS_SHORT = not SECONDS
THREADS, PYTHON_THREADS, MOST_SHIFT = (2, 1, 26) if IS_SHORT else (4, 2, 30)
SLACK_BYTES, SETTLED = 1 << 20, 2  # what is left in it after so many cycles stays

SERVER = f"""
import ctypes, json, sys, threading
native = ctypes.CDLL("./libserving.so")
native.serving_requests.restype = native.serving_errors.restype = ctypes.c_uint64
wrong, is_ending = [], False
def work(number):
    kept = {{}}
    while not is_ending:
        for i in range(200):
            kept[i] = json.loads(json.dumps({{"id": i, "tokens": list(range(i)), "of": number}}))
        wrong.extend(i for i, value in kept.items() if value["tokens"] != list(range(i)) or value["of"] != number)
workers = [threading.Thread(target=work, args=(i,)) for i in range({PYTHON_THREADS})]
native.serving_start({THREADS}, {MOST_SHIFT})
for worker in workers: worker.start()
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\\n": break
    print(native.serving_requests(), native.serving_errors() + len(wrong), flush=True)
is_ending = True
for worker in workers: worker.join()
native.serving_stop()
print("sound" if not native.serving_errors() + len(wrong) else "harmed", flush=True)
"""


def ours_in(pid):
    """Bytes of mappings in it that are cairn's, by their names."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        lines = [line.split() for line in maps if "cairn" in line]
    return sum(int(ends[1], 16) - int(ends[0], 16) for ends in (line[0].split("-") for line in lines))


def ask(process):
    process.stdin.write("?\n")
    process.stdin.flush()
    return [int(number) for number in process.stdout.readline().split()]


def attach(process, turn, for_ms):
    """Attaches for so long. What the tool and its part in the process took, or None if there was no safe moment."""
    path = t.fresh_path("cycle") + ".cairn"
    command = [t.CAIRN, "attach", str(process.pid), "-o", path, "--record-for", f"{for_ms}ms", "--top", "1",
               *(["--exact"] if turn % 4 == 3 else [])]
    tool = subprocess.Popen(command, env=t.environment(), stderr=subprocess.PIPE, text=True)
    said = tool.stderr.read()
    _, status, used = os.wait4(tool.pid, 0)
    tool.returncode = os.waitstatus_to_exitcode(status)
    if "no safe moment was found" in said:
        return None
    t.check_equal(f"cycle {turn}: {said}", tool.returncode, 0, is_grave=True)
    own = re.search(r"cairn itself ([\d.]+) ([KM])iB", said)
    if os.path.exists(path):
        os.unlink(path)
    return used.ru_maxrss << 10, float(own[1]) * (1 << (10 if own[2] == "K" else 20)) if own else 0


def check_flat(what, values):
    """The last third is no higher than the first, beyond a tenth and a little."""
    third = len(values) // 3
    if third < 2:
        return
    first, last = sorted(values[:third])[third // 2], sorted(values[-third:])[third // 2]
    t.check(last <= first * 1.1 + SLACK_BYTES, f"{what} grew: {first} bytes, then {last}")


def main():
    build = ["g++", "-O1", "-g", "-shared", "-fPIC", "-pthread", "-o", "libserving.so", str(t.SOURCE / "tests/programs/libserving.cc")]
    t.check_equal("build", t.run(build).status, 0)
    begin, took, missed, left = time.monotonic(), [], 0, None
    process = subprocess.Popen([t.PYTHON, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=t.environment())
    t.check_equal("begins", process.stdout.readline(), "ready\n")
    for turn in range(CYCLES):
        before = ask(process)[0]
        now = attach(process, turn, 50 if IS_SHORT else max(50, SECONDS * 400 // CYCLES))
        missed += now is None
        took += [] if now is None else [now]
        if now and len(took) == SETTLED:
            left = ours_in(process.pid)
        after, errors = ask(process)
        t.check_equal(f"cycle {turn}: blocks that changed", errors, 0, is_grave=True)
        t.check(after > before, f"cycle {turn}: no request was answered", is_grave=True)
        if not IS_SHORT:
            time.sleep(max(0, begin + SECONDS * (turn + 1) / CYCLES - time.monotonic()))
    t.check(len(took) >= CYCLES // 2, f"attached {len(took)} of {CYCLES} times")
    if left is not None:
        t.check(ours_in(process.pid) <= left + SLACK_BYTES, f"left in it: {left} bytes, then {ours_in(process.pid)}")
    check_flat("the tool", [tool for tool, _ in took])
    check_flat("cairn in the process", [own for _, own in took])
    rest, _ = process.communicate("end\n", timeout=t.PATIENCE_S)
    t.check_equal("ends", (rest, process.returncode), ("sound\n", 0), is_grave=True)
    if not IS_SHORT:
        print(f"{CYCLES} cycles in {time.monotonic() - begin:.0f} s: 0 harmed, {missed} without a safe moment; the tool took "
              f"{max(tool for tool, _ in took) >> 20} MiB at most, cairn in the process {max(own for _, own in took) / (1 << 20):.1f} MiB; "
              f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s of processor")


t.need_attach()
t.need("g++")
main()
t.finish()
