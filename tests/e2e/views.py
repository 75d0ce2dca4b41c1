#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Views and filters: what groups, trees and filters say is computed a second time here, from the stacks
of the JSON report, and has to be the same to the byte."""

import collections
import os
import re

import cairn_test as t

MEASURES = {"peak": "peak_bytes", "exit": "at_exit_bytes", "allocated": "allocated_bytes"}


def name_of(frame):
    module = os.path.basename(frame["module"] or "")
    return frame["function"] or (f"{module}+{frame['offset']:#x}" if module else f"{frame['offset']:#x}")


def key_of(frame, view):
    if view == "functions":
        return name_of(frame)
    if view == "files":
        return frame["file"] or "[file not known]"
    if view == "directories":
        return os.path.join(os.path.dirname(frame["file"]), "") if frame["file"] else "[file not known]"
    return frame["module"] or "[no module]"


def expected_groups(stacks, view, measure):
    own, total = collections.Counter(), collections.Counter()
    for stack in stacks:
        value = stack[MEASURES[measure]]
        keys = [key_of(frame, view) for frame in stack["frames"]]
        if value > 0 and keys:
            own[keys[0]] += value
            for key in set(keys):
                total[key] += value
    return {key: (own[key], total[key]) for key in total}


ROW = re.compile(r"^ +(?:-|[\d.]+ % +(\d+(?: B)?)) +(?:-|[\d.]+ % +(\d+(?: B)?)) +.*?  (\S.*)$")


def shown_groups(output):
    """Label prefix -> (self, total); sizes are plain with --bytes."""
    rows = {}
    for line in output.decode().splitlines():
        row = ROW.match(line)
        if row and "others" not in line:
            rows[row.group(3)] = (int(row.group(1) or 0), int(row.group(2) or 0))
    return rows


def view(path, *arguments, status=0):
    result = t.run_cairn("report", *arguments, path, env={"COLUMNS": "4000"})
    t.check_equal(f"{arguments}: status", result.status, status)
    return result.out if status == 0 else result.err


def check_groups(path, stacks):
    for name in ("functions", "files", "directories", "modules"):
        for measure in MEASURES if name == "functions" else ["peak"]:
            wanted = expected_groups(stacks, name, measure)
            rows = shown_groups(view(path, "--view", name, "--by", measure, "--all-frames", "--bytes",
                                     "--top", "0"))
            t.check_equal(f"{name} by {measure}: rows", len(rows), len(wanted))
            for key, values in wanted.items():
                found = [row for label, row in rows.items()
                         if label == key or label.startswith(key + " ")]
                t.check(values in found, f"{name} by {measure}: {key}: {found}, should be {values}")


LINE = re.compile(r"^( *)->(\d+) calls, (\d+)B: (.*?)(?: \(([^()]*)\))?$")


def check_tree(path, stacks, found):
    asked = ("--view", "tree", "--by", "allocated", "--all-frames", "--top", "0", "--threshold", "0")
    t.check_equal("tree: a pipe has what a terminal prints", view(path, *asked), view(path, *asked, "--print"))
    text = view(path, *asked, "--format", "calls").decode()
    lines = [LINE.match(line) for line in text.splitlines() if "->" in line]
    t.check(lines and all(lines), f"tree: lines of another form in {text[-500:]}")
    roots = [line for line in lines if line and not line.group(1)]
    t.check_equal("tree: calls of its roots", sum(int(line.group(2)) for line in roots),
                  found["totals"]["allocations"])
    t.check_equal("tree: bytes of its roots", sum(int(line.group(3)) for line in roots),
                  found["totals"]["allocated_bytes"])
    wanted = sum(s["allocated_bytes"] for s in stacks if "fill_map" in t.functions(s))
    inner = [int(line.group(3)) for line in lines if line and line.group(4) == "fill_map"]
    t.check_equal("tree: bytes below fill_map", sum(inner), wanted)


def check_filters(path, stacks):
    def selected(*arguments):
        filtered = t.report(path, *arguments)
        return sorted(stack["id"] for stack in filtered["stacks"])

    def wanted(condition):
        return sorted(stack["id"] for stack in stacks if condition(t.functions(stack)))

    t.check_equal("--focus", selected("--focus", "^fill_"),
                  wanted(lambda names: any(n.startswith("fill_") for n in names)))
    t.check_equal("--ignore", selected("--ignore", "^fill_map$"),
                  wanted(lambda names: "fill_map" not in names))
    t.check_equal("--focus and --ignore", selected("--focus", "fill_", "--ignore", "fill_map|items"),
                  wanted(lambda names: any("fill_" in n for n in names)
                         and not any(re.search("fill_map|items", n) for n in names)))
    modules = [s["id"] for s in stacks if any("containers" in (f["module"] or "") for f in s["frames"])]
    t.check_equal("--module", selected("--module", "containers$"), sorted(modules))
    hidden = t.report(path, "--hide", "^std::")
    t.check(not any(name.startswith("std::") for s in hidden["stacks"] for name in t.functions(s)),
            "--hide: names of std:: are left")
    owner = t.report(path, "--thread", "owner")
    wanted_bytes = sum(s["allocated_bytes"] for s in stacks if "fill_owned" in t.functions(s))
    found_bytes = sum(s["allocated_bytes"] for s in owner["stacks"] if "fill_owned" in t.functions(s))
    t.check_equal("--thread: bytes", found_bytes, wanted_bytes)
    t.check(not any(s["allocated_bytes"] for s in owner["stacks"] if "fill_map" in t.functions(s)),
            "--thread: the main thread's stacks are in it")
    gone = t.report(path, "--lifespan", "gone")
    t.check_equal("--lifespan gone: allocated", sum(s["allocated_bytes"] for s in gone["stacks"]),
                  sum(s["freed_bytes"] for s in stacks))
    living = t.report(path, "--lifespan", "living")
    t.check_equal("--lifespan living: allocated", sum(s["allocated_bytes"] for s in living["stacks"]),
                  sum(s["at_exit_bytes"] for s in stacks))


def check_refusals(path):
    for arguments, status, words in (
            (["--focus", "fill_(x"], 2, [b"--focus", b"parenthesis", b"character 7"]),
            (["--view", "nothing"], 2, [b"nothing", b"cairn help views"]),
            (["--view", "timelin"], 2, [b"timelin", b'"timeline"']),
            (["--threshold", "ten"], 2, [b"--threshold", b"ten"]),
            (["--lifespan", "short"], 2, [b"--lifespan"]),
            (["--lifespan", "gone", "--by", "peak"], 2, [b"lifespan"]),
            (["--blocks", "--min-bytes", "1K"], 2, [b"--min-bytes"]),
            (["--focus", "no_such_function"], 1, [b"--focus", b"matches nothing", b"fill_"]),
            (["--module", "libnothing"], 1, [b"--module", b"containers"]),
            (["--thread", "nobody"], 1, [b"--thread", b"owner"]),
            (["--ignore", "."], 1, [b"--ignore", b"leaves nothing"]),
            (["--source", "none.cc"], 1, [b"--source", b"containers.cc"]),
            (["--view", "processes"], 1, [b"processes"])):
        message = view(path, *arguments, status=status)
        t.check(all(word in message for word in words), f"{arguments}: {message!r}")
        if status == 1:
            t.check_equal(f"{arguments}: lines", message.count(b"\n"), 1)


def check_screens(path):
    types = view(path, "--view", "types", "--bytes").decode()
    for pattern in (r" 100000 +1 block +std::vector<Item>", r" 1,000 blocks +std::map<int, Item>",
                    r" 100000 +1,000 blocks +Item"):
        t.check(re.search(pattern, types), f"types: no {pattern} in {types}")
    annotated = view(path, "--view", "annotate", "--source", "containers.cc", "--bytes").decode()
    t.check(re.search(r" 100000 +1 +21 .*items\.reserve", annotated), f"annotate: {annotated}")
    t.check("struct Item" not in annotated and "..." in annotated, "annotate: not only lines with figures")
    t.check("struct Item" in view(path, "--source", "containers.cc", "--top", "0").decode(),
            "annotate: not the whole file")
    timeline = view(path, "--view", "timeline").decode()
    # resident memory, if somebody looked at it in time, makes the heap one line high
    t.check(re.search("[\u2581-\u2588]", timeline) and re.search(r"peak .* at .* \u25b2|\u25b2 peak", timeline),
            f"timeline: {timeline}")
    threads = view(path, "--view", "threads", "--by", "allocated").decode()
    t.check(re.search(r"containers \d+\n.* owner \d+", threads), f"threads: {threads}")
    for columns, names in ((80, ("stacks", "functions", "lines", "types", "timeline")),  # source is whole in a pipe
                           (200, ("functions", "files", "modules", "threads"))):
        for name in names:
            result = t.run_cairn("report", "--view", name, path, env={"COLUMNS": str(columns)})
            wide = [line for line in result.out.decode().splitlines() if len(line) > columns]
            t.check(not wide, f"{name} in {columns} columns: {wide[:2]}")
            t.check(b"\033" not in result.out, f"{name}: colours in a pipe")


def check_limits(path, stacks):
    """--top, --threshold and --min-bytes cut a list of stacks, and its heading says which of them did."""
    values = sorted((stack["peak_bytes"] for stack in stacks if stack["peak_bytes"] > 0), reverse=True)
    for options, wanted, said in (
            (["--threshold", "20%"], sum(value >= sum(values) / 5 for value in values), "--threshold"),
            (["--min-bytes", "8K"], sum(value >= 8192 for value in values), "--min-bytes"),
            (["--top", "2"], 2, "--top 0: all")):
        text = view(path, "--view", "stacks", "--top", "0", *options).decode()
        t.check_equal(f"{options}: stacks", len(re.findall(r"(?m)^ *\d+ +[\d.]+ % ", text)), wanted)
        t.check(f", the first {wanted} ({said})" in text or wanted == len(values), f"{options}: {text[:300]}")


def check_color(path):
    """In a pipe only where it is asked for, and then nothing but colours is added."""
    plain = view(path, "--view", "functions")
    for when in ("auto", "never"):
        t.check(view(path, "--view", "functions", "--color", when) == plain, f"--color {when}")
    coloured = view(path, "--view", "functions", "--color", "always")
    t.check(b"\033[" in coloured and re.sub(rb"\033\[[\d;]*m", b"", coloured) == plain, f"--color always: {coloured[:300]}")
    t.check(b"auto, always or never" in view(path, "--color", "sometimes", status=2), "--color sometimes")


def check_rankings(recording):
    """Several rankings in one print are those of each, the summary once, short-lived blocks by their view."""
    every = t.run_cairn("report", "--by", "peak,exit,calls,temporary", recording)
    wanted = [t.run_cairn("report", *options, recording).out for options in (
        ("--by", "peak"), *(("--view", "stacks", "--by", one) for one in ("exit", "calls")), ("--view", "temporary"))]
    t.check_equal("four rankings", (every.status, every.out), (0, b"\n".join(wanted)))
    for options, meant in ((("--by", "peak,nothing"), b'cannot rank by "nothing", but by'),
                           (("--by", "exit,peek"), b'cannot rank by "peek" (did you mean "peak"?)'),
                           (("--by", "peak,exit", "--json"), b"one measure")):
        refused = t.run_cairn("report", *options, recording)
        t.check((refused.status, refused.out) == (2, b"") and meant in refused.err, f"{options}: {refused}")


_, recording = t.record(t.program("containers"))
whole = t.report(recording)
if whole is not None:
    check_groups(recording, whole["stacks"])
    check_tree(recording, whole["stacks"], whole)
    check_filters(recording, whole["stacks"])
    check_refusals(recording)
    check_screens(recording)
    check_color(recording)
    check_limits(recording, whole["stacks"])
    check_rankings(recording)
t.finish()
