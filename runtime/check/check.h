// SPDX-License-Identifier: Apache-2.0
// The check build (make check-runtime, CAIRN_CHECK=1) compares every walk with libgcc's unwinder,
// and the frames of every stack with those its cell was made for; it ends the process at the first
// difference. Other builds contain none of it.
#ifndef RUNTIME_CHECK_CHECK_H
#define RUNTIME_CHECK_CHECK_H

#include <stdint.h>

#include "runtime/unwind/walk.h"

#ifdef CAIRN_CHECK
enum { CHECK_IS_BUILT_IN = 1 };
void check_start(void);
void check_walk(const struct walk_start *start, const struct frame *frames, uint32_t count);
void check_identity(uint32_t cell, const struct frame *frames, uint32_t count);
#else
enum { CHECK_IS_BUILT_IN = 0 };
static inline void check_start(void) {}
static inline void check_walk(const struct walk_start *start, const struct frame *frames,
                              uint32_t count) {
    (void)start;
    (void)frames;
    (void)count;
}
static inline void check_identity(uint32_t cell, const struct frame *frames, uint32_t count) {
    (void)cell;
    (void)frames;
    (void)count;
}
#endif

#endif
