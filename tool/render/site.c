// SPDX-License-Identifier: Apache-2.0
#include "tool/render/site.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

// The first frame of the program's own, and the library's function that it called, if one lies
// between it and the allocator. Without an own frame, the first that is shown.
static void choose_first(const struct frame_list *frames, struct site *site, size_t *index) {
    const struct frame *frame, *before = NULL;
    site->callee = NULL;
    for (size_t at = 0; !frames->are_all_shown && (frame = frame_list_next(frames, &at));) {
        if (frame->is_own) {
            site->frames[site->frame_count++] = frame;
            site->callee = before;
            *index = at;
            return;
        }
        before = frame;
    }
    frame = frame_list_next(frames, index);
    if (frame) site->frames[site->frame_count++] = frame;
}

// A caller that is the same function as the frame before it (recursion) tells nothing new.
static void choose_frames(const struct frame_list *frames, struct site *site) {
    size_t index = 0;
    const struct frame *frame;
    choose_first(frames, site, &index);
    while (site->frame_count < SITE_FRAMES && (frame = frame_list_next(frames, &index))) {
        if (frame_is_same_function(frame, site->frames[site->frame_count - 1])) continue;
        site->frames[site->frame_count++] = frame;
    }
}

static bool is_same_callee(const struct site *a, const struct site *b) {
    if (!a->callee || !b->callee) return a->callee == b->callee;
    return frame_is_same_function(a->callee, b->callee);
}

static bool is_same(const struct site *a, const struct site *b) {
    if (a->frame_count != b->frame_count || !is_same_callee(a, b)) return false;
    for (unsigned i = 0; i < a->frame_count; i++) {
        bool is_equal = i ? frame_is_same_function(a->frames[i], b->frames[i])
                          : frame_is_same(a->frames[i], b->frames[i]);
        if (!is_equal) return false;
    }
    return true;
}

static struct site *find_or_add(struct site_list *list, const struct site *wanted) {
    uint64_t hash = wanted->callee ? frame_hash(wanted->callee, false) : 0;
    for (unsigned i = 0; i < wanted->frame_count; i++)
        hash = hash_mix(hash, frame_hash(wanted->frames[i], i == 0));
    struct index_probe probe = index_probe_start(&list->table, hash);
    for (uint32_t index; index_probe_next(&list->table, &probe, &index);)
        if (is_same(&list->sites.items[index], wanted)) return &list->sites.items[index];
    uint32_t added = (uint32_t)list->sites.count;
    struct site *site = array_push(&list->sites);
    if (!site || !index_table_insert(&list->table, hash, added)) return NULL;
    *site = *wanted;
    return site;
}

// Sums are compared; where they are equal the order stays.
static int compare(const void *a, const void *b) {
    const struct site *first = a, *second = b;
    int64_t x = first->measured.value, y = second->measured.value;
    if (x != y) return x < y ? 1 : -1;
    return (second->stack_count > first->stack_count) - (second->stack_count < first->stack_count);
}

// Whether some frame's being shown may depend on frames further out (frames.h), or the first own
// frame may lie there.
static bool is_undecided(const struct frame_list *frames, const struct site *site) {
    if (!frames->are_all_shown && !site->frames[0]->is_own) return true;
    for (size_t i = 0; i < frames->frames.count; i++)
        if (frames->frames.items[i]->is_interpreter) return true;
    return false;
}

// A few places tell the frames of nearly every site; the others are looked at if they do not.
static bool find_frames(struct frame_list *frames, const struct profile *profile,
                        const struct frame_names *names, uint32_t node, struct site *site) {
    enum { PLACES_FEW = 8 };
    if (!frame_list_fill(frames, profile, names, node, PLACES_FEW)) return false;
    choose_frames(frames, site);
    bool is_whole = profile->tree.nodes.items[node].depth <= PLACES_FEW;
    if (is_whole || (site->frame_count == SITE_FRAMES && !is_undecided(frames, site))) return true;
    site->frame_count = 0;
    if (!frame_list_fill(frames, profile, names, node, SITE_PLACES_MAX)) return false;
    choose_frames(frames, site);
    return true;
}

