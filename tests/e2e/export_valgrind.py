#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The formats of valgrind's tools as their own readers see them: ms_print, callgrind_annotate, and
dh_view.html in a browser."""

import json
import pathlib
import re
import shutil

import cairn_test as t

t.need("ms_print", "callgrind_annotate")
VIEWER = next((path for path in map(pathlib.Path, ("/usr/libexec/valgrind", "/usr/lib/valgrind"))
               if (path / "dh_view.html").is_file()), None)


def numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def check_massif(what, recording, found):
    printed = t.run(["ms_print", t.export_file(recording, "massif")])
    t.check_equal(f"{what}: ms_print", (printed.status, printed.err), (0, b""))
    text = printed.out.decode()
    rows = [numbers(line) for line in text.splitlines() if re.match(r" *\d+ +[\d,]+ +[\d,]+ +", line)]
    detailed = re.search(r"Detailed snapshots: \[(.*)\]", text)[1]
    peak = int(re.search(r"(\d+) \(peak\)", detailed)[1])
    totals = {row[0]: row[2] for row in rows}
    t.check_equal(f"{what}: massif's peak", totals[peak], found["peak"]["bytes"])
    t.check_equal(f"{what}: massif's end", totals[max(totals)], found["at_exit"]["bytes"])
    t.check_equal(f"{what}: nothing is above the peak", max(totals.values()), totals[peak])
    trees = re.findall(r"^100\.00% \(([\d,]+)B\) \(heap allocation", text, re.M)
    t.check_equal(f"{what}: trees", [numbers(tree)[0] for tree in trees],
                  [found["peak"]["bytes"], found["at_exit"]["bytes"]])
    t.check("main (" in text, f"{what}: ms_print names main")


def check_callgrind(what, recording, found, measure):
    path = t.export_file(recording, "callgrind", "--by", measure)
    printed = t.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", path])
    t.check_equal(f"{what}: callgrind_annotate", (printed.status, printed.err), (0, b""))
    text = printed.out.decode()
    sums = t.sums_by_measure(found)
    order = [measure] + [name for name in sums if name != measure]
    totals = re.search(r"^(.*) PROGRAM TOTALS$", text, re.M)[1]
    t.check_equal(f"{what}: totals", numbers(totals), [sums[name] for name in order])
    own = [numbers(line)[0] for line in text.split("file:function")[1].splitlines()
           if re.match(r" *[\d,]+ ", line)]
    t.check_equal(f"{what}: own costs add up", sum(own), sums[measure])
    inclusive = t.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--inclusive=yes",
                       "--show-percs=no", path]).out.decode()
    costs = [numbers(line)[0] for line in inclusive.splitlines() if re.search(r":main( |$)", line)]
    if what != "sqlite3":  # stripped
        t.check(costs and 0 < costs[0] <= sums[measure], f"{what}: main: {costs}")


def check_dhat_form(what, data, found):
    points = data["pps"]
    sums = {key: sum(point[key] for point in points) for key in ("tb", "tbk", "gb", "gbk", "eb", "ebk")}
    t.check_equal(f"{what}: DHAT's sums", sums, {
        "tb": found["totals"]["allocated_bytes"], "tbk": found["totals"]["allocations"],
        "gb": found["peak"]["bytes"], "gbk": found["peak"]["blocks"],
        "eb": found["at_exit"]["bytes"], "ebk": found["at_exit"]["blocks"]})
    t.check_equal(f"{what}: program points", len(points), len(found["stacks"]))


def check_dhat_view(what, path, found):
    """dh_view.html checks the file as it builds its tree, and shows the sums at its root."""
    page = pathlib.Path("dh_view").resolve()
    page.mkdir(exist_ok=True)
    for name in ("dh_view.css", "dh_view.js"):
        shutil.copy(VIEWER / name, page)
    data = pathlib.Path(path).read_text().replace("</", "<\\/")
    load = ("<script type='application/json' id='data'>" + data + "</script><script>"
            "window.addEventListener('load', () => tryFunc(() => { gFilename = 'data';"
            "gData = JSON.parse(document.getElementById('data').textContent);"
            "buildTree(); displayTree(0, 0, 0); }));</script></body>")
    html = (VIEWER / "dh_view.html").read_text().replace("</body>", load)
    (page / "page.html").write_text(html)
    shown = t.run(["chromium", "--headless", "--no-sandbox", "--dump-dom",
                   f"--user-data-dir={page}/browser", "--virtual-time-budget=5000",
                   (page / "page.html").as_uri()], env={"HOME": str(page)}, timeout=120)
    text = re.sub(r"<script.*?</script>", "", shown.out.decode(), flags=re.S)
    text = re.sub(r"<[^>]*>", "", text)
    t.check("Error:" not in text, f"{what}: dh_view: {text[text.find('Error:'):][:200]}")
    for word, amount in (("Total:", found["totals"]["allocated_bytes"]),
                         ("At t-gmax:", found["peak"]["bytes"]),
                         ("At t-end:", found["at_exit"]["bytes"])):
        t.check(re.search(rf"{word}\s*{amount:,} bytes", text),
                f"{what}: dh_view shows {word} {amount:,}: {text[text.find('Invocation'):][:900]}")


for command in (t.program("exceptions"), t.program("threads", "pipe"),
                ["sqlite3", ":memory:", "create table t(a); insert into t values(zeroblob(99999));"]):
    _, recording = t.record(command)
    found, name = t.report(recording), pathlib.Path(command[0]).name
    check_massif(name, recording, found)
    check_callgrind(name, recording, found, "peak")
    check_callgrind(name, recording, found, "calls")
    path = t.export_file(recording, "dhat")
    check_dhat_form(name, json.loads(pathlib.Path(path).read_text()), found)
    if VIEWER and shutil.which("chromium"):
        check_dhat_view(name, path, found)
    else:
        t.skip_part("dh_view.html or chromium is not here")
t.finish()
