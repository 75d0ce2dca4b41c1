// SPDX-License-Identifier: Apache-2.0
// A core dump as memory: what its process had at an address.
//
// Any bytes may be in such a file; everything is checked, and what is not there is simply not read.
#ifndef TOOL_CORE_IMAGE_H
#define TOOL_CORE_IMAGE_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/model/source.h"

struct core_segment {
    uint64_t start, end;  // addresses
    uint64_t offset;      // of its bytes in the file
    uint64_t bytes;  // that the file has of it: less than the segment if it was left out or cut
    bool is_writable, is_code;
};

// A stretch of memory that a file was mapped to.
struct core_file {
    uint64_t start, end;  // addresses
    uint64_t offset;      // in that file
    const char *path;     // as the process saw it; belongs to the image
};

enum { CORE_REGISTERS_MAX = 40 };

struct core_thread {
    uint32_t tid;
    uint32_t register_count;
    uint64_t registers[CORE_REGISTERS_MAX];  // those of the integer unit, in the kernel's order
    uint64_t stack;                          // the stack's pointer; 0: not known
    uint64_t pointer;                        // to the thread's own area; 0: not known
};

struct core_image {
    struct source source;
    const uint8_t *map;                   // the whole source in memory; NULL: it is read in pieces
    ARRAY(struct core_segment) segments;  // ascending, apart from each other
    ARRAY(struct core_file) files;        // ascending
    ARRAY(struct core_thread) threads;
    char *texts;             // of the files' paths
    uint64_t first_stack;    // an address in the main thread's stack; 0: not known
    uint64_t missing_bytes;  // that the file should have and does not: it was cut off
    uint32_t pid;            // 0: not told
    uint32_t machine;        // ELF e_machine
};

// Whether the file is an ELF core dump, of any machine. False too if it cannot be read.
bool core_is_one(const char *path);

// Refuses what is no core dump of a 64-bit little-endian machine.
bool core_open(const char *path, struct core_image *core, struct error *error);
void core_close(struct core_image *core);

// Copies `size` bytes from `address`; false if one of them is not in the file.
bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size);

// What the image has from `address` on, at most `size` bytes: where it lies in this program, or
// copied to `scratch`, which has that size. Returns how many bytes there are; 0: none.
size_t core_piece(const struct core_image *core, uint64_t address, void *scratch, size_t size,
                  const uint8_t **bytes);

// The segment that `address` lies in, or NULL.
const struct core_segment *core_segment_of(const struct core_image *core, uint64_t address);

// The file that was mapped at `address`, or NULL.
const struct core_file *core_file_of(const struct core_image *core, uint64_t address);

// The same; zeroed data of a module counts too, which lies in memory without a name behind its
// file.
const struct core_file *core_module_of(const struct core_image *core, uint64_t address);

// To be called by whoever goes through much memory, for each place of so many bytes that was looked
// at: pages of the file leave this program's memory again when there are many. Without this a whole
// core would count as this program's. `places` is the caller's, zero at first.
void core_looked_at(const struct core_image *core, uint64_t bytes, uint64_t *places);

// As `bytes` where places lie far apart: the kernel maps up to that around each of them.
enum { CORE_FAR_BYTES = 1 << 20 };

// Pages of the file leave this program's memory: the next questions are not about them.
void core_forget(const struct core_image *core);

// Words that are read mostly in ascending order: an open piece of the image.
struct core_window {
    const struct core_image *core;
    uint64_t start, end;  // addresses
    const uint8_t *bytes;
    uint8_t *scratch;  // NULL: the image is in memory
    uint64_t places;   // for core_looked_at
};

// False without memory.
bool core_window_open(struct core_window *window, const struct core_image *core);
void core_window_close(struct core_window *window);

// Makes the piece one that holds `size` bytes from `address` on; false if they are not there in
// one piece.
bool core_window_move(struct core_window *window, uint64_t address, size_t size);

static inline bool core_window_word(struct core_window *window, uint64_t address, uint64_t *word) {
    bool is_inside = address >= window->start && address + sizeof *word <= window->end &&
                     address + sizeof *word > address;
    if (!is_inside && !core_window_move(window, address, sizeof *word)) return false;
    __builtin_memcpy(word, window->bytes + (address - window->start), sizeof *word);
    return true;
}

#endif
