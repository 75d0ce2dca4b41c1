// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/make_recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SECTION_COUNT = 19,
    PLAIN_SECTIONS = 7,
    RAW_SLACK_BYTES = 8192,
    WINDOW_MASK = (1 << CAIRN_WINDOW_BITS) - 1
};
static const uint64_t sample_start_unix_ns = 1700000000000000000u;

static void require(bool is_ok, const char *what) {
    if (is_ok) return;
    fprintf(stderr, "make_recording: %s\n", what);
    abort();
}

void making_start(struct making *making) {
    static const char command[] = "/usr/bin/sample\0--quick";
    memset(making, 0, sizeof *making);
    struct cairn_header *header = &making->header;
    memcpy(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    header->version = CAIRN_VERSION;
    header->header_bytes = CAIRN_HEADER_BYTES;
    header->state = CAIRN_STATE_ENDED;
    header->machine = 62;  // EM_X86_64
    header->pid = 4242;
    header->ppid = 4241;
    header->has_exit = 1;
    header->start_unix_ns = sample_start_unix_ns;
    header->end_ns = 2000000000u;
    memcpy(header->command, command, sizeof command);
    strcpy(header->executable, "/usr/bin/sample");
    making->string_bytes = 1;               // offset 0 is the empty text
    making->cell_count = CAIRN_CELL_BLOCK;  // the first block belongs to nobody
    making->owners[0] = 0xffff;
    making->word_count = 2;  // record 0 is the empty stack
    for (uint32_t i = 0; i < MAKING_THREADS; i++) making->next_cell[i] = 0;
}

uint32_t making_string(struct making *making, const char *text) {
    uint32_t offset = making->string_bytes;
    size_t size = strlen(text) + 1;
    require(offset + size <= MAKING_STRINGS, "strings are full");
    memcpy(making->strings + offset, text, size);
    making->string_bytes += (uint32_t)size;
    return offset;
}

uint32_t making_module(struct making *making, const char *path, uint64_t start, uint64_t size,
                       uint64_t bias, uint8_t build_id_byte) {
    enum { BUILD_ID_BYTES = 20 };
    require(making->module_count < MAKING_MODULES, "modules are full");
    struct cairn_module *module = &making->modules[making->module_count];
    *module = (struct cairn_module){.start = start,
                                    .end = start + size,
                                    .bias = bias,
                                    .path = making_string(making, path),
                                    .segment_count = 1,
                                    .is_ready = 1};
    module->segments[0].address = start - bias;
    module->segments[0].size = size;
    if (build_id_byte) {
        module->build_id_bytes = BUILD_ID_BYTES;
        memset(module->build_id, build_id_byte, BUILD_ID_BYTES);
    }
    return making->module_count++;
}

uint32_t making_thread(struct making *making, uint32_t tid, const char *name) {
    require(making->thread_count < MAKING_THREADS, "threads are full");
    struct cairn_thread *thread = &making->threads[making->thread_count];
    thread->tid = tid;
    thread->slot = making->thread_count;
    snprintf(thread->name, sizeof thread->name, "%s", name);
    return making->thread_count++;
}

static uint32_t new_cell(struct making *making, uint32_t thread) {
    uint32_t *next = &making->next_cell[thread];
    if (*next % CAIRN_CELL_BLOCK == 0) {
        require(making->cell_count + CAIRN_CELL_BLOCK <= MAKING_CELLS, "cells are full");
        *next = making->cell_count;
        making->owners[*next / CAIRN_CELL_BLOCK] = (uint16_t)thread;
        making->cell_count += CAIRN_CELL_BLOCK;
    }
    making->rare[*next].generation = making->header.totals.generation;
    return (*next)++;
}

// A new cell with a record of so many words, of which the codes are the last.
static uint32_t new_record(struct making *making, uint32_t thread, uint32_t head_words,
                           const uint32_t *codes, uint32_t code_words) {
    require(making->word_count + head_words + code_words <= MAKING_WORDS, "records are full");
    uint32_t id = new_cell(making, thread);
    making->cells[id].record = making->word_count;
    uint32_t *words = making->words + making->word_count;
    if (code_words) memcpy(words + head_words, codes, code_words * sizeof *codes);
    making->word_count += head_words + code_words;
    return id;
}

uint32_t making_cell(struct making *making, uint32_t thread, uint32_t older, uint32_t keep,
                     const uint32_t *codes, uint32_t code_words, uint32_t frame_count) {
    uint32_t id = new_record(making, thread, 2, codes, code_words);
    uint32_t *words = making->words + making->cells[id].record;
    words[0] = older;
    words[1] = keep << 16 | frame_count;
    return id;
}

uint32_t making_short(struct making *making, uint32_t thread, uint32_t older, uint32_t drop,
                      const uint32_t *codes, uint32_t count, uint32_t tail) {
    uint32_t id = new_record(making, thread, 1, codes, count);
    making->words[making->cells[id].record] =
        CAIRN_RECORD_SHORT | tail << CAIRN_SHORT_TAIL_SHIFT | count << CAIRN_SHORT_NEW_SHIFT |
        drop << CAIRN_SHORT_DROP_SHIFT | ((id - older) & CAIRN_SHORT_BACK_MOST);
    return id;
}

uint32_t making_code(struct making *making, uint64_t address) {
    uint64_t start = address & ~(uint64_t)WINDOW_MASK;
    for (uint32_t i = 0; i < CAIRN_WINDOW_COUNT; i++) {
        uint64_t *window = &making->header.windows[i];
        if (i > 0 && !*window) *window = start;
        if (*window == start) return i << CAIRN_WINDOW_BITS | (uint32_t)(address & WINDOW_MASK);
    }
    require(false, "windows are full");
    return 0;
}

uint32_t making_stack(struct making *making, uint32_t thread, const uint64_t *addresses,
                      uint32_t count) {
    uint32_t codes[256];
    require(count <= sizeof codes / sizeof *codes, "stack is too deep");
    for (uint32_t i = 0; i < count; i++) {
        bool is_cut = addresses[i] < CAIRN_CUT_LIMIT;
        codes[i] =
            is_cut ? CAIRN_CODE_CUT | (uint32_t)addresses[i] : making_code(making, addresses[i]);
    }
    return making_cell(making, thread, 0, 0, codes, count, count);
}

uint32_t making_foreign(struct making *making, uint32_t thread, uint32_t older) {
    uint32_t id = making_cell(making, thread, older, 0, NULL, 0, 0);
    making->words[making->cells[id].record + 1] |= CAIRN_RECORD_FOREIGN;
    return id;
}

uint32_t making_freed_at(struct making *making, uint32_t thread, uint32_t older, uint32_t freer) {
    uint32_t id = making_cell(making, thread, older, 0, &freer, 1, 1);
    making->words[making->cells[id].record + 1] |= CAIRN_RECORD_FOREIGN;
    return id;
}

// Saves what the cell held at snapshots since its last change.
static void save_value(struct making *making, uint32_t id) {
    const struct cairn_cell *cell = &making->cells[id];
    const struct cairn_totals *totals = &making->header.totals;
    if (cell->epoch >= totals->snapshot_epoch) return;
    require(making->value_count < MAKING_VALUES, "values are full");
    making->values[making->value_count++] =
        (struct cairn_value){.cell = id,
                             .from_epoch = cell->epoch,
                             .to_epoch = totals->epoch,
                             .blocks = (int32_t)(cell->calls - cell->frees),
                             .bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes)};
    const struct cairn_sample_cell *sample = &making->sample_cells[id];
    making->sample_values[making->value_count - 1] =
        (struct cairn_sample_value){.calls = cell->calls,
                                    .frees = cell->frees,
                                    .extra = sample->extra_calls - sample->extra_frees,
                                    .allocated_variance = sample->allocated_variance,
                                    .freed_variance = sample->freed_variance,
                                    .calls_variance = sample->calls_variance,
                                    .frees_variance = sample->frees_variance};
}

