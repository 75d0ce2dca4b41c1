#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are no whole recording: every command says so in one line, with status 1, and never dies.
A recording cut off anywhere is either read as far as it goes or refused."""

import random

import cairn_test as t

COMMANDS = (["report"], ["report", "--json"], ["report", "--view", "tree"], ["info"])


def check_refused(name, content, words):
    with open(name, "wb") as file:
        file.write(content)
    for command in COMMANDS:
        what = f"{' '.join(command)} {name}"
        result = t.run_cairn(*command, name)
        t.check_equal(f"{what}: status", result.status, 1)
        t.check_equal(f"{what}: lines", result.err.count(b"\n"), 1)
        t.check(name.encode() in result.err, f"{what}: does not name the file: {result.err!r}")
        t.check(any(word in result.err for word in words), f"{what}: {result.err!r}")


def check_survives(name, content):
    with open(name, "wb") as file:
        file.write(content)
    for command in COMMANDS:
        result = t.run_cairn(*command, name, timeout=20)
        t.check(result.status in (0, 1), f"{' '.join(command)} {name}: status {result.status}")
        if result.status == 1:
            t.check_equal(f"{name}: lines", result.err.count(b"\n"), 1)
        t.check(not (b"cut off" in result.out and b"nothing lost" in result.out), f"{name}: {result.out.decode()}")


_, path = t.record(t.program("leak"))
with open(path, "rb") as recording:
    whole = recording.read()
check_refused("empty.cairn", b"", [b"empty"])
check_refused("text.cairn", b"This is a text and not a recording.\n" * 1000, [b"not a"])
check_refused("elf.cairn", open("/bin/true", "rb").read(), [b"not a"])
check_refused("version.cairn", whole[:8] + (99).to_bytes(4, "little") + whole[12:], [b"version"])
check_refused("short.cairn", whole[:4000], [b"truncated", b"cut", b"short", b"incomplete", b"end"])
check_refused("empty.cairn", whole[:16384], [b"cut off"])
for command in COMMANDS:
    for missing in ("there-is-none.cairn", "/proc/self/mem", "/dev/null", "/"):
        absent = t.run_cairn(*command, missing)
        t.check_equal(f"{command} {missing}: status", absent.status, 1)
        t.check_equal(f"{command} {missing}: lines", absent.err.count(b"\n"), 1)
dice = random.Random(4)
for number in range(12):
    cut = dice.randrange(16384, len(whole))
    check_survives(f"cut-{cut}.cairn", whole[:cut])
for number in range(24):
    damaged = bytearray(whole)
    for _ in range(20):
        damaged[dice.randrange(12, 16384 if number % 2 else len(whole))] = dice.randrange(256)
    check_survives(f"damaged-{number}.cairn", bytes(damaged))
t.finish()
