// SPDX-License-Identifier: Apache-2.0
// Markdown for a terminal, as far as the pages use it: headings, paragraphs, lists, blocks of code,
// tables, links. Comments for the tests of the pages are left out.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/manual/pages.h"

enum {
    TEXT_BYTES = 1 << 13,
    COLUMNS_MAX = 100,
    CODE_INDENT = 4,
    ITEM_INDENT = 2,
    CELL_COLUMNS = 34
};

struct printing {
    struct terminal terminal;
    char raw[TEXT_BYTES];   // the paragraph or item so far, in one line, as it stands in the page
    char text[TEXT_BYTES];  // for the terminal
    size_t raw_used, used;
    size_t first, indent;  // columns before its first line, and before the others
    bool is_code;          // between fences
    bool has_gap;          // an empty line was printed last
};

static bool begins(const char *line, const char *with) {
    return !strncmp(line, with, strlen(with));
}

static void print_gap(struct printing *printing) {
    if (!printing->has_gap) fputc('\n', printing->terminal.out);
    printing->has_gap = true;
}

static void put(struct printing *printing, const char *text, size_t size) {
    size_t room = TEXT_BYTES - 1 - printing->used;
    if (size > room) size = room;
    memcpy(printing->text + printing->used, text, size);
    printing->used += size;
    printing->text[printing->used] = 0;
}

// Writes a link's text, and the command that shows a page of these.
static void put_link(struct printing *printing, const char *text, size_t text_size,
                     const char *target, size_t target_size) {
    static const char command[] = "cairn help ";
    const struct page *page = NULL;
    const char *unused;
    char word[PAGE_TITLE_BYTES];
    snprintf(word, sizeof word, "%.*s", (int)target_size, target);
    if (!strchr(word, '/')) page = page_find(word, &unused);
    bool is_named = target_size == text_size && !memcmp(text, target, text_size);
    if (!page || !is_named) put(printing, text, text_size);
    if (!page) return;
    if (!is_named) put(printing, " (", 2);
    put(printing, command, sizeof command - 1);
    put(printing, target, target_size);
    if (!is_named) put(printing, ")", 1);
}

// Adds text without the marks of links and of what is strong.
static void put_inline(struct printing *printing, const char *text, size_t size) {
    const char *end = text + size;
    bool is_code = false;
    while (text < end) {
        const char *middle =
            *text == '[' && !is_code ? memchr(text, ']', (size_t)(end - text)) : NULL;
        const char *close = middle && middle + 1 < end && middle[1] == '('
                                ? memchr(middle, ')', (size_t)(end - middle))
                                : NULL;
        if (*text == '`') is_code = !is_code;
        if (close) {
            put_link(printing, text + 1, (size_t)(middle - text - 1), middle + 2,
                     (size_t)(close - middle - 2));
            text = close + 1;
        } else if (!is_code && end - text >= 2 && begins(text, "**")) {
            text += 2;
        } else {
            put(printing, text++, 1);
        }
    }
}

// Prints what was gathered.
static void end_text(struct printing *printing) {
    if (!printing->raw_used) return;
    put_inline(printing, printing->raw, printing->raw_used);
    terminal_indent(&printing->terminal, printing->first);
    terminal_print_wrapped(&printing->terminal, printing->first, printing->indent, printing->text);
    printing->raw_used = printing->used = printing->first = printing->indent = 0;
    printing->has_gap = false;
}

// Gathers a line.
static void add(struct printing *printing, const char *line, size_t size) {
    if (printing->raw_used + size + 1 > TEXT_BYTES) end_text(printing);
    if (printing->raw_used) printing->raw[printing->raw_used++] = ' ';
    if (size > TEXT_BYTES - printing->raw_used) size = TEXT_BYTES - printing->raw_used;
    memcpy(printing->raw + printing->raw_used, line, size);
    printing->raw_used += size;
}

static void print_heading(struct printing *printing, const char *line, size_t size) {
    const size_t marks = strspn(line, "# ");
    print_gap(printing);
    terminal_print(&printing->terminal, STYLE_STRONG, "%.*s\n", (int)(size - marks), line + marks);
    printing->has_gap = false;
}

