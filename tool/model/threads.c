// SPDX-License-Identifier: Apache-2.0
#include "tool/model/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"

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

// Returns what one of several threads has of a sum: none has less than nothing, nor more than it
// allocated.
static bool is_share_known(int64_t sum, uint64_t allocated_bytes, uint64_t all_bytes) {
    bool is_all = sum >= 0 && (uint64_t)sum == all_bytes;
    return sum == 0 || is_all || allocated_bytes == 0 || allocated_bytes == all_bytes;
}

static void give_share(struct slot_bytes *left, struct profile_thread *thread, bool is_last,
                       bool is_sampled) {
    uint64_t allocated = thread->allocated_bytes;
    thread->sharing_count = left->sharing_count;
    thread->exit_estimate = left->exit_estimate;
    thread->peak_estimate = left->peak_estimate;
    thread->account_exit_bytes = left->all_exit;
    thread->account_peak_bytes = left->all_peak;
    thread->is_shared = !is_share_known(left->all_exit, allocated, left->all_allocated_bytes) ||
                        !is_share_known(left->all_peak, allocated, left->all_allocated_bytes);
    if (is_sampled) {
        thread->exit_bytes = take_part(&left->exit, allocated, left->allocated_bytes);
        thread->peak_bytes = take_part(&left->peak, allocated, left->allocated_bytes);
        left->allocated_bytes -= allocated;
    } else {
        thread->exit_bytes = take_share(&left->exit, allocated, is_last);
        thread->peak_bytes = take_share(&left->peak, allocated, is_last);
    }
}

// Adds what happened while a checkpoint was written; it counts for the slot's last thread.
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

static bool has_done_nothing(const struct cairn_thread *entry) {
    return !entry->allocations && !entry->frees && !entry->failed && !entry->net_bytes;
}

static bool is_named_elsewhere(const struct recording *recording, size_t count, size_t index,
                               uint32_t tid) {
    struct cairn_thread other;
    for (size_t i = 0; i < count && recording_thread(recording, i, &other); i++)
        if (i != index && other.tid == tid && !has_done_nothing(&other)) return true;
    return false;
}

// Drops the entries of a thread that cairn borrowed to attach or to leave: it has one of its own.
static void drop_borrowed(struct profile *profile) {
    const size_t count = profile->thread_count;
    struct cairn_thread entry;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_borrowed = recording_thread(profile->recording, i, &entry) && entry.tid &&
                           has_done_nothing(&entry) &&
                           is_named_elsewhere(profile->recording, count, i, entry.tid);
        if (!is_borrowed) profile->threads[kept++] = profile->threads[i];
    }
    profile->thread_count = kept;
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
        left[slot].all_exit = left[slot].exit;
        left[slot].all_peak = left[slot].peak;
        left[slot].all_allocated_bytes = left[slot].allocated_bytes;
    }
    for (size_t i = count; i-- > 0;) {
        recording_thread(profile->recording, i, &entry);
        if (figures_is_inherited(&entry)) continue;
        size_t slot = entry.slot % slot_limit;
        bool is_last = --entries_left[slot] == 0;
        struct profile_thread *thread = &profile->threads[i];
        if (recording_is_checkpoint(profile->recording)) catch_up(&left[slot], thread);
        thread->account = (uint32_t)slot;
        give_share(&left[slot], thread, is_last, profile->sampling.is_on);
    }
    if (profile->recording->header.is_attached) drop_borrowed(profile);
out:
    free(entries_left);
    return is_ok;
}

static bool is_same_name(const struct profile_thread *a, const char *name) {
    return !memcmp(a->name, name, sizeof a->name);
}

static void row_begin(struct thread_row *row, const struct profile_thread *thread) {
    *row = (struct thread_row){.sums = *thread};
    if (!thread->is_shared) return;
    row->sums.exit_bytes = thread->account_exit_bytes;
    row->sums.peak_bytes = thread->account_peak_bytes;
    row->sharing_count = thread->folded_count + 1;
}

// A thread that shares the account of the row.
static void row_share(struct thread_row *row, const struct profile_thread *thread) {
    struct profile_thread *sums = &row->sums;
    if (!is_same_name(thread, sums->name)) {
        row->has_other_names = true;
        memcpy(row->last_name, thread->name, sizeof row->last_name);
    }
    row->sharing_count += thread->folded_count + 1;
    sums->tid = 0;
    sums->allocations += thread->allocations;
    sums->allocated_bytes += thread->allocated_bytes;
    sums->failed += thread->failed;
    if (thread->end_ns > sums->end_ns) sums->end_ns = thread->end_ns;
}

