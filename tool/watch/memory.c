// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/compact.h"
#include "format/packed.h"
#include "tool/base/clock.h"
#include "tool/base/file_bytes.h"
#include "tool/base/unnamed_file.h"
#include "tool/model/source.h"
#include "tool/proc/process.h"

// Sparse: address space for the largest recording. Less where a limit forbids it.
static const uint64_t memory_most_bytes = 6ull << 30;

// Under a limit on address space, which is the program's too, no more than the program lays out
// (runtime/sink).
static uint64_t memory_space(void) {
    const uint64_t share = 8, page_bytes = process_page_bytes();
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur / share >= memory_most_bytes)
        return memory_most_bytes;
    return (limit.rlim_cur / share + page_bytes) & ~(page_bytes - 1);
}

bool memory_make(struct memory *memory, struct error *error) {
    *memory = (struct memory){.file = -1};
    int file = unnamed_file_make("cairn");
    if (file < 0) return error_set(error, "cannot make a file in memory: %s", strerror(errno));
    return memory_adopt(memory, file, error);
}

bool memory_adopt(struct memory *memory, int file, struct error *error) {
    *memory = (struct memory){.file = file, .bytes = memory_space()};
    bool is_large = ftruncate(memory->file, (off_t)memory->bytes) == 0;
    while (!is_large && memory->bytes / 2 >= MEMORY_LEAST_BYTES) {
        memory->bytes /= 2;
        is_large = ftruncate(memory->file, (off_t)memory->bytes) == 0;
    }
    void *mapping = is_large ? mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_NORESERVE, memory->file, 0)
                             : MAP_FAILED;
    if (mapping == MAP_FAILED) {
        error_set(error, "cannot map a recording: %s", strerror(errno));
        close(memory->file);
        memory->file = -1;
        return false;
    }
    // a file of the older kind has no seals; only the library ever has its descriptor
    fcntl(memory->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    memory->header = mapping;
    return true;
}

void memory_close(struct memory *memory) {
    if (memory->header) munmap(memory->header, memory->bytes);
    if (memory->file >= 0) close(memory->file);
    *memory = (struct memory){.file = -1};
}

bool memory_share(const struct memory *memory, struct memory *shared) {
    *shared = (struct memory){.file = -1, .bytes = memory->bytes};
    if (memory->header->state == CAIRN_STATE_NEW) return false;
    const int flags = MAP_SHARED | MAP_NORESERVE;
    void *mapping = mmap(NULL, shared->bytes, PROT_READ, flags, memory->file, 0);
    if (mapping != MAP_FAILED) shared->header = mapping;
    return shared->header != NULL;
}

void memory_end_set_status(struct memory_end *end, int status) {
    end->has_exit = true;
    if (WIFSIGNALED(status)) end->exit_signal = WTERMSIG(status);
    if (WIFEXITED(status)) end->exit_status = WEXITSTATUS(status);
}

void memory_finish(struct cairn_header *copy, const struct memory_end *end) {
    if (end->rss_peak_bytes > copy->rss_peak_bytes) {
        copy->rss_peak_bytes = end->rss_peak_bytes;
        copy->is_rss_sampled = !end->is_rss_exact;
    }
    if (!copy->cpu_ns) copy->cpu_ns = end->cpu_ns;
    if (!end->is_over) return;
    if (copy->state != CAIRN_STATE_ENDED) copy->state = CAIRN_STATE_DIED;
    if (!copy->end_ns && end->end_ns > copy->start_clock_ns)
        copy->end_ns = end->end_ns - copy->start_clock_ns;
    copy->has_exit = end->has_exit;
    copy->exit_status = end->exit_status;
    copy->exit_signal = end->exit_signal;
}

struct cairn_section *memory_section(const struct memory *memory, uint32_t kind, uint64_t size) {
    struct cairn_header *header = memory->header;
    if (header->state == CAIRN_STATE_NEW) return NULL;
    for (uint32_t i = 0; i < CAIRN_SECTION_MAX; i++) {
        struct cairn_section *section = &header->sections[i];
        if (section->kind != kind) continue;
        bool is_inside = section->offset >= CAIRN_HEADER_BYTES && section->offset < memory->bytes &&
                         size <= memory->bytes - section->offset;
        return is_inside && size <= section->capacity_bytes ? section : NULL;
    }
    return NULL;
}

// --- as a file

// Copies what is there of a part of the memory. Reading a hole would make the kernel fill it.
static bool write_data(int file, const struct memory *memory, uint64_t from, uint64_t count,
                       uint64_t at) {
    const uint64_t end = from + count;
    for (uint64_t data = from; data < end;) {
        off_t start = lseek(memory->file, (off_t)data, SEEK_DATA);
        if (start < 0) return errno == ENXIO;  // nothing but a hole is left
        off_t hole = lseek(memory->file, start, SEEK_HOLE);
        if ((uint64_t)start >= end) return true;
        data = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
        const char *bytes = (const char *)memory->header + start;
        if (!file_write_at(file, bytes, data - (uint64_t)start, at + ((uint64_t)start - from)))
            return false;
    }
    return true;
}

