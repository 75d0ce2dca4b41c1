// SPDX-License-Identifier: Apache-2.0
#include "tool/render/snapshots_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/model/scopes.h"
#include "tool/model/snapshots.h"

enum { HIGHS_SHOWN = 4, TIME_COLUMNS = 10, SIZE_COLUMNS = 12, MORE_BYTES = 96 };

enum snapshot_column {
    SNAPSHOT_AT,
    SNAPSHOT_LIVE,
    SNAPSHOT_BLOCKS,
    SNAPSHOT_ALLOCATED,
    SNAPSHOT_SENTENCE,
    SNAPSHOT_HEAP_TOLD,
    SNAPSHOT_LABEL,
    SNAPSHOT_MISSING_TOLD,
    SNAPSHOT_REASON,
    SNAPSHOT_HEAP,
    SNAPSHOT_GENERATION,
    SNAPSHOT_CALLS,
    SNAPSHOT_MISSING,
    SNAPSHOT_HAS_VALUES,
    SNAPSHOT_COLUMNS
};

static const char *reason_text(enum cairn_snapshot_reason reason) {
    static const char *const texts[] = {[CAIRN_SNAPSHOT_CHURN] = "much was allocated and freed",
                                        [CAIRN_SNAPSHOT_HIGH] = "new high-water mark",
                                        [CAIRN_SNAPSHOT_LOW] = "the heap had fallen by a quarter",
                                        [CAIRN_SNAPSHOT_ASKED] = "snapshot",
                                        [CAIRN_SNAPSHOT_MARK] = "mark",
                                        [CAIRN_SNAPSHOT_EXIT] = "the exit handlers had run"};
    return texts[reason];
}

struct snapshot_list {
    struct snapshots snapshots;
    struct scopes scopes;
    size_t at;
    size_t alike;  // rows to come that only programs get
    bool is_of_heap;
    char text[MORE_BYTES];
    struct answer_column columns[SNAPSHOT_COLUMNS];
};

// NULL: it was taken for malloc's heap.
static const char *heap_path(const struct scopes *scopes, const struct snapshot *snapshot) {
    bool is_known = snapshot->heap && snapshot->heap < scopes->count;
    return is_known ? scopes->list[snapshot->heap].path : NULL;
}

// Whose heap's ups and downs it was taken for, where that is not the one that is shown; NULL: it
// is.
static const char *other_heap(const struct snapshot_list *list, const struct snapshot *snapshot) {
    bool is_by_itself = snapshot->reason == CAIRN_SNAPSHOT_CHURN ||
                        snapshot->reason == CAIRN_SNAPSHOT_HIGH ||
                        snapshot->reason == CAIRN_SNAPSHOT_LOW;
    const char *path = heap_path(&list->scopes, snapshot);
    if (!is_by_itself) return NULL;
    return path ? path : list->is_of_heap ? "malloc" : NULL;
}

static bool is_plain_high(const struct snapshots *snapshots, size_t i) {
    if (i >= snapshots->count) return false;
    const struct snapshot *snapshot = &snapshots->list[i];
    return snapshot->reason == CAIRN_SNAPSHOT_HIGH && !*snapshot->label;
}

// Behind a high-water mark and before another, of whichever heap: how many there are from `i` on.
static size_t highs_between(const struct snapshots *snapshots, size_t i) {
    size_t count = 0;
    if (!i || !is_plain_high(snapshots, i - 1)) return 0;
    while (is_plain_high(snapshots, i + count) && is_plain_high(snapshots, i + count + 1)) count++;
    return count;
}

// A mark of a fork is from before it was one: only its name is known.
static void tell(struct snapshot_list *list, const struct snapshot *snapshot,
                 struct answer_row *row) {
    const char *heap = heap_path(&list->scopes, snapshot), *other = other_heap(list, snapshot);
    answer_set(row, SNAPSHOT_AT, (int64_t)snapshot->at_ns);
    answer_set(row, SNAPSHOT_LIVE, snapshot->live_bytes);
    answer_set(row, SNAPSHOT_BLOCKS, snapshot->live_blocks);
    answer_set(row, SNAPSHOT_ALLOCATED, (int64_t)snapshot->allocated_bytes);
    answer_set_text(row, SNAPSHOT_SENTENCE, reason_text(snapshot->reason));
    if (other) answer_set_text(row, SNAPSHOT_HEAP_TOLD, other);
    if (*snapshot->label) answer_set_text(row, SNAPSHOT_LABEL, snapshot->label);
    if (snapshot->missing_values) {
        snprintf(list->text, sizeof list->text, "%s",
                 units_counted((int64_t)snapshot->missing_values, "value is", "values are").text);
        answer_set_text(row, SNAPSHOT_MISSING_TOLD, list->text);
    }
    answer_set_text(row, SNAPSHOT_REASON, snapshot_reason_name(snapshot->reason));
    if (heap) answer_set_text(row, SNAPSHOT_HEAP, heap);
    answer_set(row, SNAPSHOT_GENERATION, snapshot->generation);
    answer_set(row, SNAPSHOT_CALLS, (int64_t)snapshot->allocations);
    answer_set(row, SNAPSHOT_MISSING, (int64_t)snapshot->missing_values);
    answer_set(row, SNAPSHOT_HAS_VALUES, snapshot->has_values);
    if (snapshot->has_values) return;
    row->instead = "what stacks held is not known";
    for (size_t i = SNAPSHOT_AT; i <= SNAPSHOT_ALLOCATED; i++) answer_set_unknown(row, i);
}

