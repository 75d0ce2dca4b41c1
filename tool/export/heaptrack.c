// SPDX-License-Identifier: Apache-2.0
// The interpreted form of heaptrack's recordings (file version 3, gzip), for heaptrack_print and
// heaptrack_gui. It is a log of events, and cairn keeps sums; so a log is made up that has the same
// sums: for each stack the blocks that were neither held at the peak nor at the end come first,
// then those held at the peak, then the rest of those at the end. Blocks of one part of a stack
// have the part's mean size. What heaptrack calls temporary is not in this log.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/gzip.h"
#include "tool/base/text.h"
#include "tool/export/export.h"
#include "tool/export/heaptrack.h"
#include "tool/model/strings.h"

enum { NS_PER_MS = 1000000 };
// A line a call: more of them than this are no file that anybody reads.
static const uint64_t calls_max = 200000000;

enum part { PART_PASSING, PART_PEAK_ONLY, PART_KEPT, PART_EXIT_ONLY, PART_COUNT };

// Blocks of one part of a stack: `larger_count` of `bytes` + 1 bytes, the others of `bytes`.
struct group {
    uint64_t count, bytes, larger_count;
    uint32_t info;  // number of the smaller size; the larger one's follows
};

struct plan {
    struct group groups[PART_COUNT];
};

struct writer {
    const struct export *export;
    FILE *out;
    struct strings strings;
    size_t strings_written;
    uint32_t *trace_of_node;
    uint32_t *ip_of_place;
    uint32_t ip_count, trace_count, info_count;
    uint32_t unrecorded_trace;
    struct plan *plans;  // by stack
};

static uint32_t text(struct writer *writer, const char *string) {
    uint32_t number = strings_number(&writer->strings, string);
    for (; writer->strings_written < writer->strings.list.count; writer->strings_written++) {
        const char *added = writer->strings.list.items[writer->strings_written];
        if (writer->strings_written) fprintf(writer->out, "s %zx %s\n", strlen(added), added);
    }
    return number;
}

// heaptrack leaves operator new out of its stacks where it knows it, which is by this spelling.
static const char *name_for_heaptrack(const char *function) {
    if (!function) return NULL;
    if (!strcmp(function, "operator new")) return "operator new(unsigned long)";
    return strcmp(function, "operator new[]") ? function : "operator new[](unsigned long)";
}

static void put_head(struct writer *writer) {
    char command[2 * CAIRN_TEXT_COMMAND];
    text_escape(command, sizeof command, writer->export->command);
    fprintf(writer->out, "v 10400 3\nX %s\n# by cairn %s: %s\nI %x 0\n", command,
            writer->export->tool_version, writer->export->trust,
            writer->export->profile->recording->header.page_bytes);
}

static void put_place(struct writer *writer, uint32_t index) {
    enum { FRAMES_MAX = 64 };
    const struct export *export = writer->export;
    const struct place *place = &export->profile->places.list.items[index];
    bool has_module = place->module != MODULE_NONE;
    const struct module *module =
        has_module ? &export->profile->modules.modules[place->module] : NULL;
    size_t count;
    const struct frame *frames = export->names->of_place(export->names->context, index, &count);
    uint32_t numbers[FRAMES_MAX][2];
    if (count > FRAMES_MAX) count = FRAMES_MAX;
    uint32_t path = has_module ? text(writer, module->path) : 0;
    for (size_t i = 0; i < count; i++) {
        numbers[i][0] = text(writer, name_for_heaptrack(frames[i].function));
        numbers[i][1] = text(writer, frames[i].file);
    }
    fprintf(writer->out, "i %" PRIx64 " %x", place->address + (has_module ? module->bias : 0),
            path);
    for (size_t i = 0; i < count && frames[i].function; i++)
        fprintf(writer->out, " %x %x %x", numbers[i][0], numbers[i][1], frames[i].line);
    fputc('\n', writer->out);
    writer->ip_of_place[index] = ++writer->ip_count;
}

