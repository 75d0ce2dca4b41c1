// SPDX-License-Identifier: Apache-2.0
// What stands in the code cache at an address: compiled methods, with the methods inlined there,
// and stubs.
#ifndef RUNTIME_JAVA_BLOB_H
#define RUNTIME_JAVA_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/java/method.h"

enum { BLOBS_SEEN = 4096, BLOB_INLINED = 12, BLOB_HEAD_BYTES = 352, BLOB_SCOPE_BYTES = 4096 };

// Code that this thread has seen, by a return address into it.
struct blob_seen {
    uintptr_t pc;
    uint64_t start, name, deopt, deopt_handle;
    uint32_t id;  // of the compilation, which no other one has; of stubs the size
    uint32_t frame_bytes, orig_pc;
    uint32_t inlined_count;
    bool is_compiled, is_cut;         // cut: more are inlined than there is room for
    uintptr_t inlined[BLOB_INLINED];  // pseudo addresses (FRAME_PYTHON), innermost first
};

// What one thread needs. One owner.
struct blob_reader {
    struct blob_seen seen[BLOBS_SEEN];
    struct method_reader methods;
    uint8_t head[BLOB_HEAD_BYTES], scopes[BLOB_SCOPE_BYTES];
};

// The code at an address where a frame of this thread goes on; NULL: nothing known. Valid until the
// next call.
const struct blob_seen *blob_find(struct blob_reader *reader, uintptr_t pc);

#endif
