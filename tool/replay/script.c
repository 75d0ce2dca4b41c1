// SPDX-License-Identifier: Apache-2.0
// The log is read twice: the first time says how many calls each thread makes and where most is
// held, the second time writes them.
#include "tool/replay/script.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "format/replay.h"
#include "tool/base/array.h"
#include "tool/base/file_bytes.h"
#include "tool/events/live_blocks.h"
#include "tool/replay/touch.h"

enum { BUFFER_CALLS = 1024, SLOTS = CAIRN_SLOT_SHARED + 1 };

// The calls of a thread that are being written.
struct stream {
    uint64_t count;      // of the first time
    uint64_t first, at;  // in the file, of the first and the next one
    uint64_t ms;
    size_t buffered;
    struct cairn_replay_call calls[BUFFER_CALLS];
};

struct making {
    struct script *script;
    const struct script_options *options;
    struct live_blocks blocks;
    uint32_t *stream_of_slot;  // + 1; 0: none so far
    ARRAY(struct stream *) streams;
    ARRAY(uint32_t) turns;   // of blocks
    ARRAY(uint32_t) unused;  // blocks that have no block now
    struct touch touch;
    int64_t live_bytes;
    uint64_t changes, peak_change;  // the change after which most is held
    bool is_writing;
    bool has_failed;
};

// --- streams

static struct stream *stream_of(struct making *making, uint32_t slot) {
    if (making->options->is_one_thread || slot >= CAIRN_SLOT_SHARED) slot = 0;
    uint32_t *number = &making->stream_of_slot[slot];
    if (!*number) {
        struct stream **added = array_push(&making->streams);
        if (added) *added = calloc(1, sizeof **added);
        if (!added || !*added) return NULL;
        *number = (uint32_t)making->streams.count;
    }
    return making->streams.items[*number - 1];
}

static void flush(struct making *making, struct stream *stream) {
    size_t bytes = stream->buffered * sizeof *stream->calls;
    making->has_failed |= !file_write_at(making->script->file, stream->calls, bytes, stream->at);
    stream->at += bytes;
    stream->buffered = 0;
}

static void put(struct making *making, struct stream *stream, struct cairn_replay_call call) {
    if (!stream) {
        making->has_failed = true;
    } else if (!making->is_writing) {
        stream->count++;
    } else {
        stream->calls[stream->buffered++] = call;
        if (stream->buffered == BUFFER_CALLS) flush(making, stream);
    }
}

// --- shares

// Blocks are touched as this machine maps them, whatever pages the log's had.
static uint32_t page_bytes_here(void) {
    return cairn_page_bytes((uint64_t)sysconf(_SC_PAGESIZE));
}

// Of the block that was allocated last; 0: all of it.
static uint32_t share_of(struct making *making, const struct event *event) {
    struct script *script = making->script;
    uint64_t bytes;
    bool is_assumed;
    if (!making->is_writing || !script->is_touch_recorded) return 0;
    bool is_known =
        touch_bytes(&making->touch, making->blocks.allocations, event, &bytes, &is_assumed);
    if (event->size >= making->touch.page_bytes) {
        script->page_block_bytes += event->size;
        script->known_touch_bytes += is_known && !is_assumed ? event->size : 0;
        script->assumed_touch_bytes += is_known && is_assumed ? event->size : 0;
    }
    if (!is_known || bytes >= event->size) return 0;
    return 1 + (uint32_t)((double)bytes / (double)event->size * CAIRN_REPLAY_SHARES);
}

// --- blocks

// A number for a block: one that is not in use.
static uint32_t take_number(struct making *making) {
    if (making->unused.count) return making->unused.items[--making->unused.count];
    uint32_t *turn = array_push(&making->turns);
    if (!turn) {
        making->has_failed = true;
        return 0;
    }
    *turn = 0;
    return (uint32_t)making->turns.count - 1;
}

static void give_number(struct making *making, uint32_t number) {
    uint32_t *unused = array_push(&making->unused);
    if (unused)
        *unused = number;
    else
        making->has_failed = true;
}

static void put_call(struct making *making, struct stream *stream, uint32_t block,
                     enum cairn_replay_kind kind, const struct event *event, uint64_t size) {
    struct cairn_replay_call call = {.block = block, .size = size, .kind = kind};
    if (making->has_failed || block >= making->turns.count) return;
    if (kind == CAIRN_REPLAY_ALIGNED) {
        const uint64_t least = sizeof(void *);
        uint64_t alignment = event->alignment < least ? least : event->alignment;
        while (call.alignment_shift < 40 && 1ull << call.alignment_shift < alignment)
            call.alignment_shift++;
    }
    if (kind != CAIRN_REPLAY_FREE) call.share = share_of(making, event) & CAIRN_REPLAY_SHARE_MASK;
    call.turn = making->turns.items[block]++;
    if (!making->is_writing) making->script->call_count++;
    put(making, stream, call);
}

