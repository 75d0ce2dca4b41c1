// SPDX-License-Identifier: Apache-2.0
#include "tool/model/decode.h"

#include <stdlib.h>
#include <string.h>

enum { STATE_UNKNOWN = 0, STATE_FOLLOWED = 1, STATE_FIRST_NODE = 2 };
enum { RECORD_HEAD_WORDS = 2 };
static const uint32_t keep_all = UINT32_MAX;  // but for the record's `drop`

// Records may be shared by several cells; a file in which frames are read more often than this
// many times its words was made up.
enum { SHARING_MAX = 4, FRAMES_MIN = 65536 };

uint32_t recording_max_depth(const struct recording *recording) {
    const uint32_t own = recording->header.max_depth, wanted = recording->depth;
    if (own > CAIRN_CUT_AT_MOST) return wanted;  // a damaged one may say anything
    return own && (!wanted || own < wanted) ? own : wanted;
}

// Of the marks that a recording has.
static uint32_t mark_depth(const struct recording *recording) {
    const uint32_t depth = recording->header.max_depth;
    return depth <= CAIRN_CUT_AT_MOST ? depth : 0;
}

// Stacks that were recorded with no more frames need not be cut.
static uint32_t depth_to_cut(const struct recording *recording) {
    const uint32_t depth = recording_max_depth(recording);
    return depth == recording->header.max_depth ? 0 : depth;
}

bool decoder_start(struct decoder *decoder, struct recording *recording,
                   const struct module_map *modules, struct places *places, struct tree *tree) {
    size_t cells = recording_count(recording, CAIRN_SECTION_CELLS);
    size_t words = recording_count(recording, CAIRN_SECTION_RECORDS);
    *decoder = (struct decoder){.recording = recording,
                                .modules = modules,
                                .places = places,
                                .tree = tree,
                                .depth = depth_to_cut(recording),
                                .frames_left = (uint64_t)words * SHARING_MAX + FRAMES_MIN};
    // most frames are a word, and each may be a node; short records make up for their head by
    // frames that take none
    tree_expect(tree, words, cells);
    if (cells <= CAIRN_CELL_OTHER) cells = CAIRN_CELL_OTHER + 1;
    decoder->cell_states = calloc(cells, sizeof *decoder->cell_states);
    decoder->cell_regions = calloc(cells, sizeof *decoder->cell_regions);
    if (!decoder->cell_states || !decoder->cell_regions) return false;
    decoder->cell_states[CAIRN_CELL_OTHER] = TREE_ROOT + STATE_FIRST_NODE;
    return true;
}

static bool grow(uint32_t **items, size_t old_count, size_t count) {
    uint32_t *grown = reallocarray(*items, count, sizeof **items);
    if (!grown) return false;
    memset(grown + old_count, 0, (count - old_count) * sizeof *grown);
    *items = grown;
    return true;
}

bool decoder_extend(struct decoder *decoder, size_t old_cells, size_t old_words) {
    size_t cells = recording_count(decoder->recording, CAIRN_SECTION_CELLS);
    size_t words = recording_count(decoder->recording, CAIRN_SECTION_RECORDS);
    if (old_cells <= CAIRN_CELL_OTHER) old_cells = CAIRN_CELL_OTHER + 1;
    if (words > old_words) decoder->frames_left += (uint64_t)(words - old_words) * SHARING_MAX;
    return cells <= old_cells || (grow(&decoder->cell_states, old_cells, cells) &&
                                  grow(&decoder->cell_regions, old_cells, cells));
}

void decoder_free(struct decoder *decoder) {
    free(decoder->cell_states);
    free(decoder->cell_regions);
    array_free(&decoder->pending);
    array_free(&decoder->cut_nodes);
    array_free(&decoder->path);
}

// False: it names no older cell.
static bool short_record(uint32_t cell, uint32_t at, uint32_t head, struct record *record) {
    uint32_t back = CAIRN_SHORT_BACK(head);
    *record = (struct record){.older = cell - back,
                              .keep = keep_all,
                              .drop = CAIRN_SHORT_DROP(head),
                              .tail = CAIRN_SHORT_TAIL(head),
                              .added = CAIRN_SHORT_NEW(head),
                              .is_short = true,
                              .first_frame = (size_t)at + 1};
    return back && back < cell;
}

