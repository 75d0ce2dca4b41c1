// SPDX-License-Identifier: Apache-2.0
// Which functions pprof is to leave out: the internal ones at the inner end of stacks, so that its
// lists name who allocates. pprof drops a function with all that it calls. So a function that ever
// has a frame of the program inwards of it stays: it calls back into the program.
//
// pprof compares names without template arguments, unless it is asked for them; both are matched.
#include <stdlib.h>
#include <string.h>

#include "tool/export/export.h"
#include "tool/model/strings.h"

enum { PATTERN_MAX = 1 << 16, NAME_BYTES = 1024 };
enum kind { KIND_UNKNOWN, KIND_LIBRARY, KIND_ALLOCATOR, KIND_NEVER };

// Functions that are one for pprof.
struct dropped {
    enum kind kind;
    const char *function;  // one of them, with its template arguments
};

// What is known of a place after the first stack through it.
enum seen { SEEN_INSIDE = 1, SEEN_OUTSIDE = 2, ENDS_INSIDE = 4 };

struct drops {
    const struct export *export;
    unsigned char *places;  // enum seen, by place
    unsigned char *nodes;   // 1: noted with a frame of the program inwards, and so are its callers
    struct strings names;   // as pprof compares them
    ARRAY(struct dropped) list;
    bool has_failed;
};

// The name without what stands between angle brackets; as it is if they do not match.
static void name_for_pprof(const char *function, char name[NAME_BYTES]) {
    size_t depth = 0, used = 0;
    for (const char *at = function; *at && used + 1 < NAME_BYTES; at++) {
        bool is_end = *at == '>';
        if (is_end && !depth) {
            snprintf(name, NAME_BYTES, "%s", function);
            return;
        }
        depth += *at == '<';
        if (!depth) name[used++] = *at;
        depth -= is_end;
    }
    name[used] = 0;
    if (depth) snprintf(name, NAME_BYTES, "%s", function);
}

// pprof cuts a name at a parenthesis and takes a dot off its front before it compares; brackets
// that do not match are those of operators.
static bool is_comparable(const char *name) {
    return *name && *name != '.' && !strpbrk(name, "(<>");
}

static void note(struct drops *drops, const struct frame *frame, bool is_inside) {
    char name[NAME_BYTES];
    if (!frame->function) return;
    name_for_pprof(frame->function, name);
    uint32_t number = strings_number(&drops->names, name);
    while (drops->list.count <= number) {
        struct dropped *slot = array_push(&drops->list);
        if (!slot) {
            drops->has_failed = true;
            return;
        }
        *slot = (struct dropped){.function = frame->function};
    }
    struct dropped *dropped = &drops->list.items[number];
    enum kind kind = !is_inside ? KIND_NEVER : frame->is_allocator ? KIND_ALLOCATOR : KIND_LIBRARY;
    if (dropped->kind < kind) dropped->kind = kind;
}

// Notes the frames of a place once for each side; whether the frames outwards are still inside.
static bool note_place(struct drops *drops, uint32_t place, bool is_inside) {
    const struct frame_names *names = drops->export->names;
    unsigned char *seen = &drops->places[place], side = is_inside ? SEEN_INSIDE : SEEN_OUTSIDE;
    if (*seen & side) return is_inside && *seen & ENDS_INSIDE;
    size_t count;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        is_inside = is_inside && frames[i].is_hidden;
        note(drops, &frames[i], is_inside);
    }
    *seen |= side | (is_inside ? ENDS_INSIDE : 0);
    return is_inside;
}

static void note_stack(struct drops *drops, uint32_t node) {
    const struct profile *profile = drops->export->profile;
    const struct tree_node *nodes = profile->tree.nodes.items;
    bool is_inside = true;
    for (; node != TREE_ROOT && !drops->nodes[node]; node = nodes[node].parent) {
        uint32_t place = nodes[node].place;
        drops->nodes[node] = !is_inside;
        if (profile->places.list.items[place].cut) continue;
        is_inside = note_place(drops, place, is_inside);
    }
}

static bool note_stacks(struct drops *drops) {
    const struct profile *profile = drops->export->profile;
    drops->places = calloc(profile->places.list.count + 1, 1);
    drops->nodes = calloc(profile->tree.nodes.count + 1, 1);
    bool is_ok = drops->places && drops->nodes;
    for (size_t i = 0; is_ok && i < profile->stack_count; i++)
        note_stack(drops, profile->stacks[i].node);
    free(drops->places);
    free(drops->nodes);
    return is_ok;
}

// As a regular expression: "std::__new_allocator(<.*>)?::allocate".
static void put_pattern(FILE *out, const char *function) {
    size_t depth = 0;
    for (; *function; function++) {
        if (*function == '<' && !depth++) fputs("(<.*>)?", out);
        if (!depth && strchr("\\.+*?()|[]{}^$", *function)) fputc('\\', out);
        if (!depth) fputc(*function, out);
        if (*function == '>' && depth) depth--;
    }
}

// Functions of the allocator first, then the others, as many as pprof compares without delay.
static void put_patterns(const struct drops *drops, FILE *out) {
    for (enum kind kind = KIND_ALLOCATOR; kind >= KIND_LIBRARY; kind--)
        for (size_t i = 0; i < drops->list.count && ftell(out) < PATTERN_MAX; i++) {
            const struct dropped *dropped = &drops->list.items[i];
            if (dropped->kind != kind || !is_comparable(drops->names.list.items[i])) continue;
            if (ftell(out)) fputc('|', out);
            put_pattern(out, dropped->function);
        }
}

char *export_drop_frames(const struct export *export) {
    struct drops drops = {.export = export};
    char *pattern = NULL;
    size_t size = 0;
    strings_start(&drops.names);
    drops.has_failed = !note_stacks(&drops);
    FILE *out = open_memstream(&pattern, &size);
    if (out) put_patterns(&drops, out);
    bool is_ok = out && !fclose(out) && !drops.has_failed && !drops.names.has_failed;
    strings_free(&drops.names);
    array_free(&drops.list);
    if (is_ok) return pattern;
    free(pattern);
    return NULL;
}
