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

static size_t pieces_of(size_t bytes) {
    return (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

bool reserve_take(struct reserve *reserve, size_t bytes) {
    const size_t uppermost = 1;
    while (reserve->pieces.count < pieces_of(bytes) + uppermost)
        if (!add_piece(reserve)) return false;
    return true;
}

void reserve_use(struct reserve *reserve, size_t bytes) {
    void **pieces = reserve->pieces.items;
    size_t count = reserve->pieces.count, uppermost = 0;
    if (!count) return;
    for (size_t i = 1; i < count; i++)
        if ((uintptr_t)pieces[i] > (uintptr_t)pieces[uppermost]) uppermost = i;
    void *kept = pieces[uppermost];
    pieces[uppermost] = pieces[0];
    pieces[0] = kept;
    for (size_t given = pieces_of(bytes); given && count > 1; given--) free(pieces[--count]);
    reserve->pieces.count = count;
}

void reserve_free(struct reserve *reserve) {
    for (size_t i = 0; i < reserve->pieces.count; i++) free(reserve->pieces.items[i]);
    array_free(&reserve->pieces);
}
