// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_owner_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/query/progress.h"

enum { DEPTH_MAX = 32 };

struct member {
    struct core_kin kin;
    uint64_t retained;
    uint32_t place;
};

// --- which blocks are alike

static uint64_t address_of(const struct owner_listing *listing, uint32_t number) {
    return block_map_address(&listing->subject->reach.map,
                             core_graph_place(&listing->owners.graph, number));
}

static struct core_kin kin_of(const struct owner_listing *listing, uint32_t place) {
    const struct core_owners *owners = &listing->owners;
    if (core_owners_root(owners, place)) return (struct core_kin){KIND_ROOT, place};
    uint32_t number = core_owners_block(owners, place);
    // a file of blocks has the stack of each
    return (listing->has_blocks ? core_kin_of : core_kin_alike)(
        listing->subject, address_of(listing, number), core_owners_size(owners, place));
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
static void add_own(const struct owner_listing *listing, struct owner_row *row, uint32_t place) {
    row->count++;
    if (row->kin.kind != KIND_ROOT) row->own += core_owners_size(&listing->owners, place);
}

// The text that a block begins with, in quotes; NULL: it is none (of ASCII), or a short one, or it
// may be an address. Equal texts are the same pointer.
static const char *text_at(struct owner_listing *listing, uint64_t address, uint64_t size) {
    enum { LEAST = 4, MOST = 48 };
    char bytes[MOST + 1] = {0}, safe[2 * MOST], quoted[2 * MOST + sizeof "\"\"..."];
    size_t count = size < MOST ? size : MOST;
    if (size < LEAST || !core_read(listing->subject->core, address, bytes, count)) return NULL;
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    if (block_map_may_have(&listing->subject->reach.map, word)) return NULL;
    size_t length = strnlen(bytes, count);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] < ' ' || bytes[i] > '~') return NULL;
    if (length < LEAST) return NULL;
    text_escape(safe, sizeof safe, bytes);
    int written = snprintf(quoted, sizeof quoted, "\"%s\"%s", safe,
                           length == MOST && size > MOST ? "..." : "");
    return string_pool_intern(listing->texts, quoted, (size_t)written);
}

static uint32_t age_bits_at(struct owner_listing *listing, uint64_t address) {
    uint64_t age_ms;
    if (!core_births_age(&listing->births, address, &age_ms)) return OWNER_NO_AGE;
    return age_ms ? 64 - (uint32_t)__builtin_clzll(age_ms) : 0;
}

// Of the row that comes next.
static bool note_block(struct owner_listing *listing, uint32_t place) {
    if (!listing->has_blocks || core_owners_root(&listing->owners, place)) return true;
    uint32_t number = core_owners_block(&listing->owners, place);
    uint64_t size = core_owners_size(&listing->owners, place);
    uint64_t address = address_of(listing, number);
    const char *type = core_type_name(listing->subject, address, size);
    struct owner_block *block = array_push(&listing->blocks);
    if (block)
        *block = (struct owner_block){.row = (uint32_t)listing->rows.count,
                                      .type = type,
                                      .text = listing->has_texts ? text_at(listing, address, size)
                                                                 : NULL,
                                      .size = size,
                                      .age_bits = age_bits_at(listing, address)};
    return block;
}

// What the group's blocks own, in the order of its kin. Of their own kind, as the nodes of a list
// or a tree are, they are in the group as well. False without memory.
static bool open_group(struct owner_listing *listing, struct group *group) {
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
        is_ok = note_block(listing, place);
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
static struct group *groups_of(const struct owner_listing *listing, const struct member *members,
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

static bool is_worth_a_row(const struct owner_listing *listing, const struct group *group,
                           size_t rank) {
    const struct view_options *options = listing->options;
    return (!options->top || rank < options->top) && group->row.retained &&
           (double)group->row.retained >= options->threshold * (double)listing->owners.retained[0];
}

static bool add_row(struct owner_listing *listing, const struct owner_row *row) {
    struct owner_row *slot = array_push(&listing->rows);
    if (slot) *slot = *row;
    return slot;
}

static bool add_rows(struct owner_listing *listing, const struct group *above, unsigned depth) {
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

static bool resolve(const struct owner_listing *listing, struct error *error) {
    const struct core_subject *subject = listing->subject;
    if (!subject->is_recorded) return true;
    for (size_t i = 0; i < listing->rows.count; i++) {
        const struct owner_row *row = &listing->rows.items[i];
        if (!row->left_out) core_kin_want(subject, &row->kin);
    }
    return names_resolve(subject->opened.names, error);
}

bool owner_listing_label(const struct owner_listing *listing, const struct core_kin *kin,
                         char label[KIN_LABEL_BYTES]) {
    if (kin->kind != KIND_ROOT) return core_kin_label(listing->subject, kin, label);
    owner_root_label(core_owners_root(&listing->owners, (uint32_t)kin->value), listing->main_tid,
                     label);
    return true;
}

// --- all of it

static bool list(struct owner_listing *listing, struct error *error) {
    const struct member all = {.place = 0};
    struct group everything = {.members = &all, .count = 1};
    size_t depth = listing->options->depth;
    bool has_blocks = listing->has_blocks;
    listing->depth = depth && depth < DEPTH_MAX ? (unsigned)depth : DEPTH_MAX;
    listing->has_blocks = false;  // everything is no row
    bool is_ok = open_group(listing, &everything);
    listing->has_blocks = has_blocks;
    is_ok = is_ok && add_rows(listing, &everything, 0);
    array_free(&everything.below);
    return is_ok ? resolve(listing, error) : error_set(error, "out of memory");
}

bool owner_listing_make(struct core_subject *subject, const struct view_options *options,
                        enum owner_detail detail, struct owner_listing *listing,
                        struct error *error) {
    *listing = (struct owner_listing){.subject = subject,
                                      .options = options,
                                      .has_blocks = detail >= OWNER_BLOCKS,
                                      .has_texts = detail >= OWNER_TEXTS,
                                      .texts = string_pool_open()};
    if (!listing->texts) return error_set(error, "out of memory");
    if (subject->is_recorded) listing->births = core_births_of(subject->core, &subject->header);
    progress_wait("finding who keeps its blocks", subject->look.live.copied_bytes);
    bool are_found =
        core_need_map(subject, error) && core_need_types(subject, error) &&
        core_owners_find(&subject->reach, subject->types, true, &listing->owners, error);
    // types last: both at once would take as much memory again
    bool is_ok = are_found && core_need_typed(subject, error) && list(listing, error);
    progress_wait_end();
    if (!are_found)
        string_pool_close(listing->texts);
    else if (!is_ok)
        owner_listing_free(listing);
    return is_ok;
}

void owner_listing_free(struct owner_listing *listing) {
    core_owners_free(&listing->owners);
    array_free(&listing->rows);
    array_free(&listing->blocks);
    string_pool_close(listing->texts);
}
