// SPDX-License-Identifier: Apache-2.0
// A look and a drawing take a hundredth of the time at most: where they take long, the next one
// comes later.
#include "tool/tui/top.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "tool/base/clock.h"
#include "tool/tui/top_draw.h"
#include "tool/tui/window.h"

enum {
    PAUSE_SHARE = 100,
    ARGUMENT_BYTES = 64,
    KEY_ESCAPE = 27,
    KEY_BACKSPACE_ASCII = 127,
};

struct screen {
    struct top *top;
    const struct top_host *host;
    unsigned interval_ms;
    uint64_t next_look_ns;  // CLOCK_MONOTONIC
    bool is_done;
    enum top_page before;  // the page that help was asked for on
};

static void tell(struct top *top, const struct error *error) {
    snprintf(top->message, sizeof top->message, "%s", error->text);
}

// Names for what is on the screen, and of everything where a search needs them.
static void find_names(struct screen *screen, bool is_wanted) {
    struct top *top = screen->top;
    struct error error;
    if (!top->view.live) return;
    size_t first = top->pattern ? 0 : top->first, count = (size_t)LINES;
    if (top->pattern) count = SIZE_MAX;
    if (!screen->host->find_names(screen->host->context, top, first, count, is_wanted, &error))
        tell(top, &error);
}

static void list(struct screen *screen) {
    if (!top_list(screen->top)) screen->top->is_failed = true;
}

static void look(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    bool is_due = top->view.live && !top->view.is_frozen && !top->view.over;
    if (!is_due) return;
    if (!screen->host->look(screen->host->context, top, &error)) tell(top, &error);
    if (top->pattern) find_names(screen, false);  // which stacks match depends on their names
    list(screen);
    if (!top->pattern) find_names(screen, false);
}

static void set_next_look(struct screen *screen, uint64_t taken_ns) {
    const uint64_t ns_per_ms = 1000000;
    uint64_t pause_ns = screen->interval_ms * ns_per_ms;
    if (taken_ns * PAUSE_SHARE > pause_ns) pause_ns = taken_ns * PAUSE_SHARE;
    screen->next_look_ns = clock_ns(CLOCK_MONOTONIC) + pause_ns;
}

static void act(struct screen *screen, enum top_action action, const char *argument) {
    struct top *top = screen->top;
    struct error error;
    if (!top->view.live || top->view.over)
        snprintf(top->message, sizeof top->message, "it has ended");
    else if (!screen->host->act(screen->host->context, top, action, argument, &error))
        tell(top, &error);
    list(screen);
}

static void ask_rate(struct screen *screen) {
    char size[ARGUMENT_BYTES];
    timeout(-1);
    if (window_input("one sample in so many bytes (as 256KiB): ", size, sizeof size))
        act(screen, TOP_RATE, size);
}

static void ask_search(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    char text[sizeof top->search];
    timeout(-1);
    if (!window_input("search: ", text, sizeof text)) *text = 0;
    if (!top_search(top, text, &error)) {
        tell(top, &error);
        return;
    }
    find_names(screen, true);
    list(screen);
    if (*text && !top->rows.count)
        snprintf(top->message, sizeof top->message, "nothing matches (/ esc: all stacks)");
}

static bool show(struct screen *screen, enum live_part_kind kind, struct live_set of) {
    struct error error;
    if (!screen->host->show(screen->host->context, screen->top, kind, &of, &error)) {
        tell(screen->top, &error);
        return false;
    }
    return true;
}

// The contexts by the key that was last, or by whole sets of labels.
static void show_contexts(struct screen *screen) {
    const char *key = screen->top->key;
    show(screen, LIVE_BY_LABELS, live_set_of(*key ? key : NULL));
}

