// SPDX-License-Identifier: Apache-2.0
// What is of no use as rows: of memory that is there as a whole, so that figures are exact.
#include <stdio.h>

#include "tool/base/units.h"
#include "tool/cmds/core_waste.h"
#include "tool/cmds/core_waste_rows.h"

enum waste_column {
    WASTE_BYTES,
    WASTE_FIGURE,
    WASTE_HELD = WASTE_FIGURE + WASTE_KINDS,
    WASTE_BLOCKS,
    WASTE_SPARSE,
    WASTE_STRINGS,
    WASTE_NAME,
    WASTE_KIND,
    WASTE_COLUMNS
};

static const struct answer_column columns[WASTE_COLUMNS] = {
    [WASTE_BYTES] = ANSWER_FIGURES("wasted_bytes", "wasted", ANSWER_BYTES, 0),
    [WASTE_FIGURE + WASTE_UNTOUCHED] =
        ANSWER_FIGURES("untouched_bytes", "untouched", ANSWER_BYTES, 0),
    [WASTE_FIGURE + WASTE_ZERO] = ANSWER_FIGURES("zero_bytes", "zero", ANSWER_BYTES, 0),
    [WASTE_FIGURE + WASTE_DUPLICATE] = ANSWER_FIGURES("duplicate_bytes", "copies", ANSWER_BYTES, 0),
    [WASTE_FIGURE + WASTE_TAIL] = ANSWER_FIGURES("tail_bytes", "tail", ANSWER_BYTES, 0),
    [WASTE_FIGURE + WASTE_SLACK] = ANSWER_FIGURES("slack_bytes", "slack", ANSWER_BYTES, 0),
    [WASTE_HELD] = ANSWER_FIGURES("bytes", "of", ANSWER_BYTES, 0),
    [WASTE_BLOCKS] = ANSWER_FIGURES("blocks", "blocks", ANSWER_COUNT, 0),
    [WASTE_SPARSE] = ANSWER_FIGURES("sparse_bytes", "sparse", ANSWER_BYTES, 0),
    [WASTE_STRINGS] = ANSWER_DATA("string_bytes", ANSWER_BYTES),
    [WASTE_NAME] = ANSWER_NAMES("name", ANSWER_TAIL, .head = "allocated by"),
    [WASTE_KIND] = ANSWER_DATA("kind", ANSWER_TEXT)};

struct waste_list {
    const struct waste_sums *sums;
    size_t at;
    char label[KIN_LABEL_BYTES];
};

static bool next_waste(struct answer *answer, struct answer_row *out) {
    struct waste_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct waste_row *row = &list->sums->rows.items[list->at++];
    answer->is_failed = !core_kin_label(list->sums->subject, &row->kin, list->label);
    answer_set(out, WASTE_BYTES, waste_value(row, FIGURE_WASTED));
    for (int i = 0; i < WASTE_KINDS; i++) answer_set(out, WASTE_FIGURE + i, waste_value(row, i));
    answer_set(out, WASTE_HELD, waste_value(row, FIGURE_HELD));
    answer_set(out, WASTE_BLOCKS, waste_value(row, FIGURE_BLOCKS));
    answer_set(out, WASTE_SPARSE, waste_value(row, FIGURE_SPARSE));
    answer_set(out, WASTE_STRINGS, waste_value(row, FIGURE_STRINGS));
    answer_set_text(out, WASTE_NAME, list->label);
    answer_set_text(out, WASTE_KIND, core_kin_word(row->kin.kind));
    return !answer->is_failed;
}

static void note_copies(struct answer *answer, const struct waste_copies *copies, int64_t bytes,
                        const char *what, const char *one, const char *many) {
    if (!copies->count) return;
    answer_note(answer, "%s: %s in %s of %s", what, units_size(bytes).text,
                units_counted((int64_t)copies->count, "copy", "copies").text,
                units_counted((int64_t)copies->contents, one, many).text);
}

static bool write_rows(const struct waste_sums *sums, const struct request *request,
                       struct error *error) {
    const struct waste_row *all = &sums->all;
    struct waste_list list = {.sums = sums};
    struct answer answer = {.view = request->view->name,
                            .options = &request->options,
                            .columns = columns,
                            .column_count = WASTE_COLUMNS,
                            .whole = waste_value(all, FIGURE_HELD),
                            .next_row = next_waste,
                            .state = &list};
    while (answer.count < sums->rows.count &&
           waste_value(&sums->rows.items[answer.count], FIGURE_WASTED) +
               waste_value(&sums->rows.items[answer.count], FIGURE_SPARSE))
        answer.count++;
    answer.shown = answer_cut(request->options.top, answer.count);
    snprintf(answer.title, sizeof answer.title, "%s of %s in %s are of no use",
             units_size(waste_value(all, FIGURE_WASTED)).text,
             units_size(waste_value(all, FIGURE_HELD)).text,
             units_counted(waste_value(all, FIGURE_BLOCKS), "block", "blocks").text);
    note_copies(&answer, &sums->copies, waste_value(all, (int)WASTE_DUPLICATE), "duplicates",
                "content", "contents");
    note_copies(&answer, &sums->strings, waste_value(all, FIGURE_STRINGS), "string duplicates",
                "string", "strings");
    return request->form->print(request->out, &answer, error);
}

bool core_waste_rows(struct core_subject *subject, const struct request *request,
                     struct error *error) {
    struct waste_sums sums;
    bool is_ok = waste_sums_make(subject, &sums, error);
    for (size_t i = 0; is_ok && subject->is_recorded && i < sums.rows.count; i++)
        core_kin_want(subject, &sums.rows.items[i].kin);
    if (is_ok && subject->is_recorded) is_ok = names_resolve(subject->opened.names, error);
    is_ok = is_ok && write_rows(&sums, request, error);
    waste_sums_free(&sums);
    return is_ok;
}
