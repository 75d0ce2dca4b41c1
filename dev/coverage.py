#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines and branches that tests reach, by room: for unit tests alone, and for all tests.

    dev/coverage.py measure BUILD [NAME-PART ...]   runs the tests of the build that `make coverage` made, writes
                                                    BUILD/coverage/coverage.tsv, and compares it with tests/coverage.tsv
    dev/coverage.py keep BUILD                      makes that the committed tests/coverage.tsv
    dev/coverage.py compare COMMIT                  compares tests/coverage.tsv with that of the commit, for releases

NAME-PARTs select the tests beside the unit tests; promises/ e2e/ without. A row is room, percent of lines and of branches
reached by unit tests, the same by all tests, lines, branches, and why the room fell. Times and loads of a machine move figures
a little, so a room falls when one of its figures is lower by more than FELL points. One that fell has a reason in its
last column, or the comparison ends with status 1. Unit tests of the runtime do not have its rooms of wrapped functions.
Inline functions of headers count where our sources use them, not where a test does.

The tool and the libraries count in files that all processes share (tests/coverage/counters.c), unit tests in clang's
way. Programs, and the parts that gcc has to make, are those of BUILD."""

import json
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
COMMITTED = TOP / "tests/coverage.tsv"
HEAD = ["room", "unit lines %", "unit branches %", "all lines %", "all branches %", "lines", "branches", "why it fell"]
FIGURES = slice(1, 5)
FELL = 0.5  # points
COUNTS_BYTES = 16 << 20  # of each file of counters; sparse
# Side: its unit tests, the program that has all its code, and what counts for it beside unit tests.
SIDES = {
    "tool": (["unit/tool", "unit/format"], "counted/cairn", ["cairn"]),
    "runtime": (["unit/runtime"], "libcairn-cxx.so", ["libcairn", "libcairn-cxx"]),
    "torture": ([], "libcairn-torture.so", ["libcairn-torture"]),
}
# Made anew for coverage; all else in the build directory is the usual one.
OWN = {"coverage", "counted", "obj", "fuzz", "san", "tests", "libcairn.so", "libcairn-cxx.so", "libcairn-torture.so", "asan", "clang",
       "chroots", "dist", "test-logs"}

BESIDE_TOOL = ["libcairn-musl.so", "libcairn-bare.so", "cairn-replay"]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def link_the_rest(build, place):
    """What tests need and coverage does not make: links in its build directory."""
    def link(paths, target):
        target.mkdir(exist_ok=True)
        for path in paths:
            if not (target / path.name).exists():
                (target / path.name).symlink_to(os.path.relpath(path, target))
    link([path for path in build.iterdir() if path.name not in OWN], place)
    link([path for path in (build / "tests").iterdir() if path.name != "unit"], place / "tests")
    link([build / name for name in BESIDE_TOOL], place / "counted")


def run_tests(place, names, profiles, *options):
    environment = {**os.environ, "LLVM_PROFILE_FILE": str(profiles / "%m.profraw")}
    words = [sys.executable, TOP / "dev/run-tests.py", "--no-build", "--build-dir", place, *options, *names]
    return subprocess.run([str(word) for word in words], cwd=TOP, env=environment, check=False).returncode


def empty_counts(place):
    for path in (place / "counted").glob("*.o"):
        counts = path.with_suffix(".counts")
        counts.unlink(missing_ok=True)
        counts.touch()
        counts.chmod(0o666)  # of all users that tests play
        os.truncate(counts, COUNTS_BYTES)


def write_sums(place, name, out):
    """The shared counters of a program as a profile."""
    library = place / f"{name}.so"
    opened = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library]
    run(*([place / "counted/cairn"] if name == "cairn" else opened), env={**os.environ, "COVERAGE_OUT": str(out)})


def merged(out, profiles):
    run("llvm-profdata", "merge", "-o", out, *profiles)
    return out


def files_of(program, profile):
    """Of each source file: {kind: (count, covered)}."""
    said = run("llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", program, stdout=subprocess.PIPE).stdout
    return {file["filename"]: {kind: (file["summary"][kind]["count"], file["summary"][kind]["covered"]) for kind in ("lines", "branches")}
            for file in json.loads(said)["data"][0]["files"]}


def room_of(filename):
    path = pathlib.Path(filename)
    path = path.relative_to(TOP) if path.is_absolute() else path
    return "/".join(path.parts[:2][:len(path.parts) - 1])


def add_up(files, side, rooms, column):
    folder = "runtime" if side == "torture" else side
    for filename, kinds in files.items():
        room = room_of(filename)
        if room.split("/")[0] != folder:
            continue
        sums = rooms.setdefault(room, {})
        for kind, (count, covered) in kinds.items():
            whole = sums.setdefault((column, kind), [0, 0])
            whole[0] += count
            whole[1] += covered


def measure_side(side, place, rooms):
    _, program, counted = SIDES[side]
    raw = place / "raw"
    units = sorted((raw / side).glob("*.profraw"))
    shared = [raw / f"{name}.profraw" for name in counted]
    for name, path in zip(counted, shared):
        write_sums(place, name, path)
    if units:
        add_up(files_of(place / program, merged(raw / f"{side}-unit.profdata", units)), side, rooms, "unit")
    add_up(files_of(place / program, merged(raw / f"{side}-all.profdata", units + shared)), side, rooms, "all")


def percent(sums, column, kind):
    count, covered = sums.get((column, kind), (0, 0))
    return f"{100 * covered / count:.1f}" if count else "0.0"


def rows_of(rooms):
    return [[room, *(percent(sums, column, kind) for column in ("unit", "all") for kind in ("lines", "branches")),
             str(sums["all", "lines"][0]), str(sums["all", "branches"][0]), ""] for room, sums in sorted(rooms.items())]


def read_rows(text):
    return {row[0]: row for row in (line.split("\t") for line in text.splitlines()[1:])}


def write_rows(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in [HEAD, *rows]), encoding="utf-8")


def falls(old, new):
    """Lines of what fell without a reason; a room that is no more does not fall."""
    for room, row in new.items():
        if room not in old or row[7:] and row[7]:
            continue
        for name, before, now in zip(HEAD[FIGURES], old[room][FIGURES], row[FIGURES]):
            if float(now) < float(before) - FELL:
                yield f"{room}: {name} fell from {before} to {now}: write down why in its last column of tests/coverage.tsv"


def compare(old_text, new_text):
    problems = list(falls(read_rows(old_text), read_rows(new_text)))
    print("\n".join(problems) if problems else "no room fell without a reason")
    return 1 if problems else 0


def measure(build, names):
    place = build / "coverage"
    link_the_rest(build, place)
    empty_counts(place)
    run("rm", "-rf", place / "raw")
    for side, (units, _, _) in SIDES.items():
        (place / "raw" / side).mkdir(parents=True)
        if units and run_tests(place, units, place / "raw" / side):
            print(f"coverage: unit tests of {side} failed: what they did not reach is not counted")
    if run_tests(place, names or ["promises/", "e2e/"], place / "raw", "--tool", place / "counted/cairn"):
        print("coverage: tests failed: what they did not reach is not counted")
    rooms = {}
    for side in SIDES:
        measure_side(side, place, rooms)
    write_rows(place / "coverage.tsv", rows_of(rooms))
    print((place / "coverage.tsv").read_text(encoding="utf-8"), end="")
    if not COMMITTED.exists():
        return 0
    return compare(COMMITTED.read_text(encoding="utf-8"), (place / "coverage.tsv").read_text(encoding="utf-8"))


def keep(build):
    """Reasons that were given stay with rooms that are still as low."""
    new, old = ((read_rows(path.read_text(encoding="utf-8")) if path.exists() else {})
                for path in (build / "coverage/coverage.tsv", COMMITTED))
    for room, row in new.items():
        if room in old and old[room][7:] and float(old[room][3]) >= float(row[3]):
            row[7] = old[room][7]
    write_rows(COMMITTED, new.values())
    return 0


def main(words):
    if words[:1] == ["compare"] and len(words) == 2:
        old = subprocess.run(["git", "show", f"{words[1]}:tests/coverage.tsv"], cwd=TOP, stdout=subprocess.PIPE, check=False, text=True)
        if old.returncode:
            print(f"{words[1]} has no tests/coverage.tsv to compare with")
            return 1
        return compare(old.stdout, COMMITTED.read_text(encoding="utf-8"))
    if words[:1] == ["measure"] and len(words) > 1:
        return measure((TOP / words[1]).resolve(), words[2:])
    if words[:1] == ["keep"] and len(words) == 2:
        return keep((TOP / words[1]).resolve())
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
