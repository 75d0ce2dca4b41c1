// SPDX-License-Identifier: Apache-2.0
// memray's capture files, versions 11 (memray 1.11 to 1.18), 12 (1.19) and 13 (1.20): little-endian
// numbers, texts that end in a zero, varints of 7 bits, many of them differences to the last one of
// their kind. Version 11 has the kind of a record in the low four bits of its first byte and flags
// in the high ones; later versions give allocations 7 bits of flags, keep lines as Python's own
// tables, and say recent addresses by their place in a list.
//
// `memray run` writes every event, `memray run --aggregate` what was held at the peak and at the
// end. A file ends with a trailer: what has none was cut off, and is read up to there.
#include "tool/import/memray.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/replay.h"

enum { TABLE_MAX = 1 << 24, VERSION_LATER = 12, VERSION_PATHS = 13, VERSION_MOST = 13 };

// What a function does to memory, by memray's number of it, for version 11 and for later ones.
enum kind { UNKNOWN, ALLOCATES, FREES, MAPS, UNMAPS };
enum { FUNCTIONS = 16 };
static const uint8_t kinds_11[FUNCTIONS] = {
    UNKNOWN,   ALLOCATES, FREES, ALLOCATES, ALLOCATES, ALLOCATES, ALLOCATES, ALLOCATES,
    ALLOCATES, ALLOCATES, MAPS,  UNMAPS,    ALLOCATES, ALLOCATES, ALLOCATES, FREES};
static const uint8_t kinds_later[FUNCTIONS] = {
    UNKNOWN,   FREES,     ALLOCATES, ALLOCATES, ALLOCATES, FREES,     ALLOCATES, ALLOCATES,
    ALLOCATES, ALLOCATES, ALLOCATES, ALLOCATES, ALLOCATES, ALLOCATES, MAPS,      UNMAPS};

static bool bad(struct memray *reader, const char *what) {
    return memray_bad(&reader->input, what);
}

static bool no_memory(struct memray *reader) {
    return import_no_memory(reader->error);
}

// Texts up to an empty one.
static bool skip_texts(struct memray *reader) {
    do {
        if (!memray_take_text(&reader->input, &reader->input.text)) return false;
    } while (*reader->input.text.text);
    return true;
}

static bool read_version(struct memray *reader) {
    static const char magic[] = "memray";
    char head[sizeof magic];
    if (!memray_take(&reader->input, head, sizeof head) || memcmp(head, magic, sizeof head) != 0)
        return error_set(reader->error, "memray: it does not begin with \"memray\"");
    if (!memray_take(&reader->input, &reader->version, sizeof reader->version)) return false;
    if (reader->version >= MEMRAY_VERSION_LEAST && reader->version <= VERSION_MOST) return true;
    return error_set(reader->error, "memray: file version %u, but %d to %d are read",
                     reader->version, MEMRAY_VERSION_LEAST, VERSION_MOST);
}

static bool read_head(struct memray *reader) {
    uint8_t has_native, form, tail[2];
    uint64_t counts[2], times[2];
    bool is_later = reader->version >= VERSION_LATER;
    struct memray_stacks *stacks = &reader->stacks;
    if ((is_later &&
         !memray_take(&reader->input, &stacks->python_version, sizeof stacks->python_version)) ||
        !memray_take(&reader->input, &has_native, 1) || !memray_take(&reader->input, &form, 1) ||
        !memray_take(&reader->input, counts, sizeof counts) ||
        !memray_take(&reader->input, times, sizeof times) ||
        !memray_take_text(&reader->input, &reader->input.text))
        return false;
    snprintf(reader->imported->command, sizeof reader->imported->command, "%s",
             reader->input.text.text);
    uint8_t lifetimes;
    if (!memray_take(&reader->input, &reader->imported->pid, sizeof reader->imported->pid) ||
        !memray_take(&reader->input, &stacks->main_tid, sizeof stacks->main_tid) ||
        !memray_take(&reader->input, &stacks->skip_count, sizeof stacks->skip_count) ||
        !memray_take(&reader->input, tail, sizeof tail) ||
        (is_later && !memray_take(&reader->input, &lifetimes, 1)))
        return false;
    if (reader->version >= VERSION_PATHS &&
        (!memray_take_text(&reader->input, &reader->input.text) || !skip_texts(reader) ||
         !skip_texts(reader)))
        return false;
    if (form > 1) return bad(reader, "neither all events nor sums");
    reader->has_native = has_native;
    reader->is_aggregated = form;
    reader->start_ms = times[0];
    reader->end_ms = times[1] > times[0] ? times[1] : times[0];
    reader->imported->start_unix_ns =
        times[0] < UINT64_MAX / MEMRAY_NS_PER_MS ? times[0] * MEMRAY_NS_PER_MS : 0;
    return true;
}

