// SPDX-License-Identifier: Apache-2.0
#include "tool/render/heap_screen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/render/columns.h"
#include "tool/render/stacks.h"

enum { ARENAS_SHOWN = 8, SUM_TEXTS = 2, CLASS_COLUMNS = 1 + 3 * SUM_TEXTS };

// A number of blocks and their bytes.
static const struct column sum_columns[SUM_TEXTS] = {{"", 10, STYLE_PLAIN, false},
                                                     {"bytes", 10, STYLE_PLAIN, false}};

static void put_sum(struct unit_text *texts, const struct heap_sum *sum, bool is_plain) {
    texts[0] = units_count((int64_t)sum->count);
    texts[1] = units_size_as((int64_t)sum->bytes, is_plain);
}

static void print_sum(const struct terminal *terminal, const struct heap_sum *sum, bool is_plain,
                      const char *what) {
    const struct columns columns = {sum_columns, SUM_TEXTS, 1, 1};
    struct unit_text texts[SUM_TEXTS];
    put_sum(texts, sum, is_plain);
    columns_print(terminal, &columns, texts);
    fprintf(terminal->out, "  %s\n", what);
}

static void print_origin(const struct terminal *terminal, const struct heap_about *about,
                         const char *what) {
    const struct heap_state *state = about->state;
    if (state->is_core) {
        terminal_print(terminal, STYLE_STRONG, "%s of %s\n", what, about->name);
        return;
    }
    terminal_print(terminal, STYLE_STRONG, "%s of process %" PRIu32, what, state->pid);
    fprintf(terminal->out, ", paused for %s", units_duration(state->pause_ns).text);
    terminal_print(terminal, STYLE_DIM, " (%s, %s copied)\n",
                   units_counted((int64_t)state->thread_count, "thread", "threads").text,
                   units_size((int64_t)state->copied_bytes).text);
}

static void print_doubt(const struct terminal *terminal, uint64_t count, const char *one,
                        const char *several, const char *what) {
    if (count)
        terminal_print(terminal, STYLE_WARNING, "%s %s\n",
                       units_counted((int64_t)count, one, several).text, what);
}

void heap_print_doubts(const struct terminal *terminal, const struct heap_state *state) {
    print_doubt(terminal, state->broken_count, "stretch", "stretches",
                "of the heap were left where a chunk makes no sense");
    print_doubt(terminal, state->rejected_count, "record", "records",
                "of live blocks contradict what is around them: left out");
    print_doubt(terminal, state->unknown_caches, "thread", "threads",
                "may have caches that were not found: what they hold counts as in use");
    print_doubt(terminal, state->busy_threads, "thread", "threads",
                "may be within a call of malloc: a block of each may count as in use that is not");
    print_doubt(terminal, state->kinds[HEAP_MOVING].count, "block", "blocks",
                "may be moved by them just then, and count as neither used nor free");
    print_doubt(terminal, state->residency.outside_blocks, "live block lies", "live blocks lie",
                "where no heap was found");
}

// --- view heap

// The sums that are known of each class.
static struct columns class_columns(const struct heap_state *state, struct column *items) {
    const char *const heads[] = {state->allocator ? "used" : NULL,
                                 state->is_recorded ? (state->is_sampled ? "estimated" : "recorded")
                                                    : NULL,
                                 state->allocator ? "free" : NULL};
    size_t count = 1;
    items[0] = (struct column){"size from", 11, STYLE_PLAIN, false};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!heads[i]) continue;
        memcpy(&items[count], sum_columns, sizeof sum_columns);
        items[count].head = heads[i];
        count += SUM_TEXTS;
    }
    return (struct columns){items, count, 0, 1};
}

