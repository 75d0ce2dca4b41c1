// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_types.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/heap/containers.h"
#include "tool/model/index_table.h"
#include "tool/query/look_answer.h"

enum { NAME_BYTES = 1024 };

// What a report works on.
struct about {
    struct core_subject *subject;
    const struct request *request;
};

static bool open_about(const char *word, const struct request *request, bool has_limit,
                       bool (*print)(const struct about *about, struct error *error),
                       struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct core_subject subject;
    const struct about about = {&subject, request};
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok = core_need_typed(&subject, error) && print(&about, error);
    if (is_ok)
        core_print_doubts(&subject);
    else
        heap_look_blame(&subject.look, error);
    core_subject_close(&subject);
    return is_ok;
}

// --- types

struct type_sums {
    ARRAY(struct core_type_sum) rows;
    struct index_table index;  // of rows, by name
    uint64_t count, bytes;
};

static struct core_type_sum *row_of(struct type_sums *sums, const char *name) {
    uint64_t hash = hash_mix((uintptr_t)name, index_table_seed());
    struct index_probe probe = index_probe_start(&sums->index, hash);
    for (uint32_t i; index_probe_next(&sums->index, &probe, &i);)
        if (sums->rows.items[i].name == name) return &sums->rows.items[i];
    struct core_type_sum *row = array_push(&sums->rows);
    if (!row || !index_table_insert(&sums->index, hash, (uint32_t)(sums->rows.count - 1)))
        return NULL;
    *row = (struct core_type_sum){.name = name};
    return row;
}

static int by_bytes(const void *a, const void *b) {
    const struct core_type_sum *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes > right->bytes ? -1 : 1;
    if (!left->name || !right->name) return left->name ? -1 : 1;
    return strcmp(left->name, right->name);
}

struct adding {
    struct core_subject *subject;
    struct type_sums *sums;
    bool is_failed;
};

static bool add_member(void *context, const struct core_member *member) {
    struct adding *adding = context;
    struct core_type_sum *row =
        row_of(adding->sums, core_type_name(adding->subject, member->address, member->size));
    adding->is_failed = !row;
    if (!row) return false;
    row->count++;
    row->bytes += member->size;
    adding->sums->count++;
    adding->sums->bytes += member->size;
    return true;
}

static bool sum_types(const struct about *about, struct type_sums *sums, struct error *error) {
    const struct core_question used = {.set = SET_USED};
    struct adding adding = {about->subject, sums, false};
    if (!core_each_member(about->subject, &used, add_member, &adding, error)) return false;
    if (adding.is_failed) return error_set(error, "out of memory");
    if (sums->rows.count)
        qsort(sums->rows.items, sums->rows.count, sizeof *sums->rows.items, by_bytes);
    return true;
}

static void claim_of_types(const struct type_sums *sums, struct claim *claim) {
    *claim = (struct claim){.key = CLAIM_TYPES};
    claim_set(claim, "bytes", (int64_t)sums->bytes);
    claim_set(claim, "blocks", (int64_t)sums->count);
    claim_set(claim, "unknown_bytes", 0);
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct core_type_sum *row = &sums->rows.items[i];
        if (!row->name) claim_set(claim, "unknown_bytes", (int64_t)row->bytes);
        if (!row->name || claim_is_set(claim, "largest")) continue;
        claim_set_text(claim, "largest", row->name);
        claim_set(claim, "largest_bytes", (int64_t)row->bytes);
        claim_set(claim, "largest_blocks", (int64_t)row->count);
    }
}

enum type_column { TYPE_BYTES, TYPE_SHARE, TYPE_BLOCKS, TYPE_NAME, TYPE_COLUMNS };

static const struct answer_column type_columns[TYPE_COLUMNS] = {
    [TYPE_BYTES] = ANSWER_FIGURES("bytes", "BYTES", ANSWER_BYTES, 10),
    [TYPE_SHARE] = ANSWER_FIGURES("share", "SHARE", ANSWER_SHARE, 7),
    [TYPE_BLOCKS] = ANSWER_FIGURES("blocks", "BLOCKS", ANSWER_COUNT, 11),
    [TYPE_NAME] = ANSWER_NAMES("type", ANSWER_TAIL, .head = "TYPE", .unknown = "not known")};

struct type_list {
    const struct type_sums *sums;
    size_t at;
};

