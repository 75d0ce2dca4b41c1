// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_save.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/import/import.h"
#include "tool/model/index_table.h"
#include "tool/render/frames.h"

enum { DEPTH_MOST = 64, INNER_PLACES = 2 };

struct placed_kin {
    struct core_kin kin;
    uint32_t place;
};

struct saving {
    const struct owner_listing *listing;
    struct imported *imported;
    struct index_table index;  // of kins
    ARRAY(struct placed_kin) kins;
    uint32_t way[DEPTH_MOST];  // places from the root inwards
    size_t next_block;         // of the listing, sorted by rows
};

// --- places

// The frame that a stack is named by; NULL: none is known. False without memory.
static bool find_frame(const struct saving *saving, const struct core_kin *kin,
                       const struct frame **frame) {
    const struct core_subject *subject = saving->listing->subject;
    const struct frame_names names = names_frames(subject->opened.names);
    struct frame_list frames = {0};
    uint32_t node = subject->opened.profile.stacks[kin->value].node;
    if (!frame_list_fill(&frames, &subject->opened.profile, &names, node, 0)) return false;
    *frame = frame_list_first_own(&frames);
    frame_list_free(&frames);
    return true;
}

static bool name_place(const struct saving *saving, const struct core_kin *kin,
                       const struct frame *frame) {
    char label[KIN_LABEL_BYTES];
    if (frame)
        frame_label(frame, label, sizeof label, sizeof label);
    else if (!owner_listing_label(saving->listing, kin, label))
        return false;
    // the number at the end of a library's name is none that compilers append to functions
    size_t length = strlen(label);
    bool is_data = !frame && !strncmp(label, OWNER_DATA_OF, sizeof OWNER_DATA_OF - 1);
    if (is_data && length + sizeof "()" <= sizeof label) {
        memmove(label + 1, label, length);
        label[0] = '(';
        memcpy(label + 1 + length, ")", sizeof ")");
    }
    return import_frame(saving->imported, label, frame ? frame->file : NULL,
                        frame ? frame->line : 0);
}

// What it is, or the file that a variable or a call is in: "(in libfoo.so)", which is no module
// whose functions have rules.
static uint32_t module_of(const struct saving *saving, const struct core_kin *kin,
                          const struct frame *frame) {
    static const char *const kinds[] = {"(root)", "(stack)", "(type)", "(size)", "(text)"};
    char text[KIN_LABEL_BYTES];
    const char *path = frame ? frame->module : NULL;
    if (kin->kind == KIND_ROOT)
        path = core_owners_root(&saving->listing->owners, (uint32_t)kin->value)->module;
    if (!path || !*path) return import_module(saving->imported, kinds[kin->kind]);
    snprintf(text, sizeof text, "(in %s)", text_base_name(path));
    return import_module(saving->imported, text);
}

static uint32_t place_of(struct saving *saving, const struct core_kin *kin) {
    const struct frame *frame = NULL;
    uint64_t hash = hash_mix(kin->value, index_table_seed() + kin->kind);
    struct index_probe probe = index_probe_start(&saving->index, hash);
    for (uint32_t i; index_probe_next(&saving->index, &probe, &i);)
        if (i < saving->kins.count && core_kin_is(&saving->kins.items[i].kin, kin))
            return saving->kins.items[i].place;
    struct placed_kin *placed = array_push(&saving->kins);
    if (!placed || !index_table_insert(&saving->index, hash, (uint32_t)(saving->kins.count - 1)))
        return IMPORT_NONE;
    placed->kin = *kin;
    placed->place = IMPORT_NONE;
    if (kin->kind == KIND_STACK && !find_frame(saving, kin, &frame)) return IMPORT_NONE;
    placed->place = import_place(saving->imported, module_of(saving, kin, frame));
    bool is_ok = placed->place != IMPORT_NONE && name_place(saving, kin, frame);
    return is_ok ? placed->place : IMPORT_NONE;
}

// --- rows

// What lies at the end of a way.
struct kept {
    uint64_t bytes, blocks;
    uint64_t ages[CAIRN_AGE_BUCKETS];  // blocks, by bits of their age
};

static bool add_ages(struct saving *saving, uint32_t node, const struct kept *kept) {
    bool is_ok = true;
    for (uint32_t bits = 0; bits < CAIRN_AGE_BUCKETS && is_ok; bits++)
        is_ok = !kept->ages[bits] || import_age(saving->imported, node, bits, kept->ages[bits]);
    return is_ok;
}

