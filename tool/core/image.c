// SPDX-License-Identifier: Apache-2.0
#include "tool/core/image.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/base/search.h"
#include "tool/core/notes.h"

// The kernel writes 65,535 and the true number elsewhere beyond this; such cores are cut here.
enum { SEGMENTS_MAX = 1 << 20, WINDOW_BYTES = 1 << 16 };
enum { RESIDENT_BYTES_MAX = 128 << 20, PLACES_BETWEEN = 256 };  // looks at what is resident
enum { PLACE_BYTES = 1 << 16 };  // that the kernel maps around an address that was not there

static bool read_header(const struct source *source, Elf64_Ehdr *header) {
    return source_read(source, 0, header, sizeof *header) == sizeof *header &&
           !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_type == ET_CORE;
}

bool core_is_one(const char *path) {
    struct source source;
    Elf64_Ehdr header;
    if (!source_open(path, &source, NULL)) return false;
    bool is_core = read_header(&source, &header);
    source_close(&source);
    return is_core;
}

// Segments beyond 65,534 are counted in the first section header.
static uint64_t count_segments(const struct source *source, const Elf64_Ehdr *header) {
    Elf64_Shdr first;
    if (header->e_phnum != PN_XNUM) return header->e_phnum;
    if (source_read(source, header->e_shoff, &first, sizeof first) != sizeof first) return 0;
    return first.sh_info;
}

static bool add_segment(struct core_image *core, const Elf64_Phdr *program) {
    uint64_t size = core->source.size, start = program->p_vaddr, bytes = program->p_filesz;
    if (!program->p_memsz || start + program->p_memsz < start) return true;
    if (bytes > program->p_memsz) bytes = program->p_memsz;
    uint64_t there = program->p_offset < size ? size - program->p_offset : 0;
    if (bytes > there) core->missing_bytes += bytes - there;
    struct core_segment *segment = array_push(&core->segments);
    if (!segment) return false;
    *segment = (struct core_segment){start,
                                     start + program->p_memsz,
                                     program->p_offset,
                                     bytes < there ? bytes : there,
                                     program->p_flags & PF_W,
                                     program->p_flags & PF_X};
    return true;
}

static int compare_starts(const void *a, const void *b) {
    const struct core_segment *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Segments that overlap cannot come from a process: the later one is left out.
static void drop_overlaps(struct core_image *core) {
    size_t kept = 0;
    struct core_segment *items = core->segments.items;
    if (core->segments.count) qsort(items, core->segments.count, sizeof *items, compare_starts);
    for (size_t i = 0; i < core->segments.count; i++)
        if (!kept || items[i].start >= items[kept - 1].end) items[kept++] = items[i];
    core->segments.count = kept;
}

static bool read_segments(struct core_image *core, const Elf64_Ehdr *header, struct error *error) {
    uint64_t count = count_segments(&core->source, header);
    if (count > SEGMENTS_MAX) count = SEGMENTS_MAX;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Phdr program;
        uint64_t offset = header->e_phoff + i * sizeof program;
        if (source_read(&core->source, offset, &program, sizeof program) != sizeof program) break;
        if (program.p_type == PT_NOTE && !core_read_notes(core, program.p_offset, program.p_filesz))
            return error_set(error, "out of memory");
        if (program.p_type == PT_LOAD && !add_segment(core, &program))
            return error_set(error, "out of memory");
    }
    drop_overlaps(core);
    return core->segments.count || error_set(error, "this core dump has no memory in it");
}

bool core_open(const char *path, struct core_image *core, struct error *error) {
    Elf64_Ehdr header;
    *core = (struct core_image){0};
    if (!source_open(path, &core->source, error)) return error_wrap(error, "%s", path);
    bool is_ok = read_header(&core->source, &header) || error_set(error, "is not a core dump");
    if (is_ok && (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB))
        is_ok = error_set(error, "is a core dump of a machine that is not 64-bit little-endian");
    if (is_ok && header.e_phentsize != sizeof(Elf64_Phdr))
        is_ok = error_set(error, "is a damaged core dump");
    core->machine = header.e_machine;
    is_ok = is_ok && read_segments(core, &header, error);
    if (is_ok) {
        void *map =
            mmap(NULL, core->source.size, PROT_READ, MAP_PRIVATE, core->source.descriptor, 0);
        if (map != MAP_FAILED) core->map = map;
        return true;
    }
    core_close(core);
    return error_wrap(error, "%s", path);
}

