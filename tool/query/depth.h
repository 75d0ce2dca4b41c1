// SPDX-License-Identifier: Apache-2.0
// Recordings whose stacks were cut at different numbers of frames (cairn run --max-depth), or some
// of them at none, are compared and added up as if all had been recorded with the fewest: otherwise
// the same stack would be two.
#ifndef TOOL_QUERY_DEPTH_H
#define TOOL_QUERY_DEPTH_H

#include <stdint.h>

// The least depth met so far; 0: no recording was cut. Starts as zeros.
struct depth {
    uint32_t frames;
};

// A recording, and all that a word of a command line means. One that cannot be read is passed over:
// who opens it says so.
void depth_add_path(struct depth *depth, const char *path);
void depth_add_word(struct depth *depth, const char *word);

// Recordings that are opened from now on are cut so.
void depth_use(const struct depth *depth);

#endif
