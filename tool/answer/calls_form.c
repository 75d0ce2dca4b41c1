// SPDX-License-Identifier: Apache-2.0
// Calls in calls as lines for other programs: "->N calls, NB: function (file:line)", with two
// blanks a level, in plain numbers.
#include <inttypes.h>
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/render/interval.h"

enum { INDENT = 2 };

// The column of that key; NULL: the answer has none.
static const struct answer_column *column_of(const struct answer *answer, const char *key) {
    for (size_t i = 0; i < answer->column_count; i++)
        if (answer->columns[i].key && !strcmp(answer->columns[i].key, key))
            return &answer->columns[i];
    return NULL;
}

bool answer_print_calls(FILE *out, struct answer *answer, struct error *error) {
    const struct answer_column *value = column_of(answer, "value");
    const struct answer_column *calls = column_of(answer, "calls");
    const struct answer_column *name = column_of(answer, "name");
    const struct answer_column *location = column_of(answer, "location");
    struct answer_row row;
    if (!value || !calls || !name || !location)
        return error_set(error, "view %s has no calls in calls", answer->view);
    const char *unit = value->unit == ANSWER_BYTES ? "B" : " counted";
    while (answer_next(answer, ANSWER_FOR_PROGRAMS, &row)) {
        const struct measured measured = row.cells[value - answer->columns].measured;
        const char *place = row.cells[location - answer->columns].text;
        fprintf(out, "%*s->%" PRId64 " calls, %" PRId64 "%s", (int)(row.level * INDENT), "",
                row.cells[calls - answer->columns].measured.value, measured.value, unit);
        if (measured_interval(measured))
            fprintf(out, " \xc2\xb1 %" PRId64 "%s%s", measured_interval(measured), unit,
                    interval_samples(measured).text);
        fprintf(out, ": %s%s%s%s\n", row.cells[name - answer->columns].text, place ? " (" : "",
                place ? place : "", place ? ")" : "");
    }
    return answer_check(answer, error);
}
