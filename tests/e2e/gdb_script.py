#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gdb in a recorded process, live and in its core: the commands of `cairn gdb-script`, and the plain counters
TOTAL_ALLOCS and TOTAL_ALLOCATED_BYTES."""

import re

import cairn_test as t

COMMANDS = ["cairn totals", "cairn threads", "cairn block first_block", "cairn block 4096", "cairn top 1",
            "print (unsigned long)TOTAL_ALLOCS", "print (unsigned long)TOTAL_ALLOCATED_BYTES"]
BLOCKS, BLOCK_BYTES = 5000, 100


def gdb(*arguments, commands):
    words = [word for command in commands for word in ("-ex", command)]
    result = t.run(["gdb", "-q", "-batch", "-nx", *words, *arguments])
    return result.out.decode(errors="replace") + result.err.decode(errors="replace")


def check(what, text):
    for wanted in (f"allocated {BLOCKS * BLOCK_BYTES:,} bytes in {BLOCKS:,} calls",
                   f"live {BLOCKS * BLOCK_BYTES:,} bytes in {BLOCKS:,} blocks",
                   f"peak {BLOCKS * BLOCK_BYTES:,} bytes", f"{BLOCK_BYTES} bytes, allocated by\n    take + ",
                   "\n    take_many + ", "0x1000 is not the start of a live block",
                   f"{BLOCKS * BLOCK_BYTES:,} bytes\n    take + "):
        t.check(wanted in text, f"{what}: no {wanted!r} in\n{text}")
    printed = [int(value) for value in re.findall(r"^\$\d+ = (\d+)$", text, re.M)]
    if t.check_equal(f"{what}: printed counters", len(printed), 2):
        calls, size = printed
        t.check(BLOCKS - 1024 <= calls <= BLOCKS, f"{what}: TOTAL_ALLOCS {calls}")
        t.check_equal(f"{what}: TOTAL_ALLOCATED_BYTES", size, calls * BLOCK_BYTES)


t.need("gdb")
script, program = "cairn.gdb", t.program("gdb_target")[0]
printed_script = t.run_cairn("gdb-script")
t.check_equal("cairn gdb-script: status", printed_script.status, 0)
with open(script, "wb") as file:
    file.write(printed_script.out)
live = gdb(program, commands=[f"set exec-wrapper env LD_PRELOAD={t.RUNTIME} CAIRN_OUTPUT={t.fresh_path('x')}.cairn",
                              f"source {script}", "run", *COMMANDS, "generate-core-file core.cairn"])
check("live", live)
check("core", gdb(program, "core.cairn", commands=[f"source {script}", *COMMANDS]))
sampled = gdb(program, commands=[f"set exec-wrapper env LD_PRELOAD={t.RUNTIME} CAIRN_OUTPUT={t.fresh_path('x')}.cairn "
                                 "CAIRN_SAMPLE=1 CAIRN_RATE=100 CAIRN_SEED=3", f"source {script}", "run", *COMMANDS])
blocks = re.search(r"^live about [\d,]+ bytes in ([\d,]+) blocks$", sampled, re.M)
t.check(f"allocated {BLOCKS * BLOCK_BYTES:,} bytes in {BLOCKS:,} calls" in sampled and blocks and
        abs(int(blocks[1].replace(",", "")) - BLOCKS) < BLOCKS / 10 and "(it records samples)" in sampled,
        f"sampled: {sampled}")
without = gdb(program, commands=[f"source {script}", "run", "cairn totals"])
t.check("no libcairn loaded" in without, f"without cairn: {without}")
t.finish()
