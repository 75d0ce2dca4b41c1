// SPDX-License-Identifier: Apache-2.0
#include "tool/render/diff.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/narrow.h"
#include "tool/model/scopes.h"
#include "tool/model/threads.h"
#include "tool/render/groups_screen.h"

void diff_start(struct diff *diff, size_t recording_count, size_t first_count) {
    *diff = (struct diff){.recording_count = recording_count, .first_count = first_count};
}

void diff_free(struct diff *diff) {
    for (size_t i = 0; i < diff->rows.count; i++) {
        free(diff->rows.items[i].names);
        free(diff->rows.items[i].where);
    }
    for (size_t i = 0; i < diff->texts.list.count; i++) free(diff->texts.list.items[i]);
    array_free(&diff->texts.list);
    index_table_free(&diff->texts.table);
    array_free(&diff->rows);
    array_free(&diff->values);
    array_free(&diff->estimates);
    array_free(&diff->calls);
    array_free(&diff->unseen);
    index_table_free(&diff->table);
}

bool diff_set_sampled(struct diff *diff, size_t recording, uint64_t rate_bytes) {
    const double most_intervals = 3.7, deviations = 1.96;
    double deviation = most_intervals * (double)rate_bytes / deviations;
    while (diff->unseen.count <= recording) {
        double *variance = array_push(&diff->unseen);
        if (!variance) return false;
        *variance = 0;
    }
    diff->unseen.items[recording] = deviation * deviation;
    return true;
}

const int64_t *diff_values(const struct diff *diff, size_t row) {
    return &diff->values.items[row * diff->recording_count];
}

const char *diff_name(const struct diff *diff, const struct diff_row *row, uint32_t line) {
    return diff->texts.list.items[row->names[line]];
}

const char *diff_where(const struct diff *diff, const struct diff_row *row, uint32_t line) {
    return diff->texts.list.items[row->where[line]];
}

bool diff_text(struct diff *diff, const char *text, uint32_t *number) {
    struct diff_texts *texts = &diff->texts;
    uint64_t hash = index_table_seed();
    for (const char *at = text; *at; at++) hash = hash_mix(hash, (unsigned char)*at);
    struct index_probe probe = index_probe_start(&texts->table, hash);
    while (index_probe_next(&texts->table, &probe, number))
        if (!strcmp(texts->list.items[*number], text)) return true;
    *number = (uint32_t)texts->list.count;
    char *copy = strdup(text), **slot = copy ? array_push(&texts->list) : NULL;
    if (!slot) {
        free(copy);
        return false;
    }
    *slot = copy;
    return index_table_insert(&texts->table, hash, *number);
}

static uint64_t hash_of(const struct diff_row *row) {
    uint64_t hash = index_table_seed();
    for (uint32_t i = 0; i < row->count; i++) hash = hash_mix(hash, row->names[i]);
    return hash;
}

