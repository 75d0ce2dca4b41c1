// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_waste.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/clock.h"
#include "tool/base/units.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/query/look_answer.h"
#include "tool/render/findings.h"
#include "tool/render/findings_find.h"

enum { OFFENDERS = 3 };

// As JSON has them, with the ends of their intervals; rows of a screen have those with a head.
#define FIGURE(word_) .word = (word_), .bounds = {word_ "_low", word_ "_high"}
static const struct {
    const char *word, *bounds[2], *head;
    int width;
} figures[WASTE_FIGURES] = {
    [WASTE_UNTOUCHED] = {FIGURE("untouched_bytes"), .head = "UNTOUCHED", .width = 10},
    [WASTE_ZERO] = {FIGURE("zero_bytes"), .head = "ZERO", .width = 9},
    [WASTE_DUPLICATE] = {FIGURE("duplicate_bytes"), .head = "COPIES", .width = 9},
    [WASTE_TAIL] = {FIGURE("tail_bytes"), .head = "TAIL", .width = 9},
    [WASTE_SLACK] = {FIGURE("slack_bytes"), .head = "SLACK", .width = 9},
    [FIGURE_WASTED] = {FIGURE("wasted_bytes")},
    [FIGURE_HELD] = {FIGURE("bytes")},
    [FIGURE_BLOCKS] = {FIGURE("blocks"), .head = "BLOCKS", .width = 10},
    [FIGURE_SPARSE] = {FIGURE("sparse_bytes"), .head = "SPARSE", .width = 9},
    [FIGURE_STRINGS] = {FIGURE("string_bytes")},
};

bool waste_wish_read(const struct command_args *args, struct waste_wish *wish,
                     struct error *error) {
    enum { SEED_MAX = 1000000 };  // short enough to be typed again
    *wish = (struct waste_wish){.has_limit = !args_has(args, OPTION_NO_COPY_LIMIT),
                                .seed = hash_mix(clock_now_ns(), index_table_seed()) % SEED_MAX};
    return !args_has(args, OPTION_WASTE_SEED) ||
           args_number(args, OPTION_WASTE_SEED, 0, UINT64_MAX, &wish->seed, error);
}

// Rows with something that could be saved; the others are not worth a line.
static size_t count_wasting(const struct waste_sums *sums) {
    size_t count = 0;
    while (count < sums->rows.count && waste_value(&sums->rows.items[count], FIGURE_WASTED) +
                                           waste_value(&sums->rows.items[count], FIGURE_SPARSE))
        count++;
    return count;
}

// --- what is said beside the rows

static struct unit_text share_text(double share) {
    enum { WHOLE = 1000000 };
    return units_percent((int64_t)(share * WHOLE), WHOLE);
}

// "46 %: 43 % to 49 %"; of what is exact, "46 %".
static void whole_share_text(const struct waste_row *row, char *text, size_t size) {
    bool is_sure = row->share.high <= row->share.low;
    snprintf(text, size, "%s%s%s%s%s", share_text(row->share.value).text, is_sure ? "" : ": ",
             is_sure ? "" : share_text(row->share.low).text, is_sure ? "" : " to ",
             is_sure ? "" : share_text(row->share.high).text);
}

// "812 of 16,384 windows of 64 KiB and all 12 large blocks were read, seed 17"
static void part_text(const struct waste_sums *sums, char *text, size_t size) {
    const struct drawn *drawn = sums->drawn;
    char large[64];
    *text = 0;
    if (!sums->windows) return;
    snprintf(
        large, sizeof large, "%s of %s", units_count((int64_t)drawn[STRATUM_LARGE].count).text,
        units_counted((int64_t)drawn[STRATUM_LARGE].of_count, "large block", "large blocks").text);
    snprintf(text, size, "%s of %s of 64 KiB and %s were read, seed %" PRIu64,
             units_count((int64_t)drawn[STRATUM_WINDOWS].count).text,
             units_counted((int64_t)drawn[STRATUM_WINDOWS].of_count, "window", "windows").text,
             large, sums->windows->seed);
}

static void tell_part(const struct waste_sums *sums, struct answer *answer) {
    char part[160];
    if (!sums->windows) return;
    part_text(sums, part, sizeof part);
    answer_show_above(answer, STYLE_DIM,
                      "estimated with intervals of 95 %%: %s (--seed %" PRIu64
                      ": the same again; --no-copy-limit: all of it)",
                      part, sums->windows->seed);
    answer_note_above(answer, STYLE_DIM,
                      "copies are estimated from those among the blocks that were read");
    if (sums->left_out)
        answer_note_above(answer, STYLE_WARNING, "%s changed while they were read and are left out",
                          units_counted((int64_t)sums->left_out, "window", "windows").text);
    if (!sums->subject->is_recorded || !sums->windows->are_by_map)
        answer_note_above(
            answer, STYLE_DIM,
            "what glibc keeps free in caches of threads and fastbins counts as in use");
}

