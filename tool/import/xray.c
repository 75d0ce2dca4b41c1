// SPDX-License-Identifier: Apache-2.0
// Both forms begin with a header of 32 bytes: version, 0 (basic) or 1 (FDR), how often the clock
// ticks in a second.
//
// Basic, versions 1 to 3: records of 32 bytes; those of a thread are in order. An argument is a
// record of its own behind that of its function's entry. Where a stack is deeper than
// max_stack_depth, the entry is missing and its argument is there.
//
// Flight data recorder (FDR), versions 2 to 5: buffers of one thread each, in any order, with the
// time at which they begin. A record of a function has 8 bytes, one of another kind, whose first
// bit is set, 16. The argument follows the entry.
#include "tool/import/xray.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/symbol/bytes.h"

enum { HEADER_BYTES = 32, RECORD_BYTES = 32, BASIC = 0, FLIGHT = 1 };
enum { BASIC_VERSION_MAX = 3, FLIGHT_VERSION_LEAST = 2, FLIGHT_VERSION_MAX = 5, PID_VERSION = 3 };
enum { BYTES_MAX = INT32_MAX };

struct header {
    uint64_t version, form, frequency;
};

struct reader {
    struct imported *imported;
    struct error *error;
    struct header header;
    struct xray_stacks stacks;
    uint64_t offset;  // in the file, of what is being read
    uint32_t pid;     // 0: not known yet
    uint64_t first, last;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "xray: offset %" PRIu64 ": %s", reader->offset, what);
}

static struct header header_of(const uint8_t *bytes, size_t size) {
    struct bytes at = {bytes, bytes + size, false};
    struct header header = {.version = bytes_number(&at, 2), .form = bytes_number(&at, 2)};
    bytes_skip(&at, 4);  // flags, and what the writer left between them
    header.frequency = bytes_number(&at, sizeof header.frequency);
    return header;
}

// The events of one process are read. False: this one is another's, and is left out.
static bool is_wanted(struct reader *reader, uint32_t pid, bool *is_ok) {
    uint32_t wanted = reader->imported->wanted_pid;
    *is_ok = true;
    if (wanted && pid != wanted) return false;
    if (!reader->pid) reader->pid = pid;
    if (pid == reader->pid) return true;
    *is_ok = error_set(reader->error,
                       "xray: offset %" PRIu64 ": events of the processes %" PRIu32 " and %" PRIu32
                       ": --process PID takes one",
                       reader->offset, reader->pid, pid);
    return false;
}

static void note_time(struct reader *reader, uint64_t at) {
    if (!reader->first || at < reader->first) reader->first = at;
    if (at > reader->last) reader->last = at;
}

// ---- basic --------------------------------------------------------------------------------------

struct basic_record {
    uint64_t type, kind;
    uint32_t function, tid, pid;
    uint64_t at, argument;
};

static struct basic_record basic_record_of(const uint8_t *bytes) {
    struct bytes at = {bytes, bytes + RECORD_BYTES, false};
    struct basic_record record = {.type = bytes_number(&at, 2)};
    bytes_skip(&at, 1);  // the processor
    record.kind = bytes_number(&at, 1);
    record.function = (uint32_t)bytes_number(&at, 4);
    if (!record.type) record.at = bytes_number(&at, sizeof record.at);
    record.tid = (uint32_t)bytes_number(&at, 4);
    record.pid = (uint32_t)bytes_number(&at, 4);
    if (record.type) record.argument = bytes_number(&at, sizeof record.argument);
    return record;
}

static bool is_entry_of(const struct basic_record *entry, const struct basic_record *argument) {
    return !entry->type && entry->kind == XRAY_ENTER_ARGUMENT && entry->tid == argument->tid &&
           entry->function == argument->function;
}

static bool add_basic(struct reader *reader, const struct basic_record *record,
                      const struct basic_record *before) {
    bool is_ok;
    uint32_t pid = reader->header.version >= PID_VERSION ? record->pid : 0;
    if (record->type > 1) return bad(reader, "a record of a kind that no log has");
    if (!record->type && record->kind >= XRAY_KINDS)
        return bad(reader, "an event of a kind that no log has");
    if (!is_wanted(reader, pid, &is_ok)) return is_ok;
    struct xray_thread *thread = xray_thread_of(&reader->stacks, record->tid);
    if (!thread) return import_no_memory(reader->error);
    if (record->type)
        return xray_stacks_argument(&reader->stacks, thread, record->function, record->argument,
                                    is_entry_of(before, record), reader->error);
    note_time(reader, record->at);
    return xray_stacks_add(&reader->stacks, thread, (enum xray_kind)record->kind, record->function,
                           record->at, reader->error);
}

