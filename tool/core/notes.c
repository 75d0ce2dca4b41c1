// SPDX-License-Identifier: Apache-2.0
#include "tool/core/notes.h"

#include <elf.h>
#include <string.h>

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

// Of the words that the kernel leaves for the program, one leads to the stack it was started on.
void core_read_vector(struct core_image *core, const uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + 2 * (size_t)WORD <= size; at += 2 * (size_t)WORD)
        if (word_at(bytes, at) == AT_RANDOM) core->first_stack = word_at(bytes, at + WORD);
}

static bool read_note(struct core_image *core, const struct core_note *note) {
    if (note->type == NT_PRPSINFO && note->size >= PSINFO_PID_AT + sizeof core->pid)
        core->pid = number_at(note->bytes, PSINFO_PID_AT);
    if (note->type == NT_AUXV) core_read_vector(core, note->bytes, note->size);
    if (note->type == NT_PRSTATUS) return read_thread(core, note->bytes, note->size);
    return note->type != NT_FILE || read_files(core, note->bytes, note->size);
}

static int compare_starts(const void *a, const void *b) {
    const struct core_file *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Files that overlap others are left out.
static void sort_files(struct core_image *core) {
    size_t kept = 0;
    struct core_file *items = core->files.items;
    if (core->files.count) qsort(items, core->files.count, sizeof *items, compare_starts);
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
