// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/index_table.h"

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
    if (entry->code_key || module->code_key) return entry->code_key == module->code_key;
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

// Strings are kept once each: a table from text to offset, by hash.

struct maker {
    ARRAY(struct cairn_symbols_module) modules;
    ARRAY(struct cairn_symbol) symbols;
    ARRAY(struct cairn_symbol_frame) frames;
    char *strings;
    size_t string_bytes, string_capacity;
    struct index_table offsets;  // of strings
};

static bool append_string(struct maker *maker, const char *text, size_t length) {
    if (maker->string_bytes + length + 1 > maker->string_capacity) {
        size_t capacity = (maker->string_bytes + length + 1) * 2;
        char *grown = capacity <= UINT32_MAX ? realloc(maker->strings, capacity) : NULL;
        if (!grown) return false;
        maker->strings = grown;
        maker->string_capacity = capacity;
    }
    memcpy(maker->strings + maker->string_bytes, text, length + 1);
    maker->string_bytes += length + 1;
    return true;
}

static bool put_string(struct maker *maker, const char *text, uint32_t *offset) {
    *offset = 0;
    if (!text || !*text) return true;
    uint64_t hash = index_table_seed();
    for (const char *at = text; *at; at++) hash = hash_mix(hash, (unsigned char)*at);
    struct index_probe probe = index_probe_start(&maker->offsets, hash);
    while (index_probe_next(&maker->offsets, &probe, offset))
        if (!strcmp(maker->strings + *offset, text)) return true;
    *offset = (uint32_t)maker->string_bytes;
    return append_string(maker, text, strlen(text)) &&
           index_table_insert(&maker->offsets, hash, *offset);
}

static bool put_frame(struct maker *maker, const struct symbol_frame *from) {
    struct cairn_symbol_frame *frame = array_push(&maker->frames);
    if (!frame) return false;
    *frame = (struct cairn_symbol_frame){.line = from->line,
                                         .declared_line = from->declared_line,
                                         .flags = from->is_inlined ? CAIRN_SYMBOLS_INLINED : 0};
    return put_string(maker, from->linkage, &frame->function) &&
           put_string(maker, from->file, &frame->file);
}

static bool put_symbol(struct maker *maker, const struct symbol_query *query) {
    struct cairn_symbol *symbol = array_push(&maker->symbols);
    if (!symbol || maker->frames.count + query->frame_count > UINT32_MAX) return false;
    *symbol = (struct cairn_symbol){query->address, (uint32_t)maker->frames.count,
                                    (uint32_t)query->frame_count};
    for (size_t i = 0; i < query->frame_count; i++)
        if (!put_frame(maker, &query->frames[i])) return false;
    return true;
}

static bool put_part(struct maker *maker, const struct bundle_part *part) {
    struct cairn_symbols_module *module = array_push(&maker->modules);
    if (!module || maker->symbols.count + part->count > UINT32_MAX) return false;
    *module = (struct cairn_symbols_module){.source = part->source,
                                            .first_symbol = (uint32_t)maker->symbols.count,
                                            .flags = part->is_partial ? CAIRN_SYMBOLS_PARTIAL : 0,
                                            .stamp = part->stamp,
                                            .code_key = part->module.code_key};
    if (part->module.build_id_bytes <= CAIRN_BUILD_ID_MAX && part->module.build_id_bytes) {
        module->build_id_bytes = (uint32_t)part->module.build_id_bytes;
        memcpy(module->build_id, part->module.build_id, part->module.build_id_bytes);
    }
    if (!put_string(maker, part->module.path, &module->path) ||
        !put_string(maker, part->source_path, &module->source_path) ||
        !put_string(maker, part->note, &module->note))
        return false;
    for (size_t i = 0; i < part->count; i++)
        if (part->queries[i].is_known && !put_symbol(maker, &part->queries[i])) return false;
    module->symbol_count = (uint32_t)(maker->symbols.count - module->first_symbol);
    return true;
}

static bool join(const struct maker *maker, void **bytes, size_t *size) {
    const struct cairn_symbols_header header = {.magic = CAIRN_SYMBOLS_MAGIC,
                                                .version = CAIRN_SYMBOLS_VERSION,
                                                .header_bytes = sizeof header,
                                                .module_count = (uint32_t)maker->modules.count,
                                                .symbol_count = (uint32_t)maker->symbols.count,
                                                .frame_count = (uint32_t)maker->frames.count,
                                                .string_bytes = (uint32_t)maker->string_bytes};
    const struct {
        const void *from;
        size_t bytes;
    } parts[] = {{&header, sizeof header},
                 {maker->modules.items, maker->modules.count * sizeof *maker->modules.items},
                 {maker->symbols.items, maker->symbols.count * sizeof *maker->symbols.items},
                 {maker->frames.items, maker->frames.count * sizeof *maker->frames.items},
                 {maker->strings, maker->string_bytes}};
    *size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) *size += parts[i].bytes;
    uint8_t *at = *bytes = malloc(*size);
    if (!at) return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes) memcpy(at, parts[i].from, parts[i].bytes);
        at += parts[i].bytes;
    }
    return true;
}

bool bundle_make(const struct bundle_part *parts, size_t count, void **bytes, size_t *size) {
    struct maker maker = {.strings = NULL};
    bool is_made = append_string(&maker, "", 0);
    for (size_t i = 0; i < count && is_made; i++) is_made = put_part(&maker, &parts[i]);
    is_made = is_made && join(&maker, bytes, size);
    array_free(&maker.modules);
    array_free(&maker.symbols);
    array_free(&maker.frames);
    free(maker.strings);
    index_table_free(&maker.offsets);
    return is_made;
}