static int64_t copied_of(const struct waste_row *row, bool are_strings) {
    return waste_value(row, are_strings ? (int)FIGURE_STRINGS : (int)WASTE_DUPLICATE);
}

// The stack that most duplicates, or most of the strings among them, are of.
static const struct waste_row *most_copies(const struct waste_sums *sums, bool are_strings) {
    const struct waste_row *most = NULL;
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        if (!most || copied_of(row, are_strings) > copied_of(most, are_strings)) most = row;
    }
    return most;
}

// Says whether it is known what the allocator gave beyond the sizes asked for: a recording has
// these, and the heap its blocks', if it is read.
static bool knows_slack(const struct core_subject *subject) {
    return subject->is_recorded &&
           (subject->header.slot_bytes != sizeof(uint64_t) || core_heap_of(subject)->other.name);
}

static void claim_of_waste(const struct waste_sums *sums, struct claim *claim) {
    const struct waste_row *all = &sums->all;
    char share[64];
    whole_share_text(all, share, sizeof share);
    *claim = (struct claim){.key = CLAIM_OF_NO_USE};
    claim_set(claim, "bytes", waste_value(all, FIGURE_WASTED));
    claim_set(claim, "of_bytes", waste_value(all, FIGURE_HELD));
    claim_set(claim, "blocks", waste_value(all, FIGURE_BLOCKS));
    if (!sums->subject->look.is_core)
        claim_set(claim, "untouched_bytes", waste_value(all, WASTE_UNTOUCHED));
    claim_set(claim, "zero_bytes", waste_value(all, WASTE_ZERO));
    claim_set(claim, "equal_bytes", waste_value(all, WASTE_DUPLICATE));
    claim_set(claim, "tail_bytes", waste_value(all, WASTE_TAIL));
    if (knows_slack(sums->subject)) claim_set(claim, "slack_bytes", waste_value(all, WASTE_SLACK));
    claim_set(claim, "is_estimate", sums->windows != NULL);
    claim_set_text(claim, "share_text", share);
}

// False without memory.
static bool claim_of_copies(const struct waste_sums *sums, bool are_strings, struct claim *claim) {
    const struct waste_copies *copies = are_strings ? &sums->strings : &sums->copies;
    const struct waste_row *most = most_copies(sums, are_strings);
    char label[KIN_LABEL_BYTES];
    *claim = (struct claim){.key = CLAIM_DUPLICATES};
    if (!core_kin_label(sums->subject, &most->kin, label)) return false;
    claim_set(claim, "bytes", copied_of(&sums->all, are_strings));
    claim_set(claim, "copies", (int64_t)copies->count);
    claim_set(claim, "contents", (int64_t)copies->contents);
    claim_set(claim, "are_strings", are_strings);
    claim_set(claim, "is_all", copied_of(most, are_strings) == copied_of(&sums->all, are_strings));
    claim_set(claim, "is_estimate", sums->windows != NULL);
    claim_set_text(claim, "where", label);
    return true;
}

// What a fix saves is said where equal strings are worth a finding; `label` is for its text.
static bool find_strings(const struct waste_sums *sums, char label[KIN_LABEL_BYTES],
                         struct finding *finding) {
    const struct waste_row *most = most_copies(sums, true);
    const struct string_copies copies = {.bytes = (uint64_t)copied_of(&sums->all, true),
                                         .count = sums->strings.count,
                                         .strings = sums->strings.contents,
                                         .whose = label,
                                         .is_estimate = sums->windows != NULL};
    return most && core_kin_label(sums->subject, &most->kin, label) &&
           finding_of_strings(&copies, (uint64_t)waste_value(&sums->all, FIGURE_HELD), finding);
}

// At most so many: of all waste, copies, strings, and what to do about these.
enum { WASTE_CLAIMS = 4 };

