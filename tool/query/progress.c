// SPDX-License-Identifier: Apache-2.0
#include "tool/query/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/units.h"

enum { BAR_COLUMNS = 30 };
static const uint64_t waited_for_bytes = 64 << 20;  // a quarter of a second on a small machine

static bool is_hidden, is_waiting;
static unsigned wait_depth;

void progress_hide(void) {
    is_hidden = true;
}

static void show(void *context, size_t done, size_t total) {
    const uint64_t patience_ns = CLOCK_SECOND_NS;
    struct progress *progress = context;
    if (is_hidden || !total || !isatty(STDERR_FILENO) ||
        clock_now_ns() - progress->start_ns < patience_ns)
        return;
    size_t part = done < total ? done * BAR_COLUMNS / total : BAR_COLUMNS;
    char bar[BAR_COLUMNS + 1];
    for (size_t i = 0; i < BAR_COLUMNS; i++) bar[i] = i < part ? '#' : '.';
    bar[BAR_COLUMNS] = 0;
    fprintf(stderr, "\rcairn: %s %s %zu %%", progress->what, bar, done * 100 / total);
    fflush(stderr);
    progress->is_shown = true;
}

struct symbol_progress progress_start(struct progress *progress, const char *what) {
    *progress = (struct progress){.what = what, .start_ns = clock_now_ns()};
    return (struct symbol_progress){show, progress};
}

void progress_end(struct progress *progress) {
    if (progress->is_shown) fputs("\r\033[K", stderr);
    progress->is_shown = false;
}

void progress_wait(const char *what, uint64_t bytes) {
    if (wait_depth++ || is_hidden || bytes < waited_for_bytes || !isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\rcairn: %s (%s) ...", what, units_size((int64_t)bytes).text);
    fflush(stderr);
    is_waiting = true;
}

void progress_wait_end(void) {
    if (--wait_depth || !is_waiting) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    is_waiting = false;
}
