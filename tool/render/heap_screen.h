// SPDX-License-Identifier: Apache-2.0
// The views heap and pages: what a heap is like, and who keeps its pages resident.
#ifndef TOOL_RENDER_HEAP_SCREEN_H
#define TOOL_RENDER_HEAP_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"
#include "tool/base/units.h"
#include "tool/model/heap_state.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// What is shown. `profile` and `names`: of its recording; NULL: it has none.
struct heap_about {
    const char *name;  // a pid or a core, safe text
    const struct heap_state *state;
    const struct profile *profile;
    const struct frame_names *names;
};

// False without memory.
bool heap_screen_print(const struct terminal *terminal, const struct heap_about *about,
                       const struct view_options *view, struct error *error);
bool pages_screen_print(const struct terminal *terminal, const struct heap_about *about,
                        const struct view_options *view, struct error *error);

// The rows of these views, without whose memory it is. False without memory.
bool heap_answer(struct answer *answer, const struct heap_about *about,
                 const struct view_options *view, struct error *error);
bool pages_answer(struct answer *answer, const struct heap_about *about,
                  const struct view_options *view, struct error *error);

// What of the heap could not be read, in lines; nothing if there is no such thing.
void heap_print_doubts(const struct terminal *terminal, const struct heap_state *state);

// Print pages without blocks, and what is kept by size, of another allocator than glibc's.
void heap_print_empty(const struct terminal *terminal, const struct heap_state *state,
                      bool is_plain);
void heap_print_sizes(const struct terminal *terminal, const struct heap_state *state,
                      const struct view_options *view);

// "blocks of 64 B to 127 B".
struct unit_text heap_class_name(unsigned class, bool is_plain_number);

// The picture of a heap: its memory by address, each cell coloured by how much of what is resident
// there is live. Areas of one kind form a strip, one behind the other without their gaps.

// A cell's live bytes as percent of its resident pages, 0 to 100, or:
#define HEAP_CELL_ABSENT 255  // no page of it is resident

struct heap_strip {
    enum heap_area_kind kind;
    size_t area_count;
    uint64_t bytes, resident_bytes, live_bytes;
    size_t first_cell, cell_count;
};

struct heap_map {
    uint64_t cell_bytes;
    ARRAY(struct heap_strip) strips;
    ARRAY(uint8_t) cells;
    ARRAY(uint64_t) addresses;  // where each cell begins
};

// Cells are as small as `cell_limit` allows, a page at least. False without memory.
bool heap_map_build(const struct heap_state *state, size_t cell_limit, struct heap_map *map,
                    struct error *error);
void heap_map_free(struct heap_map *map);

const char *heap_area_name(enum heap_area_kind kind);

// In characters of blocks, at most 80 columns wide. False without memory.
bool heap_map_print(const struct terminal *terminal, const struct heap_state *state,
                    const struct view_options *view, struct error *error);

// The member "map". False without memory.
bool heap_map_json_put(struct json *json, const struct heap_state *state, size_t cell_limit);

#endif
