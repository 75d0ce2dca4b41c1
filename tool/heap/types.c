// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/types.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/heap/elf_module.h"
#include "tool/model/index_table.h"
#include "tool/symbol/name.h"

enum {
    WORD = 8,
    TABLE_HEAD = 2 * WORD,  // in front of what an object points to: offset to the top, type
    NAME_BYTES_MAX = 4096,
    TOP_OFFSET_MAX = 1 << 24,
};

// What is known of a word.
struct known {
    uint64_t word;
    const struct core_type *type;  // NULL: no signature
};

struct core_types {
    const struct core_image *core;
    const struct symbol_options *options;
    struct string_pool *store;
    ARRAY(struct elf_module) modules;
    ARRAY(struct known) known;
    struct index_table index;  // of known, by word
    uint64_t places;           // for core_place_done
};

struct core_types *core_types_open(const struct core_image *core,
                                   const struct symbol_options *options) {
    struct core_types *types = calloc(1, sizeof *types);
    if (!types) return NULL;
    types->core = core;
    types->options = options;
    types->store = string_pool_open();
    if (types->store) return types;
    free(types);
    return NULL;
}

void core_types_close(struct core_types *types) {
    if (!types) return;
    for (size_t i = 0; i < types->modules.count; i++) elf_module_close(&types->modules.items[i]);
    array_free(&types->modules);
    array_free(&types->known);
    index_table_free(&types->index);
    string_pool_close(types->store);
    free(types);
}

// --- modules

// The last module of that path at or below the address is the file's: one may be loaded twice.
static struct elf_module *module_of(struct core_types *types, const struct core_file *file) {
    for (size_t i = 0; i < types->modules.count; i++) {
        struct elf_module *module = &types->modules.items[i];
        if (strcmp(module->path, file->path) != 0) continue;
        const struct core_file *first = core_file_of(types->core, module->start);
        if (!module->is_elf || (first && first <= file)) return module;
    }
    struct elf_module *module = array_push(&types->modules);
    if (!module) return NULL;
    if (elf_module_open(types->core, file, types->options, types->store, module)) return module;
    types->modules.count--;
    return NULL;
}

static bool read_constant(const struct core_types *types, const struct elf_module *module,
                          uint64_t address, void *out, size_t size) {
    return core_read(types->core, address, out, size) ||
           elf_module_read(module, address, out, size);
}

// The text at an address; it may lie in another module than the table. False: there is none, or it
// has no end.
static bool read_text(struct core_types *types, uint64_t address, char *text, size_t size) {
    const struct core_file *file = core_file_of(types->core, address);
    const struct elf_module *module = file ? module_of(types, file) : NULL;
    for (size_t i = 0; module && i < size; i++) {
        if (!read_constant(types, module, address + i, &text[i], 1)) return false;
        if (!text[i]) return i > 0;
    }
    return false;
}

// --- names

static const char *keep(struct core_types *types, const char *name) {
    char safe[NAME_BYTES_MAX];
    text_escape(safe, sizeof safe, name);
    return string_pool_intern(types->store, safe, strlen(safe));
}

// The class in the name of a symbol that belongs to one: `_ZTV2D1` with "vtable for " is D1. NULL:
// it is no such name.
static const char *class_of_symbol(struct core_types *types, const char *symbol,
                                   const char *beginning) {
    char *name = types->options->has_full_names ? name_full(symbol) : name_readable(symbol);
    bool is_class = name && !strncmp(name, beginning, strlen(beginning));
    const char *kept = is_class ? keep(types, name + strlen(beginning)) : NULL;
    free(name);
    return kept;
}

// By the type information that the table leads to: its second word is the name of the class.
static const char *class_by_information(struct core_types *types, const struct elf_module *module,
                                        uint64_t word) {
    uint64_t head[2], information[2];
    char name[NAME_BYTES_MAX], symbol[NAME_BYTES_MAX + sizeof "_ZTS"];
    if (word % WORD || !read_constant(types, module, word - TABLE_HEAD, head, sizeof head))
        return NULL;
    const struct core_file *file = core_file_of(types->core, head[1]);
    if (head[0] + TOP_OFFSET_MAX > TOP_OFFSET_MAX || head[1] % WORD || !file) return NULL;
    const struct elf_module *owner = module_of(types, file);
    if (!owner || !read_constant(types, owner, head[1], information, sizeof information) ||
        !read_text(types, information[1], name, sizeof name))
        return NULL;
    // A name that begins with a star is compared by its address; the star is no part of it.
    snprintf(symbol, sizeof symbol, "_ZTS%s", *name == '*' ? name + 1 : name);
    return class_of_symbol(types, symbol, "typeinfo name for ");
}

