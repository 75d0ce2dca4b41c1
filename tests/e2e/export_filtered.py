#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every format under a filter, read by its consumer where that is a program: its totals are what the
stacks of `cairn report --json` add up to under the same filter. The same of a run, and of the pid of a
program that is being recorded."""

import json
import pathlib
import re
import subprocess

import cairn_test as t
import firefox_profile
import parquet
import perfetto

FORMATS = ("pprof", "collapsed", "speedscope", "json", "flamegraph", "sqlite", "dhat", "massif",
           "csv", "ndjson", "parquet", "perfetto", "firefox", "mptrace", "callgrind", "heaptrack")


def numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def sum_of(found, key):
    return sum(stack[key] for stack in found["stacks"])


def of_pprof(path):
    printed = t.run(["go", "tool", "pprof", "-raw", path], env={"HOME": str(pathlib.Path.cwd())})
    samples = printed.out.decode().split("\nSamples:\n")[1].split("Locations\n")[0].splitlines()
    names = [name.removesuffix("[dflt]") for name in samples[0].split()]
    rows = [line.split(":")[0].split() for line in samples[1:] if re.match(r" *\d[\d ]*:", line)]
    return sum(int(row[names.index("peak_space/bytes")]) for row in rows)


def of_collapsed(path):
    return sum(int(line.rsplit(" ", 1)[1]) for line in open(path))


def of_speedscope(path):
    return json.load(open(path))["profiles"][0]["endValue"]


def of_json(path):
    data = json.load(open(path))
    t.check_equal("json: peak and stacks", data["peak"]["bytes"], sum_of(data, "peak_bytes"))
    return data["peak"]["bytes"]


def of_flamegraph(path):
    """Exported by calls: bytes are rounded there."""
    return numbers(re.search(r">[^<]*: ([\d,]+) calls? of allocation<", open(path).read())[1])[0]


def of_sqlite(path):
    return int(t.run(["sqlite3", path, "select peak_bytes from summary"]).out)


def of_dhat(path):
    return sum(point["gb"] for point in json.load(open(path))["pps"])


def of_massif(path):
    text = t.run(["ms_print", path]).out.decode()
    return numbers(re.search(r"^100\.00% \(([\d,]+)B\)", text, re.M)[1])[0]


def of_csv(path):
    rows = [line.split(",") for line in open(path)]
    return sum(int(row[rows[0].index("peak_bytes")]) for row in rows[1:])


def of_ndjson(path):
    return sum(json.loads(line)["peak_bytes"] for line in open(path))


def of_parquet(path):
    return sum(row["live_bytes"] for row in parquet.read(path)[0] if row["moment"] == "peak")


def of_perfetto(path):
    return sum(perfetto.Trace(path).live_at("peak").values())


def of_firefox(path):
    return firefox_profile.Profile(path).at_peak()


def of_mptrace(path):
    return sum(int(line.rsplit("$", 2)[1]) for line in open(path))  # live at the end


def of_callgrind(path):
    text = t.run(["callgrind_annotate", "--show-percs=no", path]).out.decode()
    return numbers(re.search(r"^(.*) PROGRAM TOTALS$", text, re.M)[1])[0]


def of_heaptrack(path):
    text = t.run(["heaptrack_print", path]).out.decode()
    return re.search(r"peak heap memory consumption: (.*)", text)[1]


def heaptrack_units(amount):
    for unit in ("B", "K", "M", "G"):
        if amount < 1000:
            return f"{amount}B" if unit == "B" else f"{amount:.2f}{unit}"
        amount /= 1000
    return "too much"


def check_formats(what, subject, *filters):
    found = t.report(subject, *filters)
    stacks = found if "stacks" in found else {
        "stacks": [stack for one in found["processes"] for stack in one["stacks"]]}
    peak, exit_bytes = sum_of(stacks, "peak_bytes"), sum_of(stacks, "at_exit_bytes")
    calls = sum_of(stacks, "allocations")
    t.check(peak > 0, f"{what}: nothing is left")
    for form in FORMATS:
        wanted = {"mptrace": exit_bytes, "heaptrack": heaptrack_units(peak),
                  "flamegraph": calls}.get(form, peak)
        if form == "flamegraph" and "--top" in filters:
            continue  # its largest stacks are others
        path = t.fresh_path(form) + (".gz" if form == "heaptrack" else "")
        by = ["--by", "calls"] if form == "flamegraph" else []
        result = t.run_cairn("export", "-f", form, "-o", path, *by, *filters, str(subject))
        t.check_equal(f"{what}: {form}: status and words", (result.status, result.err), (0, b""))
        t.check_equal(f"{what}: {form}", globals()["of_" + form](path), wanted)
    return peak


t.need("go", "sqlite3", "ms_print", "callgrind_annotate", "heaptrack_print")
_, recording = t.record(t.program("exceptions"))
whole = check_formats("whole", recording)
part = check_formats("part", recording, "--ignore", "main")
t.check(0 < part < whole, f"--ignore main leaves {part} of {whole}")
check_formats("the largest", recording, "--top", "1")
_, threaded = t.record(t.program("threads", "pipe"))
check_formats("a thread", threaded, "--thread", "[^0-9]")
_, run = t.record(["sh", "-c", f"{t.program('exceptions')[0]}; {t.program('leak')[0]}; true"])
check_formats("a run", run, "--focus", "main")

for options, status, words in ((["--focus", "("], 2, "--focus"), (["--focus", "nowhere"], 1, "nothing"),
                               (["--thread", "nobody"], 1, "no such thread")):
    result = t.run_cairn("export", "-f", "csv", *options, recording)
    t.check_equal(f"{options}: status", result.status, status)
    t.check(words in result.err.decode() and not result.out, f"{options}: {result.err.decode()}")
short = t.export(recording, "collapsed", "--depth", "2").decode().splitlines()
t.check(short and all(line.count(";") <= 5 for line in short), f"--depth 2: {short[:3]}")
t.check(b"a part: --focus 'main'" in t.export(recording, "speedscope", "--focus", "main"), "trust")

with t.Process([t.CAIRN, "run", "-q", "-o", "live.cairn", "--", t.PYTHON, "-c",
                       "x = ['a' * 9000 for _ in range(500)]; print('ready', flush=True); import sys; sys.stdin.read()"],
                      env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    t.check_equal("live: start", child.stdout.readline(), b"ready\n")
    with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as children:
        pid = children.read().split()[0]
    t.wait_until(lambda: t.is_in_state(int(pid), "S"))  # in read(): what it takes for that is taken
    check_formats("live", pid)
    check_formats("live, a part", pid, "--top", "3")
    child.stdin.close()
    child.wait(timeout=t.PATIENCE_S)
t.finish()
