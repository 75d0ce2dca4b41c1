// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_waste.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/cmds/core_kin.h"
#include "tool/heap/waste.h"
#include "tool/model/index_table.h"
#include "tool/render/columns.h"

enum { OFFENDERS = 3 };

// What blocks of one kin add up to.
struct waste_row {
    struct core_kin kin;
    uint64_t blocks, held;  // bytes, slack among them
    uint64_t bytes[WASTE_KINDS];
    uint64_t wasted;   // all of these
    uint64_t strings;  // bytes of duplicates that are strings
};

// Duplicates, and the different contents that have them.
struct waste_copies {
    uint64_t count, contents;
};

struct waste_sums {
    struct core_subject *subject;
    ARRAY(struct waste_row) rows;  // by wasted bytes, once they are sorted
    struct index_table index;      // of rows, by kin
    struct waste_row all;
    struct waste_copies copies, strings;  // duplicates, and those of them that are strings
    bool is_failed;
};

static const char *const kind_words[WASTE_KINDS] = {
    [WASTE_UNTOUCHED] = "untouched_bytes", [WASTE_ZERO] = "zero_bytes",
    [WASTE_DUPLICATE] = "duplicate_bytes", [WASTE_TAIL] = "tail_bytes",
    [WASTE_SLACK] = "slack_bytes",
};

// --- sums

static struct waste_row *row_of(struct waste_sums *sums, const struct core_kin *kin) {
    uint64_t hash = hash_mix(kin->value, index_table_seed() + kin->kind);
    struct index_probe probe = index_probe_start(&sums->index, hash);
    for (uint32_t i; index_probe_next(&sums->index, &probe, &i);)
        if (core_kin_is(&sums->rows.items[i].kin, kin)) return &sums->rows.items[i];
    struct waste_row *row = array_push(&sums->rows);
    if (!row || !index_table_insert(&sums->index, hash, (uint32_t)(sums->rows.count - 1)))
        return NULL;
    *row = (struct waste_row){.kin = *kin};
    return row;
}

static void add(struct waste_row *row, const struct waste_block *block) {
    row->blocks++;
    row->held += block->size + block->bytes[WASTE_SLACK];
    for (int i = 0; i < WASTE_KINDS; i++) {
        row->bytes[i] += block->bytes[i];
        row->wasted += block->bytes[i];
    }
    if (block->is_string) row->strings += block->bytes[WASTE_DUPLICATE];
}

static void add_copy(struct waste_copies *copies, const struct waste_block *block) {
    copies->count += block->bytes[WASTE_DUPLICATE] != 0;
    copies->contents += block->is_first_copy;
}

static bool see(void *context, const struct waste_block *block) {
    struct waste_sums *sums = context;
    const struct core_kin kin = core_kin_of(sums->subject, block->address, block->size);
    struct waste_row *row = row_of(sums, &kin);
    sums->is_failed = !row;
    if (!row) return false;
    add(row, block);
    add(&sums->all, block);
    add_copy(&sums->copies, block);
    if (block->is_string) add_copy(&sums->strings, block);
    return true;
}

static int by_wasted(const void *a, const void *b) {
    const struct waste_row *left = a, *right = b;
    if (left->wasted != right->wasted) return left->wasted > right->wasted ? -1 : 1;
    if (left->held != right->held) return left->held > right->held ? -1 : 1;
    return left->kin.value < right->kin.value ? -1 : left->kin.value > right->kin.value;
}

static bool sum_up(struct waste_sums *sums, struct error *error) {
    struct core_subject *subject = sums->subject;
    const struct waste_source source = {.reach = &subject->reach,
                                        .live = subject->look.is_core ? NULL : &subject->look.live,
                                        .blocks = subject->is_recorded ? &subject->blocks : NULL};
    if (!waste_find(&source, see, sums) || sums->is_failed)
        return error_set(error, "out of memory");
    if (sums->rows.count)
        qsort(sums->rows.items, sums->rows.count, sizeof *sums->rows.items, by_wasted);
    return true;
}

// Rows with waste, at most so many as were asked for.
static size_t shown_of(const struct waste_sums *sums, const struct view_options *options,
                       size_t *count) {
    *count = 0;
    while (*count < sums->rows.count && sums->rows.items[*count].wasted) ++*count;
    return options->top && options->top < *count ? options->top : *count;
}

