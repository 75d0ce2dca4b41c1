#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that cannot be recorded as others are: built with a sanitizer, for another libc, for 32 bits,
static. `cairn run` says so in words, with status 125 where it does not start them, and a program with
the preload alone goes on as if nothing was there. A recorded program starts those with a sanitizer,
however it does that, as if nothing was there either."""

import os
import shutil
import subprocess

import cairn_test as t

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = malloc(1000 + i);
    memset(blocks[50], 7, 100);
    int seen = blocks[50][3];
    for (int i = 0; i < 100; i++) free(blocks[i]);
    printf("seen %d\\n", seen);
    return 6;
}
"""
STATUS_REFUSED = 125


def build(name, *command):
    """The path of the program; None, with the reason, if it cannot be made or run here."""
    with open("source.c", "w", encoding="ascii") as file:
        file.write(SOURCE)
    if not shutil.which(command[0]):
        t.skip_part(f"{command[0]} is not installed")
        return None
    path = os.path.abspath(name)
    done = subprocess.run([*command, "-O1", "-g", "-fno-builtin", "-o", path, "source.c"],
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        t.skip_part(f"{' '.join(command)} cannot build here")
        return None
    try:
        return path if t.run([path]).status == 6 else None
    except OSError as problem:  # e.g. a kernel without support for 32 bits
        t.skip_part(f"{' '.join(command)}: its programs cannot be started here: {problem.strerror}")
        return None


def is_explained(name, result, *words):
    """One line that starts with the tool's name and says why."""
    lines = [line for line in result.err.decode(errors="replace").splitlines()
             if line.startswith("cairn: ")]
    t.check(lines and any(word in line for word in words for line in lines),
            f"{name}: nothing like {words} in {t.shorten(result.err)}")


def check_refused(name, path, *words):
    """The tool does not start it, --ignore-checks does, unrecorded."""
    result = t.run_cairn("run", "-o", t.fresh_path("refused"), path)
    t.check_equal(f"{name}: status", (result.status, result.out), (STATUS_REFUSED, b""))
    is_explained(name, result, *words)
    anyway = t.run_cairn("run", "-q", "--ignore-checks", "-o", t.fresh_path("refused"), path)
    t.check_equal(f"{name} anyway", (anyway.status, anyway.out), (6, b"seen 7\n"))
    t.check(b"ld.so" not in anyway.err, f"{name} anyway: {t.shorten(anyway.err)}")


def check_alone(name, path):
    """The preload alone never breaks a program; ld.so's own remark about it is not ours."""
    result = t.run([path], env={"LD_PRELOAD": t.RUNTIME,
                                "CAIRN_OUTPUT": t.fresh_path("foreign") + ".cairn"})
    t.check_equal(f"{name}, preload alone", (result.status, result.out), (6, b"seen 7\n"))


def check_recorded(name, path):
    result, recording = t.record([path])
    t.check_equal(f"{name}: end", (result.status, result.out), (6, b"seen 7\n"))
    found = t.report(recording)
    if found:
        main = t.stacks_through(found, "main")
        t.check_equal(f"{name}: bytes of main", sum(s["allocated_bytes"] for s in main
                                                    if len(s["frames"]) and s["allocations"] == 100),
                      sum(1000 + i for i in range(100)))


# Ways to start argv[1]: each ends with its status.
STARTS = {
    "execv": "os.execv(p, [p])",
    "execve": "os.execve(p, [p], os.environ)",
    "execvp": "os.chdir('/'); os.environ['PATH'] = '/bin:' + os.path.dirname(p); os.execvp(n, [n])",
    "fexecve": "os.execve(os.open(p, os.O_RDONLY), [p], os.environ)",
    "execl": "libc.execl(p.encode(), p.encode(), None)",
    "execle": "libc.execle(p.encode(), p.encode(), None, (ctypes.c_char_p * 2)("
              "b'LD_PRELOAD=' + os.environ['LD_PRELOAD'].encode(), None))",
    "spawn": "end(os.waitpid(os.posix_spawn(p, [p], os.environ), 0)[1])",
    "spawnp": "os.environ['PATH'] = os.path.dirname(p); "
              "end(os.waitpid(os.posix_spawnp(n, [n], os.environ), 0)[1])",
    "vfork": "sys.exit(subprocess.call([p], close_fds=False))",
    "system": "end(os.system(p))",
}
STARTER = """import ctypes, os, subprocess, sys
p, libc = sys.argv[1], ctypes.CDLL(None)
n = os.path.basename(p)
def end(status): sys.exit(os.waitstatus_to_exitcode(status))
"""


def check_as_child(name, path):
    """As without us; the tool says which program it was."""
    for how, start in STARTS.items():
        result = t.run_cairn("run", "-o", t.fresh_path("child"), "--",
                             t.PYTHON, "-c", STARTER + start, path)
        t.check_equal(f"{name} by {how}", (result.status, result.out), (6, b"seen 7\n"))
        is_explained(f"{name} by {how}", result, f"{os.path.basename(path)} was not recorded")
        t.check(b"anitizer" in result.err, f"{name} by {how}: the sanitizer is not named")
    alone = t.run(["sh", "-c", f"{path}; exit $?"],
                  env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": t.fresh_path("alone") + ".cairn"})
    t.check_equal(f"{name}, sh with the preload alone", (alone.status, alone.out, alone.err),
                  (6, b"seen 7\n", b""))


def check_narrow_child(path):
    """The dynamic linker of 32 bits would say that the library is of another class."""
    for script in (f"{path}; exit $?", f"exec {path}"):
        result = t.run_cairn("run", "-o", t.fresh_path("child"), "--", "sh", "-c", script)
        t.check_equal(f"32 bits by {script}", (result.status, result.out), (6, b"seen 7\n"))
        is_explained(f"32 bits by {script}", result, "for 32 bits")
        t.check(b"ld.so" not in result.err, f"32 bits by {script}: {t.shorten(result.err)}")


def check_valgrind():
    """Started by cairn itself and by a recorded shell: as without cairn, errors included."""
    if not shutil.which("valgrind"):
        t.skip_part("valgrind is not installed")
        return
    inner = "valgrind -q --error-exitcode=9 sh -c 'echo seen 7; exit 6'"
    for argv in (["sh", "-c", f"{inner}; exit $?"], ["valgrind", "-q", "--error-exitcode=9", "sh", "-c",
                                                     "echo seen 7; exit 6"]):
        result = t.run_cairn("run", "-o", t.fresh_path("valgrind"), "--", *argv)
        t.check_equal(f"{argv[0]}: valgrind", (result.status, result.out), (6, b"seen 7\n"))
        is_explained(f"{argv[0]}: valgrind", result, "was not recorded: it is valgrind")
        t.check(b"==" not in result.err, f"{argv[0]}: valgrind complains: {result.err[:400]}")


def check_others_stay():
    """Of LD_PRELOAD only our entry goes."""
    name = "has-asan-init"
    with open("init.c", "w", encoding="ascii") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\nvoid __asan_init(void) {}\n"
                   'int main(void) { const char *p = getenv("LD_PRELOAD"); puts(p ? p : "none"); }\n')
    subprocess.run(["gcc", "-rdynamic", "-o", name, "init.c"], check=True)
    other = str(t.BUILD / "tests/interruptible_preload.so")
    for older, left in ((None, "none"), (other, other), (f"{other}:{t.COUNTER}",) * 2):
        result = t.run_cairn("run", "-q", "-o", t.fresh_path("others"), "--", "sh", "-c", f"./{name}; :",
                             env={"LD_PRELOAD": older} if older else {})
        t.check_equal(f"preloads left of {older}", result.out, left.encode() + b"\n")


check_valgrind()
for compiler, sanitizer in (("gcc", "address"), ("gcc", "thread"), ("clang", "address")):
    program = build(f"{compiler}-{sanitizer}", compiler, f"-fsanitize={sanitizer}")
    if program:
        check_refused(f"{compiler}'s {sanitizer} sanitizer", program, "Sanitizer")
        check_as_child(f"{compiler}'s {sanitizer} sanitizer", program)
undefined = build("with-undefined", "gcc", "-fsanitize=undefined")
if undefined:
    check_recorded("undefined behaviour sanitizer", undefined)
narrow = build("narrow", "gcc", "-m32")
if narrow:
    check_refused("32-bit program", narrow, "32-bit")
    check_narrow_child(narrow)
    check_alone("32-bit program", narrow)
check_others_stay()
static = build("static", "gcc", "-static", "-s")
if static:
    check_refused("static program", static, "static")
    check_alone("static program", static)
musl = build("with-musl", "musl-gcc")
if musl:
    check_alone("musl program", musl)
    result = t.run_cairn("run", "-o", t.fresh_path("musl"), musl)
    if result.status == STATUS_REFUSED:
        check_refused("musl program", musl, "musl")
    else:
        check_recorded("musl program", musl)
t.finish()
