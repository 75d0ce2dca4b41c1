// SPDX-License-Identifier: Apache-2.0
// What a finding is (findings.h), and what it knows of the recording.
#ifndef TOOL_RENDER_FINDING_H
#define TOOL_RENDER_FINDING_H

#include "format/waste.h"
#include "tool/model/growth.h"
#include "tool/render/freed_by.h"

enum finding_kind {
    FINDING_GROWTH,     // a call site that rises steadily
    FINDING_REALLOC,    // buffers that are grown many times
    FINDING_TEMPORARY,  // blocks that live shortly
    FINDING_FREED_BY,   // one thread frees what another allocates
    FINDING_AGES,       // blocks that lived some milliseconds at most (--ages)
    FINDING_FREE,       // memory that is free in the allocator, but resident
    FINDING_REUSE,      // blocks that the function frees that allocated them (--free-stacks)
    FINDING_ALIKE,      // many small blocks of one size by one stack, that live together
    FINDING_UNTOUCHED,  // parts of large blocks that were never touched
    FINDING_ARENAS,     // arenas of threads that hold free memory
    FINDING_STRINGS,    // equal strings: in the view waste, and of a file of core save
    FINDING_WASTE,      // blocks of zeros, equal ones, ends that are not used (of such a file)
    FINDING_HUGE,       // a large heap on small pages
    FINDING_KINDS,
};

enum {
    FINDING_STACKS_MAX = 16,  // of one finding; the rest of them are a sum
    GROWTH_STACKS_MAX = 48,   // that are looked at
    GROWTH_FINDINGS_MAX = 3,  // call sites that are told
    FINDINGS_MAX = FINDING_KINDS + GROWTH_FINDINGS_MAX,
};

// Stacks that a finding may be about, each with its part of it, the largest first. Those of one
// call site are added up as soon as names are known (findings_settle).
struct finding_stacks {
    struct {
        const struct stack *stack;
        uint64_t part;
    } list[FINDING_STACKS_MAX];
    size_t count;
    uint64_t rest;  // the parts of all others
};

struct finding {
    enum finding_kind kind;
    const struct stack *stack;     // NULL: about no stack
    struct finding_stacks stacks;  // that `stack` is to be chosen from; none: it is chosen
    uint64_t part;                 // of the call site that was chosen
    uint64_t watched;              // TEMPORARY: blocks whose life was watched
    uint32_t free_node;            // REUSE: of the stack that frees
    double fit, bytes_per_s;       // GROWTH
    bool is_freed;                 // GROWTH: at shutdown
    int64_t first_bytes, last_bytes, interval_bytes;  // GROWTH
    size_t stack_count, moment_count;                 // GROWTH: stacks of the call site
    uint64_t count, of_count;  // REALLOC: times a buffer is grown, of so many; TEMPORARY, AGES,
                               // REUSE: blocks, of all; ALIKE: blocks; ARENAS: arenas
    bool is_estimate;   // TEMPORARY: from a sample, of what is short-lived; STRINGS: of a part
    uint64_t bytes;     // REALLOC: copied; FREE, ARENAS: resident and not live; REUSE, ALIKE:
                        // of a block, 0: several sizes; UNTOUCHED: never touched; HUGE: on small
                        // pages; STRINGS: in copies
    uint64_t bound_ns;  // AGES: what those blocks lived less than
    uint64_t of_bytes, live_bytes, at_ns;  // FREE, ARENAS: resident then, and live; UNTOUCHED: live
    struct freed_by_flow flow;             // FREED_BY
    struct cairn_waste waste;              // WASTE, and STRINGS of a file
    const char *whose;                     // STRINGS: of whom most copies are; NULL: `waste` has it
    // what a fix saves at most; 0: nothing of the kind
    uint64_t saved_bytes, saved_calls, saved_faults;
    bool is_least;  // ARENAS: memory was highest when nobody looked, and so much is saved at least
    double gain;    // by which findings are ranked: the part that is saved, of memory or of calls
};

// Growth as the view of that name has it: stacks that grow, then such as grew before.
struct finding_growth {
    bool is_known;
    size_t moment_count, growing_count, stalled_count, late_count;
    int64_t rise_least;  // smaller rises are not told
    bool is_sampled;
    uint64_t start_ns, end_ns;
    char label[CAIRN_LABEL_BYTES];  // of the mark at the start
    struct {
        const struct stack *stack;
        struct growth_stack how;
    } list[GROWTH_STACKS_MAX];
    size_t count;
};

struct findings {
    struct finding list[FINDINGS_MAX];  // the largest gain first
    size_t count;
    struct finding_growth growth;
};

#endif
