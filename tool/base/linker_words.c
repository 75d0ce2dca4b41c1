// SPDX-License-Identifier: Apache-2.0
#include "tool/base/linker_words.h"

#include <stddef.h>
#include <string.h>

#include "tool/base/text.h"

bool linker_is_called(const char *path) {
    static const char *const starts[] = {"ld-linux", "ld-musl-", "ld.so", "ld64.so", "ld-2."};
    const char *name = text_base_name(path);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
    return false;
}

// glibc's and musl's options that take the next word; "--option=value" is one word.
unsigned linker_option_words(const char *word) {
    static const char *const with_value[] = {
        "--library-path",         "--inhibit-rpath",    "--audit", "--preload", "--argv0",
        "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
    if (strncmp(word, "--", 2) != 0) return 0;
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++)
        if (!strcmp(word, with_value[i])) return 2;
    return 1;
}

static const char *next_word(const char *word, const char *end) {
    size_t length = strnlen(word, (size_t)(end - word));
    return word + length < end ? word + length + 1 : end;
}

const char *linker_words_program(const char *words, const char *end) {
    const char *word = words < end ? next_word(words, end) : end;
    while (word < end) {
        unsigned count = linker_option_words(word);
        if (!count) return word;
        while (count-- && word < end) word = next_word(word, end);
    }
    return end;
}
