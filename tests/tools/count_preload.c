// SPDX-License-Identifier: Apache-2.0
// An independent judge of cairn's totals: counts what goes through the allocation functions, in
// the plainest way that is exact. It shares no code and no idea with the runtime.
//
// The counters live in a file mapped shared, COUNT_PRELOAD_OUT.PID (then .PID.1, ... after an
// exec), so that they are complete however the process ends and whatever descriptors it closes;
// tests/tools/counts.py reads them. Sizes of live blocks are kept in an open-addressing table.
// One spin lock guards everything; speed is no concern here.
//
// A realloc that succeeds counts as a free of the old block and an allocation of the new one, at
// one time; realloc(p, 0) of glibc counts as a free. A call that returns no block is `failed`.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOOK __attribute__((visibility("default")))
#define TABLE_SLOTS_FIRST (1u << 16)
#define BOOTSTRAP_BYTES 65536
#define BLOCK_ALIGNMENT 16
#define DELETED UINTPTR_MAX

struct counters {
    uint64_t magic;
    uint64_t pid;
    uint64_t allocations, allocated_bytes, frees, freed_bytes, failed;
    uint64_t live_bytes, live_blocks, peak_bytes, peak_blocks;
    uint64_t unknown_frees;
};
#define COUNTERS_MAGIC 0x31746e756f63ull  // "count1"

struct slot {
    uintptr_t address;  // 0 empty, DELETED
    size_t bytes;
};

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void (*free)(void *);
} next;

static struct counters early_counters;
static struct counters *counters = &early_counters;
static struct slot *slots;
static size_t slot_count, slots_used;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Alignas(BLOCK_ALIGNMENT) char bootstrap[BOOTSTRAP_BYTES];
static size_t bootstrap_used;
static bool is_resolving, is_resolved;
// A library with thread-locals makes libc's table of them, one allocation a thread, larger by an
// entry. cairn is such a library, so its judge is one too.
static _Thread_local uint64_t calls_of_thread;
// In a static program the function that is counted may call others that are led here (musl's).
static _Thread_local bool is_inside;

static void lock_take(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
    }
}

static void lock_give(void) {
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static void die(const char *why) {
    ssize_t ignored = write(2, why, strlen(why));
    (void)ignored;
    _exit(99);
}

// dlsym may allocate before its answer is known: it gets memory that is never given back.
static void *bootstrap_take(size_t bytes) {
    size_t rounded = (bytes + BLOCK_ALIGNMENT - 1) & ~(size_t)(BLOCK_ALIGNMENT - 1);
    if (rounded > BOOTSTRAP_BYTES - bootstrap_used)
        die("count_preload: bootstrap memory is full\n");
    void *block = bootstrap + bootstrap_used;
    bootstrap_used += rounded;
    return block;
}

static bool is_bootstrap(const void *block) {
    return (const char *)block >= bootstrap && (const char *)block < bootstrap + BOOTSTRAP_BYTES;
}

// The same for a static program, which has this linked in (tests/tools/static_counter.py): the
// linker leads every call of NAME outside the allocator here, and leaves out what nobody calls.
#ifdef COUNT_WRAPPED
#define WRAPPED(result, name, parameters) result __real_##name parameters;
WRAPPED(void *, malloc, (size_t))
WRAPPED(void *, calloc, (size_t, size_t))
WRAPPED(void *, realloc, (void *, size_t))
WRAPPED(void *, reallocarray, (void *, size_t, size_t))
WRAPPED(int, posix_memalign, (void **, size_t, size_t))
WRAPPED(void *, aligned_alloc, (size_t, size_t))
WRAPPED(void *, memalign, (size_t, size_t))
WRAPPED(void *, valloc, (size_t))
__attribute__((weak)) WRAPPED(void *, pvalloc, (size_t))  // musl has none
    WRAPPED(void, free, (void *))
#define FIND(name) next.name = __real_##name
#else
#define FIND(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
#endif

        static void resolve(void) {
    if (is_resolved || is_resolving) return;
    is_resolving = true;
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(free);
    is_resolving = false;
    is_resolved = true;
}

static size_t slot_first(uintptr_t address) {
    return (size_t)((address >> 4) * 0x9e3779b97f4a7c15ull >> 20) & (slot_count - 1);
}

static void slot_place(uintptr_t address, size_t bytes) {
    size_t i = slot_first(address);
    while (slots[i].address && slots[i].address != DELETED && slots[i].address != address)
        i = (i + 1) & (slot_count - 1);
    if (!slots[i].address) slots_used++;
    slots[i] = (struct slot){address, bytes};
}

static void table_grow(void) {
    struct slot *old = slots;
    size_t old_count = slot_count;
    slot_count = old_count ? 2 * old_count : TABLE_SLOTS_FIRST;
    slots = mmap(NULL, slot_count * sizeof *slots, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) die("count_preload: no memory\n");
    slots_used = 0;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].address && old[i].address != DELETED) slot_place(old[i].address, old[i].bytes);
    }
    if (old) munmap(old, old_count * sizeof *old);
}

static void add_locked(const void *block, size_t bytes) {
    if (2 * (slots_used + 1) > slot_count) table_grow();
    slot_place((uintptr_t)block, bytes);
    counters->allocations++;
    counters->allocated_bytes += bytes;
    counters->live_bytes += bytes;
    counters->live_blocks++;
    if (counters->live_bytes > counters->peak_bytes) {
        counters->peak_bytes = counters->live_bytes;
        counters->peak_blocks = counters->live_blocks;
    }
}

static void remove_locked(size_t bytes, bool was_known) {
    if (!was_known) {
        counters->unknown_frees++;
        return;
    }
    counters->frees++;
    counters->freed_bytes += bytes;
    counters->live_bytes -= bytes;
    counters->live_blocks--;
}

