#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recorded program starts others that cannot open the library: it was removed meanwhile, they are another
user's, they have another root directory. The dynamic linker would print a line about that; none comes, status
and streams are those of a plain run, and cairn says who was not recorded."""

import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

NOBODY = "65534"


def copy_tool(name, mode):
    """A tool of its own whose library can be lost, and its directory."""
    place = pathlib.Path(name).resolve()
    place.mkdir()
    for file in ("cairn", "libcairn.so", "libcairn-cxx.so"):
        shutil.copy(t.BUILD / file, place)
    place.chmod(mode)
    return place


def copy_root(name, program):
    """A directory that can be a root: a program with what it needs."""
    root = pathlib.Path(name).resolve()
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True, text=True).stdout
    for path in [program, *(word for word in listed.split() if word.startswith("/"))]:
        there = root / path[1:]
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)
    return str(root)


def check(name, mode, command, lost):
    """`command` is a shell's, from the place of a tool; what it runs last cannot open the library."""
    plain = t.run(["/bin/sh", "-c", command(copy_tool(f"{name} plainly".replace(" ", "-"), mode))])
    for options in ("-q",), ():
        place = copy_tool(f"{name} {len(options)}".replace(" ", "-"), mode)
        result = t.run([str(place / "cairn"), "run", *options, "-o", t.fresh_path(name) + ".cairn",
                        "/bin/sh", "-c", command(place)])
        if options:
            result.check_like(name, plain)
        else:
            t.check_equal(f"{name}: status and output", (result.status, result.out), (plain.status, plain.out))
            t.check(re.search(rf"cairn: {lost} .*not recorded: it cannot open cairn's library".encode(), result.err),
                    f"{name}: {result.err.decode()}")


check("removed", 0o755, lambda place: f"rm -f {place}/libcairn*.so; /bin/ls -d /; exec /bin/ls -d /none", "ls")
if os.getuid() == 0:
    become = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    check("another user", 0o700, lambda _: f"{become} /bin/sh -c '/bin/ls -d /; /bin/ls -d /none'", "sh")
    root = copy_root("root", "/bin/ls")
    check("another root", 0o755, lambda _: f"chroot {root} /bin/ls /; chroot {root} /bin/ls /none", "ls")
    if t.run(["unshare", "-m", "true"]).status == 0:
        pivot = f"mount --bind {root} {root}; cd {root}; pivot_root . .; exec /bin/ls /none"
        check("after pivot_root", 0o755, lambda _: f"unshare -m /bin/sh -c '{pivot}'", "ls")
else:
    t.skip_part("other users and roots need root")
t.finish()
