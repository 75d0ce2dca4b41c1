// SPDX-License-Identifier: Apache-2.0
// A program's own wrappers of malloc, which stand in front of every answer: functions of its own
// that are called so, lead many sites, and have several callers.
#include <stdio.h>
#include <string.h>

#include "tool/render/site.h"

enum { WRAPPERS_MOST = 16, CALLERS_LEAST = 3, NAMED_MOST = 3, NAME_COLUMNS = 40 };

struct wrapper {
    const struct frame *frame;
    const struct frame *callers[CALLERS_LEAST];
    unsigned caller_count;
    int64_t blocks;
};

// Wraps instead of overflowing: a damaged file may hold any number.
static int64_t sum(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool may_be_wrapper(const struct site *site) {
    const struct frame *frame = site->frame_count ? site->frames[0] : NULL;
    return frame && frame->is_own && frame->function && strcasestr(frame->function, "alloc");
}

static void note_caller(struct wrapper *wrapper, const struct site *site) {
    if (site->frame_count < 2 || wrapper->caller_count == CALLERS_LEAST) return;
    for (unsigned i = 0; i < wrapper->caller_count; i++)
        if (frame_is_same_function(wrapper->callers[i], site->frames[1])) return;
    wrapper->callers[wrapper->caller_count++] = site->frames[1];
}

// The entry of the site's function, a new one for the first of its sites; NULL: there are too many.
static struct wrapper *entry_of(struct wrapper *wrappers, size_t *count, const struct site *site) {
    for (size_t i = 0; i < *count; i++)
        if (frame_is_same_function(wrappers[i].frame, site->frames[0])) return &wrappers[i];
    if (*count == WRAPPERS_MOST) return NULL;
    wrappers[*count] = (struct wrapper){.frame = site->frames[0]};
    return &wrappers[(*count)++];
}

// Takes the wrapper with the most blocks of those that are left; NULL: none is.
static struct wrapper *take_largest(struct wrapper *wrappers, size_t count) {
    struct wrapper *largest = NULL;
    for (size_t i = 0; i < count; i++)
        if (wrappers[i].caller_count == CALLERS_LEAST &&
            (!largest || wrappers[i].blocks > largest->blocks))
            largest = &wrappers[i];
    if (largest) largest->caller_count = 0;
    return largest;
}

bool site_wrappers_find(const struct site_list *list, char *names, size_t size, int64_t *blocks,
                        int64_t *all_blocks) {
    struct wrapper wrappers[WRAPPERS_MOST];
    size_t count = 0, used = 0;
    *blocks = *all_blocks = 0;
    *names = 0;
    for (size_t i = 0; i < list->sites.count; i++) {
        const struct site *site = &list->sites.items[i];
        *all_blocks = sum(*all_blocks, site->measured.blocks);
        struct wrapper *wrapper = may_be_wrapper(site) ? entry_of(wrappers, &count, site) : NULL;
        if (!wrapper) continue;
        wrapper->blocks = sum(wrapper->blocks, site->measured.blocks);
        note_caller(wrapper, site);
    }
    for (unsigned named = 0; named < NAMED_MOST && used < size; named++) {
        char label[FRAME_TEXT_BYTES];
        const struct wrapper *wrapper = take_largest(wrappers, count);
        if (!wrapper) break;
        *blocks = sum(*blocks, wrapper->blocks);
        frame_label(wrapper->frame, label, sizeof label, NAME_COLUMNS);
        used += (size_t)snprintf(names + used, size - used, "%s%s", named ? ", " : "", label);
    }
    return *blocks > 0 && *blocks > *all_blocks / 2;
}
