#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of `valgrind --tool=dhat`: totals, peak (t-gmax), end, and the same per stack.

What DHAT counts: requested bytes, except that a request for 0 counts as 1; a realloc as a new block
that belongs to the stack of the realloc. Of equal maxima it keeps the latest. It replaces malloc, so
what libc allocates for itself with internal calls (not through malloc) is not seen by it either.

    dhat_totals.py dhat.out.PID [--stacks]
"""

import json
import re
import sys

FRAME = re.compile(r"^0x[0-9A-F]+: (?P<function>.*?)(?: \((?P<place>[^()]*)\))?$")


class Stack:
    """One program point; functions innermost first, with malloc and its like at the front."""

    def __init__(self, point, frames):
        self.functions = [frame_function(frames[index]) for index in point["fs"]]
        self.frames = [frames[index] for index in point["fs"]]
        self.allocated_bytes, self.allocations = point["tb"], point["tbk"]
        self.peak_bytes, self.peak_blocks = point["gb"], point["gbk"]
        self.end_bytes, self.end_blocks = point["eb"], point["ebk"]


def frame_function(frame):
    found = FRAME.match(frame)
    return found.group("function") if found else frame


def read_stacks(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    if data["dhatFileVersion"] != 2:
        raise ValueError(f"{path}: DHAT file version {data['dhatFileVersion']}")
    return [Stack(point, data["ftbl"]) for point in data["pps"]]


FIELDS = ("allocations allocated_bytes peak_bytes peak_blocks end_bytes end_blocks").split()


def totals(stacks):
    return {field: sum(getattr(stack, field) for stack in stacks) for field in FIELDS}


def main():
    stacks = read_stacks(sys.argv[1])
    for field, value in totals(stacks).items():
        print(f"{field:16} {value:>14,}")
    if "--stacks" in sys.argv[2:]:
        for stack in sorted(stacks, key=lambda one: -one.allocated_bytes):
            print(f"{stack.allocated_bytes:>12} {stack.allocations:>8} peak {stack.peak_bytes}"
                  f" end {stack.end_bytes}  {' < '.join(stack.functions)}")


if __name__ == "__main__":
    main()
