// SPDX-License-Identifier: Apache-2.0
// Patches the entries of an allocator that is linked into an executable, so that its calls lead to
// the library, in programs that cairn run starts. The tool patches a process while it waits for the
// answer to its first message, before its main function. `cairn run --exec` leaves no tool beside
// the process: there the tool plans the patch from the file, and the library applies it
// (runtime/inject). patch.h has the code that is written.
#ifndef TOOL_ATTACH_ENTRY_PATCH_H
#define TOOL_ATTACH_ENTRY_PATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tool/base/error.h"

enum { ENTRY_PATCH_REMEMBERED = 64, ENTRY_PATCH_NAME_BYTES = 256 };

// An executable that was checked and has no such allocator.
struct entry_patch_file {
    dev_t device;
    ino_t number;
    struct timespec changed;
};

struct entry_patcher {
    bool is_anyway;  // also where it was never tried (examine_processor)
    const char
        *wrap_rows;  // functions of the executable to be led besides (format/wrap.h); or NULL
    struct entry_patch_file files[ENTRY_PATCH_REMEMBERED];
    unsigned file_count;  // all that were remembered; the last ones are there
    unsigned refused_count;
    char refused[ENTRY_PATCH_NAME_BYTES];  // the first one's program
    struct error problem;                  // and why
};

// `attachment`: the address of the process' struct cairn_attachment, as it says itself.
void entry_patch_started(struct entry_patcher *begin, pid_t pid, uint64_t attachment);

// Whether those functions of the rows that an executable has can be led. False, with a clause that
// begins with the name of the one that cannot.
bool entry_patch_check_wrapped(const char *path, const char *wrap_rows, struct error *error);

// The value of CAIRN_ENTRIES for an executable (struct cairn_lead), which the caller frees; NULL:
// it has no such allocator. `is_given`: a dynamic linker starts it. False, with a clause: it has
// one that cannot be led there.
bool entry_patch_plan(const char *path, bool is_given, bool is_anyway, char **digits,
                      struct error *error);

#endif
