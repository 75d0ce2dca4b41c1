// SPDX-License-Identifier: Apache-2.0
// When rules about resident memory hold, as cairn saw it from outside.
#include <string.h>

#include "tool/model/heap_state.h"
#include "tool/model/shape.h"
#include "tool/render/findings_find.h"

// Amounts that are worth a line.
enum {
    UNTOUCHED_MIN_BYTES = 4 << 20,
    ARENAS_MIN = 3,
    ARENAS_MIN_BYTES = 4 << 20,
    HUGE_MIN_BYTES = 128 << 20,
    HUGE_PAGE_BYTES = 2 << 20,
    SMALL_PAGE_BYTES = 4096,
    WORD_BITS = 64,
    LARGE_BLOCK_BITS = 13,  // of the least size of a block that may have a page of its own
};
static const double near_share = 0.98, untouched_share = 0.1, arenas_share = 0.1, small_share = 0.5,
                    peak_share = 0.9, least_share = 0.02,
                    fault_gain = 0.02;  // time once, no memory: last

bool finding_find_free(struct findings *findings, const struct profile *profile,
                       struct error *error) {
    struct held_free held;
    (void)error;
    if (!held_free_find(profile->recording, &held)) return true;
    struct finding *finding = finding_add(findings, FINDING_FREE);
    finding->bytes = held.free_bytes;
    finding->of_bytes = held.rss_bytes;
    finding->live_bytes = held.live_bytes;
    finding->at_ns = held.at_ns;
    finding_saves_bytes(finding, held.free_bytes, held.rss_bytes);
    return true;
}

// Returns whether the picture is of a moment before or behind the peak of resident memory, when
// there was more.
static bool is_beside_peak(const struct profile *profile, const struct cairn_picture *picture) {
    const double peak = (double)profile->recording->header.rss_peak_bytes;
    return (double)picture->rss_bytes < near_share * peak;
}

// The pictures of resident memory, the one with most of something.
static bool largest_picture(const struct recording *recording,
                            uint64_t (*of)(const struct cairn_picture *picture),
                            struct cairn_picture *largest) {
    *largest = (struct cairn_picture){0};
    for (size_t i = 0; i < CAIRN_PICTURE_COUNT; i++) {
        struct cairn_picture picture;
        if (recording_picture(recording, i, &picture) && of(&picture) > of(largest))
            *largest = picture;
    }
    return of(largest) > 0;
}

static uint64_t free_of(const struct cairn_picture *picture) {
    return picture->free_resident_bytes;
}

// Returns the most that a stack can have had of blocks at one time: of those that were there before
// cairn attached it allocated none.
static uint64_t most_held(const struct stack *stack) {
    int64_t held = stack->peak_bytes > stack->exit_bytes ? stack->peak_bytes : stack->exit_bytes;
    uint64_t bytes = held > 0 ? (uint64_t)held : 0;
    return bytes > stack->allocated_bytes ? bytes : stack->allocated_bytes;
}

// Returns what blocks of known size that have no page of their own took at least.
static uint64_t small_bytes(const struct shape_sizes *sizes) {
    uint64_t buckets[LARGE_BLOCK_BITS], bytes = 0;
    memcpy(buckets, sizes->buckets, sizeof buckets);
    for (size_t i = 0; i < sizes->count; i++) {
        const struct shape_size *one = &sizes->list[i];
        size_t bucket = one->size ? WORD_BITS - (size_t)__builtin_clzll(one->size) : 0;
        if (bucket >= LARGE_BLOCK_BITS || one->count > buckets[bucket]) continue;
        buckets[bucket] -= one->count;
        bytes += one->count * one->size;
    }
    for (size_t i = 1; i < LARGE_BLOCK_BITS; i++) bytes += buckets[i] << (i - 1);
    return bytes;
}

