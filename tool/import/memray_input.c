// SPDX-License-Identifier: Apache-2.0
// Numbers and texts of memray's files.
#include <stdio.h>
#include <stdlib.h>

#include "tool/import/memray.h"

enum { TEXT_MAX = 1 << 16, VARINT_BITS = 7, VARINT_MORE = 0x80 };

bool memray_bad(const struct memray_input *input, const char *what) {
    return error_set(input->error, "memray: byte %ld: %s", ftell(input->in), what);
}

bool memray_cut(struct memray_input *input) {
    input->is_cut = true;
    return false;
}

bool memray_take(struct memray_input *input, void *out, size_t size) {
    return fread(out, 1, size, input->in) == size || memray_cut(input);
}

bool memray_take_text(struct memray_input *input, struct memray_text *text) {
    ssize_t length = getdelim(&text->text, &text->room, 0, input->in);
    if (length <= 0 || text->text[length - 1]) return memray_cut(input);
    return length < TEXT_MAX || memray_bad(input, "a text that is too long");
}

bool memray_take_varint(struct memray_input *input, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += VARINT_BITS) {
        int byte = getc(input->in);
        if (byte == EOF) return memray_cut(input);
        *value |= (uint64_t)(byte & (VARINT_MORE - 1)) << shift;
        if (!(byte & VARINT_MORE)) return true;
    }
    return memray_bad(input, "a number that is too long");
}

// 0, -1, 1, -2, 2, … are 0, 1, 2, 3, 4, …
bool memray_take_signed(struct memray_input *input, int64_t *value) {
    uint64_t folded;
    if (!memray_take_varint(input, &folded)) return false;
    *value = (int64_t)(folded >> 1 ^ (~(folded & 1) + 1));
    return true;
}

bool memray_take_difference(struct memray_input *input, uint64_t *last) {
    int64_t difference;
    if (!memray_take_signed(input, &difference)) return false;
    *last += (uint64_t)difference;
    return true;
}
