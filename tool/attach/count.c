// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/attach/load.h"

// Stops in which the allocator's data made less sense than before, until they are taken as they
// are.
enum { TRIES = 20 };

// How long the process would stand, as docs/attach.md has it: a millisecond for each MiB, and for
// each few thousand blocks.
static bool tell_duration(uint64_t bytes, uint64_t blocks, struct error *error) {
    const uint64_t blocks_a_ms = 5000;
    return error_set(
        error, "it would be stopped for some %" PRIu64 " ms to read %" PRIu64 " MiB (--census)",
        (bytes >> 20) + blocks / blocks_a_ms, bytes >> 20);
}

// Everything about a census that can be done while the process runs.
static bool prepare_census(struct attach *attach, const struct attach_request *request,
                           struct error *error) {
    const struct loaded_module *libc = attach_libc(attach);
    bool is_bounded = request->census != CENSUS_ALWAYS;
    uint64_t bytes;
    // where the executable has an allocator, what libc's holds beside it would be a part only
    if (!libc || attach->entries.items.count || attach->allocator < libc->start ||
        attach->allocator >= libc->end)
        return error_set(error, "its allocator is not glibc's");
    if (!census_open(&attach->census, &attach->remote, libc->start, libc->end, request->symbols,
                     error) ||
        !census_measure(&attach->census, &bytes, error))
        return false;
    if (is_bounded && bytes > ATTACH_CENSUS_BYTES) return tell_duration(bytes, 0, error);
    // while the process runs its data may make no sense
    if (census_take(&attach->census, NULL)) attach->usual_broken = attach->census.broken_count;
    size_t blocks = attach->census.blocks.count;
    census_clear(&attach->census);
    return !is_bounded || blocks <= ATTACH_CENSUS_BLOCKS || tell_duration(bytes, blocks, error);
}

static void leave_out(struct attach *attach, const struct error *error) {
    attach->has_census = false;
    snprintf(attach->uncounted_why, sizeof attach->uncounted_why, "%s", error->text);
}

void count_prepare(struct attach *attach, const struct attach_request *request) {
    struct error error;
    attach->uncounted_why[0] = 0;
    attach->counted_blocks = 0;
    attach->has_census = request->census != CENSUS_NEVER;
    if (attach->has_census && !prepare_census(attach, request, &error)) leave_out(attach, &error);
}

bool count_find(struct attach *attach) {
    struct error error;
    struct heap_copy *copy = &attach->census.copy;
    if (!attach->has_census) return true;
    copy->own_start = attach->known.space_start;
    copy->own_end = attach->known.space_end;
    bool is_taken = census_take(&attach->census, &error);
    if (is_taken && attach->census.broken_count <= attach->usual_broken) return true;
    if (++attach->census_tries >= TRIES) {
        if (!is_taken) leave_out(attach, &error);
        return true;
    }
    census_clear(&attach->census);
    return false;
}

// What the library is given; it lies in the process for the call only.
struct census_room {
    struct cairn_census head;
    char *texts;
    size_t text_bytes, block_bytes;
    uint64_t at, bytes;  // in the process
};

static bool write_census(struct attach *attach, struct census_room *room) {
    const struct census *census = &attach->census;
    uint64_t blocks_at = room->at + sizeof room->head;
    room->head = (struct cairn_census){.blocks = blocks_at,
                                       .block_count = census->blocks.count,
                                       .room_bytes = census->room_bytes,
                                       .names = blocks_at + room->block_bytes,
                                       .kind_count = census->kinds.count};
    return remote_write(&attach->remote, room->at, &room->head, sizeof room->head) &&
           remote_write(&attach->remote, blocks_at, census->blocks.items, room->block_bytes) &&
           remote_write(&attach->remote, room->head.names, room->texts, room->text_bytes);
}

static bool give(struct attach *attach, struct caller *caller, struct census_room *room,
                 struct error *error) {
    const struct census *census = &attach->census;
    room->texts = census_texts(census, &room->text_bytes);
    room->block_bytes = census->blocks.count * sizeof *census->blocks.items;
    room->bytes = sizeof room->head + room->block_bytes + room->text_bytes;
    if (!room->texts) return error_set(error, "out of memory");
    if (!caller_map(caller, room->bytes, &room->at, error)) return false;
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {room->at};
    bool is_ok = write_census(attach, room)
                     ? load_call(caller, attach->known.count, arguments, error)
                     : error_set(error, "the list cannot be written into it");
    caller_unmap(caller, room->at, room->bytes);
    return is_ok;
}

// `caller` has no when_slow: nobody goes on before all are entered.
static bool enter(struct attach *attach, struct error *error) {
    struct caller caller = {0};
    struct census_room room = {0};
    const struct stopped_thread *thread = threads_without_signal(&attach->threads);
    if (!thread) return error_set(error, "all its threads are handling signals");
    if (!caller_begin(&caller, &attach->remote, thread, attach->system_call_at, error))
        return false;
    bool is_given = give(attach, &caller, &room, error);
    free(room.texts);
    return caller_end(&caller, is_given ? error : NULL) && is_given;
}

void count_give(struct attach *attach) {
    struct error error;
    if (!attach->has_census) return;
    if (!enter(attach, &error)) return leave_out(attach, &error);
    attach->has_census = false;
    attach->counted_blocks = attach->census.blocks.count;
}
