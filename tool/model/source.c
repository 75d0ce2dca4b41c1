// SPDX-License-Identifier: Apache-2.0
#include "tool/model/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "format/compact.h"
#include "format/packed.h"
#include "tool/base/confine.h"

enum { BLOCK_BYTES = 512 };  // unit of st_blocks

bool source_open(const char *path, struct source *source, struct error *error) {
    struct stat status;
    *source = (struct source){.descriptor = -1};
    if (stat(path, &status)) return error_set(error, "%s", strerror(errno));
    // Opening a device may change it: what a core names may be one. O_NONBLOCK is for a FIFO that
    // takes the file's place meanwhile.
    if (!S_ISREG(status.st_mode)) return error_set(error, "is not a file");
    source->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->descriptor < 0) return error_set(error, "%s", strerror(errno));
    if (fstat(source->descriptor, &status) || !S_ISREG(status.st_mode)) {
        source_close(source);
        return error_set(error, "is not a file");
    }
    if (!confine_allows(source->descriptor, error)) {
        source_close(source);
        return false;
    }
    source->size = (uint64_t)status.st_size;
    source->disk_bytes = (uint64_t)status.st_blocks * BLOCK_BYTES;
    return true;
}

void source_close(struct source *source) {
    if (source->descriptor >= 0) close(source->descriptor);
    source->descriptor = -1;
}

static size_t read_file(int descriptor, uint64_t offset, uint8_t *out, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(descriptor, out + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += (size_t)count;
    }
    return done;
}

size_t source_read(const struct source *source, uint64_t offset, void *out, size_t size) {
    if (source->descriptor >= 0) return read_file(source->descriptor, offset, out, size);
    if (offset >= source->size) return 0;
    size_t there = source->size - offset < size ? (size_t)(source->size - offset) : size;
    memcpy(out, source->bytes + offset, there);
    return there;
}

// Reads the parts of [offset, offset + size) that are no holes.
static void read_data(int descriptor, uint64_t offset, uint8_t *out, size_t size) {
    uint64_t end = offset + size, at = offset;
    while (at < end) {
        off_t data = lseek(descriptor, (off_t)at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) return;  // nothing but a hole is left
        uint64_t from = data < 0 ? at : (uint64_t)data;
        if (from >= end) return;
        off_t hole = lseek(descriptor, (off_t)from, SEEK_HOLE);
        uint64_t to = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
        if (to <= from) return;
        read_file(descriptor, from, out + (from - offset), (size_t)(to - from));
        at = to;
    }
}

void *source_room(size_t size, struct error *error) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory != MAP_FAILED) return memory;
    error_set(error, "no memory for %zu bytes", size);
    return NULL;
}

bool source_load(const struct source *source, uint64_t offset, size_t size, const uint8_t **bytes,
                 void **mapping, struct error *error) {
    *mapping = NULL;
    *bytes = NULL;
    if (!size) return true;
    if (source->descriptor < 0) {
        *bytes = source->bytes + offset;
        return true;
    }
    void *memory = source_room(size, error);
    if (!memory) return false;
    read_data(source->descriptor, offset, memory, size);
    *bytes = *mapping = memory;
    return true;
}

// On recordings of a million stacks the next levels take half as long again for 4 % less.
enum { LEVEL = 1 };

struct packer {
    int file;
    uint64_t at;
    ZSTD_CCtx *context;
    uint8_t turned[CAIRN_PACKED_BLOCK_BYTES];
    uint8_t block[sizeof(struct cairn_packed_block) + CAIRN_PACKED_BLOCK_BYTES];
};

struct packer *packer_new(int file, uint64_t at) {
    struct packer *packer = malloc(sizeof *packer);  // a small recording touches little of it
    if (!packer) return NULL;
    packer->file = file;
    packer->at = at;
    packer->context = ZSTD_createCCtx();
    if (packer->context) return packer;
    free(packer);
    return NULL;
}

void packer_free(struct packer *packer) {
    if (packer) ZSTD_freeCCtx(packer->context);
    free(packer);
}

uint64_t packer_end(const struct packer *packer) {
    return packer->at;
}

