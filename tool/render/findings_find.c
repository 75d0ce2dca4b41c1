// SPDX-License-Identifier: Apache-2.0
#include "tool/render/findings_find.h"

#include <stdlib.h>

#include "tool/model/figures.h"
#include "tool/model/growth.h"
#include "tool/model/heap_state.h"
#include "tool/model/shape.h"

// What is worth a line.
static const double growth_fit = 0.9, growth_share = 0.05, temporary_share = 0.25,
                    short_share = 0.5, flow_share = 0.5;
enum {
    GROWTH_SNAPSHOTS = 12,  // are enough for a line, and quick
    GROWTH_MIN_CALLS = 5,
    GROWTH_MIN_BYTES = 256 * 1024,
    REALLOC_MIN_TIMES = 8,
    REALLOC_MIN_BYTES = 256 * 1024,
    REALLOC_LARGE_BYTES = 8 * 1024,
    REALLOC_MANY_TIMES = 200,  // even if it never had to be copied
    TEMPORARY_MIN_BLOCKS = 10000,
    WATCHED_MIN_BLOCKS = 20,
    FLOW_MIN_BYTES = 256 * 1024,
    REUSE_MIN_BLOCKS = 10000,
    ALIKE_MIN_BLOCKS = 10000,
    ALIKE_MOST_BYTES = 256,
    ALIKE_MIN_BYTES = 256 * 1024,
    ALIKE_POOL = 64,   // blocks that a call of the allocator would bring
    HEADER_BYTES = 8,  // of a chunk of glibc
    UNTOUCHED_MIN_BYTES = 4 << 20,
    ARENAS_MIN = 3,
    ARENAS_MIN_BYTES = 4 << 20,
    WASTE_MIN_BYTES = 256 * 1024,
    HUGE_MIN_BYTES = 128 << 20,
    HUGE_PAGE_BYTES = 2 << 20,
    SMALL_PAGE_BYTES = 4096,
};
static const double reuse_share = 0.1, freer_share = 0.95, alike_share = 0.1, untouched_share = 0.1,
                    arenas_share = 0.1, small_share = 0.5, strings_share = 0.05, waste_share = 0.2,
                    fault_gain = 0.02;  // time once, no memory: last
static const double specific = 0.1;     // of two findings about the same, what says how is first

static struct finding *add(struct findings *findings, enum finding_kind kind) {
    struct finding *finding = &findings->list[findings->count++];
    *finding = (struct finding){.kind = kind};
    return finding;
}

// At most all of it: figures of a damaged recording contradict one another.
static double part_of(uint64_t part, uint64_t whole) {
    return part < whole ? (double)part / (double)whole : whole != 0;
}

static void saves_bytes(struct finding *finding, uint64_t bytes, uint64_t of_bytes) {
    double part = part_of(bytes, of_bytes);
    finding->saved_bytes = bytes;
    if (part > finding->gain) finding->gain = part;
}

// Half as dear as memory: what is short of memory stops, what makes calls is slower.
static void saves_calls(struct finding *finding, uint64_t calls, const struct profile *profile) {
    double part = part_of(calls, profile->totals.allocations) / 2;
    finding->saved_calls = calls;
    if (part > finding->gain) finding->gain = part;
}

bool finding_find_growth(struct findings *findings, const struct profile *profile,
                         struct error *error) {
    struct snapshots snapshots;
    struct growth growth = {0};
    if (!snapshots_build(&snapshots, profile, error)) return false;
    const size_t first = growth_first(&snapshots);
    bool is_ok = growth_build(&growth, &snapshots, first, GROWTH_SNAPSHOTS, error);
    for (size_t i = 0; is_ok && i < growth.count - growth.stalled_count; i++) {
        const struct growth_stack *stack = &growth.list[i];
        int64_t rise = growth_rise(stack->first_bytes, stack->last_bytes);
        // a few large blocks are steps, whatever line goes through them
        bool is_steady = stack->fit >= growth_fit &&
                         profile->stacks[stack->stack].allocations >= GROWTH_MIN_CALLS;
        if (!is_steady || rise < GROWTH_MIN_BYTES ||
            (double)rise < growth_share * (double)profile->peak.bytes)
            continue;
        struct finding *finding = add(findings, FINDING_GROWTH);
        finding->stack = &profile->stacks[stack->stack];
        finding->fit = stack->fit;
        finding->bytes_per_s = stack->bytes_per_s;
        finding->is_freed = stack->freed_bytes != 0;
        saves_bytes(finding, (uint64_t)rise, (uint64_t)profile->peak.bytes);
        // what is given back in the end may well have been needed
        if (finding->is_freed) finding->gain /= 2;
        break;
    }
    growth_free(&growth);
    snapshots_free(&snapshots);
    return is_ok;
}