void making_snapshot(struct making *making, enum cairn_snapshot_reason reason, const char *label,
                     uint64_t at_ns) {
    struct cairn_totals *totals = &making->header.totals;
    require(making->snapshot_count < MAKING_SNAPSHOTS, "snapshots are full");
    struct cairn_snapshot *snapshot = &making->snapshots[making->snapshot_count++];
    if (reason == CAIRN_SNAPSHOT_MARK) totals->generation++;
    *snapshot = (struct cairn_snapshot){.epoch = ++totals->epoch,
                                        .reason = reason,
                                        .generation = totals->generation,
                                        .time_ns = at_ns,
                                        .live_bytes = totals->live_bytes,
                                        .live_blocks = totals->live_blocks};
    totals->snapshot_epoch = totals->epoch;
    snprintf(snapshot->label, sizeof snapshot->label, "%s", label);
}

struct cairn_sizes *making_sizes(struct making *making, uint32_t cell) {
    require(making->sizes_count < MAKING_EXTRAS, "sizes are full");
    struct cairn_sizes *sizes = &making->sizes[making->sizes_count++];
    making->rare[cell].sizes = making->sizes_count;
    sizes->cell = cell;
    return sizes;
}

struct cairn_reallocs *making_reallocs(struct making *making, uint32_t cell) {
    require(making->reallocs_count < MAKING_EXTRAS, "reallocs are full");
    struct cairn_reallocs *reallocs = &making->reallocs[making->reallocs_count++];
    making->rare[cell].reallocs = making->reallocs_count;
    reallocs->cell = cell;
    return reallocs;
}

