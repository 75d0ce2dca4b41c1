#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of several processes: one path whatever the run does, an index, a table, sums and a combined peak;
ways into one process; which children are recorded."""

import json
import os
import pathlib
import re

import cairn_test as t

SOURCES = 6
SMALL_FILES_MAX = 64
MIB = 1 << 20


def scratch(name):
    directory = pathlib.Path(t.fresh_path(name))
    directory.mkdir()
    return directory


def rows(path):
    """The rows of a run's index as dictionaries."""
    lines = (pathlib.Path(path) / "index").read_text().splitlines()
    names = lines[0].split(": ", 1)[1].split()
    return [dict(zip(names, line.split("\t"))) for line in lines[1:]]


def make_project(place, last="int last(void) { return 0; }\n"):
    for number in range(SOURCES):
        (place / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n")
    (place / "last.c").write_text(last)
    names = " ".join([f"part{number}" for number in range(SOURCES)] + ["last"])
    (place / "Makefile").write_text(
        f"all: $(patsubst %,%.o,{names})\n\t@sh -c 'ld -r -o all.o $^; ls | sed s/x/y/ >/dev/null'\n"
        "%.o: %.c\n\tgcc -c -o $@ $<\n")


def check_make():
    place = scratch("make")
    make_project(place)
    before = set(os.listdir(place))
    result = t.run_cairn("run", "-o", "build.cairn", "make", "-j4", cwd=place)
    t.check_equal("make: status", result.status, 0)
    made = set(os.listdir(place)) - before - {"all.o", "last.o"} - {f"part{n}.o" for n in range(SOURCES)}
    t.check_equal("make: what is left", made, {"build.cairn"})
    screen = result.err.decode()
    for pattern in (r"^cairn: make ended with status 0 after .* processes recorded$",
                    r"combined peak  .* MiB", r"largest RSS +about .* MiB \(cc1 \d+\)\s+PSS of (?:all|\d+ of \d+ processes) at least", r"(status 0|ended) +cc1 ", r"small processes",
                    r"exact", r"build\.cairn \(.*cairn report"):
        t.check(re.search(pattern, screen, re.M), f"make: no {pattern} in:\n{screen}")
    path = place / "build.cairn"
    listed = rows(path)
    t.check_equal("make: compilers", sum(row["name"] == "cc1" for row in listed), SOURCES + 1)
    t.check_equal("make: one make", [row["exit"] for row in listed if row["name"] == "make"],
                  ["status:0"])
    files = sorted(row["file"] for row in listed if row["file"] != "-")
    t.check_equal("make: files", files, sorted(f.name for f in path.glob("*.cairn")))
    t.check(os.stat(path).st_mode & 0o777 == 0o700, "make: the directory is open to others")
    check_views(path, listed)


def check_views(path, listed):
    whole = t.report(path)
    t.check_equal("run: schema", (whole["schema"], sorted(whole)),
                  ("cairn.run/1", ["combined_peak", "processes", "schema", "trust"]))
    processes = whole["processes"]
    t.check_equal("run: processes", len(processes), len(listed))
    t.check(all(one["schema"] == "cairn.report/1" for one in processes), "run: schemas of processes")
    peaks = [one["peak"]["bytes"] for one in processes]
    t.check_equal("run: order", peaks, sorted(peaks, reverse=True))
    low, high = whole["combined_peak"]["low_bytes"], whole["combined_peak"]["high_bytes"]
    t.check(max(peaks) <= low <= high <= sum(peaks), f"run: {peaks} and {whole['combined_peak']}")
    for row in listed:
        same = [one for one in processes if one["file"] == row["file"]]
        if row["file"] == "-" or not t.check(len(same) == 1, f"run: {row['file']} is not there once"):
            continue
        found = (same[0]["totals"]["allocations"], same[0]["totals"]["allocated_bytes"],
                 same[0]["at_exit"]["bytes"])
        t.check_equal(f"run: {row['file']}", found, (int(row["allocations"]), int(
            row["allocated_bytes"]), int(row["at_exit_bytes"])))
    one = next(row for row in listed if row["name"] == "cc1" and row["file"] != "-")
    for word in (one["pid"], one["file"], one["file"].removesuffix(".cairn")):
        found = t.report(path, "--process", word)
        t.check_equal(f"--process {word}", (found["schema"], found["process"]["pid"]),
                      ("cairn.report/1", int(one["pid"])))
    for word, wanted in (("cc1", one["file"]), ("no-such", "make")):
        result = t.run_cairn("report", "--process", word, str(path))
        t.check_equal(f"--process {word}: status", result.status, 1)
        t.check(wanted.encode() in result.err and not result.out, f"--process {word}: {result.err}")
    for arguments in (["report"], ["report", "--view", "tree"], ["leaks"], ["info"],
                      ["info", "--process", one["pid"]], ["report", "--by", "calls"]):
        shown = t.run_cairn(*arguments, str(path))
        t.check_equal(f"{arguments}: status", shown.status, 0)
        t.check(b"cc1" in shown.out, f"{arguments}: {shown.out[:500]}")
    newest = t.run_cairn("report", cwd=path.parent)
    t.check(newest.status == 0 and b"processes recorded" in newest.out, f"newest: {newest.out[:300]}")


def check_failing_make():
    place = scratch("failing")
    make_project(place, last="this is no C\n")
    plain = t.run(["make", "-j2"], cwd=place)
    result = t.run_cairn("run", "-q", "-o", "build.cairn", "make", "-j2", cwd=place)
    t.check_equal("failing make: status", (plain.status, result.status), (2, 2))
    t.check((place / "build.cairn/index").exists(), "failing make: no run")


def check_many_small():
    """Hundreds of small processes: a row for each, files for some."""
    script = "i=0; while [ $i -lt 150 ]; do ls / | sed s/a/b/ >/dev/null; i=$((i+1)); done"
    result, path = t.record(["sh", "-c", script])
    t.check_equal("many: status", result.status, 0)
    files = [file for file in pathlib.Path(path).iterdir() if file.suffix == ".cairn"]
    t.check(2 < len(files) <= SMALL_FILES_MAX + 2, f"many: {len(files)} files")
    t.check(len(rows(path)) >= 300, f"many: {len(rows(path))} rows")
    whole = t.report(path, "--top", "1")
    t.check_equal("many: processes", len(whole["processes"]), len(rows(path)))
    gone = next(row for row in rows(path) if row["file"] == "-")
    result = t.run_cairn("report", "--process", gone["pid"], path)
    t.check(result.status == 1 and b"small" in result.err, f"many: {result.err}")
    shown = t.run_cairn("report", path).out.decode()
    t.check(re.search(r"\d+ small processes", shown), f"many: {shown[:800]}")


HOLDER = "$x = 'a' x 20000000; select(undef, undef, undef, 1)"


def check_combined():
    """Two processes with 38 MiB each (perl keeps a copy of the text), at the same time and one after the other."""
    for script, least, most in ((f"perl -e \"{HOLDER}\" & perl -e \"{HOLDER}\"; wait", 76, 80),
                                (f"perl -e \"{HOLDER}\"; perl -e \"{HOLDER}\"", 38, 41)):
        _, path = t.record(["sh", "-c", script.replace("$", "\\$")])
        whole = t.report(path, "--top", "1")
        low, high = whole["combined_peak"]["low_bytes"], whole["combined_peak"]["high_bytes"]
        t.check(least * MIB * 0.95 <= low <= high <= most * MIB, f"{script}: {low} to {high}")
        t.check(high - low < low / 20, f"{script}: {low} to {high} is wide")
        chart = t.run_cairn("report", "--view", "timeline", path).out.decode()
        top = re.search(r"heap of all processes over time\n +([\d.]+) MiB", chart)
        t.check(top and low / MIB - 0.1 <= float(top[1]) <= high / MIB + 0.1, f"{script}: {chart[-1800:]}")


def check_children():
    def programs(*options):
        script = "perl -e 'my @x = map { $_ x 9 } 1..2000'; ls >/dev/null; sort /dev/null"
        path = t.fresh_path("children") + ".cairn"
        result = t.run_cairn("run", "-q", "-o", path, *options, "sh", "-c", script)
        t.check_equal(f"{options}: status", result.status, 0)
        if os.path.isfile(path):
            return ["sh"] if t.report(path)["process"]["command"].startswith("sh") else ["?"]
        return sorted(row["name"] for row in rows(path))
    t.check_equal("all", programs(), ["ls", "perl", "sh", "sort"])
    t.check_equal("all said", programs("--children", "all"), ["ls", "perl", "sh", "sort"])
    t.check_equal("none", programs("--children", "none"), ["sh"])
    t.check_equal("pattern", programs("--children", "p*l"), ["perl", "sh"])
    t.check_equal("set", programs("--children", "[ls]*"), ["ls", "sh", "sort"])
    result = t.run_cairn("run", "--children", "", "true")
    t.check_equal("empty pattern", result.status, 2)


def check_forks_refused():
    """Forks of a program whose children are not recorded go on as if cairn were not there."""
    path = t.fresh_path("refused") + ".cairn"
    result = t.run_cairn("run", "-q", "-o", path, "--children", "none",
                         *t.program("processes", "fork", 8), timeout=60)
    t.check_equal("refused forks", (result.status, result.out), (0, b"fork: 0 failures\n"))
    t.check(os.path.isfile(path), "refused forks: more than one recording")


def check_overhead():
    for text, wanted in (("64M", 64 << 20), ("1.5GiB", 3 << 29), ("4096K", 4 << 20), ("8388608", 8 << 20)):
        result = t.run_cairn("run", "-q", "-o", t.fresh_path("over") + ".cairn", "--max-overhead", text,
                             "sh", "-c", "echo $CAIRN_MAX_OVERHEAD")
        t.check_equal(f"--max-overhead {text}", (result.status, result.out.strip()),
                      (0, str(wanted).encode()))
    for text in ("", "much", "-1", "0", "64X"):
        result = t.run_cairn("run", "--max-overhead", text, "true")
        t.check_equal(f"--max-overhead {text!r}", (result.status, b"size" in result.err), (2, True))
    plain = t.run_cairn("run", "-q", "-o", t.fresh_path("over") + ".cairn", "sh", "-c",
                        "echo ${CAIRN_MAX_OVERHEAD-unset}")
    t.check_equal("without a limit", plain.out.strip(), b"unset")


def check_lost_recording():
    """A recording that cannot be kept is said under --quiet too."""
    place = scratch("lost")
    result = t.run_cairn("run", "-q", "-o", "x.cairn", "sh", "-c", "rm -r x.cairn", cwd=place)
    t.check_equal("lost: status", result.status, 0)
    t.check(b"x.cairn" in result.err, f"lost: {result.err!r}")


def check_full_disk():
    """A disk without room: the file that was asked for and the reason are said; the status stays the program's."""
    place = scratch("disk")
    if t.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(place)]).status:
        t.skip_part("full disk, since this user may not mount a tmpfs")
        return
    try:
        result = t.run_cairn("run", "-o", "x.cairn", *t.program("leak"), cwd=place)
        t.check_equal("full disk: status", result.status, 3)
        t.check(b"/x.cairn: No space left on device" in result.err and b"the recording is lost" in result.err
                and b"nothing was recorded" not in result.err, f"full disk: {result.err!r}")
        t.check_equal("full disk: left", os.listdir(place), [])
    finally:
        t.run(["umount", "-l", str(place)])