// Of what is only here (innermost first; IMPORT_NONE: not known).
static bool add_stack(struct saving *saving, unsigned depth, const uint32_t inner[INNER_PLACES],
                      const struct kept *kept) {
    uint32_t places[DEPTH_MOST + INNER_PLACES], node;
    const uint64_t bytes = kept->bytes, blocks = kept->blocks;
    size_t count = 0;
    const struct import_values values = {.calls = (int64_t)blocks,
                                         .allocated_bytes = (int64_t)bytes,
                                         .peak_blocks = (int64_t)blocks,
                                         .peak_bytes = (int64_t)bytes,
                                         .exit_blocks = (int64_t)blocks,
                                         .exit_bytes = (int64_t)bytes};
    if (!blocks) return true;
    for (size_t i = 0; i < INNER_PLACES; i++)
        if (inner[i] != IMPORT_NONE) places[count++] = inner[i];
    for (unsigned i = depth + 1; i-- > 0;) places[count++] = saving->way[i];
    return import_stack_of(saving->imported, places, count, &values, &node) &&
           add_ages(saving, node, kept);
}

static void keep(struct kept *kept, const struct owner_block *block) {
    kept->blocks++;
    kept->bytes += block->size;
    if (block->age_bits == OWNER_NO_AGE) return;
    kept->ages[block->age_bits < CAIRN_AGE_BUCKETS ? block->age_bits : CAIRN_AGE_BUCKETS - 1]++;
}

// The place of a type or text; IMPORT_NONE without one, and with is_ok false without memory.
static uint32_t place_if(struct saving *saving, enum core_kind kind, const char *name,
                         bool *is_ok) {
    const struct core_kin kin = {kind, (uintptr_t)name};
    uint32_t place = name ? place_of(saving, &kin) : IMPORT_NONE;
    *is_ok = *is_ok && (!name || place != IMPORT_NONE);
    return place;
}

// The blocks of a row by type and text: those that are alike lie together.
static bool add_blocks(struct saving *saving, uint32_t index, const struct owner_row *row) {
    const struct owner_listing *listing = saving->listing;
    size_t *next = &saving->next_block;
    bool is_ok = true;
    while (*next < listing->blocks.count && listing->blocks.items[*next].row == index && is_ok) {
        const struct owner_block first = listing->blocks.items[*next];
        struct kept kept = {0};
        for (; *next < listing->blocks.count; ++*next) {
            const struct owner_block *block = &listing->blocks.items[*next];
            if (block->row != index || block->type != first.type || block->text != first.text)
                break;
            keep(&kept, block);
        }
        bool has_type = first.type && row->kin.kind != KIND_TYPE;
        const uint32_t inner[INNER_PLACES] = {
            place_if(saving, KIND_TEXT, first.text, &is_ok),
            place_if(saving, KIND_TYPE, has_type ? first.type : NULL, &is_ok)};
        is_ok = is_ok && add_stack(saving, row->depth, inner, &kept);
    }
    return is_ok;
}

// What a row keeps that is in no row below it: deeper than rows go.
static bool add_rest(struct saving *saving, size_t index) {
    const struct owner_listing *listing = saving->listing;
    const struct owner_row *row = &listing->rows.items[index];
    bool is_root = row->kin.kind == KIND_ROOT;
    struct kept kept = {.bytes = row->retained - row->own,
                        .blocks = row->blocks - (is_root ? 0 : row->count)};
    for (size_t i = index + 1; i < listing->rows.count; i++) {
        const struct owner_row *below = &listing->rows.items[i];
        if (below->depth <= row->depth) break;
        if (below->depth > row->depth + 1) continue;
        kept.bytes -= below->retained;
        kept.blocks -= below->blocks;
    }
    const uint32_t nothing[INNER_PLACES] = {IMPORT_NONE, IMPORT_NONE};
    return add_stack(saving, row->depth, nothing, &kept);
}

static bool add_rows(struct saving *saving) {
    const struct owner_listing *listing = saving->listing;
    bool is_ok = true;
    for (size_t i = 0; i < listing->rows.count && is_ok; i++) {
        const struct owner_row *row = &listing->rows.items[i];
        if (row->left_out || row->depth >= DEPTH_MOST) continue;
        saving->way[row->depth] = place_of(saving, &row->kin);
        is_ok = saving->way[row->depth] != IMPORT_NONE && add_blocks(saving, (uint32_t)i, row) &&
                add_rest(saving, i);
    }
    return is_ok;
}

