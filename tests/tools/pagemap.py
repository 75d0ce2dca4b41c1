# SPDX-License-Identifier: Apache-2.0
"""Residency of a process' memory by another hand than the tool's: /proc/PID/pagemap and /proc/PID/smaps."""

import re
import struct

PAGE = 4096
PRESENT = 1 << 63
HEADING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)\n")


def resident_bytes(pid, start, end):
    """Of whole pages from start to end."""
    count = (end - start) // PAGE
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        file.seek(start // PAGE * 8)
        entries = file.read(8 * count)
    return PAGE * sum(bool(entry & PRESENT) for (entry,) in struct.iter_unpack("<Q", entries))


def mappings(pid):
    """[(start, end, permissions, name, Rss in bytes)]"""
    found = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            heading = HEADING.fullmatch(line)
            if heading:
                found.append([int(heading[1], 16), int(heading[2], 16), heading[3], heading[4], 0])
            elif line.startswith("Rss:"):
                found[-1][4] = int(line.split()[1]) * 1024
    return [tuple(one) for one in found]
