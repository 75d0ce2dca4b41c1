// SPDX-License-Identifier: Apache-2.0
// A recording as a part of the page of `cairn open`: opened, its names looked up, written.
#ifndef TOOL_SERVE_PAGE_H
#define TOOL_SERVE_PAGE_H

#include "tool/query/heap_views.h"
#include "tool/render/diff.h"
#include "tool/web/web.h"

// Which stacks of the two sides of a comparison are the same, as `cairn diff` has it.
struct page_matching {
    struct diff diff;
    ARRAY(uint32_t) rows;  // of the stacks of one side, then of those of the other
    enum measure by;       // by what they held stacks are joined that differ in a few functions
};

void page_matching_start(struct page_matching *matching, enum measure by);
void page_matching_free(struct page_matching *matching);

struct page_part {
    const char *path;
    const char *shown_path;  // NULL: the same
    enum web_role role;
    const char *snapshot;          // also what was live at it; NULL: not asked for
    const struct heap_look *look;  // at its heap, of which there is to be a picture, or NULL
    const char *log;  // the event log, which is read for what it says of pools; NULL or "": none
    struct page_matching *matching;  // of a comparison, else NULL
    bool is_silent;                  // nothing is said on stderr
};

bool page_put_recording(struct web *web, const struct page_part *part, struct error *error);
bool page_put_matching(struct web *web, struct page_matching *matching, struct error *error);

#endif
