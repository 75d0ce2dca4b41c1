// SPDX-License-Identifier: Apache-2.0
// Guesses by which an event takes few bytes: what the next event is like, by those before it in the
// same frame. Who writes and who reads a frame makes the same guesses.
//
//     cell     the one that followed the last event's cell the last time
//     size     what the cell's last block had
//     address  of an allocation: the block of its size class that was freed last, as allocators
//              give those again; of a free: the block that was allocated last. Where the guess is
//              wrong: how many frees ago that block was freed, or how far it is from the last
//              address in the same region
//     turn     one more than the last one in that place
//     taken    what realloc took last
//
// Older logs (CAIRN_EVENT_FILE_VERSION_PLAIN) have no such codes of turns, taken addresses, frees
// and regions.
#ifndef TOOL_EVENTS_CODER_H
#define TOOL_EVENTS_CODER_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/events/event.h"

enum {
    CODER_CELLS = 1024,
    CODER_CLASSES = 128,
    CODER_CLASS_DEPTH = 16,
    CODER_BLOCKS = 4096,
    CODER_FREED = 256,
    CODER_REGIONS = 4,
};

struct coder {
    uint64_t last_address, last_alloc;
    uint64_t ms;
    uint32_t last_cell;
    uint32_t next_cells[CODER_CELLS];
    uint64_t sizes[CODER_CELLS];
    struct {
        uint64_t freed[CODER_CLASS_DEPTH];  // a ring
        uint32_t top;
    } classes[CODER_CLASSES];
    struct coder_place {
        uint64_t address, turn;  // of the next event there
        uint64_t block;          // that was allocated last at an address with this place
        uint32_t class_number;   // its size class
        uint32_t freed;          // number of the address' last free, from 1
    } places[CODER_BLOCKS];
    uint64_t freed[CODER_FREED];  // a ring
    uint32_t freed_count;
    uint64_t regions[CODER_REGIONS];  // the last address in each, the latest region first
    uint64_t last_take;
    bool is_plain;  // an older log's
};

void coder_begin(struct coder *coder, uint64_t start_ms, bool is_plain);

// Codes of the event's cell, size, address and the rest, in this order: the event that coder_note
// gets next has what was coded before. Codes are those of the present format.
uint64_t coder_cell_code(const struct coder *coder, uint32_t cell);
uint64_t coder_size_code(const struct coder *coder, const struct event *event);
uint64_t coder_address_code(const struct coder *coder, const struct event *event, uint64_t address);
uint64_t coder_turn_code(const struct coder *coder, const struct event *event);
uint64_t coder_taken_code(const struct coder *coder, uint64_t taken);

// The other way. Any code gives something.
uint32_t coder_cell(const struct coder *coder, uint64_t code);
uint64_t coder_size(const struct coder *coder, const struct event *event, uint64_t code);
uint64_t coder_address(const struct coder *coder, const struct event *event, uint64_t code);
uint64_t coder_turn(const struct coder *coder, const struct event *event, uint64_t code);
uint64_t coder_taken(const struct coder *coder, uint64_t code);

// The event is complete.
void coder_note(struct coder *coder, const struct event *event);

#endif
