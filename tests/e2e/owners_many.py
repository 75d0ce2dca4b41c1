#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Owners of a process with a million variables that keep a block each, all with names; in `make check` with 200,000."""

import re
import resource
import subprocess

import cairn_test as t

t.need("gcc")
VARIABLES, BLOCK, LISTED = 1000000 if t.IS_LONG else 200000, 24, 50
MEMORY_MIB = 1024 if t.IS_LONG else 205
PROGRAM = f"""#include <stdio.h>
#include <stdlib.h>
extern void *many[];
int main(void) {{
    for (int i = 0; i < {VARIABLES}; i++) many[i] = malloc({BLOCK});
    puts("ready");
    fflush(stdout);
    return getchar() == 'x';
}}
"""


def build():
    with open("many.s", "w", encoding="ascii") as out:
        out.write('.section .note.GNU-stack,"",%progbits\n.data\n.p2align 3\n.globl many\nmany:\n')
        out.writelines(f"v{i}:.quad 0\n.type v{i},%object\n.size v{i},8\n" for i in range(VARIABLES))
    with open("many.c", "w", encoding="ascii") as out:
        out.write(PROGRAM)
    made = t.run(["gcc", "-w", "-o", "many", "many.c", "many.s"])
    t.check_equal(f"built {made.err[-300:]}", made.status, 0)


build()
with t.Process(["./many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
    t.check_equal("begins", process.stdout.readline(), b"ready\n")
    shown = t.run_cairn("report", str(process.pid), "--view", "owners", "--top", str(LISTED), "--threshold", "0").out.decode()
    process.stdin.close()
    process.wait()
peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
blocks = re.search(r" in ([\d,]+) blocks by who keeps them", shown)
t.check(blocks and VARIABLES <= int(blocks[1].replace(",", "")) < VARIABLES + 10, f"blocks: {shown[:300]}")
names = re.findall(r"^ +24 B +0\.0 % +1  v(\d+)$", shown, re.M)
t.check(len(set(names)) > LISTED / 3 and all(int(name) < VARIABLES for name in names), f"variables: {shown}")
others = re.search(r"^ .* +([\d,]+)  ([\d,]+) others$", shown, re.M)
t.check(others and int(others[2].replace(",", "")) >= VARIABLES - LISTED, f"the others: {shown[-300:]}")
t.check(peak_mib < MEMORY_MIB, f"it took {peak_mib} MiB")
t.finish()