static void print_class(const struct terminal *terminal, const struct columns *columns,
                        const struct heap_state *state, unsigned number, bool is_plain) {
    const struct heap_class *class = &state->classes[number];
    struct unit_text texts[CLASS_COLUMNS] = {units_size_as((int64_t)1 << number, is_plain)};
    size_t count = 1;
    if (state->allocator) put_sum(&texts[count], &class->used, is_plain);
    if (state->allocator) count += SUM_TEXTS;
    if (state->is_recorded) put_sum(&texts[count], &class->live, is_plain);
    if (state->is_recorded) count += SUM_TEXTS;
    if (state->allocator) put_sum(&texts[count], &class->free, is_plain);
    columns_print(terminal, columns, texts);
    fputc('\n', terminal->out);
}

static void print_classes(const struct terminal *terminal, const struct heap_state *state,
                          bool is_plain) {
    struct column items[CLASS_COLUMNS];
    const struct columns columns = class_columns(state, items);
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        const struct heap_class *class = &state->classes[i];
        if (class->used.count || class->free.count || class->live.count)
            print_class(terminal, &columns, state, i, is_plain);
    }
}

static void print_kinds(const struct terminal *terminal, const struct heap_state *state,
                        bool is_plain) {
    const char *const names[HEAP_KINDS] = {
        [HEAP_USED] = "in use",
        [HEAP_MAPPED] = "in use, with mappings of their own",
        [HEAP_MOVING] = "in use or free, of threads within a call",
        [HEAP_BINNED] = state->sizes.count ? "free, beside those in use" : "free, in bins",
        [HEAP_FAST] = "free, in fastbins",
        [HEAP_CACHED] = "free, in caches of threads",
    };
    if (state->is_recorded)
        print_sum(terminal, &state->live, is_plain,
                  "live as the recording has them, in bytes asked for");
    if (!state->allocator) return;
    for (unsigned i = 0; i < HEAP_KINDS; i++)
        if (state->kinds[i].count || (!state->sizes.count && i != HEAP_MOVING))
            print_sum(terminal, &state->kinds[i], is_plain, names[i]);
    if (state->sizes.count) heap_print_empty(terminal, state, is_plain);
    if (!state->arenas.count && state->sizes.count) return;
    const struct columns columns = {sum_columns, SUM_TEXTS, 1, 1};
    const struct unit_text texts[SUM_TEXTS] = {{""},
                                               units_size_as((int64_t)state->top_bytes, is_plain)};
    columns_print(terminal, &columns, texts);
    fprintf(terminal->out, "  free, at the end of %zu %s\n", state->arenas.count,
            units_noun((int64_t)state->arenas.count, "arena", "arenas"));
}

enum { ARENA_NAME_COLUMNS = 16, ARENA_COLUMNS = 6 };

static void print_arenas(const struct terminal *terminal, const struct heap_state *state,
                         bool is_plain) {
    const struct column items[ARENA_COLUMNS] = {
        {"arena", ARENA_NAME_COLUMNS, STYLE_PLAIN, false},
        {"size", 10, STYLE_PLAIN, false},
        {state->is_core ? "" : "resident", 10, STYLE_PLAIN, false},
        {"used", 10, STYLE_PLAIN, false},
        {"free", 10, STYLE_PLAIN, false},
        {"largest free", 12, STYLE_PLAIN, false}};
    const struct columns columns = {items, ARENA_COLUMNS, 0, 1};
    fputc('\n', terminal->out);
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (size_t i = 0; i < state->arenas.count && i < ARENAS_SHOWN; i++) {
        const struct heap_arena *arena = &state->arenas.items[i];
        struct unit_text texts[ARENA_COLUMNS] = {
            {""},
            units_size_as((int64_t)arena->bytes, is_plain),
            units_size_as((int64_t)arena->resident_bytes, is_plain),
            units_size_as((int64_t)arena->used_bytes, is_plain),
            units_size_as((int64_t)(arena->free_bytes + arena->top_bytes), is_plain),
            units_size_as((int64_t)arena->largest_free_bytes, is_plain)};
        snprintf(texts[0].text, sizeof texts->text, "%" PRIx64 "%s", arena->address,
                 arena->is_main ? "*" : " ");
        if (state->is_core) *texts[2].text = 0;
        columns_print(terminal, &columns, texts);
        fputc('\n', terminal->out);
    }
    if (state->arenas.count > ARENAS_SHOWN)
        terminal_print(terminal, STYLE_DIM, "%*s %zu more arenas\n", ARENA_NAME_COLUMNS, "",
                       state->arenas.count - ARENAS_SHOWN);
}