static uint32_t *copy_numbers(const uint32_t *numbers, uint32_t count) {
    uint32_t *copy = calloc((size_t)count + 1, sizeof *copy);
    if (copy) memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

static bool add_row(struct diff *diff, uint64_t hash, const struct diff_row *wanted) {
    uint32_t index = (uint32_t)diff->rows.count;
    struct diff_row *row = array_push(&diff->rows);
    if (!row) return false;
    *row = (struct diff_row){.names = copy_numbers(wanted->names, wanted->count),
                             .where = copy_numbers(wanted->where, wanted->count),
                             .count = wanted->count,
                             .joined_to = index};
    for (size_t i = 0; i < diff->recording_count; i++) {
        int64_t *value = array_push(&diff->values);
        int64_t *calls = array_push(&diff->calls);
        struct diff_estimate *estimate = array_push(&diff->estimates);
        if (!value || !calls || !estimate) return false;
        *value = *calls = 0;
        *estimate = (struct diff_estimate){0};
    }
    return row->names && row->where && index_table_insert(&diff->table, hash, index);
}

static bool find(const struct diff *diff, uint64_t hash, const struct diff_row *wanted,
                 uint32_t *index) {
    struct index_probe probe = index_probe_start(&diff->table, hash);
    while (index_probe_next(&diff->table, &probe, index)) {
        const struct diff_row *row = &diff->rows.items[*index];
        if (row->count == wanted->count &&
            !memcmp(row->names, wanted->names, row->count * sizeof *row->names))
            return true;
    }
    return false;
}

struct diff_estimate diff_estimate_of(struct measured measured) {
    const struct estimate *estimate = &measured.estimate;
    double own = measured.is_in_blocks ? estimate->blocks_variance : estimate->bytes_variance;
    double whole = estimate_variance(measured_interval(measured));
    if (own > whole) own = whole;
    return (struct diff_estimate){own, whole - own, measured_samples(measured)};
}

static void estimate_join(struct diff_estimate *sum, const struct diff_estimate *added) {
    sum->variance += added->variance;
    if (added->missed > sum->missed) sum->missed = added->missed;
    sum->samples = figures_add(sum->samples, added->samples);
}

static void add_value(struct diff *diff, size_t recording, uint32_t row, struct measured measured) {
    size_t at = row * diff->recording_count + recording;
    diff->values.items[at] = figures_add(diff->values.items[at], measured_shown(measured));
    const struct diff_estimate estimate = diff_estimate_of(measured);
    estimate_join(&diff->estimates.items[at], &estimate);
}

bool diff_add_row(struct diff *diff, size_t recording, const struct diff_row *row,
                  struct measured measured, uint32_t *index) {
    uint64_t hash = hash_of(row);
    if (!find(diff, hash, row, index)) {
        *index = (uint32_t)diff->rows.count;
        if (!add_row(diff, hash, row)) return false;
    } else {
        memcpy(diff->rows.items[*index].where, row->where, row->count * sizeof *row->where);
    }
    add_value(diff, recording, *index, measured);
    return true;
}

// A row that is being put together.
struct speller {
    struct diff *diff;
    ARRAY(uint32_t) names;
    ARRAY(uint32_t) where;
    ARRAY(struct spelled) frames;  // that were met, with the numbers of their texts
    struct index_table table;
};
struct spelled {
    const struct frame *frame;
    uint32_t name, where;
};

static void speller_free(struct speller *speller) {
    array_free(&speller->names);
    array_free(&speller->where);
    array_free(&speller->frames);
    index_table_free(&speller->table);
}

static struct diff_row row_of(const struct speller *speller) {
    return (struct diff_row){.names = speller->names.items,
                             .where = speller->where.items,
                             .count = (uint32_t)speller->names.count};
}

static bool add_numbers(struct speller *speller, uint32_t name, uint32_t where) {
    uint32_t *name_slot = array_push(&speller->names), *where_slot = array_push(&speller->where);
    if (!name_slot || !where_slot) return false;
    *name_slot = name;
    *where_slot = where;
    return true;
}

static bool add_texts(struct speller *speller, const char *name, const char *where) {
    uint32_t name_number, where_number;
    return diff_text(speller->diff, name, &name_number) &&
           diff_text(speller->diff, where, &where_number) &&
           add_numbers(speller, name_number, where_number);
}

// A frame's texts are made once, however many stacks go through it.
static bool spell_frame(struct speller *speller, const struct frame *frame) {
    char name[FRAME_TEXT_BYTES], where[FRAME_TEXT_BYTES];
    uint64_t hash = hash_mix(index_table_seed(), (uintptr_t)frame);
    struct index_probe probe = index_probe_start(&speller->table, hash);
    for (uint32_t index; index_probe_next(&speller->table, &probe, &index);) {
        const struct spelled *known = speller->frames.items;
        if (known && known[index].frame == frame)
            return add_numbers(speller, known[index].name, known[index].where);
    }
    struct spelled *added = array_push(&speller->frames);
    if (!added) return false;
    frame_label(frame, name, sizeof name, sizeof name);
    frame_location(frame, where, sizeof where);
    *added = (struct spelled){.frame = frame};
    return diff_text(speller->diff, name, &added->name) &&
           diff_text(speller->diff, where, &added->where) &&
           index_table_insert(&speller->table, hash, (uint32_t)speller->frames.count - 1) &&
           add_numbers(speller, added->name, added->where);
}

// The functions of a stack and their places; recursion is one line.
static bool spell(const struct frame_list *frames, struct speller *speller) {
    const struct frame *frame, *before = NULL;
    size_t index = 0;
    speller->names.count = speller->where.count = 0;
    while ((frame = frame_list_next(frames, &index))) {
        if (before && frame_is_same_function(frame, before)) continue;
        before = frame;
        if (!spell_frame(speller, frame)) return false;
    }
    return speller->names.count || add_texts(speller, STACK_NOT_RECORDED, "");
}

// Cuts the first line off `*text`; the last one is followed by none.
static const char *cut_line(char **text) {
    char *line = *text ? *text : "", *end = strchr(line, '\n');
    if (end) *end = 0;
    *text = end ? end + 1 : NULL;
    return line;
}

bool diff_add(struct diff *diff, size_t recording, const char *key, const char *where,
              struct measured measured) {
    struct speller speller = {.diff = diff};
    char *keys = strdup(key), *places = strdup(where), *at = keys, *place_at = places;
    bool is_ok = keys && places;
    while (is_ok && at) {
        const char *name = cut_line(&at);
        is_ok = add_texts(&speller, name, cut_line(&place_at));
    }
    if (is_ok) {
        const struct diff_row row = row_of(&speller);
        uint32_t index;
        is_ok = diff_add_row(diff, recording, &row, measured, &index);
    }
    speller_free(&speller);
    free(keys);
    free(places);
    return is_ok;
}

static int64_t calls_of(const struct profile *profile, size_t stack) {
    return measure_stack(MEASURE_CALLS, &profile->stacks[stack]).value;
}

static void add_calls(struct diff *diff, size_t recording, uint32_t row, int64_t calls) {
    int64_t *sum = &diff->calls.items[row * diff->recording_count + recording];
    *sum = figures_add(*sum, calls);
}

// `rows`: of every stack; NULL: those that hold something are enough.
static bool add_stacks(struct diff *diff, size_t recording, const struct profile *profile,
                       const struct frame_names *names, const struct view_options *view,
                       uint32_t *rows, struct error *error) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct speller speller = {.diff = diff};
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        struct measured measured = measure_stack(view->by, &profile->stacks[i]);
        bool is_worth = measured.value > 0 || (diff->is_of_peak && calls_of(profile, i));
        if (!rows && !is_worth) continue;
        if (measured.value <= 0) measured = (struct measured){0};
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0) &&
                spell(&frames, &speller);
        const struct diff_row row = row_of(&speller);
        uint32_t index = 0;
        is_ok = is_ok && diff_add_row(diff, recording, &row, measured, &index);
        if (is_ok) add_calls(diff, recording, index, calls_of(profile, i));
        if (rows) rows[i] = index;
    }
    frame_list_free(&frames);
    speller_free(&speller);
    return is_ok || error_set(error, "no memory for the comparison");
}

