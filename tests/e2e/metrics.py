#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/reference/metrics.md says of other profilers: massif's exact peak is ours, its default one is at most
1 % below; heaptrack's temporary allocations are ours where the definitions agree."""

import pathlib
import re
import subprocess

import cairn_test as t

t.need("valgrind", "heaptrack", "heaptrack_print")


def massif_peak(argv, *options):
    out = t.fresh_path("massif")
    subprocess.run(["valgrind", "-q", "--tool=massif", f"--massif-out-file={out}", *options, *argv],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    text = pathlib.Path(out).read_text(encoding="utf-8")
    return int(re.search(r"mem_heap_B=(\d+)\n[^#]*heap_tree=peak", text).group(1))


def heaptrack_temporary(argv):
    out = t.fresh_path("heaptrack")
    subprocess.run(["heaptrack", "-o", out, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False)
    written = str(next(pathlib.Path.cwd().glob(pathlib.Path(out).name + ".*")))
    text = subprocess.run(["heaptrack_print", written], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout.decode()
    imported = t.fresh_path("imported") + ".cairn"
    t.check_equal("import", t.run_cairn("import", "-o", imported, written).status, 0)
    count = int(re.search(r"temporary memory allocations: (\d+)", text).group(1))
    # heaptrack also takes a free of its kind 0 behind another free for one
    t.check(count - 1 <= t.report(imported)["totals"]["temporary"] <= count, f"imported temporary blocks: {count}")
    return count


for program in (t.program("habits", "server"), t.program("leak")):
    _, path = t.record(program)
    peak = t.report(path)["peak"]["bytes"]
    t.check_equal(f"{program}: massif's exact peak", massif_peak(program, "--peak-inaccuracy=0.0"), peak)
    near = massif_peak(program)
    t.check(0.985 * peak <= near <= peak, f"{program}: massif's peak {near}, ours {peak}")

_, path = t.record(t.program("habits", "tidy"))
ours = t.report(path)["totals"]["temporary"]
t.check_equal("temporary", ours, 8000)
t.check_equal("heaptrack's, with its own", heaptrack_temporary(t.program("habits", "tidy")), ours + 1)
_, path = t.record(t.program("leak"))
t.check_equal("freed before the next allocation, not at once", t.report(path)["totals"]["temporary"], 100)
t.finish()
