#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --wrap: allocators of libraries by name, each a heap of its own, exact beside a program that counts itself;
arguments and results of every kind come through, exceptions and threads too; rows that lie change figures and nothing
else; what is missing is named; libraries that are loaded later; rows that are wrong are refused."""

import os
import pathlib

import cairn_test as t

LIBRARY = r"""
#include <cstdlib>
#include <cstdint>
#include <cerrno>
#include <cstdarg>
#include <new>
#include <immintrin.h>
extern "C" {
void *my_alloc(size_t n) { return malloc(n + 16); }
void *my_calloc(size_t c, size_t n) { void *p = my_alloc(c * n); for (size_t i = 0; i < c * n; i++) ((char *)p)[i] = 0; return p; }
void *my_realloc(void *p, size_t n) { return n > 1u << 30 ? nullptr : realloc(p, n); }
void my_free(void *p) { free(p); }
void *my_throwing(size_t n) { if (n > 1000) throw std::bad_alloc(); return malloc(n); }
int cudaMalloc(void **out, size_t n) { static uintptr_t next = 0x700000000000; if (n > 1000000) return 2; *out = (void *)(next += 4096); return 0; }
int cudaFree(void *) { return 0; }
double mix(size_t n, double a, int b, float c, long d, long e, long f, long g, long h, double i, double j, double k, double l, double m, double o, double p)
{ return n + a*2 + b*3 + c*4 + d*5 + e*6 + f*7 + g*8 + h*9 + i*10 + j*11 + k*12 + l*13 + m*14 + o*15 + p*16; }
long double wide(size_t n) { errno = 77; return n * 0.5L; }
double variadic(int n, ...) { va_list v; va_start(v, n); double sum = 0; for (int i = 0; i < n; i++) sum += va_arg(v, double); va_end(v); return sum; }
struct pair { long a, b; };
pair two(size_t n) { return {(long)n, (long)n + 1}; }
struct mixed { double a; long b; };
mixed both(size_t n) { return {n * 0.5, (long)n + 2}; }
#ifdef __AVX__
__m256d vec(size_t n, __m256d a, __m256d b) { return _mm256_add_pd(a, _mm256_mul_pd(b, _mm256_set1_pd(n))); }
#endif
#ifdef __AVX512F__
__m512d vec5(size_t n, __m512d a) { return _mm512_mul_pd(a, _mm512_set1_pd(n)); }
#endif
}
"""
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cerrno>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <immintrin.h>
extern "C" {
void *my_alloc(size_t), *my_calloc(size_t, size_t), *my_realloc(void *, size_t), *my_throwing(size_t); void my_free(void *);
int cudaMalloc(void **, size_t), cudaFree(void *);
double mix(size_t n, double a, int b, float c, long d, long e, long f, long g, long h, double i, double j, double k, double l, double m, double o, double p);
struct pair { long a, b; }; pair two(size_t n); struct mixed { double a; long b; }; mixed both(size_t n); long double wide(size_t);
double variadic(int n, ...);
__m256d vec(size_t n, __m256d a, __m256d b); __m512d vec5(size_t n, __m512d a);
}
static void *work(void *) {
  void *kept[100] = {};
  for (int i = 0; i < 20000; i++) { void *&p = kept[i % 100]; if (p) my_free(p); p = my_alloc(100 + i % 100); }
  for (void *p : kept) my_free(p);
  return NULL;
}
int main(int argc, char **) {
  void *d;
  void *a = my_alloc(1000), *b = my_calloc(10, 50);
  a = my_realloc(a, 3000); if (my_realloc(b, 1ul << 40)) return 1;
  my_free(b); cudaMalloc(&d, 5000); cudaMalloc(&d, 7000); cudaFree(d); if (cudaMalloc(&d, 2000000) != 2) return 1;
  int thrown = 0;
  for (int i = 0; i < 50; i++) try { my_free(my_throwing(i % 2 ? 2000 : 500)); } catch (std::bad_alloc &) { thrown++; }
  printf("%f %d\n", mix(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16), thrown);
  pair t = two(5); mixed u = both(7); errno = 0; long double w = wide(9);
  printf("%ld %ld %g %ld %Lf %d %g\n", t.a, t.b, u.a, u.b, w, errno, variadic(10, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.));
#ifdef __AVX__
  double out[8]; _mm256_storeu_pd(out, vec(3, _mm256_set_pd(1,2,3,4), _mm256_set_pd(5,6,7,8))); printf("%g %g %g %g\n", out[0], out[1], out[2], out[3]);
#endif
#ifdef __AVX512F__
  _mm512_storeu_pd(out, vec5(3, _mm512_set_pd(1,2,3,4,5,6,7,8))); printf("%g %g\n", out[0], out[7]);
#endif
  pthread_t threads[4];
  for (pthread_t &one : threads) pthread_create(&one, NULL, work, NULL);
  for (pthread_t &one : threads) pthread_join(one, NULL);
  void *later = dlopen("./liblater.so", RTLD_NOW);
  if (!later) return 9;
  dlopen("libm.so.6", RTLD_NOW);
  ((void (*)(void))dlsym(later, "use"))();
  return 5;
}
"""
LATER = """
#include <stddef.h>
void *my_alloc(size_t); void my_free(void *);
void use(void) { my_free(my_alloc(123456)); }
"""
MINE = "name=mine:alloc=my_alloc(size=1):calloc=my_calloc(count=1,size=2):realloc=my_realloc(ptr=1,size=2):free=my_free(ptr=1)"


