#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --wrap of functions inside of the executable, static and hidden ones, which no slot leads to: a jump where
they begin. Every register that a caller may count on is as the function left it, vector registers whole; exceptions,
longjmp, threads and forks go through; figures are those of the program's own account; rows that lie change figures and
nothing else. What cannot be patched is refused by name before the program starts. Without --wrap not a byte of the
program is touched."""

import os
import pathlib

import cairn_test as t

SOURCE = r"""
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN extern "C" __attribute__((noinline, visibility("hidden")))
static jmp_buf out;
static void *take(size_t) __attribute__((noinline, noclone, used));
static void *take(size_t n) { if (n == 13) throw 1; if (n == 14) longjmp(out, 1); return malloc(n); }
OWN void give(void *p) { free(p); __asm__("" ::: "memory"); }
OWN void *again(void *p, size_t n) { return n > 1u << 30 ? nullptr : realloc(p, n); }
OWN double mixed(size_t n, double a, int b, float c, long d, long e, long f, long g, long h, double i)
{ __asm__("" ::: "memory"); return n + a * 2 + b * 3 + c * 4 + d * 5 + e * 6 + f * 7 + g * 8 + h * 9 + i * 10; }

/* leaves every register but rax alone, as compilers know of functions in their own file */
__asm__(".text\n.type quiet, @function\nquiet:\n leaq 4096(%rdi), %rax\n xorl %eax, %eax\n leaq 65536(%rdi), %rax\n ret\n.size quiet, .-quiet\n"
        ".globl probe\n.type probe, @function\nprobe:\n pushq %rbp\n movq %rsp, %rbp\n pushq %rdi\n pushq %rdi\n"
        " movq %rdi, %rax\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
#ifdef __AVX__
        " vmovups \\n*32(%rax), %ymm\\n\n"
#else
        " movups \\n*32(%rax), %xmm\\n\n"
#endif
        ".endr\n"
        " movl $11, %edi\n movl $12, %esi\n movl $13, %edx\n movl $14, %ecx\n movl $15, %r8d\n movl $16, %r9d\n"
        " movl $17, %r10d\n movl $18, %r11d\n"
        " call quiet\n"
        " pushq %rax\n pushq %rdi\n pushq %rsi\n pushq %rdx\n pushq %rcx\n pushq %r8\n pushq %r9\n pushq %r10\n pushq %r11\n"
        " movq -16(%rbp), %rax\n addq $512, %rax\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
#ifdef __AVX__
        " vmovups %ymm\\n, \\n*32(%rax)\n"
#else
        " movups %xmm\\n, \\n*32(%rax)\n"
#endif
        ".endr\n"
        " addq $512, %rax\n"
        ".irp n, 0,1,2,3,4,5,6,7,8\n popq \\n*8(%rax)\n.endr\n"
        " leave\n ret\n.size probe, .-probe\n");
extern "C" void probe(unsigned char *);
extern "C" void quiet(void);

