// SPDX-License-Identifier: Apache-2.0
#include "tool/model/run_row.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".cairn";

static const char heading[] = RUN_INDEX_MAGIC
    ": file pid ppid parent name start_unix_ns start_clock_ns duration_ns state exit allocations "
    "allocated_bytes frees failed inherited_blocks inherited_bytes peak_bytes peak_ns "
    "at_exit_blocks at_exit_bytes rss_peak_bytes cpu_ns own_ns lost size "
    "sample_rate_bytes peak_interval_bytes peak_samples at_exit_interval_bytes "
    "at_exit_interval_blocks at_exit_samples lost_because\n";

static const char *const states[] = {
    [CAIRN_STATE_NEW] = "new",   [CAIRN_STATE_RUNNING] = "running", [CAIRN_STATE_ENDED] = "ended",
    [CAIRN_STATE_DIED] = "died", [CAIRN_STATE_STOPPED] = "stopped",
};
enum { STATE_COUNT = sizeof states / sizeof *states };
static const char state_replaced[] = "replaced";  // died, since the process became another program
static const char state_left[] = "left";          // ended for cairn, which detached from it

bool run_row_is_file_name(const char *name) {
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && length < RUN_TEXT_MAX && !strchr(name, '/') &&
           !strcmp(name + length - suffix_length, suffix);
}

void run_row_of(const struct recording *recording, struct run_row *row) {
    const struct cairn_header *header = &recording->header;
    *row = (struct run_row){.pid = header->pid,
                            .ppid = header->ppid,
                            .start_unix_ns = header->start_unix_ns,
                            .start_clock_ns = header->start_clock_ns,
                            .duration_ns = header->end_ns,
                            .state = header->state,
                            .stop_reason = header->stop_reason,
                            .has_exit = header->has_exit != 0,
                            .exit_status = header->exit_status,
                            .exit_signal = header->exit_signal,
                            .figures = figures_of(recording),
                            .rss_peak_bytes = header->rss_peak_bytes,
                            .cpu_ns = header->cpu_ns};
    recording_program(header, row->name);
}

size_t run_row_heading(char line[RUN_LINE_MAX]) {
    memcpy(line, heading, sizeof heading);
    return sizeof heading - 1;
}

// A text as one word: "-" if it is empty; blanks, controls, backslashes and a "-" or "#" at its
// start become \xNN.
static char *put_text(char *out, const char *text) {
    static const char digits[] = "0123456789abcdef";
    if (!*text) *out++ = '-';
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        bool is_sign = at == text && (byte == '-' || byte == '#');
        if (byte > ' ' && byte != '\\' && byte != 127 && !is_sign) {
            *out++ = (char)byte;
            continue;
        }
        *out++ = '\\';
        *out++ = 'x';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out++ = '\t';
    return out;
}

static char *put_number(char *out, uint64_t number) {
    return out + sprintf(out, "%" PRIu64 "\t", number);
}

static char *put_signed(char *out, int64_t number) {
    return out + sprintf(out, "%" PRId64 "\t", number);
}

static const char *state_word(const struct run_row *row) {
    if (row->stop_reason == CAIRN_STOP_LEFT) return state_left;
    if (row->state == CAIRN_STATE_DIED && row->stop_reason == CAIRN_STOP_EXEC)
        return state_replaced;
    return row->state < STATE_COUNT ? states[row->state] : "unknown";
}

static char *put_exit(char *out, const struct run_row *row) {
    if (!row->has_exit) return put_text(out, "");
    if (row->exit_signal) return out + sprintf(out, "signal:%" PRId32 "\t", row->exit_signal);
    return out + sprintf(out, "status:%" PRId32 "\t", row->exit_status);
}

static char *put_figures(char *out, const struct figures *figures) {
    out = put_number(out, figures->allocations);
    out = put_number(out, figures->allocated_bytes);
    out = put_number(out, figures->frees);
    out = put_number(out, figures->failed);
    out = put_number(out, figures->inherited_blocks);
    out = put_number(out, figures->inherited_bytes);
    out = put_number(out, figures->peak_bytes);
    out = put_number(out, figures->peak_ns);
    out = put_signed(out, figures->exit_blocks);
    return put_signed(out, figures->exit_bytes);
}

