// SPDX-License-Identifier: Apache-2.0
#include "tool/tui/top_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { MATCH_UNKNOWN, MATCH_NO, MATCH_YES };

void top_start(struct top *top, enum live_measure by) {
    memset(top, 0, sizeof *top);
    top->view.by = by;
    top->view.since = top->since;
    snprintf(top->since, sizeof top->since, "the start of this view");
}

void top_close(struct top *top) {
    array_free(&top->rows);
    array_free(&top->node_matches);
    array_free(&top->processes);
    pattern_free(top->pattern);
    top->pattern = NULL;
}

void top_attach(struct top *top, const struct live *live, const struct frame_names *names,
                int pid) {
    top->view.live = live;
    top->view.names = names;
    top->view.pid = pid;
    top->view.over = NULL;
    top->view.rss_bytes = 0;
    top->view.is_frozen = top->view.are_survivors = top->is_followed = false;
    top->node_matches.count = top->named_nodes = 0;
    top->rows.count = 0;
    top->selected = top->first = 0;
    top->page = TOP_LIST;
    snprintf(top->since, sizeof top->since, "the start of this view");
    memcpy(top->whole_since, top->since, sizeof top->since);
}

void top_shown(struct top *top) {
    const struct live_part *part = &top->view.live->part;
    bool is_whole = part->kind == LIVE_WHOLE;
    // which blocks of such a heap came since a mark is not known
    if (live_part_is_of_heaps(part)) top->view.are_survivors = false;
    snprintf(top->since, sizeof top->since, "%s",
             is_whole ? top->whole_since : "this list was opened");
    pattern_free(top->pattern);
    top->pattern = NULL;
    top->view.search = NULL;
    top->node_matches.count = top->rows.count = 0;
    top->selected = top->first = 0;
    top->is_followed = false;
}

static bool text_matches(const struct frame *frame, const struct pattern *pattern) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    frame_label(frame, label, sizeof label, sizeof label);
    frame_location(frame, location, sizeof location);
    return pattern_matches(pattern, label) || pattern_matches(pattern, location) ||
           (frame->module && pattern_matches(pattern, text_base_name(frame->module)));
}

static bool place_matches(const struct top *top, uint32_t place) {
    const struct frame_names *names = top->view.names;
    size_t count;
    if (top->view.live->profile.places.list.items[place].cut) return false;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++)
        if (text_matches(&frames[i], top->pattern)) return true;
    return false;
}

// Which nodes match, of those that are new: outer nodes come first. A place is looked at once.
static bool match_nodes(struct top *top) {
    const struct profile *profile = &top->view.live->profile;
    const struct tree_node *nodes = profile->tree.nodes.items;
    uint8_t *places = calloc(profile->places.list.count + 1, 1);
    bool is_ok = places != NULL;
    while (is_ok && top->node_matches.count < top->named_nodes) {
        size_t node = top->node_matches.count;
        uint8_t *slot = array_push(&top->node_matches);
        is_ok = slot != NULL;
        if (!slot) break;
        *slot =
            node && top->node_matches.items[nodes[node].parent] == MATCH_YES ? MATCH_YES : MATCH_NO;
        uint8_t *known = &places[nodes[node].place];
        if (!node || *slot == MATCH_YES) continue;
        if (*known == MATCH_UNKNOWN)
            *known = place_matches(top, nodes[node].place) ? MATCH_YES : MATCH_NO;
        *slot = *known;
    }
    free(places);
    return is_ok;
}

static int compare(const void *a, const void *b, void *context) {
    const struct top_row *first = a, *second = b;
    const struct stack *stacks = context;
    if (first->value != second->value) return first->value < second->value ? 1 : -1;
    uint64_t x = stacks[first->stack].id, y = stacks[second->stack].id;
    return (x > y) - (x < y);
}

static bool is_match(const struct top *top, size_t index) {
    const struct live *live = top->view.live;
    char name[FRAME_TEXT_BYTES];
    if (live_part_is_of_sets(&live->part)) {
        top_set_name(&top->view, index, name, sizeof name);
        return pattern_matches(top->pattern, name);
    }
    uint32_t node = live_shown(live)->stacks.items[index].node;
    return node < top->node_matches.count && top->node_matches.items[node] == MATCH_YES;
}

