// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/cmds/core_sets.h"
#include "tool/model/index_table.h"
#include "tool/render/columns.h"
#include "tool/render/stacks.h"

enum { SIZE_CLASSES = 64, KINDS = CHUNK_CACHED + 1, PATH_TEXT_BYTES = 1024 };

struct sum {
    uint64_t count, bytes;
};

static void add(struct sum *sum, const struct glibc_chunk *chunk) {
    sum->count++;
    sum->bytes += chunk->size;
}

enum { SUM_TEXTS = 2, CLASS_COLUMNS = 1 + 2 * SUM_TEXTS };

// The second and third one are in front of a name as well.
static const struct column class_columns[CLASS_COLUMNS] = {{"size from", 12, STYLE_PLAIN, false},
                                                           {"used", 12, STYLE_PLAIN, false},
                                                           {"bytes", 10, STYLE_PLAIN, false},
                                                           {"free", 12, STYLE_PLAIN, false},
                                                           {"bytes", 10, STYLE_PLAIN, false}};

static void put_sum(struct unit_text *texts, const struct sum *sum) {
    texts[0] = units_count((int64_t)sum->count);
    texts[1] = units_size((int64_t)sum->bytes);
}

static void print_classes(const struct glibc_heap *heap) {
    struct sum used[SIZE_CLASSES] = {0}, free[SIZE_CLASSES] = {0};
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        unsigned class =
            chunk->size ? SIZE_CLASSES - 1 - (unsigned)__builtin_clzll(chunk->size) : 0;
        if (chunk_is_free(chunk)) add(&free[class], chunk);
        if (chunk_is_used(chunk)) add(&used[class], chunk);
    }
    const struct terminal terminal = terminal_of(stdout);
    const struct columns columns = {class_columns, CLASS_COLUMNS, 0, 1};
    columns_print_heads(&terminal, &columns);
    putchar('\n');
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        if (!used[i].count && !free[i].count) continue;
        struct unit_text texts[CLASS_COLUMNS] = {units_size((int64_t)1 << i)};
        put_sum(&texts[1], &used[i]);
        put_sum(&texts[1 + SUM_TEXTS], &free[i]);
        columns_print(&terminal, &columns, texts);
        putchar('\n');
    }
}

static void print_pages(const struct columns *columns, const struct other_heap *other) {
    const struct {
        uint64_t bytes;
        const char *words;
    } rows[] = {
        {other->page_bytes, "of pages that blocks lie on, used or free"},
        {other->free_page_bytes, "of free pages, with or without memory"},
        {other->dirty_bytes, "of free pages that are kept (dirty)"},
        {other->muzzy_bytes, "of free pages that the kernel may take (muzzy)"},
        {other->retained_bytes, "of address space that is kept without pages"},
    };
    const struct terminal terminal = terminal_of(stdout);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct unit_text texts[SUM_TEXTS] = {{""}, units_size((int64_t)rows[i].bytes)};
        if (!rows[i].bytes) continue;
        columns_print(&terminal, columns, texts);
        printf("  %s\n", rows[i].words);
    }
}

static void print_kinds(const struct glibc_heap *heap) {
    const bool is_other = heap->other.name != NULL;
    const char *const names[KINDS] = {
        [CHUNK_USED] = "in use",
        [CHUNK_MAPPED] = "in use, with mappings of their own",
        [CHUNK_MOVING] = "in use or free, of threads within a call",
        [CHUNK_BINNED] = is_other ? "free, beside those in use" : "free, in bins",
        [CHUNK_FAST] = "free, in fastbins",
        [CHUNK_CACHED] = "free, in caches of threads",
    };
    struct sum sums[KINDS] = {0};
    for (size_t i = 0; i < heap->chunks.count; i++)
        add(&sums[heap->chunks.items[i].kind], &heap->chunks.items[i]);
    const struct terminal terminal = terminal_of(stdout);
    const struct columns columns = {&class_columns[1], SUM_TEXTS, 1, 1};
    struct unit_text texts[SUM_TEXTS];
    for (unsigned i = 0; i < KINDS; i++) {
        if ((is_other || i == CHUNK_MOVING) && !sums[i].count) continue;
        put_sum(texts, &sums[i]);
        columns_print(&terminal, &columns, texts);
        printf("  %s\n", names[i]);
    }
    if (is_other) print_pages(&columns, &heap->other);
    if (!heap->arena_count) return;
    *texts[0].text = 0;
    texts[1] = units_size((int64_t)heap->top_bytes);
    columns_print(&terminal, &columns, texts);
    printf("  free, at the end of %" PRIu64 " %s\n", heap->arena_count,
           units_noun((int64_t)heap->arena_count, "arena", "arenas"));
}

