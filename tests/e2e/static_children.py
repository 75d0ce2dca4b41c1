#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Static programs that recorded ones start, static or not, by every call that starts programs: each is recorded to the call
and byte, also under libc's own shells, by scripts, in the place of its starter and without variables, with the same output
and status. What cannot be recorded is named, and a start that fails names nobody and leaves nobody held. A tool that is
killed while it changes a program lets it begin, also one with no room behind its code; what is recorded then is whole."""

import os
import pathlib

import cairn_test as t
import ledger
import static_counter

LEAF = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void leaf_work(void) {
    for (int i = 0; i < 1000; i++)
        if (!malloc(100)) abort();
}
int main(int count, char **words) {
    leaf_work();
    printf("leaf %d %s\\n", count, words[0]);
    return 5;
}
"""
STARTS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *none[] = {NULL};
static char **words, *how;
static int end_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) != child && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
static int is(const char *one) {
    return !strcmp(how, one);
}
static void become(void) {
    if (is("execv") || is("fork") || is("thread")) execv(words[0], words);
    if (is("execvp")) execvp(words[0], words);
    if (is("execl")) execl(words[0], words[0], words[1], NULL);
    if (is("fexecve")) fexecve(open(words[0], O_RDONLY), words, environ);
    if (is("execveat")) syscall(SYS_execveat, AT_FDCWD, words[0], words, environ, 0);
    if (is("number")) syscall(SYS_execve, words[0], words, environ);
    if (is("none")) execve(words[0], words, none);
}
static void *other(void *unused) {
    become();
    return unused;
}
static int spawned(void) {
    pid_t child = 0;
    char line[200];
    FILE *shell;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    int problem = is("spawn")    ? posix_spawn(&child, words[0], NULL, &attributes, words, environ)
                  : is("spawnp") ? posix_spawnp(&child, words[0], NULL, NULL, words, environ)
                                 : 0;
    if (is("system")) return WEXITSTATUS(system(words[0]));
    if (is("popen")) {
        shell = popen(words[0], "r");
        while (fgets(line, sizeof line, shell)) fputs(line, stdout);
        return WEXITSTATUS(pclose(shell));
    }
    if (problem) printf("%s: %s\\n", how, strerror(problem));
    return child ? end_of(child) : 7;
}
int main(int count, char **given) {
    pthread_t thread;
    how = given[1], words = given + 2;
    free(malloc(count));
    if (words[1]) memset(words[1] = calloc(1, 1 << 20), 'x', (1 << 20) - 1);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (is("vfork")) {
        pid_t child = vfork();
        if (!child) {
            execv(words[0], words);
            _exit(8);
        }
        return end_of(child);
    }
    if (is("fork")) {
        pid_t child = fork();
        if (child) return end_of(child);
        become();
        _exit(8);
    }
    if (is("thread")) {
        pthread_create(&thread, NULL, other, NULL);
        pthread_join(thread, NULL);
        return 9;
    }
    if (is("spawn") || is("spawnp") || is("system") || is("popen")) return spawned();
    become();
    printf("%s: %s\\n", how, strerror(errno));
    return 9;
}
"""
# Starts its words by a number, and has none of libc's functions that start programs.
BARE = """
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    free(malloc(count));
    return (int)syscall(SYS_execve, words[1], words + 1, environ) + 10;
}
"""
HOWS = ("execv", "execvp", "execl", "fexecve", "execveat", "number", "thread", "fork", "vfork", "spawn", "spawnp", "system", "popen")
FAILS = ("execv", "vfork", "spawnp")
OFTEN = 20 if t.IS_LONG else 3
KILLS = 300 if t.IS_LONG else 2  # at as many steps of the tool
PAGE, ROOM = 4096, 400  # behind the code of a program in which a call has no place


def build(name, text, libc, *options):
    source = pathlib.Path(f"{name}.c")
    source.write_text(text, "ascii")
    output = str(pathlib.Path(f"{name}-{libc}{''.join(options)}").absolute())
    return output if static_counter.must([libc, "-D_GNU_SOURCE", "-O1", "-g", "-w", "-fno-builtin", *options, source, "-o", output,
                                          "-pthread"]) else None


def named(reports):
    return sorted((one["program"], one["reason"]) for found in reports for one in found["trust"].get("not_recorded", []))


def recorded(what, argv, env=None):
    """All recordings of a run that does as it does without cairn."""
    plain = t.run(argv, env=env)
    path = t.fresh_path("run")
    result = t.run_cairn("run", "-q", "-o", path, "--", *argv, env=env)
    t.check_equal(f"{what}: end", (result.status, result.out), (plain.status, plain.out), is_grave=True)
    return [found for found in (t.report(file) for file in ledger.files(path)) if found] if os.path.exists(path) else []


def recordings_of(reports, leaf):
    return [found for found in reports if found["process"]["command"].split()[0] == leaf]


def check_whole(what, found):
    blocks = [(s["allocations"], s["allocated_bytes"]) for s in t.stacks_through(found, "leaf_work")]
    t.check_equal(f"{what}: blocks", blocks, [(1000, 100_000)])
    t.check_nothing_lost(what, found)


def check_leaf(what, reports, leaf, count=1):
    """So many recordings of the leaf, each with all that it allocates."""
    of_leaf = recordings_of(reports, leaf)
    t.check_equal(f"{what}: recordings of it", len(of_leaf), count)
    for found in of_leaf:
        check_whole(what, found)
    t.check_equal(f"{what}: named", named(reports), [])


def check_starts(starter, leaf, hows, what):
    for how in hows:
        check_leaf(f"{what}, {how}", recorded(f"{what}, {how}", [starter, how, leaf]), leaf)
    found = recorded(f"{what}, by name", [starter, "spawnp", os.path.basename(leaf)],
                     env={"PATH": f"{os.path.dirname(leaf)}:{os.environ['PATH']}"})
    check_leaf(f"{what}, by name", found, os.path.basename(leaf))


def check_not_started(starter, leaf, what):
    """The kernel refuses a word that is too long, after the tool has taken hold: nobody is named, and the starter is free again."""
    for how in FAILS:
        found = recorded(f"{what}, {how} that fails", [starter, how, leaf, "long"])
        t.check_equal(f"{what}, {how} that fails: named", named(found), [])


def check_unrecorded(starter, leaf, what):
    """Without symbols, and where an option asks for what cannot be had."""
    stripped = f"{leaf}-stripped"
    static_counter.must(["strip", "-o", stripped, leaf])
    for how in ("execv", "spawn"):
        found = recorded(f"{what}, stripped, {how}", [starter, how, stripped])
        t.check_equal(f"{what}, stripped, {how}: named", named(found), [(os.path.basename(stripped), "static")])


def room_behind(program):
    """Bytes from the end of its code to that of the page."""
    headers = t.run(["readelf", "-lW", program]).out.decode().splitlines()
    code = next(line.split() for line in headers if " LOAD " in line and " R E " in line)
    return -(int(code[2], 16) + int(code[5], 16)) % PAGE


def build_without_room(program):
    """The same with more code, up to the end of its last page but for that little."""
    more = (room_behind(program) - ROOM) % PAGE & ~15
    narrow = build("narrow", LEAF + f'__asm__(".text; .balign 16; .skip {more}, 0x90");\n', "gcc", "-static")
    t.check(0 < room_behind(narrow) <= ROOM + 64, f"narrow: {room_behind(narrow)} bytes of room")
    return narrow


def kill_tool_at(step, starter, how, program):
    """How many steps the tool made. The output is read to its end, which is that of all who outlive the tool. What the
    tool was killed before it could say or write is not asked: that the program is recorded, a file beyond a checkpoint."""
    what, path = f"{os.path.basename(program)}, {how}, the tool killed at step {step}", t.fresh_path("killed")
    result = t.run([*t.program("killed_at"), str(step), t.CAIRN, "run", "-q", "-o", path, "--", "sh", "-c",
                    '"$@"; echo "status $?"', "sh", starter, how, program])
    lines = result.out.decode().splitlines()
    steps = [line for line in lines if line.isdigit()]
    t.check_equal(f"{what}: it goes on", [line for line in lines if line not in steps],
                  [f"leaf 1 {program}", "status 5"], is_grave=True)
    files = ledger.files(path) if os.path.exists(path) else []
    for found in recordings_of(filter(None, map(t.report, files)), program):
        if "checkpoint" not in found["trust"]:
            check_whole(what, found)
    return int(steps[0])


def check_tool_killed(starter, how, program):
    steps = kill_tool_at(0, starter, how, program)
    if not t.check(steps > KILLS or t.IS_LONG, f"{how}: {steps} steps"):
        return
    for step in sorted({1 + (2 * turn + 1) * (steps - 1) // (2 * KILLS + 1) for turn in range(KILLS)}):
        kill_tool_at(step, starter, how, program)


t.need("gcc", "musl-gcc", "strip")
leaf = {libc: build("leaf", LEAF, libc, "-static") for libc in ("gcc", "musl-gcc")}
dynamic = build("starts", STARTS, "gcc")
static = {libc: build("starts", STARTS, libc, "-static") for libc in ("gcc", "musl-gcc")}
check_starts(dynamic, leaf["gcc"], HOWS, "dynamic")
check_starts(static["gcc"], leaf["musl-gcc"], HOWS if t.IS_LONG else ("execv", "vfork", "spawn", "system"), "glibc")
check_starts(static["musl-gcc"], leaf["gcc"], HOWS if t.IS_LONG else ("fexecve", "fork", "spawnp", "popen"), "musl")
for what, starter in (("dynamic", dynamic), ("musl", static["musl-gcc"])):
    check_not_started(starter, leaf["gcc"], what)
    check_unrecorded(starter, leaf["gcc"], what)
script = pathlib.Path("script")
script.write_text(f"#!{leaf['gcc']}\n", "ascii")
script.chmod(0o755)
check_leaf("a script", recorded("a script", [dynamic, "spawn", script.absolute()]), leaf["gcc"])
for libc in ("gcc", "musl-gcc"):
    check_leaf(f"{libc}, by a number", recorded(f"{libc}, by a number", [build("bare", BARE, libc, "-static"), leaf["gcc"]]), leaf["gcc"])
check_tool_killed(dynamic, "spawn", leaf["gcc"])
check_tool_killed(dynamic, "execv", build_without_room(leaf["gcc"]))
many = " & ".join([leaf["gcc"]] * OFTEN)
check_leaf("many at once", recorded("many at once", ["sh", "-c", f"({many} &) >many; while [ $(wc -l <many) -lt {OFTEN} ]; do :; done"]),
           leaf["gcc"], OFTEN)
t.finish()
