// SPDX-License-Identifier: Apache-2.0
#include "tool/render/heap_screen.h"

#include <inttypes.h>

#include "tool/base/units.h"
#include "tool/render/heap_map.h"

enum { ARENAS_SHOWN = 8 };

static void print_sum(FILE *out, const struct heap_sum *sum, bool is_plain) {
    fprintf(out, " %10s %10s", units_count((int64_t)sum->count).text,
            units_size_as((int64_t)sum->bytes, is_plain).text);
}

// Which memory this is, when, and what it cost.
static void print_origin(const struct terminal *terminal, const struct heap_about *about,
                         const char *what) {
    const struct heap_state *state = about->state;
    if (state->is_core) {
        terminal_print(terminal, STYLE_STRONG, "%s of %s\n", what, about->name);
        return;
    }
    terminal_print(terminal, STYLE_STRONG, "%s of process %" PRIu32, what, state->pid);
    fprintf(terminal->out, ", stopped for %s", units_duration(state->pause_ns).text);
    terminal_print(terminal, STYLE_DIM, " (%s %s, %s copied)\n",
                   units_count((int64_t)state->thread_count).text,
                   units_noun((int64_t)state->thread_count, "thread", "threads"),
                   units_size((int64_t)state->copied_bytes).text);
}

void heap_print_doubts(const struct terminal *terminal, const struct heap_state *state) {
    if (state->broken_count)
        terminal_print(terminal, STYLE_WARNING,
                       "%s %s of the heap were left where a chunk makes no sense\n",
                       units_count((int64_t)state->broken_count).text,
                       units_noun((int64_t)state->broken_count, "stretch", "stretches"));
    if (state->rejected_count)
        terminal_print(terminal, STYLE_WARNING,
                       "%s %s of live blocks contradict what is around them: left out\n",
                       units_count((int64_t)state->rejected_count).text,
                       units_noun((int64_t)state->rejected_count, "record", "records"));
    if (state->residency.outside_blocks)
        terminal_print(
            terminal, STYLE_WARNING, "%s live %s where no heap was found\n",
            units_count((int64_t)state->residency.outside_blocks).text,
            units_noun((int64_t)state->residency.outside_blocks, "block lies", "blocks lie"));
}

// --- view heap

static void print_classes(const struct terminal *terminal, const struct heap_state *state,
                          bool is_plain) {
    FILE *out = terminal->out;
    fprintf(out, "%11s", "size from");
    if (state->is_glibc) fprintf(out, " %10s %10s", "used", "bytes");
    if (state->is_recorded)
        fprintf(out, " %10s %10s", state->is_sampled ? "estimated" : "recorded", "bytes");
    if (state->is_glibc) fprintf(out, " %10s %10s", "free", "bytes");
    fputc('\n', out);
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        const struct heap_class *class = &state->classes[i];
        if (!class->used.count && !class->free.count && !class->live.count) continue;
        fprintf(out, "%11s", units_size_as((int64_t)1 << i, is_plain).text);
        if (state->is_glibc) print_sum(out, &class->used, is_plain);
        if (state->is_recorded) print_sum(out, &class->live, is_plain);
        if (state->is_glibc) print_sum(out, &class->free, is_plain);
        fputc('\n', out);
    }
}

static void print_kinds(const struct terminal *terminal, const struct heap_state *state,
                        bool is_plain) {
    static const char *const names[HEAP_KINDS] = {
        [HEAP_USED] = "in use",
        [HEAP_MAPPED] = "in use, with mappings of their own",
        [HEAP_BINNED] = "free, in bins",
        [HEAP_FAST] = "free, in fastbins",
        [HEAP_CACHED] = "free, in caches of threads",
    };
    FILE *out = terminal->out;
    if (state->is_recorded) {
        print_sum(out, &state->live, is_plain);
        fprintf(out, "  live as the recording has them, in bytes asked for\n");
    }
    if (!state->is_glibc) return;
    for (unsigned i = 0; i < HEAP_KINDS; i++) {
        print_sum(out, &state->kinds[i], is_plain);
        fprintf(out, "  %s\n", names[i]);
    }
    fprintf(out, " %10s %10s  free, at the end of %zu %s\n", "",
            units_size_as((int64_t)state->top_bytes, is_plain).text, state->arenas.count,
            units_noun((int64_t)state->arenas.count, "arena", "arenas"));
}

static void print_arenas(const struct terminal *terminal, const struct heap_state *state,
                         bool is_plain) {
    FILE *out = terminal->out;
    fprintf(out, "\n%16s %10s %10s %10s %10s %12s\n", "arena", "size",
            state->is_core ? "" : "resident", "used", "free", "largest free");
    for (size_t i = 0; i < state->arenas.count && i < ARENAS_SHOWN; i++) {
        const struct heap_arena *arena = &state->arenas.items[i];
        char name[32];
        snprintf(name, sizeof name, "%" PRIx64 "%s", arena->address, arena->is_main ? "*" : " ");
        fprintf(out, "%16s %10s", name, units_size_as((int64_t)arena->bytes, is_plain).text);
        fprintf(out, " %10s",
                state->is_core ? "" : units_size_as((int64_t)arena->resident_bytes, is_plain).text);
        fprintf(out, " %10s", units_size_as((int64_t)arena->used_bytes, is_plain).text);
        fprintf(out, " %10s",
                units_size_as((int64_t)(arena->free_bytes + arena->top_bytes), is_plain).text);
        fprintf(out, " %12s\n", units_size_as((int64_t)arena->largest_free_bytes, is_plain).text);
    }
    if (state->arenas.count > ARENAS_SHOWN)
        terminal_print(terminal, STYLE_DIM, "%16s %zu more arenas\n", "",
                       state->arenas.count - ARENAS_SHOWN);
}

// How much of the arenas lies free between blocks in use (docs/metrics.md).
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
    if (!state->is_glibc)
        terminal_print(
            terminal, STYLE_DIM,
            "its allocator is not glibc's: what is recorded is told, not what is free\n");
    print_classes(terminal, state, is_plain);
    fputc('\n', terminal->out);
    print_kinds(terminal, state, is_plain);
    if (state->is_glibc) print_arenas(terminal, state, is_plain);
    if (state->is_glibc) print_fragmentation(terminal, state, is_plain);
    fputc('\n', terminal->out);
    if (!heap_map_print(terminal, state, view, error)) return false;
    heap_print_doubts(terminal, state);
    return true;
}