void core_close(struct core_image *core) {
    if (core->map) munmap((void *)core->map, core->source.size);
    core->map = NULL;
    source_close(&core->source);
    array_free(&core->segments);
    array_free(&core->files);
    array_free(&core->threads);
    free(core->texts);
    core->texts = NULL;
}

const struct core_segment *core_segment_of(const struct core_image *core, uint64_t address) {
    size_t low = 0, high = core->segments.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct core_segment *segment = &core->segments.items[middle];
        if (address < segment->start)
            high = middle;
        else if (address >= segment->end)
            low = middle + 1;
        else
            return segment;
    }
    return NULL;
}

const struct core_file *core_file_of(const struct core_image *core, uint64_t address) {
    size_t low;
    search_first(low, core->files.count, core->files.items[low].start > address);
    const struct core_file *file = low ? &core->files.items[low - 1] : NULL;
    return file && address < file->end ? file : NULL;
}

const struct core_file *core_module_of(const struct core_image *core, uint64_t address) {
    const struct core_file *file = core_file_of(core, address);
    const struct core_segment *segment = file ? NULL : core_segment_of(core, address);
    if (!segment || !segment->start) return file;
    return core_file_of(core, segment->start - 1);
}

// How many bytes the file has from `address` on, and where they lie there.
static uint64_t find_bytes(const struct core_image *core, uint64_t address, uint64_t *offset) {
    const struct core_segment *segment = core_segment_of(core, address);
    uint64_t inside = segment ? address - segment->start : 0;
    if (!segment || inside >= segment->bytes) return 0;
    *offset = segment->offset + inside;
    return segment->bytes - inside;
}

bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size) {
    for (size_t done = 0; done < size;) {
        uint64_t offset = 0, there = find_bytes(core, address + done, &offset);
        size_t part = size - done < there ? size - done : (size_t)there;
        if (!there) return false;
        if (core->map)
            memcpy((char *)out + done, core->map + offset, part);
        else if (source_read(&core->source, offset, (char *)out + done, part) != part)
            return false;
        done += part;
    }
    return true;
}

size_t core_piece(const struct core_image *core, uint64_t address, void *scratch, size_t size,
                  const uint8_t **bytes) {
    uint64_t offset = 0, there = find_bytes(core, address, &offset);
    size_t part = size < there ? size : (size_t)there;
    *bytes = core->map ? core->map + offset : scratch;
    if (core->map || !part) return part;
    return source_read(&core->source, offset, scratch, part);
}

// Pages of files that this program has in memory; the whole address space if nobody says.
static uint64_t resident_file_bytes(void) {
    unsigned long long size, resident, shared;
    FILE *file = fopen("/proc/self/statm", "re");
    bool is_told = file && fscanf(file, "%llu %llu %llu", &size, &resident, &shared) == 3;
    if (file) fclose(file);
    return is_told ? shared * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
}

void core_looked_at(const struct core_image *core, uint64_t bytes, uint64_t *places) {
    if (!core->map) return;
    *places += 1 + bytes / PLACE_BYTES;
    if (*places < PLACES_BETWEEN) return;
    *places = 0;
    if (resident_file_bytes() >= RESIDENT_BYTES_MAX) core_forget(core);
}

void core_forget(const struct core_image *core) {
    if (core->map && core->source.descriptor >= 0)
        madvise((void *)core->map, core->source.size, MADV_DONTNEED);
}

bool core_window_open(struct core_window *window, const struct core_image *core) {
    *window = (struct core_window){.core = core};
    if (!core->map) window->scratch = malloc(WINDOW_BYTES);
    return core->map || window->scratch;
}

void core_window_close(struct core_window *window) {
    free(window->scratch);
    window->scratch = NULL;
}

bool core_window_move(struct core_window *window, uint64_t address, size_t size) {
    core_looked_at(window->core, 0, &window->places);
    size_t there = core_piece(window->core, address, window->scratch, WINDOW_BYTES, &window->bytes);
    window->start = address;
    window->end = address + there;
    return there >= size;
}
