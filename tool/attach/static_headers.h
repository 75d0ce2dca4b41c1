// SPDX-License-Identifier: Apache-2.0
// Tells a static program, and the library in it, about the executable, by a mapping near it:
//
//   - program headers for the program, in the place of its own (AT_PHDR). They differ in PT_TLS:
//     libc takes from it how large the thread-locals are that it makes for each thread. Those of
//     the library come first, where nothing was, so that the program's keep their offsets.
//   - that image of thread-locals
//   - program headers for the library, with the index of unwind information
//   - the index, if the file has none
//   - the variables that say how to record
#ifndef TOOL_ATTACH_STATIC_HEADERS_H
#define TOOL_ATTACH_STATIC_HEADERS_H

#include <gelf.h>

#include "format/bare.h"
#include "tool/attach/bare_library.h"
#include "tool/attach/unwind_index.h"

enum { STATIC_HEADERS_MAX = 64, STATIC_TEXT_BYTES = 16384 };

struct static_headers {
    Elf *elf;
    uint64_t bias;
    GElf_Phdr segments[STATIC_HEADERS_MAX];  // the executable's own
    size_t count;
    const GElf_Phdr *locals;  // of these; NULL: it has none
    uint64_t locals_align;    // of all thread-locals together
    uint64_t room_bytes;      // from the first of the library's to the thread pointer
    uint64_t own_offset;      // of the program's, back from the thread pointer
    struct unwind_index index;
    char text[STATIC_TEXT_BYTES];  // NAME=VALUE, each ends in NUL
    size_t text_bytes;
    // Places of things, from the mapping's start.
    uint64_t program_at, image_at, library_at, index_at, text_at, bytes;
};

// Reads the executable. False, with a clause, if it has thread-locals of an unusual form.
bool static_headers_read(struct static_headers *headers, Elf *elf, uint64_t bias,
                         const struct bare_library *library, struct error *error);
void static_headers_free(struct static_headers *headers);

// The library's thread-locals from the thread pointer.
int64_t static_headers_locals(const struct static_headers *headers);

// Lays everything out for a mapping at `place`, and tells the library in its image. The bytes are
// for free(); NULL without memory.
uint8_t *static_headers_make(const struct static_headers *headers, uint64_t place,
                             const struct bare_library *library, struct cairn_bare *bare);

// As many program headers as the program is told.
uint64_t static_headers_count(const struct static_headers *headers);

#endif
