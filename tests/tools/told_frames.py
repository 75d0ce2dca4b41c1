# SPDX-License-Identifier: Apache-2.0
"""Stacks that a program of another language told of itself, and the frames of its code in a report."""

import collections
import pathlib


def told_stacks(path):
    """How often each stack was told: lines of a count, a blank and the stack."""
    stacks = collections.Counter()
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        count, stack = line.split(" ", 1)
        stacks[stack] += int(count)
    return stacks


def is_code(frame):
    """A frame of an interpreted language: it has a name, and no file but that of its source."""
    return frame["function"] and frame["module"] in (None, frame["file"])