// Whether a row has a line: it holds, allocates or has changed something, and matches.
static bool is_listed(const struct top *top, size_t index) {
    const struct live *live = top->view.live;
    struct held_now held = top_held(&top->view, index);
    if (top->pattern && !is_match(top, index)) return false;
    if (top->view.are_survivors) return held.bytes > 0 || held.blocks > 0;
    if (top->view.by == LIVE_BYTES && (held.bytes || held.blocks)) return true;
    return live_value(live, top->view.by, index) != 0;
}

static int64_t value_of(const struct top *top, size_t index) {
    if (top->view.by == LIVE_BYTES) return top_held(&top->view, index).bytes;
    return live_value(top->view.live, top->view.by, index);
}

static void find_selected(struct top *top, uint32_t stack) {
    for (size_t i = 0; i < top->rows.count; i++)
        if (top->rows.items[i].stack == stack) top->selected = i;
}

bool top_list(struct top *top) {
    const struct live *live = top->view.live;
    uint32_t stack = 0;
    bool had_one = top_selected(top, &stack);
    top->rows.count = 0;
    top->sums = (struct top_sums){0};
    if (!live) return true;
    if (top->pattern && !match_nodes(top)) return false;
    for (size_t i = 0; i < live_shown(live)->stacks.count; i++) {
        if (!is_listed(top, i)) continue;
        struct top_row *row = array_push(&top->rows);
        if (!row) return false;
        *row = (struct top_row){value_of(top, i), (uint32_t)i};
        struct held_now held = top_held(&top->view, i);
        top->sums.stack_count++;
        top->sums.bytes = figures_add(top->sums.bytes, held.bytes);
        top->sums.blocks = figures_add(top->sums.blocks, held.blocks);
        estimate_add(&top->sums.estimate, &held.estimate);
    }
    if (top->rows.count)
        qsort_r(top->rows.items, top->rows.count, sizeof *top->rows.items, compare,
                live_shown(live)->stacks.items);
    if (top->selected >= top->rows.count) top->selected = top->rows.count ? top->rows.count - 1 : 0;
    if (had_one && top->is_followed) find_selected(top, stack);
    return true;
}

bool top_selected(const struct top *top, uint32_t *stack) {
    if (top->selected >= top->rows.count) return false;
    *stack = top->rows.items[top->selected].stack;
    return true;
}

void top_enter(struct top *top) {
    if (!top_selected(top, &top->shown)) return;
    top->page = TOP_STACK;
    top->first = 0;
    top->is_followed = true;
}

static size_t moved(size_t from, long lines, size_t count) {
    long wanted = (long)from + lines, last = (long)count - 1;
    if (wanted > last) wanted = last;
    return wanted < 0 ? 0 : (size_t)wanted;
}

void top_move(struct top *top, long lines) {
    if (top->page == TOP_LIST) {
        top->selected = moved(top->selected, lines, top->rows.count);
        top->is_followed = top->selected > 0;  // at the top it stays with what comes there
    } else if (top->page == TOP_PROCESSES) {
        top->selected_process = moved(top->selected_process, lines, top->processes.count);
    } else {
        top->first = moved(top->first, lines, SIZE_MAX / 2);
    }
}

void top_sort(struct top *top, enum live_measure by) {
    top->view.by = by;
    top->is_followed = false;
    top->selected = top->first = 0;
}

bool top_search(struct top *top, const char *text, struct error *error) {
    struct pattern *pattern = NULL;
    if (*text && !pattern_compile(text, &pattern, error)) return false;
    pattern_free(top->pattern);
    top->pattern = pattern;
    top->node_matches.count = 0;
    snprintf(top->search, sizeof top->search, "%s", text);
    top->view.search = pattern ? top->search : NULL;
    top->selected = top->first = 0;
    top->is_followed = false;
    return true;
}

void top_marked(struct top *top) {
    snprintf(top->since, sizeof top->since, "the mark at %s",
             units_duration(top->view.live->base_ns).text);
    memcpy(top->whole_since, top->since, sizeof top->since);
}

void top_keep_in_view(struct top *top, size_t lines) {
    size_t selected = top->page == TOP_PROCESSES ? top->selected_process : top->selected;
    if (!lines || (top->page != TOP_LIST && top->page != TOP_PROCESSES)) return;
    if (selected < top->first) top->first = selected;
    if (selected >= top->first + lines) top->first = selected - lines + 1;
}
