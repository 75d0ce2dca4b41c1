#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flame graph: well-formed SVG whose rows add up, in a browser searchable and zoomable, without
anything from elsewhere."""

import pathlib
import re
import shutil
import xml.etree.ElementTree as xml

import cairn_test as t

SVG = "{http://www.w3.org/2000/svg}"


class Frame:
    def __init__(self, group):
        self.left, self.share = float(group.get("data-l")), float(group.get("data-w"))
        box = group.find(SVG + "rect")
        self.x, self.y = float(box.get("x")), float(box.get("y"))
        self.width = float(box.get("width"))
        self.title = group.find(SVG + "title").text
        self.name = self.title.split("\n")[0]


def read(data):
    root = xml.fromstring(data)
    group = next(item for item in root.iter(SVG + "g") if item.get("id") == "frames")
    return root, [Frame(item) for item in group]


def check_rows(what, frames):
    """Each frame lies within the one above it, and neighbours do not overlap."""
    rows = {}
    for frame in frames:
        rows.setdefault(frame.y, []).append(frame)
    above = None
    for y in sorted(rows):
        row = sorted(rows[y], key=lambda frame: frame.left)
        for left, right in zip(row, row[1:]):
            t.check(left.left + left.share <= right.left + 1e-6, f"{what}: {left.title} overlaps")
        for frame in row:
            t.check(above is None or any(
                up.left - 1e-6 <= frame.left and
                frame.left + frame.share <= up.left + up.share + 1e-6 for up in above),
                f"{what}: {frame.title} is below nothing")
        above = row
    first = sum(frame.share for frame in rows[min(rows)])
    t.check(0.99 < first < 1.000001, f"{what}: the first row is {first} of the whole")


def browse(path, window="1400,800"):
    shown = t.run(["chromium", "--headless", "--no-sandbox", "--dump-dom",
                   f"--user-data-dir={pathlib.Path.cwd()}/browser", f"--window-size={window}",
                   "--virtual-time-budget=3000", path], env={"HOME": str(pathlib.Path.cwd())},
                  timeout=120)
    return shown.out.decode()


_, recording = t.record(t.program("exceptions"))
found = t.report(recording)
sums = t.sums_by_measure(found)
for measure, words in (("peak", "at the peak"), ("allocated", "allocated"),
                       ("calls", "calls of allocation")):
    data = t.export(recording, "flamegraph", "--by", measure)
    root, frames = read(data)
    check_rows(measure, frames)
    t.check(words in data.decode() and "exact" in data.decode(), f"{measure}: heading")
    calls = [int(match[1].replace(",", "")) for frame in frames if frame.name.startswith("main (")
             and (match := re.search(r"\n([\d,]+) calls", frame.title))]
    if measure == "calls":
        wanted = sum(stack["allocations"] for stack in t.stacks_through(found, "main"))
        t.check(0 <= wanted - sum(calls) <= wanted // 1000,  # frames too thin to be drawn
                f"calls below main: {sum(calls)} of {wanted}")
links = re.findall(rb"(?:href|src|url\()\s*=?\s*[\"']?(?!#)([a-z]+:[^\"')]*)", data)
t.check_equal("what is taken from elsewhere", links, [])
t.check(b"__libc_start_main" not in data, "internal frames are hidden")
t.check(b"__libc_start_main" in t.export(recording, "flamegraph", "--all-frames"), "--all-frames")

if shutil.which("chromium"):
    path = t.fresh_path("picture") + ".svg"
    t.run_cairn("export", "-o", path, recording)
    text = browse(pathlib.Path(path).as_uri() + "#^main ")
    hits = re.findall(r'<g [^>]*class="hit"[^>]*>.*?</g>', text, re.S)
    _, frames = read(pathlib.Path(path).read_bytes())
    t.check_equal("frames that the search marks", len(hits),
                  sum(frame.name.startswith("main ") for frame in frames))
    t.check(re.search(r'id="found"[^>]*>\d+ frames?, [\d.]+ % of the whole', text), "its share")
    t.check('width="1400"' in text, "follows the window")
    # a click on a frame makes it as wide as the window
    zoom = pathlib.Path(path).read_text().replace(
        "draw();\n})();", "draw(); zoom(frames.reduce((a, f) => f.y > a.y ? f : a));\n})();")
    pathlib.Path(path).write_text(zoom)
    text = browse(pathlib.Path(path).as_uri())
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', text)]
    t.check(abs(max(widths) - 1380) < 0.01, f"zoomed frame: {max(widths)}")
    t.check('class="above"' in text and "display: none" in text, "zoomed: others go")
else:
    t.skip_part("chromium is not here")
t.finish()
