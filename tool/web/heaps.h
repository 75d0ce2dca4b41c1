// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap) for the page, which puts one in the place of malloc's heap when it is
// asked to (web/src/heaps.ts).
#ifndef TOOL_WEB_HEAPS_H
#define TOOL_WEB_HEAPS_H

#include "tool/model/profile.h"
#include "tool/web/sink.h"

// A chunk "heaps": [{"name": "mine", "heap": 0, "peak_ns": 1}, ...]; `heap` is the number of the
// whole heap that a name of arenas lies in, or the entry's own. Then a row for each stack and name
// in the columns "heap.name" (number of the entry), "heap.node" (as a change of the row before),
// "heap.slot" of the thread that allocated (-1: not known), "heap.context", and its values, named
// like those of stacks: "heap.peak_bytes". Nothing without such allocators. False without memory.
bool heaps_put(struct sink *sink, const struct profile *profile, struct error *error);

#endif
