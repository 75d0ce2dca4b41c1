#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page of `cairn serve` in Chromium (tests/web/live.mjs): it follows the program, keeps selection and zoom,
pauses, compares with what was, does not grow, and says when the program ends."""

import json
import os
import pathlib
import shutil
import subprocess

import cairn_test as t
from browser_modules import modules
from commanded import Commanded
from served import Server

t.need("node", "npm", "chromium")
program = Commanded("run.cairn")
program.do("early 100000", "early 5000")
with Server(program.pid) as server:
    plan = {"modules": str(modules()), "chromium": shutil.which("chromium"), "url": server.url}
    pathlib.Path("plan.json").write_text(json.dumps(plan))
    with t.Process(["node", str(t.SOURCE / "tests/web/live.mjs"), "plan.json"], env=t.environment({"HOME": os.getcwd()}),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        for line in driver.stdout:
            words = line.split(maxsplit=1)
            if words[0] == "do":
                program.do(words[1].strip())
            elif words[0] == "end":
                program.__exit__()
            elif words[0] != "leave":
                print(line, end="")
                continue
            driver.stdin.write("ok\n")
            driver.stdin.flush()
        driver.wait(timeout=t.PATIENCE_S)
    t.check_equal("the live page in a browser", driver.returncode, 0)
t.finish()
