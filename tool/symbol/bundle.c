// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/bundle.h"

#include <string.h>

// Takes `count` entries of `entry_bytes` from the front of what is left.
static const uint8_t *take(const uint8_t **at, size_t *left, uint64_t count, size_t entry_bytes) {
    const uint8_t *part = *at;
    uint64_t bytes = count * entry_bytes;  // 32 bits times a small number
    if (!part || bytes > *left) return *at = NULL;
    *at += bytes;
    *left -= (size_t)bytes;
    return part;
}

static struct cairn_symbols_module module_at(const struct bundle *bundle, uint32_t index) {
    struct cairn_symbols_module module;
    memcpy(&module, bundle->modules + (size_t)index * sizeof module, sizeof module);
    return module;
}

static struct cairn_symbol symbol_at(const struct bundle *bundle, uint32_t index) {
    struct cairn_symbol symbol;
    memcpy(&symbol, bundle->symbols + (size_t)index * sizeof symbol, sizeof symbol);
    return symbol;
}

static bool are_modules_sound(const struct bundle *bundle) {
    const struct cairn_symbols_header *header = &bundle->header;
    for (uint32_t i = 0; i < header->module_count; i++) {
        struct cairn_symbols_module module = module_at(bundle, i);
        if (module.build_id_bytes > CAIRN_BUILD_ID_MAX) return false;
        if (module.first_symbol > header->symbol_count ||
            module.symbol_count > header->symbol_count - module.first_symbol)
            return false;
    }
    return true;
}

static bool are_symbols_sound(const struct bundle *bundle) {
    const struct cairn_symbols_header *header = &bundle->header;
    for (uint32_t i = 0; i < header->symbol_count; i++) {
        struct cairn_symbol symbol = symbol_at(bundle, i);
        if (symbol.first_frame > header->frame_count ||
            symbol.frame_count > header->frame_count - symbol.first_frame)
            return false;
    }
    return true;
}

bool bundle_open(struct bundle *bundle, const void *bytes, size_t size) {
    struct cairn_symbols_header *header = &bundle->header;
    if (size < sizeof *header) return false;
    memcpy(header, bytes, sizeof *header);
    if (memcmp(header->magic, CAIRN_SYMBOLS_MAGIC, CAIRN_MAGIC_BYTES) != 0 ||
        header->version != CAIRN_SYMBOLS_VERSION || header->header_bytes != sizeof *header)
        return false;
    const uint8_t *at = (const uint8_t *)bytes + sizeof *header;
    size_t left = size - sizeof *header;
    bundle->modules = take(&at, &left, header->module_count, sizeof(struct cairn_symbols_module));
    bundle->symbols = take(&at, &left, header->symbol_count, sizeof(struct cairn_symbol));
    bundle->frames = take(&at, &left, header->frame_count, sizeof(struct cairn_symbol_frame));
    bundle->strings = (const char *)take(&at, &left, header->string_bytes, 1);
    bool has_strings = bundle->strings && header->string_bytes &&
                       !bundle->strings[header->string_bytes - 1] && !bundle->strings[0];
    return has_strings && are_modules_sound(bundle) && are_symbols_sound(bundle);
}

const char *bundle_text(const struct bundle *bundle, uint32_t offset) {
    if (!offset || offset >= bundle->header.string_bytes) return NULL;
    const char *text = bundle->strings + offset;
    return *text ? text : NULL;
}

static bool is_module(const struct bundle *bundle, const struct cairn_symbols_module *entry,
                      const struct symbol_module *module) {
    if (entry->build_id_bytes != module->build_id_bytes) return false;
    if (entry->build_id_bytes)
        return !memcmp(entry->build_id, module->build_id, entry->build_id_bytes);
    const char *path = bundle_text(bundle, entry->path);
    return !strcmp(path ? path : "", module->path ? module->path : "");
}

bool bundle_find_module(const struct bundle *bundle, const struct symbol_module *module,
                        struct cairn_symbols_module *entry) {
    for (uint32_t i = 0; i < bundle->header.module_count; i++) {
        *entry = module_at(bundle, i);
        if (is_module(bundle, entry, module)) return true;
    }
    return false;
}

bool bundle_find(const struct bundle *bundle, const struct cairn_symbols_module *module,
                 uint64_t address, struct cairn_symbol *symbol) {
    uint32_t low = module->first_symbol, high = low + module->symbol_count;
    const uint32_t end = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (symbol_at(bundle, middle).address < address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == end) return false;
    *symbol = symbol_at(bundle, low);
    return symbol->address == address;
}

struct symbol_frame bundle_frame(const struct bundle *bundle, const struct cairn_symbol *symbol,
                                 uint32_t index) {
    struct cairn_symbol_frame frame;
    size_t at = (size_t)symbol->first_frame + index;
    memcpy(&frame, bundle->frames + at * sizeof frame, sizeof frame);
    return (struct symbol_frame){.linkage = bundle_text(bundle, frame.function),
                                 .file = bundle_text(bundle, frame.file),
                                 .line = frame.line,
                                 .declared_line = frame.declared_line,
                                 .is_inlined = frame.flags & CAIRN_SYMBOLS_INLINED};
}
