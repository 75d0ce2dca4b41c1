// SPDX-License-Identifier: Apache-2.0
#include "tool/render/groups_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/threads.h"
#include "tool/render/freed_by.h"
#include "tool/render/freed_pairs.h"

enum {
    VALUE_COLUMNS = 11,     // a size or a number, with a blank before it ...
    PLAIN_COLUMNS = 17,     // ... and where sizes are plain numbers
    BLOCKS_COLUMNS = 10,    // " 1,234,567"
    PERCENTS_COLUMNS = 94,  // of sampled recordings: below, two values have no shares
    WIDE_COLUMNS = 110,     // from here on there is room for the number of blocks too
};

static size_t value_columns(const struct view_options *view) {
    return view->is_plain_number ? PLAIN_COLUMNS : VALUE_COLUMNS;
}

// "812 functions, at the peak".
static void say_title(struct answer *answer, enum measure by, size_t count, const char *what) {
    snprintf(answer->title, sizeof answer->title, "%s %s, %s%s", units_count((int64_t)count).text,
             what, by == MEASURE_CALLS ? "by " : "", measure_about(by)->snapshot);
}

enum group_column {
    GROUP_SELF,
    GROUP_TOTAL,
    GROUP_BLOCKS,
    GROUP_LABEL,
    GROUP_LOCATION,
    GROUP_NAME,
    GROUP_SELF_BLOCKS,
    GROUP_TOTAL_BLOCKS,
    GROUP_COLUMNS
};

struct group_table {
    struct group_list list;
    const struct grouping *grouping;
    size_t at;
    struct measured rest;  // of the groups that are not shown
    char others[ANSWER_TEXT_BYTES];
    struct answer_column columns[GROUP_COLUMNS];
};

static size_t count_shown(const struct answer *answer, const struct group_list *list) {
    const struct view_options *view = answer->options;
    int64_t threshold = view_threshold(view, answer->whole);
    size_t shown = 0;
    while (shown < list->groups.count && (!view->top || shown < view->top)) {
        const struct group *group = &list->groups.items[shown];
        if (group->self.value < threshold && group->total.value < threshold) break;
        shown++;
    }
    return shown;
}

static bool tell_rest(struct group_table *table, size_t count, struct answer_row *row) {
    row->use = ANSWER_FOR_PEOPLE;
    snprintf(table->others, sizeof table->others, "%s",
             units_counted((int64_t)count, "other", "others").text);
    answer_set_measured(row, GROUP_SELF, table->rest);
    answer_set(row, GROUP_BLOCKS, table->rest.blocks);
    answer_set_text(row, GROUP_LABEL, table->others);
    return true;
}

static bool next_group(struct answer *answer, struct answer_row *row) {
    struct group_table *table = answer->state;
    size_t at = table->at++;
    if (at == answer->shown && table->rest.value)
        return tell_rest(table, answer->count - answer->shown, row);
    if (at >= answer->shown) return false;
    const struct group *group = &table->list.groups.items[at];
    bool is_line = !table->grouping->has_stable_names;
    answer_set_measured(row, GROUP_SELF, group->self);
    answer_set_measured(row, GROUP_TOTAL, group->total);
    answer_set(row, GROUP_BLOCKS, group->self.value ? group->self.blocks : group->total.blocks);
    answer_set_text(row, GROUP_LABEL, is_line ? text_base_name(group->label) : group->label);
    if (*group->location) answer_set_text(row, GROUP_LOCATION, group->location);
    answer_set_text(row, GROUP_NAME, group->label);
    answer_set(row, GROUP_SELF_BLOCKS, group->self.blocks);
    answer_set(row, GROUP_TOTAL_BLOCKS, group->total.blocks);
    return true;
}

static void close_groups(void *state) {
    struct group_table *table = state;
    group_list_free(&table->list);
    free(table);
}

