// SPDX-License-Identifier: Apache-2.0
// Several profiles added up to one: of the processes of a run, or of several runs. One after the
// other is added and may be closed, so that memory grows with the distinct stacks and not with the
// number of recordings.
//
// Modules are the same if their build-ids are (without one: their paths), wherever they were
// loaded; a place that has a key is the same in all, if that is wanted. Each process was at its
// peak at a time of its own: the sum of the peaks is at least the peak that all had together. The
// sum has no timeline.
//
// Each block counts once, where it was allocated: what a fork still holds of the blocks it
// inherited is a copy, unless the process that allocated them is not part of the sum.
#ifndef TOOL_MODEL_MERGE_H
#define TOOL_MODEL_MERGE_H

#include "tool/model/profile.h"

struct merge {
    struct recording recording;  // facts, no sections
    struct profile profile;
    ARRAY(char *) paths;  // of modules
    ARRAY(struct module) modules;
    struct index_table module_table;
    ARRAY(struct stack) stacks;
    ARRAY(uint32_t) stack_of_node;  // plus 1
    ARRAY(struct profile_thread) threads;
    uint32_t account_count;  // of threads (struct profile_thread)
    size_t process_count;
    uint64_t rate_most_bytes;  // of samples: the highest T of any
    bool is_by_names;  // set after merge_start: a key stands for the same code in all modules
    bool has_origin;   // a process that is no fork was added
    bool has_forks;    // a fork was added: estimates are related from then on
    uint32_t *placed;  // by place of the profile that was added last: its number in the sum
};

// All false without memory. Use merge_free after each.
bool merge_start(struct merge *merge);
// `keys` has for each place a number that says which code it is, or 0: its address in its module
// does. NULL: all do. Addresses say nothing of code that a program generated or of places that were
// imported.
bool merge_add(struct merge *merge, const struct profile *profile, const uint64_t *keys);
// The sum as a profile of `recording`, which is filled as well; it is for profile_free, and `merge`
// must outlive both.
void merge_finish(struct merge *merge, struct recording *recording, struct profile *profile);
void merge_free(struct merge *merge);

#endif