static bool tell_copies(const struct waste_sums *sums, struct answer *answer,
                        struct claim claims[WASTE_CLAIMS], size_t *count) {
    char text[CLAIM_SENTENCE_BYTES];
    for (int are_strings = 0; are_strings < 2; are_strings++) {
        const struct waste_copies *copies = are_strings ? &sums->strings : &sums->copies;
        if (!copies->count) continue;
        if (!claim_of_copies(sums, are_strings, &claims[*count])) return false;
        claim_sentence(&claims[(*count)++], answer->options->is_plain_number, text);
        answer_show_above(answer, STYLE_DIM, "%s", text);
    }
    return true;
}

static bool tell_strings(const struct waste_sums *sums, struct answer *answer,
                         struct claim claims[WASTE_CLAIMS], size_t *count) {
    char label[KIN_LABEL_BYTES], text[FINDING_TEXT_BYTES], help[FINDING_HELP_BYTES];
    bool is_plain = answer->options->is_plain_number;
    struct finding finding;
    if (!find_strings(sums, label, &finding)) return true;
    if (!finding_claim(&finding, NULL, NULL, false, &claims[*count])) return false;
    claim_sentence(&claims[(*count)++], is_plain, text);
    answer_show_above(answer, STYLE_PLAIN, "finding: %s", text);
    finding_gain_text(&finding, NULL, is_plain, text);
    answer_show_above(answer, STYLE_DIM, "%s; how: %s", text, finding_help(finding.kind, help));
    answer_fact(answer, "saved_bytes", ANSWER_BYTES, (int64_t)finding.saved_bytes);
    return true;
}

static void tell_limits(const struct waste_sums *sums, struct answer *answer) {
    if (sums->subject->look.is_core)
        answer_note_above(
            answer, STYLE_DIM,
            "a core does not say which pages were there: untouched ones count as zero");
    if (!sums->subject->is_recorded)
        answer_note_above(answer, STYLE_DIM,
                          "not recorded: sizes are the allocator's, so a tail may be its slack");
    else if (!knows_slack(sums->subject))
        answer_note_above(answer, STYLE_DIM,
                          "slack is not known: sizes are those asked for, the allocator's were not "
                          "read");
}

// --- the rows

// The columns that people see first; then those of figures with their bounds, for programs.
enum {
    COLUMN_WASTED,
    COLUMN_INTERVAL,
    COLUMN_SHARE,
    COLUMN_FIGURES,
    COLUMN_NAME = COLUMN_FIGURES + 3 * WASTE_FIGURES,
    COLUMN_KIND,
    COLUMN_SHARE_LOW,
    COLUMN_SHARE_HIGH,
    WASTE_COLUMNS
};
static_assert((int)WASTE_COLUMNS <= (int)ANSWER_COLUMNS_MAX, "a row has room for every column");

struct waste_list {
    const struct waste_sums *sums;
    size_t at;
    struct answer_column columns[WASTE_COLUMNS];
    char label[KIN_LABEL_BYTES];
    char interval[64];
};

// The column of a figure; those of its bounds follow it.
static size_t column_of(int figure) {
    return figure == FIGURE_WASTED ? COLUMN_WASTED : COLUMN_FIGURES + 3 * (size_t)figure;
}

static void make_columns(struct waste_list *list) {
    struct answer_column *columns = list->columns;
    bool is_sure = !list->sums->windows;
    for (int i = 0; i < WASTE_FIGURES; i++) {
        const bool is_shown = figures[i].head, is_none = !figures[i].word;
        struct answer_column *first = &columns[COLUMN_FIGURES + 3 * i];
        first[0] =
            (struct answer_column){.key = figures[i].word,
                                   .head = figures[i].head,
                                   .unit = i == (int)FIGURE_BLOCKS ? ANSWER_COUNT : ANSWER_BYTES,
                                   .width = (size_t)figures[i].width,
                                   .place = is_shown ? ANSWER_FIGURE : ANSWER_NOWHERE,
                                   .is_left_out = is_none || i == (int)FIGURE_WASTED};
        for (int end = 0; end < 2; end++)
            first[1 + end] = (struct answer_column){.key = figures[i].bounds[end],
                                                    .unit = first->unit,
                                                    .is_left_out = is_none || is_sure};
    }
    columns[COLUMN_WASTED] =
        (struct answer_column)ANSWER_FIGURES("wasted_bytes", "WASTED", ANSWER_BYTES, 10);
    columns[COLUMN_INTERVAL] = (struct answer_column)ANSWER_FIGURES(
        NULL, "95 %", ANSWER_TEXT, 24, .style = STYLE_DIM, .is_left_out = is_sure);
    columns[COLUMN_SHARE] = (struct answer_column)ANSWER_FIGURES("share", "SHARE", ANSWER_RATIO, 6);
    columns[COLUMN_NAME] = (struct answer_column)ANSWER_NAMES("name", ANSWER_TAIL, .head = "name");
    columns[COLUMN_KIND] = (struct answer_column)ANSWER_DATA("kind", ANSWER_TEXT);
    columns[COLUMN_SHARE_LOW] =
        (struct answer_column)ANSWER_DATA("share_low", ANSWER_RATIO, .is_left_out = is_sure);
    columns[COLUMN_SHARE_HIGH] =
        (struct answer_column)ANSWER_DATA("share_high", ANSWER_RATIO, .is_left_out = is_sure);
}

