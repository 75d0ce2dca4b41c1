// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/image.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/base/search.h"
#include "tool/glibc/heads.h"

// The kernel writes 65,535 and the true number elsewhere beyond this; such cores are cut here.
enum { SEGMENTS_MAX = 1 << 20 };
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
    struct memory_segment *segment = array_push(&core->segments);
    if (!segment) return false;
    *segment = (struct memory_segment){start,
                                       start + program->p_memsz,
                                       program->p_offset,
                                       bytes < there ? bytes : there,
                                       program->p_flags & PF_W,
                                       program->p_flags & PF_X};
    return true;
}

static int compare_starts(const void *a, const void *b) {
    const struct memory_segment *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Segments that overlap cannot come from a process: the later one is left out.
static void drop_overlaps(struct core_image *core) {
    size_t kept = 0;
    struct memory_segment *items = core->segments.items;
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

// Says how to unpack the file if it is compressed, as systemd-coredump leaves them. False.
static bool refuse(const struct source *source, struct error *error) {
    static const struct {
        const char *magic, *command;
        size_t bytes;
    } packed[] = {{"\x28\xb5\x2f\xfd", "zstd -d", 4},
                  {"\x04\x22\x4d\x18", "lz4 -d", 4},
                  {"\x1f\x8b", "gzip -d", 2},
                  {"\xfd"
                   "7zXZ",
                   "xz -d", 5},
                  {"BZh", "bzip2 -d", 3}};
    char head[8] = "";
    source_read(source, 0, head, sizeof head);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (!memcmp(head, packed[i].magic, packed[i].bytes))
            return error_set(error, "is compressed: unpack it first (%s)", packed[i].command);
    return error_set(error, "is not a core dump");
}

bool core_open(const char *path, struct core_image *core, struct error *error) {
    Elf64_Ehdr header;
    *core = (struct core_image){0};
    if (!source_open(path, &core->source, error)) return error_wrap(error, "%s", path);
    bool is_ok = read_header(&core->source, &header) || refuse(&core->source, error);
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
    present_free(&core->present);
    core->texts = NULL;
}

const struct memory_segment *core_segment_of(const struct core_image *core, uint64_t address) {
    return memory_segment_of(core->segments.items, core->segments.count, address);
}

bool core_next_part(const struct core_image *core, uint64_t *at, uint64_t end, struct span *part) {
    size_t low;
    search_first(low, core->segments.count,
                 core->segments.items[low].start + core->segments.items[low].bytes > *at);
    if (*at >= end || low == core->segments.count || core->segments.items[low].start >= end)
        return false;
    const struct memory_segment *segment = &core->segments.items[low];
    const uint64_t until = segment->start + segment->bytes;
    *part = (struct span){*at > segment->start ? *at : segment->start, end < until ? end : until};
    *at = part->end;
    return true;
}

uint64_t core_present_bytes(const struct core_image *core, uint64_t start, uint64_t end) {
    uint64_t bytes = 0;
    struct span part;
    while (core_next_part(core, &start, end, &part)) bytes += part.end - part.start;
    return bytes;
}

const struct core_file *core_file_of(const struct core_image *core, uint64_t address) {
    size_t low;
    search_first(low, core->files.count, core->files.items[low].start > address);
    const struct core_file *file = low ? &core->files.items[low - 1] : NULL;
    return file && address < file->end ? file : NULL;
}

const struct core_file *core_module_of(const struct core_image *core, uint64_t address) {
    const struct core_file *file = core_file_of(core, address);
    const struct memory_segment *segment = file ? NULL : core_segment_of(core, address);
    if (!segment || !segment->start) return file;
    return core_file_of(core, segment->start - 1);
}

// How many bytes the file has from `address` on, and where they lie there.
static uint64_t find_bytes(const struct core_image *core, uint64_t address, uint64_t *offset) {
    const struct memory_segment *segment = core_segment_of(core, address);
    uint64_t inside = segment ? address - segment->start : 0;
    if (!segment || inside >= segment->bytes) return 0;
    *offset = segment->offset + inside;
    return segment->bytes - inside;
}

// Reads what is known of memory that chunks fill; returns how many bytes that are, and bounds by
// `size` what lies before it.
static size_t read_heads(const struct core_image *core, uint64_t address, void *out, size_t *size) {
    uint64_t next;
    if (!core->heads) return 0;
    const size_t known = heap_heads_read(core->heads, address, out, *size, &next);
    if (!known && next - address < *size) *size = (size_t)(next - address);
    return known;
}

static bool read_source(const struct core_image *core, uint64_t offset, void *out, size_t size) {
    if (!core->map) return source_read(&core->source, offset, out, size) == size;
    if (present_is_whole(&core->present, offset, size))
        memcpy(out, core->map + offset, size);
    else
        present_read(&core->present, core->map, offset, out, size);
    return true;
}

bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size) {
    for (size_t done = 0; done < size;) {
        size_t part = size - done;
        const size_t known = read_heads(core, address + done, (char *)out + done, &part);
        uint64_t offset = 0, there = known ? known : find_bytes(core, address + done, &offset);
        if (part > there) part = (size_t)there;
        if (!there) return false;
        if (!known && !read_source(core, offset, (char *)out + done, part)) return false;
        done += part;
    }
    return true;
}

size_t core_piece(const struct core_image *core, uint64_t address, void *scratch, size_t size,
                  const uint8_t **bytes) {
    const size_t known = read_heads(core, address, scratch, &size);
    *bytes = scratch;
    if (known) return known;
    uint64_t offset = 0, there = find_bytes(core, address, &offset);
    size_t part = size < there ? size : (size_t)there;
    if (!part) return 0;
    if (core->map && present_is_whole(&core->present, offset, part))
        *bytes = core->map + offset;
    else if (core->map)
        present_read(&core->present, core->map, offset, scratch, part);
    else
        part = source_read(&core->source, offset, scratch, part);
    return part;
}

uint64_t core_first_there(const struct core_image *core, uint64_t address, uint64_t end) {
    const struct memory_segment *segment =
        core->present.bits ? core_segment_of(core, address) : NULL;
    if (!segment || address - segment->start >= segment->bytes) return address;
    const uint64_t until =
        end - segment->start < segment->bytes ? end - segment->start : segment->bytes;
    const uint64_t inside = address - segment->start;
    return segment->start +
           present_next(&core->present, segment->offset + inside, segment->offset + until) -
           segment->offset;
}

// Pages of files that this program has in memory; the whole address space if that is not known.
static uint64_t resident_file_bytes(void) {
    unsigned long long size, resident, shared;
    FILE *file = fopen("/proc/self/statm", "re");
    bool is_told = file && fscanf(file, "%llu %llu %llu", &size, &resident, &shared) == 3;
    if (file) fclose(file);
    return is_told ? shared * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
}

void core_place_done(const struct core_image *core, uint64_t bytes, uint64_t *places) {
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

// --- as memory of any kind

static bool view_read(const void *context, uint64_t address, void *bytes, size_t size) {
    return core_read(context, address, bytes, size);
}

static size_t view_piece(const void *context, uint64_t address, void *scratch, size_t size,
                         const uint8_t **bytes) {
    return core_piece(context, address, scratch, size, bytes);
}

static void view_place_done(const void *context, uint64_t *places) {
    core_place_done(context, 0, places);
}

struct memory_view core_view(const struct core_image *core) {
    return (struct memory_view){{view_read, view_piece, view_place_done, core},
                                core->segments.items,
                                core->segments.count,
                                core_page_bytes(core)};
}

// --- notes

enum {
    NOTES_BYTES_MAX = 1 << 28,  // a thread takes a few KiB of them
    FILES_MAX = 1 << 20,
    NOTE_ALIGN = 4,
    WORD = 8,
    // of elf_prpsinfo and elf_prstatus
    PSINFO_PID_AT = 24,
    STATUS_PID_AT = 32,
    STATUS_REGISTERS_AT = 112,
    STATUS_TAIL = 8,
    // of user_regs_struct
    X86_STACK = 19,
    X86_FS_BASE = 21,
    ARM_STACK = 31,
};

static uint64_t align(uint64_t size) {
    return (size + NOTE_ALIGN - 1) / NOTE_ALIGN * NOTE_ALIGN;
}

static uint64_t word_at(const uint8_t *bytes, size_t at) {
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

static uint32_t number_at(const uint8_t *bytes, size_t at) {
    uint32_t number;
    memcpy(&number, bytes + at, sizeof number);
    return number;
}

static void find_pointers(uint32_t machine, struct core_thread *thread) {
    if (machine == EM_X86_64 && thread->register_count > X86_FS_BASE) {
        thread->stack = thread->registers[X86_STACK];
        thread->pointer = thread->registers[X86_FS_BASE];
    }
    if (machine == EM_AARCH64 && thread->register_count > ARM_STACK)
        thread->stack = thread->registers[ARM_STACK];
}

static bool read_thread(struct core_image *core, const uint8_t *bytes, size_t size) {
    if (size < STATUS_REGISTERS_AT + STATUS_TAIL) return true;
    size_t count = (size - STATUS_REGISTERS_AT - STATUS_TAIL) / WORD;
    struct core_thread *thread = array_push(&core->threads);
    if (!thread) return false;
    *thread = (struct core_thread){.tid = number_at(bytes, STATUS_PID_AT)};
    thread->register_count = (uint32_t)(count < CORE_REGISTERS_MAX ? count : CORE_REGISTERS_MAX);
    memcpy(thread->registers, bytes + STATUS_REGISTERS_AT, thread->register_count * (size_t)WORD);
    find_pointers(core->machine, thread);
    return true;
}

// A count, the unit of offsets, three words a file, and then their paths, one behind the other.
static bool read_files(struct core_image *core, const uint8_t *bytes, size_t size) {
    enum { HEAD = 2 * WORD, ROW = 3 * WORD };
    uint64_t count = size >= HEAD ? word_at(bytes, 0) : 0, unit = count ? word_at(bytes, WORD) : 0;
    if (!count || core->texts || count > FILES_MAX || count > (size - HEAD) / ROW) return true;
    size_t texts_at = HEAD + (size_t)count * ROW, texts_bytes = size - texts_at;
    core->texts = calloc(1, texts_bytes + 1);
    if (!core->texts) return false;
    memcpy(core->texts, bytes + texts_at, texts_bytes);
    const char *path = core->texts, *end = core->texts + texts_bytes;
    for (size_t i = 0; i < count && path < end; i++) {
        const uint8_t *row = bytes + HEAD + i * ROW;
        struct core_file *file = array_push(&core->files);
        if (!file) return false;
        *file = (struct core_file){word_at(row, 0), word_at(row, WORD),
                                   word_at(row, 2 * (size_t)WORD) * unit, path};
        path += strlen(path) + 1;
    }
    return true;
}

// Of the words that the kernel leaves for the program, one leads to the stack it was started on,
// and one is the size of a page.
static void read_vector(struct core_image *core, const uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + 2 * (size_t)WORD <= size; at += 2 * (size_t)WORD) {
        if (word_at(bytes, at) == AT_RANDOM) core->first_stack = word_at(bytes, at + WORD);
        if (word_at(bytes, at) == AT_PAGESZ) core->page_bytes = word_at(bytes, at + WORD);
    }
}

static bool read_note(struct core_image *core, const struct core_note *note) {
    if (note->type == NT_PRPSINFO && note->size >= PSINFO_PID_AT + sizeof core->pid)
        core->pid = number_at(note->bytes, PSINFO_PID_AT);
    if (note->type == NT_AUXV) read_vector(core, note->bytes, note->size);
    if (note->type == NT_PRSTATUS) return read_thread(core, note->bytes, note->size);
    return note->type != NT_FILE || read_files(core, note->bytes, note->size);
}

static int compare_files(const void *a, const void *b) {
    const struct core_file *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Files that overlap others are left out.
static void sort_files(struct core_image *core) {
    size_t kept = 0;
    struct core_file *items = core->files.items;
    if (core->files.count) qsort(items, core->files.count, sizeof *items, compare_files);
    for (size_t i = 0; i < core->files.count; i++)
        if (items[i].end > items[i].start && (!kept || items[i].start >= items[kept - 1].end))
            items[kept++] = items[i];
    core->files.count = kept;
}

bool core_next_note(const uint8_t *block, size_t size, size_t *at, struct core_note *note) {
    Elf64_Nhdr header;
    if (*at > size || size - *at < sizeof header) return false;
    memcpy(&header, block + *at, sizeof header);
    uint64_t data = *at + sizeof header + align(header.n_namesz);
    if (data > size || header.n_descsz > size - data) return false;
    *note = (struct core_note){header.n_type, block + data, header.n_descsz};
    *at = (size_t)(data + align(header.n_descsz));
    return true;
}

bool core_read_notes(struct core_image *core, uint64_t offset, uint64_t size) {
    uint64_t there = offset < core->source.size ? core->source.size - offset : 0;
    if (size > there) size = there;
    if (size > NOTES_BYTES_MAX) size = NOTES_BYTES_MAX;
    uint8_t *block = malloc(size + 1);
    if (!block) return false;
    struct core_note note;
    bool is_ok = true;
    size_t read = source_read(&core->source, offset, block, size), at = 0;
    while (is_ok && core_next_note(block, read, &at, &note)) is_ok = read_note(core, &note);
    sort_files(core);
    free(block);
    return is_ok;
}

// --- of a running process

// A file's path among the texts; returns where, or SIZE_MAX without memory. Mappings of one file
// follow each other.
static size_t keep_path(struct core_image *core, size_t *used, size_t last, const char *path) {
    size_t size = strlen(path) + 1;
    if (last != SIZE_MAX && !strcmp(core->texts + last, path)) return last;
    char *grown = realloc(core->texts, *used + size);
    if (!grown) return SIZE_MAX;
    core->texts = grown;
    memcpy(grown + *used, path, size);
    *used += size;
    return *used - size;
}

// Paths are offsets until all of them are there, since the texts move.
bool core_read_mapped_files(struct core_image *core, struct maps *maps) {
    struct mapping mapping;
    size_t used = 0, last = SIZE_MAX;
    while (maps_next(maps, &mapping)) {
        if (!mapping_is_file(&mapping)) continue;
        last = keep_path(core, &used, last, mapping.name);
        struct core_file *file = array_push(&core->files);
        if (!file || last == SIZE_MAX) return false;
        *file = (struct core_file){mapping.start, mapping.end, mapping.offset,
                                   (const char *)(uintptr_t)last};  // NOLINT: until below
    }
    for (size_t i = 0; i < core->files.count; i++)
        core->files.items[i].path = core->texts + (uintptr_t)core->files.items[i].path;
    return true;
}

bool core_read_process_files(struct core_image *core, pid_t pid, struct error *error) {
    struct maps maps;
    if (!maps_open(&maps, pid, "maps", error)) return false;
    bool is_ok = core_read_mapped_files(core, &maps) || error_set(error, "out of memory");
    maps_close(&maps);
    return is_ok;
}
