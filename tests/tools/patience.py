# SPDX-License-Identifier: Apache-2.0
"""Limits of time that only a hang reaches: they run slower where more programs want a processor than there are."""

import os
import time

MOST_FACTOR = 16  # a test that hangs with many busy threads still ends
TICK_S = 0.5


def load_factor():
    """Programs that want a processor for each that may be used now; at least 1."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            runnable = int(file.read().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 1
    return min(max(1, runnable / len(os.sched_getaffinity(0))), MOST_FACTOR)


class Patience:
    """`while not is_there() and patience.lasts(): ...` A second counts as what this process could have had of it."""

    def __init__(self, seconds):
        self.left, self.last = seconds, time.monotonic()

    def lasts(self):
        now = time.monotonic()
        if now - self.last >= TICK_S or now - self.last >= self.left:
            self.left -= (now - self.last) / load_factor()
            self.last = now
        return self.left > 0
