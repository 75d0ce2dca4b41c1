// SPDX-License-Identifier: Apache-2.0
// What fuzzers of outputs share: text that is written and then looked at, and names of functions
// that are as bad as names can be.
#ifndef TESTS_FUZZ_SHOWN_H
#define TESTS_FUZZ_SHOWN_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/recording_form.h"
#include "tool/export/export.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"

struct text {
    FILE *out;
    char *bytes;
    size_t size;
};

static inline void require(bool is_true) {
    if (!is_true) abort();
}

static inline void text_start(struct text *text) {
    text->out = open_memstream(&text->bytes, &text->size);
    require(text->out != NULL);
}

static inline bool is_among(const char *at, size_t left, const char *from, const char *to) {
    size_t length = strlen(from);
    return left >= length && memcmp(at, from, length) >= 0 && memcmp(at, to, length) <= 0;
}

static inline void check_screen(const struct text *text) {
    for (size_t i = 0; i < text->size; i++) {
        const char *at = text->bytes + i;
        size_t left = text->size - i;
        if (*at >= ' ' && *at < 0x7f) continue;
        require((unsigned char)*at >= ' ' || *at == '\n');
        require(*at != 0x7f && !is_among(at, left, "\xc2\x80", "\xc2\x9f"));
        require(!is_among(at, left, "\xe2\x80\xaa", "\xe2\x80\xae"));
        require(!is_among(at, left, "\xe2\x81\xa6", "\xe2\x81\xa9"));
    }
}

// jansson refuses what is no UTF-8.
static inline void check_json(const struct text *text) {
    json_error_t error;
    json_t *root = json_loadb(text->bytes, text->size, JSON_DECODE_INT_AS_REAL, &error);
    require(json_is_object(root));
    json_decref(root);
    for (size_t i = 0; i < text->size; i++)
        require((unsigned char)text->bytes[i] >= ' ' || text->bytes[i] == '\n');
}

static inline struct export export_of(const struct profile *profile,
                                      const struct frame_names *names) {
    return (struct export){.profile = profile,
                           .names = names,
                           .process_count = 1,
                           .program = "x",
                           .command = profile->recording->header.command,
                           .trust = "x",
                           .tool_version = "0"};
}

static inline void text_end(struct text *text, void (*check)(const struct text *)) {
    fclose(text->out);
    check(text);
    free(text->bytes);
}

static inline const struct frame *badly_named(void *context, uint32_t place, size_t *count) {
    enum { FRAMES = 256 };
    static struct frame frames[FRAMES];  // some places share one: recursion
    static const char *const names[] = {NULL, "good", "\x1b]0;\x07\n", "\xe2\x80\xae\xff\"\\", ""};
    enum { NAMES = sizeof names / sizeof *names };
    const struct profile *profile = context;
    const struct place *at = &profile->places.list.items[place];
    struct frame *frame = &frames[place % FRAMES];
    bool has_module = at->module != MODULE_NONE;
    *frame = (struct frame){.offset = at->address,
                            .function = names[at->address % NAMES],
                            .file = names[at->address / NAMES % NAMES],
                            .module = has_module ? profile->modules.modules[at->module].path : NULL,
                            .line = (unsigned)at->address,
                            .is_hidden = at->address % 7 == 0};
    *count = 1;
    return frame;
}

// Opens what `form` stands for and calls `show` with it.
static inline void show_form(const uint8_t *form, size_t form_size,
                             void (*show)(const struct profile *)) {
    struct recording recording;
    struct profile profile;
    size_t size;
    uint8_t *bytes = form_expand(form, form_size, &size);
    require(bytes != NULL);
    if (recording_open_memory(bytes, size, &recording, NULL)) {
        require(profile_build(&recording, &profile, NULL));
        show(&profile);
        profile_free(&profile);
        recording_close(&recording);
    }
    free(bytes);
}

#endif
