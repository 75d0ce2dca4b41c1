// SPDX-License-Identifier: Apache-2.0
#include "tool/model/reader.h"

#include <string.h>
#include <sys/mman.h>

#include "format/packed.h"
#include "tool/base/linker_words.h"
#include "tool/base/process_name.h"
#include "tool/model/cells_older.h"
#include "tool/model/source.h"

enum { STRING_MAX_BYTES = 65536 };

// A sparse file can claim any size; this bounds the time for looking through one section.
static const uint64_t section_max_bytes = 16ull << 30;

// A packed file gives that much at most, and zeros: a small one that claims to be huge is damaged.
// Most give five to fifty times their size. Stacks of a deep recursion give a thousand times as
// much, no block more than `unpacked_block_times`; but then no recording is larger than
// `unpacked_repeated_bytes`.
static const uint64_t unpacked_least_bytes = 64u << 20, unpacked_most_times = 512,
                      unpacked_block_times = 8192, unpacked_repeated_bytes = 4ull << 30;

static uint64_t unpacked_most(uint64_t file_bytes) {
    const uint64_t usual = unpacked_least_bytes + unpacked_most_times * file_bytes;
    const uint64_t repeated = file_bytes > unpacked_repeated_bytes / unpacked_block_times
                                  ? unpacked_repeated_bytes
                                  : unpacked_block_times * file_bytes;
    return usual > repeated ? usual : repeated;
}

static const size_t known_entry_bytes[RECORDING_SECTION_KINDS] = {
    [CAIRN_SECTION_MODULES] = sizeof(struct cairn_module),
    [CAIRN_SECTION_STRINGS] = 1,
    [CAIRN_SECTION_THREADS] = sizeof(struct cairn_thread),
    [CAIRN_SECTION_OWNERS] = sizeof(uint16_t),
    [CAIRN_SECTION_CELLS] = sizeof(struct cairn_cell),
    [CAIRN_SECTION_CELLS_RARE] = sizeof(struct cairn_cell_rare),
    [CAIRN_SECTION_RECORDS] = sizeof(uint32_t),
    [CAIRN_SECTION_POINTS] = sizeof(struct cairn_point),
    [CAIRN_SECTION_SYMBOLS] = 1,
    [CAIRN_SECTION_SAMPLING] = sizeof(struct cairn_sampling),
    [CAIRN_SECTION_SAMPLE_CELLS] = sizeof(struct cairn_sample_cell),
    [CAIRN_SECTION_RESIDENT] = sizeof(struct cairn_resident),
    [CAIRN_SECTION_PICTURES] = sizeof(struct cairn_picture),
    [CAIRN_SECTION_SIZES] = sizeof(struct cairn_sizes),
    [CAIRN_SECTION_REALLOCS] = sizeof(struct cairn_reallocs),
    [CAIRN_SECTION_AGES] = sizeof(struct cairn_ages),
    [CAIRN_SECTION_SNAPSHOTS] = sizeof(struct cairn_snapshot),
    [CAIRN_SECTION_VALUES] = sizeof(struct cairn_value),
    [CAIRN_SECTION_CODES] = 1,
    [CAIRN_SECTION_SCOPES] = sizeof(struct cairn_scope),
    [CAIRN_SECTION_GUARD] = sizeof(struct cairn_guard),
    [CAIRN_SECTION_OVERRUNS] = sizeof(struct cairn_overrun),
    [CAIRN_SECTION_MAPPERS] = sizeof(struct cairn_mapper),
    [CAIRN_SECTION_SAMPLE_VALUES] = sizeof(struct cairn_sample_value),
    [CAIRN_SECTION_ALIGNED] = sizeof(struct cairn_aligned),
    [CAIRN_SECTION_REACHABILITY] = sizeof(struct cairn_reachability),
    [CAIRN_SECTION_LOST] = sizeof(struct cairn_lost),
    [CAIRN_SECTION_WASTE] = sizeof(struct cairn_waste),
    [CAIRN_SECTION_HEAP_STACKS] = sizeof(struct cairn_heap_stack),
    [CAIRN_SECTION_HEAP_POINTS] = sizeof(struct cairn_heap_points),
    [CAIRN_SECTION_LOOKS] = sizeof(struct cairn_look),
    [CAIRN_SECTION_LOOK_ANSWERS] = 1,
};

