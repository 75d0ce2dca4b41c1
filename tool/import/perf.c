// SPDX-License-Identifier: Apache-2.0
// What `perf script` prints of probes on libc's allocation functions, or of cairn's own
// (docs/explain/tracing.md): lines of an event, each followed by the lines of its stack and an
// empty one.
//
//     prog  4242 [001]  3593.288129: probe_libc:malloc: (7f560fc63930) bytes=0x64
//     prog  4242 [001]  3593.288164: probe_libc:malloc__return: (7f56… <- 55bb…)
//     block=0x55bbe86a62a0
//                 1172 inner+0x9 (/home/me/prog)
//
// A call is its entry, with what was asked for, and its return, with the block and the stack (at
// the entry the caller's own frame is not yet to be found). libc's functions call each other: what
// a call does inside is not an event of its own. An entry without a return, as a full buffer of
// perf leaves behind, is known by what comes next from its thread, and counts as lost.
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/replay.h"

enum call { CALL_NONE, CALL_ALLOC, CALL_CALLOC, CALL_REALLOC, CALL_FREE };

struct function {
    const char *name;
    enum call call;
};
static const struct function functions[] = {
    {"malloc", CALL_ALLOC},   {"calloc", CALL_CALLOC}, {"realloc", CALL_REALLOC},
    {"memalign", CALL_ALLOC}, {"valloc", CALL_ALLOC},  {"aligned_alloc", CALL_ALLOC},
    {"pvalloc", CALL_ALLOC},  {"free", CALL_FREE},
};

struct pending {  // a thread's call that has not returned
    uint64_t tid;
    enum call call;  // NONE: there is none
    uint64_t bytes, old_block;
    unsigned depth;  // the same call again inside: by way of libc's own table of jumps
};

struct reader {
    FILE *in;
    struct replay replay;
    struct error *error;
    char *line;
    size_t line_room, line_number;
    ARRAY(struct pending) threads;
    struct index_table thread_table;
    struct replay_event event;  // whose stack is being read
    bool has_event;
    size_t event_count;
};

// An event's line, taken apart.
struct head {
    uint64_t pid, tid, at_ns;
    const char *program;  // and what follows
    size_t program_bytes;
    char *group, *name;
    char *values;  // "(7f56…) bytes=0x64"
    bool is_return;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "perf: line %zu: %s", reader->line_number, what);
}

static bool is_time(const char *word, size_t length) {
    const char *point = memchr(word, '.', length);
    size_t whole = point ? (size_t)(point - word) : 0;
    return whole && length > whole + 2 && word[length - 1] == ':' &&
           strspn(word, "0123456789") == whole &&
           strspn(point + 1, "0123456789") == length - whole - 2;
}

// Seconds with a fraction of any length.
static uint64_t time_of(const char *word) {
    const uint64_t ns_per_s = 1000000000;
    char *end;
    uint64_t seconds = strtoull(word, &end, 10), ns = 0, unit = ns_per_s / 10;
    for (end++; isdigit((unsigned char)*end); end++, unit /= 10)
        ns += (uint64_t)(*end - '0') * unit;
    return seconds < UINT64_MAX / ns_per_s ? seconds * ns_per_s + ns : 0;
}

// "4242" or "4242/4243", or "[001]", which says nothing here.
static void read_word(struct head *head, char *word) {
    char *end;
    uint64_t number = strtoull(word, &end, 10);
    if (end == word || (*end != ' ' && *end != '/')) return;
    head->tid = number;
    head->program_bytes = (size_t)(word - head->program);
    if (*end != '/') return;
    head->pid = number;
    head->tid = strtoull(end + 1, NULL, 10);
}

