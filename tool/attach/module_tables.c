// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/module_tables.h"

#include <stdlib.h>
#include <string.h>

// More than any real module has; a damaged table ends there.
enum { DYNAMIC_MAX = 256, SYMBOLS_MAX = 1 << 24 };
#define TEXTS_MAX (1u << 30)

// The linker turns what the section tells into addresses, except where it cannot write (the vDSO).
static uint64_t as_address(const struct loaded_module *module, uint64_t value) {
    return value && value < module->bias ? value + module->bias : value;
}

bool module_read_dynamic(struct loaded_module *module, const struct remote *remote,
                         uint64_t dynamic) {
    Elf64_Dyn entries[DYNAMIC_MAX];
    size_t count = 0;
    while (
        count < DYNAMIC_MAX &&
        remote_read(remote, dynamic + count * sizeof *entries, &entries[count], sizeof *entries) &&
        entries[count].d_tag != DT_NULL)
        count++;
    bool has_calls_with_addends = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = entries[i].d_un.d_val, address = as_address(module, value);
        switch (entries[i].d_tag) {
        case DT_SYMTAB:
            module->symbols = address;
            break;
        case DT_STRTAB:
            module->texts = address;
            break;
        case DT_STRSZ:
            module->text_bytes = value;
            break;
        case DT_HASH:
            module->hash = address;
            break;
        case DT_GNU_HASH:
            module->gnu_hash = address;
            break;
        case DT_RELA:
            module->relocations[0] = address;
            break;
        case DT_RELASZ:
            module->relocation_bytes[0] = value;
            break;
        case DT_JMPREL:
            module->relocations[1] = address;
            break;
        case DT_PLTRELSZ:
            module->relocation_bytes[1] = value;
            break;
        case DT_PLTREL:
            has_calls_with_addends = value == DT_RELA;
            break;
        default:
            break;
        }
    }
    if (!has_calls_with_addends) module->relocation_bytes[1] = 0;
    return count > 0;
}

static void forget_symbols(struct loaded_module *module) {
    free(module->symbol_table);
    free(module->text_table);
    module->symbol_table = NULL;
    module->text_table = NULL;
    module->symbol_count = 0;
}

void module_free(struct loaded_module *module) {
    forget_symbols(module);
}

// The number of symbols is that of the chains of the older hash table; the newer one has to be
// followed to the end of its last chain.
static size_t count_by_gnu_hash(const struct loaded_module *module, const struct remote *remote) {
    struct {
        uint32_t bucket_count, first, bloom_words, shift;
    } head;
    uint64_t at = module->gnu_hash;
    uint32_t last = 0, word;
    if (!remote_read(remote, at, &head, sizeof head) || head.bucket_count > SYMBOLS_MAX) return 0;
    at += sizeof head + head.bloom_words * sizeof(uint64_t);
    uint32_t *buckets = calloc(head.bucket_count, sizeof *buckets);
    if (buckets && remote_read(remote, at, buckets, head.bucket_count * sizeof *buckets))
        for (uint32_t i = 0; i < head.bucket_count; i++)
            if (buckets[i] > last) last = buckets[i];
    free(buckets);
    if (last < head.first) return head.first;
    at += head.bucket_count * sizeof word;
    for (; last < SYMBOLS_MAX; last++) {
        uint64_t chain = at + (last - head.first) * sizeof word;
        if (!remote_read(remote, chain, &word, sizeof word)) return 0;
        if (word & 1) return last + 1;
    }
    return 0;
}

static size_t count_symbols(const struct loaded_module *module, const struct remote *remote) {
    uint32_t head[2];
    if (module->gnu_hash) return count_by_gnu_hash(module, remote);
    if (module->hash && remote_read(remote, module->hash, head, sizeof head)) return head[1];
    return 0;
}

bool module_load_symbols(struct loaded_module *module, const struct remote *remote, size_t least) {
    if (module->symbol_table && module->symbol_count >= least) return true;
    forget_symbols(module);
    size_t count = module->symbols && module->texts ? count_symbols(module, remote) : 0;
    if (count < least) count = least;
    if (!count || count > SYMBOLS_MAX || !module->text_bytes || module->text_bytes > TEXTS_MAX)
        return false;
    Elf64_Sym *symbols = calloc(count, sizeof *symbols);
    char *texts = calloc(1, module->text_bytes + 1);
    bool is_read = symbols && texts &&
                   remote_read(remote, module->symbols, symbols, count * sizeof *symbols) &&
                   remote_read(remote, module->texts, texts, module->text_bytes);
    if (!is_read) {
        free(symbols);
        free(texts);
        return false;
    }
    module->symbol_table = symbols;
    module->symbol_count = count;
    module->text_table = texts;
    return true;
}

uint64_t module_symbol(struct loaded_module *module, const struct remote *remote,
                       const char *name) {
    if (!module_load_symbols(module, remote, 1)) return 0;
    for (size_t i = 0; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbol_table[i];
        int kind = ELF64_ST_TYPE(symbol->st_info);
        bool is_there = symbol->st_shndx != SHN_UNDEF && symbol->st_name < module->text_bytes;
        if (!is_there || (kind != STT_FUNC && kind != STT_OBJECT)) continue;
        if (!strcmp(module->text_table + symbol->st_name, name))
            return module->bias + symbol->st_value;
    }
    return 0;
}
