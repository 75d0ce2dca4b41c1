#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks that read the same are one row in every view, as text and as data, and on the page: tests/programs/unrolled.c
calls from several places of one line. Sums are those of the stacks of the JSON report, which tells them apart."""

import json
import re
import subprocess

import cairn_test as t
from page_data import read_page

EACH, BLOCKS, SIZE = 4, 1600, 100
VIEWS = (t.SOURCE / "tool/query/view_table.c").read_text("utf-8")
OF_STACKS = re.findall(r'\{\.name = "([a-z-]+)"(?:(?!\{\.name).)*?VIEW_IS_OF_STACKS', VIEWS, re.S)


def frame_of(frame):
    """As it reads: without the address."""
    return tuple(frame[key] for key in ("function", "file", "line", "inlined", "module"))


def reading_of(row, keys):
    frames = [tuple(map(frame_of, row.get(key) or ())) for key in ("frames", "freed_by")]
    return (row.get("level"), *frames, *(row.get(key) for key in keys))


def answer_of(subject, view, *options):
    """None: it is not known of this recording."""
    result = t.run_cairn("report", "--view", view, "--format", "json", "--top", "0", *options, str(subject))
    return json.loads(result.out) if result.status == 0 else None


def check_rows(subject, view):
    """No two rows with frames or names read the same; of parts of a row, below that row."""
    answer = answer_of(subject, view)
    if not answer:
        return []
    keys = [column["key"] for column in answer["columns"]
            if column["unit"] in ("text", "number") and column["key"] not in ("id", "other_ids")]
    seen = set()
    for row in answer["rows"]:
        if row.get("level", 0) == 0 and "frames" in row:
            parts = set()
        if "frames" not in row and "freed_by" not in row:
            continue
        reading, known = reading_of(row, keys), parts if row.get("level") else seen
        t.check(reading not in known, f"{view}: two rows read the same: {reading}")
        known.add(reading)
    return answer["rows"]


def check_text(path, view):
    """Blocks of lines, without their figures."""
    output = t.run_cairn("report", "--view", view, "--top", "0", path, env={"COLUMNS": "200"}).out.decode()
    blocks = [re.findall(r"^ {6,}(\S+ +\S+\.c:\d+)", block, re.M) for block in re.split(r"\n *\d+ ", output)[1:]]
    blocks = [tuple(block) for block in blocks if block]
    t.check_equal(f"{view}: blocks of the screen that read the same", len(set(blocks)), len(blocks))
    return blocks


def stacks_of(path):
    return json.loads(t.run_cairn("report", "--json", path).out)["stacks"]


def check_sums(path):
    """The row of fill has the sums of the stacks that differ in addresses, and their ids."""
    alike = [one for one in stacks_of(path) if any(frame["function"] == "fill" for frame in one["frames"])]
    t.check(len(alike) >= EACH, f"stacks of fill, by address: {len(alike)}")
    rows = [row for row in answer_of(path, "stacks")["rows"] if any(one["function"] == "fill" for one in row["frames"])]
    t.check_equal("rows of fill", len(rows), 1)
    row = rows[0]
    for key in ("allocations", "frees", "allocated_bytes", "peak_bytes", "peak_blocks", "at_exit_bytes"):
        t.check_equal(f"fill: {key}", row[key], sum(one[key] for one in alike))
    t.check_equal("fill: calls", (row["allocations"], row["allocated_bytes"]), (BLOCKS, BLOCKS * SIZE))
    most = max(one["peak_bytes"] for one in alike)
    t.check_equal("fill: its id is that of the largest, the first of equal ones",
                  row["id"], min(one["id"] for one in alike if one["peak_bytes"] == most))
    t.check_equal("fill: ids", {row["id"], *row["other_ids"].split()}, {one["id"] for one in alike})
    sizes = [part for part in answer_of(path, "sizes")["rows"] if part.get("size_least") == SIZE]
    t.check_equal("sizes of fill", [(part["size_most"], part["size_blocks"]) for part in sizes], [(SIZE, BLOCKS)])


def check_page(path):
    t.check_equal("open: status", t.run_cairn("open", "-o", "page.html", "--force", path).status, 0)
    chunks = dict(read_page("page.html")[1])
    t.check_equal("page: a stack a row", len(chunks["stack.node"]), len(answer_of(path, "stacks", "--by", "calls")["rows"]))
    t.check(BLOCKS in chunks["stack.allocations"], f"page: fill has {chunks['stack.allocations']}")


def recorded(name, *options):
    t.check_equal(f"{name}: status", t.run_cairn("run", "-q", "-o", name, *options, "--", *t.program("unrolled")).status, 0)
    return name


def check_names(view):
    """Rows of one level, below one row, differ in kind or name."""
    above = {}
    for row in answer_of("unrolled", view)["rows"]:
        level = row.get("level", 0)
        above = {one: names for one, names in above.items() if one <= level}
        names = above.setdefault(level, [])
        t.check((row["kind"], row["name"]) not in names or row.get("left_out"), f"{view}: {row['name']} is there twice")
        names.append((row["kind"], row["name"]))


def check_process():
    """Views of a process, while it is recorded."""
    command = [t.CAIRN, "run", "-q", "-o", "process.cairn", "--", *t.program("unrolled")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment({})) as run:
        run.stdout.readline()
        pages = [row for row in check_rows("unrolled", "pages") if any(one["function"] == "fill" for one in row.get("frames", ()))]
        if t.check_equal("pages: rows of fill", len(pages), 1):
            t.check_equal("pages: live blocks of fill", pages[0]["live_blocks"], BLOCKS // 2)
        check_names("owners")
        check_names("waste")
        run.stdin.close()


def main():
    t.check({"stacks", "sizes", "leaks", "frees"} <= set(OF_STACKS), f"views of stacks: {OF_STACKS}")
    path = recorded("unrolled.cairn", "--free-stacks", "--ages")
    guarded, mapped = recorded("guarded.cairn", "--guard"), recorded("mapped.cairn", "--mmap")
    for view in OF_STACKS:
        for one in (path, guarded, mapped):
            check_rows(one, view)
            check_text(one, view)
    t.check_equal("overruns: of spoil", len(answer_of(guarded, "overruns")["rows"]), 1)
    t.check_equal("mappings: of map", sum("map" in {one["function"] for one in row["frames"]}
                                          for row in answer_of(mapped, "mappings")["rows"]), 1)
    frees = [row for row in answer_of(path, "frees")["rows"] if row.get("level") == 1]
    t.check_equal("frees: places that freed", len(frees), 2)
    check_sums(path)
    check_page(path)
    check_process()


main()
t.finish()
