// SPDX-License-Identifier: Apache-2.0
// Heap profiles in Perfetto's traces, as heapprofd writes them (profile_packet.proto): a Trace is a
// list of TracePackets. What is interned, as strings, mappings, frames and callstacks, belongs to
// the sequence of its packet (or, on Android 10, to the profile's own packet); names of addresses
// may come at the very end (module_symbols). So the packets are gone through twice.
//
// Each dump of a process says what each stack allocated and freed since the start: the last dump is
// the end, and the one that holds most is the peak. A dump at the maximum has that alone.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tool/import/perfetto.h"

enum { PACKET = 1, SEQUENCE = 10, INTERNED = 12, PROFILE = 37, COMPRESSED = 50, SYMBOLS = 61 };
enum { UNPACKED_MAX = 1 << 28, PIDS_SHOWN = 6 };
// ---- dumps --------------------------------------------------------------------------------------

static int64_t number_of(uint64_t value) {
    const int64_t most = (int64_t)1 << 46;
    return value < (uint64_t)most ? (int64_t)value : most;
}

// Exclusive: what a stack holds is allocated - freed.
static bool read_sample(struct perfetto *reader, struct span span) {
    enum { CALLSTACK = 1, ALLOCATED, FREED, CALLS = 5, FREES, MAX = 8, MAX_CALLS, VALUES };
    uint64_t values[VALUES] = {0};
    uint32_t node;
    if (!span_integers(span, values, VALUES)) return perfetto_bad(reader, "a sample is damaged");
    if (!perfetto_node_of(reader, values[CALLSTACK], &node)) return false;
    struct import_values sums = {.calls = number_of(values[CALLS]),
                                 .allocated_bytes = number_of(values[ALLOCATED])};
    sums.exit_bytes = sums.allocated_bytes - number_of(values[FREED]);
    sums.exit_blocks = sums.calls - number_of(values[FREES]);
    if (values[MAX]) {
        reader->has_max = true;
        sums.exit_bytes = sums.allocated_bytes = number_of(values[MAX]);
        sums.exit_blocks = sums.calls = number_of(values[MAX_CALLS]);
    }
    if (sums.exit_bytes < 0) sums.exit_bytes = 0;
    if (sums.exit_blocks < 0) sums.exit_blocks = 0;
    if (sums.exit_bytes && !sums.exit_blocks) sums.exit_blocks = 1;
    if (sums.calls < sums.exit_blocks) sums.calls = sums.exit_blocks;
    struct import_stack *slot = array_push(&reader->current);
    if (!slot) return import_no_memory(reader->error);
    *slot = (struct import_stack){node, sums};
    return true;
}

static bool note_pid(struct perfetto *reader, uint64_t pid) {
    for (size_t i = 0; i < reader->pids.count; i++)
        if (reader->pids.items[i] == pid) return true;
    uint64_t *slot = array_push(&reader->pids);
    if (slot) *slot = pid;
    return slot || import_no_memory(reader->error);
}

static void note_heap(struct perfetto *reader, struct span span) {
    char *text = span_text(span);
    uint32_t name = strings_number(&reader->imported->strings, text);
    free(text);
    reader->has_other_heap |= reader->heap_name && reader->heap_name != name;
    reader->heap_name = name;
}

static bool read_process(struct perfetto *reader, struct span span) {
    enum {
        REJECTED = 4,
        OVERRAN = 7,
        CORRUPTED = 8,
        TIME = 9,
        GUARDRAIL,
        INTERVAL = 12,
        CLIENT_ERROR = 14,
        START,
        VALUES
    };
    uint64_t values[VALUES] = {0};
    struct field field;
    if (!span_integers(span, values, VALUES)) return perfetto_bad(reader, "a dump is damaged");
    uint64_t pid = values[1];
    if (!note_pid(reader, pid)) return false;
    if (!reader->pid) reader->pid = pid;
    if (pid != reader->pid) return true;
    reader->has_dump = true;
    reader->is_lossy |= values[REJECTED] || values[OVERRAN] || values[CORRUPTED] ||
                        values[GUARDRAIL] || values[CLIENT_ERROR];
    if (values[INTERVAL]) reader->interval_bytes = values[INTERVAL];
    if (!reader->start_ns) reader->start_ns = values[START] ? values[START] : values[TIME];
    reader->at_ns = values[TIME] > reader->start_ns ? values[TIME] - reader->start_ns : 0;
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return perfetto_bad(reader, "a dump is damaged");
        if (field.number == 11 && field.is_bytes) note_heap(reader, field.bytes);
        if (field.number == 2 && field.is_bytes && !read_sample(reader, field.bytes)) return false;
    }
    return true;
}