// Takes the line apart; false: it is no event.
static bool split_head(char *line, struct head *head) {
    *head = (struct head){.program = line};
    for (char *at = line + strspn(line, " "); *at;) {
        size_t length = strcspn(at, " ");
        if (is_time(at, length)) {
            head->at_ns = time_of(at);
            head->group = at + length + strspn(at + length, " ");
            char *colon = strchr(head->group, ':'), *end = colon ? strstr(colon + 1, ": ") : NULL;
            if (!end) return false;
            *colon = *end = 0;
            head->name = colon + 1;
            head->values = end + 2;
            return true;
        }
        read_word(head, at);
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

static bool take_value(struct reader *reader, const struct head *head, const char *key,
                       uint64_t *value) {
    size_t length = strlen(key);
    for (const char *at = head->values; (at = strstr(at, key)); at += length) {
        if (at == head->values || at[-1] != ' ' || at[length] != '=') continue;
        char *end;
        *value = strtoull(at + length + 1, &end, 0);
        if (end != at + length + 1) return true;
    }
    return error_set(reader->error, "perf: line %zu: %s:%s has no %s=", reader->line_number,
                     head->group, head->name, key);
}

// malloc, malloc_1 (a second place of the same name), malloc__return
static enum call call_of(struct head *head) {
    char *suffix = strstr(head->name, "__return");
    head->is_return = suffix != NULL;
    if (suffix) *suffix = 0;
    char *number = strrchr(head->name, '_');
    if (number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1)) *number = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, head->name)) return functions[i].call;
    return CALL_NONE;
}

static struct pending *thread_of(struct reader *reader, uint64_t tid) {
    uint64_t hash = hash_mix(index_table_seed(), tid);
    struct index_probe probe = index_probe_start(&reader->thread_table, hash);
    for (uint32_t index; index_probe_next(&reader->thread_table, &probe, &index);)
        if (reader->threads.items[index].tid == tid) return &reader->threads.items[index];
    struct pending *added = array_push(&reader->threads);
    if (!added ||
        !index_table_insert(&reader->thread_table, hash, (uint32_t)reader->threads.count - 1))
        return NULL;
    *added = (struct pending){.tid = tid};
    return added;
}

static void start_event(struct reader *reader, struct replay_event event) {
    reader->event = event;
    reader->has_event = true;
    reader->event_count++;
}

// True if this is a part of the call that goes on: the same, or what realloc does inside.
static bool is_inner(const struct pending *pending, enum call call, uint64_t bytes, uint64_t old) {
    if (pending->call == CALL_NONE) return false;
    if (call == pending->call && bytes == pending->bytes && old == pending->old_block) return true;
    if (pending->call != CALL_REALLOC) return false;
    return call == CALL_FREE ? old == pending->old_block
                             : call == CALL_ALLOC && bytes == pending->bytes;
}

static bool enter(struct reader *reader, const struct head *head, enum call call,
                  struct pending *pending) {
    uint64_t bytes = 0, old = 0, count = 1;
    bool is_ok = call == CALL_FREE ? take_value(reader, head, "block", &old)
                                   : take_value(reader, head, "bytes", &bytes);
    if (is_ok && call == CALL_CALLOC) is_ok = take_value(reader, head, "count", &count);
    if (is_ok && call == CALL_REALLOC) is_ok = take_value(reader, head, "old", &old);
    if (!is_ok) return false;
    if (__builtin_mul_overflow(bytes, count, &bytes)) bytes = 0;  // it will fail
    if (is_inner(pending, call, bytes, old)) {
        pending->depth += call != CALL_FREE;
        return true;
    }
    if (pending->call != CALL_NONE) reader->replay.lost_count++;
    pending->call = CALL_NONE;
    if (call != CALL_FREE)
        *pending = (struct pending){head->tid, call, bytes, old, 0};
    else if (old)
        start_event(reader, (struct replay_event){.at_ns = head->at_ns, .old_block = old});
    return true;
}

static bool leave(struct reader *reader, const struct head *head, enum call call,
                  struct pending *pending) {
    uint64_t block = 0;
    if (call == CALL_FREE) return true;
    if (!take_value(reader, head, "block", &block)) return false;
    if (pending->call == CALL_NONE) {
        reader->replay.lost_count += block != 0 && reader->event_count != 0;
        return true;
    }
    if (pending->depth) {
        pending->depth--;
        return true;
    }
    if (pending->call != call) {
        reader->replay.lost_count++;
        pending->call = CALL_NONE;
        return true;
    }
    // realloc to 0 bytes frees; NULL is a failure otherwise
    bool is_freed = !block && pending->old_block && !pending->bytes;
    if (block || is_freed)
        start_event(reader, (struct replay_event){head->at_ns, block, pending->bytes,
                                                  pending->old_block, 0, 0});
    pending->call = CALL_NONE;
    return true;
}

