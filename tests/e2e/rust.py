#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bindings/rust: cargo test, recorded and not; a static program with readable stacks, names mangled either way."""

import os
import pathlib

import cairn_test as t

CRATE = str(t.SOURCE / "bindings/rust")
TARGET = str(pathlib.Path.cwd() / "target")


def cargo(*arguments, env=None):
    return t.run(["cargo", *arguments, "--offline", "--quiet"], cwd=CRATE,
                 env={"CARGO_TARGET_DIR": TARGET, "CAIRN_LIB_DIR": str(t.BUILD), "HOME": os.environ.get("HOME", "/"),
                      **(env or {})})


t.need("cargo", "rustc")
for env in ({}, {"CAIRN_OUTPUT": str(pathlib.Path.cwd() / "%n.%p.cairn")}):
    result = cargo("test", env=env)
    t.check(result.status == 0, f"cargo test {env}: {result.out.decode()[-2000:]} {result.err.decode()[-2000:]}")
for mangling in ("legacy", "v0"):
    flags = f"-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl,--eh-frame-hdr -g " \
            f"-C symbol-mangling-version={mangling}"
    if mangling == "legacy":
        flags = flags.replace(f"-C symbol-mangling-version={mangling}", "")
    built = cargo("build", "--example", "words", env={"RUSTFLAGS": flags})
    if not t.check(built.status == 0, f"{mangling}: {built.err.decode()[-1500:]}"):
        continue
    result, path = t.record([f"{TARGET}/debug/examples/words"])
    t.check(result.status == 0 and result.out.endswith(b" words\n"), f"{mangling}: {result.out} {result.err}")
    found = t.report(path)
    if found:
        inside = t.stacks_through(found, "words::count_words", "words::main")
        t.check(sum(s["allocations"] for s in inside) > 5000, f"{mangling}: stacks {len(inside)}")
        t.check_equal(f"{mangling}: region", [row["name"] for row in found["regions"]], ["counting"])
        t.check_sums(mangling, found)
        t.check_nothing_lost(mangling, found)
t.finish()
