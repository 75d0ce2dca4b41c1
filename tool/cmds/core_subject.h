// SPDX-License-Identifier: Apache-2.0
// A core dump, or a process as it stood for a moment, as `cairn core` looks at it: its memory, the
// recording in it or beside it, and what is worked out on demand: glibc's heap, the types of
// blocks, which of them can be reached.
#ifndef TOOL_CMDS_CORE_SUBJECT_H
#define TOOL_CMDS_CORE_SUBJECT_H

#include "tool/heap/blocks.h"
#include "tool/heap/reach.h"
#include "tool/heap/types.h"
#include "tool/query/heap_views.h"

struct core_subject {
    struct heap_look look;
    const struct core_image *core;  // of the look
    bool is_recorded;
    struct cairn_header header;  // of the recording
    struct core_blocks blocks;   // in use and recorded
    struct opened opened;
    struct glibc_heap heap;  // glibc's; moves into `reach` when that is there
    struct core_reach reach;
    struct core_types *types;
    bool has_heap, has_reach;
    bool has_foreign;  // some recorded blocks are another allocator's than glibc's
};

// `word`, `wish`: as heap_look_take has them. `beside`: the file of a core's recording, NULL: it is
// in the core if there is one. A line on stderr says for how long a process was stopped. The
// subject must stay where it is.
bool core_subject_open(const char *word, const struct heap_wish *wish, const char *beside,
                       struct core_subject *subject, struct error *error);
void core_subject_close(struct core_subject *subject);

// False if there is no heap of glibc's in it.
bool core_need_heap(struct core_subject *subject, struct error *error);
// Which block an address lies in; of a recorded process any allocator will do.
bool core_need_map(struct core_subject *subject, struct error *error);
// And which blocks are reachable.
bool core_need_reach(struct core_subject *subject, struct error *error);
bool core_need_types(struct core_subject *subject, struct error *error);

// The heap, once core_need_heap or core_need_reach said that it is there.
const struct glibc_heap *core_heap_of(const struct core_subject *subject);

// Lines on stderr about what limits the answer: modules whose names are missing, an allocator whose
// own memory counts as the program's.
void core_print_doubts(const struct core_subject *subject);

// The library of another allocator that the process had mapped; NULL: none is known by its name.
const char *core_other_allocator(const struct core_subject *subject);

#endif
