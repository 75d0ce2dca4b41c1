#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach --wrap: allocators by name in a process that runs already, by slots and by jumps, in a library that is
loaded later, with arenas; exact beside what the program was told to do, beside a thread that does not stop; after each
detach the program's code and slots are as before, and other rows can be asked for; a tool that was killed is cleaned up
after; what cannot be led, and what is missing, is named."""

import os
import pathlib
import shutil
import signal
import subprocess

import attached
import cairn_test as t

PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN static __attribute__((noinline, noclone, used))
void *my_alloc(size_t), *my_realloc(void *, size_t); void my_free(void *);
OWN void *inner(size_t n) { void *p = malloc(n); __asm__("" ::: "memory"); return p; }
OWN void inner_free(void *p) { free(p); __asm__("" ::: "memory"); }
struct arena { struct arena *parent; char *at; };
struct arena *present;
OWN struct arena *arena_make(struct arena *parent, const char *name) { struct arena *a = calloc(1, sizeof *a + strlen(name)); a->parent = parent; return a; }
OWN void *arena_take(size_t n) { void *p = malloc(n); __asm__("" ::: "memory"); return p; }
OWN void arena_end(struct arena *a) { __asm__("" ::: "memory"); free(a); }
void tiny(void);
__asm__(".text\n.globl tiny\n.type tiny, @function\ntiny: ret\n.size tiny, .-tiny\n.globl after\n.type after, @function\nafter: ret\n.size after, .-after\n");
static volatile int stop;
static volatile long rounds;
static void *work(void *unused) {
  void *p[3] = {0};
  while (!stop) { p[0] = my_alloc(10); p[0] = my_realloc(p[0], 20); p[1] = inner(5); my_free(p[0]); inner_free(p[1]); rounds++; }
  return unused;
}
static void *hurry(void *n) { for (long i = (long)n; i; i--) { void *p = inner(3); inner_free(p); } return n; }
static void print_code(const char *name, void *at) {
  printf("%s:", name); for (int i = 0; i < 12; i++) printf("%02x", ((unsigned char *)at)[i]); printf(" ");
}
int main(void) {
  char line[64]; pthread_t thread; int n, has_thread = 0; void *(*late)(size_t) = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  while (fgets(line, sizeof line, stdin) && *line != 'q') {
    n = atoi(line + 1);
    if (*line == 'l') for (int i = 0; i < n; i++) { void *p = my_alloc(100); p = my_realloc(p, 150); if (i % 2) my_free(p); }
    if (*line == 'o') for (int i = 0; i < n; i++) { void *p = inner(30); if (i % 4) inner_free(p); }
    if (*line == 'a') for (int i = 0; i < n; i++) { present = arena_make(NULL, i % 2 ? "odd" : "even"); arena_take(10); arena_take(20); if (i % 4 > 1) arena_end(present); }
    if (*line == 'd') late = (void *(*)(size_t))dlsym(dlopen("./liblate.so", RTLD_NOW), "late_use");
    if (*line == 'u') for (int i = 0; i < n; i++) late(7);
    if (*line == 't') { has_thread = 1; pthread_create(&thread, NULL, work, NULL); while (!rounds) continue; }
    if (*line == 'f') { static int go[2]; pid_t pid; if (pipe(go)) return 1; if (!(pid = fork())) { close(go[1]); my_free(my_alloc(50)); read(go[0], line, 1); _exit(0); } printf("%d ", pid); }
    if (*line == 'F') {
      pid_t pid = fork();
      if (!pid) { freopen("child.in", "r", stdin); freopen("/dev/null", "w", stdout); continue; }
      printf("%d ", pid);
    }
    if (*line == 'W') waitpid(n, NULL, 0);
    if (*line == 'p') { pthread_t two[4]; for (int i = 0; i < 4; i++) pthread_create(&two[i], NULL, hurry, (void *)(long)n); for (int i = 0; i < 4; i++) pthread_join(two[i], NULL); }
    if (*line == 'w') { long from = rounds; while (rounds < from + n) continue; }
    if (*line == 'c') { print_code("inner", (void *)inner); print_code("free", (void *)inner_free); print_code("take", (void *)arena_take); }
    puts("done");
  }
  stop = 1;
  if (has_thread) pthread_join(thread, NULL);
  tiny();
  return 3;
}
"""
LIBRARY = """
#include <stdlib.h>
void *my_alloc(size_t n) { return malloc(n); }
void *my_realloc(void *p, size_t n) { return realloc(p, n); }
void my_free(void *p) { free(p); }
"""
LATE = """
#include <stdlib.h>
void *late_alloc(size_t n) { return malloc(n); }
void late_free(void *p) { free(p); }
void *late_use(size_t n) { void *p = late_alloc(n); late_free(late_alloc(n)); return p; }
"""
LIB = "name=lib:alloc=my_alloc(size=1):realloc=my_realloc(ptr=1,size=2):free=my_free(ptr=1)"
OWN = "name=own:alloc=inner(size=1):free=inner_free(ptr=1)"
LATER = "name=late:alloc=late_alloc(size=1):free=late_free(ptr=1)"
ARENAS = "name=arenas:current=present:make=arena_make(parent=1,label=2):alloc=arena_take(size=1):destroy=arena_end(pool=1)"


