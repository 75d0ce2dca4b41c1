// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview_internal.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_owner_rows.h"
#include "tool/cmds/core_types.h"
#include "tool/proc/process.h"
#include "tool/watch/program.h"

enum { TOP = 3 };

// Share of resident memory, in percent, from which on blocks in use are told by type, waste and
// owner.
enum { SHOWN_SHARE = 5 };

// Returns the bytes of no use that are resident: of what was never touched nothing is. (In a core
// that counts as zero.)
static uint64_t wasted_bytes(const struct overview *overview) {
    const struct waste_row *all = &overview->waste.all;
    if (!overview->has_waste) return 0;
    return (uint64_t)(waste_value(all, FIGURE_WASTED) - waste_value(all, WASTE_UNTOUCHED));
}

static bool is_share(uint64_t bytes, uint64_t all, unsigned percent) {
    return all && bytes >= all / 100 * percent;
}

// --- the sentence

static const struct resident_part *largest_part(const struct overview *overview) {
    const struct resident_part *largest = overview->parts.items;
    for (size_t i = 1; i < overview->parts.count; i++) {
        const struct resident_part *part = &overview->parts.items[i];
        bool is_kept = part->kind == PART_CLOSED, was_kept = largest->kind == PART_CLOSED;
        if (is_kept == was_kept ? part->bytes > largest->bytes : was_kept) largest = part;
    }
    return largest;
}

static const char *allocator_of(const struct overview *overview) {
    return overview->has_other ? core_heap_of(&overview->subject)->other.name : "glibc's malloc";
}

// Returns false if much is resident only since it lies on huge pages: all of it counts as in use.
static bool are_pages_written(const struct overview *overview) {
    return !is_share(huge_pages_zero_bytes(&overview->facts.huge), overview->parts.all_bytes,
                     NOW_WASTE_SHARE);
}

// Returns whether the process' program can be recorded. That of a core is not known; then it may
// be.
static bool find_program(const struct overview *overview, struct program *program) {
    char file[PROCESS_PATH_BYTES];
    struct error unused;
    int status;
    *program = (struct program){0};
    process_path(file, overview->pid, "exe");
    return !overview->pid || !program_find(file, program, &status, &unused) || !program->obstacle;
}

bool overview_claim(const struct overview *overview, struct claim *claim) {
    struct program program;
    if (!overview->parts.count) return false;
    const struct resident_part *largest = largest_part(overview);
    const struct claim_now now = {.all_bytes = overview->parts.all_bytes,
                                  .used_bytes = resident_parts_bytes(&overview->parts, PART_USED),
                                  .free_bytes = resident_parts_bytes(&overview->parts, PART_FREE),
                                  .wasted_bytes = wasted_bytes(overview),
                                  .leaked_bytes = overview->leaked_bytes,
                                  .block_bytes = overview->block_bytes,
                                  .knows_waste = overview->has_waste && are_pages_written(overview),
                                  .largest_bytes = largest->bytes,
                                  .largest = largest->text,
                                  .allocator = allocator_of(overview),
                                  .is_largest_used = largest->kind == PART_USED,
                                  .is_core = overview->is_core,
                                  .is_recordable = find_program(overview, &program)};
    claim_of_now(claim, &now);
    return true;
}

void overview_sentence(const struct overview *overview, char text[CLAIM_SENTENCE_BYTES]) {
    struct claim claim;
    if (overview_claim(overview, &claim))
        claim_sentence(&claim, false, text);
    else
        snprintf(text, CLAIM_SENTENCE_BYTES, "it has no resident memory");
}

// --- sections

void section_add(struct section *section, uint64_t bytes, const char *label) {
    struct section_row *row = &section->rows[section->count++];
    row->bytes = bytes;
    snprintf(row->label, sizeof row->label, "%s", label);
}

static uint64_t used_blocks(const struct overview *overview) {
    const struct heap_state *state = &overview->heap;
    uint64_t count = 0;
    if (!overview->has_other)
        return state->kinds[HEAP_USED].count + state->kinds[HEAP_MAPPED].count;
    const struct glibc_heap *heap = core_heap_of(&overview->subject);
    for (size_t i = 0; i < heap->chunks.count; i++) count += chunk_is_used(&heap->chunks.items[i]);
    return count;
}

static void fill_parts(struct overview *overview, struct section *section) {
    uint64_t blocks = used_blocks(overview);
    char label[OVERVIEW_NAME_BYTES];
    section->all_bytes = overview->parts.all_bytes;
    for (size_t i = 0; i < overview->parts.count; i++) {
        const struct resident_part *part = &overview->parts.items[i];
        snprintf(label, sizeof label, "%s%s%s", part->text, part->kind == PART_USED ? ", " : "",
                 part->kind == PART_USED ? units_counted((int64_t)blocks, "block", "blocks").text
                                         : "");
        section_add(section, part->bytes, label);
    }
}

static bool fill_types(struct overview *overview, struct section *section, struct error *error) {
    struct core_type_sum rows[TOP], all;
    size_t count = TOP;
    if (!core_types_largest(&overview->subject, rows, &count, &all, error)) return false;
    section->all_bytes = all.bytes;
    for (size_t i = 0; i < count; i++)
        section_add(section, rows[i].bytes, rows[i].name ? rows[i].name : "not known");
    return true;
}

