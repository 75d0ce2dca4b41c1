#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of a function costs that --wrap leads: processor time of a loop of pairs of an allocator that does
nothing, with a heap by name and without, in turns, the median of some. `--ages` and arenas beside.

    make all && bench/wrap.py
"""

import os
import pathlib
import statistics
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or pathlib.Path(__file__).resolve().parent.parent / "build")
PAIRS, TURNS = 1000000, 7
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
static char area[1 << 20];
static unsigned long at;
static volatile long calls;
OWN void *arena_make(const char *name) { __asm__("" ::"r"(name) : "memory"); return area; }
OWN void *take(void *arena, unsigned long n) { __asm__("" ::"r"(arena), "r"(n) : "memory"); at = (at + n) % 65536; return area + at; }
OWN void give(void *p) { calls++; __asm__("" ::"r"(p) : "memory"); }
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(int argc, char **argv) {
  long pairs = atol(argv[1]);
  void *arena = arena_make("bench");
  double start = now();
  for (long i = 0; i < pairs; i++) give(take(arena, 48));
  printf("%f\n", (now() - start) / pairs / 2);
  return argc < 2;
}
"""
PLAIN_ROW = "name=bench:alloc=take(size=2):free=give(ptr=1)"
ARENA_ROW = "name=bench:make=arena_make(label=1):alloc=take(pool=1,size=2):free=give(ptr=1)"
ROWS = [("not recorded", None), ("recorded, without a row", []), ("a heap", ["--wrap", PLAIN_ROW]),
        ("a heap, --ages", ["--ages", "--wrap", PLAIN_ROW]), ("a heap of arenas", ["--wrap", ARENA_ROW])]


def nanoseconds(program, options):
    recorded = [] if options is None else [BUILD / "cairn", "run", "-q", "-o", f"{program}.cairn", *options, "--"]
    pathlib.Path(f"{program}.cairn").unlink(missing_ok=True)
    return float(subprocess.run([*recorded, program, str(PAIRS)], capture_output=True, text=True, check=True).stdout)


def main():
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/wrapped"
        subprocess.run(["gcc", "-O1", "-g", "-x", "c", "-o", program, "-"], input=PROGRAM, text=True, check=True)
        found = {name: [] for name, _ in ROWS}
        for _ in range(TURNS):
            for name, options in ROWS:
                found[name].append(nanoseconds(program, options))
    print("nanoseconds of processor time a call, median of", TURNS)
    for name, values in found.items():
        print(f"{name:28}{statistics.median(values):8.1f}  ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
