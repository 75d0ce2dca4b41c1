#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recorded program starts others that cannot open the library: it was removed meanwhile, they are another
user's, they have another root directory; also by system and popen, which start a shell inside libc. The dynamic linker would print a line about that; none comes, status
and streams are those of a plain run, and cairn says who was not recorded."""

import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

NOBODY = "65534"
# Loses the library as told, then has libc start shells. LD_PRELOAD is as before afterwards.
SHELLS = """
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    char line[100] = "", before[4096] = "";
    const char *preload = getenv("LD_PRELOAD"), *way = words[1];
    if (preload) strncpy(before, preload, sizeof before - 1);
    if (count != 3) return 1;
    if (!strcmp(way, "removed") && system(words[2])) return 1;
    if (!strcmp(way, "user") && (setgid(65534) || setuid(65534))) return 1;
    if (!strcmp(way, "root") && (chroot(words[2]) || chdir("/"))) return 1;
    FILE *stream = popen("echo by popen", "r");
    if (!stream || !fgets(line, sizeof line, stream) || pclose(stream)) return 2;
    fputs(line, stdout);
    fflush(stdout);
    int status = system("echo by system; exit 5") >> 8;
    return preload && strcmp(preload, before) ? 3 : status;
}
"""


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


t.need("gcc")
with open("shells.c", "w", encoding="ascii") as file:
    file.write(SHELLS)
subprocess.run(["gcc", "-w", "-o", "shells", "shells.c"], check=True)
shells = os.path.abspath("shells")
check("removed, by libc", 0o755, lambda place: f"exec {shells} removed 'rm -f {place}/libcairn*.so'", "sh and 1 more were")
check("removed", 0o755, lambda place: f"rm -f {place}/libcairn*.so; /bin/ls -d /; exec /bin/ls -d /none", "ls")
if os.getuid() == 0:
    become = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    check("another user", 0o700, lambda _: f"{become} /bin/sh -c '/bin/ls -d /; /bin/ls -d /none'", "sh")
    check("another user, by libc", 0o700, lambda _: f"exec {shells} user .", "sh and 1 more were")
    shell_root = copy_root("shell-root", "/bin/sh")
    check("another root, by libc", 0o755, lambda _: f"exec {shells} root {shell_root}", "sh and 1 more were")
    root = copy_root("root", "/bin/ls")
    check("another root", 0o755, lambda _: f"chroot {root} /bin/ls /; chroot {root} /bin/ls /none", "ls")
    if t.run(["unshare", "-m", "true"]).status == 0:
        pivot = f"mount --bind {root} {root}; cd {root}; pivot_root . .; exec /bin/ls /none"
        check("after pivot_root", 0o755, lambda _: f"unshare -m /bin/sh -c '{pivot}'", "ls")
else:
    t.skip_part("other users and roots need root")
t.finish()
