// SPDX-License-Identifier: Apache-2.0
// soak EVENTS [SEED]: as many allocations and frees as asked for, in all the ways that come and go:
// four workers that are replaced by new threads all the time, forked children that allocate, exec
// or die, and libraries loaded and unloaded. Every thread keeps its account in the shared ledger,
// exact however its process ends. At the end one line on stdout: events, threads, forks, loads, and
// how much the resident size grew between the first tenth and the end.
//
// The forks happen while no worker runs (the workers' blocks are then all freed or handed over), so
// that a child's inherited blocks are known to the account: ledger.h asks for it.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/programs/ledger.h"

#define WORKERS 4u
#define KEPT_BLOCKS 256u
#define LARGEST_BYTES 3000u
#define CHILD_EVENTS 3000u
// A worker's life, in events, is at most this; a short soak has as many lives, but shorter ones.
#define EVENTS_PER_LIFE 50000u
#define LIVES_LEAST 4000u
// Lives of all workers between two forks.
#define ROUNDS_PER_FORK 8u
// The ledger has a line a thread; the last lines are for the children.
#define LIVES_MAX (LEDGER_LINES - LEDGER_LINES / 4)

static uint64_t events_per_life = EVENTS_PER_LIFE, forks, loads, lives;
static char plugin_path[4096];

// Says what went wrong; the allocator is not asked any more.
_Noreturn static void give_up(const char *what) {
    dprintf(STDERR_FILENO, "soak: %s: %m\n", what);
    abort();
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct kept {
    void *block;
    size_t bytes;
};

static void replace(struct kept *kept, size_t bytes) {
    if (kept->block) ledger_give(kept->block, kept->bytes);
    *kept = (struct kept){ledger_take(bytes), bytes};
}

__attribute__((noinline)) static void replace_deep(struct kept *kept, size_t bytes,
                                                   unsigned depth) {
    if (depth) {
        replace_deep(kept, bytes, depth - 1);
        __asm__ volatile("");
        return;
    }
    replace(kept, bytes);
}

// Takes and gives until `events` have happened; nothing is left.
static void work(uint64_t events, uint64_t seed) {
    struct kept kept[KEPT_BLOCKS] = {0};
    for (uint64_t i = 0; i < events / 2; i++) {
        uint64_t random = next_random(&seed);
        replace_deep(&kept[random % KEPT_BLOCKS], (random >> 16) % LARGEST_BYTES + 1,
                     (unsigned)(random >> 40) % 12);
    }
    for (unsigned i = 0; i < KEPT_BLOCKS; i++)
        if (kept[i].block) ledger_give(kept[i].block, kept[i].bytes);
}

static void *worker(void *seed) {
    ledger_begin();
    work(events_per_life, (uint64_t)(uintptr_t)seed);
    return NULL;
}

static void load_and_unload(void) {
    void *plugin = dlopen(plugin_path, loads++ % 2 ? RTLD_LAZY : RTLD_NOW);
    if (!plugin) give_up(dlerror());
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_allocate");
    free(allocate(100));
    dlclose(plugin);
}

// Every third dies by SIGKILL, every third becomes another program, the others end in order.
static void child(uint64_t number, char *own_path) {
    ledger_inherit();
    work(CHILD_EVENTS, number + 1);
    if (number % 3 == 0) kill(getpid(), SIGKILL);
    if (number % 3 == 1) execl("/bin/true", "true", own_path, NULL);
    _exit(0);
}

static void fork_one(char *own_path) {
    pid_t born = fork();
    if (born < 0) give_up("fork");
    if (!born) child(forks, own_path);
    waitpid(born, NULL, 0);
    forks++;
}

static long resident_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) give_up("statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run_workers(uint64_t seed) {
    pthread_t threads[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++, lives++)
        if (pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)(seed + lives * 7919 + 1)))
            give_up("thread");
    for (unsigned i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    load_and_unload();
}

int main(int argc, char **argv) {
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000, done = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    long early_kib = 0;
    snprintf(plugin_path, sizeof plugin_path, "%s", argv[0]);
    char *slash = strrchr(plugin_path, '/');
    snprintf(slash ? slash + 1 : plugin_path, 64, "libplugin.so");
    ledger_open();
    if (events / events_per_life < LIVES_LEAST) events_per_life = events / LIVES_LEAST + 1;
    if (events / events_per_life > LIVES_MAX) events_per_life = events / LIVES_MAX;
    void *left = ledger_take(12345);
    for (uint64_t round = 0; done < events; round++) {
        run_workers(seed);
        done += WORKERS * events_per_life;
        if (round % ROUNDS_PER_FORK == 0) fork_one(argv[0]);
        if (!early_kib && done >= events / 10) early_kib = resident_kib();
    }
    long growth_kib = resident_kib() - early_kib;
    printf("%llu events, %llu threads, %llu forks, %llu loads, resident +%ld KiB, left %d\n",
           (unsigned long long)done, (unsigned long long)lives, (unsigned long long)forks,
           (unsigned long long)loads, growth_kib, left != NULL);
    return 0;
}
