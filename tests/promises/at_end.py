#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose memory is copied while it runs (cairn run --look) and at its end (--unreachable, --look) is changed no
more than by cairn run: output, status, descriptors, masks, maps, also where another thread goes on, forks, and ends by
_exit. It waits for the tool while that lives and answers, and no longer than bounded."""

import os
import signal
import subprocess
import time

import cairn_test as t

LOOK = r"""
import atexit, os, signal, sys, threading, time
def look():
    links = []
    for fd in sorted(os.listdir('/proc/self/fd'), key=int):
        try:
            links.append((fd, os.readlink('/proc/self/fd/' + fd)))
        except OSError:
            pass  # the descriptor of the listing itself
    status = open('/proc/self/status').read()
    masks = [line for line in status.splitlines() if line.startswith(('Sig', 'Shd', 'Threads')) and line[:4] != 'SigQ']
    maps = sorted({line.split()[-1] for line in open('/proc/self/maps') if '/' in line})
    print([fd for fd, link in links if not link.startswith(('pipe', '/dev/null', '/proc'))], masks)
    print([path for path in maps if 'cairn' not in path and 'memfd' not in path])
    sys.stdout.flush()
atexit.register(look)
kept = [bytearray(5000) for _ in range(200)]
"""
ENDS = {
    "returns": "",
    "exits": "sys.exit(3)",
    "_exit": "look(); os._exit(4)",
    "a thread goes on": "threading.Thread(target=lambda: time.sleep(60), daemon=True).start()",
    "a thread allocates": "threading.Thread(target=lambda: [bytearray(900) for _ in iter(int, 1)], daemon=True).start();"
                          "look(); os._exit(0)",
    "forks": "pid = os.fork()\nif not pid:\n os._exit(7)\nprint(os.waitpid(pid, 0)[1])",
    "forks and both return": "pid = os.fork()\nif pid:\n print(os.waitpid(pid, 0)[1])",
    "leaves its session": "os.setsid() if os.fork() == 0 else os.wait()",
    "has an alarm on": "signal.setitimer(signal.ITIMER_REAL, 0.001); signal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "is looked at while it runs": "more = [(bytearray(90000), time.sleep(0.01)) for _ in range(60)]; print(len(more))",
    "closes everything": "atexit.register(lambda: os.closerange(3, 100))",
}

LOOKED = ("returns", "_exit", "a thread goes on", "forks", "is looked at while it runs", "closes everything")

seen = {}
for name, how in ENDS.items():
    argv = [t.PYTHON, "-c", LOOK + how]
    usual, _ = t.record(argv)
    result, path = t.record(argv, options=("--unreachable", *(["--look"] if name in LOOKED else [])))
    result.check_like(name, usual)
    found = t.report(path)
    if found and "reachability" in found:
        t.check(found["reachability"]["known_processes"] > 0, f"{name}: {found['reachability']}")
    if found and "looks" in found:
        seen[name] = found["looks"]

for name, looks in seen.items():
    t.check(looks[-1]["views"] >= 4 and not looks[-1]["reason"], f"{name}: {looks}")
t.check(len(seen.get("is looked at while it runs", ())) > 1, f"no look while it runs: {seen}")

crash = ["sh", "-c", "kill -SEGV $$"]
t.record(crash, options=("--unreachable",))[0].check_like("crash", t.record(crash)[0])

# The tool is stopped, or gone, when the program ends.
WAITS = "import sys; print('ready'); sys.stdout.flush(); sys.stdin.read(); print('end')"
for what, number, most_s in (("killed", signal.SIGKILL, 60), ("stopped", signal.SIGSTOP, 60)):
    command = [t.CAIRN, "run", "-q", "--unreachable", "-o", t.fresh_path(what) + ".cairn", t.PYTHON, "-c", WAITS]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal(f"{what}: begins", process.stdout.readline(), b"ready\n")
        child = t.children_of(process.pid)[0]
        os.kill(process.pid, number)
        start = time.monotonic()
        process.stdin.close()
        t.check_equal(f"{what}: goes on", process.stdout.readline(), b"end\n")
        t.wait_until(lambda child=child: t.is_in_state(child, "ZX") or not os.path.exists(f"/proc/{child}"), most_s)
        took = time.monotonic() - start
        t.check(took < most_s, f"{what}: the program ended {took:.1f} s later")
        os.kill(process.pid, signal.SIGCONT)
        process.wait()
t.finish()
