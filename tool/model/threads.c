// SPDX-License-Identifier: Apache-2.0
#include "tool/model/threads.h"

#include <stdlib.h>
#include <string.h>

size_t threads_slot_limit(const struct recording *recording) {
    size_t limit = 1;
    uint16_t slot;
    for (size_t cell = 0; recording_owner(recording, cell, &slot); cell += CAIRN_CELL_BLOCK)
        if (slot != CAIRN_SLOT_SHARED && slot >= limit) limit = (size_t)slot + 1;
    struct cairn_thread thread;
    for (size_t i = 0; recording_thread(recording, i, &thread); i++)
        if (thread.slot < CAIRN_SLOT_SHARED && thread.slot >= limit)
            limit = (size_t)thread.slot + 1;
    return limit;
}

// What a fork inherited is no thread's call, and no slot's: all of it is in cells without an owner.
static bool fill_inherited(const struct profile *profile, const struct cairn_thread *entry,
                           struct profile_thread *thread) {
    if (!figures_is_inherited(entry)) return false;
    thread->allocations = thread->allocated_bytes = 0;
    thread->peak_bytes = profile->inherited.peak_bytes;
    thread->exit_bytes = profile->inherited.exit_bytes;
    thread->sharing_count = entry->folded_count + 1;
    return true;
}

static void fill(const struct cairn_thread *entry, struct profile_thread *thread) {
    *thread = (struct profile_thread){.tid = entry->tid,
                                      .slot = entry->slot,
                                      .folded_count = entry->folded_count,
                                      .is_ended = entry->is_ended,
                                      .start_ns = entry->start_ns,
                                      .end_ns = entry->end_ns,
                                      .allocations = entry->allocations,
                                      .allocated_bytes = entry->allocated_bytes,
                                      .failed = entry->failed};
    // a coarse clock may lag behind the one that the recording's start was read from
    if ((int64_t)thread->start_ns < 0) thread->start_ns = 0;
    memcpy(thread->name, entry->name, sizeof thread->name);
}

// Of estimates: in proportion to what the thread allocated of what all that are left did.
static int64_t take_part(int64_t *left, uint64_t allocated_bytes, uint64_t all_bytes) {
    bool is_all = allocated_bytes >= all_bytes;
    double part = is_all ? 1 : (double)allocated_bytes / (double)all_bytes;
    int64_t share = part < 1 ? (int64_t)((double)*left * part) : *left;
    *left = (int64_t)((uint64_t)*left - (uint64_t)share);
    return share;
}

static int64_t take_share(int64_t *left, uint64_t allocated_bytes, bool is_last) {
    int64_t share = *left;
    if (!is_last && (share < 0 || (uint64_t)share > allocated_bytes))
        share = share < 0 ? 0 : (int64_t)allocated_bytes;
    *left -= share;
    return share;
}

static void give_share(struct slot_bytes *left, struct profile_thread *thread, bool is_last,
                       bool is_sampled) {
    uint64_t allocated = thread->allocated_bytes;
    thread->sharing_count = left->sharing_count;
    thread->exit_estimate = left->exit_estimate;
    thread->peak_estimate = left->peak_estimate;
    if (is_sampled) {
        thread->exit_bytes = take_part(&left->exit, allocated, left->allocated_bytes);
        thread->peak_bytes = take_part(&left->peak, allocated, left->allocated_bytes);
        left->allocated_bytes -= allocated;
    } else {
        thread->exit_bytes = take_share(&left->exit, allocated, is_last);
        thread->peak_bytes = take_share(&left->peak, allocated, is_last);
    }
}

// What happened while a checkpoint was written counts for the slot's last thread.
static void catch_up(struct slot_bytes *slot, struct profile_thread *thread) {
    if (slot->cell_calls > slot->thread_calls) {
        thread->allocations += slot->cell_calls - slot->thread_calls;
        slot->thread_calls = slot->cell_calls;
    }
    if (slot->cell_bytes > slot->thread_bytes) {
        thread->allocated_bytes += slot->cell_bytes - slot->thread_bytes;
        slot->allocated_bytes += slot->cell_bytes - slot->thread_bytes;
        slot->thread_bytes = slot->cell_bytes;
    }
}

