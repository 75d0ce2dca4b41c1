#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of registries from files of `make dist`: a wheel for each (pip), one npm package for all, and the
extension for VS Code, which has no tool in it.
dev/packages.py DIRECTORY FILE...; FILE is cairn-VERSION-linux-ARCH. The same bytes each time."""

import gzip
import io
import json
import pathlib
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import released  # noqa: E402
from released import TOP, arch_of  # noqa: E402

sys.path.insert(0, str(TOP / "bindings/python"))
import build_wheel  # noqa: E402
import vsix  # noqa: E402

CPUS = {"x86_64": "x64", "aarch64": "arm64"}


def npm_files(files):
    """(path in the package, bytes, mode)."""
    about = {"name": "cairn-heap", "version": build_wheel.version(), "license": "Apache-2.0",
             "description": released.ABOUT,
             "os": ["linux"], "cpu": sorted(CPUS[arch_of(file)] for file in files),
             "bin": {"cairn-heap": "bin/cairn.sh", "cairn": "bin/cairn.sh"}}
    here = TOP / "bindings/npm"
    yield "package.json", (json.dumps(about, indent=2) + "\n").encode(), 0o644
    yield "README.md", (here / "README.md").read_bytes(), 0o644
    yield "LICENSE", (TOP / "LICENSE").read_bytes(), 0o644
    yield "bin/cairn.sh", (here / "cairn.sh").read_bytes(), 0o755
    for file in sorted(files):
        yield f"bin/cairn-linux-{arch_of(file)}", file.read_bytes(), 0o755


def write_npm(directory, files):
    name = f"cairn-heap-{build_wheel.version()}.tgz"
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data, mode in npm_files(files):
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    (directory / name).write_bytes(gzip.compress(tar.getvalue(), mtime=0))
    return name


def main():
    directory, files = released.arguments("dev/packages.py", CPUS)
    for file in files:
        print(directory / build_wheel.build_with_tool(str(directory), file.read_bytes(), arch_of(file)))
    print(directory / write_npm(directory, files))
    print(vsix.write(directory))


if __name__ == "__main__":
    main()
