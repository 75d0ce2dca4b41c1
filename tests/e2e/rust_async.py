#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Async code of Rust (tests/programs/rust/tasks.rs): stacks say which async functions and blocks await each other, by name,
with the lines at which they do; names mangled either way, with optimization and without."""

import os
import re

import cairn_test as t

SOURCE = t.SOURCE / "tests/programs/rust/tasks.rs"
LOAD, SERVE, OUTER = "async fn load", "async fn Session::serve", "async fn outer"
# by size of the block: who awaits whom, from the inside out
WANTED = {10000: [LOAD, SERVE, OUTER], 10001: [LOAD, SERVE, OUTER], 10002: ["Session::serve::{async block", SERVE, OUTER],
          10010: [LOAD, "boxed::{async block", OUTER], 10011: [LOAD, "boxed::{async block", OUTER]}
AWAITS = {f"{caller} {callee}": number for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
          for caller, callee, text in ((SERVE, LOAD, "        load(size).await; // serve"), (OUTER, SERVE, "Session.serve(size).await"))
          if text in line}


def plain(name):
    """Without the crate, and without the brackets that names of version 0 have around types."""
    return re.sub(r"tasks::|[<>]", "", name or "")


t.need("rustc")
for mangling in ("legacy", "v0"):
    for level in ("0", "2"):
        name = f"{mangling}-{level}"
        options = ["-C", "symbol-mangling-version=v0"] if mangling == "v0" else []
        built = t.run(["rustc", "--edition", "2021", "-g", "-C", f"opt-level={level}", *options, "-o", name, str(SOURCE)],
                      env={"HOME": os.environ.get("HOME", "/")})
        if not t.check(built.status == 0, f"{name}: {built.err.decode()[-1500:]}"):
            continue
        result, recording = t.record([os.path.abspath(name)])
        t.check_equal(f"{name}: recorded", (result.status, result.out, result.err), (0, b"done\n", b""))
        stacks = {stack["allocated_bytes"]: stack["frames"] for stack in t.report(recording)["stacks"]
                  if stack["allocations"] == 1 and "take" in [plain(frame["function"]) for frame in stack["frames"]]}
        for size, wanted in WANTED.items():
            frames = [frame for frame in stacks.get(size, []) if "async " in (frame["function"] or "")]
            names = [re.sub(r" tasks\.rs.*|#.*", "", plain(frame["function"])) for frame in frames]
            t.check_equal(f"{name}: {size}", names, wanted)
            for inner, outer in zip(frames, frames[1:]):
                line = AWAITS.get(f"{plain(outer['function'])} {plain(inner['function'])}", outer["line"])
                t.check_equal(f"{name}: {size}: where {outer['function']} awaits", outer["line"], line)
t.finish()
