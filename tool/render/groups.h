// SPDX-License-Identifier: Apache-2.0
// Stacks added up by what their frames have in common: functions, lines, files, modules, types.
// A new kind of group is a row of the table in groups.c.
//
// `self` are the stacks whose first shown frame belongs to the group, `total` those with any frame
// in it, each stack once however often it comes by. Groups own their texts: they outlive names.
//
// What kind of object a stack allocates, as far as names of functions tell: the templates that the
// allocation went through name containers and their elements ("std::map<int, Node>", "Node").
#ifndef TOOL_RENDER_GROUPS_H
#define TOOL_RENDER_GROUPS_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct group {
    char *label, *location;  // safe texts; the label is the key, of functions both are
    bool is_ambiguous;       // another one has the same label
    struct measured self, total;
};

struct grouping {
    const char *name;  // of the view, and of several groups: "functions"
    const char *one;   // "function"
    bool has_total;
    bool has_stable_names;  // the same in another build of the program
    bool is_in_location;    // groups of one label in several locations are several
    // Key and place of a frame, false: it belongs to no group. For groups that a frame decides.
    bool (*of_frame)(const struct frame *frame, char *label, char *location);
    // The same for groups that a whole stack decides, all frames included.
    void (*of_stack)(const struct frame_list *frames, char *label, char *location);
};

#define GROUP_TEXT_BYTES FRAME_TEXT_BYTES

enum grouping_id {
    GROUP_FUNCTIONS,
    GROUP_LINES,
    GROUP_FILES,
    GROUP_DIRECTORIES,
    GROUP_MODULES,
    GROUP_TYPES,
    GROUPINGS
};
extern const struct grouping groupings[GROUPINGS];

struct group_list {
    ARRAY(struct group) groups;  // by self, then by total
    struct index_table by_label, by_frame;
    ARRAY(struct group_of_frame) frames;
};
struct group_of_frame {
    const struct frame *frame;
    uint32_t group_plus_1;  // 0: none
};

// False without memory.
bool group_list_build(struct group_list *list, const struct grouping *grouping,
                      const struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error);
void group_list_free(struct group_list *list);

// Index of a group with this label; -1: none.
int64_t group_list_find(const struct group_list *list, const char *label);

// Type and where it was found, as a group (groups.h) has them. All frames of `frames` are looked
// at, hidden ones too.
void type_of_stack(const struct frame_list *frames, char *label, char *location);

// The type that a function's name tells: false if it tells none. `is_element` becomes true for
// that of an allocator: the name of what is in a container, not of the container itself.
bool type_of_name(const char *name, char *type, size_t size, bool *is_element);

#endif
