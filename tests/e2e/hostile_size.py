#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings made to be slow: as many modules as a file of 50 MB holds, all of one build-id, and paths
without end. They are read in the time that an honest one of that size takes; the time limit is a
hundred times that, and a tenth of what comparing each with each takes."""

import json
import struct

import cairn_test as t

SECTIONS, SECTION_BYTES = 0x188, 32
MODULES, STRINGS = 1, 2
START, BUILD_ID_BYTES = 0x7F0000000000, 0x2C
LIMIT_S = 60


def section(data, kind):
    """(where its description is, bytes of an entry, content)."""
    for index in range(struct.unpack_from("<I", data, 0x30)[0]):
        at = SECTIONS + SECTION_BYTES * index
        found, step, offset, _, used = struct.unpack_from("<IIQQQ", data, at)
        if found == kind:
            return at, step, bytes(data[offset:offset + used])
    raise RuntimeError(f"no section {kind}")


def replace(data, at, content):
    """The section described at `at` becomes `content`, behind all others."""
    data += bytes(-len(data) % 4096)
    struct.pack_into("<QQQ", data, at + 8, len(data), len(content), len(content))
    data += content


def write(name, whole, count, change):
    data = bytearray(whole)
    at, step, modules = section(data, MODULES)
    made = bytearray(modules[:step] * count)
    for i in range(count):
        change(made, i * step, i)
    replace(data, at, made)
    with open(name, "wb") as file:
        file.write(data)


def read(name):
    result = t.run_cairn("report", "--json", name, timeout=LIMIT_S)
    if not t.check_equal(f"{name}: status", result.status, 0):
        return 0
    return json.loads(result.out)["trust"]["lost"].get("damage_entries", 0)


def one_build_id(made, at, number):
    struct.pack_into("<QQQ", made, at, START + number * 8192, START + number * 8192 + 4096, START)


def long_path(made, at, number):
    one_build_id(made, at, number)
    struct.pack_into("<II", made, at + BUILD_ID_BYTES - 4, path_offset + number % 60000, 0)


_, path = t.record_alone(t.program("leak"))
with open(path, "rb") as recording:
    plain = recording.read()
write("one.cairn", plain, 200000, one_build_id)
t.check_equal("one build-id: damage", read("one.cairn"), 0)
with_text = bytearray(plain)
where, _, strings = section(with_text, STRINGS)
path_offset = len(strings)
replace(with_text, where, strings + b"/" + b"a" * 64000 + b"\0")
write("long.cairn", with_text, 50000, long_path)
t.check_equal("long paths: damage", read("long.cairn"), 50000)
t.finish()
