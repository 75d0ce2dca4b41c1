// SPDX-License-Identifier: Apache-2.0
// Several profiles added up to one: of the processes of a run, or of several runs. One after the
// other is added and may be closed, so that memory grows with the distinct stacks and not with the
// number of recordings.
//
// Modules are the same if their build-ids are (without one: their paths), wherever they were
// loaded. Each process was at its peak at a time of its own: the sum of the peaks is at least the
// peak that all had together. The sum has no timeline.
#ifndef TOOL_MODEL_MERGE_H
#define TOOL_MODEL_MERGE_H

#include "tool/model/profile.h"

struct merge {
    struct recording recording;  // facts, no sections
    struct profile profile;      // complete after merge_finish
    ARRAY(char *) paths;         // of modules
    ARRAY(struct module) modules;
    struct index_table module_table;
    ARRAY(struct stack) stacks;
    ARRAY(uint32_t) stack_of_node;  // plus 1
    ARRAY(struct profile_thread) threads;
    size_t process_count;
};

// All false without memory. Use merge_free after each.
bool merge_start(struct merge *merge);
bool merge_add(struct merge *merge, const struct profile *profile);
void merge_finish(struct merge *merge);
void merge_free(struct merge *merge);

#endif
