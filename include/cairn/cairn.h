/* SPDX-License-Identifier: Apache-2.0
 *
 * cairn.h: what a program may say to, and ask of, the cairn that records it. C11 and C++11.
 *
 * Nothing has to be linked: everything goes through one weak symbol, cairn_api, which the preloaded
 * library defines. Without cairn that symbol is NULL, every call here does nothing and costs a load
 * and a test, and questions are answered with 0. For linkers that want all symbols defined there is
 * libcairn_stub.a, and for programs that are linked statically, libcairn_static.a
 * (docs/reference/api.md).
 *
 * All functions may be called from any thread at any time, also from signal handlers unless it says
 * otherwise. They allocate nothing in the program's heap and leave errno alone.
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_API_VERSION 1u

/* Whom a call is about. */
enum cairn_who { CAIRN_PROCESS = 0, CAIRN_THREAD = 1 };

struct cairn_stats {
    uint64_t allocations;     /* calls that returned a block */
    uint64_t frees;           /* blocks given back */
    uint64_t allocated_bytes; /* as requested */
    int64_t live_bytes;       /* allocated minus freed */
    int64_t peak_bytes;       /* the most that live_bytes was */
};

/* Blocks by size: entry i is for sizes of i bits, that is 2^(i-1) .. 2^i - 1; entry 0 for size 0.
 */
#define CAIRN_HISTOGRAM_ENTRIES 65
struct cairn_histogram {
    uint64_t allocations[CAIRN_HISTOGRAM_ENTRIES];
    uint64_t unknown_allocations; /* of stacks whose sizes differed before anybody counted them */
    uint64_t live[CAIRN_HISTOGRAM_ENTRIES];
    uint64_t unknown_live; /* of stacks that allocate more than one size */
};

/* The name of a frame as a report is to show it: the same pointer, another string that stays valid
 * until the next call, "" to leave the frame out, or NULL to cut the stack here: neither this frame
 * nor what it calls is shown. */
typedef const char *(*cairn_rename)(const char *name, void *context);

/* The library's functions, as cairn_api() returns them; use the functions below instead. Later
 * versions append: `bytes` says how far the table goes. */
struct cairn_api_table {
    uint32_t version, bytes;
    int (*is_recording)(void);
    void (*set_enabled)(int who, int is_enabled);
    int (*is_enabled)(int who);
    void (*region_begin)(const char *name);
    int (*region_end)(struct cairn_stats *in_it);
    int (*stats)(int who, struct cairn_stats *stats);
    int (*region_stats)(const char *name, struct cairn_stats *stats);
    int (*report)(int descriptor, const char *form, cairn_rename rename, void *context);
    void *(*pool_create)(const char *name);
    void (*pool_alloc)(void *pool, const void *block, size_t bytes);
    int (*pool_free)(void *pool, const void *block);
    void (*pool_destroy)(void *pool);
    int (*pool_stats)(const char *name, struct cairn_stats *stats);
    int (*snapshot)(const char *label, int is_mark);
    void (*set_thresholds)(size_t min_bytes, size_t max_bytes);
    int (*set_rate)(uint64_t bytes);
    int (*histogram)(struct cairn_histogram *histogram);
    uint32_t (*context_with)(uint32_t context, const char *key, const char *value);
    uint32_t (*context_current)(void);
    void (*context_enter)(uint32_t context);
    int (*context_leave)(void);
    uint32_t (*awaited_at)(uint32_t outer, const void *code);
    void (*resumed)(uint32_t awaiters, const void *frame);
    void (*suspended)(void);
};

/* NULL if the version is not known. With CAIRN_LINKED defined it is an ordinary function that some
 * library given to the linker has to define. */
const struct cairn_api_table *cairn_api(uint32_t version)
#if !defined(CAIRN_LINKED)
    __attribute__((weak))
#endif
    ;

static inline const struct cairn_api_table *cairn_table_(void) {
    const struct cairn_api_table *(*api)(uint32_t);
#if defined(CAIRN_LINKED)
    api = cairn_api;
    /* From the table that the dynamic linker fills: where an executable is not position-independent
     * the linker would otherwise take a weak symbol for absent for good. */
#elif defined(__x86_64__) && defined(__LP64__)
    __asm__(".weak cairn_api\n\tmovq cairn_api@GOTPCREL(%%rip), %0" : "=r"(api));
#elif defined(__aarch64__)
    __asm__(".weak cairn_api\n\tadrp %0, :got:cairn_api\n\tldr %0, [%0, :got_lo12:cairn_api]"
            : "=r"(api));
#else
    api = cairn_api;
#endif
    return api ? api(CAIRN_API_VERSION) : NULL;
}

/* NULL too if the library is older than contexts. */
static inline const struct cairn_api_table *cairn_contexts_(void) {
    const struct cairn_api_table *table = cairn_table_();
    size_t least = offsetof(struct cairn_api_table, context_leave) + sizeof table->context_leave;
    return table && table->bytes >= least ? table : NULL;
}