// Buffers begin with blocks that no realloc made; of another stack's, each growth counts for one.
static void note_grown_often(const struct shape *shape, const struct stack *stack,
                             struct finding *finding) {
    struct shape_reallocs reallocs;
    shape_reallocs(shape, stack->number, &reallocs);
    uint64_t begun = stack->allocations > reallocs.calls ? stack->allocations - reallocs.calls : 0;
    uint64_t times = reallocs.grown / (begun ? begun : 1);
    bool is_costly = reallocs.copied_bytes >= REALLOC_MIN_BYTES || times >= REALLOC_MANY_TIMES;
    bool is_more = reallocs.copied_bytes > finding->bytes || !finding->stack;
    // small blocks of another stack are more likely many than one that is grown all the time
    bool is_one = begun || stack->allocated_bytes / REALLOC_LARGE_BYTES >= stack->allocations;
    if (times < REALLOC_MIN_TIMES || !is_costly || !is_more || !is_one) return;
    *finding = (struct finding){.kind = FINDING_REALLOC,
                                .stack = stack,
                                .count = begun ? times : reallocs.grown,
                                .of_count = begun,
                                .bytes = reallocs.copied_bytes,
                                .saved_calls = reallocs.grown};
}

bool finding_find_realloc(struct findings *findings, const struct profile *profile,
                          struct error *error) {
    struct shape shape;
    struct finding best = {0};
    if (!recording_count(profile->recording, CAIRN_SECTION_REALLOCS)) return true;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        note_grown_often(&shape, &profile->stacks[i], &best);
    if (best.stack) {
        // copying is the work, more than the calls
        best.gain = part_of(best.bytes, profile->totals.allocated_bytes);
        saves_calls(&best, best.saved_calls, profile);
        *add(findings, FINDING_REALLOC) = best;
    }
    shape_free(&shape);
    return true;
}

static const struct stack *stack_with_most(const struct profile *profile, enum measure measure) {
    const struct stack *most = NULL;
    int64_t highest = INT64_MIN;
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t value = measure_stack(measure, &profile->stacks[i]).value;
        if (value <= highest) continue;
        highest = value;
        most = &profile->stacks[i];
    }
    return most;
}

// What is freed at once is short-lived as well.
bool finding_find_temporary(struct findings *findings, const struct profile *profile,
                            struct error *error) {
    (void)error;
    bool is_short = profile->totals.watched.blocks >= WATCHED_MIN_BLOCKS;
    enum measure measure = is_short ? MEASURE_SHORT : MEASURE_TEMPORARY;
    int64_t blocks = measure_total(measure, profile).value;
    double share = is_short ? short_share : temporary_share;
    uint64_t calls = profile->totals.allocations;
    if (blocks < TEMPORARY_MIN_BLOCKS || (double)blocks < share * (double)calls) return true;
    struct finding *finding = add(findings, FINDING_TEMPORARY);
    finding->stack = stack_with_most(profile, measure);
    finding->count = (uint64_t)blocks;
    finding->of_count = calls;
    finding->is_estimate = is_short;
    saves_calls(finding, finding->count, profile);
    return true;
}

// That many blocks are short-lived, by a sample: where all of them are known it says nothing more.
static void drop_estimate(struct findings *findings) {
    size_t kept = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        if (finding->kind != FINDING_TEMPORARY || !finding->is_estimate)
            findings->list[kept++] = *finding;
    }
    findings->count = kept;
}