static void set_group_columns(struct group_table *table, const struct profile *profile,
                              const struct view_options *view) {
    const struct measure_row *about = measure_about(view->by);
    bool has_total = table->grouping->has_total, is_sampled = profile->sampling.is_on;
    const bool has_blocks = about->is_bytes && measure_is_known(about->in_blocks, profile);
    enum answer_unit unit = about->is_bytes ? ANSWER_BYTES : ANSWER_COUNT;
    const struct answer_column value = {.unit = unit,
                                        .place = ANSWER_FIGURE,
                                        .width = value_columns(view),
                                        .note = !is_sampled ? ANSWER_NO_NOTE
                                                : has_total ? ANSWER_NARROW_NOTE
                                                            : ANSWER_WIDE_NOTE,
                                        .has_share = true,
                                        .share_from =
                                            has_total && is_sampled ? PERCENTS_COLUMNS : 0,
                                        .has_dash = true,
                                        .is_estimate = true};
    const struct answer_column columns[GROUP_COLUMNS] = {
        [GROUP_SELF] = value,
        [GROUP_TOTAL] = value,
        [GROUP_BLOCKS] = ANSWER_FIGURES(
            NULL, NULL, ANSWER_COUNT, BLOCKS_COLUMNS, .noun = about->noun,
            .shown_from = has_total ? WIDE_COLUMNS : 0, .is_left_out = is_sampled || !has_blocks),
        [GROUP_LABEL] = ANSWER_NAMES(NULL, ANSWER_TAIL_NAME, .head = table->grouping->one),
        [GROUP_LOCATION] = ANSWER_TAILS("location", NULL, NULL, .style = STYLE_DIM),
        [GROUP_NAME] = ANSWER_DATA("name", ANSWER_TEXT),
        [GROUP_SELF_BLOCKS] = ANSWER_DATA("self_blocks", ANSWER_COUNT, .is_left_out = !has_blocks),
        [GROUP_TOTAL_BLOCKS] =
            ANSWER_DATA("total_blocks", ANSWER_COUNT, .is_left_out = !has_blocks || !has_total)};
    memcpy(table->columns, columns, sizeof columns);
    table->columns[GROUP_SELF].key = "self";
    table->columns[GROUP_SELF].head = has_total ? "self" : NULL;
    table->columns[GROUP_TOTAL].key = "total";
    table->columns[GROUP_TOTAL].head = "total";
    table->columns[GROUP_TOTAL].is_left_out = !has_total;
}

bool groups_answer(struct answer *answer, const struct grouping *grouping,
                   const struct profile *profile, const struct frame_names *names,
                   const struct view_options *view, struct error *error) {
    struct group_table *table = calloc(1, sizeof *table);
    if (!table || !group_list_build(&table->list, grouping, profile, names, view, error)) {
        if (table) group_list_free(&table->list);
        free(table);
        return error_set(error, "no memory for the list of %s", grouping->name);
    }
    const size_t count = table->list.groups.count;
    table->grouping = grouping;
    set_group_columns(table, profile, view);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = table->columns,
                              .column_count = GROUP_COLUMNS,
                              .has_heads_always = true,
                              .whole = measure_total(view->by, profile).value,
                              .count = count,
                              .next_row = next_group,
                              .close = close_groups,
                              .state = table};
    answer->shown = count_shown(answer, &table->list);
    for (size_t i = answer->shown; i < count; i++)
        measured_add(&table->rest, table->list.groups.items[i].self);
    say_title(answer, view->by, count, count == 1 ? grouping->one : grouping->name);
    return true;
}

static struct measured thread_estimate(const struct profile_thread *thread, bool is_peak) {
    const struct estimate *estimate = is_peak ? &thread->peak_estimate : &thread->exit_estimate;
    return measured_bytes(is_peak ? thread->peak_bytes : thread->exit_bytes, estimate);
}

int64_t thread_value(const struct profile_thread *thread, enum measure by) {
    switch (by) {
    case MEASURE_PEAK:
        return thread->peak_bytes;
    case MEASURE_EXIT:
        return thread->exit_bytes;
    case MEASURE_ALLOCATED:
        return (int64_t)thread->allocated_bytes;
    default:
        return (int64_t)thread->allocations;
    }
}