// --- the screen

static void print_head(const struct waste_sums *sums, const struct terminal *terminal) {
    char name[KIN_LABEL_BYTES];
    text_escape(name, sizeof name, sums->subject->look.name);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    printf(" · %s of %s in %s are of no use (%s)", units_size((int64_t)sums->all.wasted).text,
           units_size((int64_t)sums->all.held).text,
           units_counted((int64_t)sums->all.blocks, "block", "blocks").text,
           units_percent((int64_t)sums->all.wasted, (int64_t)sums->all.held).text);
}

static uint64_t copied_of(const struct waste_row *row, bool are_strings) {
    return are_strings ? row->strings : row->bytes[WASTE_DUPLICATE];
}

// The stack that most duplicates, or most of the strings among them, are of.
static const struct waste_row *most_copies(const struct waste_sums *sums, bool are_strings) {
    const struct waste_row *most = NULL;
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        if (!most || copied_of(row, are_strings) > copied_of(most, are_strings)) most = row;
    }
    return most;
}

// "string duplicates: 12.4 MiB in 310,022 copies of 1,207 strings, most of them from PARSE".
static bool print_copies(const struct waste_sums *sums, const struct terminal *terminal,
                         bool are_strings) {
    char label[KIN_LABEL_BYTES];
    const struct waste_copies *copies = are_strings ? &sums->strings : &sums->copies;
    const struct waste_row *most = most_copies(sums, are_strings);
    if (!copies->count) return true;
    if (!core_kin_label(sums->subject, &most->kin, label)) return false;
    bool is_all = copied_of(most, are_strings) == copied_of(&sums->all, are_strings);
    const char *noun = are_strings ? "string" : "content";
    const char *nouns = are_strings ? "strings" : "contents";
    terminal_print(terminal, STYLE_DIM, "%sduplicates: %s in %s of %s, %sfrom %s\n",
                   are_strings ? "string " : "",
                   units_size((int64_t)copied_of(&sums->all, are_strings)).text,
                   units_counted((int64_t)copies->count, "copy", "copies").text,
                   units_counted((int64_t)copies->contents, noun, nouns).text,
                   is_all ? "" : "most of them ", label);
    return true;
}

static void print_limits(const struct waste_sums *sums, const struct terminal *terminal) {
    if (sums->subject->look.is_core)
        terminal_print(
            terminal, STYLE_DIM,
            "a core does not say which pages were there: untouched ones count as zero\n");
    if (!sums->subject->is_recorded)
        terminal_print(terminal, STYLE_DIM,
                       "not recorded: sizes are the allocator's, so a tail may be its slack\n");
}

static bool print_rows(const struct waste_sums *sums, const struct view_options *options) {
    static const struct column items[] = {
        {"WASTED", 10, STYLE_PLAIN, false},    {"SHARE", 6, STYLE_PLAIN, false},
        {"UNTOUCHED", 10, STYLE_PLAIN, false}, {"ZERO", 9, STYLE_PLAIN, false},
        {"COPIES", 9, STYLE_PLAIN, false},     {"TAIL", 9, STYLE_PLAIN, false},
        {"SLACK", 9, STYLE_PLAIN, false},      {"BLOCKS", 10, STYLE_PLAIN, false}};
    const struct columns columns = {items, sizeof items / sizeof *items, 0, 1};
    const struct terminal terminal = terminal_of(stdout);
    size_t count, shown = shown_of(sums, options, &count);
    bool is_ok = true;
    print_head(sums, &terminal);
    list_print_cut(&terminal, options, shown, count);
    putchar('\n');
    is_ok = print_copies(sums, &terminal, false) && print_copies(sums, &terminal, true);
    print_limits(sums, &terminal);
    columns_print_heads(&terminal, &columns);
    printf("  %s\n", sums->subject->is_recorded ? "ALLOCATED BY" : "TYPE");
    for (size_t i = 0; i < shown && is_ok; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        char label[KIN_LABEL_BYTES];
        const struct unit_text texts[] = {units_size((int64_t)row->wasted),
                                          units_percent((int64_t)row->wasted, (int64_t)row->held),
                                          units_size((int64_t)row->bytes[WASTE_UNTOUCHED]),
                                          units_size((int64_t)row->bytes[WASTE_ZERO]),
                                          units_size((int64_t)row->bytes[WASTE_DUPLICATE]),
                                          units_size((int64_t)row->bytes[WASTE_TAIL]),
                                          units_size((int64_t)row->bytes[WASTE_SLACK]),
                                          units_count((int64_t)row->blocks)};
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        columns_print(&terminal, &columns, texts);
        printf("  %s\n", label);
    }
    return is_ok;
}

