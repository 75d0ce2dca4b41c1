// SPDX-License-Identifier: Apache-2.0
#include "tool/render/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/render/shorten.h"

static bool add_place(struct frame_list *list, const struct frame_names *names, uint32_t place) {
    size_t count;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        const struct frame **slot = array_push(&list->frames);
        if (!slot) return false;
        *slot = &frames[i];
        list->has_python |= frames[i].is_python;
    }
    return true;
}

// What stands for the stacks of blocks that got none for their size.
static const struct frame buckets[] = {
    {.function = "small allocations"},
    {.function = "large allocations"},
};

// The frame that stands for what is further out than --max-depth has it, by the number of frames.
// Commands show recordings of one depth (recording_cut_all); others follow each other.
enum { ENDS = 8, END_BYTES = 32 };
static struct cut_end {
    uint32_t cut;
    char name[END_BYTES];
    struct frame frame;
} cut_ends[ENDS];

static const struct frame *end_of_cut(uint32_t cut) {
    static unsigned next;
    for (unsigned i = 0; i < ENDS; i++)
        if (cut_ends[i].cut == cut) return &cut_ends[i].frame;
    struct cut_end *end = &cut_ends[next++ % ENDS];
    end->cut = cut;
    snprintf(end->name, sizeof end->name, "(cut at %u)", cut_frames(cut));
    end->frame = (struct frame){.function = end->name};
    return &end->frame;
}

static bool is_end_of_cut(const struct frame *frame) {
    for (unsigned i = 0; i < ENDS; i++)
        if (frame == &cut_ends[i].frame) return true;
    return false;
}

bool frame_is_bucket(const struct frame *frame) {
    return frame == &buckets[0] || frame == &buckets[1] || is_end_of_cut(frame);
}

const struct frame *frame_of_cut(uint32_t cut) {
    if (cut_kind(cut) == CAIRN_CUT_MAX_DEPTH) return end_of_cut(cut);
    bool is_bucket = cut == CAIRN_CUT_SMALL || cut == CAIRN_CUT_LARGE;
    return is_bucket ? &buckets[cut == CAIRN_CUT_LARGE] : NULL;
}

static bool add_bucket(struct frame_list *list, uint32_t cut) {
    const struct frame *bucket = frame_of_cut(cut);
    const struct frame **slot = bucket ? array_push(&list->frames) : NULL;
    if (slot) *slot = bucket;
    return slot || !bucket;
}

static bool is_shown(const struct frame_list *list, size_t index) {
    return list->are_all_shown || !frame_is_hidden(list->frames.items[index], list->has_python);
}

// Counts what is shown; if that is nothing, keeps one frame: the first that is no allocator.
static void choose_shown(struct frame_list *list) {
    size_t count = list->frames.count;
    list->shown_count = list->first_hidden = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_shown(list, i)) list->shown_count++;
        if (!list->shown_count) list->first_hidden++;
    }
    const bool is_cut = count > 1 && is_end_of_cut(list->frames.items[count - 1]);
    if (list->shown_count > is_cut || !count) return;
    count -= is_cut;
    size_t kept = 0;
    while (kept + 1 < count && list->frames.items[kept]->is_allocator) kept++;
    list->frames.items[0] = list->frames.items[kept];
    list->frames.count = 1;
    list->shown_count = 1;
    list->first_hidden = count - 1;
}

bool frame_list_fill(struct frame_list *list, const struct profile *profile,
                     const struct frame_names *names, uint32_t node, size_t place_limit) {
    list->frames.count = 0;
    list->has_python = false;
    const struct tree_node *nodes = profile->tree.nodes.items;
    for (size_t used = 0; node != TREE_ROOT && (!place_limit || used < place_limit); used++) {
        uint32_t place = nodes[node].place;
        uint32_t cut = profile->places.list.items[place].cut;
        if (cut ? !add_bucket(list, cut) : !add_place(list, names, place)) return false;
        node = nodes[node].parent;
    }
    choose_shown(list);
    return true;
}

void frame_list_free(struct frame_list *list) {
    array_free(&list->frames);
}

const struct frame *frame_list_next(const struct frame_list *list, size_t *index) {
    while (*index < list->frames.count) {
        size_t at = (*index)++;
        bool is_only = list->frames.count == 1;
        if (is_only || is_shown(list, at)) return list->frames.items[at];
    }
    return NULL;
}

struct frame_lead frame_list_lead(const struct frame_list *list) {
    struct frame_lead first = {0}, own = {0}, named = {0};
    const struct frame *frame, *before = NULL;
    for (size_t index = 0; (frame = frame_list_next(list, &index)); before = frame) {
        const struct frame_lead here = {frame, NULL, index};
        if (!first.frame) first = here;
        if (frame->is_own && !own.frame) own = (struct frame_lead){frame, before, index};
        if (own.frame == frame && frame->function) return own;
        if (frame->function && !frame->is_runtime && !named.frame) named = here;
        if (own.frame && named.frame) return named;
    }
    if (own.frame) return own;
    return first.frame && !first.frame->function && named.frame ? named : first;
}

const struct frame *frame_list_first_own(const struct frame_list *list) {
    return frame_list_lead(list).frame;
}

