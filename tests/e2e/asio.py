#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contexts by executors of Asio (libasio-dev): handlers, strands, timers and coroutines are in the context of their executor."""

import os
import subprocess

import cairn_test as t

t.need("g++")
if not os.path.exists("/usr/include/asio.hpp"):
    t.cannot_run_here("libasio-dev is not installed")
built = subprocess.run(["g++", "-std=c++20", "-g", "-O1", "-I", t.SOURCE / "include", t.SOURCE / "tests/programs/asio/tenants.cc",
                        "-o", "tenants", "-pthread"], capture_output=True, text=True, check=False)
if t.check(built.returncode == 0, f"built: {built.stderr[-3000:]}"):
    program = [os.path.abspath("tenants")]
    t.check_equal("without cairn", (t.run(program).status, t.run(program).out), (0, b"done\n"))
    result, recording = t.record(program)
    t.check_equal("recorded", (result.status, result.out, result.err), (0, b"done\n", b""))
    taken = {}
    for one in t.report(recording)["contexts"]:
        for key, value in one["labels"].items():
            stacks = t.stacks_through(t.report(recording, "--context", f"{key}={value}"), "take")
            taken[value] = sum(stack["allocated_bytes"] for stack in stacks if t.functions(stack)[0] == "take")
    t.check_equal("of each tenant", taken, {"1": 4006, "2": 8006, "posted": 12006})
    outside = [stack for stack in t.stacks_through(t.report(recording), "take") if t.functions(stack)[0] == "take"]
    t.check_equal("all", sum(stack["allocated_bytes"] for stack in outside), 4006 + 8006 + 12006 + 200001)
t.finish()