static size_t known_bytes(const struct recording *recording, uint32_t kind) {
    if (cairn_is_older(recording->header.version)) {
        if (kind == OLDER_SECTION_CELLS) return sizeof(struct older_cell);
        if (kind == OLDER_SECTION_CELLS_COLD) return sizeof(struct older_cell_cold);
        if (kind == OLDER_SECTION_CELLS_USE) return sizeof(struct older_cell_use);
    }
    return known_entry_bytes[kind];
}

static bool check_magic(const struct cairn_header *header, size_t there, struct error *error) {
    enum { NAME_BYTES = 5 };
    if (!there) return error_set(error, "is empty, not a recording");
    size_t compared = there < CAIRN_MAGIC_BYTES ? there : CAIRN_MAGIC_BYTES;
    if (!memcmp(header->magic, CAIRN_MAGIC, compared)) return true;
    if (there >= CAIRN_MAGIC_BYTES && !memcmp(header->magic, CAIRN_MAGIC, NAME_BYTES))
        return error_set(error, "is a recording whose line ends were converted as if it were text");
    return error_set(error,
                     "is not a cairn recording; files of other profilers are read by cairn import");
}

static bool check_header(const struct cairn_header *header, size_t there, struct error *error) {
    if (!check_magic(header, there, error)) return false;
    bool has_version = there >= offsetof(struct cairn_header, version) + sizeof header->version;
    if (has_version &&
        (header->version < CAIRN_VERSION_OLDER || header->version > CAIRN_VERSION_PACKED))
        return error_set(error, "has format version %u, and this cairn reads versions %u to %u",
                         header->version, CAIRN_VERSION_OLDER, CAIRN_VERSION_PACKED);
    if (there < CAIRN_HEADER_BYTES)
        return error_set(error, "is cut off: %zu bytes are left, its header alone has %u", there,
                         CAIRN_HEADER_BYTES);
    if (header->header_bytes != CAIRN_HEADER_BYTES)
        return error_set(error, "is damaged: its header claims %u bytes instead of %u",
                         header->header_bytes, CAIRN_HEADER_BYTES);
    return true;
}

void recording_program(const struct cairn_header *header, char name[NAME_MAX]) {
    const char *called = header->command, *end = called + sizeof header->command;
    const char *comm = header->comm;
    const char *program = linker_is_called(called) ? linker_words_program(called, end) : end;
    bool is_by_linker = program < end && *program && !linker_is_called(header->executable);
    if (is_by_linker) called = program;
    if (is_by_linker && linker_is_called(comm)) comm = "";
    const char *second = called + strnlen(called, (size_t)(end - called)) + (*called ? 1 : 0);
    process_name_choose(comm, header->executable, called, second < end ? second : "", name);
}

static void terminate_texts(struct cairn_header *header) {
    header->command[CAIRN_TEXT_COMMAND - 1] = header->comm[sizeof header->comm - 1] = 0;
    header->executable[CAIRN_TEXT_PATH - 1] = header->directory[CAIRN_TEXT_PATH - 1] = 0;
    header->destination[CAIRN_TEXT_PATH - 1] = 0;
}

static void note_missing(struct damage *damage, uint64_t bytes) {
    damage->missing_bytes += bytes < INT32_MAX ? bytes : INT32_MAX;
}

// How much of `used` bytes at an offset is there.
static uint64_t bytes_there(uint64_t offset, uint64_t used, uint64_t file_bytes) {
    uint64_t there = offset < file_bytes ? file_bytes - offset : 0;
    if (there > section_max_bytes) there = section_max_bytes;
    return used < there ? used : there;
}