void thread_row_text(const struct thread_row *row, char *out, size_t size) {
    char first[sizeof row->sums.name + 1] = "", last[sizeof row->last_name + 1] = "";
    memcpy(first, row->sums.name, sizeof row->sums.name);
    memcpy(last, row->last_name, sizeof row->last_name);
    snprintf(out, size, "%s", *first ? first : "(no name)");
    size_t used = strlen(out);
    if (row->sharing_count > 1)
        snprintf(out + used, size - used, "%s%s (%s threads share an account)",
                 row->has_other_names ? " ... " : "",
                 !row->has_other_names ? ""
                 : *last               ? last
                                       : "(no name)",
                 units_count((int64_t)row->sharing_count).text);
}

static uint32_t account_limit(const struct profile *profile) {
    uint32_t limit = 0;
    for (size_t i = 0; i < profile->thread_count; i++)
        if (profile->threads[i].account >= limit) limit = profile->threads[i].account + 1;
    return limit;
}

bool threads_rows(const struct profile *profile, struct thread_row *rows, size_t *count) {
    uint32_t *row_of = calloc((size_t)account_limit(profile) + 1, sizeof *row_of);
    *count = 0;
    if (!row_of) return false;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        uint32_t *row = &row_of[thread->account];
        if (thread->is_shared && *row) {
            row_share(&rows[*row - 1], thread);
            continue;
        }
        row_begin(&rows[(*count)++], thread);
        if (thread->is_shared) *row = (uint32_t)*count;
    }
    free(row_of);
    return true;
}

// Those that share an account under several names are no group with others.
static struct thread_row *group_of(struct thread_row *groups, size_t count,
                                   const struct thread_row *row) {
    for (size_t i = 0; !row->has_other_names && i < count; i++)
        if (!groups[i].has_other_names && is_same_name(&groups[i].sums, row->sums.name))
            return &groups[i];
    return NULL;
}

// A row of one name is that of so many threads, whose sum is known.
static void group_begin(struct thread_row *group, const struct thread_row *row) {
    *group = *row;
    if (row->has_other_names || row->sharing_count < 2) return;
    group->sums.folded_count = row->sharing_count - 1;
    group->sums.tid = 0;
    group->sharing_count = 0;
}

static void group_add(struct thread_row *group, const struct thread_row *row) {
    struct profile_thread *sums = &group->sums;
    const struct profile_thread *added = &row->sums;
    sums->tid = 0;
    sums->folded_count += row->sharing_count ? row->sharing_count : added->folded_count + 1;
    sums->allocations += added->allocations;
    sums->allocated_bytes += added->allocated_bytes;
    sums->failed += added->failed;
    sums->exit_bytes = figures_add(sums->exit_bytes, added->exit_bytes);
    sums->peak_bytes = figures_add(sums->peak_bytes, added->peak_bytes);
    sums->sharing_count = sums->folded_count + 1;
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

static bool groups_add(struct thread_row *groups, size_t *count, const struct thread_row *row,
                       struct group_slots *known) {
    struct thread_row *group = group_of(groups, *count, row);
    bool is_first = !group, is_added;
    if (is_first)
        group_begin(group = &groups[(*count)++], row);
    else
        group_add(group, row);
    if (!group_slots_add(known, (uint32_t)(group - groups), row->sums.slot, &is_added))
        return false;
    if (is_first || !is_added) return true;
    estimate_add(&group->sums.exit_estimate, &row->sums.exit_estimate);
    estimate_add(&group->sums.peak_estimate, &row->sums.peak_estimate);
    return true;
}

bool threads_group(const struct profile *profile, struct thread_row *groups, size_t *count) {
    struct group_slots known = {0};
    size_t row_count;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    bool is_ok = rows && threads_rows(profile, rows, &row_count);
    *count = 0;
    for (size_t i = 0; is_ok && i < row_count; i++)
        is_ok = groups_add(groups, count, &rows[i], &known);
    free(rows);
    index_table_free(&known.table);
    array_free(&known.slots);
    array_free(&known.groups);
    return is_ok;
}