static bool is_same_text(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

static bool is_in_one_file(const struct frame *a, const struct frame *b) {
    if (!a->file || !b->file || a->file == b->file) return true;
    return !strcmp(text_base_name(a->file), text_base_name(b->file));
}

bool frame_is_same_function(const struct frame *a, const struct frame *b) {
    if (a == b) return true;
    // of frames that were sealed the hash says at once that they are not
    if (a->function_hash != b->function_hash && a->function_hash && b->function_hash) return false;
    if (!is_same_text(a->function, b->function) || !is_same_text(a->module, b->module))
        return false;
    return a->function ? is_in_one_file(a, b) : a->offset == b->offset;
}

bool frame_is_same(const struct frame *a, const struct frame *b) {
    return frame_is_same_function(a, b) && a->line == b->line && is_same_text(a->file, b->file);
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; text && *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

static uint64_t hash_function(const struct frame *frame) {
    uint64_t hash = hash_text(index_table_seed(), frame->function);
    return (frame->function ? hash : hash_mix(hash, frame->offset)) | 1;
}

uint64_t frame_hash(const struct frame *frame, bool has_line) {
    uint64_t hash = frame->function_hash ? frame->function_hash : hash_function(frame);
    return has_line ? hash_mix(hash, frame->line) : hash;
}

void frame_seal(struct frame *frame) {
    frame->function_hash = hash_function(frame);
}

void frame_label(const struct frame *frame, char *out, size_t size, size_t columns) {
    char text[FRAME_TEXT_BYTES];
    if (frame->function) {
        text_escape(text, sizeof text, frame->function);
        shorten_function(text, columns);
    } else if (frame->module && *frame->module) {
        char module[FRAME_TEXT_BYTES / 2];
        text_escape(module, sizeof module, text_base_name(frame->module));
        snprintf(text, sizeof text, "%s+0x%" PRIx64, module, frame->offset);
    } else {
        snprintf(text, sizeof text, "0x%" PRIx64, frame->offset);
    }
    text_cut(text, columns);
    snprintf(out, size, "%s", text);
}

bool frame_is_nameless(const struct frame *frame) {
    static const char *const names[] = {"{main}", "(anonymous)"};
    const char *function = frame->function;
    const size_t length = function ? strlen(function) : 0;
    for (size_t i = 0; length && i < sizeof names / sizeof *names; i++)
        if (!strcmp(function, names[i])) return true;
    return length > 2 && *function == '<' && strcspn(function, ">") == length - 1;
}

void frame_label_in_file(const struct frame *frame, char *out, size_t size, size_t columns) {
    enum { FILE_COLUMNS = 24 };
    char file[FRAME_TEXT_BYTES];
    frame_label(frame, out, size, columns);
    if (!frame->file) return;
    text_escape(file, sizeof file, text_base_name(frame->file));
    text_cut(file, FILE_COLUMNS);
    const size_t used = strlen(out);
    snprintf(out + used, size - used, " (%s)", file);
}

void frame_label_alone(const struct frame *frame, char *out, size_t size, size_t columns) {
    if (frame_is_nameless(frame))
        frame_label_in_file(frame, out, size, columns);
    else
        frame_label(frame, out, size, columns);
}

void frame_location(const struct frame *frame, char *out, size_t size) {
    enum { LINE_BYTES = 16 };
    *out = 0;
    const char *path = frame->file ? frame->file : frame->function ? frame->module : NULL;
    if (!path || size <= LINE_BYTES) return;
    text_escape(out, size - LINE_BYTES, text_base_name(path));
    size_t used = strlen(out);
    if (frame->file && frame->line) snprintf(out + used, size - used, ":%u", frame->line);
}

static const struct {
    const char *key, *sentence;
} cuts[] = {
    [CAIRN_CUT_NO_CFI] = {"no_cfi", "code without unwind information"},
    [CAIRN_CUT_BAD_STACK] = {"bad_stack", "the next frame was not on readable stack memory"},
    [CAIRN_CUT_DEPTH] = {"depth", "deeper than cairn follows"},
    [CAIRN_CUT_UNSUPPORTED] = {"unsupported", "unwind information of an unknown form"},
    [CAIRN_CUT_GUESSED] = {"guessed", "a frame was found by its frame pointer"},
    [CAIRN_CUT_MAX_DEPTH] = {"max_depth", "more frames than --max-depth lets stay"},
    [CAIRN_CUT_SMALL] = {"small", "small allocations (--min-size)"},
    [CAIRN_CUT_LARGE] = {"large", "large allocations (--max-size)"},
    [CAIRN_CUT_NO_STACKS] = {"no_stacks", "call stacks were not wanted"},
};

static bool is_known_cut(uint32_t cut) {
    return cut < sizeof cuts / sizeof *cuts && cuts[cut].key;
}

const char *cut_key(uint32_t mark) {
    const uint32_t cut = cut_kind(mark);
    return is_known_cut(cut) ? cuts[cut].key : "unknown";
}

const char *cut_sentence(uint32_t mark) {
    const uint32_t cut = cut_kind(mark);
    return is_known_cut(cut) ? cuts[cut].sentence : "for an unknown reason";
}
