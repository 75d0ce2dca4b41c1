// SPDX-License-Identifier: Apache-2.0
#include "tool/render/freed_pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

struct slot_thread {
    uint32_t slot;
    const struct profile_thread *thread;
};

static int order_by_slot(const void *left, const void *right) {
    const struct slot_thread *a = left, *b = right;
    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    return a->thread < b->thread ? -1 : a->thread > b->thread;
}

bool slot_names_make(struct slot_names *names, const struct profile *profile) {
    struct slot_thread *threads = calloc(profile->thread_count + 1, sizeof *threads);
    for (size_t i = 0; threads && i < profile->thread_count; i++)
        threads[i] = (struct slot_thread){profile->threads[i].slot, &profile->threads[i]};
    if (threads) qsort(threads, profile->thread_count, sizeof *threads, order_by_slot);
    *names = (struct slot_names){profile, threads};
    return threads != NULL;
}

void slot_names_free(struct slot_names *names) {
    free(names->threads);
    names->threads = NULL;
}

// The number of threads whose slots come before this one.
static size_t threads_before(const struct slot_thread *threads, size_t count, uint32_t slot) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (threads[middle].slot < slot)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

size_t slot_name(const struct slot_names *slots, uint32_t slot, char *out, size_t size) {
    const struct profile *profile = slots->profile;
    size_t names = 0, first = threads_before(slots->threads, profile->thread_count, slot);
    *out = 0;
    for (size_t i = first; i < profile->thread_count && slots->threads[i].slot == slot; i++) {
        const struct profile_thread *thread = slots->threads[i].thread;
        char raw[sizeof thread->name + 1] = "", name[SLOT_NAME_BYTES];
        memcpy(raw, thread->name, sizeof thread->name);
        text_escape(name, sizeof name, *raw ? raw : "(no name)");
        if (strstr(out, name)) continue;
        size_t used = strlen(out);
        names++;
        snprintf(out + used, size - used, "%s%s", used ? "/" : "", name);
    }
    if (!*out) snprintf(out, size, slot == CAIRN_SLOT_SHARED ? "(shared)" : "(unknown)");
    return names;
}

uint32_t slot_only_thread(const struct slot_names *names, uint32_t slot) {
    const size_t count = names->profile->thread_count;
    const size_t first = threads_before(names->threads, count, slot);
    const bool is_there = first < count && names->threads[first].slot == slot;
    const bool is_only = first + 1 >= count || names->threads[first + 1].slot != slot;
    if (!is_there || !is_only || names->threads[first].thread->folded_count) return 0;
    return names->threads[first].thread->tid;
}

bool freed_pairs_make(struct freed_pairs *pairs, const struct profile *profile) {
    *pairs = (struct freed_pairs){.count = 0};
    if (slot_names_make(&pairs->names, profile))
        pairs->list = shape_freed_by(profile, &pairs->count);
    pairs->are_told = calloc(pairs->count + 1, sizeof *pairs->are_told);
    return pairs->list && pairs->are_told;
}

void freed_pairs_free(struct freed_pairs *pairs) {
    slot_names_free(&pairs->names);
    free(pairs->list);
    free(pairs->are_told);
    *pairs = (struct freed_pairs){.count = 0};
}

static size_t first_of(const struct freed_pairs *pairs, uint32_t slot) {
    size_t low = 0, high = pairs->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (pairs->list[middle].owner < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct shape_freed *freed_pairs_next(struct freed_pairs *pairs, uint32_t slot) {
    const size_t first = first_of(pairs, slot);
    bool has_others = false;
    size_t end = first, next;
    for (; end < pairs->count && pairs->list[end].owner == slot; end++)
        has_others |= pairs->list[end].freer != slot;
    for (next = first; next < end && pairs->are_told[next];) next++;
    if (!has_others || next == end) return NULL;
    pairs->are_told[next] = true;
    return &pairs->list[next];
}
