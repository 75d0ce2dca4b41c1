// SPDX-License-Identifier: Apache-2.0
// The file as it is, behind it what the sections hold, and their headers changed to say so.
#include "tool/symbol/unpack.h"

#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

// Sizes in files may lie. No debug information is packed so well.
enum { RATIO_MAX = 1024, SMALL_BYTES = 1 << 16, ALIGN = 16 };

struct packed {
    size_t size;       // unpacked
    uint64_t align;    // of what is in it
    const char *data;  // behind its header
    size_t data_bytes;
};

static size_t align_up(size_t size) {
    return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static bool is_packed(Elf_Scn *section, const char *file, size_t file_bytes,
                      struct packed *packed) {
    GElf_Shdr header;
    GElf_Chdr inner;
    if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
        !(header.sh_flags & SHF_COMPRESSED) || !gelf_getchdr(section, &inner) ||
        inner.ch_type != ELFCOMPRESS_ZSTD || header.sh_offset > file_bytes ||
        header.sh_size > file_bytes - header.sh_offset || header.sh_size < sizeof(Elf64_Chdr))
        return false;
    *packed = (struct packed){.size = inner.ch_size,
                              .align = inner.ch_addralign,
                              .data = file + header.sh_offset + sizeof(Elf64_Chdr),
                              .data_bytes = header.sh_size - sizeof(Elf64_Chdr)};
    return inner.ch_size / RATIO_MAX <= packed->data_bytes + SMALL_BYTES / RATIO_MAX;
}

// The table of section headers in `file`; NULL if it is not one that can be changed here.
static Elf64_Shdr *headers_of(Elf *elf, char *file, size_t bytes, size_t *count) {
    Elf64_Ehdr *head = (Elf64_Ehdr *)file;
    if (gelf_getclass(elf) != ELFCLASS64 || bytes < sizeof *head ||
        head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_shentsize != sizeof(Elf64_Shdr) ||
        head->e_shoff % _Alignof(Elf64_Shdr) || elf_getshdrnum(elf, count) != 0 ||
        head->e_shoff > bytes || *count > (bytes - head->e_shoff) / sizeof(Elf64_Shdr))
        return NULL;
    return (Elf64_Shdr *)(file + head->e_shoff);
}

static size_t unpacked_bytes(Elf *elf, const char *file, size_t bytes) {
    struct packed packed;
    size_t sum = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        if (is_packed(section, file, bytes, &packed)) sum += align_up(packed.size);
    return sum;
}

// One section, to `at` in the copy. False: it stays as it is.
static bool unpack(const struct packed *packed, char *copy, size_t at, Elf64_Shdr *header) {
    size_t got = ZSTD_decompress(copy + at, packed->size, packed->data, packed->data_bytes);
    if (ZSTD_isError(got) || got != packed->size) return false;
    header->sh_offset = at;
    header->sh_size = packed->size;
    header->sh_addralign = packed->align;
    header->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
    return true;
}

bool unpack_zstd(Elf *elf, void **memory, size_t *bytes) {
    size_t file_bytes = 0, count = 0;
    const char *file = elf_rawfile(elf, &file_bytes);
    size_t more = file ? unpacked_bytes(elf, file, file_bytes) : 0;
    if (!more) return false;
    size_t at = align_up(file_bytes);
    char *copy = malloc(at + more);
    if (!copy) return false;
    memcpy(copy, file, file_bytes);
    memset(copy + file_bytes, 0, at - file_bytes);
    Elf64_Shdr *headers = headers_of(elf, copy, file_bytes, &count);
    struct packed packed;
    for (Elf_Scn *section = NULL; headers && (section = elf_nextscn(elf, section));) {
        size_t index = elf_ndxscn(section);
        if (index >= count || !is_packed(section, file, file_bytes, &packed)) continue;
        if (unpack(&packed, copy, at, &headers[index])) at += align_up(packed.size);
    }
    *memory = copy;
    *bytes = at;
    if (headers && at > align_up(file_bytes)) return true;
    free(copy);
    return false;
}
