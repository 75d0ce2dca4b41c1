#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collapsed stacks and speedscope's JSON: their sums, their form, and speedscope itself in a browser,
which lists each profile with its total. speedscope is taken from CAIRN_SPEEDSCOPE (its dist/release) or
fetched by npm; without it that part is left out."""

import base64
import json
import os
import pathlib
import re
import shutil

import cairn_test as t

MEASURES = ["peak", "exit", "allocated", "calls"]
VERSION = "1.25.0"


def check_collapsed(what, recording, sums):
    for measure in MEASURES:
        total = 0
        for line in t.export(recording, "collapsed", "--by", measure).decode().splitlines():
            stack, value = line.rsplit(" ", 1)
            total += int(value)
            t.check(int(value) > 0 and all(stack.split(";")), f"{what}: odd line {line!r}")
        t.check_equal(f"{what}: collapsed by {measure}", total, sums[measure])


def check_form(what, data, sums):
    """As the schema of the format has it: required keys, types, indexes that exist."""
    t.check_equal(f"{what}: schema", data["$schema"],
                  "https://www.speedscope.app/file-format-schema.json")
    frames = data["shared"]["frames"]
    for frame in frames:
        t.check(set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str),
                f"{what}: frame {frame}")
        t.check(isinstance(frame.get("line", 1), int), f"{what}: frame {frame}")
    t.check("exact" in data["name"], f"{what}: name {data['name']}")
    for measure, profile in zip(MEASURES, data["profiles"], strict=True):
        t.check_equal(f"{what}: type", profile["type"], "sampled")
        t.check(profile["unit"] in ("bytes", "none"), f"{what}: unit {profile['unit']}")
        t.check(profile["name"].endswith(": " + measure), f"{what}: name {profile['name']}")
        t.check_equal(f"{what}: weights", len(profile["weights"]), len(profile["samples"]))
        t.check(all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack),
                f"{what}: frame out of range")
        t.check_equal(f"{what}: {measure}", sum(profile["weights"]), sums[measure])
        t.check_equal(f"{what}: end", profile["endValue"], sums[measure])


def in_its_units(amount):
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount} B" if unit == "B" else f"{amount:.2f} {unit}"
        amount /= 1024
    return "too much"


def speedscope():
    """Directory of speedscope's page, or None."""
    given = os.environ.get("CAIRN_SPEEDSCOPE")
    if given:
        return pathlib.Path(given)
    kept = t.BUILD / "tests/speedscope"
    if not kept.is_dir() and shutil.which("npm"):
        if t.run(["npm", "pack", "--silent", f"speedscope@{VERSION}"], timeout=60).status == 0:
            kept.mkdir(parents=True)
            t.run(["tar", "xf", f"speedscope-{VERSION}.tgz", "-C", str(kept)])
    page = kept / "package/dist/release"
    return page if page.is_dir() else None


def shown_by_speedscope(page, path):
    """The text of speedscope's page after it loaded the file."""
    data = base64.b64encode(pathlib.Path(path).read_bytes()).decode()
    loader = pathlib.Path("loader.js").resolve()
    loader.write_text(f'speedscope.loadFileFromBase64("x.speedscope.json", "{data}")')
    address = f"{(page / 'index.html').as_uri()}#view=sandwich&localProfilePath={loader}"
    shown = t.run(["chromium", "--headless", "--no-sandbox", "--allow-file-access-from-files",
                   "--enable-unsafe-swiftshader", "--use-gl=swiftshader", "--dump-dom",
                   f"--user-data-dir={os.getcwd()}/browser", "--virtual-time-budget=8000",
                   address], env={"HOME": os.getcwd()}, timeout=120)
    return re.sub(r"<[^>]*>", " ", shown.out.decode(errors="replace"))


recording = None
for command in (t.program("leak"), t.program("threads", "pipe"), t.program("exceptions")):
    _, recording = t.record(command)
    found = t.report(recording)
    wanted = t.sums_by_measure(found)
    name = pathlib.Path(command[0]).name
    check_collapsed(name, recording, wanted)
    check_form(name, json.loads(t.export(recording, "speedscope")), wanted)
lines = t.export(recording, "collapsed", "--by", "allocated", "--all-frames").decode()
t.check(re.search(r"^_start;\S*__libc_start_main\S*;", lines, re.M), f"--all-frames: {lines[:300]}")
t.check("_start;" not in t.export(recording, "collapsed", "--by", "allocated").decode(),
        "internal frames are hidden")

release = speedscope()
if release and shutil.which("chromium"):
    text = shown_by_speedscope(release, t.export_file(recording, "speedscope"))
    for measure in MEASURES[2:]:
        amount = wanted[measure]
        words = f"{amount:,}" if measure == "calls" else in_its_units(amount)
        t.check(f"exceptions: {measure} {words}" in re.sub(r"\s+", " ", text),
                f"speedscope shows {measure} as {words}: {text[-2000:]}")
    t.check("main" in text, "speedscope names main")
else:
    t.skip_part("speedscope or chromium is not here")
t.finish()
