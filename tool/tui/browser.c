// SPDX-License-Identifier: Apache-2.0
#include "tool/tui/browser.h"

#include <stdlib.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/annotate.h"
#include "tool/render/interval.h"
#include "tool/tui/browser_state.h"
#include "tool/tui/window.h"

enum {
    FIGURES_COLUMNS = 32,
    SAMPLED_COLUMNS = 21 + INTERVAL_NOTE_COLUMNS + 2,  // the same with intervals instead of blocks
    HEAD_LINES = 2,  // what the tree is of, and the columns' names
    FOOT_LINES = 2,
    SIDE_BY_SIDE_COLUMNS = 120,  // from here on the source stands beside the tree, else below it
    LABEL_COLUMNS_MIN = 8,
    INPUT_BYTES = 128,
    LINE_BYTES = 1024,
};

struct screen {
    struct browser browser;
    size_t top;  // first line shown
    bool has_source, has_help, is_done;
    char message[LINE_BYTES];
    struct pattern *pattern;  // of the last search
    int tree_columns, tree_lines;
};

static const char *const help_rows[][2] = {
    {"up down pgup pgdn home end", "move"},
    {"right enter", "unfold"},
    {"left", "fold"},
    {"*", "unfold the largest path"},
    {"/  n", "search (regular expression), again"},
    {"s", "sort by peak, exit, allocated, calls"},
    {"i", "from the start, or from allocators"},
    {"c  C", "callees, callers of the function"},
    {"u", "the whole tree again"},
    {"v", "source beside"},
    {"L", "by line"},
    {"a", "internal frames"},
    {"?", "this help"},
    {"q", "leave"},
};
enum { HELP_ROWS = sizeof help_rows / sizeof *help_rows, HELP_COLUMNS = 29 };

static void draw_columns(const struct browser *browser) {
    const char *count = measure_about(browser->view.by)->is_bytes ? "blocks" : "calls";
    char text[LINE_BYTES];
    if (browser->profile->sampling.is_on)
        snprintf(text, sizeof text, "%6s %10s   %-*s  function", "share", "total",
                 INTERVAL_NOTE_COLUMNS, "interval");
    else
        snprintf(text, sizeof text, "%6s %10s %10s    %s", "share", "total", count,
                 recording_is_of_owners(browser->profile->recording) ? "owner" : "function");
    move(1, 0);
    window_put(A_DIM, text, (size_t)COLS);
}

// Words of the heading: what owners keep is kept now, not at an end, from roots inwards.
struct head_words {
    const char *moment, *outwards, *inwards, *callers, *callees;
};

static struct head_words words_of(const struct browser *browser) {
    if (recording_is_of_owners(browser->profile->recording))
        return (struct head_words){"kept", "by what is kept", "by who keeps it", "owners of ",
                                   "kept by "};
    return (struct head_words){measure_about(browser->view.by)->snapshot, "by allocating function",
                               "from the start", "callers of ", "callees of "};
}

static void draw_head(const struct screen *screen) {
    const struct browser *browser = &screen->browser;
    const struct measure_row *about = measure_about(browser->view.by);
    char text[LINE_BYTES], label[LINE_BYTES / 2] = "";
    if (browser->view.pivot) frame_label(browser->view.pivot, label, sizeof label, LINE_BYTES / 4);
    struct measured whole = call_measured(&browser->calls, browser->calls.nodes.items);
    const struct head_words words = words_of(browser);
    const char *direction = browser->view.is_inverted ? words.outwards : words.inwards;
    snprintf(text, sizeof text, " %s%s%s %s, %s%s%s",
             about->is_bytes ? units_size(measured_shown(whole)).text
                             : units_count(measured_shown(whole)).text,
             interval_amount(whole, about->is_bytes, false).text, interval_samples(whole).text,
             words.moment,
             !browser->view.pivot        ? direction
             : browser->view.is_inverted ? words.callers
                                         : words.callees,
             label, browser->view.has_all_frames ? ", all frames" : "");
    move(0, 0);
    window_put(A_BOLD, text, (size_t)COLS);
    draw_columns(browser);
}