// Threads know neither numbers of blocks nor what they held at a snapshot: their calls are the
// nearest.
static enum measure known_to_threads(enum measure by) {
    bool is_known = by == MEASURE_PEAK || by == MEASURE_EXIT || by == MEASURE_ALLOCATED;
    return is_known ? by : MEASURE_CALLS;
}

enum thread_column {
    THREAD_VALUE,
    THREAD_ALLOCATED,
    THREAD_CALLS,
    THREAD_EXIT,
    THREAD_NAME,
    THREAD_TID,
    THREAD_FOLDED,
    THREAD_THREADS,
    THREAD_START,
    THREAD_END,
    THREAD_OWNER,  // parts of a row: whose blocks were freed by whom
    THREAD_FREER,
    THREAD_FREER_TID,
    THREAD_FREED,
    THREAD_FREES,
    THREAD_COLUMNS
};

struct thread_table {
    struct thread_row *rows;
    const struct profile *profile;
    enum measure by;
    size_t at;
    size_t member;  // of an account, the thread to be looked at next; 0: no account is told
    char name[THREAD_TEXT_BYTES], freer[SLOT_NAME_BYTES];
    struct freed_pairs freed;
    struct answer_column columns[THREAD_COLUMNS];
};

static void set_measure(struct answer_row *row, const struct profile_thread *thread,
                        enum measure by) {
    if (by == MEASURE_PEAK || by == MEASURE_EXIT)
        answer_set_measured(row, THREAD_VALUE, thread_estimate(thread, by == MEASURE_PEAK));
    else
        answer_set(row, THREAD_VALUE, thread_value(thread, by));
}

// Programs get the calls of each thread that shares an account; what it holds is not known.
static bool tell_member(struct thread_table *table, uint32_t account, struct answer_row *row) {
    for (; table->member < table->profile->thread_count; table->member++) {
        const struct profile_thread *thread = &table->profile->threads[table->member];
        if (!thread->is_shared || thread->account != account) continue;
        table->member++;
        row->level = 1;
        row->use = ANSWER_FOR_PROGRAMS;
        answer_set_unknown(row, THREAD_VALUE);
        answer_set_unknown(row, THREAD_EXIT);
        answer_set(row, THREAD_ALLOCATED, (int64_t)thread->allocated_bytes);
        answer_set(row, THREAD_CALLS, (int64_t)thread->allocations);
        snprintf(table->name, sizeof table->name, "%.*s", (int)sizeof thread->name, thread->name);
        answer_set_text(row, THREAD_NAME, table->name);
        answer_set(row, THREAD_TID, thread->tid);
        answer_set(row, THREAD_START, (int64_t)thread->start_ns);
        if (thread->end_ns) answer_set(row, THREAD_END, (int64_t)thread->end_ns);
        return true;
    }
    table->member = 0;
    return false;
}

// Programs get who freed the blocks of threads, by slot, where others did.
static bool tell_freed(struct thread_table *table, uint32_t slot, struct answer_row *row) {
    const struct shape_freed *pair = freed_pairs_next(&table->freed, slot);
    if (!pair) return false;
    row->level = 1;
    row->use = ANSWER_FOR_PROGRAMS;
    slot_name(&table->freed.names, pair->owner, table->name, SLOT_NAME_BYTES);
    slot_name(&table->freed.names, pair->freer, table->freer, sizeof table->freer);
    answer_set_text(row, THREAD_OWNER, table->name);
    answer_set_text(row, THREAD_FREER, table->freer);
    const uint32_t tid = slot_only_thread(&table->freed.names, pair->freer);
    if (tid) answer_set(row, THREAD_FREER_TID, tid);
    answer_set_measured(row, THREAD_FREED, measured_bytes((int64_t)pair->bytes, &pair->estimate));
    answer_set(row, THREAD_FREES, (int64_t)pair->frees);
    return true;
}

static bool next_part(struct thread_table *table, struct answer_row *row) {
    const struct thread_row *last = &table->rows[table->at - 1];
    const bool has_members = last->sharing_count > 1 && table->member != SIZE_MAX;
    if (has_members && tell_member(table, last->sums.account, row)) return true;
    table->member = SIZE_MAX;
    return tell_freed(table, last->sums.slot, row);
}