// How much of the arenas lies free between blocks in use (docs/reference/metrics.md).
static void print_fragmentation(const struct terminal *terminal, const struct heap_state *state,
                                bool is_plain) {
    if (!state->free_bytes) return;
    uint64_t between = state->kinds[HEAP_BINNED].bytes + state->kinds[HEAP_FAST].bytes +
                       state->kinds[HEAP_CACHED].bytes;
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_STRONG, "free: %s",
                   units_size_as((int64_t)state->free_bytes, is_plain).text);
    if (!state->is_core)
        fprintf(terminal->out, ", %s resident",
                units_size_as((int64_t)state->free_resident_bytes, is_plain).text);
    fprintf(
        terminal->out, ", largest piece %s; fragmentation %s\n",
        units_size_as((int64_t)state->largest_free_bytes, is_plain).text,
        units_percent((int64_t)between, (int64_t)(between + state->kinds[HEAP_USED].bytes)).text);
}

bool heap_screen_print(const struct terminal *terminal, const struct heap_about *about,
                       const struct view_options *view, struct error *error) {
    const struct heap_state *state = about->state;
    bool is_plain = view->is_plain_number;
    print_origin(terminal, about, "heap");
    if (!state->allocator)
        terminal_print(
            terminal, STYLE_DIM,
            "its allocator is not glibc's: what is recorded is shown, not what is free\n");
    else if (state->sizes.count)
        terminal_print(terminal, STYLE_DIM, "its allocator is %s\n", state->allocator);
    print_classes(terminal, state, is_plain);
    fputc('\n', terminal->out);
    print_kinds(terminal, state, is_plain);
    if (state->sizes.count) heap_print_sizes(terminal, state, view);
    if (state->arenas.count || (state->allocator && !state->sizes.count))
        print_arenas(terminal, state, is_plain);
    if (state->allocator) print_fragmentation(terminal, state, is_plain);
    fputc('\n', terminal->out);
    if (!heap_map_print(terminal, state, view, error)) return false;
    heap_print_doubts(terminal, state);
    return true;
}

struct unit_text heap_class_name(unsigned class, bool is_plain_number) {
    struct unit_text out;
    uint64_t from = class ? 1ull << class : 0;
    snprintf(out.text, sizeof out.text, "blocks of %s to %s",
             units_size_as((int64_t)from, is_plain_number).text,
             units_size_as((int64_t)(2ull << class) - 1, is_plain_number).text);
    return out;
}

static void print_heading(const struct terminal *terminal, const struct heap_about *about,
                          bool is_plain) {
    const struct heap_state *state = about->state;
    const struct residency *residency = &state->residency;
    FILE *out = terminal->out;
    if (state->is_core) {
        terminal_print(terminal, STYLE_STRONG, "pages of the heap in %s\n", about->name);
        terminal_print(terminal, STYLE_DIM,
                       "a core does not tell which pages were resident: those of zeros may\n"
                       "never have been touched, and do not count\n");
    } else {
        terminal_print(terminal, STYLE_STRONG, "resident pages of process %" PRIu32 "'s heap",
                       state->pid);
        fprintf(out, ", paused for %s", units_duration(state->pause_ns).text);
        terminal_print(terminal, STYLE_DIM, " (%s %s)\n",
                       units_count((int64_t)state->thread_count).text,
                       units_noun((int64_t)state->thread_count, "thread", "threads"));
    }
    fprintf(out, "%12s  %s, with %s live on them\n",
            units_size_as((int64_t)residency->resident_bytes, is_plain).text,
            state->is_core ? "of pages with more than zeros" : "resident",
            units_size_as((int64_t)residency->live_bytes, is_plain).text);
    fprintf(out, "%12s  on pages with live blocks, charged below\n",
            units_size_as((int64_t)residency->kept_bytes, is_plain).text);
    fprintf(out, "%12s  on pages without: free memory %s\n",
            units_size_as((int64_t)heap_state_empty_bytes(state), is_plain).text,
            state->sizes.count ? "and its allocator's tables" : "in arenas");
    const int64_t zero_bytes = (int64_t)(residency->range_bytes - residency->resident_bytes);
    if (state->is_core && zero_bytes)
        fprintf(out, "%12s  of pages of zeros, or not in the core\n",
                units_size_as(zero_bytes, is_plain).text);
}

