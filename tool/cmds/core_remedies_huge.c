// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_remedies_huge.h"

#include <stdio.h>

#include "tool/base/units.h"
#include "tool/heap/blocks.h"
#include "tool/render/site.h"

enum { TOP = 3, TOLD = 20, FIGURES_COLUMNS = 44 };

struct summing {
    struct huge_live *live;
    const struct huge_pages *pages;
    struct huge_stack *stacks;  // of the profile
    uint64_t last_unit;
};

// Adds what of a block lies on huge pages; blocks ascend.
static void add_block(struct summing *summing, const struct core_block *block, uint32_t stack) {
    struct huge_stack *sum = &summing->stacks[stack];
    uint64_t end = block->address + (block->size ? block->size : 1);
    for (uint64_t at = block->address; at < end;) {
        const struct huge_unit *unit = huge_pages_unit(summing->pages, at);
        uint64_t next = (at / HUGE_UNIT_BYTES + 1) * HUGE_UNIT_BYTES;
        if (next > end) next = end;
        if (unit) {
            sum->live_bytes += next - at;
            summing->live->live_bytes += next - at;
            if (sum->last_unit != unit->start) sum->huge_bytes += HUGE_UNIT_BYTES;
            if (summing->last_unit != unit->start) summing->live->huge_bytes += HUGE_UNIT_BYTES;
            sum->last_unit = summing->last_unit = unit->start;
        }
        at = next;
    }
}

static int most_pages_first(const void *a, const void *b) {
    const struct huge_stack *left = a, *right = b;
    if (left->huge_bytes != right->huge_bytes) return left->huge_bytes < right->huge_bytes ? 1 : -1;
    if (left->live_bytes != right->live_bytes) return left->live_bytes < right->live_bytes ? 1 : -1;
    return (left->stack > right->stack) - (left->stack < right->stack);
}

// Keeps those with blocks there, and finds the names of the first ones.
static bool keep(struct summing *summing, const struct profile *profile) {
    struct huge_live *live = summing->live;
    struct error unused;
    for (size_t i = 0; i < profile->stack_count; i++) {
        if (!summing->stacks[i].huge_bytes) continue;
        struct huge_stack *slot = array_push(&live->stacks);
        if (!slot) return false;
        *slot = summing->stacks[i];
        slot->stack = (uint32_t)i;
    }
    if (!live->stacks.count) return true;
    qsort(live->stacks.items, live->stacks.count, sizeof *live->stacks.items, most_pages_first);
    if (live->stacks.count > TOLD) live->stacks.count = TOLD;
    for (size_t i = 0; i < live->stacks.count; i++)
        names_want_stack(live->opened->names, profile->stacks[live->stacks.items[i].stack].node, 0);
    return names_resolve(live->opened->names, &unused);
}

static bool sum_up(struct summing *summing, const struct core_blocks *blocks,
                   const struct profile *profile) {
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    summing->stacks = calloc(profile->stack_count + 1, sizeof *summing->stacks);
    if (!summing->stacks) return false;
    while (core_blocks_next(&cursor, &block)) {
        size_t stack = profile_stack_of(profile, block.cell);
        if (stack < profile->stack_count) add_block(summing, &block, (uint32_t)stack);
    }
    bool is_ok = keep(summing, profile);
    free(summing->stacks);
    return is_ok;
}

bool huge_live_find(const struct heap_look *look, struct opened *opened,
                    const struct huge_pages *pages, struct huge_live *live) {
    const struct profile *profile = &opened->profile;
    struct summing summing = {.live = live, .pages = pages};
    struct core_blocks blocks = {0};
    struct error unused;
    live->opened = opened;
    if (!pages->units.count || profile->sampling.is_on) return true;
    bool is_ok =
        core_read_blocks(look->core, &look->header, profile->cell_count, NULL, &blocks, &unused) &&
        sum_up(&summing, &blocks, profile);
    core_free_blocks(&blocks);
    return is_ok;
}

void huge_live_free(struct huge_live *live) {
    array_free(&live->stacks);
}

static void print_stack(const struct huge_live *live, size_t number,
                        const struct terminal *terminal) {
    const struct huge_stack *stack = &live->stacks.items[number];
    const struct profile *profile = &live->opened->profile;
    struct site_list sites = {.hidden_count = 0};
    struct frame_list frames = {0};
    const struct frame_names names = names_frames(live->opened->names);
    const struct measured measured = {.value = (int64_t)stack->live_bytes};
    bool is_ok = site_list_add(&sites, profile, &names, profile->stacks[stack->stack].node,
                               measured, &frames);
    if (is_ok && sites.sites.count) {
        printf("             %10s on", units_size((int64_t)stack->live_bytes).text);
        printf(" %10s, by ", units_size((int64_t)stack->huge_bytes).text);
        site_print(terminal, &sites.sites.items[0], FIGURES_COLUMNS);
    }
    frame_list_free(&frames);
    site_list_free(&sites);
}

void huge_live_print(const struct huge_live *live, const struct terminal *terminal) {
    if (!live->stacks.count) return;
    printf("      live:  %10s on", units_size((int64_t)live->live_bytes).text);
    printf(" %10s of huge pages:\n", units_size((int64_t)live->huge_bytes).text);
    for (size_t i = 0; i < live->stacks.count && i < TOP; i++) print_stack(live, i, terminal);
}

const struct frame_list *huge_live_frames(const struct huge_live *live, size_t number,
                                          struct frame_list *frames) {
    const struct profile *profile = &live->opened->profile;
    const struct huge_stack *stack = &live->stacks.items[number];
    const struct frame_names names = names_frames(live->opened->names);
    bool is_filled =
        frame_list_fill(frames, profile, &names, profile->stacks[stack->stack].node, 0);
    return is_filled ? frames : NULL;
}
