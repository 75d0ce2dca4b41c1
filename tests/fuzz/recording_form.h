// SPDX-License-Identifier: Apache-2.0
// A recording in fewer bytes, for fuzzers: the header is 16 KiB of mostly nothing, and a change of
// nothing is a wasted run. The short form has those parts of the header that a reader looks at, one
// after the other, then the sections as they are. Parts are filled up with zeros; a text goes on
// with its last byte, so that it can be without an end. What does not begin like a recording, or is
// shorter than the parts, stands for itself.
#ifndef TESTS_FUZZ_RECORDING_FORM_H
#define TESTS_FUZZ_RECORDING_FORM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"

#define FORM_SECTIONS 20u  // entries of the section table; a recording has up to nineteen
#define FORM_TEXT_BYTES 48u

struct form_part {
    size_t offset, form_bytes, header_bytes;
};

#define FORM_TEXT(member, size)                                                                    \
    { offsetof(struct cairn_header, member), FORM_TEXT_BYTES, size }
#define FORM_WHOLE(member)                                                                         \
    {                                                                                              \
        offsetof(struct cairn_header, member), sizeof(((struct cairn_header *)0)->member),         \
            sizeof(((struct cairn_header *)0)->member)                                             \
    }
#define FORM_FACTS_BYTES                                                                           \
    (offsetof(struct cairn_header, sections) + FORM_SECTIONS * sizeof(struct cairn_section))

static const struct form_part form_parts[] = {
    {0, FORM_FACTS_BYTES, FORM_FACTS_BYTES},
    FORM_WHOLE(totals),
    FORM_WHOLE(lost),
    FORM_WHOLE(pace),
    FORM_TEXT(command, CAIRN_TEXT_COMMAND),
    FORM_TEXT(executable, CAIRN_TEXT_PATH),
    FORM_TEXT(directory, CAIRN_TEXT_PATH),
    FORM_TEXT(destination, CAIRN_TEXT_PATH),
};
enum { FORM_PARTS = sizeof form_parts / sizeof *form_parts };

static inline size_t form_head_bytes(void) {
    size_t size = 0;
    for (int i = 0; i < FORM_PARTS; i++) size += form_parts[i].form_bytes;
    return size;
}

// The recording that `form` stands for, for free(); NULL without memory.
static inline uint8_t *form_expand(const uint8_t *form, size_t size, size_t *whole_size) {
    size_t head = form_head_bytes();
    int is_form = size >= head && !memcmp(form, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    *whole_size = is_form ? CAIRN_HEADER_BYTES + size - head : size;
    uint8_t *whole = calloc(1, *whole_size ? *whole_size : 1);
    if (!whole || !size) return whole;
    if (!is_form) return memcpy(whole, form, size);
    for (int i = 0; i < FORM_PARTS; i++) {
        const struct form_part *part = &form_parts[i];
        memcpy(whole + part->offset, form, part->form_bytes);
        form += part->form_bytes;
        memset(whole + part->offset + part->form_bytes,
               part->header_bytes > part->form_bytes ? form[-1] : 0,
               part->header_bytes - part->form_bytes);
    }
    memcpy(whole + CAIRN_HEADER_BYTES, form, size - head);
    return whole;
}

// The short form of a whole recording, for free(); texts are cut. NULL without memory.
static inline uint8_t *form_shorten(const uint8_t *whole, size_t whole_size, size_t *size) {
    *size = form_head_bytes() + whole_size - CAIRN_HEADER_BYTES;
    uint8_t *form = malloc(*size), *at = form;
    if (!form) return NULL;
    for (int i = 0; i < FORM_PARTS; i++) {
        const struct form_part *part = &form_parts[i];
        memcpy(at, whole + part->offset, part->form_bytes);
        at += part->form_bytes;
        if (part->header_bytes > part->form_bytes) at[-1] = 0;
    }
    memcpy(at, whole + CAIRN_HEADER_BYTES, whole_size - CAIRN_HEADER_BYTES);
    return form;
}

#endif