def check_nothing():
    """That nothing was recorded is said under --quiet too, once, with the reason."""
    place = scratch("nothing")
    words = f"ulimit -v 150000; exec '{t.CAIRN}' run -q -o x.cairn sh -c 'exit 7'"
    result = t.run(["sh", "-c", words], cwd=place)
    t.check_equal("nothing: status", result.status, 7)
    t.check_equal("nothing: lines", result.err.count(b"cairn: "), 1)
    t.check(b"nothing was recorded: " in result.err, f"nothing: {result.err!r}")
    t.check_equal("nothing: left", os.listdir(place), [])


def check_collection():
    """Recordings of programs that nothing started together."""
    place = scratch("collection")
    for number in (1, 2):
        t.run_cairn("run", "-q", "-o", str(place / f"{number}.cairn"), "--", *t.program("brief", 2, number))
    both = t.run_cairn("report", str(place))
    t.check(both.status == 0 and both.out.startswith(b"2 recordings of 2 programs that were started apart: "), f"{both.out} {both.err}")


def check_same_directory():
    """Runs that went into one directory: the report of it names those that it does not show, or shows the only one."""
    place = scratch("same")
    several = ["sh", "-c", f"{' '.join(map(str, t.program('brief', 2, 1)))}; {' '.join(map(str, t.program('brief', 3, 1)))}"]
    t.run_cairn("run", "-q", "-o", str(place), "--", *several)
    alone = t.run_cairn("report", str(place))
    t.check(alone.status == 0 and b"processes recorded" in alone.out, f"one run in a directory: {alone.out} {alone.err}")
    t.run_cairn("run", "-q", "-o", str(place), "--", *t.program("brief", 2, 1))
    both = t.run_cairn("report", str(place))
    inner = next(path for path in place.iterdir() if path.is_dir())
    t.check(both.status == 0 and f"cairn report {inner}".encode() in both.out and b"unreadable" not in both.out, f"{both.out}")
    next(path for path in place.iterdir() if path.is_file()).unlink()
    t.run_cairn("run", "-q", "-o", str(place), "--", *several)
    none = t.run_cairn("report", str(place))
    t.check(none.status == 1 and b"no recording in it, but 2 runs" in none.err, f"{none.err}")