// cairn's own probes have everything in one line, under perf's names of arguments.
static bool own_event(struct reader *reader, const struct head *head, enum call call) {
    struct replay_event event = {.at_ns = head->at_ns};
    uint64_t *block = call == CALL_FREE ? &event.old_block : &event.block;
    if (!take_value(reader, head, "arg1", block)) return false;
    if (call != CALL_FREE && !take_value(reader, head, "arg2", &event.bytes)) return false;
    if (call == CALL_REALLOC && !take_value(reader, head, "arg4", &event.old_block)) return false;
    start_event(reader, event);
    return true;
}

static bool finish_event(struct reader *reader) {
    bool is_ok = !reader->has_event || replay_add(&reader->replay, &reader->event);
    reader->has_event = false;
    reader->replay.places.count = 0;
    return is_ok || import_no_memory(reader->error);
}

static bool check_pid(struct reader *reader, const struct head *head) {
    struct imported *imported = reader->replay.imported;
    if (!reader->replay.pid) reader->replay.pid = head->pid;
    if (!*imported->command)
        snprintf(imported->command, sizeof imported->command, "%.*s", (int)head->program_bytes,
                 head->program);
    if (!head->pid || head->pid == reader->replay.pid) return true;
    return error_set(reader->error,
                     "perf: line %zu: events of the processes %" PRIu64 " and %" PRIu64
                     ": choose one by perf script --pid",
                     reader->line_number, reader->replay.pid, head->pid);
}

static bool read_event(struct reader *reader, struct head *head) {
    bool is_own = !strcmp(head->group, "sdt_cairn");
    enum call call = is_own && !strcmp(head->name, "alloc") ? CALL_ALLOC : call_of(head);
    if (call == CALL_NONE) return true;
    if (!finish_event(reader) || !check_pid(reader, head)) return false;
    if (is_own) return own_event(reader, head, call);
    struct pending *pending = thread_of(reader, head->tid);
    if (!pending) return import_no_memory(reader->error);
    return head->is_return ? leave(reader, head, call, pending)
                           : enter(reader, head, call, pending);
}

static void read_lost(struct reader *reader, const char *line) {
    const char *at = strstr(line, "PERF_RECORD_LOST");
    const char *number = at ? strpbrk(at, "0123456789") : NULL;
    if (number) reader->replay.lost_count += strtoull(number, NULL, 10);
}

static bool read_line(struct reader *reader) {
    char *line = reader->line + strspn(reader->line, " \t");
    struct head head;
    if (!*line || *line == '#') return true;
    if (split_head(line, &head)) return read_event(reader, &head);
    if (strstr(line, "PERF_RECORD_LOST")) {
        read_lost(reader, line);
        return true;
    }
    // of an event that is none here, or of an entry
    if (!reader->has_event) return true;
    return replay_frame(&reader->replay, line) || bad(reader, "neither an event nor a frame");
}

static bool read_all(struct reader *reader) {
    while (getline(&reader->line, &reader->line_room, reader->in) > 0) {
        reader->line_number++;
        reader->line[strcspn(reader->line, "\n")] = 0;
        if (!read_line(reader)) return false;
    }
    if (!finish_event(reader)) return false;
    for (size_t i = 0; i < reader->threads.count; i++)
        reader->replay.lost_count += reader->threads.items[i].call != CALL_NONE;
    return reader->event_count ||
           bad(reader, "no event of malloc, calloc, realloc or free before the end");
}

bool import_is_perf(const char *head, size_t size) {
    char line[IMPORT_HEAD_BYTES + 1] = "";
    memcpy(line, head, size < IMPORT_HEAD_BYTES ? size : IMPORT_HEAD_BYTES);
    line[strcspn(line, "\n")] = 0;
    for (const char *at = line; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (is_time(at, length)) return true;
        at += length;
    }
    return false;
}

bool import_perf(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.in = in, .replay.imported = imported, .error = error};
    bool is_ok = read_all(&reader) && replay_finish(&reader.replay, error);
    free(reader.line);
    replay_free(&reader.replay);
    array_free(&reader.threads);
    index_table_free(&reader.thread_table);
    return is_ok;
}
