#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The timeline has notes of a program whose heap stays as it is while it allocates and frees: rates are
known over time, not in the point of the next note."""

import json

import cairn_test as t

ROUNDS, CALLS, BLOCK, HELD = 40, 50, 10000, 256 << 20


def check_steps(what, path, least_notes):
    timeline = json.loads(t.run_cairn("export", "--format", "json", path).out)["timeline"]
    sums = [point["allocated_bytes"] - HELD * (what == "slow") for point in timeline]
    sums = [0] + [total for total in sums if total > 0]
    steps = [later - earlier for earlier, later in zip(sums, sums[1:])]
    t.check(all(step >= 0 for step in steps), f"{what}: sums since the start sink: {sums}")
    noted = [step for step in steps if step]
    t.check(len(noted) >= least_notes, f"{what}: {len(noted)} notes of {sums[-1]} bytes")
    t.check(max(steps) <= sums[-1] / 3, f"{what}: {max(steps)} of {sums[-1]} bytes in one note: {steps}")


result, path = t.record(t.program("steady", "slow", ROUNDS))
t.check_equal("slow: status", result.status, 0)
check_steps("slow", path, 8)
found = t.report(path)
t.check(found["totals"]["allocated_bytes"] >= ROUNDS * CALLS * BLOCK, f"slow: {found['totals']}")
t.check_nothing_lost("slow", found)

# without the tool: a thread looks at the clock each 1,024 events
_, path = t.record_alone(t.program("steady", 20000000))
check_steps("alone", path, 4)
t.finish()