static int by_row_and_type(const void *a, const void *b) {
    const struct owner_block *one = a, *other = b;
    if (one->row != other->row) return one->row < other->row ? -1 : 1;
    if (one->type != other->type) return (uintptr_t)one->type < (uintptr_t)other->type ? -1 : 1;
    return (uintptr_t)one->text < (uintptr_t)other->text ? -1 : one->text != other->text;
}

static void describe(struct saving *saving) {
    const struct core_subject *subject = saving->listing->subject;
    struct imported *imported = saving->imported;
    const uint64_t ns_per_s = 1000000000u;
    const char *program = subject->is_recorded ? subject->header.executable : "";
    // what is mapped first is the program
    if (!*program && subject->core->files.count) program = subject->core->files.items[0].path;
    if (!*program) program = subject->look.name;
    snprintf(imported->command, sizeof imported->command, "%s", program);
    snprintf(imported->lacks, sizeof imported->lacks, "its stacks are who keeps whom");
    imported->start_unix_ns = (uint64_t)time(NULL) * ns_per_s;
    imported->pid = subject->core->pid;
    imported->has_waste = subject->has_waste;
    imported->waste = subject->waste;
}

bool core_image_write(FILE *out, const struct owner_listing *listing, struct error *error) {
    struct imported imported;
    struct saving saving = {.listing = listing, .imported = &imported};
    if (listing->blocks.count)
        qsort(listing->blocks.items, listing->blocks.count, sizeof *listing->blocks.items,
              by_row_and_type);
    if (!import_start(&imported, error)) return false;
    describe(&saving);
    bool is_ok = add_rows(&saving) ? import_write(out, &imported, RECORDING_OF_OWNERS, error)
                                   : error_set(error, "out of memory");
    import_free(&imported);
    index_table_free(&saving.index);
    array_free(&saving.kins);
    return is_ok;
}

// The image as a file in memory, with a path to it; -1 with an error.
static int write_in_memory(const struct owner_listing *listing, char path[PATH_MAX],
                           struct error *error) {
    int file = memfd_create("owners", MFD_CLOEXEC), copy = file < 0 ? -1 : dup(file);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    bool is_ok = out ? core_image_write(out, listing, error)
                     : error_set(error, "no memory for who keeps what");
    if (out && fclose(out) && is_ok) is_ok = error_set(error, "no memory for who keeps what");
    snprintf(path, PATH_MAX, "/proc/self/fd/%d", file);
    if (is_ok) return file;
    if (!out && copy >= 0) close(copy);
    if (file >= 0) close(file);
    return -1;
}

bool core_image_open(const struct owner_listing *listing, struct opened *opened,
                     struct error *error) {
    char path[PATH_MAX];
    int file = write_in_memory(listing, path, error);
    if (file < 0) return false;
    bool is_ok = opened_open(path, opened, error);
    close(file);
    return is_ok;
}

int core_image_take(const char *word, bool has_limit, bool has_contents, char path[PATH_MAX],
                    struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    const struct view_options everything = {0};
    struct core_subject subject;
    struct owner_listing listing;
    int file = -1;
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return -1;
    enum owner_detail detail = has_contents ? OWNER_TEXTS : OWNER_BLOCKS;
    if (waste_note(&subject, error) &&
        owner_listing_make(&subject, &everything, detail, &listing, error)) {
        file = write_in_memory(&listing, path, error);
        owner_listing_free(&listing);
    }
    if (file < 0) heap_look_blame(&subject.look, error);
    core_print_doubts(&subject);
    core_subject_close(&subject);
    return file;
}

bool core_save(struct core_subject *subject, const char *path, const struct core_saving *how,
               struct error *error) {
    const struct view_options everything = {0};
    struct owner_listing listing;
    struct output output;
    char safe[KIN_LABEL_BYTES];
    if (!waste_note(subject, error) ||
        !owner_listing_make(subject, &everything, how->has_contents ? OWNER_TEXTS : OWNER_BLOCKS,
                            &listing, error))
        return heap_look_blame(&subject->look, error);
    listing.main_tid = subject->core->pid;
    bool is_ok = output_open(path, how->can_replace, &output, error);
    if (is_ok) {
        is_ok = core_image_write(output.file, &listing, error) && output_commit(&output, error);
        if (!is_ok) output_cancel(&output);
    }
    if (is_ok) {
        text_escape(safe, sizeof safe, path);
        fprintf(stderr, "cairn: %s: %s in %s   next: cairn report --view tree %s\n", safe,
                units_size((int64_t)listing.owners.retained[0]).text,
                units_counted((int64_t)listing.owners.counts[0], "block", "blocks").text, safe);
    }
    owner_listing_free(&listing);
    return is_ok;
}