// Blocks whose age is not known, those that are left among them, lived long.
bool finding_find_ages(struct findings *findings, const struct profile *profile,
                       struct error *error) {
    struct shape shape;
    struct finding found = {.kind = FINDING_AGES, .of_count = profile->totals.allocations};
    uint64_t most = 0;
    bool has_ages = recording_count(profile->recording, CAIRN_SECTION_AGES) > 0;
    if (!has_ages || profile->sampling.is_on) return true;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct shape_ages ages;
        if (!shape_ages(&shape, profile->stacks[i].number, &ages)) continue;
        found.count += ages.ms[0];
        if (found.stack && ages.ms[0] <= most) continue;
        most = ages.ms[0];
        found.stack = &profile->stacks[i];
    }
    shape_free(&shape);
    if (found.count >= TEMPORARY_MIN_BLOCKS &&
        (double)found.count >= temporary_share * (double)found.of_count) {
        saves_calls(&found, found.count, profile);
        drop_estimate(findings);
        *add(findings, FINDING_AGES) = found;
    }
    return true;
}

bool finding_find_freed_by(struct findings *findings, const struct profile *profile,
                           struct error *error) {
    struct freed_by_flow flow;
    (void)error;
    if (!profile->recording->header.totals.is_threaded || !freed_by_largest(profile, &flow))
        return true;
    if (flow.bytes < FLOW_MIN_BYTES || (double)flow.bytes < flow_share * (double)flow.of_bytes)
        return true;
    struct finding *finding = add(findings, FINDING_FREED_BY);
    finding->flow = flow;
    finding->count = (uint64_t)flow.freed.blocks;
    // a handed-over block costs a lock or two, not a whole call
    finding->gain = part_of(finding->count, profile->totals.allocations) / 2;
    return true;
}

bool finding_find_free(struct findings *findings, const struct profile *profile,
                       struct error *error) {
    struct held_free held;
    (void)error;
    if (!held_free_find(profile->recording, &held)) return true;
    struct finding *finding = add(findings, FINDING_FREE);
    finding->bytes = held.free_bytes;
    finding->of_bytes = held.rss_bytes;
    finding->live_bytes = held.live_bytes;
    finding->at_ns = held.at_ns;
    saves_bytes(finding, held.free_bytes, held.rss_bytes);
    return true;
}

// The size of all blocks of a stack; 0: there are several, or they are not known.
static uint64_t only_size(const struct shape *shape, const struct stack *stack) {
    struct shape_sizes sizes;
    shape_sizes(shape, stack->number, &sizes);
    bool is_one = sizes.count == 1 && !sizes.unknown && !sizes.list[0].is_at_least &&
                  sizes.list[0].count == stack->allocations;
    return is_one ? sizes.list[0].size : 0;
}

// Whether two stacks come together a call or two above their ends: what allocates and what frees
// are then called by one function, themselves or through a helper each. Names decide later.
static bool are_near(const struct tree *tree, uint32_t node, uint32_t other) {
    enum { HELPERS = 3 };
    uint32_t at = node;
    for (int i = 0; i < HELPERS && at != TREE_ROOT; i++, at = tree->nodes.items[at].parent) {
        uint32_t to = other;
        for (int j = 0; j < HELPERS && to != TREE_ROOT; j++, to = tree->nodes.items[to].parent)
            if (at == to) return true;
    }
    return false;
}

static void note_reuse(const struct profile *profile, const struct stack *stack,
                       const struct shape_free_stack *frees, size_t count,
                       struct finding *finding) {
    uint64_t calls = stack->allocations;
    bool is_much = calls >= REUSE_MIN_BLOCKS &&
                   (double)calls >= reuse_share * (double)profile->totals.allocations;
    if (!is_much || calls <= finding->count) return;
    for (size_t i = 0; i < count; i++) {
        if ((double)frees[i].frees < freer_share * (double)calls) continue;
        if (!are_near(&profile->tree, stack->node, frees[i].node)) continue;
        *finding = (struct finding){.kind = FINDING_REUSE,
                                    .stack = stack,
                                    .free_node = frees[i].node,
                                    .count = calls,
                                    .of_count = profile->totals.allocations};
    }
}