static void put_free(struct making *making, struct stream *stream, const struct event *event,
                     const struct live_block *block) {
    put_call(making, stream, block->tag, CAIRN_REPLAY_FREE, event, 0);
    give_number(making, block->tag);
    making->live_bytes -= (int64_t)block->size;
}

static enum cairn_replay_kind kind_of(const struct event *event) {
    if (event->flags & CAIRN_EVENT_ALIGNED) return CAIRN_REPLAY_ALIGNED;
    return event->flags & CAIRN_EVENT_CLEARED ? CAIRN_REPLAY_CALLOC : CAIRN_REPLAY_MALLOC;
}

// The first time, if it may count.
static bool follows_touch(const struct making *making) {
    enum script_touch touch = making->options->touch;
    return !making->is_writing && (touch == TOUCH_RECORDED || touch == TOUCH_AS_KNOWN);
}

static void put_alloc(struct making *making, struct stream *stream, const struct event *event,
                      const struct block_change *change) {
    bool is_realloc = change->is_freed;
    uint32_t number = is_realloc ? change->freed.tag : take_number(making);
    struct live_block *block = live_blocks_find(&making->blocks, event->address);
    if (block) block->tag = number;
    if (block && follows_touch(making))
        making->has_failed |=
            !touch_follow(&making->touch, block, is_realloc ? &change->freed : NULL);
    put_call(making, stream, number, is_realloc ? CAIRN_REPLAY_REALLOC : kind_of(event), event,
             event->size);
    making->live_bytes += (int64_t)event->size - (is_realloc ? (int64_t)change->freed.size : 0);
}

static void note_peak(struct making *making, struct stream *stream) {
    making->changes++;
    if (making->is_writing) {
        if (making->changes == making->peak_change)
            put(making, stream, (struct cairn_replay_call){.kind = CAIRN_REPLAY_PEAK});
    } else if (making->live_bytes > (int64_t)making->script->peak_live_bytes) {
        making->script->peak_live_bytes = (uint64_t)making->live_bytes;
        making->peak_change = making->changes;
    }
}

static bool follow(struct making *making, const struct event *event) {
    struct script *script = making->script;
    struct stream *stream = stream_of(making, event->slot);
    struct block_change change;
    enum cairn_event_kind kind = event_kind(event);
    if (!stream) return false;
    if (live_blocks_is_again(&making->blocks, event)) return true;
    if (event_is_look(event))
        return !follows_touch(making) ||
               touch_look(&making->touch, event, live_blocks_find(&making->blocks, event->address));
    if (event->ms > stream->ms)
        put(making, stream,
            (struct cairn_replay_call){.kind = CAIRN_REPLAY_TIME, .size = event->ms});
    stream->ms = event->ms;
    bool is_first = !making->is_writing;
    script->mapping_count += is_first && (kind == CAIRN_EVENT_MAP || kind == CAIRN_EVENT_UNMAP);
    const struct live_block *there =
        kind == CAIRN_EVENT_ALLOC ? live_blocks_find(&making->blocks, event->address) : NULL;
    if (there) {
        put_free(making, stream, event, there);
        script->assumed_count += is_first && !there->is_there;
    }
    if (!live_blocks_follow(&making->blocks, event, &change)) return false;
    script->unknown_count += is_first && change.is_unknown;
    if (change.is_allocated)
        put_alloc(making, stream, event, &change);
    else if (change.is_freed)
        put_free(making, stream, event, &change.freed);
    if (change.is_allocated || change.is_freed) note_peak(making, stream);
    return !making->has_failed;
}

static bool pass(struct making *making, struct event_log *log, struct error *error) {
    struct event event;
    int got;
    if (!event_log_rewind(log)) return error_set(error, "out of memory");
    live_blocks_free(&making->blocks);
    making->blocks.granule_shift = event_log_facts(log)->file.granule_shift;
    making->turns.count = making->unused.count = 0;
    making->live_bytes = 0;
    making->changes = 0;
    for (size_t i = 0; i < making->streams.count; i++) making->streams.items[i]->ms = 0;
    while ((got = event_log_next(log, &event, error)) > 0)
        if (!follow(making, &event)) return error_set(error, "no room for the calls of the replay");
    return got == 0;
}

// --- the file

