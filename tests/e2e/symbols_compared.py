#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of random addresses are those that llvm-symbolizer and addr2line tell: of Debian's libc and
Python with their debug information, and of programs built here in many ways, of which `make check` takes half."""

import pathlib
import re
import shutil
import subprocess
import sys

import cairn_test as t

t.need("llvm-symbolizer", "addr2line", "g++", "readelf", "nm")
SYMBOLIZE = t.BUILD / "tests/symbolize"
COMPARE = t.SOURCE / "dev/compare-symbols.py"
LEAST_SAME, COUNT = 99.9, 600
# addr2line of binutils 2.40 knows other files for code that libc includes twice, and misses what clang says
# of files and inlined functions in DWARF 5
LEAST_SAME_PLACES = {"libc": 90, "python3": 96, "clang++": 0}
HERE = pathlib.Path.cwd()
left_out = []

RUST = """
use std::collections::HashMap;
struct Store { words: HashMap<String, Vec<u32>> }
impl Store {
    #[inline(never)] fn add(&mut self, word: &str, at: u32) {
        self.words.entry(word.to_string()).or_insert_with(Vec::new).push(at);
    }
}
fn main() {
    let mut store = Store { words: HashMap::new() };
    for (at, word) in "a b c a".split(' ').enumerate() { store.add(word, at as u32); }
    let longest = store.words.values().map(|places| places.len()).max();
    println!("{:?}", longest);
}
"""


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True,
                           check=False).stdout
    found = re.search(r"Build ID: (..)([0-9a-f]+)", notes)
    return pathlib.Path(f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug") if found else None


def compare(what, path, other_file=None, least=LEAST_SAME):
    said = t.run([sys.executable, str(COMPARE), str(path), str(COUNT), str(other_file or path),
                  str(SYMBOLIZE), str(HERE)])
    if not t.check_equal(f"{what}: status", (said.status, said.err), (0, b"")):
        return
    shares = [float(share) for share in re.findall(r"^  ([\d.]+) % of", said.out.decode(), re.M)]
    wanted = (least, LEAST_SAME_PLACES.get(what.split()[0], 99))
    t.check(len(shares) == 2 and shares[0] >= wanted[0] and shares[1] >= wanted[1],
            f"{what}: {shares} should be {wanted}\n{said.out.decode()[:3000]}")


def build(what, *command):
    if not shutil.which(command[0]):
        left_out.append(f"{what}: {command[0]} is not installed")
        return
    path = HERE / what.replace(" ", "_")
    built = t.run([*command, "-o", str(path)])
    if t.check_equal(f"{what}: {command}", (built.status, built.err[:500]), (0, b"")):
        compare(what, path)


def compare_installed(what, path):
    debug = debug_file(path) if pathlib.Path(path).exists() else None
    if debug and debug.exists():
        compare(what, path, debug)
    else:
        left_out.append(f"{what}: no debug information of {path}")


source = str(t.SOURCE / "tests/programs/containers.cc")
WAYS = ("-O0 -g", "-O2 -gdwarf-4", "-O3 -gdwarf-5", "-O2 -g -gz", "-O2 -g -flto")
for compiler, ways in (("g++", WAYS), ("clang++", WAYS)) if t.IS_LONG else (("g++", WAYS[::3]), ("clang++", WAYS[2:3])):
    for options in ways:
        if compiler == "clang++" and "-flto" in options and not shutil.which("ld.lld"):
            options += " -fuse-ld=gold"
            if not pathlib.Path("/usr/lib/bfd-plugins/LLVMgold.so").exists():
                left_out.append("clang++ -flto: no linker for it")
                continue
        build(f"{compiler} {options}", compiler, *options.split(), "-pthread", source)
(HERE / "store.rs").write_text(RUST)
for options in ("-g -O", "-g", "-O") if t.IS_LONG else ("-g -O",):
    build(f"rustc {options}", "rustc", *options.split(), str(HERE / "store.rs"))
compare_installed("libc", "/usr/lib/x86_64-linux-gnu/libc.so.6")
compare_installed("python3", "/usr/bin/python3.11")
for reason in left_out:
    t.skip_part(reason)
t.finish()