bool finding_find_reuse(struct findings *findings, const struct profile *profile,
                        struct error *error) {
    struct finding best = {0};
    struct shape shape;
    size_t count, own_count;
    if (!free_stacks_has_any(profile) || profile->sampling.is_on) return true;
    struct shape_free_stack *list = shape_free_stacks(profile, &count);
    if (!list) return error_set(error, "no memory for the stacks that free");
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        const struct shape_free_stack *frees =
            shape_free_stacks_of(list, count, stack->number, &own_count);
        note_reuse(profile, stack, frees, own_count, &best);
    }
    free(list);
    if (!best.stack) return true;
    if (!shape_build(&shape, profile, error)) return false;
    best.bytes = only_size(&shape, best.stack);
    shape_free(&shape);
    saves_calls(&best, best.count, profile);
    best.gain *= 1 + specific;
    *add(findings, FINDING_REUSE) = best;
    return true;
}

// Without its size, which is the dear part to find out.
static bool may_be_alike(const struct profile *profile, const struct stack *stack) {
    int64_t blocks = stack->peak_blocks;
    return blocks >= ALIKE_MIN_BLOCKS && (uint64_t)blocks * 2 >= stack->allocations &&
           stack->allocated_bytes <= stack->allocations * ALIKE_MOST_BYTES &&
           stack->peak_bytes >= ALIKE_MIN_BYTES &&
           (double)stack->peak_bytes >= alike_share * (double)profile->peak.bytes;
}

bool finding_find_alike(struct findings *findings, const struct profile *profile,
                        struct error *error) {
    struct shape shape;
    struct finding best = {0};
    bool has_shape = false,
         is_glibc = profile->recording->header.allocator == CAIRN_ALLOCATOR_GLIBC;
    for (size_t i = 0; i < profile->stack_count && !profile->sampling.is_on; i++) {
        const struct stack *stack = &profile->stacks[i];
        if (!may_be_alike(profile, stack) || stack->peak_blocks <= (int64_t)best.count) continue;
        if (!has_shape && !(has_shape = shape_build(&shape, profile, error))) return false;
        uint64_t size = only_size(&shape, stack);
        if (!size) continue;
        uint64_t room = stack->slack_bytes / stack->allocations + (is_glibc ? HEADER_BYTES : 0);
        best = (struct finding){.kind = FINDING_ALIKE,
                                .stack = stack,
                                .count = (uint64_t)stack->peak_blocks,
                                .bytes = size,
                                .saved_bytes = room * (uint64_t)stack->peak_blocks};
    }
    if (has_shape) shape_free(&shape);
    if (!best.stack) return true;
    uint64_t calls = best.stack->allocations;
    saves_calls(&best, calls - calls / ALIKE_POOL, profile);
    saves_bytes(&best, best.saved_bytes, (uint64_t)profile->peak.bytes + best.saved_bytes);
    *add(findings, FINDING_ALIKE) = best;
    return true;
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

static uint64_t untouched_of(const struct cairn_picture *picture) {
    return picture->untouched_bytes;
}

static uint64_t free_of(const struct cairn_picture *picture) {
    return picture->free_resident_bytes;
}

// The stack with the largest blocks is the one to look at: which were touched is known of all
// together.
static const struct stack *stack_with_largest_blocks(const struct profile *profile) {
    const struct stack *largest = NULL;
    int64_t most = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        int64_t bytes = stack->peak_blocks > 0 ? stack->peak_bytes / stack->peak_blocks : 0;
        if (bytes <= most) continue;
        most = bytes;
        largest = stack;
    }
    return largest;
}

bool finding_find_untouched(struct findings *findings, const struct profile *profile,
                            struct error *error) {
    struct cairn_picture picture;
    (void)error;
    // what is swapped out is not there either
    if (!largest_picture(profile->recording, untouched_of, &picture) || picture.swap_bytes)
        return true;
    uint64_t live = picture.live_bytes > 0 ? (uint64_t)picture.live_bytes : 0;
    uint64_t bytes = picture.untouched_bytes;
    if (bytes < UNTOUCHED_MIN_BYTES || bytes > live ||
        (double)bytes < untouched_share * (double)live)
        return true;
    struct finding *finding = add(findings, FINDING_UNTOUCHED);
    finding->stack = stack_with_largest_blocks(profile);
    finding->bytes = bytes;
    finding->of_bytes = live;
    finding->at_ns = picture.at_ns;
    // address space alone
    finding->gain = part_of(bytes, live) / 4;
    finding->saved_bytes = bytes;
    return true;
}

