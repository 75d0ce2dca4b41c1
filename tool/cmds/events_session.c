// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/events_session.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/aligned.h"
#include "tool/base/text.h"
#include "tool/events/log_recording.h"

enum { NS_PER_MS = 1000000, DECIMAL = 10 };

// From here on cells lead to stacks where they are now, behind those that the filter took away.
static bool renumber_stacks(struct profile *profile, struct error *error) {
    uint32_t *index = profile_stack_indexes(profile);
    if (!index) return error_set(error, "no memory for the stacks");
    for (size_t i = 0; i < profile->cell_count; i++) {
        uint32_t *stack = &profile->stack_of_cell[i];
        if (*stack) *stack = index[*stack - 1];
    }
    free(index);
    return true;
}

static bool open_recording(struct events_session *session, const char *path, struct error *error) {
    char recording[PATH_MAX];
    struct filter_request request = session->request.filter;
    request.may_be_empty = true;
    if (!log_recording_find(path, recording, error) ||
        !opened_open(recording, &session->opened, error))
        return false;
    session->has_stacks = true;
    for (size_t i = 0; i < session->opened.profile.stack_count; i++)
        names_want_stack(session->opened.names, session->opened.profile.stacks[i].node, 0);
    if (!names_resolve(session->opened.names, error) ||
        !filter_open(&session->filter, &request, error))
        return false;
    session->names = names_frames(session->opened.names);
    return filter_stacks(session->filter, &session->opened.profile, &session->names,
                         MEASURE_ALLOCATED, error) &&
           renumber_stacks(&session->opened.profile, error);
}

static bool has_stack_filter(const struct events_request *request) {
    return request->filter.focus || request->filter.ignore || request->filter.module;
}

static bool open_parts(struct events_session *session, const char *path, bool needs_stacks,
                       struct error *error) {
    struct error why;
    session->log = event_log_open(path, error);
    if (!session->log) return false;
    const char *thread = session->request.thread;
    if (thread && !isdigit((unsigned char)*thread) &&
        !pattern_compile(thread, &session->thread_pattern, error))
        return error_wrap(error, "events: --thread");
    session->blocks.granule_shift = event_log_facts(session->log)->file.granule_shift;
    bool is_needed = needs_stacks || has_stack_filter(&session->request) || session->thread_pattern;
    if (open_recording(session, path, &why)) return true;
    if (is_needed || session->has_stacks) *error = why;
    return !is_needed && !session->has_stacks;
}

struct events_session *events_open(const char *path, const struct events_request *request,
                                   bool needs_stacks, struct error *error) {
    struct events_session *session =
        aligned_zeros(_Alignof(struct events_session), sizeof *session);
    if (!session) {
        error_set(error, "out of memory");
        return NULL;
    }
    session->request = *request;
    if (open_parts(session, path, needs_stacks, error)) return session;
    events_close(session);
    return NULL;
}

void events_close(struct events_session *session) {
    if (session->has_stacks) opened_close(&session->opened);
    filter_close(session->filter);
    pattern_free(session->thread_pattern);
    frame_list_free(&session->frames);
    live_blocks_free(&session->blocks);
    event_log_close(session->log);
    free(session);
}

bool events_is_narrowed(const struct events_session *session) {
    const struct events_request *request = &session->request;
    return has_stack_filter(request) || request->thread || request->address || request->min_bytes ||
           request->max_bytes != UINT64_MAX || request->from_ns || request->to_ns != UINT64_MAX;
}

// --- which events

uint32_t events_cell(const struct events_seen *seen) {
    if (seen->change.is_allocated || event_kind(&seen->event) == CAIRN_EVENT_MAP)
        return seen->event.cell;
    return seen->change.is_freed ? seen->change.freed.cell : CAIRN_CELL_NONE;
}

uint64_t events_size(const struct events_seen *seen) {
    return seen->change.is_freed && !seen->change.is_allocated ? seen->change.freed.size
                                                               : seen->event.size;
}

static bool covers(uint64_t address, uint64_t size, uint64_t wanted) {
    return wanted == address || (wanted > address && wanted - address < size);
}

// A realloc is of both blocks.
static bool is_at_address(const struct events_seen *seen, uint64_t wanted) {
    const struct live_block *freed = &seen->change.freed;
    return covers(seen->event.address, events_size(seen), wanted) ||
           (seen->change.is_freed && covers(freed->address, freed->size, wanted));
}

static bool is_of_thread(const struct events_session *session, uint32_t index) {
    struct cairn_thread thread;
    char *end;
    const char *wanted = session->request.thread;
    bool is_known =
        session->has_stacks && recording_thread(&session->opened.recording, index, &thread);
    if (session->thread_pattern)
        return is_known && pattern_matches(session->thread_pattern, thread.name);
    unsigned long number = strtoul(wanted, &end, DECIMAL);
    return !*end && number == (is_known ? thread.tid : index);
}

