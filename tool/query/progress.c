// SPDX-License-Identifier: Apache-2.0
#include "tool/query/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR_COLUMNS = 30 };

static bool is_hidden;

void progress_hide(void) {
    is_hidden = true;
}

static uint64_t now_ns(void) {
    const uint64_t ns_per_s = 1000000000u;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
}

static void show(void *context, size_t done, size_t total) {
    const uint64_t patience_ns = 1000000000u;
    struct progress *progress = context;
    if (is_hidden || !total || !isatty(STDERR_FILENO) ||
        now_ns() - progress->start_ns < patience_ns)
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
    *progress = (struct progress){.what = what, .start_ns = now_ns()};
    return (struct symbol_progress){show, progress};
}

void progress_end(struct progress *progress) {
    if (progress->is_shown) fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