static bool next_type(struct answer *answer, struct answer_row *row) {
    struct type_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct core_type_sum *sum = &list->sums->rows.items[list->at++];
    answer_set(row, TYPE_SHARE, (int64_t)sum->bytes);
    answer_set(row, TYPE_BYTES, (int64_t)sum->bytes);
    answer_set(row, TYPE_BLOCKS, (int64_t)sum->count);
    answer_set_text(row, TYPE_NAME, sum->name);
    return true;
}

// Says whose blocks they are and why some have no type, and prints the rows.
static bool print_answer(const struct about *about, struct answer *answer,
                         const struct claim *claim, struct error *error) {
    struct look_answer of;
    const char *why = core_sources_missing(about->subject);
    look_answer_of(&of, &about->subject->look, answer);
    answer->options = &about->request->options;
    answer->shown = answer_cut(answer->options->top, answer->count);
    look_answer_claims(answer, claim, 1);
    if (why) answer_note_above(answer, STYLE_DIM, "%s", why);
    answer->gap = 1;
    answer->has_heads_always = true;
    return look_answer_print(about->request, answer, error);
}

static bool print_types(const struct about *about, struct error *error) {
    struct type_sums sums = {0};
    struct type_list list = {.sums = &sums};
    struct claim claim;
    bool is_ok = sum_types(about, &sums, error);
    if (is_ok) {
        struct answer answer = {.view = "types",
                                .columns = type_columns,
                                .column_count = TYPE_COLUMNS,
                                .tail_head = "TYPE",
                                .whole = (int64_t)sums.bytes,
                                .count = sums.rows.count,
                                .next_row = next_type,
                                .state = &list};
        claim_of_types(&sums, &claim);
        is_ok = print_answer(about, &answer, &claim, error);
    }
    array_free(&sums.rows);
    index_table_free(&sums.index);
    return is_ok;
}

bool core_types_print(struct core_subject *subject, const struct view_options *options,
                      struct error *error) {
    const struct request request = {.options = *options};
    const struct about about = {subject, &request};
    return core_need_typed(subject, error) && print_types(&about, error);
}

bool core_types_rows(struct core_subject *subject, const struct request *request,
                     struct error *error) {
    const struct about about = {subject, request};
    return core_need_typed(subject, error) && print_types(&about, error);
}

bool core_types_largest(struct core_subject *subject, struct core_type_sum *rows, size_t *count,
                        struct core_type_sum *all, struct error *error) {
    const struct about about = {subject, NULL};
    struct type_sums sums = {0};
    bool is_ok = core_need_typed(subject, error) && sum_types(&about, &sums, error);
    if (*count > sums.rows.count) *count = sums.rows.count;
    if (*count) memcpy(rows, sums.rows.items, *count * sizeof *rows);
    *all = (struct core_type_sum){.count = sums.count, .bytes = sums.bytes};
    array_free(&sums.rows);
    index_table_free(&sums.index);
    return is_ok;
}

bool core_types_report(const char *word, const struct request *request, bool has_limit,
                       struct error *error) {
    return open_about(word, request, has_limit, print_types, error);
}

// --- containers

// The way to the one that has the most unused.
static bool name_largest(const struct about *about, const struct container_row *row, char *text,
                         size_t size) {
    return row->largest_unused &&
           typed_path(about->subject->typed, row->largest_at, LAYOUT_SHORT, text, size);
}

static void claim_of_containers(const struct containers *containers, struct claim *claim) {
    *claim = (struct claim){.key = CLAIM_CONTAINERS};
    uint64_t capacity = 0, used = 0, count = 0;
    for (size_t i = 0; i < containers->rows.count; i++) {
        capacity += containers->rows.items[i].capacity_bytes;
        used += containers->rows.items[i].used_bytes;
        count += containers->rows.items[i].count;
    }
    claim_set(claim, "containers", (int64_t)count);
    claim_set(claim, "capacity_bytes", (int64_t)capacity);
    claim_set(claim, "unused_bytes", (int64_t)(capacity - used));
    claim_set(claim, "left_out", (int64_t)containers->broken_count);
}

enum container_column {
    CONTAINER_UNUSED,
    CONTAINER_CAPACITY,
    CONTAINER_USED,
    CONTAINER_USED_SHARE,
    CONTAINER_COUNT,
    CONTAINER_EMPTY,
    CONTAINER_TYPE,
    CONTAINER_WAY,
    CONTAINER_ELEMENTS,
    CONTAINER_LARGEST,
    CONTAINER_COLUMNS
};

