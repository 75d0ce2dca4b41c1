// SPDX-License-Identifier: Apache-2.0
// A table by address without marks for what was taken out: what follows moves up.
#include "tool/events/live_blocks.h"

#include <stdlib.h>

static const uint64_t hash_factor = UINT64_C(0x9e3779b97f4a7c15);
enum { ROOM_FIRST = 1 << 12, HASH_SHIFT = 32 };

void live_blocks_free(struct live_blocks *blocks) {
    free(blocks->places);
    *blocks = (struct live_blocks){0};
}

static size_t home_of(const struct live_blocks *blocks, uint64_t address) {
    return (size_t)(address * hash_factor >> HASH_SHIFT) & (blocks->room - 1);
}

static size_t place_of(const struct live_blocks *blocks, uint64_t address) {
    size_t at = home_of(blocks, address);
    while (blocks->places[at].address && blocks->places[at].address != address)
        at = (at + 1) & (blocks->room - 1);
    return at;
}

static struct live_block *find(const struct live_blocks *blocks, uint64_t address) {
    struct live_block *block = blocks->room ? &blocks->places[place_of(blocks, address)] : NULL;
    return block && block->address ? block : NULL;
}

struct live_block *live_blocks_find(const struct live_blocks *blocks, uint64_t address) {
    return find(blocks, address);
}

bool live_blocks_is_again(const struct live_blocks *blocks, const struct event *event) {
    if (!(event->flags & CAIRN_EVENT_THERE)) return false;
    const struct live_block *block = find(blocks, event->address);
    return block && block->is_there && block->size == event->size && block->cell == event->cell;
}

static bool grow(struct live_blocks *blocks) {
    struct live_blocks larger = *blocks;
    larger.room = blocks->room ? 2 * blocks->room : ROOM_FIRST;
    larger.places = calloc(larger.room, sizeof *larger.places);
    if (!larger.places) return false;
    for (size_t i = 0; i < blocks->room; i++)
        if (blocks->places[i].address)
            larger.places[place_of(&larger, blocks->places[i].address)] = blocks->places[i];
    free(blocks->places);
    *blocks = larger;
    return true;
}

static void take_out(struct live_blocks *blocks, struct live_block *block) {
    size_t hole = (size_t)(block - blocks->places), at = hole;
    const size_t mask = blocks->room - 1;
    blocks->count--;
    for (;;) {
        at = (at + 1) & mask;
        if (!blocks->places[at].address) break;
        size_t home = home_of(blocks, blocks->places[at].address);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        blocks->places[hole] = blocks->places[at];
        hole = at;
    }
    blocks->places[hole] = (struct live_block){0};
}

// False: the block is not known.
static bool end(struct live_blocks *blocks, uint64_t address, struct block_change *change) {
    struct live_block *block = find(blocks, address);
    change->is_unknown |= !block;
    if (!block) return false;
    change->freed = *block;
    change->is_freed = true;
    take_out(blocks, block);
    return true;
}

static bool begin(struct live_blocks *blocks, const struct event *event,
                  struct block_change *change) {
    if (2 * (blocks->count + 1) > blocks->room && !grow(blocks)) return false;
    struct live_block *block = &blocks->places[place_of(blocks, event->address)];
    change->is_replaced = block->address;
    change->replaced = *block;
    if (!block->address) blocks->count++;
    *block = (struct live_block){.address = event->address,
                                 .size = event->size,
                                 .alignment = event->alignment,
                                 .number = ++blocks->allocations,
                                 .ms = event->ms,
                                 .cell = event->cell,
                                 .thread = event->thread,
                                 .is_there = event->flags & CAIRN_EVENT_THERE};
    change->allocated = *block;
    change->is_allocated = true;
    return true;
}

// A taken block keeps its entry under an address that no block has, until it is known what became
// of it: its own may be another one's by then.
static uint64_t aside(uint64_t address) {
    return address | UINT64_C(1) << 63;
}

static bool take(struct live_blocks *blocks, uint64_t address, struct block_change *change) {
    struct live_block *block = find(blocks, address);
    change->is_unknown |= !block;
    if (!block) return true;
    struct live_block taken = *block;
    take_out(blocks, block);
    if (2 * (blocks->count + 1) > blocks->room && !grow(blocks)) return false;
    taken.address = aside(address);
    taken.is_taken = true;
    struct live_block *place = &blocks->places[place_of(blocks, taken.address)];
    if (!place->address) blocks->count++;
    *place = taken;
    return true;
}

static void put_back(struct live_blocks *blocks, uint64_t address, struct block_change *change) {
    struct live_block *taken = find(blocks, aside(address));
    change->is_unknown |= !taken;
    if (!taken) return;
    struct live_block block = *taken;
    take_out(blocks, taken);
    block.address = address;
    block.is_taken = false;
    struct live_block *place = &blocks->places[place_of(blocks, address)];
    if (!place->address) blocks->count++;
    *place = block;
    change->is_failed = true;
}

static void settle(struct live_blocks *blocks, uint64_t address, struct block_change *change) {
    if (end(blocks, aside(address), change)) change->freed.address = address;
}

// The free of a block that nobody saw: the one in its place, or in the granule before, which went
// on into this one.
static void end_unseen(struct live_blocks *blocks, uint64_t address, struct block_change *change) {
    const uint64_t granule = UINT64_C(1) << blocks->granule_shift, half = granule / 2;
    const uint64_t start = address & ~(granule - 1);
    const uint64_t places[] = {address, start, start + half, start - granule, start - half};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (find(blocks, places[i])) {
            end(blocks, places[i], change);
            return;
        }
    change->is_unknown = true;
}

bool live_blocks_follow(struct live_blocks *blocks, const struct event *event,
                        struct block_change *change) {
    *change = (struct block_change){0};
    switch (event_kind(event)) {
    case CAIRN_EVENT_ALLOC:
        if (event->flags & CAIRN_EVENT_MOVED) settle(blocks, event->taken, change);
        return begin(blocks, event, change);
    case CAIRN_EVENT_FREE:
        if (event->flags & CAIRN_EVENT_UNSEEN)
            end_unseen(blocks, event->address, change);
        else
            end(blocks, event->address, change);
        return true;
    case CAIRN_EVENT_TAKE:
        return take(blocks, event->address, change);
    case CAIRN_EVENT_GONE:
        settle(blocks, event->address, change);
        return true;
    case CAIRN_EVENT_BACK:
        put_back(blocks, event->address, change);
        return true;
    default:
        return true;
    }
}
