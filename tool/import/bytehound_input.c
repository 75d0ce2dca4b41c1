// SPDX-License-Identifier: Apache-2.0
// A file is a list of chunks: a byte that says whether it is packed (1) or not (2), its length, and
// its bytes, unpacked 512 KiB at most. They are blocks of LZ4, but for their ends: bytehound's own
// encoder lets the last match reach the end of a block, which liblz4 takes for damage.
#include <stdlib.h>
#include <string.h>

#include "tool/import/bytehound.h"

enum { PACKED = 1, PLAIN = 2, CHUNK_MAX = 1 << 20, MATCH_LEAST = 4, LONG_LENGTH = 15 };

bool bytehound_input_start(struct bytehound_input *input, FILE *in, struct error *error) {
    *input = (struct bytehound_input){.in = in, .error = error};
    input->packed = malloc(CHUNK_MAX);
    input->chunk = malloc(CHUNK_MAX);
    return input->packed && input->chunk;
}

void bytehound_input_free(struct bytehound_input *input) {
    free(input->packed);
    free(input->chunk);
}

// A length of 15 goes on in the next bytes, as long as they are 255.
static bool take_length(const uint8_t **at, const uint8_t *end, size_t *length) {
    if (*length != LONG_LENGTH) return true;
    while (*at < end && *length < CHUNK_MAX) {
        uint8_t more = *(*at)++;
        *length += more;
        if (more != UINT8_MAX) return true;
    }
    return false;
}

static bool unpack(struct bytehound_input *input, size_t size) {
    const uint8_t *at = input->packed, *end = at + size;
    uint8_t *out = input->chunk, *out_end = out + CHUNK_MAX;
    while (at < end) {
        uint8_t token = *at++;
        size_t literals = token >> 4, match = token & LONG_LENGTH;
        if (!take_length(&at, end, &literals) || literals > (size_t)(end - at) ||
            literals > (size_t)(out_end - out))
            return false;
        memcpy(out, at, literals);
        at += literals;
        out += literals;
        if (at == end) break;
        if (end - at < 2) return false;
        size_t offset = at[0] | (size_t)at[1] << 8;
        at += 2;
        if (!take_length(&at, end, &match)) return false;
        match += MATCH_LEAST;
        if (!offset || offset > (size_t)(out - input->chunk) || match > (size_t)(out_end - out))
            return false;
        for (; match; match--, out++) *out = out[-(ptrdiff_t)offset];  // it may overlap itself
    }
    input->filled = (size_t)(out - input->chunk);
    return true;
}

static bool bad(const struct bytehound_input *input, const char *what) {
    return error_set(input->error, "bytehound: byte %ld: %s", ftell(input->in), what);
}

static bool read_chunk(struct bytehound_input *input) {
    uint32_t size;
    int kind = getc(input->in);
    input->used = input->filled = 0;
    input->is_over = kind == EOF;
    if (input->is_over) return false;
    input->is_over = input->is_cut = fread(&size, 1, sizeof size, input->in) != sizeof size;
    if (input->is_cut) return false;
    if (kind != PACKED && kind != PLAIN)
        return bad(input, "neither a packed chunk nor a plain one");
    if (size > CHUNK_MAX) return bad(input, "a chunk that is too large");
    uint8_t *to = kind == PACKED ? input->packed : input->chunk;
    input->is_over = input->is_cut = fread(to, 1, size, input->in) != size;
    if (input->is_cut) return false;
    input->filled = size;
    return kind == PLAIN || unpack(input, size) || bad(input, "a packed chunk that is damaged");
}

bool bytehound_take(struct bytehound_input *input, void *out, uint64_t size) {
    for (uint8_t *to = out; size;) {
        size_t there = input->filled - input->used;
        if (!there) {
            if (!read_chunk(input)) return false;
            continue;
        }
        if (there > size) there = (size_t)size;
        if (to) {
            memcpy(to, input->chunk + input->used, there);
            to += there;
        }
        input->used += there;
        input->position += there;
        size -= there;
    }
    return true;
}

bool bytehound_take_varint(struct bytehound_input *input, uint64_t *value) {
    uint8_t first, bytes[8] = {0};
    if (!bytehound_take(input, &first, 1)) return false;
    unsigned more = first == UINT8_MAX ? 8 : (unsigned)__builtin_clz(~((unsigned)first << 24));
    if (!bytehound_take(input, bytes, more)) return false;
    *value = more < 8 ? (uint64_t)(first & (UINT8_MAX >> more)) << (8 * more) : 0;
    for (unsigned i = 0; i < more; i++) *value |= (uint64_t)bytes[i] << (8 * i);
    return true;
}
