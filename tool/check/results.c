// SPDX-License-Identifier: Apache-2.0
#include "tool/check/results.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"

bool results_add(struct results *results, const struct result *result) {
    struct result *slot = array_push(&results->list);
    if (!slot) {
        free(result->offenders);
        return false;
    }
    *slot = *result;
    results->failed_count += !result->holds;
    return true;
}

void results_free(struct results *results) {
    for (size_t i = 0; i < results->list.count; i++) free(results->list.items[i].offenders);
    array_free(&results->list);
}

void results_print(const struct results *results, const struct terminal *terminal) {
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        terminal_print(terminal, result->holds ? STYLE_DIM : STYLE_WARNING, "%-5s",
                       result->holds ? "ok" : "FAIL");
        terminal_print(terminal, STYLE_STRONG, "%s", result->subject);
        if (*result->process) terminal_print(terminal, STYLE_DIM, " (%s)", result->process);
        fprintf(terminal->out, " %s: %s\n", result->budget, result->text);
        if (result->offenders) fputs(result->offenders, terminal->out);
    }
    size_t count = results->list.count;
    if (results->failed_count)
        fprintf(terminal->out, "%zu of %s exceeded\n", results->failed_count,
                units_counted((int64_t)count, "budget", "budgets").text);
    else if (count == 1)
        fputs("the budget holds\n", terminal->out);
    else
        fprintf(terminal->out, "all %zu budgets hold\n", count);
}

// Characters that XML may not have go, those that mean something are spelled.
static void put_xml(FILE *out, const char *text) {
    static const unsigned char first_printable = ' ';
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if ((unsigned char)*text >= first_printable || *text == '\n') fputc(*text, out);
        }
    }
}

void results_write_junit(const struct results *results, FILE *out) {
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n  <testsuite name=\"cairn check\" tests=\"%zu\" failures=\"%zu\">\n",
            results->list.count, results->failed_count);
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        fputs("    <testcase classname=\"", out);
        put_xml(out, result->subject);
        fprintf(out, "\" name=\"%s\"", result->budget);
        if (result->holds) {
            fputs("/>\n", out);
            continue;
        }
        fputs(">\n      <failure message=\"", out);
        put_xml(out, result->text);
        fputs("\">", out);
        if (result->offenders) put_xml(out, result->offenders);
        fputs("</failure>\n    </testcase>\n", out);
    }
    fputs("  </testsuite>\n</testsuites>\n", out);
}

// Within a cell of a table a bar would end it.
static void put_cell(FILE *out, const char *text) {
    for (; *text; text++) {
        if (strchr("|\\`*_<>[]", *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

void results_write_markdown(const struct results *results, FILE *out) {
    fputs("| | program | budget | |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        fprintf(out, "| %s | ", result->holds ? "ok" : "**FAIL**");
        put_cell(out, result->subject);
        fprintf(out, " | %s | ", result->budget);
        put_cell(out, result->text);
        fputs(" |\n", out);
    }
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        if (result->holds || !result->offenders) continue;
        fputs("\n**", out);
        put_cell(out, result->subject);
        fprintf(out, ", %s**\n\n", result->budget);
        // an indented block shows its lines as they are
        for (const char *at = result->offenders; *at;) {
            size_t length = strcspn(at, "\n");
            fprintf(out, "    %.*s\n", (int)length, at);
            at += length + (at[length] == '\n');
        }
    }
}
