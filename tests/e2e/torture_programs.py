#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn torture` finds the bug that is planted on the way of a failed allocation in each of twenty programs
(tests/programs/torture), as what it is, at the function whose allocation failed, and where the program died. Built with
-DRIGHT they are right, and come out clean: what is left is within libraries, and is not taken for the program's. Of each
kind of finding, sanitizer and language there is one in `make check-long`; `make check` has those whose kind, library or
language is not among the modes of tests/programs/torture.cc (torture.py), which has each kind itself."""

import concurrent.futures
import json
import pathlib
import shutil

import cairn_test as t

SOURCES = t.SOURCE / "tests/programs/torture"
# Program: how it is built beside -g, the kinds of its findings, the function of its own that allocates what fails, the
# one that dies of it, what a finding says.
PROGRAMS = {
    "settings_list": ("", "crash", "add_setting", "print_settings", ""),
    "word_count": ("", "crash", "grow", "most_frequent", ""),
    "text_builder": ("", "leak", "reserve", "", "nothing leads to, from reserve"),
    "file_loader": ("", "leak", "load", "", "nothing leads to, from strdup"),
    "job_queue": ("-pthread", "hang", "add_job", "", ""),
    "pipeline": ("-pthread", "hang", "produce", "", ""),
    "matrix": ("", "leak", "Matrix::Matrix", "", "nothing leads to, from Matrix::Matrix"),
    "listeners": ("", "abort", "Events::tell", "Events::tell", "std::bad_alloc"),
    "cache": ("-fsanitize=address", "sanitizer", "compute", "", "ERROR: AddressSanitizer: "),
    "ring": ("-fsanitize=undefined", "sanitizer", "make_ring", "", "shift exponent -1 is negative"),
    "workers": ("", "silent", "count_multiples", "count_multiples", ""),
    "retry": ("", "flood", "make_message", "", ""),
    "graph": ("", "crash", "main", "walk", ""),
    "average": ("", "crash", "read_samples", "average", ""),
    "pool": ("", "abort", "take_cell", "take_cell", "Assertion `block' failed"),
    "undo": ("", "crash", "change", "main", "double free"),
    "json_totals": ("-ljansson", "crash", "print_total", "print_total", ""),
    "xml_titles": ("-lexpat", "crash", "add", "main", "double free"),
    "compress": ("-lz", "silent", "main", "", ""),
    "notes": ("-lsqlite3", "silent", "print_notes", "", ""),
    "tree": ("-I/usr/include/libxml2 -lxml2", "crash", "main", "count_children", ""),
    "samples": ("", "crash", "samples::fill", "", ""),
}
REPRESENTATIVE = ("matrix", "ring", "compress", "samples")
TRIED = PROGRAMS if t.IS_LONG else REPRESENTATIVE
# Rust's own start gives up on purpose where it has no memory, and its handler of SIGSEGV says nothing of where.
OPTIONS = {"samples": ["--stacks", "samples::fill"]}


def build(name, is_right):
    """The program's path; None where its compiler, library or sanitizer is not here."""
    source = next(SOURCES.glob(f"{name}.*"))
    out = f"./{name}_{'right' if is_right else 'wrong'}"
    words = PROGRAMS[name][0].split()
    if source.suffix == ".rs":
        command = ["rustc", "-g", "-o", out, *(["--cfg", "right"] if is_right else []), str(source)]
    else:
        flags = [word for word in words if not word.startswith("-l")]
        libraries = [word for word in words if word.startswith("-l")]
        command = ["g++" if source.suffix == ".cc" else "gcc", "-g", "-O0", *flags, *(["-DRIGHT"] if is_right else []),
                   "-o", out, str(source), *libraries]
    if not shutil.which(command[0]):
        return None
    result = t.run(command, timeout=300)
    t.check(result.status == 0 or words or source.suffix == ".rs", f"{name}: {result.err}")
    return out if result.status == 0 else None


def torture(path, *options):
    result = t.run_cairn("torture", "-q", "--json", *options, "--", path, timeout=300)
    try:
        return result.status, json.loads(result.out), result.err.decode(errors="replace")
    except ValueError:
        return result.status, None, result.err.decode(errors="replace")


def try_program(name):
    kind = PROGRAMS[name][1]
    wrong, right = build(name, False), build(name, True)
    if not wrong or not right:
        return name, None, None
    options = ["--max-output", "1M", *(["--time-limit", "5s"] if kind == "hang" else [])]
    options += [] if kind == "leak" else ["--no-leaks"]
    options += OPTIONS.get(name, [])
    return name, torture(wrong, *options), torture(right, "--allow-in", r"\.so", *OPTIONS.get(name, []))


def functions_of(finding):
    return [frame["function"] for frame in finding["frames"]]


def check_found(name, status, found, err):
    _, kind, function, died_at, words = PROGRAMS[name]
    if not t.check(found is not None, f"{name}: {err}"):
        return
    own = [finding for finding in found["findings"] if not finding["within"]]
    t.check_equal(f"{name}: kinds", {finding["kind"] for finding in own}, {kind})
    t.check(status == 1 and own, f"{name}: status {status}, {found['results']}")
    for finding in own:
        t.check(function in functions_of(finding), f"{name}: {function} is not in {functions_of(finding)}")
        t.check(words in finding["detail"], f"{name}: says {finding['detail']!r}")
        t.check(died_at in (finding["died_at"] or ""), f"{name}: died at {finding['died_at']!r}, not in {died_at}")


def check_clean(name, status, found, err):
    if t.check(found is not None, f"{name}, right: {err}"):
        told = [(finding["kind"], finding["detail"], functions_of(finding)[:8]) for finding in found["findings"]]
        t.check(status == 0 and found["results"]["clean"] and not told, f"{name}, right: {status} {told}")


with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
    outcomes = list(pool.map(try_program, TRIED))
missing = []
for program, bad, good in outcomes:
    if not bad:
        missing.append(program)
        continue
    check_found(program, *bad)
    check_clean(program, *good)
if missing:
    t.skip_part(f"not built here, for want of a compiler, library or sanitizer: {', '.join(missing)}")
t.check(len(outcomes) - len(missing) >= len(TRIED) * 2 // 3, f"only {len(outcomes) - len(missing)} programs were tried")
t.check_equal("each source is in the table", sorted(path.stem for path in pathlib.Path(SOURCES).iterdir() if path.suffix != ".sql"),
              sorted(PROGRAMS))
t.finish()
