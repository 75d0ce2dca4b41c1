// SPDX-License-Identifier: Apache-2.0
// The way to a block as an expression: from its parents, found backwards, the words of each step
// are made forwards.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/heap/typed.h"
#include "tool/heap/typed_internal.h"
#include "tool/symbol/name_clean.h"

enum {
    EXPRESSION_BYTES = LAYOUT_TEXT_BYTES,
    EXPRESSION_MOST = 2800,  // longer ones would not fit when they are written into others
    REPEATS_LEAST = 3,
};

// What a pointer at the end of an expression so far leads to.
struct step {
    struct typed *typed;
    enum layout_words words;
    const uint8_t *bytes;
    uint64_t target;                // place of the block that it leads to
    uint64_t value;                 // of the pointer
    struct layout_pointer pointer;  // that was found
    bool is_found;
    char *text;  // the expression
};

// --- one step

static bool see_pointer(void *context, const struct layout_pointer *pointer) {
    struct step *step = context;
    uint64_t value, place;
    memcpy(&value, step->bytes + pointer->offset, sizeof value);
    if (!block_map_find(&step->typed->reach->map, value, &place) || place != step->target)
        return true;
    step->is_found = true;
    step->pointer = *pointer;
    step->value = value;
    return false;
}

// Finds the pointer in an object whose expression is in the text, and adds the words of its place.
static bool find_in(struct step *step, const struct type *type, const uint8_t *bytes,
                    uint64_t size) {
    struct layout *layout = &step->typed->layout;
    step->bytes = bytes;
    layout->bytes = bytes;
    layout->size = size;
    layout->see = see_pointer;
    layout->see_struct = NULL;
    layout->context = step;
    layout->words = step->words;
    snprintf(layout->text, sizeof layout->text, "%s", step->text);
    layout_walk(layout, type, 0);
    if (step->is_found) snprintf(step->text, EXPRESSION_BYTES, "%s", layout->text);
    return step->is_found;
}

// Whether the elements that a library's container leads to are always numbered.
static bool is_numbered(const struct type *holder) {
    static const char *const names[] = {"std::vector<", "std::deque<", "alloc::vec::Vec<",
                                        "std::collections::hash::map::HashMap<",
                                        "std::collections::hash::set::HashSet<"};
    for (size_t i = 0; holder && i < sizeof names / sizeof *names; i++)
        if (layout_is_of_template(holder, names[i])) return true;
    return false;
}

static void add(struct step *step, const char *more) {
    size_t length = strlen(step->text);
    snprintf(step->text + length, EXPRESSION_BYTES - length, "%s", more);
}

// The pointer's expression as one to the type that its block has; to bytes, if that has no name.
static void cast(struct step *step, const struct type *type, uint64_t start, uint64_t offset) {
    char before[EXPRESSION_BYTES], name[EXPRESSION_BYTES / 4];
    uint64_t back = step->value - start - offset;
    bool is_unnamed = layout_is_unnamed(type);
    if (type == step->pointer.declared && !back && !is_unnamed) return;
    memcpy(before, step->text, sizeof before);
    layout_write_exact(type, name, sizeof name);
    if (back)
        snprintf(step->text, EXPRESSION_BYTES, "((%s *)((char *)%.2900s - %" PRId64 "))", name,
                 before, (int64_t)back);
    else
        snprintf(step->text, EXPRESSION_BYTES, "((%s *)%.2900s)", name, before);
}

// From the pointer to an element of its block.
static void lead_to(struct step *step, const struct type *type, uint64_t start, uint64_t index) {
    char text[32];
    if (step->words == LAYOUT_EXACT) {
        bool is_unnamed = layout_is_unnamed(type);
        cast(step, type, start, is_unnamed ? index * type->bytes : 0);
        if (is_unnamed) index = 0;
    }
    bool is_node = step->words == LAYOUT_SHORT && layout_is_node(type);
    size_t length = strlen(step->text);
    if (is_node) {
        bool is_next = length >= 3 && !strcmp(step->text + length - 3, "[*]");
        if (!is_next) add(step, "[*]");
        return;
    }
    bool is_struct = type->kind == TYPE_STRUCT || type->kind == TYPE_UNION;
    bool is_counted = step->words == LAYOUT_SHORT && is_numbered(step->pointer.holder);
    snprintf(text, sizeof text, "[%" PRIu64 "]", index);
    bool is_bytes = step->words == LAYOUT_EXACT && layout_is_unnamed(type);
    add(step, index || !is_struct || is_counted || is_bytes ? text : "->");
}

// "->" and what follows it, a member's "." or an element's "[", are one; at the end it says
// nothing.
static void join(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool is_arrow = from[0] == '-' && from[1] == '>';
        bool is_needless = is_arrow && (!from[2] || from[2] == '[' || from[2] == '-');
        if (is_needless) {
            from++;
            continue;
        }
        *to++ = *from;
        if (is_arrow) *to++ = *++from;
        if (is_arrow && from[1] == '.') from++;
    }
    *to = 0;
}

