// SPDX-License-Identifier: Apache-2.0
// A core dump as memory, with what it says of its process: number, threads with their registers,
// files that were mapped (the ELF notes NT_PRPSINFO, NT_PRSTATUS, NT_FILE and NT_AUXV of 64-bit
// machines, as elf(5) and <sys/procfs.h> lay them out). A stopped process is copied into the same
// form (stopped.h).
//
// Any bytes may be in such a file; everything is checked, and what is missing is not read.
#ifndef TOOL_HEAP_IMAGE_H
#define TOOL_HEAP_IMAGE_H

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/spans.h"
#include "tool/heap/present.h"
#include "tool/model/source.h"
#include "tool/proc/maps.h"
#include "tool/proc/memory_reader.h"

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
    const uint8_t *map;        // the whole source in memory; NULL: it is read in pieces
    struct heap_heads *heads;  // what is kept of memory that chunks fill (tool/glibc/heads.h), in
                               // place of what the source has there; NULL: the source has it
    struct present present;    // of `map`; of a file all is there
    ARRAY(struct memory_segment) segments;  // ascending, apart from each other
    ARRAY(struct core_file) files;          // ascending
    ARRAY(struct core_thread) threads;
    char *texts;             // of the files' paths
    uint64_t first_stack;    // an address in the main thread's stack; 0: not known
    uint64_t missing_bytes;  // that the file should have and does not: it was cut off
    uint32_t pid;            // 0: not known
    uint32_t machine;        // ELF e_machine
    uint64_t page_bytes;     // of its kernel's pages; 0: not known
    uint64_t taken_ns;       // of a running process, by clock_now_ns; 0: not known
};

// All of it lies in this program: pieces are never copied to scratch memory.
static inline bool core_lies_here(const struct core_image *core) {
    return core->map && !core->present.bits;
}

// The size of its pages. Where it is not known, the least there is: others are multiples of it.
static inline uint64_t core_page_bytes(const struct core_image *core) {
    return cairn_page_bytes(core->page_bytes);
}

// Whether the file is an ELF core dump, of any machine. False too if it cannot be read.
bool core_is_one(const char *path);

// Refuses what is no core dump of a 64-bit little-endian machine.
bool core_open(const char *path, struct core_image *core, struct error *error);
void core_close(struct core_image *core);

// Returns the first address from `address` on, up to `end`, that is on a page of which more than
// zeros is known, or where that is not known; `end`: there is none.
uint64_t core_first_there(const struct core_image *core, uint64_t address, uint64_t end);

// Copies `size` bytes from `address`; false if one of them is not in the file.
bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size);

// What the image has from `address` on, at most `size` bytes: where it lies in this program, or
// copied to `scratch`, which has that size. Returns how many bytes there are; 0: none.
size_t core_piece(const struct core_image *core, uint64_t address, void *scratch, size_t size,
                  const uint8_t **bytes);

// The segment that `address` lies in, or NULL.
const struct memory_segment *core_segment_of(const struct core_image *core, uint64_t address);

// Finds the next stretch of [*at, end) of which the bytes are there, and moves *at behind it.
// False: there is none.
bool core_next_part(const struct core_image *core, uint64_t *at, uint64_t end, struct span *part);
// Returns how many bytes of [start, end) are there.
uint64_t core_present_bytes(const struct core_image *core, uint64_t start, uint64_t end);

// The file that was mapped at `address`, or NULL.
const struct core_file *core_file_of(const struct core_image *core, uint64_t address);

// The same; zeroed data of a module counts too, which lies in memory without a name behind its
// file.
const struct core_file *core_module_of(const struct core_image *core, uint64_t address);

// A caller that reads much memory calls it for each place of so many bytes that it has read: pages
// of the file leave this program's memory again when there are many. Without this a whole core
// would count as this program's. `places` is the caller's, zero at first.
void core_place_done(const struct core_image *core, uint64_t bytes, uint64_t *places);

// As `bytes` where places lie far apart: the kernel maps up to that around each of them.
enum { CORE_FAR_BYTES = 1 << 20 };

// Pages of the file leave this program's memory: the next questions are not about them.
void core_forget(const struct core_image *core);

// The image as memory of any kind; it must outlive the view.
struct memory_view core_view(const struct core_image *core);

// Reads the notes that lie in these bytes of the file into the image. What is damaged or cut off
// is left out. False without memory.
bool core_read_notes(struct core_image *core, uint64_t offset, uint64_t size);

// Adds the files that a running process maps, as its core dump would list them. `maps`: its
// /proc/PID/maps. False without memory.
bool core_read_mapped_files(struct core_image *core, struct maps *maps);

// The same of a process; false, with an error, also if it is gone.
bool core_read_process_files(struct core_image *core, pid_t pid, struct error *error);

// One ELF note of a block of them.
struct core_note {
    uint32_t type;
    const uint8_t *bytes;  // in that block
    size_t size;
};

// The next note from offset `*at` on, which moves behind it; false at the end, or at one that does
// not fit into the block.
bool core_next_note(const uint8_t *block, size_t size, size_t *at, struct core_note *note);

#endif