// Why owners are what they are, and how far they can be believed.
static void print_note(const struct terminal *terminal, const struct heap_state *state) {
    const char *note = NULL;
    if (!state->is_recorded)
        note = "the process is not recorded: by type or size, since nobody knows the stacks";
    else if (state->is_sampled)
        note = "a sample is recorded: what stacks hold and keep is estimated";
    if (note) terminal_print(terminal, STYLE_DIM, "%s\n", note);
}

static void print_owner(const struct terminal *terminal, const struct heap_state *state,
                        const struct residency_owner *owner, size_t rank, bool is_plain) {
    uint64_t whole = state->residency.kept_bytes;
    terminal_print(terminal, STYLE_DIM, "\n%3zu ", rank);
    terminal_print(terminal, STYLE_STRONG, "%5s",
                   units_percent((int64_t)owner->kept_bytes, (int64_t)whole).text);
    fprintf(terminal->out, " keeps %s%s %s with %s live in %s %s\n",
            state->is_sampled ? "about " : "",
            units_size_as((int64_t)owner->kept_bytes, is_plain).text,
            state->is_core ? "of pages" : "resident",
            units_size_as((int64_t)owner->live_bytes, is_plain).text,
            units_count((int64_t)owner->blocks).text,
            units_noun((int64_t)owner->blocks, "block", "blocks"));
    if (state->is_sampled) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "alone on %s of it, shares the rest\n",
                   units_size_as((int64_t)owner->alone_bytes, is_plain).text);
}