// Takes the block out of the table, before the real call can hand its address to another thread.
static bool take_locked(const void *block, size_t *bytes) {
    *bytes = 0;
    if (!slot_count) return false;
    size_t i = slot_first((uintptr_t)block);
    while (slots[i].address && slots[i].address != (uintptr_t)block) i = (i + 1) & (slot_count - 1);
    if (!slots[i].address) return false;
    *bytes = slots[i].bytes;
    slots[i].address = DELETED;
    return true;
}

static void *note_result(void *block, size_t bytes) {
    int saved = errno;
    calls_of_thread++;
    lock_take();
    if (block)
        add_locked(block, bytes);
    else
        counters->failed++;
    lock_give();
    errno = saved;
    return block;
}

HOOK void *malloc(size_t bytes) {
    resolve();
    if (is_inside) return next.malloc(bytes);
    if (!next.malloc) return bootstrap_take(bytes);
    return note_result(next.malloc(bytes), bytes);
}

HOOK void *calloc(size_t count, size_t bytes) {
    resolve();
    if (!next.calloc) return bootstrap_take(count * bytes);
    is_inside = true;
    void *block = next.calloc(count, bytes);
    is_inside = false;
    return note_result(block, count * bytes);
}

HOOK void free(void *block) {
    if (!block || is_bootstrap(block)) return;
    resolve();
    if (is_inside) {
        next.free(block);
        return;
    }
    int saved = errno;
    size_t bytes;
    lock_take();
    bool was_known = take_locked(block, &bytes);
    remove_locked(bytes, was_known);
    lock_give();
    errno = saved;
    next.free(block);
}

HOOK void *realloc(void *block, size_t bytes) {
    resolve();
    if (is_bootstrap(block)) die("count_preload: realloc of a bootstrap block\n");
    size_t old_bytes = 0;
    bool was_known = false;
    int saved = errno;
    lock_take();
    if (block) was_known = take_locked(block, &old_bytes);
    lock_give();
    errno = saved;
    is_inside = true;
    void *result = next.realloc(block, bytes);
    is_inside = false;
    bool was_freed = block && !result && bytes == 0;
    saved = errno;
    lock_take();
    if (!result && block && !was_freed && was_known) slot_place((uintptr_t)block, old_bytes);
    if (block && (result || was_freed)) remove_locked(old_bytes, was_known);
    if (result) add_locked(result, bytes);
    if (!result && !was_freed) counters->failed++;
    lock_give();
    errno = saved;
    return result;
}

// glibc's own calls realloc by its public name, so that it would be counted twice.
HOOK void *reallocarray(void *block, size_t count, size_t bytes) {
    size_t total;
    if (!__builtin_mul_overflow(count, bytes, &total)) return realloc(block, total);
#ifdef COUNT_WRAPPED
    return note_result(__real_reallocarray(block, count, bytes), 0);
#else
    errno = ENOMEM;
    return note_result(NULL, 0);
#endif
}

HOOK int posix_memalign(void **out, size_t alignment, size_t bytes) {
    resolve();
    if (is_inside) return next.posix_memalign(out, alignment, bytes);
    is_inside = true;
    int status = next.posix_memalign(out, alignment, bytes);
    is_inside = false;
    note_result(status ? NULL : *out, bytes);
    return status;
}

HOOK void *aligned_alloc(size_t alignment, size_t bytes) {
    resolve();
    if (is_inside) return next.aligned_alloc(alignment, bytes);
    is_inside = true;
    void *block = next.aligned_alloc(alignment, bytes);
    is_inside = false;
    return note_result(block, bytes);
}

HOOK void *memalign(size_t alignment, size_t bytes) {
    resolve();
    if (is_inside) return next.memalign(alignment, bytes);
    is_inside = true;
    void *block = next.memalign(alignment, bytes);
    is_inside = false;
    return note_result(block, bytes);
}

HOOK void *valloc(size_t bytes) {
    resolve();
    is_inside = true;
    void *block = next.valloc(bytes);
    is_inside = false;
    return note_result(block, bytes);
}

HOOK void *pvalloc(size_t bytes) {
    resolve();
    is_inside = true;
    void *block = next.pvalloc(bytes);
    is_inside = false;
    return note_result(block, bytes);
}

// Moves the counters into a new file of this process, mapped at the same place.
static void counters_map(void) {
    const char *prefix = getenv("COUNT_PRELOAD_OUT");
    if (!prefix) return;
    char path[4096];
    int file = -1;
    for (int i = 0; file < 0 && i < 1000; i++) {
        if (i)
            snprintf(path, sizeof path, "%s.%d.%d", prefix, (int)getpid(), i);
        else
            snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST) return;
    }
    if (file < 0 || ftruncate(file, sizeof *counters)) die("count_preload: no counter file\n");
    struct counters before = *counters;
    void *mapped = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) die("count_preload: no mapping\n");
    before.magic = COUNTERS_MAGIC;
    before.pid = (uint64_t)getpid();
    memcpy(mapped, &before, sizeof before);
    counters = mapped;
}

// The child begins with what its parent had counted when it forked: the parent goes on counting
// in the memory that both still share.
static struct counters at_fork;

static void before_fork(void) {
    lock_take();
    at_fork = *counters;
}

static void after_fork_in_child(void) {
    early_counters = at_fork;
    counters = &early_counters;
    lock_give();
    counters_map();
}

__attribute__((constructor)) static void count_preload_start(void) {
    int saved = errno;
    resolve();
    counters_map();
    pthread_atfork(before_fork, lock_give, after_fork_in_child);
    errno = saved;
}
