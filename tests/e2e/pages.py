#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command block of README.md and docs/ is run, page by page, and prints what the page shows
(tests/tools/page_blocks.py). What cannot run here is marked in the page with its reason, listed and counted; so is what
takes long and is done by another test too, which `make check-long` runs.
tests/e2e/pages.py [--write] PAGE...: these alone; --write writes down what they print now."""

import concurrent.futures
import os
import pathlib
import re
import sys

import cairn_test as t
import page_blocks

# Blocks that cannot run here, and those that take long: no more of them than these, and each has a test that does what
# it says.
NOT_RUN_MOST, LONG_MOST = 3, 17
DOES_IT = re.compile(r"(?:; |^)(?:(e2e/\w+)|(dev/[\w-]+\.\w+)) does it$")

t.need("bash", "g++", "git", "sqlite3", "python3")
is_written = sys.argv[1:2] == ["--write"]
names = sys.argv[1 + is_written:] or page_blocks.pages()
with concurrent.futures.ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as pool:
    done = list(pool.map(lambda name: page_blocks.Page(name, pathlib.Path.cwd() / name.removesuffix(".md"),
                                                       t.IS_LONG or bool(sys.argv[1:])).run(), names))
totals = {}
for page in done if is_written else ():
    page_blocks.write(page)
for page in done:
    for failure in page.failures:
        t.check(False, failure)
    if page.missing:
        t.skip_part(f"{page.name}: {page.missing}")
    for reason in page.lacking:
        t.skip_part(reason)
    for key, count in page.counts.items():
        totals[key] = totals.get(key, 0) + count
left = [one for page in done for one in page.left]
left_to_long = [one for page in done for one in page.left_to_long]
tests = (t.SOURCE / "tests/list.txt").read_text("ascii").split()
for where, reason in left + left_to_long:
    print(f"{'not run' if (where, reason) in left else 'run in make check-long'}: {where}: {reason}")
    found = DOES_IT.search(reason)
    test, script = found.groups() if found else (None, None)
    t.check(test in tests or script and (t.SOURCE / script).exists(), f"{where}: no test does it: {reason}")
t.check(len(left) <= NOT_RUN_MOST, f"{len(left)} blocks are not run, more than {NOT_RUN_MOST}")
t.check(len(left_to_long) <= LONG_MOST, f"{len(left_to_long)} blocks take long, more than {LONG_MOST}")
print(f"{totals['run']} commands run, {totals['compared']} outputs compared, {totals['synopsis']} synopses, "
      f"{len(left)} blocks not run")
if not sys.argv[1:]:
    t.check(totals["run"] > 100 and totals["compared"] > 30, f"few commands were found: {totals}")
t.finish()
