// SPDX-License-Identifier: Apache-2.0
#include "tool/model/picture.h"

// No process has more than the address space: larger numbers are damage, and sums stay sane.
static const uint64_t bytes_max = (uint64_t)1 << 47;

static uint64_t clamp(uint64_t bytes) {
    return bytes < bytes_max ? bytes : bytes_max;
}

static uint64_t clamp_signed(int64_t value) {
    return value > 0 ? clamp((uint64_t)value) : 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// What is known goes first; the estimate of slack takes no more than is left.
static void split_heap(struct picture *picture, const struct cairn_picture *raw) {
    uint64_t free_bytes = picture->free_resident_bytes, left = picture->heap_bytes;
    picture->is_mapped_part = raw->knows & CAIRN_PICTURE_KNOWS_MAPPED;
    if (picture->is_mapped_part) picture->bytes[PICTURE_MAPPED] = least(raw->mapped_bytes, left);
    left -= picture->bytes[PICTURE_MAPPED];
    picture->is_live_more = picture->live_bytes > left;
    picture->bytes[PICTURE_LIVE] = least(picture->live_bytes, left);
    left -= picture->bytes[PICTURE_LIVE];
    picture->is_free_part = picture->arena_count && free_bytes <= left && !picture->is_live_more;
    if (picture->is_free_part) picture->bytes[PICTURE_FREE] = free_bytes;
    left -= picture->bytes[PICTURE_FREE];
    picture->is_slack_part = raw->knows & CAIRN_PICTURE_KNOWS_SLACK && picture->is_free_part;
    if (picture->is_slack_part) picture->bytes[PICTURE_SLACK] = least(picture->slack_bytes, left);
    picture->bytes[PICTURE_REST] = left - picture->bytes[PICTURE_SLACK];
}

bool picture_of(const struct recording *recording, size_t index, struct picture *picture) {
    struct cairn_picture raw;
    if (!recording_picture(recording, index, &raw)) return false;
    *picture = (struct picture){.at_ns = raw.at_ns,
                                .pss_bytes = clamp(raw.pss_bytes),
                                .swap_bytes = clamp(raw.swap_bytes),
                                .live_bytes = clamp_signed(raw.live_bytes),
                                .live_blocks = clamp_signed(raw.live_blocks),
                                .heap_bytes = clamp(raw.heap_bytes),
                                .slack_bytes = clamp(raw.slack_bytes),
                                .chunk_bytes = clamp(raw.free_chunk_bytes),
                                .top_bytes = clamp(raw.free_top_bytes),
                                .free_resident_bytes = clamp(raw.free_resident_bytes),
                                .arena_count = raw.arena_count,
                                .stack_count = raw.stack_count,
                                .is_sampled = recording_is_sampled(recording),
                                .is_cut = raw.is_cut};
    split_heap(picture, &raw);
    picture->bytes[PICTURE_STACKS] = clamp(raw.stacks_bytes);
    picture->bytes[PICTURE_FILES] = clamp(raw.files_bytes);
    picture->bytes[PICTURE_SHARED] = clamp(raw.shared_bytes);
    picture->bytes[PICTURE_OWN] = clamp(raw.own_bytes);
    picture->bytes[PICTURE_OTHER] = clamp(raw.other_bytes);
    for (int part = 0; part < PICTURE_PARTS; part++) picture->rss_bytes += picture->bytes[part];
    return true;
}

const char *picture_part_key(enum picture_part part) {
    static const char *const keys[PICTURE_PARTS] = {
        [PICTURE_LIVE] = "live_bytes",   [PICTURE_FREE] = "free_bytes",
        [PICTURE_SLACK] = "slack_bytes", [PICTURE_MAPPED] = "mapped_bytes",
        [PICTURE_REST] = "rest_bytes",   [PICTURE_STACKS] = "stacks_bytes",
        [PICTURE_FILES] = "files_bytes", [PICTURE_SHARED] = "shared_bytes",
        [PICTURE_OWN] = "own_bytes",     [PICTURE_OTHER] = "other_bytes",
    };
    return keys[part];
}
