// SPDX-License-Identifier: Apache-2.0
// Functions whose code is chosen when a program is bound to them (IFUNC), by resolvers that
// allocate: each begins with another function of the allocator.
#include <stdlib.h>
#include <string.h>

static int right(void) {
    return 1;
}
static int wrong(void) {
    return 0;
}

static int (*chosen(void *block))(void) {
    int (*function)(void) = block && memset(block, 1, 100) ? right : wrong;
    free(block);
    return function;
}

#define RESOLVED(name, call)                                                                       \
    __attribute__((used)) static int (*resolve_##name(void))(void) {                               \
        void *volatile block = call;                                                               \
        return chosen(block);                                                                      \
    }                                                                                              \
    __attribute__((ifunc("resolve_" #name))) int resolved_##name(void);

RESOLVED(malloc, malloc(100))
RESOLVED(calloc, calloc(10, 10))
RESOLVED(realloc, realloc(NULL, 100))
RESOLVED(reallocarray, reallocarray(NULL, 10, 10))
RESOLVED(aligned, aligned_alloc(64, 128))