// From a block to the next one of the way. False: memory says something else by now.
static bool step_from_block(struct step *step, uint32_t number) {
    struct typed *typed = step->typed;
    const struct block_map *map = &typed->reach->map;
    const struct type *type = typed->kinds.items[typed->type_ids[number]].type;
    uint64_t place = core_graph_place(&typed->graph, number), start = block_map_address(map, place);
    uint64_t size = block_map_end(map, place) - start;
    const uint8_t *bytes = type ? typed_read(typed, start, &size) : NULL;
    char before[EXPRESSION_BYTES];
    if (!bytes || !type->bytes) return false;
    memcpy(before, step->text, sizeof before);
    struct typed_elements elements = typed_elements_of(typed, number, type, size);
    for (uint64_t at; typed_next_element(typed, &elements, type, bytes, &at);) {
        memcpy(step->text, before, sizeof before);
        step->is_found = false;
        lead_to(step, type, start, at / elements.each);
        if (find_in(step, type, bytes + at, elements.each)) return true;
    }
    return false;
}

// Names of Rust are not those of the language that the expression is in.
static void name_root(const struct typed_root *root, struct step *step) {
    char safe[EXPRESSION_BYTES / 2];
    if (step->words == LAYOUT_EXACT) {
        const char *quote = root->type->is_rust && strstr(root->name, "::") ? "'" : "";
        snprintf(step->text, EXPRESSION_BYTES, "%s%.2900s%s", quote, root->name, quote);
        return;
    }
    char *clean = name_clean_cxx(root->name);
    text_escape(safe, sizeof safe, clean ? clean : root->name);
    free(clean);
    snprintf(step->text, EXPRESSION_BYTES, "%s", safe);
}

static void name_place(const struct typed_root *root, char *text, size_t size) {
    char safe[EXPRESSION_BYTES / 2] = "";
    size_t length = strlen(text);
    if (root->function) text_escape(safe, sizeof safe, root->function);
    if (root->function)
        snprintf(text + length, size - length, "  (%s, thread %" PRIu32 ")", safe,
                 root->thread->tid);
    else if (root->thread)
        snprintf(text + length, size - length, "  (of thread %" PRIu32 ")", root->thread->tid);
}

// --- the whole way

// How many blocks are on the way to one; 0: there is none. `root`: index of where it begins.
static size_t length_of(const struct typed *typed, uint32_t number, uint32_t *root) {
    size_t count = 0;
    uint32_t at = number;
    for (; at != PARENT_NONE && !(at & PARENT_ROOT) && count <= typed->graph.count; count++)
        at = typed->parents[at];
    *root = at & ~PARENT_ROOT;
    return at != PARENT_NONE && at & PARENT_ROOT ? count : 0;
}

// Words that are said again and again, as along a list.
struct repeat {
    char words[EXPRESSION_BYTES];  // of one step
    size_t count;                  // how often they came after the first time
};

// Writes what was held back, "{x1531}" for so many times in all.
static void end_repeat(struct step *step, struct repeat *repeat) {
    char text[32];
    snprintf(text, sizeof text, "{x%zu}", repeat->count + 1);
    if (repeat->count >= REPEATS_LEAST) add(step, text);
    while (repeat->count < REPEATS_LEAST && repeat->count--) add(step, repeat->words);
    repeat->count = 0;
}

// The last step has added the words from a length on.
static void hold_repeat(struct step *step, struct repeat *repeat, size_t length) {
    char words[EXPRESSION_BYTES];
    if (step->words != LAYOUT_SHORT) return;
    snprintf(words, sizeof words, "%s", step->text + length);
    step->text[length] = 0;
    if (*words && !strcmp(words, repeat->words)) {
        repeat->count++;
        return;
    }
    end_repeat(step, repeat);
    add(step, words);
    memcpy(repeat->words, words, sizeof words);
}

static bool write_way(struct step *step, const uint32_t *way, size_t count, uint32_t root_index) {
    struct typed *typed = step->typed;
    const struct typed_root *root = &typed->roots.items[root_index];
    struct repeat repeat = {.count = 0};
    uint64_t size;
    const uint8_t *bytes = typed_root_bytes(typed, root, &size);
    bool is_ok = bytes;
    name_root(root, step);
    for (size_t i = count; i-- && is_ok;) {
        size_t length = strlen(step->text);
        step->target = core_graph_place(&typed->graph, way[i]);
        step->is_found = false;
        is_ok = i + 1 == count ? find_in(step, root->type, bytes, size)
                               : step_from_block(step, way[i + 1]);
        if (is_ok && i + 1 < count) hold_repeat(step, &repeat, length);
        is_ok = is_ok && strlen(step->text) <= EXPRESSION_MOST;
        core_place_done(typed->core, 0, &typed->places);
    }
    end_repeat(step, &repeat);
    return is_ok;
}

