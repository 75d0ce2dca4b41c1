// SPDX-License-Identifier: Apache-2.0
#include "tool/export/lifetimes.h"

#include <stdlib.h>

// A stack held so much more, or less, at a moment than at the one before.
struct lifetime_change {
    uint32_t stack, moment;
    int64_t bytes;
};

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for allocations");
}

static bool add_changes(struct lifetimes *lifetimes, uint32_t moment, int64_t *held,
                        struct error *error) {
    struct live_at *live;
    struct estimate *estimates;
    if (!moments_live(&lifetimes->moments, &lifetimes->moments.list.items[moment], &live,
                      &estimates, error))
        return false;
    bool is_ok = true;
    for (uint32_t i = 0; is_ok && i < lifetimes->moments.profile->stack_count; i++) {
        int64_t bytes = live[i].bytes > 0 ? live[i].bytes : 0;
        if (bytes == held[i]) continue;
        struct lifetime_change *change = array_push(&lifetimes->changes);
        is_ok = change || no_memory(error);
        if (change) *change = (struct lifetime_change){i, moment, bytes - held[i]};
        held[i] = bytes;
    }
    free(live);
    free(estimates);
    return is_ok;
}

static int compare_changes(const void *a, const void *b) {
    const struct lifetime_change *first = a, *second = b;
    if (first->stack != second->stack) return first->stack < second->stack ? -1 : 1;
    return (first->moment > second->moment) - (first->moment < second->moment);
}

static bool add_block(struct lifetimes *lifetimes, struct lifetime_block block) {
    struct lifetime_block *slot = array_push(&lifetimes->blocks);
    if (slot) *slot = block;
    return slot != NULL;
}

// Takes bytes from the last blocks of the stack that are still there, which begin at `first`.
static bool take_bytes(struct lifetimes *lifetimes, size_t first, uint32_t moment, int64_t bytes) {
    for (size_t i = lifetimes->blocks.count; i-- > first && bytes > 0;) {
        struct lifetime_block *block = &lifetimes->blocks.items[i];
        if (block->to != LIFETIME_NEVER) continue;
        if (block->bytes > bytes) {
            const struct lifetime_block rest = {block->stack, block->from, LIFETIME_NEVER,
                                                block->bytes - bytes};
            block->bytes = bytes;
            block->to = moment;
            return add_block(lifetimes, rest);
        }
        bytes -= block->bytes;
        block->to = moment;
    }
    return true;
}

// What of a stack's allocations no moment has seen.
static bool add_unseen(struct lifetimes *lifetimes, uint32_t stack, size_t first, uint32_t moment) {
    uint64_t seen = 0, allocated = lifetimes->moments.profile->stacks[stack].allocated_bytes;
    for (size_t i = first; i < lifetimes->blocks.count; i++)
        seen += (uint64_t)lifetimes->blocks.items[i].bytes;
    if (allocated <= seen || allocated - seen > INT64_MAX) return true;
    return add_block(lifetimes,
                     (struct lifetime_block){stack, moment, moment, (int64_t)(allocated - seen)});
}

static bool make_blocks(struct lifetimes *lifetimes) {
    size_t at = 0;
    uint32_t last = (uint32_t)lifetimes->moments.list.count - 1;
    for (uint32_t i = 0; i < lifetimes->moments.profile->stack_count; i++) {
        size_t first = lifetimes->blocks.count;
        for (; at < lifetimes->changes.count && lifetimes->changes.items[at].stack == i; at++) {
            const struct lifetime_change *change = &lifetimes->changes.items[at];
            bool is_ok =
                change->bytes > 0
                    ? add_block(lifetimes, (struct lifetime_block){i, change->moment,
                                                                   LIFETIME_NEVER, change->bytes})
                    : take_bytes(lifetimes, first, change->moment, -change->bytes);
            if (!is_ok) return false;
        }
        if (!add_unseen(lifetimes, i, first, last)) return false;
    }
    return true;
}

static int compare_events(const void *a, const void *b) {
    const struct lifetime_event *first = a, *second = b;
    if (first->moment != second->moment) return first->moment < second->moment ? -1 : 1;
    if (first->order != second->order) return first->order < second->order ? -1 : 1;
    return (first->block > second->block) - (first->block < second->block);
}

static bool add_event(struct lifetimes *lifetimes, uint32_t block, bool is_free) {
    enum { ORDER_GO, ORDER_COME, ORDER_GO_AGAIN };
    const struct lifetime_block *about = &lifetimes->blocks.items[block];
    struct lifetime_event *event = array_push(&lifetimes->events);
    if (!event) return false;
    uint32_t order = !is_free ? ORDER_COME : about->from == about->to ? ORDER_GO_AGAIN : ORDER_GO;
    *event = (struct lifetime_event){block, is_free ? about->to : about->from, order, is_free};
    return true;
}

static bool make_all(struct lifetimes *lifetimes, struct error *error) {
    int64_t *held = calloc(lifetimes->moments.profile->stack_count + 1, sizeof *held);
    if (!held) return no_memory(error);
    bool is_ok = true;
    for (uint32_t i = 0; is_ok && i < lifetimes->moments.list.count; i++)
        is_ok = add_changes(lifetimes, i, held, error);
    free(held);
    if (!is_ok) return false;
    if (lifetimes->changes.count)
        qsort(lifetimes->changes.items, lifetimes->changes.count, sizeof *lifetimes->changes.items,
              compare_changes);
    is_ok = make_blocks(lifetimes);
    for (uint32_t i = 0; is_ok && i < lifetimes->blocks.count; i++)
        is_ok = add_event(lifetimes, i, false) &&
                (lifetimes->blocks.items[i].to == LIFETIME_NEVER || add_event(lifetimes, i, true));
    if (lifetimes->events.count)
        qsort(lifetimes->events.items, lifetimes->events.count, sizeof *lifetimes->events.items,
              compare_events);
    return is_ok || no_memory(error);
}

bool lifetimes_make(struct lifetimes *lifetimes, const struct export *export, struct error *error) {
    *lifetimes = (struct lifetimes){0};
    if (!moments_find(&lifetimes->moments, export, error)) return false;
    if (make_all(lifetimes, error)) return true;
    lifetimes_free(lifetimes);
    return false;
}

void lifetimes_free(struct lifetimes *lifetimes) {
    moments_free(&lifetimes->moments);
    array_free(&lifetimes->changes);
    array_free(&lifetimes->blocks);
    array_free(&lifetimes->events);
}
