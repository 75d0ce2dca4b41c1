// SPDX-License-Identifier: Apache-2.0
// The functions by which programs allocate and free, one a row: whatever wraps them, takes them
// over in a running process or leaves them out of stacks reads these lists.
#ifndef FORMAT_HEAP_FUNCTIONS_H
#define FORMAT_HEAP_FUNCTIONS_H

// ROW(use, result, name, parameters, way): `use` is handed on; the way is that of a hook for
// another namespace (attachment.h). Scripts read the rows too: one a line.
// clang-format off
#define CAIRN_HEAP_FUNCTIONS(ROW, use) \
    ROW(use, void *, malloc, (size_t size), alloc) \
    ROW(use, void, free, (void *block), free) \
    ROW(use, void *, calloc, (size_t count, size_t size), calloc) \
    ROW(use, void *, realloc, (void *block, size_t size), realloc) \
    ROW(use, void *, reallocarray, (void *block, size_t count, size_t size), rearray) \
    ROW(use, int, posix_memalign, (void **result, size_t alignment, size_t size), memalign) \
    ROW(use, void *, aligned_alloc, (size_t alignment, size_t size), aligned) \
    ROW(use, void *, memalign, (size_t alignment, size_t size), aligned) \
    ROW(use, void *, valloc, (size_t size), alloc) \
    ROW(use, void *, pvalloc, (size_t size), alloc)

// Those that many systems lack. Looking for a missing symbol makes the dynamic linker allocate, so
// that is left until a program calls one.
#define CAIRN_HEAP_FUNCTIONS_LATE(ROW, use) \
    ROW(use, void, cfree, (void *block), free) \
    ROW(use, void, free_sized, (void *block, size_t size), free) \
    ROW(use, void, free_aligned_sized, (void *block, size_t alignment, size_t size), free)
// clang-format on

// What a list takes of a row.
#define CAIRN_ROW_WHOLE(use, result, name, parameters, way) use(result, name, parameters)
#define CAIRN_ROW_NAME(use, result, name, parameters, way) use(name)
#define CAIRN_ROW_WAY(use, result, name, parameters, way) use(name, way)

#define CAIRN_ROW_ONE(use, result, name, parameters, way) +1
#define CAIRN_HEAP_FUNCTION_COUNT                                                                  \
    (0 CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_ONE, ) CAIRN_HEAP_FUNCTIONS_LATE(CAIRN_ROW_ONE, ))

#endif