// Parents have lower numbers, so each trace finds its caller's written.
static void put_traces(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    const struct tree_node *nodes = profile->tree.nodes.items;
    fprintf(writer->out, "i 0 0 %x 0 0\n", text(writer, STACK_NOT_RECORDED));
    writer->ip_count++;
    fprintf(writer->out, "t %x 0\n", writer->ip_count);
    writer->unrecorded_trace = ++writer->trace_count;
    for (uint32_t i = 1; i < profile->tree.nodes.count; i++) {
        uint32_t place = nodes[i].place, parent = writer->trace_of_node[nodes[i].parent];
        if (profile->places.list.items[place].cut) {
            writer->trace_of_node[i] = parent;
            continue;
        }
        if (!writer->ip_of_place[place]) put_place(writer, place);
        fprintf(writer->out, "t %x %x\n", writer->ip_of_place[place], parent);
        writer->trace_of_node[i] = ++writer->trace_count;
    }
}

// Blocks and their bytes. There are no bytes without blocks.
struct amount {
    int64_t blocks, bytes;
};

static bool is_amount(struct amount amount) {
    return amount.blocks >= 0 && amount.bytes >= 0 && (amount.blocks || !amount.bytes);
}

// Wraps instead of overflowing: a damaged recording may hold any number.
static int64_t difference(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static struct amount minus(struct amount a, struct amount b) {
    return (struct amount){difference(a.blocks, b.blocks), difference(a.bytes, b.bytes)};
}

static bool split(struct amount all, struct amount peak, struct amount exit, struct amount kept,
                  struct amount parts[PART_COUNT]) {
    parts[PART_KEPT] = kept;
    parts[PART_PEAK_ONLY] = minus(peak, kept);
    parts[PART_EXIT_ONLY] = minus(exit, kept);
    parts[PART_PASSING] = minus(minus(all, peak), parts[PART_EXIT_ONLY]);
    for (int i = 0; i < PART_COUNT; i++)
        if (!is_amount(parts[i])) return false;
    return true;
}

static int64_t between(int64_t low, int64_t high, int64_t wanted) {
    return wanted < low ? low : wanted > high ? high : wanted;
}

// How many of the blocks held at the peak are those held at the end is not known. Any number that
// leaves nothing negative will do; the truth is one, so the ends of the range and what is next to
// them include a solution.
static bool find_parts(struct amount all, struct amount peak, struct amount exit,
                       struct amount parts[PART_COUNT]) {
    int64_t most = peak.blocks < exit.blocks ? peak.blocks : exit.blocks;
    int64_t least = between(0, most, difference(peak.blocks, difference(all.blocks, exit.blocks)));
    int64_t most_bytes = peak.bytes < exit.bytes ? peak.bytes : exit.bytes;
    int64_t least_bytes =
        between(0, most_bytes, difference(peak.bytes, difference(all.bytes, exit.bytes)));
    const int64_t blocks[] = {most, most - 1, least, least + 1};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (blocks[i] < least || blocks[i] > most) continue;
        if (split(all, peak, exit, (struct amount){blocks[i], most_bytes}, parts)) return true;
        if (split(all, peak, exit, (struct amount){blocks[i], least_bytes}, parts)) return true;
    }
    return false;
}

static void put_group(struct writer *writer, struct amount amount, uint32_t trace,
                      struct group *group) {
    if (!amount.blocks) return;
    uint64_t blocks = (uint64_t)amount.blocks, bytes = (uint64_t)amount.bytes;
    *group = (struct group){.count = blocks,
                            .bytes = bytes / blocks,
                            .larger_count = bytes % blocks,
                            .info = writer->info_count};
    fprintf(writer->out, "a %" PRIx64 " %x\na %" PRIx64 " %x\n", group->bytes, trace,
            group->bytes + 1, trace);
    writer->info_count += 2;
}

static bool plan_stack(struct writer *writer, const struct stack *stack, struct plan *plan,
                       struct error *error) {
    // a log of events cannot begin with blocks: those that were inherited are allocated in it
    struct amount all = {(int64_t)(stack->allocations + stack_more(stack)->inherited.blocks),
                         (int64_t)(stack->allocated_bytes + stack_more(stack)->inherited.bytes)};
    struct amount peak = {stack->peak_blocks, stack->peak_bytes};
    struct amount exit = {stack->exit_blocks, stack->exit_bytes}, parts[PART_COUNT];
    uint32_t trace = writer->trace_of_node[stack->node];
    if (!find_parts(all, peak, exit, parts))
        return error_set(error,
                         "heaptrack: stack %016" PRIx64 " holds more than it allocated; no log of "
                         "events says so (the recording is not exact)",
                         stack->id);
    for (int i = 0; i < PART_COUNT; i++)
        put_group(writer, parts[i], trace ? trace : writer->unrecorded_trace, &plan->groups[i]);
    return true;
}