def pools(recording):
    return {pool["name"]: pool for pool in (t.report(recording) or {}).get("pools", [])}


def build():
    for name, text in (("lib.cc", LIBRARY), ("main.cc", PROGRAM), ("later.c", LATER)):
        pathlib.Path(name).write_text(text, encoding="ascii")
    known = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").split()
    flags = ["-O1", "-w"] + [flag for word, flag in (("avx", "-mavx"), ("avx512f", "-mavx512f")) if word in known]
    for words in (["g++", *flags, "-shared", "-fPIC", "-o", "libmy.so", "lib.cc"],
                  ["gcc", "-shared", "-fPIC", "-o", "liblater.so", "later.c", "-L.", "-lmy"],
                  ["g++", *flags, "-o", "lazy", "main.cc", "-Wl,-z,lazy", "-L.", "-lmy", "-Wl,-rpath,.", "-pthread"],
                  ["g++", *flags, "-fno-plt", "-o", "now", "main.cc", "-Wl,-z,now", "-L.", "-lmy", "-Wl,-rpath,.", "-pthread"],
                  ["g++", *flags, "-no-pie", "-o", "fixed", "main.cc", "-L.", "-lmy", "-Wl,-rpath,.", "-pthread"]):
        made = t.run(words)
        t.check_equal(f"{words[0]}: {made.err.decode()}", made.status, 0)


def check_heaps(program):
    plain = t.run([program])
    t.check_equal(f"{program} alone", plain.status, 5)
    lying = "name=lies:alloc=mix(size=1):alloc=two(size=3):alloc=both(size=4):alloc=wide(size=5):alloc=variadic(out=6,size=2):free=vec(ptr=4)"
    result, recording = t.record([program], options=["--wrap", MINE, "--wrap", "cuda", "--wrap", lying,
                                                     "--wrap", "name=throws:alloc=my_throwing(size=1):free=my_free2(ptr=1)"])
    t.check_equal(f"{program}: the program", (result.status, result.out, result.err), (5, plain.out, plain.err))
    found = pools(recording)
    mine = found["mine"]
    blocks = [100 + i % 100 for i in range(20000)]
    t.check_equal(f"{program}: calls", mine["allocations"], 3 + 4 * 20000 + 1)
    t.check_equal(f"{program}: bytes", mine["allocated_bytes"], 1000 + 500 + 3000 + 4 * sum(blocks) + 123456)
    t.check_equal(f"{program}: what is left", (mine["at_exit_blocks"], mine["at_exit_bytes"]), (1, 3000))
    t.check(mine["peak_bytes"] >= 3000 + 123456, f"peak: {mine}")
    cuda = found["cuda (device)"]
    t.check_equal("cuda", (cuda["allocations"], cuda["allocated_bytes"], cuda["at_exit_bytes"]), (2, 12000, 5000))
    screen = t.run_cairn("report", "--view", "pools", recording)
    t.check(b"throws: my_free2 is in no library" in screen.out + screen.err, f"what is missing: {screen.out}")


MISSING = r"""
#include <stdio.h>
#include <stdlib.h>
static struct pool { int calls; } pool;
static __attribute__((noinline)) void *pool_alloc(struct pool *from, size_t size, int zero) { from->calls += zero; return malloc(size); }
static __attribute__((noinline)) void pool_free(struct pool *from, void *block) { from->calls--; free(block); }
int main(void) { for (volatile int i = 1; i < 9; i++) pool_free(&pool, pool_alloc(&pool, (size_t)i * 8, 0)); return 3; }
"""


def check_missing():
    """A function that the compiler renamed, or that nobody has, is named by the summary, also of several processes."""
    pathlib.Path("missing.c").write_text(MISSING)
    t.check_equal("gcc", t.run(["gcc", "-O2", "-o", "missing", "missing.c"]).status, 0)
    row = ["--wrap", "alloc=pool_alloc(size=2):free=pool_free(ptr=2):realloc=pool_grow(ptr=1,size=2)"]
    for words, status in ((["./missing"], 3), (["sh", "-c", "./missing; ./missing"], 3)):
        result = t.run_cairn("run", *row, "-o", t.fresh_path("missing"), "--", *words)
        t.check_equal(f"missing {words}: status", result.status, status)
        lines = [line.strip() for line in result.err.decode().splitlines() if "nothing of this heap" in line]
        t.check_equal(f"missing {words}: named once each", len(lines), 3)
        for name in ("pool_alloc", "pool_free"):
            t.check(any(f"{name} is in no library" in line and f"made {name}.constprop.0 of it" in line for line in lines),
                    f"missing {words}: {lines}")
        t.check(any("pool_grow is in no library" in line and line.endswith("counted") for line in lines), f"{lines}")


