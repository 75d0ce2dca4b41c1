// SPDX-License-Identifier: Apache-2.0
// Makes small recordings for tests, the way a runtime would write them, so that readers can be
// checked against values worked out by hand. Whatever a test wants to be wrong it changes in the
// structures or in the finished bytes. Memory failure ends the test.
#ifndef TESTS_TOOLS_MAKE_RECORDING_H
#define TESTS_TOOLS_MAKE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "format/sample.h"

#define MAKING_MODULES 8u
#define MAKING_THREADS 8u
#define MAKING_CELLS 1024u
#define MAKING_WORDS 8192u
#define MAKING_STRINGS 4096u
#define MAKING_POINTS 64u
#define MAKING_SCOPES 16u
#define MAKING_SNAPSHOTS 16u
#define MAKING_VALUES 64u
#define MAKING_EXTRAS 8u

struct making {
    struct cairn_header header;
    struct cairn_module modules[MAKING_MODULES];
    struct cairn_thread threads[MAKING_THREADS];
    uint16_t owners[MAKING_CELLS / CAIRN_CELL_BLOCK];
    struct cairn_cell cells[MAKING_CELLS];
    struct cairn_cell_rare rare[MAKING_CELLS];  // every cell has one
    uint32_t words[MAKING_WORDS];
    char strings[MAKING_STRINGS];
    struct cairn_point points[MAKING_POINTS];
    struct cairn_snapshot snapshots[MAKING_SNAPSHOTS];
    struct cairn_value values[MAKING_VALUES];
    struct cairn_sizes sizes[MAKING_EXTRAS];
    struct cairn_reallocs reallocs[MAKING_EXTRAS];
    struct cairn_ages ages[MAKING_EXTRAS];
    struct cairn_aligned aligned[MAKING_EXTRAS];
    bool has_use;  // sizes and temporary blocks are known
    uint32_t snapshot_count, value_count, sizes_count, reallocs_count, ages_count, aligned_count;
    struct cairn_sampling sampling;  // is_on: with SAMPLE_CELLS and SAMPLE_VALUES
    struct cairn_sample_cell sample_cells[MAKING_CELLS];
    struct cairn_sample_value sample_values[MAKING_VALUES];
    struct cairn_scope scopes[MAKING_SCOPES];
    uint32_t scope_count;  // with the first one, which is none
    uint32_t point_count;
    uint32_t module_count, thread_count, cell_count, word_count, string_bytes;
    uint32_t next_cell[MAKING_THREADS];  // of each slot; a multiple of the block size: none left
};

// An ended, compact recording of process 4242 ("sample --quick", 2 s) without modules and cells.
void making_start(struct making *making);

uint32_t making_string(struct making *making, const char *text);
// Number of the module; `build_id_byte` fills 20 bytes of build-id, 0: none.
uint32_t making_module(struct making *making, const char *path, uint64_t start, uint64_t size,
                       uint64_t bias, uint8_t build_id_byte);
// Number of the thread, which is also its slot.
uint32_t making_thread(struct making *making, uint32_t tid, const char *name);

// A new cell of `thread` with a record of these codes behind `keep` frames of `older`.
uint32_t making_cell(struct making *making, uint32_t thread, uint32_t older, uint32_t keep,
                     const uint32_t *codes, uint32_t code_words, uint32_t frame_count);
// A new cell of `thread` with a short record: the stack of `older` without its inner `drop` frames,
// then these codes of a word each, then the innermost `tail` of those that went.
uint32_t making_short(struct making *making, uint32_t thread, uint32_t older, uint32_t drop,
                      const uint32_t *codes, uint32_t count, uint32_t tail);
// A new cell with a whole stack of return addresses, outermost first.
uint32_t making_stack(struct making *making, uint32_t thread, const uint64_t *addresses,
                      uint32_t count);
// The cell in which `thread` books frees of blocks of `older`'s thread.
uint32_t making_foreign(struct making *making, uint32_t thread, uint32_t older);
// The cell in which `thread` books frees of blocks of `older` by the stack of `freer`.
uint32_t making_freed_at(struct making *making, uint32_t thread, uint32_t older, uint32_t freer);

// Code of an address, taking a window if there is none for it yet.
uint32_t making_code(struct making *making, uint64_t address);

// Books allocations and frees into a cell, into its thread and into the totals.
void making_book(struct making *making, uint32_t cell, uint32_t calls, uint64_t allocated_bytes,
                 uint32_t frees, uint64_t freed_bytes);
// Blocks that were there when the recording began, of a stack of its own: their cell, which no
// thread owns. `name` is that of the entry that stands for them.
uint32_t making_inherited(struct making *making, const char *name, uint32_t blocks, uint64_t bytes);
// Says that the present state is the peak, as the free that leaves a peak does.
void making_peak(struct making *making, uint64_t at_ns);

// A note in the timeline's interval `index`; others before it stay without one. The section is
// there once a point is.
void making_point(struct making *making, uint32_t index, int64_t min_bytes, int64_t max_bytes,
                  int64_t last_bytes);

// Takes a snapshot; a mark begins a generation, that of cells made from then on.
void making_snapshot(struct making *making, enum cairn_snapshot_reason reason, const char *label,
                     uint64_t at_ns);
// What a cell gets one of; its `cell` is set.
struct cairn_sizes *making_sizes(struct making *making, uint32_t cell);
struct cairn_reallocs *making_reallocs(struct making *making, uint32_t cell);
struct cairn_ages *making_ages(struct making *making, uint32_t cell);
struct cairn_aligned *making_aligned(struct making *making, uint32_t cell);
// Books samples that each stand for two blocks and so many bytes, with these variances.
struct making_weight {
    uint64_t bytes;
    double bytes_variance, blocks_variance;
};
void making_book_samples(struct making *making, uint32_t cell, uint32_t calls, uint32_t frees,
                         struct making_weight weight);

// A region or the pools of a name; its number.
uint32_t making_scope(struct making *making, enum cairn_scope_kind kind, uint32_t parent,
                      const char *name, uint64_t entries);

// The finished bytes, for free(). Raw: sections with room behind their used part.
uint8_t *making_finish(struct making *making, bool is_compact, size_t *size);
// A raw recording as a sparse file whose sections have `capacity_bytes` each.
void making_write_sparse(struct making *making, const char *path, uint64_t capacity_bytes);
void making_write(const char *path, const void *bytes, size_t size);

// A recording with two threads, three modules, foreign frees, cuts and a peak in the middle, used
// where any recording with a bit of everything will do.
void making_sample(struct making *making);

#endif
