// SPDX-License-Identifier: Apache-2.0
// Words of an allocator's tables at random: reading the heap ends, and what it finds is in order.
// Included after cmocka.
#ifndef TESTS_UNIT_TOOL_DAMAGED_HEAP_H
#define TESTS_UNIT_TOOL_DAMAGED_HEAP_H

#include "tests/unit/runtime/random.h"
#include "tool/glibc/chunks.h"

struct damaged_heap {
    int (*setup)(void **state);  // makes the tables as they should be
    int (*teardown)(void **state);
    void (*damage)(uint64_t *chance);  // changes a word of them
    void (*read)(struct glibc_heap *heap);
    unsigned rounds;
};

// Returns a word to put in the place of another one: a number, a place nearby, any word, or one of
// `places`, to which words of these tables lead.
static inline uint64_t damaged_word(uint64_t word, uint64_t *chance, const uint64_t *places,
                                    size_t count) {
    const uint64_t words[] = {random_below(chance, 8), word + random_below(chance, 64) * 8,
                              random_next(chance) >> 16};
    const size_t plain = sizeof words / sizeof *words, which = random_below(chance, plain + count);
    return which < plain ? words[which] : places[which - plain];
}

static inline void damaged_heap_ends(void **state, const struct damaged_heap *made) {
    enum { WORDS_MOST = 8 };
    uint64_t chance = 1;
    for (unsigned round = 0; round < made->rounds; round++) {
        struct glibc_heap heap;
        assert_int_equal(made->setup(state), 0);
        for (unsigned i = 0; i <= round % WORDS_MOST; i++) made->damage(&chance);
        made->read(&heap);
        for (size_t i = 1; i < heap.chunks.count; i++)
            assert_true(heap.chunks.items[i - 1].address <= heap.chunks.items[i].address);
        glibc_heap_free(&heap);
        made->teardown(state);
    }
}

#endif
