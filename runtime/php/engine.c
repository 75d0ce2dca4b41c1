// SPDX-License-Identifier: Apache-2.0
#include "runtime/php/engine.h"

#include <string.h>

#include "format/languages.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/object.h"

struct php_engine engine_php;

static const struct php_layout layouts[] = {
    {.version = 8u << 8 | 2u,
     .globals_frame = 488,
     .globals_before = 880,
     .function_file = 152,
     .function_last_line = 164,
     .generator_frame = 56,
     .generator_parent = 152},
    {.version = 8u << 8 | 4u,
     .globals_frame = 488,
     .globals_before = 952,
     .function_file = 168,
     .function_last_line = 180,
     .generator_frame = 56,
     .generator_parent = 152},
};

const struct php_layout *engine_php_layout(uint32_t version) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == version) return &layouts[i];
    return NULL;
}

// Number of the engine's version, which is 4 of PHP 8, as major << 8 | minor of PHP; 0: none is
// said. "Zend Engine v4.2.36, Copyright ..."
static uint16_t version_of_text(const char *text) {
    const unsigned php_before_engine = 4, major_shift = 8, ten = 10;
    unsigned parts[2] = {0, 0};
    static const char beginning[] = "Zend Engine v";
    if (strncmp(text, beginning, sizeof beginning - 1) != 0) return 0;
    text += sizeof beginning - 1;
    for (int i = 0; i < 2; i++) {
        while (*text >= '0' && *text <= '9') parts[i] = parts[i] * ten + (unsigned)(*text++ - '0');
        if (*text++ != '.') return 0;
    }
    return (uint16_t)((parts[0] + php_before_engine) << major_shift | (parts[1] & 0xff));
}

// NULL: it has not begun.
static const char *version_text(void) {
    const char *(*say)(void) = NULL;
    void *function = linker_search("get_zend_version");
    memcpy(&say, &function, sizeof say);
    return say ? say() : NULL;
}

// ---- the rare part of a function ----------------------------------------------------------------

enum { JUMPS_MOST = 256, PART_BYTES_MOST = 32 << 10, FAR_MOST = 64 << 20 };

// Returns where a jump with a distance of 4 bytes leads that may begin at an address; 0: none does.
static uintptr_t jump_target(const uint8_t *code) {
    enum { NEAR = 0xe9, TWO_BYTES = 0x0f, CONDITION = 0x80, CONDITION_MASK = 0xf0 };
    bool is_conditional = code[0] == TWO_BYTES && (code[1] & CONDITION_MASK) == CONDITION;
    if (!is_conditional && code[0] != NEAR) return 0;
    int32_t distance;
    code += is_conditional ? 2 : 1;
    memcpy(&distance, code, sizeof distance);
    if (distance > FAR_MOST || distance < -FAR_MOST) return 0;
    return (uintptr_t)code + sizeof distance + (uintptr_t)(intptr_t)distance;
}

static uint32_t count_near(const uintptr_t *places, uint32_t count, uintptr_t first) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) found += places[i] - first < PART_BYTES_MOST;
    return found;
}

// Bytes in the middle of an instruction may look like a jump: where most of them lead side by side
// is such a part. 0: there is none.
static uintptr_t find_far_place(uintptr_t start, uintptr_t end) {
    const unsigned longest = 6;
    uintptr_t places[JUMPS_MOST], place = 0;
    uint32_t count = 0, most = 1;
    for (uintptr_t at = start; at + longest <= end && count < JUMPS_MOST; at++) {
        uintptr_t target = jump_target((const uint8_t *)at);
        if (target && target - start >= end - start) places[count++] = target;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t found = count_near(places, count, places[i]);
        if (found > most) most = found, place = places[i];
    }
    return place;
}

// The sorted table of .eh_frame_hdr: pairs (start of code, entry), both relative to the header.
enum { TABLE_COUNT = 8, TABLE = 12, TABLE_STEP = 8 };

static uintptr_t table_start(const uint8_t *header, uint32_t index) {
    int32_t offset;
    memcpy(&offset, header + TABLE + (size_t)index * TABLE_STEP, sizeof offset);
    return (uintptr_t)header + (uintptr_t)(intptr_t)offset;
}

bool engine_php_part_of(const uint8_t *header, uintptr_t place, uintptr_t *start, uintptr_t *end) {
    static const uint8_t usual[] = {1, 0x1b, 0x03, 0x3b};  // version, forms of what follows
    uint32_t first = 0, last;
    if (!header || memcmp(header, usual, sizeof usual) != 0) return false;
    memcpy(&last, header + TABLE_COUNT, sizeof last);
    if (last < 2 || table_start(header, 0) > place) return false;
    for (last--; last - first > 1;) {
        uint32_t middle = first + (last - first) / 2;
        *(table_start(header, middle) <= place ? &first : &last) = middle;
    }
    *start = table_start(header, first);
    *end = table_start(header, last);
    return place < *end;
}

static void find_rare(struct php_engine *engine) {
    uintptr_t place = find_far_place(engine->loop, engine->loop_end);
    struct object object;
    if (!place || !object_find(place, &object) ||
        !engine_php_part_of(object.eh_frame_hdr, place, &engine->rare, &engine->rare_end))
        engine->rare = engine->rare_end = 0;
}

// ---- what there is ------------------------------------------------------------------------------

enum php_state engine_php_find(uint16_t *version) {
    struct php_engine engine = {.globals = (uintptr_t)linker_search("executor_globals")};
    *version = 0;
    if (!linker_find_function("execute_ex", &engine.loop, &engine.loop_end)) return PHP_ABSENT;
    const struct php_layout *layout = NULL;
    const char *text = version_text();
    if (!text) return PHP_ABSENT;
    *version = version_of_text(text);
    if (cairn_php_is_read(*version)) layout = engine_php_layout(*version);
    if (!engine.globals) *version = 0;
    if (!layout || !engine.globals) return PHP_UNKNOWN;
    engine.layout = *layout;
    engine.generator = (uintptr_t)linker_search("zend_ce_generator");
    engine.frameless = (uintptr_t)linker_search("zend_flf_functions");
    find_rare(&engine);
    engine_php = engine;
    return PHP_READ;
}
