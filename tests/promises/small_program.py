#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small program (bench/programs/small.c: a heap of 1 MiB, few stacks) gets few pages of cairn's own: private ones,
the library's variables among them, and those of the recording. What else counts as its resident memory are pages of
files that the kernel maps around those that are read, which depends on where it puts them: bench/resident.py."""

import os
import pathlib
import subprocess

import cairn_test as t

RUNS = 5  # the least counts: a run that is held up takes more of the timeline
PAGE_BYTES = 4 << 10
LIVE_MAP_KIB = 132  # an eighth of the heap, in whole pages
OTHER_KIB = 192  # one library takes 168 to 188 as the kernel keeps the pages of files


def pages_of_its_own(variables):
    """KiB that are private or the recording's."""
    with t.Process([t.BUILD / "bench/small"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   env=t.environment(variables)) as program:
        program.stdout.read(1)
        kib, is_recording = 0, False
        for line in pathlib.Path(f"/proc/{program.pid}/smaps").read_text().splitlines():
            name, *values = line.split()
            if not name.endswith(":"):
                is_recording = line.endswith(".cairn")
            elif name == ("Rss:" if is_recording else "Anonymous:"):
                kib += int(values[0])
        program.stdin.close()
    return kib


if os.sysconf("SC_PAGE_SIZE") != PAGE_BYTES:
    t.cannot_run_here("pages are not of 4 KiB")
recorded = {"LD_PRELOAD": str(t.RUNTIME), "CAIRN_OUTPUT": t.fresh_path("small") + ".%p.cairn"}
plain = min(pages_of_its_own({}) for _ in range(RUNS))
added = sorted(pages_of_its_own(recorded) - plain for _ in range(RUNS))
t.check(added[0] > LIVE_MAP_KIB, f"it is recorded: {added} KiB more")
t.check(added[0] <= LIVE_MAP_KIB + OTHER_KIB, f"at most {LIVE_MAP_KIB} + {OTHER_KIB} KiB more, not {added}")
t.finish()
