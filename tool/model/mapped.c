// SPDX-License-Identifier: Apache-2.0
#include "tool/model/mapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"
#include "tool/model/profile.h"

// Held now, and at the peak of all.
static struct mapped_figures figures_of_mapper(const struct profile *profile,
                                               const struct cairn_mapper *mapper, bool is_at_end) {
    struct mapped_figures figures = {.calls = mapper->calls,
                                     .mapped_bytes = mapper->mapped_bytes,
                                     .unmapped_bytes = mapper->unmapped_bytes,
                                     .exit_bytes =
                                         (int64_t)(mapper->mapped_bytes - mapper->unmapped_bytes),
                                     .exit_ranges = (int64_t)mapper->live_ranges};
    bool is_saved = !is_at_end && mapper->epoch == profile->recording->header.mappings_epoch;
    figures.peak_bytes = is_saved ? mapper->peak_bytes : figures.exit_bytes;
    figures.peak_ranges = is_saved ? mapper->peak_ranges : figures.exit_ranges;
    return figures;
}

static void add(struct mapped_figures *sum, const struct mapped_figures *figures) {
    sum->calls += figures->calls;
    sum->mapped_bytes += figures->mapped_bytes;
    sum->unmapped_bytes += figures->unmapped_bytes;
    sum->peak_bytes = figures_add(sum->peak_bytes, figures->peak_bytes);
    sum->peak_ranges = figures_add(sum->peak_ranges, figures->peak_ranges);
    sum->exit_bytes = figures_add(sum->exit_bytes, figures->exit_bytes);
    sum->exit_ranges = figures_add(sum->exit_ranges, figures->exit_ranges);
}

static void add_to_stack(struct stack *stack, const struct cairn_mapper *mapper,
                         const struct mapped_figures *figures) {
    uint64_t made = mapper->calls + mapper->inherited_ranges;
    stack->more->mapping_kinds |= 1u << mapper->kind;
    stack->allocations += mapper->calls;
    if (mapper->kind == CAIRN_MAPPING_RESERVED) {
        struct stack_more *more = stack->more;
        more->reserved_bytes = figures_add(more->reserved_bytes, figures->exit_bytes);
        more->reserved_ranges = figures_add(more->reserved_ranges, figures->exit_ranges);
        return;
    }
    if (made > mapper->live_ranges) stack->frees += made - mapper->live_ranges;
    stack->allocated_bytes += figures->mapped_bytes;
    stack->freed_bytes += figures->unmapped_bytes;
    stack->peak_bytes = figures_add(stack->peak_bytes, figures->peak_bytes);
    stack->peak_blocks = figures_add(stack->peak_blocks, figures->peak_ranges);
    stack->exit_bytes = figures_add(stack->exit_bytes, figures->exit_bytes);
    stack->exit_blocks = figures_add(stack->exit_blocks, figures->exit_ranges);
}

// A mapper with the stack that it belongs to.
struct placed {
    struct cairn_mapper mapper;
    uint32_t node;
};

// Mappers of one stack stand beside each other, those that reserve apart; so do, of those without a
// stack, the ones of each kind.
static int64_t group_of(const struct placed *placed) {
    const uint32_t kind = placed->mapper.kind;
    uint32_t part = placed->node == TREE_ROOT ? kind : kind == CAIRN_MAPPING_RESERVED;
    return (int64_t)placed->node * (int64_t)CAIRN_MAPPING_KINDS + part;
}

static int compare_placed(const void *a, const void *b) {
    int64_t first = group_of(a), second = group_of(b);
    return first < second ? -1 : first > second;
}

static bool is_at_end(const struct profile *profile, const struct placed *list, size_t count) {
    uint64_t live = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].mapper.kind != CAIRN_MAPPING_RESERVED)
            live += list[i].mapper.mapped_bytes - list[i].mapper.unmapped_bytes;
    return (int64_t)live > 0 && live > profile->recording->header.mappings_peak_bytes;
}

static void sum_up(struct profile *profile, const struct placed *list, size_t count) {
    struct mapped *mapped = &profile->mapped;
    const struct cairn_header *header = &profile->recording->header;
    bool is_peak_now = is_at_end(profile, list, count);
    mapped->peak_ns =
        is_peak_now ? recording_last_ns(profile->recording) : header->mappings_peak_ns;
    for (size_t i = 0; i < count; i++) {
        const struct cairn_mapper *mapper = &list[i].mapper;
        struct mapped_figures figures = figures_of_mapper(profile, mapper, is_peak_now);
        bool is_new = !i || group_of(&list[i]) != group_of(&list[i - 1]);
        struct stack *stack = &mapped->stacks[mapped->stack_count - !is_new];
        if (is_new) stack->node = list[i].node;
        if (is_new) stack->number = UINT32_MAX;
        if (is_new) mapped->stack_count++;
        add_to_stack(stack, mapper, &figures);
        add(&mapped->kinds[mapper->kind], &figures);
        if (mapper->kind != CAIRN_MAPPING_RESERVED) add(&mapped->all, &figures);
    }
}