// Intervals as they are shown; the square of one is its variance again.
static char *put_estimates(char *out, const struct figures *figures) {
    const struct estimate *peak = &figures->peak_estimate, *left = &figures->exit_estimate;
    out = put_number(out, figures->rate_bytes);
    out = put_signed(out, estimate_bytes_interval(peak));
    out = put_signed(out, estimate_samples(peak));
    out = put_signed(out, estimate_bytes_interval(left));
    out = put_signed(out, estimate_blocks_interval(left));
    return put_signed(out, estimate_samples(left));
}

size_t run_row_print(const struct run_row *row, char line[RUN_LINE_MAX]) {
    char *out = put_text(line, row->file);
    out = put_number(out, row->pid);
    out = put_number(out, row->ppid);
    out = put_text(out, row->parent);
    out = put_text(out, row->name);
    out = put_number(out, row->start_unix_ns);
    out = put_number(out, row->start_clock_ns);
    out = put_number(out, row->duration_ns);
    out = put_text(out, state_word(row));
    out = put_exit(out, row);
    out = put_figures(out, &row->figures);
    out = put_number(out, row->rss_peak_bytes);
    out = put_number(out, row->cpu_ns);
    out = put_number(out, row->figures.own_ns);
    out = put_number(out, row->figures.lost);
    out = put_text(out, figures_is_small(&row->figures) ? "small" : "large");
    out = put_estimates(out, &row->figures);
    out = put_text(out, row->problem);
    out[-1] = '\n';
    return (size_t)(out - line);
}

// Reads the fields of a line one after the other; once one is wrong all further ones are.
struct fields {
    char *rest;  // NULL: nothing is left, or something was wrong
};

static char *take(struct fields *fields) {
    return fields->rest ? strsep(&fields->rest, "\t") : NULL;
}

static int digit_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// The byte of an escape at `at`; 0 if it is none.
static char escaped_byte(const char *at) {
    if (at[0] != '\\' || at[1] != 'x') return 0;
    int high = digit_value(at[2]);
    int low = high < 0 ? -1 : digit_value(at[3]);
    return low < 0 ? 0 : (char)(high << 4 | low);
}

static bool take_text(struct fields *fields, char out[RUN_TEXT_MAX]) {
    const char *word = take(fields);
    size_t length = 0;
    if (!word || !*word) return false;
    out[0] = 0;
    if (!strcmp(word, "-")) return true;
    while (*word) {
        bool is_escape = *word == '\\';
        char byte = is_escape ? escaped_byte(word) : *word;
        if (!byte || length + 1 >= RUN_TEXT_MAX) return false;
        out[length++] = byte;
        word += is_escape ? 4 : 1;
    }
    out[length] = 0;
    return true;
}

static bool take_number(struct fields *fields, uint64_t most, uint64_t *number) {
    const char *word = take(fields);
    char *end;
    if (!word || !isdigit((unsigned char)*word)) return false;
    errno = 0;
    *number = strtoull(word, &end, 10);
    return !*end && !errno && *number <= most;
}

static bool take_id(struct fields *fields, uint32_t *number) {
    uint64_t value = 0;
    bool is_ok = take_number(fields, UINT32_MAX, &value);
    *number = (uint32_t)value;
    return is_ok;
}

static bool take_u64(struct fields *fields, uint64_t *number) {
    return take_number(fields, UINT64_MAX, number);
}

static bool take_signed(struct fields *fields, int64_t *number) {
    bool is_negative = fields->rest && *fields->rest == '-';
    uint64_t value = 0;
    if (is_negative) fields->rest++;
    bool is_ok = take_number(fields, INT64_MAX, &value);
    *number = is_negative ? -(int64_t)value : (int64_t)value;
    return is_ok;
}

