#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is known of the blocks of a heap by name beside its sums: what stacks held at snapshots, since marks and between
them, sizes, ages, growth, and names within the heap over time. Two heaps change at random, with reallocs, some that
fail, arenas that are cleared and get other names; the program keeps a model of its own and prints it, at snapshots and in
the end, and each figure is equal to it. In forks, and in a recording from before all this was recorded."""

import json
import os
import pathlib
import re
import subprocess

import cairn_test as t

RANDOM = r"""
#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
enum { MINE, AREAS, SITES = 3, NAMES = 3, SIZES = 30, MOST = 400, ARENAS = 6, AGES = 33 };
struct arena { int name; };
static const char *const names[] = {"red", "green", "blue"};
static volatile long calls;
OWN void *mine_alloc(size_t n) { __asm__("" ::"r"(n) : "memory"); return malloc(n); }
OWN void mine_free(void *p) { __asm__("" ::"r"(p) : "memory"); free(p); }
OWN void *mine_again(void *p, size_t n) { __asm__("" ::: "memory"); return n > 1 << 20 ? NULL : realloc(p, n); }
OWN struct arena *arena_make(const char *name) { __asm__("" ::"r"(name) : "memory"); return malloc(sizeof(struct arena)); }
OWN void *arena_take(struct arena *a, size_t n) { __asm__("" ::"r"(a) : "memory"); return malloc(n); }
OWN void arena_drop(void *p) { __asm__("" ::"r"(p) : "memory"); free(p); }
OWN void arena_name(struct arena *a, const char *name) { calls++; __asm__("" ::"r"(a), "r"(name) : "memory"); }
OWN void arena_clear(struct arena *a) { calls++; __asm__("" ::"r"(a) : "memory"); }

/* The model. */
static struct block { void *p; int heap, site, arena; size_t size; unsigned birth, generation; } blocks[MOST];
static int count;
static unsigned births[2], generation;
static struct sum { long bytes, blocks, calls, frees, sizes[SIZES + 1], ages[AGES]; } sums[2][NAMES][SITES];
static struct arena *arenas[ARENAS];
static unsigned long seed = SEED;
static unsigned pick(unsigned n) { seed = seed * 6364136223846793005ul + 1442695040888963407ul; return (seed >> 33) % n; }
static int name_of(const struct block *b) { return b->heap == AREAS ? arenas[b->arena]->name : 0; }
static struct sum *sum_of(const struct block *b) { return &sums[b->heap][name_of(b)][b->site]; }
static size_t size_at(int i) { return i == SIZES ? (5ul << 30) : (i + 1) * 240; }
static int index_of(size_t size) { return size > 1 << 20 ? SIZES : size / 240 - 1; }
static void born(struct block b) {
  b.birth = ++births[b.heap]; b.generation = generation; blocks[count++] = b;
  struct sum *s = sum_of(&b); s->bytes += b.size; s->blocks++; s->calls++; s->sizes[index_of(b.size)]++;
}
static void died(int i) {
  struct block b = blocks[i]; struct sum *s = sum_of(&b); unsigned age = births[b.heap] - b.birth, bits = 0;
  for (; age; age /= 2) bits++;
  s->bytes -= b.size; s->blocks--; s->frees++; s->ages[bits]++; blocks[i] = blocks[--count];
}

OWN static void *take_at(int heap, int arena, size_t n) { return heap == MINE ? mine_alloc(n) : arena_take(arenas[arena], n); }
OWN static void *site_0(int heap, int arena, size_t n) { void *p = take_at(heap, arena, n); calls++; return p; }
OWN static void *site_1(int heap, int arena, size_t n) { void *p = take_at(heap, arena, n); calls += 2; return p; }
OWN static void *again_2(void *old, size_t n) { void *p = mine_again(old, n); calls += 3; return p; }
static void *(*const sites[])(int, int, size_t) = {site_0, site_1};