def check_no_file():
    """A path that is there and no regular file is refused before the start, and nothing is made beside it."""
    place = scratch("no_file")
    os.mkfifo(place / "fifo")
    os.symlink("/dev/full", place / "device")
    for name, kind in (("fifo", b"a FIFO"), ("device", b"a device")):
        result = t.run_cairn("run", "-o", name, "sh", "-c", "echo ran", cwd=place)
        t.check_equal(f"{name}: refused", (result.status, result.out, kind in result.err), (125, b"", True))
    t.check_equal("no file: left", sorted(os.listdir(place)), ["device", "fifo"])


def check_orphan(name, child):
    """A child that outlives the main process, and cairn, puts its recording into the run."""
    place = scratch(name)
    result = t.run(["sh", "-c", f"'{t.CAIRN}' run -q -o '{place}/x.cairn' sh -c '{child} & exit 3'"])
    t.check_equal(f"{name}: status", result.status, 3)

    def recordings_that_ended():
        found = [file for file in place.rglob("*.cairn") if file.name.startswith("perl")]
        return [file for file in found if (t.report(file) or {"process": {}})["process"].get("duration_ns")]
    found = t.wait_until(recordings_that_ended, pause=0.1)
    t.check_equal(f"{name}: its recording", [file.parent.name for file in found], ["x.cairn"])
    t.check_equal(f"{name}: one path", os.listdir(place), ["x.cairn"])
    shown = t.run_cairn("report", str(place / "x.cairn"))
    t.check(b"perl" in shown.out, f"{name}: {shown.out[:500]}")


