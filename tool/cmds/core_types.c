// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_types.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/containers.h"
#include "tool/model/index_table.h"
#include "tool/render/claims.h"
#include "tool/render/columns.h"

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

static void print_subject(const struct about *about, const struct terminal *terminal) {
    char name[NAME_BYTES];
    text_escape(name, sizeof name, about->subject->look.name);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
}

static size_t shown_of(const struct about *about, size_t count) {
    size_t top = about->request->options.top;
    return top && top < count ? top : count;
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

static void print_type_rows(const struct about *about, const struct type_sums *sums) {
    static const struct column items[] = {{"BYTES", 10, STYLE_PLAIN, false},
                                          {"SHARE", 7, STYLE_PLAIN, false},
                                          {"BLOCKS", 11, STYLE_PLAIN, false}};
    const struct columns columns = {items, 3, 0, 1};
    const struct terminal terminal = terminal_of(stdout);
    size_t shown = shown_of(about, sums->rows.count);
    print_subject(about, &terminal);
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    claim_of_types(sums, &claim);
    claim_sentence(&claim, false, sentence);
    printf(" · %s", sentence);
    list_print_cut(&terminal, &about->request->options, shown, sums->rows.count);
    putchar('\n');
    core_print_sources(about->subject, &terminal);
    columns_print_heads(&terminal, &columns);
    puts("  TYPE");
    for (size_t i = 0; i < shown; i++) {
        const struct core_type_sum *row = &sums->rows.items[i];
        const struct unit_text texts[] = {units_size((int64_t)row->bytes),
                                          units_percent((int64_t)row->bytes, (int64_t)sums->bytes),
                                          units_count((int64_t)row->count)};
        columns_print(&terminal, &columns, texts);
        printf("  %s\n", row->name ? row->name : "not known");
    }
}

static void print_type_json(const struct type_sums *sums) {
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.types/1");
    json_put_uint(&json, "bytes", sums->bytes);
    json_put_uint(&json, "blocks", sums->count);
    struct claim claim;
    claim_of_types(sums, &claim);
    claim_put_json_alone(&json, &claim);
    json_open_array(&json, "types");
    for (size_t i = 0; i < sums->rows.count; i++) {
        json_open_object(&json, NULL);
        json_put_string(&json, "type", sums->rows.items[i].name);
        json_put_uint(&json, "bytes", sums->rows.items[i].bytes);
        json_put_uint(&json, "blocks", sums->rows.items[i].count);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

enum type_column { TYPE_SHARE, TYPE_BYTES, TYPE_BLOCKS, TYPE_NAME, TYPE_COLUMNS };

static const struct answer_column type_columns[TYPE_COLUMNS] = {
    [TYPE_SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [TYPE_BYTES] = ANSWER_FIGURES("bytes", "bytes", ANSWER_BYTES, 0),
    [TYPE_BLOCKS] = ANSWER_FIGURES("blocks", "blocks", ANSWER_COUNT, 0),
    [TYPE_NAME] = ANSWER_NAMES("type", ANSWER_TAIL, .head = "type")};

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

// Prints rows in the form that is asked for. Nothing that this fails for is left open.
static bool print_form(const struct about *about, struct answer *answer, const struct claim *claim,
                       struct error *error) {
    char sentence[CLAIM_SENTENCE_BYTES];
    claim_sentence(claim, false, sentence);
    answer->view = about->request->view->name;
    answer->options = &about->request->options;
    answer->shown = shown_of(about, answer->count);
    snprintf(answer->title, sizeof answer->title, "%.*s", (int)sizeof answer->title - 1, sentence);
    FILE *out = about->request->out ? about->request->out : stdout;
    return about->request->form->print(out, answer, error);
}

static bool print_type_form(const struct about *about, const struct type_sums *sums,
                            struct error *error) {
    struct type_list list = {.sums = sums};
    struct claim claim;
    claim_of_types(sums, &claim);
    struct answer answer = {.columns = type_columns,
                            .column_count = TYPE_COLUMNS,
                            .whole = (int64_t)sums->bytes,
                            .count = sums->rows.count,
                            .next_row = next_type,
                            .state = &list};
    return print_form(about, &answer, &claim, error);
}

static bool print_types(const struct about *about, struct error *error) {
    struct type_sums sums = {0};
    bool is_ok = sum_types(about, &sums, error);
    if (is_ok && about->request->is_json)
        print_type_json(&sums);
    else if (is_ok && about->request->form)
        is_ok = print_type_form(about, &sums, error);
    else if (is_ok)
        print_type_rows(about, &sums);
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

static void print_container_rows(const struct about *about, const struct containers *containers) {
    static const struct column items[] = {{"UNUSED", 10, STYLE_PLAIN, false},
                                          {"CAPACITY", 10, STYLE_PLAIN, false},
                                          {"USED", 7, STYLE_PLAIN, false},
                                          {"CONTAINERS", 11, STYLE_PLAIN, false},
                                          {"EMPTY", 9, STYLE_PLAIN, false}};
    const struct columns columns = {items, 5, 0, 1};
    const struct terminal terminal = terminal_of(stdout);
    char sentence[CLAIM_SENTENCE_BYTES];
    size_t shown = shown_of(about, containers->rows.count);
    struct claim claim;
    claim_of_containers(containers, &claim);
    claim_sentence(&claim, false, sentence);
    print_subject(about, &terminal);
    printf(" · %s", sentence);
    list_print_cut(&terminal, &about->request->options, shown, containers->rows.count);
    putchar('\n');
    core_print_sources(about->subject, &terminal);
    columns_print_heads(&terminal, &columns);
    puts("  TYPE, AND WHERE MOST IS UNUSED");
    for (size_t i = 0; i < shown; i++) {
        const struct container_row *row = &containers->rows.items[i];
        char name[NAME_BYTES], way[LAYOUT_TEXT_BYTES];
        const struct unit_text texts[] = {
            units_size((int64_t)(row->capacity_bytes - row->used_bytes)),
            units_size((int64_t)row->capacity_bytes),
            units_percent((int64_t)row->used_bytes, (int64_t)row->capacity_bytes),
            units_count((int64_t)row->count), units_count((int64_t)row->empty)};
        typed_write_name(row->type, name, sizeof name);
        columns_print(&terminal, &columns, texts);
        printf("  %s", name);
        if (name_largest(about, row, way, sizeof way))
            terminal_print(&terminal, STYLE_DIM, "  %s", way);
        putchar('\n');
    }
    if (containers->broken_count)
        printf("%s, which contradict themselves, are left out\n",
               units_counted((int64_t)containers->broken_count, "container", "containers").text);
}

static void print_container_json(const struct about *about, const struct containers *containers) {
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.containers/1");
    json_put_uint(&json, "left_out", containers->broken_count);
    struct claim claim;
    claim_of_containers(containers, &claim);
    claim_put_json_alone(&json, &claim);
    json_open_array(&json, "containers");
    for (size_t i = 0; i < containers->rows.count; i++) {
        const struct container_row *row = &containers->rows.items[i];
        char name[NAME_BYTES], way[LAYOUT_TEXT_BYTES];
        bool has_way = name_largest(about, row, way, sizeof way);
        typed_write_name(row->type, name, sizeof name);
        json_open_object(&json, NULL);
        json_put_string(&json, "type", name);
        json_put_uint(&json, "containers", row->count);
        json_put_uint(&json, "empty", row->empty);
        json_put_uint(&json, "elements", row->elements);
        json_put_uint(&json, "capacity_bytes", row->capacity_bytes);
        json_put_uint(&json, "used_bytes", row->used_bytes);
        json_put_uint(&json, "largest_unused_bytes", row->largest_unused);
        json_put_string(&json, "largest_unused", has_way ? way : NULL);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

enum container_column {
    CONTAINER_UNUSED,
    CONTAINER_CAPACITY,
    CONTAINER_USED,
    CONTAINER_COUNT,
    CONTAINER_EMPTY,
    CONTAINER_TYPE,
    CONTAINER_WAY,
    CONTAINER_ELEMENTS,
    CONTAINER_LARGEST,
    CONTAINER_COLUMNS
};

static const struct answer_column container_columns[CONTAINER_COLUMNS] = {
    [CONTAINER_UNUSED] = ANSWER_FIGURES("unused_bytes", "unused", ANSWER_BYTES, 0),
    [CONTAINER_CAPACITY] = ANSWER_FIGURES("capacity_bytes", "capacity", ANSWER_BYTES, 0),
    [CONTAINER_USED] = ANSWER_FIGURES("used_bytes", "used", ANSWER_BYTES, 0),
    [CONTAINER_COUNT] = ANSWER_FIGURES("containers", "containers", ANSWER_COUNT, 0),
    [CONTAINER_EMPTY] = ANSWER_FIGURES("empty", "empty", ANSWER_COUNT, 0),
    [CONTAINER_TYPE] = ANSWER_NAMES("type", ANSWER_TAIL, .head = "type"),
    [CONTAINER_WAY] = ANSWER_TAILS("largest_unused", "  ", NULL, .head = "where most is unused"),
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
    answer_set(out, CONTAINER_COUNT, (int64_t)row->count);
    answer_set(out, CONTAINER_EMPTY, (int64_t)row->empty);
    answer_set_text(out, CONTAINER_TYPE, list->name);
    if (name_largest(list->about, row, list->way, sizeof list->way))
        answer_set_text(out, CONTAINER_WAY, list->way);
    answer_set(out, CONTAINER_ELEMENTS, (int64_t)row->elements);
    answer_set(out, CONTAINER_LARGEST, (int64_t)row->largest_unused);
    return true;
}

static bool print_container_form(const struct about *about, const struct containers *containers,
                                 struct error *error) {
    struct container_list list = {.about = about, .containers = containers};
    struct claim claim;
    claim_of_containers(containers, &claim);
    struct answer answer = {.columns = container_columns,
                            .column_count = CONTAINER_COLUMNS,
                            .count = containers->rows.count,
                            .next_row = next_container,
                            .state = &list};
    if (containers->broken_count)
        answer_note(
            &answer, "%s, which contradict themselves, are left out",
            units_counted((int64_t)containers->broken_count, "container", "containers").text);
    return print_form(about, &answer, &claim, error);
}

static bool print_containers(const struct about *about, struct error *error) {
    struct containers containers;
    bool is_ok = true;
    if (!containers_find(about->subject->typed, &containers))
        return error_set(error, "out of memory");
    if (about->request->is_json)
        print_container_json(about, &containers);
    else if (about->request->form)
        is_ok = print_container_form(about, &containers, error);
    else
        print_container_rows(about, &containers);
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
