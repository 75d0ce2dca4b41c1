// SPDX-License-Identifier: Apache-2.0
// The memory profile that a Go program keeps of itself (runtime/mprof.go): for each stack that a
// sample was allocated by, what was allocated and freed. Read as runtime.MemProfile reads it: the
// state of the last collections but for what of it was not published yet.
//
// The form is that of Go 1.18 and later. Each bucket carries a sum over its own stack, by which one
// is known: memory that says something else ends the reading with an error.
#ifndef TOOL_GO_BUCKETS_H
#define TOOL_GO_BUCKETS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/proc/memory_reader.h"

// Addresses of the runtime's variables.
struct go_profile_place {
    uint64_t buckets;  // runtime.mbuckets
    uint64_t cycle;    // of the number of the present cycle
    bool is_shifted;   // it is above a flag, from 1.19 on
    uint64_t rate;     // runtime.MemProfileRate
    bool has_bytes;    // counts of blocks have those of bytes beside them, up to 1.26
};

struct go_bucket {
    size_t first;    // of its return addresses, the innermost, in `addresses`
    uint32_t depth;  // how many there are
    uint64_t allocs, frees, allocated_bytes, freed_bytes;  // of samples, not scaled
};

struct go_profile {
    uint64_t rate;  // bytes that a sample stands for on average; 0: none are taken (any more)
    ARRAY(uint64_t) addresses;
    ARRAY(struct go_bucket) buckets;
};

// A profile without a bucket is one too.
bool go_profile_read(const struct memory_reader *memory, const struct go_profile_place *place,
                     struct go_profile *profile, struct error *error);
// Tells that a bucket of a memory profile lies there, by its sum.
bool go_profile_is_bucket(const struct memory_reader *memory, uint64_t address);
void go_profile_free(struct go_profile *profile);

// Turns samples of so many bytes into what they stand for, as runtime/pprof does
// (scaleHeapSample).
void go_profile_scale(uint64_t rate, uint64_t *count, uint64_t *bytes);

#endif