bool diff_add_stacks(struct diff *diff, size_t recording, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    return add_stacks(diff, recording, profile, names, view, NULL, error);
}

bool diff_add_every_stack(struct diff *diff, size_t recording, const struct profile *profile,
                          const struct frame_names *names, const struct view_options *view,
                          uint32_t *rows, struct error *error) {
    return add_stacks(diff, recording, profile, names, view, rows, error);
}

void diff_add_measure(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, const uint32_t *rows) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct measured measured = measure_stack(by, &profile->stacks[i]);
        if (measured.value > 0) add_value(diff, recording, rows[i], measured);
    }
}

uint32_t diff_joined_row(const struct diff *diff, uint32_t row) {
    while (diff->rows.items[row].joined_to != row) row = diff->rows.items[row].joined_to;
    return row;
}

bool diff_keep_growth(struct diff *diff, struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct speller speller = {.diff = diff};
    bool *are_kept = calloc(profile->stack_count + 1, sizeof *are_kept);
    bool is_ok = are_kept != NULL;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        uint32_t index;
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0) &&
                spell(&frames, &speller);
        const struct diff_row row = row_of(&speller);
        if (!is_ok || !find(diff, hash_of(&row), &row, &index)) continue;
        enum change_kind kind = diff_row_change(diff, index).kind;
        are_kept[i] = kind == CHANGE_NEW || kind == CHANGE_GROWN || kind == CHANGE_ONLY_AT_PEAK;
    }
    if (is_ok) profile_keep_stacks(profile, are_kept);
    free(are_kept);
    frame_list_free(&frames);
    speller_free(&speller);
    return is_ok || error_set(error, "no memory for the comparison");
}