static uint32_t info_of(const struct group *group, uint64_t index) {
    return group->info + (index < group->larger_count);
}

// A line of an event: "+ 1f". There are two of them for each call.
static void put_event(FILE *out, char sign, uint32_t info) {
    static const char digits[] = "0123456789abcdef";
    enum { LINE_BYTES = 16, DIGIT_BITS = 4 };
    char line[LINE_BYTES], *at = line + LINE_BYTES;
    *--at = '\n';
    do *--at = digits[info % (sizeof digits - 1)];
    while (info >>= DIGIT_BITS);
    *--at = ' ';
    *--at = sign;
    fwrite_unlocked(at, 1, (size_t)(line + LINE_BYTES - at), out);
}

// What is freed at once counts as temporary for heaptrack, so each block is freed when the next one
// is there, unless both together would be more than the peak.
static void put_passing(struct writer *writer, size_t stack_count) {
    uint64_t peak_bytes = (uint64_t)writer->export->profile->peak.bytes, last_bytes = 0;
    uint32_t last = 0;
    bool has_last = false;
    for (size_t i = 0; i < stack_count; i++) {
        const struct group *group = &writer->plans[i].groups[PART_PASSING];
        for (uint64_t at = 0; at < group->count; at++) {
            uint32_t info = info_of(group, at);
            uint64_t bytes = group->bytes + (at < group->larger_count);
            bool is_first = has_last && bytes + last_bytes > peak_bytes;
            if (is_first) put_event(writer->out, '-', last);
            put_event(writer->out, '+', info);
            if (has_last && !is_first) put_event(writer->out, '-', last);
            last = info;
            last_bytes = bytes;
            has_last = true;
        }
    }
    if (has_last) put_event(writer->out, '-', last);
}

static void put_part(struct writer *writer, size_t stack_count, enum part part, char sign) {
    for (size_t i = 0; i < stack_count; i++) {
        const struct group *group = &writer->plans[i].groups[part];
        for (uint64_t at = 0; at < group->count; at++)
            put_event(writer->out, sign, info_of(group, at));
    }
}

// Tells a whole file from one that was cut off, as heaptrack does.
static void put_end(struct writer *writer) {
    fprintf(writer->out, "# strings: %u\n# ips: %u\n", (unsigned)writer->strings_written,
            (unsigned)writer->ip_count);
}

static void put_events(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    const struct cairn_header *header = &profile->recording->header;
    uint64_t last_ns = recording_last_ns(profile->recording);
    if (last_ns < profile->peak.at_ns) last_ns = profile->peak.at_ns;
    size_t count = profile->stack_count;
    put_passing(writer, count);
    fprintf(writer->out, "c %" PRIx64 "\n", profile->peak.at_ns / NS_PER_MS);
    put_part(writer, count, PART_KEPT, '+');
    put_part(writer, count, PART_PEAK_ONLY, '+');
    if (header->rss_peak_bytes)
        fprintf(writer->out, "R %" PRIx64 "\n", header->rss_peak_bytes / header->page_bytes);
    put_part(writer, count, PART_PEAK_ONLY, '-');
    put_part(writer, count, PART_EXIT_ONLY, '+');
    fprintf(writer->out, "c %" PRIx64 "\n", last_ns / NS_PER_MS);
    put_end(writer);
}

// All but the events.
static bool put_start(struct writer *writer, struct error *error) {
    const struct profile *profile = writer->export->profile;
    strings_start(&writer->strings);
    writer->trace_of_node = calloc(profile->tree.nodes.count + 1, sizeof(uint32_t));
    writer->ip_of_place = calloc(profile->places.list.count + 1, sizeof(uint32_t));
    if (!writer->trace_of_node || !writer->ip_of_place)
        return error_set(error, "no memory for the events");
    put_head(writer);
    put_traces(writer);
    return true;
}

