#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Output and exit status of real programs and of the small ones are the same with cairn, by
`cairn run -q` and by the preload alone, also with another allocator behind cairn. `make check` has two real programs,
since e2e/identity_* run many, and jemalloc behind all of the small ones, the others behind two; `make check-long` all."""

import os

import cairn_test as t
import real_programs

OWN = [
    ("odd_arguments",), ("leak",), ("exceptions", "refuse"), ("frames",), ("signal_handler",),
    ("coroutines",), ("dlopen_loop",), ("threads", "short"), ("threads", "pipe"),
    ("threads", "late"), ("processes", "fork", 4), ("processes", "vfork"), ("processes", "spawn"),
    ("processes", "clone"), ("processes", "exec", 3), ("realloc_chain",), ("deep_recursion",),
    ("mixed",),
]
REPRESENTATIVE = ("python3", "git-log")
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]
LIBRARY_DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
# What they print depends on nothing that another allocator changes.
WITH_OTHER_ALLOCATOR = [("leak",), ("mixed",), ("exceptions", "refuse"), ("threads", "short"),
                        ("processes", "fork", 4), ("dlopen_loop",), ("odd_arguments",)]


def library_path(name):
    paths = [os.path.join(directory, name) for directory in LIBRARY_DIRECTORIES]
    return next((path for path in paths if os.path.exists(path)), None)


def compare(name, argv, env=None):
    plain = t.run(argv, env=env)
    t.record(argv, env=env)[0].check_like(f"{name} (run)", plain)
    if not (env or {}).get("LD_PRELOAD"):
        t.record_alone(argv, env=env)[0].check_like(f"{name} (preload alone)", plain)


for name, make in real_programs.EVERY.items():
    if not t.IS_LONG and name not in REPRESENTATIVE:
        continue
    command, variables = make()
    compare(name, command, variables)
for own in OWN:
    compare(" ".join(map(str, own)), t.program(*own))
for allocator in ALLOCATORS:
    library = library_path(allocator)
    if not t.check(library is not None, f"{allocator} is not installed"):
        continue
    for own in WITH_OTHER_ALLOCATOR if t.IS_LONG or "jemalloc" in allocator else WITH_OTHER_ALLOCATOR[3:5]:
        compare(f"{' '.join(map(str, own))} with {allocator}", t.program(*own),
                {"LD_PRELOAD": library})
t.finish()