static void step(void) {
  unsigned what = pick(100);
  if (what < 55 && count < MOST) {
    struct block b = {.heap = pick(2), .site = pick(2), .arena = pick(ARENAS), .size = size_at(pick(8) ? pick(5) : pick(SIZES))};
    b.p = sites[b.site](b.heap, b.arena, b.size); born(b);
  } else if (what < 90 && count) {
    int i = pick(count); struct block b = blocks[i];
    died(i); if (b.heap == MINE) mine_free(b.p); else arena_drop(b.p);
  } else if (what < 97 && count) {
    int i = pick(count); struct block b = blocks[i];
    if (b.heap != MINE) return;
    if (!pick(3)) { if (again_2(b.p, 1ul << 40)) abort(); return; }
    died(i); b.site = 2; b.size = size_at(pick(SIZES)); b.p = again_2(b.p, b.size); born(b);
  } else if (what < 98) {
    int a = pick(ARENAS);
    for (int i = count; i-- > 0;) if (blocks[i].heap == AREAS && blocks[i].arena == a) died(i);
    arena_clear(arenas[a]);
  } else if (what == 98) {
    int a = pick(ARENAS), to = pick(NAMES), was = arenas[a]->name;
    for (int i = 0; i < count; i++) {
      struct block *b = &blocks[i];
      if (b->heap != AREAS || b->arena != a || to == was) continue;
      struct sum *from = &sums[AREAS][was][b->site], *into = &sums[AREAS][to][b->site];
      int at = index_of(b->size);
      from->bytes -= b->size; from->blocks--; from->calls--; from->sizes[at]--;
      into->bytes += b->size; into->blocks++; into->calls++; into->sizes[at]++;
    }
    arenas[a]->name = to; arena_name(arenas[a], names[to]);
  }
}
static void print_held(const char *label) {
  for (int h = 0; h < 2; h++) for (int n = 0; n < (h ? NAMES : 1); n++) for (int s = 0; s < SITES; s++)
    printf("held %s %d %s %d %ld %ld\n", label, h, h ? names[n] : "-", s, sums[h][n][s].bytes, sums[h][n][s].blocks);
}
static void print_all(void) {
  for (int h = 0; h < 2; h++) for (int n = 0; n < (h ? NAMES : 1); n++) for (int s = 0; s < SITES; s++) {
    const struct sum *sum = &sums[h][n][s];
    printf("calls %d %s %d %ld %ld", h, h ? names[n] : "-", s, sum->calls, sum->frees);
    for (int i = 0; i <= SIZES; i++) printf(" %zu:%ld", size_at(i), sum->sizes[i]);
    for (int i = 0; i < AGES; i++) printf(" %ld", sum->ages[i]);
    printf("\n");
  }
  for (int h = 0; h < 2; h++) {
    long young = 0;
    for (int i = 0; i < count; i++) if (blocks[i].heap == h && blocks[i].generation) young += blocks[i].size;
    printf("young %d %ld\n", h, young);
  }
}
int main(int argc, char **argv) {
  char label[16];
  setvbuf(stdout, NULL, _IONBF, 0);
  for (int i = 0; i < ARENAS; i++) { arenas[i] = arena_make(names[i % NAMES]); arenas[i]->name = i % NAMES; }
  for (int k = 0; k < 12; k++) {
    for (int i = 0; i < 700; i++) step();
    snprintf(label, sizeof label, "at%d", k);
    if (k == 6) { cairn_mark(label); generation++; } else cairn_snapshot(label);
    print_held(label);
  }
  if (argc > 1) {
    for (int i = 0; i < 2; i++) births[i] = 0;
    pid_t child = fork();
    if (child) { waitpid(child, NULL, 0); return 0; }
    for (int i = 0; i < 700; i++) step();
    cairn_snapshot("child");
    print_held("child");
    for (int i = 0; i < 3000; i++) step(); /* fewer are no recording's */
    exit(0);
  }
  for (int i = 0; i < 100; i++) step();
  print_all();
  return 0;
}
"""
ROWS = ["--wrap", "name=mine:alloc=mine_alloc(size=1):realloc=mine_again(ptr=1,size=2):free=mine_free(ptr=1)",
        "--wrap", "name=areas:make=arena_make(label=1):alloc=arena_take(pool=1,size=2):free=arena_drop(ptr=1):"
                  "clear=arena_clear(pool=1):label=arena_name(pool=1,label=2)"]
SITES = "site_0", "site_1", "again_2"
HEAPS = "mine", "areas"


def make(name, text, *flags):
    pathlib.Path(f"{name}.c").write_text(text, encoding="ascii")
    made = t.run(["gcc", "-O1", "-g", "-w", "-I", str(t.SOURCE / "include"), *flags, "-o", name, f"{name}.c"])
    t.check_equal(f"gcc: {made.err.decode()}", made.status, 0)


def read_model(out):
    """What the program printed: by label and heap or name, bytes and blocks by site; and the rows at its end."""
    held, calls, young = {}, {}, {}
    for line in out.splitlines():
        words = line.split()
        if words[0] == "held":
            label, heap, name, site, size, blocks = words[1], HEAPS[int(words[2])], words[3], SITES[int(words[4])], *map(int, words[5:])
            for path in (heap, f"{heap}/{name}"):
                sums = held.setdefault((label, path), {})
                sums[site] = tuple(a + b for a, b in zip(sums.get(site, (0, 0)), (size, blocks)))
        elif words[0] == "calls":
            calls[HEAPS[int(words[1])], words[2], SITES[int(words[3])]] = words[4:]
        elif words[0] == "young":
            young[HEAPS[int(words[1])]] = int(words[2])
    return held, calls, young


def site_of(stack):
    return next(name for name in t.functions(stack) if name in SITES)


def held_at(recording, heap, label, *options):
    found = {}
    for one in t.report(recording, "--heap", heap, "--at", label, *options)["stacks"]:
        before = found.get(site_of(one), (0, 0))
        found[site_of(one)] = tuple(a + b for a, b in zip(before, (one["at_bytes"], one["at_blocks"])))
    return {site: values for site, values in found.items() if values != (0, 0)}


def without_nothing(sums):
    return {site: values for site, values in sums.items() if values != (0, 0)}


def check_held(recording, held):
    for (label, heap), wanted in held.items():
        if not heap.endswith("/-"):
            t.check_equal(f"{heap} at {label}", held_at(recording, heap, label), without_nothing(wanted))


def check_snapshots(recording, held):
    """What the view says of a snapshot is the sum; those that the heap brought about have its name."""
    for heap in HEAPS:
        listed = t.report(recording, "--heap", heap)["snapshots"]
        by_label = {one["label"]: (one["live_bytes"], one["live_blocks"]) for one in listed if one["label"]}
        wanted = {label: tuple(map(sum, zip(*sums.values()))) for (label, path), sums in held.items() if path == heap}
        t.check_equal(f"{heap}: snapshots", by_label, wanted)
        t.check(any(one["reason"] == "high" and one.get("heap") == heap for one in listed), f"{heap}: its own highs: {listed}")
    shown = t.run_cairn("report", "--heap", "mine", "--view", "snapshots", recording).out.decode()
    t.check(re.search(r'at +live +blocks\n', shown) and "new high-water mark (mine)" in shown and 'mark "at6"' in shown, shown)


def bits(number):
    return number.bit_length()


def by_model(calls, heap, path, site):
    """Sizes, how often each, the ages and the calls of a site in a heap or a name within it."""
    sizes, ages, number = {}, [0] * 33, 0
    for (of, name, own), row in calls.items():
        if of != heap or own != site or path not in (heap, f"{heap}/{name}"):
            continue
        number += int(row[0])
        for size, count in (map(int, word.split(":")) for word in row if ":" in word):
            sizes[size] = sizes.get(size, 0) + count
        ages = [a + int(b) for a, b in zip(ages, row[-33:])]
    return sizes, ages, number


def added(lists, length):
    return [sum(values) for values in zip(*(one + [0] * (length - len(one)) for one in lists))]


def check_site(what, found, sizes, ages, number):
    buckets = [0] * 65
    for size, count in sizes.items():
        buckets[bits(size)] += count
    t.check_equal(f"{what}: calls", (sum(one["allocations"] for one in found), sum(one["sizes"]["unknown"] for one in found)), (number, 0))
    t.check_equal(f"{what}: sizes by bits", added([one["sizes"]["log2"] for one in found], 65), buckets)
    least, doubtful = {}, set()
    for one in found:
        listed = {size["size"]: size for size in one["sizes"]["exact"]}
        for size in sizes:
            least[size] = least.get(size, 0) + listed.get(size, {"count": 0})["count"]
            if size not in listed or listed[size]["at_least"]:
                doubtful.add(size)
    for size, count in sizes.items():
        is_right = least[size] <= count if size in doubtful else least[size] == count
        t.check(is_right, f"{what}: {size} B: {'at least ' if size in doubtful else ''}{least[size]}, {count} by the model")
    aged = [one.get("ages", {"calls": [0], "ms": [0]}) for one in found]
    t.check_equal(f"{what}: ages", added([one["calls"] for one in aged], 33), ages)
    t.check_equal(f"{what}: frees with an age", sum(sum(one["ms"]) for one in aged), sum(ages))
    return sum(size not in doubtful for size in sizes)


def check_blocks(recording, calls):
    """Sizes and ages of all blocks of each site."""
    exact = 0
    for heap, paths in (("mine", ["mine"]), ("areas", ["areas", "areas/red", "areas/green", "areas/blue"])):
        for path in paths:
            stacks = t.report(recording, "--heap", path)["stacks"]
            for site in {site_of(one) for one in stacks}:
                exact += check_site(f"{path}, {site}", [one for one in stacks if site_of(one) == site], *by_model(calls, heap, path, site))
    t.check(exact > 20, f"sizes whose number is exact: {exact}")


def check_since(recording, held, young):
    for heap in HEAPS:
        found = t.report(recording, "--heap", heap, "--since", "at6")["stacks"]
        t.check_equal(f"{heap}: since the mark", sum(one["at_bytes"] for one in found), young[heap])
        between = {}
        for one in t.report(recording, "--heap", heap, "--between", "at2,at9")["stacks"]:
            between[site_of(one)] = between.get(site_of(one), 0) + one["at_bytes"]
        wanted = {site: held["at9", heap][site][0] - held["at2", heap][site][0] for site in SITES if site in held["at9", heap]}
        t.check_equal(f"{heap}: more at 9 than at 2", {site: between.get(site, 0) for site in wanted}, wanted)


def check_random():
    for seed in (1, 7):
        make("random", RANDOM, f"-DSEED={seed}ul")
        for options in ([], ["--ages"]):
            result, recording = t.record(["./random"], options=ROWS + options)
            t.check_equal("status", result.status, 0)
            held, calls, young = read_model(result.out.decode())
            if options:
                check_blocks(recording, calls)
                continue
            t.check("ages" not in t.report(recording, "--heap", "mine")["stacks"][0], "without --ages there are none")
            check_held(recording, held)
            check_snapshots(recording, held)
            check_since(recording, held, young)
    return recording


def check_fork():
    """A child's snapshots are its own; blocks from before the fork are in them."""
    result, recording = t.record(["./random", "fork"], options=ROWS)
    held, _, _ = read_model(result.out.decode())
    processes = json.loads(t.run_cairn("report", "--json", recording).out).get("processes", [])
    pids = {one["process"]["pid"] for one in processes}
    child = next((one["process"]["pid"] for one in processes if one["process"]["ppid"] in pids), None)
    if not t.check(child, f"the child has a recording: {pids}"):
        return
    for heap in ("mine", "areas", "areas/red"):
        t.check_equal(f"{heap} in the child", held_at(recording, heap, "child", "--process", str(child)), without_nothing(held["child", heap]))
        parent = next(iter(pids - {child}))
        t.check_equal(f"{heap} in the parent", held_at(recording, heap, "at11", "--process", str(parent)), without_nothing(held["at11", heap]))


