// SPDX-License-Identifier: Apache-2.0
#include "tool/events/coder.h"

#include <stddef.h>
#include <string.h>

// What allocators give is mostly a multiple of this.
enum { STEP_SHIFT = 4, STEP_MASK = (1 << STEP_SHIFT) - 1, WORD_BITS = 64 };

// Regions are as large as the heaps of glibc's arenas.
enum { REGION_SHIFT = 26 };

// What an address is coded by, in the lowest bits of its code less 1.
enum address_code {
    STEPS_FROM_LAST,
    BYTES_FROM_LAST,
    FREED_BEFORE,     // above it: how many frees ago
    STEPS_IN_REGION,  // above it: the region's place among the latest, then steps
    ADDRESS_CODE_BITS = 2,
    REGION_BITS = 2,
};
_Static_assert(CODER_REGIONS == 1 << REGION_BITS, "a number for each");

void coder_begin(struct coder *coder, uint64_t start_ms, bool is_plain) {
    memset(coder, 0, sizeof *coder);
    coder->ms = start_ms;
    coder->is_plain = is_plain;
}

static uint64_t zigzag(uint64_t value) {
    return value << 1 ^ (uint64_t) - (int64_t)(value >> (WORD_BITS - 1));
}

static uint64_t unzigzag(uint64_t code) {
    return code >> 1 ^ (uint64_t) - (int64_t)(code & 1);
}

// --- cells and sizes

uint64_t coder_cell_code(const struct coder *coder, uint32_t cell) {
    return cell == coder->next_cells[coder->last_cell % CODER_CELLS] ? 0 : (uint64_t)cell + 1;
}

uint32_t coder_cell(const struct coder *coder, uint64_t code) {
    return code ? (uint32_t)(code - 1) : coder->next_cells[coder->last_cell % CODER_CELLS];
}

static uint64_t usual_size(const struct coder *coder, const struct event *event) {
    return event_kind(event) == CAIRN_EVENT_ALLOC ? coder->sizes[event->cell % CODER_CELLS] : 0;
}

uint64_t coder_size_code(const struct coder *coder, const struct event *event) {
    return event->size == usual_size(coder, event) ? 0 : event->size + 1;
}

uint64_t coder_size(const struct coder *coder, const struct event *event, uint64_t code) {
    return code ? code - 1 : usual_size(coder, event);
}

// --- addresses

// Size classes as those of glibc's small blocks; large ones have none.
static uint32_t class_of(uint64_t size) {
    const uint64_t least = 24;
    uint64_t number = size <= least ? 0 : (size - least + STEP_MASK) >> STEP_SHIFT;
    return number < CODER_CLASSES ? (uint32_t)number : CODER_CLASSES;
}

static uint64_t guess(const struct coder *coder, const struct event *event) {
    if (event_kind(event) != CAIRN_EVENT_ALLOC) return coder->last_alloc;
    uint32_t number = class_of(event->size);
    if (number == CODER_CLASSES) return 0;
    return coder->classes[number].freed[coder->classes[number].top % CODER_CLASS_DEPTH];
}

static size_t place_number(uint64_t address) {
    return (address >> STEP_SHIFT) % CODER_BLOCKS;
}

static const struct coder_place *place_of(const struct coder *coder, uint64_t address) {
    const struct coder_place *place = &coder->places[place_number(address)];
    return place->address == address ? place : NULL;
}

// How many frees ago it was freed; CODER_FREED: not lately.
static uint32_t frees_since(const struct coder *coder, uint64_t address) {
    const struct coder_place *place = place_of(coder, address);
    if (!place || !place->freed || coder->freed_count - place->freed >= CODER_FREED)
        return CODER_FREED;
    return coder->freed_count - place->freed;
}

// Its place among the latest; the first one, if it is none of these.
static uint32_t region_of(const struct coder *coder, uint64_t address) {
    for (uint32_t i = 1; i < CODER_REGIONS; i++)
        if (coder->regions[i] >> REGION_SHIFT == address >> REGION_SHIFT) return i;
    return 0;
}

uint64_t coder_address_code(const struct coder *coder, const struct event *event,
                            uint64_t address) {
    if (address == guess(coder, event)) return 0;
    bool is_alloc = event_kind(event) == CAIRN_EVENT_ALLOC;
    uint32_t since = is_alloc ? frees_since(coder, address) : CODER_FREED;
    if (since < CODER_FREED) return ((uint64_t)since << ADDRESS_CODE_BITS | FREED_BEFORE) + 1;
    bool is_near = coder->last_address >> REGION_SHIFT == address >> REGION_SHIFT;
    uint32_t region = is_near ? 0 : region_of(coder, address);
    uint64_t distance = address - (region ? coder->regions[region] : coder->last_address);
    uint64_t steps = zigzag((uint64_t)((int64_t)distance >> STEP_SHIFT));
    if (distance & STEP_MASK)
        return (zigzag(address - coder->last_address) << ADDRESS_CODE_BITS | BYTES_FROM_LAST) + 1;
    if (!region) return (steps << ADDRESS_CODE_BITS | STEPS_FROM_LAST) + 1;
    return ((steps << REGION_BITS | region) << ADDRESS_CODE_BITS | STEPS_IN_REGION) + 1;
}

