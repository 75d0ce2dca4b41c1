// SPDX-License-Identifier: Apache-2.0
// Code of languages that have stacks of their own, as records of the recording (format.h, struct
// cairn_code). Each is looked for by content in a table of the process, so that code that is
// compiled again and again has one record.
#ifndef RUNTIME_MANAGED_CODES_H
#define RUNTIME_MANAGED_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

enum { CODE_UNKNOWN = 0 };

struct codes {
    struct region region;  // (format.h, CAIRN_SECTION_CODES)
};

extern HIDDEN struct codes codes;

// A new recording begins: the code that stands for those that cannot be named. False without
// memory.
bool codes_begin(void);

// The number of a record (struct cairn_code with its texts), its offset by CAIRN_CODE_ALIGN: of one
// that says the same, or it is written. CODE_UNKNOWN: there is no room.
uint32_t codes_intern(const uint64_t *record, size_t size);

// A hash goes on with a word.
static inline uint64_t codes_mix(uint64_t hash, uint64_t word) {
    const uint64_t mix_factor = 0x9e3779b97f4a7c15u;
    hash = (hash ^ word) * mix_factor;
    return hash ^ hash >> 29;
}

#endif