THREADS = r"""
#include <cairn/cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define OWN __attribute__((noinline, noclone))
enum { COUNT = 4, ROUNDS = 6, STEPS = 3000, SLOTS = 200 };
static volatile long calls;
OWN void *mine_alloc(size_t n) { __asm__("" ::"r"(n) : "memory"); return malloc(n); }
OWN void mine_free(void *p) { __asm__("" ::"r"(p) : "memory"); free(p); }
OWN static void *site_0(size_t n) { void *p = mine_alloc(n); __asm__("" ::: "memory"); return p; }
static pthread_barrier_t barrier;
static struct slot { pthread_mutex_t lock; void *p; size_t size; } slots[SLOTS];
static long held, blocks;
static void *work(void *context) {
  unsigned long seed = (unsigned long)context;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < STEPS; i++) {
      seed = seed * 6364136223846793005ul + 1442695040888963407ul;
      struct slot *slot = &slots[(seed >> 33) % SLOTS];
      pthread_mutex_lock(&slot->lock);
      if (slot->p) { __atomic_fetch_sub(&held, slot->size, 5); __atomic_fetch_sub(&blocks, 1, 5); mine_free(slot->p); slot->p = NULL; }
      else { slot->size = 100 + (seed >> 20) % 5000; slot->p = site_0(slot->size); __atomic_fetch_add(&held, slot->size, 5); __atomic_fetch_add(&blocks, 1, 5); }
      pthread_mutex_unlock(&slot->lock);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}
int main(void) {
  pthread_t threads[COUNT];
  pthread_barrier_init(&barrier, NULL, COUNT + 1);
  for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&slots[i].lock, NULL);
  for (long i = 0; i < COUNT; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int round = 0; round < ROUNDS; round++) {
    char label[16];
    pthread_barrier_wait(&barrier);
    snprintf(label, sizeof label, "at%d", round);
    cairn_snapshot(label);
    printf("held %s 0 - 0 %ld %ld\n", label, held, blocks);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
  return 0;
}
"""