// One after the other: all stacks, each key of the program's labels, and whole sets where there are
// several keys.
static void show_next_contexts(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    enum live_part_kind kind = top->view.live->part.kind;
    bool is_by_key = kind == LIVE_BY_LABELS && *top->key;
    char *next = NULL, *first = NULL;
    if (kind == LIVE_OF_LABELS) return show_contexts(screen);
    bool is_ok = screen->host->next_key(screen->host->context, top, NULL, &first, &error) &&
                 screen->host->next_key(screen->host->context, top, is_by_key ? top->key : NULL,
                                        &next, &error);
    bool has_several = is_by_key && first && strcmp(first, top->key) != 0;
    if (!is_ok)
        tell(top, &error);
    else if (!first)
        snprintf(top->message, sizeof top->message, "the program entered no context");
    else if (kind == LIVE_BY_LABELS && (!is_by_key || (!next && !has_several)))
        show(screen, LIVE_WHOLE, live_set_of(NULL));
    else {
        snprintf(top->key, sizeof top->key, "%s", next ? next : "");
        show_contexts(screen);
    }
    free(next);
    free(first);
}

static void show_heaps(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    bool has_any = false;
    if (top->view.live->part.kind == LIVE_BY_HEAPS)
        show(screen, LIVE_WHOLE, live_set_of(NULL));
    else if (!screen->host->has_heaps(screen->host->context, top, &has_any, &error))
        tell(top, &error);
    else if (!has_any)
        snprintf(top->message, sizeof top->message, "no allocator by name was used (--wrap)");
    else
        show(screen, LIVE_BY_HEAPS, live_set_of(NULL));
}

// The stacks of the context or heap that is selected.
static void enter_set(struct screen *screen) {
    struct top *top = screen->top;
    uint32_t row;
    if (!top_selected(top, &row)) return;
    struct live_set set = top->view.live->part.sets.items[row];
    bool is_heap = top->view.live->part.kind == LIVE_BY_HEAPS;
    if (set.bytes)
        show(screen, is_heap ? LIVE_OF_HEAP : LIVE_OF_LABELS, set);
    else
        snprintf(top->message, sizeof top->message, "these have no label of that kind");
}

static void show_processes(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    top->page = TOP_PROCESSES;
    if (!screen->host->list(screen->host->context, top, &error)) tell(top, &error);
    top->selected_process = top->first = 0;
    for (size_t i = 0; i < top->processes.count; i++)
        if (top->processes.items[i].pid == top->view.pid) top->selected_process = i;
}

static void enter(struct screen *screen) {
    struct top *top = screen->top;
    struct error error;
    if (top->page == TOP_LIST && live_part_is_of_sets(&top->view.live->part)) {
        enter_set(screen);
    } else if (top->page == TOP_LIST) {
        top_enter(top);
    } else if (top->page == TOP_PROCESSES && top->processes.count) {
        int pid = top->processes.items[top->selected_process].pid;
        if (!screen->host->attach(screen->host->context, top, pid, &error)) tell(top, &error);
        screen->next_look_ns = 0;
    }
}

static void leave_page(struct screen *screen) {
    struct top *top = screen->top;
    if (top->page == TOP_HELP && screen->before != TOP_HELP) {
        top->page = screen->before;
    } else if (top->page == TOP_LIST && top->view.live->part.kind == LIVE_OF_LABELS) {
        show_contexts(screen);
    } else if (top->page == TOP_LIST && top->view.live->part.kind == LIVE_OF_HEAP) {
        show_heaps(screen);
    } else if (top->page == TOP_LIST && live_part_is_of_sets(&top->view.live->part)) {
        show(screen, LIVE_WHOLE, live_set_of(NULL));
    } else if (top->view.live) {
        top->page = TOP_LIST;
    }
    if (top->page != TOP_STACK) top->first = 0;
}

static void show_survivors(struct screen *screen) {
    struct top *top = screen->top;
    if (top->view.live->profile.sampling.is_on) {
        snprintf(top->message, sizeof top->message, "which samples are younger is not known");
        return;
    }
    if (live_part_is_of_heaps(&top->view.live->part)) {
        snprintf(top->message, sizeof top->message,
                 "which blocks of a heap by name are younger is not known");
        return;
    }
    if (!top->view.live->mark_generation) {
        snprintf(top->message, sizeof top->message, "there is no mark yet: m sets one");
        return;
    }
    top->view.are_survivors = !top->view.are_survivors;
    list(screen);
}