// A section as it lies in the file.
static void measure_plain(struct recording *recording, const struct cairn_section *claim,
                          uint64_t file_bytes, struct recording_section *section) {
    uint64_t used = claim->used_bytes;
    if (used > claim->capacity_bytes) used = claim->capacity_bytes;  // a full section
    uint64_t size = bytes_there(claim->offset, used, file_bytes);
    note_missing(&recording->damage, used - size);
    section->count = (size_t)(size / claim->entry_bytes);
    section->size = section->count * claim->entry_bytes;
}

static bool load_plain(struct recording *recording, const struct source *source,
                       const struct cairn_section *claim, struct error *error) {
    struct recording_section *section = &recording->sections[claim->kind];
    measure_plain(recording, claim, source->size, section);
    section->mapping_size = section->size;
    return source_load(source, claim->offset, section->size, &section->bytes, &section->mapping,
                       error);
}

// Of a block that cannot be read the rest of the section is missing.
static bool load_packed(struct recording *recording, const struct source *source,
                        const struct cairn_section *claim, uint64_t *budget, struct error *error) {
    struct recording_section *section = &recording->sections[claim->kind];
    const uint8_t *stored;
    void *stored_mapping;
    size_t size = (size_t)bytes_there(claim->offset, claim->used_bytes, source->size);
    uint64_t room =
        claim->capacity_bytes < section_max_bytes ? claim->capacity_bytes : section_max_bytes;
    if (!room) return true;
    section->mapping = source_room((size_t)room, error);
    if (!section->mapping) return false;
    section->mapping_size = (size_t)room;
    section->bytes = section->mapping;
    if (!source_load(source, claim->offset, size, &stored, &stored_mapping, error)) return false;
    size_t given =
        unpack_section(stored, size, claim->entry_bytes, section->mapping, (size_t)room, budget);
    if (stored_mapping) munmap(stored_mapping, size);
    note_missing(&recording->damage, claim->capacity_bytes - given);
    section->count = given / claim->entry_bytes;
    section->size = section->count * claim->entry_bytes;
    return true;
}

// False for a kind of later versions, and for what has no meaning, which is damage.
static bool is_usable(struct recording *recording, const struct cairn_section *claim) {
    if (claim->kind == CAIRN_SECTION_NONE || claim->kind >= RECORDING_SECTION_KINDS) return false;
    size_t known = known_bytes(recording, claim->kind);
    if (!known) return false;
    bool has_words = claim->kind == CAIRN_SECTION_RECORDS || known == 1;
    size_t least = claim->kind == CAIRN_SECTION_PICTURES      ? CAIRN_PICTURE_LEAST_BYTES
                   : claim->kind == CAIRN_SECTION_HEAP_STACKS ? CAIRN_HEAP_STACK_LEAST_BYTES
                                                              : known;
    bool is_right = has_words ? claim->entry_bytes == known : claim->entry_bytes >= least;
    if (!is_right) recording->damage.bad_sections++;
    return is_right;
}

bool recording_claim(struct recording *recording, const struct cairn_section *claim,
                     uint64_t file_bytes, struct recording_section *section) {
    *section = (struct recording_section){0};
    if (!is_usable(recording, claim)) return false;
    section->entry_bytes = claim->entry_bytes;
    measure_plain(recording, claim, file_bytes, section);
    return true;
}

static bool load_section(struct recording *recording, const struct source *source,
                         const struct cairn_section *claim, uint64_t *budget, struct error *error) {
    if (!is_usable(recording, claim)) return true;
    struct recording_section *section = &recording->sections[claim->kind];
    if (section->entry_bytes) {
        recording->damage.bad_sections++;
        return true;
    }
    section->entry_bytes = claim->entry_bytes;
    return cairn_is_packed(recording->header.version)
               ? load_packed(recording, source, claim, budget, error)
               : load_plain(recording, source, claim, error);
}

