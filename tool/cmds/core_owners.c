// SPDX-License-Identifier: Apache-2.0
// The tree of tool/heap/owners.h, a line for blocks of one kind that one owner has: of one call
// stack where the process was recorded, else of one type, else of one size.
#include "tool/cmds/core_owners.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_kin.h"
#include "tool/heap/owners.h"

enum { LABEL_BYTES = KIN_LABEL_BYTES, FIGURES_COLUMNS = 33, DEPTH_MAX = 32 };

struct member {
    struct core_kin kin;
    uint64_t retained;
    uint32_t place;
};

struct owner_row {
    unsigned depth;
    struct core_kin kin;
    uint64_t retained, own;  // bytes; own: of the blocks themselves
    uint64_t blocks;         // retained ones
    uint32_t count;          // of the blocks themselves
    size_t left_out;         // rows that would follow at this depth, with `retained` and `blocks`
};

struct listing {
    struct core_subject *subject;
    struct core_owners owners;
    const struct view_options *options;
    unsigned depth;  // of rows; below are none
    ARRAY(struct owner_row) rows;
};

// --- which blocks are alike

static struct core_kin kin_of(const struct listing *listing, uint32_t place) {
    const struct core_owners *owners = &listing->owners;
    if (core_owners_root(owners, place)) return (struct core_kin){KIND_ROOT, place};
    uint32_t number = core_owners_block(owners, place);
    uint64_t address =
        block_map_address(&listing->subject->reach.map, core_graph_place(&owners->graph, number));
    return core_kin_of(listing->subject, address, owners->sizes[number]);
}

static int by_kin(const void *a, const void *b) {
    const struct member *one = a, *other = b;
    if (one->kin.kind != other->kin.kind) return one->kin.kind < other->kin.kind ? -1 : 1;
    if (one->kin.value != other->kin.value) return one->kin.value < other->kin.value ? -1 : 1;
    return one->place < other->place ? -1 : one->place > other->place;
}

// --- rows

struct group {
    struct owner_row row;
    const struct member *members;
    size_t count;
    ARRAY(struct member) below;  // what they own of other kinds
};

static int by_retained(const void *a, const void *b) {
    const struct owner_row *one = &((const struct group *)a)->row,
                           *other = &((const struct group *)b)->row;
    if (one->retained != other->retained) return one->retained > other->retained ? -1 : 1;
    return one->kin.kind != other->kin.kind ? (one->kin.kind < other->kin.kind ? -1 : 1)
                                            : (one->kin.value < other->kin.value ? -1 : 1);
}

// Adds the block at a place to those of a row.
static void add_own(const struct listing *listing, struct owner_row *row, uint32_t place) {
    row->count++;
    if (row->kin.kind != KIND_ROOT)
        row->own += listing->owners.sizes[core_owners_block(&listing->owners, place)];
}

// What the group's blocks own, in the order of its kin. Of their own kind, as the nodes of a list
// or a tree are, they are in the group as well. False without memory.
static bool open_group(const struct listing *listing, struct group *group) {
    const struct core_owners *owners = &listing->owners;
    ARRAY(uint32_t) places = {0};
    bool is_ok = true;
    for (size_t i = 0; i < group->count && is_ok; i++) {
        uint32_t *slot = array_push(&places);
        if (slot) *slot = group->members[i].place;
        is_ok = slot;
    }
    for (size_t i = 0; i < places.count && is_ok; i++) {
        uint32_t place = places.items[i];
        for (uint32_t k = owners->starts[place]; k < owners->starts[place + 1] && is_ok; k++) {
            uint32_t child = owners->children[k];
            struct core_kin kin = kin_of(listing, child);
            if (kin.kind != KIND_ROOT && core_kin_is(&kin, &group->row.kin)) {
                uint32_t *slot = array_push(&places);
                if (slot) *slot = child;
                is_ok = slot;
                add_own(listing, &group->row, child);
            } else {
                struct member *member = array_push(&group->below);
                if (member) *member = (struct member){kin, owners->retained[child], child};
                is_ok = member;
            }
        }
    }
    array_free(&places);
    if (is_ok && group->below.count)
        qsort(group->below.items, group->below.count, sizeof *group->below.items, by_kin);
    return is_ok;
}