def check_throwing():
    row = "name=both:alloc=my_alloc(size=1):alloc=my_throwing(size=1):free=my_free(ptr=1)"
    result, recording = t.record(["./now"], options=["--wrap", row])
    plain = t.run(["./now"])
    t.check_equal("exceptions", (result.status, result.out, result.err), (5, plain.out, plain.err))
    # calloc and realloc are not of this row: what calloc calls within the library is the library's affair
    t.check_equal("calls beside exceptions", pools(recording)["both"]["allocations"], 1 + 25 + 80000 + 1)


def check_own_calls():
    """Functions that cairn's own library calls: its hooks do not call themselves."""
    plain = t.run(["sort", "main.cc"])
    row = "name=lies:alloc=__errno_location(size=5):free=memchr(ptr=1):realloc=memcpy(ptr=3,size=2):alloc=strlen(size=1):make=memset(parent=2)"
    result, _ = t.record(["sort", "main.cc"], options=["--wrap", row])
    t.check_equal("functions that cairn calls", (result.status, result.out), (0, plain.out))


def check_rows():
    pathlib.Path("rows").write_text(f"# heaps\n\n  {MINE}  # ours\ncuda\n", encoding="ascii")
    result, recording = t.record(["./now"], options=["--wrap", "@rows"])
    t.check_equal("rows of a file", (result.status, sorted(pools(recording))), (5, ["cuda (device)", "mine"]))
    pathlib.Path("bad").write_text("cuda\nalloc=f(size=9):free=g(ptr=1)\n", encoding="ascii")
    for row, said in (("alloc=f(size=1)", "needs alloc and free"), ("free=f(ptr=1)", "needs alloc and free"),
                      ("alloc=f(size=7):free=g(ptr=1)", "1 to 6"), ("alloc=f(ptr=1):free=g(ptr=1)", "size=N"),
                      ("alloc=f(size=1):free=g()", "it needs ptr=N"), ("alloc=f(size=1):free=f(ptr=1)", "twice"),
                      ("make=f(size=1):free=g(ptr=1)", "make"), ("alloc=1f(size=1):free=g(ptr=1)", "1f"),
                      ("alloc=f(size=1:free=g(ptr=1)", "f"), ("cudaa", "cudaa"), ("@missing", "missing"),
                      ("@bad", "bad:2"), ("name=a|b:alloc=f(size=1):free=g(ptr=1)", "no name of a heap"),
                      ("alloc=f(size=1):free=g(ptr=1,out=2)", "out is of"), ("", "alloc=NAME"),
                      ("alloc=setjmp(size=1):free=g(ptr=1)", "setjmp: it does not return"), ("alloc=f(size=1):free=vfork(ptr=1)", "vfork: "), ("alloc=f(size=1):free=free(ptr=1)", "free: it is of the heap")):
        refused = t.run_cairn("run", "--wrap", row, "true")
        t.check_equal(f"{row}: status", (refused.status, refused.out), (2, b""))
        t.check(said.encode() in refused.err, f"{row}: {refused.err}")


def check_real():
    if not t.run(["sh", "-c", "ldconfig -p | grep -q libjemalloc.so.2"]).status == 0:
        return t.skip_part("libjemalloc2 is not installed")
    pathlib.Path("je.c").write_text("#include <stddef.h>\nvoid *mallocx(size_t, int), *rallocx(void *, size_t, int); void dallocx(void *, int), sdallocx(void *, size_t, int);\n"
                                    "int main(void) { void *p = mallocx(5000, 0); p = rallocx(p, 9000, 0); dallocx(p, 0); sdallocx(mallocx(70, 0), 70, 0); return mallocx(100, 0) == NULL; }\n", encoding="ascii")
    built = t.run(["gcc", "-o", "je", "je.c", "-l:libjemalloc.so.2"])
    t.check_equal(f"gcc: {built.err.decode()}", built.status, 0)
    result, recording = t.record(["./je"], options=["--wrap", "jemalloc-mallocx"])
    t.check_equal("jemalloc", (result.status, result.err), (0, b""))
    heap = pools(recording).get("jemalloc mallocx", {})
    t.check_equal("its heap", (heap.get("allocations"), heap.get("allocated_bytes"), heap.get("at_exit_bytes")), (4, 14170, 100))


t.need("gcc", "g++")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
build()
for program in ("./lazy", "./now", "./fixed"):
    check_heaps(program)
check_throwing()
check_missing()
check_own_calls()
check_rows()
check_real()
t.finish()
