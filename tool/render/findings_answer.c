// SPDX-License-Identifier: Apache-2.0
// Findings as rows: what each says, how sure that is, what a fix saves, and where to read how.
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/render/findings.h"
#include "tool/render/stacks.h"

enum { FIGURE_COLUMNS = 11, RANK_COLUMNS = 4 };

enum finding_column {
    FINDING_SAVED_BYTES,
    FINDING_SAVED_CALLS,
    FINDING_SENTENCE,
    FINDING_GAIN,
    FINDING_KEY,
    FINDING_SURE,
    FINDING_SAVED_FAULTS,
    FINDING_VIEW,
    FINDING_PAGE,
    FINDING_COLUMNS
};

static const struct answer_column finding_columns[FINDING_COLUMNS] = {
    [FINDING_SAVED_BYTES] =
        ANSWER_FIGURES("saved_bytes", "bytes saved", ANSWER_BYTES, FIGURE_COLUMNS),
    [FINDING_SAVED_CALLS] =
        ANSWER_FIGURES("saved_calls", "calls saved", ANSWER_COUNT, FIGURE_COLUMNS),
    [FINDING_SENTENCE] = ANSWER_TAILS("sentence", "  ", NULL, .head = "finding"),
    [FINDING_GAIN] = ANSWER_TAILS("gain", "; ", NULL, .head = "what a fix saves"),
    [FINDING_KEY] = ANSWER_DATA("key", ANSWER_TEXT),
    [FINDING_SURE] = ANSWER_DATA("sure", ANSWER_TEXT),
    [FINDING_SAVED_FAULTS] = ANSWER_DATA("saved_page_faults", ANSWER_COUNT),
    [FINDING_VIEW] = ANSWER_DATA("view", ANSWER_TEXT),
    [FINDING_PAGE] = ANSWER_DATA("page", ANSWER_TEXT)};

struct finding_list {
    struct findings findings;
    const struct frame_names *names;
    struct frame_list frames;
    size_t at;
    char sentence[FINDING_TEXT_BYTES], gain[FINDING_TEXT_BYTES], sure[CLAIM_SENTENCE_BYTES];
};

// Sets a saving that there is; others are absent, not 0.
static void set_saved(struct answer_row *row, enum finding_column column, uint64_t saved) {
    if (saved) answer_set(row, column, (int64_t)saved);
}

static bool next_finding(struct answer *answer, struct answer_row *row) {
    struct finding_list *list = answer->state;
    const struct view_options *view = answer->options;
    struct claim claim;
    if (list->at == list->findings.count) return false;
    const struct finding *finding = &list->findings.list[list->at++];
    answer->is_failed =
        !finding_claim(finding, answer->profile, list->names, view->has_all_frames, &claim);
    if (finding->stack && !answer->is_screen)
        answer->is_failed |=
            !frame_list_fill(&list->frames, answer->profile, list->names, finding->stack->node, 0);
    if (answer->is_failed) return false;
    claim_sentence(&claim, view->is_plain_number, list->sentence);
    claim_sure(&claim, view->is_plain_number, list->sure);
    finding_gain_text(finding, answer->profile, view->is_plain_number, list->gain);
    set_saved(row, FINDING_SAVED_BYTES, finding->saved_bytes);
    set_saved(row, FINDING_SAVED_CALLS, finding->saved_calls);
    set_saved(row, FINDING_SAVED_FAULTS, finding->saved_faults);
    answer_set_text(row, FINDING_SENTENCE, list->sentence);
    answer_set_text(row, FINDING_GAIN, list->gain);
    answer_set_text(row, FINDING_KEY, claim_row(claim.key)->key);
    answer_set_text(row, FINDING_SURE, list->sure);
    answer_set_text(row, FINDING_VIEW, finding_view(finding->kind));
    answer_set_text(row, FINDING_PAGE, finding_page(finding->kind));
    if (finding->stack && !answer->is_screen) row->frames = &list->frames;
    return true;
}

static void say_line(const struct terminal *terminal, size_t first, char *text) {
    terminal_indent(terminal, first);
    terminal_print_wrapped(terminal, first ? first : RANK_COLUMNS, STACKS_NOTE_INDENT, text);
}

static void say_finding(const struct terminal *terminal, struct answer *answer,
                        enum answer_say where) {
    struct finding_list *list = answer->state;
    const enum finding_kind kind = list->findings.list[list->at - 1].kind;
    char sure[sizeof list->sure + 8], help[FINDING_HELP_BYTES];
    if (where != ANSWER_SAY_FIGURES) return;
    finding_add_view(kind, list->sentence);
    snprintf(sure, sizeof sure, "sure: %s", list->sure);
    say_line(terminal, 0, list->sentence);
    say_line(terminal, STACKS_NOTE_INDENT, list->gain);
    say_line(terminal, STACKS_NOTE_INDENT, sure);
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "how: %s\n", finding_help(kind, help));
}

static void close_findings(void *state) {
    struct finding_list *list = state;
    frame_list_free(&list->frames);
    free(list);
}

bool findings_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    if (profile_is_sum(profile))
        return error_set(error, "findings are of one process: give --process");
    struct finding_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for findings");
    list->names = names;
    list->frames.are_all_shown = true;
    if (!findings_find(&list->findings, profile, error) ||
        !findings_settle(&list->findings, profile, names, error)) {
        close_findings(list);
        return false;
    }
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = finding_columns,
                              .column_count = FINDING_COLUMNS,
                              .gap = 1,
                              .has_frames = true,
                              .shown = list->findings.count,
                              .count = list->findings.count,
                              .are_blocks = true,
                              .say = say_finding,
                              .next_row = next_finding,
                              .close = close_findings,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "%s",
             answer->count ? units_counted((int64_t)answer->count, "finding", "findings").text
                           : "no findings");
    if (answer->count)
        snprintf(answer->title_rest, sizeof answer->title_rest, ", the largest gain first");
    return true;
}
