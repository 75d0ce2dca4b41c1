#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers as data: rows of each view in every form are the same, those of stacks are what `report --json` says, and
what a view or a subject does not have is said. Names of 10,000 characters, escapes, narrow and wide screens, a closed
pipe."""

import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

LISTS = ("heap", "pages", "stacks", "leaks", "tree", "sizes", "functions", "lines", "files", "directories", "modules", "types", "threads", "regions",
         "contexts", "pools", "snapshots", "growth", "timeline", "memory", "findings", "overruns", "annotate")
MEMORY = ("heap", "pages", "owners", "types", "containers", "waste", "remedies")
# Keys of columns and facts stay within schema 1 (docs/reference/json.md).
KEPT = json.loads((t.SOURCE / "tests/compat/answers.json").read_text("utf-8"))
KEYS = ("allocations", "frees", "allocated_bytes", "peak_bytes", "peak_blocks", "at_exit_bytes")
LONG = "a" * 10000
LINE_MOST = 160  # of a screen that is too narrow for its figures, and of a line of source


def asked(path, view, form, *options, status=0):
    result = t.run_cairn("report", "--view", view, "--format", form, *options, path)
    t.check_equal(f"{view} as {form} {options}: status: {result.err}", result.status, status)
    return (result.out if status == 0 else result.err).decode()


def plain(value):
    """As CSV has it: formulas begin with an apostrophe."""
    if value is None or value is True or value is False:
        return "" if value is None else str(int(value))
    if isinstance(value, float):
        return f"{value:.3f}"
    return "'" + value if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else str(value)


def steady(answer):
    """Without how long the process was stopped, and what that makes malloc_trim cost."""
    return {**answer, "facts": {**answer["facts"], "pause_ns": 0}}


def check_forms(path, view, *options):
    answer = json.loads(asked(path, view, "json", *options))
    rows, columns = answer["rows"], [column["key"] for column in answer["columns"]]
    kept = KEPT[view] if answer["process"] is None or "core" not in answer["facts"] else KEPT[f"{view} PID"]
    missing = set(kept["columns"]) - set(columns) | set(kept["facts"]) - set(answer["facts"])
    t.check(not missing, f"{view}: what schema 1 had is gone: {missing}")
    t.check_equal(f"{view}: schema, view", (answer["schema"], answer["view"]), (1, view))
    t.check_equal(f"{view}: keys are told apart", len(set(columns)), len(columns))
    t.check_equal(f"{view}: shown", answer["shown"], sum(not row.get("level") for row in rows))
    again = json.loads(t.run_cairn("report", "--view", view, "--json", path).out)
    t.check_equal(f"{view}: --json", steady(again), steady(answer))
    t.check_equal(f"{view}: ndjson", [json.loads(line) for line in asked(path, view, "ndjson").splitlines()], rows)
    table = list(csv.DictReader(io.StringIO(asked(path, view, "csv"))))
    t.check_equal(f"{view}: rows of CSV", len(table), len(rows))
    for row, line in zip(rows, table):
        wrong = [key for key in columns if plain(row.get(key)) != line[key]]
        t.check(not wrong, f"{view}: {wrong} of {row} in {line}")
    t.check_equal(f"{view}: lines of places", len(asked(path, view, "unix").splitlines()), len(rows))
    whole_list = ("--top", "0") if view in ("heap", "pages") else ("--top", "0", "--threshold", "0")
    shown = asked(path, view, "md", *whole_list).splitlines()
    if view not in ("snapshots", "tree", "memory", "annotate", "heap", "owners", "waste", "remedies") and rows:  # of many high-water marks people get one line
        t.check_equal(f"{view}: rows of Markdown", sum(line.startswith("| ") for line in shown), answer["shown"] + 1)
    return answer


def check_screen(path, view, columns):
    """Whatever names are, a screen has no control characters, and its lines have an end."""
    shown = t.run_cairn("report", "--view", view, path, env={"COLUMNS": str(columns)})
    what, text = f"{view} of {path} in {columns} columns", shown.out.decode()
    t.check_equal(f"{what}: {shown.err}", shown.status in (0, 1) and bool(text or shown.err), True)
    t.check(all(letter.isprintable() or letter == "\n" for letter in text), f"{what}: {text!r}")
    long = [line for line in text.splitlines() if len(line) > max(columns, LINE_MOST)]
    t.check(not long, f"{what}: {long}")
    return text


def check_screens(*paths):
    for path in paths:
        for view in LISTS:
            for columns in (20, 80, 400):
                check_screen(path, view, columns)
            check_closed_pipe(path, view, ("",))


def check_stacks(path, document):
    """A second time, from the document of the whole."""
    known = {stack["id"]: stack for stack in document["stacks"]}
    answer = check_forms(path, "stacks")
    places = re.findall(r"^(/[^:\n]+/tests/programs/[^:\n]+):\d+: ", asked(path, "stacks", "unix"), re.M)
    t.check(places and all(map(os.path.exists, places)), f"stacks: places that editors jump to: {places[:3]}")
    t.check_equal("all stacks of the peak", {row["id"] for row in answer["rows"]},
                  {name for name, stack in known.items() if stack["peak_bytes"] > 0})
    for row in answer["rows"]:
        wrong = [key for key in (*KEYS, "frames") if row[key] != known[row["id"]][key]]
        t.check(not wrong, f"stacks: {wrong} of {row['id']}")
    total = sum(row["self"] for row in json.loads(asked(path, "functions", "json"))["rows"])
    t.check_equal("functions, themselves", total, document["peak"]["bytes"])
    sizes = json.loads(asked(path, "sizes", "json"))["rows"]
    calls = sum(row["allocations"] for row in sizes if not row["level"])
    told = sum(row["size_blocks"] for row in sizes if row["level"]) + sum(row["size_unknown_blocks"] for row in sizes if not row["level"])
    t.check_equal("sizes of all calls", told, calls)


def check_who_freed():
    """Rows of threads have who freed their blocks, as the whole report has it by slot."""
    _, path = t.record(t.program("findings", "freed_by"))
    whole = json.loads(t.run_cairn("report", "--json", path).out)
    names = {thread["slot"]: thread["name"] for thread in whole["threads"]}
    owners = {pair["owner_slot"] for pair in whole["freed_by"] if pair["owner_slot"] != pair["freer_slot"]}
    wanted = sorted((names[pair["owner_slot"]], names[pair["freer_slot"]], pair["bytes"], pair["frees"])
                    for pair in whole["freed_by"] if pair["owner_slot"] in owners)
    told = sorted((row["allocated_by"], row["freed_by_thread"], row["freed_there_bytes"], row["frees_there"])
                  for row in json.loads(asked(path, "threads", "json"))["rows"] if "freed_by_thread" in row)
    t.check_equal("threads: who freed whose blocks", told, wanted)
    t.check(any(one[:2] == ("producer", "consumer") for one in told), f"threads: producer and consumer in {told}")


def check_tree(path):
    """The same calls as rows and as lines; those of the first level are all that was allocated."""
    options = ("--by", "allocated", "--all-frames", "--top", "0", "--threshold", "0")
    rows = json.loads(asked(path, "tree", "json", *options))["rows"]
    lines = asked(path, "tree", "calls", *options).splitlines()
    places = [f" ({row['location']})" if "location" in row else "" for row in rows]
    t.check_equal("calls as rows and as lines", lines,
                  [f"{2 * row['level'] * ' '}->{row['calls']} calls, {row['value']}B: {row['name']}{place}" for row, place in zip(rows, places)])
    t.check_equal("all calls", sum(row["value"] for row in rows if not row["level"]), t.report(path)["totals"]["allocated_bytes"])


def check_refusals(path):
    t.check(b"cairn report --view owners PID" in t.run_cairn("report", "--view", "owners", "--json", path).err, "owners of a recording")
    for view, form, said in (("stacks", "calls", "--view tree"), ("waste", "calls", "--view tree"), ("tree", "xml", "unknown form")):
        t.check(said in asked(path, view, form, status=2), f"{view} as {form}")
    both = t.run_cairn("report", "--view", "stacks", "--json", "--format", "csv", path)
    t.check_equal("two forms", both.status, 2)
    for view in MEMORY:
        if view not in ("heap", "pages", "types"):  # which a recording has too
            refused = t.run_cairn("report", "--view", view, "--format", "csv", path)
            t.check(refused.status == 1 and f"cairn report --view {view} PID".encode() in refused.err, f"{view} of a recording: {refused.err}")


def check_rows(what, words, document, keys):
    """In each form, with the figures of the document that --json is."""
    table = list(csv.DictReader(io.StringIO(t.run_cairn(*words[:1], "--format", "csv", *words[1:]).out.decode())))
    lines = [json.loads(line) for line in t.run_cairn(*words[:1], "--format", "ndjson", *words[1:]).out.decode().splitlines()]
    kept = KEPT[what]["columns"]
    t.check(table and set(kept) <= set(table[0]), f"{what}: columns: {table[:1]}")
    t.check_equal(f"{what}: values", [[row[key] for key in keys] for row in table], [[plain(row[key]) for key in keys] for row in document])
    t.check_equal(f"{what}: ndjson", [[row[key] for key in keys] for row in lines], [[row[key] for key in keys] for row in document])
    told = t.run_cairn(*words[:1], "--format", "md", *words[1:]).out.decode()
    t.check_equal(f"{what}: Markdown", sum(line.startswith("| ") for line in told.splitlines()), len(document) + 1)


def check_whole_process():
    """Why a process is so big, and what nothing leads to in it, as rows."""
    with t.Process(t.program("owners"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for words in (("report", process.pid), ("report", "--no-stop", process.pid)):
            document = json.loads(t.run_cairn(words[0], "--json", *words[1:]).out)
            rows = [{"part": part, **row} for part in ("resident", "types", "waste", "owners", "remedies") for row in document[part] or ()]
            check_rows("overview", words, rows, ("part", "what") if "--no-stop" in words else ("part", "bytes", "what"))
        document = json.loads(t.run_cairn("leaks", "--unreachable", "--json", process.pid).out)
        check_rows("unreachable", ("leaks", "--unreachable", process.pid), document["lost"], ("name", "kind", "direct_bytes", "indirect_blocks"))
        process.stdin.close()
        process.kill()


def check_not_recorded():
    """Who asks a process that is not recorded, or a core dump, for a view of a recording is told what can be had of it."""
    told = "its memory is shown by the views types, heap, pages, owners, containers, waste and remedies: cairn report --view owners "
    with t.Process(["sleep", "1000"]) as process:
        subjects = [str(process.pid)]
        if shutil.which("gcore") and t.run(["gcore", "-o", "slept", str(process.pid)]).status == 0:
            subjects.append(f"slept.{process.pid}")
        for subject in subjects:
            refused = t.run_cairn("report", "--view", "tree", "--format", "csv", subject)
            t.check(refused.status == 1 and (told + subject).encode() in refused.err, f"a view of {subject}: {refused.err}")
        process.kill()
    for word in ("4194304", "no-such-program"):
        refused = t.run_cairn("report", "--view", "tree", word)
        t.check(refused.status == 1 and told.encode() not in refused.err, f"a view of {word}: {refused.err}")


def check_memory():
    """Of a process every view of its memory has rows, with whose it is; notes and claims are in the JSON."""
    with t.Process([t.CAIRN, "run", "-q", "-o", "waits.cairn", *t.program("waste")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   env=t.environment()) as process:
        process.stdout.readline()
        pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "waste"))
        for view in MEMORY:
            answer = check_forms(str(pid), view, "--top", "0")
            t.check_equal(f"{view}: whose", answer["process"], {"pid": pid, "program": "waste"})
            t.check(answer["rows"] or view == "containers", f"{view}: no rows")
            t.check(view == "heap" or answer["claims"], f"{view}: no claims")
        for columns in (20, 400):
            for view in MEMORY:
                shown = check_screen(str(pid), view, columns)
                t.check(view not in ("types", "waste") or "BLOCKS" in shown, f"{view} of {columns} columns: {shown}")
        check_closed_pipe(str(pid), "waste", ("json", "csv", "md"))
        process.stdin.close()


def check_part(path):
    """Rows of a part say of which."""
    part = json.loads(asked(path, "functions", "json", "--focus", "main", "--at", "peak"))
    t.check_equal("a filter and a moment are said", [note for note in part["notes"] if "--focus 'main'" in note or "peak" in note], part["notes"])
    t.check_equal("both", len(part["notes"]), 2)


def check_run():
    """The processes of a run, and a view of one of them or of all."""
    t.run([t.CAIRN, "run", "-q", "-o", "run.cairn", "--", "sh", "-c", "ls / > ls.txt; sort ls.txt > sorted.txt; true"])
    rows = json.loads(asked("run.cairn", "processes", "json"))["rows"]
    found = {process["process"]["pid"]: process for process in t.report("run.cairn")["processes"]}
    t.check_equal("processes", sorted(row["pid"] for row in rows), sorted(found))
    for row in rows:
        process = found[row["pid"]]
        t.check_equal(f"{row['program']}: calls, peak", (row["allocations"], row["peak_bytes"]),
                      (process["totals"]["allocations"], process["peak"]["bytes"]))
    t.check_equal("CSV of processes", asked("run.cairn", "processes", "csv").count("\n"), len(rows) + 1)
    everything = json.loads(asked("run.cairn", "functions", "json", "-p", "all"))
    t.check(everything["process"] is None and everything["rows"], f"all processes: {everything}")
    t.check("-p PID" in asked("run.cairn", "timeline", "csv", status=1), "the timeline of a run")


def check_long_names():
    """Whatever a name is, a line is not wider than it says, and forms for programs have all of it."""
    hostile = "\x1b[31m\u4e2d\u6587|<b>`;\"x"
    blocks = {"tb": 700, "tbk": 7, "tl": 0, "mb": 700, "mbk": 7, "gb": 700, "gbk": 7, "eb": 700, "ebk": 7}
    pathlib.Path("long.dhat").write_text(json.dumps({
        "dhatFileVersion": 2, "mode": "heap", "verb": "Allocated", "bklt": True, "bkacc": False, "tu": "instrs", "Mtu": "Minstr",
        "tuth": 0, "cmd": "x", "pid": 1, "te": 100, "tg": 50, "pps": [{**blocks, "fs": [1, 2, 3]}, {**blocks, "fs": [4, 3]}],
        "ftbl": ["[root]", f"0x1: {hostile} (h.c:1)", f"0x2: {LONG} (l.c:2)", "0x3: main (m.c:3)", "0x4: =1+2 (f.c:4)"]}), "utf-8")
    t.check_equal("import", t.run_cairn("import", "--format", "dhat", "-o", "long.cairn", "long.dhat").status, 0)
    for columns in (20, 40, 79, 400):
        for view in ("functions", "files", "stacks"):
            shown = t.run_cairn("report", "--view", view, "--by", "calls", "long.cairn", env={"COLUMNS": str(columns)}).out.decode()
            t.check("\x1b" not in shown and ("main" in shown or view == "files"), f"{view} of {columns} columns: {shown}")
            wide = [line for line in shown.splitlines() if len(line) > max(columns, 60)]
            t.check(not wide, f"{view} of {columns} columns: {wide}")
    shown = t.run_cairn("report", "--view", "temporary", "long.cairn")
    t.check(shown.status == 0 and b"temporary blocks are not known: the imported file" in shown.out, f"not known: {shown}")
    t.check("blocks are not known of this" in asked("long.cairn", "temporary", "csv", status=1), "not known, as a table")
    growth = json.loads(asked("long.cairn", "growth", "json"))
    t.check(growth["title"].startswith("growth is not known: it takes 5 snapshots"), f"why: {growth['title']}")
    rows = json.loads(asked("long.cairn", "stacks", "json", "--by", "calls"))["rows"]
    t.check(LONG in [frame["function"] for row in rows for frame in row["frames"]], "a long name in JSON")
    t.check(LONG in asked("long.cairn", "stacks", "csv", "--by", "calls"), "a long name in CSV")
    stacks = list(csv.DictReader(io.StringIO(asked("long.cairn", "stacks", "csv", "--by", "calls"))))
    t.check_equal("stacks in CSV", sorted(row["frames"].rsplit(";", 1)[1] for row in stacks), ["=1+2", "\\x1b[31m\u4e2d\u6587|<b>`:\"x"])
    t.check("'=1+2" in asked("long.cairn", "functions", "csv", "--by", "calls"), "a formula in CSV")
    told = asked("long.cairn", "functions", "md", "--by", "calls")
    t.check("\\|\\<b\\>\\`;\"x" in told and "\x1b" not in told, f"markup in Markdown: {told[-200:]}")


def check_closed_pipe(path, view, forms):
    """Forms by name; "": the screen."""
    for form in forms:
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run([t.CAIRN, "report", "--view", view, *(["--format", form] if form else []), path], stdout=writer, stderr=subprocess.PIPE,
                                check=False, timeout=t.TIMEOUT_S)
        os.close(writer)
        t.check(result.returncode != 0 and b"Sanitizer" not in result.stderr, f"a closed pipe: {form}: {result}")


_, recording = t.record(t.program("threads"))
whole = t.report(recording)
for each in LISTS:
    if each != "stacks":
        check_forms(recording, each)
check_stacks(recording, whole)
check_tree(recording)
check_refusals(recording)
check_long_names()
check_part(recording)
check_run()
check_memory()
check_whole_process()
check_not_recorded()
check_screens(recording, "long.cairn")
check_closed_pipe(recording, "stacks", ("json", "csv", "md"))
check_who_freed()
_, named = t.record(t.program("contexts"))
t.check(check_forms(named, "contexts")["count"] > 1, "no contexts")
t.finish()