static struct memray_thread *current_thread(struct memray *reader) {
    if (reader->thread) return &reader->stacks.threads.items[reader->thread - 1];
    bad(reader, "an event before any thread");
    return NULL;
}

static bool read_thread(struct memray *reader) {
    uint64_t tid;
    if (!memray_take(&reader->input, &tid, sizeof tid)) return false;
    struct memray_thread *thread = memray_thread_of(&reader->stacks, tid);
    if (!thread) return no_memory(reader);
    reader->thread = (size_t)(thread - reader->stacks.threads.items) + 1;
    return true;
}

static bool read_code(struct memray *reader) {
    struct memray_code code = {0};
    uint64_t id, size;
    if (!memray_take_varint(&reader->input, &id) ||
        !memray_take_text(&reader->input, &reader->input.text) ||
        !memray_take_text(&reader->input, &reader->input.second) ||
        !memray_take_difference(&reader->input, (uint64_t *)&reader->last_line) ||
        !memray_take_varint(&reader->input, &size))
        return false;
    if (size > TABLE_MAX) return bad(reader, "a table of lines that is too large");
    code.first_line = reader->last_line;
    code.function = strdup(reader->input.text.text);
    code.file = strdup(reader->input.second.text);
    code.lines = malloc(size + 1);
    code.line_bytes = size;
    bool is_there = code.function && code.file && code.lines;
    bool is_ok = is_there ? memray_take(&reader->input, code.lines, size) : no_memory(reader);
    if (is_ok) return memray_add_code(&reader->stacks, id, &code) || no_memory(reader);
    free(code.function);
    free(code.file);
    free(code.lines);
    return false;
}

static bool read_native(struct memray *reader) {
    if (!memray_take_difference(&reader->input, &reader->last_ip) ||
        !memray_take_difference(&reader->input, &reader->last_native))
        return false;
    struct memray_native *slot = reader->stacks.natives.count < MEMRAY_TRACES_MAX
                                     ? array_push(&reader->stacks.natives)
                                     : NULL;
    if (!slot) return no_memory(reader);
    *slot = (struct memray_native){.address = reader->last_ip, .caller = reader->last_native};
    return true;
}

static bool read_segments(struct memray *reader) {
    enum { SEGMENT = 8 };
    uint64_t count, base;
    if (!memray_take_text(&reader->input, &reader->input.text) ||
        !memray_take_varint(&reader->input, &count) ||
        !memray_take(&reader->input, &base, sizeof base))
        return false;
    uint32_t module = import_module(reader->imported, reader->input.text.text);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address, size;
        int kind = getc(reader->input.in);
        if (kind == EOF) return memray_cut(&reader->input);
        if ((kind & 15) != SEGMENT) return bad(reader, "a segment is missing");
        if (!memray_take(&reader->input, &address, sizeof address) ||
            !memray_take_varint(&reader->input, &size))
            return false;
        const struct import_mapping mapping = {.start = base + address,
                                               .end = base + address + size,
                                               .bias = base,
                                               .has_bias = true,
                                               .is_segment = true,
                                               .module = module};
        if (module == IMPORT_NONE || !import_mapping(reader->imported, &mapping))
            return no_memory(reader);
    }
    return true;
}

static bool read_memory(struct memray *reader) {
    uint64_t rss, ms;
    if (!memray_take_varint(&reader->input, &rss) || !memray_take_varint(&reader->input, &ms))
        return false;
    if (rss > reader->imported->rss_peak_bytes) reader->imported->rss_peak_bytes = rss;
    if (ms < UINT64_MAX / MEMRAY_NS_PER_MS && ms * MEMRAY_NS_PER_MS > reader->now_ns)
        reader->now_ns = ms * MEMRAY_NS_PER_MS;
    return true;
}

static bool push_frame(struct memray *reader, uint32_t place) {
    struct memray_thread *thread = current_thread(reader);
    if (!thread) return false;
    if (place == IMPORT_NONE) return bad(reader, "a frame that is not there");
    return memray_push(&reader->stacks, thread, place) || no_memory(reader);
}

