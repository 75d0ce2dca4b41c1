// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

enum {
    PAGE_BYTES = 2900,    // of the output on a page
    ERRORS_BYTES = 900,   // of what a program printed
    FOOTER_BYTES = 1100,  // page + footer, and what is said of a program, are below ANSWER_BYTES
    SHORT_PAGE_BYTES = PAGE_BYTES - ERRORS_BYTES,
    LINE_BYTES = 1024,  // longer ones are cut
};

// A text that grows up to its bound; what does not fit any more is left out.
struct writer {
    char *text;
    size_t used, size;
};

static bool __attribute__((format(printf, 2, 3)))
put(struct writer *writer, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t room = writer->size - writer->used;
    int length = vsnprintf(writer->text + writer->used, room, format, list);
    va_end(list);
    bool fits = length >= 0 && (size_t)length < room;
    if (fits) writer->used += (size_t)length;
    writer->text[writer->used] = 0;
    return fits;
}

// Cut at a whole character; commands have escaped what they print, programs have not.
static size_t copy_line(char out[LINE_BYTES], const char *line, size_t length) {
    size_t used = 0;
    for (size_t i = 0; i < length && used + sizeof "\\x00…" < LINE_BYTES;) {
        size_t safe = text_safe_length(line + i, length - i);
        if (safe)
            memcpy(out + used, line + i, safe);
        else if (line[i] == '\t')
            out[used] = ' ';
        else if (line[i] != '\r')
            snprintf(out + used, sizeof "\\x00", "\\x%02x", (unsigned char)line[i]);
        bool is_one = safe || line[i] == '\t';
        used += safe ? safe : is_one ? 1 : line[i] != '\r' ? strlen("\\x00") : 0;
        i += safe ? safe : 1;
    }
    out[used] = 0;
    return used;
}

struct page {
    size_t number, count;  // from 1
    size_t lines, all_lines;
};

// Writes the lines of a page; the pages of a text are always the same.
static struct page put_page(struct writer *writer, const char *text, size_t bytes, size_t wanted,
                            size_t page_bytes) {
    struct page page = {.number = 1};
    size_t used = 0;
    char line[LINE_BYTES];
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - (text + at)) : bytes - at;
        size_t shown = copy_line(line, text + at, length) + 1;
        if (used && used + shown > page_bytes) {
            page.number++;
            used = 0;
        }
        used += shown;
        page.all_lines++;
        if (page.number == wanted) page.lines += put(writer, "%s\n", line);
        at += length + 1;
    }
    page.count = page.number;
    page.number = wanted;
    return page;
}

static json_t *copy_of_subject(const struct question *question) {
    json_t *copy = json_object();
    static const char *const subjects[] = {"recording", "subject", "process"};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        json_t *value = json_object_get(question->arguments, subjects[i]);
        if (value) json_object_set(copy, subjects[i], value);
    }
    return copy;
}

static void put_question(struct writer *writer, const char *tool, json_t *arguments,
                         const char *why) {
    char *text = json_dumps(arguments, JSON_COMPACT);
    if (text) put(writer, "  %s %s: %s\n", tool, text, why);
    free(text);
    json_decref(arguments);
}

static void put_more(struct writer *writer, const struct question *question,
                     const struct page *page) {
    char why[LINE_BYTES];
    json_t *same = json_copy(question->arguments);
    if (page->count <= page->number) {
        json_decref(same);
        return;
    }
    json_object_set_new(same, "page", json_integer((json_int_t)page->number + 1));
    snprintf(why, sizeof why, "page %zu of %zu", page->number + 1, page->count);
    put_question(writer, question->tool->name, same, why);
}

// What a tool takes of the arguments of another one; the path of a new recording.
static void put_next(struct writer *writer, const struct question *question,
                     const struct roots *roots) {
    for (const struct mcp_next *next = question->tool->next; next->tool; next++) {
        const struct mcp_tool *tool = mcp_tool_find(next->tool);
        char inside[LINE_BYTES];
        if (!tool) continue;
        json_t *arguments = copy_of_subject(question);
        const struct mcp_parameter *first = tool->parameters;
        while (!mcp_parameter_is_last(first) && first->kind != MCP_FILE &&
               first->kind != MCP_PROCESS)
            first++;
        if (*question->output && !mcp_parameter_is_last(first))
            json_object_set_new(arguments, first->name,
                                json_string(roots_name(roots, question->output)));
        snprintf(inside, sizeof inside, "{%s}", next->with);
        json_t *more = json_loads(inside, 0, NULL);
        // before and after stand for the recording
        if (json_object_get(more, "before")) json_object_del(arguments, "recording");
        json_object_update(arguments, more);
        json_decref(more);
        put_question(writer, tool->name, arguments, next->why);
    }
}

// Questions that show more of findings, by the views that these name.
static const struct {
    const char *view, *tool, *with, *why;
} finding_questions[] = {
    {"temporary", "top", "{\"group\":\"temporary\"}", "whole stacks of short-lived blocks"},
    {"frees", "top", "{\"group\":\"frees\"}", "who frees what others allocated"},
    {"sizes", "top", "{\"group\":\"sizes\"}", "blocks by size"},
    {"ages", "top", "{\"group\":\"ages\"}", "how old blocks became"},
    {"growth", "growth", "{}", "whole stacks of what rises"},
};

static bool has_view(const struct outcome *outcome, const char *view) {
    char words[LINE_BYTES];
    int length = snprintf(words, sizeof words, "--view %s", view);
    return outcome->out_bytes && memmem(outcome->out, outcome->out_bytes, words, (size_t)length);
}

