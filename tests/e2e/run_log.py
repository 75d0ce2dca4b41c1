#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --log: a block for each snapshot. Its numbers add up to those of the recording, and a stack's
hash is the same in every run."""

import pathlib
import re

import cairn_test as t

HEADING = re.compile(r"\[ *(\d+)\]==== habits (\d+) at (.*?), (\w+)(?:, (\d+) snapshots since)?$")
STACK = re.compile(r"\{([0-9a-f]{16})\} live:(-?\d+), alloc:(\d+)/(\d+), free:(\d+)/(\d+)$")


def read_log(name):
    """A list of blocks: {hash: (live, alloc, alloc total, free, free total, [frames])}."""
    blocks, stack, snapshots = [], None, 0
    for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines():
        if HEADING.match(line):
            t.check_equal(f"{name}: number", int(HEADING.match(line).group(1)), len(blocks) + 1)
            blocks.append({})
            snapshots += int(HEADING.match(line).group(5) or 1)
        elif line.startswith("churn="):
            t.check(re.fullmatch(r"churn=\d+/\d+", line), line)
        elif STACK.match(line):
            numbers = STACK.match(line).groups()
            stack = [*map(int, numbers[1:]), []]
            blocks[-1][numbers[0]] = stack
        else:
            frame = re.match(r"  \{(\d+)\} (.+)$", line)
            t.check(frame and int(frame.group(1)) == len(stack[5]), f"{name}: {line!r}")
            stack[5].append(frame.group(2).split()[0])
    return blocks, snapshots


def run_logged(name):
    path = t.fresh_path(name) + ".cairn"
    result = t.run_cairn("run", "-q", "-o", path, "--log", name, "--", *t.program("habits", "leak"))
    t.check_equal(f"{name}: {result.err}", result.status, 0)
    blocks, snapshots = read_log(name)
    found = t.report(path)
    # the block of the end may be of the snapshot of the exit handlers, or of none
    t.check(0 <= snapshots - len(found["snapshots"]) <= 1, f"{name}: {snapshots} snapshots of {found['snapshots']}")
    return blocks, found


blocks, found = run_logged("first.log")
t.check(blocks, "no block")
sums = {}
for block in blocks:
    for key, (live, alloc, alloc_total, free, free_total, _) in block.items():
        before = sums.get(key, (0, 0))
        t.check_equal(f"{key}: allocated since", alloc, alloc_total - before[0])
        t.check_equal(f"{key}: freed since", free, free_total - before[1])
        t.check_equal(f"{key}: live", live, alloc_total - free_total)
        sums[key] = (alloc_total, free_total)
t.check_equal("totals at the end", sums,
              {s["id"]: (s["allocated_bytes"], s["freed_bytes"]) for s in found["stacks"]})
names = {key: stack[5][:2] for block in blocks for key, stack in block.items()}
t.check(["lose_session", "main"] in names.values(), f"frames: {names}")
again, _ = run_logged("second.log")
t.check_equal("hashes of another run", {key: stack[5][:2] for block in again for key, stack in block.items()},
              {key: stack[5][:2] for block in blocks for key, stack in block.items()})
refused = t.run_cairn("run", "--log", "/nowhere/x.log", "true")
t.check(refused.status == 125 and b"/nowhere/x.log" in refused.err, f"{refused.err}")
t.finish()
