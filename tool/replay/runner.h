// SPDX-License-Identifier: Apache-2.0
// Runs the driver on a script and an allocator.
#ifndef TOOL_REPLAY_RUNNER_H
#define TOOL_REPLAY_RUNNER_H

#include "format/replay.h"
#include "tool/base/error.h"
#include "tool/replay/script.h"

enum { RUNNER_VARIABLES = 16 };

struct runner_setting {
    const char *library;                      // "": none is preloaded
    const char *variables[RUNNER_VARIABLES];  // "NAME=VALUE", NULL at last
};

// What a replay told: the driver's header, and its samples, in the order of time.
struct replay_result {
    struct cairn_replay told;
    struct cairn_replay_sample samples[CAIRN_REPLAY_SAMPLES];
};

// False, with why: the driver or the allocator failed.
bool runner_run(const struct script *script, const struct runner_setting *setting,
                struct replay_result *result, struct error *error);

// What all calls took, without the looks at the clock.
double replay_allocator_ns(const struct cairn_replay *told);
// A call of a class, on average; 0: there is none.
double replay_ns_each(const struct cairn_replay *told, const struct cairn_replay_times *times);

#endif