#define MOVE(to, from)                                                                             \
    (array_free(&(to)), (to).items = (from).items, (to).count = (from).count,                      \
     (to).capacity = (from).capacity)

static bool end_dump(struct perfetto *reader) {
    int64_t bytes = 0;
    struct imported *imported = reader->imported;
    for (size_t i = 0; i < reader->current.count; i++) {
        int64_t held = reader->current.items[i].values.exit_bytes;
        bytes = bytes < INT64_MAX - held ? bytes + held : bytes;
    }
    struct import_point *point = array_push(&imported->points);
    if (!point) return import_no_memory(reader->error);
    *point = (struct import_point){reader->at_ns, bytes};
    imported->duration_ns = reader->at_ns + 1;
    if (bytes >= reader->peak_bytes) {
        reader->peak_bytes = bytes;
        imported->peak_ns = reader->at_ns;
        reader->peak.count = 0;
        for (size_t i = 0; i < reader->current.count; i++) {
            struct import_stack *slot = array_push(&reader->peak);
            if (!slot) return import_no_memory(reader->error);
            *slot = reader->current.items[i];
        }
    }
    MOVE(reader->last, reader->current);
    reader->current.items = NULL;
    reader->current.count = reader->current.capacity = 0;
    reader->has_dump = false;
    return true;
}

static bool read_profile(struct perfetto *reader, struct span span) {
    enum { DUMP = 5, CONTINUED = 6, VALUES };
    uint64_t values[VALUES] = {0}, sequence = reader->sequence;
    struct field field;
    if (!span_integers(span, values, VALUES)) return perfetto_bad(reader, "a profile is damaged");
    for (struct span rest = span; rest.at < rest.end;) {
        if (!span_field(&rest, &field)) return perfetto_bad(reader, "a profile is damaged");
        if (field.number == DUMP && field.is_bytes && !read_process(reader, field.bytes))
            return false;
    }
    reader->sequence = sequence;
    return values[CONTINUED] || !reader->has_dump || end_dump(reader);
}

// ---- packets ------------------------------------------------------------------------------------

static bool read_packets(struct perfetto *reader, struct span trace, unsigned depth);

static bool unpack(struct perfetto *reader, struct span span, unsigned depth) {
    uint8_t **slot = depth ? NULL : array_push(&reader->unpacked);
    if (!slot)
        return depth ? perfetto_bad(reader, "compressed packets within such")
                     : import_no_memory(reader->error);
    *slot = NULL;
    uLongf size = 0;
    int status = Z_BUF_ERROR;
    for (uLongf room = 1 << 18; status == Z_BUF_ERROR && room <= UNPACKED_MAX; room *= 4) {
        free(*slot);
        *slot = malloc(room);
        size = room;
        if (!*slot) return import_no_memory(reader->error);
        status = uncompress(*slot, &size, span.at, (uLong)(span.end - span.at));
    }
    if (status != Z_OK) return perfetto_bad(reader, "compressed packets are damaged");
    return read_packets(reader, (struct span){*slot, *slot + size}, depth + 1);
}

static bool read_packet(struct perfetto *reader, struct span packet, unsigned depth) {
    uint64_t values[SEQUENCE + 1] = {0};
    struct field field;
    if (!span_integers(packet, values, SEQUENCE + 1))
        return perfetto_bad(reader, "a packet is damaged");
    while (packet.at < packet.end) {
        reader->sequence = values[SEQUENCE];
        if (!span_field(&packet, &field)) return perfetto_bad(reader, "a packet is damaged");
        if (!field.is_bytes) continue;
        bool is_ok = true;
        if (field.number == COMPRESSED)
            is_ok = unpack(reader, field.bytes, depth);
        else if (reader->is_profile_pass)
            is_ok = field.number != PROFILE || read_profile(reader, field.bytes);
        else if (field.number == INTERNED)
            is_ok = perfetto_intern(reader, field.bytes, perfetto_of_sequence);
        else if (field.number == PROFILE)
            is_ok = perfetto_intern(reader, field.bytes, perfetto_of_profile);
        else if (field.number == SYMBOLS)
            is_ok = perfetto_read_symbols(reader, field.bytes);
        if (!is_ok) return false;
    }
    return true;
}

static bool read_packets(struct perfetto *reader, struct span trace, unsigned depth) {
    struct field field;
    while (trace.at < trace.end) {
        if (!span_field(&trace, &field))
            return perfetto_bad(reader, "the trace is damaged or cut off");
        if (field.number == PACKET && field.is_bytes && !read_packet(reader, field.bytes, depth))
            return false;
    }
    return true;
}

