// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/compact.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

// Sparse: address space for the largest recording. Less where a file size limit forbids it.
static const uint64_t memory_most_bytes = 6ull << 30, memory_least_bytes = 64ull << 20;

static int memory_file(void) {
    int file = memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return file >= 0 ? file : memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool memory_make(struct memory *memory, struct error *error) {
    *memory = (struct memory){.file = memory_file(), .bytes = memory_most_bytes};
    if (memory->file < 0) return error_set(error, "memfd_create: %s", strerror(errno));
    while (ftruncate(memory->file, (off_t)memory->bytes) != 0 && memory->bytes > memory_least_bytes)
        memory->bytes /= 2;
    void *mapping = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         memory->file, 0);
    if (mapping == MAP_FAILED) {
        error_set(error, "cannot map a recording: %s", strerror(errno));
        close(memory->file);
        memory->file = -1;
        return false;
    }
    fcntl(memory->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    memory->header = mapping;
    return true;
}

void memory_close(struct memory *memory) {
    if (memory->header) munmap(memory->header, memory->bytes);
    if (memory->file >= 0) close(memory->file);
    *memory = (struct memory){.file = -1};
}

static bool write_all(int file, const void *bytes, uint64_t count, uint64_t at) {
    const char *from = bytes;
    while (count) {
        ssize_t done = pwrite(file, from, count, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        from += done;
        at += (uint64_t)done;
        count -= (uint64_t)done;
    }
    return true;
}

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
        if (!write_all(file, bytes, data - (uint64_t)start, at + ((uint64_t)start - from)))
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

static bool save_to(int file, const struct memory *memory, const struct cairn_header *raw,
                    struct cairn_header *copy) {
    for (uint32_t i = 0; i < copy->section_count; i++) {
        if (i == copy->section_count - 1) last_section_update(memory, copy);
        const struct cairn_section *section = &copy->sections[i];
        if (!write_data(file, memory, raw->sections[i].offset, section->used_bytes,
                        section->offset))
            return false;
    }
    return write_all(file, copy, sizeof *copy, 0) &&
           ftruncate(file, (off_t)copy->mapped_bytes) == 0;
}

static struct cairn_header *header_room(void) {
    return aligned_alloc(_Alignof(struct cairn_header), sizeof(struct cairn_header));
}

bool memory_save(const struct memory *memory, const struct memory_end *end, const char *path,
                 struct error *error) {
    char temporary[PATH_MAX];
    struct cairn_header *raw = header_room(), *copy = header_room();
    bool is_saved = false;
    int file = -1;
    if (!raw || !copy) {
        error_set(error, "out of memory");
        goto out;
    }
    memcpy(raw, memory->header, sizeof *raw);
    if (!sections_are_inside(memory, raw)) {
        error_set(error, "%s: the process damaged its recording", path);
        goto out;
    }
    memcpy(copy, raw, sizeof *copy);
    memory_finish(copy, end);
    cairn_compact_layout(copy);
    snprintf(temporary, sizeof temporary, "%s.save", path);
    file = open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || !save_to(file, memory, raw, copy) || rename(temporary, path) != 0) {
        error_set(error, "%s: %s", path, strerror(errno));
        if (file >= 0) unlink(temporary);
        goto out;
    }
    is_saved = true;
out:
    if (file >= 0) close(file);
    free(raw);
    free(copy);
    return is_saved;
}
