// SPDX-License-Identifier: Apache-2.0
#include "tool/render/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"

bool verdicts_add(struct verdicts *verdicts, const struct verdict *verdict) {
    struct verdict *slot = array_push(&verdicts->list);
    if (!slot) {
        free(verdict->guilty);
        return false;
    }
    *slot = *verdict;
    verdicts->failed_count += !verdict->holds;
    return true;
}

void verdicts_free(struct verdicts *verdicts) {
    for (size_t i = 0; i < verdicts->list.count; i++) free(verdicts->list.items[i].guilty);
    array_free(&verdicts->list);
}

void verdicts_print(const struct verdicts *verdicts, const struct terminal *terminal) {
    for (size_t i = 0; i < verdicts->list.count; i++) {
        const struct verdict *verdict = &verdicts->list.items[i];
        terminal_print(terminal, verdict->holds ? STYLE_DIM : STYLE_WARNING, "%-5s",
                       verdict->holds ? "ok" : "FAIL");
        terminal_print(terminal, STYLE_STRONG, "%s", verdict->subject);
        if (*verdict->process) terminal_print(terminal, STYLE_DIM, " (%s)", verdict->process);
        fprintf(terminal->out, " %s: %s\n", verdict->budget, verdict->text);
        if (verdict->guilty) fputs(verdict->guilty, terminal->out);
    }
    size_t count = verdicts->list.count;
    if (verdicts->failed_count)
        fprintf(terminal->out, "%zu of %s exceeded\n", verdicts->failed_count,
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

void verdicts_write_junit(const struct verdicts *verdicts, FILE *out) {
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n  <testsuite name=\"cairn check\" tests=\"%zu\" failures=\"%zu\">\n",
            verdicts->list.count, verdicts->failed_count);
    for (size_t i = 0; i < verdicts->list.count; i++) {
        const struct verdict *verdict = &verdicts->list.items[i];
        fputs("    <testcase classname=\"", out);
        put_xml(out, verdict->subject);
        fprintf(out, "\" name=\"%s\"", verdict->budget);
        if (verdict->holds) {
            fputs("/>\n", out);
            continue;
        }
        fputs(">\n      <failure message=\"", out);
        put_xml(out, verdict->text);
        fputs("\">", out);
        if (verdict->guilty) put_xml(out, verdict->guilty);
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

void verdicts_write_markdown(const struct verdicts *verdicts, FILE *out) {
    fputs("| | program | budget | |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < verdicts->list.count; i++) {
        const struct verdict *verdict = &verdicts->list.items[i];
        fprintf(out, "| %s | ", verdict->holds ? "ok" : "**FAIL**");
        put_cell(out, verdict->subject);
        fprintf(out, " | %s | ", verdict->budget);
        put_cell(out, verdict->text);
        fputs(" |\n", out);
    }
    for (size_t i = 0; i < verdicts->list.count; i++) {
        const struct verdict *verdict = &verdicts->list.items[i];
        if (verdict->holds || !verdict->guilty) continue;
        fputs("\n**", out);
        put_cell(out, verdict->subject);
        fprintf(out, ", %s**\n\n", verdict->budget);
        // an indented block shows its lines as they are
        for (const char *at = verdict->guilty; *at;) {
            size_t length = strcspn(at, "\n");
            fprintf(out, "    %.*s\n", (int)length, at);
            at += length + (at[length] == '\n');
        }
    }
}
