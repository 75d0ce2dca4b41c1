#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library remembers of stacks never differs from a full walk: with CAIRN_VERIFY=1 it finds the
cell of every allocation twice and aborts at the first difference. With CAIRN_LONG=1 there are more of them, cut at more depths, and they run until
50 million allocations were compared."""

import os

import cairn_test as t
import real_programs

OWN = [("frames",), ("exceptions",), ("deep_recursion",), ("signal_handler",), ("coroutines",),
       ("generated", 20000), ("dlopen_loop",), ("threads", "short"), ("threads", "late"), ("mixed",), ("short_threads", 200)]
LONG = bool(os.environ.get("CAIRN_LONG"))
EVENTS_WANTED = 50_000_000 if LONG else 300_000
REPRESENTATIVE = ("g++", "node")
SCALE = 20 if LONG else 2
SCALED = {"python3": real_programs.python3, "perl": real_programs.perl, "sqlite3": real_programs.sqlite3,
          "xmllint": real_programs.xmllint}


def verified(name, argv, env):
    plain = t.run(argv, env=env)
    checked, path = t.record_alone(argv, env={**env, "CAIRN_VERIFY": "1"}, timeout=1800)
    checked.check_like(name, plain)
    found = t.report(path)
    count = found["totals"]["allocations"] if found else 0
    t.check(count > 0, f"{name}: nothing was recorded")
    print(f"{name}: {count} allocations", flush=True)
    return count


compared = sum(verified(" ".join(map(str, own)), t.program(*own), {}) for own in OWN)
for depth in (1, 3, 20, 64) if LONG else (1, 20):
    for own in (("levels", 300, 20), ("frames",), ("exceptions",), ("signal_handler",), ("coroutines",), ("mixed",)):
        compared += verified(f"{' '.join(map(str, own))}, cut at {depth}", t.program(*own), {"CAIRN_MAX_DEPTH": str(depth)})
for real, make in real_programs.EVERY.items():
    if real not in SCALED and (LONG or real in REPRESENTATIVE):
        compared += verified(real, *make())
while compared < EVENTS_WANTED:
    for real, scaled in SCALED.items():
        compared += verified(real, *scaled(SCALE))
print(f"{compared} allocations compared")
t.finish()
