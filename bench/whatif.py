#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cairn replay predicts, beside what is: programs are really run on each allocator, and their allocator's
resident memory at its peak is read from /proc/PID/smaps every 2 ms; beside it what a replay says of a log that was
recorded with glibc alone.

    make && bench/whatif.py [FILE]

Writes a table to FILE, by default bench/results/whatif.md. Programs and allocators that are not here are left out."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
CAIRN = str(TOP / "build/cairn")
ALLOCATORS = {"glibc": [], "jemalloc": ["libjemalloc.so.2"], "mimalloc": ["libmimalloc.so.2", "libmimalloc.so.3"],
              "tcmalloc": ["libtcmalloc_minimal.so.4"]}
PLACES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<150000)
insert into t select i, hex(randomblob(40)), i*0.5 from n; create index tb on t(b);
select count(*) from t a join t b on a.a=b.a+1;"""
PROGRAMS = {
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "python3": ["/usr/bin/python3", "-c", "import json\nd=[{'a':i,'b':str(i)*3,'c':[i]*5} for i in range(80000)]\n"
                "e=json.loads(json.dumps(d))\nprint(len(e))"],
    "perl": ["perl", "-e", "my %h; for (1..300000) { $h{$_} = 'x' x ($_ % 90); delete $h{$_ - 9} if $_ % 3 == 0 }"],
    "jq": ["jq", "[.[] | {a: .a, c: (.c | add)}] | length", "data.json"],
    "xmllint": ["xmllint", "--noout", "data.xml"],
    "git": ["git", "-C", str(TOP), "log", "--stat", "-n", "300"],
}


def library(names):
    for place in PLACES:
        for name in names:
            if pathlib.Path(place, name).exists():
                return f"{place}/{name}"
    return None


def make_data():
    with open("data.json", "w", encoding="ascii") as file:
        file.write("[" + ",".join(f'{{"a":{i},"b":"{i}x","c":[{i},{i},2]}}' for i in range(60000)) + "]")
    with open("data.xml", "w", encoding="ascii") as file:
        file.write("<r>" + "".join(f"<e a='{i}'><b>text {i}</b><c/></e>" for i in range(60000)) + "</r>")


def anonymous(pid):
    """Bytes of heap and unnamed mappings that are resident; 0 if the process is gone."""
    total, counts = 0, False
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    for line in text.splitlines():
        fields = line.split()
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = fields[5] if len(fields) > 5 else ""
            counts = name in ("", "[heap]") or name.startswith("[anon")
        elif counts and fields[0] == "Anonymous:":
            total += int(fields[1]) * 1024
    return total


def real_peak(argv, preload):
    env = {**os.environ, "PYTHONMALLOC": "malloc"}
    if preload:
        env["LD_PRELOAD"] = preload
    peak = 0
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.002)
    return peak


def predicted_peak(log, preload):
    shown = subprocess.run([CAIRN, "replay", "--bytes", *(["-a", preload] if preload else []), log],
                           capture_output=True, text=True, check=True).stdout
    return int(re.search(r"peak.*live +(\d+) resident", shown).group(1))


def measure(name, argv, rows):
    recording = f"{name}.cairn"
    subprocess.run([CAIRN, "run", "-q", "--events", "--events-wait", "-o", recording, "--", *argv], check=True,
                   env={**os.environ, "PYTHONMALLOC": "malloc"}, stdout=subprocess.DEVNULL)
    pairs = {}
    for allocator, names in ALLOCATORS.items():
        preload = library(names) if names else ""
        if preload is not None:
            real = max(real_peak(argv, preload) for _ in range(2))
            pairs[allocator] = (real, predicted_peak(f"{name}.events", preload))
    best_real = min(pairs, key=lambda one: pairs[one][0])
    best_predicted = min(pairs, key=lambda one: pairs[one][1])
    for allocator, (real, predicted) in pairs.items():
        rows.append((name, allocator, real, predicted, 100 * (predicted - real) / real))
        print(f"{name:10} {allocator:10} {real / 2**20:8.1f} {predicted / 2**20:8.1f} {rows[-1][4]:+6.1f} %", flush=True)
    return best_real == best_predicted


def main():
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "bench/results/whatif.md").resolve()
    rows, right = [], []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        make_data()
        for name, argv in PROGRAMS.items():
            if shutil.which(argv[0]):
                right.append((name, measure(name, argv, rows)))
    within = sum(abs(row[4]) <= 10 for row in rows)
    with open(target, "w", encoding="utf-8") as out:
        out.write("# What a replay predicts, and what is\nResident memory of the allocator at its peak, MiB "
                  "(`bench/whatif.py`): really, and as `cairn replay` says of a log made with glibc.\n\n"
                  "| program | allocator | real | predicted | difference |\n|---|---|--:|--:|--:|\n")
        for name, allocator, real, predicted, difference in rows:
            out.write(f"| {name} | {allocator} | {real / 2**20:.1f} | {predicted / 2**20:.1f} | {difference:+.1f} % |\n")
        best = ", ".join(f"{name}: {'yes' if is_right else 'no'}" for name, is_right in right)
        out.write(f"\nWithin 10 %: {within} of {len(rows)}. The allocator with the lowest peak is the one predicted: "
                  f"{best}.\n")


main()
