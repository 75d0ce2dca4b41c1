#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the one-file tool (make dist) on other systems: Debian's suites in chroots, for this processor and, under
qemu-user, for aarch64. Writes docs/reference/systems.md.

    dev/everywhere.py [--build-dir build] [--out FILE] [SYSTEM ...]

Needs root, mmdebstrap, and for aarch64 qemu-user-static and binfmt_misc. Roots are kept in build/everywhere for a month.
A system whose packages are out of reach is skipped with the reason. What each cell tries: CHECKS, a shell script
that runs inside, as root, with /proc and an empty /tmp. Takes some minutes a system."""

import argparse
import datetime
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["sqlite3", "python3", "perl", "git", "g++", "redis-server", "redis-tools", "procps", "binutils"]
NATIVE = ["gdb", "clang"]  # what an emulator cannot serve, or not in this time
AGE_S = 30 * 86400
TIMEOUT_S = 900
ROUNDS = 41

# Name: suite, Debian's architecture, more packages.
SYSTEMS = {
    "Debian 11": ("bullseye", "amd64", NATIVE),
    "Debian 12": ("bookworm", "amd64", NATIVE),
    "Debian 13": ("trixie", "amd64", NATIVE),
    "Debian sid": ("sid", "amd64", NATIVE),
    "Debian 12 arm64, emulated": ("bookworm", "arm64", []),
    "Debian 13 arm64, emulated": ("trixie", "arm64", []),
}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

SAMPLE = r"""
#include <string>
#include <vector>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
struct node { node *next; char text[40]; };
static inline __attribute__((always_inline)) node *make_node(node *next) {
    node *made = (node *)malloc(sizeof(node)); made->next = next; return made; // MARK
}
__attribute__((noinline)) node *make_list(int count) {
    node *first = nullptr;
    for (int i = 0; i < count; i++) first = make_node(first);
    return first;
}
int main(int argc, char **argv) {
    static node *kept;
    kept = make_list(1000);
    std::vector<std::string> words;
    for (int i = 0; i < 100; i++) words.push_back(std::string(100, 'x'));
    printf("%zu\n", words.size());
    fflush(stdout);
    for (int i = 0; argc > 1 && i < atoi(argv[1]) * 100; i++) { free(malloc(100)); kept = make_node(kept); usleep(10000); }
    return kept ? 3 : 0;
}
"""
PRELUDE = r"""
set -eu
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=xterm
cd /tmp
same() { # NAME COMMAND: status and output are those of a plain run
    name=$1; shift
    want=0; "$@" >plain.out 2>plain.err || want=$?
    got=0; cairn run -q -o "$name.cairn" "$@" >run.out 2>run.err || got=$?
    [ "$want" = "$got" ] || { echo "$name: status $got, plainly $want; $(head -c 300 run.err)"; exit 1; }
    cmp plain.out run.out; cmp plain.err run.err
    cairn report --json "$name.cairn" >"$name.json"
}
"""
NATIVE_ONLY = "[ $(uname -m) = x86_64 ] || { echo 'NOT HERE: %s'; exit 0; }\n"
FILE_OF_LINE = "grep -n MARK sample.cc | cut -d: -f1"
NAMES = r"""
line=$(grep -n MARK sample.cc | cut -d: -f1)
cairn report --view tree sample.cairn >tree.txt
grep -q make_node tree.txt && grep -q make_list tree.txt && grep -q "sample.cc:$line" tree.txt || { cat tree.txt; exit 1; }
"""
# Name of the column: what runs.
CHECKS = {
    "sqlite3": "same sqlite3 sqlite3 :memory: 'create table t(a,b); with recursive n(i) as (select 1 union all select i+1 "
               "from n where i<20000) insert into t select i, hex(i) from n; select count(*), sum(length(b)) from t;'",
    "python3": "same python3 python3 -c 'import json; d = {i: str(i) * 10 for i in range(20000)}; print(len(json.dumps(d)))'",
    "perl": "same perl perl -e 'my %h; $h{$_} = \"x\" x $_ for 1..2000; print scalar(keys %h), \"\\n\"'",
    "git": "git init -q repo 2>/dev/null; cd repo; git config user.email a@b; git config user.name a; cp /usr/include/stdio.h .; "
           "git add .; git commit -qm one; same git git log --stat; same git-gc git fsck",
    "g++ and its children": "same compile g++ -O2 -c sample.cc -o sample.o; cairn report compile.cairn | grep -q cc1plus",
    "redis under load": r"""
