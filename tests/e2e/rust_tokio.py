#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of tokio (tests/programs/rust/tokio.rs, built with the crates that Debian has as sources): stacks have the async
functions that await each other, with their lines, up to the task's own, and nothing of the executor; --all-frames has it."""

import json
import os
import pathlib
import re
import shutil

import cairn_test as t

SOURCE = t.SOURCE / "tests/programs/rust/tokio.rs"
CRATES = pathlib.Path("/usr/share/cargo/registry")
LOAD, SERVE = "async fn load", "async fn serve"
OF_MAIN = ["main::{async block}", "main", "main"]
FURTHER_OUT = {"1": OF_MAIN, "2": [], "3": OF_MAIN}  # by the first digit of the size: main runs those of its thread
LINES = {what: number for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
         for what in ("alone", "limited") if line.endswith(f"// {what}")}
MANIFEST = """[package]
name = "app"
version = "0.1.0"
edition = "2021"
[dependencies]
tokio = { version = "1", features = ["rt-multi-thread", "time", "macros"] }
[profile.release]
debug = true
"""
SOURCES = f"""[source.crates-io]
replace-with = "here"
[source.here]
directory = "{CRATES}"
"""


def plain(function):
    return re.sub(r"\bapp::", "", function or "")


def shown_stacks(recording):
    """By size: functions without internal frames, from the inside out."""
    rows = [json.loads(line) for line in t.export(recording, "ndjson").splitlines()]
    return {row["allocated_bytes"]: [plain(one) for one in reversed(row["frames"])] for row in rows
            if row.get("allocations") == 1 and "app::take" in row["frames"]}


def whole_stacks(recording):
    return {stack["allocated_bytes"]: [(plain(frame["function"]), frame["line"]) for frame in stack["frames"]]
            for stack in t.report(recording)["stacks"] if stack["allocations"] == 1 and "app::take" in t.functions(stack)}


def check_stack(what, within, names, whole):
    """`within`: how far the block's size is from that of the task."""
    is_by_macro = 10 <= within < 40
    awaited = names[names.index("take") + 1:] if "take" in names else []
    macros = [one for one in awaited if re.fullmatch(r"serve::\{\{closure\}\}::\{\{closure (join|select)\.rs:\d+\}\}", one)]
    t.check_equal(f"{what}: join! or select!", len(macros), int(is_by_macro))
    rest = [one for one in awaited if one not in macros]
    t.check_equal(f"{what}: who awaits whom", rest[:2], [LOAD, SERVE])
    of_main = [re.sub(r" main\.rs:\d+", "", one) for one in rest[2:]]
    t.check_equal(f"{what}: further out", of_main, FURTHER_OUT[what.split()[-1][0]])
    t.check(any("tokio::runtime::" in one for one, _ in whole), f"{what}: the executor is there, hidden: {whole}")
    if not is_by_macro:
        line = LINES["alone" if within < 2 else "limited"]
        t.check_equal(f"{what}: where it awaits", [number for one, number in whole if one == SERVE], [line])


def check(name, recording):
    shown, whole = shown_stacks(recording), whole_stacks(recording)
    for base in (10000, 20000, 30000):
        for within in (0, 1, 10, 21, 30, 40, 41):
            size = base + within
            check_stack(f"{name} {size}", within, shown.get(size, []), whole.get(size, []))
    t.check_equal(f"{name}: a closure that blocks", [re.sub(r" main\.rs:\d+", "", one) for one in shown.get(40000, [])][-2:],
                  ["take", "main::{{closure}}::{{closure}}"])


t.need("cargo")
if not list(CRATES.glob("tokio-1.*")):
    t.cannot_run_here("librust-tokio-dev is not installed")
pathlib.Path("app/src").mkdir(parents=True)
pathlib.Path("app/.cargo").mkdir()
shutil.copy(SOURCE, "app/src/main.rs")
pathlib.Path("app/Cargo.toml").write_text(MANIFEST)
pathlib.Path("app/.cargo/config.toml").write_text(SOURCES)
home = {"HOME": os.environ.get("HOME", "/"), "CARGO_HOME": os.path.abspath("cargo")}
for profile, options in (("debug", []), *([("release", ["--release"])] if os.environ.get("CAIRN_LONG") else [])):
    built = t.run(["cargo", "build", "--offline", "--quiet", *options], env=home, cwd="app", timeout=900)
    if t.check(built.status == 0, f"{profile}: {built.err.decode()[-1500:]}"):
        result, recording = t.record([os.path.abspath(f"app/target/{profile}/app")])
        t.check_equal(f"{profile}: recorded", (result.status, result.out, result.err), (0, b"done\n", b""))
        check(profile, recording)
t.finish()
