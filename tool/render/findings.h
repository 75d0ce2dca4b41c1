// SPDX-License-Identifier: Apache-2.0
// What a reader should know without asking: a few sentences about what stands out in a recording,
// each with the command that shows more.
//
// Each has a limit below which it is not worth a line; a program without anything special has none.
#ifndef TOOL_RENDER_FINDINGS_H
#define TOOL_RENDER_FINDINGS_H

#include "tool/render/frames.h"
#include "tool/render/freed_by.h"
#include "tool/render/terminal.h"

enum finding_kind {
    FINDING_GROWTH,     // a stack that rises steadily
    FINDING_REALLOC,    // buffers that are grown many times
    FINDING_TEMPORARY,  // blocks that live shortly
    FINDING_FREED_BY,   // one thread frees what another allocates
    FINDING_AGES,       // blocks that lived less than a millisecond (--ages)
    FINDING_FREE,       // memory that is free in the allocator, but resident
    FINDING_KINDS,
};

struct finding {
    enum finding_kind kind;
    const struct stack *stack;  // NULL: about no stack
    double fit, bytes_per_s;    // GROWTH
    bool is_freed;              // GROWTH: at shutdown
    uint64_t count, of_count;   // REALLOC: times a buffer is grown, of so many; TEMPORARY, AGES:
                                // blocks
    bool is_estimate;           // TEMPORARY: from a sample, of what is short-lived
    uint64_t bytes;             // REALLOC: copied; FREE: resident and not live
    uint64_t of_bytes, live_bytes, at_ns;  // FREE: resident then, and live
    struct freed_by_flow flow;             // FREED_BY
};

struct findings {
    struct finding list[FINDING_KINDS];
    size_t count;
};

// Needs no names; their stacks are to be looked up before they are printed. False without memory.
bool findings_find(struct findings *findings, const struct profile *profile, struct error *error);

// False without memory.
bool findings_print(const struct findings *findings, const struct terminal *terminal,
                    const struct profile *profile, const struct frame_names *names,
                    const struct view_options *view, struct error *error);

// A kind's name in JSON.
const char *finding_name(enum finding_kind kind);

// The view that says more about the largest finding; NULL: there is no finding.
const char *findings_view(const struct findings *findings);

#endif
