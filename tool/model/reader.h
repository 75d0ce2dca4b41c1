// SPDX-License-Identifier: Apache-2.0
// Opens a recording and hands out its entries, each checked against what is really there.
//
// The used parts of the sections are read into memory (holes of a sparse file are not), so that a
// file that shrinks or changes afterwards does no harm; a mapping would end in SIGBUS. Every
// accessor copies one entry out and returns false past the end. What is damaged is counted in
// `damage` and left out; the rest is kept. Only a file without a whole header of this version is
// refused.
#ifndef TOOL_MODEL_READER_H
#define TOOL_MODEL_READER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/format.h"
#include "format/guard.h"
#include "format/looks.h"
#include "format/reachability.h"
#include "format/sample.h"
#include "format/waste.h"
#include "tool/base/array.h"
#include "tool/base/error.h"

#define RECORDING_SECTION_KINDS 35  // index = a section's kind

// What could not be used. All zero: the recording is whole.
struct damage {
    uint64_t missing_bytes;  // of sections, behind the end of the file
    uint32_t bad_sections;   // without meaning, doubled or outside of the file
    uint32_t bad_strings;    // offsets that lead to no text
    uint32_t bad_modules;    // entries that contradict themselves
    uint32_t bad_stacks;     // cells whose record cannot be followed: counted without their stack
};

struct recording_section {
    const uint8_t *bytes;
    size_t size;         // bytes that are there: a whole number of entries, but for STRINGS
    size_t entry_bytes;  // step from entry to entry, at least the size this version knows
    size_t count;        // entries
    void *mapping;       // what recording_close gives back, or NULL
    size_t mapping_size;
};

// Memory of a process that goes on, which it mapped and gave a name.
struct recording_name {
    char name[96];  // any bytes
    uint64_t bytes;
};

struct recording {
    struct cairn_header header;  // texts terminated, counts within their arrays, a size of pages
    uint64_t file_bytes;         // what the file takes: its size, less if it is sparse
    struct recording_section sections[RECORDING_SECTION_KINDS];
    struct damage damage;
    uint32_t depth;                      // as recording_cut_all said when it was opened
    ARRAY(struct recording_name) names;  // of a look at the process now; the most first
};

// Recordings that are opened from now on have their stacks cut, as they are read, as if they had
// been recorded with --max-depth of so many frames, or of fewer if fewer were asked for before; 0:
// stacks are as they were recorded. For commands that compare or add up recordings of different
// depths, before other threads begin.
void recording_cut_all(uint32_t frames);
// Machine frames that a stack of the recording has at most, by either; 0: all.
uint32_t recording_max_depth(const struct recording *recording);

bool recording_open(const char *path, struct recording *recording, struct error *error);
// `bytes` must outlive the recording; any alignment will do.
bool recording_open_memory(const void *bytes, size_t size, struct recording *recording,
                           struct error *error);
void recording_close(struct recording *recording);
// Gives back the memory of cells and of their records, which are a quarter of what a large profile
// takes: from then on the recording has none.
void recording_drop_cells(struct recording *recording);

// The name of the program that was recorded, as process_name_choose has it; "": unknown.
void recording_program(const struct cairn_header *header, char name[NAME_MAX]);

// The two steps of opening, for a recording that is read again and again (follow.h). The header as
// it is now; false if it is none. And what a section holds by its entry in the header, without its
// bytes; false if it cannot be used.
struct source;
bool recording_load_header(struct recording *recording, const struct source *source,
                           struct error *error);
bool recording_claim(struct recording *recording, const struct cairn_section *claim,
                     uint64_t file_bytes, struct recording_section *section);

// The last time that the recording knows of, in ns since the start: the end, or of a process that
// goes on the clock of `cairn run`, some milliseconds old. 0: unknown.
uint64_t recording_last_ns(const struct recording *recording);

