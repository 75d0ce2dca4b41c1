// SPDX-License-Identifier: Apache-2.0
// An ELF file laid out in memory as the dynamic linker would, without relocations, for tests of
// its unwind information.
#ifndef TESTS_UNIT_RUNTIME_UNWIND_IMAGE_H
#define TESTS_UNIT_RUNTIME_UNWIND_IMAGE_H

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/unwind/eh_frame.h"

struct image {
    uint8_t *memory;  // of virtual address 0
    size_t bytes;
    struct row_source source;
};

// One entry of the sorted table in .eh_frame_hdr, as virtual addresses.
struct image_function {
    uint64_t start, entry;
};

static inline void image_load_segments(struct image *image, int file, const Elf64_Phdr *segments,
                                       int count) {
    for (int i = 0; i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_GNU_EH_FRAME)
            image->source.eh_frame_hdr = image->memory + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && pread(file, image->memory + segment->p_vaddr,
                                                segment->p_filesz, (off_t)segment->p_offset) < 0)
            abort();
    }
}

static inline bool image_load(struct image *image, const char *path) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[32];
    int file = open(path, O_RDONLY);
    if (file < 0 || pread(file, &header, sizeof header, 0) != sizeof header) return false;
    if (header.e_phnum > 32) return false;
    size_t table_bytes = header.e_phnum * sizeof segments[0];
    if (pread(file, segments, table_bytes, (off_t)header.e_phoff) < 0) return false;
    *image = (struct image){0};
    for (int i = 0; i < header.e_phnum; i++)
        if (segments[i].p_type == PT_LOAD &&
            segments[i].p_vaddr + segments[i].p_memsz > image->bytes)
            image->bytes = segments[i].p_vaddr + segments[i].p_memsz;
    image->memory = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->memory == MAP_FAILED) abort();
    image_load_segments(image, file, segments, header.e_phnum);
    image->source.start = image->memory;
    image->source.end = image->memory + image->bytes;
    close(file);
    return image->source.eh_frame_hdr != NULL;
}

static inline void image_free(struct image *image) {
    munmap(image->memory, image->bytes);
}

// Functions that the table lists; it must have the usual encoding.
static inline uint32_t image_function_count(const struct image *image) {
    uint32_t count;
    const uint8_t *header = image->source.eh_frame_hdr;
    if (header[1] != 0x1b || header[2] != 0x03 || header[3] != 0x3b) abort();
    memcpy(&count, header + 8, sizeof count);
    return count;
}

static inline struct image_function image_function(const struct image *image, uint32_t index) {
    int32_t pair[2];
    const uint8_t *header = image->source.eh_frame_hdr;
    memcpy(pair, header + 12 + index * sizeof pair, sizeof pair);
    uint64_t base = (uint64_t)(header - image->memory);
    return (struct image_function){base + (uint64_t)(int64_t)pair[0],
                                   base + (uint64_t)(int64_t)pair[1]};
}

#endif
