// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_headers.h"

#include <stdlib.h>
#include <string.h>

#include "tool/attach/unwind_made.h"

enum { PART_ALIGN = 64 };

static uint64_t align_up(uint64_t value, uint64_t align) {
    return align > 1 ? (value + align - 1) & ~(align - 1) : value;
}

static bool read_segments(struct static_headers *headers, struct error *error) {
    size_t count = 0;
    if (elf_getphdrnum(headers->elf, &count) != 0 || !count || count > STATIC_HEADERS_MAX - 2)
        return error_set(error, "it has no program headers that cairn could read");
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(headers->elf, (int)i, &headers->segments[i]))
            return error_set(error, "it has no program headers that cairn could read");
        if (headers->segments[i].p_type == PT_TLS) headers->locals = &headers->segments[i];
    }
    headers->count = count;
    return true;
}

// The thread pointer lies behind the thread-locals, at a multiple of their alignment.
static bool place_locals(struct static_headers *headers, const struct bare_library *library,
                         struct error *error) {
    const uint64_t most = 1u << 28, most_align = 4096;
    const GElf_Phdr *own = headers->locals;
    uint64_t align = own && own->p_align ? own->p_align : 1;
    uint64_t library_align = library->locals.p_align ? library->locals.p_align : 1;
    if (own && (align > most_align || align & (align - 1) || own->p_vaddr & (align - 1) ||
                own->p_memsz > most || own->p_filesz > own->p_memsz))
        return error_set(error, "its thread-local data has a form that cairn does not know");
    headers->own_offset = own ? align_up(own->p_memsz, align) : 0;
    headers->locals_align = align > library_align ? align : library_align;
    headers->room_bytes =
        align_up(headers->own_offset + library->locals.p_memsz, headers->locals_align);
    return true;
}

static uint64_t add_part(uint64_t *bytes, uint64_t count) {
    uint64_t at = align_up(*bytes, PART_ALIGN);
    *bytes = at + count;
    return at;
}

static uint64_t image_bytes(const struct static_headers *headers) {
    uint64_t own_bytes = headers->locals ? headers->locals->p_filesz : 0;
    return headers->room_bytes - headers->own_offset + own_bytes;
}

// The image is aligned as thread-locals are.
static void lay_out(struct static_headers *headers) {
    uint64_t *bytes = &headers->bytes;
    *bytes = 0;
    headers->image_at = add_part(bytes, image_bytes(headers));
    headers->program_at = add_part(bytes, (headers->count + 1) * sizeof(Elf64_Phdr));
    headers->library_at = add_part(bytes, (headers->count + 2) * sizeof(Elf64_Phdr));
    headers->index_at = add_part(bytes, unwind_index_bytes(&headers->index));
    headers->text_at = add_part(bytes, headers->text_bytes);
}

static bool has_index(const struct static_headers *headers) {
    for (size_t i = 0; i < headers->count; i++)
        if (headers->segments[i].p_type == PT_GNU_EH_FRAME) return true;
    return false;
}

bool static_headers_read(struct static_headers *headers, Elf *elf, uint64_t bias,
                         const struct bare_library *library, struct error *error) {
    headers->elf = elf;
    headers->bias = bias;
    if (!read_segments(headers, error) || !place_locals(headers, library, error)) return false;
    if (!unwind_index_read(&headers->index, elf)) return error_set(error, "out of memory");
    size_t count = headers->index.rows.count;
    if (!unwind_made_add(&headers->index, elf)) return error_set(error, "out of memory");
    if (has_index(headers) && headers->index.rows.count == count)
        unwind_index_free(&headers->index);  // the file's own is whole
    lay_out(headers);
    return true;
}

void static_headers_free(struct static_headers *headers) {
    unwind_index_free(&headers->index);
}

int64_t static_headers_locals(const struct static_headers *headers) {
    return -(int64_t)headers->room_bytes;
}

uint64_t static_headers_count(const struct static_headers *headers) {
    return headers->count + !headers->locals;
}

static GElf_Phdr locals_of(const struct static_headers *headers, uint64_t place) {
    uint64_t at = place + headers->image_at - headers->bias;
    return (GElf_Phdr){.p_type = PT_TLS,
                       .p_flags = PF_R,
                       .p_vaddr = at,
                       .p_paddr = at,
                       .p_filesz = image_bytes(headers),
                       .p_memsz = headers->room_bytes,
                       .p_align = headers->locals_align};
}

// A libc without relocations of its own finds the bias by where it is told that these headers are.
static void write_for_program(const struct static_headers *headers, uint64_t place,
                              uint8_t *bytes) {
    GElf_Phdr *out = (GElf_Phdr *)(bytes + headers->program_at);
    memcpy(out, headers->segments, headers->count * sizeof *out);
    out[headers->count] = locals_of(headers, place);
    for (size_t i = 0; i < headers->count; i++) {
        if (out[i].p_type == PT_PHDR) out[i].p_vaddr = place + headers->program_at - headers->bias;
        if (&headers->segments[i] == headers->locals) out[i] = locals_of(headers, place);
    }
}

