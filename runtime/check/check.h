// SPDX-License-Identifier: Apache-2.0
// The check build (make check-runtime, CAIRN_CHECK=1) compares every walk with libgcc's unwinder,
// the frames of every stack with those its cell was made for, and what fast paths remember with
// what the plain ones find; it ends the process at the first difference. Other builds contain none
// of it.
#ifndef RUNTIME_CHECK_CHECK_H
#define RUNTIME_CHECK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/unwind/walk.h"

#ifdef CAIRN_CHECK
enum { CHECK_IS_BUILT_IN = 1 };
void check_start(void);
void check_walk(const struct walk_start *start, const struct frame *frames, uint32_t count);
void check_identity(uint32_t cell, const struct frame *frames, uint32_t count);
// What a fast path knows is what the plain way finds; otherwise the process ends with this text.
void check_that(bool is_so, const char *otherwise);
#else
enum { CHECK_IS_BUILT_IN = 0 };
static inline void check_start(void) {}
static inline void check_walk(const struct walk_start *start, const struct frame *frames,
                              uint32_t count) {
    (void)start;
    (void)frames;
    (void)count;
}
static inline void check_that(bool is_so, const char *otherwise) {
    (void)is_so;
    (void)otherwise;
}
static inline void check_identity(uint32_t cell, const struct frame *frames, uint32_t count) {
    (void)cell;
    (void)frames;
    (void)count;
}
#endif

#endif