// `root`: index of where the way begins.
static bool write_path(struct step *step, uint32_t number, uint32_t *root) {
    const struct typed *typed = step->typed;
    size_t count = length_of(typed, number, root);
    uint32_t *way = count ? malloc(count * sizeof *way) : NULL;
    if (!way) return false;
    for (size_t i = 0; i < count; i++, number = typed->parents[number]) way[i] = number;
    bool is_ok = write_way(step, way, count, *root);
    free(way);
    return is_ok;
}

// The last pointer may lead into its block: the expression of its start, or how far inside.
static void say_start(struct step *step, char *text, size_t size) {
    char before[EXPRESSION_BYTES];
    const struct block_map *map = &step->typed->reach->map;
    bool is_exact = step->words == LAYOUT_EXACT;
    uint64_t inside = step->value - block_map_address(map, step->target);
    if (!is_exact && inside) inside -= step->pointer.back;
    if (!inside) return;
    snprintf(before, sizeof before, "%s", text);
    snprintf(text, size,
             is_exact ? "(char *)%.2900s - %" PRIu64 : "%.2900s  (leads %" PRIu64 " bytes into it)",
             before, inside);
}

// The command of gdb for an expression; that of a Rust program is in C all the same.
static void make_command(const struct typed_root *root, const char *expression, char *text,
                         size_t size) {
    snprintf(text, size, "%sp %s", root->type->is_rust ? "with language c -- " : "", expression);
}

bool typed_path(struct typed *typed, uint64_t address, enum layout_words words, char *text,
                size_t size) {
    char expression[EXPRESSION_BYTES];
    struct step step = {.typed = typed, .words = words, .text = expression};
    uint64_t place;
    uint32_t root;
    if (!block_map_find(&typed->reach->map, address, &place) ||
        !write_path(&step, core_graph_number(&typed->graph, place), &root))
        return false;
    join(expression);
    say_start(&step, expression, sizeof expression);
    if (words == LAYOUT_EXACT) {
        make_command(&typed->roots.items[root], expression, text, size);
        return true;
    }
    name_place(&typed->roots.items[root], expression, sizeof expression);
    snprintf(text, size, "%s", expression);
    return true;
}

// --- all of them

struct visiting {
    struct typed *typed;
    void (*see)(void *context, const struct typed_object *object);
    void *context;
    uint64_t address;
    bool is_local;
};

static void see_struct(void *context, uint64_t offset, const struct type *type) {
    struct visiting *visiting = context;
    const struct layout *layout = &visiting->typed->layout;
    if (offset > layout->size || type->bytes > layout->size - offset) return;
    const struct typed_object object = {type, layout->bytes + offset, type->bytes,
                                        visiting->address + offset, visiting->is_local};
    visiting->see(visiting->context, &object);
}

static void visit(struct visiting *visiting, const struct type *type, const uint8_t *bytes,
                  uint64_t size, uint64_t address) {
    struct layout *layout = &visiting->typed->layout;
    visiting->address = address;
    layout->bytes = bytes;
    layout->size = size;
    layout->see = NULL;
    layout->see_struct = see_struct;
    layout->context = visiting;
    layout->words = LAYOUT_NONE;
    layout_walk(layout, type, 0);
}

static void visit_block(void *context, uint32_t number, uint64_t place) {
    struct visiting *visiting = context;
    struct typed *typed = visiting->typed;
    const struct block_map *map = &typed->reach->map;
    const struct type *type = typed->kinds.items[typed->type_ids[number]].type;
    if (!type || !type->bytes || !layout_has_pointers(type)) return;
    uint64_t start = block_map_address(map, place), size = block_map_end(map, place) - start;
    const uint8_t *bytes = typed_read(typed, start, &size);
    if (!bytes) return;
    struct typed_elements elements = typed_elements_of(typed, number, type, size);
    for (uint64_t at; typed_next_element(typed, &elements, type, bytes, &at);)
        visit(visiting, type, bytes + at, elements.each, start + at);
    core_place_done(typed->core, 0, &typed->places);
}

static void visit_roots(struct visiting *visiting, bool are_local) {
    struct typed *typed = visiting->typed;
    visiting->is_local = are_local;
    for (size_t i = 0; i < typed->roots.count; i++) {
        const struct typed_root *root = &typed->roots.items[i];
        uint64_t size;
        if ((root->function != NULL) != are_local) continue;
        const uint8_t *bytes = typed_root_bytes(typed, root, &size);
        if (bytes) visit(visiting, root->type, bytes, size, root->address);
    }
    visiting->is_local = false;
}

void typed_each_struct(struct typed *typed,
                       void (*see)(void *context, const struct typed_object *object),
                       void *context) {
    struct visiting visiting = {.typed = typed, .see = see, .context = context};
    visit_roots(&visiting, false);
    core_graph_each(&typed->graph, visit_block, &visiting);
    visit_roots(&visiting, true);
}

const struct type *const *typed_unplaced(const struct typed *typed, size_t *count) {
    *count = typed->unplaced.count;
    return typed->unplaced.items;
}
