// SPDX-License-Identifier: Apache-2.0
#include "tool/render/freed_by.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/model/shape.h"
#include "tool/render/interval.h"

// The most that a screen has room for; what is beyond is one row and one column, "others".
enum { NAMES_MAX = 8, NAME_BYTES = 64, VALUE_COLUMNS = 11, LABEL_COLUMNS = 20, LABEL_SPARE = 2 };

struct matrix {
    char names[NAMES_MAX][NAME_BYTES];
    size_t count;
    struct measured freed[NAMES_MAX][NAMES_MAX];  // [allocated by][freed by]
};

// "worker", or of a slot that threads of several names had: "worker/writer".
static void slot_name(const struct profile *profile, uint32_t slot, char *out, size_t size) {
    *out = 0;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        char raw[sizeof thread->name + 1] = "", name[NAME_BYTES];
        if (thread->slot != slot) continue;
        memcpy(raw, thread->name, sizeof thread->name);
        text_escape(name, sizeof name, *raw ? raw : "(no name)");
        if (strstr(out, name)) continue;
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", used ? "/" : "", name);
    }
    if (!*out) snprintf(out, size, slot == CAIRN_SLOT_SHARED ? "(shared)" : "(unknown)");
}

static size_t index_of(struct matrix *matrix, const char *name) {
    for (size_t i = 0; i < matrix->count; i++)
        if (!strcmp(matrix->names[i], name)) return i;
    if (matrix->count == NAMES_MAX) return NAMES_MAX - 1;
    const char *stored = matrix->count + 1 == NAMES_MAX ? "others" : name;
    snprintf(matrix->names[matrix->count], NAME_BYTES, "%s", stored);
    return matrix->count++;
}

static bool fill(struct matrix *matrix, const struct profile *profile) {
    size_t count;
    struct shape_freed *pairs = shape_freed_by(profile, &count);
    for (size_t i = 0; pairs && i < count; i++) {
        char owner[NAME_BYTES], freer[NAME_BYTES];
        slot_name(profile, pairs[i].owner, owner, sizeof owner);
        slot_name(profile, pairs[i].freer, freer, sizeof freer);
        size_t row = index_of(matrix, owner), column = index_of(matrix, freer);
        const struct measured freed = {.value = (int64_t)pairs[i].bytes,
                                       .samples = pairs[i].estimate.samples,
                                       .variance = pairs[i].estimate.bytes_variance};
        measured_add(&matrix->freed[row][column], freed);
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

static void print_name(const struct terminal *terminal, const char *name, size_t columns,
                       bool is_right) {
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s", name);
    text_cut(text, columns);
    size_t pad = columns - text_columns(text);
    if (is_right) terminal_indent(terminal, pad);
    terminal_print(terminal, STYLE_NAME, "%s", text);
    if (!is_right) terminal_indent(terminal, pad);
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
        snprintf(text.text, sizeof text.text, " n=%s", units_count(freed.samples).text);
    else if (measured_interval(freed))
        text = interval_text(freed, true, is_plain_number);
    else
        snprintf(text.text, sizeof text.text, " exact");
    return text;
}

static void print_notes(const struct terminal *terminal, const struct matrix *matrix,
                        const struct view_options *view, size_t row, size_t columns) {
    for (int line = 0; line < 2; line++) {
        terminal_indent(terminal, LABEL_COLUMNS);
        for (size_t i = 0; i < columns; i++) {
            struct measured freed = cell_of(matrix, row, i, columns);
            struct unit_text text = note_of(freed, line, view->is_plain_number);
            size_t used = text_columns(text.text);
            terminal_indent(terminal, VALUE_COLUMNS > used ? VALUE_COLUMNS - used : 0);
            terminal_print(terminal, measured_is_unreliable(freed) ? STYLE_WARNING : STYLE_DIM,
                           "%s", text.text);
        }
        fputc('\n', terminal->out);
    }
}

static void print_rows(const struct terminal *terminal, const struct matrix *matrix,
                       const struct view_options *view, size_t columns, bool is_sampled) {
    for (size_t row = 0; row < matrix->count; row++) {
        if (!sum_of_row(matrix, row, 0).value) continue;
        terminal_indent(terminal, LABEL_SPARE);
        print_name(terminal, matrix->names[row], LABEL_COLUMNS - LABEL_SPARE, false);
        for (size_t i = 0; i < columns; i++) {
            int64_t bytes = cell_of(matrix, row, i, columns).value;
            fprintf(terminal->out, " %*s", VALUE_COLUMNS - 1,
                    bytes ? units_size_as(bytes, view->is_plain_number).text : "-");
        }
        fputc('\n', terminal->out);
        if (is_sampled) print_notes(terminal, matrix, view, row, columns);
    }
}

bool freed_by_print(const struct terminal *terminal, const struct profile *profile,
                    const struct view_options *view, struct error *error) {
    struct matrix *matrix = calloc(1, sizeof *matrix);
    if (!matrix || !fill(matrix, profile)) {
        free(matrix);
        return error_set(error, "no memory for the matrix of threads");
    }
    if (has_others(matrix)) {
        size_t room = (terminal->columns - LABEL_COLUMNS) / VALUE_COLUMNS;
        size_t columns = matrix->count < room ? matrix->count : room;
        terminal_print(terminal, STYLE_STRONG, "\nfreed by");
        terminal_print(terminal, STYLE_DIM, " (across) what was allocated by (down)\n");
        terminal_indent(terminal, LABEL_COLUMNS);
        for (size_t i = 0; i < columns; i++) {
            bool is_rest = i + 1 == columns && columns < matrix->count;
            fputc(' ', terminal->out);
            print_name(terminal, is_rest ? "others" : matrix->names[i], VALUE_COLUMNS - 1, true);
        }
        fputc('\n', terminal->out);
        print_rows(terminal, matrix, view, columns, profile->sampling.is_on != 0);
        if (profile->sampling.is_on)
            terminal_print(
                terminal, STYLE_DIM,
                "estimates with their 95 %% intervals from n samples each; fewer than %d "
                "are unreliable\n",
                ESTIMATE_FEW_SAMPLES);
    }
    free(matrix);
    return true;
}

bool freed_by_largest(const struct profile *profile, struct freed_by_flow *flow) {
    struct matrix *matrix = calloc(1, sizeof *matrix);
    *flow = (struct freed_by_flow){0};
    bool is_filled = matrix && fill(matrix, profile);
    for (size_t row = 0; is_filled && row < matrix->count; row++) {
        struct measured sum = sum_of_row(matrix, row, 0);
        for (size_t i = 0; i < matrix->count; i++) {
            struct measured freed = matrix->freed[row][i];
            if (row == i || freed.value <= (int64_t)flow->bytes) continue;
            *flow = (struct freed_by_flow){
                .bytes = (uint64_t)freed.value, .of_bytes = (uint64_t)sum.value, .freed = freed};
            snprintf(flow->from, sizeof flow->from, "%s", matrix->names[row]);
            snprintf(flow->to, sizeof flow->to, "%s", matrix->names[i]);
        }
    }
    free(matrix);
    return flow->bytes > 0;
}
