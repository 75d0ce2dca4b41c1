#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark on a small part of two rows: its files are well formed and their figures belong together.
No time decides anything here. And instructions by room, of one row, are all that a pair adds."""

import csv
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import cairn_test as t

ROWS = ("perl", "one stack, depth 5")
FEW = 0.02  # of the work

t.need("perl")
result = subprocess.run([sys.executable, str(t.SOURCE / "bench/bench.py"), "--rounds", "2", "--share", str(FEW),
                         "--rows", "|".join(f"^{row}$" for row in ROWS), "--variants", "^cairn( run)?$",
                         "--out", "results"], capture_output=True, text=True, check=False)
t.check_equal("status", result.returncode, 0)
print(result.stdout, result.stderr)

with open("results/performance.csv", encoding="utf-8") as file:
    cells = {(line["row"], line["variant"]): line for line in csv.DictReader(file)}
t.check_equal("rows and columns", sorted(cells),
              sorted((row, name) for row in ROWS for name in ("plain", "floor", "cairn", "cairn run")))
for (row, name), cell in cells.items():
    t.check_equal(f"{row}, {name}: rounds", cell["rounds"], "2")
    t.check_equal(f"{row}, {name}: problem", cell["problem"], "")
    t.check(float(cell["wall_s"]) > 0 and float(cell["wall_ratio"]) > 0, f"{row}, {name}: no time")
    if name.startswith("cairn"):
        t.check(float(cell["written_bytes"]) > 0, f"{row}, {name}: nothing written")
        t.check_equal(f"{row}, {name}: read back", bool(cell["report_s"]), row == "perl")
t.check_equal("plain to itself", cells["perl", "plain"]["wall_ratio"], "1")

# The floor is a second judge of how much was counted; perl's own start is in both.
argv = ["perl", "-e", "my @a = map { [1 .. 3] } 1 .. 20000"]
result, counts = t.count(argv, env={"PERL_HASH_SEED": "0"})
floor = t.run(argv, env={"PERL_HASH_SEED": "0", "FLOOR_OUT": "floor",
                         "LD_PRELOAD": str(t.BUILD / "bench/floor_preload.so")})
sys.path.insert(0, str(t.SOURCE / "bench"))
import runner  # noqa: E402  (found by the line above)
t.check_equal("allocations by the floor", runner.count_of_floor([pathlib.Path("floor")]),
              sum(process["allocations"] + process["failed"] for process in counts.values()))

text = pathlib.Path("results/performance.md").read_text(encoding="utf-8")
for heading in ("Figures to reach", "Wall time", "Resident memory added", "Bytes written"):
    t.check(f"## {heading}" in text, f"no section {heading!r}")
tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
t.check(len(tables) >= 6, f"{len(tables)} tables")
for lines in tables:
    t.check_equal(f"columns of {lines[0]!r}", {line.count(" |") for line in lines[2:]}, {lines[0].count(" |")})
chart = xml.etree.ElementTree.parse("results/performance.svg").getroot()
glance = xml.etree.ElementTree.parse("results/glance.svg").getroot()
t.check_equal("dots: a program under cairn and cairn run",
              len(list(glance.iter("{http://www.w3.org/2000/svg}circle"))), 2)
bars = [node for node in chart.iter("{http://www.w3.org/2000/svg}rect") if len(node)]
t.check_equal("bars: cairn and cairn run of one program", len(bars), 2)

import instructions  # noqa: E402
import split  # noqa: E402
import variants  # noqa: E402
t.check_equal(f"rooms with {split.INTRINSICS}",
              {path.parent.name for path in (t.SOURCE / "runtime").rglob("*.[ch]")
               if f"<{split.INTRINSICS}>" in path.read_text("utf-8")}, {split.INTRINSICS_ROOM})
if shutil.which("valgrind"):
    row, cairn = ("one", 5, 1), instructions.recorded_by(variants.preloadable(t.RUNTIME))
    plain, recorded = (instructions.everything_a_pair(row, variables) for variables in ({}, cairn))
    rooms = {name: recorded[name] - plain[name] for name in split.COLUMNS}
    total = instructions.a_pair(row, cairn) - instructions.a_pair(row, {})
    t.check(abs(sum(rooms.values()) - total) < 1, f"a pair adds {total} instructions, its rooms {rooms}")
    for name in ("hook", "thread", "unwind", "stack", "record"):
        t.check(rooms[name] > 1, f"{name}: nothing of {rooms}")
else:
    t.skip_part("valgrind is not installed")
t.finish()