// In memory as long as it is small.
static int make_file(uint64_t bytes, struct error *error) {
    const uint64_t small = 256u << 20;
    const char *directory = getenv("TMPDIR");
    int file = bytes <= small ? memfd_create("cairn-replay", MFD_CLOEXEC)
                              : open(directory && *directory ? directory : "/var/tmp",
                                     O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || posix_fallocate(file, 0, (off_t)bytes) != 0) {
        error_set(error, "no room for %" PRIu64 " bytes of calls in %s (TMPDIR)", bytes,
                  directory && *directory ? directory : "/var/tmp");
        if (file >= 0) close(file);
        return -1;
    }
    return file;
}

static bool lay_out(struct making *making, const struct event_log_facts *facts,
                    struct error *error) {
    struct script *script = making->script;
    struct cairn_replay header = {.magic = CAIRN_REPLAY_MAGIC,
                                  .has_touch = making->options->touch != TOUCH_NONE,
                                  .is_timed = making->options->is_timed,
                                  .freed_percent = making->options->freed_percent,
                                  .page_bytes = page_bytes_here(),
                                  .call_count = script->call_count};
    header.thread_count = script->thread_count = (uint32_t)making->streams.count;
    header.block_count = script->block_count = (uint32_t)making->turns.count;
    uint64_t at = header.threads_at = sizeof header;
    at += header.thread_count * sizeof(struct cairn_replay_thread);
    for (size_t i = 0; i < making->streams.count; i++) {
        making->streams.items[i]->first = making->streams.items[i]->at = at;
        // the sample at the peak is one more, in whatever stream
        at += (making->streams.items[i]->count + 1) * sizeof(struct cairn_replay_call);
    }
    header.blocks_at = at;
    header.samples_at = at + header.block_count * sizeof(struct cairn_replay_block);
    header.bytes = script->bytes =
        header.samples_at + CAIRN_REPLAY_SAMPLES * sizeof(struct cairn_replay_sample);
    script->log = *facts;
    script->page_bytes = header.page_bytes;
    script->file = make_file(script->bytes, error);
    return script->file >= 0 && (file_write_at(script->file, &header, sizeof header, 0) ||
                                 error_set(error, "no room for the calls of the replay"));
}

static bool finish(struct making *making) {
    uint64_t at = sizeof(struct cairn_replay);
    for (size_t i = 0; i < making->streams.count; i++, at += sizeof(struct cairn_replay_thread)) {
        struct stream *stream = making->streams.items[i];
        flush(making, stream);
        const struct cairn_replay_thread thread = {.calls_at = stream->first,
                                                   .call_count = (stream->at - stream->first) /
                                                                 sizeof(struct cairn_replay_call)};
        making->has_failed |= !file_write_at(making->script->file, &thread, sizeof thread, at);
    }
    return !making->has_failed;
}

static bool make(struct making *making, struct event_log *log, struct error *error) {
    making->stream_of_slot = calloc(SLOTS, sizeof *making->stream_of_slot);
    if (!making->stream_of_slot) return error_set(error, "out of memory");
    making->touch.page_bytes = cairn_page_bytes(event_log_facts(log)->file.page_bytes);
    making->touch.is_late = event_log_is_late(event_log_facts(log));
    if (!pass(making, log, error)) return false;
    if (!making->script->call_count) return error_set(error, "there is no call in this log");
    if (!touch_end(&making->touch)) return error_set(error, "out of memory");
    making->script->is_touch_recorded = touch_is_known(&making->touch);
    if (making->options->touch == TOUCH_RECORDED && !making->script->is_touch_recorded)
        return error_set(error,
                         "no pages were looked at as this log was taken, of a short program or "
                         "a heap below 1 MiB: --touch all or none");
    if (!lay_out(making, event_log_facts(log), error)) return false;
    making->is_writing = true;
    if (!pass(making, log, error)) return false;
    return finish(making) || error_set(error, "no room for the calls of the replay");
}

bool script_make(struct event_log *log, const struct script_options *options, struct script *script,
                 struct error *error) {
    struct making making = {.script = script, .options = options};
    *script = (struct script){.file = -1};
    bool is_made = make(&making, log, error);
    for (size_t i = 0; i < making.streams.count; i++) free(making.streams.items[i]);
    array_free(&making.streams);
    touch_free(&making.touch);
    array_free(&making.turns);
    array_free(&making.unused);
    live_blocks_free(&making.blocks);
    free(making.stream_of_slot);
    if (!is_made) script_close(script);
    return is_made;
}

void script_close(struct script *script) {
    if (script->file >= 0) close(script->file);
    script->file = -1;
}
