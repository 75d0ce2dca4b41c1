# SPDX-License-Identifier: Apache-2.0
"""The results as Markdown and as CSV."""

import csv as csv_module
import dataclasses
import io

import goals
import machine
from figures import Figures, figures
from rows import PARTS, REDUCED_SHARE
from variants import PLAIN

NOTHING = "–"
# As many digits as the figure deserves: below this 2 decimals, below that 1.
TWO_DECIMALS, ONE_DECIMAL = 10, 100


def text_of_ratio(ratio):
    if ratio is None:
        return NOTHING
    decimals = 2 if ratio < TWO_DECIMALS else 1 if ratio < ONE_DECIMAL else 0
    return f"{ratio:.{decimals}f}x"


def text_of_ns(ns):
    return NOTHING if ns is None else f"{ns:.1f}" if abs(ns) < ONE_DECIMAL else f"{ns:,.0f}"


def text_of_bytes(count):
    if count is None:
        return NOTHING
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f}"


def text_of_seconds(seconds):
    if seconds is None:
        return NOTHING
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2f} ms"


def text_of_report(cell):
    if cell.report_s is None:
        return NOTHING
    return f"{text_of_seconds(cell.report_s)}, {text_of_bytes(cell.report_rss_bytes)}"


def grid(results, rows, variants, text_of, text_of_first):
    """A table with a line a row, its plain time and a column a variant; rows and columns without any
    figure are left out."""
    lines = []
    for row in rows:
        cells = [figures(results, row, variant) for variant in variants]
        texts = [cell.problem or text_of(cell) if cell else NOTHING for cell in cells]
        if any(text != NOTHING for text in texts):
            lines.append((row, texts))
    kept = [i for i in range(len(variants)) if any(texts[i] != NOTHING for _, texts in lines)]
    head = ["", PLAIN, *(variants[i].name for i in kept)]
    table = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for row, texts in lines:
        table.append("| " + " | ".join([row.name, text_of_first(row), *(texts[i] for i in kept)]) + " |")
    return table if kept else []


def text_of_plain(results, row, plain):
    cell = figures(results, row, plain)
    if not cell:
        return NOTHING
    return f"{cell.wall_s * 1e9:,.1f} ns" if row.kind == PARTS else text_of_seconds(cell.wall_s)


def requests_a_second(results):
    """A line for each server."""
    for row in results.rows:
        found = []
        for variant in results.variants:
            cell = figures(results, row, variant)
            requests = row.requests * results.share * (REDUCED_SHARE if variant.is_reduced else 1)
            if requests and cell and not cell.problem:
                found.append(f"{variant.name} {requests / cell.wall_s:,.0f}")
        if found:
            yield f"{row.name}, requests a second: {', '.join(found)}."


SECTIONS = [  # title, explanation, text of a cell
    ("Wall time, as a ratio to plain", "", lambda cell: text_of_ratio(cell.wall_ratio)),
    ("Nanoseconds added for an allocation and its free", "", lambda cell: text_of_ns(cell.added_ns)),
    ("Processor time, as a ratio to plain", "Of the program and all helper processes; in rows with"
     " nanoseconds of the program alone.", lambda cell: text_of_ratio(cell.cpu_ratio)),
    ("Resident memory added", "To the plain program's largest. cairn run and heaptrack with their helper"
     " processes.", lambda cell: text_of_bytes(cell.rss_added_bytes)),
    ("Bytes written", "", lambda cell: text_of_bytes(cell.written_bytes) if cell.written_bytes else NOTHING),
    ("Reading it: time and memory of the report as text", "cairn report, heaptrack_print, jeprof,"
     " google-pprof, ms_print.", text_of_report),
]


def markdown(results, rounds):
    plain = next(v for v in results.variants if v.name == PLAIN)
    others = [v for v in results.variants if v.name != PLAIN]
    small = ", ".join(v.name for v in others if v.is_reduced)
    lines = ["# What recording costs", "",
             f"{machine.description()}. Medians of {rounds} interleaved rounds; made by `make bench`."
             " How each column is run: [bench/README.md](../README.md). How to read it:"
             " [docs/explain/performance.md](../../docs/explain/performance.md). Instructions and cache misses:"
             " [counts.md](counts.md).",
             *([f"{small}: once, on inputs of {REDUCED_SHARE:.0%}, compared with plain on those."] if small else []),
             "", "![Wall time as a ratio to plain](performance.svg)", "", "## Figures to reach", "",
             *goals.table(results)]
    for title, explanation, text_of in SECTIONS:
        table = grid(results, results.rows, others, text_of, lambda row: text_of_plain(results, row, plain))
        lines += ["", f"## {title}", *([explanation] if explanation else []), "", *table]
    for line in requests_a_second(results):
        lines += ["", line]
    return "\n".join(lines) + "\n"


def csv(results):
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(["row", "group", "variant", *(field.name for field in dataclasses.fields(Figures))])
    for row in results.rows:
        for variant in results.variants:
            cell = figures(results, row, variant)
            if cell:
                writer.writerow([row.name, row.group, variant.name, *map(plain_text,
                                                                        dataclasses.astuple(cell))])
    return out.getvalue()


def plain_text(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value
