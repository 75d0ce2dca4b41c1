// SPDX-License-Identifier: Apache-2.0
// Brings symbols and screens together: resolves places of a profile to frames, module by module,
// and says which of them are internal frames.
#ifndef TOOL_QUERY_NAMES_H
#define TOOL_QUERY_NAMES_H

#include "tool/base/error.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/symbol/symbol.h"

struct names;

// The profile must outlive the names. False without memory.
bool names_open(const struct profile *profile, struct names **names, struct error *error);
void names_close(struct names *names);

// The profile has got more places or modules; frames of places without a name may move. False
// without memory.
bool names_extend(struct names *names, struct error *error);

// Marks the places of a stack to be resolved, `limit` from the innermost (0: all).
void names_want_stack(struct names *names, uint32_t node, size_t limit);

// Marks all places, of which those that no stack was marked for count as no name that is missing.
void names_need_all(struct names *names);

// The same for the stacks of damaged blocks.
void names_want_overruns(struct names *names);

// Frames of a place that are known already, for names_close to free; their texts stay the caller's.
void names_give(struct names *names, uint32_t place, struct frame *frames, size_t count);

// Resolves what was marked. A place that was not stays without a name. False without memory.
bool names_resolve(struct names *names, struct error *error);

// How much work looking up every name may be.
struct names_effort {
    bool is_anew;                // what is kept already counts only where files know nothing
    uint64_t foreign_bytes_max;  // as in struct symbol_options
    uint64_t deadline_ns;
};

struct names_collected {
    void *bytes;  // as the SYMBOLS section of a recording holds them (format/symbols.h); for free()
    size_t size;
    size_t frame_count, unnamed_count;
    size_t late_count;  // modules that were not read to their end, for the time was up
};

// Looks up the names of every place, to be kept.
bool names_collect(struct names *names, const struct names_effort *effort,
                   struct names_collected *collected, struct error *error);

// From now on these are the only source of names; takes the bytes over.
bool names_keep(struct names *names, struct names_collected *collected, struct error *error);

// The recording is complete and has no names of its own: the cache gets those of all its own
// modules.
bool names_is_first_read(const struct names *names);

struct frame_names names_frames(struct names *names);

// Tells whether methods of .NET are among the names.
bool names_has_dotnet(const struct names *names);

// What the names of a module stood on; all zero if none were asked for. MODULE_NONE: of generated
// code. NULL: no such module.
const struct symbol_report *names_report(const struct names *names, uint32_t module);

// How many places of a module were looked for and have no function's name.
size_t names_unresolved(const struct names *names, uint32_t module);

#endif
