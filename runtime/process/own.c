// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/own.h"

#include "runtime/live/live.h"
#include "runtime/sample/blocks.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"
#include "runtime/unwind/unwind_cache.h"

// Mapped minus untouched, and touched of what is only reserved.
COLD int64_t own_taken_bytes(void) {
    uint64_t reserved = blocks_touched_bytes() + rule_touched_bytes();
    uint64_t mapped = sys_own_bytes() - slots_untouched_bytes();
    return (int64_t)(mapped + reserved) - live_untouched_bytes();
}

// The kernel maps a file's pages around one that is touched: some three quarters of our code, in
// all kinds of programs (bench/resident.py).
static uint64_t library_bytes(void) {
    return gate_own_code_bytes() / 4 * 3;
}

void own_begin(int64_t found_bytes) {
    const uint64_t kib = 1024;
    sys_shift_own((int64_t)library_bytes() - found_bytes);
    sink.header->own_shared_kib = (uint16_t)(library_bytes() / kib);
    sink.header->own_bytes = sys_told_own_bytes();
}

void own_tell(void) {
    uint64_t counted = sys_own_bytes();
    sink.header->own_bytes = sys_told_own_bytes() + (uint64_t)own_taken_bytes() - counted;
}
