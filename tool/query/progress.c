// SPDX-License-Identifier: Apache-2.0
#include "tool/query/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "tool/base/clock.h"

enum { BAR_COLUMNS = 30 };

static bool is_hidden;

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
