// SPDX-License-Identifier: Apache-2.0
// A log that is read by a command, with the recording that has its stacks, and which of its events
// are wanted. Without the recording the events have no stacks and threads no names.
#ifndef TOOL_CMDS_EVENTS_SESSION_H
#define TOOL_CMDS_EVENTS_SESSION_H

#include "tool/events/event_log.h"
#include "tool/events/live_blocks.h"
#include "tool/query/merged.h"
#include "tool/render/filter.h"
#include "tool/render/terminal.h"

struct events_request {
    struct filter_request filter;  // by stacks
    const char *thread;            // id, or an expression for the name
    uint64_t address;              // in a block; 0: any
    uint64_t min_bytes, max_bytes, from_ns, to_ns;
};

// Of all events, wanted or not.
struct events_sums {
    uint64_t allocations, frees, allocated_bytes, freed_bytes;
    int64_t live_bytes, peak_bytes;
    uint64_t there, there_bytes;  // of the allocations: blocks that were there when the log began
    uint64_t looks;               // of the tool's at pages, which are no events
    uint64_t unknown;             // frees of blocks that the log does not know
};

struct events_session {
    struct event_log *log;
    bool has_stacks;
    struct opened opened;  // the recording, if it has
    struct frame_names names;
    struct filter *filter;
    struct events_request request;
    struct pattern *thread_pattern;
    struct frame_list frames;
    struct live_blocks blocks;
    struct events_sums sums;
};

// An event, and what it did.
struct events_seen {
    struct event event;
    struct block_change change;
};

// NULL with an error. Without `needs_stacks` a missing recording is none.
struct events_session *events_open(const char *path, const struct events_request *request,
                                   bool needs_stacks, struct error *error);
void events_close(struct events_session *session);

bool events_is_narrowed(const struct events_session *session);

// Calls `see` with each event that is wanted, from the first; false from it ends that.
typedef bool events_see_fn(void *context, const struct events_seen *seen);
bool events_each(struct events_session *session, events_see_fn *see, void *context,
                 struct error *error);

// The cell that allocated the block of an event, and its size.
uint32_t events_cell(const struct events_seen *seen);
uint64_t events_size(const struct events_seen *seen);

// The stack of a cell as the rest of a line; the node of it, TREE_ROOT without one.
void events_print_stack(struct events_session *session, const struct terminal *terminal,
                        uint32_t cell);
uint32_t events_node(const struct events_session *session, uint32_t cell);

// "NAME TID", safe text.
void events_thread_name(const struct events_session *session, uint32_t thread, char *out,
                        size_t size);

#endif
