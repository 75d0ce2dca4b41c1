// SPDX-License-Identifier: Apache-2.0
#include "tool/tcmalloc/chains.h"

#include <stddef.h>

enum {
    WORD = sizeof(uint64_t),
    CHAIN_MAX = 1 << 16,
    MOVED_MOST = 1024,    // blocks that are moved at a time, more than any setting allows
    STACK_WORDS = 160,    // of the innermost functions, which are the allocator's
    BELOW_STACK = 16,     // words of the innermost one that lie below its stack pointer
    REGISTERS_MOST = 40,  // as the kernel gives them
    TRANSFER_BYTES = 64 << 10,
    LIST_BYTES = sizeof(((struct tcmalloc_cache *)0)->lists[0]),
};

// Holds what a thread has at hand: its registers, then the top of its stack.
struct at_hand {
    uint64_t words[REGISTERS_MOST + BELOW_STACK + STACK_WORDS];
    size_t count, register_count;
};

// A chain that a thread may be moving.
struct moved {
    uint64_t head, tail, count;
    unsigned size_class;
};

// --- chains

struct glibc_chunk *tcmalloc_block_at(const struct glibc_heap *heap, uint64_t address) {
    struct glibc_chunk *chunk = (struct glibc_chunk *)(uintptr_t)glibc_chunk_of(heap, address);
    return chunk && chunk->address == address ? chunk : NULL;
}

uint64_t tcmalloc_chain_count(const struct tcmalloc_chains *chains, uint64_t head, uint64_t tail,
                              uint64_t size) {
    uint64_t seen = 0;
    for (uint64_t at = head; at && seen < CHAIN_MAX;) {
        const struct glibc_chunk *chunk = tcmalloc_block_at(chains->heap, at);
        if (!chunk || chunk->size != size || chunk->kind != CHUNK_USED) return UINT64_MAX;
        seen++;
        if (at == tail) return seen;
        if (!memory_read_word(chains->memory, at, &at)) return UINT64_MAX;
    }
    return tail || seen == CHAIN_MAX ? UINT64_MAX : seen;
}

void tcmalloc_chain_mark(const struct tcmalloc_chains *chains, uint64_t head, uint64_t count,
                         uint64_t passed, enum chunk_kind kind) {
    for (uint64_t at = head, i = 0; i < count; i++) {
        struct glibc_chunk *chunk = tcmalloc_block_at(chains->heap, at);
        if (i >= passed && chunk) chunk->kind = kind;
        if (!memory_read_word(chains->memory, at, &at)) return;
    }
}

// --- what a thread has at hand

static void take_at_hand(const struct memory_reader *memory, const struct tcmalloc_thread *thread,
                         struct at_hand *hand) {
    hand->count = 0;
    for (size_t i = 0; i < thread->register_count && i < REGISTERS_MOST; i++)
        hand->words[hand->count++] = thread->registers[i];
    hand->register_count = hand->count;
    if (thread->stack < BELOW_STACK * WORD || thread->stack % WORD) return;
    for (size_t i = 0; i < BELOW_STACK + STACK_WORDS; i++)
        if (memory_read_word(memory, thread->stack - BELOW_STACK * WORD + i * WORD,
                             &hand->words[hand->count]))
            hand->count++;
}

static bool has_within(const struct at_hand *hand, uint64_t start, uint64_t bytes) {
    for (size_t i = 0; i < hand->count; i++)
        if (hand->words[i] - start < bytes) return true;
    return false;
}

static bool has_in_register(const struct at_hand *hand, uint64_t word) {
    for (size_t i = 0; i < hand->register_count; i++)
        if (hand->words[i] == word) return true;
    return false;
}

static bool is_at_hand(const struct at_hand *hand, const struct tcmalloc_known_cache *cache) {
    return has_within(hand, cache->address, sizeof(struct tcmalloc_cache));
}

static bool has_cache(const struct tcmalloc_chains *chains, const struct at_hand *hand) {
    for (size_t i = 0; i < chains->caches.count; i++)
        if (is_at_hand(hand, &chains->caches.items[i])) return true;
    return false;
}