cairn run -q -o redis.cairn redis-server --port 7399 --save '' --daemonize no >redis.log 2>&1 & server=$!
n=0; until redis-cli -p 7399 ping >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 3000 ] || { cat redis.log; exit 1; }; sleep 0.1; done
redis-benchmark -p 7399 -n 5000 -t set,get,lpush -q >/dev/null
redis-cli -p 7399 shutdown nosave >/dev/null 2>&1 || true
wait $server
cairn report --json redis.cairn >redis.json""",
    "names, lines, inlined": "g++ -O2 -g -o sample sample.cc; same sample ./sample" + NAMES,
    "DWARF 5, zstd": "g++ -O2 -g -gdwarf-5 -o sample sample.cc; objcopy --compress-debug-sections=zstd sample 2>/dev/null || "
                     "{ echo 'NOT HERE: its binutils knows no zstd'; exit 0; }\nsame sample ./sample" + NAMES,
    ".debug_names, RELR": NATIVE_ONLY % "clang is not installed there" +
                          "clang++ -O2 -g -gdwarf-5 -gpubnames -Wl,-z,pack-relative-relocs -o sample sample.cc 2>/dev/null || "
                          "clang++ -O2 -g -gdwarf-5 -gpubnames -o sample sample.cc; same sample ./sample" + NAMES,
    "glibc-hwcaps": NATIVE_ONLY % "aarch64 has none" + r"""
ldd --version | awk 'NR == 1 { exit !($NF < 2.33) }' && { echo 'NOT HERE: glibc before 2.33'; exit 0; }
printf '#include <stdlib.h>\nvoid *%s(void) { return malloc(777); }\n' take_plain >plain.c
printf '#include <stdlib.h>\nvoid *%s(void) { return malloc(777); }\n' take_v3 | sed 's/take_v3/take_plain/; s/777/778/' >v3.c
mkdir -p libs/glibc-hwcaps/x86-64-v3
gcc -g -shared -fPIC -o libs/libtake.so plain.c; gcc -g -shared -fPIC -o libs/glibc-hwcaps/x86-64-v3/libtake.so v3.c
printf 'void *take_plain(void); int main(void) { return !take_plain(); }\n' >take.c
gcc -g -o take take.c -Llibs -ltake; export LD_LIBRARY_PATH=/tmp/libs
same take ./take; cairn report --view tree take.cairn | grep -q take_plain""",
    "leaks, diff, export, open": r"""
g++ -O2 -g -o sample sample.cc; same sample ./sample; cp sample.cairn before.cairn; same sample ./sample 1
cairn leaks sample.cairn | grep -q make_node
cairn diff before.cairn sample.cairn >diff.txt
cairn export -f pprof -o sample.pb.gz sample.cairn; cairn export -f folded -o sample.folded sample.cairn 2>/dev/null || \
cairn export -f flamegraph -o sample.svg sample.cairn
cairn open -o page.html sample.cairn; [ -s page.html ]""",
    "attach, detach": r"""
g++ -O2 -g -o sample sample.cc; ./sample 1000 >/dev/null & target=$!
sleep 0.3; said=0; cairn attach $target --exact -o attached.cairn --record-for 1s >attach.txt 2>&1 || said=$?
[ $said = 0 ] || { case $(uname -m) in aarch64) grep -q 'ignore-checks\|processor' attach.txt && { echo "NOT HERE: refused"; kill $target; exit 0; };; esac
    cat attach.txt; exit 1; }
