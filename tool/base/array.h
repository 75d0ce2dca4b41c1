// SPDX-License-Identifier: Apache-2.0
// A growable array of any type: declare `ARRAY(struct item) items;`, zero it, push, free.
//
//     struct item *slot = array_push(&list);
//     if (!slot) return error_set(error, "out of memory");
//
// Pointers into it are valid until the next push.
#ifndef TOOL_BASE_ARRAY_H
#define TOOL_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define ARRAY(type)                                                                                \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

// A pointer to a new, uninitialized last item, or NULL without memory.
#define array_push(array)                                                                          \
    (array_make_room((void **)&(array)->items, &(array)->capacity, (array)->count,                 \
                     sizeof *(array)->items)                                                       \
         ? &(array)->items[(array)->count++]                                                       \
         : NULL)

#define array_free(array)                                                                          \
    (free((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

// Makes room for one item after `count`; doubles the capacity when it is used up.
static inline bool array_make_room(void **items, size_t *capacity, size_t count,
                                   size_t item_bytes) {
    enum { FIRST_CAPACITY = 16 };
    if (count < *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    void *grown = reallocarray(*items, wanted, item_bytes);
    if (!grown) return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

#endif