void diff_join_rows(struct diff *diff, uint32_t from, uint32_t to) {
    size_t source = from * diff->recording_count, target = to * diff->recording_count;
    int64_t *values = diff->values.items, *calls = diff->calls.items;
    struct diff_estimate *estimates = diff->estimates.items;
    for (size_t i = 0; i < diff->recording_count; i++) {
        values[target + i] = figures_add(values[target + i], values[source + i]);
        estimate_join(&estimates[target + i], &estimates[source + i]);
        calls[target + i] = figures_add(calls[target + i], calls[source + i]);
        values[source + i] = calls[source + i] = 0;
        estimates[source + i] = (struct diff_estimate){0};
    }
    diff->rows.items[from].joined_to = to;
    diff->joined_count++;
}

// Returns the label, with its location where others have the same one.
static const char *key_of_group(const struct group *group, char key[2 * GROUP_TEXT_BYTES]) {
    if (!group->is_ambiguous) return group->label;
    snprintf(key, 2 * (size_t)GROUP_TEXT_BYTES, "%s (%s)", group->label, group->location);
    return key;
}

bool diff_add_groups(struct diff *diff, size_t recording, const struct grouping *grouping,
                     const struct profile *profile, const struct frame_names *names,
                     const struct view_options *view, struct error *error) {
    struct group_list list;
    char key[2 * GROUP_TEXT_BYTES];
    bool is_ok = group_list_build(&list, grouping, profile, names, view, error), has_memory = true;
    for (size_t i = 0; i < list.groups.count && is_ok && has_memory; i++) {
        const struct group *group = &list.groups.items[i];
        has_memory =
            diff_add(diff, recording, key_of_group(group, key), group->location, group->self);
    }
    group_list_free(&list);
    if (!has_memory) error_set(error, "no memory for the comparison");
    return is_ok && has_memory;
}

// Threads and regions side by side: they have names, and need none of the code's.

enum { NAME_BYTES = 1024 };

static bool diff_add_thread(struct diff *diff, size_t recording, const struct profile *profile,
                            const struct thread_row *row, enum measure by) {
    char raw[THREAD_TEXT_BYTES], name[NAME_BYTES];
    thread_row_text(row, raw, sizeof raw);
    // the first thread is called as the program, which may have another name now
    bool is_main = row->sums.tid && row->sums.tid == profile->recording->header.pid;
    text_escape(name, sizeof name, is_main ? "main thread" : raw);
    const struct measured measured = {.value = thread_value(&row->sums, by)};
    return diff_add(diff, recording, name, "", measured);
}

// Those of one name are one row, whoever shares an account with whom.
bool diff_add_threads(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error) {
    size_t count = 0;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    bool is_ok = rows && threads_rows(profile, rows, &count);
    for (size_t i = 0; is_ok && i < count; i++) {
        if (!rows[i].has_other_names) rows[i].sharing_count = 0;
        is_ok = diff_add_thread(diff, recording, profile, &rows[i], by);
    }
    free(rows);
    return is_ok || error_set(error, "no memory for the comparison");
}

bool diff_add_regions(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error) {
    struct scopes scopes;
    if (!scopes_read(&scopes, profile->recording))
        return error_set(error, "no memory for the regions");
    struct stack *values = scopes_sum(&scopes, profile, true);
    bool is_ok = values != NULL;
    for (size_t i = 0; is_ok && i < scopes.count; i++) {
        char name[NAME_BYTES];
        if (scopes.list[i].kind != CAIRN_SCOPE_REGION) continue;
        text_escape(name, sizeof name, scopes.list[i].path);
        is_ok = diff_add(diff, recording, name, "", measure_stack(by, &values[i]));
    }
    free(values);
    scopes_free(&scopes);
    return is_ok || error_set(error, "no memory for the comparison");
}
