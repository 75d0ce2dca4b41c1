// SPDX-License-Identifier: Apache-2.0
// heaptrack's data after its interpreter: lines of a letter and hexadecimal numbers. Texts,
// instruction pointers, traces and kinds of allocations are numbered as they come (from 1, the last
// from 0); then
// `+ KIND` and `- KIND` are allocations and frees in their order, so that everything is exact. The
// highest total is found by going through the events; what each stack held then is saved when it
// changes for the first time afterwards, as in a recording of cairn. A file ends with comments that
// count its texts and pointers; what has none was cut off, and is read up to there.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/import.h"

enum { VERSION_LEAST = 1, VERSION_MOST = 3, FIELDS_MAX = 512, TRACES_MAX = 1 << 26 };
static const uint64_t ns_per_ms = 1000000;
static const int64_t bytes_max = (int64_t)1 << 46;

struct kind {
    uint64_t bytes;
    uint32_t trace;
    int64_t calls, frees;
    int64_t peak_blocks;  // live when the heap was at its peak, if `epoch` is that of the peak
    uint32_t epoch;
    int64_t temporary;
};

struct reader {
    FILE *in;
    struct imported *imported;
    struct error *error;
    char *line;
    size_t line_room, line_number;
    uint64_t version;
    ARRAY(uint32_t) texts;   // number in the imported's strings, by heaptrack's number - 1
    ARRAY(uint32_t) places;  // by pointer - 1
    ARRAY(uint32_t) nodes;   // by trace - 1
    ARRAY(struct kind) kinds;
    int64_t live_bytes, peak_bytes;
    uint32_t epoch, peak_epoch;
    uint64_t now_ns, page_bytes;
    int64_t noted_bytes;  // highest since the last point
    size_t last;          // number of the kind + 1, if the last event was an allocation
    uint64_t fields[FIELDS_MAX];
    size_t field_count;
    bool has_end;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "heaptrack: line %zu: %s", reader->line_number, what);
}

static bool read_fields(struct reader *reader) {
    char *at = reader->line + 1;
    for (reader->field_count = 0; reader->field_count < FIELDS_MAX; reader->field_count++) {
        at += strspn(at, " ");
        if (!*at) return true;
        char *end;
        reader->fields[reader->field_count] = strtoull(at, &end, 16);
        if (end == at) return bad(reader, "what should be a number is none");
        at = end;
    }
    return bad(reader, "too many numbers");
}

static bool needs(struct reader *reader, size_t count) {
    return reader->field_count >= count || bad(reader, "a number is missing");
}

static const char *text_of(const struct reader *reader, uint64_t number) {
    if (!number || number > reader->texts.count) return NULL;
    return reader->imported->strings.list.items[reader->texts.items[number - 1]];
}

// Later versions put a text's length in front of it; what fits is taken for that.
static const char *skip_length(const char *text) {
    char *end;
    unsigned long length = strtoul(text, &end, 16);
    bool has_length = end != text && *end == ' ' && strlen(end + 1) == length;
    return has_length ? end + 1 : text;
}

static bool add_text(struct reader *reader) {
    const char *text = skip_length(reader->line + 1 + (reader->line[1] == ' '));
    uint32_t *slot = array_push(&reader->texts);
    if (!slot) return import_no_memory(reader->error);
    *slot = strings_number(&reader->imported->strings, text);
    return true;
}

static bool add_pointer(struct reader *reader) {
    enum { ADDRESS_BYTES = 24, HEAD = 2, FRAME = 3 };
    struct imported *imported = reader->imported;
    const uint64_t *fields = reader->fields;
    if (!read_fields(reader) || !needs(reader, 1)) return false;
    size_t count = reader->field_count;
    uint32_t module = import_module(imported, count > 1 ? text_of(reader, fields[1]) : NULL);
    uint32_t *slot = array_push(&reader->places), place = import_place(imported, module);
    if (!slot || place == IMPORT_NONE) return import_no_memory(reader->error);
    *slot = place;
    char address[ADDRESS_BYTES];
    snprintf(address, sizeof address, "0x%" PRIx64, fields[0]);
    bool is_ok = true;
    if (count <= HEAD) is_ok = import_frame(imported, address, NULL, 0);
    // the last frame may lack its line
    for (size_t i = HEAD; i < count && is_ok; i += FRAME) {
        const char *function = text_of(reader, fields[i]);
        const char *file = i + 1 < count ? text_of(reader, fields[i + 1]) : NULL;
        uint32_t line = i + 2 < count ? (uint32_t)fields[i + 2] : 0;
        is_ok = import_frame(imported, function ? function : address, file, line);
    }
    return is_ok || import_no_memory(reader->error);
}