static void draw_line(const struct screen *screen, int y, const struct browser_line *line,
                      bool is_selected) {
    const struct browser *browser = &screen->browser;
    const struct call *call = &browser->calls.nodes.items[line->node];
    const struct measure_row *about = measure_about(browser->view.by);
    int64_t whole = measure_total(browser->view.by, browser->profile).value;
    char label[LINE_BYTES] = STACK_NOT_RECORDED, location[LINE_BYTES] = "";
    const char *fold = !call->first_child              ? " "
                       : browser->are_open[line->node] ? "\xe2\x96\xbe"
                                                       : "\xe2\x96\xb8";
    int base = is_selected ? A_REVERSE : A_NORMAL;
    bool is_sampled = browser->profile->sampling.is_on;
    size_t columns = (size_t)screen->tree_columns, indent = line->level;
    if (indent > columns / 3) indent = columns / 3;
    move(y, 0);
    attron(base);
    printw("%6s %10s ", units_percent(call->value, whole).text,
           about->is_bytes ? units_size(call->value).text : units_count(call->value).text);
    if (is_sampled) {
        struct unit_text note = interval_note(call_measured(&browser->calls, call));
        printw("  %s%*s", note.text, INTERVAL_NOTE_COLUMNS - (int)text_columns(note.text), "");
    } else {
        printw("%10s  ", units_count(about->is_bytes ? call->blocks : call->calls).text);
    }
    printw("%*s", (int)indent, "");
    attroff(base);
    window_put(base, fold, 1);
    window_put(base, " ", 1);
    size_t used = (is_sampled ? SAMPLED_COLUMNS : FIGURES_COLUMNS) + indent + 1;
    size_t room = columns > used + LABEL_COLUMNS_MIN ? columns - used : LABEL_COLUMNS_MIN;
    if (call->frame) {
        call_location(call, location, sizeof location);
        text_cut(location, room / 2);
        frame_label(call->frame, label, sizeof label,
                    *location ? room - text_columns(location) - 1 : room);
    }
    used = window_put(base | (is_selected ? 0 : window_accent()), label, room);
    if (*location && used + 1 < room) {
        window_put(base, " ", 1);
        used += 1 + window_put(base | A_DIM, location, room - used - 1);
    }
    for (; is_selected && used < room; used++) window_put(base, " ", 1);
}

// Keeps the selected line on the screen.
static void keep_in_view(struct screen *screen) {
    size_t selected = screen->browser.selected, height = (size_t)screen->tree_lines;
    if (selected < screen->top) screen->top = selected;
    if (selected >= screen->top + height) screen->top = selected - height + 1;
}

static void draw_tree(struct screen *screen) {
    keep_in_view(screen);
    for (int y = 0; y < screen->tree_lines; y++) {
        size_t index = screen->top + (size_t)y;
        if (index >= screen->browser.lines.count) break;
        draw_line(screen, HEAD_LINES + y, &screen->browser.lines.items[index],
                  index == screen->browser.selected);
    }
}

static void draw_source_lines(FILE *file, const struct frame *frame, int y, int x, int lines,
                              int columns) {
    char line[LINE_BYTES], safe[LINE_BYTES];
    unsigned number = 0,
             first = frame->line > (unsigned)lines / 2 ? frame->line - (unsigned)lines / 2 : 1;
    while (lines > 0 && fgets(line, sizeof line, file)) {
        if (++number < first) continue;
        line[strcspn(line, "\r\n")] = 0;
        for (char *tab = line; (tab = strchr(tab, '\t'));) *tab = ' ';
        text_escape(safe, sizeof safe, line);
        bool is_here = number == frame->line;
        move(y++, x);
        attron(A_DIM);
        printw("%5u ", number);
        attroff(A_DIM);
        window_put(is_here ? A_REVERSE : A_NORMAL, safe, (size_t)(columns > 7 ? columns - 7 : 1));
        lines--;
    }
}

static void draw_source(const struct screen *screen, int y, int x, int lines, int columns) {
    const struct frame *frame = browser_source(&screen->browser);
    char text[LINE_BYTES];
    move(y, x);
    if (!frame || !frame->file) {
        window_put(A_DIM, " no source is known here", (size_t)columns);
        return;
    }
    text_escape(text, sizeof text, frame->file);
    window_put(A_UNDERLINE, text, (size_t)columns);
    FILE *file = annotate_open_source(frame->file);
    if (file) {
        draw_source_lines(file, frame, y + 1, x, lines - 1, columns);
        fclose(file);
        return;
    }
    move(y + 1, x);
    window_put(A_DIM, " cannot be read", (size_t)columns);
}

static void draw_help(void) {
    for (int i = 0; i < HELP_ROWS; i++) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "  %-*s%s", HELP_COLUMNS, help_rows[i][0], help_rows[i][1]);
        move(HEAD_LINES + 1 + i, 0);
        window_put(A_NORMAL, line, (size_t)COLS);
    }
}

// Draws the keys that there is room for.
static void draw_keys(void) {
    static const char *const choices[] = {
        (" right unfold  left fold  * path  / search  s sort  i invert  c C callees callers  "
         "v source  ? help  q leave"),
        " right unfold  left fold  / search  s sort  v source  ? help  q leave", " ? help"};
    const char *const *line = choices;
    while (strlen(*line) > (size_t)COLS && line < choices + 2) line++;
    move(LINES - 1, 0);
    window_put(A_DIM, *line, (size_t)COLS);
}

static void draw(struct screen *screen) {
    int body = LINES - HEAD_LINES - FOOT_LINES;
    bool is_beside = screen->has_source && COLS >= SIDE_BY_SIDE_COLUMNS;
    screen->tree_columns = is_beside ? COLS * 3 / 5 : COLS;
    screen->tree_lines = screen->has_source && !is_beside ? body * 3 / 5 : body;
    if (screen->tree_lines < 1) screen->tree_lines = 1;
    erase();
    draw_head(screen);
    if (screen->has_help) {
        draw_help();
    } else {
        draw_tree(screen);
        if (is_beside)
            draw_source(screen, HEAD_LINES, screen->tree_columns + 1, body,
                        COLS - screen->tree_columns - 1);
        else if (screen->has_source)
            draw_source(screen, HEAD_LINES + screen->tree_lines, 0, body - screen->tree_lines,
                        COLS);
    }
    move(LINES - 2, 0);
    window_put(A_BOLD, screen->message, (size_t)COLS);
    draw_keys();
    refresh();
}

