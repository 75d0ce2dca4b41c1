#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom (CONTRIBUTING.md says why): every `#include "..."` of a room must
start with one of the prefixes that the room may use, some rooms may not use some libraries, and units
(a header with its .c file) that include one another in a circle are few."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent

# Room: what it may include besides itself. The longest matching room of a file counts.
ALLOWED = {
    "include": [],
    "format": [],
    "runtime/sys": ["format"],
    "runtime/unwind": ["format", "runtime/sys"],
    "runtime/stack": ["format", "runtime/sys"],
    "runtime/live": ["format", "runtime/sys"],
    "runtime/managed": ["format", "runtime/sys"],
    "runtime/python": ["format", "runtime/sys", "runtime/managed"],
    "runtime/async": ["format", "runtime/sys", "runtime/managed"],
    "runtime/go": ["format", "runtime/sys", "runtime/managed"],
    "runtime/java": ["format", "runtime/sys", "runtime/managed"],
    "runtime/js": ["format", "runtime/sys", "runtime/managed"],
    "runtime/php": ["format", "runtime/sys", "runtime/managed"],
    "runtime/ruby": ["format", "runtime/sys", "runtime/managed"],
    "runtime/sample": ["format", "runtime/sys"],
    "runtime/guard": ["format", "runtime/sys"],
    "runtime/sink": ["format", "runtime/sys"],
    "runtime/torture": ["format"],
    "runtime": ["include", "format"],
    "tool/base": ["format"],
    "tool/model": ["format", "tool/base"],
    "tool/symbol": ["format", "tool/base", "tool/model"],
    "tool/answer": ["format", "tool/base", "tool/model", "tool/render/columns.h", "tool/render/frames.h",
                    "tool/render/interval.h", "tool/render/json_values.h", "tool/render/shorten.h", "tool/render/stacks.h",
                    "tool/render/terminal.h", "tool/render/trust.h"],
    "tool/render": ["format", "tool/base", "tool/model", "tool/answer"],
    "tool/export": ["format", "tool/base", "tool/model", "tool/render"],
    "tool/web": ["format", "tool/base", "tool/model", "tool/answer", "tool/render", "tool/export"],
    "tool/tui": ["format", "tool/base", "tool/model", "tool/render"],
    "tool/import": ["format", "tool/base", "tool/model", "tool/symbol"],
    "tool/proc": ["tool/base"],
    "tool/glibc": ["tool/base", "tool/proc"],
    "tool/jemalloc": ["tool/base", "tool/proc", "tool/glibc"],
    "tool/mimalloc": ["tool/base", "tool/proc", "tool/glibc"],
    "tool/tcmalloc": ["tool/base", "tool/proc", "tool/glibc"],
    "tool/types": ["format", "tool/base", "tool/model", "tool/symbol"],
    "tool/heap": ["format", "tool/base", "tool/model", "tool/symbol", "tool/types", "tool/proc",
                  "tool/glibc", "tool/jemalloc", "tool/mimalloc", "tool/tcmalloc"],
    "tool/go": ["format", "tool/base", "tool/model", "tool/symbol", "tool/proc", "tool/heap", "tool/import"],
    "tool/events": ["format", "tool/base", "tool/model"],
    "replay": ["format"],
    "tool/replay": ["format", "tool/base", "tool/model", "tool/events", "tool/watch"],
    "tool/watch": ["format", "tool/base", "tool/model", "tool/proc", "tool/glibc", "tool/events"],
    "tool/attach": ["format", "tool/base", "tool/model", "tool/proc", "tool/glibc", "tool/heap"],
    "tool/query": ["format", "tool/base", "tool/model", "tool/symbol", "tool/types", "tool/answer", "tool/render",
                   "tool/export", "tool/tui", "tool/proc", "tool/glibc", "tool/heap", "tool/go", "tool/events",
                   "tool/watch"],
    "tool/serve": ["format", "tool/base", "tool/model", "tool/render", "tool/export", "tool/web",
                   "tool/proc", "tool/watch", "tool/query"],
    "tool/push": ["format", "tool/base", "tool/model", "tool/render", "tool/export", "tool/proc", "tool/watch",
                  "tool/query"],
    "tool/manual": ["tool/base", "tool/render/terminal.h"],
    "tool/torture": ["format", "tool/base", "tool/model", "tool/symbol"],
    "tool/check": ["format", "tool/base", "tool/model", "tool/render", "tool/query"],
    "tool/mcp": ["format", "tool/base", "tool/model"],
    "tool/history": ["format", "tool/base", "tool/model", "tool/answer", "tool/render", "tool/query", "tool/check"],
    "tool": ["include", "format"],
}
# Libraries that a room may not use.
ROOM_LIBRARIES = {
    "tool/render": ["libelf.h", "gelf.h", "elf.h", "dwarf.h", "elfutils/"],
    "tool/export": ["libelf.h", "gelf.h", "elf.h", "dwarf.h", "elfutils/"],
    "tool/web": ["libelf.h", "gelf.h", "elf.h", "dwarf.h", "elfutils/"],
    "tool/model": ["libelf.h", "gelf.h", "dwarf.h", "elfutils/"],
    "runtime": ["libelf.h", "gelf.h", "dwarf.h", "elfutils/", "zstd.h", "zlib.h", "jansson.h",
                "stdio.h", "assert.h"],
}
# Not part of the library that users get: the check build's comparison with libgcc.
FREE_OF_LIBRARY_RULES = {"runtime/check/check.c"}
# The most units that may stand in one circle of includes.
LARGEST_CIRCLE = {"runtime": 3, "tool": 1}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def room_of(path, rooms):
    fitting = [room for room in rooms if path == room or path.startswith(room + "/")]
    return max(fitting, key=len, default=None)


