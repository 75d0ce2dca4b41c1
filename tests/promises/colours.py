#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No two structures that every event of the first thread uses lie at the same place of a page: a processor that
compares the low 12 bits of addresses takes a load from one for a load of what was stored to the other."""

import re

import cairn_test as t

# What an event of a stack of 20 frames reads and writes: an address, and how many bytes from there.
DEPTH = 20
HOT = {"the thread": ("gate_self", "(long)&gate_self->trace.frames - (long)gate_self"),
       "its entry": ("&gate_self->record->allocations", "4 * sizeof(long)"),
       "words of the last stack": ("gate_self->seen.end - gate_self->seen.check_count - 1", f"{DEPTH} * sizeof(struct walk_check)"),
       "totals.epoch": ("&sink.header->totals.epoch", "sizeof(int)"),
       "the stamp": ("&gate_page.stamp", "sizeof(int)"),
       "counters of the first stack": ("gate_self->at.cell", "sizeof *cells.items")}
PAGE = 4096

t.need("gdb")
program = t.program("gdb_target")[0]
commands = [f"set exec-wrapper env LD_PRELOAD={t.RUNTIME} CAIRN_OUTPUT={t.fresh_path('x')}.cairn",
            "catch syscall exit_group", "run"]
for place, size in HOT.values():
    commands += [f'printf "at %lu %lu\\n", (unsigned long)({place}), (unsigned long)({size})']
done = t.run(["gdb", "-q", "-batch", "-nx", *(word for command in commands for word in ("-ex", command)), program])
text = (done.out + done.err).decode(errors="replace")
found = [(int(at), int(size)) for at, size in re.findall(r"^at (\d+) (\d+)$", text, re.M)]
if t.check_equal(f"structures that were found in\n{text}", len(found), len(HOT)):
    taken = {}
    for name, (at, size) in zip(HOT, found):
        for place in {byte % PAGE for byte in range(at, at + size)}:
            other = taken.setdefault(place, name)
            if not t.check_equal(f"owner of place {place:#x} of a page", name, other):
                break
t.finish()