static bool next_thread(struct answer *answer, struct answer_row *out) {
    struct thread_table *table = answer->state;
    if (answer->has_levels && table->at && next_part(table, out)) return true;
    if (table->at == answer->shown) return false;
    const struct thread_row *row = &table->rows[table->at++];
    const struct profile_thread *thread = &row->sums;
    bool is_one = row->sharing_count < 2;
    table->member = 0;
    thread_row_text(row, table->name, sizeof table->name);
    set_measure(out, thread, table->by);
    answer_set(out, THREAD_ALLOCATED, (int64_t)thread->allocated_bytes);
    answer_set(out, THREAD_CALLS, (int64_t)thread->allocations);
    answer_set_measured(out, THREAD_EXIT, thread_estimate(thread, false));
    answer_set_text(out, THREAD_NAME, table->name);
    if (thread->tid && is_one) answer_set(out, THREAD_TID, thread->tid);
    if (thread->folded_count && is_one) answer_set(out, THREAD_FOLDED, thread->folded_count);
    answer_set(out, THREAD_THREADS, is_one ? 1 + thread->folded_count : row->sharing_count);
    if (is_one && !thread->folded_count) {
        answer_set(out, THREAD_START, (int64_t)thread->start_ns);
        if (thread->end_ns) answer_set(out, THREAD_END, (int64_t)thread->end_ns);
    }
    return true;
}

static int compare_threads(const void *a, const void *b, void *context) {
    const struct thread_row *first = a, *second = b;
    const enum measure *by = context;
    int64_t x = thread_value(&first->sums, *by), y = thread_value(&second->sums, *by);
    if (x != y) return x < y ? 1 : -1;
    return (first->number > second->number) - (first->number < second->number);
}

// Counts what the rows say of shared accounts. False: there are none.
static bool claim_of_rows(struct claim *claim, const struct thread_row *rows, size_t count) {
    int64_t accounts = 0, threads = 0;
    *claim = (struct claim){.key = CLAIM_ACCOUNTS};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].sharing_count < 2) continue;
        accounts++;
        threads += (int64_t)rows[i].sharing_count;
    }
    claim_set(claim, "threads", threads);
    claim_set(claim, "accounts", accounts);
    return accounts > 0;
}

bool claim_of_accounts(struct claim *claim, const struct profile *profile) {
    size_t count = 0;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    bool has_any = rows && threads_rows(profile, rows, &count) && claim_of_rows(claim, rows, count);
    free(rows);
    return has_any;
}

static void say_legend(struct answer *answer, const struct thread_row *rows) {
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    if (answer->profile->sampling.is_on)
        answer_note(answer, "allocated and calls are counted; the rest are estimates from samples");
    if (!claim_of_rows(&claim, rows, answer->count)) return;
    claim_sentence(&claim, false, sentence);
    answer_note(answer, "%s;", sentence);
    answer_note(answer, "--json has the calls of each");
}

static void close_threads(void *state) {
    struct thread_table *table = state;
    freed_pairs_free(&table->freed);
    free(table->rows);
    free(table);
}

