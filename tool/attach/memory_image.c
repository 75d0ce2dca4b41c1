// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/memory_image.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/unnamed_file.h"
#include "tool/proc/elf_headers.h"

enum { PIECE_BYTES = 1 << 16 };
#define SEGMENT_MAX_BYTES (UINT64_C(1) << 30)

// Copies one segment to where the file has it, as far as it can be read.
static bool copy_segment(int file, const struct remote *remote, const Elf64_Phdr *segment,
                         uint64_t bias) {
    uint8_t bytes[PIECE_BYTES];
    if (segment->p_filesz > SEGMENT_MAX_BYTES || segment->p_offset > SEGMENT_MAX_BYTES)
        return false;
    for (uint64_t at = 0; at < segment->p_filesz; at += sizeof bytes) {
        uint64_t left = segment->p_filesz - at;
        size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
        if (!remote_read(remote, bias + segment->p_vaddr + at, bytes, size)) memset(bytes, 0, size);
        if (pwrite(file, bytes, size, (off_t)(segment->p_offset + at)) != (ssize_t)size)
            return false;
    }
    return true;
}

// The header's own words about sections, which are not in memory.
static bool forget_sections(int file) {
    Elf64_Ehdr header;
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header) return false;
    header.e_shoff = 0;
    header.e_shnum = header.e_shstrndx = 0;
    return pwrite(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

// The dynamic linker has made addresses of what its table of the module says.
static bool restore_dynamic(int file, const Elf64_Phdr *segments, size_t count, uint64_t bias) {
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > end)
            end = segments[i].p_vaddr + segments[i].p_memsz;
    for (size_t i = 0; i < count; i++) {
        uint64_t entries = segments[i].p_type == PT_DYNAMIC ? segments[i].p_filesz : 0;
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries; at += sizeof(Elf64_Dyn)) {
            off_t place = (off_t)(segments[i].p_offset + at);
            Elf64_Dyn entry;
            if (pread(file, &entry, sizeof entry, place) != (ssize_t)sizeof entry) return false;
            if (entry.d_tag == DT_NULL) break;
            if (entry.d_un.d_ptr < bias || entry.d_un.d_ptr - bias >= end) continue;
            entry.d_un.d_ptr -= bias;
            if (pwrite(file, &entry, sizeof entry, place) != (ssize_t)sizeof entry) return false;
        }
    }
    return true;
}

int memory_image_open(const struct remote *remote, uint64_t start) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    size_t count = elf_headers_at(&reader, start, segments);
    uint64_t bias = 0;
    bool is_whole = false;
    for (size_t i = count; i-- > 0;)
        if (segments[i].p_type == PT_LOAD && !segments[i].p_offset)
            bias = start - segments[i].p_vaddr;
    int file = count ? unnamed_file_make("image") : -1;
    for (size_t i = 0; file >= 0 && i < count; i++)
        if (segments[i].p_type == PT_LOAD)
            is_whole = copy_segment(file, remote, &segments[i], bias) || is_whole;
    is_whole = is_whole && forget_sections(file) &&
               (!bias || restore_dynamic(file, segments, count, bias));
    if (file >= 0 && !is_whole) close(file);
    return is_whole ? file : -1;
}
