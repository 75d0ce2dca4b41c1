// SPDX-License-Identifier: Apache-2.0
// Most stacks stay as they are from snapshot to snapshot: such columns are nothing but zeros, which
// compress to nothing. Of very many moments some are left out, so that a page stays small; those
// with a label are the last to go.
#include "tool/web/history.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/model/narrow.h"
#include "tool/model/snapshots.h"
#include "tool/model/threads.h"
#include "tool/model/timeline.h"
#include "tool/web/heaps.h"

// The last time that a recording tells of: one that goes on has an interval without an end.
static uint64_t end_of(const struct recording *recording) {
    struct timeline timeline;
    struct timeline_span span;
    uint64_t end_ns = 0;
    timeline_start(&timeline, recording);
    while (timeline_next(&timeline, &span))
        end_ns = span.end_ns != UINT64_MAX ? span.end_ns : span.start_ns + timeline.point_ns;
    return end_ns;
}

static size_t step_at(uint64_t at_ns, uint64_t end_ns) {
    double step = (double)at_ns / (double)end_ns * LIFE_STEPS;
    return step < LIFE_STEPS ? (size_t)step : LIFE_STEPS - 1;
}

bool life_read(const struct recording *recording, uint64_t live[LIFE_STEPS]) {
    struct timeline timeline;
    struct timeline_span span;
    uint64_t end_ns = end_of(recording);
    memset(live, 0, LIFE_STEPS * sizeof *live);
    timeline_start(&timeline, recording);
    while (end_ns && timeline_next(&timeline, &span)) {
        if (span.start_ns >= span.end_ns) continue;
        size_t last = step_at(span.end_ns - 1, end_ns);
        for (size_t step = step_at(span.start_ns, end_ns); step <= last; step++)
            if (span.high_bytes > live[step]) live[step] = span.high_bytes;
    }
    return end_ns > 0;
}

enum { SNAPSHOTS_MAX = 64, SNAPSHOTS_MIN = 8, VALUES_MAX = 6000000 };

struct history {
    struct sink *sink;
    const struct profile *profile;
    struct snapshots snapshots;
    size_t *chosen;  // indexes in the list
    size_t count;
    uint16_t *slot_of_cell;  // plus 1; 0: it counts for no thread
    size_t slot_limit;
    int64_t *by_stack, *by_slot;            // sums at one snapshot, by number
    int64_t *stacks_before, *slots_before;  // at the snapshot before it
};

static size_t room_for(const struct profile *profile) {
    size_t room = profile->stack_count ? VALUES_MAX / profile->stack_count : SNAPSHOTS_MAX;
    if (room > SNAPSHOTS_MAX) room = SNAPSHOTS_MAX;
    return room < SNAPSHOTS_MIN ? SNAPSHOTS_MIN : room;
}

// Takes every `step`-th of those with or without a label.
static void choose_some(struct history *history, bool *is_chosen, bool has_label, size_t room) {
    size_t all = 0, seen = 0;
    const struct snapshot *list = history->snapshots.list;
    for (size_t i = 0; i < history->snapshots.count; i++)
        all += list[i].has_values && (*list[i].label != 0) == has_label;
    size_t step = room ? (all + room - 1) / room : 0;
    for (size_t i = 0; i < history->snapshots.count; i++)
        if (list[i].has_values && (*list[i].label != 0) == has_label && step)
            is_chosen[i] = seen++ % step == 0;
}

static bool choose(struct history *history) {
    size_t all = history->snapshots.count, room = room_for(history->profile);
    bool *is_chosen = calloc(all + 1, sizeof *is_chosen);
    history->chosen = calloc(all + 1, sizeof *history->chosen);
    bool is_ok = is_chosen && history->chosen;
    if (is_ok) {
        choose_some(history, is_chosen, true, room);
        for (size_t i = 0; i < all; i++) room -= is_chosen[i] && room;
        choose_some(history, is_chosen, false, room);
        for (size_t i = 0; i < all; i++)
            if (is_chosen[i]) history->chosen[history->count++] = i;
    }
    free(is_chosen);
    return is_ok;
}

static bool put_list(struct history *history) {
    char *text = NULL;
    size_t size = 0;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&json, out);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < history->count; i++) {
        const struct snapshot *snapshot = &history->snapshots.list[history->chosen[i]];
        json_open_object(&json, NULL);
        json_put_uint(&json, "at_ns", snapshot->at_ns);
        json_put_string(&json, "reason", snapshot_reason_name(snapshot->reason));
        json_put_string(&json, "label", snapshot->label);
        json_close(&json);
    }
    json_close(&json);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(history->sink, "snapshots", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

static void add(int64_t *sum, int64_t bytes) {
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)bytes);
}

