#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check build walks every stack a second time with libgcc's unwinder and ends the process at the first
difference: real programs (in `make check` one of C, one of C++, and one with compiled code of its own) and those with
difficult frames must run through."""

import cairn_test as t
import real_programs

OWN = [("frames",), ("exceptions",), ("deep_recursion",), ("signal_handler",), ("coroutines",),
       ("dlopen_loop",), ("threads", "short"), ("threads", "late"), ("mixed",)]

REPRESENTATIVE = ("git-log", "g++", "node")


def compare(name, argv, env):
    plain = t.run(argv, env=env)
    checked, path = t.record_alone(argv, env=env, preload=t.CHECK_RUNTIME)
    checked.check_like(name, plain)
    found = t.report(path)
    if found:
        t.check(found["totals"]["allocations"] > 0, f"{name}: nothing was recorded")


for own in OWN:
    compare(" ".join(own), t.program(*own), {})
for real, make in real_programs.EVERY.items():
    if not t.IS_LONG and real not in REPRESENTATIVE:
        continue
    command, variables = make()
    compare(real, command, variables)
t.finish()
