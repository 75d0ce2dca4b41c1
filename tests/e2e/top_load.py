#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn top on real programs under load, in one run: redis-server under redis-benchmark, and a python3 that
grows. Its screens, a change between the two, and what it says against what the programs say."""

import json
import os
import re
import subprocess

import cairn_test as t
from ports import free_port
from tmux_screen import Screen

t.need("redis-server", "redis-benchmark", "redis-cli")
GROW = """
import time
kept = []
def grow():
    kept.append(bytearray(100000))
def churn():
    return [str(i) * 50 for i in range(2000)]
while True:
    grow()
    churn()
    time.sleep(0.02)
"""


def ask(*words):
    return subprocess.run(["redis-cli", "-p", str(PORT), *words], capture_output=True, text=True,
                          check=False).stdout.strip()


def wait_until(is_true, what):
    found = t.wait_until(is_true, pause=0.1)
    t.check(found, f"{what}: it did not come")
    return found


def top_json(*words):
    result = t.run_cairn("top", "--json", *map(str, words))
    t.check_equal(f"top --json {words}: {result.err}", result.status, 0)
    return json.loads(result.out)


def pids_of_run(tool):
    return {one["program"]: one["pid"] for one in top_json()["processes"] if one["run"] == tool}


def check_rest(pid):
    """Without load the same as the report of the pid, which reads all of it anew."""
    found, whole = top_json(pid), t.report(pid)
    for ours, theirs in ((found["live_bytes"], whole["at_exit"]["bytes"]),
                         (found["allocations"], whole["totals"]["allocations"])):
        t.check(abs(ours - theirs) <= theirs // 50, f"at rest: {ours}, report {theirs}")  # its timers go on
    held = {s["id"]: s["at_exit_bytes"] for s in whole["stacks"] if s["at_exit_bytes"] > 50000}
    live = {s["id"]: s["live_bytes"] for s in found["stacks"] if s["live_bytes"] > 50000}
    t.check_equal("the large stacks at rest", live, held)


def check_load(pid):
    """Under load: what stacks hold adds up to the heap of the same look, calls are what redis answered."""
    with t.Process(["redis-benchmark", "-p", str(PORT), "-n", "100000000", "-r", "20000", "-q", "-t", "set,lpush"],
                          stdout=subprocess.DEVNULL) as load:
        wait_until(lambda: int(ask("dbsize") or 0) > 1000, "load")
        before = int(re.search(r"total_commands_processed:(\d+)", ask("info", "stats")).group(1))
        found = top_json("--interval", "2s", pid)
        after = int(re.search(r"total_commands_processed:(\d+)", ask("info", "stats")).group(1))
        t.check_equal("stacks add up", sum(s["live_bytes"] for s in found["stacks"]), found["live_bytes"])
        t.check(0 < found["allocations_per_s"] and after > before, f"rate: {found['allocations_per_s']}")
        t.check(found["rss_bytes"] > 1 << 20, f"RSS: {found['rss_bytes']}")
        screen = Screen(f"{t.CAIRN} top {pid}", columns=110)
        screen.wait_for(r"redis-server \d+ recording, (?s:.*)allocates [\d.]+ [KMG]iB/s in [\d.]+ [kM] calls/s", "under load")
        screen.wait_for(r"GROWTH +RATE(?s:.*)[KM]iB/s .*[a-z]+ \u2190 ", "stacks with rates and callers")
        first = screen.look()
        wait_until(lambda: screen.look() != first, "it moves")
        screen.press("3", r"by what they allocate", "by rate")
        screen.press("m", r"mark at ", "mark under load")
        screen.press("v", r"of what came since the mark: ", "survivors under load")
        load.kill()
    return screen


def check_switch(screen, pids):
    """From redis to the python3 of the same run."""
    every = "".join(f"(?=[\\s\\S]*\\n *{pid} )" for pid in pids.values())
    screen.press("p", f"(?=[\\s\\S]*processes are recorded){every}", "the list")
    t.check(all(str(pid) in screen.text for pid in pids.values()), f"the run: {screen.text}")
    rows = [line.split()[0] for line in screen.text.splitlines() if re.match(r" +\d+ ", line)]
    steps = rows.index(str(pids["python3"])) - rows.index(str(pids["redis-server"]))
    for _ in range(abs(steps)):
        screen.press("Down" if steps > 0 else "Up", r"enter looks at one", "move")
    screen.press("Enter", r"python3 \d+ recording, ", "python3")
    screen.press("2", r"by growth: ", "by growth")
    screen.wait_for(r"\+[\d.]+ MiB +[\d.]+ [KM]iB/s .*grow ", "what grows is first")
    screen.press("Enter", r"grow +<string>:5", "its frames, in Python")
    screen.press("q", r"(?m)^status 0", "leave")
    screen.close()


PORT = free_port()
with open("grow.py", "w", encoding="ascii") as script:
    script.write(GROW)
command = (f"{t.PYTHON} -c 'exec(open(\"grow.py\").read())' & redis-server --port {PORT} --save '' --appendonly no "
           ">redis.log; kill $!; wait")
with t.Process([t.CAIRN, "run", "-q", "--python", "-o", "load.cairn", "--", "sh", "-c", command],
                      env=t.environment()) as run:
    try:
        wait_until(lambda: ask("ping") == "PONG", "redis")
        running = wait_until(lambda: {"python3", "redis-server"} <= set(pids_of_run(run.pid)) and pids_of_run(run.pid), "both")
        if running:
            wanted = {name: running[name] for name in ("python3", "redis-server")}
            check_rest(wanted["redis-server"])
            check_switch(check_load(wanted["redis-server"]), wanted)
    finally:  # whatever went wrong, nothing goes on
        ask("shutdown", "nosave")
        for shell in t.children_of(run.pid):
            subprocess.run(["pkill", "-P", str(shell)], check=False)
        run.wait(timeout=t.PATIENCE_S)
t.check(os.path.exists("load.cairn"), "the recording is there")
t.finish()
