#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime/order.txt: each function that it names is one of the runtime's, and in the library they lie together, before
all others; those that a small program runs lie in the first 64 KiB, which are all of the code that it has resident.
Its variables lie on few pages."""

import importlib.util
import re
import shutil
import subprocess

import cairn_test as t

PIECE_BYTES = 64 << 10  # that the kernel maps around a page of a file
PAGE_BYTES = 4 << 10
VARIABLES_PAGES = 3  # large ones that few programs touch are APART (runtime/sys/sys.h)


def sections_of(library):
    """Address and size by name."""
    listed = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
    return {name: (int(address, 16), int(size, 16)) for name, address, size in
            re.findall(r"\] (\.\S+) +\w+ +([\da-f]{16}) [\da-f]+ ([\da-f]+) ", listed)}


def dev_order():
    spec = importlib.util.spec_from_file_location("order", t.SOURCE / "dev/order.py")
    order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(order)
    return order


names = [line for line in (t.SOURCE / "runtime/order.txt").read_text().splitlines() if line and line[0] != "#"]
words = {word for path in (t.SOURCE / "runtime").rglob("*.[chd]*") if path.is_file()
         for word in re.findall(r"\w+", path.read_text())}
words |= set(re.findall(r"\w+", (t.SOURCE / "format/heap_functions.h").read_text()))
t.check(len(names) > 100, f"{len(names)} names")
for name in names:
    t.check(name in words, f"runtime/order.txt: {name} is no function any more; dev/order.py writes the list anew")

listed = subprocess.run(["nm", "--defined-only", "-S", t.BUILD / "libcairn.so"], capture_output=True, text=True,
                        check=True).stdout
code = [(int(start, 16), int(size, 16), name) for start, size, kind, name in
        re.findall(r"^([\da-f]+) ([\da-f]+) ([tT]) (\S+)$", listed, re.M) if ".cold" not in name]
if (t.BUILD / "order.flags").read_text().strip():
    usual = [row for row in code if row[2].split(".")[0] in names]
    first = min(start for start, _, _ in code)
    end = max(start + size for start, size, _ in usual)
    # functions of the same code have one address
    starts = {start for start, _, _ in usual}
    between = [name for start, _, name in code if start < end and start not in starts]
    t.check(len(usual) > 100 and min(usual)[0] == first, f"code begins with {min(code)[2]}")
    t.check(not between, f"other functions lie between: {between[:5]}")
    t.check(end - first < 2 * PIECE_BYTES, f"they take {end - first} bytes")
    sections = sections_of(t.BUILD / "libcairn.so")
    start, end = sections[".data"][0], sum(sections[".bss"])
    t.check(end - start <= VARIABLES_PAGES * PAGE_BYTES, f"variables take {end - start} bytes")
    fixed = sum(sections[".got"]) - sections[".tdata"][0]
    t.check(fixed <= PAGE_BYTES, f"what is read-only once it is relocated takes {fixed} bytes")
    if shutil.which("valgrind"):
        order = dev_order()
        ran = order.functions_run([t.BUILD / "bench/small"]) | set(order.SOMETIMES)
        beyond = [name for start, size, name in code
                  if name.split(".")[0] in ran and (start + size - 1) // PIECE_BYTES != first // PIECE_BYTES]
        t.check(len(ran) > 50, f"{len(ran)} functions were seen to run")
        t.check(not beyond, f"a small program's code lies elsewhere as well: {beyond[:5]}; dev/order.py writes the list anew")
    else:
        t.skip_part("valgrind is not installed")
else:
    t.skip_part("this linker leaves functions in the order of the sources")
t.finish()
