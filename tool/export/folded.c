// SPDX-License-Identifier: Apache-2.0
// Collapsed stacks: a line a stack, "outer;inner VALUE". What would end a frame or a line in a name
// is replaced, so that every reader finds the value behind the last blank.
//
// The lines that MallocProfiler writes, for the scripts of its users: a stack with its number of
// calls, bytes in total, bytes live at the end, and the most bytes it was seen to hold.
#include "tool/export/folded.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/all_heaps.h"

// The title with each quote twice.
static char *double_quotes(const char *title) {
    char *doubled = malloc(2 * strlen(title) + 1), *out = doubled;
    for (; doubled && *title; title++) {
        if (*title == '"') *out++ = '"';
        *out++ = *title;
    }
    if (doubled) *out = 0;
    return doubled;
}

static bool add_title(struct folded *folded, const struct frame *frame, bool has_quotes) {
    char title[FRAME_TITLE_BYTES];
    frame_title(frame, title, sizeof title);
    for (char *at = title; (at = strchr(at, ';'));) *at = ',';
    struct folded_title *added = &folded->titles[folded->title_count++];
    added->text = has_quotes ? double_quotes(title) : strdup(title);
    added->length = added->text ? strlen(added->text) : 0;
    return added->text != NULL;
}

bool folded_open(struct folded *folded, const struct export *export, bool has_quotes,
                 struct error *error) {
    *folded = (struct folded){0};
    if (!frame_table_build(&folded->frames, export, FRAMES_PICTURE, error)) return false;
    size_t count = folded->frames.frames.count;
    folded->titles = calloc(count + 1, sizeof *folded->titles);
    const struct frame **items = folded->frames.frames.items;
    bool is_ok = folded->titles && items;
    for (size_t i = 0; i < count && is_ok; i++) is_ok = add_title(folded, items[i], has_quotes);
    if (is_ok) return true;
    folded_close(folded);
    return error_set(error, "no memory for names");
}

void folded_close(struct folded *folded) {
    for (size_t i = 0; folded->titles && i < folded->title_count; i++) free(folded->titles[i].text);
    free(folded->titles);
    folded->titles = NULL;
    folded->title_count = 0;
    frame_table_free(&folded->frames);
}

bool folded_put(FILE *out, struct folded *folded, uint32_t node, struct error *error) {
    if (!frame_table_stack(&folded->frames, node)) return error_set(error, "no memory for a stack");
    for (size_t i = folded->frames.stack.count; i-- > 0;) {
        const struct folded_title *title = &folded->titles[folded->frames.stack.items[i]];
        fwrite_unlocked(title->text, 1, title->length, out);
        if (i) fputc_unlocked(';', out);
    }
    return true;
}

// Of all heaps: the outermost frame says which.
static void put_heap(FILE *out, const struct profile *profile, const struct stack *stack) {
    char name[FRAME_TITLE_BYTES];
    text_escape(name, sizeof name, profile_heap_of(profile, stack));
    for (char *at = name; (at = strchr(at, ';'));) *at = ',';
    fprintf(out, "[heap %s];", name);
}

bool export_collapsed(FILE *out, const struct export *export, struct error *error) {
    const struct profile *profile = export->profile;
    struct folded folded;
    if (!folded_open(&folded, export, false, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        int64_t value = measure_stack(export->by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        if (profile->heap_names) put_heap(out, profile, &profile->stacks[i]);
        is_ok = folded_put(out, &folded, profile->stacks[i].node, error);
        fprintf(out, " %" PRId64 "\n", value);
    }
    folded_close(&folded);
    return is_ok;
}

// cairn knows what a stack held at two snapshots; its own maximum is at least the larger one.
static int64_t most_bytes(const struct stack *stack) {
    return stack->peak_bytes > stack->exit_bytes ? stack->peak_bytes : stack->exit_bytes;
}

bool export_mptrace(FILE *out, const struct export *export, struct error *error) {
    const struct profile *profile = export->profile;
    struct folded folded;
    if (!folded_open(&folded, export, false, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[i];
        fputs("_mpTrace_;", out);
        is_ok = folded_put(out, &folded, stack->node, error);
        fprintf(out, " $%" PRIu64 "$%" PRIu64 "$%" PRId64 "$%" PRId64 "\n", stack->allocations,
                stack->allocated_bytes, stack->exit_bytes, most_bytes(stack));
    }
    folded_close(&folded);
    return is_ok;
}
