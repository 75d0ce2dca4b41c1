// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_remedies_pin.h"

#include <stdio.h>

#include "tool/base/units.h"
#include "tool/heap/live_block.h"
#include "tool/proc/remote.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"

// Names the stack of the cell. False: it has none, or there is no memory.
static bool name_stack(struct pin_origin *origin, uint32_t cell) {
    const struct profile *profile = &origin->opened->profile;
    size_t stack = profile_stack_of(profile, cell);
    struct measured measured = {.value = (int64_t)origin->bytes, .blocks = 1};
    struct frame_list frames = {0};
    struct error unused;
    if (stack >= profile->stack_count) return false;
    uint32_t node = profile->stacks[stack].node;
    names_want_stack(origin->opened->names, node, 0);
    if (!names_resolve(origin->opened->names, &unused)) return false;
    origin->names = names_frames(origin->opened->names);
    bool is_ok = site_list_add(&origin->sites, profile, &origin->names, node, measured, &frames);
    frame_list_free(&frames);
    return is_ok && origin->sites.sites.count;
}

static void close_all(struct pin_origin *origin) {
    site_list_free(&origin->sites);
    if (origin->opened == &origin->own) opened_close(&origin->own);
}

// Looks it up in the open recording's map.
static void find(struct pin_origin *origin, const struct memory_reader *memory) {
    uint32_t cell;
    origin->is_known =
        live_block_cell(memory, &origin->opened->recording.header, origin->address, &cell) &&
        name_stack(origin, cell);
    if (!origin->is_known) close_all(origin);
}

void pin_origin_of_look(const struct heap_look *look, struct opened *opened,
                        const struct arena_free *arena, struct pin_origin *origin) {
    if (!arena) return;
    origin->address = arena->pin.address;
    origin->bytes = arena->pin.bytes;
    origin->opened = opened;
    const struct memory_view view = core_view(look->core);
    find(origin, &view.reader);
}

void pin_origin_of_process(pid_t pid, const struct arena_free *arena, struct pin_origin *origin) {
    struct remote remote = remote_of(pid);
    const struct memory_reader memory = remote_reader(&remote);
    struct live_process live;
    struct error unused;
    if (!arena || !live_describe(pid, &live)) return;
    origin->address = arena->pin.address;
    origin->bytes = arena->pin.bytes;
    name_options_symbols()->process = (uint32_t)pid;
    origin->opened = &origin->own;
    if (opened_open(live.path, &origin->own, &unused)) find(origin, &memory);
}

void pin_origin_close(struct pin_origin *origin) {
    if (!origin->is_known) return;
    close_all(origin);
    origin->is_known = false;
}

void pin_origin_print(const struct pin_origin *origin, const struct terminal *terminal) {
    enum { FIGURES_COLUMNS = 28 };
    if (!origin->is_known) return;
    printf("      block: %10s, by ", units_size((int64_t)origin->bytes).text);
    site_print(terminal, &origin->sites.sites.items[0], FIGURES_COLUMNS);
}

const struct frame_list *pin_origin_frames(const struct pin_origin *origin,
                                           struct frame_list *frames) {
    bool is_filled =
        origin->is_known && frame_list_fill(frames, &origin->opened->profile, &origin->names,
                                            origin->sites.sites.items[0].node, 0);
    return is_filled ? frames : NULL;
}
