// SPDX-License-Identifier: Apache-2.0
// What became of budgets: a line each with the guilty stacks below those that do not hold, on a
// screen, as JUnit's XML or as Markdown.
#ifndef TOOL_RENDER_VERDICTS_H
#define TOOL_RENDER_VERDICTS_H

#include "tool/base/array.h"
#include "tool/model/measure.h"
#include "tool/render/terminal.h"

struct verdict {
    char process[32];    // "7863", "7863, of 4": which one; "": none
    char subject[128];   // a program, or a pattern that no process has; safe text
    const char *budget;  // "peak", "exit", "calls", "allocated"
    char text[256];      // "13.3 MiB of 200 MiB": one line
    bool holds;
    char *guilty;  // lines of text, or NULL
};

struct verdicts {
    ARRAY(struct verdict) list;
    size_t failed_count;
};

// Takes `guilty` over, even without memory, which is what false means.
bool verdicts_add(struct verdicts *verdicts, const struct verdict *verdict);
void verdicts_free(struct verdicts *verdicts);

void verdicts_print(const struct verdicts *verdicts, const struct terminal *terminal);
void verdicts_write_junit(const struct verdicts *verdicts, FILE *out);
void verdicts_write_markdown(const struct verdicts *verdicts, FILE *out);

#endif
