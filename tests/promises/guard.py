#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guard bands change no program: output and status of real programs, and of the small ones that do odd
things, are the same with them, and no damage is found where there is none."""

import re

import cairn_test as t
import real_programs

OWN = [("leak",), ("exceptions", "refuse"), ("signal_handler",), ("coroutines",), ("dlopen_loop",),
       ("threads", "short"), ("threads", "late"), ("processes", "fork", 4), ("processes", "vfork"),
       ("processes", "clone"), ("processes", "exec", 3), ("realloc_chain",), ("mixed",), ("containers",)]
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]


def guarded(name, argv, variables=None):
    plain = t.run(argv, env=variables)
    result, path = t.record(argv, env={**(variables or {}), "CAIRN_GUARD": "32"})
    result.check_like(name, plain)
    found = t.report(path)
    for process in found.get("processes", [found]):
        guard = process.get("guard", {"overrun_blocks": 0})
        t.check(not guard["overrun_blocks"], f"{name}: {str(guard)[:600]}")


for program, make in real_programs.EVERY.items():
    command, extra = make()
    guarded(program, command, extra)
for own in OWN:
    guarded(" ".join(map(str, own)), t.program(*own))
for allocator in ALLOCATORS:
    for own in (("mixed",), ("containers",), ("realloc_chain",)):
        guarded(f"{own} with {allocator}", t.program(*own), {"LD_PRELOAD": allocator})

# the same blocks, errno and alignment for every odd argument; only the room is what was asked for
odd = t.program("odd_arguments")
with_bands, _ = t.record(odd, env={"CAIRN_GUARD": "32"})


def without_room(output):
    return re.sub(rb"usable \d+", b"", output)


t.check_equal("odd arguments", without_room(with_bands.out), without_room(t.run(odd).out))
t.check_equal("odd arguments: status", with_bands.status, 0)
t.finish()