struct cairn_ages *making_ages(struct making *making, uint32_t cell) {
    require(making->ages_count < MAKING_EXTRAS, "ages are full");
    struct cairn_ages *ages = &making->ages[making->ages_count++];
    making->rare[cell].ages = making->ages_count;
    ages->cell = cell;
    return ages;
}

struct cairn_aligned *making_aligned(struct making *making, uint32_t cell) {
    require(making->aligned_count < MAKING_EXTRAS, "aligned is full");
    struct cairn_aligned *aligned = &making->aligned[making->aligned_count++];
    making->rare[cell].aligned = making->aligned_count;
    aligned->cell = cell;
    return aligned;
}

void making_book_samples(struct making *making, uint32_t id, uint32_t calls, uint32_t frees,
                         struct making_weight weight) {
    struct cairn_sample_cell *sample = &making->sample_cells[id];
    making_book(making, id, calls, calls * weight.bytes, frees, frees * weight.bytes);
    sample->extra_calls += (uint64_t)calls * CAIRN_SAMPLE_ONE;
    sample->extra_frees += (uint64_t)frees * CAIRN_SAMPLE_ONE;
    sample->allocated_variance += calls * weight.bytes_variance;
    sample->freed_variance += frees * weight.bytes_variance;
    sample->calls_variance += calls * weight.blocks_variance;
    sample->frees_variance += frees * weight.blocks_variance;
}

void making_book(struct making *making, uint32_t id, uint32_t calls, uint64_t allocated_bytes,
                 uint32_t frees, uint64_t freed_bytes) {
    struct cairn_cell *cell = &making->cells[id];
    struct cairn_totals *totals = &making->header.totals;
    if (cell->epoch != totals->epoch) {
        save_value(making, id);
        if (cell->epoch < totals->peak_epoch) {
            cell->peak_bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
            cell->peak_blocks = (int32_t)(cell->calls - cell->frees);
        }
        cell->epoch = totals->epoch;
    }
    if (!cell->calls && calls)
        cell->size = making->has_use ? (uint32_t)(allocated_bytes / calls) : CAIRN_SIZE_VARIES;
    cell->calls += calls;
    cell->frees += frees;
    cell->allocated_bytes += allocated_bytes;
    cell->freed_bytes += freed_bytes;
    struct cairn_thread *thread = &making->threads[making->owners[id / CAIRN_CELL_BLOCK]];
    thread->allocations += calls;
    thread->allocated_bytes += allocated_bytes;
    thread->frees += frees;
    thread->net_bytes += (int64_t)(allocated_bytes - freed_bytes);
    totals->live_bytes += (int64_t)(allocated_bytes - freed_bytes);
    totals->live_blocks += (int64_t)calls - frees;
}

uint32_t making_inherited(struct making *making, const char *name, uint32_t blocks,
                          uint64_t bytes) {
    static const uint64_t address = 0x7001000;
    uint32_t thread = making_thread(making, 0, name);
    uint32_t cell = making_stack(making, thread, &address, 1);
    making_book(making, cell, blocks, bytes, 0, 0);
    making->owners[cell / CAIRN_CELL_BLOCK] = CAIRN_SLOT_SHARED;
    making->threads[thread].slot = CAIRN_SLOT_SHARED;
    return cell;
}

