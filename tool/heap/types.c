// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/types.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/heap/image.h"
#include "tool/model/index_table.h"
#include "tool/proc/elf_headers.h"
#include "tool/symbol/name.h"

enum { NOTES_BYTES_MAX = 4096 };

static uint64_t page_of(const struct core_image *core, uint64_t address) {
    return address & ~(core_page_bytes(core) - 1);
}

// The mapping that has the file's first bytes: the nearest one below.
static const struct core_file *find_first(const struct core_image *core,
                                          const struct core_file *file) {
    const struct core_file *at = file;
    while (at->offset && at > core->files.items && !strcmp(at[-1].path, file->path)) at--;
    return at->offset ? NULL : at;
}

static bool is_wanted(uint32_t type) {
    return type == PT_LOAD || type == PT_NOTE || type == PT_GNU_RELRO;
}

static void add_segment(struct elf_module *module, const Elf64_Phdr *segment) {
    if (is_wanted(segment->p_type) && module->segment_count < ELF_MODULE_SEGMENTS_MAX)
        module->segments[module->segment_count++] = *segment;
}

// Program headers as they are mapped.
static bool read_segments(const struct core_image *core, struct elf_module *module) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_view view = core_view(core);
    size_t count = elf_headers_at(&view.reader, module->start, segments);
    for (size_t i = 0; i < count; i++) add_segment(module, &segments[i]);
    return module->segment_count;
}

// The same from the file, where the image lacks them.
static void read_file_segments(struct elf_module *module) {
    size_t count = 0;
    if (elf_getphdrnum(module->files.module.elf, &count) < 0) return;
    for (size_t i = 0; i < count && i < UINT16_MAX; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(module->files.module.elf, (int)i, &segment)) continue;
        add_segment(module, &(Elf64_Phdr){segment.p_type, segment.p_flags, segment.p_offset,
                                          segment.p_vaddr, segment.p_paddr, segment.p_filesz,
                                          segment.p_memsz, segment.p_align});
    }
}

// The segment that begins with the file's first page lies where that page was mapped.
static bool find_bias(const struct core_image *core, struct elf_module *module) {
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != PT_LOAD || page_of(core, segment->p_offset)) continue;
        module->bias = module->start - page_of(core, segment->p_vaddr);
        return true;
    }
    return false;
}

static size_t read_build_id(const struct core_image *core, const struct elf_module *module,
                            uint8_t *build_id, size_t most) {
    uint8_t notes[NOTES_BYTES_MAX];
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        struct core_note note;
        size_t at = 0, size = segment->p_filesz;
        if (segment->p_type != PT_NOTE || size > sizeof notes) continue;
        if (!core_read(core, module->bias + segment->p_vaddr, notes, size)) continue;
        while (core_next_note(notes, size, &at, &note)) {
            if (note.type != NT_GNU_BUILD_ID || !note.size || note.size > most) continue;
            memcpy(build_id, note.bytes, note.size);
            return note.size;
        }
    }
    return 0;
}

static bool read_symbols(struct elf_module *module) {
    const struct image *const images[] = {&module->files.module, &module->files.debug,
                                          &module->files.packed};
    bool is_added, is_ok = true;
    module->symbols.has_data = true;
    for (size_t i = 0; i < sizeof images / sizeof *images && is_ok; i++)
        if (images[i]->elf) is_ok = symtab_add(&module->symbols, images[i], SHT_SYMTAB, &is_added);
    if (is_ok && module->files.module.elf)
        is_ok = symtab_add(&module->symbols, &module->files.module, SHT_DYNSYM, &is_added);
    return is_ok;
}

static void elf_module_close(struct elf_module *module) {
    symtab_free(&module->symbols);
    locate_close(&module->files);
}

bool elf_module_open(const struct core_image *core, const struct core_file *file,
                     const struct symbol_options *options, struct string_pool *store,
                     struct elf_module *module) {
    const struct core_file *first = find_first(core, file);
    uint8_t build_id[IMAGE_BUILD_ID_MAX];
    *module = (struct elf_module){
        .path = file->path,
        .files = {.module = IMAGE_CLOSED, .debug = IMAGE_CLOSED, .packed = IMAGE_CLOSED}};
    if (!first) return true;
    module->start = first->start;
    bool is_mapped = read_segments(core, module) && find_bias(core, module);
    struct symbol_module wanted = {.path = file->path, .build_id = build_id};
    if (is_mapped) wanted.build_id_bytes = read_build_id(core, module, build_id, sizeof build_id);
    locate_open(&module->files, &wanted, options, store);
    if (!is_mapped && module->files.module.elf) {
        read_file_segments(module);
        is_mapped = find_bias(core, module);
    }
    module->is_elf = is_mapped;
    if (!is_mapped || read_symbols(module)) return true;
    elf_module_close(module);
    return false;
}

static bool is_inside(const Elf64_Phdr *segment, uint64_t place) {
    return place >= segment->p_vaddr && place - segment->p_vaddr < segment->p_memsz;
}

// Whether the address is one of the module's, its zeroed data among them.
static bool elf_module_has(const struct elf_module *module, uint64_t address) {
    for (size_t i = 0; i < module->segment_count; i++)
        if (module->segments[i].p_type == PT_LOAD &&
            is_inside(&module->segments[i], address - module->bias))
            return module->is_elf;
    return false;
}

