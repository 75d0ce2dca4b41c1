// SPDX-License-Identifier: Apache-2.0
#include "tool/model/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "format/compact.h"
#include "format/format.h"
#include "format/packed.h"
#include "tool/base/confine.h"
#include "tool/base/file_bytes.h"
#include "tool/model/turn.h"

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

// Blocks are compressed, and uncompressed, each for itself: by as many threads as there are
// processors. A thread is made for one block, which takes it a hundred times as long as being made.
enum { LANES_MOST = 4 };

static unsigned count_lanes(size_t bytes) {
    size_t blocks = bytes / CAIRN_PACKED_BLOCK_BYTES;
    long processors = blocks > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    if (processors > LANES_MOST) processors = LANES_MOST;
    return processors < 1 ? 1 : (unsigned)processors;
}

// One after the other where no more threads can be had; the first by the caller.
static void run_lanes(void *(*work)(void *lane), void *lanes, size_t lane_bytes, unsigned count) {
    pthread_t threads[LANES_MOST];
    unsigned started = 1;
    char *lane = lanes;
    while (started < count &&
           !pthread_create(&threads[started], NULL, work, lane + started * lane_bytes))
        started++;
    if (count) work(lane);
    for (unsigned i = started; i < count; i++) work(lane + i * lane_bytes);
    for (unsigned i = 1; i < started; i++) pthread_join(threads[i], NULL);
}

// A block on its way into the file.
struct packing {
    ZSTD_CCtx *context;
    const uint8_t *bytes;
    size_t size, entry_bytes;
    bool is_of_cells;
    struct cairn_packed_block head;
    uint8_t *turned;  // room for a block
    uint8_t *block;   // room for one with its head
    uint8_t *room;    // both
};

struct packer {
    int file;
    uint64_t at;
    struct packing lanes[LANES_MOST];  // made when they are needed
};

static bool packing_make(struct packing *packing) {
    const size_t head_bytes = sizeof(struct cairn_packed_block);
    if (packing->context) return true;
    // a small recording touches little of it
    packing->room = malloc(2 * (size_t)CAIRN_PACKED_BLOCK_BYTES + head_bytes);
    if (!packing->room) return false;
    packing->turned = packing->room;
    packing->block = packing->room + CAIRN_PACKED_BLOCK_BYTES;
    packing->context = ZSTD_createCCtx();
    return packing->context != NULL;
}

struct packer *packer_new(int file, uint64_t at) {
    struct packer *packer = calloc(1, sizeof *packer);
    if (!packer) return NULL;
    packer->file = file;
    packer->at = at;
    if (packing_make(&packer->lanes[0])) return packer;
    packer_free(packer);
    return NULL;
}

void packer_free(struct packer *packer) {
    for (unsigned i = 0; packer && i < LANES_MOST; i++) {
        ZSTD_freeCCtx(packer->lanes[i].context);
        free(packer->lanes[i].room);
    }
    free(packer);
}

uint64_t packer_end(const struct packer *packer) {
    return packer->at;
}