static uint64_t write_for_library(const struct static_headers *headers, uint64_t place,
                                  uint8_t *bytes) {
    GElf_Phdr *out = (GElf_Phdr *)(bytes + headers->library_at);
    uint64_t index_bytes = unwind_index_bytes(&headers->index);
    uint64_t at = place + headers->index_at - headers->bias;
    memcpy(out, headers->segments, headers->count * sizeof *out);
    if (!index_bytes) return headers->count;
    GElf_Phdr index = {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = at, .p_align = 4};
    index.p_filesz = index.p_memsz = index_bytes;
    unwind_index_write(&headers->index, at, bytes + headers->index_at);
    out[headers->count] = index;
    index.p_type = PT_LOAD;
    out[headers->count + 1] = index;
    return headers->count + 2;
}

// The program's thread-locals in the image, which the program does not relocate itself.
struct own_image {
    uint8_t *bytes;
    uint64_t start, count, bias;
};

// Gives the word at a virtual address its value, `addend` or what is there, with the bias.
static void relocate(const struct own_image *own, uint64_t address, const int64_t *addend) {
    uint64_t offset = address - own->start, value = 0;
    if (own->count < sizeof value || offset > own->count - sizeof value) return;
    memcpy(&value, own->bytes + offset, sizeof value);
    value = (addend ? (uint64_t)*addend : value) + own->bias;
    memcpy(own->bytes + offset, &value, sizeof value);
}

// Packed: an address, or bits for the words that follow the last one.
static void relocate_packed(const struct own_image *own, const Elf_Data *data) {
    const uint64_t word_bytes = sizeof(uint64_t), bits = 63;
    uint64_t next = 0, word;
    for (size_t at = 0; at + word_bytes <= data->d_size; at += word_bytes) {
        memcpy(&word, (const uint8_t *)data->d_buf + at, word_bytes);
        if (!(word & 1)) {
            relocate(own, word, NULL);
            next = word + word_bytes;
            continue;
        }
        for (uint64_t bit = 0; bit < bits; bit++)
            if (word >> (bit + 1) & 1) relocate(own, next + bit * word_bytes, NULL);
        next += bits * word_bytes;
    }
}

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

static void relocate_all(Elf *elf, const struct own_image *own) {
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        GElf_Rela entry;
        if (!gelf_getshdr(section, &about) || !(about.sh_flags & SHF_ALLOC)) continue;
        Elf_Data *data = about.sh_type == SHT_RELA   ? elf_getdata(section, NULL)
                         : about.sh_type == SHT_RELR ? elf_rawdata(section, NULL)
                                                     : NULL;
        if (!data || !data->d_buf) continue;
        if (about.sh_type == SHT_RELR) relocate_packed(own, data);
        for (int i = 0; about.sh_type == SHT_RELA && gelf_getrela(data, i, &entry); i++)
            if (GELF_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
                relocate(own, entry.r_offset, &entry.r_addend);
    }
}

static void write_image(const struct static_headers *headers, const struct bare_library *library,
                        uint8_t *bytes) {
    size_t file_bytes = 0;
    const char *file = elf_rawfile(headers->elf, &file_bytes);
    const GElf_Phdr *locals = headers->locals;
    uint8_t *image = bytes + headers->image_at;
    memcpy(image, library->image + library->locals.p_vaddr, library->locals.p_filesz);
    if (!locals || !file || locals->p_offset > file_bytes ||
        locals->p_filesz > file_bytes - locals->p_offset)
        return;
    struct own_image own = {image + headers->room_bytes - headers->own_offset, locals->p_vaddr,
                            locals->p_filesz, headers->bias};
    memcpy(own.bytes, file + locals->p_offset, locals->p_filesz);
    relocate_all(headers->elf, &own);
}

static void tell_variables(const struct static_headers *headers, uint64_t place,
                           struct cairn_bare *bare) {
    size_t count = 0, at = 0;
    while (at < headers->text_bytes && count < CAIRN_BARE_VARIABLES - 1) {
        bare->variables[count++] = place + headers->text_at + at;
        at += strlen(headers->text + at) + 1;
    }
}

uint8_t *static_headers_make(const struct static_headers *headers, uint64_t place,
                             const struct bare_library *library, struct cairn_bare *bare) {
    uint8_t *bytes = calloc(1, headers->bytes + PART_ALIGN);
    if (!bytes) return NULL;
    write_for_program(headers, place, bytes);
    bare->bias = headers->bias;
    bare->segments = place + headers->library_at;
    bare->segment_count = write_for_library(headers, place, bytes);
    write_image(headers, library, bytes);
    memcpy(bytes + headers->text_at, headers->text, headers->text_bytes);
    tell_variables(headers, place, bare);
    return bytes;
}
