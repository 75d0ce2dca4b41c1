#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of recording: --start-after, --record-for, and --when with --off."""

import time

import cairn_test as t
from commanded import Commanded, totals_of


def wait_until(program, recording):
    """Until the program is being recorded, or is not any more."""
    for _ in range(600):
        if ("not recording," not in program.ctl("status")) == recording:
            return
        time.sleep(0.05)
    t.check(False, f"never {recording}: {program.ctl('status')}")


def check_start_after():
    # so long that the first line comes before it on a loaded machine, too
    with Commanded("after.cairn", "--start-after", "2s", "--record-for", "4 s") as program:
        program.do("early 1000")
        wait_until(program, True)
        program.do("late 2000")
        wait_until(program, False)
        program.do("late 4000")
    found = t.report("after.cairn")
    t.check_equal("before the window", totals_of(found, "early")[0], 0)
    t.check_equal("in the window, not after it", totals_of(found, "late")[0], 2000)


def check_rule():
    with Commanded("rule.cairn", "--off", "--when", "rss>40M", "--when", "swap>900G") as program:
        program.do("early 1000")
        t.check("not recording" in program.ctl("status"), "before the rule")
        program.do("early 64000000", "touch")
        wait_until(program, True)
        program.do("late 2000")
    found = t.report("rule.cairn")
    t.check_equal("before the rule", totals_of(found, "early")[0], 0)
    t.check_equal("from the rule on", totals_of(found, "late")[0], 2000)


check_start_after()
check_rule()
t.finish()
