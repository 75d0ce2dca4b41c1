// SPDX-License-Identifier: Apache-2.0
// Go's own heap in a running process, whose threads are stopped while it is read, or in a core
// dump: its spans, and the samples of the functions that allocated, as a recording that every view
// shows.
#ifndef TOOL_GO_HEAP_H
#define TOOL_GO_HEAP_H

#include <limits.h>

#include "tool/base/error.h"
#include "tool/go/program.h"
#include "tool/go/spans.h"

enum { GO_FUNCTION_BYTES = 256 };

struct go_heap {
    struct go_program program;
    struct go_spans spans;
    struct error why_no_spans;  // "": they were read
    struct go_profile profile;
    struct error why_no_profile;
    pid_t pid;  // 0: not known
    bool is_of_core;
    uint64_t pause_ns;  // for which the threads of a process were stopped
};

// Close it after GO_FOUND alone. GO_FAILED: it is of Go, and a clause says why it was not read.
enum go_finding go_heap_of_process(pid_t pid, struct go_heap *heap, struct error *error);
enum go_finding go_heap_of_core(const struct core_image *core, const char *sysroot,
                                struct go_heap *heap, struct error *error);
void go_heap_close(struct go_heap *heap);

// True if the program keeps samples of what it allocates. If not, `why` gets a clause about it, and
// how to have them.
bool go_heap_has_profile(const struct go_heap *heap, struct error *why);

// A function, with what is in use of what it allocated itself, by the samples.
struct go_function {
    char name[GO_FUNCTION_BYTES];  // safe to print; cut
    uint64_t bytes, objects;
};

// Fills in the largest of them, at most `*count`, and the sum over all. False with a clause.
bool go_heap_functions(const struct go_heap *heap, struct go_function *functions, size_t *count,
                       uint64_t *all_bytes, struct error *error);

// Makes a recording of the samples, a file in memory that can be opened as `path` as long as this
// program runs.
bool go_heap_record(const struct go_heap *heap, char path[PATH_MAX], struct error *error);

#endif