// The members by kin, those that keep most first. NULL without memory.
static struct group *groups_of(const struct listing *listing, const struct member *members,
                               size_t count, unsigned depth, size_t *group_count) {
    struct group *groups = malloc((count + 1) * sizeof *groups);
    *group_count = 0;
    for (size_t i = 0; groups && i < count; i++) {
        bool is_new = !i || !core_kin_is(&members[i].kin, &members[i - 1].kin);
        if (is_new)
            groups[(*group_count)++] = (struct group){
                .row = {.depth = depth, .kin = members[i].kin}, .members = &members[i]};
        struct group *group = &groups[*group_count - 1];
        group->count++;
        group->row.retained += members[i].retained;
        group->row.blocks += listing->owners.counts[members[i].place];
        add_own(listing, &group->row, members[i].place);
    }
    if (groups) qsort(groups, *group_count, sizeof *groups, by_retained);
    return groups;
}

static bool is_worth_a_row(const struct listing *listing, const struct group *group, size_t rank) {
    const struct view_options *options = listing->options;
    return (!options->top || rank < options->top) && group->row.retained &&
           (double)group->row.retained >= options->threshold * (double)listing->owners.retained[0];
}

static bool add_row(struct listing *listing, const struct owner_row *row) {
    struct owner_row *slot = array_push(&listing->rows);
    if (slot) *slot = *row;
    return slot;
}

static bool add_rows(struct listing *listing, const struct group *above, unsigned depth) {
    size_t group_count = 0;
    struct group *groups =
        groups_of(listing, above->below.items, above->below.count, depth, &group_count);
    struct owner_row rest = {.depth = depth};
    bool is_ok = groups;
    for (size_t i = 0; i < group_count && is_ok; i++) {
        struct group *group = &groups[i];
        if (!is_worth_a_row(listing, group, i)) {
            rest.left_out++;
            rest.retained += group->row.retained;
            rest.blocks += group->row.blocks;
            continue;
        }
        is_ok = open_group(listing, group) && add_row(listing, &group->row) &&
                (depth + 1 >= listing->depth || add_rows(listing, group, depth + 1));
        array_free(&group->below);
    }
    is_ok = is_ok && (!rest.retained || add_row(listing, &rest));
    free(groups);
    return is_ok;
}

// --- names

static bool resolve(const struct listing *listing, struct error *error) {
    const struct core_subject *subject = listing->subject;
    if (!subject->is_recorded) return true;
    for (size_t i = 0; i < listing->rows.count; i++) {
        const struct owner_row *row = &listing->rows.items[i];
        if (!row->left_out) core_kin_want(subject, &row->kin);
    }
    return names_resolve(subject->opened.names, error);
}

static bool label_of(const struct listing *listing, const struct core_kin *kin, char *label) {
    if (kin->kind != KIND_ROOT) return core_kin_label(listing->subject, kin, label);
    snprintf(label, LABEL_BYTES, "%s",
             core_owners_root(&listing->owners, (uint32_t)kin->value)->name);
    return true;
}

// --- the screen

static void print_figures(const struct listing *listing, const struct terminal *terminal,
                          const struct owner_row *row) {
    uint64_t all = listing->owners.retained[0];
    double share = all ? 100.0 * (double)row->retained / (double)all : 0;
    fprintf(terminal->out, "%10s %5.1f %% %11s  ", units_size((int64_t)row->retained).text, share,
            units_count((int64_t)row->blocks).text);
    terminal_indent(terminal, 2 * (size_t)row->depth);
}

static bool print_row(const struct listing *listing, const struct terminal *terminal,
                      const struct owner_row *row) {
    char label[LABEL_BYTES], more[LABEL_BYTES] = "";
    print_figures(listing, terminal, row);
    if (row->left_out) {
        terminal_print(terminal, STYLE_DIM, "%s\n",
                       units_counted((int64_t)row->left_out, "other", "others").text);
        return true;
    }
    if (!label_of(listing, &row->kin, label)) return false;
    if (row->kin.kind != KIND_ROOT)
        snprintf(more, sizeof more, "  %s, %s",
                 units_counted((int64_t)row->count, "block", "blocks").text,
                 units_size((int64_t)row->own).text);
    size_t used = FIGURES_COLUMNS + 2 * (size_t)row->depth + strlen(more);
    if (terminal->is_terminal)
        text_cut(label, terminal->columns > used ? terminal->columns - used : 1);
    terminal_print(terminal, row->kin.kind == KIND_ROOT ? STYLE_STRONG : STYLE_NAME, "%s", label);
    terminal_print(terminal, STYLE_DIM, "%s\n", more);
    return true;
}