// The site of a stack, in which the stack is counted; NULL without memory.
static struct site *add_to_site(struct site_list *list, const struct profile *profile,
                                const struct frame_names *names, struct site *wanted,
                                struct measured measured, struct frame_list *frames) {
    if (!find_frames(frames, profile, names, wanted->node, wanted)) return NULL;
    struct site *site = find_or_add(list, wanted);
    if (!site) return NULL;
    measured_add(&site->measured, measured);
    site->stack_count++;
    list->hidden_count += frames->first_hidden;
    return site;
}

bool site_list_add(struct site_list *list, const struct profile *profile,
                   const struct frame_names *names, uint32_t node, struct measured measured,
                   struct frame_list *frames) {
    struct site wanted = {.node = node};
    return add_to_site(list, profile, names, &wanted, measured, frames) != NULL;
}

// What a site shows is that of the first of its stacks in a ranking, whatever order they come in.
static void note_first(struct site *site, const struct site *wanted) {
    bool is_before =
        wanted->first_value > site->first_value ||
        (wanted->first_value == site->first_value && wanted->first_id < site->first_id);
    if (!is_before) return;
    site->node = wanted->node;
    site->callee = wanted->callee;
    for (unsigned i = 0; i < site->frame_count; i++) site->frames[i] = wanted->frames[i];
    site->first_value = wanted->first_value;
    site->first_id = wanted->first_id;
}

static bool add_stack(struct site_list *list, const struct profile *profile,
                      const struct frame_names *names, const struct stack *stack,
                      struct measured measured, struct frame_list *frames) {
    struct site wanted = {
        .node = stack->node, .first_value = measured.value, .first_id = stack->id};
    struct site *site = add_to_site(list, profile, names, &wanted, measured, frames);
    if (site) note_first(site, &wanted);
    return site != NULL;
}

void site_list_sort(struct site_list *list) {
    if (list->sites.count > 1)
        qsort(list->sites.items, list->sites.count, sizeof *list->sites.items, compare);
}

// Equal sites come in the order of their first stacks. Their numbers are compared.
static int compare_first(const void *a, const void *b, void *context) {
    const struct site *sites = context;
    const struct site *first = &sites[*(const uint32_t *)a];
    const struct site *second = &sites[*(const uint32_t *)b];
    if (first->stack_count != second->stack_count)
        return first->stack_count < second->stack_count ? 1 : -1;
    if (first->first_value != second->first_value)
        return first->first_value < second->first_value ? 1 : -1;
    return (first->first_id > second->first_id) - (first->first_id < second->first_id);
}

// Runs of equal values, which is all that their keys say.
static void sort_runs(struct site *sites, uint32_t *order, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count; end++)
            if (sites[order[end]].measured.value != sites[order[first]].measured.value) break;
        if (end - first > 1)
            qsort_r(order + first, end - first, sizeof *order, compare_first, sites);
    }
}

// Puts site `order[i]` at place i, without room for all of them twice: round by round of those
// that take each other's places.
static void arrange(struct site *sites, uint32_t *order, size_t count) {
    for (size_t first = 0; first < count; first++) {
        struct site moved = sites[first];
        size_t at = first;
        while (order[at] != first) {
            size_t from = order[at];
            sites[at] = sites[from];
            order[at] = (uint32_t)at;
            at = from;
        }
        sites[at] = moved;
        order[at] = (uint32_t)at;
    }
}

