#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make install`, for each directory of libraries that distributions have: what lies where, the installed tool
records and can be moved, a program is built by pkg-config against it, and its call of the report finds the tool. On a
machine without Python or a compiler `make check` says so in one line."""

import pathlib
import platform
import re
import shutil
import subprocess

import cairn_test as t

TRIPLET = f"{platform.machine()}-linux-gnu"
LEAK = t.program("leak")
DATA = ["include/cairn/cairn.h", "include/cairn/expect.h", "share/bash-completion/completions/cairn",
        "share/zsh/site-functions/_cairn", "share/fish/vendor_completions.d/cairn.fish", "share/doc/cairn/README.md",
        "lib/systemd/system/cairn-serve.socket", "lib/systemd/system/cairn-push.service",
        "lib/systemd/system/cairn-oom@.service", "share/doc/cairn/LICENSE", "share/doc/cairn/THIRD_PARTY.md", "share/doc/cairn/docs/tutorial.md"]
BARE = ["cairn/libcairn-bare.so"] if platform.machine() == "x86_64" else []  # for static programs
LIBRARIES = ["cairn/libcairn.so", "cairn/libcairn-cxx.so", "cairn/libcairn-musl.so", "cairn/libcairn-torture.so", *BARE, "cairn/cairn-replay", "cairn/libcairn_stub.a", "cairn/libcairn_static.a",
             "cairn/libcairn_embed.a", "pkgconfig/cairn.pc", "pkgconfig/cairn-stub.pc", "pkgconfig/cairn-static.pc"]
PROGRAM = """
#include <cairn/cairn.h>
#include <stdlib.h>
void *volatile kept;
int main(void) {
    kept = malloc(54321);
    return cairn_is_loaded() ? cairn_report(1, "collapsed", NULL, NULL) : 9;
}
"""


def make(root, *words):
    return subprocess.run(["make", "-s", "BUILT=1", f"BUILD={t.BUILD}", f"DESTDIR={root}", *words, "install"], cwd=t.SOURCE,
                          env=t.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def check_recording(what, cairn):
    path = t.fresh_path("installed") + ".cairn"
    result = t.run([str(cairn), "run", "-q", "-o", path, *LEAK])
    t.check_equal(f"{what}: status", (result.status, result.err), (3, b""))
    found = t.report(path)
    if found:
        t.check_equal(f"{what}: allocations", found["totals"]["allocations"], 6513)
        t.check_nothing_lost(what, found)


def flags(root, library_directory, package):
    """As pkg-config answers where the tree below `root` is the machine's."""
    found = t.run(["pkg-config", "--cflags", "--libs", package],
                  env={"PKG_CONFIG_PATH": f"{root}{library_directory}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(root)})
    t.check_equal(f"pkg-config {package}", (found.status, found.err), (0, b""))
    version = t.run(["pkg-config", "--modversion", package],
                    env={"PKG_CONFIG_PATH": f"{root}{library_directory}/pkgconfig"}).out
    t.check_equal(f"{package}: version", version, t.run_cairn("--version").out.split()[1] + b"\n")
    return found.out.decode().split()


def check_program(what, root, library_directory, cairn):
    pathlib.Path("program.c").write_text(PROGRAM)
    built = t.run(["cc", "program.c", "-o", "program", *flags(root, library_directory, "cairn")])
    t.check_equal(f"{what}: cc", (built.status, built.err), (0, b""))
    result = t.run([str(cairn), "run", "-q", "-o", t.fresh_path("api") + ".cairn", "./program"])
    t.check_equal(f"{what}: a report that the program asks for", (result.status, result.err), (0, b""))
    t.check(re.search(rb"^main .*\b54321$|main.*54321", result.out, re.M), f"{what}: it reports {result.out}")
    for package in ("cairn-stub", "cairn-static"):
        built = t.run(["cc", "-static", "program.c", "-o", package, *flags(root, library_directory, package)])
        t.check_equal(f"{what}: cc with {package}", (built.status, built.err), (0, b""))


def check_directory(prefix, library_directory, *words):
    root = pathlib.Path("root" + library_directory.replace("/", "-")).resolve()
    what = f"LIBDIR={library_directory}"
    done = make(root, f"PREFIX={prefix}", *words)
    if not t.check_equal(f"{what}: make install", (done.returncode, b"rror" in done.stdout), (0, False)):
        print(done.stdout.decode())
        return
    for name in [f"{prefix}/{path}" for path in DATA] + [f"{library_directory}/{path}" for path in LIBRARIES]:
        t.check((root / name[1:]).is_file(), f"{what}: there is no {name}")
    if shutil.which("scdoc"):
        page = (root / prefix[1:] / "share/man/man1/cairn.1").read_text("utf-8")
        t.check(re.search(r'^\.TH "cairn" "1"', page, re.M), f"{what}: the manual page")
    check_program(what, root, library_directory, root / prefix[1:] / "bin/cairn")
    moved = root.with_name(root.name + "-moved")
    root.rename(moved)
    check_recording(what, moved / prefix[1:] / "bin/cairn")


def check_refusals():
    root = pathlib.Path("refused").resolve()
    done = make(root, "PREFIX=/usr", "LIBDIR=/srv/lib")
    t.check(done.returncode == 2 and b"LIBDIR=/srv/lib: the tool looks in /usr/lib" in done.stdout, done.stdout)
    t.check(not root.exists(), "nothing is installed where the tool would not look")
    alone = pathlib.Path("alone/bin")
    alone.mkdir(parents=True)
    shutil.copy(t.BUILT_CAIRN, alone / "cairn")
    result = t.run([str(alone / "cairn"), "run", "true"])
    t.check(result.status == 125 and b"libcairn.so is neither in " in result.err, f"without its library: {result.err}")


def check_missing_program(variable, missing):
    """After the packages (-n only names that step), before anything is built."""
    made = subprocess.run(["make", "-n", "-s", "BUILT=1", f"BUILD={t.BUILD}", f"{variable}={missing}", "check"], cwd=t.SOURCE,
                          env=t.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    lines = made.stderr.decode().splitlines()
    t.check(made.returncode == 2 and len(lines) == 1 and
            f"check: there is no {missing}: install it, or name another one by {variable}=PROGRAM" in lines[0],
            f"make check without {missing}: {made}")
    t.check(b"run-tests" not in made.stdout, f"make check without {missing}: {made.stdout}")


t.need("make", "cc", "pkg-config")
check_directory("/usr/local", "/usr/local/lib")
check_directory("/usr", "/usr/lib64", "LIBDIR=/usr/lib64")
check_directory("/opt/cairn", f"/opt/cairn/lib/{TRIPLET}", f"LIBDIR=/opt/cairn/lib/{TRIPLET}")
check_refusals()
check_missing_program("PYTHON", "no-such-python")
check_missing_program("CC", "no-such-compiler")
t.finish()