static bool read_basic(struct reader *reader, FILE *in) {
    uint8_t bytes[RECORD_BYTES];
    size_t size;
    struct basic_record before = {.type = 1};
    while ((size = fread(bytes, 1, sizeof bytes, in)) == sizeof bytes) {
        struct basic_record record = basic_record_of(bytes);
        if (!add_basic(reader, &record, &before)) return false;
        before = record;
        reader->offset += RECORD_BYTES;
    }
    return !size || bad(reader, "a record is cut off");
}

// ---- flight data recorder -----------------------------------------------------------------------

enum metadata {
    NEW_BUFFER,
    END_OF_BUFFER,
    NEW_PROCESSOR,
    CLOCK_AGAIN,  // it went back, or further ahead than a record can say
    WALL_TIME,
    CUSTOM_EVENT,
    ARGUMENT,
    EXTENTS,
    TYPED_EVENT,
    PROCESS,
};
enum { METADATA_BODY_BYTES = 15, EVENT_DELTA_VERSION = 5 };

struct buffer {
    size_t offset, size;  // in what was read
    uint64_t seconds, microseconds;
    uint32_t tid, pid;
};

struct flight {
    struct reader *reader;
    ARRAY(uint8_t) file;
    ARRAY(struct buffer) buffers;
    struct xray_thread *thread;  // of the buffer that is being read
    uint64_t now;
    uint32_t function;  // that was entered last
};

static bool read_rest(struct flight *flight, FILE *in) {
    enum { STEP = 1 << 20 };
    size_t size;
    do {
        size_t room = flight->file.count + STEP;
        uint8_t *grown = flight->file.capacity < room ? realloc(flight->file.items, 2 * room)
                                                      : flight->file.items;
        if (!grown) return import_no_memory(flight->reader->error);
        if (grown != flight->file.items || flight->file.capacity < room)
            flight->file.capacity = 2 * room;
        flight->file.items = grown;
        size = fread(grown + flight->file.count, 1, STEP, in);
        flight->file.count += size;
        if (flight->file.count > BYTES_MAX)
            return error_set(flight->reader->error, "xray: logs of more than 2 GiB are not read");
    } while (size);
    return true;
}

// What a record is, its body in `body`.
static bool take_metadata(struct bytes *at, unsigned *kind, struct bytes *body) {
    uint8_t first = bytes_u8(at);
    *kind = first >> 1;
    *body = (struct bytes){at->at, at->at, false};
    bytes_skip(at, METADATA_BODY_BYTES);
    if (!at->is_bad) body->end = body->at + METADATA_BODY_BYTES;
    return !at->is_bad && (first & 1);
}

// The records at a buffer's start say of whom and of when it is.
static void find_owner(const struct flight *flight, struct buffer *buffer) {
    const uint8_t *start = flight->file.items + buffer->offset;
    struct bytes at = {start, start + buffer->size, false}, body;
    unsigned kind;
    while (take_metadata(&at, &kind, &body) && kind != CUSTOM_EVENT && kind != TYPED_EVENT) {
        if (kind == NEW_BUFFER) buffer->tid = (uint32_t)bytes_number(&body, 4);
        if (kind == PROCESS) buffer->pid = (uint32_t)bytes_number(&body, 4);
        if (kind == WALL_TIME) {
            buffer->seconds = bytes_number(&body, sizeof buffer->seconds);
            buffer->microseconds = bytes_number(&body, 4);
        }
    }
}

static bool find_buffers(struct flight *flight) {
    struct reader *reader = flight->reader;
    const uint8_t *start = flight->file.items;
    struct bytes at = {start, start + flight->file.count, false}, body;
    unsigned kind;
    while (bytes_left(&at)) {
        reader->offset = HEADER_BYTES + (uint64_t)(at.at - start);
        if (!take_metadata(&at, &kind, &body) || kind != EXTENTS)
            return bad(reader, "no buffer begins there");
        uint64_t size = bytes_number(&body, sizeof size);
        if (size > bytes_left(&at)) return bad(reader, "a buffer is cut off");
        struct buffer *buffer = array_push(&flight->buffers);
        if (!buffer) return import_no_memory(reader->error);
        *buffer = (struct buffer){.offset = (size_t)(at.at - start), .size = (size_t)size};
        find_owner(flight, buffer);
        bytes_skip(&at, size);
    }
    return true;
}

static bool add_argument(struct flight *flight, uint64_t argument) {
    struct reader *reader = flight->reader;
    return xray_stacks_argument(&reader->stacks, flight->thread, flight->function, argument, true,
                                reader->error);
}