bool decoder_record(const struct decoder *decoder, uint32_t cell, struct record *record) {
    uint32_t at, older, sizes;
    if (!recording_cell_record(decoder->recording, cell, &at)) return false;
    if (!recording_word(decoder->recording, at, &older)) return false;
    if (older & CAIRN_RECORD_SHORT) return short_record(cell, at, older, record);
    if (!recording_word(decoder->recording, (size_t)at + 1, &sizes)) return false;
    bool is_foreign = sizes & CAIRN_RECORD_FOREIGN;
    *record = (struct record){.older = older,
                              .keep = is_foreign ? keep_all : CAIRN_RECORD_KEEP(sizes),
                              .added = is_foreign ? 0 : CAIRN_RECORD_NEW(sizes),
                              .is_foreign = is_foreign,
                              .first_frame = (size_t)at + RECORD_HEAD_WORDS};
    if (is_foreign && CAIRN_RECORD_NEW(sizes) == 1)
        recording_word(decoder->recording, record->first_frame, &record->freer);
    return true;
}

enum outcome { OUTCOME_OK, OUTCOME_DAMAGED, OUTCOME_NO_MEMORY };

static enum outcome place_of_code(struct decoder *decoder, enum codes_result outcome, uint32_t code,
                                  uint32_t line, uint32_t *place) {
    if (outcome == CODES_DAMAGED) return OUTCOME_DAMAGED;
    if (outcome == CODES_NO_MEMORY) return OUTCOME_NO_MEMORY;
    return places_of_code(decoder->places, code, line, place) ? OUTCOME_OK : OUTCOME_NO_MEMORY;
}

static enum outcome decode_python(struct decoder *decoder, size_t *at, uint32_t *place) {
    uint32_t number, line, code = 0;
    if (!recording_word(decoder->recording, (*at)++, &number)) return OUTCOME_DAMAGED;
    if (!recording_word(decoder->recording, (*at)++, &line)) return OUTCOME_DAMAGED;
    enum codes_result outcome =
        codes_read(&decoder->places->codes, decoder->recording, number, &code);
    return place_of_code(decoder, outcome, code, line, place);
}

static enum outcome decode_name(struct decoder *decoder, size_t *at, uint32_t *place) {
    uint32_t offset, code = 0;
    if (!recording_word(decoder->recording, (*at)++, &offset)) return OUTCOME_DAMAGED;
    enum codes_result outcome =
        codes_of_name(&decoder->places->codes, decoder->recording, offset, &code);
    return place_of_code(decoder, outcome, code, 0, place);
}

// A code of the escape family; `at` is moved behind the words that belong to it.
static enum outcome decode_escape(struct decoder *decoder, uint32_t code, size_t *at,
                                  uint32_t *place) {
    uint32_t low, high, value = CAIRN_CODE_VALUE(code);
    bool is_ok;
    switch (CAIRN_CODE_KIND(code)) {
    case CAIRN_CODE_CUT:
        if (!value || value >= CAIRN_CUT_LIMIT) return OUTCOME_DAMAGED;
        if (value == CAIRN_CUT_MAX_DEPTH) value = cut_at(mark_depth(decoder->recording));
        is_ok = places_of_cut(decoder->places, value, place);
        break;
    case CAIRN_CODE_MODULE:
        if (value >= decoder->modules->count) return OUTCOME_DAMAGED;
        if (!recording_word(decoder->recording, (*at)++, &low)) return OUTCOME_DAMAGED;
        is_ok = places_of_module(decoder->places, value,
                                 decoder->modules->modules[value].start + low, place);
        break;
    case CAIRN_CODE_FULL:
        if (!recording_word(decoder->recording, (*at)++, &low)) return OUTCOME_DAMAGED;
        if (!recording_word(decoder->recording, (*at)++, &high)) return OUTCOME_DAMAGED;
        is_ok = places_of_address(decoder->places, (uint64_t)high << 32 | low, place);
        break;
    case CAIRN_CODE_PYTHON:
        return decode_python(decoder, at, place);
    case CAIRN_CODE_NAME:
        return decode_name(decoder, at, place);
    default:
        return OUTCOME_DAMAGED;
    }
    return is_ok ? OUTCOME_OK : OUTCOME_NO_MEMORY;
}

static enum outcome decode_frame(struct decoder *decoder, size_t *at, uint32_t *place) {
    uint32_t code;
    if (!recording_word(decoder->recording, (*at)++, &code)) return OUTCOME_DAMAGED;
    if (code >= CAIRN_CODE_ESCAPE) return decode_escape(decoder, code, at, place);
    const uint64_t low_mask = (1u << CAIRN_WINDOW_BITS) - 1;
    uint32_t number = code >> CAIRN_WINDOW_BITS;
    uint64_t window = decoder->recording->header.windows[number];
    if (number && !window) return OUTCOME_DAMAGED;  // only the first starts at address 0
    uint64_t address = (window & ~low_mask) | (code & low_mask);
    return places_of_address(decoder->places, address, place) ? OUTCOME_OK : OUTCOME_NO_MEMORY;
}

