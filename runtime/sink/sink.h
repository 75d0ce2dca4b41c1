// SPDX-License-Identifier: Apache-2.0
// Where the recording lives: a sealed memfd that the tool made and holds, or a file.
//
// Under `cairn run` the process asks for its memfd on the tool's socket (CAIRN_SOCKET), once; the
// tool writes the file. Without a tool the process makes the file itself (CAIRN_OUTPUT, default
// NAME.PID.cairn in the working directory), sparse, and replaces it by a compact one when it ends.
// No descriptor stays open: programs that close or reuse descriptor numbers cannot hit the
// recording.
//
// Memory: the whole mapping is reserved at once, with no pages; sections claim theirs as they grow.
// Large sections of a memfd are covered but for their beginning (runtime/sys/veil.h); who opens a
// recording closes the file for that afterwards (veil_close).
#ifndef RUNTIME_SINK_SINK_H
#define RUNTIME_SINK_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "format/hello.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

// What a recording has room for beyond what every one holds.
struct sink_rooms {
    bool has_codes;          // of Python, Java and JavaScript
    bool has_samples;        // perhaps from some time on
    bool has_sample_values;  // from the start
    bool has_bands;          // damage to guard bands
    bool has_mappings;       // the program's own mappings
    bool has_heaps;          // allocators by name
    bool has_events;         // chunks of the event log, if the tool gives the memory
};

struct sink {
    struct cairn_header *header;  // NULL: not recording
    bool is_file;
    bool is_lent;          // the tool attached and gave the memory: it will save it; in forks too
    bool is_refused;       // the tool does not want this process recorded
    uintptr_t attachment;  // of this library, for the tool (format/attachment.h); 0: none
};

extern HIDDEN struct sink sink;

// Obtains and lays out the recording of this process; `forked_from` is a pid or 0. False: this
// process is not recorded.
bool sink_open(uint32_t forked_from, struct sink_rooms rooms);

// Returns the name of the tool's socket as it was at the start, NULL if none is known.
const char *sink_tool_name(void);

// A region over one section; empty if the recording has none of this kind (format.h, sample.h).
struct region sink_region(uint32_t kind);

// Nanoseconds since the recording's start. The coarse one costs a few loads and lags up to 10 ms.
uint64_t sink_now_ns(void);
uint64_t sink_now_coarse_ns(void);

// Marks the recording as ended and, if nobody else does, writes the compact file. May be called
// again: an image that goes on after its exit handlers is recorded further.
void sink_end(void);

// Puts a private copy of the recording in the place of the shared one. Without memory for it the
// shared one stays.
void sink_detach(void);

// There is no room for what a recording needs to begin with, often on its disk: it says so, and a
// file is cut to its header. Nothing is recorded from then on.
void sink_give_up(void);

// Tells the tool, if there is one, that this process is not recorded.
struct tool_link_unrecorded;
void sink_say_unrecorded(const struct tool_link_unrecorded *said);

// Nothing is recorded from now on although the process goes on: the recording is complete.
void sink_stop(void);

// Takes a recording, which may be a parent's, out of this process' memory: what is mapped of it,
// since the rest may be the program's by now (region_shrink).
void sink_unmap(struct cairn_header *header);

// The image may be replaced (exec): writes the compact file now, or takes it away if it says hardly
// anything. Recording can go on. Only for a recording that is a file.
void sink_leave(void);

#endif