static bool next_snapshot(struct answer *answer, struct answer_row *row) {
    struct snapshot_list *list = answer->state;
    if (list->at == list->snapshots.count) return false;
    size_t alike = list->alike ? 0 : highs_between(&list->snapshots, list->at);
    if (alike > HIGHS_SHOWN) {
        list->alike = alike;
        row->use = ANSWER_FOR_PEOPLE;
        row->instead = "\xe2\x80\xa6";
        snprintf(list->text, sizeof list->text, "%s new high-water marks in between",
                 units_count((int64_t)alike).text);
        answer_set_text(row, SNAPSHOT_SENTENCE, list->text);
        return true;
    }
    if (list->alike) {
        row->use = ANSWER_FOR_PROGRAMS;
        list->alike--;
    }
    tell(list, &list->snapshots.list[list->at++], row);
    return true;
}

static void close_list(void *state) {
    struct snapshot_list *list = state;
    scopes_free(&list->scopes);
    snapshots_free(&list->snapshots);
    free(list);
}

static void set_columns(struct snapshot_list *list) {
    const struct answer_column columns[SNAPSHOT_COLUMNS] = {
        [SNAPSHOT_AT] = ANSWER_FIGURES("at_ns", "at", ANSWER_TIME, TIME_COLUMNS),
        [SNAPSHOT_LIVE] = ANSWER_FIGURES("live_bytes", "live", ANSWER_BYTES, SIZE_COLUMNS),
        [SNAPSHOT_BLOCKS] = ANSWER_FIGURES("live_blocks", "blocks", ANSWER_COUNT, SIZE_COLUMNS),
        // what a heap by name had allocated by then is not kept with a snapshot
        [SNAPSHOT_ALLOCATED] = ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES,
                                              SIZE_COLUMNS, .is_left_out = list->is_of_heap),
        [SNAPSHOT_SENTENCE] = ANSWER_TAILS(NULL, "  ", NULL, .head = "why"),
        [SNAPSHOT_HEAP_TOLD] = ANSWER_TAILS(NULL, " (", ")", .head = "heap"),
        [SNAPSHOT_LABEL] = ANSWER_TAILS("label", " \"", "\""),
        [SNAPSHOT_MISSING_TOLD] =
            ANSWER_TAILS(NULL, "  ", " missing", .style = STYLE_WARNING, .head = "missing"),
        [SNAPSHOT_REASON] = ANSWER_DATA("reason", ANSWER_TEXT),
        [SNAPSHOT_HEAP] = ANSWER_DATA("heap", ANSWER_TEXT),
        [SNAPSHOT_GENERATION] = ANSWER_DATA("generation", ANSWER_NUMBER),
        [SNAPSHOT_CALLS] =
            ANSWER_DATA("allocations", ANSWER_COUNT, .is_left_out = list->is_of_heap),
        [SNAPSHOT_MISSING] = ANSWER_DATA("missing_values", ANSWER_COUNT),
        [SNAPSHOT_HAS_VALUES] = ANSWER_DATA("has_values", ANSWER_BOOL)};
    memcpy(list->columns, columns, sizeof columns);
}

bool snapshots_answer(struct answer *answer, const struct profile *profile,
                      const struct view_options *view, struct error *error) {
    if (profile_is_sum(profile))
        return error_set(error, "snapshots are known of each process alone: -p PID or NAME");
    struct snapshot_list *list = calloc(1, sizeof *list);
    if (!list || !snapshots_build(&list->snapshots, profile, error)) {
        free(list);
        return error_set(error, "no memory for the list of snapshots");
    }
    if (!scopes_read(&list->scopes, profile->recording)) {
        close_list(list);
        return error_set(error, "no memory for the heaps of this recording");
    }
    list->is_of_heap = profile->heap != NULL;
    set_columns(list);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = list->columns,
                              .column_count = SNAPSHOT_COLUMNS,
                              .shown = list->snapshots.count,
                              .count = list->snapshots.count,
                              .next_row = next_snapshot,
                              .close = close_list,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "%s",
             units_counted((int64_t)answer->count, "snapshot", "snapshots").text);
    snprintf(answer->title_rest, sizeof answer->title_rest,
             ": what stacks held is known of %s, the peak and the end",
             answer->count ? "these" : "no others than");
    return true;
}

static void put_snapshot(struct json *json, const struct profile *profile,
                         const struct scopes *scopes, const struct snapshot *snapshot) {
    const char *heap = heap_path(scopes, snapshot);
    json_open_object(json, NULL);
    json_put_uint(json, "at_ns", snapshot->at_ns);
    json_put_string(json, "reason", snapshot_reason_name(snapshot->reason));
    if (heap) json_put_string(json, "heap", heap);
    json_put_string(json, "label", snapshot->label);
    json_put_uint(json, "generation", snapshot->generation);
    json_put_int(json, "live_bytes", snapshot->live_bytes);
    json_put_int(json, "live_blocks", snapshot->live_blocks);
    if (!profile->heap) {
        json_put_uint(json, "allocated_bytes", snapshot->allocated_bytes);
        json_put_uint(json, "allocations", snapshot->allocations);
    }
    json_put_uint(json, "missing_values", snapshot->missing_values);
    json_put_bool(json, "has_values", snapshot->has_values);
    json_close(json);
}

bool snapshots_json_put(struct json *json, const struct profile *profile) {
    struct snapshots snapshots;
    struct scopes scopes = {0};
    struct error error;
    bool is_built = snapshots_build(&snapshots, profile, &error);
    bool is_ok = is_built && scopes_read(&scopes, profile->recording);
    json_open_array(json, "snapshots");
    for (size_t i = 0; is_ok && i < snapshots.count; i++)
        put_snapshot(json, profile, &scopes, &snapshots.list[i]);
    json_close(json);
    scopes_free(&scopes);
    if (is_built) snapshots_free(&snapshots);
    return is_ok;
}
