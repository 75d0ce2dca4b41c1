// SPDX-License-Identifier: Apache-2.0
#include "tool/render/findings_find.h"

#include <stdlib.h>

#include "tool/model/shape.h"

// What is worth a line.
static const double temporary_share = 0.25, short_share = 0.5, flow_share = 0.5,
                    flow_calls_share = 0.05;
static const uint64_t ns_per_ms = 1000000;
enum {
    REALLOC_MIN_TIMES = 8,
    REALLOC_MIN_BYTES = 256 * 1024,
    REALLOC_LARGE_BYTES = 8 * 1024,
    REALLOC_MANY_TIMES = 200,  // even if it never had to be copied
    TEMPORARY_MIN_BLOCKS = 10000,
    WATCHED_MIN_BLOCKS = 20,
    FLOW_MIN_BYTES = 256 * 1024,
    FLOW_MIN_BLOCKS = 10000,
    REUSE_MIN_BLOCKS = 10000,
    ALIKE_MIN_BLOCKS = 10000,
    ALIKE_MOST_BYTES = 256,
    ALIKE_MIN_BYTES = 256 * 1024,
    ALIKE_POOL = 64,   // blocks that a call of the allocator would bring
    HEADER_BYTES = 8,  // of a chunk of glibc
    WASTE_MIN_BYTES = 256 * 1024,
};
static const double reuse_share = 0.1, freer_share = 0.95, alike_share = 0.1, strings_share = 0.05,
                    waste_share = 0.2;

struct finding *finding_add(struct findings *findings, enum finding_kind kind) {
    struct finding *finding = &findings->list[findings->count++];
    *finding = (struct finding){.kind = kind};
    return finding;
}

double finding_part(uint64_t part, uint64_t whole) {
    return part < whole ? (double)part / (double)whole : whole != 0;
}

void finding_saves_bytes(struct finding *finding, uint64_t bytes, uint64_t of_bytes) {
    double part = finding_part(bytes, of_bytes);
    finding->saved_bytes = bytes;
    if (part > finding->gain) finding->gain = part;
}

void finding_saves_calls(struct finding *finding, uint64_t calls, const struct profile *profile) {
    double part = finding_part(calls, profile->totals.allocations) / 2;
    finding->saved_calls = calls;
    if (part > finding->gain) finding->gain = part;
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
        best.gain = finding_part(best.bytes, profile->totals.allocated_bytes);
        finding_saves_calls(&best, best.saved_calls, profile);
        *finding_add(findings, FINDING_REALLOC) = best;
    }
    shape_free(&shape);
    return true;
}

void finding_note_stack(struct finding_stacks *stacks, const struct stack *stack, uint64_t part) {
    size_t at = stacks->count;
    if (!part) return;
    while (at && stacks->list[at - 1].part < part) at--;
    if (at == FINDING_STACKS_MAX) {
        stacks->rest += part;
        return;
    }
    if (stacks->count == FINDING_STACKS_MAX) stacks->rest += stacks->list[--stacks->count].part;
    for (size_t i = stacks->count++; i > at; i--) stacks->list[i] = stacks->list[i - 1];
    stacks->list[at].stack = stack;
    stacks->list[at].part = part;
}

// Chooses the first of the stacks, until names are known.
static void choose_first(struct finding *finding) {
    if (!finding->stacks.count) return;
    finding->stack = finding->stacks.list[0].stack;
    finding->part = finding->stacks.list[0].part;
}

static void note_stacks(const struct profile *profile, enum measure measure,
                        struct finding *finding) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t part = measure_stack(measure, &profile->stacks[i]).value;
        if (part > 0) finding_note_stack(&finding->stacks, &profile->stacks[i], (uint64_t)part);
    }
    choose_first(finding);
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
    struct finding *finding = finding_add(findings, FINDING_TEMPORARY);
    note_stacks(profile, measure, finding);
    finding->watched = profile->totals.watched.blocks;
    finding->count = (uint64_t)blocks;
    finding->of_count = calls;
    finding->is_estimate = is_short;
    finding_saves_calls(finding, finding->count, profile);
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
// Chooses how old a block is that counts as short-lived: older than the clock may be late. 0: it
// was too late.
static uint64_t age_bound_ms(const struct recording *recording) {
    static const uint64_t bounds_ms[] = {5, 10, 20, 50, 100};
    const uint64_t error_ms = shape_ages_error_ms(recording);
    for (size_t i = 0; i < sizeof bounds_ms / sizeof *bounds_ms; i++)
        if (bounds_ms[i] >= error_ms) return bounds_ms[i];
    return 0;
}

