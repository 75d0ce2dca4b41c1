// SPDX-License-Identifier: Apache-2.0
// Directly lost are blocks that no other lost block refers to, and of a ring of lost blocks that
// nothing else leads to the one with the lowest address. Indirectly lost are all others: they would
// be reachable if the directly lost ones were.
#include "tool/cmds/core_unreachable.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/confine.h"
#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_kin.h"
#include "tool/heap/owners.h"
#include "tool/model/index_table.h"
#include "tool/query/look_answer.h"
#include "tool/render/reachability.h"

enum { OFFENDERS = 3 };

// Lost blocks of one kin.
struct lost_row {
    struct core_kin kin;
    uint64_t blocks, bytes;
    uint64_t below_blocks, below_bytes;  // indirectly lost: that only one of these leads to, or of
                                         // this kin, if several others do
};

struct lost_sums {
    struct core_subject *subject;
    struct core_owners owners;
    ARRAY(struct lost_row) rows;
    struct index_table index;  // of rows, by kin
    uint64_t blocks, bytes;    // directly lost
};

static struct lost_row *row_of(struct lost_sums *sums, const struct core_kin *kin) {
    uint64_t hash = hash_mix(kin->value, index_table_seed() + kin->kind);
    struct index_probe probe = index_probe_start(&sums->index, hash);
    for (uint32_t i; index_probe_next(&sums->index, &probe, &i);)
        if (core_kin_is(&sums->rows.items[i].kin, kin)) return &sums->rows.items[i];
    struct lost_row *row = array_push(&sums->rows);
    if (!row || !index_table_insert(&sums->index, hash, (uint32_t)(sums->rows.count - 1)))
        return NULL;
    *row = (struct lost_row){.kin = *kin};
    return row;
}

static bool add(void *context, const struct core_lost_block *lost) {
    struct lost_sums *sums = context;
    const struct core_kin kin = core_kin_alike(sums->subject, lost->address, lost->size);
    struct lost_row *row = row_of(sums, &kin);
    if (!row) return false;
    row->blocks += lost->is_direct;
    row->bytes += lost->is_direct ? lost->size : 0;
    row->below_blocks += lost->below_blocks + !lost->is_direct;
    row->below_bytes += lost->below_bytes + (lost->is_direct ? 0 : lost->size);
    sums->blocks += lost->is_direct;
    sums->bytes += lost->is_direct ? lost->size : 0;
    return true;
}

static int by_lost(const void *a, const void *b) {
    const struct lost_row *left = a, *right = b;
    uint64_t one = left->bytes + left->below_bytes, other = right->bytes + right->below_bytes;
    if (one != other) return one > other ? -1 : 1;
    return left->kin.value < right->kin.value ? -1 : left->kin.value > right->kin.value;
}

static bool sum_up(struct lost_sums *sums) {
    if (!core_owners_each_lost(&sums->owners, add, sums)) return false;
    if (sums->rows.count)
        qsort(sums->rows.items, sums->rows.count, sizeof *sums->rows.items, by_lost);
    return true;
}

static struct cairn_reachability reachability_of(const struct lost_sums *sums) {
    const struct core_owners *owners = &sums->owners;
    return (struct cairn_reachability){
        .is_known = 1,
        .direct_blocks = sums->blocks,
        .direct_bytes = sums->bytes,
        .indirect_blocks = owners->leaked_count - sums->blocks,
        .indirect_bytes = owners->leaked_bytes - sums->bytes,
        .reachable_blocks = owners->counts[0] - owners->leaked_count,
        .reachable_bytes = owners->retained[0] - owners->leaked_bytes,
    };
}

// Says why blocks have no stack, and what would give later ones theirs.
static void tell_stackless(const struct lost_sums *sums, struct answer *answer) {
    const struct core_subject *subject = sums->subject;
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct lost_row *row = &sums->rows.items[i];
        if (row->kin.kind == KIND_STACK) continue;
        blocks += row->blocks + row->below_blocks;
        bytes += row->bytes + row->below_bytes;
    }
    if (!blocks) return;
    answer_note(answer, "%s in %s without a stack: %s", units_size((int64_t)bytes).text,
                units_counted((int64_t)blocks, "block", "blocks").text,
                !subject->is_recorded ? "nothing was recorded (later ones: cairn attach --exact)"
                : core_is_sampled(subject)
                    ? "a sample was recorded (all later ones: cairn attach --exact)"
                    : "allocated before cairn came");
}

