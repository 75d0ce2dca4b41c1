#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which functions of the library nearly every recorded program runs: writes runtime/order.txt, by which the linker
puts them side by side. The kernel maps the pages around one that is touched, 64 KiB at a time, so code that is spread
over the file makes all of it resident.

    make all bench-programs && dev/order.py

The list is what callgrind saw of a few small programs; a function that is renamed later falls out of the order,
nothing else. tests/e2e/order.py compares its names with the sources.
"""

import collections
import os
import pathlib
import re
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or TOP / "build")
PROGRAMS = (
    [BUILD / "bench/small"], ["/bin/true"], ["sh", "-c", "/bin/true; (ls -l / | sort)"],
    [BUILD / "bench/pairs", "walk", "20", "256", "20000"], [BUILD / "bench/pairs", "random", "20", "64", "20000", "2"],
    [BUILD / "bench/pairs", "grow", "5", "1", "20000"], [BUILD / "bench/trees", "200"],
    [BUILD / "bench/handover", "20000"], ["python3", "-c", "pass"])
# Run at every start, but not where valgrind hides the vdso.
HIDDEN = ["vdso_find", "vdso_tables_find"]
# What a small program runs at some of its runs: where its stack begins at a page's end, where hashes fall together.
SOMETIMES = ["bucket_put_far", "is_step_possible_slow", "range_extend_slow", "sys_is_readable"]
ASSEMBLER = ["syscall"]  # has no section of its own
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Functions of the library in the order in which they are to lie in its file (written by dev/order.py).
"""


def functions_run(command):
    """Names of the library's functions that ran."""
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ, CAIRN_OUTPUT=f"{place}/x.cairn", LD_PRELOAD=str(BUILD / "libcairn.so"))
        subprocess.run(["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={place}/out.%p",
                        *map(str, command)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        return {name for out in pathlib.Path(place).glob("out.*") for name in functions_in(out.read_text())}


def functions_in(profile):
    """callgrind writes a name at its first use, and then its number. The compiler's own parts of a function
    (NAME.part.0, NAME.cold) count as the function."""
    objects, functions, is_ours = {}, {}, False
    for kind, number, name in re.findall(r"^(ob|fn|cfn|cob)=\((\d+)\)(?: (.*))?$", profile, re.M):
        known = objects if kind in ("ob", "cob") else functions
        if name:
            known[number] = name
        if kind == "ob":
            is_ours = known[number].endswith("/libcairn.so")
        elif kind == "fn" and is_ours:
            name = re.match(r"\w*", known[number])[0]
            if name and not name.startswith("0x"):
                yield name


def main():
    """What a small program runs comes first, and then what most others run."""
    ran = [set(functions_run(command)) for command in PROGRAMS]
    ran[0].update(SOMETIMES)
    runs = collections.Counter(name for names in ran for name in names)
    names = sorted(runs, key=lambda name: (name not in ran[0], -runs[name], name))
    names = HIDDEN + [name for name in names if name not in HIDDEN + ASSEMBLER]
    (TOP / "runtime/order.txt").write_text(HEAD + "".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main()
