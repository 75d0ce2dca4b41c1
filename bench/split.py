# SPDX-License-Identifier: Apache-2.0
"""Instructions by room of the runtime, from what callgrind writes. The source file of an instruction decides: much of
the hot path is inlined into the hooks, and counts for the room whose header it stands in."""

import collections
import re
import sys

ROOMS = ("hook", "thread", "unwind", "stack", "live", "record", "sys")
# Beside these the library's other rooms, and `format`; and all that is not the library: the program, libc, the linker.
REST, OUTSIDE = "the library's rest", "program and libc"
COLUMNS = (*ROOMS, REST, OUTSIDE)
# "fi=(7) a/b.c" names 7, "fi=(7)" refers to it. fl, fi and fe are numbered together; c… is where a call goes.
NAME = re.compile(r"(c?)(f[lie]|ob)=\((\d+)\)(?: (.+))?")
ROOM = re.compile(r"(?:^|/)runtime/(\w+)/[^/]+$")
# The compiler's own header, inlined where one room includes it (tests/e2e/benchmark looks for others).
INTRINSICS, INTRINSICS_ROOM = "emmintrin.h", "stack"
LIBRARY = re.compile(r"/libcairn[^/]*\.so$")


def by_file(path):
    """{(object, source file): instructions of its own}"""
    names, found, where, is_of_call = {}, collections.Counter(), {"ob": "", "file": ""}, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line[0] in "0123456789+-*":
                if not is_of_call:  # else it is what the called function took
                    found[where["ob"], where["file"]] += int((line.split() + ["0"])[1])
                is_of_call = False
            elif line.startswith("calls="):
                is_of_call = True
            elif is_name := NAME.match(line):
                of_call, kind, number, name = is_name.groups()
                kind = kind if kind == "ob" else "file"
                name = names.setdefault((kind, number), name)
                if not of_call:
                    where[kind] = name
    return found


def column_of(module, source):
    if not LIBRARY.search(module):
        return OUTSIDE
    if source.endswith("/" + INTRINSICS):
        return INTRINSICS_ROOM
    room = ROOM.search(source)
    return room[1] if room and room[1] in ROOMS else REST


def by_room(path, total):
    """{column: instructions}, of a run that executed so many in all."""
    found = dict.fromkeys(COLUMNS, 0)
    for (module, source), number in by_file(path).items():
        found[column_of(module, source)] += number
    if sum(found.values()) != total:
        sys.exit(f"{path}: {sum(found.values())} instructions by file, but {total} in all")
    if found[REST] and not any(found[room] for room in ROOMS):
        sys.exit(f"{path}: the library has no debug information")
    return found


def print_table(what, rows):
    """What cairn adds: rows of (cells of the columns `what`, {column: instructions}, what the floor adds)."""
    print("\nThe same instructions by room of the runtime (folders of `runtime/`), by the source file of each "
          "instruction (`bench/split.py`). The last column is no part of the sum.\n")
    print("| " + " | ".join([*what, *COLUMNS, "sum", "a counting preload adds"])
          + " |\n|---|" + "--:|" * (len(what) - 1 + len(COLUMNS) + 2))
    for cells, added, floor in rows:
        numbers = [*(added[column] for column in COLUMNS), sum(added[column] for column in COLUMNS), floor]
        print("| " + " | ".join([*cells, *(f"{round(number):,}" for number in numbers)]) + " |")