// Highest first. There may be hundreds of thousands, so they are sorted by their keys' digits.
static bool sort_built(struct site_list *list) {
    struct site *sites = list->sites.items;
    size_t count = list->sites.count;
    struct measure_key *keys = calloc(2 * count + 2, sizeof *keys), *sorted = NULL;
    uint32_t *order = calloc(count + 1, sizeof *order);
    bool is_ok = keys && order;
    for (size_t i = 0; is_ok && i < count; i++)
        keys[i] = (struct measure_key){.first = measure_key_of(sites[i].measured.value),
                                       .index = (uint32_t)i};
    if (is_ok) sorted = measure_keys_sort(keys, keys + count + 1, count);
    for (size_t i = 0; is_ok && i < count; i++) order[i] = sorted[i].index;
    free(keys);
    if (is_ok) sort_runs(sites, order, count);
    if (is_ok) arrange(sites, order, count);
    free(order);
    return is_ok;
}

// Stacks as they lie in memory, beside those that they share frames with. Sums of estimates depend
// on the order of their parts in the last digit: samples come in the order of a ranking.
bool site_list_build(struct site_list *list, const struct profile *profile,
                     const struct frame_names *names, enum measure measure, bool are_all_shown,
                     struct error *error) {
    *list = (struct site_list){0};
    struct frame_list frames = {.are_all_shown = are_all_shown};
    size_t count = profile->stack_count;
    bool is_sampled = profile->sampling.is_on;
    uint32_t *ranking = is_sampled ? measure_rank(measure, profile, &count) : NULL;
    bool is_ok = ranking || !is_sampled;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[ranking ? ranking[i] : i];
        struct measured measured = measure_stack(measure, stack);
        if (measured.value > 0) is_ok = add_stack(list, profile, names, stack, measured, &frames);
    }
    is_ok = is_ok && sort_built(list);
    free(ranking);
    frame_list_free(&frames);
    return is_ok || error_set(error, "no memory for the list of call sites");
}

void site_list_free(struct site_list *list) {
    array_free(&list->sites);
    index_table_free(&list->table);
}

enum { LABEL_COLUMNS = 48, OTHERS_BYTES = 2048, JOINED_MAX = 2000 };
static const char from[] = "\xe2\x86\x90 ", calls[] = "\xe2\x86\x92 ";  // arrows

// What a line says, shortened to its room.
struct site_text {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES], others[OTHERS_BYTES];
};

// An address without a name, of the same module as the frame before it.
static bool is_same_module(const struct site *site, unsigned i) {
    const struct frame *frame = site->frames[i], *before = site->frames[i - 1];
    return !frame->function && frame->module && before->module && *frame->module &&
           !strcmp(frame->module, before->module);
}

static void add_other(char *out, const char *arrow, const char *label) {
    size_t used = strlen(out);
    snprintf(out + used, OTHERS_BYTES - used, "%s%s%s", used ? " " : "", arrow, label);
}

// "→ callee ← caller ← caller" with so many callers, each name in at most `columns`.
static void put_others(const struct site *site, unsigned callers, size_t columns, char *out) {
    char label[FRAME_TEXT_BYTES];
    *out = 0;
    if (site->callee) {
        frame_label(site->callee, label, sizeof label, columns);
        add_other(out, calls, label);
    }
    for (unsigned i = 1; i < site->frame_count && i <= callers; i++) {
        if (is_same_module(site, i))
            snprintf(label, sizeof label, "+0x%" PRIx64, site->frames[i]->offset);
        else
            frame_label(site->frames[i], label, sizeof label, columns);
        add_other(out, from, label);
    }
}

// As many callers, and as much of their names, as fit: rather one name less than half of each.
static void fit_others(const struct site *site, size_t room, char *out) {
    static const size_t widths[] = {LABEL_COLUMNS, LABEL_COLUMNS * 2 / 3, LABEL_COLUMNS / 2};
    unsigned most = site->frame_count ? site->frame_count - 1 : 0;
    if (site->callee && most > 1) most = 1;
    unsigned least = !site->callee && most ? 1 : 0;
    for (unsigned callers = most;; callers--) {
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            put_others(site, callers, widths[i], out);
            if (text_columns(out) <= room) return;
        }
        if (callers <= least) break;
    }
    put_others(site, least, room > 2 ? room - 2 : 1, out);
}