static bool take_state(struct fields *fields, struct run_row *row) {
    char word[RUN_TEXT_MAX];
    if (!take_text(fields, word)) return false;
    row->state = UINT32_MAX;
    for (uint32_t i = 0; i < STATE_COUNT; i++)
        if (!strcmp(word, states[i])) row->state = i;
    if (!strcmp(word, state_replaced)) {
        row->state = CAIRN_STATE_DIED;
        row->stop_reason = CAIRN_STOP_EXEC;
    } else if (!strcmp(word, state_left)) {
        row->state = CAIRN_STATE_ENDED;
        row->stop_reason = CAIRN_STOP_LEFT;
    }
    return true;
}

static bool take_exit(struct fields *fields, struct run_row *row) {
    char word[RUN_TEXT_MAX];
    if (!take_text(fields, word)) return false;
    if (!*word) return true;
    row->has_exit = true;
    return sscanf(word, "status:%" SCNd32, &row->exit_status) == 1 ||
           sscanf(word, "signal:%" SCNd32, &row->exit_signal) == 1;
}

static bool take_figures(struct fields *fields, struct figures *figures) {
    return take_u64(fields, &figures->allocations) && take_u64(fields, &figures->allocated_bytes) &&
           take_u64(fields, &figures->frees) && take_u64(fields, &figures->failed) &&
           take_u64(fields, &figures->inherited_blocks) &&
           take_u64(fields, &figures->inherited_bytes) && take_u64(fields, &figures->peak_bytes) &&
           take_u64(fields, &figures->peak_ns) && take_signed(fields, &figures->exit_blocks) &&
           take_signed(fields, &figures->exit_bytes);
}

// Older indexes end with the size.
static bool take_estimates(struct fields *fields, struct figures *figures) {
    int64_t peak_bytes = 0, exit_bytes = 0, exit_blocks = 0;
    struct estimate *peak = &figures->peak_estimate, *left = &figures->exit_estimate;
    if (!take(fields) || !fields->rest) return true;
    bool is_ok = take_u64(fields, &figures->rate_bytes) && take_signed(fields, &peak_bytes) &&
                 take_signed(fields, &peak->samples) && take_signed(fields, &exit_bytes) &&
                 take_signed(fields, &exit_blocks) && take_signed(fields, &left->samples);
    *peak = estimate_of_interval(peak_bytes, peak->samples);
    *left = estimate_of_interval(exit_bytes, left->samples);
    left->blocks_variance = estimate_variance(exit_blocks);
    figures->is_sampled = figures->rate_bytes != 0;
    return is_ok;
}

// Older indexes end with the estimates.
static bool take_problem(struct fields *fields, struct run_row *row) {
    char text[RUN_TEXT_MAX];
    if (!fields->rest) return true;
    if (!take_text(fields, text)) return false;
    snprintf(row->problem, sizeof row->problem, "%.*s", RUN_PROBLEM_MAX - 1, text);
    return true;
}

bool run_row_parse(char *line, struct run_row *row) {
    struct fields fields = {line};
    *row = (struct run_row){0};
    bool is_ok = take_text(&fields, row->file) && take_id(&fields, &row->pid) &&
                 take_id(&fields, &row->ppid) && take_text(&fields, row->parent) &&
                 take_text(&fields, row->name) && take_u64(&fields, &row->start_unix_ns) &&
                 take_u64(&fields, &row->start_clock_ns) && take_u64(&fields, &row->duration_ns) &&
                 take_state(&fields, row) && take_exit(&fields, row) &&
                 take_figures(&fields, &row->figures) && take_u64(&fields, &row->rss_peak_bytes) &&
                 take_u64(&fields, &row->cpu_ns) && take_u64(&fields, &row->figures.own_ns) &&
                 take_u64(&fields, &row->figures.lost) && take_estimates(&fields, &row->figures) &&
                 take_problem(&fields, row);
    if (!is_ok) return false;
    // whoever made the index, it names nothing outside of its directory
    bool has_file = !*row->file || run_row_is_file_name(row->file);
    return has_file && (!*row->parent || run_row_is_file_name(row->parent));
}