static bool put_all(struct writer *writer, struct error *error) {
    const struct profile *profile = writer->export->profile;
    writer->plans = calloc(profile->stack_count + 1, sizeof *writer->plans);
    if (!writer->plans) return error_set(error, "no memory for the events");
    if (!put_start(writer, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (!plan_stack(writer, &profile->stacks[i], &writer->plans[i], error)) return false;
    put_events(writer);
    return !writer->strings.has_failed || error_set(error, "no memory for names");
}

static void writer_free(struct writer *writer) {
    strings_free(&writer->strings);
    free(writer->trace_of_node);
    free(writer->ip_of_place);
    free(writer->plans);
}

// The lines that allocate: of a damaged recording not those that its totals say.
static uint64_t calls_of(const struct profile *profile) {
    uint64_t calls = 0;
    for (size_t i = 0; i < profile->stack_count && calls <= calls_max; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool are_too_many =
            __builtin_add_overflow(calls, stack->allocations, &calls) ||
            __builtin_add_overflow(calls, (uint64_t)stack_more(stack)->inherited.blocks, &calls);
        if (are_too_many) return UINT64_MAX;
    }
    return calls;
}

bool export_heaptrack(FILE *out, const struct export *export, struct error *error) {
    uint64_t calls = calls_of(export->profile);
    if (calls > calls_max)
        return error_set(error,
                         "heaptrack: its format has a line for each call, and %" PRIu64
                         " are too many (at most %" PRIu64 ")",
                         calls, calls_max);
    FILE *packed = gzip_open(out, error);
    if (!packed) return false;
    struct writer writer = {.export = export, .out = packed};
    bool is_ok = put_all(&writer, error);
    writer_free(&writer);
    fclose(packed);
    return is_ok;
}

// --- a real log

struct info {
    uint64_t bytes;
    uint32_t trace;
};

struct heaptrack_log {
    struct writer writer;
    ARRAY(struct info) infos;  // each size of each stack
    struct index_table table;
    uint64_t ms;
    bool has_failed;
};

struct heaptrack_log *heaptrack_open(FILE *out, const struct export *export, struct error *error) {
    struct heaptrack_log *log = calloc(1, sizeof *log);
    if (!log) {
        error_set(error, "no memory for the events");
        return NULL;
    }
    log->writer = (struct writer){.export = export, .out = gzip_open(out, error)};
    if (log->writer.out && put_start(&log->writer, error)) return log;
    if (log->writer.out) fclose(log->writer.out);
    writer_free(&log->writer);
    free(log);
    return NULL;
}

void heaptrack_time(struct heaptrack_log *log, uint64_t ms) {
    if (ms <= log->ms) return;
    log->ms = ms;
    fprintf(log->writer.out, "c %" PRIx64 "\n", ms);
}

// The number of the line that says so.
static uint32_t info_number(struct heaptrack_log *log, uint32_t node, uint64_t bytes) {
    struct writer *writer = &log->writer;
    uint32_t trace = writer->trace_of_node[node];
    if (!trace) trace = writer->unrecorded_trace;
    uint64_t hash = hash_mix(bytes ^ index_table_seed(), trace);
    struct index_probe probe = index_probe_start(&log->table, hash);
    for (uint32_t index; index_probe_next(&log->table, &probe, &index);)
        if (log->infos.items[index].bytes == bytes && log->infos.items[index].trace == trace)
            return index;
    uint32_t added = (uint32_t)log->infos.count;
    struct info *info = array_push(&log->infos);
    if (!info || !index_table_insert(&log->table, hash, added)) {
        log->has_failed = true;
        return 0;
    }
    *info = (struct info){bytes, trace};
    fprintf(writer->out, "a %" PRIx64 " %x\n", bytes, trace);
    return added;
}

void heaptrack_alloc(struct heaptrack_log *log, uint32_t node, uint64_t bytes) {
    uint32_t info = info_number(log, node, bytes);
    if (!log->has_failed) put_event(log->writer.out, '+', info);
}

void heaptrack_free(struct heaptrack_log *log, uint32_t node, uint64_t bytes) {
    uint32_t info = info_number(log, node, bytes);
    if (!log->has_failed) put_event(log->writer.out, '-', info);
}

bool heaptrack_close(struct heaptrack_log *log, struct error *error) {
    bool is_ok = !log->has_failed && !log->writer.strings.has_failed;
    if (!is_ok && error) error_set(error, "no memory for the events");
    put_end(&log->writer);
    fclose(log->writer.out);
    writer_free(&log->writer);
    array_free(&log->infos);
    index_table_free(&log->table);
    free(log);
    return is_ok;
}