bool threads_build(struct profile *profile, struct slot_bytes *left, size_t slot_limit,
                   size_t *slot_count) {
    size_t count = recording_count(profile->recording, CAIRN_SECTION_THREADS);
    uint32_t *entries_left = calloc(slot_limit, sizeof *entries_left);
    profile->threads = calloc(count + 1, sizeof *profile->threads);
    bool is_ok = entries_left && profile->threads;
    if (!is_ok) goto out;
    profile->thread_count = count;
    *slot_count = 0;
    struct cairn_thread entry;
    for (size_t i = 0; i < count; i++) {
        recording_thread(profile->recording, i, &entry);
        fill(&entry, &profile->threads[i]);
        profile->totals.failed += entry.failed;
        if (fill_inherited(profile, &entry, &profile->threads[i])) continue;
        size_t slot = entry.slot % slot_limit;
        if (!entries_left[slot]++) ++*slot_count;
        left[slot].sharing_count += entry.folded_count + 1;
        left[slot].allocated_bytes += entry.allocated_bytes;
        left[slot].thread_calls += entry.allocations;
        left[slot].thread_bytes += entry.allocated_bytes;
    }
    for (size_t i = count; i-- > 0;) {
        recording_thread(profile->recording, i, &entry);
        if (figures_is_inherited(&entry)) continue;
        size_t slot = entry.slot % slot_limit;
        bool is_last = --entries_left[slot] == 0;
        struct profile_thread *thread = &profile->threads[i];
        if (recording_is_checkpoint(profile->recording)) catch_up(&left[slot], thread);
        give_share(&left[slot], thread, is_last, profile->sampling.is_on);
    }
out:
    free(entries_left);
    return is_ok;
}

static struct profile_thread *group_of(struct profile_thread *groups, size_t count,
                                       const struct profile_thread *thread) {
    for (size_t i = 0; i < count; i++)
        if (!memcmp(groups[i].name, thread->name, sizeof thread->name)) return &groups[i];
    return NULL;
}

// The slots that count for a group already.
struct group_slots {
    struct index_table table;
    ARRAY(uint32_t) slots;  // with the numbers of their groups
    ARRAY(uint32_t) groups;
};

static bool group_slots_add(struct group_slots *known, uint32_t group, uint32_t slot,
                            bool *is_added) {
    uint64_t hash = hash_mix(hash_mix(index_table_seed(), group), slot);
    struct index_probe probe = index_probe_start(&known->table, hash);
    uint32_t index;
    *is_added = false;
    while (index_probe_next(&known->table, &probe, &index)) {
        bool is_there = index < known->slots.count && index < known->groups.count;
        if (is_there && known->slots.items[index] == slot && known->groups.items[index] == group)
            return true;
    }
    index = (uint32_t)known->slots.count;
    uint32_t *of_slot = array_push(&known->slots), *of_group = array_push(&known->groups);
    if (!of_slot || !of_group) return false;
    *of_slot = slot;
    *of_group = group;
    *is_added = true;
    return index_table_insert(&known->table, hash, index);
}

static void group_add(struct profile_thread *group, const struct profile_thread *thread) {
    group->tid = 0;
    group->folded_count += thread->folded_count + 1;
    group->allocations += thread->allocations;
    group->allocated_bytes += thread->allocated_bytes;
    group->failed += thread->failed;
    group->exit_bytes = figures_add(group->exit_bytes, thread->exit_bytes);
    group->peak_bytes = figures_add(group->peak_bytes, thread->peak_bytes);
    group->sharing_count = group->folded_count + 1;
}

bool threads_group(const struct profile *profile, struct profile_thread *groups, size_t *count) {
    struct group_slots known = {0};
    bool is_ok = true;
    *count = 0;
    for (size_t i = 0; is_ok && i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        struct profile_thread *group = group_of(groups, *count, thread);
        bool is_first = !group, is_added;
        if (is_first) {
            group = &groups[(*count)++];
            *group = *thread;
        } else {
            group_add(group, thread);
        }
        is_ok = group_slots_add(&known, (uint32_t)(group - groups), thread->slot, &is_added);
        if (is_first || !is_added) continue;
        estimate_add(&group->exit_estimate, &thread->exit_estimate);
        estimate_add(&group->peak_estimate, &thread->peak_estimate);
    }
    index_table_free(&known.table);
    array_free(&known.slots);
    array_free(&known.groups);
    return is_ok;
}
