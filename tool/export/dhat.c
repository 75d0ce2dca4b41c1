// SPDX-License-Identifier: Apache-2.0
// DHAT's file format (version 2), for dh_view.html of valgrind. Its program points are our stacks.
// What DHAT knows and cairn does not: lifetimes (0 here), accesses (left out), and the most that a
// point held at a moment of its own (here the larger of peak and end).
#include <inttypes.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"

enum { NS_PER_US = 1000, SHORT_LIVED_US = 500 };

static void put_facts(struct json *json, const struct export *export) {
    const struct profile *profile = export->profile;
    const struct cairn_header *header = &profile->recording->header;
    json_put_uint(json, "dhatFileVersion", 2);
    json_put_string(json, "mode", "heap");
    json_put_string(json, "verb", "Allocated");
    json_put_bool(json, "bklt", true);
    json_put_bool(json, "bkacc", false);
    json_put_string(json, "tu", "us");
    json_put_string(json, "Mtu", "s");
    json_put_uint(json, "tuth", SHORT_LIVED_US);
    json_put_string(json, "cmd", export->command);
    json_put_uint(json, "pid", header->pid);
    json_put_uint(json, "te", recording_last_ns(profile->recording) / NS_PER_US);
    json_put_uint(json, "tg", profile->peak.at_ns / NS_PER_US);
    json_put_string(json, "cairn", export->trust);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool put_stack(struct json *json, struct frame_table *frames, const struct stack *stack) {
    if (!frame_table_stack(frames, stack->node)) return false;
    json_open_object(json, NULL);
    json_put_uint(json, "tb", stack->allocated_bytes);
    json_put_uint(json, "tbk", stack->allocations);
    json_put_uint(json, "tl", 0);
    json_put_int(json, "mb", larger(stack->peak_bytes, stack->exit_bytes));
    json_put_int(json, "mbk", larger(stack->peak_blocks, stack->exit_blocks));
    json_put_int(json, "gb", stack->peak_bytes);
    json_put_int(json, "gbk", stack->peak_blocks);
    json_put_int(json, "eb", stack->exit_bytes);
    json_put_int(json, "ebk", stack->exit_blocks);
    json_open_array(json, "fs");
    // frame 0 of the file is "[root]"
    for (size_t i = 0; i < frames->stack.count; i++)
        json_put_uint(json, NULL, frames->stack.items[i] + 1);
    json_close(json);
    json_close(json);
    return true;
}

static void put_frame(struct json *json, const struct frame *frame) {
    char text[FRAME_VALGRIND_BYTES];
    frame_valgrind_text(frame, text, sizeof text);
    json_put_string(json, NULL, text);
}

bool export_dhat(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    struct json json;
    const struct profile *profile = export->profile;
    bool is_ok = true;
    if (!frame_table_build(&frames, export, FRAMES_DISTINCT, error)) return false;
    json_start(&json, out);
    json_open_object(&json, NULL);
    put_facts(&json, export);
    json_open_array(&json, "pps");
    for (size_t i = 0; i < profile->stack_count && is_ok; i++)
        is_ok = put_stack(&json, &frames, &profile->stacks[i]);
    json_close(&json);
    json_open_array(&json, "ftbl");
    json_put_string(&json, NULL, "[root]");
    for (size_t i = 0; i < frames.frames.count; i++) put_frame(&json, frames.frames.items[i]);
    json_close(&json);
    json_close(&json);
    frame_table_free(&frames);
    return is_ok || error_set(error, "no memory for a stack");
}