static bool append(struct packer *packer, const void *bytes, size_t size) {
    if (!file_write_at(packer->file, bytes, size, packer->at)) return false;
    packer->at += size;
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

// Part of a hash, which only the process needed that made it, and which does not compress: a third
// of what a large recording took.
static void leave_check_out(const struct packing *packing, size_t count) {
    const size_t column = offsetof(struct cairn_cell, check);
    const size_t columns = sizeof((struct cairn_cell *)0)->check;
    if (packing->is_of_cells && packing->entry_bytes >= column + columns)
        memset(packing->turned + column * count, 0, columns * count);
}

// Returns the bytes it takes behind the block's head.
static size_t compress(const struct packing *packing) {
    const uint8_t *from = packing->bytes;
    uint8_t *out = packing->block + sizeof packing->head;
    size_t size = packing->size;
    if (is_zero(from, size)) return 0;
    if (is_turned(size, packing->entry_bytes)) {
        size_t count = size / packing->entry_bytes;
        turn_to_columns(from, count, packing->entry_bytes, packing->turned);
        leave_check_out(packing, count);
        from = packing->turned;
    }
    size_t stored = ZSTD_compressCCtx(packing->context, out, size - 1, from, size, LEVEL);
    if (!ZSTD_isError(stored)) return stored;
    memcpy(out, packing->bytes, size);  // it does not get smaller
    return size;
}

static void *pack_block(void *lane) {
    struct packing *packing = lane;
    packing->head = (struct cairn_packed_block){.plain_bytes = (uint32_t)packing->size};
    packing->head.stored_bytes = (uint32_t)compress(packing);
    memcpy(packing->block, &packing->head, sizeof packing->head);
    return NULL;
}

static bool add_blocks(struct packer *packer, const struct cairn_section *section,
                       const uint8_t *bytes, size_t size) {
    size_t step = CAIRN_PACKED_BLOCK_BYTES, entry_bytes = section->entry_bytes;
    if (entry_bytes && entry_bytes < step) step = step / entry_bytes * entry_bytes;
    unsigned lanes = 1, wanted = count_lanes(size);
    while (lanes < wanted && packing_make(&packer->lanes[lanes])) lanes++;
    for (size_t at = 0; at < size;) {
        unsigned used = 0;
        for (; used < lanes && at < size; used++) {
            struct packing *packing = &packer->lanes[used];
            size_t left = size - at;
            packing->bytes = bytes + at;
            packing->size = left < step ? left : step;
            packing->entry_bytes = entry_bytes;
            packing->is_of_cells = section->kind == CAIRN_SECTION_CELLS;
            at += packing->size;
        }
        run_lanes(pack_block, packer->lanes, sizeof packer->lanes[0], used);
        for (unsigned i = 0; i < used; i++) {
            const struct packing *packing = &packer->lanes[i];
            if (!append(packer, packing->block, sizeof packing->head + packing->head.stored_bytes))
                return false;
        }
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
    bool is_written = add_blocks(packer, section, bytes, size);
    return finish(packer, section, is_written, error);
}

bool packer_copy(struct packer *packer, struct cairn_section *section, const uint8_t *stored,
                 size_t size, struct error *error) {
    section->offset = packer->at;
    return finish(packer, section, append(packer, stored, size), error);
}

// A block on its way out of the file.
struct unpacking {
    ZSTD_DCtx *context;
    struct cairn_packed_block block;
    const uint8_t *stored;
    size_t entry_bytes;
    uint8_t *turned, *out;
    bool is_given;
};

static bool unpack_block(const struct unpacking *unpacking) {
    const size_t size = unpacking->block.plain_bytes, stored = unpacking->block.stored_bytes;
    if (!stored) return true;
    if (stored == size) {
        memcpy(unpacking->out, unpacking->stored, size);
        return true;
    }
    bool is_to_turn = is_turned(size, unpacking->entry_bytes);
    uint8_t *to = is_to_turn ? unpacking->turned : unpacking->out;
    if (ZSTD_decompressDCtx(unpacking->context, to, size, unpacking->stored, stored) != size)
        return false;
    if (is_to_turn)
        turn_to_entries(to, size / unpacking->entry_bytes, unpacking->entry_bytes, unpacking->out);
    return true;
}

static void *unpack_lane(void *lane) {
    struct unpacking *unpacking = lane;
    unpacking->is_given = unpack_block(unpacking);
    return NULL;
}

// The head of the next block, if the block is whole and there is room for what it gives.
static bool next_block(const uint8_t *stored, size_t stored_size, size_t room,
                       struct cairn_packed_block *block) {
    if (stored_size < sizeof *block) return false;
    memcpy(block, stored, sizeof *block);
    return block->plain_bytes && block->plain_bytes <= CAIRN_PACKED_BLOCK_BYTES &&
           block->plain_bytes <= room && block->stored_bytes <= stored_size - sizeof *block;
}

// The blocks that come next, one a lane; how many.
static unsigned next_blocks(const uint8_t **stored, size_t *stored_size, uint8_t *out, size_t room,
                            size_t entry_bytes, uint64_t *budget, struct unpacking *lanes,
                            unsigned lane_count) {
    struct cairn_packed_block block;
    unsigned used = 0;
    while (used < lane_count && next_block(*stored, *stored_size, room, &block)) {
        struct unpacking *lane = &lanes[used];
        if (block.stored_bytes && block.plain_bytes > *budget) break;
        lane->block = block;
        lane->stored = *stored + sizeof block;
        lane->entry_bytes = entry_bytes;
        lane->out = out;
        out += block.plain_bytes;
        room -= block.plain_bytes;
        if (block.stored_bytes) *budget -= block.plain_bytes;
        *stored += sizeof block + block.stored_bytes;
        *stored_size -= sizeof block + block.stored_bytes;
        used++;
    }
    return used;
}

size_t unpack_section(const uint8_t *stored, size_t stored_size, size_t entry_bytes, uint8_t *out,
                      size_t out_size, uint64_t *budget) {
    struct unpacking lanes[LANES_MOST] = {0};
    unsigned lane_count = 0, wanted = count_lanes(out_size);
    size_t given = 0;
    bool goes_on = true;
    for (; lane_count < wanted; lane_count++) {
        lanes[lane_count].context = ZSTD_createDCtx();
        lanes[lane_count].turned = malloc(CAIRN_PACKED_BLOCK_BYTES);
        if (!lanes[lane_count].context || !lanes[lane_count].turned) break;
    }
    while (goes_on) {
        unsigned used = next_blocks(&stored, &stored_size, out + given, out_size - given,
                                    entry_bytes, budget, lanes, lane_count);
        run_lanes(unpack_lane, lanes, sizeof lanes[0], used);
        goes_on = used != 0;
        for (unsigned i = 0; i < used && goes_on; i++) {
            goes_on = lanes[i].is_given;
            if (goes_on) given += lanes[i].block.plain_bytes;
        }
    }
    for (unsigned i = 0; i < LANES_MOST; i++) {
        ZSTD_freeDCtx(lanes[i].context);
        free(lanes[i].turned);
    }
    return given;
}