static bool is_of_stack(const struct events_session *session, uint32_t cell) {
    if (!has_stack_filter(&session->request)) return true;
    const struct profile *profile = &session->opened.profile;
    return cell < profile->cell_count && profile->stack_of_cell[cell];
}

static bool is_wanted(const struct events_session *session, const struct events_seen *seen) {
    const struct events_request *request = &session->request;
    uint64_t size = events_size(seen), ns = seen->event.ms * NS_PER_MS;
    if (event_kind(&seen->event) == CAIRN_EVENT_TAKE) return false;  // told with what comes of it
    if (event_is_look(&seen->event)) return false;                   // no event
    if (ns < request->from_ns || ns > request->to_ns) return false;
    if (size < request->min_bytes || size > request->max_bytes) return false;
    if (request->address && !is_at_address(seen, request->address)) return false;
    if (request->thread && !is_of_thread(session, seen->event.thread)) return false;
    return is_of_stack(session, events_cell(seen));
}

static void add_up_there(struct events_sums *sums, const struct block_change *change) {
    const struct live_block *replaced = &change->replaced;
    if (change->is_replaced) {
        sums->live_bytes = figures_add(sums->live_bytes, -(int64_t)replaced->size);
        if (!replaced->is_there) return;
        sums->there--;
        sums->allocations--;
        sums->there_bytes -= replaced->size;
        sums->allocated_bytes -= replaced->size;
    }
    if (change->is_allocated && change->allocated.is_there) {
        sums->there++;
        sums->there_bytes += change->allocated.size;
    }
}

static void add_up(struct events_sums *sums, const struct block_change *change) {
    add_up_there(sums, change);
    sums->unknown += change->is_unknown;
    if (change->is_freed) {
        sums->frees++;
        sums->freed_bytes += change->freed.size;
        sums->live_bytes = figures_add(sums->live_bytes, -(int64_t)change->freed.size);
    }
    if (change->is_allocated) {
        sums->allocations++;
        sums->allocated_bytes += change->allocated.size;
        sums->live_bytes = figures_add(sums->live_bytes, (int64_t)change->allocated.size);
    }
    if (sums->live_bytes > sums->peak_bytes) sums->peak_bytes = sums->live_bytes;
}

bool events_each(struct events_session *session, events_see_fn *see, void *context,
                 struct error *error) {
    struct events_seen seen;
    int got;
    while ((got = event_log_next(session->log, &seen.event, error)) > 0) {
        if (live_blocks_is_again(&session->blocks, &seen.event)) continue;
        if (!live_blocks_follow(&session->blocks, &seen.event, &seen.change))
            return error_set(error, "out of memory");
        add_up(&session->sums, &seen.change);
        session->sums.looks += event_is_look(&seen.event);
        if (is_wanted(session, &seen) && !see(context, &seen)) return true;
    }
    return got == 0;
}

// --- stacks and threads

uint32_t events_node(const struct events_session *session, uint32_t cell) {
    const struct profile *profile = &session->opened.profile;
    if (!session->has_stacks || cell >= profile->cell_count || !profile->stack_of_cell[cell])
        return TREE_ROOT;
    return profile->stacks[profile->stack_of_cell[cell] - 1].node;
}

void events_print_stack(struct events_session *session, const struct terminal *terminal,
                        uint32_t cell) {
    enum { FRAMES_SHOWN = 4 };
    uint32_t node = events_node(session, cell);
    size_t index = 0;
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    if (!node) {
        if (cell) terminal_print(terminal, STYLE_DIM, "stack %" PRIu32, cell);
        return;
    }
    session->frames.are_all_shown = false;
    if (!frame_list_fill(&session->frames, &session->opened.profile, &session->names, node, 0))
        return;
    for (int i = 0; i < FRAMES_SHOWN; i++) {
        const struct frame *frame = frame_list_next(&session->frames, &index);
        if (!frame) return;
        frame_label(frame, label, sizeof label, sizeof label);
        frame_location(frame, location, sizeof location);
        terminal_print(terminal, STYLE_NAME, "%s%s", i ? " ← " : "", label);
        if (!i && *location) terminal_print(terminal, STYLE_DIM, " %s", location);
    }
}

void events_thread_name(const struct events_session *session, uint32_t index, char *out,
                        size_t size) {
    struct cairn_thread thread;
    char safe[4 * sizeof thread.name];
    if (index == UINT32_MAX) {  // blocks that were there
        snprintf(out, size, "-");
        return;
    }
    if (!session->has_stacks || !recording_thread(&session->opened.recording, index, &thread)) {
        snprintf(out, size, "%" PRIu32, index);
        return;
    }
    thread.name[sizeof thread.name - 1] = 0;
    text_escape(safe, sizeof safe, thread.name);
    snprintf(out, size, "%" PRIu32 " %s", thread.tid, safe);
}
