#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of each release (tests/compat, from 0.2.0 on) are read by this version: the keys of JSON are those of
the release or more, figures are the same, names are those in the recordings; report, diff, pprof and the page; event logs
as the release showed them; the tree as lines of calls."""

import json
import pathlib
import re
import tarfile

import cairn_test as t
import kept_recordings as kept

NAMES = ["make_row", "fill_table", "churn", "worker"]


def unpack(release, name=kept.RECORDINGS, inside=kept.PLACE):
    place = pathlib.Path(release.name)
    place.mkdir(exist_ok=True)
    with tarfile.open(release / name) as archive:
        archive.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(place)
    return place / inside


def check_names(what, path):
    """Without the program, which was removed where it was recorded."""
    named = t.run_cairn("report", "--view", "functions", "--by", "allocated", path).out.decode()
    for name in NAMES:
        t.check(name in named, f"{what}: {name} is not in {named}")


def check_page(what, path):
    page = pathlib.Path(t.fresh_path("page") + ".html")
    result = t.run_cairn("open", "-o", str(page), path)
    t.check_equal(f"{what}: open", result.status, 0)
    t.check(page.exists() and page.read_text("utf-8").rstrip().endswith("</html>"), f"{what}: the page is not whole")


def check_release(release):
    place = unpack(release)
    wanted, found = json.loads((release / kept.EXPECTED).read_text("utf-8")), kept.look(place)
    for kind, keys in wanted["keys"].items():
        missing = sorted(set(keys) - set(found["keys"][kind]))
        t.check(len(keys) > 10 and not missing, f"{release.name}: {kind}: {len(keys)} keys, missing: {missing}")
    for name, figures in wanted["figures"].items():
        for section, value in figures.items():
            here = found["figures"].get(name, {}).get(section)
            t.check(kept.is_kept(value, here), f"{release.name}: {name}: {section}: {here}, was {value}")
        check_page(f"{release.name}: {name}", str(place / name))
    for name in ("exact", "values", "sampled", "processes", "attached"):
        check_names(f"{release.name}: {name}", str(place / f"{name}.cairn"))
    for name in ("exact", "sampled"):
        check_calls(f"{release.name}: {name}", str(place / f"{name}.cairn"))


def check_calls(what, path):
    """What 0.2.0 printed of the tree in a pipe is the form "calls"; a pipe has what the terminal shows."""
    tree = ("report", "--view", "tree", "--by", "allocated", path)
    lines = t.run_cairn(*tree, "--format", "calls").out.decode().splitlines()
    t.check(lines and all(re.match(r" *->-?\d+ calls, -?\d+B( \u00b1 \d+B.*)?: .", line) for line in lines), f"{what}: {lines[:3]}")
    t.check_equal(f"{what}: a pipe", t.run_cairn(*tree).out, t.run_cairn(*tree, "--print").out)


def check_logs(release):
    """Event logs have the events that the release told of them; names may have become better."""
    place = unpack(release, kept.LOGS, "logs")
    logs = sorted(place.glob("*.events"))
    t.check(len(logs) > 2, f"{release.name}: {logs}")
    for log in logs:
        shown = t.run_cairn("events", "--format", "csv", str(log))
        rows = [[line.split(",")[:9] for line in text.splitlines()]
                for text in (shown.out.decode(), log.with_suffix(".csv").read_text("utf-8"))]
        t.check(rows[0] == rows[1] and len(rows[0]) > 100, f"{release.name}: {log.name}: {len(rows[0])} of {len(rows[1])} rows")
        t.check_equal(f"{release.name}: {log.name}: replay", t.run_cairn("replay", str(log)).status, 0)


def check_comparison():
    """It sees what it is for."""
    old = {"a": [{"b": 1}], "c": "x"}
    t.check(kept.is_kept(old, {"a": [{"b": 1, "new": 2}], "c": "x", "more": []}), "objects may grow")
    for changed in ({"a": [{"b": 2}], "c": "x"}, {"a": [{"b": 1}]}, {"a": [{"b": 1}, {}], "c": "x"}, {"a": [{"b": True}], "c": "x"}):
        t.check(not kept.is_kept(old, changed), f"{changed} passes for {old}")
    t.check_equal("keys", kept.keys_of({"a": [{"b": 1}, {"d": {"e": 2}}]}), {"a", "a[].b", "a[].d", "a[].d.e"})


releases = sorted(path for path in kept.COMPAT.iterdir() if path.is_dir())
version = t.run_cairn("--version").out.split()[1].decode()
t.check(kept.COMPAT / version in releases, f"there are no recordings of {version}: dev/compat-recordings.py")
check_comparison()
for each in releases:
    check_release(each)
    if (each / kept.LOGS).exists():
        check_logs(each)
t.finish()