// Returns the most that a stack can have had of blocks with pages of their own: as far as sizes are
// known, by them. Nobody noted those of blocks that were there before.
static uint64_t most_large(const struct shape *shape, const struct stack *stack) {
    struct shape_sizes sizes;
    uint64_t most = most_held(stack);
    if (most > stack->allocated_bytes) return most;
    if (most < UINT64_C(1) << (LARGE_BLOCK_BITS - 1)) return 0;
    shape_sizes(shape, stack->number, &sizes);
    uint64_t small = small_bytes(&sizes);
    return most > small ? most - small : 0;
}

// Notes the stacks that may hold such blocks, each with the most that it can have had of them:
// which pages were touched is known of all blocks together.
static bool note_large(const struct profile *profile, const struct cairn_picture *picture,
                       struct finding *finding, struct error *error) {
    struct shape shape;
    const bool is_at_peak = (double)picture->live_bytes >= peak_share * (double)profile->peak.bytes;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        uint64_t peak = stack->peak_bytes > 0 ? (uint64_t)stack->peak_bytes : 0;
        uint64_t most = most_large(&shape, stack);
        if (is_at_peak && most > peak) most = peak;
        finding_note_stack(&finding->stacks, stack, most);
    }
    shape_free(&shape);
    if (finding->stacks.count) finding->stack = finding->stacks.list[0].stack;
    return true;
}

// Returns live bytes that are in no resident page: all that is resident and may be of blocks is
// less.
static uint64_t beyond_resident(const struct profile *profile,
                                const struct cairn_picture *picture) {
    uint64_t live = picture->live_bytes > 0 ? (uint64_t)picture->live_bytes : 0;
    uint64_t resident = picture->heap_bytes + picture->shared_bytes + picture->other_bytes;
    uint64_t others = picture->mapped_bytes + picture->free_resident_bytes;
    resident -= others < resident ? others : resident;
    return live > resident && !profile->sampling.is_on ? live - resident : 0;
}

// Returns what was not touched in the picture and cannot have been later: a block that is being
// filled looks like one that is reserved, but then resident memory rises. `is_least`: what else
// rose since then, and what else was resident, may have made it less than it is.
static uint64_t never_touched(const struct profile *profile, const struct cairn_picture *picture,
                              bool *is_least) {
    uint64_t peak = profile->recording->header.rss_peak_bytes, bytes = picture->untouched_bytes;
    uint64_t later = peak > picture->rss_bytes ? peak - picture->rss_bytes : 0;
    uint64_t beyond = beyond_resident(profile, picture);
    *is_least = beyond > bytes + bytes / 4;
    if (*is_least) bytes = beyond;
    *is_least |= (double)later > least_share * (double)bytes;
    return bytes > later ? bytes - later : 0;
}

// The picture with most of it.
static uint64_t most_untouched(const struct profile *profile, struct cairn_picture *picture,
                               bool *is_least) {
    uint64_t most = 0;
    for (size_t i = 0; i < CAIRN_PICTURE_COUNT; i++) {
        struct cairn_picture other;
        bool is_other_least;
        if (!recording_picture(profile->recording, i, &other)) continue;
        uint64_t bytes = never_touched(profile, &other, &is_other_least);
        if (bytes <= most) continue;
        *picture = other;
        *is_least = is_other_least;
        most = bytes;
    }
    return most;
}

bool finding_find_untouched(struct findings *findings, const struct profile *profile,
                            struct error *error) {
    struct cairn_picture picture = {0};
    bool is_least = false;
    uint64_t bytes = most_untouched(profile, &picture, &is_least);
    // what is swapped out is not there either
    if (!bytes || picture.swap_bytes) return true;
    uint64_t live = picture.live_bytes > 0 ? (uint64_t)picture.live_bytes : 0;
    if (bytes < UNTOUCHED_MIN_BYTES || bytes > live ||
        (double)bytes < untouched_share * (double)live)
        return true;
    struct finding *finding = finding_add(findings, FINDING_UNTOUCHED);
    finding->bytes = bytes;
    finding->of_bytes = live;
    finding->at_ns = picture.at_ns;
    // address space alone
    finding->gain = finding_part(bytes, live) / 4;
    finding->saved_bytes = bytes;
    finding->is_least = is_least;
    return note_large(profile, &picture, finding, error);
}

