// SPDX-License-Identifier: Apache-2.0
#include "tool/model/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/packed.h"
#include "tool/base/file_bytes.h"
#include "tool/model/reader.h"
#include "tool/model/source.h"

// The old recording, and the new one's header. Section i of the new one comes from `from[i]` of
// the old file, the last one from memory.
struct rewriting {
    struct source source;
    struct cairn_header header;
    struct packer *packer;
    uint64_t from[CAIRN_SECTION_MAX];
    bool was_packed;
    const void *bytes;
    size_t size;
    int file;
};

static uint64_t there(const struct rewriting *work, const struct cairn_section *section) {
    uint64_t used = section->used_bytes, left;
    if (used > section->capacity_bytes && !work->was_packed) used = section->capacity_bytes;
    left = section->offset < work->source.size ? work->source.size - section->offset : 0;
    return used < left ? used : left;
}

// Leaves the section of this kind out and puts the new one behind the others.
static bool exchange(struct rewriting *work, enum cairn_section_kind kind, uint32_t entry_bytes,
                     struct error *error) {
    struct cairn_header *header = &work->header;
    uint32_t kept = 0, count = header->section_count;
    if (count > CAIRN_SECTION_MAX) count = CAIRN_SECTION_MAX;
    work->was_packed = cairn_is_packed(header->version);
    for (uint32_t i = 0; i < count; i++) {
        if (header->sections[i].kind == kind) continue;
        header->sections[kept] = header->sections[i];
        header->sections[kept].used_bytes = there(work, &header->sections[i]);
        work->from[kept++] = header->sections[i].offset;
    }
    if (kept == CAIRN_SECTION_MAX) return error_set(error, "has no room for another section");
    header->sections[kept] = (struct cairn_section){.kind = kind, .entry_bytes = entry_bytes};
    header->section_count = kept + 1;
    memset(&header->sections[kept + 1], 0,
           (CAIRN_SECTION_MAX - kept - 1) * sizeof header->sections[0]);
    header->version = cairn_version_packed(header->version);
    header->is_compact = 1;
    return true;
}

static bool copy_section(struct rewriting *work, uint32_t index, struct error *error) {
    struct cairn_section *section = &work->header.sections[index];
    const size_t size = (size_t)section->used_bytes;
    const uint8_t *bytes;
    void *mapping;
    if (!source_load(&work->source, work->from[index], size, &bytes, &mapping, error)) return false;
    bool is_written = work->was_packed ? packer_copy(work->packer, section, bytes, size, error)
                                       : packer_add(work->packer, section, bytes, size, error);
    if (mapping) munmap(mapping, size);
    return is_written;
}

static bool write_sections(struct rewriting *work, struct error *error) {
    uint32_t last = work->header.section_count - 1;
    for (uint32_t i = 0; i < last; i++)
        if (!copy_section(work, i, error)) return false;
    return packer_add(work->packer, &work->header.sections[last], work->bytes, work->size, error);
}

static bool write_header(struct rewriting *work, struct error *error) {
    work->header.mapped_bytes = packer_end(work->packer);
    bool is_written = ftruncate(work->file, (off_t)work->header.mapped_bytes) == 0 &&
                      file_write_at(work->file, &work->header, sizeof work->header, 0);
    return is_written || error_set(error, "cannot be written: %s", strerror(errno));
}

static bool write_new(struct rewriting *work, struct error *error) {
    work->packer = packer_new(work->file, sizeof work->header);
    bool is_written = work->packer ? write_sections(work, error) && write_header(work, error)
                                   : error_set(error, "out of memory");
    packer_free(work->packer);
    return is_written;
}

// Writes beside the old file and takes its place.
static bool replace(struct rewriting *work, const char *path, struct error *error) {
    char temporary[PATH_MAX];
    struct stat status;
    int length = snprintf(temporary, sizeof temporary, "%s.part", path);
    if (length >= PATH_MAX) return error_set(error, "has too long a path");
    if (fstat(work->source.descriptor, &status)) return error_set(error, "%s", strerror(errno));
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
    work->file = open(temporary, flags, status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
    if (work->file < 0) return error_set(error, "%s: %s", temporary, strerror(errno));
    bool is_written = write_new(work, error);
    if (close(work->file) && is_written)
        is_written = error_set(error, "cannot be written: %s", strerror(errno));
    if (is_written && rename(temporary, path)) is_written = error_set(error, "%s", strerror(errno));
    if (!is_written) unlink(temporary);
    return is_written;
}

bool recording_set_section(const char *path, enum cairn_section_kind kind, uint32_t entry_bytes,
                           const void *bytes, size_t size, struct error *error) {
    struct recording recording = {0};
    struct rewriting work = {.bytes = bytes, .size = size};
    if (!source_open(path, &work.source, error)) return error_wrap(error, "%s", path);
    // the reader knows what a recording is
    bool is_done = recording_load_header(&recording, &work.source, error);
    size_t got = source_read(&work.source, 0, &work.header, sizeof work.header);
    is_done = is_done && (got == sizeof work.header || error_set(error, "is cut off"));
    is_done = is_done && exchange(&work, kind, entry_bytes, error) && replace(&work, path, error);
    source_close(&work.source);
    return is_done || error_wrap(error, "%s", path);
}
