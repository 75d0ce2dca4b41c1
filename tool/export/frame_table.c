// SPDX-License-Identifier: Apache-2.0
#include "tool/export/frame_table.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"

static bool has_lines(const struct frame_table *table) {
    return table->choice != FRAMES_FUNCTIONS || table->export->has_lines;
}

static bool is_same(const struct frame_table *table, const struct frame *a, const struct frame *b) {
    if (!has_lines(table)) return frame_is_same_function(a, b);
    return frame_is_same(a, b) && (table->choice != FRAMES_DISTINCT || a->offset == b->offset);
}

static bool number_of(struct frame_table *table, const struct frame *frame, uint32_t *number) {
    uint64_t hash = frame_hash(frame, has_lines(table));
    if (table->choice == FRAMES_DISTINCT) hash = hash_mix(hash, frame->offset);
    struct index_probe probe = index_probe_start(&table->index, hash);
    while (index_probe_next(&table->index, &probe, number))
        if (is_same(table, frame, table->frames.items[*number])) return true;
    *number = (uint32_t)table->frames.count;
    const struct frame **slot = array_push(&table->frames);
    if (!slot) return false;
    *slot = frame;
    return index_table_insert(&table->index, hash, *number);
}

static bool push_frame(struct frame_table *table, const struct frame *frame) {
    uint32_t number, *slot = array_push(&table->numbers);
    if (!slot || !number_of(table, frame, &number)) return false;
    *slot = number;
    return true;
}

// The frame that stands for a stack's outer end; none for stacks that are complete.
static bool push_mark(struct frame_table *table, uint32_t cut) {
    bool is_guessed = cut == CAIRN_CUT_GUESSED;
    bool has_mark = !is_guessed || table->choice == FRAMES_DISTINCT;
    if (table->choice == FRAMES_ALL || !has_mark) return true;
    bool is_bucket = cut == CAIRN_CUT_SMALL || cut == CAIRN_CUT_LARGE;
    snprintf(table->mark_names[cut], sizeof table->mark_names[cut],
             is_bucket ? "%.0s%s" : "[%s: %s]", is_guessed ? "complete" : "incomplete",
             cut_sentence(cut));
    table->marks[cut] = (struct frame){.function = table->mark_names[cut]};
    return push_frame(table, &table->marks[cut]);
}

static bool push_place(struct frame_table *table, uint32_t place) {
    const struct frame_names *names = table->export->names;
    uint32_t cut = table->export->profile->places.list.items[place].cut;
    struct frame_slice *slice = &table->slices[place];
    slice->first = (uint32_t)table->numbers.count;
    size_t count = 0;
    const struct frame *frames = cut ? NULL : names->of_place(names->context, place, &count);
    bool is_ok = !cut || push_mark(table, cut);
    for (size_t i = 0; i < count && is_ok; i++) is_ok = push_frame(table, &frames[i]);
    slice->count = (uint32_t)(table->numbers.count - slice->first);
    return is_ok;
}

bool frame_table_build(struct frame_table *table, const struct export *export,
                       enum frame_choice choice, struct error *error) {
    size_t places = export->profile->places.list.count;
    *table = (struct frame_table){.export = export, .choice = choice};
    table->slices = calloc(places + 1, sizeof *table->slices);
    bool is_ok = table->slices != NULL;
    for (uint32_t place = 0; place < places && is_ok; place++) is_ok = push_place(table, place);
    struct frame *not_recorded = &table->marks[CAIRN_CUT_LIMIT];
    *not_recorded = (struct frame){.function = STACK_NOT_RECORDED};
    is_ok = is_ok && number_of(table, not_recorded, &table->not_recorded);
    if (is_ok) return true;
    frame_table_free(table);
    return error_set(error, "no memory for the table of frames");
}

void frame_table_free(struct frame_table *table) {
    array_free(&table->frames);
    array_free(&table->numbers);
    array_free(&table->stack);
    index_table_free(&table->index);
    free(table->slices);
    table->slices = NULL;
}

static bool append_place(struct frame_table *table, uint32_t place) {
    struct frame_slice slice = table->slices[place];
    for (uint32_t i = 0; i < slice.count; i++) {
        uint32_t *slot = array_push(&table->stack);
        if (!slot) return false;
        *slot = table->numbers.items[slice.first + i];
    }
    return true;
}

static bool is_mark(const struct frame_table *table, uint32_t number) {
    const struct frame *frame = table->frames.items[number];
    return frame >= table->marks && frame <= &table->marks[CAIRN_CUT_LIMIT];
}

// Leaves out internal frames; of a stack of nothing else keeps the first frame that is no
// allocator, as screens do (tool/render/frames.h).
static void hide_internal(struct frame_table *table) {
    uint32_t *stack = table->stack.items;
    size_t kept = 0, first = 0, count = table->stack.count;
    bool has_mark = count && is_mark(table, stack[count - 1]);
    if (has_mark) count--;
    if (!count) return;
    while (first + 1 < count && table->frames.items[stack[first]]->is_allocator) first++;
    uint32_t only = stack[first];
    bool has_python = false;
    for (size_t i = 0; i < count; i++) has_python |= table->frames.items[stack[i]]->is_python;
    for (size_t i = 0; i < count; i++)
        if (!frame_is_hidden(table->frames.items[stack[i]], has_python)) stack[kept++] = stack[i];
    if (!kept) stack[kept++] = only;
    if (has_mark) stack[kept++] = stack[count];
    table->stack.count = kept;
}

bool frame_table_stack(struct frame_table *table, uint32_t node) {
    const struct tree_node *nodes = table->export->profile->tree.nodes.items;
    bool is_picture = table->choice == FRAMES_PICTURE || table->choice == FRAMES_FUNCTIONS;
    table->stack.count = 0;
    for (; node != TREE_ROOT; node = nodes[node].parent)
        if (!append_place(table, nodes[node].place)) return false;
    if (is_picture && !table->export->has_all_frames) hide_internal(table);
    if (table->choice == FRAMES_ALL || table->stack.count) return true;
    uint32_t *slot = array_push(&table->stack);
    if (slot) *slot = table->not_recorded;
    return slot != NULL;
}

void frame_title(const struct frame *frame, char *out, size_t size) {
    enum { OFFSET_BYTES = 24 };
    if (frame->function) {
        text_escape(out, size, frame->function);
        return;
    }
    *out = 0;
    bool has_module = frame->module && *frame->module;
    if (has_module) text_escape(out, size - OFFSET_BYTES, text_base_name(frame->module));
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s0x%" PRIx64, has_module ? "+" : "", frame->offset);
}

void frame_valgrind_text(const struct frame *frame, char *out, size_t size) {
    char title[FRAME_TITLE_BYTES] = "???", place[FRAME_TEXT_BYTES] = "";
    if (frame->function) frame_title(frame, title, sizeof title);
    if (frame->file)
        frame_location(frame, place, sizeof place);
    else if (frame->module)
        text_escape(place, sizeof place, frame->module);
    const char *open = frame->file ? " (" : " (in ";
    snprintf(out, size, "0x%" PRIX64 ": %s%s%s%s", frame->offset, title, *place ? open : "", place,
             *place ? ")" : "");
}
