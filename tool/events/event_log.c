// SPDX-License-Identifier: Apache-2.0
// A stream a thread slot. The present stream goes on until it is later than another one, or its
// next event has to wait for that of another. Of streams that are equally late each has a few
// events in turn: threads that ran side by side are nearer to that than one after the other.
#include "tool/events/event_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"
#include "tool/base/units.h"
#include "tool/events/turns.h"

enum { EVENTS_IN_TURN = 32 };

struct stream {
    size_t next, end;  // frames of the index that are left
    bool has_columns, has_head;
    struct event head;  // not handed out so far
    struct frame_columns columns;
};

struct event_log {
    struct frame_index index;
    struct stream *streams;
    size_t count;
    struct stream *present;
    uint64_t until_ms;  // the next stream's time
    unsigned left;      // events of the present stream, if the next one is as late
    struct turns turns;
    struct turns first_turns;  // of a log that does not begin with the process
    uint64_t forced;
};

bool event_log_is_one(const char *path) {
    char magic[sizeof CAIRN_EVENT_FILE_MAGIC - 1];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    bool is_one = read(file, magic, sizeof magic) == (ssize_t)sizeof magic &&
                  !memcmp(magic, CAIRN_EVENT_FILE_MAGIC, sizeof magic);
    close(file);
    return is_one;
}

static size_t count_slots(const struct frame_index *index) {
    size_t count = 0;
    for (size_t i = 0; i < index->count; i++)
        count += i == 0 || index->frames[i].slot != index->frames[i - 1].slot;
    return count;
}

static void drop_columns(struct stream *stream) {
    if (stream->has_columns) frame_columns_free(&stream->columns);
    stream->has_columns = false;
}

// What the tool found as a log began late, which had no turn, comes before all events, however late
// the tool has looked: its stream goes on to its end.
static void begin_with_found(struct event_log *log) {
    const struct frame_index *index = &log->index;
    bool is_late = index->facts.file.flags & CAIRN_EVENT_FILE_LATE;
    log->present = NULL;
    if (!is_late || !log->count || index->frames[index->count - 1].slot != CAIRN_SLOT_SHARED)
        return;
    log->present = &log->streams[log->count - 1];
    log->until_ms = UINT64_MAX;
}

bool event_log_rewind(struct event_log *log) {
    size_t stream = 0;
    for (size_t i = 0; i < log->count; i++) drop_columns(&log->streams[i]);
    for (size_t i = 0; i < log->index.count; i++) {
        bool is_first = i == 0 || log->index.frames[i].slot != log->index.frames[i - 1].slot;
        if (is_first) log->streams[stream++] = (struct stream){.next = i};
        log->streams[stream - 1].end = i + 1;
    }
    turns_free(&log->turns);
    begin_with_found(log);
    log->forced = 0;
    return turns_copy(&log->first_turns, &log->turns);
}

// Of a ring: other threads' events before that moment are not in it, so that nothing can be said of
// their order.
static bool is_left_out(const struct event_log *log, const struct event *event) {
    const struct cairn_event_file *file = &log->index.facts.file;
    return file->left_frames && log->count > 1 && event->ms <= file->left_end_ms;
}

// The stream's next event becomes its head: 1; 0: it has none, -1: damaged.
static int fill(struct event_log *log, struct stream *stream, struct error *error) {
    while (!stream->has_head) {
        if (!stream->has_columns) {
            if (stream->next == stream->end) return 0;
            const struct frame_place *place = &log->index.frames[stream->next++];
            if (!frame_index_read(&log->index, place, &stream->columns, error)) return -1;
            stream->has_columns = true;
        }
        int got = columns_next(&stream->columns.reader, &stream->head);
        if (got < 0) return error_set(error, "the columns of a frame are damaged") - 1;
        stream->has_head = got > 0 && !is_left_out(log, &stream->head);
        if (!got) drop_columns(stream);
    }
    return 1;
}

static uint64_t granule_of(const struct event_log *log, const struct event *event) {
    const struct cairn_event_file *file = &log->index.facts.file;
    uint64_t granule = event->address >> file->granule_shift;
    return file->turn_bits ? granule & ((UINT64_C(1) << file->turn_bits) - 1) : granule;
}

