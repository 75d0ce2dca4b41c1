// SPDX-License-Identifier: Apache-2.0
// What a user wants to look at, in the same words for every view: expressions for the code that a
// stack goes through, for threads, and whether blocks lived to the end. A filter narrows a profile
// (tool/model/narrow.h); what it hides it takes out of the names.
//
//     filter_open → filter_threads → filter_found_threads → names are looked up → filter_stacks →
//     filter_names → a view
#ifndef TOOL_RENDER_FILTER_H
#define TOOL_RENDER_FILTER_H

#include "tool/model/measure.h"
#include "tool/model/narrow.h"
#include "tool/render/frames.h"

struct filter_request {
    const char *focus;    // stacks with a frame of this function or file; all: NULL
    const char *ignore;   // stacks without one
    const char *hide;     // frames that are left out of the stacks
    const char *module;   // stacks with a frame in a module of this path
    const char *thread;   // id, or an expression for the name
    const char *region;   // an expression for the path of a region: outer/inner
    const char *context;  // a label that the stacks have: key=value
    enum lifespan lifespan;
    uint64_t short_ns;  // of LIFESPAN_SHORT
    bool may_be_empty;  // matching nothing is no error
};

struct filter;

// False if an expression is bad (the error names option and place) or without memory.
bool filter_open(struct filter **filter, const struct filter_request *request, struct error *error);
void filter_close(struct filter *filter);  // takes NULL

// Names of all stacks are needed.
bool filter_needs_names(const struct filter *filter);
// A request that leaves something out was made.
bool filter_is_any(const struct filter *filter);

// What threads, regions and lifespan decide, of each recording. False without memory.
bool filter_threads(struct filter *filter, struct profile *profile, struct error *error);
// False, with the threads or regions there are, if none was meant in any of them.
bool filter_found_threads(struct filter *filter, const struct profile *profile,
                          struct error *error);

// What names decide. False, with what there is, if no stack is left that has a value of
// `measure`; or without memory.
bool filter_stacks(const struct filter *filter, struct profile *profile,
                   const struct frame_names *names, enum measure measure, struct error *error);

// The names without what is hidden; valid as long as filter and `names`. NULL without memory.
const struct frame_names *filter_names(struct filter *filter, const struct profile *profile,
                                       const struct frame_names *names);

// "--focus 'x' --thread 'y'": what was asked for, safe text.
void filter_text(const struct filter *filter, char *out, size_t size);

#endif
