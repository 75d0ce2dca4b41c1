// SPDX-License-Identifier: Apache-2.0
// Blocks of a set by type, and those without one by size.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/cmds/core_sets.h"
#include "tool/model/index_table.h"

// What the blocks of one type, or without one of one size, add up to.
struct row {
    const struct core_type *type;  // NULL: none
    uint64_t size;                 // of those without a type
    struct core_sum sum;
};

struct summary {
    struct core_subject *subject;
    ARRAY(struct row) rows;
    struct index_table index;  // of rows, by type or size
    struct core_sum sum, plain;
    bool is_out_of_memory;
};

static struct row *row_of(struct summary *summary, const struct core_type *type, uint64_t size) {
    uint64_t hash = hash_mix(type ? type->signature : size, index_table_seed() + (type ? 1 : 0));
    struct index_probe probe = index_probe_start(&summary->index, hash);
    for (uint32_t i; index_probe_next(&summary->index, &probe, &i);)
        if (summary->rows.items[i].type == type && summary->rows.items[i].size == size)
            return &summary->rows.items[i];
    struct row *row = array_push(&summary->rows);
    if (!row || !index_table_insert(&summary->index, hash, (uint32_t)(summary->rows.count - 1)))
        return NULL;
    *row = (struct row){.type = type, .size = size};
    return row;
}

static void add(struct core_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

static bool see(void *context, const struct core_member *member) {
    struct summary *summary = context;
    const struct core_type *type =
        member->is_free
            ? NULL
            : core_type_of_block(summary->subject->types, member->address, member->size);
    struct row *row = row_of(summary, type, type ? 0 : member->size);
    summary->is_out_of_memory = !row;
    if (!row) return false;
    add(&row->sum, member->size);
    add(&summary->sum, member->size);
    if (!type) add(&summary->plain, member->size);
    return true;
}

// Most blocks first; then by name, by size.
static int compare_rows(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    if (left->sum.count != right->sum.count) return left->sum.count < right->sum.count ? 1 : -1;
    if (left->type && right->type) {
        int order = strcmp(left->type->name, right->type->name);
        if (order) return order;
        return left->type->signature < right->type->signature ? -1 : 1;
    }
    return (left->size > right->size) - (left->size < right->size);
}

static void print_instances(const struct core_sum *sum) {
    printf(" %" PRIu64 " instances taking 0x%" PRIx64 "(%s) bytes.\n", sum->count, sum->bytes,
           units_count((int64_t)sum->bytes).text);
}

static void print_plain(const struct summary *summary) {
    printf("Unrecognized allocations have");
    print_instances(&summary->plain);
    for (size_t i = 0; i < summary->rows.count; i++) {
        const struct row *row = &summary->rows.items[i];
        if (row->type) continue;
        printf("   Unrecognized allocations of size 0x%" PRIx64 " have", row->size);
        print_instances(&row->sum);
    }
}

// Blocks without a type stand among the types by their number.
static void print_rows(const struct summary *summary) {
    bool is_plain_due = summary->plain.count;
    for (size_t i = 0; i < summary->rows.count; i++) {
        const struct row *row = &summary->rows.items[i];
        if (!row->type) continue;
        if (is_plain_due && row->sum.count <= summary->plain.count) {
            print_plain(summary);
            is_plain_due = false;
        }
        printf("Signature %" PRIx64 " (%s) has", row->type->signature, row->type->name);
        print_instances(&row->sum);
    }
    if (is_plain_due) print_plain(summary);
}

bool core_print_summary(struct core_subject *subject, const struct core_question *question,
                        struct error *error) {
    struct summary summary = {.subject = subject};
    if (!core_need_types(subject, error)) return false;
    bool is_ok = core_each_member(subject, question, see, &summary, error);
    if (summary.is_out_of_memory) is_ok = error_set(error, "out of memory");
    if (is_ok) {
        if (summary.rows.count)
            qsort(summary.rows.items, summary.rows.count, sizeof *summary.rows.items, compare_rows);
        print_rows(&summary);
        core_print_sum(&summary.sum);
    }
    array_free(&summary.rows);
    index_table_free(&summary.index);
    return is_ok;
}