// The process wrote the section table; it is not believed beyond the mapping, nor that parts of it
// belong to many sections.
static bool sections_are_inside(const struct memory *memory, const struct cairn_header *header) {
    uint64_t left = memory->bytes;
    if (header->section_count > CAIRN_SECTION_MAX) return false;
    for (uint32_t i = 0; i < header->section_count; i++) {
        const struct cairn_section *section = &header->sections[i];
        if (section->offset > memory->bytes || section->capacity_bytes > left ||
            section->capacity_bytes > memory->bytes - section->offset)
            return false;
        left -= section->capacity_bytes;
    }
    return true;
}

// The process may still be running. Cells refer to records, which come last in the file: how many
// there are is read again after the cells were written, so that none refers beyond them.
static void last_section_update(const struct memory *memory, struct cairn_header *copy) {
    struct cairn_section *last = &copy->sections[copy->section_count - 1];
    const struct cairn_section *now = &memory->header->sections[copy->section_count - 1];
    uint64_t used = __atomic_load_n(&now->used_bytes, __ATOMIC_ACQUIRE);
    uint64_t most = memory->bytes - now->offset;
    if (now->offset > memory->bytes || used < last->used_bytes) return;
    last->used_bytes = last->capacity_bytes = used < most ? used : most;
    copy->mapped_bytes = last->offset + last->used_bytes;
}

static bool pack_sections(struct packer *packer, const struct memory *memory,
                          const struct cairn_header *raw, struct cairn_header *copy,
                          struct error *error) {
    for (uint32_t i = 0; i < copy->section_count; i++) {
        struct cairn_section *section = &copy->sections[i];
        const uint8_t *bytes = (const uint8_t *)memory->header + raw->sections[i].offset;
        if (!packer_add(packer, section, bytes, (size_t)section->used_bytes, error)) return false;
    }
    return true;
}

// The process is over: there is time to make the file small.
static bool save_packed(int file, const struct memory *memory, const struct cairn_header *raw,
                        struct cairn_header *copy, struct error *error) {
    struct packer *packer = packer_new(file, sizeof *copy);
    if (!packer) return error_set(error, "out of memory");
    bool is_saved = pack_sections(packer, memory, raw, copy, error);
    copy->version = cairn_version_packed(raw->version);
    copy->mapped_bytes = packer_end(packer);
    packer_free(packer);
    return is_saved;
}

static bool save_compact(int file, const struct memory *memory, const struct cairn_header *raw,
                         struct cairn_header *copy, struct error *error) {
    for (uint32_t i = 0; i < copy->section_count; i++) {
        if (i == copy->section_count - 1) last_section_update(memory, copy);
        const struct cairn_section *section = &copy->sections[i];
        if (!write_data(file, memory, raw->sections[i].offset, section->used_bytes,
                        section->offset))
            return error_set(error, "%s", strerror(errno));
    }
    return true;
}

static bool save_file(int file, const struct memory *memory, bool is_packed,
                      const struct cairn_header *raw, struct cairn_header *copy,
                      struct error *error) {
    bool is_written = is_packed ? save_packed(file, memory, raw, copy, error)
                                : save_compact(file, memory, raw, copy, error);
    if (!is_written) return false;
    return (file_write_at(file, copy, sizeof *copy, 0) &&
            ftruncate(file, (off_t)copy->mapped_bytes) == 0) ||
           error_set(error, "%s", strerror(errno));
}

// The file of a process that has ended meanwhile is whole.
static void note_checkpoint(struct cairn_header *copy, const struct memory_end *end) {
    const uint64_t now_ns = clock_now_ns();
    if (end->is_over || copy->state != CAIRN_STATE_RUNNING) return;
    copy->checkpoint_ns = now_ns > copy->start_clock_ns ? now_ns - copy->start_clock_ns : 1;
    copy->checkpoint_pause_ns = end->checkpoint_pause_ns;
}

// `raw` is the header as the process wrote it.
static bool write_with(const struct memory *memory, const struct memory_end *end,
                       const struct cairn_header *raw, bool is_packed, int file,
                       struct error *error) {
    struct cairn_header copy = *raw;
    memory_finish(&copy, end);
    if (end->is_checkpoint) note_checkpoint(&copy, end);
    cairn_compact_layout(&copy);
    return save_file(file, memory, is_packed, raw, &copy, error);
}

// What is recorded is not lost for want of memory: headers are on the stack, and only packing needs
// more.
bool memory_write(const struct memory *memory, const struct memory_end *end, int file,
                  struct error *error) {
    struct cairn_header raw;
    memcpy(&raw, memory->header, sizeof raw);
    if (!sections_are_inside(memory, &raw))
        return error_set(error, "the process damaged its recording");
    return (end->is_over && write_with(memory, end, &raw, true, file, error)) ||
           write_with(memory, end, &raw, false, file, error);
}

// Beside the place, then into it.
static bool save_beside(const struct memory *memory, const struct memory_end *end, const char *path,
                        struct error *error) {
    char temporary[PATH_MAX];
    snprintf(temporary, sizeof temporary, "%s.save", path);
    int file = open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return error_set(error, "%s", strerror(errno));
    bool is_saved = memory_write(memory, end, file, error);
    close(file);
    if (is_saved && rename(temporary, path) != 0)
        is_saved = error_set(error, "%s", strerror(errno));
    if (!is_saved) unlink(temporary);
    return is_saved;
}

bool memory_save(const struct memory *memory, const struct memory_end *end, const char *path,
                 struct error *error) {
    return save_beside(memory, end, path, error) || error_wrap(error, "%s", path);
}