static bool make_sums(struct history *history) {
    const struct profile *profile = history->profile;
    size_t stacks = profile->built_stack_count + 1;
    history->slot_limit = threads_slot_limit(profile->recording);
    history->slot_of_cell = calloc(profile->cell_count + 1, sizeof *history->slot_of_cell);
    history->by_stack = calloc(stacks, sizeof *history->by_stack);
    history->stacks_before = calloc(stacks, sizeof *history->stacks_before);
    history->by_slot = calloc(history->slot_limit, sizeof *history->by_slot);
    history->slots_before = calloc(history->slot_limit, sizeof *history->slots_before);
    if (!history->slot_of_cell || !history->by_stack || !history->stacks_before ||
        !history->by_slot || !history->slots_before)
        return false;
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        uint16_t slot;
        if (profile->stack_of_cell[cell] && narrow_cell_slot(profile, cell, &slot) &&
            slot < history->slot_limit)
            history->slot_of_cell[cell] = (uint16_t)(slot + 1);
    }
    return true;
}

static void free_sums(struct history *history) {
    free(history->slot_of_cell);
    free(history->by_stack);
    free(history->by_slot);
    free(history->stacks_before);
    free(history->slots_before);
}

static void add_up(struct history *history, size_t snapshot) {
    const struct profile *profile = history->profile;
    memset(history->by_stack, 0, (profile->built_stack_count + 1) * sizeof *history->by_stack);
    memset(history->by_slot, 0, history->slot_limit * sizeof *history->by_slot);
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        uint32_t stack = profile->stack_of_cell[cell];
        if (!stack) continue;
        int64_t bytes = snapshots_cell_live(&history->snapshots, snapshot, cell).bytes;
        uint16_t slot = history->slot_of_cell[cell];
        add(&history->by_stack[stack - 1], bytes);
        if (slot) add(&history->by_slot[slot - 1], bytes);
    }
}

static void put_change(struct column *column, int64_t bytes, int64_t *before) {
    column_put_number(column, (int64_t)((uint64_t)bytes - (uint64_t)*before));
    *before = bytes;
}

static void put_values(struct history *history) {
    const struct profile *profile = history->profile;
    for (size_t i = 0; i < history->count; i++) {
        struct column stacks = {0}, slots = {0};
        add_up(history, history->chosen[i]);
        for (size_t at = 0; at < profile->stack_count; at++) {
            uint32_t number = profile->stacks[at].number;
            put_change(&stacks, history->by_stack[number], &history->stacks_before[number]);
        }
        for (size_t slot = 0; slot < history->slot_limit; slot++)
            put_change(&slots, history->by_slot[slot], &history->slots_before[slot]);
        sink_put_column(history->sink, "snapshot.bytes", CHUNK_NUMBERS, &stacks);
        sink_put_column(history->sink, "snapshot.slots", CHUNK_NUMBERS, &slots);
    }
}

// What the slots held at the peak and at the end.
static void put_ends(struct history *history) {
    const struct profile *profile = history->profile;
    int64_t *peak = history->by_slot, *exit = history->slots_before;
    struct column peaks = {0}, exits = {0};
    memset(peak, 0, history->slot_limit * sizeof *peak);
    memset(exit, 0, history->slot_limit * sizeof *exit);
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        struct cell_values values;
        uint16_t slot = history->slot_of_cell[cell];
        if (!slot || !profile_cell(profile, cell, &values)) continue;
        add(&peak[slot - 1], values.peak_bytes);
        add(&exit[slot - 1], values.exit_bytes);
    }
    for (size_t slot = 0; slot < history->slot_limit; slot++) {
        column_put_number(&peaks, peak[slot]);
        column_put_number(&exits, exit[slot]);
    }
    sink_put_column(history->sink, "slot.peak", CHUNK_NUMBERS, &peaks);
    sink_put_column(history->sink, "slot.exit", CHUNK_NUMBERS, &exits);
}

static bool put_history(struct history *history) {
    bool is_ok = put_list(history) && make_sums(history);
    if (is_ok) {
        put_values(history);
        put_ends(history);
    }
    free_sums(history);
    return is_ok;
}

bool history_put(struct sink *sink, const struct profile *profile, struct error *error) {
    struct history history = {.sink = sink, .profile = profile};
    if (!snapshots_build(&history.snapshots, profile, error)) return false;
    bool is_ok = choose(&history);
    if (is_ok && history.count)
        is_ok = put_history(&history) &&
                heaps_put_held(sink, profile, history.chosen, history.count, error);
    free(history.chosen);
    snapshots_free(&history.snapshots);
    return is_ok || error_set(error, "no memory for the snapshots of this recording");
}