// What the tool found as a log began late had no turn.
static bool has_turn(const struct event_log *log, const struct event *event) {
    enum cairn_event_kind kind = event_kind(event);
    if (event->flags & CAIRN_EVENT_THERE && log->index.facts.file.flags & CAIRN_EVENT_FILE_LATE)
        return false;
    return kind == CAIRN_EVENT_ALLOC || kind == CAIRN_EVENT_FREE || kind == CAIRN_EVENT_TAKE ||
           kind == CAIRN_EVENT_BACK;
}

// --- where turns begin

// What one stream says of them. Events without a turn before the stream's first one with a turn
// follow an event of the same stream before the log.
struct first_turns {
    struct turns least;   // + 1, of those that are said
    struct turns before;  // events of the first stream that has none to say
    struct turns seen;    // by granule: the present stream has said one
    uint64_t event_count;
};

static bool note_turn(struct event_log *log, const struct event *event, struct first_turns *first) {
    uint64_t granule = granule_of(log, event);
    if (!has_turn(log, event)) return true;
    if (!(event->flags & CAIRN_EVENT_TURN))
        return turns_of(&first->seen, granule) ||
               turns_set(&first->before, granule, turns_of(&first->before, granule) + 1);
    uint32_t least = turns_of(&first->least, granule), turn = (uint32_t)event->turn + 1;
    return turns_set(&first->seen, granule, 1) &&
           (least && least <= turn ? true : turns_set(&first->least, granule, turn));
}

static bool note_stream(struct event_log *log, struct stream *stream, struct first_turns *first,
                        struct error *error) {
    int got;
    while ((got = fill(log, stream, error)) > 0) {
        stream->has_head = false;
        first->event_count++;
        if (!note_turn(log, &stream->head, first)) return error_set(error, "out of memory");
    }
    turns_free(&first->seen);
    return got == 0;
}

static bool set_first(struct event_log *log, const struct first_turns *first) {
    for (size_t i = 0; i < first->least.room; i++) {
        uint64_t granule = first->least.places[i].granule;
        if (!granule--) continue;
        uint32_t turn = (uint32_t)first->least.places[i].turn - 1;
        if (!turns_set(&log->first_turns, granule, turn - turns_of(&first->before, granule)))
            return false;
    }
    return true;
}

// Turns of granules whose first events are not in the log: from what all streams say of them.
static bool find_first_turns(struct event_log *log, struct error *error) {
    struct event_log_facts *facts = &log->index.facts;
    struct first_turns first = {0};
    bool is_ok = true;
    for (size_t i = 0; i < log->count && is_ok; i++)
        is_ok = note_stream(log, &log->streams[i], &first, error);
    if (is_ok && !set_first(log, &first)) is_ok = error_set(error, "out of memory");
    if (facts->file.left_frames) facts->file.left_events += facts->event_count - first.event_count;
    facts->event_count = first.event_count;
    turns_free(&first.least);
    turns_free(&first.before);
    turns_free(&first.seen);
    return is_ok;
}

static bool begin(struct event_log *log, const char *path, struct error *error) {
    bool is_late = log->count > 1 && event_log_is_late(&log->index.facts);
    if (!event_log_rewind(log)) return error_set(error, "out of memory");
    if (!is_late) return true;
    if (!find_first_turns(log, error)) return error_wrap(error, "%s", path);
    return event_log_rewind(log) || error_set(error, "out of memory");
}

struct event_log *event_log_open(const char *path, struct error *error) {
    struct event_log *log = calloc(1, sizeof *log);
    if (!log) {
        error_set(error, "out of memory");
        return NULL;
    }
    if (!frame_index_open(path, &log->index, error)) {
        free(log);
        return NULL;
    }
    log->count = count_slots(&log->index);
    log->streams = calloc(log->count + 1, sizeof *log->streams);
    bool is_ok = log->streams ? begin(log, path, error) : error_set(error, "out of memory");
    if (is_ok) return log;
    event_log_close(log);
    return NULL;
}

void event_log_close(struct event_log *log) {
    if (!log) return;
    for (size_t i = 0; log->streams && i < log->count; i++) drop_columns(&log->streams[i]);
    free(log->streams);
    turns_free(&log->turns);
    turns_free(&log->first_turns);
    frame_index_close(&log->index);
    free(log);
}

const struct event_log_facts *event_log_facts(const struct event_log *log) {
    return &log->index.facts;
}

