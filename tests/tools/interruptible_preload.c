// SPDX-License-Identifier: Apache-2.0
// An allocator that may be interrupted anywhere, called again by the handler and never returned to:
// one atomic flag a slot, no lock, no list. Behind cairn's library it shows what cairn does under
// signals, where libc's allocator would be the first to break.
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOOK __attribute__((visibility("default")))
#define SLOTS 32768u
#define SLOT_BYTES 1024u
// What does not fit a slot is never given back: it must last for `cairn run` too, which is below
// the same preload and packs the recording.
#define LARGE_BYTES (256u << 20)

static _Alignas(4096) char slots[SLOTS][SLOT_BYTES];
static atomic_bool is_taken[SLOTS];
static atomic_uint hand;
static _Alignas(4096) char large[LARGE_BYTES];
static atomic_size_t large_used;

static bool is_slot(const void *block) {
    return (const char *)block >= slots[0] && (const char *)block < slots[0] + sizeof slots;
}

static void *take_large(size_t bytes, size_t alignment) {
    size_t room = sizeof(size_t) + alignment;
    if (bytes > LARGE_BYTES - room) return NULL;
    size_t start = atomic_fetch_add(&large_used, (bytes + room + 15) & ~(size_t)15);
    if (start + bytes + room > LARGE_BYTES) return NULL;
    uintptr_t at = ((uintptr_t)large + start + room) & ~(alignment - 1);
    memcpy((void *)(at - sizeof bytes), &bytes, sizeof bytes);
    return (void *)at;
}

static void *take(size_t bytes) {
    for (unsigned i = 0; bytes <= SLOT_BYTES && i < SLOTS; i++) {
        unsigned slot = atomic_fetch_add(&hand, 1) % SLOTS;
        if (!atomic_exchange(&is_taken[slot], true)) return slots[slot];
    }
    void *block = take_large(bytes, 16);
    if (!block) errno = ENOMEM;
    return block;
}

static size_t room_of(const void *block) {
    size_t bytes;
    if (is_slot(block)) return SLOT_BYTES;
    memcpy(&bytes, (const char *)block - sizeof bytes, sizeof bytes);
    return bytes;
}

HOOK void *malloc(size_t bytes) {
    return take(bytes);
}

HOOK void free(void *block) {
    if (is_slot(block)) is_taken[((char *)block - slots[0]) / SLOT_BYTES] = false;
}

HOOK void *calloc(size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    void *block = take(total);
    return block ? memset(block, 0, total) : NULL;
}

HOOK void *realloc(void *block, size_t bytes) {
    void *grown = take(bytes);
    if (!block || !grown) return grown;
    size_t room = room_of(block);
    memcpy(grown, block, room < bytes ? room : bytes);
    free(block);
    return grown;
}

HOOK void *memalign(size_t alignment, size_t bytes) {
    return take_large(bytes, alignment < 16 ? 16 : alignment);
}

HOOK void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

HOOK int posix_memalign(void **result, size_t alignment, size_t bytes) {
    *result = memalign(alignment, bytes);
    return *result ? 0 : ENOMEM;
}

HOOK size_t malloc_usable_size(void *block) {
    return block ? room_of(block) : 0;
}
