// SPDX-License-Identifier: Apache-2.0
#include "tool/model/tree.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/fnv.h"

bool tree_start(struct tree *tree) {
    *tree = (struct tree){0};
    struct tree_node *root = array_push(&tree->nodes);
    if (!root) return false;
    *root = (struct tree_node){0};
    return true;
}

void tree_free(struct tree *tree) {
    array_free(&tree->nodes);
    index_table_free(&tree->table);
}

void tree_expect(struct tree *tree, size_t count, size_t stack_count) {
    // without memory for it all the table grows as it must
    if (!index_table_reserve(&tree->table, stack_count)) return;
    size_t capacity = tree->nodes.count + count;
    void *grown = capacity > tree->nodes.capacity
                      ? reallocarray(tree->nodes.items, capacity, sizeof *tree->nodes.items)
                      : NULL;
    if (!grown) return;
    tree->nodes.items = grown;
    tree->nodes.capacity = capacity;
}

// Two jumps of equal length are joined into one of double length plus one.
static uint32_t jump_of_child(const struct tree *tree, uint32_t parent) {
    const struct tree_node *nodes = tree->nodes.items;
    uint32_t near = nodes[parent].jump, far = nodes[near].jump;
    bool are_equal =
        nodes[parent].depth - nodes[near].depth == nodes[near].depth - nodes[far].depth;
    return are_equal ? far : parent;
}

static bool is_child(const struct tree *tree, uint32_t node, uint32_t parent, uint32_t place) {
    const struct tree_node *known = &tree->nodes.items[node];
    return known->parent == parent && known->place == place;
}

static bool node_add(struct tree *tree, uint32_t parent, uint32_t place, uint32_t *child) {
    struct tree_node added = {.parent = parent,
                              .jump = jump_of_child(tree, parent),
                              .place = place,
                              .depth = tree->nodes.items[parent].depth + 1};
    *child = (uint32_t)tree->nodes.count;
    struct tree_node *node = *child < UINT32_MAX ? array_push(&tree->nodes) : NULL;
    if (node) *node = added;
    return node != NULL;
}

bool tree_child(struct tree *tree, uint32_t parent, uint32_t place, uint32_t *child) {
    if (parent + 1 == tree->nodes.count) return node_add(tree, parent, place, child);
    *child = parent + 1;
    if (is_child(tree, *child, parent, place)) return true;
    uint64_t hash = hash_mix(index_table_seed(), (uint64_t)parent << 32 | place);
    if (tree->nodes.items[parent].has_others) {
        struct index_probe probe = index_probe_start(&tree->table, hash);
        while (index_probe_next(&tree->table, &probe, child))
            if (is_child(tree, *child, parent, place)) return true;
    }
    if (!node_add(tree, parent, place, child)) return false;
    tree->nodes.items[parent].has_others = true;
    return index_table_insert(&tree->table, hash, *child);
}

uint32_t tree_ancestor(const struct tree *tree, uint32_t node, uint32_t depth) {
    const struct tree_node *nodes = tree->nodes.items;
    while (nodes[node].depth > depth) {
        uint32_t jump = nodes[node].jump;
        node = nodes[jump].depth >= depth ? jump : nodes[node].parent;
    }
    return node;
}

void places_start(struct places *places, const struct module_map *modules) {
    memset(places, 0, sizeof *places);
    places->modules = modules;
}

void places_free(struct places *places) {
    array_free(&places->list);
    index_table_free(&places->table);
    codes_free(&places->codes);
    places_forget_addresses(places);
}

void places_forget_addresses(struct places *places) {
    free(places->cache);
    places->cache = NULL;
    places->cache_slots = 0;
}

// A cache as large as its list asks for; the one that is there without memory for a larger one.
static void cache_fit(struct places *places) {
    enum { SLOTS_LEAST = 256, SLOTS_MOST = 16384, SLOTS_A_PLACE = 4 };
    size_t slots = places->cache_slots ? places->cache_slots : SLOTS_LEAST;
    while (slots < SLOTS_MOST && slots < SLOTS_A_PLACE * places->list.count) slots *= 2;
    if (slots == places->cache_slots) return;
    struct place_cache_slot *cache = calloc(slots, sizeof *cache);
    if (!cache) return;
    free(places->cache);
    places->cache = cache;
    places->cache_slots = slots;
}