class Program(attached.Target):
    def __init__(self):
        super().__init__(path="./program")

    def do(self, *commands):
        return [self.tell(command) for command in commands][-1]

    def end(self, what):
        self.process.stdin.write("q\n")
        self.process.stdin.close()
        t.check_equal(f"{what}: the program's end", self.process.wait(60), 3)


def slots(pid):
    """Words of its program and libraries that lead into cairn's library."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines()
    ranges = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in maps if "memfd:libcairn" in line]
    found = 0
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            if not line.rstrip().endswith(("/program", "libmy.so", "liblate.so")) or " r" not in line:
                continue
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            memory.seek(start)
            words = memoryview(memory.read(end - start)).cast("Q")
            found += sum(any(low <= word < high for low, high in ranges) for word in words)
    return found


class Wrapped(attached.Attached):
    def __init__(self, program, *rows, options=()):
        words = [word for row in rows for word in ("--wrap", row)]
        super().__init__(program.pid, "--exact", *options, *words)

    def pools(self):
        """Leaves the program; what its allocators by name did."""
        return pools(self.leave())


def pools(found):
    return {pool["name"]: (pool["allocations"], pool["allocated_bytes"], pool["at_exit_blocks"], pool["at_exit_bytes"])
            for pool in (found or {}).get("pools", [])}


def build():
    for name, text in (("program.c", PROGRAM), ("my.c", LIBRARY), ("late.c", LATE)):
        pathlib.Path(name).write_text(text, encoding="ascii")
    for words in (["gcc", "-O1", "-shared", "-fPIC", "-o", "libmy.so", "my.c"],
                  ["gcc", "-O1", "-shared", "-fPIC", "-o", "liblate.so", "late.c"],
                  ["gcc", "-O1", "-w", "-rdynamic", "-o", "program", "program.c", "-L.", "-lmy", "-Wl,-rpath,.", "-pthread"]):
        made = t.run(words)
        t.check_equal(f"{words}: {made.err.decode()}", made.status, 0)


def check_figures(program):
    code = program.do("c")
    wrapped = Wrapped(program, LIB, OWN, ARENAS)
    program.do("l1000", "o1000", "a1000")
    live = t.run_cairn("report", "--json", "--view", "pools", program.pid)
    t.check_equal("while it runs", live.status, 0)
    t.check(slots(program.pid) > 0 and program.do("c") != code, "slots and code lead to the library")
    t.check_equal("its own account", wrapped.pools(),
                  {"lib": (2000, 250000, 500, 75000), "own": (1000, 30000, 250, 7500),
                   "arenas/even": (1000, 15000, 500, 7500), "arenas/odd": (1000, 15000, 500, 7500)})
    t.check_equal("code and slots are as before", (program.do("c"), slots(program.pid)), (code, 0))
    t.check("memfd:libcairn" not in t.run_cairn("report", wrapped.path).out.decode(), "the hook's frame is hidden")
    wrapped = Wrapped(program, OWN)
    program.do("l100", "o100")
    t.check_equal("other rows", wrapped.pools(), {"own": (100, 3000, 25, 750)})
    t.check_equal("nothing is left, again", (program.do("c"), slots(program.pid)), (code, 0))


def check_thread(program):
    """Detaching beside a thread that goes in and out all the time, with rows in another order each time."""
    program.do("t")
    for number in range(6):
        wrapped = Wrapped(program, *((LIB, OWN) if number % 2 else (OWN, LIB)))
        program.do("w2000", "l10")
        found = wrapped.pools()
        t.check(found["own"][0] >= 2000 and found["lib"][0] >= 4000 and found["own"][2] <= 1 and found["lib"][2] <= 6, f"{number}: {found}")
        program.do("w2000", "l10")
        t.check_equal(f"{number}: slots", slots(program.pid), 0)


def check_killed(program):
    code = program.do("c")
    wrapped = Wrapped(program, LIB, OWN)
    program.do("l10", "o10")
    wrapped.process.kill()
    wrapped.process.communicate()
    program.do("l10", "o10")
    t.check(slots(program.pid) > 0, "a tool that was killed leaves slots")
    wrapped = Wrapped(program, ARENAS)
    program.do("l10", "o10", "a4")
    t.check_equal("after a tool that was killed", wrapped.pools(),
                  {"arenas/even": (4, 60, 2, 30), "arenas/odd": (4, 60, 2, 30)})
    t.check_equal("nothing of it is left", (program.do("c"), slots(program.pid)), (code, 0))


def check_fork(program):
    """A child that is forked meanwhile gets its slots back with its parent, whose rows it has from it."""
    wrapped = Wrapped(program, LIB, OWN, options=["--children"])
    child = int(program.do("f").split()[0])
    t.check(slots(child) > 0, "a forked child has slots that lead to the library")
    t.wait_until(lambda: attached.is_recorded(child))
    wrapped.leave()
    t.check_equal("slots of parent and child", (slots(program.pid), slots(child)), (0, 0))


def check_fork_late(program):
    """A library that a fork loads, when the parent's rows could not be complete."""
    os.mkfifo("child.in")
    wrapped = Wrapped(program, LATER, LIB, OWN, options=["--children"])
    child = int(program.do("F").split()[0])
    with open("child.in", "w", encoding="ascii", buffering=1) as commands:
        commands.write("l3\nd\n")
        t.wait_until(lambda: attached.is_recorded(child))

        def is_led():
            commands.write("l1\nu1\no1\n")
            return any(pool["name"] == "late" and pool["allocations"] for pool in (attached.running_report(child) or {}).get("pools", []))
        t.wait_until(is_led)
        before = pools(attached.running_report(child))
        commands.write("u10\nl4\no8\n")
        t.wait_until(lambda: pools(attached.running_report(child))["own"][0] >= before["own"][0] + 8)
        after = pools(attached.running_report(child))
        t.check(after["late"][0] - before["late"][0] in range(20, 40), f"the fork's library: {before}, {after}")
        t.check(slots(child) > 0, "a fork has slots that lead to the library")
        said = t.run_cairn("report", child).out.decode()
        t.check("late_alloc is" not in said, f"the report does not say that it is missing: {said}")
        wrapped.leave()
        t.check_equal("slots of parent and child", (slots(program.pid), slots(child)), (0, 0))
        commands.write("q\n")
    program.do(f"W{child}")
    os.unlink("child.in")


