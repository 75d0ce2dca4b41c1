// SPDX-License-Identifier: Apache-2.0
// Makes two runs of a program under two profilers comparable:
//   - realloc becomes malloc, copy, free: DHAT books a grown block on the stack of its first
//     allocation, cairn on the stack of the realloc
//   - time() stands still: libxml2 and others seed their hash tables with it
// It defines no other allocation function, so the profiler behind it sees all calls.
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOOK __attribute__((visibility("default")))
#define STILL_SECONDS 1700000000

HOOK void *realloc(void *block, size_t bytes) {
    if (!block) return malloc(bytes);
    if (!bytes) {
        free(block);
        return NULL;
    }
    size_t kept = malloc_usable_size(block);
    void *grown = malloc(bytes);
    if (!grown) return NULL;
    memcpy(grown, block, kept < bytes ? kept : bytes);
    free(block);
    return grown;
}

HOOK void *reallocarray(void *block, size_t count, size_t bytes) {
    size_t total;
    if (!__builtin_mul_overflow(count, bytes, &total)) return realloc(block, total);
    errno = ENOMEM;
    return NULL;
}

HOOK time_t time(time_t *result) {
    if (result) *result = STILL_SECONDS;
    return STILL_SECONDS;
}
