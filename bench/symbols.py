#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long cairn takes to name addresses, beside llvm-symbolizer, and whether both say the same: random
addresses of Debian's libraries and of a program compiled here. Writes bench/results/symbols.md.

    make build/tests/symbolize && bench/symbols.py
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
SYMBOLIZE = TOP / "build/tests/symbolize"
COUNT = 20000
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# What it is, its file, its package of debug information.
ROWS = [("libc", f"{LIBRARIES}/libc.so.6", "libc6-dbg"),
        ("python3.11", "/usr/bin/python3.11", "python3.11-dbg"),
        ("librados", f"{LIBRARIES}/librados.so.2", "librados2-dbg"),
        ("libceph-common", f"{LIBRARIES}/ceph/libceph-common.so.2", "librados2-dbg"),
        ("libstdc++, debug build", f"{LIBRARIES}/debug/libstdc++.so.6", "libstdc++6-12-dbg"),
        ("cairn", str(TOP / "build/cairn"), "built here, -O2 -g"),
        ("node", "/usr/bin/node", "none: symbol tables only")]


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: (..)([0-9a-f]+)", notes)
    separate = pathlib.Path(f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug") if found else None
    return str(separate) if separate and separate.exists() else path


def debug_mb(path):
    """Size of the debug information, unpacked."""
    with tempfile.NamedTemporaryFile() as plain:
        subprocess.run(["objcopy", "--decompress-debug-sections", path, plain.name], check=True)
        sizes = subprocess.run(["readelf", "-SW", plain.name], capture_output=True, text=True).stdout
    packed = re.findall(r"\.debug_\S+\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", sizes)
    return sum(int(size, 16) for size in packed) / 1e6


def measure(path, count):
    """(same %, places same as addr2line's %, seconds and MiB of both)"""
    with tempfile.TemporaryDirectory() as scratch:
        said = subprocess.run(
            [sys.executable, TOP / "dev/compare-symbols.py", path, str(count), debug_file(path),
             SYMBOLIZE, scratch], capture_output=True, text=True, check=True).stdout
    same = [float(share) for share in re.findall(r"^  ([\d.]+) % of", said, re.MULTILINE)]
    costs = re.search(r"ours ([\d.]+) s, (\d+) MiB; llvm-symbolizer ([\d.]+) s, (\d+) MiB", said)
    return (*same, *map(float, costs.groups()))


def main():
    lines = [
        "# Naming addresses", "",
        f"{COUNT:,} random addresses of a library's code: functions, files, lines and inlined frames, from the",
        "files each time (no cache). Seconds of processor time and the most memory, of cairn and of llvm-symbolizer 14; the share of",
        "addresses with the same frames, names compared; and the share of 2,000 whose places are those of addr2line.",
        "addr2line names some files of libc.so.6 otherwise than both (of code that is included twice); libceph-common",
        "has assembly whose labels llvm-symbolizer calls `..`. Made by `bench/symbols.py`.", "",
        "| | debug information | MB of it | cairn s | MiB | llvm s | MiB | same frames | addr2line |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, path, package in ROWS:
        if not pathlib.Path(path).exists():
            print(f"{name}: {path} is not there", file=sys.stderr)
            continue
        same, places, seconds, mib, their_seconds, their_mib = measure(path, COUNT)
        lines.append(f"| {name} | {package} | {debug_mb(debug_file(path)):.0f} | {seconds:.2f} | {mib:.0f} | "
                     f"{their_seconds:.2f} | {their_mib:.0f} | {same:.3f} % | {places:.2f} % |")
        print(lines[-1], flush=True)
    (TOP / "bench/results/symbols.md").write_text("\n".join(lines) + "\n")


main()
