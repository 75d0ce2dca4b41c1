// SPDX-License-Identifier: Apache-2.0
// Redirects the functions of an executable's allocator to the library's hooks: writes a jump over
// the beginning of each, to a mapping near the executable that cairn adds to the process.
//
//   malloc: jmp ──▶ its part of the mapping: lea r9, moved; jmp ──▶ hook of its kind
//                   moved: the first instructions; jmp ──▶ malloc+n     the hook calls this
//
// The register is that of a sixth argument, which none of these functions has. A thread is never in
// the mapping for longer than some instructions, and no return address lies there. The mapping
// begins with what was overwritten, for another tool that may have to put it back.
#ifndef TOOL_ATTACH_PATCH_H
#define TOOL_ATTACH_PATCH_H

#include "tool/attach/call.h"
#include "tool/attach/code.h"
#include "tool/attach/entries.h"

struct patched {
    uint64_t address;
    uint8_t before[CODE_JUMP_BYTES], jump[CODE_JUMP_BYTES];
};

struct patch {
    ARRAY(struct patched) items;
    uint64_t start, end;  // of the mapping; 0: there is none
    bool is_taken;        // the jumps are written
};

// Where a mapping of so many bytes belongs, below an executable whose lowest address is `low`.
uint64_t patch_place_below(uint64_t low, uint64_t bytes);

// The same above one that a dynamic linker was given: it puts that among the libraries, with the
// linker itself and the kernel's pages right above, and libraries right below. Behind them there
// is nothing up to the stack.
uint64_t patch_place_above(uint64_t high);

// Maps memory near the executable, by a thread of the stopped process.
bool patch_map_near(struct caller *caller, const struct entries *entries, uint64_t bytes,
                    int protection, uint64_t *place, struct error *error);

// Makes the mapping, by a thread of the stopped process; nothing leads to it yet.
bool patch_prepare(struct patch *patch, const struct entries *entries,
                   const uint64_t hooks[CAIRN_ENTRY_KINDS], struct caller *caller,
                   struct error *error);

// Where the first instructions of an entry were moved to.
uint64_t patch_moved_at(const struct patch *patch, const struct entries *entries, size_t index);

// That of another tool, which is gone: `start` is where its mapping should be. None without it.
void patch_recover(struct patch *patch, uint64_t start, const struct remote *remote);

// Whether an address is in the mapping or where a jump comes: no thread may be there when jumps are
// written or put back.
bool patch_is_in_way(const struct patch *patch, uint64_t pc);

// Writes the jumps, puts back what was there before. The process is stopped.
bool patch_take(struct patch *patch, const struct remote *remote);
void patch_put_back(struct patch *patch, const struct remote *remote);

// Takes the mapping away again, once no thread is in it.
bool patch_drop(struct patch *patch, struct caller *caller, struct error *error);
void patch_free(struct patch *patch);

#endif
