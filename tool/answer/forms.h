// SPDX-License-Identifier: Apache-2.0
// Forms of an answer (docs/reference/json.md#answers): each is written once and fits every view. A
// new one is a row of forms.def and a function. Values that are not known are null or empty, never
// 0. Functions return false, with an error, without memory.
#ifndef TOOL_ANSWER_FORMS_H
#define TOOL_ANSWER_FORMS_H

#include "tool/answer/answer.h"

#define ANSWER_SCHEMA 1  // of JSON: columns and keys may be added within it

typedef bool answer_form_fn(FILE *out, struct answer *answer, struct error *error);

struct answer_form {
    const char *name;    // as --format has it
    bool is_for_people;  // lists have their usual lengths
    bool is_of_calls;    // of a tree of calls alone
    answer_form_fn *print;
};
extern const struct answer_form answer_forms[];  // ends with name NULL

#define FORM(name, ...) answer_form_fn answer_print_##name;
#include "tool/answer/forms.def"

// NULL: there is none of that name.
const struct answer_form *answer_form_find(const char *name);

// Lists them for a sentence: "json, csv and md, and of the tree calls".
enum { ANSWER_FORMS_BYTES = 128 };
void answer_forms_text(char text[ANSWER_FORMS_BYTES]);

// The screen.
bool answer_print_text(const struct terminal *terminal, struct answer *answer, struct error *error);

// A value as people read it.
struct unit_text answer_value_text(const struct answer *answer, const struct answer_column *column,
                                   const struct answer_cell *cell);

// Text of any length, made safe (tool/base/text.h), with a `\` in front of the characters `marked`
// and with `instead` in the place of those in `replaced`.
void answer_put_safe(FILE *out, const char *text, const char *marked, const char *replaced,
                     char instead);

#endif