// Of free memory between blocks in use only whole pages can go back to the system.
static void print_fragmentation(const struct glibc_heap *heap, uint64_t page_bytes) {
    uint64_t free_bytes = 0, whole_bytes = 0, used_bytes = 0, largest = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk->kind == CHUNK_USED) used_bytes += chunk->size;
        if (!chunk_is_free(chunk)) continue;
        uint64_t first = (chunk->address + page_bytes - 1) / page_bytes;
        uint64_t last = (chunk->address + chunk->size) / page_bytes;
        free_bytes += chunk->size;
        if (last > first) whole_bytes += (last - first) * page_bytes;
        if (chunk->size > largest) largest = chunk->size;
    }
    printf("\nFragmentation: %s of the arenas are free between blocks in use (%s), the largest "
           "piece has %s;\n%s of it are whole pages, which malloc_trim gives back\n",
           units_percent((int64_t)free_bytes, (int64_t)(free_bytes + used_bytes)).text,
           units_size((int64_t)free_bytes).text, units_size((int64_t)largest).text,
           units_size((int64_t)whole_bytes).text);
}

static void print_doubts(const struct core_subject *subject, const struct glibc_heap *heap) {
    const char *other = core_other_allocator(subject);
    if (heap->broken_count)
        printf("%" PRIu64 " stretches of the heap were left where a chunk makes no sense\n",
               heap->broken_count);
    if (subject->core->missing_bytes)
        printf("the core is not whole: %s of it are missing\n",
               units_size((int64_t)subject->core->missing_bytes).text);
    if (heap->other.unknown_caches)
        printf("the caches of %s were not found: what they hold counts as in use\n",
               units_counted((int64_t)heap->other.unknown_caches, "thread", "threads").text);
    char busy[BUSY_BYTES];
    if (core_busy_text(subject, busy, sizeof busy)) printf("%s\n", busy);
    if (other && !heap->other.name)
        printf("%s is mapped: blocks of that allocator are not among these\n", other);
}

bool core_print_heap_figures(struct core_subject *subject, struct error *error) {
    if (!core_need_heap(subject, error)) return false;
    const struct glibc_heap *heap = core_heap_of(subject);
    print_classes(heap);
    putchar('\n');
    print_kinds(heap);
    if (!heap->other.name) print_fragmentation(heap, core_page_bytes(subject->core));
    print_doubts(subject, heap);
    return true;
}

bool core_print_heap(struct core_subject *subject, struct error *error) {
    char path[PATH_TEXT_BYTES];
    if (!core_print_heap_figures(subject, error)) return false;
    text_escape(path, sizeof path, subject->look.name);
    printf("\nNext: cairn core %s summarize used | summarize leaked | explain ADDRESS\n", path);
    return true;
}

// Blocks of a set by type, and those without one by size.

// What the blocks of one type, or without one of one size, add up to.
struct row {
    const char *type;    // NULL: none
    uint64_t signature;  // of a type that is known by the first word; 0: by debug information
    uint64_t size;       // of those without a type
    struct core_sum sum;
};

struct summary {
    struct core_subject *subject;
    ARRAY(struct row) rows;
    struct index_table index;  // of rows, by type or size
    struct core_sum sum, plain;
    bool is_out_of_memory;
};

static struct row *row_of(struct summary *summary, const char *type, uint64_t signature,
                          uint64_t size) {
    uint64_t hash =
        hash_mix(type ? (uintptr_t)type + signature : size, index_table_seed() + (type ? 1 : 0));
    struct index_probe probe = index_probe_start(&summary->index, hash);
    for (uint32_t i; index_probe_next(&summary->index, &probe, &i);) {
        struct row *row = &summary->rows.items[i];
        if (row->type == type && row->signature == signature && row->size == size) return row;
    }
    struct row *row = array_push(&summary->rows);
    if (!row || !index_table_insert(&summary->index, hash, (uint32_t)(summary->rows.count - 1)))
        return NULL;
    *row = (struct row){.type = type, .signature = signature, .size = size};
    return row;
}