static bool places_intern(struct places *places, struct place wanted, uint32_t *place) {
    uint64_t hash =
        hash_mix(wanted.address ^ index_table_seed(), (uint64_t)wanted.module << 32 | wanted.cut);
    struct index_probe probe = index_probe_start(&places->table, hash);
    for (uint32_t index; index_probe_next(&places->table, &probe, &index);) {
        const struct place *known = &places->list.items[index];
        if (known->address != wanted.address || known->module != wanted.module ||
            known->cut != wanted.cut)
            continue;
        *place = index;
        return true;
    }
    *place = (uint32_t)places->list.count;
    struct place *added = array_push(&places->list);
    if (!added) return false;
    *added = wanted;
    return index_table_insert(&places->table, hash, *place);
}

bool places_of_module(struct places *places, uint32_t module, uint64_t return_address,
                      uint32_t *place) {
    struct place wanted = {.module = MODULE_NONE, .address = return_address - 1};
    if (module != MODULE_NONE && places->modules->modules[module].is_valid) {
        wanted.address -= places->modules->modules[module].bias;
        wanted.module = places->modules->modules[module].same_as;
    }
    return places_intern(places, wanted, place);
}

bool places_of_address(struct places *places, uint64_t return_address, uint32_t *place) {
    const uint64_t hash = return_address ^ return_address >> 12;
    const struct place_cache_slot *cached =
        places->cache ? &places->cache[hash % places->cache_slots] : NULL;
    if (cached && cached->place_plus_1 && cached->pc == return_address) {
        *place = cached->place_plus_1 - 1;
        return true;
    }
    uint32_t module = module_map_find(places->modules, return_address - 1);
    if (!places_of_module(places, module, return_address, place)) return false;
    cache_fit(places);
    if (places->cache)
        places->cache[hash % places->cache_slots] =
            (struct place_cache_slot){.pc = return_address, .place_plus_1 = *place + 1};
    return true;
}

enum { CODE_SHIFT = 32 };

bool places_of_code(struct places *places, uint32_t code, uint32_t line, uint32_t *place) {
    uint64_t address = PLACE_PYTHON | (uint64_t)code << CODE_SHIFT | line;
    return places_intern(places, (struct place){.module = MODULE_NONE, .address = address}, place);
}

const struct code *place_code(const struct places *places, uint32_t place, uint32_t *line) {
    const struct place *entry = &places->list.items[place];
    uint64_t index = (entry->address & ~PLACE_PYTHON) >> CODE_SHIFT;
    bool is_code = entry->module == MODULE_NONE && !entry->cut && entry->address & PLACE_PYTHON;
    if (!is_code || index >= places->codes.list.count) return NULL;
    *line = (uint32_t)entry->address;
    return &places->codes.list.items[index];
}

bool places_of_cut(struct places *places, uint32_t cut, uint32_t *place) {
    struct place wanted = {.module = MODULE_NONE, .cut = cut};
    return places_intern(places, wanted, place);
}

uint64_t place_identity(const struct places *places, uint32_t place) {
    const struct place *entry = &places->list.items[place];
    uint32_t line;
    const struct code *code = place_code(places, place, &line);
    if (code) return hash_mix(line, code->identity);
    uint64_t module = entry->module == MODULE_NONE
                          ? entry->cut
                          : places->modules->modules[entry->module].identity;
    return hash_mix(entry->address, module);
}

// A file in which records are read more often than this many times its bytes was made up.
enum { SHARING_MAX = 4, READ_BYTES_MIN = 1 << 20 };

void codes_free(struct codes *codes) {
    for (size_t i = 0; i < codes->list.count; i++) {
        struct code *code = &codes->list.items[i];
        free((void *)(uintptr_t)code->function);  // the block that holds all of it
    }
    array_free(&codes->list);
    array_free(&codes->numbers);
    index_table_free(&codes->table);
    index_table_free(&codes->number_table);
}

// With its end, so that two texts are not one.
static uint64_t hash_text(uint64_t hash, const char *text) {
    return fnv_add(hash, text, strlen(text) + 1);
}

static uint64_t hash_code(const struct code *code) {
    return hash_mix(code->identity ^ index_table_seed(), code->first_line);
}

static bool is_same(const struct code *a, const struct code *b) {
    return a->identity == b->identity && a->first_line == b->first_line &&
           a->is_name == b->is_name && !strcmp(a->function, b->function) &&
           !strcmp(a->file, b->file);
}