// A row of a table: the first cell, and the others behind it, or below if that is long.
static void print_row(struct printing *printing, const char *line, size_t size) {
    const char *at = line + 1, *end = line + size;
    const size_t columns = printing->terminal.columns;
    const size_t room = columns < 2 * CELL_COLUMNS ? columns / 2 : CELL_COLUMNS;
    size_t first_columns = 0;
    if (size > 1 && strspn(line, "|-: ") == size) return;
    printing->text[0] = 0;
    for (size_t cell = 0; at < end; cell++) {
        const char *close = memchr(at, '|', (size_t)(end - at));
        while (close && close > at && close[-1] == '\\')
            close = memchr(close + 1, '|', (size_t)(end - close - 1));
        if (!close) close = end;
        while (at < close && *at == ' ') at++;
        size_t length = (size_t)(close - at);
        while (length && at[length - 1] == ' ') length--;
        if (cell > 1 && length) put(printing, " \xc2\xb7 ", 4);
        put_inline(printing, at, length);
        if (!cell) {
            first_columns = text_columns(printing->text);
            terminal_indent(&printing->terminal, ITEM_INDENT);
            fputs(printing->text, printing->terminal.out);
            if (first_columns > room) fputc('\n', printing->terminal.out);
            terminal_indent(&printing->terminal, first_columns > room
                                                     ? room + 2 * ITEM_INDENT
                                                     : room + ITEM_INDENT - first_columns);
            printing->used = 0;
        }
        at = close + 1;
    }
    printing->text[printing->used] = 0;
    terminal_print_wrapped(&printing->terminal, room + 2 * ITEM_INDENT, room + 2 * ITEM_INDENT,
                           printing->text);
    printing->used = 0;
    printing->has_gap = false;
}

static void print_code(struct printing *printing, const char *line, size_t size) {
    terminal_indent(&printing->terminal, printing->is_code ? CODE_INDENT : 0);
    fprintf(printing->terminal.out, "%.*s\n", (int)size, line);
    printing->has_gap = false;
}

// Returns the columns that begin an item of a list; 0: the line is none.
static size_t item_mark(const char *line) {
    const size_t spaces = strspn(line, " ");
    const char *at = line + spaces;
    if (begins(at, "- ")) return spaces + 2;
    const size_t digits = strspn(at, "0123456789");
    return digits && begins(at + digits, ". ") ? spaces + digits + 2 : 0;
}

static void print_line(struct printing *printing, const char *line, size_t size) {
    const size_t mark = item_mark(line);
    if (begins(line, "```")) {
        end_text(printing);
        printing->is_code = !printing->is_code;
    } else if (printing->is_code) {
        print_code(printing, line, size);
    } else if (!size) {
        end_text(printing);
        print_gap(printing);
    } else if (*line == '#') {
        end_text(printing);
        print_heading(printing, line, size);
    } else if (*line == '|') {
        end_text(printing);
        print_row(printing, line, size);
    } else if (mark) {
        end_text(printing);
        printing->first = mark - 2;
        printing->indent = mark;
        add(printing, line + printing->first, size - printing->first);
    } else if (begins(line, "    ") && !printing->raw_used) {
        print_code(printing, line, size);
    } else {
        const size_t spaces = strspn(line, " ");
        add(printing, line + spaces, size - spaces);
    }
}

// Compares a heading with a section's name: small letters, digits, and "-" for spaces.
static bool is_section(const char *heading, size_t size, const char *section) {
    for (size_t i = strspn(heading, "# "); i < size; i++) {
        const char c = (char)tolower((unsigned char)heading[i]);
        if (c != ' ' && c != '-' && c != '_' && !isalnum((unsigned char)c)) continue;
        if (*section++ != (c == ' ' ? '-' : c)) return false;
    }
    return !*section;
}

// Finds the section and where it ends; the whole page if none is asked for.
static bool find_part(const struct page *page, const char *section, const char **start,
                      const char **end) {
    size_t level = 0;
    bool is_fenced = false;
    *start = section ? NULL : page->text;
    *end = page->text + strlen(page->text);
    for (const char *line = page->text, *next; section && *line; line = next) {
        const size_t size = strcspn(line, "\n"), marks = strspn(line, "#");
        next = line + size + (line[size] != 0);
        is_fenced ^= begins(line, "```");
        if (!marks || is_fenced) continue;
        if (*start && marks <= level) {
            *end = line;
            return true;
        }
        if (*start || !is_section(line, size, section)) continue;
        *start = line;
        level = marks;
    }
    return *start;
}

bool page_print(const struct terminal *terminal, const struct page *page, const char *section) {
    struct printing printing = {.terminal = *terminal, .has_gap = true};
    const char *line, *end;
    if (!find_part(page, section, &line, &end)) return false;
    if (printing.terminal.columns > COLUMNS_MAX) printing.terminal.columns = COLUMNS_MAX;
    while (line < end) {
        size_t size = strcspn(line, "\n");
        if (begins(line, "<!--") && !printing.is_code)
            line = strstr(line, "-->") ? strstr(line, "-->") : end;
        else
            print_line(&printing, line, size);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    end_text(&printing);
    return true;
}