static void add_block(struct core_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

static bool see(void *context, const struct core_member *member) {
    struct summary *summary = context;
    struct core_subject *subject = summary->subject;
    const struct core_type *own =
        member->is_free ? NULL : core_type_of_block(subject->types, member->address, member->size);
    const char *type = own ? own->name : NULL;
    if (!own && !member->is_free) type = typed_name(subject->typed, member->address, member->size);
    struct row *row = row_of(summary, type, own ? own->signature : 0, type ? 0 : member->size);
    summary->is_out_of_memory = !row;
    if (!row) return false;
    add_block(&row->sum, member->size);
    add_block(&summary->sum, member->size);
    if (!type) add_block(&summary->plain, member->size);
    return true;
}

// Most blocks first; then by name, by size.
static int compare_rows(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    if (left->sum.count != right->sum.count) return left->sum.count < right->sum.count ? 1 : -1;
    if (left->type && right->type) {
        int order = strcmp(left->type, right->type);
        if (order) return order;
        return left->signature < right->signature ? -1 : 1;
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
        if (row->signature)
            printf("Signature %" PRIx64 " (%s) has", row->signature, row->type);
        else
            printf("Type (%s) has", row->type);
        print_instances(&row->sum);
    }
    if (is_plain_due) print_plain(summary);
}

bool core_print_summary(struct core_subject *subject, const struct core_question *question,
                        struct error *error) {
    struct summary summary = {.subject = subject};
    if (!core_need_typed(subject, error)) return false;
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

enum {
    LABEL_BYTES = FRAME_TEXT_BYTES,
};

// What blocks of one stack, or of one label, add up to.
struct live_at {
    char label[LABEL_BYTES];
    uint64_t count, bytes;
};
struct held_list {
    ARRAY(struct live_at) items;
};

// The first shown frame of a stack as text: its module, its function, or its return address. ""
// where the stack is not of the wanted module or function.
static bool label_of(const struct core_subject *subject, const struct frame_names *names,
                     uint32_t node, const char *module, const char *function, char *label) {
    struct frame_list frames = {0};
    size_t index = 0;
    char name[LABEL_BYTES], base[LABEL_BYTES];
    *label = 0;
    if (!frame_list_fill(&frames, &subject->opened.profile, names, node, 0)) return false;
    const struct frame *frame = frame_list_next(&frames, &index);
    if (!frame) {
        snprintf(label, LABEL_BYTES, "%s", STACK_NOT_RECORDED);
        if (module) *label = 0;
        frame_list_free(&frames);
        return true;
    }
    text_escape(base, sizeof base, frame->module ? text_base_name(frame->module) : "[no module]");
    frame_label(frame, name, sizeof name, LABEL_BYTES);
    bool is_wanted = (!module || !strcmp(module, base)) && (!function || !strcmp(function, name));
    if (is_wanted && function) {
        char place[LABEL_BYTES];
        frame_location(frame, place, sizeof place);
        snprintf(label, LABEL_BYTES, "+0x%" PRIx64 "  %.900s", frame->offset, place);
    } else if (is_wanted) {
        snprintf(label, LABEL_BYTES, "%s", module ? name : base);
    }
    frame_list_free(&frames);
    return true;
}

static int compare_labels(const void *a, const void *b) {
    const struct live_at *left = a, *right = b;
    return strcmp(left->label, right->label);
}

static int compare_bytes(const void *a, const void *b) {
    const struct live_at *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return strcmp(left->label, right->label);
}

// Equal labels become one; the largest comes first.
static void fold(struct held_list *list) {
    size_t kept = 0;
    struct live_at *items = list->items.items;
    if (!list->items.count) return;
    qsort(items, list->items.count, sizeof *items, compare_labels);
    for (size_t i = 0; i < list->items.count; i++) {
        if (kept && !strcmp(items[kept - 1].label, items[i].label)) {
            items[kept - 1].count += items[i].count;
            items[kept - 1].bytes += items[i].bytes;
        } else {
            items[kept++] = items[i];
        }
    }
    list->items.count = kept;
    qsort(items, kept, sizeof *items, compare_bytes);
}

// Sums by stack, indexed like the profile's; the last is for blocks without one.
static struct live_at *hold_by_stack(const struct core_subject *subject) {
    const struct profile *profile = &subject->opened.profile;
    struct live_at *held = calloc(profile->stack_count + 1, sizeof *held);
    struct core_block_cursor cursor = {.blocks = &subject->blocks};
    struct core_block block;
    while (held && core_blocks_next(&cursor, &block)) {
        struct live_at *one = &held[profile_stack_of(profile, block.cell)];
        one->count++;
        one->bytes += block.size;
    }
    return held;
}

static bool resolve_held(const struct core_subject *subject, const struct live_at *held,
                         struct error *error) {
    const struct profile *profile = &subject->opened.profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (held[i].count) names_want_stack(subject->opened.names, profile->stacks[i].node, 0);
    return names_resolve(subject->opened.names, error);
}

static bool group(const struct core_subject *subject, struct live_at *held, const char *module,
                  const char *function, struct held_list *list) {
    const struct profile *profile = &subject->opened.profile;
    const struct frame_names names = names_frames(subject->opened.names);
    for (size_t i = 0; i <= profile->stack_count; i++) {
        uint32_t node = i < profile->stack_count ? profile->stacks[i].node : TREE_ROOT;
        if (!held[i].count) continue;
        if (!label_of(subject, &names, node, module, function, held[i].label)) return false;
        struct live_at *item = *held[i].label ? array_push(&list->items) : NULL;
        if (*held[i].label && !item) return false;
        if (item) *item = held[i];
    }
    fold(list);
    return true;
}

static void print_groups(const struct held_list *list, uint64_t whole) {
    static const struct column items[] = {{"blocks", 12, STYLE_PLAIN, false},
                                          {"bytes", 12, STYLE_PLAIN, false},
                                          {"", 6, STYLE_PLAIN, false}};
    const struct terminal terminal = terminal_of(stdout);
    const struct columns columns = {items, 3, 0, 1};
    columns_print_heads(&terminal, &columns);
    putchar('\n');
    for (size_t i = 0; i < list->items.count; i++) {
        const struct live_at *item = &list->items.items[i];
        const struct unit_text texts[] = {units_count((int64_t)item->count),
                                          units_count((int64_t)item->bytes),
                                          units_percent((int64_t)item->bytes, (int64_t)whole)};
        columns_print(&terminal, &columns, texts);
        printf("  %s\n", item->label);
    }
}

bool core_print_groups(const struct core_subject *subject, const char *module, const char *function,
                       struct error *error) {
    struct held_list list = {0};
    struct live_at *held = hold_by_stack(subject);
    if (!held) return error_set(error, "out of memory");
    bool is_ok = resolve_held(subject, held, error);
    if (is_ok && !group(subject, held, module, function, &list))
        is_ok = error_set(error, "out of memory");
    if (is_ok && module && !list.items.count)
        is_ok =
            error_set(error, "no block is of %s%s%s; `cairn core %s summarize%s%s` lists what is",
                      module, function ? ", function " : "", function ? function : "",
                      subject->look.name, function ? " " : "", function ? module : "");
    if (is_ok) {
        print_groups(&list, subject->blocks.bytes);
        core_print_sum(&(struct core_sum){subject->blocks.items.count, subject->blocks.bytes});
    }
    array_free(&list.items);
    free(held);
    return is_ok;
}

static void print_threads_of(const struct core_subject *subject, uint32_t cell) {
    const struct profile *profile = &subject->opened.profile;
    uint16_t slot = 0;
    if (!recording_owner(&subject->opened.recording, cell, &slot)) return;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        char name[4 * sizeof thread->name];
        if (thread->slot != slot) continue;
        text_escape(name, sizeof name, thread->name);
        printf("allocated by thread %" PRIu32 " (%s)\n", thread->tid, name);
    }
}

void core_want_origin(const struct core_subject *subject, uint32_t cell) {
    const struct profile *profile = &subject->opened.profile;
    size_t stack = profile_stack_of(profile, cell);
    if (stack < profile->stack_count)
        names_want_stack(subject->opened.names, profile->stacks[stack].node, 0);
}

bool core_print_origin(const struct core_subject *subject, uint32_t cell, struct error *error) {
    const struct profile *profile = &subject->opened.profile;
    size_t stack = profile_stack_of(profile, cell);
    uint32_t node = stack < profile->stack_count ? profile->stacks[stack].node : TREE_ROOT;
    struct frame_list frames = {.are_all_shown = true};
    const struct frame_names names = names_frames(subject->opened.names);
    if (!frame_list_fill(&frames, profile, &names, node, 0))
        return error_set(error, "out of memory");
    print_threads_of(subject, cell);
    struct terminal terminal = terminal_of(stdout);
    uint32_t cut = stack < profile->stack_count ? profile->stacks[stack].cut : 0;
    stacks_print_frames(&terminal, &frames, cut, 0);
    frame_list_free(&frames);
    return true;
}

bool core_print_overview(const struct core_subject *subject, struct error *error) {
    const struct core_blocks *blocks = &subject->blocks;
    char path[LABEL_BYTES], quoted[LABEL_BYTES];
    text_quote(quoted, sizeof quoted, subject->look.name);
    text_escape(path, sizeof path, quoted);
    if (!core_print_groups(subject, NULL, NULL, error)) return false;
    if (blocks->rejected_count)
        printf("left out: %s that contradict what is around them\n",
               units_counted((int64_t)blocks->rejected_count, "slot of the map", "slots of the map")
                   .text);
    if (blocks->missing_leaves || subject->core->missing_bytes)
        printf("the core is not whole: %s of it are missing\n",
               units_size((int64_t)subject->core->missing_bytes).text);
    printf("\nNext: cairn core %s summarize MODULE | list leaked | describe ADDRESS\n"
           "      cairn report %s\n",
           path, path);
    return true;
}
