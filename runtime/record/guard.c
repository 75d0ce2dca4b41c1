// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/guard.h"

#include <errno.h>
#include <string.h>

#include "runtime/guard/bands.h"
#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/event.h"
#include "runtime/sink/sink.h"
#include "runtime/thread/slots.h"

enum { ALIGNMENT_USUAL = 16 };

static struct real below;           // what the hooks called before
static struct cairn_guard *record;  // in the recording; NULL: it has no room
static struct region overruns;
static uint32_t is_checking;    // (atomic) a thread looks at all blocks
static uint32_t checks_done;    // (atomic) wishes of the tool that were served
static uint64_t next_check_ns;  // not before, however often it is asked

enum { CHECK_EVERY_NS = 50000000 };

static bool is_power(size_t value) {
    return value && !(value & (value - 1));
}

// True if the tool has reported the block already; from then on it is as if this process had.
static bool is_told_by_tool(const struct cairn_overrun *overrun) {
    uint64_t used = __atomic_load_n(overruns.used_bytes, __ATOMIC_ACQUIRE);
    if (used > overruns.capacity_bytes) used = overruns.capacity_bytes;
    struct cairn_overrun *all = (struct cairn_overrun *)overruns.base;
    for (uint64_t i = 0; i < used / sizeof *all; i++) {
        uint32_t unmet = 1;
        bool is_it = all[i].address == overrun->address && all[i].size == overrun->size;
        if (is_it && __atomic_compare_exchange_n(&all[i].is_unmet, &unmet, 0, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

// Notes an overrun block. `found_cell` is who found it by freeing it.
static void tell(struct cairn_overrun *overrun, enum cairn_overrun_found found_at, uint32_t cell,
                 uint32_t found_cell) {
    if (!record || slots_is_wiped() || is_told_by_tool(overrun)) return;
    uint64_t number = __atomic_fetch_add(&record->overrun_blocks, 1, __ATOMIC_RELAXED);
    struct cairn_overrun *entry =
        number < CAIRN_OVERRUN_LIMIT ? region_take(&overruns, sizeof *entry) : NULL;
    if (!entry) return;
    overrun->cell = cell;
    overrun->found_cell = found_cell;
    overrun->found_tid = (uint32_t)sys_tid();
    overrun->found_ns = sink_now_ns();
    *entry = *overrun;
    __atomic_store_n(&entry->found_at, found_at, __ATOMIC_RELEASE);
}

static COLD void tell_freed(struct cairn_overrun *overrun, enum cairn_overrun_found found_at,
                            uint32_t cell, uintptr_t *frame) {
    int saved_errno = errno;
    tell(overrun, found_at, cell, event_cell_of_freer(frame));
    errno = saved_errno;
}

static bool look(const struct bands_block *block, const struct bands_entry *entry, bool is_told,
                 void *context) {
    const enum cairn_overrun_found *found_at = context;
    struct cairn_overrun overrun = {0};
    record->checked_blocks++;
    if (is_told || !bands_compare(block, &overrun)) return false;
    tell(&overrun, *found_at, entry->cell, 0);
    return true;
}

static void release(void *memory) {
    below.free(memory);
}

static void check_all(enum cairn_overrun_found found_at) {
    const struct bands_visitor visitor = {look, release, &found_at};
    record->checked_blocks = 0;
    bands_each(&visitor);
    record->checked_ns = sink_now_ns();
}

// The tool has asked for a look at all blocks.
static COLD void check_asked(void) {
    uint32_t wanted = __atomic_load_n(&record->checks_wanted, __ATOMIC_ACQUIRE);
    uint64_t now_ns = sys_clock_coarse_ns();
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    if (now_ns < __atomic_load_n(&next_check_ns, __ATOMIC_RELAXED)) return;
    if (__atomic_exchange_n(&is_checking, 1, __ATOMIC_ACQUIRE)) return;
    int saved_errno = errno;
    __atomic_store_n(&record->checks_begun, wanted, __ATOMIC_RELEASE);
    check_all(CAIRN_OVERRUN_ASKED);
    __atomic_store_n(&next_check_ns, sys_clock_coarse_ns() + CHECK_EVERY_NS, __ATOMIC_RELAXED);
    __atomic_store_n(&checks_done, wanted, __ATOMIC_RELEASE);
    __atomic_store_n(&record->checks_done, wanted, __ATOMIC_RELEASE);
    errno = saved_errno;
    __atomic_store_n(&is_checking, 0, __ATOMIC_RELEASE);
}

ALWAYS_INLINE void look_for_wishes(void) {
    if (unlikely(record && __atomic_load_n(&record->checks_wanted, __ATOMIC_RELAXED) !=
                               __atomic_load_n(&checks_done, __ATOMIC_RELAXED)))
        check_asked();
}

void guard_end(void) {
    if (!record || __atomic_exchange_n(&is_checking, 1, __ATOMIC_ACQUIRE)) return;
    check_all(CAIRN_OVERRUN_AT_EXIT);
    __atomic_store_n(&is_checking, 0, __ATOMIC_RELEASE);
}

// What the allocator gave, as a block with bands; NULL without memory for its entry. A block that
// has bands already came from a hooked function that the real one called.
static void *dress(void *whole, size_t front_bytes, size_t size, size_t alignment) {
    uintptr_t address = (uintptr_t)whole + front_bytes;
    if (bands_find((uintptr_t)whole)) return whole;
    return bands_put(address, size, alignment) ? (void *)address : NULL;
}

// The request goes through without bands.
static COLD void count_unguarded(const void *block) {
    if (block && record && !slots_is_wiped())
        __atomic_fetch_add(&record->unguarded_blocks, 1, __ATOMIC_RELAXED);
}

static void *guard_malloc(size_t size) {
    size_t whole_bytes, front_bytes;
    int saved_errno = errno;
    look_for_wishes();
    if (bands_plan(size, ALIGNMENT_USUAL, &whole_bytes, &front_bytes)) {
        void *whole = below.malloc(whole_bytes);
        void *block = whole ? dress(whole, front_bytes, size, ALIGNMENT_USUAL) : NULL;
        if (likely(block != NULL)) return block;
        if (whole) below.free(whole);
    }
    errno = saved_errno;
    void *block = below.malloc(size);
    count_unguarded(block);
    return block;
}

static void *guard_calloc(size_t count, size_t size) {
    size_t bytes, whole_bytes, front_bytes;
    int saved_errno = errno;
    look_for_wishes();
    if (!__builtin_mul_overflow(count, size, &bytes) &&
        bands_plan(bytes, ALIGNMENT_USUAL, &whole_bytes, &front_bytes)) {
        void *whole = below.calloc(1, whole_bytes);
        void *block = whole ? dress(whole, front_bytes, bytes, ALIGNMENT_USUAL) : NULL;
        if (likely(block != NULL)) return block;
        if (whole) below.free(whole);
    }
    errno = saved_errno;
    void *block = below.calloc(count, size);
    count_unguarded(block);
    return block;
}

// By memalign, which takes every power of two; NULL: without bands then.
static void *aligned_with_bands(size_t alignment, size_t size) {
    size_t whole_bytes, front_bytes;
    int saved_errno = errno;
    look_for_wishes();
    if (alignment < ALIGNMENT_USUAL) alignment = ALIGNMENT_USUAL;
    if (!bands_plan(size, alignment, &whole_bytes, &front_bytes)) return NULL;
    void *whole = below.memalign(alignment, whole_bytes);
    void *block = whole ? dress(whole, front_bytes, size, alignment) : NULL;
    if (whole && !block) below.free(whole);
    errno = saved_errno;
    return block;
}

static void *guard_memalign(size_t alignment, size_t size) {
    void *block = is_power(alignment) ? aligned_with_bands(alignment, size) : NULL;
    if (likely(block != NULL)) return block;
    block = below.memalign(alignment, size);
    count_unguarded(block);
    return block;
}

static void *guard_aligned_alloc(size_t alignment, size_t size) {
    void *block = is_power(alignment) ? aligned_with_bands(alignment, size) : NULL;
    if (likely(block != NULL)) return block;
    block = below.aligned_alloc(alignment, size);
    count_unguarded(block);
    return block;
}

static int guard_posix_memalign(void **result, size_t alignment, size_t size) {
    bool is_right = is_power(alignment) && alignment % sizeof(void *) == 0;
    void *block = is_right ? aligned_with_bands(alignment, size) : NULL;
    if (likely(block != NULL)) {
        *result = block;
        return 0;
    }
    int status = below.posix_memalign(result, alignment, size);
    if (status == 0) count_unguarded(*result);
    return status;
}

static void *guard_valloc(size_t size) {
    void *block = aligned_with_bands(sys_page_bytes(), size);
    return block ? block : below.valloc(size);
}

// The whole pages are the program's.
static void *guard_pvalloc(size_t size) {
    const size_t mask = sys_page_bytes() - 1;
    size_t bytes = size ? size : 1;
    void *block = bytes <= SIZE_MAX - mask
                      ? aligned_with_bands(sys_page_bytes(), (bytes + mask) & ~mask)
                      : NULL;
    return block ? block : below.pvalloc(size);
}

// Looks at the bands of a block that was taken out.
static void check_taken(const struct bands_block *block, const struct bands_entry *entry,
                        uint64_t word, enum cairn_overrun_found found_at, uintptr_t *frame) {
    struct cairn_overrun overrun = {0};
    if (word & BANDS_TOLD || likely(!bands_compare(block, &overrun))) return;
    tell_freed(&overrun, found_at, entry->cell, frame);
}

static void guard_free(void *block) {
    struct bands_entry *entry = block ? bands_find((uintptr_t)block) : NULL;
    look_for_wishes();
    if (!entry) return below.free(block);
    uint64_t word = bands_take(entry);
    if (!word) return;  // it is being looked at, and freed after that
    struct bands_block taken = bands_block((uintptr_t)block, word);
    check_taken(&taken, entry, word, CAIRN_OVERRUN_AT_FREE, EVENT_HERE());
    below.free((void *)(taken.address - taken.front_bytes));
    EVENT_KEEP_FRAME();
}

// Not below.free_sized: its first call would look for it, and put it in the place of this one.
static void guard_free_sized(void *block, size_t size) {
    (void)size;
    guard_free(block);
}

static void guard_free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment, (void)size;
    guard_free(block);
}

// A block elsewhere with the old one's content; the old one is given back. NULL: it stays.
static void *move(void *block, size_t old_size, size_t size, void *(*allocate)(size_t)) {
    void *moved = allocate(size);
    if (!moved) return NULL;
    memcpy(moved, block, old_size < size ? old_size : size);
    return moved;
}

// The allocator has made the whole larger or smaller; it may lie elsewhere now.
static void *redress(void *whole, const struct bands_block *old, uint64_t word, size_t size) {
    const unsigned alignment_shift = 8, alignment_mask = 0x3f;
    size_t alignment = (size_t)1 << (word >> alignment_shift & alignment_mask);
    uint8_t *block = (uint8_t *)whole + old->front_bytes;
    if (likely(bands_put((uintptr_t)block, size, alignment))) return block;
    count_unguarded(memmove(whole, block, size));
    return whole;
}

// Grows or shrinks a block with bands that was taken out of the table.
static void *resize(struct bands_entry *entry, const struct bands_block *old, uint64_t word,
                    size_t size) {
    void *block = (void *)old->address, *start = (void *)(old->address - old->front_bytes);
    size_t whole_bytes, front_bytes = old->front_bytes;
    uint32_t cell = entry->cell;
    int saved_errno = errno;
    if (size == 0) return below.realloc(start, 0);  // whatever that means to the allocator
    bool is_possible =
        bands_plan(size, ALIGNMENT_USUAL, &whole_bytes, &front_bytes) &&
        !__builtin_add_overflow(whole_bytes, old->front_bytes - front_bytes, &whole_bytes);
    void *whole = is_possible ? below.realloc(start, whole_bytes) : NULL;
    if (likely(whole != NULL)) return redress(whole, old, word, size);
    int error = is_possible ? errno : ENOMEM;
    errno = saved_errno;
    void *moved = is_possible ? move(block, old->size, size, below.malloc) : NULL;
    if (moved) {
        below.free(start);
        count_unguarded(moved);
        return moved;
    }
    entry->cell = cell;
    __atomic_store_n(&entry->word, word, __ATOMIC_RELEASE);
    errno = error;
    return NULL;
}

static void *guard_realloc(void *block, size_t size) {
    struct bands_entry *entry = block ? bands_find((uintptr_t)block) : NULL;
    if (!block) return guard_malloc(size);
    look_for_wishes();
    if (!entry) return below.realloc(block, size);
    struct bands_block old = bands_block((uintptr_t)block, entry->word);
    uint64_t word = bands_take(entry);
    if (unlikely(!word)) return move(block, old.size, size, guard_malloc);
    check_taken(&old, entry, word, CAIRN_OVERRUN_AT_REALLOC, EVENT_HERE());
    void *result = resize(entry, &old, word, size);
    EVENT_KEEP_FRAME();
    return result;
}

static void *guard_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes)) return guard_realloc(block, bytes);
    errno = ENOMEM;
    return NULL;
}

