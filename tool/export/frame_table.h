// SPDX-License-Identifier: Apache-2.0
// The distinct frames of a profile, numbered from 0, and each stack as a list of such numbers:
// names are compared and escaped once a frame, however many stacks go through it.
//
// All stacks as one tree of frames, by one measure: from the outermost frame inwards, or inverted
// from the allocating functions outwards.
#ifndef TOOL_EXPORT_FRAME_TABLE_H
#define TOOL_EXPORT_FRAME_TABLE_H

#include "tool/export/export.h"

// Which frames of a stack are there.
enum frame_choice {
    FRAMES_ALL,        // every frame of the code
    FRAMES_MARKED,     // and one for the outer end of an incomplete stack, or a stack without any
    FRAMES_DISTINCT,   // the same by address: different stacks differ in their frames
    FRAMES_PICTURE,    // as FRAMES_MARKED, but as screens show it: no internal frames, unless
                       // export->has_all_frames
    FRAMES_FUNCTIONS,  // as FRAMES_PICTURE; frames of a function are one, whatever their line,
                       // unless export->has_lines
};

struct frame_slice {
    uint32_t first, count;  // in frame_table.numbers
};

struct frame_table {
    const struct export *export;
    enum frame_choice choice;
    ARRAY(const struct frame *) frames;  // by number
    struct index_table index;
    struct frame_slice *slices;  // by place
    ARRAY(uint32_t) numbers;     // of the places' frames, innermost first
    struct frame marks[CAIRN_CUT_LIMIT + 1];
    char mark_names[CAIRN_CUT_LIMIT][96];
    uint32_t not_recorded;  // number of the frame of stacks without any
    ARRAY(uint32_t) stack;  // of frame_table_stack
};

// False without memory. The export must outlive the table.
bool frame_table_build(struct frame_table *table, const struct export *export,
                       enum frame_choice choice, struct error *error);
void frame_table_free(struct frame_table *table);

// Fills table->stack with the numbers of the frames of a node, innermost first; at least one
// unless the choice is FRAMES_ALL. False without memory.
bool frame_table_stack(struct frame_table *table, uint32_t node);

// "function" or "module+0x12", safe text.
void frame_title(const struct frame *frame, char *out, size_t size);

#define FRAME_TITLE_BYTES 4096

// As valgrind prints it: "0x401136: main (prog.c:12)", "0x5f2: ??? (in /lib/libc.so)".
void frame_valgrind_text(const struct frame *frame, char *out, size_t size);
#define FRAME_VALGRIND_BYTES (2 * FRAME_TITLE_BYTES)

#define FRAME_TREE_ROOT 0u

struct frame_node {
    uint32_t frame;  // number in the table; without meaning in the root
    uint32_t parent, depth;
    uint32_t first_child, next_sibling;  // 0: none; the largest child comes first
    uint32_t child_count;
    int64_t value;        // of everything below, itself included
    struct measured sum;  // the same, and how sure it is
};

struct frame_tree {
    ARRAY(struct frame_node) nodes;
    struct index_table table;
};

// Stacks with a value above zero. False without memory.
bool frame_tree_build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      struct error *error);
// The same from the allocating functions outwards. Inverted stacks share little, so nodes below
// 1/`least_share` of the whole have no children: what is too small to be shown takes no memory.
bool frame_tree_build_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                               unsigned least_share, struct error *error);
void frame_tree_free(struct frame_tree *tree);

#endif
