// SPDX-License-Identifier: Apache-2.0
// Recording a process that runs already: the library is loaded into it, told how to record, and the
// program's calls are led to it; later everything is put back (docs/attach.md).
//
//     attach_open   looks, without stopping anything, whether it can be done
//     attach_start  waits for a safe moment; from its end on the process is recorded
//     attach_follow takes over the calls of modules that were loaded since
//     attach_stop   the process is as before, but for the library, which lies idle in its memory
#ifndef TOOL_ATTACH_ATTACH_H
#define TOOL_ATTACH_ATTACH_H

#include "format/attachment.h"
#include "tool/attach/call.h"
#include "tool/attach/census.h"
#include "tool/attach/modules.h"
#include "tool/attach/patch.h"
#include "tool/attach/safe.h"
#include "tool/attach/slots.h"

// The recording's memory, a memfd that was made in the process: sizes, maps and keeps it. It is the
// callee's to close.
typedef bool attach_take_memory(void *context, int file, struct error *error);

// Whether the blocks that there are already are counted: it takes time while the process is
// stopped.
enum census_wish {
    CENSUS_IF_SMALL,  // up to ATTACH_CENSUS_BYTES of the allocator's memory, ATTACH_CENSUS_BLOCKS
    CENSUS_ALWAYS,
    CENSUS_NEVER,
};
// Bounds of 15 to 25 ms, with other work on the machine.
#define ATTACH_CENSUS_BYTES (16u << 20)
#define ATTACH_CENSUS_BLOCKS (64u << 10)

struct attach_request {
    const char *settings;  // NAME=VALUE, each ends in NUL; an empty one ends them
    size_t settings_bytes;
    attach_take_memory *take_memory;
    void *context;
    enum census_wish census;
    const struct symbol_options *symbols;  // where names of types come from; outlives the attach
};

struct attach {
    pid_t pid;
    const char *library_path;  // of libcairn.so
    uint8_t *library_bytes;    // its content, marked as loaded by the tool
    size_t library_count;
    bool has_filter;
    struct remote remote;
    struct loaded_modules modules;
    struct slots slots;
    struct entries entries;  // of an allocator that is linked into the executable
    struct patch patch;
    struct watchtower *tower;
    struct threads threads;
    uint64_t system_call_at, dlopen_at, dlerror_at, errno_at, allocator;
    bool is_old_dlopen;  // __libc_dlopen_mode, before glibc 2.34
    int library;         // number of its module; -1: it is not loaded
    uint64_t place;      // of its struct cairn_attachment
    struct cairn_attachment known;
    uint64_t pause_ns, longest_pause_ns;  // how long the process was stopped: in all, at a time
    bool is_stopped;
    struct census census;
    bool has_census;  // it was asked for, and can be made
    unsigned census_tries;
    uint64_t usual_broken;    // its broken_count while the process ran
    uint64_t counted_blocks;  // that were entered
    char uncounted_why[160];  // "": they were, or were not to be
    pid_t caller_tid;         // of the thread that makes calls
};

bool attach_open(struct attach *attach, pid_t pid, const char *library_path, bool is_anyway,
                 struct error *error);
bool attach_start(struct attach *attach, const struct attach_request *request, struct error *error);
// `has_changed`: there were such modules.
bool attach_follow(struct attach *attach, bool *has_changed, struct error *error);
bool attach_stop(struct attach *attach, struct error *error);
void attach_close(struct attach *attach);

// The module that the program's own libc is; NULL: it has none that is known.
struct loaded_module *attach_libc(const struct attach *attach);

// A stop is over, of all threads or of one: it counts for pause_ns and longest_pause_ns.
void attach_count_pause(struct attach *attach);

// The library is still there: false if the process has replaced its program, or has ended.
bool attach_is_there(const struct attach *attach);

#endif
