#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of recording: --start-after, --record-for, and --when with --off."""

import time

import cairn_test as t
from commanded import Commanded, totals_of


def wait_until(program, recording):
    """Until the program is being recorded, or is not any more."""
    t.check(t.wait_until(lambda: is_recording(program) == recording, pause=0.05), f"never {recording}: {program.ctl('status')}")


def is_recording(program):
    return "not recording," not in program.ctl("status")


def is_as_planned(seconds):
    """Whether each line came on its side of the window's ends, which a loaded machine may miss."""
    path = f"after-{seconds}.cairn"
    begin = time.monotonic()
    with Commanded(path, "--start-after", f"{seconds}s", "--record-for", f"{2 * seconds} s") as program:
        program.do("early 1000")
        is_early = time.monotonic() < begin + seconds
        wait_until(program, True)
        program.do("late 2000")
        is_within = is_recording(program)
        wait_until(program, False)
        program.do("late 4000")
    if not is_early or not is_within:
        return False
    found = t.report(path)
    t.check_equal("before the window", totals_of(found, "early")[0], 0)
    t.check_equal("in the window, not after it", totals_of(found, "late")[0], 2000)
    return True


def check_start_after():
    t.check(any(is_as_planned(seconds) for seconds in (1, 4, 16, 32)), "no line came in time")


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
