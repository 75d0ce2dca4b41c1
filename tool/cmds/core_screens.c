// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_screens.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/stacks.h"

enum {
    LABEL_BYTES = FRAME_TEXT_BYTES,
};

// What blocks of one stack, or of one label, add up to.
struct held {
    char label[LABEL_BYTES];
    uint64_t count, bytes;
};
struct held_list {
    ARRAY(struct held) items;
};

// Index of the block's stack, or `stack_count` if its cell has none.
static size_t stack_of(const struct profile *profile, uint32_t cell) {
    uint32_t number = cell < profile->cell_count ? profile->stack_of_cell[cell] : 0;
    return number && number <= profile->stack_count ? number - 1 : profile->stack_count;
}

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
    const struct held *left = a, *right = b;
    return strcmp(left->label, right->label);
}

static int compare_bytes(const void *a, const void *b) {
    const struct held *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return strcmp(left->label, right->label);
}

// Equal labels become one; the largest comes first.
static void fold(struct held_list *list) {
    size_t kept = 0;
    struct held *items = list->items.items;
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
static struct held *hold_by_stack(const struct core_subject *subject) {
    const struct profile *profile = &subject->opened.profile;
    struct held *held = calloc(profile->stack_count + 1, sizeof *held);
    struct core_block_cursor cursor = {.blocks = &subject->blocks};
    struct core_block block;
    while (held && core_blocks_next(&cursor, &block)) {
        struct held *one = &held[stack_of(profile, block.cell)];
        one->count++;
        one->bytes += block.size;
    }
    return held;
}

static bool resolve_held(const struct core_subject *subject, const struct held *held,
                         struct error *error) {
    const struct profile *profile = &subject->opened.profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (held[i].count) names_want_stack(subject->opened.names, profile->stacks[i].node, 0);
    return names_resolve(subject->opened.names, error);
}

static bool group(const struct core_subject *subject, struct held *held, const char *module,
                  const char *function, struct held_list *list) {
    const struct profile *profile = &subject->opened.profile;
    const struct frame_names names = names_frames(subject->opened.names);
    for (size_t i = 0; i <= profile->stack_count; i++) {
        uint32_t node = i < profile->stack_count ? profile->stacks[i].node : TREE_ROOT;
        if (!held[i].count) continue;
        if (!label_of(subject, &names, node, module, function, held[i].label)) return false;
        struct held *item = *held[i].label ? array_push(&list->items) : NULL;
        if (*held[i].label && !item) return false;
        if (item) *item = held[i];
    }
    fold(list);
    return true;
}

static void print_groups(const struct held_list *list, uint64_t whole) {
    printf("%12s %12s  %5s\n", "blocks", "bytes", "");
    for (size_t i = 0; i < list->items.count; i++) {
        const struct held *item = &list->items.items[i];
        printf("%12s %12s  %5s  %s\n", units_count((int64_t)item->count).text,
               units_count((int64_t)item->bytes).text,
               units_percent((int64_t)item->bytes, (int64_t)whole).text, item->label);
    }
}

bool core_print_groups(const struct core_subject *subject, const char *module, const char *function,
                       struct error *error) {
    struct held_list list = {0};
    struct held *held = hold_by_stack(subject);
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
    size_t stack = stack_of(profile, cell);
    if (stack < profile->stack_count)
        names_want_stack(subject->opened.names, profile->stacks[stack].node, 0);
}

bool core_print_origin(const struct core_subject *subject, uint32_t cell, struct error *error) {
    const struct profile *profile = &subject->opened.profile;
    size_t stack = stack_of(profile, cell);
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
