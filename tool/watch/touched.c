// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/touched.h"

#include <stdlib.h>

#include "tool/proc/pagemap.h"
#include "tool/watch/live_at_start.h"

enum { BLOCKS_MOST = 1 << 14 };  // each takes a system call

static int by_cell(const void *left, const void *right) {
    const struct touched_cell *a = left, *b = right;
    return (a->cell > b->cell) - (a->cell < b->cell);
}

// One entry a cell.
static void add_up(struct touched *touched) {
    size_t kept = 0;
    if (!touched->cells.count) return;
    qsort(touched->cells.items, touched->cells.count, sizeof *touched->cells.items, by_cell);
    for (size_t i = 1; i < touched->cells.count; i++) {
        const struct touched_cell *next = &touched->cells.items[i];
        struct touched_cell *last = &touched->cells.items[kept];
        if (last->cell == next->cell) {
            last->bytes += next->bytes;
            last->resident_bytes += next->resident_bytes;
        } else {
            touched->cells.items[++kept] = *next;
        }
    }
    touched->cells.count = kept + 1;
}

static bool look(const struct live_at_start *live, const struct pagemap *pagemap,
                 struct touched *touched) {
    size_t large = 0, number = 0;
    for (size_t i = 0; i < live->blocks.count; i++)
        large += live->blocks.items[i].size >= pagemap->page_bytes;
    const size_t step = large / BLOCKS_MOST + 1;
    for (size_t i = 0; i < live->blocks.count; i++) {
        const struct live_found *found = &live->blocks.items[i];
        if (!found->cell || found->size < pagemap->page_bytes || number++ % step) continue;
        struct touched_cell *cell = array_push(&touched->cells);
        if (!cell) return false;
        *cell = (struct touched_cell){
            found->cell, found->size,
            pagemap_resident_bytes(pagemap, found->address, found->address + found->size)};
    }
    add_up(touched);
    return true;
}

bool touched_read(pid_t pid, const struct cairn_header *header, struct touched *touched) {
    struct live_at_start live = {0};
    *touched = (struct touched){0};
    struct pagemap pagemap = pagemap_open(pid);
    bool is_read = pagemap.file >= 0 && live_at_start_read(pid, header, &live) &&
                   look(&live, &pagemap, touched);
    live_at_start_free(&live);
    pagemap_close(&pagemap);
    if (!is_read) touched_free(touched);
    return is_read;
}

void touched_free(struct touched *touched) {
    array_free(&touched->cells);
}
