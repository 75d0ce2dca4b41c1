#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in a run that cannot be recorded: their starter took the library out of LD_PRELOAD or gave no
environment, also before system and popen, which start a shell inside libc; they are static without symbols, or setuid. The summary
names them, and so do report, info and JSON later, of a run of one process or of many; who became one of them is said to
have ended there. A start that fails names nobody. Processes of few calls, whose recordings are not kept, are counted
with what they allocated: nothing is missing."""

import os
import pathlib
import shutil
import subprocess

import cairn_test as t
import ledger

PROGRAM = """
#include <stdlib.h>
#include <stdio.h>
int main(void) {
    void *volatile kept = malloc(5000);
    puts(kept ? "done" : "none");
    return 5;
}
"""

# Takes the library out of its own environment, in the way of its first argument; libc starts a shell then, by the second.
SHELLS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char **environ;
int main(int count, char **words) {
    static char *none[] = {NULL};
    const char *way = count > 2 ? words[1] : "";
    if (!strcmp(way, "unsetenv")) unsetenv("LD_PRELOAD");
    if (!strcmp(way, "setenv")) setenv("LD_PRELOAD", "", 1);
    if (!strcmp(way, "replaced")) setenv("LD_PRELOAD", words[3], 1);
    if (!strcmp(way, "putenv")) putenv("LD_PRELOAD=");
    if (!strcmp(way, "clearenv")) clearenv();
    if (!strcmp(way, "environ")) environ = none;
    if (!strcmp(words[2], "system")) return system("echo done; exit 5") >> 8;
    if (!system(NULL) || popen("true", "no mode")) return 1;
    return pclose(popen("echo done; exit 5", "w")) >> 8;
}
"""

