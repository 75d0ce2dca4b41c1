# SPDX-License-Identifier: Apache-2.0
"""Reads the counters that count_preload.so left, one file a process."""

import glob
import struct

FIELDS = ("magic pid allocations allocated_bytes frees freed_bytes failed "
          "live_bytes live_blocks peak_bytes peak_blocks unknown_frees").split()
MAGIC = 0x31746e756f63


def read_file(path):
    with open(path, "rb") as file:
        values = struct.unpack(f"<{len(FIELDS)}Q", file.read(8 * len(FIELDS)))
    counts = dict(zip(FIELDS, values))
    if counts.pop("magic") != MAGIC:
        raise ValueError(f"{path}: not a file of count_preload")
    return counts


def read_all(prefix):
    """All processes that ran with COUNT_PRELOAD_OUT=prefix: {file suffix: counts}."""
    return {path[len(prefix) + 1:]: read_file(path) for path in sorted(glob.glob(prefix + ".*"))}
