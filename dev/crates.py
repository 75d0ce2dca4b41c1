#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of bindings/rust by `cargo package --offline`, with the library inside of the first.
dev/crates.py DIRECTORY LIBCAIRN_EMBED.A: the same bytes each time. Without cargo it says so and makes none. cargo builds
what it has packed, which --no-verify leaves out."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("Cargo.toml", "README.md", "build.rs", "src", "examples", "tests")
WORKSPACE = '[workspace]\nmembers = ["cairn-heap", "cairn-heap-dhat"]\nresolver = "2"\n'


def stage(place, library):
    """As in the sources, but side by side: cargo packs nothing that lies in another package."""
    one, other = place / "cairn-heap", place / "cairn-heap-dhat"
    here = TOP / "bindings/rust"
    for name in SOURCES:
        copy = shutil.copytree if (here / name).is_dir() else shutil.copyfile
        one.mkdir(exist_ok=True)
        copy(here / name, one / name)
    shutil.copytree(here / "dhat", other, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    shutil.copyfile(here / "README.md", other / "README.md")
    for crate in (one, other):
        shutil.copyfile(TOP / "LICENSE", crate / "LICENSE")
    manifest = other / "Cargo.toml"
    manifest.write_text(manifest.read_text("utf-8").replace('path = ".."', 'path = "../cairn-heap"'), "utf-8")
    (one / "lib").mkdir()
    subprocess.run(["strip", "--strip-debug", "--enable-deterministic-archives", "-o", one / "lib/libcairn_embed.a", library], check=True)
    (place / "Cargo.toml").write_text(WORKSPACE, "ascii")


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: dev/crates.py DIRECTORY LIBCAIRN_EMBED.A [--no-verify]")
    if not shutil.which("cargo"):
        print("dev/crates.py: cargo is not installed: no crates", file=sys.stderr)
        return
    directory, library, *options = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        stage(place, library)
        done = subprocess.run(["cargo", "package", "--offline", "--quiet", "--workspace", *options], cwd=place, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"dev/crates.py: cargo package: {done.stdout[-2000:]}")
        for crate in sorted((place / "target/package").glob("*.crate")):
            print(shutil.copy(crate, directory / crate.name))


if __name__ == "__main__":
    main()
