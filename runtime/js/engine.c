// SPDX-License-Identifier: Apache-2.0
#include "runtime/js/engine.h"

#include <stddef.h>

#include "format/format.h"
#include "format/languages.h"
#include "runtime/sys/linker.h"

struct engine_layout engine;

struct constant {
    const char *name, *older_name;
    uint16_t member;  // its offset in engine_layout
};

static const struct constant constants[] = {
#define ENGINE_CONSTANT(member, name) {name, NULL, offsetof(struct engine_layout, member)},
#define ENGINE_RENAMED(member, name, older) {name, older, offsetof(struct engine_layout, member)},
    ENGINE_ROWS(ENGINE_CONSTANT) ENGINE_RENAMED_ROWS(ENGINE_RENAMED)
#undef ENGINE_CONSTANT
#undef ENGINE_RENAMED
};
enum { CONSTANT_COUNT = sizeof constants / sizeof constants[0] };

static bool read_symbol(const char *name, int32_t *value) {
    uintptr_t address = (uintptr_t)linker_search(name);
    return address && memory_read_carefully(address, value, sizeof *value);
}

static bool take_constants(struct engine_layout *layout) {
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        const struct constant *constant = &constants[i];
        int32_t *member = (int32_t *)((char *)layout + constant->member);
        if (!read_symbol(constant->name, member) &&
            !(constant->older_name && read_symbol(constant->older_name, member)))
            return false;
    }
    layout->bytecode_sizes =
        (uintptr_t)linker_search("_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE");
    return true;
}

static bool is_in_shared(int32_t offset) {
    const int32_t word = sizeof(uint64_t);
    return offset >= 0 && offset < ENGINE_SHARED_WORDS * word && offset % word == 0;
}

// Numbers are words of 64 bits (no compressed pointers), and objects lie as they do in the versions
// that were tried, where that is not among the constants.
static bool is_as_known(const struct engine_layout *layout) {
    const int32_t number_shift = 31, word = sizeof(uint64_t);
    return layout->smi_shift == number_shift && layout->frame_context == -word &&
           is_in_shared(layout->shared_name) && is_in_shared(layout->shared_script) &&
           layout->array_length == word && layout->array_data == 2 * word &&
           layout->script_source == word && layout->script_name == 2 * word;
}

enum engine_state engine_find(uint16_t *version) {
    const unsigned major_shift = 8;
    int32_t major, minor;
    struct engine_layout layout = {0};
    *version = 0;
    if (!read_symbol("_ZN2v88internal7Version6major_E", &major) ||
        !read_symbol("_ZN2v88internal7Version6minor_E", &minor))
        return ENGINE_ABSENT;
    layout.version = (uint16_t)(major << major_shift | minor);
    *version = layout.version;
    if (!cairn_js_is_read(layout.version) || !take_constants(&layout) || !is_as_known(&layout))
        return ENGINE_UNKNOWN;
    engine = layout;
    return ENGINE_READ;
}

int32_t engine_type(struct memory_reader *memory, uint64_t object) {
    const uint32_t type_mask = UINT16_MAX;
    uint64_t map;
    uint32_t type;
    if (!engine_read(memory, object, 0, &map) || !engine_is_object(map)) return -1;
    uint64_t at = map - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)engine.map_type;
    return memory_read_part(memory, at, type_mask, &type) ? (int32_t)type : -1;
}