static bool append(struct packer *packer, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    while (size) {
        ssize_t done = pwrite(packer->file, from, size, (off_t)packer->at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        from += done;
        size -= (size_t)done;
        packer->at += (uint64_t)done;
    }
    return true;
}

static void align(struct packer *packer) {
    packer->at = (packer->at + CAIRN_COMPACT_ALIGN - 1) & ~(uint64_t)(CAIRN_COMPACT_ALIGN - 1);
}

static bool is_zero(const uint8_t *bytes, size_t size) {
    return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

static bool is_turned(size_t size, size_t entry_bytes) {
    return entry_bytes >= CAIRN_PACKED_TURNED && size % entry_bytes == 0;
}

static void turn(const uint8_t *bytes, size_t size, size_t entry_bytes, uint8_t *out) {
    size_t count = size / entry_bytes;
    for (size_t byte = 0; byte < entry_bytes; byte++)
        for (size_t i = 0; i < count; i++) *out++ = bytes[i * entry_bytes + byte];
}

static void turn_back(const uint8_t *bytes, size_t size, size_t entry_bytes, uint8_t *out) {
    size_t count = size / entry_bytes;
    for (size_t byte = 0; byte < entry_bytes; byte++)
        for (size_t i = 0; i < count; i++) out[i * entry_bytes + byte] = *bytes++;
}

// Returns the bytes it takes at `out`, at most `size`.
static size_t compress(struct packer *packer, const uint8_t *bytes, size_t size, size_t entry_bytes,
                       uint8_t *out) {
    const uint8_t *from = bytes;
    if (is_zero(bytes, size)) return 0;
    if (is_turned(size, entry_bytes)) {
        turn(bytes, size, entry_bytes, packer->turned);
        from = packer->turned;
    }
    size_t stored = ZSTD_compressCCtx(packer->context, out, size - 1, from, size, LEVEL);
    if (!ZSTD_isError(stored)) return stored;
    memcpy(out, bytes, size);  // it does not get smaller
    return size;
}

static bool add_block(struct packer *packer, const uint8_t *bytes, size_t size,
                      size_t entry_bytes) {
    struct cairn_packed_block head = {.plain_bytes = (uint32_t)size};
    size_t stored = compress(packer, bytes, size, entry_bytes, packer->block + sizeof head);
    head.stored_bytes = (uint32_t)stored;
    memcpy(packer->block, &head, sizeof head);
    return append(packer, packer->block, sizeof head + stored);
}

static bool add_blocks(struct packer *packer, const uint8_t *bytes, size_t size,
                       size_t entry_bytes) {
    size_t step = CAIRN_PACKED_BLOCK_BYTES;
    if (entry_bytes && entry_bytes < step) step = step / entry_bytes * entry_bytes;
    for (size_t at = 0; at < size; at += step) {
        size_t left = size - at;
        if (!add_block(packer, bytes + at, left < step ? left : step, entry_bytes)) return false;
    }
    return true;
}

static bool finish(struct packer *packer, struct cairn_section *section, bool is_written,
                   struct error *error) {
    if (!is_written) return error_set(error, "%s", strerror(errno));
    section->used_bytes = packer->at - section->offset;
    align(packer);
    return true;
}

bool packer_add(struct packer *packer, struct cairn_section *section, const uint8_t *bytes,
                size_t size, struct error *error) {
    section->offset = packer->at;
    section->capacity_bytes = size;
    bool is_written = add_blocks(packer, bytes, size, section->entry_bytes);
    return finish(packer, section, is_written, error);
}

bool packer_copy(struct packer *packer, struct cairn_section *section, const uint8_t *stored,
                 size_t size, struct error *error) {
    section->offset = packer->at;
    return finish(packer, section, append(packer, stored, size), error);
}

static bool unpack_block(ZSTD_DCtx *context, const struct cairn_packed_block *block,
                         const uint8_t *stored, size_t entry_bytes, uint8_t *turned, uint8_t *out) {
    const size_t size = block->plain_bytes;
    if (!block->stored_bytes) return true;
    if (block->stored_bytes == size) {
        memcpy(out, stored, size);
        return true;
    }
    uint8_t *to = is_turned(size, entry_bytes) ? turned : out;
    if (ZSTD_decompressDCtx(context, to, size, stored, block->stored_bytes) != size) return false;
    if (to == turned) turn_back(turned, size, entry_bytes, out);
    return true;
}

// The head of the next block, if the block is whole and there is room for what it gives.
static bool next_block(const uint8_t *stored, size_t stored_size, size_t room,
                       struct cairn_packed_block *block) {
    if (stored_size < sizeof *block) return false;
    memcpy(block, stored, sizeof *block);
    return block->plain_bytes && block->plain_bytes <= CAIRN_PACKED_BLOCK_BYTES &&
           block->plain_bytes <= room && block->stored_bytes <= stored_size - sizeof *block;
}

size_t unpack_section(const uint8_t *stored, size_t stored_size, size_t entry_bytes, uint8_t *out,
                      size_t out_size, uint64_t *budget) {
    struct cairn_packed_block block;
    size_t given = 0;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    uint8_t *turned = malloc(CAIRN_PACKED_BLOCK_BYTES);
    while (context && turned && next_block(stored, stored_size, out_size - given, &block)) {
        if (block.stored_bytes && block.plain_bytes > *budget) break;
        if (!unpack_block(context, &block, stored + sizeof block, entry_bytes, turned, out + given))
            break;
        if (block.stored_bytes) *budget -= block.plain_bytes;
        given += block.plain_bytes;
        stored += sizeof block + block.stored_bytes;
        stored_size -= sizeof block + block.stored_bytes;
    }
    free(turned);
    ZSTD_freeDCtx(context);
    return given;
}
