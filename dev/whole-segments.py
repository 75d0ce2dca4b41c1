#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives every segment of an executable the bytes in the file that it has in memory: dev/whole-segments.py FILE

The kernel clears the rest of a segment's last page itself, and ends a program when that page is not in the file. So a
file that was cut would end before its first instruction, which says that it is cut (tool/base/entry.c)."""

import struct
import sys

HEADER = "<16sHHIQQQIHHHHHH"
SEGMENT = "<IIQQQQQQ"
PT_LOAD, SHT_NOBITS = 1, 8


def main():
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    head = list(struct.unpack_from(HEADER, data))
    segments_at, sections_at = head[5], head[6]
    for i in range(head[10]):
        at = segments_at + i * head[9]
        segment = list(struct.unpack_from(SEGMENT, data, at))
        kind, _, offset, _, _, in_file, in_memory, _ = segment
        if kind != PT_LOAD or in_file == in_memory:
            continue
        end, more = offset + in_file, in_memory - in_file
        more_aligned = (more + 15) & ~15
        for j in range(head[10]):
            other = list(struct.unpack_from(SEGMENT, data, segments_at + j * head[9]))
            if other[2] >= end and other[5]:
                sys.exit(f"{sys.argv[1]}: a segment follows the one that grows")
        segment[5] = in_memory
        struct.pack_into(SEGMENT, data, at, *segment)
        for j in range(head[12]):
            place = sections_at + j * head[11]
            kind, = struct.unpack_from("<I", data, place + 4)
            start, = struct.unpack_from("<Q", data, place + 24)
            if start >= end and kind != SHT_NOBITS:
                struct.pack_into("<Q", data, place + 24, start + more_aligned)
        data[end:end] = bytes(more_aligned)
        if sections_at >= end:
            sections_at += more_aligned
            struct.pack_into("<Q", data, 40, sections_at)
    with open(sys.argv[1], "wb") as file:
        file.write(data)


main()