kill -0 $target; cairn report --view tree attached.cairn | grep -q make_node; kill $target""",
    "core": r"""
g++ -O2 -g -o sample sample.cc
cairn run -q -o live.cairn ./sample 1000 >/dev/null & sleep 0.7
target=$(pgrep -x sample | tail -1)
if [ $(uname -m) = x86_64 ]; then
    cairn core $target count used >live.txt; [ -s live.txt ]
    gcore -o dump $target >/dev/null 2>&1; cairn core dump.$target count used >count.txt; [ -s count.txt ]
    cairn report dump.$target | grep -q make_node; kill $target
else # the emulator writes one itself
    ulimit -c unlimited; kill $target; ./sample 1000 >/dev/null & sleep 2; kill -SEGV $!; wait $! || true
    dump=$(ls qemu_sample_*.core | head -1); cairn core "$dump" count used >count.txt; [ -s count.txt ]
    echo "NOT HERE: works on core dumps; the emulator lets nobody look at what it runs"
fi""",
    "top": r"""
g++ -O2 -g -o sample sample.cc; cairn run -q -o top.cairn ./sample 1000 >/dev/null & sleep 0.7
target=$(pgrep -x sample | tail -1); cairn top --once $target >top.txt; grep -q make_list top.txt || { cat top.txt; exit 1; }
pkill -x sample || true""",
}


def sources():
    """The archive that this machine's packages come from."""
    for path in ("/etc/apt/sources.list", *sorted(map(str, pathlib.Path("/etc/apt/sources.list.d").glob("*")))):
        if os.path.isfile(path):
            for line in pathlib.Path(path).read_text(errors="replace").splitlines():
                words = line.split()
                if words[:1] in (["deb"], ["URIs:"]):
                    found = [word for word in words if "://" in word and word.rstrip("/").endswith("debian")]
                    if found:
                        return found[0]
    sys.exit("dev/everywhere.py: no archive of Debian in this machine's sources")


def register_emulator():
    """aarch64 programs are started by qemu, in chroots too (F: it is opened now)."""
    place = pathlib.Path("/proc/sys/fs/binfmt_misc")
    if not (place / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "none", place], check=True)
    if (place / "qemu-aarch64").exists():
        return
    magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    emulator = shutil.which("qemu-aarch64-static")
    (place / "register").write_text(f":qemu-aarch64:M::{magic}:{mask}:{emulator}:OCF")


