// SPDX-License-Identifier: Apache-2.0
#include "tool/model/code_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)256 * 1024)

bool code_file_of(int file, struct code_file *out) {
    const uint64_t ns_per_s = 1000000000;
    struct stat status;
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) return false;
    *out = (struct code_file){.bytes = (uint64_t)status.st_size,
                              .modified_ns = (uint64_t)status.st_mtim.tv_sec * ns_per_s +
                                             (uint64_t)status.st_mtim.tv_nsec,
                              .inode = status.st_ino};
    return true;
}

bool code_file_is_same(const struct code_file *a, const struct code_file *b) {
    return a->bytes && a->bytes == b->bytes && a->modified_ns == b->modified_ns &&
           a->inode == b->inode;
}

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t size) {
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < size; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 32;
    }
    return hash;
}

// Whole chunks, so that how much a read gives at a time does not matter.
static bool mix_segment(int file, const struct module_segment *segment, uint8_t *chunk,
                        uint64_t *hash) {
    for (uint64_t at = 0; at < segment->size;) {
        size_t wanted =
            segment->size - at < CHUNK_BYTES ? (size_t)(segment->size - at) : CHUNK_BYTES;
        size_t got = 0;
        while (got < wanted) {
            ssize_t one =
                pread(file, chunk + got, wanted - got, (off_t)(segment->file_offset + at + got));
            if (one < 0) return false;
            if (!one) break;
            got += (size_t)one;
        }
        *hash = mix(*hash, chunk, got);
        if (got < wanted) return at + got > 0;  // the rest is zeroes, which the file does not have
        at += got;
    }
    return true;
}

uint64_t code_file_hash(int file, const struct module_segment *segments, size_t count) {
    uint64_t hash = count;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    bool is_read = chunk && count;
    for (size_t i = 0; i < count && is_read; i++) {
        hash = mix(hash, (const uint8_t *)&segments[i], sizeof segments[i]);
        is_read = mix_segment(file, &segments[i], chunk, &hash);
    }
    free(chunk);
    if (!is_read) return CAIRN_CODE_UNKNOWN;
    return hash > CAIRN_CODE_OTHER ? hash : hash + CAIRN_CODE_OTHER + 1;
}
