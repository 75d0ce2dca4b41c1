// SPDX-License-Identifier: Apache-2.0
// The recording of a process that runs, read again and again while it changes.
//
// Bytes are read, not mapped, so that nothing moves under the reader and a file that is cut off
// ends in an error and not in a signal. What refers to something is read before what it refers to:
// counters, then the cold halves, then records, code and scopes, then modules and their names. So
// whatever a counter leads to is complete. STRINGS is read to the same place each time: names of
// modules stay where they are.
#ifndef TOOL_MODEL_FOLLOW_H
#define TOOL_MODEL_FOLLOW_H

#include "tool/model/reader.h"
#include "tool/model/source.h"

struct follow {
    struct source source;
    struct recording recording;
    size_t room[RECORDING_SECTION_KINDS];  // bytes that a section's memory has room for
};

// Opens a recording that a process is writing; nothing but its header is read so far.
bool follow_open(const char *path, struct follow *follow, struct error *error);
void follow_close(struct follow *follow);

// Reads what changes: cells, heaps by name, threads, the timeline, snapshots.
bool follow_counters(struct follow *follow, struct error *error);
// Reads what figures_of and picture_of need, which are few bytes unless samples are recorded.
bool follow_figures(struct follow *follow, struct error *error);
// Reads the program's names, of heaps above all, which come without a new cell.
bool follow_scopes(struct follow *follow, struct error *error);
// Reads what new cells refer to: records, Python code, scopes, modules, strings.
bool follow_stacks(struct follow *follow, struct error *error);

// Gives back what follow_counters read, until it reads again. Its counters are not known meanwhile.
void follow_release(struct follow *follow);

#endif