static bool search(struct screen *screen, bool is_new) {
    char input[INPUT_BYTES];
    struct error error;
    bool is_found;
    if (is_new) {
        struct pattern *pattern;
        if (!window_input("search: ", input, sizeof input)) return true;
        if (!pattern_compile(input, &pattern, &error)) {
            snprintf(screen->message, sizeof screen->message, "%s", error.text);
            return true;
        }
        pattern_free(screen->pattern);
        screen->pattern = pattern;
    }
    if (!screen->pattern) return true;
    if (!browser_search(&screen->browser, screen->pattern, &is_found)) return false;
    if (!is_found) snprintf(screen->message, sizeof screen->message, "nothing matches");
    return true;
}

static bool change_view(struct screen *screen, int key, struct error *error) {
    static const enum measure order[] = {[MEASURE_PEAK] = MEASURE_EXIT,
                                         [MEASURE_EXIT] = MEASURE_ALLOCATED,
                                         [MEASURE_ALLOCATED] = MEASURE_CALLS,
                                         [MEASURE_CALLS] = MEASURE_PEAK,
                                         [MEASURE_PEAK_BLOCKS] = MEASURE_EXIT_BLOCKS,
                                         [MEASURE_EXIT_BLOCKS] = MEASURE_PEAK_BLOCKS,
                                         [MEASURE_SHORT] = MEASURE_TEMPORARY,
                                         [MEASURE_TEMPORARY] = MEASURE_SLACK,
                                         [MEASURE_SLACK] = MEASURE_ALIGNMENT,
                                         [MEASURE_ALIGNMENT] = MEASURE_PEAK,
                                         [MEASURE_AT] = MEASURE_EXIT,
                                         [MEASURE_AT_BLOCKS] = MEASURE_EXIT_BLOCKS};
    struct view_options *view = &screen->browser.view;
    if (key == 's') view->by = order[view->by];
    if (key == 'i') view->is_inverted = !view->is_inverted;
    if (key == 'L') view->has_lines = !view->has_lines;
    if (key == 'a') view->has_all_frames = !view->has_all_frames;
    screen->top = 0;
    return browser_rebuild(&screen->browser, error);
}

static bool handle(struct screen *screen, int key, struct error *error) {
    struct browser *browser = &screen->browser;
    long page = screen->tree_lines;
    switch (key) {
    case 'q':
    case 'Q':
        screen->is_done = true;
        return true;
    case KEY_UP:
    case 'k':
        browser_move(browser, -1);
        return true;
    case KEY_DOWN:
    case 'j':
        browser_move(browser, 1);
        return true;
    case KEY_PPAGE:
        browser_move(browser, -page);
        return true;
    case KEY_NPAGE:
        browser_move(browser, page);
        return true;
    case KEY_HOME:
    case 'g':
        browser_move(browser, -(long)browser->lines.count);
        return true;
    case KEY_END:
    case 'G':
        browser_move(browser, (long)browser->lines.count);
        return true;
    case KEY_RIGHT:
    case 'l':
    case '\n':
    case KEY_ENTER:
        return browser_unfold(browser);
    case KEY_LEFT:
    case 'h':
        return browser_fold(browser);
    case '*':
        return browser_unfold_path(browser);
    case '/':
        return search(screen, true);
    case 'n':
        return search(screen, false);
    case 'c':
    case 'C':
        screen->top = 0;
        return browser_pivot(browser, key == 'C', error);
    case 's':
    case 'i':
    case 'a':
    case 'L':
        return change_view(screen, key, error);
    case 'u':
        screen->top = 0;
        return browser_whole(browser, error);
    case 'v':
        screen->has_source = !screen->has_source;
        return true;
    case '?':
        screen->has_help = !screen->has_help;
        return true;
    default:
        return true;
    }
}

bool browser_run(const struct profile *profile, const struct frame_names *names,
                 const struct view_options *view, struct error *error) {
    struct screen screen = {0};
    bool is_ok = browser_open(&screen.browser, profile, names, view, error);
    if (is_ok) {
        is_ok = browser_unfold_path(&screen.browser);
        browser_move(&screen.browser, -(long)screen.browser.lines.count);
        window_start();
        while (is_ok && !screen.is_done) {
            draw(&screen);
            int key = getch();
            *screen.message = 0;
            if (key == ERR) break;           // the terminal is gone
            if (screen.has_help) key = '?';  // any key closes it
            is_ok = handle(&screen, key, error);
        }
        endwin();
    }
    if (!is_ok && !*error->text) error_set(error, "no memory for the tree");
    pattern_free(screen.pattern);
    browser_close(&screen.browser);
    return is_ok;
}
