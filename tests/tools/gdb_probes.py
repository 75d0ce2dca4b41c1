# SPDX-License-Identifier: Apache-2.0
"""For gdb -x: runs its program with a breakpoint on each probe of a library and writes what gdb makes of the
notes, the semaphores and the operands as JSON lines: [provider, name, arguments, caller, frames]. `caller` is
what a tracer that follows frame pointers sees first; `frames` are those that new_stack points to.
PROBES_LIBRARY: the library, or the program itself; PROBES: provider:name, a comma between; PROBES_OUT."""

import json
import os

import gdb

FRAME_POINTER = "$rbp" if gdb.parameter("architecture") != "aarch64" and os.uname().machine == "x86_64" else "$x29"


def word_at(address):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, 8), "little")


class Probe(gdb.Breakpoint):
    def __init__(self, library, probe, out):
        super().__init__(f"-probe-stap {library}:{probe}", internal=True)
        self.probe, self.out = probe.split(":"), out

    def stop(self):
        count = int(gdb.parse_and_eval("$_probe_argc"))
        arguments = [int(gdb.parse_and_eval(f"$_probe_arg{i}")) for i in range(count)]
        caller = word_at(int(gdb.parse_and_eval(f"(unsigned long){FRAME_POINTER}")) + 8)
        frames = []
        if self.probe[1] == "new_stack":
            _, depth, place, step = arguments
            frames = [word_at(place + i * step) for i in range(depth)]
        self.out.write(json.dumps([*self.probe, arguments, caller, frames]) + "\n")
        return False


def is_loaded(library):
    return any(file.filename and os.path.basename(file.filename) == library for file in gdb.objfiles())


def run():
    for setting in ("pagination off", "confirm off", "debuginfod enabled off", "breakpoint pending on",
                    "stop-on-solib-events 1"):
        gdb.execute(f"set {setting}")
    library = os.path.basename(os.environ["PROBES_LIBRARY"])
    gdb.execute("run")
    while not is_loaded(library):
        gdb.execute("continue")
    gdb.execute("set stop-on-solib-events 0")
    with open(os.environ["PROBES_OUT"], "w", encoding="utf-8") as out:
        probes = [Probe(library, probe, out) for probe in os.environ["PROBES"].split(",")]
        gdb.execute("continue")
        del probes


run()
