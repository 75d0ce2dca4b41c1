#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn mcp answers fixed questions about committed recordings (tests/mcp) as it did, to the letter. What was meant to change is
written down by dev/mcp-answers.py."""

import difflib

import cairn_test as t
import mcp_asked as asked

wanted = asked.ANSWERS.read_text("utf-8")
found = asked.ask_all(asked.unpack("root"))
kept = {part.splitlines()[0]: part.rstrip("\n") for part in ("\n" + wanted).split("\n### ")[1:]}
t.check_equal("questions", len(kept), len(asked.QUESTIONS))
for part in found:
    title = part.splitlines()[0].removeprefix("### ")
    old, new = kept.get(title, "").splitlines(), part.removeprefix("### ").rstrip("\n").splitlines()
    t.check(old == new, f"{title}:\n" + "\n".join(difflib.unified_diff(old, new, "kept", "answered", lineterm="")))
t.finish()