static bool check_process(struct perfetto *reader) {
    char known[IMPORT_TEXT_BYTES / 4] = "";
    for (size_t i = 0; i < reader->pids.count && i < PIDS_SHOWN; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%" PRIu64, used ? ", " : "",
                 reader->pids.items[i]);
    }
    if (!reader->pids.count) return perfetto_bad(reader, "no heap profile in this trace");
    if (!reader->imported->points.count)
        return error_set(reader->error, "perfetto: no dump of process %" PRIu64 " in it, but of %s",
                         reader->pid, known);
    if (reader->pids.count == 1 || reader->has_chosen) return true;
    return error_set(reader->error, "perfetto: heap profiles of the processes %s: --process PID",
                     known);
}

static bool add_stacks(struct perfetto *reader) {
    for (size_t i = 0; i < reader->last.count; i++) {
        struct import_values values = reader->last.items[i].values;
        if (reader->has_max) values.exit_bytes = values.exit_blocks = 0;
        if (!import_node(reader->imported, reader->last.items[i].node, &values))
            return import_no_memory(reader->error);
    }
    for (size_t i = 0; i < reader->peak.count; i++) {
        const struct import_values *held = &reader->peak.items[i].values;
        const struct import_values values = {.peak_bytes = held->exit_bytes,
                                             .peak_blocks = held->exit_blocks};
        if (!import_node(reader->imported, reader->peak.items[i].node, &values))
            return import_no_memory(reader->error);
    }
    return true;
}

static void say_what_lacks(const struct perfetto *reader) {
    struct imported *imported = reader->imported;
    char sampled[128] = "";
    if (reader->interval_bytes > 1)
        snprintf(sampled, sizeof sampled, " (sampled: about one block every %" PRIu64 " bytes)",
                 reader->interval_bytes);
    imported->is_partial = true;
    imported->has_no_calls = reader->has_max;
    imported->pid = (uint32_t)reader->pid;
    snprintf(imported->lacks, sizeof imported->lacks,
             "%s%swhat was live between the dumps, threads%s%s%s",
             reader->has_max ? "all but the maximum, " : "",
             reader->interval_bytes > 1 ? "calls and blocks that were not sampled, " : "",
             reader->has_other_heap ? ", which heap it is of (several are added up)" : "",
             reader->is_lossy ? ", what was lost: the profiler's buffer overran or it gave up" : "",
             sampled);
}

static bool read_all(struct perfetto *reader, struct span trace) {
    if (!read_packets(reader, trace, 0)) return false;
    reader->is_profile_pass = true;
    return read_packets(reader, trace, 0) && (!reader->has_dump || end_dump(reader)) &&
           check_process(reader) && add_stacks(reader);
}

// The first field of the first packet: no pprof begins so, whose first message has numbers 1 and 2.
bool import_is_perfetto(const char *head, size_t size) {
    struct span span = {(const uint8_t *)head, (const uint8_t *)head + size};
    uint64_t length, tag;
    if (import_is_heaptrack(head, size)) return false;  // its first byte may be a newline
    if (size < 4 || *span.at++ != (PACKET << WIRE_BITS | WIRE_BYTES)) return false;
    if (!span_varint(&span, &length) || !length || !span_varint(&span, &tag)) return false;
    unsigned wire = tag & ((1u << WIRE_BITS) - 1);
    uint64_t number = tag >> WIRE_BITS;
    bool is_value_type = wire == WIRE_VARINT && (number == 1 || number == 2);
    enum { NUMBERS = 1000 };  // TracePacket has so many fields and no more
    return (wire == WIRE_VARINT || wire == WIRE_BYTES) && number && number < NUMBERS &&
           !is_value_type;
}

bool import_perfetto(FILE *in, struct imported *imported, struct error *error) {
    struct perfetto *reader = calloc(1, sizeof *reader);
    struct span trace = {0};
    if (!reader) return import_no_memory(error);
    reader->imported = imported;
    reader->error = error;
    reader->pid = imported->wanted_pid;
    reader->has_chosen = reader->pid != 0;
    uint8_t *bytes = span_load(in, &trace);
    bool is_ok = bytes ? read_all(reader, trace)
                       : perfetto_bad(reader, "no memory for it, or it is larger than 1 GiB");
    say_what_lacks(reader);
    for (size_t i = 0; i < reader->unpacked.count; i++) free(reader->unpacked.items[i]);
    array_free(&reader->unpacked);
    array_free(&reader->entries);
    array_free(&reader->symbols);
    index_table_free(&reader->entry_table);
    index_table_free(&reader->symbol_table);
    array_free(&reader->pids);
    array_free(&reader->current);
    array_free(&reader->last);
    array_free(&reader->peak);
    free(bytes);
    free(reader);
    return is_ok;
}
