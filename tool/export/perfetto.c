// SPDX-License-Identifier: Apache-2.0
// Perfetto: a trace with a dump of the heap profile for each moment (snapshots, the peak, the end),
// and counters: the live heap, resident memory, and the rates of allocation. Times are those of
// CLOCK_MONOTONIC, so that the trace goes with one of the system.
//
// A dump says for each stack what was allocated and freed up to then. Of a snapshot only what was
// live is known: what it rose from one moment to the next counts as allocated, what it fell as
// freed, and the last dump, of the end, has all that was allocated. So live bytes are exact in each
// dump, and sums of allocations in the last one.
//
// Names, frames and stacks come first, as entries that the dumps refer to.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/protobuf.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/export/moments.h"
#include "tool/model/strings.h"

// Fields of the public schema (protos/perfetto/trace). A trace is packets.
enum { TRACE_PACKET = 1 };
enum packet_field {
    PACKET_CLOCKS = 6,
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_PROFILE = 37,
    PACKET_CLOCK = 58,
    PACKET_TRACK = 60,
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2, SEQUENCE = 1 };
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_COARSE_ID = 4, CLOCK_BOOTTIME_ID = 6 };
enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_DESCRIPTION = 14
};
enum { PROCESS_PID = 1, PROCESS_COMMAND = 2, PROCESS_NAME = 6, PROCESS_LABELS = 8 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23, EVENT_VALUE = 30 };
enum { TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum interned_field {
    INTERNED_FUNCTION = 5,
    INTERNED_FRAME = 6,
    INTERNED_STACK = 7,
    INTERNED_BUILD_ID = 16,
    INTERNED_PATH = 17,
    INTERNED_SOURCE = 18,
    INTERNED_MAPPING = 19
};
enum { ENTRY_ID = 1, ENTRY_TEXT = 2 };
enum mapping_field { MAPPING_BUILD_ID = 2, MAPPING_START = 4, MAPPING_END = 5, MAPPING_PATH = 7 };
enum frame_field {
    FRAME_FUNCTION = 2,
    FRAME_MAPPING = 3,
    FRAME_ADDRESS = 4,
    FRAME_SOURCE = 5,
    FRAME_LINE = 6
};
enum { STACK_FRAMES = 2 };
enum { PROFILE_DUMP = 5, PROFILE_CONTINUED = 6, PROFILE_INDEX = 7 };
enum dump_field {
    DUMP_PID = 1,
    DUMP_SAMPLE = 2,
    DUMP_FROM_START = 3,
    DUMP_TIME = 9,
    DUMP_HEAP = 11,
    DUMP_RATE = 12,
    DUMP_RATE_FIRST = 13
};
enum sample_field {
    SAMPLE_STACK = 1,
    SAMPLE_ALLOCATED = 2,
    SAMPLE_FREED = 3,
    SAMPLE_CALLS = 5,
    SAMPLE_FREES = 6
};

// Readers take packets of any size; small ones need little memory.
enum { PACKET_BYTES = 1 << 16, SAFE_BYTES = 4 };

struct counter {
    const char *name;
    int unit;
    const char *unit_name;  // instead of the unit
};
enum { LIVE, RESIDENT, SWAPPED, ALLOCATED_RATE, CALLS_RATE, COUNTERS };
enum { TRACK_OF_PROCESS = COUNTERS, TRACK_OF_MOMENTS };
static const struct counter counters[COUNTERS] = {
    [LIVE] = {"live heap", UNIT_BYTES, NULL},
    [RESIDENT] = {"resident memory", UNIT_BYTES, NULL},
    [SWAPPED] = {"swapped out", UNIT_BYTES, NULL},
    [ALLOCATED_RATE] = {"allocated per second", 0, "B/s"},
    [CALLS_RATE] = {"allocations per second", 0, "1/s"},
};

// What a stack did up to the last dump.
struct so_far {
    uint64_t allocated_bytes, freed_bytes, calls, frees;
    struct live_at live;
};

struct writer {
    FILE *out;
    const struct export *export;
    const struct cairn_header *header;
    struct frame_table frames;
    struct strings functions, sources;
    struct byte_buffer packet, interned, part, inner;
    struct so_far *so_far;  // by place of the stack in the profile
    uint64_t profile_index;
    bool was_cleared;  // the first packet with entries was written
};

// --- packets

static void write_packet(struct writer *writer) {
    message_write(writer->out, TRACE_PACKET, &writer->packet);
}

static void put_time(struct writer *writer, uint64_t at_ns) {
    message_put_always(&writer->packet, PACKET_TIME, writer->header->start_clock_ns + at_ns);
    message_put(&writer->packet, PACKET_CLOCK, CLOCK_MONOTONIC_ID);
    message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
}

// All clocks at the start of the recording; that of the machine's boot is taken to have stood still
// for no time.
static void write_clocks(struct writer *writer) {
    const uint64_t clock_ns = writer->header->start_clock_ns;
    const uint64_t times[][2] = {{CLOCK_BOOTTIME_ID, clock_ns},
                                 {CLOCK_MONOTONIC_ID, clock_ns},
                                 {CLOCK_COARSE_ID, clock_ns},
                                 {CLOCK_REALTIME_ID, writer->header->start_unix_ns}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        message_put(&writer->inner, CLOCK_ID, times[i][0]);
        message_put_always(&writer->inner, CLOCK_TIME, times[i][1]);
        message_put_message(&writer->part, CLOCKS_CLOCK, &writer->inner);
    }
    message_put_message(&writer->packet, PACKET_CLOCKS, &writer->part);
    message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
    write_packet(writer);
}

// The same process has the same tracks, whatever else is in the trace.
static uint64_t track_of(const struct writer *writer, unsigned track) {
    return hash_mix(writer->header->start_clock_ns ^ (uint64_t)writer->header->pid << 32,
                    track + 1) |
           1;
}

static void write_tracks(struct writer *writer) {
    const struct export *export = writer->export;
    char command[CAIRN_TEXT_COMMAND * SAFE_BYTES];
    text_escape(command, sizeof command, export->command);
    const uint64_t process = track_of(writer, TRACK_OF_PROCESS);
    message_put_always(&writer->inner, PROCESS_PID, writer->header->pid);
    message_put_text(&writer->inner, PROCESS_COMMAND, command);
    message_put_text(&writer->inner, PROCESS_NAME, export->program);
    message_put_text(&writer->inner, PROCESS_LABELS, export->trust);
    message_put(&writer->part, TRACK_UUID, process);
    message_put_message(&writer->part, TRACK_PROCESS, &writer->inner);
    message_put_message(&writer->packet, PACKET_TRACK, &writer->part);
    message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
    write_packet(writer);
    message_put(&writer->part, TRACK_UUID, track_of(writer, TRACK_OF_MOMENTS));
    message_put_text(&writer->part, TRACK_NAME, "heap profiles");
    message_put(&writer->part, TRACK_PARENT, process);
    message_put_message(&writer->packet, PACKET_TRACK, &writer->part);
    message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
    write_packet(writer);
    for (unsigned i = 0; i < COUNTERS; i++) {
        message_put(&writer->inner, COUNTER_UNIT, (uint64_t)counters[i].unit);
        if (counters[i].unit_name)
            message_put_text(&writer->inner, COUNTER_UNIT_NAME, counters[i].unit_name);
        message_put(&writer->part, TRACK_UUID, track_of(writer, i));
        message_put_text(&writer->part, TRACK_NAME, counters[i].name);
        message_put(&writer->part, TRACK_PARENT, process);
        message_put_message(&writer->part, TRACK_COUNTER, &writer->inner);
        message_put_message(&writer->packet, PACKET_TRACK, &writer->part);
        message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
        write_packet(writer);
    }
}

static void write_count(struct writer *writer, unsigned counter, uint64_t at_ns, uint64_t value) {
    put_time(writer, at_ns);
    message_put(&writer->part, EVENT_TYPE, TYPE_COUNTER);
    message_put(&writer->part, EVENT_TRACK, track_of(writer, counter));
    message_put_always(&writer->part, EVENT_VALUE, value);
    message_put_message(&writer->packet, PACKET_EVENT, &writer->part);
    write_packet(writer);
}

// Which dump of the heap is of what: they have no names of their own.
static void write_name(struct writer *writer, const struct moment *moment) {
    char name[2 * CAIRN_LABEL_BYTES * SAFE_BYTES], label[CAIRN_LABEL_BYTES * SAFE_BYTES];
    text_escape(label, sizeof label, moment->label ? moment->label : "");
    snprintf(name, sizeof name, "%s%s%s", moment->name, *label ? ": " : "", label);
    put_time(writer, moment->at_ns);
    message_put(&writer->part, EVENT_TYPE, TYPE_INSTANT);
    message_put(&writer->part, EVENT_TRACK, track_of(writer, TRACK_OF_MOMENTS));
    message_put_text(&writer->part, EVENT_NAME, name);
    message_put_message(&writer->packet, PACKET_EVENT, &writer->part);
    write_packet(writer);
}

// --- counters

static uint64_t per_second(uint64_t amount, uint64_t ns) {
    const double ns_per_s = 1e9, most = 0x1p63;  // a damaged recording may claim anything
    double rate = ns ? (double)amount * ns_per_s / (double)ns : 0;
    return rate < most ? (uint64_t)rate : 0;
}

// The rate of an interval stands at its start. A point has the totals up to its last note.
static void write_points(struct writer *writer) {
    const struct recording *recording = writer->export->profile->recording;
    const uint64_t point_ns = recording->header.totals.point_ns;
    const int64_t peak_bytes = writer->export->profile->peak.bytes;
    uint64_t end_ns = recording_last_ns(recording), from_ns = 0, bytes = 0, calls = 0;
    struct cairn_point point;
    for (size_t i = 0; point_ns && recording_point(recording, i, &point); i++) {
        uint64_t at_ns, to_ns;
        if (__builtin_mul_overflow((uint64_t)i, point_ns, &at_ns) || at_ns > end_ns) break;
        if (!point.is_used) continue;
        to_ns = at_ns + point_ns < end_ns ? at_ns + point_ns : end_ns;
        // threads hold a little back before they note it; the peak is exact
        int64_t most = point.max_bytes < peak_bytes ? point.max_bytes : peak_bytes;
        write_count(writer, LIVE, at_ns, most > 0 ? (uint64_t)most : 0);
        if (point.allocated_bytes >= bytes && point.allocations >= calls && to_ns > from_ns) {
            write_count(writer, ALLOCATED_RATE, from_ns,
                        per_second(point.allocated_bytes - bytes, to_ns - from_ns));
            write_count(writer, CALLS_RATE, from_ns,
                        per_second(point.allocations - calls, to_ns - from_ns));
        }
        from_ns = to_ns;
        bytes = point.allocated_bytes;
        calls = point.allocations;
    }
}

static void write_resident(struct writer *writer) {
    const struct recording *recording = writer->export->profile->recording;
    struct cairn_resident resident;
    uint64_t swapped = 0;
    for (size_t i = 0; recording_resident(recording, i, &resident); i++) {
        if (!resident.rss_bytes) continue;
        write_count(writer, RESIDENT, resident.at_ns, resident.rss_bytes);
        if (resident.swap_bytes != swapped)
            write_count(writer, SWAPPED, resident.at_ns, resident.swap_bytes);
        swapped = resident.swap_bytes;
    }
}

// --- entries that dumps refer to

static void write_interned(struct writer *writer, size_t least) {
    if (writer->interned.size < least || !writer->interned.size) return;
    message_put_message(&writer->packet, PACKET_INTERNED, &writer->interned);
    message_put(&writer->packet, PACKET_FLAGS,
                writer->was_cleared ? FLAG_NEEDS_STATE : FLAG_CLEARED);
    message_put(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
    write_packet(writer);
    writer->was_cleared = true;
}

static void put_entry(struct writer *writer, unsigned field) {
    message_put_message(&writer->interned, field, &writer->inner);
    write_interned(writer, PACKET_BYTES);
}

static void put_text(struct writer *writer, unsigned field, uint64_t id, const void *text,
                     size_t size) {
    message_put(&writer->inner, ENTRY_ID, id);
    message_put_bytes(&writer->inner, ENTRY_TEXT, text, size);
    put_entry(writer, field);
}

// The number of a text, which becomes an entry when it is met first; 0 is that of no text.
static uint64_t text_of(struct writer *writer, struct strings *strings, unsigned field,
                        const char *text) {
    size_t before = strings->list.count;
    uint32_t number = strings_number(strings, text);
    if (strings->list.count == before) return number;
    const char *safe = strings->list.items[number];
    put_text(writer, field, number, safe, strlen(safe));
    return number;
}

// Module i is mapping i + 1, and the last one is for code without a module.
static void put_mappings(struct writer *writer) {
    const struct module_map *map = &writer->export->profile->modules;
    for (size_t i = 0; i <= map->count; i++) {
        const struct module *module = i < map->count ? &map->modules[i] : NULL;
        char path[CAIRN_TEXT_PATH * SAFE_BYTES];
        text_escape(path, sizeof path, module ? module->path : "[no module]");
        put_text(writer, INTERNED_PATH, i + 1, path, strlen(path));
        if (module && module->build_id_bytes)
            put_text(writer, INTERNED_BUILD_ID, i + 1, module->build_id, module->build_id_bytes);
        message_put(&writer->inner, ENTRY_ID, i + 1);
        if (module) {
            if (module->build_id_bytes) message_put(&writer->inner, MAPPING_BUILD_ID, i + 1);
            message_put(&writer->inner, MAPPING_START, module->start);
            message_put(&writer->inner, MAPPING_END, module->end);
        }
        message_put(&writer->inner, MAPPING_PATH, i + 1);
        put_entry(writer, INTERNED_MAPPING);
    }
}

static uint64_t mapping_of(const struct writer *writer, const struct frame *frame) {
    const struct module_map *map = &writer->export->profile->modules;
    for (size_t i = 0; frame->module && i < map->count; i++)
        if (map->modules[i].path == frame->module || !strcmp(map->modules[i].path, frame->module))
            return i + 1;
    return map->count + 1;
}

static void put_frame(struct writer *writer, size_t number) {
    const struct frame *frame = writer->frames.frames.items[number];
    char title[FRAME_TITLE_BYTES];
    frame_title(frame, title, sizeof title);
    uint64_t function = text_of(writer, &writer->functions, INTERNED_FUNCTION, title);
    uint64_t source = text_of(writer, &writer->sources, INTERNED_SOURCE, frame->file);
    message_put(&writer->inner, ENTRY_ID, number + 1);
    message_put(&writer->inner, FRAME_FUNCTION, function);
    message_put(&writer->inner, FRAME_MAPPING, mapping_of(writer, frame));
    message_put_always(&writer->inner, FRAME_ADDRESS, frame->offset);
    message_put(&writer->inner, FRAME_SOURCE, source);
    message_put(&writer->inner, FRAME_LINE, frame->line);
    put_entry(writer, INTERNED_FRAME);
}

static bool put_stack(struct writer *writer, size_t index) {
    if (!frame_table_stack(&writer->frames, writer->export->profile->stacks[index].node))
        return false;
    message_put(&writer->inner, ENTRY_ID, index + 1);
    for (size_t i = writer->frames.stack.count; i-- > 0;)
        message_put(&writer->inner, STACK_FRAMES, (uint64_t)writer->frames.stack.items[i] + 1);
    put_entry(writer, INTERNED_STACK);
    return true;
}

static bool write_entries(struct writer *writer) {
    bool is_ok = true;
    put_mappings(writer);
    for (size_t i = 0; i < writer->frames.frames.count; i++) put_frame(writer, i);
    for (size_t i = 0; is_ok && i < writer->export->profile->stack_count; i++)
        is_ok = put_stack(writer, i);
    write_interned(writer, 0);
    return is_ok;
}

// --- dumps

static void take_change(int64_t from, int64_t to, uint64_t *gained, uint64_t *lost) {
    *(to > from ? gained : lost) += to > from ? (uint64_t)(to - from) : (uint64_t)(from - to);
}

static void take_live(struct so_far *so_far, struct live_at live) {
    if (live.bytes < 0) live.bytes = 0;
    if (live.blocks < 0) live.blocks = 0;
    take_change(so_far->live.bytes, live.bytes, &so_far->allocated_bytes, &so_far->freed_bytes);
    take_change(so_far->live.blocks, live.blocks, &so_far->calls, &so_far->frees);
    so_far->live = live;
}

// What came and went between two moments has been seen by none of them.
static void take_rest(struct so_far *so_far, const struct stack *stack) {
    if (stack->allocated_bytes > so_far->allocated_bytes) {
        so_far->freed_bytes += stack->allocated_bytes - so_far->allocated_bytes;
        so_far->allocated_bytes = stack->allocated_bytes;
    }
    if (stack->allocations > so_far->calls) {
        so_far->frees += stack->allocations - so_far->calls;
        so_far->calls = stack->allocations;
    }
}

static void put_sample(struct writer *writer, size_t index) {
    const struct so_far *so_far = &writer->so_far[index];
    message_put(&writer->inner, SAMPLE_STACK, index + 1);
    message_put(&writer->inner, SAMPLE_ALLOCATED, so_far->allocated_bytes);
    message_put(&writer->inner, SAMPLE_FREED, so_far->freed_bytes);
    message_put(&writer->inner, SAMPLE_CALLS, so_far->calls);
    message_put(&writer->inner, SAMPLE_FREES, so_far->frees);
    message_put_message(&writer->part, DUMP_SAMPLE, &writer->inner);
}

// The head of a dump is in each of its packets.
static void begin_dump(struct writer *writer, const struct moment *moment) {
    const struct cairn_sampling *sampling = &writer->export->profile->sampling;
    uint64_t rate = sampling->is_on && sampling->rate_bytes ? sampling->rate_bytes : 1;
    message_put_always(&writer->part, DUMP_PID, writer->header->pid);
    message_put(&writer->part, DUMP_FROM_START, !writer->header->is_attached);
    message_put_always(&writer->part, DUMP_TIME, writer->header->start_clock_ns + moment->at_ns);
    message_put_text(&writer->part, DUMP_HEAP, "malloc");
    message_put(&writer->part, DUMP_RATE, rate);
    message_put(&writer->part, DUMP_RATE_FIRST, rate);
}

static void write_dump(struct writer *writer, const struct moment *moment, bool is_continued) {
    message_put_message(&writer->interned, PROFILE_DUMP, &writer->part);
    message_put(&writer->interned, PROFILE_CONTINUED, is_continued);
    message_put(&writer->interned, PROFILE_INDEX, writer->profile_index++);
    put_time(writer, moment->at_ns);
    message_put(&writer->packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
    message_put_message(&writer->packet, PACKET_PROFILE, &writer->interned);
    write_packet(writer);
}

static bool write_moment(struct writer *writer, const struct moments *moments,
                         const struct moment *moment, struct error *error) {
    const struct profile *profile = writer->export->profile;
    struct live_at *live;
    struct estimate *estimates;
    if (!moments_live(moments, moment, &live, &estimates, error)) return false;
    int64_t sum = 0;
    write_name(writer, moment);
    begin_dump(writer, moment);
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct so_far *so_far = &writer->so_far[i];
        sum = figures_add(sum, live[i].bytes);
        take_live(so_far, live[i]);
        if (moment->choice.kind == CHOICE_EXIT) take_rest(so_far, &profile->stacks[i]);
        if (so_far->allocated_bytes || so_far->calls) put_sample(writer, i);
        if (writer->part.size < PACKET_BYTES) continue;
        write_dump(writer, moment, true);
        begin_dump(writer, moment);
    }
    write_dump(writer, moment, false);
    write_count(writer, LIVE, moment->at_ns, sum > 0 ? (uint64_t)sum : 0);
    free(live);
    free(estimates);
    return true;
}

static bool write_all(struct writer *writer, struct error *error) {
    struct moments moments;
    if (!moments_find(&moments, writer->export, error)) return false;
    write_clocks(writer);
    write_tracks(writer);
    bool is_ok = write_entries(writer) || error_set(error, "no memory for a stack");
    for (size_t i = 0; is_ok && i < moments.list.count; i++)
        is_ok = write_moment(writer, &moments, &moments.list.items[i], error);
    moments_free(&moments);
    if (!is_ok) return false;
    write_points(writer);
    write_resident(writer);
    bool has_failed = writer->packet.has_failed || writer->interned.has_failed ||
                      writer->part.has_failed || writer->inner.has_failed ||
                      writer->functions.has_failed || writer->sources.has_failed;
    return !has_failed || error_set(error, "no memory for a packet");
}

bool export_perfetto(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {
        .out = out, .export = export, .header = &export->profile->recording->header};
    if (!frame_table_build(&writer.frames, export, FRAMES_MARKED, error)) return false;
    strings_start(&writer.functions);
    strings_start(&writer.sources);
    writer.so_far = calloc(export->profile->stack_count + 1, sizeof *writer.so_far);
    bool is_ok =
        (writer.so_far || error_set(error, "no memory for stacks")) && write_all(&writer, error);
    free(writer.so_far);
    strings_free(&writer.functions);
    strings_free(&writer.sources);
    byte_buffer_free(&writer.packet);
    byte_buffer_free(&writer.interned);
    byte_buffer_free(&writer.part);
    byte_buffer_free(&writer.inner);
    frame_table_free(&writer.frames);
    return is_ok;
}
