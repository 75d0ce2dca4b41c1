// SPDX-License-Identifier: Apache-2.0
#include "tool/tui/top_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "tool/tui/window.h"

enum {
    FOOT_LINES = 2,
    SHORT_LINES = 16,  // on lower screens the figures below the list are left out
    LINES_MIN = 6,
    COLUMNS_MIN = 20,
};

// What terminal_print ends a style with: of one whose text ended a line, it is on the next.
static const char style_end[] = "\033[0m";

// Text is made as for a pipe with colours, and then taken apart again.
struct canvas {
    char *text;
    size_t size;
    struct terminal terminal;
};

static const struct {
    const char *keys, *text;
} help_rows[] = {
    {"up down", "move; also page up and down, home, end"},
    {"enter right", "the stack alone: all figures, all frames"},
    {"esc left", "back to the list"},
    {"s 1 2 3 4", "sort: the next way; by live, growth, rate, temporary"},
    {"/", "only stacks through a function, file or library (a regular expression); / esc: all"},
    {"space f", "freeze: no more looks until it is pressed again"},
    {"m", "mark: growth counts from here"},
    {"v", "only what came since the mark and still lives, or all"},
    {"t", "take a snapshot, kept in the recording"},
    {"o", "recording of allocations off, on"},
    {"r", "rate of samples (of cairn run --sample)"},
    {"c", "by context: what each tenant, request, ... holds; enter: the stacks of one"},
    {"w", "allocators by name (--wrap), each a heap of its own; enter: the stacks of one"},
    {"p", "the processes that are being recorded"},
    {"a", "internal frames too, or not"},
    {"?", "this help"},
    {"q", "leave; the process runs on"},
};
enum { HELP_ROWS = sizeof help_rows / sizeof *help_rows, HELP_COLUMNS = 14 };

static bool canvas_open(struct canvas *canvas) {
    *canvas = (struct canvas){.text = NULL};
    canvas->terminal.out = open_memstream(&canvas->text, &canvas->size);
    canvas->terminal.columns = (size_t)COLS;
    canvas->terminal.is_terminal = canvas->terminal.has_color = true;
    return canvas->terminal.out != NULL;
}

// Puts lines [first, first + lines) of what was drawn at `y`; the line `selected` of them is
// reversed. Returns the line below.
static int canvas_put(struct canvas *canvas, int y, size_t first, int lines, size_t selected) {
    fclose(canvas->terminal.out);
    size_t number = 0;
    int bottom = y + lines;
    for (char *at = canvas->text; at && y < bottom; number++) {
        if (!strncmp(at, style_end, strlen(style_end))) at += strlen(style_end);
        if (!*at) break;
        char *end = at + strcspn(at, "\n"), *next = *end ? end + 1 : end;
        *end = 0;
        if (number >= first) {
            move(y++, 0);
            window_put_styled(number == selected ? A_REVERSE : A_NORMAL, at, (size_t)COLS);
        }
        at = next;
    }
    free(canvas->text);
    return y;
}

static int body_end(void) {
    return LINES - FOOT_LINES;
}

static int draw_title(struct top *top) {
    struct canvas canvas;
    if (!canvas_open(&canvas)) return 0;
    top_print_title(&canvas.terminal, &top->view);
    return canvas_put(&canvas, 0, 0, body_end(), SIZE_MAX);
}

// All figures at the foot of the screen, so that the list has its top; returns their first line.
static int draw_details(struct top *top) {
    struct canvas canvas;
    int lines = 0, end = body_end();
    if (LINES < SHORT_LINES || !canvas_open(&canvas)) return end;
    top_print_details(&canvas.terminal, &top->view);
    fflush(canvas.terminal.out);
    for (const char *at = canvas.text; (at = strchr(at, '\n')); at++) lines++;
    if (lines > end / 2) lines = end / 2;
    canvas_put(&canvas, end - lines, 0, lines, SIZE_MAX);
    return end - lines;
}

static void draw_list(struct top *top) {
    struct canvas canvas;
    int y = draw_title(top), foot = draw_details(top);
    if (!canvas_open(&canvas)) return;
    top_print_what(&canvas.terminal, &top->view, &top->sums);
    top_print_columns(&canvas.terminal, &top->view);
    y = canvas_put(&canvas, y, 0, foot - y, SIZE_MAX);
    top->list_lines = foot - y;
    if (top->list_lines <= 0 || !canvas_open(&canvas)) return;
    top_keep_in_view(top, (size_t)top->list_lines);
    size_t end = top->first + (size_t)top->list_lines;
    for (size_t i = top->first; i < end && i < top->rows.count; i++)
        if (!top_print_row(&canvas.terminal, &top->view, top->rows.items[i].stack))
            top->is_failed = true;
    canvas_put(&canvas, y, 0, top->list_lines, top->selected - top->first);
}