// A name as a regular expression that matches it alone, for a shell.
static void quote_name(const char *name, char *out, size_t size) {
    char pattern[2 * KIN_LABEL_BYTES];
    size_t used = 0;
    pattern[used++] = '^';
    for (; *name && used + sizeof "\\x$" < sizeof pattern; name++) {
        if (strchr("\\^$.|?*+()[]{}", *name)) pattern[used++] = '\\';
        pattern[used++] = *name;
    }
    pattern[used++] = '$';
    pattern[used] = 0;
    text_quote(out, size, pattern);
}

// The function of the first row that is in a file or module; "": none is.
static bool find_function(const struct lost_sums *sums, size_t shown, char *label) {
    static const char place[] = "  ";  // as core_kin_label writes it
    for (size_t i = 0; i < shown; i++) {
        const struct core_kin *kin = &sums->rows.items[i].kin;
        if (kin->kind != KIND_STACK) continue;
        if (!core_kin_label(sums->subject, kin, label)) return false;
        char *end = strstr(label, place);
        if (!end || *label == '[') continue;
        *end = 0;
        return true;
    }
    *label = 0;
    return true;
}

// Tells the command that shows the stack of a process, else the blocks, whose addresses `cairn core
// ... explain` takes.
static bool tell_next(const struct lost_sums *sums, struct answer *answer) {
    char name[KIN_LABEL_BYTES], label[KIN_LABEL_BYTES] = "", quoted[4 * KIN_LABEL_BYTES];
    const struct heap_look *look = &sums->subject->look;
    if (confine_is_on()) return true;
    if (!look->is_core && !find_function(sums, answer->shown, label)) return false;
    text_quote(quoted, sizeof quoted, look->name);
    text_escape(name, sizeof name, quoted);
    answer_show(answer, "%s", "");
    if (*label) {
        quote_name(label, quoted, sizeof quoted);
        answer_show(answer, "next: cairn leaks --focus %s %s", quoted, name);
    } else {
        answer_show(answer, "next: cairn core %s list leaked", name);
    }
    return true;
}

enum lost_column {
    LOST_BYTES,
    LOST_BLOCKS,
    LOST_BELOW_BYTES,
    LOST_BELOW_BLOCKS,
    LOST_NAME,
    LOST_KIND,
    LOST_COLUMNS
};

static const struct answer_column lost_columns[LOST_COLUMNS] = {
    [LOST_BYTES] = ANSWER_FIGURES("direct_bytes", "DIRECTLY", ANSWER_BYTES, 10),
    [LOST_BLOCKS] = ANSWER_FIGURES("direct_blocks", "BLOCKS", ANSWER_COUNT, 10),
    [LOST_BELOW_BYTES] = ANSWER_FIGURES("indirect_bytes", "INDIRECTLY", ANSWER_BYTES, 11),
    [LOST_BELOW_BLOCKS] = ANSWER_FIGURES("indirect_blocks", "BLOCKS", ANSWER_COUNT, 10),
    [LOST_NAME] = ANSWER_TAILS("name", "  ", NULL, .head = "name"),
    [LOST_KIND] = ANSWER_DATA("kind", ANSWER_TEXT)};

struct lost_list {
    const struct lost_sums *sums;
    size_t at;
    char label[KIN_LABEL_BYTES];
};

static bool next_lost(struct answer *answer, struct answer_row *row) {
    struct lost_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct lost_row *lost = &list->sums->rows.items[list->at++];
    answer->is_failed = !core_kin_label(list->sums->subject, &lost->kin, list->label);
    answer_set(row, LOST_BYTES, (int64_t)lost->bytes);
    answer_set(row, LOST_BLOCKS, (int64_t)lost->blocks);
    answer_set(row, LOST_BELOW_BYTES, (int64_t)lost->below_bytes);
    answer_set(row, LOST_BELOW_BLOCKS, (int64_t)lost->below_blocks);
    answer_set_text(row, LOST_NAME, list->label);
    answer_set_text(row, LOST_KIND, core_kin_word(lost->kin.kind));
    return !answer->is_failed;
}

