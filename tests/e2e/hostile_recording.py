#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts in a recording that are not what they should be (terminal sequences, ends of lines, no UTF-8, no
end) never reach a screen or a JSON reader as they are, wherever they are shown."""

import json
import os
import re
import struct

import cairn_test as t

EVIL = b"\x1b[31m\x07\r\n\t\x9b\xff\xe2\x80\xae"
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
BIDI = "\u202e".encode()
SECTIONS, SECTION_BYTES = 0x188, 32
TEXTS = {"command": (0x2000, 4096), "executable": (0x3000, 1024), "directory": (0x3400, 1024),
         "destination": (0x3800, 1024)}
MODULES, STRINGS, THREADS = 1, 2, 3
THREAD_BYTES, THREAD_NAME, THREAD_NAME_BYTES = 128, 0x20, 16
COMMANDS = (["report"], ["report", "--view", "stacks", "--all-frames"], ["report", "--view", "tree"],
            ["leaks"], ["info"], ["report", "--by", "calls"])


def section(data, kind):
    """(offset, used) of a section."""
    count = struct.unpack_from("<I", data, 0x30)[0]
    for index in range(count):
        found, _, offset, _, used = struct.unpack_from("<IIQQQ", data, SECTIONS + SECTION_BYTES * index)
        if found == kind:
            return offset, used
    raise RuntimeError(f"no section {kind}")


def spoil(data, is_ended):
    """Every text of the recording is replaced; with `is_ended` each still ends in NUL."""
    data = bytearray(data)
    for offset, size in TEXTS.values():
        text = (EVIL * (size // len(EVIL) + 1))[:size if not is_ended else 60]
        data[offset:offset + len(text)] = text
    offset, used = section(data, STRINGS)
    for at in range(offset + 1, offset + used):
        if data[at] or not is_ended:
            data[at] = EVIL[at % len(EVIL)]
    offset, used = section(data, THREADS)
    for at in range(offset, offset + used, THREAD_BYTES):
        name = EVIL[:THREAD_NAME_BYTES - 1] + (b"\0" if is_ended else b"\xff")
        data[at + THREAD_NAME:at + THREAD_NAME + len(name)] = name
    return bytes(data)


def check(path):
    for command in COMMANDS:
        result = t.run_cairn(*command, path)
        text = result.out + result.err
        t.check(result.status in (0, 1) and text, f"{command} {path}: status {result.status}")
        t.check(not CONTROL.search(text) and BIDI not in text, f"{command} {path}: {text[:300]}")
        text.decode()
    result = t.run_cairn("report", "--json", path)
    t.check(not CONTROL.search(result.out), f"JSON {path}: {result.out[:300]}")
    return json.loads(result.out)


_, plain = t.record_alone(t.program("threads", "pipe"))
with open(plain, "rb") as file:
    whole = file.read()
for ended in (True, False):
    name = f"spoilt-{ended}.cairn"
    with open(name, "wb") as file:
        file.write(spoil(whole, ended))
    found = check(name)
    t.check_equal(f"{name}: schema", found["schema"], "cairn.report/1")

# The same as processes of a run, under names that are no better.
os.mkdir("run")
for number, ended in enumerate((True, False)):
    with open(os.path.join(b"run", b"e" + EVIL.replace(b"/", b"") + b"%d.cairn" % number), "wb") as file:
        file.write(spoil(whole, ended))
row = "\t".join(["-", "1", "0", "-", "a\\x1b[2J\\x0a", "1", "1", "1", "ended", "signal:77"] + ["1"] * 15)
with open("run/index", "w", encoding="utf-8") as file:
    file.write("# cairn.index/1: x\n" + row + "\n" + "\x1b[2J\t\t\t\n" + "#\x1b\n")
found = check("run")
t.check_equal("run: processes", len(found["processes"]), 3)
result = t.run_cairn("report", "--process", "\x1b[2J", "run")
t.check(result.status == 1 and not CONTROL.search(result.err), f"--process: {result.err}")
t.finish()