static bool read_metadata(struct flight *flight, struct bytes *at) {
    struct bytes body;
    unsigned kind;
    if (!take_metadata(at, &kind, &body)) return bad(flight->reader, "a record is cut off");
    uint64_t size = kind == CUSTOM_EVENT || kind == TYPED_EVENT ? bytes_number(&body, 4) : 0;
    if (size > INT32_MAX || size > bytes_left(at))
        return bad(flight->reader, "an event is longer than its buffer");
    if (size && flight->reader->header.version >= EVENT_DELTA_VERSION)
        flight->now += (uint64_t)(int32_t)bytes_number(&body, 4);
    bytes_skip(at, size);
    if (kind == NEW_PROCESSOR) bytes_skip(&body, 2);
    if (kind == NEW_PROCESSOR || kind == CLOCK_AGAIN) {
        flight->now = bytes_number(&body, sizeof flight->now);
        note_time(flight->reader, flight->now);
    }
    if (kind == END_OF_BUFFER) bytes_skip(at, bytes_left(at));
    if (kind > PROCESS) return bad(flight->reader, "a record of a kind that no log has");
    if (kind != ARGUMENT) return true;
    return add_argument(flight, bytes_number(&body, sizeof(uint64_t)));
}

static bool read_function(struct flight *flight, struct bytes *at) {
    struct reader *reader = flight->reader;
    uint64_t word = bytes_number(at, 4), delta = bytes_number(at, 4);
    unsigned kind = word >> 1 & 7;
    if (at->is_bad) return bad(reader, "a record is cut off");
    if (kind >= XRAY_KINDS) return bad(reader, "an event of a kind that no log has");
    flight->function = (uint32_t)(word >> 4);
    flight->now += delta;
    note_time(reader, flight->now);
    return xray_stacks_add(&reader->stacks, flight->thread, (enum xray_kind)kind, flight->function,
                           flight->now, reader->error);
}

static bool read_buffer(struct flight *flight, const struct buffer *buffer) {
    struct reader *reader = flight->reader;
    const uint8_t *start = flight->file.items;
    struct bytes at = {start + buffer->offset, start + buffer->offset + buffer->size, false};
    bool is_ok;
    reader->offset = HEADER_BYTES + buffer->offset;
    if (!buffer->size) return true;
    if (!is_wanted(reader, buffer->pid, &is_ok)) return is_ok;
    flight->thread = xray_thread_of(&reader->stacks, buffer->tid);
    if (!flight->thread) return import_no_memory(reader->error);
    while (is_ok && bytes_left(&at)) {
        reader->offset = HEADER_BYTES + (uint64_t)(at.at - start);
        is_ok = *at.at & 1 ? read_metadata(flight, &at) : read_function(flight, &at);
    }
    return is_ok;
}