static void set_share(struct answer_row *out, size_t column, double share) {
    enum { WHOLE = 1000000 };
    answer_set_ratio(out, column, (int64_t)(share * WHOLE), WHOLE);
}

static void set_interval(struct waste_list *list, const struct waste_row *row,
                         struct answer_row *out) {
    const struct drawn_estimate *estimate = &row->estimates[FIGURE_WASTED];
    bool is_sure = estimate->high <= estimate->low;
    snprintf(list->interval, sizeof list->interval, "%s%s%s",
             is_sure ? "exact" : units_size((int64_t)estimate->low).text, is_sure ? "" : " to ",
             is_sure ? "" : units_size((int64_t)estimate->high).text);
    answer_set_text(out, COLUMN_INTERVAL, list->interval);
}

static void set_figures(const struct waste_row *row, struct answer_row *out) {
    for (int i = 0; i < WASTE_FIGURES; i++) {
        answer_set(out, column_of(i), waste_value(row, i));
        answer_set(out, COLUMN_FIGURES + 3 * (size_t)i + 1, (int64_t)row->estimates[i].low);
        answer_set(out, COLUMN_FIGURES + 3 * (size_t)i + 2, (int64_t)row->estimates[i].high + 1);
    }
    set_share(out, COLUMN_SHARE, row->share.value);
    set_share(out, COLUMN_SHARE_LOW, row->share.low);
    set_share(out, COLUMN_SHARE_HIGH, row->share.high);
}

static bool next_row(struct answer *answer, struct answer_row *out) {
    struct waste_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct waste_row *row = &list->sums->rows.items[list->at++];
    answer->is_failed = !core_kin_label(list->sums->subject, &row->kin, list->label);
    set_figures(row, out);
    set_interval(list, row, out);
    answer_set_text(out, COLUMN_NAME, list->label);
    answer_set_text(out, COLUMN_KIND, core_kin_word(row->kin.kind));
    return !answer->is_failed;
}

// The sums of all rows, with the keys of their columns, and which part of it was read.
static void tell_sums(const struct waste_sums *sums, struct waste_list *list,
                      struct answer *answer) {
    struct answer_row all = {0};
    set_figures(&sums->all, &all);
    for (size_t i = 0; i < WASTE_COLUMNS; i++)
        if (list->columns[i].unit != ANSWER_TEXT && !list->columns[i].is_left_out)
            answer_fact_cell(answer, list->columns[i].key, list->columns[i].unit, &all.cells[i]);
    answer_fact(answer, "copies", ANSWER_COUNT, (int64_t)sums->copies.count);
    answer_fact(answer, "contents", ANSWER_COUNT, (int64_t)sums->copies.contents);
    answer_fact(answer, "string_copies", ANSWER_COUNT, (int64_t)sums->strings.count);
    answer_fact(answer, "strings", ANSWER_COUNT, (int64_t)sums->strings.contents);
    answer_fact(answer, "pages_known", ANSWER_BOOL, !sums->subject->look.is_core);
    answer_fact(answer, "recorded", ANSWER_BOOL, sums->subject->is_recorded);
    answer_fact(answer, "estimated", ANSWER_BOOL, sums->windows != NULL);
    if (!sums->windows) return;
    const struct drawn *drawn = sums->drawn;
    answer_fact(answer, "seed", ANSWER_NUMBER, (int64_t)sums->windows->seed);
    answer_fact(answer, "window_bytes", ANSWER_BYTES, WINDOW_BYTES);
    answer_fact(answer, "windows", ANSWER_COUNT, (int64_t)drawn[STRATUM_WINDOWS].count);
    answer_fact(answer, "of_windows", ANSWER_COUNT, (int64_t)drawn[STRATUM_WINDOWS].of_count);
    answer_fact(answer, "large_blocks", ANSWER_COUNT, (int64_t)drawn[STRATUM_LARGE].count);
    answer_fact(answer, "of_large_blocks", ANSWER_COUNT, (int64_t)drawn[STRATUM_LARGE].of_count);
    answer_fact(answer, "windows_left_out", ANSWER_COUNT, (int64_t)sums->left_out);
}

