#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn::dhat: fifteen programs written from the documentation of the crate dhat print what they print with that crate
(tests/tools/dhat_told.txt), figure by figure; the file that they save adds up to the same, which cairn's library counted
and not the module. Without the tool, without the library and under `cairn run` a line says why there is no file."""

import json
import os
import pathlib
import re
import shutil

import cairn_test as t

CRATE = t.SOURCE / "bindings/rust/dhat"
TARGET = pathlib.Path("target").resolve()
SAVED = re.compile(r"^dhat: The data has been saved to (\S+), and is viewable with dhat/dh_view\.html", re.M)
FILES_TOLD = ("named", "phases", "promise")  # programs that print whether their files are there
SUMS = re.compile(r"^dhat: (?:Total|At t-gmax|At t-end): +([\d,]+) bytes in ([\d,]+) blocks$", re.M)


def build(target, *arguments, **env):
    copy = pathlib.Path(f"{target}.sources")  # no Cargo.lock in the sources
    if not copy.exists():
        shutil.copytree(CRATE.parent, copy, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    return t.run(["cargo", "build", "--examples", "--offline", "--quiet", *arguments], cwd=str(copy / "dhat"),
                 env={"CARGO_TARGET_DIR": str(target), "HOME": os.environ.get("HOME", "/"), "CAIRN_LIB_DIR": str(t.BUILD), **env})


def told():
    text = (t.SOURCE / "tests/tools/dhat_told.txt").read_text(encoding="utf-8")
    for part in text.split("\n== ")[1:]:
        name, _, rest = part.partition("\n")
        out, _, figures = rest.rstrip("\n").partition("--\n" if rest.startswith("--") else "\n--")
        yield name, out, [line for line in figures.splitlines() if line]


def run(name, directory, target=TARGET, before=(), path=f"{t.BUILD}:/usr/bin:/bin"):
    place = pathlib.Path(directory).resolve()
    place.mkdir(parents=True)
    result = t.run([*before, f"{target}/debug/examples/{name}"], cwd=str(place), env={"PATH": path})
    t.check_equal(f"{directory}: status", result.status, 0)
    return place, result.out.decode().rstrip("\n"), result.err.decode()


def numbers(line):
    return tuple(int(number.replace(",", "")) for number in line)


def check_files(place, said):
    """Each file's sums are those printed before it, where it has one profiler's alone."""
    figures = [numbers(found) for found in SUMS.findall(said)]
    for i, file in enumerate(SAVED.findall(said)):
        data = json.loads((place / file).read_text("utf-8"))
        t.check_equal(f"{place.name}/{file}: mode", (data["dhatFileVersion"], data["mode"]), (2, "heap"))
        if i == 0:
            sums = [tuple(sum(point[key] for point in data["pps"]) for key in keys)
                    for keys in (("tb", "tbk"), ("gb", "gbk"), ("eb", "ebk"))]
            if place.name == "kinds":  # an aligned block that is resized is two for a moment, of which dhat counts one
                t.check_equal("kinds: peak", sums.pop(1), (figures[1][0] + 1000, figures[1][1] + 1))
                del figures[1]
            if place.name == "census":  # of several threads the recording's peak may lie a little below the exact one
                t.check(figures[1][0] - 1024 <= sums.pop(1)[0] <= figures.pop(1)[0], "census: peak")
            t.check_equal(f"{place.name}/{file}: sums", sums, figures[:len(sums)])
    return SAVED.findall(said)


def check_programs():
    count = 0
    for name, out, figures in told():
        place, printed, said = run(name, f"all/{name}")
        count += 1
        t.check_equal(f"{name}: output", printed, out)
        t.check_equal(f"{name}: figures", [line for line in said.splitlines()
                                           if re.match("dhat: (Total|At t-)", line)], figures)
        saved = check_files(place, said)
        t.check_equal(f"{name}: files", sorted(path.name for path in place.glob("*.json")), sorted({os.path.normpath(file) for file in saved}))
        recordings = list(place.glob("*.cairn"))
        t.check_equal(f"{name}: recordings", len(recordings), int(bool(saved)))
        for path in recordings:
            found = t.report(str(path))
            if found:
                t.check_nothing_lost(name, found)
                inner = [frame["function"] for stack in found["stacks"] for frame in stack["frames"][:1] if frame.get("function")]
                t.check(not [one for one in inner if "cairn::" in one and not one.startswith(("<cairn::dhat::Alloc", "cairn::library"))],
                        f"{name}: {inner}")
    t.check_equal("programs", count, 15)


def check_reasons():
    place, _, said = run("words", "no tool", path="/nonexistent")
    if not any(os.path.exists(path) for path in ("/usr/bin/cairn", "/usr/local/bin/cairn")):
        t.check("dhat-heap.json was not written: the tool cairn is not in PATH" in said, said)
        t.check(not (place / "dhat-heap.json").exists(), "an empty file is left")
    t.check_equal("no tool: recordings", len(list(place.glob("*.cairn"))), 1)
    for limit in ("-v 2000000", "-d 1000000"):
        place, out, said = run("words", f"limit {limit[1]}", before=["/bin/sh", "-c", f'ulimit {limit}; exec "$@"', "sh"])
        t.check("was not written: this process could not be recorded" in said and out.startswith("7 words"), f"{limit}: {said}")
        t.check_equal(f"{limit}: files", list(place.iterdir()), [])
    place, _, said = run("words", "from outside", before=[t.CAIRN, "run", "-q", "-o", "outside.cairn"])
    t.check("was not written: cairn records this process from outside" in said, said)
    found = t.report(str(place / "outside.cairn"))
    t.check(found and t.stacks_through(found, "words::count"), "from outside: no such stack")


def check_without_library():
    target = TARGET.with_name("without")
    built = build(target, CAIRN_LIB_DIR="")
    if t.check(built.status == 0, f"without the library: {built.err.decode()[-1500:]}"):
        for name, out, figures in told():
            place, printed, said = run(name, f"without library/{name}", target)
            t.check_equal(f"{name} without the library: output", printed, out.replace("true", "false") if name in FILES_TOLD else out)
            t.check(all(line in said for line in figures), f"{name} without the library: {said}")
            t.check_equal(f"{name} without the library: files", list(place.iterdir()), [])


t.need("cargo", "rustc")
result = build(TARGET)
if t.check(result.status == 0, f"cargo build: {result.err.decode()[-2000:]}"):
    check_programs()
    check_reasons()
    if t.IS_LONG:
        check_without_library()
t.finish()