def check_threads():
    """Blocks of any thread, freed by any: what each snapshot has is exact, and so is the peak's list and what is left."""
    make("threads", THREADS, "-pthread")
    result, recording = t.record(["./threads"], options=[*ROWS[:1], "name=mine:alloc=mine_alloc(size=1):free=mine_free(ptr=1)", "--ages"])
    held, _, _ = read_model(result.out.decode())
    check_held(recording, held)
    found = t.report(recording, "--heap", "mine")
    freed = sum(one["frees"] for one in found["stacks"])
    t.check_equal("each free has an age", sum(sum(one["ages"]["ms"]) for one in found["stacks"]), freed)
    t.check_equal("each block has a size", sum(sum(one["sizes"]["log2"]) for one in found["stacks"]), sum(one["allocations"] for one in found["stacks"]))


STEPS = r"""
#include <cairn/cairn.h>
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
struct arena { int unused; };
static volatile long calls;
OWN struct arena *arena_make(const char *name) { __asm__("" ::"r"(name) : "memory"); return malloc(64); }
OWN void *arena_take(struct arena *a, size_t n) { __asm__("" ::"r"(a) : "memory"); return malloc(8); }
OWN void arena_clear(struct arena *a) { calls++; __asm__("" ::"r"(a) : "memory"); }
static void rest(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }
OWN void leak(struct arena *a) { for (int i = 0; i < 10; i++) { arena_take(a, 10000); __asm__("" ::: "memory"); } }
OWN void fill(struct arena *a) { for (int i = 0; i < 10; i++) { arena_take(a, 70000); __asm__("" ::: "memory"); } }
int main(void) {
  struct arena *steady = arena_make("steady"), *rising = arena_make("rising");
  fill(steady);
  for (int i = 0; i < 5; i++) { leak(rising); rest(420); }
  arena_clear(rising);
  leak(rising);
  rest(100);
  return 0;
}
"""