void making_peak(struct making *making, uint64_t at_ns) {
    struct cairn_totals *totals = &making->header.totals;
    totals->peak_bytes = (uint64_t)totals->live_bytes;
    totals->peak_blocks = (uint64_t)totals->live_blocks;
    totals->peak_ns = at_ns;
    totals->peak_epoch = ++totals->epoch;
}

void making_point(struct making *making, uint32_t index, int64_t min_bytes, int64_t max_bytes,
                  int64_t last_bytes) {
    require(index < MAKING_POINTS, "points are full");
    making->points[index] = (struct cairn_point){
        .min_bytes = min_bytes, .max_bytes = max_bytes, .last_bytes = last_bytes, .is_used = 1};
    if (making->point_count <= index) making->point_count = index + 1;
}

uint32_t making_scope(struct making *making, enum cairn_scope_kind kind, uint32_t parent,
                      const char *name, uint64_t entries) {
    if (!making->scope_count) making->scope_count = 1;  // 0 is none
    require(making->scope_count < MAKING_SCOPES, "scopes are full");
    making->scopes[making->scope_count] = (struct cairn_scope){.kind = (uint32_t)kind,
                                                               .parent = parent,
                                                               .name = making_string(making, name),
                                                               .entries = entries,
                                                               .is_ready = 1};
    return making->scope_count++;
}

struct part {
    uint32_t kind, entry_bytes;
    const void *bytes;
    uint64_t size;
};

// Sections behind the plain ones are there if they have something. Returns how many there are.
static uint32_t list_parts(const struct making *making, struct part parts[SECTION_COUNT]) {
    const struct part list[SECTION_COUNT] = {
        {CAIRN_SECTION_MODULES, sizeof *making->modules, making->modules, making->module_count},
        {CAIRN_SECTION_STRINGS, 1, making->strings, making->string_bytes},
        {CAIRN_SECTION_THREADS, sizeof *making->threads, making->threads, making->thread_count},
        {CAIRN_SECTION_OWNERS, sizeof *making->owners, making->owners,
         making->cell_count / CAIRN_CELL_BLOCK},
        {CAIRN_SECTION_CELLS, sizeof *making->cells, making->cells, making->cell_count},
        {CAIRN_SECTION_CELLS_RARE, sizeof *making->rare, making->rare, making->cell_count},
        {CAIRN_SECTION_RECORDS, sizeof *making->words, making->words, making->word_count},
        {CAIRN_SECTION_POINTS, sizeof *making->points, making->points, making->point_count},
        {CAIRN_SECTION_SCOPES, sizeof *making->scopes, making->scopes, making->scope_count},
        {CAIRN_SECTION_SIZES, sizeof *making->sizes, making->sizes, making->sizes_count},
        {CAIRN_SECTION_REALLOCS, sizeof *making->reallocs, making->reallocs,
         making->reallocs_count},
        {CAIRN_SECTION_AGES, sizeof *making->ages, making->ages, making->ages_count},
        {CAIRN_SECTION_SNAPSHOTS, sizeof *making->snapshots, making->snapshots,
         making->snapshot_count},
        {CAIRN_SECTION_VALUES, sizeof *making->values, making->values, making->value_count},
        {CAIRN_SECTION_ALIGNED, sizeof *making->aligned, making->aligned, making->aligned_count},
        {CAIRN_SECTION_SAMPLING, sizeof making->sampling, &making->sampling,
         making->sampling.is_on ? 1 : 0},
        {CAIRN_SECTION_SAMPLE_CELLS, sizeof *making->sample_cells, making->sample_cells,
         making->sampling.is_on ? making->cell_count : 0},
        {CAIRN_SECTION_SAMPLE_VALUES, sizeof *making->sample_values, making->sample_values,
         making->sampling.is_on ? making->value_count : 0},
    };
    uint32_t count = 0;
    for (int i = 0; i < SECTION_COUNT; i++) {
        if (i >= PLAIN_SECTIONS && !list[i].size) continue;
        parts[count] = list[i];
        parts[count++].size *= list[i].entry_bytes;
    }
    return count;
}

// The rare part of cell `id` is entry `id`, if it says anything.
static void refer_to_rare(struct making *making) {
    static const struct cairn_cell_rare nothing;
    for (uint32_t id = 0; id < making->cell_count; id++)
        if (memcmp(&making->rare[id], &nothing, sizeof nothing) != 0)
            making->cells[id].rare = id + 1;
    making->header.has_no_temporary = !making->has_use;
}

