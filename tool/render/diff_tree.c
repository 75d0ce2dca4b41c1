// SPDX-License-Identifier: Apache-2.0
// The rows of a comparison of stacks as a tree from the outermost function inwards (or inverted):
// a node's values are the sums of the rows that go through it.
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/diff_screen.h"
#include "tool/render/shorten.h"

enum { LEVELS_MAX = 512, PREFIX_BYTES = 4096, DELTA_COLUMNS = 12, SIZE_COLUMNS = 10 };

struct node {
    uint32_t name;  // number of its text
    uint32_t parent, first_child, next_sibling, child_count;
    int64_t largest;  // change of it or of a node below it
};

struct diff_tree {
    ARRAY(struct node) nodes;
    ARRAY(int64_t) values;  // by node, then by recording
    struct index_table table;
    size_t width;
};

struct printer {
    const struct diff_screen *screen;
    const struct diff_tree *tree;
    int64_t threshold;
    char prefix[PREFIX_BYTES];
    size_t prefix_size;
};

static uint32_t add_node(struct diff_tree *tree, uint32_t parent, uint32_t name, uint64_t hash) {
    uint32_t index = (uint32_t)tree->nodes.count;
    struct node *node = array_push(&tree->nodes);
    if (!node) return 0;
    *node = (struct node){.name = name, .parent = parent};
    for (size_t i = 0; i < tree->width; i++) {
        int64_t *value = array_push(&tree->values);
        if (!value) return 0;
        *value = 0;
    }
    if (!index) return 0;
    struct node *above = &tree->nodes.items[parent];
    node->next_sibling = above->first_child;
    above->first_child = index;
    above->child_count++;
    return index_table_insert(&tree->table, hash, index) ? index : 0;
}

// The child of a node by name, made if there is none; 0 without memory.
static uint32_t child_of(struct diff_tree *tree, uint32_t parent, uint32_t name) {
    uint64_t hash = hash_mix(hash_mix(index_table_seed(), parent), name);
    struct index_probe probe = index_probe_start(&tree->table, hash);
    for (uint32_t index; index_probe_next(&tree->table, &probe, &index);)
        if (tree->nodes.items[index].parent == parent && tree->nodes.items[index].name == name)
            return index;
    return add_node(tree, parent, name, hash);
}

static void add_values(struct diff_tree *tree, uint32_t node, const int64_t *values) {
    int64_t *sums = &tree->values.items[node * tree->width];
    for (size_t i = 0; i < tree->width; i++) sums[i] = figures_add(sums[i], values[i]);
}

// Of a deeper stack the innermost levels.
static bool add_row(struct diff_tree *tree, const struct diff_screen *screen, size_t index) {
    const struct diff_row *row = &screen->diff->rows.items[index];
    const int64_t *values = diff_values(screen->diff, index);
    uint32_t count = row->count < LEVELS_MAX ? row->count : LEVELS_MAX;
    size_t depth = screen->view->depth;
    uint32_t node = 0;
    add_values(tree, node, values);
    for (size_t i = 0; i < count && (!depth || i < depth); i++) {
        uint32_t line = (uint32_t)(screen->view->is_inverted ? i : count - 1 - i);
        node = child_of(tree, node, row->names[line]);
        if (!node) return false;
        add_values(tree, node, values);
    }
    return true;
}

static struct change change_of(const struct printer *printer, uint32_t node) {
    const struct diff_tree *tree = printer->tree;
    return diff_change(printer->screen->diff, &tree->values.items[node * tree->width], NULL);
}

static int64_t size_of(int64_t delta) {
    return delta < 0 ? (int64_t)(0 - (uint64_t)delta) : delta;
}

// A branch that shrank as much as another one below it grew is still worth a line: the largest
// change below a node counts. Children have higher numbers than their parents.
static void find_largest(const struct printer *printer, struct diff_tree *tree) {
    for (uint32_t i = (uint32_t)tree->nodes.count; i-- > 0;) {
        struct node *node = &tree->nodes.items[i];
        struct change change = change_of(printer, i);
        int64_t own = change.kind == CHANGE_NONE ? 0 : size_of(change.delta);
        if (own > node->largest) node->largest = own;
        struct node *above = &tree->nodes.items[node->parent];
        if (node->largest > above->largest) above->largest = node->largest;
    }
}

struct child {
    uint32_t node;
    int64_t size;
};

static int compare(const void *a, const void *b) {
    const struct child *first = a, *second = b;
    if (first->size != second->size) return first->size < second->size ? 1 : -1;
    return (first->node > second->node) - (first->node < second->node);
}