static bool pop_frames(struct memray *reader, unsigned count) {
    struct memray_thread *thread = current_thread(reader);
    return thread && (memray_pop(thread, count) || bad(reader, "more frames end than began"));
}

static bool add_event(struct memray *reader, enum kind kind, uint64_t address, uint64_t size,
                      uint64_t native) {
    struct memray_thread *thread = current_thread(reader);
    struct replay_event event = {.at_ns = reader->now_ns};
    if (!thread) return false;
    if (kind == UNKNOWN) return bad(reader, "a kind of allocation that is not known");
    if (kind == FREES || kind == UNMAPS) {
        event.old_block = address;
        return !address || replay_add_at(&reader->replay, &event, TREE_ROOT) || no_memory(reader);
    }
    size_t depth = thread->nodes.count;
    uint32_t node, python = depth ? thread->nodes.items[depth - 1] : TREE_ROOT;
    if (!memray_stack_of(&reader->stacks, python, native, &node)) return no_memory(reader);
    event.block = address;
    event.bytes = size;
    return !address || replay_add_at(&reader->replay, &event, node) || no_memory(reader);
}

static bool read_allocation_11(struct memray *reader, unsigned function, bool has_native) {
    enum kind kind = kinds_11[function];
    uint64_t size = 0;
    if (!memray_take_difference(&reader->input, &reader->last_address) ||
        ((has_native || kind != FREES) && !memray_take_varint(&reader->input, &size)) ||
        (has_native && !memray_take_difference(&reader->input, &reader->last_native)))
        return false;
    return add_event(reader, kind, reader->last_address, size,
                     has_native ? reader->last_native : 0);
}

// An address is one of the last that were new, or is new itself.
static bool take_address(struct memray *reader, unsigned index, uint64_t *address) {
    if (index < MEMRAY_RECENT) {
        *address = reader->recent[index];
        return true;
    }
    if (!memray_take_difference(&reader->input, &reader->last_address)) return false;
    *address = reader->last_address << 3;
    memmove(reader->recent + 1, reader->recent, (MEMRAY_RECENT - 1) * sizeof *reader->recent);
    reader->recent[0] = *address;
    return true;
}

static bool read_allocation(struct memray *reader, unsigned flags) {
    uint64_t address, size = 0;
    uint8_t function = flags & 7;
    if (!take_address(reader, flags >> 3 & 15, &address) ||
        (!function && !memray_take(&reader->input, &function, 1)))
        return false;
    enum kind kind = function < FUNCTIONS ? (enum kind)kinds_later[function] : UNKNOWN;
    if (reader->has_native && kind != FREES &&
        !memray_take_difference(&reader->input, &reader->last_native))
        return false;
    if (kind != FREES && !memray_take_varint(&reader->input, &size)) return false;
    return add_event(reader, kind, address, size, reader->has_native ? reader->last_native : 0);
}

// A Python object that began or ended; its memory is an allocation of its own.
static bool skip_object(struct memray *reader, unsigned flags) {
    uint64_t address;
    return take_address(reader, flags >> 1 & 15, &address) &&
           (!reader->has_native || !(flags & 1) ||
            memray_take_difference(&reader->input, &reader->last_native));
}

static bool read_frame_11(struct memray *reader) {
    return memray_take_difference(&reader->input, &reader->last_frame) &&
           memray_take_text(&reader->input, &reader->input.text) &&
           memray_take_text(&reader->input, &reader->input.second) &&
           memray_take_difference(&reader->input, (uint64_t *)&reader->last_line) &&
           (memray_add_frame(&reader->stacks, reader->last_frame, reader->input.text.text,
                             reader->input.second.text, reader->last_line) ||
            no_memory(reader));
}

// Kinds of records that all versions and forms share.
enum { NATIVE = 5, MAP_START = 6, SEGMENTS = 7, THREAD_NAME = 10, SWITCH = 12, CODE = 14 };

bool memray_read_common(struct memray *reader, unsigned kind) {
    switch (kind) {
    case NATIVE:
        return read_native(reader);
    case MAP_START:  // what was loaded before may still be in stacks
        return true;
    case SEGMENTS:
        return read_segments(reader);
    case THREAD_NAME:
        return memray_take_text(&reader->input, &reader->input.text);
    case SWITCH:
        return read_thread(reader);
    case CODE:
        if (reader->version >= VERSION_LATER) return read_code(reader);
        break;
    }
    return bad(reader, "a record of a kind that is not known");
}

