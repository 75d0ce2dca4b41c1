// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/holdings.h"

// The kernel places mappings side by side as a rule, and then one entry has many. Few programs have
// more than the first ones; a heap whose blocks are all mappings of their own has one for 4 MiB.
struct holding {
    uintptr_t start, end;  // (atomic) equal: unused
};
enum { FIRST_COUNT = 32, NEIGHBOURS = 4 };
enum { PIECE_COUNT = HOLDINGS_PIECE_BYTES / sizeof(struct holding), PIECES = 48 };

static struct holding first[FIRST_COUNT];
static struct holding *pieces[PIECES];  // (atomic) filled from the front
static uint32_t piece_count;            // (atomic)
static uint32_t used_count;             // (atomic) may pass the end

static struct holding *holding_at(uint32_t number) {
    if (number < FIRST_COUNT) return &first[number];
    number -= FIRST_COUNT;
    struct holding *piece = __atomic_load_n(&pieces[number / PIECE_COUNT], __ATOMIC_ACQUIRE);
    return &piece[number % PIECE_COUNT];
}

static uint32_t limit_now(void) {
    return FIRST_COUNT + __atomic_load_n(&piece_count, __ATOMIC_ACQUIRE) * PIECE_COUNT;
}

static uint32_t count_now(void) {
    uint32_t count = __atomic_load_n(&used_count, __ATOMIC_ACQUIRE), limit = limit_now();
    return count < limit ? count : limit;
}

static uintptr_t load(const uintptr_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool exchange(uintptr_t *word, uintptr_t from, uintptr_t to) {
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void holding_fill(struct holding *holding, uintptr_t start, uintptr_t end) {
    __atomic_store_n(&holding->start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&holding->end, end, __ATOMIC_RELEASE);
}

static bool is_grown(struct holding *holding, uintptr_t start, uintptr_t end) {
    return load(&holding->start) != load(&holding->end) &&
           (exchange(&holding->start, end, start) || exchange(&holding->end, start, end));
}

// Fills an unused entry, which ends below its start meanwhile.
static bool is_used_again(struct holding *holding, uintptr_t start, uintptr_t end) {
    uintptr_t unused = load(&holding->start);
    if (!unused || unused != load(&holding->end) || !exchange(&holding->end, unused, 0))
        return false;
    holding_fill(holding, start, end);
    return true;
}

static bool is_added_beside(uintptr_t start, uintptr_t end) {
    uint32_t count = count_now(), least = count > NEIGHBOURS ? count - NEIGHBOURS : 0;
    for (uint32_t i = count; i > least; i--)
        if (is_grown(holding_at(i - 1), start, end)) return true;
    for (uint32_t i = count; i > least; i--)
        if (is_used_again(holding_at(i - 1), start, end)) return true;
    return false;
}

static bool holding_append(uintptr_t start, uintptr_t end) {
    uint32_t number = __atomic_load_n(&used_count, __ATOMIC_RELAXED);
    do {
        if (number >= limit_now()) return false;
    } while (!__atomic_compare_exchange_n(&used_count, &number, number + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    holding_fill(holding_at(number), start, end);
    return true;
}

__attribute__((cold)) bool holdings_add(uintptr_t start, size_t bytes) {
    return is_added_beside(start, start + bytes) || holding_append(start, start + bytes);
}

bool holdings_extend(void *memory) {
    uint32_t number = __atomic_load_n(&piece_count, __ATOMIC_ACQUIRE);
    struct holding *none = NULL;
    if (number >= PIECES ||
        !__atomic_compare_exchange_n(&pieces[number], &none, (struct holding *)memory, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&piece_count, number + 1, __ATOMIC_RELEASE);
    return true;
}

// A piece that is cut out of the middle leaves two.
static void holding_cut(struct holding *holding, uintptr_t from, uintptr_t to) {
    uintptr_t start = load(&holding->start), end = load(&holding->end);
    if (start >= end || to <= start || from >= end) return;
    if (from > start && to < end) holding_append(to, end);
    if (from > start)
        exchange(&holding->end, end, from);
    else
        exchange(&holding->start, start, to < end ? to : end);
}

__attribute__((cold)) void holdings_remove(uintptr_t start, size_t bytes) {
    for (uint32_t i = count_now(); i > 0; i--) holding_cut(holding_at(i - 1), start, start + bytes);
}

uint64_t holdings_bytes(void) {
    uint64_t bytes = 0;
    for (uint32_t i = 0, count = count_now(); i < count; i++) {
        uintptr_t start = load(&holding_at(i)->start), end = load(&holding_at(i)->end);
        if (start < end) bytes += end - start;
    }
    return bytes;
}

bool holdings_next(uintptr_t from, uintptr_t *start, uintptr_t *end) {
    bool is_found = false;
    for (uint32_t i = 0, count = count_now(); i < count; i++) {
        uintptr_t low = load(&holding_at(i)->start), high = load(&holding_at(i)->end);
        if (low >= high || high <= from || (is_found && low >= *start)) continue;
        *start = low, *end = high;
        is_found = true;
    }
    return is_found;
}