def heights(chart):
    """How many rows each column of the first chart fills."""
    rows = [line.split("\u2502", 1)[1] for line in chart.split("\n\n")[0].splitlines() if "\u2502" in line]
    width = max(map(len, rows))
    return len(rows), [sum(row.ljust(width)[i] != " " for row in rows) for i in range(width)]


def check_growth_and_time():
    """One name rises in five steps, falls, and rises by one; another one stays. The recording knows both over time, and which rises."""
    make("steps", STEPS)
    _, recording = t.record(["./steps"], options=["--wrap", "name=areas:make=arena_make(label=1):alloc=arena_take(pool=1,size=2):clear=arena_clear(pool=1)"])
    for heap, wanted, peak in (("areas/rising", (0.2, 0.4, 0.6, 0.8, 1, 0.2), 500000), ("areas/steady", (1,), 700000), ("areas", (1, 0.67), 1200000)):
        shown = t.run_cairn("report", "--heap", heap, "--view", "timeline", "--bytes", recording)
        chart = shown.out.decode()
        if not t.check(shown.status == 0 and f"peak {peak} at" in chart, f"{heap}: {shown}"):
            continue
        rows, found = heights(chart)
        steps = [height for i, height in enumerate(found) if not i or height != found[i - 1]]
        at = -1
        for height in (round(rows * share) for share in wanted):
            at = next((i for i in range(at + 1, len(steps)) if abs(steps[i] - height) <= 1), None)
            if not t.check(at is not None, f"{heap}: {wanted} of {rows} rows in this order: {steps}\n{chart}"):
                break
    shown = t.run_cairn("report", "--heap", "areas", "--view", "growth", "--bytes", recording).out.decode()
    t.check(re.search(r"\n  1 \+.*(49|50)0000.*\n(.*freed at shutdown\n)?.*leak", shown) or re.search(r"\n  1 \+.*\n.*leak", shown), f"what rises: {shown}")
    shown = t.run_cairn("report", "--heap", "areas", "--view", "timeline", "--bytes", recording).out.decode()
    t.check("the largest stacks over time" in shown and "at most  leak" in shown and "at most  fill" in shown, shown)


