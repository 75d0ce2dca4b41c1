// SPDX-License-Identifier: Apache-2.0
#include "tool/render/freed_by.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/model/shape.h"
#include "tool/model/timeline.h"
#include "tool/render/freed_pairs.h"
#include "tool/render/interval.h"
#include "tool/render/site.h"
#include "tool/render/stacks.h"

// The most that a screen has room for; what is beyond is one row and one column, "others".
enum {
    SCREEN_NAMES = 8,
    NAMES_MAX = 32,
    NAME_BYTES = SLOT_NAME_BYTES,
    VALUE_COLUMNS = 11,
    LABEL_COLUMNS = 20,
    LABEL_SPARE = 2
};

#define OTHER_THREADS "other threads of that name"

struct matrix {
    struct slot_names slots;
    char names[NAMES_MAX][NAME_BYTES];
    size_t count;
    size_t most;      // names that have a row of their own
    bool is_by_stem;  // "w-1" and "w-2" are "w-*"
    bool is_stem[NAMES_MAX];
    bool has_shared;  // a slot that threads of several names had, one after the other
    struct measured freed[NAMES_MAX][NAMES_MAX];  // [allocated by][freed by]
    struct measured across[NAMES_MAX];            // between threads of one name
};

// Bytes of a name without a number at its end; all of a name that is nothing else.
static size_t stem_bytes(const char *name) {
    size_t bytes = strlen(name);
    while (bytes && name[bytes - 1] >= '0' && name[bytes - 1] <= '9') bytes--;
    return bytes ? bytes : strlen(name);
}

static bool is_alike(const struct matrix *matrix, size_t index, const char *name) {
    const char *known = matrix->names[index];
    size_t bytes = stem_bytes(name);
    if (!matrix->is_by_stem) return !strcmp(known, name);
    size_t known_bytes = matrix->is_stem[index] ? strlen(known) - 1 : stem_bytes(known);
    return bytes == known_bytes && !strncmp(known, name, bytes);
}

// Takes a second name of a stem for both.
static void join_names(struct matrix *matrix, size_t index, const char *name) {
    size_t bytes = stem_bytes(name);
    if (matrix->is_stem[index] || !strcmp(matrix->names[index], name) || bytes + 2 > NAME_BYTES)
        return;
    matrix->is_stem[index] = true;
    memcpy(matrix->names[index] + bytes, "*", 2);
}

static size_t index_of(struct matrix *matrix, const char *name) {
    for (size_t i = 0; i < matrix->count; i++) {
        if (!is_alike(matrix, i, name)) continue;
        join_names(matrix, i, name);
        return i;
    }
    if (matrix->count == matrix->most) return matrix->most - 1;
    const char *stored = matrix->count + 1 == matrix->most ? "others" : name;
    snprintf(matrix->names[matrix->count], NAME_BYTES, "%s", stored);
    return matrix->count++;
}

static void matrix_free(struct matrix *matrix) {
    if (matrix) slot_names_free(&matrix->slots);
    free(matrix);
}

static bool fill(struct matrix *matrix, const struct profile *profile) {
    size_t count;
    const bool is_made = slot_names_make(&matrix->slots, profile);
    struct shape_freed *pairs = is_made ? shape_freed_by(profile, &count) : NULL;
    for (size_t i = 0; pairs && i < count; i++) {
        char owner[NAME_BYTES], freer[NAME_BYTES];
        size_t owners = slot_name(&matrix->slots, pairs[i].owner, owner, sizeof owner);
        size_t freers = slot_name(&matrix->slots, pairs[i].freer, freer, sizeof freer);
        matrix->has_shared |= owners > 1 || freers > 1;
        size_t row = index_of(matrix, owner), column = index_of(matrix, freer);
        struct measured freed = measured_bytes((int64_t)pairs[i].bytes, &pairs[i].estimate);
        freed.blocks = (int64_t)pairs[i].frees;
        measured_add(&matrix->freed[row][column], freed);
        if (row == column && pairs[i].owner != pairs[i].freer)
            measured_add(&matrix->across[row], freed);
    }
    free(pairs);
    return pairs != NULL;
}

