// SPDX-License-Identifier: Apache-2.0
// The functions of libc that the library needs (dev/runtime-symbols.allow), as C defines them.
// Compiled without builtins: the compiler would make calls of themselves of these loops.
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "runtime/sys/sys.h"

enum { WORD = sizeof(uint64_t) };

static uint64_t load_word(const void *from) {
    typedef uint64_t any_word __attribute__((may_alias, aligned(1)));
    return *(const any_word *)from;
}

static void store_word(void *to, uint64_t word) {
    typedef uint64_t any_word __attribute__((may_alias, aligned(1)));
    *(any_word *)to = word;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    uint8_t *out = to;
    const uint8_t *in = from;
    for (; count >= WORD; count -= WORD, in += WORD, out += WORD) store_word(out, load_word(in));
    while (count--) *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t count) {
    uint8_t *out = to;
    const uint8_t *in = from;
    if ((uintptr_t)to - (uintptr_t)from >= count) return memcpy(to, from, count);
    for (; count >= WORD; count -= WORD)
        store_word(out + count - WORD, load_word(in + count - WORD));
    while (count--) out[count] = in[count];
    return to;
}

void *memset(void *to, int value, size_t count) {
    const uint64_t every_byte = UINT64_C(0x0101010101010101);
    uint8_t *out = to;
    for (; count >= WORD; count -= WORD, out += WORD) store_word(out, every_byte * (uint8_t)value);
    while (count--) *out++ = (uint8_t)value;
    return to;
}

int memcmp(const void *one, const void *other, size_t count) {
    const uint8_t *a = one, *b = other;
    for (; count >= WORD && load_word(a) == load_word(b); count -= WORD, a += WORD, b += WORD) {
    }
    for (; count; count--, a++, b++)
        if (*a != *b) return *a - *b;
    return 0;
}

void *memchr(const void *bytes, int value, size_t count) {
    for (const uint8_t *at = bytes; count--; at++)
        if (*at == (uint8_t)value) return (void *)(uintptr_t)at;
    return NULL;
}

void *memrchr(const void *bytes, int value, size_t count) {
    for (const uint8_t *start = bytes; count--;)
        if (start[count] == (uint8_t)value) return (void *)(uintptr_t)(start + count);
    return NULL;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

size_t strnlen(const char *text, size_t most) {
    size_t length = 0;
    while (length < most && text[length]) length++;
    return length;
}

int strncmp(const char *one, const char *other, size_t most) {
    for (; most; most--, one++, other++)
        if (*one != *other || !*one) return (uint8_t)*one - (uint8_t)*other;
    return 0;
}

int strcmp(const char *one, const char *other) {
    return strncmp(one, other, SIZE_MAX);
}

size_t strcspn(const char *text, const char *ends) {
    size_t length = 0;
    for (; text[length]; length++)
        for (const char *end = ends; *end; end++)
            if (text[length] == *end) return length;
    return length;
}

char *strrchr(const char *text, int letter) {
    return memrchr(text, letter, strlen(text) + 1);
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (;; text++) {
        if (!strncmp(text, part, length)) return (char *)(uintptr_t)text;
        if (!*text) return NULL;
    }
}

// Handlers that the user asked for (--signal) are not to be had in static programs.
int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    (void)number, (void)action, (void)before;
    errno = ENOSYS;
    return -1;
}