bool event_log_is_partial(const struct event_log *log) {
    const struct event_log_facts *facts = &log->index.facts;
    return facts->missing_count || facts->is_cut || facts->end.lost_events ||
           facts->end.lost_frames || event_log_is_late(facts);
}

bool event_log_is_late(const struct event_log_facts *facts) {
    return facts->file.flags & CAIRN_EVENT_FILE_LATE || facts->file.left_frames;
}

void event_log_beginning(const struct event_log_facts *facts, char *out, size_t size) {
    enum { MS_NS = 1000000 };
    const struct cairn_event_file *file = &facts->file;
    const char *since = file->flags & CAIRN_EVENT_FILE_LATE ? "it was switched on" : "the start";
    if (file->left_frames)
        snprintf(out, size, "the log begins %s after %s: the last %s were kept",
                 units_counted((int64_t)file->left_events, "event", "events").text, since,
                 units_size((int64_t)file->ring_bytes).text);
    else
        snprintf(out, size, "the log begins %s after the process",
                 units_duration(file->begin_ms * MS_NS).text);
}

uint64_t event_log_unexplained(const struct event_log_facts *facts) {
    uint64_t told = facts->end.lost_chunks + facts->end.lost_frames;
    return facts->missing_count > told ? facts->missing_count - told : 0;
}

void event_log_missing(const struct event_log_facts *facts, char *out, size_t size) {
    const int64_t events = (int64_t)facts->end.lost_events;
    const int64_t pieces = (int64_t)(facts->end.lost_frames + event_log_unexplained(facts));
    snprintf(out, size, "%s%s%s", events ? units_counted(events, "event", "events").text : "",
             events && pieces ? " and " : "",
             pieces ? units_counted(pieces, "piece", "pieces").text : "");
}

uint64_t event_log_forced(const struct event_log *log) {
    return log->forced;
}

static bool is_ready(const struct event_log *log, const struct event *event) {
    if (log->count == 1 || !has_turn(log, event) || !(event->flags & CAIRN_EVENT_TURN)) return true;
    return turns_of(&log->turns, granule_of(log, event)) == (uint32_t)event->turn;
}

// Chooses the earliest stream whose event may happen; where all wait, the earliest of all. 1; 0:
// all streams are at their end.
static int choose(struct event_log *log, struct error *error) {
    struct stream *ready = NULL, *earliest = NULL;
    const size_t present = log->present ? (size_t)(log->present - log->streams) : 0;
    for (size_t i = 1; i <= log->count; i++) {
        struct stream *stream = &log->streams[(present + i) % log->count];
        int got = fill(log, stream, error);
        if (got < 0) return -1;
        if (!got) continue;
        if (!earliest || stream->head.ms < earliest->head.ms) earliest = stream;
        if ((!ready || stream->head.ms < ready->head.ms) && is_ready(log, &stream->head))
            ready = stream;
    }
    if (!earliest) return 0;
    if (!ready) log->forced++;
    log->present = ready ? ready : earliest;
    log->until_ms = UINT64_MAX;
    log->left = EVENTS_IN_TURN;
    for (size_t i = 0; i < log->count; i++) {
        const struct stream *stream = &log->streams[i];
        bool is_other = stream != log->present && stream->has_head;
        if (is_other && stream->head.ms < log->until_ms) log->until_ms = stream->head.ms;
    }
    if (log->until_ms < log->present->head.ms) log->until_ms = log->present->head.ms;
    return 1;
}

int event_log_next(struct event_log *log, struct event *event, struct error *error) {
    struct stream *present = log->present;
    int got = present ? fill(log, present, error) : 0;
    if (got < 0) return got;
    bool is_earlier = got && present->head.ms < log->until_ms;
    bool goes_on = got && is_ready(log, &present->head) &&
                   (is_earlier || (present->head.ms == log->until_ms && log->left-- > 0));
    if (!goes_on) {
        got = choose(log, error);
        if (got <= 0) return got;
        present = log->present;
    }
    *event = present->head;
    present->has_head = false;
    if (log->count == 1 || !has_turn(log, event)) return 1;
    uint64_t granule = granule_of(log, event);
    uint32_t turn =
        event->flags & CAIRN_EVENT_TURN ? (uint32_t)event->turn : turns_of(&log->turns, granule);
    if (turns_set(&log->turns, granule, turn + 1)) return 1;
    return error_set(error, "out of memory") - 1;
}