static uint64_t lists_of(const struct tcmalloc_chains *chains, unsigned size_class) {
    return chains->places->lists + size_class * sizeof(struct tcmalloc_lists);
}

// --- chains on their way

static unsigned class_of(const struct tcmalloc_places *places, uint64_t size) {
    for (unsigned i = 1; i < places->class_count; i++)
        if (places->sizes[i] == size) return i;
    return 0;
}

// Follows a chain to its end. Returns false if it leads elsewhere, or is of one block: that is what
// each thread within a call may have.
static bool follow(const struct tcmalloc_chains *chains, uint64_t head, struct moved *moved) {
    const struct glibc_chunk *chunk = tcmalloc_block_at(chains->heap, head);
    const uint64_t size = chunk ? chunk->size : 0;
    *moved = (struct moved){.head = head};
    for (uint64_t at = head; at;) {
        chunk = tcmalloc_block_at(chains->heap, at);
        if (!chunk || chunk->size != size || chunk->kind != CHUNK_USED ||
            ++moved->count > MOVED_MOST)
            return false;
        moved->tail = at;
        if (!memory_read_word(chains->memory, at, &at)) return false;
    }
    moved->size_class = class_of(chains->places, size);
    return moved->count > 1 && moved->size_class;
}

// Says whether a chain ends where that of the slot did that was emptied last.
static bool ends_slot(const struct tcmalloc_chains *chains, const struct moved *moved) {
    struct tcmalloc_lists lists;
    return memory_read(chains->memory, lists_of(chains, moved->size_class), &lists, sizeof lists) &&
           lists.used_slots < TCMALLOC_SLOTS && lists.slots[lists.used_slots].tail == moved->tail;
}

// Compares a chain with the counts of the thread's cache: that many bytes are in none of its lists
// (it goes back), or its list of that size is empty (it comes).
static bool agrees_with(const struct tcmalloc_chains *chains,
                        const struct tcmalloc_known_cache *known, const struct moved *moved) {
    const uint64_t size = chains->places->sizes[moved->size_class];
    const uint64_t missing = known->missing_bytes > 0 ? (uint64_t)known->missing_bytes : 0;
    struct tcmalloc_cache cache;
    if (missing % size == 0 && missing / size >= moved->count) return true;
    return memory_read(chains->memory, known->address, &cache, sizeof cache) &&
           !cache.lists[moved->size_class].head && !cache.lists[moved->size_class].count &&
           (moved->count == 2 || moved->count * size <= TRANSFER_BYTES);
}

// Says whether the thread has a cache at hand, its own or one that it takes room from, with which a
// chain agrees.
static bool agrees_with_one(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                            bool are_lists_at_hand, const struct moved *moved) {
    for (size_t i = 0; i < chains->caches.count; i++) {
        const struct tcmalloc_known_cache *cache = &chains->caches.items[i];
        const uint64_t list = cache->address + moved->size_class * LIST_BYTES;
        if (is_at_hand(hand, cache) && (are_lists_at_hand || has_within(hand, list, LIST_BYTES)) &&
            agrees_with(chains, cache, moved))
            return true;
    }
    return false;
}

static bool may_be_moved(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                         const struct moved *moved) {
    const bool are_lists_at_hand =
        has_within(hand, lists_of(chains, moved->size_class), sizeof(struct tcmalloc_lists));
    const bool is_of_slot = are_lists_at_hand && ends_slot(chains, moved);
    if (is_of_slot) return true;
    return has_within(hand, moved->tail, 1) &&
           agrees_with_one(chains, hand, are_lists_at_hand, moved);
}

// --- lists of the thread's cache