// A region is the last code of a record; it is no frame.
static bool take_region(struct decoder *decoder, uint32_t cell, size_t at) {
    uint32_t code;
    if (!recording_word(decoder->recording, at, &code) || code < CAIRN_CODE_ESCAPE ||
        CAIRN_CODE_KIND(code) != CAIRN_CODE_REGION)
        return false;
    decoder->cell_regions[cell] = CAIRN_CODE_VALUE(code);
    return true;
}

// The outer part of the older stack that a record keeps; false: it has not so many frames.
static bool keep_outer(const struct decoder *decoder, const struct record *record, uint32_t *node) {
    uint32_t depth = decoder->tree->nodes.items[*node].depth, keep = record->keep;
    if (keep == keep_all) keep = depth >= record->drop ? depth - record->drop : keep_all;
    if (keep > depth || record->tail > record->drop) return false;
    *node = tree_ancestor(decoder->tree, *node, keep);
    return true;
}

// The frames that a record adds.
static enum outcome append(struct decoder *decoder, uint32_t cell, const struct record *record,
                           uint32_t *node) {
    size_t at = record->first_frame;
    for (uint32_t i = 0; i < record->added; i++) {
        uint32_t place;
        bool is_last = i + 1 == record->added && !record->is_short;
        if (is_last && take_region(decoder, cell, at)) break;
        enum outcome outcome = decode_frame(decoder, &at, &place);
        if (outcome != OUTCOME_OK) return outcome;
        if (!tree_child(decoder->tree, *node, place, node)) return OUTCOME_NO_MEMORY;
    }
    return OUTCOME_OK;
}

// Applies a cell's record to the stack of its older cell.
static enum outcome apply(struct decoder *decoder, uint32_t cell, const struct record *record,
                          uint32_t *node) {
    const uint32_t older = *node, frames = record->added + record->tail;
    if (frames > decoder->frames_left || !keep_outer(decoder, record, node)) return OUTCOME_DAMAGED;
    decoder->frames_left -= frames;
    if (record->is_foreign) decoder->cell_regions[cell] = decoder->cell_regions[record->older];
    enum outcome outcome = append(decoder, cell, record, node);
    for (uint32_t i = record->tail; i > 0 && outcome == OUTCOME_OK; i--) {
        const struct tree_node *nodes = decoder->tree->nodes.items;
        uint32_t same = tree_ancestor(decoder->tree, older, nodes[older].depth - (i - 1));
        if (!tree_child(decoder->tree, *node, nodes[same].place, node)) return OUTCOME_NO_MEMORY;
    }
    return outcome;
}

// Collects the cells that must be decoded before `cell`, itself included. `node` becomes the stack
// that the last of them starts from.
static enum outcome collect(struct decoder *decoder, uint32_t cell, uint32_t *node) {
    *node = TREE_ROOT;
    for (;;) {
        uint32_t *state = &decoder->cell_states[cell];
        if (*state == STATE_FOLLOWED) return OUTCOME_DAMAGED;
        if (*state >= STATE_FIRST_NODE) {
            *node = *state - STATE_FIRST_NODE;
            return OUTCOME_OK;
        }
        uint32_t *slot = array_push(&decoder->pending);
        if (!slot) return OUTCOME_NO_MEMORY;
        *slot = cell;
        *state = STATE_FOLLOWED;
        struct record record;
        if (!decoder_record(decoder, cell, &record)) return OUTCOME_DAMAGED;
        if (!record.older || !record.keep) return OUTCOME_OK;
        if (record.older >= recording_count(decoder->recording, CAIRN_SECTION_CELLS))
            return OUTCOME_DAMAGED;
        cell = record.older;
    }
}

// A cell is decoded, or is damaged: what builds upon it goes the same way.
static void settle(struct decoder *decoder, uint32_t cell, enum outcome outcome, uint32_t *node) {
    if (outcome == OUTCOME_DAMAGED) {
        decoder->recording->damage.bad_stacks++;
        *node = TREE_ROOT;
    }
    decoder->cell_states[cell] = *node + STATE_FIRST_NODE;
}

static bool follow(struct decoder *decoder, uint32_t cell, uint32_t *node) {
    struct record record;
    decoder->pending.count = 0;
    enum outcome outcome = collect(decoder, cell, node);
    while (decoder->pending.count && outcome != OUTCOME_NO_MEMORY) {
        uint32_t next = decoder->pending.items[--decoder->pending.count];
        if (outcome == OUTCOME_OK)
            outcome = decoder_record(decoder, next, &record) ? apply(decoder, next, &record, node)
                                                             : OUTCOME_DAMAGED;
        settle(decoder, next, outcome, node);
    }
    return outcome != OUTCOME_NO_MEMORY;
}

