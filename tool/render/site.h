// SPDX-License-Identifier: Apache-2.0
// Stacks that look the same in one line - the frame that leads (frames.h) with its line, what it
// called, then two callers - added up. A program has thousands of stacks and few such sites, so
// a short list of them says where the memory is.
#ifndef TOOL_RENDER_SITE_H
#define TOOL_RENDER_SITE_H

#include "tool/model/measure.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

#define SITE_FRAMES 3  // the frame that leads and two callers
// Places looked through for them, from the innermost; what is asked for before is resolved in vain.
#define SITE_PLACES_MAX 48

struct site {
    uint32_t node;         // of one of its stacks
    unsigned frame_count;  // 0: the stack was not recorded
    const struct frame *frames[SITE_FRAMES];
    const struct frame *callee;  // the library's function that the first one called; NULL: none
    struct measured measured;
    size_t stack_count;
    int64_t first_value;  // of the stack that `node` is of, the first of them in a ranking
    uint64_t first_id;
};

struct site_list {
    ARRAY(struct site) sites;
    struct index_table table;
    size_t hidden_count;  // internal frames inside of the first shown ones, over all stacks
};

// Sites of all stacks with a value above zero; the `most` highest first and in order (0: all), the
// others as they come. False without memory.
bool site_list_build(struct site_list *list, const struct profile *profile,
                     const struct frame_names *names, enum measure measure, size_t most,
                     bool are_all_shown, struct error *error);
void site_list_free(struct site_list *list);

// The same from stacks that the caller has, by their nodes: starts empty, ends with the sort.
// `frames` is for its use. False without memory.
bool site_list_add(struct site_list *list, const struct profile *profile,
                   const struct frame_names *names, uint32_t node, struct measured measured,
                   struct frame_list *frames);
void site_list_sort(struct site_list *list, size_t count);  // the first so many

// A site as the rest of a line that began with figures: "function  file.c:12  → what it called
// ← caller", or with two callers.

// `figures_columns` are taken already. Callers that have no room behind the place get a line of
// their own.
void site_print(const struct terminal *terminal, const struct site *site, size_t figures_columns);

// Of so many sites, the highest, those whose lines would read the same become one: these are to be
// in order. False without memory.
#define SITES_JOINED 2000u
bool site_lines_join(struct site_list *list, const struct terminal *terminal,
                     size_t figures_columns);

// Functions of the program's own that seem to wrap malloc and lead the sites of most blocks, as
// safe text "a, b", and how many blocks of all go through them. False: there are none.
bool site_wrappers_find(const struct site_list *list, char *names, size_t size, int64_t *blocks,
                        int64_t *all_blocks);

#endif