// Says whether the thread has at hand a block of that size that leads to `head`.
static bool has_leading_to(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                           uint64_t head, uint64_t size) {
    uint64_t next;
    for (size_t i = 0; i < hand->count; i++) {
        const struct glibc_chunk *chunk = tcmalloc_block_at(chains->heap, hand->words[i]);
        if (chunk && chunk->size == size && chunk->kind == CHUNK_USED &&
            memory_read_word(chains->memory, hand->words[i], &next) && next == head)
            return true;
    }
    return false;
}

// Marks a list that has not as many blocks as it counts: the thread changes it. If it has just
// taken the first block and not counted that yet, the others are free.
static void mark_unsettled(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                           uint64_t head, uint64_t count, uint64_t size) {
    const uint64_t found = count ? tcmalloc_chain_count(chains, head, 0, size) : UINT64_MAX;
    if (found == UINT64_MAX) return;
    bool is_popped = found == count - 1 && has_leading_to(chains, hand, head, size);
    tcmalloc_chain_mark(chains, head, found, 0, is_popped ? CHUNK_CACHED : CHUNK_MOVING);
}

// Takes back what a list said whose first block may not lead to the second one yet, but to where it
// led before: to blocks in use, for all that is known.
static void doubt_list(const struct tcmalloc_chains *chains, uint64_t head, uint64_t size) {
    for (uint64_t at = head, i = 0; at && i < CHAIN_MAX; i++) {
        struct glibc_chunk *chunk = tcmalloc_block_at(chains->heap, at);
        if (!chunk || chunk->size != size || chunk->kind == CHUNK_BINNED ||
            chunk->kind == CHUNK_MOVING)
            return;
        chunk->kind = CHUNK_MOVING;
        if (!memory_read_word(chains->memory, at, &at)) return;
    }
}

// Looks for the list as it was, before its first block was put there: in a register of the thread,
// as long as the list counts, or a block shorter.
static void doubt_pushed(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                         uint64_t head, uint64_t count, uint64_t size) {
    uint64_t next = 0;
    if (!count || !has_in_register(hand, head) || !memory_read_word(chains->memory, head, &next))
        return;
    for (size_t i = 0; i < hand->register_count; i++) {
        const uint64_t before = hand->words[i];
        if (!before || before == head || before == next) continue;
        const uint64_t found = tcmalloc_chain_count(chains, before, 0, size);
        if (found != count && found != count - 1) continue;
        doubt_list(chains, head, size);
        tcmalloc_chain_mark(chains, before, found, 0, CHUNK_MOVING);
    }
}

static void mark_lists(const struct tcmalloc_chains *chains, const struct at_hand *hand,
                       const struct tcmalloc_cache *cache) {
    for (unsigned i = 1; i < chains->places->class_count; i++) {
        const uint64_t head = cache->lists[i].head, size = chains->places->sizes[i];
        const struct glibc_chunk *first = tcmalloc_block_at(chains->heap, head);
        if (!first) continue;
        doubt_pushed(chains, hand, head, cache->lists[i].count, size);
        if (first->kind == CHUNK_USED)
            mark_unsettled(chains, hand, head, cache->lists[i].count, size);
    }
}

void tcmalloc_chains_moving(struct tcmalloc_chains *chains, const struct tcmalloc_thread *thread) {
    struct at_hand hand;
    struct moved moved;
    struct tcmalloc_cache cache;
    take_at_hand(chains->memory, thread, &hand);
    const bool is_between = has_within(&hand, lists_of(chains, 0),
                                       chains->places->class_count * sizeof(struct tcmalloc_lists));
    if (!is_between && !has_cache(chains, &hand)) return;
    chains->busy_count++;
    for (size_t i = 0; i < chains->caches.count; i++)
        if (is_at_hand(&hand, &chains->caches.items[i]) &&
            tcmalloc_cache_read(chains->memory, chains->places, chains->caches.items[i].address,
                                &cache))
            mark_lists(chains, &hand, &cache);
    for (size_t i = 0; i < hand.count; i++)
        if (follow(chains, hand.words[i], &moved) && may_be_moved(chains, &hand, &moved))
            tcmalloc_chain_mark(chains, moved.head, moved.count, 0, CHUNK_MOVING);
}
