// SPDX-License-Identifier: Apache-2.0
#include "tool/events/coder.h"

#include <string.h>

// What allocators give is mostly a multiple of this.
enum { STEP_SHIFT = 4, STEP_MASK = (1 << STEP_SHIFT) - 1, WORD_BITS = 64 };

void coder_begin(struct coder *coder, uint64_t start_ms) {
    memset(coder, 0, sizeof *coder);
    coder->ms = start_ms;
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

uint64_t coder_address_code(const struct coder *coder, const struct event *event,
                            uint64_t address) {
    if (address == guess(coder, event)) return 0;
    uint64_t distance = address - coder->last_address;
    bool is_step = !(distance & STEP_MASK);
    int64_t steps = (int64_t)distance >> STEP_SHIFT;
    return (is_step ? zigzag((uint64_t)steps) << 1 : zigzag(distance) << 1 | 1) + 1;
}

uint64_t coder_address(const struct coder *coder, const struct event *event, uint64_t code) {
    if (!code) return guess(coder, event);
    code--;
    uint64_t distance = unzigzag(code >> 1);
    return coder->last_address + (code & 1 ? distance : distance << STEP_SHIFT);
}

static void note_alloc(struct coder *coder, const struct event *event) {
    uint32_t number = class_of(event->size);
    size_t place = (event->address >> STEP_SHIFT) % CODER_BLOCKS;
    coder->last_alloc = event->address;
    coder->sizes[event->cell % CODER_CELLS] = event->size;
    coder->blocks[place].address = event->address;
    coder->blocks[place].class_number = number;
    if (number == CODER_CLASSES) return;
    uint32_t *top = &coder->classes[number].top;
    uint64_t *freed = coder->classes[number].freed;
    if (freed[*top % CODER_CLASS_DEPTH] != event->address) return;
    freed[*top % CODER_CLASS_DEPTH] = 0;
    (*top)--;
}

static void note_free(struct coder *coder, const struct event *event) {
    size_t place = (event->address >> STEP_SHIFT) % CODER_BLOCKS;
    uint32_t number = coder->blocks[place].class_number;
    if (coder->blocks[place].address != event->address || number >= CODER_CLASSES) return;
    uint32_t top = ++coder->classes[number].top;
    coder->classes[number].freed[top % CODER_CLASS_DEPTH] = event->address;
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
    if (kind == CAIRN_EVENT_FREE || kind == CAIRN_EVENT_TAKE) note_free(coder, event);
}