static size_t guard_malloc_usable_size(void *block) {
    struct bands_entry *entry = block ? bands_find((uintptr_t)block) : NULL;
    return entry ? bands_block((uintptr_t)block, entry->word).size
                 : below.malloc_usable_size(block);
}

void guard_open(void) {
    _Static_assert(CAIRN_HEAP_FUNCTION_COUNT == 13, "each function of the list is set below");
    if (!settings.guard_bytes || below.malloc) return;
    bands_open((uint32_t)settings.guard_bytes);
    below = real;
    // what gives blocks back first, so that no block with bands meets a function without
    real.free = guard_free;
    real.cfree = guard_free;
    real.free_sized = guard_free_sized;
    real.free_aligned_sized = guard_free_aligned_sized;
    real.realloc = guard_realloc;
    real.reallocarray = guard_reallocarray;
    real.malloc_usable_size = guard_malloc_usable_size;
    real.calloc = guard_calloc;
    real.posix_memalign = guard_posix_memalign;
    real.aligned_alloc = guard_aligned_alloc;
    real.memalign = guard_memalign;
    real.valloc = guard_valloc;
    real.pvalloc = guard_pvalloc;
    real.malloc = guard_malloc;
}

void guard_connect(void) {
    struct region region = sink_region(CAIRN_SECTION_GUARD);
    record = region.base ? region_take(&region, sizeof *record) : NULL;
    overruns = sink_region(CAIRN_SECTION_OVERRUNS);
    checks_done = 0;
    if (!record) return;
    record->band_bytes = (uint32_t)settings.guard_bytes;
    record->bands_table = (uintptr_t)bands_tops();
}

void guard_disconnect(void) {
    record = NULL;
}

void guard_note(const void *block, uint32_t cell) {
    struct bands_entry *entry = bands_find((uintptr_t)block);
    if (entry) entry->cell = cell;
}

bool guard_owns(const void *block) {
    return settings.guard_bytes && bands_find((uintptr_t)block);
}

void *guard_new(size_t size, size_t alignment) {
    if (likely(!below.malloc)) return NULL;
    return alignment > ALIGNMENT_USUAL ? aligned_with_bands(alignment, size) : guard_malloc(size);
}