def check_views(recording):
    """Each view shows a heap by name, or says why not."""
    listed = pathlib.Path(t.SOURCE / "docs/reference/views.md").read_text(encoding="utf-8")
    page = pathlib.Path(t.SOURCE / "docs/howto/wrap.md").read_text(encoding="utf-8")
    for part in listed.split("\n## ")[1:]:
        view = part.splitlines()[0]
        reason = re.search(r"- Without `--heap`: (.*)", part)
        shown = t.run_cairn("report", "--heap", "mine", "--view", view, *(["--print"] if view == "tree" else []),
                            *(["--source", "random.c"] if view == "annotate" else []), recording)
        if reason:
            t.check_equal(view, (shown.status, shown.err.decode()),
                          (2, f"cairn: report: --view {view} is not of one heap by name: {reason[1]}\n"))
            t.check(f"`{view}`" in page, f"{view}: docs/howto/wrap.md says so")
        else:
            t.check(shown.status == 0 and "heap mine" in shown.out.decode(), f"{view}: {shown.out} {shown.err}")
    for words, said in ((("--lifespan", "living"), "mine"), (("--lifespan", "gone"), "mine")):
        shown = t.run_cairn("report", "--heap", "mine", *words, "--view", "stacks", "--by", "calls", recording)
        t.check(shown.status == 0 and said in shown.out.decode(), f"{words}: {shown}")


t.need("gcc")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
check_views(check_random())
check_threads()
check_fork()
check_growth_and_time()
t.finish()