static void *work(void *) {
  void *kept[50] = {};
  for (int i = 0; i < 5000; i++) { void *&p = kept[i % 50]; if (p) give(p); p = take(100 + i % 50); }
  for (void *p : kept) give(p);
  return nullptr;
}
int main(int argc, char **) {
  alignas(64) static unsigned char area[2048];
  for (int i = 0; i < 512; i++) area[i] = (unsigned char)(i * 37 + 1);
  probe(area);
#ifdef __AVX__
  bool is_same = !memcmp(area, area + 512, 512);
#else
  bool is_same = true;
  for (int i = 0; i < 16; i++) is_same = is_same && !memcmp(area + i * 32, area + 512 + i * 32, 16);
#endif
  uint64_t *words = (uint64_t *)(area + 1024);
  printf("vectors %d:", is_same);
  for (int i = 0; i < 9; i++) printf(" %llu", (unsigned long long)words[i]);
  printf("\n%g\n", mixed(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  int thrown = 0;
  for (int i = 0; i < 20; i++) try { give(take(i % 2 ? 13 : 500)); } catch (int) { thrown++; }
  volatile int jumped = 0;
  for (int i = 0; i < 3; i++) if (!setjmp(out)) take(14); else jumped++;
  void *a = take(1000); a = again(a, 3000); if (again(a, 1ul << 40)) return 1;
  pthread_t threads[4];
  for (pthread_t &one : threads) pthread_create(&one, nullptr, work, nullptr);
  for (pthread_t &one : threads) pthread_join(one, nullptr);
  fflush(stdout);
  pid_t child = fork();
  if (!child) { give(take(70)); _exit(take(80) ? 7 : 1); }
  int status; waitpid(child, &status, 0);
  printf("%d %d %d\n", thrown, jumped, WEXITSTATUS(status));
  if (argc > 1) { unsigned char *code = (unsigned char *)quiet; for (int i = 0; i < 12; i++) printf("%02x", code[i]); puts(""); }
  return 5;
}
"""
TINY = r"""
#include <stdlib.h>
__asm__(".text\n.globl tiny\n.type tiny, @function\ntiny: ret\n.size tiny, .-tiny\n.globl next\n.type next, @function\nnext: ret\n.size next, .-next\n"
        ".globl loops\n.type loops, @function\nloops: decq %rdi\n1: decq %rdi\n jnz 1b\n ret\n nop\n nop\n.size loops, .-loops\n");
static void *chosen(void) { return malloc; }
void *late(size_t) __attribute__((ifunc("chosen")));
void tiny(long), loops(long);
__attribute__((noinline)) void good(void *p) { free(p); __asm__("" ::: "memory"); }
int main(void) { tiny(1); good(NULL); loops(3); return late(3) == NULL; }
"""
SHORT = r"""
#include <stdlib.h>
#define OWN __attribute__((noinline, noclone))
OWN void *own_take(size_t n) { return malloc(n); }
OWN void own_give(void *p) { __asm__("" ::"r"(p) : "memory"); }
OWN void own_next(void *p) { __asm__("" ::"r"(p) : "memory"); }
int main(void) { for (int i = 0; i < 3; i++) own_give(own_take(100)); own_next(own_take(50)); return 0; }
"""
ROOM = "-fpatchable-function-entry=5"
MANGLED = "_ZL4takem"
ROW = f"name=own:alloc={MANGLED}(size=1):realloc=again(ptr=1,size=2):free=give(ptr=1)"
LIES = "name=lies:alloc=quiet(size=1,pool=3):alloc=mixed(out=4,size=2):make=probe(out=1,parent=5,label=6):destroy=none_such(pool=1)"
LYING = "name=lies:alloc=quiet(size=1,pool=3):alloc=mixed(out=4,size=2):make=probe(out=1,parent=5,label=6):label=main(pool=1,label=2):clear=work_clear(pool=2)"


def build():
    known = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").split()
    flags = ["-O2", "-w"] + (["-mavx"] if "avx" in known else [])
    pathlib.Path("own.cc").write_text(SOURCE, encoding="ascii")
    pathlib.Path("tiny.c").write_text(TINY, encoding="ascii")
    for words in (["g++", *flags, "-o", "own", "own.cc", "-pthread"],
                  ["g++", *flags, "-no-pie", "-fno-pie", "-o", "fixed", "own.cc", "-pthread"],
                  ["g++", *flags, "-static-libstdc++", "-o", "stripped", "own.cc", "-pthread", "-s"],
                  ["gcc", "-w", "-o", "tiny", "tiny.c"]):
        made = t.run(words)
        t.check_equal(f"{words}: {made.err.decode()}", made.status, 0)


def pools(recording, *options):
    return {pool["name"]: pool for pool in (t.report(recording, *options) or {}).get("pools", [])}


def check_program(program):
    plain = t.run([program])
    t.check_equal(f"{program} alone", (plain.status, plain.out.splitlines()[0]),
                  (5, b"vectors 1: 18 17 16 15 14 13 12 11 65547"))
    result, recording = t.record([program], options=["--children", "none", "--wrap", ROW])
    t.check_equal(f"{program}: the program", (result.status, result.out, result.err), (5, plain.out, plain.err))
    own = pools(recording).get("own", {})
    blocks = [100 + i % 50 for i in range(5000)]
    t.check_equal(f"{program}: calls", own.get("allocations"), 10 + 2 + 4 * 5000)
    t.check_equal(f"{program}: bytes", own.get("allocated_bytes"), 10 * 500 + 4000 + 4 * sum(blocks))
    t.check_equal(f"{program}: what is left", (own.get("at_exit_blocks"), own.get("at_exit_bytes")), (1, 3000))
    for lie in (LYING.replace(":clear=work_clear(pool=2)", ":clear=give(pool=1)"),
                "name=lies:alloc=mixed(size=6,pool=2):alloc=quiet(out=1,size=2):free=give(ptr=1)",
                "name=lies:current=out:alloc=quiet(size=4):realloc=mixed(ptr=4,size=5):destroy=give(pool=1)",
                f"name=lies:make={MANGLED}(parent=1,label=1):alloc=quiet(pool=1,size=1):move=give(pool=1,parent=1):clear=again(pool=1)"):
        result, _ = t.record([program], options=["--wrap", lie])
        t.check_equal(f"{program}: {lie}", (result.status, result.out, result.err), (5, plain.out, plain.err))


def check_untouched():
    code = t.run(["./own", "code"]).out.splitlines()[-1]
    result, _ = t.record(["./own", "code"])
    t.check_equal("without --wrap: the function's code", result.out.splitlines()[-1], code)
    result, _ = t.record(["./own", "code"], options=["--wrap", "name=q:alloc=quiet(size=1):free=give(ptr=1)"])
    t.check(result.out.splitlines()[-1].startswith(b"e9"), f"with it there is a jump: {result.out}")


def check_refused():
    for row, words in (("alloc=tiny(size=1):free=good(ptr=1)", "tiny: it is too short"), ("alloc=loops(size=1):free=good(ptr=1)", "loops: "),
                       ("alloc=late(size=1):free=good(ptr=1)", "late: it is chosen when the program starts")):
        refused = t.run_cairn("run", "-o", "refused.cairn", "--wrap", row, "./tiny")
        t.check(refused.status == 125 and f"--wrap: {words}" in refused.err.decode() and not os.path.exists("refused.cairn"),
                f"{row}: {refused.status} {refused.err}")
    way_out = t.run_cairn("run", "-o", "refused.cairn", "--wrap", "alloc=tiny(size=1):free=good(ptr=1)", "./tiny").err.decode()
    t.check(ROOM in way_out and "docs/reference/api.md#pools" in way_out, f"what can be done: {way_out}")
    plain = t.run(["./stripped"])
    result, recording = t.record(["./stripped"], options=["--wrap", ROW])
    t.check_equal("stripped: the program", (result.status, result.out), (5, plain.out))
    screen = t.run_cairn("report", "--view", "pools", recording)
    t.check(MANGLED.encode() in screen.out, f"stripped: what is missing is named: {screen}")


def check_way_out():
    """What the refusal of a short function says makes room for a jump."""
    pathlib.Path("short.c").write_text(SHORT, encoding="ascii")
    row = "name=short:alloc=own_take(size=1):free=own_give(ptr=1)"
    for flags in ([], [ROOM]):
        made = t.run(["gcc", "-O1", "-fcf-protection=none", *flags, "-o", "short", "short.c"])
        t.check_equal(f"{flags}: {made.err.decode()}", made.status, 0)
        result = t.run_cairn("run", "-q", "-o", f"short{len(flags)}.cairn", "--wrap", row, "./short")
        t.check_equal(f"short {flags}: {result.err}", result.status, 0 if flags else 125)
    pool = pools("short1.cairn")["short"]
    t.check_equal("short", (pool["allocations"], pool["allocated_bytes"], pool["at_exit_bytes"]), (4, 350, 50))


t.need("gcc", "g++")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
build()
for one in ("./own", "./fixed"):
    check_program(one)
check_untouched()
check_refused()
check_way_out()
t.finish()