static bool has_others(const struct matrix *matrix) {
    for (size_t row = 0; row < matrix->count; row++)
        for (size_t column = 0; column < matrix->count; column++)
            if (row != column && matrix->freed[row][column].value) return true;
    return false;
}

static struct measured sum_of_row(const struct matrix *matrix, size_t row, size_t from) {
    struct measured sum = {0};
    for (size_t i = from; i < matrix->count; i++) measured_add(&sum, matrix->freed[row][i]);
    return sum;
}

// The last column stands for what has no room.
static struct measured cell_of(const struct matrix *matrix, size_t row, size_t column,
                               size_t columns) {
    bool is_last = column + 1 == columns;
    return is_last ? sum_of_row(matrix, row, column) : matrix->freed[row][column];
}

// "± 1.2 MiB" and "n=62" below a value of samples.
static struct unit_text note_of(struct measured freed, bool is_count, bool is_plain_number) {
    struct unit_text text = {""};
    if (!freed.value) return text;
    if (is_count)
        snprintf(text.text, sizeof text.text, " n=%s", units_count(measured_samples(freed)).text);
    else if (measured_interval(freed))
        text = interval_amount(freed, true, is_plain_number);
    else
        snprintf(text.text, sizeof text.text, " exact");
    return text;
}

// A row is that of a name, and of samples two lines of notes below it.
enum line { LINE_BYTES, LINE_INTERVALS, LINE_SAMPLES, LINES };

struct matrix_table {
    struct matrix matrix;
    size_t shown;  // columns of names
    size_t row;
    enum line line;
    bool is_sampled, is_plain_number;
    struct unit_text texts[SCREEN_NAMES];
    char heads[SCREEN_NAMES][NAME_BYTES];
    struct answer_column columns[SCREEN_NAMES + 1];
};

static void set_cell(struct matrix_table *table, size_t column, struct answer_row *row) {
    const struct measured freed = cell_of(&table->matrix, table->row, column, table->shown);
    if (table->line == LINE_BYTES && measured_shown(freed)) {
        answer_set(row, column + 1, measured_shown(freed));
        return;
    }
    if (table->line == LINE_BYTES) {
        answer_set_text(row, column + 1, "-");
        return;
    }
    table->texts[column] = note_of(freed, table->line == LINE_SAMPLES, table->is_plain_number);
    answer_set_text(row, column + 1,
                    table->texts[column].text + strspn(table->texts[column].text, " "));
    row->cells[column + 1].style = measured_is_unreliable(freed) ? STYLE_WARNING : STYLE_DIM;
}

static bool next_row(struct answer *answer, struct answer_row *row) {
    struct matrix_table *table = answer->state;
    const struct matrix *matrix = &table->matrix;
    if (table->line == LINE_BYTES)
        while (table->row < matrix->count && !sum_of_row(matrix, table->row, 0).value) table->row++;
    if (table->row == matrix->count) return false;
    if (table->line == LINE_BYTES) answer_set_text(row, 0, matrix->names[table->row]);
    for (size_t i = 0; i < table->shown; i++) set_cell(table, i, row);
    table->line = table->is_sampled ? (table->line + 1) % LINES : LINE_BYTES;
    if (table->line == LINE_BYTES) table->row++;
    return true;
}

static void set_columns(struct matrix_table *table, size_t screen_columns) {
    const struct matrix *matrix = &table->matrix;
    const size_t room = (screen_columns - LABEL_COLUMNS) / VALUE_COLUMNS;
    table->shown = matrix->count < room ? matrix->count : room;
    table->columns[0] = (struct answer_column)ANSWER_FIGURES(
        NULL, NULL, ANSWER_TEXT, LABEL_COLUMNS - LABEL_SPARE, .style = STYLE_NAME, .is_left = true);
    for (size_t i = 0; i < table->shown; i++) {
        const bool is_rest = i + 1 == table->shown && table->shown < matrix->count;
        snprintf(table->heads[i], NAME_BYTES, "%s", is_rest ? "others" : matrix->names[i]);
        text_cut(table->heads[i], VALUE_COLUMNS - 1);
        table->columns[i + 1] = (struct answer_column)ANSWER_FIGURES(
            NULL, table->heads[i], ANSWER_BYTES, VALUE_COLUMNS - 1);
    }
}

