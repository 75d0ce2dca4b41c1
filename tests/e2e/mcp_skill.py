#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/agents/SKILL.md: each question of its workflows is asked, in order, of a program that is built on the spot, and answers
what the page says of it. The questions that an answer names can be asked as they are."""

import json
import pathlib
import re
import shutil

import cairn_test as t
from mcp_client import Client

QUESTION = re.compile(r"^ {7}([a-z_]+) (\{.*\})$")
ANSWER = re.compile(r"^ {7}> (.*)$")
NEXT = re.compile(r"^  ([a-z_]+) (\{.*\}): ", re.MULTILINE)
PLACE = pathlib.Path("root").resolve()

t.need("cc")
PLACE.mkdir()
shutil.copy(t.SOURCE / "tests/mcp/shop.c", PLACE / "shop.c")
t.check_equal("cc", t.run(["cc", "-g", "-O1", "-o", "shop", "shop.c"], cwd=PLACE).status, 0)

steps = []
for line in (t.SOURCE / "docs/agents/SKILL.md").read_text("utf-8").splitlines():
    if match := QUESTION.match(line):
        steps.append((match[1], json.loads(match[2]), []))
    elif match := ANSWER.match(line):
        steps[-1][2].append(match[1])
t.check(len(steps) > 15 and all(wanted for _, _, wanted in steps), f"{len(steps)} questions in the page")

with Client("--allow-run", cwd=PLACE) as client:
    asked = set()
    for tool, arguments, wanted in steps:
        text, is_error = client.call(tool, **arguments)
        t.check(not is_error, f"{tool} {arguments}: {text}")
        flat = " ".join(text.split())
        for part in wanted:
            t.check(" ".join(part.split()) in flat, f"{tool} {arguments}: no {part!r} in\n{text}")
        for name, words in NEXT.findall(text):
            if not re.search(r'"(NAME|FILE|PATH|OLD|NEW|AFTER|TIME|0x\.\.\.)"', words):
                asked.add((name, words))
    for name, words in sorted(asked):
        text, is_error = client.call(name, **json.loads(words))
        t.check(not is_error, f"{name} {words}: {text}")
t.finish()