// One arena would have to hold the heap's peak: what all of them hold beyond that is memory that
// one has free while another takes more.
bool finding_find_arenas(struct findings *findings, const struct profile *profile,
                         struct error *error) {
    struct cairn_picture picture;
    (void)error;
    if (!largest_picture(profile->recording, free_of, &picture)) return true;
    uint64_t free_bytes = picture.free_resident_bytes, peak = (uint64_t)profile->peak.bytes;
    uint64_t live = picture.live_bytes > 0 ? (uint64_t)picture.live_bytes : 0;
    uint64_t held = live + free_bytes, bytes = held > peak ? held - peak : 0;
    if (bytes > free_bytes) bytes = free_bytes;
    bool is_much =
        bytes >= ARENAS_MIN_BYTES && (double)bytes >= arenas_share * (double)picture.rss_bytes;
    if (picture.arena_count < ARENAS_MIN || !is_much || held > picture.rss_bytes) return true;
    struct finding *finding = add(findings, FINDING_ARENAS);
    finding->count = picture.arena_count;
    finding->bytes = free_bytes;
    finding->of_bytes = picture.rss_bytes;
    finding->at_ns = picture.at_ns;
    saves_bytes(finding, bytes, picture.rss_bytes);
    finding->gain *= 1 + specific;
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
    struct finding *finding = add(findings, FINDING_HUGE);
    finding->bytes = small;
    finding->of_bytes = picture.rss_bytes, finding->at_ns = picture.at_ns;
    finding->saved_faults = small / SMALL_PAGE_BYTES - small / HUGE_PAGE_BYTES;
    finding->gain = fault_gain * part_of(small, picture.rss_bytes);
    return true;
}

bool finding_of_strings(const struct string_copies *copies, uint64_t heap_bytes,
                        struct finding *finding) {
    if (copies->bytes < WASTE_MIN_BYTES ||
        (double)copies->bytes < strings_share * (double)heap_bytes)
        return false;
    *finding = (struct finding){.kind = FINDING_STRINGS,
                                .bytes = copies->bytes,
                                .count = copies->count,
                                .of_count = copies->strings,
                                .is_estimate = copies->is_estimate,
                                .whose = copies->whose};
    saves_bytes(finding, copies->bytes, heap_bytes);
    return true;
}

bool finding_find_strings(struct findings *findings, const struct profile *profile,
                          struct error *error) {
    struct cairn_waste waste;
    struct finding finding;
    (void)error;
    if (!recording_waste(profile->recording, &waste)) return true;
    const struct string_copies copies = {
        .bytes = waste.string_bytes, .count = waste.string_copies, .strings = waste.strings};
    if (!finding_of_strings(&copies, waste.held_bytes, &finding)) return true;
    finding.waste = waste;
    finding.gain += specific * finding.gain;
    *add(findings, FINDING_STRINGS) = finding;
    return true;
}

// What was never touched costs no memory.
bool finding_find_waste(struct findings *findings, const struct profile *profile,
                        struct error *error) {
    struct cairn_waste waste;
    (void)error;
    if (!recording_waste(profile->recording, &waste)) return true;
    uint64_t bytes =
        waste.zero_bytes + waste.duplicate_bytes + waste.tail_bytes + waste.slack_bytes;
    if (bytes < WASTE_MIN_BYTES || bytes > waste.held_bytes ||
        (double)bytes < waste_share * (double)waste.held_bytes)
        return true;
    struct finding *finding = add(findings, FINDING_WASTE);
    finding->waste = waste;
    finding->bytes = bytes;
    finding->of_bytes = waste.held_bytes;
    saves_bytes(finding, bytes, waste.held_bytes);
    return true;
}
