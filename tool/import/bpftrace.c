// SPDX-License-Identifier: Apache-2.0
// What bpftrace prints of examples/malloc.bt (docs/explain/tracing.md), after a line "cairn trace
// 1": one event a line, the frames of the caller behind it.
//
//     program NAME
//     a NANOSECONDS PID BYTES BLOCK          allocated
//     r NANOSECONDS PID BYTES BLOCK OLD      reallocated; BLOCK 0: OLD is freed
//     f NANOSECONDS PID BLOCK                freed
//             55d0c3a2b1f0 main+42 (/home/me/prog)
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/replay.h"

static const char first_line[] = "cairn trace 1";

struct reader {
    FILE *in;
    struct replay replay;
    struct error *error;
    char *line;
    size_t line_room, line_number;
    struct replay_event event;  // whose stack is being read
    bool has_begun, has_event;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "bpftrace: line %zu: %s", reader->line_number, what);
}

static bool finish_event(struct reader *reader) {
    bool is_ok = !reader->has_event || replay_add(&reader->replay, &reader->event);
    reader->has_event = false;
    reader->replay.places.count = 0;
    return is_ok || import_no_memory(reader->error);
}

enum { FIELD_TIME, FIELD_PID, FIELD_FIRST, FIELDS_MAX = 5 };

static bool read_event(struct reader *reader, size_t wanted) {
    uint64_t fields[FIELDS_MAX] = {0};
    char *at = reader->line + 1, *end;
    for (size_t i = 0; i < wanted; i++, at = end) {
        fields[i] = strtoull(at, &end, 0);
        if (end == at) return bad(reader, "a number is missing");
    }
    if (*at) return bad(reader, "more than an event");
    if (!finish_event(reader)) return false;
    if (!reader->replay.pid) reader->replay.pid = fields[FIELD_PID];
    if (reader->replay.pid != fields[FIELD_PID])
        return error_set(reader->error,
                         "bpftrace: line %zu: events of the processes %" PRIu64 " and %" PRIu64
                         ": trace one by bpftrace -p",
                         reader->line_number, reader->replay.pid, fields[FIELD_PID]);
    const uint64_t *own = fields + FIELD_FIRST;
    bool is_free = *reader->line == 'f';
    reader->event = (struct replay_event){.at_ns = fields[FIELD_TIME],
                                          .bytes = is_free ? 0 : own[0],
                                          .block = is_free ? 0 : own[1],
                                          .old_block = is_free ? own[0] : own[2]};
    reader->has_event = true;
    return true;
}

static bool read_line(struct reader *reader) {
    enum { ALLOC_FIELDS = 4, REALLOC_FIELDS = 5, FREE_FIELDS = 3 };
    char *line = reader->line;
    uint64_t lost;
    if (!reader->has_begun) {
        reader->has_begun = !strcmp(line, first_line);
        return true;
    }
    if (sscanf(line, "Lost %" SCNu64 " events", &lost) == 1) {
        reader->replay.lost_count += lost;
        return true;
    }
    if (sscanf(line, "program %15s", reader->replay.imported->command) == 1) return true;
    if (!strncmp(line, "a ", 2)) return read_event(reader, ALLOC_FIELDS);
    if (!strncmp(line, "r ", 2)) return read_event(reader, REALLOC_FIELDS);
    if (!strncmp(line, "f ", 2)) return read_event(reader, FREE_FIELDS);
    line += strspn(line, " \t");
    // bpftrace prints its maps at the end
    if (!*line || *line == '@') return true;
    return reader->has_event && line != reader->line && replay_frame(&reader->replay, line)
               ? true
               : bad(reader, "neither an event nor a frame");
}

static bool read_all(struct reader *reader) {
    while (getline(&reader->line, &reader->line_room, reader->in) > 0) {
        reader->line_number++;
        reader->line[strcspn(reader->line, "\n")] = 0;
        if (!read_line(reader)) return false;
    }
    if (!reader->has_begun) return bad(reader, "no line \"cairn trace 1\" before the end");
    return finish_event(reader);
}

bool import_is_bpftrace(const char *head, size_t size) {
    char text[IMPORT_HEAD_BYTES + 1] = "";
    memcpy(text, head, size < IMPORT_HEAD_BYTES ? size : IMPORT_HEAD_BYTES);
    return strstr(text, first_line) != NULL;
}

bool import_bpftrace(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.in = in, .replay.imported = imported, .error = error};
    bool is_ok = read_all(&reader) && replay_finish(&reader.replay, error);
    free(reader.line);
    replay_free(&reader.replay);
    return is_ok;
}
