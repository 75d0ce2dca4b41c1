// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: how many events each granule of the heap has had (format/events.h).
#ifndef TOOL_EVENTS_TURNS_H
#define TOOL_EVENTS_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turns {
    struct {
        uint64_t granule;  // + 1; 0: the place is empty
        uint64_t turn;
    } * places;
    size_t room, count;  // room: a power of two
};

void turns_free(struct turns *turns);

// False without memory.
bool turns_copy(const struct turns *from, struct turns *to);

// 0: it had none.
uint32_t turns_of(const struct turns *turns, uint64_t granule);

// False without memory.
bool turns_set(struct turns *turns, uint64_t granule, uint32_t turn);

#endif
