// SPDX-License-Identifier: Apache-2.0
// A program built by Go, in a running process or a core dump: the file that it runs, which version
// built it, and where the variables of Go's runtime lie.
#ifndef TOOL_GO_PROGRAM_H
#define TOOL_GO_PROGRAM_H

#include <limits.h>

#include "tool/base/error.h"
#include "tool/go/buckets.h"
#include "tool/heap/image.h"
#include "tool/symbol/image.h"

enum { GO_VERSION_BYTES = 64 };

struct go_program {
    struct image image;              // of the executable
    char path[PATH_MAX];             // as the process saw it
    uint64_t bias;                   // address = bias + virtual address in the file
    char version[GO_VERSION_BYTES];  // "go1.19.8"
    bool is_static;                  // no libc is linked to it when it starts
    unsigned minor;                  // 19; 0: not known
    struct go_profile_place profile;
    uint64_t heap;         // runtime.mheap_; these are 0: not found, as without a table of symbols
    uint64_t skipped_pcs;  // runtime.skipPleaseUseCallersFrames, whose addresses are no calls
};

enum go_finding { GO_ABSENT, GO_FOUND, GO_FAILED };

// GO_FAILED, with a clause: it is of Go, and cannot be read. Close it after GO_FOUND alone.
enum go_finding go_program_of_process(pid_t pid, struct go_program *program, struct error *error);
// `sysroot`: below which the program's files are looked for first; may be NULL.
enum go_finding go_program_of_core(const struct core_image *core, const char *sysroot,
                                   struct go_program *program, struct error *error);
// Finds where a section of its file lies in memory.
bool go_program_section(const struct go_program *program, const char *name, uint64_t *start,
                        uint64_t *size);
void go_program_close(struct go_program *program);

#endif