static const struct answer_column container_columns[CONTAINER_COLUMNS] = {
    [CONTAINER_UNUSED] = ANSWER_FIGURES("unused_bytes", "UNUSED", ANSWER_BYTES, 10),
    [CONTAINER_CAPACITY] = ANSWER_FIGURES("capacity_bytes", "CAPACITY", ANSWER_BYTES, 10),
    [CONTAINER_USED] = ANSWER_DATA("used_bytes", ANSWER_BYTES),
    [CONTAINER_USED_SHARE] = ANSWER_FIGURES("used", "USED", ANSWER_RATIO, 7),
    [CONTAINER_COUNT] = ANSWER_FIGURES("containers", "CONTAINERS", ANSWER_COUNT, 11),
    [CONTAINER_EMPTY] = ANSWER_FIGURES("empty", "EMPTY", ANSWER_COUNT, 9),
    [CONTAINER_TYPE] = ANSWER_NAMES("type", ANSWER_TAIL, .head = "TYPE"),
    [CONTAINER_WAY] = ANSWER_TAILS("largest_unused", "  ", NULL, .head = "WHERE MOST IS UNUSED",
                                   .style = STYLE_DIM),
    [CONTAINER_ELEMENTS] = ANSWER_DATA("elements", ANSWER_COUNT),
    [CONTAINER_LARGEST] = ANSWER_DATA("largest_unused_bytes", ANSWER_BYTES)};

struct container_list {
    const struct about *about;
    const struct containers *containers;
    size_t at;
    char name[NAME_BYTES], way[LAYOUT_TEXT_BYTES];
};

static bool next_container(struct answer *answer, struct answer_row *out) {
    struct container_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct container_row *row = &list->containers->rows.items[list->at++];
    typed_write_name(row->type, list->name, sizeof list->name);
    answer_set(out, CONTAINER_UNUSED, (int64_t)(row->capacity_bytes - row->used_bytes));
    answer_set(out, CONTAINER_CAPACITY, (int64_t)row->capacity_bytes);
    answer_set(out, CONTAINER_USED, (int64_t)row->used_bytes);
    answer_set_ratio(out, CONTAINER_USED_SHARE, (int64_t)row->used_bytes,
                     (int64_t)row->capacity_bytes);
    answer_set(out, CONTAINER_COUNT, (int64_t)row->count);
    answer_set(out, CONTAINER_EMPTY, (int64_t)row->empty);
    answer_set_text(out, CONTAINER_TYPE, list->name);
    if (name_largest(list->about, row, list->way, sizeof list->way))
        answer_set_text(out, CONTAINER_WAY, list->way);
    answer_set(out, CONTAINER_ELEMENTS, (int64_t)row->elements);
    answer_set(out, CONTAINER_LARGEST, (int64_t)row->largest_unused);
    return true;
}

static bool print_containers(const struct about *about, struct error *error) {
    struct containers containers;
    struct container_list list = {.about = about, .containers = &containers};
    struct claim claim;
    if (!containers_find(about->subject->typed, &containers))
        return error_set(error, "out of memory");
    claim_of_containers(&containers, &claim);
    struct answer answer = {.view = "containers",
                            .columns = container_columns,
                            .column_count = CONTAINER_COLUMNS,
                            .tail_head = "TYPE, AND WHERE MOST IS UNUSED",
                            .count = containers.rows.count,
                            .next_row = next_container,
                            .state = &list};
    if (containers.broken_count)
        answer_note(
            &answer, "%s, which contradict themselves, are left out",
            units_counted((int64_t)containers.broken_count, "container", "containers").text);
    if (containers.unplaced_count)
        answer_note(
            &answer, "%s of functions that run, for which optimized code has no place, %s",
            units_counted((int64_t)containers.unplaced_count, "container", "containers").text,
            containers.unplaced_count == 1 ? "is not among them" : "are not among them");
    bool is_ok = print_answer(about, &answer, &claim, error);
    containers_free(&containers);
    return is_ok;
}

bool core_containers_rows(struct core_subject *subject, const struct request *request,
                          struct error *error) {
    const struct about about = {subject, request};
    return core_need_typed(subject, error) && print_containers(&about, error);
}

bool core_containers_report(const char *word, const struct request *request, bool has_limit,
                            struct error *error) {
    return open_about(word, request, has_limit, print_containers, error);
}