def check_lacking(program):
    """Threads that call functions of a heap which lacks one do not wait for each other."""
    if not shutil.which("strace"):
        t.skip_part("no strace")
        return
    wrapped = Wrapped(program, OWN + ":free=absent(ptr=1)")
    status = pathlib.Path(f"/proc/{program.pid}/status")
    with subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=sched_yield,nanosleep", "-o", "waits", "-p", str(program.pid)]) as strace:
        t.wait_until(lambda: f"TracerPid:\t{strace.pid}\n" in status.read_text(encoding="ascii"))
        program.do("p200000")
        strace.send_signal(signal.SIGINT)
    waits = pathlib.Path("waits").read_text(encoding="ascii").splitlines()
    # two threads that begin may wait for each other's places, once
    waited = [line for line in waits if "yield" in line or "nanosleep" in line]
    t.check(len(waited) < 20, f"{len(waited)} waits for a lock in 400,000 calls: {waited[:3]}")
    t.check("absent is in no library so far" in wrapped.first + (wrapped.leave() and wrapped.err), "it is said")


def check_late(program):
    wrapped = Wrapped(program, LATER, LIB)
    program.do("d")
    def is_led():
        program.do("l1", "u1")
        return "late" in pools_now(program)
    t.wait_until(is_led)
    before = pools_now(program)["late"]
    program.do("u10")
    t.check_equal("a library that was loaded later", wrapped.pools()["late"][0], before + 20)
    said = wrapped.first + wrapped.err
    t.check("late_alloc is in no library so far" in said, f"what is missing is named: {said}")
    t.check_equal("its slots", slots(program.pid), 0)


def check_missing_variable(program):
    wrapped = Wrapped(program, ARENAS.replace("current=present", "current=nowhere"))
    wrapped.leave()
    said = wrapped.first + wrapped.err
    t.check("nowhere is no variable of the executable that can be read, and its heap is not counted" in said, f"which is missing: {said}")


def pools_now(program):
    found = pools(attached.running_report(program.pid))
    return {name: figures[0] for name, figures in found.items() if figures[0]}


def check_refused(program):
    refused = t.run_cairn("attach", "--exact", "--wrap", "alloc=my_alloc(size=1):free=tiny(ptr=1)", program.pid)
    t.check(refused.status == 1 and b"--wrap: tiny: it is too short" in refused.err, f"{refused}")
    wrong = t.run_cairn("attach", "--wrap", "alloc=f(size=1)", program.pid)
    t.check(wrong.status == 2 and b"needs alloc and free" in wrong.err, f"{wrong}")
    t.check_equal("nothing was changed", slots(program.pid), 0)
    for lie in ("name=lies:alloc=my_free(size=1):free=my_alloc(ptr=1)", "name=lies:make=my_realloc(parent=1,label=2):alloc=my_alloc(pool=1,size=1,out=1):clear=my_free(pool=1)",
                "name=lies:current=stop:alloc=inner(size=6):realloc=my_alloc(ptr=5,size=4):destroy=inner_free(pool=1)"):
        wrapped = Wrapped(program, lie)
        program.do("l500", "o500")
        wrapped.leave()


t.need("gcc")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
build()
for check in (check_figures, check_killed, check_fork, check_fork_late, check_late, check_lacking, check_missing_variable,
              check_refused, check_thread):
    one = Program()
    check(one)
    one.end(check.__name__)
t.finish()