static void set_matrix(struct answer *answer, struct matrix_table *table, size_t columns) {
    set_columns(table, columns);
    answer->columns = table->columns;
    answer->column_count = table->shown + 1;
    answer->indent = LABEL_SPARE;
    answer->gap = 1;
    answer->has_heads_always = true;
    answer->next_row = next_row;
    snprintf(answer->title, sizeof answer->title, "freed by");
    snprintf(answer->title_rest, sizeof answer->title_rest,
             "; rows: allocating thread, columns: freeing thread");
    if (table->is_sampled)
        answer_show(answer,
                    "estimates with their 95 %% intervals from n samples each; fewer than %d "
                    "are unreliable",
                    ESTIMATE_FEW_SAMPLES);
}

static bool no_row(struct answer *answer, struct answer_row *row) {
    (void)answer;
    (void)row;
    return false;
}

// Says what threads of one name freed of each other's blocks, where nobody else did.
static void say_across(struct answer *answer, const struct matrix *matrix) {
    answer->next_row = no_row;
    for (size_t i = 0; i < matrix->count; i++)
        if (matrix->across[i].value)
            answer_note_plain(
                answer, "%s%s of what %s allocates is freed by %s", answer->note_count ? "\n" : "",
                units_percent(matrix->across[i].value, sum_of_row(matrix, i, 0).value).text,
                matrix->names[i], OTHER_THREADS);
}

static void close_matrix(void *state) {
    struct matrix_table *table = state;
    slot_names_free(&table->matrix.slots);
    free(table);
}

bool freed_by_table(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, size_t columns, struct error *error) {
    struct matrix_table *table = calloc(1, sizeof *table);
    *answer = (struct answer){.profile = profile, .options = view, .close = close_matrix};
    answer->state = table;
    if (table) table->matrix.most = SCREEN_NAMES;
    if (!table || !fill(&table->matrix, profile)) {
        if (!table) answer->close = NULL;
        return error_set(error, "no memory for the matrix of threads");
    }
    table->is_sampled = profile->sampling.is_on != 0;
    table->is_plain_number = view->is_plain_number;
    if (has_others(&table->matrix))
        set_matrix(answer, table, columns);
    else
        say_across(answer, &table->matrix);
    if (table->matrix.has_shared)
        answer_show(answer, "a/b: threads that followed each other share an account; which of them "
                            "freed whose blocks is not known");
    return true;
}

// The highest total in a part of the time.
static uint64_t high_between(const struct profile *profile, uint64_t from_ns, uint64_t to_ns) {
    struct timeline timeline;
    struct timeline_span span;
    uint64_t high = 0;
    if (!recording_count(profile->recording, CAIRN_SECTION_POINTS))
        return (uint64_t)profile->peak.bytes;
    timeline_start(&timeline, profile->recording);
    while (timeline_next(&timeline, &span))
        if (span.end_ns > from_ns && span.start_ns <= to_ns && span.high_bytes > high)
            high = span.high_bytes;
    return high;
}

// What threads of a row allocated and those of a column freed; of the same one: other threads.
static struct measured flow_between(const struct matrix *matrix, size_t row, size_t column) {
    return row == column ? matrix->across[row] : matrix->freed[row][column];
}

// Time at which the last thread of a row ended; UINT64_MAX: one of them lived to the end, as far as
// is known.
static uint64_t end_of(const struct profile *profile, const struct matrix *matrix, size_t row) {
    uint64_t end_ns = 0;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        char slot[NAME_BYTES];
        slot_name(&matrix->slots, thread->slot, slot, sizeof slot);
        if (!is_alike(matrix, row, slot)) continue;
        if (!thread->end_ns) return UINT64_MAX;
        if (thread->end_ns > end_ns) end_ns = thread->end_ns;
    }
    return end_ns;
}

