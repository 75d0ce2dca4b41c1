#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One idea, one word: words that were replaced by the field's own (docs/reference/glossary.md) are neither in what
the tool says of itself, nor in its reports and exports, nor in the documentation."""

import re

import cairn_test as t

# The old word, and what is said instead.
OLD = {
    r"\bmoments\b": "snapshots",
    r"--view moments\b": "--view snapshots",
    r"\bthen_(bytes|blocks|estimate)\b": "at_bytes, at_blocks, at_estimate",
    r"what stands out": "findings",
    r"\bplumbing\b": "internal frames",
    r"\bother places\b": "other call sites",
    r'"places"': "locations",
    r"blocks? from before": "pre-existing blocks",
    r"\bcensus\b": "scan of the heap, --scan-heap",
    r"CAIRN_EVERY|--(any-size|anyway|portable|max-damaged)\b": "--snapshot-every, --no-copy-limit, --ignore-checks, "
                                                         "--symbols all, --max-overruns",
    r"--view damage\b": "--view overruns",
    r"\b(damaged_blocks|damages)\b": "overrun_blocks, overruns",
    r"\bdamaged blocks?\b": "overrun blocks",
    r"\bwhen left\b|before cairn (was )?attached": "at detach, allocated before attach",
    r"\bwith callees\b": "total, beside self",
    r"\b(is|are) on at \d|allocates nothing": "recording, 12.3 s; idle",
    r"(stopped for .* in all|ms at a time)\b": "paused 8.3 ms in total, longest 7.0 ms",
    r"room beyond what was asked for": "rounding by the allocator",
    r"\(across\)|to below .* of age": "rows and columns by name; lifetime",
    r"[Ww]hat changed most|Worth knowing": "findings",
    r"ask something of a program|answers of SQL|two looks": "control a running recording, query with SQL, samples",
}


def check_text(what, text):
    for number, line in enumerate(text.splitlines(), 1):
        for old, new in OLD.items():
            t.check(not re.search(old, line), f"{what}:{number}: {line.strip()!r}: say {new}")


def check_help():
    overview = t.run_cairn("help", "all").out.decode()
    check_text("cairn help all", overview)
    for page in ((), ("views",)):
        check_text(f"cairn help {page}", t.run_cairn("help", *page).out.decode())
    commands = re.findall(r"^  ([a-z][a-z-]+) ", overview[:overview.index("Topics")], re.M)
    t.check(len(commands) > 15, f"commands: {commands}")
    for command in commands:
        check_text(f"cairn {command} --help=all", t.run_cairn(command, "--help=all").out.decode())
    for page in ("commands", "views"):
        check_text(f"cairn help --reference {page}", t.run_cairn("help", "--reference", page).out.decode())


def check_outputs():
    result, path = t.record(t.program("habits", "leak"))
    t.check_equal(f"habits: {result.err.decode()}", result.status, 0)
    check_text("summary", t.run_cairn("report", path).out.decode())
    for view in ("snapshots", "growth", "temporary", "memory", "timeline", "top"):
        check_text(view, t.run_cairn("report", "--view", view, path).out.decode())
    check_text("--json", t.run_cairn("report", "--json", "--at", "peak", path).out.decode().replace(",", ",\n"))
    for form in ("json", "csv"):
        check_text(form, t.export(path, form).decode())
    tables = t.run_cairn("sql", path, "SELECT sql FROM sqlite_master").out.decode()
    t.check("locations" in tables, f"sql: {tables[:300]}")
    check_text("sql", tables.replace(",", ",\n"))


def check_documents():
    pages = [t.SOURCE / "README.md", t.SOURCE / "CHANGELOG.md", *sorted((t.SOURCE / "docs").rglob("*.md"))]
    t.check(len(pages) > 30, f"only {len(pages)} pages")
    for page in pages:
        check_text(str(page.relative_to(t.SOURCE)), page.read_text(encoding="utf-8"))


check_help()
check_outputs()
check_documents()
t.finish()