static bool add_trace(struct reader *reader) {
    if (!read_fields(reader) || !needs(reader, 2)) return false;
    uint64_t pointer = reader->fields[0], parent = reader->fields[1];
    if (!pointer || pointer > reader->places.count)
        return bad(reader, "a pointer that is not there");
    if (parent > reader->nodes.count) return bad(reader, "a trace that is not there");
    uint32_t node = parent ? reader->nodes.items[parent - 1] : TREE_ROOT;
    uint32_t *slot = reader->nodes.count < TRACES_MAX ? array_push(&reader->nodes) : NULL;
    if (!slot) return import_no_memory(reader->error);
    return tree_child(&reader->imported->tree, node, reader->places.items[pointer - 1], slot) ||
           import_no_memory(reader->error);
}

static bool add_kind(struct reader *reader) {
    if (!read_fields(reader) || !needs(reader, 2)) return false;
    uint64_t bytes = reader->fields[0], trace = reader->fields[1];
    if (trace > reader->nodes.count) return bad(reader, "a trace that is not there");
    if (bytes > (uint64_t)bytes_max) return bad(reader, "a block that is too large");
    struct kind *kind = array_push(&reader->kinds);
    if (!kind) return import_no_memory(reader->error);
    *kind = (struct kind){.bytes = bytes, .trace = (uint32_t)trace};
    return true;
}

static bool find_kind(struct reader *reader, struct kind **kind) {
    if (!read_fields(reader) || !needs(reader, 1)) return false;
    uint64_t number = reader->fields[0];
    if (number >= reader->kinds.count) return bad(reader, "an allocation that is not there");
    *kind = &reader->kinds.items[number];
    return true;
}

// A change that comes after the peak saves what was there before.
static void turn(struct reader *reader, struct kind *kind) {
    if (kind->epoch >= reader->epoch) return;
    kind->peak_blocks = kind->calls - kind->frees;
    kind->epoch = reader->epoch;
}

static bool allocate(struct reader *reader) {
    struct kind *kind = NULL;
    if (!find_kind(reader, &kind) || !kind) return false;
    turn(reader, kind);
    reader->last = (size_t)(kind - reader->kinds.items) + 1;
    kind->calls++;
    reader->live_bytes += (int64_t)kind->bytes;
    if (reader->live_bytes > bytes_max) return bad(reader, "more memory than there can be");
    if (reader->live_bytes > reader->noted_bytes) reader->noted_bytes = reader->live_bytes;
    return true;
}

// The free that leaves a peak moves the epoch: all that has not changed since was so at the peak.
static bool release(struct reader *reader) {
    struct kind *kind = NULL;
    if (!find_kind(reader, &kind) || !kind) return false;
    if (kind->frees >= kind->calls) return bad(reader, "a free of what is not allocated");
    if (reader->live_bytes > reader->peak_bytes) {
        reader->peak_bytes = reader->live_bytes;
        reader->imported->peak_ns = reader->now_ns;
        reader->peak_epoch = ++reader->epoch;
    }
    turn(reader, kind);
    // as heaptrack has it: the free right behind the allocation
    kind->temporary += reader->last == (size_t)(kind - reader->kinds.items) + 1;
    reader->last = 0;
    kind->frees++;
    reader->live_bytes -= (int64_t)kind->bytes;
    return true;
}

static bool move_time(struct reader *reader) {
    if (!read_fields(reader) || !needs(reader, 1)) return false;
    struct import_point *point = array_push(&reader->imported->points);
    if (!point) return import_no_memory(reader->error);
    *point = (struct import_point){reader->now_ns, reader->noted_bytes};
    reader->noted_bytes = reader->live_bytes;
    uint64_t now_ms = reader->fields[0];
    if (now_ms < UINT64_MAX / ns_per_ms && now_ms * ns_per_ms > reader->now_ns)
        reader->now_ns = now_ms * ns_per_ms;
    return true;
}

static bool read_rss(struct reader *reader) {
    if (!read_fields(reader) || !needs(reader, 1)) return false;
    uint64_t bytes;
    if (__builtin_mul_overflow(reader->fields[0], reader->page_bytes, &bytes)) return true;
    if (bytes > reader->imported->rss_peak_bytes) reader->imported->rss_peak_bytes = bytes;
    return true;
}

static bool read_head(struct reader *reader) {
    if (!read_fields(reader) || !needs(reader, 1)) return false;
    reader->version = reader->field_count > 1 ? reader->fields[1] : 0;
    if (reader->version >= VERSION_LEAST && reader->version <= VERSION_MOST) return true;
    return error_set(reader->error, "heaptrack: file version %" PRIu64 ", but %d to %d are read",
                     reader->version, VERSION_LEAST, VERSION_MOST);
}