// Function and file of the code in one block of memory.
static bool copy_texts(struct code *code) {
    size_t function_bytes = strlen(code->function) + 1, file_bytes = strlen(code->file) + 1;
    char *block = malloc(function_bytes + file_bytes);
    if (!block) return false;
    memcpy(block, code->function, function_bytes);
    memcpy(block + function_bytes, code->file, file_bytes);
    code->function = block;
    code->file = block + function_bytes;
    return true;
}

bool codes_add(struct codes *codes, const struct code *wanted, uint32_t *index) {
    uint64_t hash = hash_code(wanted);
    struct index_probe probe = index_probe_start(&codes->table, hash);
    while (index_probe_next(&codes->table, &probe, index))
        if (is_same(&codes->list.items[*index], wanted)) return true;
    *index = (uint32_t)codes->list.count;
    struct code copy = *wanted;
    if (!copy_texts(&copy)) return false;
    struct code *slot = array_push(&codes->list);
    if (!slot) {
        free((void *)(uintptr_t)copy.function);
        return false;
    }
    *slot = copy;
    return index_table_insert(&codes->table, hash, *index);
}

// A text of `size` bytes with its NUL; "" for none.
static bool take_text(const uint8_t **at, size_t *left, uint32_t size, const char **text) {
    *text = "";
    if (size > *left) return false;
    if (size && memchr(*at, 0, size) != *at + size - 1) return false;
    if (size) *text = (const char *)*at;
    *at += size;
    *left -= size;
    return true;
}

// Checks the record at `offset` of CODES. False: it does not fit together.
static bool open_record(const struct recording_section *section, uint64_t offset,
                        struct code *code) {
    struct cairn_code head;
    if (offset > section->size || section->size - offset < sizeof head) return false;
    memcpy(&head, section->bytes + offset, sizeof head);
    if (head.bytes < sizeof head || head.bytes > section->size - offset) return false;
    const uint8_t *at = section->bytes + offset + sizeof head;
    size_t left = head.bytes - sizeof head;
    *code = (struct code){.first_line = head.first_line};
    if (!take_text(&at, &left, head.function_bytes, &code->function) ||
        !take_text(&at, &left, head.file_bytes, &code->file))
        return false;
    code->identity = hash_text(hash_text(FNV_START, code->function), code->file);
    return true;
}

enum codes_result codes_read(struct codes *codes, const struct recording *recording,
                             uint32_t number, uint32_t *index) {
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_CODES];
    uint64_t hash = hash_mix(number, index_table_seed());
    struct index_probe probe = index_probe_start(&codes->number_table, hash);
    for (uint32_t at; index_probe_next(&codes->number_table, &probe, &at);) {
        if (codes->numbers.items[at].number != number) continue;
        *index = codes->numbers.items[at].index;
        return CODES_OK;
    }
    struct code code;
    if (!open_record(section, (uint64_t)number * CAIRN_CODE_ALIGN, &code)) return CODES_DAMAGED;
    codes->read_bytes += strlen(code.function) + strlen(code.file);
    if (codes->read_bytes > (uint64_t)section->size * SHARING_MAX + READ_BYTES_MIN)
        return CODES_DAMAGED;
    if (!codes_add(codes, &code, index)) return CODES_NO_MEMORY;
    struct code_number *slot = array_push(&codes->numbers);
    if (!slot) return CODES_NO_MEMORY;
    *slot = (struct code_number){number, *index};
    return index_table_insert(&codes->number_table, hash, (uint32_t)codes->numbers.count - 1)
               ? CODES_OK
               : CODES_NO_MEMORY;
}

enum codes_result codes_of_name(struct codes *codes, struct recording *recording, uint32_t offset,
                                uint32_t *index) {
    struct code code = {.function = recording_string(recording, offset), .file = ""};
    if (!*code.function) return CODES_DAMAGED;
    codes->read_bytes += strlen(code.function);
    if (codes->read_bytes >
        (uint64_t)recording->sections[CAIRN_SECTION_STRINGS].size * SHARING_MAX + READ_BYTES_MIN)
        return CODES_DAMAGED;
    code.is_name = true;
    code.identity = ~hash_text(FNV_START, code.function);
    return codes_add(codes, &code, index) ? CODES_OK : CODES_NO_MEMORY;
}
