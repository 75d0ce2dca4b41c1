// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/elf_module.h"

#include <string.h>

#include "tool/heap/image.h"
#include "tool/proc/elf_headers.h"

enum { PAGE_BYTES = 4096, NOTES_BYTES_MAX = 4096 };

static uint64_t page_of(uint64_t address) {
    return address / PAGE_BYTES * PAGE_BYTES;
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
static bool find_bias(struct elf_module *module) {
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != PT_LOAD || page_of(segment->p_offset)) continue;
        module->bias = module->start - page_of(segment->p_vaddr);
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
    bool is_mapped = read_segments(core, module) && find_bias(module);
    struct symbol_module wanted = {.path = file->path, .build_id = build_id};
    if (is_mapped) wanted.build_id_bytes = read_build_id(core, module, build_id, sizeof build_id);
    locate_open(&module->files, &wanted, options, store);
    if (!is_mapped && module->files.module.elf) {
        read_file_segments(module);
        is_mapped = find_bias(module);
    }
    module->is_elf = is_mapped;
    if (!is_mapped || read_symbols(module)) return true;
    elf_module_close(module);
    return false;
}

void elf_module_close(struct elf_module *module) {
    symtab_free(&module->symbols);
    locate_close(&module->files);
}

static bool is_inside(const Elf64_Phdr *segment, uint64_t place) {
    return place >= segment->p_vaddr && place - segment->p_vaddr < segment->p_memsz;
}

bool elf_module_has(const struct elf_module *module, uint64_t address) {
    for (size_t i = 0; i < module->segment_count; i++)
        if (module->segments[i].p_type == PT_LOAD &&
            is_inside(&module->segments[i], address - module->bias))
            return module->is_elf;
    return false;
}

bool elf_module_is_constant(const struct elf_module *module, uint64_t address) {
    uint64_t place = address - module->bias;
    for (size_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        bool is_constant = segment->p_type == PT_GNU_RELRO ||
                           (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W));
        if (is_constant && is_inside(segment, place)) return true;
    }
    return false;
}

bool elf_module_read(const struct elf_module *module, uint64_t address, void *out, size_t size) {
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
