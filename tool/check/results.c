// SPDX-License-Identifier: Apache-2.0
#include "tool/check/results.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"

bool results_add(struct results *results, const struct result *result) {
    struct result *slot = array_push(&results->list);
    if (!slot) {
        free(result->offenders);
        free(result->place);
        return false;
    }
    *slot = *result;
    results->failed_count += !result->holds;
    return true;
}

void results_free(struct results *results) {
    for (size_t i = 0; i < results->list.count; i++) {
        free(results->list.items[i].offenders);
        free(results->list.items[i].place);
    }
    array_free(&results->list);
}

// Whether people are shown it.
static bool is_listed(const struct results *results, const struct result *result) {
    bool is_news = result->is_note || result->is_open || !result->holds;
    return !results->is_of_changes || is_news || (result->is_new && !results->is_first);
}

static void print_moved(const struct results *results, const struct terminal *terminal,
                        size_t moved, size_t open) {
    fprintf(terminal->out, "%s%s since %s",
            moved ? units_counted((int64_t)moved, "figure moved", "figures moved").text
                  : "nothing moved",
            open && !moved ? " that is known" : "", results->since);
    if (open)
        fprintf(terminal->out, "; of %s it is not known yet",
                units_counted((int64_t)open, "figure", "figures").text);
    fputc('\n', terminal->out);
}

static void print_sum(const struct results *results, const struct terminal *terminal) {
    size_t moved = 0, open = 0, added = 0;
    for (size_t i = 0; i < results->list.count; i++) {
        moved += results->list.items[i].is_note;
        open += results->list.items[i].is_open;
        added += results->list.items[i].is_new;
    }
    size_t count = results->list.count - moved - open - added;
    if (results->is_of_changes) {
        moved += results->failed_count;
        count = 0;
    }
    if (results->failed_count && count)
        fprintf(terminal->out, "%zu of %s exceeded\n", results->failed_count,
                units_counted((int64_t)count, "budget", "budgets").text);
    else if (count == 1)
        fputs("the budget holds\n", terminal->out);
    else if (count)
        fprintf(terminal->out, "all %zu budgets hold\n", count);
    else if (results->is_first)
        fputs("the first commit of this history: nothing to compare with\n", terminal->out);
    else if (!results->since)
        fputs("nothing to compare with\n", terminal->out);
    else
        print_moved(results, terminal, moved, open);
}

// Says whether it is nothing to look at.
static bool is_quiet(const struct result *result) {
    return result->holds && !result->is_note && !result->is_open;
}

void results_print(const struct results *results, const struct terminal *terminal) {
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        if (!is_listed(results, result)) continue;
        terminal_print(terminal, is_quiet(result) ? STYLE_DIM : STYLE_WARNING, "%-5s",
                       result->is_note   ? "moved "
                       : result->is_open ? "not known "
                       : result->is_new  ? "new "
                       : result->holds   ? "ok"
                                         : "FAIL");
        terminal_print(terminal, STYLE_STRONG, "%s", result->subject);
        if (*result->process) terminal_print(terminal, STYLE_DIM, " (%s)", result->process);
        fprintf(terminal->out, " %s: %s\n", result->budget, result->text);
        if (result->offenders) fputs(result->offenders, terminal->out);
    }
    print_sum(results, terminal);
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
        if (result->is_note || result->is_open) {
            fputs(">\n      <system-out>", out);
            put_xml(out, result->text);
            fputc('\n', out);
            if (result->offenders) put_xml(out, result->offenders);
            fputs("</system-out>\n    </testcase>\n", out);
            continue;
        }
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

static const char *word_of(const struct result *result) {
    if (!result->holds) return "**FAIL**";
    if (result->is_open) return "not known";
    if (result->is_new) return "new";
    return result->is_note ? "moved" : "ok";
}

static void put_table(const struct results *results, FILE *out) {
    size_t left_out = 0;
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        if (!is_listed(results, result)) {
            left_out++;
            continue;
        }
        fprintf(out, "| %s | ", word_of(result));
        put_cell(out, result->subject);
        fprintf(out, " | %s | ", result->budget);
        put_cell(out, result->text);
        fputs(" |\n", out);
    }
    if (left_out)
        fprintf(out, "| ok | %s |  | not moved |\n",
                units_counted((int64_t)left_out, "test", "tests").text);
}

// An indented block shows its lines as they are.
static void put_block(FILE *out, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        fprintf(out, "    %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

void results_write_markdown(const struct results *results, FILE *out) {
    fprintf(out, "| | program | %s | |\n|---|---|---|---|\n",
            results->is_of_changes ? "figure" : "budget");
    put_table(results, out);
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        if (!is_listed(results, result) || !result->offenders) continue;
        fputs("\n**", out);
        put_cell(out, result->subject);
        fprintf(out, ", %s**\n\n", result->budget);
        put_block(out, result->offenders);
    }
}
