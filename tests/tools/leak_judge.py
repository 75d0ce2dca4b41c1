# SPDX-License-Identifier: Apache-2.0
"""What LeakSanitizer says of programs that lose blocks: of those in tests/programs, built with it, and of any other,
into which its library is preloaded. Sizes are those that glibc's malloc gives.

Of a ring of lost blocks, each of which another one refers to, LeakSanitizer calls none directly lost; cairn calls one
so. RINGS says how many such rings there are: this is the only difference that is allowed."""

import os
import re
import subprocess

import cairn_test as t

WRITTEN, KINDS, GRAPHS = 19, 44, 26  # cases of lost.c and lost_kinds.cc; random graphs of lost.c
NOTHING = 15  # of lost.c: loses nothing
LOADED_THREAD_LOCAL = 27  # of lost_kinds.cc
RINGS = {("lost_kinds", case): count for case, count in
         {0: 1, 1: 1, 3: 1, 6: 1, 32: 3, 33: 1, 35: 1, 36: 1, 38: 1}.items()}
HEAD = re.compile(r"(Direct|Indirect) leak of \d+ byte\(s\) in \d+ object\(s\)")
OBJECT = re.compile(r"0x[0-9a-f]+ \((\d+) bytes\)")
OPTIONS = "report_objects=1:max_leaks=0:symbolize=0"
LOST_LIBRARY = str(t.PROGRAMS / "liblost.so")
PRELOAD = str(t.BUILD / "tests/lsan_preload.so")
os.environ["LOST_LIBRARY"] = LOST_LIBRARY  # that lost_kinds loads

_built = {}


def cases(count, of_living):
    """The numbers of the cases to try: each of them by one of the two tests, and by both in `make check-long`."""
    return [number for number in range(count) if t.IS_LONG or (number % 3 == 0) == of_living]


def usable(size):
    """What malloc_usable_size says of glibc's block of so many bytes."""
    return max(24, (size + 8 + 15) // 16 * 16 - 8)


def _sums(text):
    sums, kind = {"Direct": [0, 0], "Indirect": [0, 0]}, None
    for line in text.splitlines():
        head, lost = HEAD.match(line), OBJECT.match(line)
        kind = head[1] if head else kind
        if lost and kind:
            sums[kind][0] += usable(int(lost[1]))
            sums[kind][1] += 1
    return tuple(sums["Direct"] + sums["Indirect"])


def built(name):
    """The program with LeakSanitizer in it; None: it is not here, or cannot work here."""
    if name not in _built:
        source = t.SOURCE / f"tests/programs/{name}.c"
        source = source if source.exists() else source.with_suffix(".cc")
        judge = t.fresh_path("judge-" + name)
        made = t.run(["g++" if source.suffix == ".cc" else "gcc", "-w", "-O1", "-g", "-fno-builtin", "-fsanitize=leak",
                      "-pthread", "-o", judge, str(source)])
        works = made.status == 0 and _sums(t.run([judge, "2"], {"LSAN_OPTIONS": OPTIONS}).err.decode()) != (0,) * 4
        _built[name] = judge if works else None
    return _built[name]


def of_case(name, case):
    """Directly lost bytes and blocks, then indirectly lost ones: what it says twice in a row, since on a busy machine
    it may miss what another thread's registers hold."""
    before, found = None, ()
    while found != before:
        before, found = found, _sums(t.run([built(name), str(case)], {"LSAN_OPTIONS": OPTIONS}).err.decode())
    return found


def library():
    """None: it is not here."""
    said = subprocess.run(["gcc", "-print-file-name=liblsan.so"], stdout=subprocess.PIPE, check=False, text=True).stdout
    return said.strip() if os.path.isabs(said.strip()) else None


def of_program(argv, stdin=None, env=None, are_mappings_searched=True):
    """The same of a program that was built without it, and its status and output."""
    preload = ([PRELOAD] if are_mappings_searched else []) + [library()]
    result = t.run(argv, {**(env or {}), "LD_PRELOAD": ":".join(preload), "LSAN_OPTIONS": OPTIONS + ":exitcode=0"}, stdin)
    return _sums(result.err.decode(errors="replace")), result


def check(what, found, wanted, rings=0, more=0):
    """Both are (direct bytes, direct blocks, indirect bytes, indirect blocks). `more`: bytes that a block may have beyond
    what was asked for, where glibc would have too few left for another one."""
    blocks, size = wanted[1] + wanted[3], wanted[0] + wanted[2]
    t.check_equal(f"{what}: lost blocks", found[1] + found[3], blocks)
    t.check_equal(f"{what}: directly lost blocks, but for {rings} of rings", found[1] - rings, wanted[1])
    t.check(size <= found[0] + found[2] <= size + more * blocks, f"{what}: {found}, should be {wanted}")
    t.check(rings or more or found == wanted, f"{what}: {found}, should be {wanted}")