// When the highest total that header.totals knows was left, in ns since the start. The clock that
// the target read lags some milliseconds; the snapshots before and after the peak, by epoch, bound
// that.
uint64_t recording_peak_ns(const struct recording *recording);

// Entries there are.
size_t recording_count(const struct recording *recording, uint32_t kind);

// The first `bytes` of an entry, zeros for what it has not. Asked for each word of each stack.
static inline bool recording_copy(const struct recording *recording, uint32_t kind, size_t index,
                                  void *out, size_t bytes) {
    const struct recording_section *section = &recording->sections[kind];
    const size_t there = section->entry_bytes;
    if (index >= section->count) return false;
    const uint8_t *from = section->bytes + index * there;
    if (there >= bytes) {
        memcpy(out, from, bytes);
        return true;
    }
    memcpy(out, from, there);
    memset((uint8_t *)out + there, 0, bytes - there);
    return true;
}

// A cell, whichever version of the format it is from: cairn_cell with its rare part, numbers whole.
struct recorded_cell {
    uint64_t calls, frees, allocated_bytes, freed_bytes, slack_bytes, temporary;
    int64_t peak_bytes, peak_blocks;  // if saved: `epoch` tells
    uint32_t epoch, record, generation;
    uint32_t usual_size;
    bool has_sizes;                           // they are known: the usual one, and those of SIZES
    uint32_t sizes, reallocs, ages, aligned;  // index + 1; 0: none
    uint32_t watched, short_lived;
};
bool recording_cell(const struct recording *recording, size_t id, struct recorded_cell *cell);
// One thing of a cell, for those who ask each cell of a large recording for no more. Whether
// anything was counted there; the bytes that are left of it; its record. False: there is none.
bool recording_cell_is_used(const struct recording *recording, size_t id);
bool recording_cell_left(const struct recording *recording, size_t id, int64_t *bytes);
bool recording_cell_record(const struct recording *recording, size_t id, uint32_t *record);
// Temporary blocks were counted, and what blocks take beyond what was asked for.
bool recording_has_temporary(const struct recording *recording);
bool recording_module(const struct recording *recording, size_t index, struct cairn_module *module);
bool recording_thread(const struct recording *recording, size_t index, struct cairn_thread *thread);
bool recording_point(const struct recording *recording, size_t index, struct cairn_point *point);
bool recording_resident(const struct recording *recording, size_t index,
                        struct cairn_resident *resident);
// False also for an entry that is not in use.
bool recording_picture(const struct recording *recording, size_t index,
                       struct cairn_picture *picture);
bool recording_sizes(const struct recording *recording, size_t index, struct cairn_sizes *sizes);
bool recording_reallocs(const struct recording *recording, size_t index,
                        struct cairn_reallocs *reallocs);
bool recording_aligned(const struct recording *recording, size_t index,
                       struct cairn_aligned *aligned);
bool recording_ages(const struct recording *recording, size_t index, struct cairn_ages *ages);
bool recording_snapshot(const struct recording *recording, size_t index,
                        struct cairn_snapshot *snapshot);
bool recording_value(const struct recording *recording, size_t index, struct cairn_value *value);
bool recording_scope(const struct recording *recording, size_t id, struct cairn_scope *scope);
// False: the blocks had no guard bands.
bool recording_guard(const struct recording *recording, struct cairn_guard *guard);
bool recording_overrun(const struct recording *recording, size_t index,
                       struct cairn_overrun *damage);

// What nothing led to at the end; false: that was not looked at.
bool recording_reachability(const struct recording *recording,
                            struct cairn_reachability *reachability);
bool recording_waste(const struct recording *recording, struct cairn_waste *waste);

// Looks at the heap that were made while it was recorded; `answers`: what views said then, as much
// of it as is there (tool/answer/kept.h).
bool recording_look(const struct recording *recording, size_t index, struct cairn_look *look);
const uint8_t *recording_look_answers(const struct recording *recording,
                                      const struct cairn_look *look, size_t *bytes);