static bool has_main_thread(const struct profile *profile, const struct matrix *matrix,
                            size_t row) {
    const struct cairn_header *header = &profile->recording->header;
    for (size_t i = 0; i < profile->thread_count; i++) {
        char slot[NAME_BYTES];
        slot_name(&matrix->slots, profile->threads[i].slot, slot, sizeof slot);
        if (profile->threads[i].tid == header->pid && is_alike(matrix, row, slot)) return true;
    }
    return false;
}

// The most that the main thread can have freed when the threads that allocated it had ended, or as
// the program ended: destructors hand nothing over.
static uint64_t late_bytes(const struct profile *profile, const struct matrix *matrix, size_t row,
                           size_t column) {
    const uint64_t last_part = 10, end_ns = profile->recording->header.end_ns;
    const uint64_t tick_ns = 10000000;  // by so much the clock of threads and of notes is late
    const uint64_t last_ns = end_ns / last_part + 2 * tick_ns;
    uint64_t owner_end_ns = end_of(profile, matrix, row), high = 0;
    if (!profile_has_ended(profile) || !has_main_thread(profile, matrix, column)) return 0;
    if (owner_end_ns != UINT64_MAX)
        high = high_between(profile, owner_end_ns, owner_end_ns + tick_ns);
    else
        high = high_between(profile, end_ns > last_ns ? end_ns - last_ns : 0, end_ns);
    uint64_t freed = (uint64_t)flow_between(matrix, row, column).value;
    return high < freed ? high : freed;
}

static struct freed_by_flow flow_of(const struct profile *profile, const struct matrix *matrix,
                                    size_t row, size_t column) {
    struct measured freed = flow_between(matrix, row, column);
    struct freed_by_flow flow = {.of_bytes = (uint64_t)sum_of_row(matrix, row, 0).value,
                                 .freed = freed};
    snprintf(flow.from, sizeof flow.from, "%s", matrix->names[row]);
    snprintf(flow.to, sizeof flow.to, "%s", row == column ? OTHER_THREADS : matrix->names[column]);
    flow.late_bytes = late_bytes(profile, matrix, row, column);
    flow.bytes = (uint64_t)freed.value - flow.late_bytes;
    // of a damaged recording there may be less than none
    double part = (double)freed.blocks * (double)flow.bytes / (double)freed.value;
    flow.blocks = part > 0 ? (uint64_t)part : 0;
    return flow;
}

bool freed_by_largest(const struct profile *profile, struct freed_by_flow *flow) {
    struct matrix *matrix = calloc(1, sizeof *matrix);
    *flow = (struct freed_by_flow){0};
    if (matrix) *matrix = (struct matrix){.most = NAMES_MAX, .is_by_stem = true};
    bool is_filled = matrix && fill(matrix, profile);
    for (size_t row = 0; is_filled && row < matrix->count; row++) {
        for (size_t i = 0; i < matrix->count; i++) {
            if (flow_between(matrix, row, i).value <= (int64_t)flow->bytes) continue;
            struct freed_by_flow other = flow_of(profile, matrix, row, i);
            if (other.bytes > flow->bytes) *flow = other;
        }
    }
    matrix_free(matrix);
    return flow->bytes > 0;
}

enum {
    FREERS_SHOWN = 5,      // of a stack; all where it is the only one
    FIGURES_COLUMNS = 46,  // of a line, with its indent
};

bool free_stacks_has_any(const struct profile *profile) {
    return profile->recording->header.has_free_stacks || profile->freed_at.count;
}

bool free_stacks_are_known(const struct profile *profile, struct error *error) {
    if (profile_is_sum(profile))
        return error_set(error, "who freed is known of each process alone: -p PID or NAME");
    return free_stacks_has_any(profile) ||
           error_set(error, "who freed was not recorded: cairn run --free-stacks");
}

// "  75 %   36.6 KiB in 750 blocks" of what the stack allocated.
static void print_figures(const struct terminal *terminal, const struct stack *stack, int64_t bytes,
                          int64_t blocks, const struct view_options *view) {
    const char *noun = blocks == 1 ? "block" : "blocks";
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_STRONG, "%6s",
                   units_percent(bytes, (int64_t)stack->allocated_bytes).text);
    fprintf(terminal->out, " %9s in %8s %s", units_size_as(bytes, view->is_plain_number).text,
            units_count(blocks).text, noun);
}

