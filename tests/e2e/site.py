#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documentation's site (make site): it is made of all pages, every link in it leads somewhere, and in Chromium, from file://
(tests/web/site.mjs), what people type leads to the page that answers; keys, colours, narrow screens."""

import html.parser
import json
import os
import pathlib
import shutil

import cairn_test as t
from browser_modules import WEB, modules

t.need("node", "npm", "chromium")
QUESTIONS = {
    "what holds my memory": "howto/peak.html",
    "leaks": "leaks.html",
    "never freed": "howto/leaks.html",
    "allocates too often": "howto/temporary.html",
    "why is rss above the heap": "howto/heap.html",
    "what would another allocator do": "howto/whatif.html",
    "which commit made it grow": "howto/questions.html",
    "steps of a history": "howto/history.html",
    "production": "howto/production.html",
    "budget in CI": "howto/ci.html",
    "python": "howto/python.html",
    "docker": "howto/containers.html",
    "heaptrack": "explain/others.html",
    "memray": "explain/others.html",
    "MALLOC_ARENA_MAX": "howto/findings.html",
    "--max-peak": "ci.html",
    "CAIRN_OUTPUT": "reference/environment.html",
    "core dump": "howto/cores.html",
    "fragmentaton": "fragmentation",
}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.title = set(), [], ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def check_links(site, pages):
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(("https:", "http:")):
                continue
            place, _, part = link.partition("#")
            target = pathlib.Path(os.path.normpath(path.parent / place)) if place else path
            where = f"{path.relative_to(site)}: {link}"
            if t.check(target.is_file(), f"{where} leads nowhere") and part:
                t.check(target not in pages or part in pages[target].anchors, f"{where}: there is no such heading")


made = modules()
result = t.run([str(t.SOURCE / "dev/site.sh"), str(t.BUILD), "site"])
if result.status == 77:
    t.cannot_run_here("npm cannot fetch what site/package-lock.json names")
t.check_equal(f"dev/site.sh: {result.err.decode()}", result.status, 0)
site = pathlib.Path("site").resolve()
parsed = {path: Page(path) for path in sorted(site.rglob("*.html"))}
sources = [path.relative_to(t.SOURCE / "docs") for path in (t.SOURCE / "docs").rglob("*.md")]
t.check(len(sources) > 50, f"{len(sources)} pages in docs")
for source in sources:
    t.check(site / "docs" / source.with_suffix(".html") in parsed, f"docs/{source} is not in the site")
menu = set(parsed[site / "index.html"].links)
for source in sources:
    t.check(f"docs/{source.with_suffix('.html')}" in menu, f"docs/{source} is not in the menu")
check_links(site, parsed)
if t.IS_LONG:
    prettier = t.run([str(made / "node_modules/.bin/prettier"), "--config", str(WEB / ".prettierrc.json"), "--check",
                      *map(str, sorted((t.SOURCE / "site").glob("*.*js"))), str(t.SOURCE / "site/style.css")])
    t.check_equal(f"prettier: {prettier.err.decode()}", prettier.status, 0)

plan = {"modules": str(made), "chromium": shutil.which("chromium"), "site": str(site), "questions": QUESTIONS,
        "pages": sorted(str(path.relative_to(site)) for path in parsed)}
pathlib.Path("plan.json").write_text(json.dumps(plan))
result = t.run(["node", str(t.SOURCE / "tests/web/site.mjs"), "plan.json"], env=t.environment({"HOME": os.getcwd()}))
t.check_equal(f"the site in a browser: {result.out.decode()}{result.err.decode()}", result.status, 0)
t.finish()