static const char *name_of_symbol(struct core_types *types, const struct symtab_entry *entry,
                                  uint64_t offset) {
    char text[NAME_BYTES_MAX];
    char *name =
        types->options->has_full_names ? name_full(entry->name) : name_readable(entry->name);
    if (!name) return NULL;
    if (offset)
        snprintf(text, sizeof text, "%.4000s+0x%llx", name, (unsigned long long)offset);
    else
        snprintf(text, sizeof text, "%s", name);
    free(name);
    return keep(types, text);
}

static const char *name_of_place(struct core_types *types, const struct elf_module *module,
                                 uint64_t place) {
    char text[NAME_BYTES_MAX];
    snprintf(text, sizeof text, "%.4000s+0x%llx", text_base_name(module->path),
             (unsigned long long)place);
    return keep(types, text);
}

// Fills kind and name; false: the word is no signature.
static bool classify(struct core_types *types, uint64_t word, struct core_type *type) {
    const struct core_file *file = core_file_of(types->core, word);
    struct elf_module *module = file ? module_of(types, file) : NULL;
    if (!module || !module->is_elf) return false;
    const struct elf_module copy = *module;  // the list may move when another module is opened
    const struct symtab_entry *entry = symtab_find(&module->symbols, word - copy.bias);
    type->kind = CORE_TYPE_CLASS;
    type->name = class_by_information(types, &copy, word);
    if (!type->name && entry && !strncmp(entry->name, "_ZTV", strlen("_ZTV")))
        type->name = class_of_symbol(types, entry->name, "vtable for ");
    if (type->name) return true;
    if (!elf_module_is_constant(&copy, word)) return false;
    type->kind = entry ? CORE_TYPE_SYMBOL : CORE_TYPE_MODULE;
    type->name = entry ? name_of_symbol(types, entry, word - copy.bias - entry->start)
                       : name_of_place(types, &copy, word - copy.bias);
    return type->name;
}

// --- words

static uint64_t hash_of(uint64_t word) {
    return hash_mix(word, index_table_seed());
}

static const struct core_type *learn(struct core_types *types, uint64_t word) {
    struct core_type type = {.signature = word}, *kept = NULL;
    if (classify(types, word, &type)) kept = string_pool_alloc(types->store, sizeof *kept);
    if (kept) *kept = type;
    struct known *known = array_push(&types->known);
    if (!known) return kept;
    *known = (struct known){word, kept};
    if (!index_table_insert(&types->index, hash_of(word), (uint32_t)(types->known.count - 1)))
        types->known.count--;
    return kept;
}

const struct core_type *core_type_of_word(struct core_types *types, uint64_t word) {
    if (!core_file_of(types->core, word)) return NULL;
    struct index_probe probe = index_probe_start(&types->index, hash_of(word));
    for (uint32_t i; index_probe_next(&types->index, &probe, &i);)
        if (types->known.items[i].word == word) return types->known.items[i].type;
    return learn(types, word);
}

const struct core_type *core_type_of_block(struct core_types *types, uint64_t address,
                                           uint64_t size) {
    uint64_t word;
    if (size < sizeof word || !core_read(types->core, address, &word, sizeof word)) return NULL;
    core_place_done(types->core, 0, &types->places);
    return core_type_of_word(types, word);
}

bool core_types_place(struct core_types *types, uint64_t address, char *text, size_t size) {
    const struct core_file *file = core_module_of(types->core, address);
    struct elf_module *module = file ? module_of(types, file) : NULL;
    if (!module || !elf_module_has(module, address)) return false;
    uint64_t place = address - module->bias;
    const struct symtab_entry *entry = symtab_find(&module->symbols, place);
    const char *name = entry ? name_of_symbol(types, entry, place - entry->start)
                             : name_of_place(types, module, place);
    if (name) snprintf(text, size, "%s", name);
    return name;
}

size_t core_types_missing(const struct core_types *types, char *text, size_t size) {
    size_t count = 0;
    *text = 0;
    for (size_t i = 0; i < types->modules.count; i++) {
        const struct elf_module *module = &types->modules.items[i];
        if (module->files.module.elf || module->files.debug.elf || !module->files.note) continue;
        char safe[NAME_BYTES_MAX];
        text_escape(safe, sizeof safe, module->path);
        if (!count++) snprintf(text, size, "%.300s: %s", safe, module->files.note);
    }
    return count;
}