static bool fill_waste(struct overview *overview, struct section *section, struct error *error) {
    char label[KIN_LABEL_BYTES];
    const struct waste_sums *sums = &overview->waste;
    section->all_bytes = (uint64_t)waste_value(&sums->all, FIGURE_HELD);
    for (size_t i = 0; i < sums->rows.count && i < TOP; i++) {
        uint64_t bytes = (uint64_t)waste_value(&sums->rows.items[i], FIGURE_WASTED);
        if (!bytes) break;
        if (!core_kin_label(sums->subject, &sums->rows.items[i].kin, label))
            return error_set(error, "out of memory");
        section_add(section, bytes, label);
    }
    return true;
}

static bool fill_owners(struct overview *overview, struct section *section, struct error *error) {
    const struct view_options options = {.by = MEASURE_EXIT, .top = TOP, .depth = 1};
    struct owner_listing listing;
    char label[KIN_LABEL_BYTES];
    bool is_ok = true;
    if (!owner_listing_make(&overview->subject, &options, OWNER_ROWS, &listing, error))
        return false;
    section->all_bytes = listing.owners.retained[0];
    overview->leaked_bytes = listing.owners.leaked_bytes;
    for (size_t i = 0; i < listing.rows.count && section->count < RESIDENT_PARTS_MAX && is_ok;
         i++) {
        const struct owner_row *row = &listing.rows.items[i];
        if (row->left_out || row->depth) continue;
        is_ok = owner_listing_label(&listing, &row->kin, label);
        if (is_ok) section_add(section, row->retained, label);
    }
    owner_listing_free(&listing);
    return is_ok || error_set(error, "out of memory");
}

static void fill_remedies(struct overview *overview, struct section *section) {
    struct remedy remedies[REMEDIES];
    char title[REMEDY_TITLE_BYTES];
    size_t count = remedies_find(&overview->facts, false, remedies);
    section->all_bytes = overview->parts.all_bytes;
    for (size_t i = 0; i < count && i < TOP && remedies[i].class != REMEDY_NEEDS_LOG; i++) {
        core_remedy_title(&remedies[i], &overview->facts, title);
        section_add(section, remedies[i].bytes, title);
        section->rows[section->count - 1].class = core_remedy_class(&remedies[i]);
    }
}

// Returns true if blocks in use are enough of the process to be told by type, waste and owner.
static bool is_heap_shown(const struct overview *overview) {
    return (overview->has_heap || overview->has_other) &&
           is_share(resident_parts_bytes(&overview->parts, PART_USED), overview->parts.all_bytes,
                    SHOWN_SHARE);
}

typedef bool section_fill(struct overview *overview, struct section *section, struct error *error);

// Fills a section in, or keeps why it is missing.
static void fill_section(struct overview *overview, enum section_id id, section_fill *fill) {
    struct section *section = &overview->sections[id];
    struct error reason = {""};
    section->is_there = true;
    if (!fill(overview, section, &reason))
        text_escape(section->why, sizeof section->why, reason.text);
}

void overview_fill(struct overview *overview) {
    struct section *sections = overview->sections;
    struct error unused;
    if (overview->has_heap || overview->has_other) {
        overview->has_waste = waste_sums_make(&overview->subject, &overview->waste, &unused);
        if (!overview->has_waste) waste_sums_free(&overview->waste);
    }
    sections[SECTION_PARTS].is_there = sections[SECTION_REMEDIES].is_there = true;
    fill_parts(overview, &sections[SECTION_PARTS]);
    fill_remedies(overview, &sections[SECTION_REMEDIES]);
    overview_fill_go(overview);
    if (!is_heap_shown(overview)) return;
    fill_section(overview, SECTION_TYPES, fill_types);
    if (overview->has_waste) fill_section(overview, SECTION_WASTE, fill_waste);
    fill_section(overview, SECTION_OWNERS, fill_owners);
}

static const char *next_view(const struct overview *overview) {
    uint64_t all = overview->parts.all_bytes;
    const struct section *functions = &overview->sections[SECTION_GO_FUNCTIONS];
    if (functions->count && !is_heap_shown(overview)) return "functions";
    struct claim claim;
    const bool has_claim = overview_claim(overview, &claim);
    if (has_claim && claim.key == CLAIM_NOW_FREE) return "remedies";
    if (has_claim && claim.key == CLAIM_NOW_LEAKED) return "owners";
    if (!overview->is_open) return NULL;
    if (!is_heap_shown(overview)) return NULL;
    return is_share(wasted_bytes(overview), all, NOW_WASTE_SHARE) ? "waste" : "owners";
}

void overview_next(const struct overview *overview, char text[OVERVIEW_NEXT_BYTES]) {
    const char *view = next_view(overview);
    if (!view && overview->go_finding != GO_ABSENT) view = "memory";  // the rest is Go's own
    char word[OVERVIEW_NEXT_BYTES];
    struct program program;
    int pid = (int)overview->pid;
    *text = 0;
    text_quote_word(word, sizeof word, overview->word);
    if (view)
        snprintf(text, OVERVIEW_NEXT_BYTES, "cairn report --view %s %s", view, word);
    else if (overview->is_core)
        return;  // nothing more can be asked of it
    else if (strstr(overview->why_no_heap, "--no-copy-limit"))
        snprintf(text, OVERVIEW_NEXT_BYTES, "cairn report --no-copy-limit %d", pid);
    else if (find_program(overview, &program) && !program.is_static)
        snprintf(text, OVERVIEW_NEXT_BYTES, "cairn attach %d", pid);  // else it would be refused
}