def check_hostile_names():
    """A program whose name and arguments hold terminal sequences and ends of lines."""
    place = scratch("hostile")
    name = "e\x1b[31mvil\n\tx'\x07"
    program = place / name
    program.write_bytes(pathlib.Path(t.program("leak")[0]).read_bytes())
    program.chmod(0o755)
    results = [t.run_cairn("run", "-o", "x.cairn", f"./{name}", "\x1b]0;title\x07", cwd=place),
               t.run_cairn("run", "-o", "y.cairn", "sh", "-c", f"./\"$0\"; ls >/dev/null; exit 0", name,
                           cwd=place)]
    for path in ("x.cairn", "y.cairn"):
        for command in (["report"], ["report", "--view", "tree"], ["leaks"], ["info"],
                        ["report", "--process", "no\x1b[2J"], ["report", "--json"]):
            results.append(t.run_cairn(*command, path, cwd=place))
    for result in results:
        text = result.out + result.err
        t.check(text and not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text), f"hostile: {text[:400]}")
    whole = json.loads(results[-1].out)
    commands = [one["process"]["command"] for one in whole["processes"]]
    t.check(any(name.replace("'", "'\\''") in command for command in commands), f"{commands}")
    t.check_equal("hostile: rows", len(rows(place / "y.cairn")), 3)


check_make()
check_failing_make()
check_many_small()
check_combined()
check_children()
check_forks_refused()
check_overhead()
check_lost_recording()
check_full_disk()
check_nothing()
check_collection()
check_same_directory()
check_no_file()
check_orphan("orphan", "perl -e \"@x = map { $_ x 9 } 1..5000; sleep 1\"".replace("$", "\\$"))
check_orphan("late", "sleep 1; perl -e \"@x = map { $_ x 9 } 1..5000\"".replace("$", "\\$"))
check_hostile_names()
t.finish()