// Writes the section table for parts that each have `slack_bytes` of room behind them.
static uint64_t lay_out(struct making *making, const struct part *parts, uint32_t count,
                        uint64_t slack_bytes) {
    enum { ALIGNMENT = 16 };
    uint64_t offset = CAIRN_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t capacity = parts[i].size + slack_bytes;
        making->header.sections[i] = (struct cairn_section){.kind = parts[i].kind,
                                                            .entry_bytes = parts[i].entry_bytes,
                                                            .offset = offset,
                                                            .capacity_bytes = capacity,
                                                            .used_bytes = parts[i].size};
        offset = (offset + capacity + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    making->header.section_count = count;
    making->header.mapped_bytes = offset;
    making->header.is_compact = slack_bytes == 0;
    return offset;
}

uint8_t *making_finish(struct making *making, bool is_compact, size_t *size) {
    struct part parts[SECTION_COUNT];
    refer_to_rare(making);
    uint32_t count = list_parts(making, parts);
    *size = (size_t)lay_out(making, parts, count, is_compact ? 0 : RAW_SLACK_BYTES);
    uint8_t *bytes = calloc(1, *size);
    require(bytes != NULL, "no memory");
    memcpy(bytes, &making->header, sizeof making->header);
    for (uint32_t i = 0; i < count; i++)
        memcpy(bytes + making->header.sections[i].offset, parts[i].bytes, parts[i].size);
    return bytes;
}

void making_write_sparse(struct making *making, const char *path, uint64_t capacity_bytes) {
    struct part parts[SECTION_COUNT];
    refer_to_rare(making);
    uint32_t count = list_parts(making, parts);
    uint64_t size = lay_out(making, parts, count, capacity_bytes);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && !ftruncate(file, (off_t)size), path);
    ssize_t written = pwrite(file, &making->header, sizeof making->header, 0);
    require(written == (ssize_t)sizeof making->header, path);
    for (uint32_t i = 0; i < count; i++) {
        written =
            pwrite(file, parts[i].bytes, parts[i].size, (off_t)making->header.sections[i].offset);
        require(written == (ssize_t)parts[i].size, path);
    }
    close(file);
}

void making_write(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, size, file) == size && !fclose(file), path);
}

void making_sample(struct making *making) {
    const uint64_t program = 0x555555554000u, library = 0x7ffff7a00000u, plugin = 0x7ffff7000000u;
    const uint64_t first[] = {program + 0x1100, program + 0x1234, library + 0x5678};
    const uint64_t second[] = {program + 0x1100, program + 0x1300, library + 0x5678};
    const uint64_t cut[] = {CAIRN_CUT_NO_CFI, plugin + 0x40, library + 0x5678};
    making_start(making);
    making_module(making, "/usr/bin/sample", program, 0x10000, program, 0x11);
    making_module(making, "/usr/lib/libsample.so.1", library, 0x100000, library, 0x22);
    uint32_t late = making_module(making, "/usr/lib/plugin.so", plugin, 0x1000, plugin, 0);
    uint32_t main_thread = making_thread(making, 4242, "sample");
    uint32_t worker = making_thread(making, 4243, "worker");
    uint32_t a = making_stack(making, main_thread, first, 3);
    uint32_t b = making_stack(making, worker, second, 3);
    uint32_t c = making_stack(making, worker, cut, 3);
    const uint32_t escapes[] = {CAIRN_CODE_MODULE | late, 0x80, CAIRN_CODE_FULL, 0x12345678,
                                0x7f00};
    uint32_t d = making_cell(making, worker, b, 2, escapes, 5, 2);
    uint32_t a_freed_by_worker = making_foreign(making, worker, a);
    making_book(making, a, 10, 1000, 0, 0);
    making_book(making, b, 4, 4096, 1, 1024);
    making_book(making, c, 1, 100, 0, 0);
    making_peak(making, 1000000000u);
    making_book(making, a_freed_by_worker, 0, 0, 5, 500);
    making_book(making, d, 2, 64, 0, 0);
    making_book(making, b, 0, 0, 3, 3072);
    making->header.totals.is_threaded = 1;
    making->header.totals.batch_bytes = 256;
    making->header.rss_peak_bytes = 5u << 20;
    making->header.own_bytes = 2u << 20;
}