// The first one has a share and a size.
static void set_thread_columns(struct thread_table *table, const struct view_options *view) {
    const size_t value = value_columns(view), size = view->is_plain_number ? value + 1 : value - 1;
    const char *snapshot = measure_about(table->by)->snapshot;
    bool is_held = table->by == MEASURE_PEAK || table->by == MEASURE_EXIT;
    const struct answer_column columns[THREAD_COLUMNS] = {
        [THREAD_VALUE] = ANSWER_FIGURES(
            "value", snapshot, measure_about(table->by)->is_bytes ? ANSWER_BYTES : ANSWER_COUNT,
            value, .has_share = true, .has_dash = true, .is_estimate = is_held,
            .interval_name = table->by == MEASURE_PEAK ? snapshot : NULL),
        [THREAD_ALLOCATED] = ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES, size),
        [THREAD_CALLS] = ANSWER_FIGURES("allocations", "calls", ANSWER_COUNT, 12),
        [THREAD_EXIT] = ANSWER_FIGURES("at_exit_bytes", "at the end", ANSWER_BYTES, size,
                                       .is_estimate = true, .interval_name = "at the end"),
        [THREAD_NAME] = ANSWER_NAMES("name", ANSWER_TAIL),
        [THREAD_TID] = ANSWER_TAILS("tid", " ", NULL, .unit = ANSWER_NUMBER, .style = STYLE_DIM),
        [THREAD_FOLDED] = ANSWER_TAILS(NULL, " and ", " more", .unit = ANSWER_COUNT,
                                       .style = STYLE_DIM, .head = "further"),
        [THREAD_THREADS] = ANSWER_DATA("threads", ANSWER_COUNT),
        [THREAD_START] = ANSWER_DATA("start_ns", ANSWER_TIME),
        [THREAD_END] = ANSWER_DATA("end_ns", ANSWER_TIME),
        [THREAD_OWNER] = ANSWER_DATA("allocated_by", ANSWER_TEXT),
        [THREAD_FREER] = ANSWER_DATA("freed_by_thread", ANSWER_TEXT),
        [THREAD_FREER_TID] = ANSWER_DATA("freed_by_tid", ANSWER_NUMBER),
        [THREAD_FREED] = ANSWER_DATA("freed_there_bytes", ANSWER_BYTES, .is_estimate = true),
        [THREAD_FREES] = ANSWER_DATA("frees_there", ANSWER_COUNT)};
    memcpy(table->columns, columns, sizeof columns);
}

static size_t count_threads_shown(const struct answer *answer, const struct thread_table *table) {
    const struct view_options *view = answer->options;
    size_t most = answer_cut(view->top, answer->count), shown = 0;
    int64_t threshold = view_threshold(view, answer->whole);
    if (threshold <= 1) return most;
    while (shown < most && thread_value(&table->rows[shown].sums, table->by) >= threshold) shown++;
    return shown;
}

// Adds who freed whose blocks, below the threads: a table, or what is to be said in its place.
static bool threads_to_screen(struct answer *answer, size_t columns, struct error *error) {
    struct answer *table = answer_add_table(&answer->below);
    if (!table) return error_set(error, "no memory for the matrix of threads");
    if (!freed_by_table(table, answer->profile, answer->options, columns, error)) return false;
    const bool is_note = table->note_count == 1 && table->notes[0].style == STYLE_DIM;
    if (*table->title || (table->note_count && !is_note)) return true;
    if (is_note) answer_show(answer, "%s", table->notes[0].text);
    answer_close(table);
    free(table);
    answer->below = NULL;
    return true;
}

bool threads_answer(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, bool is_grouped, struct error *error) {
    struct thread_table *table = calloc(1, sizeof *table);
    size_t count = 0;
    if (table) table->rows = calloc(profile->thread_count + 1, sizeof *table->rows);
    if (!table || !table->rows || !freed_pairs_make(&table->freed, profile) ||
        !(is_grouped ? threads_group : threads_rows)(profile, table->rows, &count)) {
        if (table) close_threads(table);
        return error_set(error, "no memory for the list of threads");
    }
    table->by = known_to_threads(view->by);
    table->profile = profile;
    for (size_t i = 0; i < count; i++) table->rows[i].number = (uint32_t)i;
    qsort_r(table->rows, count, sizeof *table->rows, compare_threads, &table->by);
    set_thread_columns(table, view);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(table->by),
                              .columns = table->columns,
                              .column_count = THREAD_COLUMNS,
                              .gap = 1,
                              .has_heads_always = true,
                              .whole = measure_total(table->by, profile).value,
                              .count = count,
                              .next_row = next_thread,
                              .to_screen = threads_to_screen,
                              .close = close_threads,
                              .state = table};
    answer->has_levels = !is_grouped;
    answer->shown = count_threads_shown(answer, table);
    size_t all = is_grouped ? count : profile->thread_count;
    say_title(answer, table->by, all, units_noun((int64_t)all, "thread", "threads"));
    say_legend(answer, table->rows);
    return true;
}