bool recording_load_header(struct recording *recording, const struct source *source,
                           struct error *error) {
    struct cairn_header *header = &recording->header;
    size_t there = source_read(source, 0, header, sizeof *header);
    if (!check_header(header, there, error)) return false;
    terminate_texts(header);
    header->page_bytes = cairn_page_bytes(header->page_bytes);
    if (header->section_count > CAIRN_SECTION_MAX) {
        recording->damage.bad_sections += 1;
        header->section_count = CAIRN_SECTION_MAX;
    }
    return true;
}

static bool load(struct recording *recording, const struct source *source, struct error *error) {
    const struct cairn_header *header = &recording->header;
    if (!recording_load_header(recording, source, error)) return false;
    bool is_sparse = source->descriptor >= 0 && source->disk_bytes < source->size;
    recording->file_bytes = is_sparse ? source->disk_bytes : source->size;
    uint64_t budget = unpacked_most(source->size);
    for (uint32_t i = 0; i < header->section_count; i++)
        if (!load_section(recording, source, &header->sections[i], &budget, error)) return false;
    return true;
}

bool recording_open_memory(const void *bytes, size_t size, struct recording *recording,
                           struct error *error) {
    *recording = (struct recording){0};
    struct source source = {.descriptor = -1, .bytes = bytes, .size = size};
    if (load(recording, &source, error)) return true;
    recording_close(recording);
    return false;
}

static uint32_t depth_of_all;

void recording_cut_all(uint32_t frames) {
    if (!frames || !depth_of_all || frames < depth_of_all) depth_of_all = frames;
}

bool recording_open(const char *path, struct recording *recording, struct error *error) {
    *recording = (struct recording){.depth = depth_of_all};
    struct source source;
    bool is_open = source_open(path, &source, error);
    bool is_loaded = is_open && load(recording, &source, error);
    if (is_open) source_close(&source);
    if (is_loaded) return true;
    recording_close(recording);
    return error_wrap(error, "%s", path);
}

static void drop_section(struct recording_section *section) {
    if (section->mapping) munmap(section->mapping, section->mapping_size);
    *section = (struct recording_section){0};
}

void recording_close(struct recording *recording) {
    for (int kind = 0; kind < RECORDING_SECTION_KINDS; kind++)
        drop_section(&recording->sections[kind]);
    array_free(&recording->names);
}