static bool print_name(const struct terminal *terminal, const struct heap_about *about,
                       struct frame_list *frames, uint32_t owner, const struct view_options *view) {
    const struct heap_state *state = about->state;
    if (state->is_recorded && owner < state->stack_count) {
        const struct stack *stack = &about->profile->stacks[owner];
        if (!frame_list_fill(frames, about->profile, about->names, stack->node, 0)) return false;
        stacks_print_frames(terminal, frames, stack->cut, view->depth);
        return true;
    }
    const char *type = heap_state_type(state, owner);
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    if (type) {
        char text[FRAME_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", type);
        text_cut(text, terminal->columns - STACKS_NOTE_INDENT);
        terminal_print(terminal, STYLE_NAME, "%s\n", text);
    } else if (state->is_recorded)
        terminal_print(terminal, STYLE_NAME, "[blocks that are not in the recording]\n");
    else
        terminal_print(terminal, STYLE_NAME, "%s\n",
                       heap_class_name(owner, view->is_plain_number).text);
    return true;
}

static bool print_owners(const struct terminal *terminal, const struct heap_about *about,
                         const struct view_options *view) {
    const struct heap_state *state = about->state;
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    size_t count;
    uint32_t *ranking = residency_rank(&state->residency, &count);
    bool is_ok = ranking != NULL;
    size_t shown = view->top && view->top < count ? view->top : count;
    for (size_t i = 0; i < shown && is_ok; i++) {
        print_owner(terminal, state, &state->residency.owners[ranking[i]], i + 1,
                    view->is_plain_number);
        is_ok = print_name(terminal, about, &frames, ranking[i], view);
    }
    if (is_ok && shown < count)
        terminal_print(terminal, STYLE_DIM, "\n%s pages: --top 0\n",
                       units_counted((int64_t)(count - shown), "more keeps", "more keep").text);
    frame_list_free(&frames);
    free(ranking);
    return is_ok;
}

bool pages_screen_print(const struct terminal *terminal, const struct heap_about *about,
                        const struct view_options *view, struct error *error) {
    print_heading(terminal, about, view->is_plain_number);
    print_note(terminal, about->state);
    if (!print_owners(terminal, about, view))
        return error_set(error, "no memory for the list of stacks");
    fputc('\n', terminal->out);
    if (!heap_map_print(terminal, about->state, view, error)) return false;
    heap_print_doubts(terminal, about->state);
    return true;
}

enum { KINDS = HEAP_AREA_OTHER + 1, PERCENT = 100 };
enum { LINE_CELLS = 64, LINES = 16, LABEL_COLUMNS = 14 };

const char *heap_area_name(enum heap_area_kind kind) {
    static const char *const names[KINDS] = {
        [HEAP_AREA_MAIN] = "main arena",
        [HEAP_AREA_ARENA] = "arenas of threads",
        [HEAP_AREA_BLOCKS] = "blocks with mappings of their own",
        [HEAP_AREA_OTHER] = "the allocator's memory",
    };
    return names[kind];
}

// --- cells

// The cell that pages are being added to.
struct filling {
    struct heap_map *map;
    uint64_t start, pages, pages_most, resident_bytes, live_bytes;
    bool is_bad;
};

static void end_cell(struct filling *filling) {
    if (!filling->pages) return;
    uint8_t *cell = array_push(&filling->map->cells);
    uint64_t *address = array_push(&filling->map->addresses);
    filling->is_bad |= !cell || !address;
    if (cell)
        *cell = filling->resident_bytes
                    ? (uint8_t)(filling->live_bytes * PERCENT / filling->resident_bytes)
                    : HEAP_CELL_ABSENT;
    if (address) *address = filling->start;
    filling->pages = filling->resident_bytes = filling->live_bytes = 0;
}

static void add_area(struct filling *filling, struct heap_strip *strip,
                     const struct heap_state *state, const struct heap_area *area) {
    const uint64_t page_bytes = state->residency.page_bytes;
    size_t count = (area->end - area->start) / page_bytes;
    for (size_t i = 0; i < count; i++) {
        uint32_t live = state->residency.pages.items[area->first_page + i];
        if (!filling->pages) filling->start = area->start + i * page_bytes;
        if (live != RESIDENCY_ABSENT) {
            filling->resident_bytes += page_bytes;
            filling->live_bytes += live;
            strip->resident_bytes += page_bytes;
            strip->live_bytes += live;
        }
        if (++filling->pages == filling->pages_most) end_cell(filling);
    }
    strip->bytes += area->end - area->start;
    strip->area_count++;
}

static bool add_strip(struct heap_map *map, const struct heap_state *state,
                      enum heap_area_kind kind) {
    struct heap_strip strip = {.kind = kind, .first_cell = map->cells.count};
    struct filling filling = {.map = map,
                              .pages_most = map->cell_bytes / state->residency.page_bytes};
    for (size_t i = 0; i < state->areas.count; i++)
        if (state->areas.items[i].kind == kind)
            add_area(&filling, &strip, state, &state->areas.items[i]);
    end_cell(&filling);
    strip.cell_count = map->cells.count - strip.first_cell;
    if (!strip.cell_count) return !filling.is_bad;
    struct heap_strip *slot = array_push(&map->strips);
    if (slot) *slot = strip;
    return slot && !filling.is_bad;
}

// The smallest power of two pages with which the cells are not more than allowed.
static uint64_t choose_cell(const struct heap_state *state, size_t cell_limit) {
    uint64_t cell = state->residency.page_bytes;
    while (state->residency.range_bytes / cell > cell_limit) cell *= 2;
    return cell;
}

bool heap_map_build(const struct heap_state *state, size_t cell_limit, struct heap_map *map,
                    struct error *error) {
    *map = (struct heap_map){.cell_bytes = choose_cell(state, cell_limit)};
    bool is_ok = true;
    for (int kind = 0; kind < KINDS && is_ok; kind++)
        is_ok = add_strip(map, state, (enum heap_area_kind)kind);
    if (is_ok) return true;
    heap_map_free(map);
    return error_set(error, "no memory for the picture of the heap");
}

void heap_map_free(struct heap_map *map) {
    array_free(&map->strips);
    array_free(&map->cells);
    array_free(&map->addresses);
}

// --- characters

static const char *character_of(uint8_t cell) {
    static const char *const shades[] = {"\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93",
                                         "\xe2\x96\x88"};
    enum { STEP = 25, DARKEST = 3 };
    if (cell == HEAP_CELL_ABSENT) return "\xc2\xb7";
    return shades[cell / STEP < DARKEST ? cell / STEP : DARKEST];
}

static void print_line(const struct terminal *terminal, const struct heap_map *map, size_t first,
                       size_t count) {
    terminal_print(terminal, STYLE_DIM, "%12" PRIx64 "  ", map->addresses.items[first]);
    for (size_t i = 0; i < count; i++) {
        uint8_t cell = map->cells.items[first + i];
        terminal_print(terminal, cell == HEAP_CELL_ABSENT ? STYLE_DIM : STYLE_NAME, "%s",
                       character_of(cell));
    }
    fputc('\n', terminal->out);
}

static bool is_absent(const struct heap_map *map, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (map->cells.items[first + i] != HEAP_CELL_ABSENT) return false;
    return true;
}

static void print_strip(const struct terminal *terminal, const struct heap_state *state,
                        const struct heap_map *map, const struct heap_strip *strip, size_t columns,
                        bool is_plain) {
    terminal_print(terminal, STYLE_STRONG, "%s", heap_area_name(strip->kind));
    fprintf(terminal->out, ": %s", units_size_as((int64_t)strip->bytes, is_plain).text);
    if (!state->is_core)
        fprintf(terminal->out, ", %s resident",
                units_size_as((int64_t)strip->resident_bytes, is_plain).text);
    fprintf(terminal->out, ", %s live\n", units_size_as((int64_t)strip->live_bytes, is_plain).text);
    size_t end = strip->first_cell + strip->cell_count;
    for (size_t at = strip->first_cell; at < end; at += columns) {
        size_t count = end - at < columns ? end - at : columns;
        if (!is_absent(map, at, count)) print_line(terminal, map, at, count);
    }
}

bool heap_map_print(const struct terminal *terminal, const struct heap_state *state,
                    const struct view_options *view, struct error *error) {
    struct heap_map map;
    size_t columns = terminal->columns > LABEL_COLUMNS + LINE_CELLS ? LINE_CELLS
                     : terminal->columns > 2 * LABEL_COLUMNS ? terminal->columns - LABEL_COLUMNS
                                                             : LABEL_COLUMNS;
    if (!heap_map_build(state, columns * LINES, &map, error)) return false;
    for (size_t i = 0; i < map.strips.count; i++)
        print_strip(terminal, state, &map, &map.strips.items[i], columns, view->is_plain_number);
    terminal_print(terminal, STYLE_DIM,
                   "%s each; live share of %s: \xe2\x96\x88 75 \xe2\x96\x93 50 \xe2\x96\x92 25 "
                   "\xe2\x96\x91 0 %%%s\n",
                   units_size_as((int64_t)map.cell_bytes, view->is_plain_number).text,
                   state->is_core ? "pages not zero" : "resident",
                   state->is_core ? ", \xc2\xb7 zeros" : ", \xc2\xb7 none resident");
    heap_map_free(&map);
    return true;
}
