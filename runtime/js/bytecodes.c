// SPDX-License-Identifier: Apache-2.0
#include "runtime/js/bytecodes.h"

#include <stddef.h>

#include "runtime/managed/memory.h"

// A letter a bytecode, where V8's own table may not be exported: its bytes that stay at each scale,
// less one, times OPERANDS, and those that are scaled.
enum { OPERANDS = 6, FIRST_LETTER = 'a' };

struct version {
    uint16_t version, count;
    const char *sizes;  // NULL: V8's own table is exported
};

static const struct version versions[] = {
    {10 << 8 | 2, 198, NULL},
    {11 << 8 | 3, 198, NULL},
    {13 << 8 | 6, 208,
     "aaaaabcdeopbabaaaaabdddbbbbcbbbaaagcccdbdbbdddbdddhd"
     "dceccdddjdjccccccccccccccccccccccccbbbbaabbbbdeedefe"
     "cdeeopiieecccccccccabbbaaoiabiaicibccccaaadbbbbbbbbb"
     "bdbbbbbbbbbbbbddbcebaaaabaabdeddabbaaaaaaaaaaaaaaaaa"},
};

static const struct version *version_find(uint16_t version) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i].version == version) return &versions[i];
    return NULL;
}

bool bytecodes_is_known(uint16_t version) {
    return version_find(version) != NULL;
}

static void write_sizes(const struct version *version, uint8_t sizes[BYTECODES_SIZES]) {
    for (unsigned scale = 0; scale < BYTECODES_SCALES; scale++)
        for (uint32_t i = 0; i < version->count; i++) {
            unsigned letter = (unsigned)(version->sizes[i] - FIRST_LETTER);
            unsigned size = 1 + letter / OPERANDS + (letter % OPERANDS << scale);
            sizes[scale * version->count + i] = (uint8_t)size;
        }
}

uint32_t bytecodes_read_sizes(uint16_t version_number, uint64_t place,
                              uint8_t sizes[BYTECODES_SIZES]) {
    const struct version *version = version_find(version_number);
    if (!version) return 0;
    size_t bytes = (size_t)BYTECODES_SCALES * version->count;
    if (place) return memory_read_carefully(place, sizes, bytes) ? version->count : 0;
    if (!version->sizes) return 0;
    write_sizes(version, sizes);
    return version->count;
}
