// SPDX-License-Identifier: Apache-2.0
#include "tool/model/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512 };  // unit of st_blocks

bool source_open(const char *path, struct source *source, struct error *error) {
    // O_NONBLOCK: a FIFO must not hold us here
    *source = (struct source){.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (source->descriptor < 0) return error_set(error, "%s", strerror(errno));
    struct stat status;
    bool is_file = !fstat(source->descriptor, &status) && S_ISREG(status.st_mode);
    if (!is_file) {
        source_close(source);
        return error_set(error, "is not a file");
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
