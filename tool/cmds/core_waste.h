// SPDX-License-Identifier: Apache-2.0
// `cairn report SUBJECT --view waste`: what of the blocks of a process or of a core dump is of no
// use.
#ifndef TOOL_CMDS_CORE_WASTE_H
#define TOOL_CMDS_CORE_WASTE_H

#include "tool/model/drawn.h"
#include "tool/query/arguments.h"
#include "tool/query/views.h"

// `word`: the core dump or process.
struct waste_wish {
    bool has_limit;  // of a process no more is copied than `cairn core` copies unasked: a part of
                     // it, drawn by `seed`, where that is too little
    uint64_t seed;
};

// From --no-copy-limit and --seed; without a seed one is drawn. False with an error.
bool waste_wish_read(const struct command_args *args, struct waste_wish *wish, struct error *error);

bool core_waste_report(const char *word, const struct request *request,
                       const struct waste_wish *wish, struct error *error);

// Writes rows of a subject that is there as a whole, as `request` has it.
struct core_subject;
bool core_waste_rows(struct core_subject *subject, const struct request *request,
                     struct error *error);

// What of it is of no use, and lines of text about the blocks that most is of, for free().
struct core_waste {
    bool is_estimate;
    struct drawn_estimate wasted, bytes, share;
    char part[160];  // which part of it was read; "": all
    char *offenders;
};
bool core_waste_measure(const char *word, const struct waste_wish *wish, struct core_waste *waste,
                        struct error *error);

#endif
