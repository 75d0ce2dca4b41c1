// SPDX-License-Identifier: Apache-2.0
// The first reading says what the blocks of each cell were like; what they would be in pools takes
// another one, and one more where cells turn out to have no arena in common.
#include "tool/events/pool_find.h"

#include <stdlib.h>

#include "format/format.h"
#include "tool/events/event_log.h"
#include "tool/events/pool_units.h"

struct reading {
    const struct pool_search *search;
    struct pool_candidates *found;
    struct pool_units units;
    struct live_blocks blocks;
};

// Its blocks may have a pool.
static bool is_of_interest(const struct reading *reading, const struct event *event) {
    return event_kind(event) == CAIRN_EVENT_ALLOC && event->size <= POOL_BLOCK_MOST &&
           event->alignment <= POOL_UNIT && !(event->flags & CAIRN_EVENT_THERE) &&
           event->cell < reading->search->cell_count && reading->search->stack_of_cell[event->cell];
}

static void count(struct reading *reading, const struct event *event) {
    struct pool_candidates *found = reading->found;
    const uint32_t no_call = CAIRN_EVENT_THERE | CAIRN_EVENT_UNSEEN;
    enum cairn_event_kind kind = event_kind(event);
    bool is_alloc = kind == CAIRN_EVENT_ALLOC;
    reading->units.allocations += is_alloc;
    if (!reading->units.is_first) return;
    found->events += !event_is_look(event);
    if (event->flags & no_call) return;
    found->calls += is_alloc || kind == CAIRN_EVENT_FREE || kind == CAIRN_EVENT_GONE;
    found->calls += is_alloc && event->flags & CAIRN_EVENT_MOVED;  // realloc is both
}

static bool release(struct reading *reading, const struct event *event, bool is_call) {
    struct block_change change;
    if (!live_blocks_follow(&reading->blocks, event, &change)) return false;
    if (!change.is_freed) return true;
    reading->units.units[change.freed.cell].is_resized |= event_kind(event) == CAIRN_EVENT_GONE;
    pool_units_release(&reading->units, &change.freed, event, is_call);
    return true;
}

// The block that a realloc took, and one whose free the log does not have although another one is
// in its place.
static bool release_before(struct reading *reading, const struct event *event) {
    struct event before = *event;
    before.flags = CAIRN_EVENT_GONE;
    before.address = event->taken;
    if (event->flags & CAIRN_EVENT_MOVED && !release(reading, &before, true)) return false;
    if (!live_blocks_find(&reading->blocks, event->address)) return true;
    before.flags = CAIRN_EVENT_FREE;
    before.address = event->address;
    return release(reading, &before, false);
}

static bool is_left_out(const struct reading *reading, const struct live_block *block) {
    return block->address && reading->units.units[block->cell].is_unfollowed;
}

// What is taken out moves others up, to its own place as well.
static bool drop_left_out(struct reading *reading) {
    struct live_blocks *blocks = &reading->blocks;
    struct block_change change;
    for (size_t i = 0; i < blocks->room; i++)
        while (is_left_out(reading, &blocks->places[i])) {
            const struct event gone = {.flags = CAIRN_EVENT_FREE,
                                       .address = blocks->places[i].address};
            if (!live_blocks_follow(blocks, &gone, &change)) return false;
        }
    return true;
}

// There are too many blocks: the cells that have most are left out until a quarter of the room is
// free. All others go on as before.
static bool make_room(struct reading *reading) {
    struct pool_units *units = &reading->units;
    uint64_t left = reading->blocks.count;
    while (left > reading->search->followed_limit / 4 * 3) {
        struct pool_unit *most = NULL;
        for (size_t i = 0; i < units->count; i++) {
            struct pool_unit *unit = &units->units[i];
            if (!unit->is_unfollowed && unit->live && (!most || unit->live > most->live))
                most = unit;
        }
        if (!most) break;
        most->is_unfollowed = true;
        left -= most->live < left ? most->live : left;
        reading->found->unfollowed_blocks += most->live;
    }
    return drop_left_out(reading);
}

static bool allocate(struct reading *reading, const struct event *event) {
    struct block_change change;
    struct event plain = *event;
    struct pool_unit *unit = &reading->units.units[event->cell];
    struct pool_candidates *found = reading->found;
    plain.flags &= ~(uint32_t)CAIRN_EVENT_MOVED;
    unit->is_resized |= (event->flags & CAIRN_EVENT_MOVED) > 0;
    bool is_full = reading->blocks.count >= reading->search->followed_limit;
    if (is_full && reading->units.is_first && !make_room(reading)) return false;
    unit->is_unfollowed |= is_full && !reading->units.is_first;
    if (unit->is_unfollowed) {
        found->unfollowed_blocks += reading->units.is_first;
        return true;
    }
    reading->blocks.allocations = reading->units.allocations - 1;  // numbers those left out as well
    if (!live_blocks_follow(&reading->blocks, &plain, &change)) return false;
    if (reading->blocks.count > found->followed_blocks)
        found->followed_blocks = reading->blocks.count;
    struct live_block *block = live_blocks_find(&reading->blocks, event->address);
    if (block) pool_units_allocate(&reading->units, block, event->slot);
    return true;
}

static bool follow(struct reading *reading, struct event *event) {
    if (event->slot > CAIRN_SLOT_SHARED) event->slot = CAIRN_SLOT_SHARED;
    count(reading, event);
    if (event_kind(event) != CAIRN_EVENT_ALLOC)
        return release(reading, event, !(event->flags & CAIRN_EVENT_UNSEEN));
    reading->units.last_dead[event->slot] = 0;
    return release_before(reading, event) &&
           (!is_of_interest(reading, event) || allocate(reading, event));
}

static bool read_log(struct reading *reading, struct error *error) {
    struct event event;
    int got;
    struct event_log *log = event_log_open(reading->search->log, error);
    if (!log) return false;
    live_blocks_free(&reading->blocks);
    reading->blocks.granule_shift = event_log_facts(log)->file.granule_shift;
    reading->found->is_partial = event_log_is_partial(log);
    while ((got = event_log_next(log, &event, error)) > 0)
        if (!follow(reading, &event)) {
            error_set(error, "no memory for the blocks of a log");
            got = -1;
            break;
        }
    event_log_close(log);
    return got == 0;
}

static bool find(struct reading *reading, struct error *error) {
    reading->units.is_first = true;
    if (!read_log(reading, error)) return false;
    if (!pool_units_join(&reading->units, reading->search))
        return error_set(error, "out of memory");
    do {
        pool_units_begin(&reading->units);
        if (!read_log(reading, error)) return false;
    } while (pool_units_part(&reading->units));
    return pool_choose(&reading->units, reading->search, reading->found) ||
           error_set(error, "out of memory");
}

bool pool_candidates_find(const struct pool_search *search, struct pool_candidates *found,
                          struct error *error) {
    struct reading reading = {.search = search, .found = found};
    *found = (struct pool_candidates){.followed_limit = search->followed_limit};
    bool is_ok = pool_units_make(&reading.units, search->cell_count)
                     ? find(&reading, error)
                     : error_set(error, "out of memory");
    live_blocks_free(&reading.blocks);
    pool_units_free(&reading.units);
    if (!is_ok) pool_candidates_free(found);
    return is_ok;
}