/* NULL too if the library is older than awaiters. */
static inline const struct cairn_api_table *cairn_awaiters_(void) {
    const struct cairn_api_table *table = cairn_table_();
    size_t least = offsetof(struct cairn_api_table, suspended) + sizeof table->suspended;
    return table && table->bytes >= least ? table : NULL;
}

/* Nonzero if cairn is there and this process is recorded. */
static inline int cairn_is_loaded(void) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->is_recording() : 0;
}

/* Switches recording of allocations on or off, for the process or the calling thread. Blocks that
 * are known are recognised when they are freed, on or off. An allocation is recorded if both the
 * process and the thread are switched on. (`cairn run --off` starts with the process off.) */
static inline void cairn_enable(enum cairn_who who) {
    const struct cairn_api_table *table = cairn_table_();
    if (table) table->set_enabled((int)who, 1);
}
static inline void cairn_disable(enum cairn_who who) {
    const struct cairn_api_table *table = cairn_table_();
    if (table) table->set_enabled((int)who, 0);
}
static inline int cairn_is_enabled(enum cairn_who who) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->is_enabled((int)who) : 0;
}

/* A region of the program, by name: what this thread allocates between begin and end is shown under
 * it (cairn report --view regions, --region). Regions nest; a name inside another one is shown as
 * outer/inner. NULL or "" gives a region that counts but is not shown. At most 64 regions deep and
 * 16,383 distinct names in a process: what is beyond belongs to the region around it. */
static inline void cairn_region_begin(const char *name) {
    const struct cairn_api_table *table = cairn_table_();
    if (table) table->region_begin(name);
}
/* Ends the innermost region. `in_it` (or NULL) gets what this thread did since it began: live_bytes
 * is by how much its heap grew, peak_bytes the most it had grown in between. 0, and `in_it` all
 * zero, if no region is open. */
static inline int cairn_region_end(struct cairn_stats *in_it) {
    const struct cairn_stats none = {0, 0, 0, 0, 0};
    const struct cairn_api_table *table = cairn_table_();
    if (in_it) *in_it = none;
    return table ? table->region_end(in_it) : 0;
}

/* A context: a set of labels, key=value, as one number that can be handed to other threads and
 * tasks (cairn report --view contexts, --context). 0 is the empty set. The same labels have the
 * same number. A key has at most 127 bytes and no '=', a set 16 labels. 4,096 labels are kept in a
 * process, each counted once within the labels before it; beyond, values are "(other)". */
typedef uint32_t cairn_context;

/* The set with a label more, or with another value for that key. */
static inline cairn_context cairn_context_with(cairn_context context, const char *key,
                                               const char *value) {
    const struct cairn_api_table *table = cairn_contexts_();
    return table ? table->context_with(context, key, value) : 0;
}
/* The labels that the calling thread is in now: to be entered elsewhere. */
static inline cairn_context cairn_context_current(void) {
    const struct cairn_api_table *table = cairn_contexts_();
    return table ? table->context_current() : 0;
}
/* What the calling thread allocates from now on has these labels too, until it leaves. Contexts and
 * regions are left in the opposite order: cairn_context_leave ends what was entered or begun last.
 * 0 if there is nothing to leave. */
static inline void cairn_context_enter(cairn_context context) {
    const struct cairn_api_table *table = cairn_contexts_();
    if (table) table->context_enter(context);
}
static inline int cairn_context_leave(void) {
    const struct cairn_api_table *table = cairn_contexts_();
    return table ? table->context_leave() : 0;
}

/* Who awaits a coroutine that a scheduler resumes (cairn run --frames=async): the places in code at
 * which coroutines await, from the innermost outwards, as one number. 0: nobody. A process keeps
 * 65,536 such chains, which are never given back; what is beyond is 0. (In C++ the base of a
 * promise cairn::context_promise does all of this: cairn/context.hpp.) */
typedef uint32_t cairn_awaiters;

/* Those of `outer`, and a coroutine that they await: it awaits in its turn at `code`, the return
 * address of a call in its function. 0 without --frames=async. */
static inline cairn_awaiters cairn_awaited_at(cairn_awaiters outer, const void *code) {
    const struct cairn_api_table *table = cairn_awaiters_();
    return table ? table->awaited_at(outer, code) : 0;
}
/* The calling thread runs a coroutine that these await, until it is suspended. `frame` is an
 * address in the frame of its function on the thread's stack, or the stack pointer in it (which a
 * function that it calls has as __builtin_dwarf_cfa()). */
static inline void cairn_resumed(cairn_awaiters awaiters, const void *frame) {
    const struct cairn_api_table *table = cairn_awaiters_();
    if (table) table->resumed(awaiters, frame);
}
static inline void cairn_suspended(void) {
    const struct cairn_api_table *table = cairn_awaiters_();
    if (table) table->suspended();
}

/* Snapshots, for cairn report --at, --between and --since: what each stack holds now is kept. A
 * mark also begins a new generation: --since LABEL shows what was allocated after it and still
 * lives. `label` may be NULL. 0 if there is no room for one, or without cairn. */