bool recording_lost_cell(const struct recording *recording, size_t index, struct cairn_lost *lost);
bool recording_mapper(const struct recording *recording, size_t index, struct cairn_mapper *mapper);
bool recording_heap_stack(const struct recording *recording, size_t index,
                          struct cairn_heap_stack *stack);
// What the blocks of heaps by name were like, and what these held at snapshots: earlier recordings
// do not have it.
static inline bool recording_knows_heap_blocks(const struct recording *recording) {
    return recording->sections[CAIRN_SECTION_HEAP_STACKS].entry_bytes >=
           sizeof(struct cairn_heap_stack);
}
bool recording_heap_points(const struct recording *recording, size_t index,
                           struct cairn_heap_points *points);
static inline bool recording_word(const struct recording *recording, size_t index, uint32_t *word) {
    return recording_copy(recording, CAIRN_SECTION_RECORDS, index, word, sizeof *word);
}
// Slot of the thread that owns a cell.
bool recording_owner(const struct recording *recording, size_t cell_id, uint16_t *slot);

// How allocations were sampled, and which sizes got no stack; false: all were recorded alike.
bool recording_sampling(const struct recording *recording, struct cairn_sampling *sampling);
// Some numbers are estimates.
bool recording_is_sampled(const struct recording *recording);
// What samples add to a cell; zeros if there were none.
void recording_sample_cell(const struct recording *recording, size_t id,
                           struct cairn_sample_cell *cell);
// Which sizes they had. False: that was not recorded.
bool recording_sample_sizes(const struct recording *recording, size_t id,
                            struct cairn_sample_size sizes[CAIRN_SAMPLE_SIZES]);

// What was behind the value of this index; zeros if that is not there.
void recording_sample_value(const struct recording *recording, size_t index,
                            struct cairn_sample_value *value);
// False: its values at snapshots say nothing of the samples behind them, since an older cairn
// recorded it, or sampling began in the middle.
bool recording_has_sample_values(const struct recording *recording);

// Text at `offset` of STRINGS; "" and a damage note if there is none.
const char *recording_string(struct recording *recording, uint32_t offset);

// "massif; not in it: times": whose file the recording was made of; NULL: cairn recorded it.
const char *recording_imported(struct recording *recording);

// Returns the first library whose calls bypass cairn, by its path or as the program named it; NULL:
// there is none, or its name is not known.
static inline const char *recording_bypassing(struct recording *recording) {
    const uint32_t text = recording->header.bypassing;
    return text ? recording_string(recording, text) : NULL;
}

// It was made of the blocks of a process or core dump: its call stacks are who keeps them, from a
// variable or thread inwards, and all its figures are of that one moment.
#define RECORDING_OF_OWNERS "cairn core"
bool recording_is_of_owners(struct recording *recording);

// Events that were lost, by enum cairn_loss.
uint64_t recording_lost(const struct recording *recording, size_t kind);
// Frees of blocks that were allocated before cairn attached, or while recording was switched off:
// they are expected, and nothing that was recorded lacks them.
uint64_t recording_earlier_frees(const struct recording *recording);

// False: the process found no room for what a recording begins with, or ended before it was there.
bool recording_has_begun(const struct recording *recording);

// The file is one that the tool wrote while the process went on: what came later is not in it.
bool recording_is_checkpoint(const struct recording *recording);

// Every event was counted: nothing was lost that changes a number, nothing was sampled, nothing is
// damaged.
bool recording_is_exact(const struct recording *recording);
// The same, but for numbers that are meant to be estimates.
bool recording_is_whole(const struct recording *recording);
bool damage_is_any(const struct damage *damage);

// The cell counts such blocks and nothing else, if the recording has any.
static inline bool recording_is_inherited(const struct recording *recording, size_t cell) {
    uint16_t slot;
    return cell != CAIRN_CELL_OTHER && recording_owner(recording, cell, &slot) &&
           slot == CAIRN_SLOT_SHARED;
}

#endif
