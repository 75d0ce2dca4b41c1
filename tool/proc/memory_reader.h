// SPDX-License-Identifier: Apache-2.0
// Memory by address, wherever it is: of a running process (remote.h), of a copy made while it was
// stopped, or in a core dump (tool/heap/image.h).
#ifndef TOOL_PROC_MEMORY_READER_H
#define TOOL_PROC_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_reader {
    // Copies `size` bytes from `address`; false if one of them is not there.
    bool (*read)(const void *context, uint64_t address, void *bytes, size_t size);
    // May be NULL. Finds at most `size` bytes from `address` on without a copy: sets `bytes` to
    // where they are in this program, or to `scratch` after copying them there. Returns how many
    // there are; 0: none.
    size_t (*piece)(const void *context, uint64_t address, void *scratch, size_t size,
                    const uint8_t **bytes);
    // May be NULL. A caller that reads much calls it after each place it has read, with a counter
    // of its own that starts at zero: the reader may then give up pages that it has in memory.
    void (*place_done)(const void *context, uint64_t *places);
    const void *context;
};

static inline bool memory_read(const struct memory_reader *reader, uint64_t address, void *bytes,
                               size_t size) {
    return reader->read(reader->context, address, bytes, size);
}

static inline bool memory_read_word(const struct memory_reader *reader, uint64_t address,
                                    uint64_t *word) {
    return memory_read(reader, address, word, sizeof *word);
}

// A stretch of memory that is mapped.
struct memory_segment {
    uint64_t start, end;  // addresses
    uint64_t offset;      // of its bytes in what holds them
    uint64_t bytes;       // that there are of it: less than the segment if it was left out or cut
    bool is_writable, is_code;
};

// Memory with the segments that it consists of.
struct memory_view {
    struct memory_reader reader;
    const struct memory_segment *segments;  // ascending, apart from each other
    size_t segment_count;
    uint64_t page_bytes;  // of the kernel that it is or was mapped by
};

// The segment that `address` lies in, or NULL.
const struct memory_segment *memory_segment_of(const struct memory_segment *segments, size_t count,
                                               uint64_t address);

// Words that are read mostly in ascending order: an open piece of the memory.
struct memory_window {
    const struct memory_reader *reader;
    uint64_t start, end;  // addresses
    const uint8_t *bytes;
    uint8_t *scratch;
    uint64_t places;  // for place_done
};

// `reader` must have `piece`. False without memory.
bool memory_window_open(struct memory_window *window, const struct memory_reader *reader);
void memory_window_close(struct memory_window *window);

// Makes the piece one that holds `size` bytes from `address` on; false if they are not there in
// one piece.
bool memory_window_move(struct memory_window *window, uint64_t address, size_t size);

static inline bool memory_window_word(struct memory_window *window, uint64_t address,
                                      uint64_t *word) {
    bool is_inside = address >= window->start && address + sizeof *word <= window->end &&
                     address + sizeof *word > address;
    if (!is_inside && !memory_window_move(window, address, sizeof *word)) return false;
    __builtin_memcpy(word, window->bytes + (address - window->start), sizeof *word);
    return true;
}

#endif