static void print_gap(const struct terminal *terminal, int64_t blocks) {
    terminal_indent(terminal, blocks == 1 ? 2 : 1);
}

static void print_rest(const struct terminal *terminal, const struct stack *stack, int64_t bytes,
                       int64_t blocks, const struct view_options *view, const char *what) {
    if (blocks <= 0) return;
    print_figures(terminal, stack, bytes, blocks, view);
    print_gap(terminal, blocks);
    terminal_print(terminal, STYLE_DIM, "%s\n", what);
}

// Places that freed blocks of one stack, each for all of its stacks.
static bool find_sites(const struct free_stacks *stacks, const struct profile *profile,
                       const struct shape_free_stack *own, size_t count,
                       const struct view_options *view, struct site_list *sites) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = true;
    for (size_t i = 0; i < count && is_ok; i++) {
        struct measured measured = {.value = (int64_t)own[i].bytes,
                                    .blocks = (int64_t)own[i].frees};
        is_ok = site_list_add(sites, profile, stacks->names, own[i].node, measured, &frames);
    }
    frame_list_free(&frames);
    site_list_sort(sites, sites->sites.count);
    return is_ok;
}

static bool print_whole(const struct terminal *terminal, const struct free_stacks *stacks,
                        const struct profile *profile, const struct site *site,
                        const struct view_options *view) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = frame_list_fill(&frames, profile, stacks->names, site->node, 0);
    if (site->stack_count > 1)
        terminal_print(terminal, STYLE_DIM, " from %s stacks, one of them:",
                       units_count((int64_t)site->stack_count).text);
    fputc('\n', terminal->out);
    if (is_ok) stacks_print_frames(terminal, &frames, 0, view->depth);
    frame_list_free(&frames);
    return is_ok;
}

// The places, largest first; what is beyond the list is a line.
static struct measured print_sites(const struct terminal *terminal, struct free_stacks *stacks,
                                   const struct profile *profile, const struct stack *stack,
                                   const struct view_options *view, const struct site_list *sites) {
    struct measured sum = {0}, others = {0};
    size_t shown =
        stacks->is_one || sites->sites.count < FREERS_SHOWN ? sites->sites.count : FREERS_SHOWN;
    for (size_t i = 0; i < sites->sites.count; i++) {
        const struct site *site = &sites->sites.items[i];
        measured_add(&sum, site->measured);
        if (i >= shown) {
            measured_add(&others, site->measured);
            continue;
        }
        print_figures(terminal, stack, site->measured.value, site->measured.blocks, view);
        if (!stacks->is_one) {
            print_gap(terminal, site->measured.blocks);
            site_print(terminal, site, FIGURES_COLUMNS);
        } else if (!print_whole(terminal, stacks, profile, site, view)) {
            stacks->has_trouble = true;
        }
    }
    print_rest(terminal, stack, others.value, others.blocks, view,
               "at other call sites (--top 1: all)");
    return sum;
}

void free_stacks_note(const struct terminal *terminal, const struct profile *profile,
                      const struct stack *stack, const struct view_options *view, void *context) {
    struct free_stacks *stacks = context;
    struct site_list sites = {0};
    size_t count;
    const struct shape_free_stack *own =
        shape_free_stacks_of(stacks->list, stacks->count, stack->number, &count);
    if (!find_sites(stacks, profile, own, count, view, &sites)) stacks->has_trouble = true;
    if (sites.sites.count) {
        terminal_indent(terminal, STACKS_NOTE_INDENT);
        terminal_print(terminal, STYLE_STRONG, "freed by\n");
    }
    struct measured sum = print_sites(terminal, stacks, profile, stack, view, &sites);
    print_rest(terminal, stack, (int64_t)stack->freed_bytes - sum.value,
               (int64_t)stack->frees - sum.blocks, view, "where, was not recorded");
    print_rest(terminal, stack, stack->exit_bytes, stack->exit_blocks, view, "never freed");
    site_list_free(&sites);
}