static bool print_answer(const struct waste_sums *sums, const struct request *request,
                         struct error *error) {
    struct waste_list list = {.sums = sums};
    struct look_answer of;
    struct claim claims[WASTE_CLAIMS];
    size_t count = 1;
    make_columns(&list);
    struct answer answer = {.view = "waste",
                            .options = &request->options,
                            .columns = list.columns,
                            .column_count = WASTE_COLUMNS,
                            .gap = 1,
                            .has_heads_always = true,
                            .tail_head = sums->subject->is_recorded ? "ALLOCATED BY" : "TYPE",
                            .count = sums->rows.count,
                            .next_row = next_row,
                            .state = &list};
    if (!request->form || request->form->is_for_people) answer.count = count_wasting(sums);
    answer.shown = answer_cut(request->options.top, answer.count);
    look_answer_of(&of, &sums->subject->look, &answer);
    tell_sums(sums, &list, &answer);
    tell_part(sums, &answer);
    claim_of_waste(sums, &claims[0]);
    if (!tell_copies(sums, &answer, claims, &count) || !tell_strings(sums, &answer, claims, &count))
        return error_set(error, "out of memory");
    look_answer_claims(&answer, claims, count);
    tell_limits(sums, &answer);
    return look_answer_print(request, &answer, error);
}

static bool resolve(const struct waste_sums *sums, size_t count, struct error *error) {
    if (!sums->subject->is_recorded) return true;
    for (size_t i = 0; i < count; i++) core_kin_want(sums->subject, &sums->rows.items[i].kin);
    return names_resolve(sums->subject->opened.names, error);
}

static bool print(const struct waste_sums *sums, void *context, struct error *error) {
    return resolve(sums, sums->rows.count, error) && print_answer(sums, context, error);
}

bool core_waste_rows(struct core_subject *subject, const struct request *request,
                     struct error *error) {
    struct waste_sums sums;
    bool is_ok = waste_sums_make(subject, &sums, error) && resolve(&sums, sums.rows.count, error) &&
                 print_answer(&sums, request, error);
    waste_sums_free(&sums);
    return is_ok;
}

// --- for budgets

static bool measure(const struct waste_sums *sums, void *context, struct error *error) {
    struct core_waste *waste = context;
    size_t size, count = sums->rows.count < OFFENDERS ? sums->rows.count : OFFENDERS;
    char label[KIN_LABEL_BYTES];
    waste->is_estimate = sums->windows;
    waste->wasted = sums->all.estimates[FIGURE_WASTED];
    waste->bytes = sums->all.estimates[FIGURE_HELD];
    waste->share = sums->all.share;
    part_text(sums, waste->part, sizeof waste->part);
    if (!resolve(sums, count, error)) return false;
    FILE *out = open_memstream(&waste->offenders, &size);
    bool is_ok = out;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        fprintf(out, "%s%s of %s: %s\n", sums->windows ? "about " : "",
                units_size(waste_value(row, FIGURE_WASTED)).text,
                units_size(waste_value(row, FIGURE_HELD)).text, label);
    }
    if (out && fclose(out)) is_ok = false;
    return is_ok || error_set(error, "out of memory");
}

static bool sum_of(const char *word, const struct waste_wish *asked,
                   bool (*use)(const struct waste_sums *sums, void *context, struct error *error),
                   void *context, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max =
                                       asked->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit",
                                   .may_draw = asked->has_limit,
                                   .seed = asked->seed};
    struct core_subject subject;
    struct waste_sums sums;
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok = waste_sums_make(&subject, &sums, error) && use(&sums, context, error);
    if (is_ok)
        core_print_doubts(&subject);
    else
        heap_look_blame(&subject.look, error);
    waste_sums_free(&sums);
    core_subject_close(&subject);
    return is_ok;
}

bool core_waste_report(const char *word, const struct request *request,
                       const struct waste_wish *wish, struct error *error) {
    return sum_of(word, wish, print, (void *)(uintptr_t)request, error);
}

bool core_waste_measure(const char *word, const struct waste_wish *wish, struct core_waste *waste,
                        struct error *error) {
    *waste = (struct core_waste){0};
    return sum_of(word, wish, measure, waste, error);
}
