// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby/engine.h"

#include <string.h>

#include "format/languages.h"

struct ruby_engine engine_ruby;

static const struct ruby_layout layouts[] = {
    {.version = 3u << 8 | 1u,
     .frame_bytes = 64,
     .body_location = 64,
     .body_lines = 120,
     .body_local = 176,
     .text = 16,
     .operators = 169,
     .class_extra = 24,
     .extra_variables = 8},
};

const struct ruby_layout *engine_ruby_layout(uint32_t version) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == version) return &layouts[i];
    return NULL;
}

// "3.1.2"; 0: none is said.
static uint16_t version_of_text(const char *text) {
    const unsigned major_shift = 8, ten = 10;
    unsigned parts[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        while (*text >= '0' && *text <= '9') parts[i] = parts[i] * ten + (unsigned)(*text++ - '0');
        if (*text++ != '.') return 0;
    }
    return (uint16_t)((parts[0] & 0xff) << major_shift | (parts[1] & 0xff));
}

// ---- what code says -----------------------------------------------------------------------------

static const uint8_t *behind_landing(const uint8_t *code) {
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
    return memcmp(code, landing, sizeof landing) == 0 ? code + sizeof landing : code;
}

static int32_t number_at(const uint8_t *code) {
    int32_t number;
    memcpy(&number, code, sizeof number);
    return number;
}

enum { RETURN = 0xc3 };

uintptr_t engine_ruby_loaded(const uint8_t *code) {
    static const uint8_t load[] = {0x8b, 0x05};
    code = behind_landing(code);
    const uint8_t *end = code + sizeof load + sizeof(int32_t);
    if (memcmp(code, load, sizeof load) != 0 || *end != RETURN) return 0;
    return (uintptr_t)end + (uintptr_t)(intptr_t)number_at(code + sizeof load);
}

bool engine_ruby_offsets(const uint8_t *code, uint32_t *first, uint32_t *second) {
    static const uint8_t load[] = {0x48, 0x8b, 0x05}, follow[] = {0x48, 0x8b, 0x00},
                         at_offset[] = {0x48, 0x8b, 0x80};
    const size_t number = sizeof(int32_t), step = sizeof at_offset + number;
    code = behind_landing(code);
    const uint8_t *second_load = code + sizeof load + number, *steps = second_load + sizeof follow;
    if (memcmp(code, load, sizeof load) != 0 || memcmp(second_load, follow, sizeof follow) != 0 ||
        memcmp(steps, at_offset, sizeof at_offset) != 0 ||
        memcmp(steps + step, at_offset, sizeof at_offset) != 0 || steps[2 * step] != RETURN)
        return false;
    *first = (uint32_t)number_at(steps + sizeof at_offset);
    *second = (uint32_t)number_at(steps + step + sizeof at_offset);
    return true;
}

// ---- what there is ------------------------------------------------------------------------------

static void find_objects(struct ruby_engine *engine) {
    const uint8_t *count = linker_search("rb_gc_count");
    const uint8_t *symbols = linker_search("rb_sym_immortal_count");
    engine->machine = (uintptr_t)linker_search("ruby_current_vm_ptr");
    engine->symbols = symbols ? engine_ruby_loaded(symbols) : 0;
    if (!engine->machine || !count ||
        !engine_ruby_offsets(count, &engine->machine_objects, &engine->objects_collections))
        engine->machine_objects = 0;
}

static bool find_unlocked(struct ruby_engine *engine) {
    static const char *const names[RUBY_UNLOCKED_MOST] = {"rb_nogvl", "rb_thread_call_without_gvl",
                                                          "rb_thread_call_without_gvl2",
                                                          "rb_thread_io_blocking_region"};
    for (size_t i = 0; i < RUBY_UNLOCKED_MOST; i++)
        if (!linker_find_function(names[i], &engine->unlocked[i].start, &engine->unlocked[i].end))
            return false;
    return true;
}

bool engine_ruby_is_unlocked(uintptr_t pc) {
    bool is_unlocked = false;
    for (size_t i = 0; i < RUBY_UNLOCKED_MOST; i++) {
        const struct ruby_code_range *range = &engine_ruby.unlocked[i];
        is_unlocked |= pc - range->start < range->end - range->start;
    }
    return is_unlocked;
}

// Threads keep their contexts as glibc knows it (linker_local_address).
enum ruby_state engine_ruby_find(uint16_t *version) {
    struct ruby_engine engine = {0};
    const char *text = linker_search("ruby_version");
    *version = 0;
    if (!text || !linker_search("ruby_init")) return RUBY_ABSENT;
    *version = version_of_text(text);
    const struct ruby_layout *layout = NULL;
    if (cairn_ruby_is_read(*version)) layout = engine_ruby_layout(*version);
    if (!layout) return RUBY_UNKNOWN;
    if (!linker_find_local("ruby_current_ec", &engine.context) ||
        !linker_find_function("rb_vm_exec", &engine.loop, &engine.loop_end) ||
        !find_unlocked(&engine) || !linker_search("gnu_get_libc_version")) {
        *version = 0;
        return RUBY_UNKNOWN;
    }
    engine.layout = *layout;
    find_objects(&engine);
    engine_ruby = engine;
    return RUBY_READ;
}
