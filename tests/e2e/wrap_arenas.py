#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --wrap of heaps whose blocks lie in arenas: named by the program, within each other, cleared and destroyed at
once, moved, inherited by forks, in a program that keeps its own account; APR's pools, GLib's g_malloc, jemalloc's and
mimalloc's heaps by the real libraries; rows as a table of TOML."""

import json
import os
import pathlib

import cairn_test as t

# Arenas in the executable, none of whose functions has a slot. Their account is the program's own: it prints a line
# for each name: name, arenas made and open, calls, bytes, bytes left.
OWN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
struct block { struct block *next; struct arena *of; size_t size; };
struct arena { struct arena *parent, *child, *next; struct block *blocks; int name; };
static struct { const char *name; long made, open, calls, bytes, left; } names[] = {{"top"}, {"query"}, {"row 'x'"}};
struct arena *present;
static OWN struct arena *arena_make(struct arena *parent, const char *name) {
  struct arena *a = calloc(1, sizeof *a); a->parent = parent;
  while (strcmp(names[a->name].name, name)) a->name++;
  if (parent) { a->next = parent->child; parent->child = a; }
  names[a->name].made++; names[a->name].open++;
  return a;
}
static OWN void *arena_alloc(struct arena *a, size_t n) {
  struct block *b = malloc(sizeof *b + n); b->next = a->blocks; b->of = a; b->size = n; a->blocks = b;
  names[a->name].calls++; names[a->name].bytes += n; names[a->name].left += n;
  return b + 1;
}
static OWN void *take(size_t n) { void *p = arena_alloc(present, n); __asm__("" ::: "memory"); return p; }
static OWN void unlink_block(struct block *b) {
  struct block **at = &b->of->blocks; while (*at != b) at = &(*at)->next; *at = b->next; names[b->of->name].left -= b->size;
}
static OWN void give(void *p) { struct block *b = (struct block *)p - 1; unlink_block(b); free(b); }
static OWN void *again(void *p, size_t n) {
  if (!p) return arena_alloc(present, n);
  struct block *b = (struct block *)p - 1; struct arena *a = b->of; unlink_block(b);
  b = realloc(b, sizeof *b + n); b->next = a->blocks; b->size = n; a->blocks = b;
  names[a->name].calls++; names[a->name].bytes += n; names[a->name].left += n;
  return b + 1;
}
static void arena_end(struct arena *a);
static OWN void arena_clear(struct arena *a) {
  while (a->child) arena_end(a->child);
  for (struct block *b; (b = a->blocks); free(b)) { a->blocks = b->next; names[a->name].left -= b->size; }
}
static OWN void arena_unlink(struct arena *a) {
  if (a->parent) { struct arena **at = &a->parent->child; while (*at != a) at = &(*at)->next; *at = a->next; }
}
static OWN void arena_end(struct arena *a) { arena_clear(a); arena_unlink(a); names[a->name].open--; free(a); }
static OWN void arena_move(struct arena *a, struct arena *parent) {
  arena_unlink(a); a->parent = parent; a->next = parent->child; parent->child = a;
}
static void work(struct arena *top, int n) {
  struct arena *query = arena_make(top, "query"), *kept = arena_make(query, "row 'x'");
  for (int i = 0; i < n; i++) {
    struct arena *row = arena_make(query, "row 'x'");
    present = row;
    for (int k = 0; k < 5; k++) { void *p = take(10 + k); if (k % 2) give(p); else if (k == 4) again(p, 500); }
    arena_alloc(query, 7);
    if (i % 3) arena_end(row); else if (i % 2) arena_clear(row);
  }
  arena_alloc(kept, 1000);
  present = kept; again(NULL, 40);
  arena_move(kept, top);
  arena_end(query);
}
static void tell(void) {
  for (int i = 0; i < 3; i++) printf("%s|%ld|%ld|%ld|%ld|%ld\n", names[i].name, names[i].made, names[i].open, names[i].calls, names[i].bytes, names[i].left);
}
int main(void) {
  struct arena *top = arena_make(NULL, "top");
  for (int i = 0; i < 20; i++) work(top, 50);
  arena_alloc(top, 123);
  tell(); fflush(stdout);
  pid_t child = fork();
  if (!child) { for (int i = 0; i < 20; i++) { arena_alloc(top, 77); work(top, 50); } arena_clear(top); arena_alloc(top, 5); exit(0); }
  waitpid(child, NULL, 0);
  return 0;
}
"""
OWN_ROW = ("name=own:current=present:make=arena_make(parent=1,label=2):alloc=arena_alloc(pool=1,size=2):alloc=take(size=1):"
           "realloc=again(ptr=1,size=2):free=give(ptr=1):clear=arena_clear(pool=1):destroy=arena_end(pool=1):"
           "move=arena_move(pool=1,parent=2)")
OWN_TOML = """# the same
[own]
current = "present"
make = "arena_make(parent=1,label=2)"
alloc = "arena_alloc(pool=1,size=2) take(size=1)"
realloc = "again(ptr=1,size=2)"
free = "give(ptr=1)"
clear = "arena_clear(pool=1)"
destroy = "arena_end(pool=1)"
move = "arena_move(pool=1,parent=2)"
"""
APR = r"""
#include <apr_pools.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  apr_pool_t *top, *request, *sub;
  apr_initialize();
  apr_pool_create(&top, NULL);
  apr_pool_tag(top, "server");
  for (int i = 0; i < 100; i++) {
    apr_pool_create(&request, top);
    apr_pool_tag(request, "request");
    apr_palloc(request, 1000); apr_pcalloc(request, 24); apr_pstrdup(request, "twelve bytes");
    apr_pool_create(&sub, request);
    apr_pool_tag(sub, "subrequest");
    apr_palloc(sub, 50);
    if (i % 2) { apr_pool_clear(request); apr_palloc(request, 10); }
    if (i < 98) apr_pool_destroy(request);
  }
  apr_palloc(top, 5000);
  return 0;
}
"""
GLIB = r"""
#include <glib.h>
int main(void) {
  void *a = g_malloc(1000), *b = g_malloc0_n(10, 50); a = g_realloc(a, 3000); b = g_realloc_n(b, 7, 100);
  char *text = g_strdup("twelve bytes"); GList *list = g_list_append(NULL, a);
  g_free(b); g_free(text); g_list_free(list);
  return g_try_malloc(77) == NULL;
}
"""
# The functions of the row `glib` as GLib 2.76 has them, and with -DOLD as one of before 2.72.
GLIB_LIBRARY = r"""
#include <stdlib.h>
#define SAME(name) void *name(size_t n) { return malloc(n); } void *name##_n(size_t n, size_t each) { return malloc(n * each); }
#define AGAIN(name) void *name(void *p, size_t n) { return realloc(p, n); } void *name##_n(void *p, size_t n, size_t each) { return realloc(p, n * each); }
SAME(g_malloc) SAME(g_malloc0) SAME(g_try_malloc) SAME(g_try_malloc0) AGAIN(g_realloc) AGAIN(g_try_realloc)
void g_free(void *p) { free(p); }
#ifndef OLD
void g_free_sized(void *p, size_t n) { g_free(p); }
void *g_aligned_alloc(size_t n, size_t each, size_t at) { return aligned_alloc(at, n * each); }
void *g_aligned_alloc0(size_t n, size_t each, size_t at) { return aligned_alloc(at, n * each); }
void g_aligned_free(void *p) { free(p); }
void g_aligned_free_sized(void *p, size_t at, size_t n) { free(p); }
#endif
"""
GLIB_NEW = r"""
#include <stddef.h>
void *g_malloc(size_t), *g_aligned_alloc(size_t, size_t, size_t), *g_aligned_alloc0(size_t, size_t, size_t);
void g_free(void *), g_free_sized(void *, size_t), g_aligned_free(void *), g_aligned_free_sized(void *, size_t, size_t);
int main(void) {
  g_free(g_malloc(10)); void *left = g_malloc(20);
#ifndef OLD
  g_free_sized(g_malloc(300), 300); g_aligned_free(g_aligned_alloc(2, 64, 64)); g_aligned_free_sized(g_aligned_alloc0(4, 64, 64), 64, 256);
#endif
  return left == NULL;
}
"""
MIMALLOC = r"""
#include <stdlib.h>
#include <mimalloc.h>
int main(void) {
  mi_heap_t *heap = mi_heap_new();  // which takes a block of its own, of a size that differs by version
  if (getenv("NOTHING")) return 0;
  void *a = mi_heap_malloc(heap, 1000), *b = mi_heap_zalloc(heap, 500); a = mi_heap_realloc(heap, a, 3000);
  mi_free(b); mi_free(mi_heap_calloc(heap, 10, 20));
  mi_heap_t *passing = mi_heap_new();
  for (int i = 0; i < 10; i++) if (!mi_heap_malloc_small(passing, 100)) return 2;
  mi_heap_destroy(passing);
  return a == NULL;
}
"""


def compile_program(name, source, *flags):
    pathlib.Path(f"{name}.c").write_text(source, encoding="ascii")
    made = t.run(["sh", "-c", f"gcc -O1 -w -o {name} {name}.c {' '.join(flags)}"])
    return made.status == 0 or made.err.decode()


def pools(path, process=None):
    options = ["--process", process] if process else []
    found = t.report(path, *options) or {}
    return {pool["name"]: pool for pool in found.get("pools", [])}


def figures(pool):
    return [pool[key] for key in ("made", "destroyed", "allocations", "allocated_bytes", "at_exit_bytes")]


def check_own():
    t.check_equal("gcc", compile_program("own", OWN), True)
    pathlib.Path("own.toml").write_text(OWN_TOML, encoding="ascii")
    for what, row in (("a row", OWN_ROW), ("a table of TOML", "@own.toml")):
        result, recording = t.record(["./own"], options=["--wrap", row, "--children", "none"])
        t.check_equal(f"{what}: status", (result.status, result.err), (0, b""))
        found = pools(recording)
        for line in result.out.decode().splitlines():
            name, *told = line.split("|")
            made, is_open, calls, size, left = map(int, told)
            # the outermost call of a heap counts, and what it gives back is looked up
            t.check_equal(f"{what}: {name}: made, destroyed, calls, bytes, left", figures(found.get(f"own/{name}", {}) or
                          {key: 0 for key in ("made", "destroyed", "allocations", "allocated_bytes", "at_exit_bytes")}),
                          [made, made - is_open, calls, size, left])
    summary = t.run_cairn("report", recording).out.decode()
    t.check("  pools  " in summary and summary.count("left: own/") == 3, f"the summary names them: {summary[:800]}")
    bad = pathlib.Path("bad.toml")
    for text, words in (("[a]\nalloc = \"f(size=1)\"\n", "needs alloc and free"), ("[a]\nalloc = \"f(size=9)\"\n", "1 to 6"),
                        ("alloc =\n", "bad.toml:1"), ("[a]\nclear = \"f(size=1)\"\n", "size is of"),
                        ("[a]\nmake = \"f(pool=1)\"\n", "pool is of"), ("[a]\nmove = \"f(pool=1)\"\n", "it needs parent")):
        bad.write_text(text, encoding="ascii")
        refused = t.run_cairn("run", "--wrap", "@bad.toml", "true")
        t.check(refused.status == 2 and words in refused.err.decode(), f"{text}: {refused.status} {refused.err}")


def check_fork():
    _, run = t.record(["./own"], options=["--wrap", OWN_ROW])
    listed = t.run_cairn("report", "--json", run)
    t.check_equal("a run of two", listed.status, 0)
    processes = json.loads(listed.out).get("processes", [])
    pids = {one["process"]["pid"] for one in processes}
    child = next((one for one in processes if one["process"]["ppid"] in pids), None)
    if not t.check(child, f"the child: {listed.out[:300]}"):
        return
    found = {pool["name"]: pool for pool in child.get("pools", [])}
    t.check_equal("the child: what is left of top", found["own/top"]["at_exit_bytes"], 5)
    t.check_equal("the child: rows of its parent are gone", found["own/row 'x'"]["at_exit_bytes"], 0)


def check_apr():
    built = compile_program("apr", APR, "$(pkg-config --cflags --libs apr-1)")
    if built is not True:
        return t.skip_part("libapr1-dev is not installed")
    result, recording = t.record(["./apr"], options=["--wrap", "apr-pools"])
    t.check_equal("APR: status", (result.status, result.err), (0, b""))
    found = pools(recording)
    t.check_equal("APR: server", figures(found["APR pools/server"]), [1, 0, 1, 5000, 5000])
    t.check_equal("APR: request", figures(found["APR pools/request"]),
                  [100, 98, 100 * 3 + 50, 100 * (1000 + 24 + 13) + 50 * 10, 1037 + 10])
    t.check_equal("APR: subrequest", figures(found["APR pools/subrequest"]), [100, 99, 100, 5000, 50])
    return None


def check_libraries():
    for name, source, flags, row, heap, wanted in (
            ("glib", GLIB, "$(pkg-config --cflags --libs glib-2.0)", "glib", "glib", (5, 1000 + 500 + 3000 + 700 + 77, 3077)),  # not what GLib calls within itself
            ("mi", MIMALLOC, "-lmimalloc", "mimalloc-heaps", "mimalloc heaps", (14, 1000 + 500 + 3000 + 200 + 1000, 3000))):
        built = compile_program(name, source, flags)
        if built is not True:
            t.skip_part(f"{name}: its library is not installed for building")
            continue
        result, recording = t.record([f"./{name}"], options=["--wrap", row])
        t.check_equal(f"{name}: status", (result.status, result.err), (0, b""))
        keys = ("allocations", "allocated_bytes", "at_exit_bytes")
        pool = pools(recording).get(heap, {})
        _, alone = t.record([f"./{name}"], env={"NOTHING": "1"}, options=["--wrap", row]) if name == "mi" else (None, None)
        own = pools(alone).get(heap, {}) if alone else {}
        t.check_equal(f"{name}: calls, bytes, left", tuple(pool.get(key, 0) - own.get(key, 0) for key in keys), wanted)


def check_versions():
    """Functions that a library has in some versions only: in a library of the same interface."""
    for what, flag, wanted in (("GLib 2.76", "", [1, 0, 5, 10 + 20 + 300 + 128 + 256, 20]), ("GLib of before", "-DOLD", [1, 0, 2, 30, 20])):
        pathlib.Path("libg.c").write_text(GLIB_LIBRARY, encoding="ascii")
        made = t.run(["sh", "-c", f"gcc -w -shared -fPIC -O1 {flag} -o libg.so libg.c"])
        t.check_equal(f"{what}: {made.err.decode()}", (made.status, compile_program("new", GLIB_NEW, flag, "-L. -lg -Wl,-rpath,$PWD")), (0, True))
        result, recording = t.record(["./new"], options=["--wrap", "glib"])
        t.check_equal(f"{what}: status", (result.status, result.err), (0, b""))
        t.check_equal(f"{what}: made, destroyed, calls, bytes, left", figures(pools(recording)["glib"]), wanted)
        said = t.run_cairn("report", recording).out.decode()
        t.check("g_free_sized" not in said and "g_aligned" not in said, f"{what}: what may lack is not said: {said}")
    refused = t.run_cairn("run", "--wrap", "alloc=f(size=1):free?=g(ptr=1)", "true")
    t.check(refused.status == 2 and b"a heap needs alloc and free" in refused.err, f"{refused}")
    for row in ("?=f(size=1)", "alloc??=f(size=1):free=g(ptr=1)"):
        refused = t.run_cairn("run", "--wrap", row, "true")
        t.check(refused.status == 2 and b"not one of alloc" in refused.err, f"{row}: {refused}")


t.need("gcc", "pkg-config")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
check_own()
check_fork()
check_apr()
check_libraries()
check_versions()
t.finish()
