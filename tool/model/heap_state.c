// SPDX-License-Identifier: Apache-2.0
#include "tool/model/heap_state.h"

unsigned heap_class_of(uint64_t bytes) {
    enum { WORD_BITS = 64 };
    unsigned class = bytes ? WORD_BITS - 1 - (unsigned)__builtin_clzll(bytes) : 0;
    return class < HEAP_CLASSES ? class : HEAP_CLASSES - 1;
}

void heap_state_free(struct heap_state *state) {
    array_free(&state->arenas);
    array_free(&state->areas);
    residency_free(&state->residency);
    for (size_t i = 0; i < state->types.count; i++) free(state->types.items[i]);
    array_free(&state->types);
}

const char *heap_state_type(const struct heap_state *state, uint32_t owner) {
    bool is_type = !state->is_recorded && owner >= HEAP_CLASSES;
    return is_type ? state->types.items[owner - HEAP_CLASSES] : NULL;
}

uint64_t heap_state_empty_bytes(const struct heap_state *state) {
    return state->residency.resident_bytes - state->residency.kept_bytes;
}