static bool read_record_11(struct memray *reader, unsigned byte) {
    enum { OTHER, ALLOCATION, WITH_NATIVE, FRAME, PUSH, POP = 9, MEMORY = 11 };
    unsigned flags = byte >> 4;
    switch (byte & 15) {
    case OTHER:  // the trailer, or what was never written
        reader->has_ended = flags == 1;
        return reader->has_ended || memray_cut(&reader->input);
    case ALLOCATION:
    case WITH_NATIVE:
        return read_allocation_11(reader, flags, (byte & 15) == WITH_NATIVE);
    case FRAME:
        return read_frame_11(reader);
    case PUSH:
        return memray_take_difference(&reader->input, &reader->last_frame) &&
               push_frame(reader, memray_frame_place(&reader->stacks, reader->last_frame));
    case POP:
        return pop_frames(reader, flags + 1);
    case MEMORY:
        return read_memory(reader);
    default:
        return memray_read_common(reader, byte & 15);
    }
}

static bool read_push(struct memray *reader) {
    uint64_t code;
    int64_t instruction;
    return memray_take_varint(&reader->input, &code) &&
           memray_take_signed(&reader->input, &instruction) &&
           push_frame(reader, memray_code_place(&reader->stacks, code, instruction));
}

static bool read_record(struct memray *reader, unsigned byte) {
    enum { FILLER, TRAILER, MEMORY };
    if (byte & 128) return read_allocation(reader, byte & 127);
    if (byte & 64) return read_push(reader);
    if (byte & 32) return skip_object(reader, byte & 31);
    if (byte & 16) return pop_frames(reader, (byte & 15) + 1);
    if (byte == FILLER) return true;
    if (byte == MEMORY) return read_memory(reader);
    reader->has_ended = byte == TRAILER;
    return reader->has_ended || memray_read_common(reader, byte);
}

static bool read_all(struct memray *reader) {
    if (!read_version(reader) || !read_head(reader))
        return reader->input.is_cut ? error_set(reader->error, "memray: its head is cut off")
                                    : false;
    int byte;
    bool is_ok = true;
    while (is_ok && !reader->has_ended && (byte = getc(reader->input.in)) != EOF)
        is_ok = reader->is_aggregated                     ? memray_read_sums(reader, (unsigned)byte)
                : reader->version == MEMRAY_VERSION_LEAST ? read_record_11(reader, (unsigned)byte)
                                                          : read_record(reader, (unsigned)byte);
    if (!is_ok && !reader->input.is_cut) return false;
    if (reader->is_aggregated && !reader->has_ended)
        return error_set(reader->error, "memray: it is cut off (sums without their trailer)");
    if (reader->is_aggregated) return true;
    return replay_finish(&reader->replay, reader->error);
}

static void say_what_lacks(struct memray *reader) {
    struct imported *imported = reader->imported;
    uint64_t ms = reader->end_ms - reader->start_ms;
    if (ms < UINT64_MAX / MEMRAY_NS_PER_MS && ms * MEMRAY_NS_PER_MS > imported->duration_ns)
        imported->duration_ns = ms * MEMRAY_NS_PER_MS;
    if (reader->is_aggregated) {
        snprintf(imported->lacks, sizeof imported->lacks,
                 "calls and bytes of what was freed before the peak, threads");
        imported->is_partial = imported->has_no_calls = true;
    }
    if (!reader->is_aggregated && !reader->has_ended) {
        size_t used = strlen(imported->lacks);
        snprintf(imported->lacks + used, sizeof imported->lacks - used,
                 ", the end (the file is cut off)");
        imported->is_partial = true;
    }
}

bool import_is_memray(const char *head, size_t size) {
    static const char magic[] = "memray";
    return size >= sizeof magic && !memcmp(head, magic, sizeof magic);
}

bool import_memray(FILE *in, struct imported *imported, struct error *error) {
    struct memray *reader = calloc(1, sizeof *reader);
    if (!reader) return import_no_memory(error);
    reader->input.in = in;
    reader->input.error = error;
    reader->imported = imported;
    reader->error = error;
    reader->replay = (struct replay){.imported = imported, .lacks = "threads"};
    reader->stacks.imported = imported;
    bool is_ok = read_all(reader);
    if (is_ok) say_what_lacks(reader);
    memray_stacks_free(&reader->stacks);
    replay_free(&reader->replay);
    array_free(&reader->traces);
    free(reader->input.text.text);
    free(reader->input.second.text);
    free(reader);
    return is_ok;
}
