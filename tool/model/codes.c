// SPDX-License-Identifier: Apache-2.0
#include "tool/model/codes.h"

#include <stdlib.h>
#include <string.h>

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

static const uint64_t offset_basis = 0xcbf29ce484222325u;

// FNV-1a, 64 bits: identities must be the same in every run and on every machine.
static uint64_t hash_text(uint64_t hash, const char *text) {
    const uint64_t prime = 0x100000001b3u;
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * prime;
    return (hash ^ 0) * prime;
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
    code->identity = hash_text(hash_text(offset_basis, code->function), code->file);
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
    code.identity = ~hash_text(offset_basis, code.function);
    return codes_add(codes, &code, index) ? CODES_OK : CODES_NO_MEMORY;
}