void recording_drop_cells(struct recording *recording) {
    static const int kinds[] = {CAIRN_SECTION_CELLS, CAIRN_SECTION_CELLS_RARE,
                                OLDER_SECTION_CELLS_USE, CAIRN_SECTION_RECORDS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        drop_section(&recording->sections[kinds[i]]);
}

uint64_t recording_last_ns(const struct recording *recording) {
    const uint64_t ns_per_ms = 1000000;
    const struct cairn_header *header = &recording->header;
    return header->end_ns ? header->end_ns : header->control.clock_ms * ns_per_ms;
}

uint64_t recording_peak_ns(const struct recording *recording) {
    const struct cairn_totals *totals = &recording->header.totals;
    uint64_t at_ns = (int64_t)totals->peak_ns < 0 ? 0 : totals->peak_ns;
    struct cairn_snapshot snapshot;
    for (size_t i = 0; recording_snapshot(recording, i, &snapshot); i++) {
        if (snapshot.is_inherited || !snapshot.epoch) continue;
        bool is_before = snapshot.epoch < totals->peak_epoch;
        if (is_before ? at_ns < snapshot.time_ns : at_ns > snapshot.time_ns)
            at_ns = snapshot.time_ns;
    }
    return at_ns;
}

size_t recording_count(const struct recording *recording, uint32_t kind) {
    return recording->sections[kind].count;
}

// Copies the part of entry `index` that this version knows.
static bool copy_entry(const struct recording *recording, uint32_t kind, size_t index, void *out) {
    return recording_copy(recording, kind, index, out, known_entry_bytes[kind]);
}

bool recording_module(const struct recording *recording, size_t index,
                      struct cairn_module *module) {
    return copy_entry(recording, CAIRN_SECTION_MODULES, index, module);
}

bool recording_thread(const struct recording *recording, size_t index,
                      struct cairn_thread *thread) {
    if (!copy_entry(recording, CAIRN_SECTION_THREADS, index, thread)) return false;
    thread->name[sizeof thread->name - 1] = 0;
    return true;
}

bool recording_point(const struct recording *recording, size_t index, struct cairn_point *point) {
    return copy_entry(recording, CAIRN_SECTION_POINTS, index, point);
}

bool recording_resident(const struct recording *recording, size_t index,
                        struct cairn_resident *resident) {
    return copy_entry(recording, CAIRN_SECTION_RESIDENT, index, resident);
}

bool recording_mapper(const struct recording *recording, size_t index,
                      struct cairn_mapper *mapper) {
    return copy_entry(recording, CAIRN_SECTION_MAPPERS, index, mapper);
}

bool recording_heap_stack(const struct recording *recording, size_t index,
                          struct cairn_heap_stack *stack) {
    return copy_entry(recording, CAIRN_SECTION_HEAP_STACKS, index, stack);
}

bool recording_heap_points(const struct recording *recording, size_t index,
                           struct cairn_heap_points *points) {
    return copy_entry(recording, CAIRN_SECTION_HEAP_POINTS, index, points);
}

bool recording_picture(const struct recording *recording, size_t index,
                       struct cairn_picture *picture) {
    return copy_entry(recording, CAIRN_SECTION_PICTURES, index, picture) && picture->at_ns != 0;
}

bool recording_sizes(const struct recording *recording, size_t index, struct cairn_sizes *sizes) {
    return copy_entry(recording, CAIRN_SECTION_SIZES, index, sizes);
}

bool recording_reallocs(const struct recording *recording, size_t index,
                        struct cairn_reallocs *reallocs) {
    return copy_entry(recording, CAIRN_SECTION_REALLOCS, index, reallocs);
}

bool recording_aligned(const struct recording *recording, size_t index,
                       struct cairn_aligned *aligned) {
    return copy_entry(recording, CAIRN_SECTION_ALIGNED, index, aligned);
}

bool recording_ages(const struct recording *recording, size_t index, struct cairn_ages *ages) {
    return copy_entry(recording, CAIRN_SECTION_AGES, index, ages);
}

bool recording_snapshot(const struct recording *recording, size_t index,
                        struct cairn_snapshot *snapshot) {
    if (!copy_entry(recording, CAIRN_SECTION_SNAPSHOTS, index, snapshot)) return false;
    snapshot->label[CAIRN_LABEL_BYTES - 1] = 0;
    return true;
}

bool recording_value(const struct recording *recording, size_t index, struct cairn_value *value) {
    return copy_entry(recording, CAIRN_SECTION_VALUES, index, value);
}

bool recording_scope(const struct recording *recording, size_t id, struct cairn_scope *scope) {
    return copy_entry(recording, CAIRN_SECTION_SCOPES, id, scope);
}

bool recording_guard(const struct recording *recording, struct cairn_guard *guard) {
    return copy_entry(recording, CAIRN_SECTION_GUARD, 0, guard);
}

bool recording_overrun(const struct recording *recording, size_t index,
                       struct cairn_overrun *damage) {
    return copy_entry(recording, CAIRN_SECTION_OVERRUNS, index, damage);
}

bool recording_owner(const struct recording *recording, size_t cell_id, uint16_t *slot) {
    size_t block = cell_id / cairn_cell_block(recording->header.version);
    return copy_entry(recording, CAIRN_SECTION_OWNERS, block, slot);
}

bool recording_sampling(const struct recording *recording, struct cairn_sampling *sampling) {
    return copy_entry(recording, CAIRN_SECTION_SAMPLING, 0, sampling);
}

bool recording_is_sampled(const struct recording *recording) {
    struct cairn_sampling sampling;
    return recording_sampling(recording, &sampling) && sampling.is_on;
}

void recording_sample_cell(const struct recording *recording, size_t id,
                           struct cairn_sample_cell *cell) {
    if (!copy_entry(recording, CAIRN_SECTION_SAMPLE_CELLS, id, cell)) memset(cell, 0, sizeof *cell);
}

void recording_sample_value(const struct recording *recording, size_t index,
                            struct cairn_sample_value *value) {
    if (!copy_entry(recording, CAIRN_SECTION_SAMPLE_VALUES, index, value))
        memset(value, 0, sizeof *value);
}

bool recording_has_sample_values(const struct recording *recording) {
    return recording->sections[CAIRN_SECTION_SAMPLE_VALUES].entry_bytes != 0;
}

// Entries of older recordings end with the sums.
bool recording_sample_sizes(const struct recording *recording, size_t id,
                            struct cairn_sample_size sizes[CAIRN_SAMPLE_SIZES]) {
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_SAMPLE_CELLS];
    if (id >= section->count || section->entry_bytes < sizeof(struct cairn_sample_entry))
        return false;
    const uint8_t *entry = section->bytes + id * section->entry_bytes;
    memcpy(sizes, entry + offsetof(struct cairn_sample_entry, sizes),
           CAIRN_SAMPLE_SIZES * sizeof *sizes);
    return true;
}