static inline int cairn_mark(const char *label) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->snapshot(label, 1) : 0;
}
static inline int cairn_snapshot(const char *label) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->snapshot(label, 0) : 0;
}

/* From now on stacks are taken of blocks of these sizes only, the others are counted as "small" and
 * "large" ones; 0: no such bound. */
static inline void cairn_set_thresholds(size_t min_bytes, size_t max_bytes) {
    const struct cairn_api_table *table = cairn_table_();
    if (table) table->set_thresholds(min_bytes, max_bytes);
}

/* Where allocations are sampled (cairn run --sample), the bytes between two samples from now on. 0
 * if they are not sampled. */
static inline int cairn_set_rate(uint64_t bytes) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->set_rate(bytes) : 0;
}

/* Figures since the start. Where allocations are sampled, calls and bytes allocated are exact all
 * the same, and the rest is an estimate; of a region by name (below) all is. Of a thread,
 * live_bytes is what it allocated minus what it freed, whoever allocated that, and peak_bytes is
 * known from the first question on. With several threads the process' peak_bytes may be off by what
 * docs/explain/trust.md says. 0 and all zero without cairn. */
static inline int cairn_stats_of(enum cairn_who who, struct cairn_stats *stats) {
    const struct cairn_stats none = {0, 0, 0, 0, 0};
    const struct cairn_api_table *table = cairn_table_();
    *stats = none;
    return table ? table->stats((int)who, stats) : 0;
}
/* The same for what was allocated in regions of this name and those inside them, by all threads:
 * live_bytes is what of that is left, peak_bytes the most that one thread's heap grew in one of
 * them. Looks at each stack: milliseconds for a hundred thousand. 0 if there was no such region. */
static inline int cairn_region_stats(const char *name, struct cairn_stats *stats) {
    const struct cairn_stats none = {0, 0, 0, 0, 0};
    const struct cairn_api_table *table = cairn_table_();
    *stats = none;
    return table ? table->region_stats(name, stats) : 0;
}

/* Sizes of all blocks so far, and of those that live. 0 and all zero without cairn, and where
 * allocations are sampled. */
static inline int cairn_histogram_of(struct cairn_histogram *histogram) {
    const struct cairn_api_table *table = cairn_table_();
    unsigned char *byte = (unsigned char *)histogram;
    for (size_t i = 0; i < sizeof *histogram; i++) byte[i] = 0;
    return table ? table->histogram(histogram) : 0;
}

/* Writes a report of this process so far to a descriptor. `form` is "summary", a view of cairn
 * report (stacks, tree, functions, lines, ...), or a format of cairn export that is text
 * (collapsed, mptrace, csv, json, massif, callgrind, speedscope, dhat, flamegraph);
 * options of that command may follow, as in "stacks --top 3 --thread worker". It runs the tool
 * `cairn` and waits for it: not for signal handlers. `rename` (or NULL) is asked for each frame of
 * collapsed and mptrace, the only forms that take it. 0, or an errno: ENOSYS without cairn, ENOENT
 * without the tool, EINVAL for an unknown form or option, EIO if it failed otherwise. */
static inline int cairn_report(int descriptor, const char *form, cairn_rename rename,
                               void *context) {
    const int no_system = 38; /* ENOSYS */
    const struct cairn_api_table *table = cairn_table_();
    return table ? table->report(descriptor, form, rename, context) : no_system;
}

/* Pools: an allocator of the program's own, that takes its memory from malloc or mmap, tells cairn
 * of each block (cairn report --view pools). Pools of one name are shown together. A pool's blocks
 * are counted apart from the heap, in which the pool's memory is counted already. */
struct cairn_pool;
static inline struct cairn_pool *cairn_pool_create(const char *name) {
    const struct cairn_api_table *table = cairn_table_();
    return table ? (struct cairn_pool *)table->pool_create(name) : NULL;
}
/* NULL as the pool (no cairn, or no memory for one) is allowed everywhere. */
static inline void cairn_pool_alloc(struct cairn_pool *pool, const void *block, size_t bytes) {
    const struct cairn_api_table *table = pool ? cairn_table_() : NULL;
    if (table) table->pool_alloc(pool, block, bytes);
}
/* 0 if the pool has no such block. */
static inline int cairn_pool_free(struct cairn_pool *pool, const void *block) {
    const struct cairn_api_table *table = pool ? cairn_table_() : NULL;
    return table ? table->pool_free(pool, block) : 0;
}
/* Frees all that is left in it, and the pool. */
static inline void cairn_pool_destroy(struct cairn_pool *pool) {
    const struct cairn_api_table *table = pool ? cairn_table_() : NULL;
    if (table) table->pool_destroy(pool);
}
/* All pools of one name. 0 if there was none. */
static inline int cairn_pool_stats(const char *name, struct cairn_stats *stats) {
    const struct cairn_stats none = {0, 0, 0, 0, 0};
    const struct cairn_api_table *table = cairn_table_();
    *stats = none;
    return table ? table->pool_stats(name, stats) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