// Resident memory of the heap beyond its peak. Free chunks and what is live are read one after the
// other while the program goes on: their sum may be too high, but not above all that is resident.
static uint64_t beyond_peak(const struct cairn_picture *picture, uint64_t peak_bytes) {
    uint64_t live = picture->live_bytes > 0 ? (uint64_t)picture->live_bytes : 0;
    uint64_t held = live + picture->free_resident_bytes, heap = picture->heap_bytes;
    if (picture->knows & CAIRN_PICTURE_KNOWS_MAPPED)
        heap -= picture->mapped_bytes < heap ? picture->mapped_bytes : heap;
    if (held > heap) held = heap;
    uint64_t beyond = held > peak_bytes ? held - peak_bytes : 0;
    return beyond < picture->free_resident_bytes ? beyond : picture->free_resident_bytes;
}

// One arena would have to hold the heap's peak: what all of them hold beyond that is memory that
// one has free while another takes more.
bool finding_find_arenas(struct findings *findings, const struct profile *profile,
                         struct error *error) {
    struct cairn_picture picture;
    (void)error;
    // after an attach the peak may be one that nobody saw
    if (profile->recording->header.is_attached) return true;
    if (!largest_picture(profile->recording, free_of, &picture)) return true;
    uint64_t bytes = beyond_peak(&picture, (uint64_t)profile->peak.bytes);
    bool is_much =
        bytes >= ARENAS_MIN_BYTES && (double)bytes >= arenas_share * (double)picture.rss_bytes;
    if (picture.arena_count < ARENAS_MIN || !is_much) return true;
    struct finding *finding = finding_add(findings, FINDING_ARENAS);
    finding->count = picture.arena_count;
    finding->bytes = picture.free_resident_bytes;
    finding->of_bytes = picture.rss_bytes;
    finding->at_ns = picture.at_ns;
    // not all threads had freed yet, or it was given back
    finding->is_least = picture.is_cut || is_beside_peak(profile, &picture);
    finding_saves_bytes(finding, bytes, picture.rss_bytes);
    finding->gain *= 1 + finding_specific;
    return true;
}

static uint64_t small_of(const struct cairn_picture *picture) {
    bool is_known = picture->knows & CAIRN_PICTURE_KNOWS_HUGE;
    uint64_t huge = picture->huge_bytes, heap = picture->heap_bytes;
    return is_known && huge <= heap ? heap - huge : 0;
}

// glibc asks for huge pages if a tunable says so. Its heap must be large, not what the program maps
// itself: that is for the program to advise.
bool finding_find_huge(struct findings *findings, const struct profile *profile,
                       struct error *error) {
    struct cairn_picture picture;
    (void)error;
    if (profile->recording->header.allocator != CAIRN_ALLOCATOR_GLIBC ||
        !largest_picture(profile->recording, small_of, &picture))
        return true;
    uint64_t small = small_of(&picture);
    small -= small < picture.mapped_bytes ? small : picture.mapped_bytes;
    if (small < HUGE_MIN_BYTES || picture.live_bytes < HUGE_MIN_BYTES ||
        (double)small < small_share * (double)picture.heap_bytes)
        return true;
    struct finding *finding = finding_add(findings, FINDING_HUGE);
    finding->bytes = small;
    finding->of_bytes = picture.rss_bytes, finding->at_ns = picture.at_ns;
    finding->saved_faults = small / SMALL_PAGE_BYTES - small / HUGE_PAGE_BYTES;
    finding->is_least = is_beside_peak(profile, &picture);
    finding->gain = fault_gain * finding_part(small, picture.rss_bytes);
    return true;
}
