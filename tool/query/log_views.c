// SPDX-License-Identifier: Apache-2.0
#include "tool/query/log_views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/events/event_log.h"
#include "tool/events/pool_find.h"
#include "tool/model/index_table.h"

// The log is of the process that was opened, and not of another run under the same name.
static bool is_of_process(const char *log, const struct opened *opened) {
    const struct cairn_header *header = &opened->recording.header;
    struct event_log *read = event_log_is_one(log) ? event_log_open(log, NULL) : NULL;
    if (!read) return false;
    const struct cairn_event_file *file = &event_log_facts(read)->file;
    bool is_it = file->pid == header->pid && file->start_unix_ns == header->start_unix_ns;
    event_log_close(read);
    return is_it;
}

bool log_views_find(struct opened *opened, struct error *error) {
    static const char ending[] = ".cairn";
    char beside[PATH_MAX];
    size_t length = strlen(opened->path), ending_length = sizeof ending - 1;
    bool has_ending =
        length > ending_length && !strcmp(opened->path + length - ending_length, ending);
    if (*opened->log) return true;
    if (profile_is_sum(&opened->profile))
        return error_set(error, "an event log is of one process: give --process");
    if (!*opened->path)
        return error_set(error, "an event log is of one recording: cairn report of each");
    if (has_ending) length -= ending_length;
    int written = snprintf(beside, sizeof beside, "%.*s.events", (int)length, opened->path);
    if (written < (int)sizeof beside && *opened->path && is_of_process(beside, opened)) {
        memcpy(opened->log, beside, sizeof beside);
        return true;
    }
    return error_set(error, "there is no event log beside this recording, from which pools are "
                            "worked out: name the log in its place, or make one with: cairn run "
                            "--events PROGRAM");
}

// Stacks that the program would have a pool for at the same place have the same number: by their
// innermost frames that are shown, with their lines. One would be a function such as xmalloc.
static uint64_t site_of(struct frame_list *frames, const struct profile *profile,
                        const struct frame_names *names, const struct stack *stack) {
    enum { FRAMES = 3 };
    size_t index = 0;
    uint64_t hash = 0;
    const struct frame *frame;
    if (!frame_list_fill(frames, profile, names, stack->node, 0)) return stack->id;
    for (int i = 0; i < FRAMES && (frame = frame_list_next(frames, &index)); i++)
        hash = hash_mix(hash, frame_hash(frame, true));
    return index ? hash : stack->id;
}

// What is known of stacks and cells, for the finder.
struct numbers {
    uint32_t *index;  // in the profile, by a stack's number, plus 1
    uint32_t *stack_of_cell;
    uint64_t *site_of_stack;
};

static bool numbers_make(struct numbers *numbers, const struct profile *profile,
                         const struct frame_names *names) {
    struct frame_list frames = {0};
    *numbers = (struct numbers){
        .index = profile_stack_indexes(profile),
        .stack_of_cell = calloc(profile->cell_count + 1, sizeof *numbers->stack_of_cell),
        .site_of_stack = calloc(profile->built_stack_count + 1, sizeof *numbers->site_of_stack)};
    if (!numbers->index || !numbers->stack_of_cell || !numbers->site_of_stack) return false;
    for (size_t i = 0; i < profile->cell_count; i++) {
        uint32_t stack = profile->stack_of_cell[i];
        if (stack && numbers->index[stack - 1]) numbers->stack_of_cell[i] = stack;
    }
    for (size_t i = 0; i < profile->stack_count; i++)
        numbers->site_of_stack[profile->stacks[i].number] =
            site_of(&frames, profile, names, &profile->stacks[i]);
    frame_list_free(&frames);
    return true;
}

static void numbers_free(struct numbers *numbers) {
    free(numbers->index);
    free(numbers->stack_of_cell);
    free(numbers->site_of_stack);
}

bool log_views_find_pools(struct opened *opened, const struct frame_names *names,
                          struct error *error) {
    struct profile *profile = &opened->profile;
    struct numbers numbers;
    if (!log_views_find(opened, error)) return false;
    bool is_ok =
        numbers_make(&numbers, profile, names) || error_set(error, "no memory for the stacks");
    const struct pool_search search = {.log = opened->log,
                                       .stack_of_cell = numbers.stack_of_cell,
                                       .cell_count = profile->cell_count,
                                       .stack_count = profile->built_stack_count,
                                       .site_of_stack = numbers.site_of_stack,
                                       .followed_limit = POOL_FOLLOWED_MOST};
    is_ok = is_ok && (pool_candidates_find(&search, &opened->pools, error) ||
                      error_wrap(error, "%s", opened->log));
    if (is_ok) profile->pool_candidates = &opened->pools;
    numbers_free(&numbers);
    return is_ok;
}
