// SPDX-License-Identifier: Apache-2.0
// What became of budgets, or what moved since the last commit: a line each with the stacks to blame
// below, on a screen and in the forms that forges read: JUnit's XML, Markdown, SARIF 2.1,
// annotations of GitHub.
#ifndef TOOL_CHECK_RESULTS_H
#define TOOL_CHECK_RESULTS_H

#include "tool/base/array.h"
#include "tool/model/measure.h"
#include "tool/render/terminal.h"

struct result {
    char process[32];    // "7863", "7863, of 4": which one; "": none
    char subject[512];   // a program, or a pattern that no process has; safe text
    const char *budget;  // "peak", "exit", "calls", "allocated"
    char text[256];      // "13.3 MiB of 200 MiB": one line
    bool holds;
    bool is_note;     // it moved, which is worth saying and breaks nothing
    bool is_open;     // it may have moved: there are too few runs to know
    bool is_new;      // no earlier commit has it: it cannot have moved
    char *offenders;  // lines of text, or NULL
    char *place;      // of the first of them: "src/parser.c:120", safe text; NULL: not known
};

struct results {
    ARRAY(struct result) list;
    size_t failed_count;
    bool is_first;       // of a history that has one commit: nothing can have moved
    const char *since;   // of changes: "the commit before"; NULL: nothing was compared
    bool is_of_changes;  // most say that nothing moved: lists for people leave those out
};

// Takes `offenders` and `place` over, even without memory, which is what false means.
bool results_add(struct results *results, const struct result *result);
void results_free(struct results *results);

void results_print(const struct results *results, const struct terminal *terminal);
void results_write_junit(const struct results *results, FILE *out);
void results_write_markdown(const struct results *results, FILE *out);
// forge.c
void results_write_sarif(const struct results *results, FILE *out);
// Lines that a step of a GitHub workflow prints.
void results_print_annotations(const struct results *results, FILE *out);

#endif
