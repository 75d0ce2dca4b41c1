// SPDX-License-Identifier: Apache-2.0
// A moment of a recording as a user names it, and what every stack held then.
//
// Words: peak; exit (or now); the label of a mark or snapshot; an offset from the start (`10s`) or
// from the end (`-10m`); a time of the clock (`14:30`, `14:30:05`, with `2026-11-21 ` in front if
// need be), in local time. What every stack held is known at the moments that were kept, at the
// peak and at the end: a time means the nearest of these.
#ifndef TOOL_MODEL_INSTANT_H
#define TOOL_MODEL_INSTANT_H

#include "tool/model/moments.h"

enum instant_kind { INSTANT_PEAK, INSTANT_EXIT, INSTANT_MOMENT };

struct instant {
    enum instant_kind kind;
    size_t moment;  // index in the list
    uint64_t at_ns;
    bool is_nearest;  // of a time that was asked for: `wanted_ns`
    uint64_t wanted_ns;
};

// Finds what `text` means; the error says what there is instead.
bool instant_find(const struct moments *moments, const char *text, struct instant *instant,
                  struct error *error);

// The same among marks alone; a time means the last mark not after it.
bool instant_find_mark(const struct moments *moments, const char *text, struct instant *instant,
                       struct error *error);

// What every stack held, by number; for free(). NULL without memory. The profile must not have been
// filtered by threads or lifespan.
struct held *instant_held(const struct moments *moments, const struct instant *instant);

// "the peak, at 1.20 s", "snapshot "warm", at 2.00 s", "the moment at 2.00 s, nearest to 1.90 s".
void instant_text(const struct moments *moments, const struct instant *instant, char *out,
                  size_t size);

#endif