// Freed blocks that were younger than that for certain.
static uint64_t count_younger(const struct shape_ages *ages, const struct recording *recording,
                              uint64_t bound_ms) {
    const uint64_t error_ms = shape_ages_error_ms(recording);
    uint64_t count = 0;
    for (size_t i = 0; i < CAIRN_AGE_BUCKETS && (1ull << i) - 1 + error_ms <= bound_ms; i++)
        count += ages->ms[i];
    return count;
}

bool finding_find_ages(struct findings *findings, const struct profile *profile,
                       struct error *error) {
    struct shape shape;
    struct finding found = {.kind = FINDING_AGES, .of_count = profile->totals.allocations};
    bool has_ages = recording_count(profile->recording, CAIRN_SECTION_AGES) > 0;
    const uint64_t bound_ms = age_bound_ms(profile->recording);
    if (!has_ages || !bound_ms || profile->sampling.is_on) return true;
    found.bound_ns = bound_ms * ns_per_ms;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct shape_ages ages;
        if (!shape_ages(&shape, profile->stacks[i].number, &ages)) continue;
        uint64_t young = count_younger(&ages, profile->recording, bound_ms);
        found.count += young;
        finding_note_stack(&found.stacks, &profile->stacks[i], young);
    }
    shape_free(&shape);
    choose_first(&found);
    if (found.count >= TEMPORARY_MIN_BLOCKS &&
        (double)found.count >= temporary_share * (double)found.of_count) {
        finding_saves_calls(&found, found.count, profile);
        drop_estimate(findings);
        *finding_add(findings, FINDING_AGES) = found;
    }
    return true;
}

// Much of what a thread allocates, or many blocks of all.
static bool is_hand_over(const struct freed_by_flow *flow, const struct profile *profile) {
    bool is_many = flow->blocks >= FLOW_MIN_BLOCKS &&
                   (double)flow->blocks >= flow_calls_share * (double)profile->totals.allocations;
    return flow->bytes >= FLOW_MIN_BYTES &&
           (is_many || (double)flow->bytes >= flow_share * (double)flow->of_bytes);
}

bool finding_find_freed_by(struct findings *findings, const struct profile *profile,
                           struct error *error) {
    struct freed_by_flow flow;
    (void)error;
    if (!profile->recording->header.totals.is_threaded || !freed_by_largest(profile, &flow) ||
        !is_hand_over(&flow, profile))
        return true;
    struct finding *finding = finding_add(findings, FINDING_FREED_BY);
    finding->flow = flow;
    finding->count = flow.blocks;
    // a handed-over block costs a lock or two, not a whole call
    finding->gain = finding_part(finding->count, profile->totals.allocations) / 2;
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
    finding_saves_calls(&best, best.count, profile);
    best.gain *= 1 + finding_specific;
    *finding_add(findings, FINDING_REUSE) = best;
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
        if (!may_be_alike(profile, stack)) continue;
        if (best.stack && stack->peak_blocks <= best.stack->peak_blocks) continue;
        if (!has_shape && !(has_shape = shape_build(&shape, profile, error))) return false;
        uint64_t size = only_size(&shape, stack);
        if (!size) continue;
        uint64_t room = stack->slack_bytes / stack->allocations + (is_glibc ? HEADER_BYTES : 0);
        best = (struct finding){.kind = FINDING_ALIKE,
                                .stack = stack,
                                .count = stack->allocations,
                                .bytes = size,
                                .saved_bytes = room * (uint64_t)stack->peak_blocks};
    }
    if (has_shape) shape_free(&shape);
    if (!best.stack) return true;
    uint64_t calls = best.stack->allocations;
    finding_saves_calls(&best, calls - calls / ALIKE_POOL, profile);
    finding_saves_bytes(&best, best.saved_bytes, (uint64_t)profile->peak.bytes + best.saved_bytes);
    *finding_add(findings, FINDING_ALIKE) = best;
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
    finding_saves_bytes(finding, copies->bytes, heap_bytes);
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
    finding.gain += finding_specific * finding.gain;
    *finding_add(findings, FINDING_STRINGS) = finding;
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
    struct finding *finding = finding_add(findings, FINDING_WASTE);
    finding->waste = waste;
    finding->bytes = bytes;
    finding->of_bytes = waste.held_bytes;
    finding_saves_bytes(finding, bytes, waste.held_bytes);
    return true;
}
