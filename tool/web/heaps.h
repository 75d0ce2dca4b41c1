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
// like those of stacks: "heap.peak_bytes". A chunk "heapShapes": [{"row": 0, "sizes": [[64, 3]],
// "ages_ms": [0, 3]}, ...], of the rows that allocated most. Nothing without such allocators. False
// without memory.
bool heaps_put(struct sink *sink, const struct profile *profile, struct error *error);

// Columns "heap_snapshot.bytes", one for each of these snapshots (by their index in the list): what
// the rows held then, as a change of the snapshot before.
bool heaps_put_held(struct sink *sink, const struct profile *profile, const size_t *chosen,
                    size_t count, struct error *error);

#endif