def is_below(target, prefixes):
    return any(target == prefix or target.startswith(prefix + "/") for prefix in prefixes)


def check_line(path, quote, target):
    """Returns what is wrong with this include, or None."""
    if quote == "<":
        room = room_of(path, ROOM_LIBRARIES)
        banned = [] if path in FREE_OF_LIBRARY_RULES else ROOM_LIBRARIES.get(room, [])
        if any(target == name or (name.endswith("/") and target.startswith(name))
               for name in banned):
            return f"{room} may not use <{target}>"
        return None
    if not (TOP / target).is_file():
        return f'"{target}" is not a path from the root'
    room = room_of(path, ALLOWED)
    if room is None or is_below(target, ALLOWED[room] + [room]):
        return None
    return f"{room} may not include {target}"


def units_of(top):
    """Each unit with those that it includes."""
    units = {}
    for file in sorted((TOP / top).rglob("*.[ch]")):
        unit = file.relative_to(TOP).with_suffix("").as_posix()
        targets = [found.group(2) for found in map(INCLUDE.match, file.read_text().splitlines()) if found]
        units.setdefault(unit, set()).update(target[:-2] for target in targets if target.endswith(".h") and target[:-2] != unit)
    return units


def reached(units, start):
    found, left = set(), [start]
    while left:
        for unit in units.get(left.pop(), ()):
            if unit not in found:
                found.add(unit)
                left.append(unit)
    return found


def circles(top):
    """Units that reach one another, as sorted lists."""
    units = units_of(top)
    beyond = {unit: reached(units, unit) for unit in units}
    return {tuple(sorted(one for one in beyond[unit] if unit in beyond.get(one, ()))) for unit in units
            if unit in beyond[unit]}


def check_circles():
    return [f"{top}: {len(circle)} units include one another: {', '.join(circle)}"
            for top, most in LARGEST_CIRCLE.items() for circle in sorted(circles(top)) if len(circle) > most]


def main():
    problems = check_circles()
    for top in ("include", "format", "runtime", "tool"):
        for file in sorted((TOP / top).rglob("*.[ch]")):
            path = file.relative_to(TOP).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                wrong = found and check_line(path, *found.groups())
                if wrong:
                    problems.append(f"{path}:{number}: {wrong}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
