// SPDX-License-Identifier: Apache-2.0
// Probes for perf, bpftrace, gdb and others (USDT): places in the code that a note in the file
// names, with where their arguments are. docs/explain/tracing.md says what each tells.
//
// Each is a function of its own, with a nop where a tracer puts its breakpoint. It is called with
// the frame of the hook, which becomes the frame pointer meanwhile: a tracer that follows frame
// pointers gets from here to the program's call, without the functions of cairn in between.
//
// A semaphore counts the tracers that listen; the kernel or the tracer writes it, this process only
// reads it, and nobody calls a probe unless it is above 0. That of the events is the upper half of
// a word in whose lower half the mode of the hooks is, so that the one comparison that a hook makes
// anyway answers both questions.
//
// All are safe in signal handlers and from any thread.
#ifndef RUNTIME_SYS_PROBES_H
#define RUNTIME_SYS_PROBES_H

#include <stdint.h>

#include "runtime/sys/sys.h"

union probes_event {
    uint32_t word;
    struct {
        uint16_t mode;       // enum event_mode
        uint16_t listeners;  // to alloc, free and realloc
    };
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the mode is the lower half");

// In the file's section .probes, where tracers look for semaphores. Volatile where nothing in this
// program ever writes.
extern HIDDEN union probes_event probes_event;
extern HIDDEN const volatile uint16_t probes_new_stack, probes_snapshot, probes_otel_alloc,
    probes_otel_free;

// The frame: that of the hook (__builtin_frame_address(0)), or NULL.
HIDDEN void probe_alloc(const void *frame, const void *block, uint64_t size, uint64_t stack);
HIDDEN void probe_free(const void *frame, const void *block, uint64_t size, uint64_t stack);
HIDDEN void probe_realloc(const void *frame, const void *block, uint64_t size, uint64_t stack,
                          const void *old_block, uint64_t old_size);
HIDDEN void probe_new_stack(const void *frame, uint64_t stack, uint64_t count,
                            const uintptr_t *innermost, int64_t step_bytes);
HIDDEN void probe_snapshot(const void *frame, uint64_t reason, const char *label,
                           uint64_t live_bytes, uint64_t live_blocks);
// OpenTelemetry's, under its provider's name.
HIDDEN void probe_otel_alloc(const void *frame, const void *block, uint64_t size,
                             uint64_t weighted_bytes);
HIDDEN void probe_otel_free(const void *frame, const void *block);

#endif
