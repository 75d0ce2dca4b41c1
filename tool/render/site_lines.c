// SPDX-License-Identifier: Apache-2.0
// Sites as text.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/render/site.h"

enum { LABEL_COLUMNS = 48, MODULE_COLUMNS_LEAST = 8, OTHERS_BYTES = 2048 };
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

// A module takes what the function's name leaves of the room, a file and its line half at most, in
// a pipe all that it is.
static void fit_location(const struct terminal *terminal, const struct frame *frame, size_t room,
                         struct site_text *text) {
    frame_location(frame, text->location, sizeof text->location);
    if (frame->file) {
        if (terminal->is_terminal) text_cut(text->location, room / 2);
        return;
    }
    frame_label(frame, text->label, sizeof text->label, LABEL_COLUMNS);
    size_t used = text_columns(text->label) + 2;
    if (used + MODULE_COLUMNS_LEAST > room)
        *text->location = 0;
    else
        text_cut(text->location, room - used);
}

static void text_of(const struct terminal *terminal, const struct site *site, size_t room,
                    struct site_text *text) {
    *text->label = *text->location = *text->others = 0;
    if (!site->frame_count) return;
    fit_location(terminal, site->frames[0], room, text);
    size_t location_columns = *text->location ? text_columns(text->location) + 2 : 0;
    // on a wide screen a short name leaves room for its callers
    size_t label_room = room > location_columns + room / 2 ? room - location_columns : room / 2;
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

// `joined` becomes how many are left of the first `joined`.
static bool join(struct site_list *list, struct index_table *table, char **lines,
                 const struct terminal *terminal, size_t room, size_t *joined) {
    size_t kept = 0, tried = *joined;
    for (size_t i = 0; i < list->sites.count; i++) {
        struct site site = list->sites.items[i], *known = NULL;
        if (i < tried) {
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
        (*joined)--;
    }
    list->sites.count = kept;
    return true;
}

// Those that were joined rise; what comes behind them stays behind them.
bool site_lines_join(struct site_list *list, const struct terminal *terminal,
                     size_t figures_columns) {
    size_t count = list->sites.count < SITES_JOINED ? list->sites.count : SITES_JOINED;
    size_t joined = count;
    struct index_table table = {0};
    char **lines = calloc(count + 1, sizeof *lines);
    bool is_ok =
        lines && join(list, &table, lines, terminal, terminal->columns - figures_columns, &joined);
    for (size_t i = 0; lines && i < count; i++) free(lines[i]);
    free(lines);
    index_table_free(&table);
    if (is_ok) site_list_sort(list, joined);
    return is_ok;
}
