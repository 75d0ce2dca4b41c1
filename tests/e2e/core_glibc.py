#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""glibc's heap of releases that differ in caches, list links and arenas: one program run through the ld.so of
each, its core read, and compared with what the program itself and malloc_info say. Linked against the oldest, as
a program that runs on all of them is."""

import os
import pathlib
import re
import subprocess

import cairn_test as t
import glibc_versions

t.need("gcore", "gcc", "dpkg-deb")
OLDEST = "2.31"
START_FILES = ("crt1.o", "crti.o", "crtn.o")


def get(version):
    try:
        return glibc_versions.loader(version, os.environ.get("GLIBC_DIR", "."))
    except OSError as problem:
        t.skip_part(f"glibc {version}, since {glibc_versions.mirror()} does not give it: {problem}")
        return ()


def build(libraries):
    """heap_shapes with the symbols of these libraries; the usual one where they are this machine's."""
    if not libraries:
        return t.program("heap_shapes")[0]
    start = [t.run(["gcc", f"-print-file-name={name}"]).out.decode().strip() for name in START_FILES]
    found = [str(path) for name in ("libc.so.6", "libpthread.so.0") for path in [pathlib.Path(libraries[1]) / name]
             if path.exists()]
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", "-fno-stack-protector", "-nostdlib", "-o",
                    "heap_shapes", *start[:2], str(t.SOURCE / "tests/programs/heap_shapes.c"), *found, start[2],
                    "-Wl,--allow-shlib-undefined"], check=True)
    return os.path.abspath("heap_shapes")


def ask(core, *words):
    result = t.run_cairn("core", core, *words)
    t.check_equal(f"{core} {' '.join(words)}: status ({result.err.decode()[-200:]})", result.status, 0)
    return result.out


def sizes(core, which):
    return [int(size, 16) for size in re.findall(rb" of size ([0-9a-f]+)\n", ask(core, "list", which))]


def check_info(name, core, info):
    """glibc's own count of free chunks; those in threads' caches it counts as in use."""
    totals = {kind: (int(number), int(size)) for kind, number, size in
              re.findall(r'<total type="(\w+)" count="(\d+)" size="(\d+)"/>', info)}
    arenas = len(re.findall("<heap nr=", info))
    free = sizes(core, "free")
    cached = re.search(rb"(\d[\d,]*) +\S+ \S+  free, in caches", ask(core))
    in_caches = int(cached[1].replace(b",", b"")) if cached else -1
    t.check(in_caches > 0, f"{name}: nothing in caches")
    t.check_equal(f"{name}: free chunks by malloc_info", len(free) - in_caches, totals["fast"][0] + totals["rest"][0])
    t.check_equal(f"{name}: arenas", arenas, 4)


def check(version, program):
    libraries = get(version)
    if libraries == ():
        return False
    name = f"glibc{version}"
    run = [libraries[0], "--library-path", libraries[1]] if libraries else []
    with t.Process([*run, program, f"{name}.xml"], env=t.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        wanted = {word: int(value) for word, value in
                  (part.split("=") for part in child.stdout.readline().decode().split())}
        done = subprocess.run(["gcore", "-o", name, str(child.pid)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)
    core = f"{name}.{child.pid}"
    if not t.check(os.path.exists(core), f"{name}: {done.stdout.decode()[-300:]}"):
        return False
    size, used = wanted["size"], sizes(core, "used")
    t.check_equal(f"{name}: blocks in use", sum(size <= got < size + 16 for got in used), wanted["used"])
    t.check_equal(f"{name}: free blocks", sum(size <= got < size + 16 for got in sizes(core, "free")), wanted["free"])
    t.check_equal(f"{name}: blocks with a mapping", sum(got >= wanted["large"] for got in used), wanted["mapped"])
    t.check(b"free, at the end of %d arenas" % wanted["arenas"] in ask(core), f"{name}: {ask(core)}")
    t.check_equal(f"{name}: leaked", ask(core, "count", "leaked"), b"0 allocations use 0x0 (0) bytes.\n")
    check_info(name, core, pathlib.Path(f"{name}.xml").read_text(encoding="ascii"))
    print(f"glibc {version}: {len(used)} blocks in use")
    return True


oldest = get(OLDEST)
checked = [check(version, build(oldest) if oldest != () else build(None)) for version in glibc_versions.SUITES]
t.check(any(checked), "no glibc could be checked")
t.finish()