def make_root(place, suite, architecture, packages):
    stamp = place.with_suffix(".made")
    if stamp.exists() and time.time() - stamp.stat().st_mtime < AGE_S:
        return
    subprocess.run(["rm", "-rf", "--one-file-system", place], check=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    command = ["mmdebstrap", "--variant=minbase", f"--architectures={architecture}", "--mode=root",
               f"--include={','.join(PACKAGES + packages)}", "--aptopt=Acquire::Check-Valid-Until \"false\"",
               "--dpkgopt=path-exclude=/usr/share/doc/*", suite, str(place), sources()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise OSError(f"mmdebstrap {suite} {architecture}: {' '.join(done.stdout.splitlines()[-3:])}")
    stamp.touch()


def run_inside(root, script):
    """(status, what it printed) of a shell script in the chroot, with processes and mounts of its own."""
    outer = f"mount -t proc proc {root}/proc; mount --bind /dev {root}/dev; mount -t tmpfs -o exec none {root}/tmp; " \
            f"cp {root}/sample.cc {root}/tmp/; exec chroot {root} /bin/sh -c \"$1\""
    command = ["unshare", "-mpf", "--kill-child", "/bin/sh", "-c", outer, "sh", PRELUDE + script]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", timeout=TIMEOUT_S, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    except subprocess.TimeoutExpired:
        return 1, f"not within {TIMEOUT_S} s"
    return done.returncode, done.stdout


def try_system(name, root, logs):
    cells = {}
    for check, script in CHECKS.items():
        status, printed = run_inside(root, script)
        (logs / f"{name} {check}.log".replace("/", "-").replace(" ", "_")).write_text(printed)
        refused = [line.split(": ", 1)[1] for line in printed.splitlines() if line.startswith("NOT HERE: ")]
        cells[check] = "works" if status == 0 and not refused else refused[0] if status == 0 else "FAILS"
        print(f"{cells[check]:8} {name}: {check}", flush=True)
        if status:
            print("    | " + "\n    | ".join(printed.splitlines()[-8:]), flush=True)
    return cells


def newest_tool(build, machine):
    tools = sorted((build / "dist").glob(f"cairn-*-linux-{machine}"), key=lambda path: path.stat().st_mtime)
    return tools[-1] if tools else sys.exit(f"dev/everywhere.py: no tool for {machine} in {build}/dist: make everywhere")


def versions(root):
    _, printed = run_inside(root, "ldd --version | head -1 | sed 's/.* //'; g++ -dumpfullversion; cairn --version | head -1")
    return printed.split("\n")


def start_ms(command, directory):
    begin = time.monotonic()
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for path in pathlib.Path(directory).glob("*.cairn"):
        path.unlink()
    return (time.monotonic() - begin) * 1000


def compare_start(build, tool):
    """Medians of `cairn run true` by both tools, in turns."""
    commands = {"plain": ["true"], "built": [build / "cairn", "run", "-q", "true"], "one file": [tool, "run", "-q", "true"]}
    times = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(ROUNDS):
            for name, command in commands.items():
                times[name].append(start_ms(command, directory))
    return {name: statistics.median(values) for name, values in times.items()}


def write_table(path, found, tools, starts):
    lines = ["# Systems", "",
             "Written by `dev/everywhere.py`: what the one-file tool does on other systems than the one it was built on.",
             f"Tried on {datetime.date.today().isoformat()}. The rows of arm64 ran under qemu-user, which has no ptrace; no real",
             "arm64 processor has run cairn yet.", ""]
    names = list(found)
    lines += ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines.append("| glibc | " + " | ".join(found[name]["glibc"] for name in names) + " |")
    for check in CHECKS:
        lines.append(f"| {check} | " + " | ".join(found[name]["cells"][check] for name in names) + " |")
    lines += ["", "| the file | bytes |", "|---|--:|"]
    lines += [f"| {tool.name} | {tool.stat().st_size:,} |" for tool in tools]
    if starts:
        lines += ["", f"`cairn run true`, medians of {ROUNDS} rounds in turns, on the machine that built it: "
                      f"{starts['one file']:.1f} ms with the one file,",
                  f"{starts['built']:.1f} ms with the tool of `make`, {starts['plain']:.1f} ms without cairn."]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="systems whose name contains one of these")
    options = parser.parse_args()
    build = (TOP / options.build_dir).resolve()
    if os.getuid() != 0 or not shutil.which("mmdebstrap"):
        print("skipped: needs root and mmdebstrap")
        return 77
    logs = build / "everywhere/logs"
    logs.mkdir(parents=True, exist_ok=True)
    found, tools, failed = {}, [], False
    for name, (suite, architecture, packages) in SYSTEMS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        machine = MACHINES[architecture]
        root = build / f"everywhere/{suite}-{architecture}"
        try:
            if machine != os.uname().machine:
                register_emulator()
            make_root(root, suite, architecture, packages)
        except OSError as problem:
            print(f"skipped: {name}: {problem}")
            continue
        place = build if machine == os.uname().machine else build / machine
        tool = newest_tool(place, machine)
        if tool not in tools:
            tools.append(tool)
        shutil.copy(tool, root / "usr/local/bin/cairn")
        (root / "sample.cc").write_text(SAMPLE)
        found[name] = {"glibc": versions(root)[0], "cells": try_system(name, root, logs)}
        failed |= "FAILS" in found[name]["cells"].values()
    if found and options.out:
        own = [tool for tool in tools if tool.name.endswith(os.uname().machine)]
        write_table(options.out, found, tools, compare_start(build, own[0]) if own else None)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