static bool print_rows(const struct lost_sums *sums, const struct request *request,
                       struct error *error) {
    struct lost_list list = {.sums = sums};
    const struct cairn_reachability reachability = reachability_of(sums);
    struct look_answer of;
    struct answer answer = {.view = "unreachable",
                            .options = &request->options,
                            .columns = lost_columns,
                            .column_count = LOST_COLUMNS,
                            .gap = 1,
                            .tail_head = sums->subject->is_recorded ? "ALLOCATED BY" : "TYPE",
                            .shown = answer_cut(request->options.top, sums->rows.count),
                            .count = sums->rows.count,
                            .next_row = next_lost,
                            .state = &list};
    reachability_text(&reachability, answer.title);
    look_answer_of(&of, &sums->subject->look, &answer);
    answer_fact(&answer, "reachable_bytes", ANSWER_BYTES, (int64_t)reachability.reachable_bytes);
    answer_fact(&answer, "reachable_blocks", ANSWER_COUNT, (int64_t)reachability.reachable_blocks);
    if (answer.count) tell_stackless(sums, &answer);
    if (answer.count && !tell_next(sums, &answer)) return error_set(error, "out of memory");
    return look_answer_print(request, &answer, error);
}

static bool print_json(const struct lost_sums *sums) {
    const struct cairn_reachability reachability = reachability_of(sums);
    struct json json;
    char label[KIN_LABEL_BYTES];
    bool is_ok = true;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.unreachable/1");
    reachability_put_sums(&json, &reachability);
    json_open_array(&json, "lost");
    for (size_t i = 0; i < sums->rows.count && is_ok; i++) {
        const struct lost_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        json_open_object(&json, NULL);
        json_put_string(&json, "kind", core_kin_word(row->kin.kind));
        json_put_string(&json, "name", label);
        json_put_uint(&json, "direct_bytes", row->bytes);
        json_put_uint(&json, "direct_blocks", row->blocks);
        json_put_uint(&json, "indirect_bytes", row->below_bytes);
        json_put_uint(&json, "indirect_blocks", row->below_blocks);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return is_ok;
}

static bool resolve(const struct lost_sums *sums, size_t count, struct error *error) {
    if (!sums->subject->is_recorded) return true;
    for (size_t i = 0; i < count; i++) core_kin_want(sums->subject, &sums->rows.items[i].kin);
    return names_resolve(sums->subject->opened.names, error);
}

static bool print(const struct lost_sums *sums, void *context, struct error *error) {
    const struct request *request = context;
    if (!resolve(sums, sums->rows.count, error)) return false;
    if (!request->is_json) return print_rows(sums, request, error);
    return print_json(sums) || error_set(error, "out of memory");
}

static bool measure(const struct lost_sums *sums, void *context, struct error *error) {
    struct core_lost *lost = context;
    size_t size, count = sums->rows.count < OFFENDERS ? sums->rows.count : OFFENDERS;
    char label[KIN_LABEL_BYTES];
    if (!resolve(sums, count, error)) return false;
    FILE *out = open_memstream(&lost->offenders, &size);
    bool is_ok = out;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct lost_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        fprintf(out, "%s in %s: %s\n", units_size((int64_t)(row->bytes + row->below_bytes)).text,
                units_counted((int64_t)(row->blocks + row->below_blocks), "block", "blocks").text,
                label);
    }
    if (out && fclose(out)) is_ok = false;
    return is_ok || error_set(error, "out of memory");
}

static bool sum_of(const char *word, bool has_limit, struct core_lost *lost,
                   bool (*use)(const struct lost_sums *sums, void *context, struct error *error),
                   void *context, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct core_subject subject;
    struct lost_sums sums = {.subject = &subject};
    *lost = (struct core_lost){0};
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok = core_need_typed(&subject, error) &&
                 core_owners_find(&subject.reach, subject.types, false, &sums.owners, error);
    if (is_ok) {
        is_ok = sum_up(&sums) ? use(&sums, context, error) : error_set(error, "out of memory");
        lost->bytes = sums.owners.leaked_bytes;
        lost->blocks = sums.owners.leaked_count;
        core_print_doubts(&subject);
        core_owners_free(&sums.owners);
    }
    if (!is_ok) heap_look_blame(&subject.look, error);
    array_free(&sums.rows);
    index_table_free(&sums.index);
    core_subject_close(&subject);
    return is_ok;
}

bool core_unreachable_report(const char *word, const struct request *request, bool has_limit,
                             uint64_t *lost, struct error *error) {
    struct core_lost found;
    bool is_ok = sum_of(word, has_limit, &found, print, (void *)(uintptr_t)request, error);
    *lost = found.blocks;
    return is_ok;
}

bool core_unreachable_measure(const char *word, bool has_limit, struct core_lost *lost,
                              struct error *error) {
    return sum_of(word, has_limit, lost, measure, lost, error);
}
