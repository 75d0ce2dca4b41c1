// SPDX-License-Identifier: Apache-2.0
#include "tool/core/image.h"

#include <elf.h>
#include <string.h>

// The kernel writes 65,535 and the true number elsewhere beyond this; such cores are cut here.
enum { SEGMENTS_MAX = 1 << 20, NOTE_BYTES_MAX = 1 << 24 };

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
    *segment = (struct core_segment){start, start + program->p_memsz, program->p_offset,
                                     bytes < there ? bytes : there};
    return true;
}

// The process' number, from the note that the kernel and gdb write about it.
static void read_pid(struct core_image *core, const Elf64_Phdr *program) {
    const uint64_t pid_offset = 24, align = 4;  // pr_pid of elf_prpsinfo on 64-bit machines
    uint64_t at = program->p_offset;
    uint64_t limit = program->p_filesz < NOTE_BYTES_MAX ? program->p_filesz : NOTE_BYTES_MAX;
    uint64_t end = at + limit;
    Elf64_Nhdr note;
    while (at < end && source_read(&core->source, at, &note, sizeof note) == sizeof note) {
        uint64_t data = at + sizeof note + (note.n_namesz + align - 1) / align * align;
        uint32_t pid;
        if (note.n_type == NT_PRPSINFO && note.n_descsz >= pid_offset + sizeof pid &&
            source_read(&core->source, data + pid_offset, &pid, sizeof pid) == sizeof pid)
            core->pid = pid;
        at = data + (note.n_descsz + align - 1) / align * align;
    }
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
        if (program.p_type == PT_NOTE) read_pid(core, &program);
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
    if (is_ok) return true;
    core_close(core);
    return error_wrap(error, "%s", path);
}

void core_close(struct core_image *core) {
    source_close(&core->source);
    array_free(&core->segments);
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

bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size) {
    for (size_t done = 0; done < size;) {
        const struct core_segment *segment = core_segment_of(core, address + done);
        uint64_t inside = segment ? address + done - segment->start : 0;
        if (!segment || inside >= segment->bytes) return false;
        uint64_t there = segment->bytes - inside;
        size_t part = size - done < there ? size - done : (size_t)there;
        if (source_read(&core->source, segment->offset + inside, (char *)out + done, part) != part)
            return false;
        done += part;
    }
    return true;
}
