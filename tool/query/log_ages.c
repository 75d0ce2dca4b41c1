// SPDX-License-Identifier: Apache-2.0
// A thread's calls are counted as it allocates; a block's tag has the count at its birth.
#include "tool/query/log_ages.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/events/event_log.h"
#include "tool/events/live_blocks.h"

struct counting {
    struct shape_log *ages;
    struct live_blocks blocks;
    uint32_t *calls;  // by thread
    size_t thread_count;
};

static size_t bucket_of(uint64_t value) {
    const size_t word_bits = 64;
    size_t bits = value ? word_bits - (size_t)__builtin_clzll(value) : 0;
    return bits < CAIRN_AGE_BUCKETS ? bits : CAIRN_AGE_BUCKETS - 1;
}

static void count_end(struct counting *counting, const struct event *event,
                      const struct live_block *block) {
    if (block->is_there || event->flags & CAIRN_EVENT_UNSEEN) {
        counting->ages->unknown_count++;
        return;
    }
    if (block->cell >= counting->ages->count) return;
    struct shape_ages *ages = &counting->ages->cells[block->cell];
    counting->ages->known_count++;
    ages->ms[bucket_of(event->ms - block->ms)]++;
    if (block->thread == event->thread && event->thread < counting->thread_count)
        ages->calls[bucket_of(counting->calls[event->thread] - block->tag)]++;
}

static bool follow(struct counting *counting, const struct event *event) {
    struct block_change change;
    if (live_blocks_is_again(&counting->blocks, event)) return true;
    if (!live_blocks_follow(&counting->blocks, event, &change)) return false;
    counting->ages->unknown_count += change.is_unknown;
    bool is_moved = event->flags & CAIRN_EVENT_MOVED;  // by realloc: that is no end (as --ages)
    if (change.is_freed && !is_moved) count_end(counting, event, &change.freed);
    if (!change.is_allocated || event->flags & CAIRN_EVENT_THERE ||
        event->thread >= counting->thread_count)
        return true;
    struct live_block *block = live_blocks_find(&counting->blocks, event->address);
    counting->calls[event->thread]++;
    if (block) block->tag = counting->calls[event->thread];
    return true;
}

static bool follow_all(struct counting *counting, struct event_log *log, struct error *error) {
    struct event event;
    int got;
    counting->blocks.granule_shift = event_log_facts(log)->file.granule_shift;
    while ((got = event_log_next(log, &event, error)) > 0)
        if (!follow(counting, &event)) return error_set(error, "out of memory");
    return got == 0;
}

static void say(const struct event_log *log, struct shape_log *ages) {
    const struct event_log_facts *facts = event_log_facts(log);
    char beginning[EVENT_LOG_TEXT] = "";
    if (event_log_is_late(facts)) event_log_beginning(facts, beginning, sizeof beginning);
    int length =
        snprintf(ages->note, sizeof ages->note, "by the event log: %s%s%s",
                 units_counted((int64_t)ages->known_count, "freed block", "freed blocks").text,
                 *beginning ? "; " : "", beginning);
    if (length < 0 || (size_t)length >= sizeof ages->note) return;
    char *rest = ages->note + length;
    size_t room = sizeof ages->note - (size_t)length;
    if (ages->unknown_count)
        snprintf(rest, room, "; %s of blocks whose birth it does not know",
                 units_counted((int64_t)ages->unknown_count, "free", "frees").text);
    else if (facts->is_cut || facts->end.lost_events || facts->end.lost_frames)
        snprintf(rest, room, "; the log lacks events");
    else if (!*beginning)
        snprintf(rest, room, ", every one");
}

bool log_ages_read(const char *path, const struct profile *profile, struct shape_log *ages,
                   struct error *error) {
    struct counting counting = {.ages = ages, .thread_count = profile->thread_count};
    *ages = (struct shape_log){.count = profile->cell_count};
    struct event_log *log = event_log_open(path, error);
    if (!log) return false;
    ages->cells = calloc(ages->count + 1, sizeof *ages->cells);
    counting.calls = calloc(counting.thread_count + 1, sizeof *counting.calls);
    bool is_ok = (ages->cells && counting.calls) || error_set(error, "out of memory");
    is_ok = is_ok && (follow_all(&counting, log, error) || error_wrap(error, "%s", path));
    if (is_ok) say(log, ages);
    live_blocks_free(&counting.blocks);
    free(counting.calls);
    event_log_close(log);
    return is_ok;
}

void log_ages_free(struct shape_log *ages) {
    free(ages->cells);
    *ages = (struct shape_log){0};
}
