#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that allocate while cairn itself is at work: the program runs on, and every call is either
counted or named as lost."""

import cairn_test as t

BUMP = str(t.BUILD / "tests/bump_preload.so")

for attempt in range(3):
    result, path = t.record(t.program("signal_storm"), env={"LD_PRELOAD": BUMP}, timeout=60)
    if not t.check_equal(f"storm {attempt}: status", result.status, 0):
        continue
    made, by_handlers = map(int, result.out.split())
    t.check(by_handlers > 100, f"storm {attempt}: only {by_handlers} calls by handlers")
    found = t.report(path)
    if not found:
        continue
    counted = sum(s["allocations"] for s in t.stacks_through(found, "work")
                  if "on_timer" not in t.functions(s))
    handled = sum(s["allocations"] for s in t.stacks_through(found, "on_timer"))
    lost = sum(found["trust"]["lost"].values())
    print(f"{made} + {by_handlers} calls; counted {counted} + {handled}; lost {found['trust']['lost']}")
    t.check_equal(f"storm {attempt}: the program's own calls", counted, made)
    t.check(handled <= by_handlers <= handled + lost,
            f"storm {attempt}: {by_handlers} calls by handlers, {handled} counted, {lost} lost")
    t.check(found["at_exit"]["bytes"] < 3000 * (lost + 2),
            f"storm {attempt}: {found['at_exit']} with {lost} lost")
t.finish()