# Starts its second argument without variables: by number, or after a change of directory.
STARTS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    static char *none[] = {NULL};
    int status = 0;
    pid_t child = 0;
    posix_spawn_file_actions_t actions;
    if (count < 3) return 1;
    if (!strcmp(words[1], "execve")) return (int)syscall(SYS_execve, words[2], words + 2, none);
    if (!strcmp(words[1], "execveat")) return (int)syscall(SYS_execveat, AT_FDCWD, words[2], words + 2, none, 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (posix_spawn(&child, words[2] + 1, &actions, NULL, words + 2, none)) return 2;
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 3;
}
"""


def build(name, *options, text=PROGRAM):
    with open("built.c", "w", encoding="ascii") as file:
        file.write(text)
    path = os.path.abspath(name)
    done = subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", path, "built.c", *options], check=False,
                          stderr=subprocess.DEVNULL)
    return path if done.returncode == 0 else None


def reports_of(path):
    return [found for found in (t.report(file) for file in ledger.files(path)) if found]


def named(path):
    """What the recordings name: {(program, reason): count}."""
    every = [one for found in reports_of(path) for one in found["trust"].get("not_recorded", [])]
    sums = {}
    for one in every:
        key = one["program"], one["reason"]
        sums[key] = sums.get(key, 0) + one["count"]
    return sums


def check(what, argv, wanted, clause="", status=5, out=b"done\n", env=None):
    """`wanted`: {(program, reason): count}."""
    plain = t.run(argv, env=env)
    t.check_equal(f"{what}, plain", (plain.status, plain.out), (status, out))
    path = t.fresh_path("run") + ".cairn"
    result = t.run_cairn("run", "-o", path, "--", *argv, env=env)
    t.check_equal(f"{what}: end", (result.status, result.out), (status, out))
    summary = result.err.decode()
    for program, _ in wanted:
        t.check(f"cairn: {program} " in summary and clause in summary, f"{what}: the summary: {summary}")
    t.check(("not recorded" in summary) == bool(wanted), f"{what}: not recorded? {summary}")
    if not t.check(os.path.exists(path), f"{what}: no recording: {summary}"):
        return path
    t.check_equal(f"{what}: in JSON", named(path), wanted)
    words = t.run_cairn("report", path).out.decode() + t.run_cairn("report", "--summary", path).out.decode()
    for (program, _), count in wanted.items():
        times = f"{count} x " if count > 1 else ""
        t.check(f"not recorded: {times}{program} (" in words and "nothing lost of what was recorded" in words,
                f"{what}: report: {words}")
    if not wanted:
        t.check("not recorded" not in words, f"{what}: report: {words}")
    return path


def check_replaced(what, path, program):
    """`program` became another one at once: its recording does not go on."""
    words = t.run_cairn("report", path).out.decode()
    t.check(words.startswith(f"{program} became another program"), f"{what}: {words}")


t.need("gcc")
app = build("app")
lost = {("app", "environment"): 1}
no_preload = "app was not recorded: it was started without cairn in LD_PRELOAD"
check_replaced("env -i", check("env -i", ["env", "-i", app], lost, no_preload), "env")
check("env -u", ["env", "-u", "LD_PRELOAD", app], lost, no_preload)
check("emptied", ["env", "LD_PRELOAD=", app], lost, no_preload)
path = check("replaced", ["env", "-i", f"LD_PRELOAD={t.COUNTER}", "COUNT_PRELOAD_OUT=counts", app], {})
t.check_equal("replaced: recordings", [one["process"]["command"] for one in reports_of(path)], [app])
t.check_equal("replaced: what the launcher preloads", len(list(pathlib.Path().glob("counts.*"))), 2)  # plain and beside
sanitizer = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
if os.path.isabs(sanitizer):
    check("a sanitizer, which has to be first", ["env", f"LD_PRELOAD={os.path.realpath(sanitizer)}",
                                                 "ASAN_OPTIONS=detect_leaks=0", app], lost, no_preload)
check("a script", ["sh", "-c", f"unset LD_PRELOAD; {app}; {app}; exit 5"], {("app", "environment"): 2},
      "app and 1 more were not recorded", out=b"done\ndone\n")
path = check("a script that becomes another", ["sh", "-c", f"env -i {app}; exec env {app}"], lost, no_preload,
             out=b"done\ndone\n")
t.check_equal("a script that becomes another: recordings", [one["process"]["command"] for one in reports_of(path)], [app])
spawn = "import os, sys; p = sys.argv[1]; " \
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(p, [p], {}), 0)[1]))"
check("posix_spawn", [t.PYTHON, "-c", spawn, app], lost, no_preload)
shells = build("shells", "-w", text=SHELLS)
for way in "unsetenv", "setenv", "replaced", "putenv", "clearenv", "environ":
    for call in "system", "popen":
        check(f"{call} after {way}", [shells, way, call, t.COUNTER], {("sh", "environment"): 1},
              "sh was not recorded: it was started without cairn in LD_PRELOAD")
starts = build("starts", "-w", text=STARTS)
if starts:
    for how in "execve", "execveat", "spawn elsewhere":
        check(f"{how} by the program", [starts, how, app], lost, no_preload)
    check("nothing there, elsewhere", [starts, "spawn elsewhere", "/no/such/program"], {}, status=2, out=b"")
else:
    t.skip_part("this libc has no posix_spawn with a change of directory")
check("system with us", [shells, "as it is", "system"], {})
check("popen with us", [shells, "as it is", "popen"], {})
check("no room", ["sh", "-c", f"ulimit -v 100000; {app}; exit 5"], {("app", "limit"): 1}, "app was not recorded: a memory limit")
check("with us", ["env", app], {})
check("what is not there", ["sh", "-c", f"env -i {app}-none 2>/dev/null; exec {app}"], {})
unloved = pathlib.Path("unloved")  # executable, and no kernel executes it
unloved.write_bytes(b"\0no program\n")
unloved.chmod(0o755)
failing = f"import os\ntry: os.execve({str(unloved.absolute())!r}, ['x'], {{}})\nexcept OSError: os.execv({app!r}, ['app'])"
check("a start that fails", [t.PYTHON, "-c", failing], {})
static = build("still", "-static", "-s")
if static:
    check("static", ["sh", "-c", f"{static}; exit 5"], {("still", "static"): 1}, "still was not recorded: it is static")
    script = pathlib.Path("by-static")
    script.write_text(f"#!{static}\n", "ascii")
    script.chmod(0o755)
    check("a static interpreter", ["sh", "-c", f"{script.absolute()}; exit 5"], {("by-static", "static"): 1},
          "by-static was not recorded")
else:
    t.skip_part("static programs cannot be built here")
pie = build("still-pie", "-static-pie", "-s")
if pie:
    check("static PIE", ["sh", "-c", f"{pie}; exit 5"], {("still-pie", "static"): 1}, "still-pie was not recorded")
if os.getuid() == 0:
    owned = shutil.copy(app, os.path.abspath("owned"))
    os.chown(owned, 65534, -1)
    os.chmod(owned, 0o4755)
    check("setuid", ["sh", "-c", f"{owned}; exit 5"], {("owned", "privileges"): 1}, "owned was not recorded")
else:
    t.skip_part("another user's setuid program needs root")
FEW = """
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void allocate(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(100);
        if (i % 2) free(block);
    }
}
static void child(int count, int depth) {
    pid_t pid = fork();
    if (!pid) {
        allocate(count);
        if (depth) child(count, depth - 1);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}
int main(int argc, char **argv) {
    int replacements = argc > 2 ? atoi(argv[2]) : 0;
    char next[] = {(char)('0' + replacements - 1), 0};
    if (argc > 3) child(20, 0);
    allocate(7);
    if (replacements) execl(argv[0], argv[0], argv[1], next, argv[3], NULL);
    for (int i = 0; i < 3; i++) child(100, atoi(argv[1]));
    return 5;
}
"""


def few_calls():
    """(generations of forks, images that are replaced, whether those fork too): what is kept and what is not add up."""
    with open("few.c", "w", encoding="ascii") as file:
        file.write(FEW)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", "few", "few.c"], check=True)
    few = os.path.abspath("few")
    for generations, replaced, forks in (0, 0, ()), (2, 0, ()), (0, 3, ()), (1, 2, ("forks",)):
        what, path = f"few calls: {generations}, {replaced}, {forks}", t.fresh_path("few") + ".cairn"
        result = t.run_cairn("run", "-o", path, "--", few, str(generations), str(replaced), *forks)
        t.check_equal(f"{what}: end", result.status, 5)
        found = reports_of(path)
        unkept = [one["trust"]["not_kept"] for one in found if "not_kept" in one["trust"]]
        images, children = replaced + 1, 3 * (generations + 1)
        calls = 7 * images + 100 * children + 20 * len(forks) * images
        kept = sum(one["totals"]["allocations"] for one in found)
        t.check_equal(f"{what}: calls", kept + sum(one["allocations"] for one in unkept), calls, is_grave=True)
        t.check_equal(f"{what}: bytes", 100 * kept + sum(one["allocated_bytes"] for one in unkept), 100 * calls,
                      is_grave=True)
        t.check_equal(f"{what}: processes", len(found) + sum(one["processes"] for one in unkept),
                      images + children + len(forks) * images)
        sums = sum(one["processes"] for one in unkept)
        t.check(f"not kept: {sums} processes of few calls (" in result.err.decode(), f"{what}: {result.err}")


MAPS = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    size_t bytes = (size_t)atol(words[1]) << 10;
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            void *volatile block = malloc(count);
            void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(pages, block != NULL, bytes);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
"""


def few_calls_that_map():
    """Forks of a call each: those that have mapped 1 MiB are kept, where mappings are recorded."""
    with open("maps.c", "w", encoding="ascii") as file:
        file.write(MAPS)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", "maps", "maps.c"], check=True)
    for kibibytes, kept in (1020, 1), (1024, 3):
        path = t.fresh_path("maps") + ".cairn"
        t.run_cairn("run", "--mmap", "-o", path, "--", os.path.abspath("maps"), str(kibibytes))
        t.check_equal(f"forks that map {kibibytes} KiB", len(reports_of(path)), kept)


# Starts its arguments without variables, by a system call instruction of its own.
UNSEEN = """
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void become(char **words, char **variables) {
#if defined(__x86_64__)
    long number = SYS_execve;
    __asm__ volatile("syscall" : "+a"(number) : "D"(words[0]), "S"(words), "d"(variables) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = SYS_execve;
    register void *a __asm__("x0") = words[0], *b __asm__("x1") = words, *c __asm__("x2") = variables;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(number), "r"(b), "r"(c) : "memory");
#endif
}
int main(int count, char **words) {
    static char *none[] = {NULL};
    void *volatile kept = malloc(count);
    int status = 9;
    pid_t child = fork();
    if (child == 0) {
        become(words + 1, none);
        _exit(kept != NULL);
    }
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 3;
}
"""


def nobody_told():
    """A program that nobody told of is found as long as it lives, and named once."""
    unseen, path = build("unseen", text=UNSEEN), t.fresh_path("unseen") + ".cairn"
    command = [t.CAIRN, "run", "-o", path, "--", unseen, "/bin/cat"]
    with t.Process(command, env=t.environment(), stdin=-1, stdout=-1, stderr=-1) as process:
        main = t.wait_until(lambda: t.children_of(process.pid))
        pid = t.wait_until(lambda: next((one for one in main if t.children_of(one)), None))
        t.wait_until(lambda: (found := t.report(pid)) and "not_recorded" in found["trust"], pause=0.25)
        said = process.communicate(timeout=t.TIMEOUT_S)[1].decode()
        t.check_equal("nobody told: end", process.returncode, 0)
    t.check("cairn: cat was not recorded: it was started without cairn in LD_PRELOAD" in said, f"nobody told: {said}")
    t.check_equal("nobody told: in JSON", named(path), {("cat", "environment"): 1})


few_calls()
few_calls_that_map()
nobody_told()
t.finish()