static void put_finding_questions(struct writer *writer, const struct question *question,
                                  const struct outcome *outcome) {
    if (strcmp(question->tool->name, "next") != 0) return;
    for (size_t i = 0; i < sizeof finding_questions / sizeof *finding_questions; i++) {
        if (!has_view(outcome, finding_questions[i].view)) continue;
        json_t *arguments = copy_of_subject(question);
        json_t *with = json_loads(finding_questions[i].with, 0, NULL);
        json_object_update(arguments, with);
        json_decref(with);
        put_question(writer, finding_questions[i].tool, arguments, finding_questions[i].why);
    }
}

static void put_footer(struct writer *writer, const struct question *question,
                       const struct roots *roots, const struct page *page,
                       const struct outcome *outcome) {
    char text[FOOTER_BYTES] = "";
    struct writer footer = {text, 0, sizeof text};
    put_more(&footer, question, page);
    put_finding_questions(&footer, question, outcome);
    put_next(&footer, question, roots);
    if (footer.used) put(writer, "\nask next:\n%s", text);
}

// The last lines of what a program or a failed command printed.
static void put_end_of(struct writer *writer, const char *heading, const char *text, size_t bytes) {
    size_t from = bytes;
    char line[LINE_BYTES];
    while (bytes && text[bytes - 1] == '\n') bytes--;
    if (!bytes) return;
    size_t most = ERRORS_BYTES / 2;  // escaped it may be longer
    from = bytes > most ? bytes - most : 0;
    const char *start = from ? memchr(text + from, '\n', bytes - from) : NULL;
    if (start) from = (size_t)(start - text) + 1;
    put(writer, "%s%s\n", heading, from ? " (the end of it)" : "");
    while (from < bytes) {
        const char *end = memchr(text + from, '\n', bytes - from);
        size_t length = end ? (size_t)(end - (text + from)) : bytes - from;
        copy_line(line, text + from, length);
        put(writer, "  %s\n", line);
        from += length + 1;
    }
}

static bool write_run(struct writer *writer, const struct question *question,
                      const struct roots *roots, const struct outcome *outcome) {
    bool is_failed = !outcome->is_written;
    char name[LINE_BYTES];
    if (outcome->is_late)
        put(writer, "ended after %d s, as asked; what it did until then is recorded\n",
            question->seconds);
    put_page(writer, outcome->out, outcome->out_bytes, 1, SHORT_PAGE_BYTES);
    text_escape(name, sizeof name, roots_name(roots, question->output));
    if (!is_failed) put(writer, "recording: %s\n", name);
    if (is_failed) put(writer, "no recording was made (status %d)\n", outcome->status);
    put_end_of(writer, "output of the command:", outcome->errors, outcome->errors_bytes);
    return is_failed;
}

// The parameter whose option stands at the start of a text; NULL: none.
static const struct mcp_parameter *parameter_at(const struct mcp_tool *tool, const char *text,
                                                size_t bytes) {
    for (const struct mcp_parameter *at = tool->parameters; !mcp_parameter_is_last(at); at++) {
        size_t length = at->option ? strlen(at->option) : 0;
        bool is_there = length && at->name && length <= bytes && !memcmp(text, at->option, length);
        if (is_there && (length == bytes || !strchr("-abcdefghijklmnopqrstuvwxyz", text[length])))
            return at;
    }
    return NULL;
}

// Keeps what a failed command said: an agent knows its options as arguments of the question, but in
// the commands for users, "cairn run --look".
static void put_failure(struct writer *writer, const struct question *question, const char *text,
                        size_t bytes) {
    static const char command[] = "cairn ";
    char *told = NULL;
    size_t told_bytes = 0;
    FILE *out = open_memstream(&told, &told_bytes);
    bool is_command = false;
    for (size_t at = 0; out && at < bytes;) {
        const char *rest = text + at;
        if (strchr(";,\n", *rest)) is_command = false;
        if (bytes - at > sizeof command && !memcmp(rest, command, sizeof command - 1))
            is_command = true;
        const struct mcp_parameter *parameter =
            is_command ? NULL : parameter_at(question->tool, rest, bytes - at);
        if (parameter) fprintf(out, "\"%s\"", parameter->name);
        if (!parameter) fputc(*rest, out);
        at += parameter ? strlen(parameter->option) : 1;
    }
    if (out && !fclose(out)) put_end_of(writer, "failed:", told, told_bytes);
    free(told);
}

bool answer_write(const struct question *question, const struct roots *roots,
                  const struct outcome *outcome, char text[ANSWER_BYTES]) {
    struct writer writer = {text, 0, ANSWER_BYTES};
    struct page page = {.number = 1, .count = 1};
    text[0] = 0;
    bool is_failed = false;
    if (question->tool->is_run) {
        is_failed = write_run(&writer, question, roots, outcome);
    } else {
        page = put_page(&writer, outcome->out, outcome->out_bytes, question->page, PAGE_BYTES);
        // a budget that does not hold is a status as well, but no error
        is_failed = outcome->status && (!outcome->out_bytes || outcome->errors_bytes);
        if (outcome->is_late) put(&writer, "no answer within %d s\n", question->seconds);
        if (outcome->is_cut) put(&writer, "the answer is too long and was cut: ask for less\n");
        if (!is_failed && outcome->out_bytes && !page.lines)
            put(&writer, "there are %zu pages\n", page.count);
        if (is_failed || !outcome->out_bytes)
            put_failure(&writer, question, outcome->errors, outcome->errors_bytes);
    }
    if (!is_failed && !question->is_resource) put_footer(&writer, question, roots, &page, outcome);
    if (!writer.used) put(&writer, "nothing (status %d)\n", outcome->status);
    return is_failed;
}