static int compare_times(const void *a, const void *b) {
    const struct buffer *one = a, *other = b;
    if (one->seconds != other->seconds) return one->seconds < other->seconds ? -1 : 1;
    if (one->microseconds != other->microseconds)
        return one->microseconds < other->microseconds ? -1 : 1;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

static bool read_flight(struct reader *reader, FILE *in) {
    struct flight flight = {.reader = reader};
    bool is_ok = read_rest(&flight, in) && find_buffers(&flight);
    if (is_ok && flight.buffers.count)
        qsort(flight.buffers.items, flight.buffers.count, sizeof *flight.buffers.items,
              compare_times);
    for (size_t i = 0; is_ok && i < flight.buffers.count; i++)
        is_ok = read_buffer(&flight, &flight.buffers.items[i]);
    array_free(&flight.file);
    array_free(&flight.buffers);
    return is_ok;
}

// ---- both ---------------------------------------------------------------------------------------

static void tell_count(struct imported *imported, uint64_t count, const char *one,
                       const char *several) {
    size_t used = strlen(imported->lacks);
    if (count)
        snprintf(imported->lacks + used, sizeof imported->lacks - used, ", %" PRIu64 " %s", count,
                 count == 1 ? one : several);
}

// A basic log has no calls that are shorter than its threshold, 5 µs unless it is set to 0, and
// does not say which it had: if it has no short one, it may be so. The shortest, or 0.
static uint64_t threshold_of(const struct reader *reader) {
    const uint64_t per_second = 1000000;
    uint64_t shortest = reader->stacks.shortest, frequency = reader->header.frequency;
    if (reader->header.form != BASIC || shortest == UINT64_MAX || !frequency) return 0;
    uint64_t microseconds = shortest / (frequency / per_second + 1);
    return microseconds > 1 ? microseconds : 0;
}

static void tell(struct reader *reader) {
    struct imported *imported = reader->imported;
    const struct xray_stacks *stacks = &reader->stacks;
    uint64_t microseconds = threshold_of(reader);
    snprintf(imported->lacks, sizeof imported->lacks,
             "what was freed or live or the peak (XRay logs an argument and no returned address), "
             "lines, threads%s",
             stacks->has_map ? "" : ", names of functions (--program FILE)");
    if (microseconds) {
        size_t used = strlen(imported->lacks);
        snprintf(imported->lacks + used, sizeof imported->lacks - used,
                 ", calls of less than %" PRIu64 " µs (func_duration_threshold_us)", microseconds);
    }
    tell_count(imported, stacks->deep_count, "stack's middle (max_stack_depth)",
               "stacks' middle (max_stack_depth)");
    tell_count(imported, stacks->unmatched_count, "function's entry, which is older than the log",
               "functions' entries, which are older than the log");
    tell_count(imported, stacks->odd_count, "argument that is no size",
               "arguments that are no size");
    imported->is_partial = stacks->unmatched_count || stacks->odd_count || microseconds > 0;
}

static bool name_program(struct reader *reader) {
    struct imported *imported = reader->imported;
    char path[PATH_MAX];
    if (!imported->program) return true;
    if (!xray_map_read(&reader->stacks.map, imported->program, reader->error)) return false;
    reader->stacks.has_map = true;
    if (!realpath(imported->program, path)) snprintf(path, sizeof path, "%s", imported->program);
    snprintf(imported->command, sizeof imported->command, "%s", text_base_name(path));
    const struct import_mapping all = {
        .end = UINT64_MAX, .has_bias = true, .module = import_module(imported, path)};
    return (all.module != IMPORT_NONE && import_mapping(imported, &all)) ||
           import_no_memory(reader->error);
}

static bool finish(struct reader *reader) {
    struct imported *imported = reader->imported;
    const double ns_per_s = 1e9, seconds_most = 1e9;  // what is more is no time
    if (imported->wanted_pid && !reader->pid)
        return error_set(reader->error, "xray: no event of the process %" PRIu32,
                         imported->wanted_pid);
    if (!reader->stacks.argument_count)
        return error_set(reader->error, "xray: no function logs its argument (xray_log_args(1), or "
                                        "arg1 in a list of -fxray-attr-list)");
    if (!*imported->command) snprintf(imported->command, sizeof imported->command, "(xray)");
    imported->pid = reader->pid;
    if (reader->header.frequency) {
        double seconds = (double)(reader->last - reader->first) / (double)reader->header.frequency;
        if (seconds < seconds_most) imported->duration_ns = (uint64_t)(seconds * ns_per_s);
    }
    imported->has_no_frees = true;
    tell(reader);
    return true;
}

static bool read_log(struct reader *reader, FILE *in) {
    uint8_t bytes[HEADER_BYTES];
    if (fread(bytes, 1, sizeof bytes, in) != sizeof bytes) return bad(reader, "no header");
    const struct header *header = &reader->header;
    reader->header = header_of(bytes, sizeof bytes);
    bool is_flight = header->form == FLIGHT;
    uint64_t least = is_flight ? FLIGHT_VERSION_LEAST : 1;
    uint64_t most = is_flight ? FLIGHT_VERSION_MAX : BASIC_VERSION_MAX;
    if (header->form > FLIGHT || header->version < least || header->version > most)
        return error_set(reader->error,
                         "xray: a log of kind %" PRIu64 " and version %" PRIu64
                         "; known are basic (0) up to %d and FDR (1), %d to %d",
                         header->form, header->version, BASIC_VERSION_MAX, FLIGHT_VERSION_LEAST,
                         FLIGHT_VERSION_MAX);
    reader->offset = HEADER_BYTES;
    return is_flight ? read_flight(reader, in) : read_basic(reader, in);
}

// It has no magic number: a header that makes sense, and a record that does behind it.
bool import_is_xray(const char *head, size_t size) {
    const uint64_t frequency_least = 1000000, frequency_most = 100000000000;
    const uint8_t *bytes = (const uint8_t *)head;
    if (size < HEADER_BYTES + RECORD_BYTES) return false;
    struct header header = header_of(bytes, size);
    bool is_known = header.frequency != 0;  // not in every virtual machine
    if (is_known && (header.frequency < frequency_least || header.frequency > frequency_most))
        return false;
    const uint8_t *first = bytes + HEADER_BYTES;
    if (header.form == FLIGHT)
        return header.version && header.version <= FLIGHT_VERSION_MAX &&
               (*first == (EXTENTS << 1 | 1) || *first == (NEW_BUFFER << 1 | 1));
    return header.form == BASIC && header.version && header.version <= BASIC_VERSION_MAX &&
           first[0] <= 1 && !first[1] && first[3] < XRAY_KINDS;
}

bool import_xray(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.imported = imported,
                            .error = error,
                            .stacks = {.imported = imported, .shortest = UINT64_MAX}};
    bool is_ok = name_program(&reader) && read_log(&reader, in) && finish(&reader);
    xray_stacks_free(&reader.stacks);
    return is_ok;
}