// --- JSON

static void put_sums(struct json *json, const struct waste_row *row) {
    json_put_uint(json, "blocks", row->blocks);
    json_put_uint(json, "bytes", row->held);
    json_put_uint(json, "wasted_bytes", row->wasted);
    for (int i = 0; i < WASTE_KINDS; i++) json_put_uint(json, kind_words[i], row->bytes[i]);
}

static bool print_json(const struct waste_sums *sums) {
    struct json json;
    char label[KIN_LABEL_BYTES];
    bool is_ok = true;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.waste/1");
    json_put_bool(&json, "pages_known", !sums->subject->look.is_core);
    json_put_bool(&json, "recorded", sums->subject->is_recorded);
    put_sums(&json, &sums->all);
    json_put_uint(&json, "copies", sums->copies.count);
    json_put_uint(&json, "contents", sums->copies.contents);
    json_put_uint(&json, "string_bytes", sums->all.strings);
    json_put_uint(&json, "string_copies", sums->strings.count);
    json_put_uint(&json, "strings", sums->strings.contents);
    json_open_array(&json, "waste");
    for (size_t i = 0; i < sums->rows.count && is_ok; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        json_open_object(&json, NULL);
        json_put_string(&json, "kind", core_kin_word(row->kin.kind));
        json_put_string(&json, "name", label);
        put_sums(&json, row);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return is_ok;
}

static bool resolve(const struct waste_sums *sums, size_t count, struct error *error) {
    if (!sums->subject->is_recorded) return true;
    for (size_t i = 0; i < count; i++) core_kin_want(sums->subject, &sums->rows.items[i].kin);
    return names_resolve(sums->subject->opened.names, error);
}

static bool print(const struct waste_sums *sums, void *context, struct error *error) {
    const struct request *request = context;
    if (!resolve(sums, sums->rows.count, error)) return false;
    bool is_ok = request->is_json ? print_json(sums) : print_rows(sums, &request->options);
    return is_ok || error_set(error, "out of memory");
}

// --- for budgets

static bool measure(const struct waste_sums *sums, void *context, struct error *error) {
    struct core_waste *waste = context;
    size_t size, count = sums->rows.count < OFFENDERS ? sums->rows.count : OFFENDERS;
    char label[KIN_LABEL_BYTES];
    waste->wasted = sums->all.wasted;
    waste->bytes = sums->all.held;
    if (!resolve(sums, count, error)) return false;
    FILE *out = open_memstream(&waste->offenders, &size);
    bool is_ok = out;
    for (size_t i = 0; i < count && is_ok; i++) {
        is_ok = core_kin_label(sums->subject, &sums->rows.items[i].kin, label);
        fprintf(out, "%s of %s: %s\n", units_size((int64_t)sums->rows.items[i].wasted).text,
                units_size((int64_t)sums->rows.items[i].held).text, label);
    }
    if (out && fclose(out)) is_ok = false;
    return is_ok || error_set(error, "out of memory");
}

static bool sum_of(const char *word, bool has_limit,
                   bool (*use)(const struct waste_sums *sums, void *context, struct error *error),
                   void *context, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct core_subject subject;
    struct waste_sums sums = {.subject = &subject};
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok =
        core_need_typed(&subject, error) && sum_up(&sums, error) && use(&sums, context, error);
    if (is_ok)
        core_print_doubts(&subject);
    else
        heap_look_blame(&subject.look, error);
    array_free(&sums.rows);
    index_table_free(&sums.index);
    core_subject_close(&subject);
    return is_ok;
}

bool core_waste_report(const char *word, const struct request *request, bool has_limit,
                       struct error *error) {
    return sum_of(word, has_limit, print, (void *)(uintptr_t)request, error);
}

bool core_waste_measure(const char *word, bool has_limit, struct core_waste *waste,
                        struct error *error) {
    *waste = (struct core_waste){0};
    return sum_of(word, has_limit, measure, waste, error);
}