static bool read_mappers(struct profile *profile, struct decoder *decoder, struct placed *list,
                         size_t *count) {
    struct cairn_mapper mapper;
    *count = 0;
    for (size_t i = 0; i < CAIRN_MAPPER_LIMIT && recording_mapper(profile->recording, i, &mapper);
         i++) {
        bool is_used = mapper.calls || mapper.inherited_ranges;
        if (!mapper.is_ready || !is_used || mapper.kind >= CAIRN_MAPPING_KINDS) continue;
        uint32_t node = TREE_ROOT;
        bool has_stack = mapper.cell != CAIRN_CELL_OTHER && mapper.cell < profile->cell_count;
        if (has_stack && !decoder_stack(decoder, mapper.cell, &node)) return false;
        list[(*count)++] = (struct placed){mapper, node};
    }
    return true;
}

bool mapped_build(struct profile *profile, struct decoder *decoder) {
    size_t most = recording_count(profile->recording, CAIRN_SECTION_MAPPERS), count;
    struct mapped *mapped = &profile->mapped;
    mapped->is_recorded = profile->recording->header.has_mappings != 0;
    mapped->lost = profile->recording->header.mappings_lost;
    if (!mapped->is_recorded || !most) return true;
    if (most > CAIRN_MAPPER_LIMIT) most = CAIRN_MAPPER_LIMIT;
    struct placed *list = calloc(most, sizeof *list);
    mapped->stacks = stack_list_make(most);
    bool is_ok = list && mapped->stacks && read_mappers(profile, decoder, list, &count);
    if (is_ok) {
        qsort(list, count, sizeof *list, compare_placed);
        sum_up(profile, list, count);
    }
    free(list);
    return is_ok;
}

void mapped_free(struct mapped *mapped) {
    free(mapped->stacks);
    *mapped = (struct mapped){0};
}

bool profile_show_mapped(struct profile *profile) {
    const struct mapped *mapped = &profile->mapped;
    struct stack *stacks = calloc(mapped->stack_count + 1, sizeof *stacks);
    if (!stacks) return false;
    if (mapped->stack_count) memcpy(stacks, mapped->stacks, mapped->stack_count * sizeof *stacks);
    free(profile->stacks);
    profile->stacks = stacks;
    profile->stack_count = profile->built_stack_count = mapped->stack_count;
    for (size_t i = 0; i < profile->stack_count; i++) stacks[i].number = (uint32_t)i;
    if (profile->stack_of_cell)
        memset(profile->stack_of_cell, 0, profile->cell_count * sizeof *profile->stack_of_cell);
    profile->thread_count = 0;
    profile->is_of_mappings = true;
    profile->totals = (struct profile_totals){.allocations = mapped->all.calls,
                                              .allocated_bytes = mapped->all.mapped_bytes,
                                              .freed_bytes = mapped->all.unmapped_bytes};
    profile->peak = (struct profile_peak){.bytes = mapped->all.peak_bytes,
                                          .blocks = mapped->all.peak_ranges,
                                          .at_ns = mapped->peak_ns};
    profile->exit_bytes = mapped->all.exit_bytes;
    profile->exit_blocks = mapped->all.exit_ranges;
    profile->sampling = (struct cairn_sampling){0};
    memset(profile->estimates, 0, sizeof profile->estimates);
    return true;
}

const char *mapped_kind_name(enum cairn_mapping_kind kind) {
    static const char *const names[CAIRN_MAPPING_KINDS] = {[CAIRN_MAPPING_ANONYMOUS] = "memory",
                                                           [CAIRN_MAPPING_FILE] = "files",
                                                           [CAIRN_MAPPING_SHARED] = "shared",
                                                           [CAIRN_MAPPING_RESERVED] = "reserved",
                                                           [CAIRN_MAPPING_ALLOCATOR] = "allocator"};
    return names[kind];
}

void mapped_kinds_text(uint32_t kinds, char *out, size_t size) {
    *out = 0;
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        size_t used = strlen(out);
        if (kinds & 1u << kind)
            snprintf(out + used, size - used, "%s%s", used ? ", " : "", mapped_kind_name(kind));
    }
}
