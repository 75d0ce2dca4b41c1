// SPDX-License-Identifier: Apache-2.0
// How a library that a run preloads says so in its path, which is all that some children keep: web
// servers give CGI programs LD_PRELOAD, but not the variables CAIRN_….
//
// Between the directory and the file's name stand digits that no path needs: "./" is 1 and "/" is
// 0. Every program opens the same file by such a path, and nothing is made that would have to go.
#ifndef FORMAT_RUN_MARK_H
#define FORMAT_RUN_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum cairn_mark {
    CAIRN_MARK_NONE,
    CAIRN_MARK_ALONE,  // no tool: the variables say where the recording goes
    CAIRN_MARK_RUN,    // beside a tool, whose socket the number names
};
enum { CAIRN_MARK_ALONE_BITS = 3, CAIRN_MARK_RUN_BITS = 40, CAIRN_MARK_BYTES = 81 };

// Writes the digits of the number, highest first, and a NUL.
static inline void cairn_mark_write(char text[CAIRN_MARK_BYTES], uint64_t number, unsigned bits) {
    while (bits--) {
        if (number >> bits & 1) *text++ = '.';
        *text++ = '/';
    }
    *text = 0;
}

// Reads the mark in a path of `length` bytes.
static inline enum cairn_mark cairn_mark_read(const char *path, size_t length, uint64_t *number) {
    size_t end = length, at;
    unsigned bits = 0;
    while (end && path[end - 1] != '/') end--;
    for (at = end; at && (path[at - 1] == '/' || path[at - 1] == '.');) at--;
    while (at < end && path[at] != '/') at++;  // a directory's name may end in a dot
    *number = 0;
    for (at++; at < end; at++, bits++) {
        uint64_t digit = path[at] == '.';
        at += digit;
        if (path[at] != '/' || bits == CAIRN_MARK_RUN_BITS) return CAIRN_MARK_NONE;
        *number = *number << 1 | digit;
    }
    if (bits == CAIRN_MARK_RUN_BITS) return CAIRN_MARK_RUN;
    return bits == CAIRN_MARK_ALONE_BITS && !*number ? CAIRN_MARK_ALONE : CAIRN_MARK_NONE;
}

// Tells whether an entry of LD_PRELOAD is one of cairn's libraries.
static inline bool cairn_is_own_entry(const char *entry, size_t length) {
    static const char *const names[] = {"libcairn.so", "libcairn-cxx.so", "libcairn-musl.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t own = strlen(names[i]);
        if (length < own || strncmp(entry + length - own, names[i], own) != 0) continue;
        if (length == own || entry[length - own - 1] == '/') return true;
    }
    return false;
}

// Returns the first entry of cairn in the value of LD_PRELOAD, NULL if there is none.
static inline const char *cairn_own_entry(const char *list, size_t *length) {
    for (const char *entry = list; *entry; entry += *length + (entry[*length] != 0)) {
        *length = strcspn(entry, ": ");
        if (cairn_is_own_entry(entry, *length)) return entry;
    }
    return NULL;
}

// The name of the tool's socket in the abstract name space.
enum { CAIRN_MARK_SOCKET_BYTES = 17 };
static inline void cairn_mark_socket(char name[CAIRN_MARK_SOCKET_BYTES], uint64_t number) {
    static const char prefix[] = "cairn-";
    const unsigned digit_bits = 4, digit_mask = 15;
    size_t at = sizeof prefix - 1;
    memcpy(name, prefix, at);
    for (unsigned shift = CAIRN_MARK_RUN_BITS; shift; at++) {
        shift -= digit_bits;
        unsigned digit = (unsigned)(number >> shift) & digit_mask;
        name[at] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
    }
    name[at] = 0;
}

#endif
