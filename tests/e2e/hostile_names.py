#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose path, arguments and thread names are made to do harm: terminal sequences, quotes, markup,
characters that turn the direction of writing, bytes that are no text. No output lets any of them through."""

import csv
import io
import json
import os
import shutil
import subprocess
import unicodedata
import xml.etree.ElementTree

import cairn_test as t
import parquet
import perfetto

HOSTILE = b"\x1b[31m\"'<script>&\xe2\x80\xae\xff\r,"
VIEWS = ["stacks", "tree", "functions", "lines", "files", "modules", "types", "threads", "timeline", "leaks"]
FORMATS = ["collapsed", "speedscope", "json", "flamegraph", "dhat", "massif", "csv", "ndjson", "firefox", "mptrace", "callgrind"]
ALLOWED_CONTROLS = "\n\t"
TURNS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def check_harmless(name, output):
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        return t.check(False, f"{name}: no text: {error}")
    bad = {c for c in text if c in TURNS or (unicodedata.category(c) == "Cc" and c not in ALLOWED_CONTROLS)}
    return t.check(not bad, f"{name}: lets {sorted(map(hex, map(ord, bad)))} through")


def run(*arguments):
    result = subprocess.run([os.fsencode(a) for a in (t.CAIRN, *arguments)], capture_output=True,
                            check=False, env=t.environment(), timeout=t.TIMEOUT_S)
    t.check(result.returncode == 0, f"{arguments}: status {result.returncode} {result.stderr[-300:]!r}")
    return result


program = os.path.join(os.getcwdb(), HOSTILE)
shutil.copy(t.program("mixed")[0], program)
recorded = run("run", "-o", "hostile.cairn", program, HOSTILE)
check_harmless("the screen of run", recorded.stderr)
check_harmless("info", run("info", "hostile.cairn").stdout)
for view in VIEWS:
    check_harmless(view, run("report", "hostile.cairn", "--all-frames", "--view", view).stdout)
report = run("report", "hostile.cairn", "--json").stdout
check_harmless("--json", report)
json.loads(report)
for form in FORMATS:
    exported = run("export", "hostile.cairn", "--all-frames", "--format", form).stdout
    check_harmless(form, exported)
    t.check(b"'<script>&" not in exported or form != "flamegraph", "flamegraph: markup comes through")
    if form in ("speedscope", "json", "dhat", "firefox"):
        json.loads(exported)
    if form == "flamegraph":
        xml.etree.ElementTree.fromstring(exported)
    if form == "ndjson":
        t.check(all(json.loads(line)["frames"] for line in exported.splitlines()), "ndjson: lines without frames")
    if form == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(exported.decode())) if row and row[0][:1] != "#"}
        t.check(len(widths) == 1, f"csv: rows of {widths} fields")
run("export", "hostile.cairn", "--all-frames", "-o", "hostile.parquet", "--label", b"host=" + HOSTILE)
for row in parquet.read("hostile.parquet")[0]:
    for text in [*row["frames"], *(value for value in row.values() if isinstance(value, str))]:
        check_harmless("parquet", text.encode())
run("export", "hostile.cairn", "-o", "hostile.perfetto-trace")
trace = perfetto.Trace("hostile.perfetto-trace")
check_harmless("perfetto", "\n".join([*trace.functions.values(), *trace.paths.values(), *trace.sources.values(),
                                       trace.process["command"], trace.process["name"], trace.process["trust"]]).encode())
os.unlink(program)
t.finish()