const char *recording_string(struct recording *recording, uint32_t offset) {
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_STRINGS];
    size_t left = offset < section->size ? section->size - offset : 0;
    if (left > STRING_MAX_BYTES) left = STRING_MAX_BYTES;
    if (left && memchr(section->bytes + offset, 0, left))
        return (const char *)section->bytes + offset;
    recording->damage.bad_strings++;
    return "";
}

const char *recording_imported(struct recording *recording) {
    uint32_t offset = recording->header.imported;
    return offset ? recording_string(recording, offset) : NULL;
}

bool recording_is_of_owners(struct recording *recording) {
    static const char start[] = RECORDING_OF_OWNERS ": ";
    const char *note = recording_imported(recording);
    return note && !strncmp(note, start, strlen(start));
}

bool damage_is_any(const struct damage *damage) {
    return damage->missing_bytes || damage->bad_sections || damage->bad_strings ||
           damage->bad_modules || damage->bad_stacks;
}

uint64_t recording_earlier_frees(const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    bool is_expected = header->is_attached || header->control.was_off;
    return is_expected ? header->lost[CAIRN_LOST_UNKNOWN_FREE] : 0;
}

uint64_t recording_lost(const struct recording *recording, size_t kind) {
    uint64_t expected = kind == CAIRN_LOST_UNKNOWN_FREE ? recording_earlier_frees(recording) : 0;
    return recording->header.lost[kind] - expected;
}

// Without its stack, or a name, an event is still counted.
static bool changes_numbers(size_t loss) {
    return loss != CAIRN_LOST_NO_MEMORY && loss != CAIRN_LOST_MODULES &&
           loss != CAIRN_LOST_BUDGET && loss != CAIRN_LOST_EVENTS && loss != CAIRN_LOST_PROCESSES;
}

bool recording_has_begun(const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    bool has_threads = recording->sections[CAIRN_SECTION_THREADS].count > 0;
    return header->stop_reason != CAIRN_STOP_NO_MEMORY &&
           (header->state != CAIRN_STATE_RUNNING || has_threads);
}

bool recording_is_checkpoint(const struct recording *recording) {
    return recording->header.checkpoint_ns && recording->header.state == CAIRN_STATE_RUNNING;
}

bool recording_is_whole(const struct recording *recording) {
    if (!recording_has_begun(recording) || recording_is_checkpoint(recording)) return false;
    for (size_t loss = 0; loss < CAIRN_LOSS_MAX; loss++)
        if (recording_lost(recording, loss) && changes_numbers(loss)) return false;
    if (recording->header.is_partial) return false;
    return !damage_is_any(&recording->damage);
}

bool recording_is_exact(const struct recording *recording) {
    return recording_is_whole(recording) && !recording_is_sampled(recording);
}