// The stack that a record builds upon, if that is known: of nearly every cell in their order.
static bool is_next(const struct decoder *decoder, const struct record *record, uint32_t *node) {
    *node = TREE_ROOT;
    if (!record->older || !record->keep) return true;
    if (record->older >= recording_count(decoder->recording, CAIRN_SECTION_CELLS)) return false;
    uint32_t state = decoder->cell_states[record->older];
    if (state < STATE_FIRST_NODE) return false;
    *node = state - STATE_FIRST_NODE;
    return true;
}

// Python's frames are beside those of the interpreter that run them; they are not counted.
static bool is_counted(const struct decoder *decoder, uint32_t place) {
    uint32_t line;
    bool has_python = decoder->recording->header.has_python_frames;
    return !has_python || !place_code(decoder->places, place, &line);
}

// Collects the places of the frames that stay, with those of Python that the outermost native one
// runs, and where the rest of them begins; TREE_ROOT: all stay, as where the stack ends there by a
// mark.
static enum outcome collect_inner(struct decoder *decoder, uint32_t node, uint32_t *rest) {
    const struct tree_node *nodes = decoder->tree->nodes.items;
    const bool are_outside = decoder->recording->header.has_python_frames == CAIRN_PYTHON_OUTSIDE;
    uint32_t count = 0;
    decoder->path.count = 0;
    for (; node != TREE_ROOT; node = nodes[node].parent) {
        const bool is_native = is_counted(decoder, nodes[node].place);
        if (count == decoder->depth && (is_native || !are_outside)) break;
        uint32_t *slot = array_push(&decoder->path);
        if (!slot) return OUTCOME_NO_MEMORY;
        if (!decoder->frames_left) return OUTCOME_DAMAGED;
        decoder->frames_left--;
        *slot = nodes[node].place;
        count += is_native;
    }
    bool is_mark = node != TREE_ROOT && decoder->places->list.items[nodes[node].place].cut;
    *rest = is_mark ? TREE_ROOT : node;
    return OUTCOME_OK;
}

// The stack without what is further out than the frames that were asked for.
static enum outcome cut_stack(struct decoder *decoder, uint32_t *node) {
    uint32_t rest, mark;
    enum outcome outcome = collect_inner(decoder, *node, &rest);
    if (outcome != OUTCOME_OK || rest == TREE_ROOT) return outcome;
    *node = TREE_ROOT;
    if (!places_of_cut(decoder->places, cut_at(decoder->depth), &mark) ||
        !tree_child(decoder->tree, TREE_ROOT, mark, node))
        return OUTCOME_NO_MEMORY;
    for (size_t i = decoder->path.count; i-- > 0;)
        if (!tree_child(decoder->tree, *node, decoder->path.items[i], node))
            return OUTCOME_NO_MEMORY;
    return OUTCOME_OK;
}

static uint32_t *cut_node_of(struct decoder *decoder, uint32_t node) {
    while (decoder->cut_nodes.count <= node) {
        uint32_t *slot = array_push(&decoder->cut_nodes);
        if (!slot) return NULL;
        *slot = 0;
    }
    return &decoder->cut_nodes.items[node];
}

// Exchanges the node of a stack for that of the stack as it is cut; each is cut once.
static bool cut(struct decoder *decoder, uint32_t *node) {
    const uint32_t whole = *node;
    uint32_t *known = cut_node_of(decoder, whole);
    if (!known) return false;
    if (!*known) {
        enum outcome outcome = cut_stack(decoder, node);
        if (outcome == OUTCOME_NO_MEMORY) return false;
        if (outcome == OUTCOME_DAMAGED) {
            decoder->recording->damage.bad_stacks++;
            *node = TREE_ROOT;
        }
        *known = *node + 1;
    }
    *node = *known - 1;
    return true;
}

static bool stack_of_record(struct decoder *decoder, uint32_t cell, uint32_t *node,
                            struct record *record) {
    bool has_record = decoder_record(decoder, cell, record);
    if (!has_record) *record = (struct record){0};
    if (!has_record || decoder->cell_states[cell] != STATE_UNKNOWN ||
        !is_next(decoder, record, node))
        return follow(decoder, cell, node);
    enum outcome outcome = apply(decoder, cell, record, node);
    if (outcome != OUTCOME_NO_MEMORY) settle(decoder, cell, outcome, node);
    return outcome != OUTCOME_NO_MEMORY;
}

bool decoder_stack_record(struct decoder *decoder, uint32_t cell, uint32_t *node,
                          struct record *record) {
    return stack_of_record(decoder, cell, node, record) &&
           (!decoder->depth || *node == TREE_ROOT || cut(decoder, node));
}

bool decoder_stack(struct decoder *decoder, uint32_t cell, uint32_t *node) {
    struct record record;
    return decoder_stack_record(decoder, cell, node, &record);
}
