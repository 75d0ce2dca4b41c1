#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each allocation function with each odd argument: the same blocks, errno, alignment and usable sizes
as without cairn, and failed calls are counted as failed, never as memory."""

import cairn_test as t

ARGV = t.program("odd_arguments")
plain, counted = t.count(ARGV)
recorded, path = t.record(ARGV)
recorded.check_like("odd arguments", plain)
t.check(plain.out.count(b"\n") > 800, "the table was not gone through")
found = t.report(path)
wanted = list(counted.values())[0]
t.check_totals("odd arguments", found, wanted)
if found:
    t.check(found["totals"]["failed"] > 100, "failed calls were not counted")
    t.check(found["peak"]["bytes"] < 1 << 27, f"a failed call became memory: {found['peak']}")
t.finish()
