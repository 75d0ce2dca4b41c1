// SPDX-License-Identifier: Apache-2.0
#include "tool/tui/browser_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_open(const struct browser *browser, uint32_t node) {
    return node == CALLS_ROOT || browser->are_open[node];
}

// The node behind `node` in the order of the screen; 0: the end. `level` follows.
static uint32_t next_node(const struct browser *browser, uint32_t node, uint32_t *level,
                          bool goes_in) {
    const struct call *nodes = browser->calls.nodes.items;
    if (goes_in && nodes[node].first_child) {
        ++*level;
        return nodes[node].first_child;
    }
    while (node != CALLS_ROOT && !nodes[node].next_sibling) {
        node = nodes[node].parent;
        --*level;
    }
    return node == CALLS_ROOT ? 0 : nodes[node].next_sibling;
}

// Lists the lines again and keeps `node` selected.
static bool list(struct browser *browser, uint32_t selected) {
    uint32_t level = 0, node = CALLS_ROOT;
    browser->lines.count = 0;
    browser->selected = 0;
    while ((node = next_node(browser, node, &level, is_open(browser, node)))) {
        struct browser_line *line = array_push(&browser->lines);
        if (!line) return false;
        *line = (struct browser_line){node, level - 1};
        if (node == selected) browser->selected = browser->lines.count - 1;
    }
    return true;
}

bool browser_rebuild(struct browser *browser, struct error *error) {
    calls_free(&browser->calls);
    free(browser->are_open);
    browser->are_open = NULL;
    browser->lines.count = 0;
    if (!calls_build(&browser->calls, browser->profile, browser->names, &browser->view, error))
        return false;
    browser->are_open = calloc(browser->calls.nodes.count + 1, 1);
    if (!browser->are_open || !list(browser, 0)) return error_set(error, "no memory for the tree");
    return true;
}

bool browser_open(struct browser *browser, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error) {
    *browser = (struct browser){.profile = profile, .names = names, .view = *view};
    return browser_rebuild(browser, error);
}

void browser_close(struct browser *browser) {
    calls_free(&browser->calls);
    free(browser->are_open);
    array_free(&browser->lines);
}

static uint32_t selected_node(const struct browser *browser) {
    return browser->lines.count ? browser->lines.items[browser->selected].node : CALLS_ROOT;
}

const struct call *browser_call(const struct browser *browser) {
    if (!browser->lines.count) return NULL;
    return &browser->calls.nodes.items[selected_node(browser)];
}

void browser_move(struct browser *browser, long lines) {
    long last = (long)browser->lines.count - 1, wanted = (long)browser->selected + lines;
    if (wanted > last) wanted = last;
    browser->selected = wanted < 0 ? 0 : (size_t)wanted;
}

bool browser_unfold(struct browser *browser) {
    const struct call *call = browser_call(browser);
    uint32_t node = selected_node(browser);
    if (!call || !call->first_child) return true;
    if (browser->are_open[node]) {
        browser_move(browser, 1);
        return true;
    }
    browser->are_open[node] = 1;
    return list(browser, node);
}

bool browser_fold(struct browser *browser) {
    const struct call *call = browser_call(browser);
    uint32_t node = selected_node(browser);
    if (!call) return true;
    if (!browser->are_open[node]) {
        node = call->parent;
        if (node == CALLS_ROOT) return true;
        return list(browser, node);
    }
    browser->are_open[node] = 0;
    return list(browser, node);
}

bool browser_unfold_path(struct browser *browser) {
    const struct call *nodes = browser->calls.nodes.items;
    uint32_t node = selected_node(browser);
    while (node != CALLS_ROOT && nodes[node].first_child) {
        uint32_t child = nodes[node].first_child;  // the largest
        browser->are_open[node] = 1;
        if (nodes[child].value < nodes[node].value / 2) break;
        node = child;
    }
    return list(browser, node);
}

static bool matches(const struct call *call, const struct pattern *pattern) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    if (!call->frame) return false;
    frame_label(call->frame, label, sizeof label, sizeof label);
    frame_location(call->frame, location, sizeof location);
    return pattern_matches(pattern, label) || pattern_matches(pattern, location);
}

bool browser_search(struct browser *browser, const struct pattern *pattern, bool *is_found) {
    const struct call *nodes = browser->calls.nodes.items;
    uint32_t start = selected_node(browser), node = start, level = 0;
    *is_found = false;
    for (size_t i = 0; i < browser->calls.nodes.count; i++) {
        node = next_node(browser, node, &level, true);  // 0: from the start again
        if (node && matches(&nodes[node], pattern)) {
            *is_found = true;
            break;
        }
    }
    if (!*is_found) return true;
    for (uint32_t at = nodes[node].parent; at != CALLS_ROOT; at = nodes[at].parent)
        browser->are_open[at] = 1;
    return list(browser, node);
}

static bool is_own_source(const struct call *call) {
    return call->frame && call->frame->is_own && call->frame->file;
}

// Towards the callers are a node's parents, or its largest children where the tree is inverted.
static const struct call *own_above(const struct browser *browser, const struct call *call) {
    const struct call *nodes = browser->calls.nodes.items;
    while (call != nodes && !is_own_source(call)) call = &nodes[call->parent];
    return call;
}

static const struct call *own_below(const struct browser *browser, const struct call *call) {
    const struct call *nodes = browser->calls.nodes.items;
    while (!is_own_source(call) && call->first_child) call = &nodes[call->first_child];
    return call;
}

const struct frame *browser_source(const struct browser *browser) {
    const struct call *call = browser_call(browser);
    if (!call) return NULL;
    bool is_inverted = browser->view.is_inverted;
    const struct call *callers = is_inverted ? own_below(browser, call) : own_above(browser, call);
    if (is_own_source(callers)) return callers->frame;
    const struct call *callees = is_inverted ? own_above(browser, call) : own_below(browser, call);
    return is_own_source(callees) ? callees->frame : call->frame;
}

bool browser_pivot(struct browser *browser, bool has_callers, struct error *error) {
    const struct call *call = browser_call(browser);
    if (!call || !call->frame) return true;
    if (!browser->view.pivot) browser->was_inverted = browser->view.is_inverted;
    browser->pivot = *call->frame;
    browser->view.pivot = &browser->pivot;
    browser->view.is_inverted = has_callers;
    return browser_rebuild(browser, error);
}

bool browser_whole(struct browser *browser, struct error *error) {
    if (!browser->view.pivot) return true;
    browser->view.pivot = NULL;
    browser->view.is_inverted = browser->was_inverted;
    return browser_rebuild(browser, error);
}
