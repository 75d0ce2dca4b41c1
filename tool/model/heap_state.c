// SPDX-License-Identifier: Apache-2.0
#include "tool/model/heap_state.h"

#include "tool/model/figures.h"
#include "tool/model/timeline.h"

unsigned heap_class_of(uint64_t bytes) {
    enum { WORD_BITS = 64 };
    unsigned class = bytes ? WORD_BITS - 1 - (unsigned)__builtin_clzll(bytes) : 0;
    return class < HEAP_CLASSES ? class : HEAP_CLASSES - 1;
}

void heap_state_free(struct heap_state *state) {
    array_free(&state->arenas);
    array_free(&state->sizes);
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

// What is worth a line: so much, half of the resident heap, for a quarter of the time.
static const uint64_t least_bytes = 16 << 20, heap_share = 2, time_share = 4;

// What is resident and no block of the heap's, the most in any picture.
struct others {
    uint64_t own_bytes, rest_bytes;  // cairn's; anything else
    uint64_t last_ns;                // the last picture's time
};

// False: it is not known.
static bool note_others(const struct recording *recording, size_t index, struct others *others) {
    struct picture picture;
    if (!picture_of(recording, index, &picture) || !picture.is_mapped_part) return false;
    const uint64_t *bytes = picture.bytes;
    uint64_t heap =
        bytes[PICTURE_LIVE] + bytes[PICTURE_SLACK] + bytes[PICTURE_FREE] + bytes[PICTURE_REST];
    uint64_t rest = picture.rss_bytes - heap - bytes[PICTURE_OWN];
    if (rest > others->rest_bytes) others->rest_bytes = rest;
    if (bytes[PICTURE_OWN] > others->own_bytes) others->own_bytes = bytes[PICTURE_OWN];
    if (picture.at_ns > others->last_ns) others->last_ns = picture.at_ns;
    return true;
}

// Pictures are rare where they take long, as with very many stacks. cairn's memory grows with the
// stacks and never shrinks: until the last picture it is at most what that one has, and afterwards
// what the recording says of its end.
static uint64_t others_at(const struct recording *recording, const struct others *others,
                          uint64_t at_ns) {
    uint64_t own = others->own_bytes;
    if (at_ns > others->last_ns && recording->header.own_bytes > own)
        own = recording->header.own_bytes;
    return own + others->rest_bytes;
}

// The heap's part of what was resident.
static uint64_t heap_of(const struct recording *recording, const struct others *others,
                        const struct cairn_resident *value) {
    uint64_t bytes = others_at(recording, others, value->at_ns);
    return value->rss_bytes > bytes ? value->rss_bytes - bytes : 0;
}

// What the live blocks take besides what was asked for: an eighth and more, if they are small.
static uint64_t free_of(uint64_t heap_bytes, uint64_t live_bytes) {
    uint64_t taken = live_bytes + live_bytes / 4;
    return heap_bytes > taken ? heap_bytes - taken : 0;
}

bool held_free_find(const struct recording *recording, struct held_free *held) {
    uint64_t free_ns = 0, first_ns = 0, last_ns = 0;
    struct others others = {0};
    struct cairn_resident value, next;
    *held = (struct held_free){0};
    // what was allocated before it was attached to is in the heap, and not free
    if (recording->header.is_attached && !recording->header.has_census) return false;
    if (!note_others(recording, CAIRN_PICTURE_AT_PEAK, &others) ||
        !note_others(recording, CAIRN_PICTURE_LAST, &others))
        return false;
    for (size_t i = 0;
         recording_resident(recording, i, &value) && recording_resident(recording, i + 1, &next);
         i++) {
        int64_t live;
        uint64_t heap = heap_of(recording, &others, &value);
        if (!i) first_ns = value.at_ns;
        last_ns = next.at_ns;
        if (!timeline_live_at(recording, value.at_ns, &live) || next.at_ns < value.at_ns) continue;
        uint64_t free_bytes = free_of(heap, (uint64_t)live);
        if (free_bytes < least_bytes || free_bytes < heap / heap_share) continue;
        free_ns += next.at_ns - value.at_ns;
        if (free_bytes > held->free_bytes)
            *held = (struct held_free){value.at_ns, value.rss_bytes, (uint64_t)live, free_bytes};
    }
    return last_ns > first_ns && free_ns >= (last_ns - first_ns) / time_share;
}