static bool is_trailer(const char *line) {
    return !strncmp(line, "# strings:", 10) || !strncmp(line, "# ips:", 6);
}

// The first release of cairn exported files without one.
static bool has_no_trailer(const char *line) {
    return !strncmp(line, "# cairn ", 8);
}

static bool read_line(struct reader *reader) {
    struct imported *imported = reader->imported;
    switch (*reader->line) {
    case 'v':
        return read_head(reader);
    case 'X':
        snprintf(imported->command, sizeof imported->command, "%s",
                 reader->line + 1 + (reader->line[1] == ' '));
        return true;
    case 'I':
        if (!read_fields(reader) || !needs(reader, 1)) return false;
        reader->page_bytes = reader->fields[0];
        return true;
    case 's':
        return add_text(reader);
    case 'i':
        return add_pointer(reader);
    case 't':
        return add_trace(reader);
    case 'a':
        return add_kind(reader);
    case '+':
        return allocate(reader);
    case '-':
        return release(reader);
    case 'c':
        return move_time(reader);
    case 'R':
        return read_rss(reader);
    case 'x':
    case 'm':
        return error_set(reader->error, "heaptrack: this is raw data (heaptrack --raw); "
                                        "heaptrack_interpret turns it into what can be read");
    case '#':
        reader->has_end |= is_trailer(reader->line) || has_no_trailer(reader->line);
        return true;
    default:  // suppressions, and what later versions add
        return true;
    }
}

static bool read_all(struct reader *reader) {
    ssize_t length;
    while ((length = getline(&reader->line, &reader->line_room, reader->in)) > 0) {
        reader->line_number++;
        // heaptrack ends its data in the middle of a line if the program was killed
        if (reader->line[length - 1] != '\n') break;
        reader->line[length - 1] = 0;
        if (!*reader->line) continue;
        if (!reader->version && is_trailer(reader->line))
            return error_set(reader->error, "heaptrack: it has an end and no data: the program "
                                            "ended before anything was recorded");
        if (!reader->version && *reader->line != 'v') return bad(reader, "no version");
        if (length > 1 && !read_line(reader)) return false;
    }
    return reader->line_number || bad(reader, "it is empty");
}

static bool add_stacks(struct reader *reader) {
    bool is_peak_now = reader->live_bytes > reader->peak_bytes;
    if (is_peak_now) reader->imported->peak_ns = reader->now_ns;
    for (size_t i = 0; i < reader->kinds.count; i++) {
        const struct kind *kind = &reader->kinds.items[i];
        int64_t bytes = (int64_t)kind->bytes, live = kind->calls - kind->frees;
        bool is_saved = kind->epoch >= reader->peak_epoch && !is_peak_now;
        int64_t at_peak = is_saved ? kind->peak_blocks : live;
        struct import_values values = {.calls = kind->calls,
                                       .peak_blocks = at_peak,
                                       .exit_blocks = live,
                                       .temporary = kind->temporary};
        // a made-up file may have more of them than any address space
        if (__builtin_mul_overflow(kind->calls, bytes, &values.allocated_bytes) ||
            __builtin_mul_overflow(at_peak, bytes, &values.peak_bytes) ||
            __builtin_mul_overflow(live, bytes, &values.exit_bytes))
            return bad(reader, "more memory than there can be");
        uint32_t node = kind->trace ? reader->nodes.items[kind->trace - 1] : TREE_ROOT;
        if (!import_node(reader->imported, node, &values)) return import_no_memory(reader->error);
    }
    return true;
}

bool import_is_heaptrack(const char *head, size_t size) {
    unsigned version, format;
    char line[IMPORT_HEAD_BYTES + 1] = "";
    memcpy(line, head, size < IMPORT_HEAD_BYTES ? size : IMPORT_HEAD_BYTES);
    return sscanf(line, "v %x %x\n", &version, &format) == 2 ||
           is_trailer(line + strspn(line, "\n"));
}

bool import_heaptrack(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {
        .in = in, .imported = imported, .error = error, .page_bytes = 4096, .epoch = 0};
    bool is_ok = read_all(&reader) && add_stacks(&reader);
    imported->duration_ns = reader.now_ns;
    imported->has_temporary = true;
    imported->is_cut |= !reader.has_end;
    snprintf(imported->lacks, sizeof imported->lacks, "threads");
    free(reader.line);
    array_free(&reader.texts);
    array_free(&reader.places);
    array_free(&reader.nodes);
    array_free(&reader.kinds);
    return is_ok;
}
