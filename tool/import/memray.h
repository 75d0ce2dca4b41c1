// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of memray's reader: numbers and texts (memray_input.c), stacks
// (memray_stacks.c), records of events (memray.c) and of sums
// (memray_sums.c).
#ifndef TOOL_IMPORT_MEMRAY_H
#define TOOL_IMPORT_MEMRAY_H

#include "tool/import/replay.h"

enum { MEMRAY_VERSION_LEAST = 11, MEMRAY_RECENT = 15, MEMRAY_TRACES_MAX = 1 << 24 };
#define MEMRAY_NS_PER_MS UINT64_C(1000000)

struct memray_text {
    char *text;
    size_t room;
};

struct memray_input {
    FILE *in;
    struct error *error;
    bool is_cut;  // it ended in the middle of something
    struct memray_text text, second;
};

// All are false with an error, or with `is_cut` set and none.
bool memray_bad(const struct memray_input *input, const char *what);
bool memray_cut(struct memray_input *input);
bool memray_take(struct memray_input *input, void *out, size_t size);
bool memray_take_text(struct memray_input *input, struct memray_text *text);
bool memray_take_varint(struct memray_input *input, uint64_t *value);
bool memray_take_signed(struct memray_input *input, int64_t *value);
// Adds the difference that is next.
bool memray_take_difference(struct memray_input *input, uint64_t *last);

struct memray_code {
    char *function, *file;
    uint8_t *lines;  // Python's table of lines
    size_t line_bytes;
    int64_t first_line;
};

// A Python thread: its frames from the outermost on, as nodes of the tree.
struct memray_thread {
    uint64_t tid;
    ARRAY(uint32_t) nodes;
    uint64_t skipped;  // memray's own outermost frames that are there now
};

// A frame of native code and the one that called it, counted from 1.
struct memray_native {
    uint64_t address, caller;
};

struct memray_numbers {  // from numbers of the file to indexes
    struct index_table table;
    ARRAY(uint64_t) keys;
};

struct memray_stacks {
    struct imported *imported;
    uint32_t python_version;
    uint64_t main_tid, skip_count;
    ARRAY(struct memray_code) codes;
    ARRAY(uint32_t) frames;  // their places
    ARRAY(struct memray_thread) threads;
    ARRAY(struct memray_native) natives;
    ARRAY(uint32_t) native_nodes;  // scratch
    struct memray_numbers code_numbers, frame_numbers, thread_numbers;
};

void memray_stacks_free(struct memray_stacks *stacks);

// Takes the code's memory over. False without memory.
bool memray_add_code(struct memray_stacks *stacks, uint64_t id, const struct memray_code *code);
bool memray_add_frame(struct memray_stacks *stacks, uint64_t id, const char *function,
                      const char *file, int64_t line);
bool memray_add_frame_at(struct memray_stacks *stacks, uint64_t id, uint32_t place);
// NULL without memory.
struct memray_thread *memray_thread_of(struct memray_stacks *stacks, uint64_t tid);

// The place of a frame, IMPORT_NONE if it is unknown.
uint32_t memray_frame_place(const struct memray_stacks *stacks, uint64_t id);
// The same of an instruction of a code.
uint32_t memray_code_place(const struct memray_stacks *stacks, uint64_t id, int64_t instruction);

// Enters a frame. False without memory.
bool memray_push(struct memray_stacks *stacks, struct memray_thread *thread, uint32_t place);
// Leaves frames; more than there are is false.
bool memray_pop(struct memray_thread *thread, uint64_t count);

// The stack of an allocation: the Python frames, and inside of them the native ones that are not
// the interpreter's. False without memory.
bool memray_stack_of(struct memray_stacks *stacks, uint32_t python_node, uint64_t native,
                     uint32_t *node);

struct memray_trace {  // of an aggregated file
    uint64_t frame, parent;
    uint32_t node;
};

struct memray {
    struct memray_input input;
    struct imported *imported;
    struct error *error;
    struct replay replay;
    struct memray_stacks stacks;
    uint32_t version;
    bool has_native, is_aggregated, has_ended;
    uint64_t start_ms, end_ms, now_ns;
    size_t thread;  // the current one + 1
    uint64_t last_address, last_ip, last_native, last_frame;
    int64_t last_line;
    uint64_t recent[MEMRAY_RECENT];
    ARRAY(struct memray_trace) traces;
};

// A record of a kind that all versions and forms share.
bool memray_read_common(struct memray *reader, unsigned kind);
// A record of an aggregated file.
bool memray_read_sums(struct memray *reader, unsigned byte);

#endif