static bool print_screen(const struct listing *listing, struct error *error) {
    const struct terminal terminal = terminal_of(stdout);
    const struct core_owners *owners = &listing->owners;
    char name[LABEL_BYTES];
    text_escape(name, sizeof name, listing->subject->look.name);
    terminal_print(&terminal, STYLE_STRONG, "%s", name);
    printf(" · %s in %s by who keeps them; of %s no single block or root refers to all\n",
           units_size((int64_t)owners->retained[0]).text,
           units_counted(owners->counts[0], "block", "blocks").text,
           units_size((int64_t)owners->shared_bytes).text);
    if (owners->inner_count)
        terminal_print(
            &terminal, STYLE_DIM,
            "to %s in %s words lead only inside, not to the start: some may be numbers\n",
            units_size((int64_t)owners->inner_bytes).text,
            units_counted((int64_t)owners->inner_count, "block", "blocks").text);
    terminal_print(&terminal, STYLE_DIM, "  RETAINED   SHARE      BLOCKS  OWNER\n");
    bool is_ok = true;
    for (size_t i = 0; i < listing->rows.count && is_ok; i++)
        is_ok = print_row(listing, &terminal, &listing->rows.items[i]);
    return is_ok || error_set(error, "out of memory");
}

static bool print_json(const struct listing *listing, struct error *error) {
    const struct core_owners *owners = &listing->owners;
    char label[LABEL_BYTES];
    struct json json;
    bool is_ok = true;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.owners/1");
    json_put_uint(&json, "bytes", owners->retained[0]);
    json_put_uint(&json, "blocks", owners->counts[0]);
    json_put_uint(&json, "leaked_bytes", owners->leaked_bytes);
    json_put_uint(&json, "leaked_blocks", owners->leaked_count);
    json_put_uint(&json, "shared_bytes", owners->shared_bytes);
    json_put_uint(&json, "shared_blocks", owners->shared_count);
    json_put_uint(&json, "inner_bytes", owners->inner_bytes);
    json_put_uint(&json, "inner_blocks", owners->inner_count);
    json_open_array(&json, "owners");
    for (size_t i = 0; i < listing->rows.count && is_ok; i++) {
        const struct owner_row *row = &listing->rows.items[i];
        is_ok = row->left_out || label_of(listing, &row->kin, label);
        json_open_object(&json, NULL);
        json_put_uint(&json, "depth", row->depth);
        json_put_string(&json, "kind", row->left_out ? "others" : core_kin_word(row->kin.kind));
        json_put_string(&json, "name", row->left_out ? NULL : label);
        json_put_uint(&json, "retained_bytes", row->retained);
        json_put_uint(&json, "retained_blocks", row->blocks);
        json_put_uint(&json, "own_bytes", row->own);
        json_put_uint(&json, "own_blocks", row->kin.kind == KIND_ROOT ? 0 : row->count);
        json_put_uint(&json, "left_out", row->left_out);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return is_ok || error_set(error, "out of memory");
}

static bool list(struct listing *listing, const struct request *request, struct error *error) {
    const struct member all = {.place = 0};
    struct group everything = {.members = &all, .count = 1};
    size_t depth = listing->options->depth;
    listing->depth = depth && depth < DEPTH_MAX ? (unsigned)depth : DEPTH_MAX;
    bool is_ok = open_group(listing, &everything) && add_rows(listing, &everything, 0);
    array_free(&everything.below);
    if (!is_ok) return error_set(error, "out of memory");
    if (!resolve(listing, error)) return false;
    return request->is_json ? print_json(listing, error) : print_screen(listing, error);
}

bool core_owners_report(const char *word, const struct request *request, bool has_limit,
                        struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct core_subject subject;
    struct listing listing = {.subject = &subject, .options = &request->options};
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok = core_need_typed(&subject, error) &&
                 core_owners_find(&subject.reach, subject.types, &listing.owners, error);
    if (is_ok) {
        is_ok = list(&listing, request, error);
        core_print_doubts(&subject);
        core_owners_free(&listing.owners);
    }
    if (!is_ok) heap_look_blame(&subject.look, error);
    array_free(&listing.rows);
    core_subject_close(&subject);
    return is_ok;
}
