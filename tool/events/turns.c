// SPDX-License-Identifier: Apache-2.0
#include "tool/events/turns.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t hash_factor = UINT64_C(0x9e3779b97f4a7c15);
enum { ROOM_FIRST = 1 << 12, HASH_SHIFT = 32 };

void turns_free(struct turns *turns) {
    free(turns->places);
    *turns = (struct turns){0};
}

bool turns_copy(const struct turns *from, struct turns *to) {
    *to = (struct turns){.room = from->room, .count = from->count};
    if (!from->room) return true;
    to->places = calloc(from->room, sizeof *to->places);
    if (to->places) memcpy(to->places, from->places, from->room * sizeof *to->places);
    return to->places;
}

// Where the granule is, or the empty place for it.
static size_t place_of(const struct turns *turns, uint64_t granule) {
    size_t at = (size_t)(granule * hash_factor >> HASH_SHIFT) & (turns->room - 1);
    while (turns->places[at].granule && turns->places[at].granule != granule + 1)
        at = (at + 1) & (turns->room - 1);
    return at;
}

uint32_t turns_of(const struct turns *turns, uint64_t granule) {
    if (!turns->room) return 0;
    size_t at = place_of(turns, granule);
    return turns->places[at].granule ? (uint32_t)turns->places[at].turn : 0;
}

static bool grow(struct turns *turns) {
    struct turns larger = {.room = turns->room ? 2 * turns->room : ROOM_FIRST,
                           .count = turns->count};
    larger.places = calloc(larger.room, sizeof *larger.places);
    if (!larger.places) return false;
    for (size_t i = 0; i < turns->room; i++)
        if (turns->places[i].granule)
            larger.places[place_of(&larger, turns->places[i].granule - 1)] = turns->places[i];
    free(turns->places);
    *turns = larger;
    return true;
}

bool turns_set(struct turns *turns, uint64_t granule, uint32_t turn) {
    if (2 * turns->count >= turns->room && !grow(turns)) return false;
    size_t at = place_of(turns, granule);
    if (!turns->places[at].granule) turns->count++;
    turns->places[at].granule = granule + 1;
    turns->places[at].turn = turn;
    return true;
}
