#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/commands.md and views.md are what the tool prints of its tables (dev/reference.py),
and every option that views.md names exists. In all pages links and names of tests lead somewhere, and no
line but one of a table or of code is longer than 120 columns."""

import pathlib
import re

import cairn_test as t

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchor(heading):
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(page):
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)}


def check_link(page, link):
    place, _, part = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists():
        t.check(False, f"{page.name}: {link} leads nowhere")
    elif part and target.suffix == ".md":
        t.check(part in anchors(target), f"{page.name}: {link}: there is no such heading")


for name in ("commands", "views"):
    result = t.run_cairn("help", "--reference", name)
    t.check_equal(f"help --reference {name}", (result.status, result.err), (0, b""))
    kept = (t.SOURCE / "docs/reference" / f"{name}.md").read_bytes()
    t.check(kept == result.out, f"docs/reference/{name}.md is older than the tool: make reference")
t.check_equal("no such page", t.run_cairn("help", "--reference", "nothing").status, 2)

commands = (t.SOURCE / "docs/reference/commands.md").read_text("utf-8")
options = set(re.findall(r"`(--[a-z-]+)`", commands))
views = (t.SOURCE / "docs/reference/views.md").read_text("utf-8")
for option in re.findall(r"`(--[a-z-]+)`", views):
    t.check(option in options, f"docs/reference/views.md: no command has {option}")

def check_tests(page, text):
    """Paths of tests that a page names, and names behind "Tests:", are there."""
    for path in re.findall(r"`(tests/[\w/.*-]+)`", text):
        t.check(any(t.SOURCE.glob(path)), f"{page.name}: there is no {path}")
    stems = {path.stem for path in (t.SOURCE / "tests").glob("**/*")}
    for sentence in re.findall(r"\bTests?: ([^.]*)\.", text):
        for word in re.findall(r"`(?:\w+/)?([a-z_]+)`", sentence):
            t.check(word in stems, f"{page.name}: there is no test {word}")


pages = [t.SOURCE / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")]
pages += sorted(pathlib.Path(t.SOURCE / "docs").glob("**/*.md"))
for each in pages:
    text = re.sub(r"```.*?```", "", each.read_text("utf-8"), flags=re.DOTALL)
    check_tests(each, text)
    for line in text.splitlines():
        is_prose = not line.startswith(("|", "    "))
        t.check(len(line) <= 120 or not is_prose, f"{each.name}: a line of {len(line)} columns: {line[:60]}")
    for where in LINK.findall(text):
        if not where.startswith(("http:", "https:")):
            check_link(each, where)
t.finish()