// Keys that move or change the page.
static bool handle_move(struct screen *screen, int key) {
    struct top *top = screen->top;
    long page = top->list_lines > 1 ? top->list_lines : 1;
    const long all = 1L << 40;
    switch (key) {
    case KEY_UP:
    case 'k':
        return top_move(top, -1), true;
    case KEY_DOWN:
    case 'j':
        return top_move(top, 1), true;
    case KEY_PPAGE:
        return top_move(top, -page), true;
    case KEY_NPAGE:
        return top_move(top, page), true;
    case KEY_HOME:
    case 'g':
        return top_move(top, -all), true;
    case KEY_END:
    case 'G':
        return top_move(top, all), true;
    case KEY_RIGHT:
    case 'l':
    case '\n':
    case KEY_ENTER:
        return enter(screen), true;
    case KEY_LEFT:
    case 'h':
    case KEY_ESCAPE:
    case KEY_BACKSPACE:
    case KEY_BACKSPACE_ASCII:
        return leave_page(screen), true;
    case 'p':
        return show_processes(screen), true;
    case '?':
        if (top->page == TOP_HELP) return leave_page(screen), true;
        screen->before = top->page;
        top->page = TOP_HELP;
        top->first = 0;
        return true;
    case 'q':
    case 'Q':
        if (top->page == TOP_HELP) return leave_page(screen), true;
        screen->is_done = true;
        return true;
    default:
        return false;
    }
}

// Keys that are about the process that is looked at.
static void handle_process(struct screen *screen, int key) {
    struct top *top = screen->top;
    if (!top->view.live) return;
    switch (key) {
    case 's':
        top_sort(top, (top->view.by + 1) % LIVE_MEASURES);
        break;
    case '1':
    case '2':
    case '3':
    case '4':
        top_sort(top, (enum live_measure)(key - '1'));
        break;
    case '/':
        ask_search(screen);
        return;
    case ' ':
    case 'f':
        top->view.is_frozen = !top->view.is_frozen;
        return;
    case 'm':
        act(screen, TOP_MARK, "");
        return;
    case 't':
        act(screen, TOP_SNAPSHOT, "");
        return;
    case 'o':
        act(screen, TOP_SWITCH, "");
        return;
    case 'r':
        ask_rate(screen);
        return;
    case 'v':
        show_survivors(screen);
        return;
    case 'c':
        show_next_contexts(screen);
        return;
    case 'w':
        show_heaps(screen);
        return;
    case 'a':
        top->view.has_all_frames = !top->view.has_all_frames;
        return;
    default:
        return;
    }
    list(screen);
}

// Waits for a key until the next look is due: the key, 0 for none, -1: the terminal is gone.
static int wait_for_key(const struct screen *screen) {
    const uint64_t ns_per_ms = 1000000;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int pause_ms = -1;
    const struct top_view *view = &screen->top->view;
    if (view->live && !view->is_frozen && !view->over)
        pause_ms = screen->next_look_ns > now_ns
                       ? (int)((screen->next_look_ns - now_ns) / ns_per_ms) + 1
                       : 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&input, 1, pause_ms);
    if (ready < 0 && errno != EINTR) return -1;
    timeout(0);
    int key = getch();
    if (key != ERR) return key;
    return ready > 0 ? -1 : 0;
}

bool top_run(struct top *top, const struct top_host *host, unsigned interval_ms,
             struct error *error) {
    struct screen screen = {.top = top, .host = host, .interval_ms = interval_ms};
    window_start();
    if (!top->view.live) show_processes(&screen);
    while (!screen.is_done && !top->is_failed) {
        uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        bool is_due = clock_ns(CLOCK_MONOTONIC) >= screen.next_look_ns;
        if (is_due) look(&screen);
        top_draw(top);
        if (is_due) set_next_look(&screen, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
        int key = wait_for_key(&screen);
        if (key < 0) break;
        if (!key || key == KEY_RESIZE) continue;
        *top->message = 0;
        if (!handle_move(&screen, key)) handle_process(&screen, key);
        if (top->list_lines > 0) top_keep_in_view(top, (size_t)top->list_lines);
        find_names(&screen, true);
    }
    endwin();
    return !top->is_failed || error_set(error, "no memory for the screen");
}
