// SPDX-License-Identifier: Apache-2.0
// The table has no lock: it is filled by compare-and-swap, and never emptied.
#include "runtime/managed/codes.h"

#include <stdbool.h>
#include <string.h>

#include "format/format.h"
#include "runtime/sys/sys.h"

struct codes codes;

// A slot of the table: the upper part of the record's hash, and its number.
enum { TABLE_SLOTS = 1 << 17, TABLE_TRIES = 64, NUMBER_BITS = 28 };
static uint64_t *table;

static uint64_t hash_words(const uint64_t *words, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) hash = codes_mix(hash, words[i]);
    return codes_mix(hash, 0);
}

bool codes_begin(void) {
    const struct cairn_code unknown = {.bytes = sizeof unknown};
    if (!table) table = sys_reserve(TABLE_SLOTS * sizeof *table);
    void *first = table ? region_take(&codes.region, sizeof unknown) : NULL;
    if (first) memcpy(first, &unknown, sizeof unknown);
    return first != NULL;
}

static const uint8_t *record_at(uint32_t number) {
    return codes.region.base + (size_t)number * CAIRN_CODE_ALIGN;
}

static uint32_t write_record(const uint64_t *content, size_t size) {
    uint8_t *record = region_take(&codes.region, size);
    if (!record) return CODE_UNKNOWN;
    memcpy(record, content, size);
    uint64_t number = (uint64_t)(record - codes.region.base) / CAIRN_CODE_ALIGN;
    return number >> NUMBER_BITS ? CODE_UNKNOWN : (uint32_t)number;
}

uint32_t codes_intern(const uint64_t *record, size_t size) {
    uint64_t hash = hash_words(record, size / sizeof *record);
    const uint64_t number_mask = (1u << NUMBER_BITS) - 1;
    uint32_t own = CODE_UNKNOWN;
    for (uint32_t i = 0; i < TABLE_TRIES; i++) {
        uint64_t *slot = &table[(hash + i) % TABLE_SLOTS];
        uint64_t there = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (!there) {
            if (!own) own = write_record(record, size);
            if (!own) return CODE_UNKNOWN;
            if (__atomic_compare_exchange_n(slot, &there, (hash & ~number_mask) | own, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return own;
        }
        uint32_t number = (uint32_t)(there & number_mask);
        if (((there ^ hash) & ~number_mask) == 0 && memcmp(record_at(number), record, size) == 0)
            return number;
    }
    return own;
}