// A page that is longer than the screen, from the line on that the user went to.
static void scroll_put(struct top *top, struct canvas *canvas, int y) {
    fflush(canvas->terminal.out);
    size_t lines = 0, room = body_end() > y ? (size_t)(body_end() - y) : 1;
    for (const char *at = canvas->text; (at = strchr(at, '\n')); at++) lines++;
    size_t last = lines > room ? lines - room : 0;
    if (top->first > last) top->first = last;
    canvas_put(canvas, y, top->first, (int)room, SIZE_MAX);
}

static void draw_stack(struct top *top) {
    struct canvas canvas;
    int y = draw_title(top);
    if (!canvas_open(&canvas)) return;
    if (!top_print_stack(&canvas.terminal, &top->view, top->shown)) top->is_failed = true;
    scroll_put(top, &canvas, y);
}

static void draw_processes(struct top *top) {
    struct canvas canvas;
    if (!canvas_open(&canvas)) return;
    terminal_print(&canvas.terminal, STYLE_STRONG, "%zu %s recorded: enter looks at one\n",
                   top->processes.count,
                   top->processes.count == 1 ? "process is" : "processes are");
    bool has_sampled = top_has_sampled(top->processes.items, top->processes.count);
    top_print_process_columns(&canvas.terminal, has_sampled);
    int y = canvas_put(&canvas, 0, 0, body_end(), SIZE_MAX);
    top->list_lines = body_end() - y;
    if (top->list_lines <= 0 || !canvas_open(&canvas)) return;
    for (size_t i = 0; i < top->processes.count; i++)
        top_print_process(&canvas.terminal, &top->processes.items[i], has_sampled);
    top_keep_in_view(top, (size_t)top->list_lines);
    canvas_put(&canvas, y, top->first, top->list_lines, top->selected_process);
}

// Text in lines of at most `columns`, broken at spaces, each behind `indent` columns but the first.
static void print_wrapped(FILE *out, const char *text, size_t indent, size_t columns) {
    while (strlen(text) > columns) {
        size_t length = columns;
        while (length && text[length] != ' ') length--;
        if (!length) break;
        fprintf(out, "%.*s\n%*s", (int)length, text, (int)indent, "");
        text += length + 1;
    }
    fprintf(out, "%s\n", text);
}

static void draw_help(struct top *top) {
    struct canvas canvas;
    if (!canvas_open(&canvas)) return;
    for (size_t i = 0; i < HELP_ROWS; i++) {
        terminal_print(&canvas.terminal, STYLE_STRONG, " %-*s", HELP_COLUMNS - 1,
                       help_rows[i].keys);
        print_wrapped(canvas.terminal.out, help_rows[i].text, HELP_COLUMNS,
                      (size_t)(COLS - HELP_COLUMNS));
    }
    scroll_put(top, &canvas, 0);
}

// The longest of these that has room.
static const char *keys_line(const struct top *top) {
    static const char every_key[] =
        " enter stack  s sort  / search  m mark  v since mark  space freeze  c contexts  "
        "p processes  ? help  q leave";
    static const char *const list[] = {
        every_key, " enter stack  s sort  / search  m mark  c contexts  ? help  q leave",
        " s sort  ? help  q leave", " ? help"};
    static const char *const others[] = {" enter look  p again  left back  ? help  q leave",
                                         " left back  ? help  q leave", " ? help"};
    const char *const *lines = top->page == TOP_LIST ? list : others;
    if (top->page == TOP_STACK || top->page == TOP_HELP) lines++;
    while (strlen(*lines) > (size_t)COLS && strcmp(*lines, " ? help") != 0) lines++;
    return *lines;
}

void top_draw(struct top *top) {
    erase();
    if (LINES < LINES_MIN || COLS < COLUMNS_MIN) {
        move(0, 0);
        window_put(A_BOLD, "too small", (size_t)(COLS > 0 ? COLS : 1));
        refresh();
        return;
    }
    if (top->page == TOP_HELP) draw_help(top);
    if (top->page == TOP_PROCESSES) draw_processes(top);
    if (top->page == TOP_STACK) draw_stack(top);
    if (top->page == TOP_LIST) draw_list(top);
    move(LINES - 2, 0);
    window_put(A_BOLD, top->message, (size_t)COLS);
    move(LINES - 1, 0);
    window_put(A_DIM, keys_line(top), (size_t)COLS);
    refresh();
}