static uint64_t plain_address(const struct coder *coder, uint64_t code) {
    uint64_t distance = unzigzag(code >> 1);
    return coder->last_address + (code & 1 ? distance : distance << STEP_SHIFT);
}

uint64_t coder_address(const struct coder *coder, const struct event *event, uint64_t code) {
    if (!code) return guess(coder, event);
    code--;
    if (coder->is_plain) return plain_address(coder, code);
    uint64_t above = code >> ADDRESS_CODE_BITS;
    switch ((enum address_code)(code & ((1 << ADDRESS_CODE_BITS) - 1))) {
    case STEPS_FROM_LAST:
        return coder->last_address + (unzigzag(above) << STEP_SHIFT);
    case BYTES_FROM_LAST:
        return coder->last_address + unzigzag(above);
    case FREED_BEFORE:
        return coder->freed[(coder->freed_count - above) % CODER_FREED];
    default:
        return coder->regions[above % CODER_REGIONS] +
               (unzigzag(above >> REGION_BITS) << STEP_SHIFT);
    }
}

// --- turns and what realloc took

static uint64_t usual_turn(const struct coder *coder, uint64_t address) {
    const struct coder_place *place = place_of(coder, address);
    return place ? place->turn : 0;
}

uint64_t coder_turn_code(const struct coder *coder, const struct event *event) {
    return zigzag(event->turn - usual_turn(coder, event->address));
}

uint64_t coder_turn(const struct coder *coder, const struct event *event, uint64_t code) {
    return coder->is_plain ? code : usual_turn(coder, event->address) + unzigzag(code);
}

uint64_t coder_taken_code(const struct coder *coder, uint64_t taken) {
    return zigzag(taken - coder->last_take);
}

uint64_t coder_taken(const struct coder *coder, uint64_t code) {
    return coder->is_plain ? code : coder->last_take + unzigzag(code);
}

// --- what is remembered

static void note_alloc(struct coder *coder, const struct event *event) {
    uint32_t number = class_of(event->size);
    struct coder_place *place = &coder->places[place_number(event->address)];
    coder->last_alloc = event->address;
    coder->sizes[event->cell % CODER_CELLS] = event->size;
    place->block = event->address;
    place->class_number = number;
    if (number == CODER_CLASSES) return;
    uint32_t *top = &coder->classes[number].top;
    uint64_t *freed = coder->classes[number].freed;
    if (freed[*top % CODER_CLASS_DEPTH] != event->address) return;
    freed[*top % CODER_CLASS_DEPTH] = 0;
    (*top)--;
}

static void note_free(struct coder *coder, const struct event *event) {
    const struct coder_place *place = &coder->places[place_number(event->address)];
    uint32_t number = place->class_number;
    if (place->block != event->address || number >= CODER_CLASSES) return;
    uint32_t top = ++coder->classes[number].top;
    coder->classes[number].freed[top % CODER_CLASS_DEPTH] = event->address;
}

static void note_place(struct coder *coder, const struct event *event, bool is_freed) {
    const uint64_t address = event->address;
    struct coder_place *place = &coder->places[place_number(address)];
    if (place->address != address) {
        place->address = address;
        place->turn = place->freed = 0;
    }
    place->turn = (event->flags & CAIRN_EVENT_TURN ? event->turn : place->turn) + 1;
    if (!is_freed) return;
    place->freed = ++coder->freed_count;
    coder->freed[coder->freed_count % CODER_FREED] = address;
}

static void note_region(struct coder *coder, uint64_t address) {
    uint32_t i = 0;
    while (i < CODER_REGIONS - 1 && coder->regions[i] >> REGION_SHIFT != address >> REGION_SHIFT)
        i++;
    for (; i > 0; i--) coder->regions[i] = coder->regions[i - 1];
    coder->regions[0] = address;
}

void coder_note(struct coder *coder, const struct event *event) {
    enum cairn_event_kind kind = event_kind(event);
    if (kind == CAIRN_EVENT_TIME) {
        coder->ms = event->ms;
        return;
    }
    coder->last_address = event->address;
    if (kind == CAIRN_EVENT_ALLOC || kind == CAIRN_EVENT_MAP) {
        coder->next_cells[coder->last_cell % CODER_CELLS] = event->cell;
        coder->last_cell = event->cell;
    }
    if (kind == CAIRN_EVENT_ALLOC) note_alloc(coder, event);
    bool is_freed = kind == CAIRN_EVENT_FREE || kind == CAIRN_EVENT_TAKE;
    if (is_freed) note_free(coder, event);
    if (kind == CAIRN_EVENT_TAKE) coder->last_take = event->address;
    note_place(coder, event, is_freed);
    note_region(coder, event->address);
}
