// SPDX-License-Identifier: Apache-2.0
// A static program and libcairn-bare.so for it: which of its functions lead to which hooks, and all
// that the library is told. The same for a program that has not begun (static_start.c) and one that
// runs (static_attach.c). Nothing leads to the library until the patch is taken.
#ifndef TOOL_ATTACH_STATIC_PROGRAM_H
#define TOOL_ATTACH_STATIC_PROGRAM_H

#include "format/attachment.h"
#include "format/bare.h"
#include "tool/attach/bare_library.h"
#include "tool/attach/executable.h"
#include "tool/attach/patch.h"
#include "tool/attach/static_headers.h"

enum { STATIC_NOTED = 13 };

struct static_program {
    struct executable image;
    struct bare_library library;
    struct cairn_attachment *attachment;  // in the library's image
    struct cairn_bare *bare;              // in it
    struct static_headers headers;
    uint64_t headers_at;
    struct entries *entries;  // both are the caller's, set before anything else
    struct patch *patch;
    struct entry_wish wishes[STATIC_NOTED];
    uint64_t ways_base;  // of the library, to which the entries lead
    bool is_glibc;
};

// Reads the library and the program's file, whose descriptors are -1 before. Closed in any case.
bool static_program_open(struct static_program *program, const struct remote *remote,
                         const char *library, struct error *error);
void static_program_close(struct static_program *program);

// Finds the functions, and which hooks they are to lead to.
bool static_program_find(struct static_program *program, const struct remote *remote,
                         struct error *error);

// Makes everything for the library where it is mapped now: its image, the mapping with the headers,
// the ways to its hooks. The image is still to be put there.
bool static_program_make(struct static_program *program, struct caller *caller,
                         const struct bare_locals *locals, struct error *error);

// The library, which records nothing until then (`is_by_tool`), begins at the program's first
// event.
bool static_program_begin(const struct static_program *program, const struct remote *remote);

// Finds where calls are made once the functions are found; system_call_at is 0 if there is no
// place.
struct call_site static_program_site(const struct static_program *program,
                                     const struct remote *remote);

#endif
