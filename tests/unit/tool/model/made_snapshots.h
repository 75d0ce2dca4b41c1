// SPDX-License-Identifier: Apache-2.0
// A recording that a test makes, opened with its snapshots: for tests of snapshots.
#ifndef TESTS_UNIT_TOOL_MODEL_MADE_SNAPSHOTS_H
#define TESTS_UNIT_TOOL_MODEL_MADE_SNAPSHOTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/snapshots.h"

enum { PROGRAM = 0x400000 };
static struct making making;
static struct recording recording;
static struct profile profile;
static struct snapshots snapshots;
static uint8_t *bytes;

static inline void open_made(void) {
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    assert_true(snapshots_build(&snapshots, &profile, NULL));
}

static inline void close_made(void) {
    snapshots_free(&snapshots);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
}

static inline void start(void) {
    making_start(&making);
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "example");
    making_thread(&making, 4243, "worker");
}

static inline uint32_t stack_at(uint32_t thread, uint64_t address) {
    return making_stack(&making, thread, &address, 1);
}

#endif
