// SPDX-License-Identifier: Apache-2.0
// What kind of object a stack allocates, as far as names of functions tell: the templates that the
// allocation went through name containers and their elements ("std::map<int, Node>", "Node").
#ifndef TOOL_RENDER_TYPES_H
#define TOOL_RENDER_TYPES_H

#include "tool/render/frames.h"

// Type and where it was found, as a group (groups.h) has them. All frames of `frames` are looked
// at, hidden ones too.
void type_of_stack(const struct frame_list *frames, char *label, char *location);

// The type that a function's name tells: false if it tells none. `is_element` becomes true for
// that of an allocator: the name of what is in a container, not of the container itself.
bool type_of_name(const char *name, char *type, size_t size, bool *is_element);

#endif
