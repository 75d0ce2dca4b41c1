// SPDX-License-Identifier: Apache-2.0
// Sums up the free memory of arenas of glibc's malloc, and the part that goes back to the system by
// itself or by malloc_trim(0), as malloc/malloc.c and malloc/arena.c of glibc (2.8 and later) do
// it:
//
//   - malloc_trim joins what lies in fastbins with free neighbours, and gives back the whole pages
//     within free chunks of all arenas (MADV_DONTNEED), but for a chunk's first 48 bytes, and the
//     end of the main arena but for 33 bytes. It leaves the ends of threads' arenas, and blocks in
//     threads' caches, which count as used.
//   - free gives back an arena's end, but for `top_pad` and 33 bytes, once it has grown to
//     `trim_threshold`. One block in use before the end keeps all that is free below it.
#ifndef TOOL_GLIBC_GIVEBACK_H
#define TOOL_GLIBC_GIVEBACK_H

#include "tool/base/array.h"
#include "tool/glibc/arenas.h"
#include "tool/glibc/chunks.h"

// Free memory with its header, of one chunk.
struct free_chunk {
    uint64_t start, bytes;
};

// Says which memory is resident.
struct resident_source {
    uint64_t (*bytes)(void *context, uint64_t start, uint64_t end);
    void *context;
    uint64_t page_bytes;
};

// One block in use between free memory and an arena's end.
struct arena_pin {
    uint64_t address;         // of the block; 0: there is none
    uint64_t bytes;           // of its chunk
    uint64_t joined_start;    // where the end would begin without it
    uint64_t resident_bytes;  // that would go back: of what would be the end
};

struct arena_free {
    uint64_t address;  // of the arena
    bool is_main;
    uint64_t system_bytes;  // that it took from the system
    uint64_t top, top_bytes;
    uint64_t top_resident_bytes;
    uint64_t chunk_count, chunk_bytes;  // in bins and fastbins, with headers
    uint64_t chunk_resident_bytes;
    // Resident, in free pieces that a block with a mapping of its own may have left had it lain
    // here: of MALLOC_THRESHOLD_USUAL or more, and of the end what is beyond so much.
    uint64_t piece_bytes;
    uint64_t trim_bytes;      // resident, that malloc_trim(0) gives back ...
    uint64_t trim_top_bytes;  // ... and of them of the end, by brk
    struct arena_pin pin;
    bool is_cut;  // some of its chunks were not counted
};

// malloc's parameters, which it changes itself (struct malloc_par).
struct malloc_parameters {
    uint64_t trim_threshold, top_pad, mmap_threshold;
    uint64_t arena_max;     // 0: by the number of processors
    bool are_fixed;         // the user set one of the thresholds: they stay
    uint64_t mapped_bytes;  // in blocks with mappings of their own
};

#define MALLOC_THRESHOLD_USUAL (UINT64_C(128) << 10)

// Looks for the parameters in libc's data, by what they must be to each other. False: they are not
// there, or look otherwise.
bool malloc_parameters_find(const struct memory_reader *memory, uint64_t start, uint64_t end,
                            struct malloc_parameters *parameters);

// Adds the arena's chunks up, which are sorted here; sets what begins with chunk_, and trim_bytes,
// top_resident_bytes and the pin. The words of chunks in use are read from `memory`. Chunks of
// a process that runs may overlap: what lies below the end of the one before is left out.
void giveback_settle(struct arena_free *arena, struct free_chunk *chunks, size_t count,
                     const struct malloc_parameters *parameters, const struct memory_reader *memory,
                     const struct resident_source *resident);

// Zero it before.
struct giveback {
    ARRAY(struct arena_free) arenas;  // in their circle or by address; the main one may be anywhere
    struct malloc_parameters parameters;
    bool has_parameters;
};
void giveback_free(struct giveback *giveback);

// Adds the arenas of a heap whose chunks are all known; the parameters are set before. False
// without memory.
bool giveback_of_heap(const struct glibc_heap *heap, const struct memory_reader *memory,
                      const struct resident_source *resident, struct giveback *giveback);

#endif
