// SPDX-License-Identifier: Apache-2.0
// The floor under every profiler that wraps malloc: a preload that does nothing but count calls and
// bytes, in a cache line of each thread's own. What it adds to a program is the wrapping itself.
//
// The counters lie in the file named by FLOOR_OUT, mapped shared, so that they are complete however
// a process ends; all processes that inherit the environment add to the same file. A slot is a
// thread's from its first call on. After SLOTS threads slots are used again, by then by nobody who
// still runs; bench/runner.py adds them up: three 64-bit numbers at the start of each 64-byte slot
// (allocations, frees, bytes).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOOK __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SLOTS 4096u
#define LINE_BYTES 64
#define BOOTSTRAP_BYTES 65536
#define BLOCK_ALIGNMENT 16

struct slot {
    _Alignas(LINE_BYTES) uint64_t allocations;
    uint64_t frees, bytes;
    atomic_uint next;  // of slot 0 alone: the next slot to give away
};

static struct slot unwritten;
static struct slot *slots;
static _Thread_local struct slot *mine;

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
} next;

// What dlsym itself allocates before the real functions are known.
static _Alignas(BLOCK_ALIGNMENT) char bootstrap[BOOTSTRAP_BYTES];
static size_t bootstrap_used;
static int is_resolving;

static void *bootstrap_take(size_t bytes) {
    size_t rounded = (bytes + BLOCK_ALIGNMENT - 1) & ~(size_t)(BLOCK_ALIGNMENT - 1);
    if (rounded < bytes || rounded > BOOTSTRAP_BYTES - bootstrap_used) return NULL;
    bootstrap_used += rounded;
    return bootstrap + bootstrap_used - rounded;
}

static int is_bootstrap(const void *block) {
    return (uintptr_t)block - (uintptr_t)bootstrap < BOOTSTRAP_BYTES;
}

static void resolve_slow(void) {
    if (is_resolving) return;
    is_resolving = 1;
    next.free = dlsym(RTLD_NEXT, "free");
    next.calloc = dlsym(RTLD_NEXT, "calloc");
    next.realloc = dlsym(RTLD_NEXT, "realloc");
    next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    next.memalign = dlsym(RTLD_NEXT, "memalign");
    next.malloc = dlsym(RTLD_NEXT, "malloc");
}

static struct slot *slot_take_slow(void) {
    if (!slots) return &unwritten;
    unsigned number = atomic_fetch_add_explicit(&slots->next, 1, memory_order_relaxed);
    return mine = slots + 1 + number % (SLOTS - 1);
}

static inline struct slot *slot_mine(void) {
    return LIKELY(mine) ? mine : slot_take_slow();
}

static inline void count_alloc(size_t bytes) {
    struct slot *slot = slot_mine();
    slot->allocations++;
    slot->bytes += bytes;
}

HOOK void *malloc(size_t bytes) {
    if (!LIKELY(next.malloc)) {
        resolve_slow();
        if (!next.malloc) return bootstrap_take(bytes);
    }
    count_alloc(bytes);
    return next.malloc(bytes);
}

HOOK void *calloc(size_t count, size_t bytes) {
    if (!LIKELY(next.malloc)) {
        resolve_slow();
        if (!next.malloc) return bootstrap_take(count * bytes);
    }
    count_alloc(count * bytes);
    return next.calloc(count, bytes);
}

HOOK void *realloc(void *block, size_t bytes) {
    if (!LIKELY(next.malloc)) resolve_slow();
    if (is_bootstrap(block) || !next.malloc) abort();
    count_alloc(bytes);
    if (block) slot_mine()->frees++;
    return next.realloc(block, bytes);
}

HOOK void free(void *block) {
    if (!block || is_bootstrap(block)) return;
    if (!LIKELY(next.malloc)) resolve_slow();
    slot_mine()->frees++;
    next.free(block);
}

HOOK int posix_memalign(void **out, size_t alignment, size_t bytes) {
    if (!LIKELY(next.malloc)) resolve_slow();
    count_alloc(bytes);
    return next.posix_memalign(out, alignment, bytes);
}

HOOK void *aligned_alloc(size_t alignment, size_t bytes) {
    if (!LIKELY(next.malloc)) resolve_slow();
    count_alloc(bytes);
    return next.aligned_alloc(alignment, bytes);
}

HOOK void *memalign(size_t alignment, size_t bytes) {
    if (!LIKELY(next.malloc)) resolve_slow();
    count_alloc(bytes);
    return next.memalign(alignment, bytes);
}

static void forget_slot(void) {
    mine = NULL;
}

__attribute__((constructor)) static void floor_start(void) {
    const char *path = getenv("FLOOR_OUT");
    int saved = errno, file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && !ftruncate(file, SLOTS * sizeof *slots)) {
        void *mapped =
            mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) slots = mapped;
    }
    if (file >= 0) close(file);
    pthread_atfork(NULL, NULL, forget_slot);
    errno = saved;
}
