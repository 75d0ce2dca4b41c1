// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/forms.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

const struct answer_form answer_forms[] = {
#define FORM(name, is_for_people, is_of_calls, help)                                               \
    {#name, is_for_people, is_of_calls, answer_print_##name},
#include "tool/answer/forms.def"
    {0},
};

const struct answer_form *answer_form_find(const char *name) {
    for (const struct answer_form *form = answer_forms; form->name; form++)
        if (!strcmp(form->name, name)) return form;
    return NULL;
}

static bool is_last_of_all(const struct answer_form *form) {
    return !form[1].name || form[1].is_of_calls;
}

void answer_forms_text(char text[ANSWER_FORMS_BYTES]) {
    size_t used = 0;
    for (const struct answer_form *form = answer_forms; form->name && used < ANSWER_FORMS_BYTES;
         form++)
        used += (size_t)snprintf(text + used, ANSWER_FORMS_BYTES - used, "%s%s",
                                 form == answer_forms   ? ""
                                 : form->is_of_calls    ? ", and of the tree "
                                 : is_last_of_all(form) ? " and "
                                                        : ", ",
                                 form->name);
}

struct unit_text answer_value_text(const struct answer *answer, const struct answer_column *column,
                                   const struct answer_cell *cell) {
    const int64_t value = measured_shown(cell->measured);
    struct unit_text text = {""};
    switch (column->unit) {
    case ANSWER_BYTES:
        return units_size_as(value, answer->options->is_plain_number);
    case ANSWER_COUNT:
        return units_count(value);
    case ANSWER_TIME:
        return units_duration((uint64_t)value);
    case ANSWER_SHARE:
        return units_percent(value, answer->whole);
    case ANSWER_RATIO:
        return units_percent(value, cell->measured.blocks);
    case ANSWER_NUMBER:
        snprintf(text.text, sizeof text.text, "%" PRId64, value);
        return text;
    case ANSWER_RATE:
        rate_text(cell->real, text.text, sizeof text.text);
        return text;
    case ANSWER_REAL:
        snprintf(text.text, sizeof text.text, "%.2f", cell->real);
        return text;
    case ANSWER_BOOL:
        snprintf(text.text, sizeof text.text, "%s", value ? "yes" : "no");
        return text;
    case ANSWER_TEXT:
        break;
    }
    return text;
}

void answer_put_safe(FILE *out, const char *text, const char *marked, const char *replaced,
                     char instead) {
    for (size_t left = strlen(text), length; left; text += length, left -= length) {
        length = text_safe_length(text, left);
        if (length == 1 && strchr(replaced, *text)) {
            fputc(instead, out);
        } else if (length) {
            if (length == 1 && strchr(marked, *text)) fputc('\\', out);
            fwrite(text, 1, length, out);
        } else {
            fprintf(out, "\\x%02x", (unsigned char)*text);
            length = 1;
        }
    }
}