// Children worth a line, the largest change first, for free(); NULL if there are none.
static struct child *shown_children(const struct printer *printer, uint32_t node, size_t *count) {
    const struct node *nodes = printer->tree->nodes.items;
    struct child *children = calloc(nodes[node].child_count + 1, sizeof *children);
    size_t top = printer->screen->view->top;
    *count = 0;
    for (uint32_t at = nodes[node].first_child; children && at; at = nodes[at].next_sibling) {
        struct child child = {at, nodes[at].largest};
        if (child.size >= printer->threshold) children[(*count)++] = child;
    }
    if (children) qsort(children, *count, sizeof *children, compare);
    if (top && *count > top) *count = top;
    return children;
}

static void print_node(const struct printer *printer, uint32_t node, const char *branch) {
    const struct diff_screen *screen = printer->screen;
    const struct terminal *terminal = screen->terminal;
    bool is_bytes = measure_about(screen->view->by)->is_bytes;
    bool is_plain = screen->view->is_plain_number;
    struct change change = change_of(printer, node);
    struct unit_text delta = diff_delta_text(change.delta, is_bytes, is_plain);
    struct unit_text after =
        is_bytes ? units_size_as(change.after, is_plain) : units_count(change.after);
    char label[FRAME_TEXT_BYTES];
    bool is_noise = change.kind == CHANGE_NONE;
    terminal_print(terminal,
                   is_noise           ? STYLE_DIM
                   : change.delta > 0 ? STYLE_WARNING
                                      : STYLE_NAME,
                   "%*s", DELTA_COLUMNS, is_noise ? "same" : delta.text);
    fprintf(terminal->out, " %*s  ", SIZE_COLUMNS, after.text);
    terminal_print(terminal, STYLE_DIM, "%.*s%s", (int)printer->prefix_size, printer->prefix,
                   branch);
    char prefix[PREFIX_BYTES];
    snprintf(prefix, sizeof prefix, "%.*s", (int)printer->prefix_size, printer->prefix);
    size_t used = DELTA_COLUMNS + SIZE_COLUMNS + 3 + text_columns(prefix) + text_columns(branch);
    const size_t least = 16;
    size_t room = terminal->columns > used + least ? terminal->columns - used : least;
    const char *const *texts = (const char *const *)screen->diff->texts.list.items;
    snprintf(label, sizeof label, "%s",
             node ? texts[printer->tree->nodes.items[node].name] : "all");
    shorten_function(label, room);
    text_cut(label, room);
    terminal_print(terminal, STYLE_NAME, "%s\n", label);
}

static bool print_below(struct printer *printer, uint32_t node) {
    size_t count;
    struct child *children = shown_children(printer, node, &count);
    while (children && count == 1) {
        node = children[0].node;
        print_node(printer, node, "");
        free(children);
        children = shown_children(printer, node, &count);
    }
    bool is_ok = children != NULL;
    for (size_t i = 0; i < count && is_ok; i++) {
        bool is_last = i + 1 == count;
        const char *stem = is_last ? "  " : "\xe2\x94\x82 ";
        print_node(printer, children[i].node, is_last ? "\xe2\x94\x94 " : "\xe2\x94\x9c ");
        if (printer->prefix_size + strlen(stem) >= PREFIX_BYTES) continue;
        memcpy(printer->prefix + printer->prefix_size, stem, strlen(stem));
        printer->prefix_size += strlen(stem);
        is_ok = print_below(printer, children[i].node);
        printer->prefix_size -= strlen(stem);
    }
    free(children);
    return is_ok;
}

static bool build(struct diff_tree *tree, const struct diff_screen *screen) {
    tree->width = screen->diff->recording_count;
    add_node(tree, 0, 0, 0);
    if (!tree->nodes.count || tree->values.count < tree->width) return false;
    for (size_t i = 0; i < screen->diff->rows.count; i++)
        if (!add_row(tree, screen, i)) return false;
    return true;
}

bool diff_print_tree(const struct diff_screen *screen, struct error *error) {
    struct diff_tree tree = {0};
    struct printer printer = {.screen = screen, .tree = &tree};
    bool is_ok = build(&tree, screen);
    if (is_ok) {
        struct change whole = change_of(&printer, 0);
        int64_t larger = whole.before > whole.after ? whole.before : whole.after;
        printer.threshold = view_threshold(screen->view, larger);
        find_largest(&printer, &tree);
        fputc('\n', screen->terminal->out);
        print_node(&printer, 0, "");
        is_ok = print_below(&printer, 0);
    }
    array_free(&tree.nodes);
    array_free(&tree.values);
    index_table_free(&tree.table);
    return is_ok || error_set(error, "no memory for the comparison");
}
