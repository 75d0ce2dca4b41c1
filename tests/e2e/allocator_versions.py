#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""jemalloc and tcmalloc of other Debians, in chroots: the blocks are those that the program holds; under load none
of them is called free. Of mimalloc, whose versions there are laid out in another way, it is said that they are not read,
without any figure."""

import shutil
import subprocess

import cairn_test as t
import chroots
from held_blocks import stops, under_load

PACKAGES = {
    "bullseye": ["libjemalloc2", "libtcmalloc-minimal4"],
    "trixie": ["libjemalloc2", "libtcmalloc-minimal4t64", "libmimalloc3"],
    "sid": ["libjemalloc2", "libtcmalloc-minimal4t64", "libmimalloc3"],
}
LOADED = 10  # stops under load
LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.3"}


def libraries_of(root):
    for name, file in LIBRARIES.items():
        found = next(root.glob(f"usr/lib/*/{file}"), None)
        if found:
            yield name, "/" + str(found.relative_to(root))


def refused(what, argv):
    """It is named, and nothing is said of its blocks."""
    with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(f"/tmp/held-{process.pid}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        result = t.run_cairn("core", str(process.pid), "list", "used")
        t.check_equal(f"{what}: status, output", (result.status, result.out), (1, b""), is_grave=True)
        t.check(b"mimalloc 2.0.9" in result.err and b"it used libmimalloc.so.3" in result.err, f"{what}: {result.err}")
        process.stdin.close()


def check_suite(suite):
    root = chroots.find(suite, "allocators", ["gcc", "libc6-dev", *PACKAGES[suite]])
    if not root:
        return
    shutil.copy(t.SOURCE / "tests/programs/held_blocks.c", root / "tmp")
    made = t.run(["chroot", str(root), "gcc", "-D_GNU_SOURCE", "-O1", "-pthread", "-o", "/tmp/held_blocks", "/tmp/held_blocks.c", "-ldl"])
    t.check_equal(f"{suite}: gcc: {made.err.decode()}", made.status, 0)
    for name, library in libraries_of(root):
        argv = ["chroot", str(root), "env", f"LD_PRELOAD={library}", "/tmp/held_blocks"]
        if name == "mimalloc":
            refused(f"{suite}: {name}", argv)
        else:
            stops(f"{suite}: {name}", argv, root=str(root))
            under_load(f"{suite}: {name}", library, LOADED, root=str(root))


for one in PACKAGES:
    check_suite(one)
t.finish()
