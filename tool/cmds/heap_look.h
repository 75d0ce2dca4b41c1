// SPDX-License-Identifier: Apache-2.0
// A look at the heap of a process, which is stopped for a moment, or of a core dump:
//
//     heap_look_take     its memory; says where its recording is, if it has one
//     heap_look_survey   the figures, with the recording's profile, which was opened in between:
//                        then it has every cell that the map of blocks names
#ifndef TOOL_CMDS_HEAP_LOOK_H
#define TOOL_CMDS_HEAP_LOOK_H

#include <limits.h>

#include "tool/live/image.h"
#include "tool/model/heap_state.h"
#include "tool/model/profile.h"

struct heap_look {
    bool is_core, is_recorded;
    char path[PATH_MAX];  // of the recording
    struct core_image core;
    struct live_image live;
    struct cairn_header header;
};

// A process' number, or the path of a core dump; NULL: neither.
bool heap_look_is_possible(const char *word);

// False with an error that names the process or the core; then there is nothing to close.
bool heap_look_take(const char *word, struct heap_look *look, struct error *error);

// `profile`: of the recording, not narrowed; NULL if it has none.
bool heap_look_survey(const struct heap_look *look, const struct profile *profile,
                      struct heap_state *state, struct error *error);

void heap_look_close(struct heap_look *look);

#endif
