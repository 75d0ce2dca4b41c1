// SPDX-License-Identifier: Apache-2.0
// What became of budgets: a line each with the offenders stacks below those that do not hold, on a
// screen, as JUnit's XML or as Markdown.
#ifndef TOOL_CHECK_RESULTS_H
#define TOOL_CHECK_RESULTS_H

#include "tool/base/array.h"
#include "tool/model/measure.h"
#include "tool/render/terminal.h"

struct result {
    char process[32];    // "7863", "7863, of 4": which one; "": none
    char subject[128];   // a program, or a pattern that no process has; safe text
    const char *budget;  // "peak", "exit", "calls", "allocated"
    char text[256];      // "13.3 MiB of 200 MiB": one line
    bool holds;
    char *offenders;  // lines of text, or NULL
};

struct results {
    ARRAY(struct result) list;
    size_t failed_count;
};

// Takes `offenders` over, even without memory, which is what false means.
bool results_add(struct results *results, const struct result *result);
void results_free(struct results *results);

void results_print(const struct results *results, const struct terminal *terminal);
void results_write_junit(const struct results *results, FILE *out);
void results_write_markdown(const struct results *results, FILE *out);

#endif