// Whether the address lies in memory of the module that the program cannot write once it runs:
// code, constants, and what the dynamic linker made constant.
static bool elf_module_is_constant(const struct elf_module *module, uint64_t address) {
    uint64_t place = address - module->bias;
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        bool is_constant = segment->p_type == PT_GNU_RELRO ||
                           (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W));
        if (is_constant && is_inside(segment, place)) return true;
    }
    return false;
}

// Reads constants from the module's file; false if they are not there.
static bool elf_module_read(const struct elf_module *module, uint64_t address, void *out,
                            size_t size) {
    uint64_t place = address - module->bias;
    size_t file_bytes = 0;
    const char *file =
        module->files.module.elf ? elf_rawfile(module->files.module.elf, &file_bytes) : NULL;
    for (size_t i = 0; file && i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != PT_LOAD || !is_inside(segment, place)) continue;
        uint64_t inside = place - segment->p_vaddr, offset = segment->p_offset + inside;
        if (inside >= segment->p_filesz || size > segment->p_filesz - inside) return false;
        if (offset < inside || offset > file_bytes || size > file_bytes - offset) return false;
        memcpy(out, file + offset, size);
        return true;
    }
    return false;
}

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
        if (module->is_elf && (!first || first > file)) continue;
        module->is_asked_for = true;
        return module;
    }
    struct elf_module *module = array_push(&types->modules);
    if (!module) return NULL;
    bool is_open = elf_module_open(types->core, file, types->options, types->store, module);
    module->is_asked_for = true;
    if (is_open) return module;
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

// What follows a beginning in a name that was made of a symbol; NULL: it does not begin so. Frees
// the name.
static const char *keep_after(struct core_types *types, char *name, const char *beginning) {
    bool is_such = name && !strncmp(name, beginning, strlen(beginning));
    const char *kept = is_such ? keep(types, name + strlen(beginning)) : NULL;
    free(name);
    return kept;
}

// Takes the class in the name of a symbol that belongs to one: `_ZTV2D1` with "vtable for " is D1.
// False: it is no such name.
static bool take_class(struct core_types *types, const char *symbol, const char *beginning,
                       struct core_type *type) {
    type->whole_name = keep_after(types, name_full(symbol), beginning);
    type->name = types->options->has_full_names
                     ? type->whole_name
                     : keep_after(types, name_readable(symbol), beginning);
    return type->name;
}

// By the type information that the table leads to: its second word is the name of the class.
static bool class_by_information(struct core_types *types, const struct elf_module *module,
                                 uint64_t word, struct core_type *type) {
    uint64_t head[2], information[2];
    char name[NAME_BYTES_MAX], symbol[NAME_BYTES_MAX + sizeof "_ZTS"];
    if (word % WORD || !read_constant(types, module, word - TABLE_HEAD, head, sizeof head))
        return false;
    const struct core_file *file = core_file_of(types->core, head[1]);
    if (head[0] + TOP_OFFSET_MAX > TOP_OFFSET_MAX || head[1] % WORD || !file) return false;
    const struct elf_module *owner = module_of(types, file);
    if (!owner || !read_constant(types, owner, head[1], information, sizeof information) ||
        !read_text(types, information[1], name, sizeof name))
        return false;
    // A name that begins with a star is compared by its address; the star is no part of it.
    snprintf(symbol, sizeof symbol, "_ZTS%s", *name == '*' ? name + 1 : name);
    return take_class(types, symbol, "typeinfo name for ", type);
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
    bool is_table = entry && !strncmp(entry->name, "_ZTV", strlen("_ZTV"));
    if (class_by_information(types, &copy, word, type) ||
        (is_table && take_class(types, entry->name, "vtable for ", type)))
        return true;
    type->whole_name = NULL;
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

const struct symbol_options *core_types_options(const struct core_types *types) {
    return types->options;
}

bool core_types_each_module(struct core_types *types,
                            bool (*see)(void *context, const struct elf_module *module),
                            void *context) {
    for (size_t i = 0; i < types->core->files.count; i++) {
        const struct core_file *file = &types->core->files.items[i];
        size_t known = types->modules.count;
        if (!file->offset && !module_of(types, file)) return false;
        if (types->modules.count > known) types->modules.items[known].is_asked_for = false;
    }
    for (size_t i = 0; i < types->modules.count; i++)
        if (types->modules.items[i].is_elf && !see(context, &types->modules.items[i])) return false;
    return true;
}

size_t core_types_missing(const struct core_types *types, char *text, size_t size) {
    size_t count = 0;
    *text = 0;
    for (size_t i = 0; i < types->modules.count; i++) {
        const struct elf_module *module = &types->modules.items[i];
        bool has_names = module->files.module.elf || module->files.debug.elf;
        bool is_own = !strncmp(module->path, "/memfd:cairn", strlen("/memfd:cairn")) ||
                      module_is_cairn(module->path);
        if (has_names || is_own || module->files.is_data) continue;
        if (!module->files.note || !module->is_asked_for) continue;
        char safe[NAME_BYTES_MAX];
        text_escape(safe, sizeof safe, module->path);
        if (!count++) snprintf(text, size, "%.300s: %s", safe, module->files.note);
    }
    return count;
}