static void text_of(const struct terminal *terminal, const struct site *site, size_t room,
                    struct site_text *text) {
    *text->label = *text->location = *text->others = 0;
    if (!site->frame_count) return;
    frame_location(site->frames[0], text->location, sizeof text->location);
    if (terminal->is_terminal) text_cut(text->location, room / 2);
    size_t location_columns = *text->location ? text_columns(text->location) + 2 : 0;
    // on a wide screen a short name leaves room for its callers
    size_t label_room = room > location_columns + 1 ? room - location_columns : 1;
    if (label_room > LABEL_COLUMNS) label_room = LABEL_COLUMNS;
    frame_label(site->frames[0], text->label, sizeof text->label, label_room);
    fit_others(site, room, text->others);
}

void site_print(const struct terminal *terminal, const struct site *site, size_t figures_columns) {
    struct site_text text;
    size_t room = terminal->columns - figures_columns;
    if (!site->frame_count) {
        terminal_print(terminal, STYLE_DIM, "%s\n", STACK_NOT_RECORDED);
        return;
    }
    text_of(terminal, site, room, &text);
    size_t used = text_columns(text.label);
    terminal_print(terminal, STYLE_NAME, "%s", text.label);
    if (*text.location) {
        terminal_print(terminal, STYLE_DIM, "  %s", text.location);
        used += 2 + text_columns(text.location);
    }
    if (*text.others && used + 2 + text_columns(text.others) > room) {
        fputc('\n', terminal->out);
        terminal_indent(terminal, figures_columns);
        terminal_print(terminal, STYLE_DIM, "%s", text.others);
    } else if (*text.others) {
        terminal_print(terminal, STYLE_DIM, "  %s", text.others);
    }
    fputc('\n', terminal->out);
}

// The line of a site for free(); sites without a stack look alike.
static char *line_of(const struct terminal *terminal, const struct site *site, size_t room) {
    struct site_text text;
    text_of(terminal, site, room, &text);
    char *line = NULL;
    if (asprintf(&line, "%s  %s  %s", text.label, text.location, text.others) < 0) return NULL;
    return line;
}

// The site before it that reads like line `index`; NULL: it is new, and noted. False without
// memory.
static bool find_line(struct site_list *list, struct index_table *table, char **lines, size_t index,
                      struct site **known) {
    uint64_t hash = index_table_seed();
    for (const char *at = lines[index]; *at; at++) hash = hash_mix(hash, (unsigned char)*at);
    struct index_probe probe = index_probe_start(table, hash);
    for (uint32_t other; index_probe_next(table, &probe, &other);) {
        if (strcmp(lines[other], lines[index]) != 0) continue;
        *known = &list->sites.items[other];
        return true;
    }
    return index_table_insert(table, hash, (uint32_t)index);
}

static bool join(struct site_list *list, struct index_table *table, char **lines,
                 const struct terminal *terminal, size_t room, size_t joined) {
    size_t kept = 0;
    for (size_t i = 0; i < list->sites.count; i++) {
        struct site site = list->sites.items[i], *known = NULL;
        if (i < joined) {
            lines[kept] = line_of(terminal, &site, room);
            if (!lines[kept] || !find_line(list, table, lines, kept, &known)) return false;
        }
        if (!known) {
            list->sites.items[kept++] = site;
            continue;
        }
        measured_add(&known->measured, site.measured);
        known->stack_count += site.stack_count;
        free(lines[kept]);
        lines[kept] = NULL;
    }
    list->sites.count = kept;
    return true;
}

bool site_lines_join(struct site_list *list, const struct terminal *terminal,
                     size_t figures_columns) {
    size_t count = list->sites.count < JOINED_MAX ? list->sites.count : JOINED_MAX;
    struct index_table table = {0};
    char **lines = calloc(count + 1, sizeof *lines);
    bool is_ok =
        lines && join(list, &table, lines, terminal, terminal->columns - figures_columns, count);
    for (size_t i = 0; lines && i < count; i++) free(lines[i]);
    free(lines);
    index_table_free(&table);
    if (is_ok) site_list_sort(list);
    return is_ok;
}
