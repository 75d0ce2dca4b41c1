// SPDX-License-Identifier: Apache-2.0
// Strings are kept once each: a table from text to offset, by hash.
#include <stdlib.h>
#include <string.h>

#include "tool/model/index_table.h"
#include "tool/symbol/bundle.h"

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
                                            .symbol_count = (uint32_t)part->count,
                                            .stamp = part->stamp};
    if (part->module.build_id_bytes <= CAIRN_BUILD_ID_MAX && part->module.build_id_bytes) {
        module->build_id_bytes = (uint32_t)part->module.build_id_bytes;
        memcpy(module->build_id, part->module.build_id, part->module.build_id_bytes);
    }
    if (!put_string(maker, part->module.path, &module->path) ||
        !put_string(maker, part->source_path, &module->source_path) ||
        !put_string(maker, part->note, &module->note))
        return false;
    for (size_t i = 0; i < part->count; i++)
        if (!put_symbol(maker, &part->queries[i])) return false;
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
