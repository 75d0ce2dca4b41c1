// SPDX-License-Identifier: Apache-2.0
// Calls every allocation function with every odd argument and prints what came back: block or not,
// errno, status, alignment, usable size, contents. Nothing printed depends on an address, so the
// output with and without cairn must be the same to the byte.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRNO_BEFORE 4242
#define PAGE 4096
#define HUGE_A ((size_t)PTRDIFF_MAX)
#define HUGE_B (SIZE_MAX - 100)

static const size_t sizes[] = {
    0,
    1,
    7,
    8,
    15,
    16,
    17,
    24,
    25,
    31,
    32,
    33,
    100,
    1000,
    1032,
    1033,
    4095,
    4096,
    4097,
    65536,
    131071,
    131072,
    131073,
    1 << 20,
    (1 << 25) + 1,
    HUGE_A,
    HUGE_A + 1,
    HUGE_B,
    SIZE_MAX,
    (size_t)1 << 46,
    (size_t)1 << 63,
};
static const size_t alignments[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    24,
    32,
    48,
    64,
    100,
    4096,
    65536,
    1 << 21,
    (size_t)1 << 46,
    (size_t)1 << 63,
    SIZE_MAX,
};
static const struct {
    size_t count, bytes;
} products[] = {
    {0, 0},
    {0, 1},
    {1, 0},
    {3, 7},
    {1000, 1000},
    {(size_t)1 << 32, (size_t)1 << 32},
    {(size_t)1 << 33, (size_t)1 << 33},
    {SIZE_MAX, 1},
    {1, SIZE_MAX},
    {SIZE_MAX, SIZE_MAX},
    {SIZE_MAX / 2 + 1, 2},
    {SIZE_MAX, 0},
    {0, SIZE_MAX},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static unsigned alignment_of(const void *block) {
    uintptr_t low = (uintptr_t)block & -(uintptr_t)block;
    return low > PAGE ? PAGE : (unsigned)low;
}

// The natural alignment of a block is luck: only what the caller may rely on is printed.
static const char *fits(const void *block, size_t alignment) {
    if (alignment & (alignment - 1)) return alignment_of(block) >= 16 ? "16" : "less";
    size_t wanted = alignment < 16 ? 16 : alignment;
    return (uintptr_t)block % wanted ? "misaligned" : "aligned";
}

// Where an aligned block is mapped by itself, its room depends on the address.
#define EXACT_ALIGNMENT_MAX 65536

static void report(const char *call, size_t a, size_t b, void *block, size_t alignment) {
    int error = errno;
    printf("%s(%zu, %zu): ", call, a, b);
    if (block && alignment <= EXACT_ALIGNMENT_MAX)
        printf("block %s, usable %zu", fits(block, alignment), malloc_usable_size(block));
    else if (block)
        printf("block %s", fits(block, alignment));
    else
        printf("NULL");
    printf(", errno %d\n", error);
}

static void fill(void *block, size_t bytes) {
    if (block && bytes < ((size_t)1 << 26)) memset(block, 0xa5, bytes);
}

static bool is_filled(const unsigned char *block, size_t bytes, unsigned char value) {
    for (size_t i = 0; i < bytes; i++) {
        if (block[i] != value) return false;
    }
    return true;
}

static void *fresh(size_t bytes) {
    void *block = malloc(bytes);
    fill(block, bytes);
    errno = ERRNO_BEFORE;
    return block;
}

static void try_malloc(void) {
    for (size_t i = 0; i < COUNT(sizes); i++) {
        errno = ERRNO_BEFORE;
        void *block = malloc(sizes[i]);
        report("malloc", sizes[i], 0, block, 16);
        fill(block, sizes[i]);
        errno = ERRNO_BEFORE;
        free(block);
        if (errno != ERRNO_BEFORE) printf("free changed errno to %d\n", errno);
    }
}

static void try_calloc(void) {
    for (size_t i = 0; i < COUNT(products); i++) {
        free(fresh(1000));
        errno = ERRNO_BEFORE;
        unsigned char *block = calloc(products[i].count, products[i].bytes);
        report("calloc", products[i].count, products[i].bytes, block, 16);
        size_t total = products[i].count * products[i].bytes;
        if (block && !is_filled(block, total, 0)) printf("calloc: not zeroed\n");
        free(block);
    }
}

static void report_realloc(const char *call, size_t from, size_t to, unsigned char *old,
                           unsigned char *block) {
    report(call, from, to, block, 16);
    size_t kept = from < to ? from : to;
    if (block && !is_filled(block, kept, 0xa5)) printf("%s: contents lost\n", call);
    bool is_old_alive = !block && to != 0;
    if (is_old_alive && old && !is_filled(old, from, 0xa5)) printf("%s: old block lost\n", call);
    if (is_old_alive) free(old);
    free(block);
}

static void try_realloc(void) {
    static const size_t from[] = {0, 1, 24, 100, 1000, 131072, 1 << 20};
    for (size_t i = 0; i < COUNT(from); i++) {
        for (size_t j = 0; j < COUNT(sizes); j++) {
            unsigned char *old = fresh(from[i]);
            report_realloc("realloc", from[i], sizes[j], old, realloc(old, sizes[j]));
        }
    }
    for (size_t j = 0; j < COUNT(sizes); j++) {
        errno = ERRNO_BEFORE;
        void *block = realloc(NULL, sizes[j]);
        report("realloc NULL", 0, sizes[j], block, 16);
        free(block);
    }
}

static void try_reallocarray(void) {
    for (size_t i = 0; i < COUNT(products); i++) {
        unsigned char *old = fresh(40);
        void *block = reallocarray(old, products[i].count, products[i].bytes);
        report("reallocarray", products[i].count, products[i].bytes, block, 16);
        // Whether NULL freed the block depends on the product being zero, not on its overflow.
        size_t total;
        bool is_over = __builtin_mul_overflow(products[i].count, products[i].bytes, &total);
        if (!block && (is_over || total)) {
            if (!is_filled(old, 40, 0xa5)) printf("reallocarray: old block lost\n");
            free(old);
        }
        free(block);
        errno = ERRNO_BEFORE;
        block = reallocarray(NULL, products[i].count, products[i].bytes);
        report("reallocarray NULL", products[i].count, products[i].bytes, block, 16);
        free(block);
    }
}

static void try_posix_memalign(size_t alignment, size_t bytes) {
    static char mark;
    void *block = &mark;
    errno = ERRNO_BEFORE;
    int status = posix_memalign(&block, alignment, bytes);
    printf("posix_memalign status %d%s; ", status, block == &mark ? ", pointer untouched" : "");
    report("posix_memalign", alignment, bytes, status ? NULL : block, alignment);
    if (!status) {
        fill(block, bytes);
        free(block);
    }
}

static void try_one_aligned(const char *name, void *(*function)(size_t, size_t), size_t alignment,
                            size_t bytes) {
    errno = ERRNO_BEFORE;
    void *block = function(alignment, bytes);
    report(name, alignment, bytes, block, alignment);
    fill(block, bytes);
    free(block);
}

static void try_aligned(void) {
    static const size_t bytes[] = {0, 1, 10, 64, 4096, 200000, HUGE_A, HUGE_B, SIZE_MAX};
    for (size_t i = 0; i < COUNT(alignments); i++) {
        for (size_t j = 0; j < COUNT(bytes); j++) {
            try_posix_memalign(alignments[i], bytes[j]);
            try_one_aligned("aligned_alloc", aligned_alloc, alignments[i], bytes[j]);
            try_one_aligned("memalign", memalign, alignments[i], bytes[j]);
        }
    }
}

static void try_pages(void) {
    for (size_t i = 0; i < COUNT(sizes); i++) {
        errno = ERRNO_BEFORE;
        void *block = valloc(sizes[i]);
        report("valloc", sizes[i], 0, block, PAGE);
        free(block);
        errno = ERRNO_BEFORE;
        block = pvalloc(sizes[i]);
        report("pvalloc", sizes[i], 0, block, PAGE);
        free(block);
    }
}

// Names that some libc does not have must not appear because of a profiler.
static void try_presence(void) {
    static const char *const names[] = {"malloc",        "free",          "calloc", "realloc",
                                        "memalign",      "reallocarray",  "valloc", "pvalloc",
                                        "aligned_alloc", "posix_memalign"};
    for (size_t i = 0; i < COUNT(names); i++) {
        printf("%s is %s\n", names[i], dlsym(RTLD_DEFAULT, names[i]) ? "there" : "missing");
    }
}

int main(void) {
    try_malloc();
    try_calloc();
    try_realloc();
    try_reallocarray();
    try_aligned();
    try_pages();
    try_presence();
    errno = ERRNO_BEFORE;
    free(NULL);
    printf("free(NULL): errno %d, usable size of NULL %zu\n", errno, malloc_usable_size(NULL));
    return 0;
}
