#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of 0 to 200 ms: the memory picture is one of their end, and its resident memory is what they
last read in their own smaps_rollup. A stopped tool does not hold a program up."""

import signal
import subprocess

import cairn_test as t

TRIES, NEAR = 20, 512 << 10  # the end of a process touches some more pages, of libraries mostly


def picture_at_end(mib, ms):
    """A process waits some milliseconds only for the look at its end, which a loaded machine may miss."""
    for number in range(TRIES):
        path = f"{mib}-{ms}-{number}.cairn"
        run = t.run_cairn("run", "-q", "-o", path, "--", *t.program("brief"), str(mib), str(ms))
        t.check_equal("status", run.status, 0)
        found = t.report(path)
        last = found["rss"]["last"]
        if last and last["at_ns"] == found["process"]["duration_ns"]:
            return path, found, int(run.out.split()[1]) * 1024
    t.check(False, f"{mib} MiB for {ms} ms: no picture of the end in {TRIES} runs")
    return None


def check_short():
    for mib, ms in ((1, 0), (20, 20), (5, 200)):
        got = picture_at_end(mib, ms)
        if not got:
            continue
        path, found, rss = got
        last, points = found["rss"]["last"], found["rss"]["points"]
        t.check(abs(last["rss_bytes"] - rss) <= NEAR, f"{mib} MiB: {last['rss_bytes']}, the program read {rss}")
        t.check(last["live_bytes"] >= mib << 20, f"{mib} MiB: live {last['live_bytes']}")
        t.check(points[-1]["rss_bytes"] == last["rss_bytes"], f"{mib} MiB: {points}")
        t.check(points == sorted(points, key=lambda point: point["at_ns"]), f"{mib} MiB: {points}")
        text = t.run_cairn("report", "--view", "memory", path).out.decode()
        t.check("resident memory at the end" in text, text)


def check_stopped():
    """The tool is stopped when the program ends; continued, it finishes the recording."""
    with t.Process([t.CAIRN, "run", "-q", "-o", "stopped.cairn", "--", *t.program("brief"), "2", "5000"],
                          env=t.environment(), stdout=subprocess.DEVNULL) as tool:
        pid = t.wait_until(lambda: [pid for pid in t.children_of(tool.pid) if t.is_called(pid, "brief")])[0]
        t.wait_until(lambda: b" MiB live" in t.run_cairn("ctl", pid, "status").out)
        tool.send_signal(signal.SIGSTOP)
        t.check(t.wait_until(lambda: t.is_in_state(pid, "Z")), "the program beside a stopped tool does not end")
        tool.send_signal(signal.SIGCONT)
        t.check_equal("stopped: status", tool.wait(60), 0)
    t.check_equal("stopped: what it holds", t.report("stopped.cairn")["at_exit"]["bytes"] >= 2 << 20, True)


check_short()
check_stopped()
t.finish()
