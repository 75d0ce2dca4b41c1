#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guard bands change no program: output and status of real programs, and of the small ones that do odd
things, are the same with them, and no damage is found where there is none. `make check-long` has more real programs."""

import pathlib
import re
import shutil
import subprocess

import cairn_test as t
import real_programs

OWN = [("leak",), ("exceptions", "refuse"), ("signal_handler",), ("coroutines",), ("dlopen_loop",),
       ("threads", "short"), ("threads", "late"), ("processes", "fork", 4), ("processes", "vfork"),
       ("processes", "clone"), ("processes", "exec", 3), ("realloc_chain",), ("mixed",), ("containers",)]
REPRESENTATIVE = ("sqlite3", "g++", "node")  # of C, of C++, and one with compiled code of its own
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]


def guarded(name, argv, variables=None):
    plain = t.run(argv, env=variables)
    result, path = t.record(argv, env={**(variables or {}), "CAIRN_GUARD": "32"})
    result.check_like(name, plain)
    found = t.report(path, "--top", "1")
    for process in found.get("processes", [found]):
        guard = process.get("guard", {"overrun_blocks": 0})
        t.check(not guard["overrun_blocks"], f"{name}: {str(guard)[:600]}")


for program, make in real_programs.EVERY.items():
    if not t.IS_LONG and program not in REPRESENTATIVE:
        continue
    command, extra = make()
    guarded(program, command, extra)
for own in OWN:
    guarded(" ".join(map(str, own)), t.program(*own))
for allocator in ALLOCATORS:
    for own in (("mixed",), ("containers",), ("realloc_chain",)) if t.IS_LONG else (("containers",),):
        guarded(f"{own} with {allocator}", t.program(*own), {"LD_PRELOAD": allocator})

# the same blocks, errno and alignment for every odd argument; only the room is what was asked for
odd = t.program("odd_arguments")
with_bands, _ = t.record(odd, env={"CAIRN_GUARD": "32"})


def without_room(output):
    return re.sub(rb"usable \d+", b"", output)


t.check_equal("odd arguments", without_room(with_bands.out), without_room(t.run(odd).out))
t.check_equal("odd arguments: status", with_bands.status, 0)

# functions that are looked for at their first call, in a library that has them: the first block has no
# bands, as there is no room for them beside such an alignment
LIBRARY = """
#include <stddef.h>
void __libc_free(void *);
void free_sized(void *block, size_t size) { (void)size; __libc_free(block); }
void free_aligned_sized(void *block, size_t alignment, size_t size) { (void)alignment; (void)size; __libc_free(block); }
void cfree(void *block) { __libc_free(block); }
"""
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);
void cfree(void *);
static void sized(void *block) { free_sized(block, 100); }
static void aligned(void *block) { free_aligned_sized(block, 16, 100); }
int main(void) {
    void (*const ways[])(void *) = {sized, aligned, cfree};
    for (int way = 0; way < 3; way++) {
        for (int shift = 12; shift < 40; shift += 2) {
            void *block = NULL;
            if (!posix_memalign(&block, (size_t)1 << shift, 100)) ways[way](block);
        }
        for (int i = 0; i < 10; i++) ways[way](malloc(100));
    }
    puts("fine");
}
"""
if shutil.which("gcc"):
    pathlib.Path("sized.c").write_text(LIBRARY, encoding="ascii")
    pathlib.Path("program.c").write_text(PROGRAM, encoding="ascii")
    for words in (["-shared", "-fPIC", "-o", "libsized.so", "sized.c"],
                  ["-o", "program", "program.c", "-L.", "-lsized", "-Wl,-rpath,$ORIGIN"]):
        subprocess.run(["gcc", "-O1", "-fno-builtin", *words], check=True)
    guarded("sized frees", ["./program"])
else:
    t.skip_part("sized frees: no gcc")
t.finish()
