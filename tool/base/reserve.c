// SPDX-License-Identifier: Apache-2.0
#include "tool/base/reserve.h"

#include <stdint.h>
#include <string.h>

// Below what malloc maps for itself, which would go back to the system at once.
enum { PIECE_BYTES = 64 << 10 };

static bool add_piece(struct reserve *reserve) {
    void *piece = malloc(PIECE_BYTES), **slot = piece ? array_push(&reserve->pieces) : NULL;
    if (!slot) {
        free(piece);
        return false;
    }
    explicit_bzero(piece, PIECE_BYTES);  // a plain memset of what is freed unread may be left out
    *slot = piece;
    return true;
}

bool reserve_take(struct reserve *reserve, size_t bytes) {
    const size_t uppermost = 1;
    size_t wanted = (bytes + PIECE_BYTES - 1) / PIECE_BYTES + uppermost;
    while (reserve->pieces.count < wanted)
        if (!add_piece(reserve)) return false;
    return true;
}

void reserve_use(struct reserve *reserve) {
    void **pieces = reserve->pieces.items;
    size_t count = reserve->pieces.count, uppermost = 0;
    if (!count) return;
    for (size_t i = 1; i < count; i++)
        if ((uintptr_t)pieces[i] > (uintptr_t)pieces[uppermost]) uppermost = i;
    for (size_t i = 0; i < count; i++)
        if (i != uppermost) free(pieces[i]);
    pieces[0] = pieces[uppermost];
    reserve->pieces.count = 1;
}

void reserve_free(struct reserve *reserve) {
    for (size_t i = 0; i < reserve->pieces.count; i++) free(reserve->pieces.items[i]);
    array_free(&reserve->pieces);
}
