// SPDX-License-Identifier: Apache-2.0
// Where a program died after an allocation failed, and whose code that is. The two stacks, of the
// allocation and of the death, are the same outwards from some function on: that one got the
// failure handed to it, and the death came of what it did next. If it is libc's, say, and the way
// to both ends goes through libraries only, no code of the program ever saw the failure.
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/internal_frames.h"
#include "tool/torture/names.h"

static bool is_library(const char *module) {
    return module && strstr(text_base_name(module), ".so") != NULL;
}

static bool is_same_text(const char *one, const char *other) {
    return one == other || (one && other && !strcmp(one, other));
}

static bool is_same_call(const struct torture_frame *one, const struct torture_frame *other) {
    return is_same_text(one->module, other->module) &&
           is_same_text(one->function, other->function) && one->line == other->line &&
           (one->function || (one->address && one->address == other->address));
}

static bool is_same_function(const struct torture_frame *one, const struct torture_frame *other) {
    return one->function && is_same_text(one->function, other->function) &&
           is_same_text(one->module, other->module);
}

static bool is_all_library(const struct torture_frame *frames, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!is_library(frames[i].module)) return false;
    return true;
}

// An exception that nobody catches is told where it was thrown, below the library's own code.
static bool is_thrown(const struct torture_frame *frames, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (frames[i].function && (!strcmp(frames[i].function, "__cxa_throw") ||
                                   !strcmp(frames[i].function, "std::terminate")))
            return true;
    return false;
}

void torture_within(const struct torture_target *target, const struct torture_frame *frames,
                    size_t count, char *library, size_t size) {
    size_t one = target->frame_count, other = count;
    *library = 0;
    if (target->is_cut || is_thrown(frames, count)) return;
    while (one && other && is_same_call(&target->frames[one - 1], &frames[other - 1])) {
        one--;
        other--;
    }
    // the same function, another of its calls; without names, the caller's library decides
    if (one && other && is_same_function(&target->frames[one - 1], &frames[other - 1])) {
        one--;
        other--;
    }
    if (!one || one == target->frame_count) return;
    const struct torture_frame *parting = &target->frames[one];
    if (is_library(parting->module) && is_all_library(target->frames, one) &&
        is_all_library(frames, other))
        text_escape(library, size, text_base_name(parting->module));
}

void torture_put_where(FILE *out, const struct torture_frame *frames, size_t count) {
    enum { SHOWN = 3 };
    size_t shown = 0;
    for (size_t i = 0; i < count && shown < SHOWN; i++) {
        const struct torture_frame *frame = &frames[i];
        if (internal_is_hidden(frame->function, frame->module)) continue;
        fprintf(out, "%s%s", shown++ ? " <- " : "",
                frame->function ? frame->function
                : frame->module ? text_base_name(frame->module)
                                : "?");
        if (frame->file && frame->line)
            fprintf(out, " (%s:%u)", text_base_name(frame->file), frame->line);
    }
}

// abort() and what calls it say nothing of who gave up: of a program its own code is told.
static size_t first_told(const struct torture_frame *frames, size_t count, bool is_within) {
    size_t first = 0, own;
    for (size_t i = 0; i < count && !first; i++)
        if (frames[i].function && !strcmp(frames[i].function, "abort")) first = i + 1;
    for (own = first; first && !is_within && own < count; own++)
        if (!is_library(frames[own].module) && !internal_is_library(frames[own].function, NULL))
            return own;
    return first < count ? first : 0;
}

static void tell(struct torture_outcome *outcome, const struct torture_target *target,
                 const struct torture_frame *frames, size_t count, bool is_cut) {
    char *where = NULL;
    size_t size;
    FILE *out = open_memstream(&where, &size);
    if (!out) return;
    if (!is_cut) torture_within(target, frames, count, outcome->within, sizeof outcome->within);
    size_t first = first_told(frames, count, *outcome->within);
    torture_put_where(out, frames + first, count - first);
    fclose(out);
    snprintf(outcome->died_at, sizeof outcome->died_at, "%s", where ? where : "");
    free(where);
}

void torture_death_tell(struct torture_run *run, struct torture_plan *plan,
                        const struct torture_target *target) {
    char path[PATH_MAX];
    torture_run_map(run, path);
    struct torture_map *map = torture_map_open(path, NULL);
    size_t count = map && map->head.died_frames <= TORTURE_DEPTH ? map->head.died_frames : 0;
    struct torture_names *names = count ? torture_names_start(plan, map) : NULL;
    bool is_ok = names != NULL;
    for (size_t i = 0; is_ok && i < count; i++) is_ok = torture_names_ask(names, map->frames[i]);
    if (is_ok && torture_names_look_up(names, NULL)) {
        size_t found;
        struct torture_frame *frames = torture_names_frames(names, map->frames, count, &found);
        if (frames) tell(&run->outcome, target, frames, found, count == TORTURE_DEPTH);
        free(frames);
    }
    torture_names_free(names);
    torture_map_close(map);
}
