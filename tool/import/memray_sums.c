// SPDX-License-Identifier: Apache-2.0
// Records of `memray run --aggregate`: frames, the tree of stacks, and for each stack what it held
// at the peak and at the end. Nothing is said of what came and went in between.
#include "tool/import/memray.h"

static bool read_frame_of_sums(struct memray *reader) {
    uint64_t id, code;
    int64_t instruction;
    int32_t line;
    uint8_t is_entry;
    if (reader->version == MEMRAY_VERSION_LEAST)
        return memray_take(&reader->input, &id, sizeof id) &&
               memray_take_text(&reader->input, &reader->input.text) &&
               memray_take_text(&reader->input, &reader->input.second) &&
               memray_take(&reader->input, &line, sizeof line) &&
               memray_take(&reader->input, &is_entry, 1) &&
               (memray_add_frame(&reader->stacks, id, reader->input.text.text,
                                 reader->input.second.text, line) ||
                import_no_memory(reader->error));
    if (!memray_take_varint(&reader->input, &id) || !memray_take_varint(&reader->input, &code) ||
        !memray_take_signed(&reader->input, &instruction) ||
        !memray_take(&reader->input, &is_entry, 1))
        return false;
    uint32_t place = memray_code_place(&reader->stacks, code, instruction);
    return memray_add_frame_at(&reader->stacks, id, place) || import_no_memory(reader->error);
}

// Traces are numbered from 1 as they come, callers first.
static bool read_trace(struct memray *reader) {
    struct memray_trace trace = {0};
    uint32_t parent;
    if (reader->version == MEMRAY_VERSION_LEAST) {
        if (!memray_take(&reader->input, &trace.frame, sizeof trace.frame) ||
            !memray_take(&reader->input, &parent, sizeof parent))
            return false;
        trace.parent = parent;
    } else if (!memray_take_varint(&reader->input, &trace.frame) ||
               !memray_take_varint(&reader->input, &trace.parent)) {
        return false;
    }
    if (trace.parent > reader->traces.count)
        return memray_bad(&reader->input, "a caller that is not there");
    uint32_t place = memray_frame_place(&reader->stacks, trace.frame);
    if (place == IMPORT_NONE) return memray_bad(&reader->input, "a frame that is not there");
    trace.node = trace.parent ? reader->traces.items[trace.parent - 1].node : TREE_ROOT;
    struct memray_trace *slot =
        reader->traces.count < MEMRAY_TRACES_MAX ? array_push(&reader->traces) : NULL;
    if (!slot || !tree_child(&reader->imported->tree, trace.node, place, &trace.node))
        return import_no_memory(reader->error);
    *slot = trace;
    return true;
}

static bool read_sum(struct memray *reader) {
    struct {
        uint64_t tid, function, native, trace, generation;
        uint64_t peak_blocks, exit_blocks, peak_bytes, exit_bytes;
    } sum;
    uint32_t node;
    if (!memray_take(&reader->input, &sum, sizeof sum)) return false;
    if (sum.trace > reader->traces.count)
        return memray_bad(&reader->input, "a stack that is not there");
    const int64_t most = (int64_t)1 << 46;
    struct import_values values = {
        .peak_blocks = sum.peak_blocks < INT32_MAX ? (int64_t)sum.peak_blocks : INT32_MAX,
        .peak_bytes = sum.peak_bytes < (uint64_t)most ? (int64_t)sum.peak_bytes : most,
        .exit_blocks = sum.exit_blocks < INT32_MAX ? (int64_t)sum.exit_blocks : INT32_MAX,
        .exit_bytes = sum.exit_bytes < (uint64_t)most ? (int64_t)sum.exit_bytes : most};
    bool is_larger = values.peak_bytes > values.exit_bytes;
    values.calls =
        values.peak_blocks > values.exit_blocks ? values.peak_blocks : values.exit_blocks;
    values.allocated_bytes = is_larger ? values.peak_bytes : values.exit_bytes;
    uint32_t python = sum.trace ? reader->traces.items[sum.trace - 1].node : TREE_ROOT;
    return (memray_stack_of(&reader->stacks, python, sum.native, &node) &&
            import_node(reader->imported, node, &values)) ||
           import_no_memory(reader->error);
}

static bool read_snapshot(struct memray *reader) {
    struct {
        uint64_t at_ms, rss, heap;
    } snapshot;
    if (!memray_take(&reader->input, &snapshot, sizeof snapshot)) return false;
    uint64_t ms = snapshot.at_ms > reader->start_ms ? snapshot.at_ms - reader->start_ms : 0;
    struct import_point *point = array_push(&reader->imported->points);
    if (!point) return import_no_memory(reader->error);
    if (ms < UINT64_MAX / MEMRAY_NS_PER_MS && ms * MEMRAY_NS_PER_MS > reader->now_ns)
        reader->now_ns = ms * MEMRAY_NS_PER_MS;
    *point = (struct import_point){reader->now_ns,
                                   snapshot.heap < INT64_MAX ? (int64_t)snapshot.heap : INT64_MAX};
    if (snapshot.rss > reader->imported->rss_peak_bytes)
        reader->imported->rss_peak_bytes = snapshot.rss;
    return true;
}

static bool skip_surviving(struct memray *reader) {
    uint64_t ignored;
    return memray_take_varint(&reader->input, &ignored) &&
           (!reader->has_native || memray_take_varint(&reader->input, &ignored));
}

bool memray_read_sums(struct memray *reader, unsigned byte) {
    enum { SNAPSHOT = 1, SUM, TRACE, FRAME, SURVIVING = 13, TRAILER = 15 };
    switch (byte) {
    case SNAPSHOT:
        return read_snapshot(reader);
    case SUM:
        return read_sum(reader);
    case TRACE:
        return read_trace(reader);
    case FRAME:
        return read_frame_of_sums(reader);
    case SURVIVING:
        return skip_surviving(reader);
    case TRAILER:
        reader->has_ended = true;
        return true;
    default:
        return memray_read_common(reader, byte);
    }
}
