# SPDX-License-Identifier: Apache-2.0
"""What `cairn events` says of a log."""

import csv

import cairn_test as t


def rows(log, *arguments):
    shown = t.run_cairn("events", "--format", "csv", *arguments, log)
    t.check_equal(f"{log}: csv", (shown.status, shown.err), (0, b""))
    lines = csv.reader(shown.out.decode().splitlines())
    names = next(lines)
    return [dict(zip(names, line, strict=True)) for line in lines]


def summary(log):
    """The lines above the list, as one."""
    shown = t.run_cairn("events", "-n", "1", log)
    t.check_equal(f"{log}: text", (shown.status, shown.err), (0, b""))
    return " ".join(shown.out.decode().split())
