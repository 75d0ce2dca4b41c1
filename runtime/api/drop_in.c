// SPDX-License-Identifier: Apache-2.0
// Interfaces that allocators call already for other profilers, as pools by name (cairn/cairn.h):
//   - KDE's heaptrack_api.h, whose macros call these functions if they are there: the pool
//     "heaptrack_api"
//   - Perfetto's heap_profile.h (AHeapProfile), with a pool for each heap that is registered
// Whatever they are given is the program's: nothing is followed, and a heap that is none is
// ignored.
#include <stdbool.h>
#include <string.h>

#include "include/cairn/cairn.h"
#include "runtime/sys/lock.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

#define EXPORT __attribute__((visibility("default"), used))

enum { HEAPS_MAX = 16, NAME_BYTES = 48 };

// Handed to the callback of a heap that is enabled; opaque to programs.
struct session {
    uint64_t interval;
};

typedef void enabled_callback(void *data, const struct session *session);

// A heap (AHeapInfo); its number is one more than its place.
struct heap {
    char name[NAME_BYTES];
    struct cairn_pool *pool;  // (atomic) NULL: not registered, or not recorded
    enabled_callback *enabled;
    void *data;
};

static APART struct {
    struct lock lock;  // holder: address of its thread-locals
    uint32_t count;    // (atomic) of heaps that were made
    struct heap heaps[HEAPS_MAX];
    struct heap heaptrack;
} known;

static const char *name_of(const struct heap *heap) {
    return heap == &known.heaptrack ? "heaptrack_api" : heap->name;
}

// Returns the pool, which the first caller makes; NULL where nothing is recorded.
static struct cairn_pool *pool_of(struct heap *heap) {
    struct cairn_pool *pool = __atomic_load_n(&heap->pool, __ATOMIC_ACQUIRE);
    if (likely(pool) || !cairn_is_loaded() || !lock_take(&known.lock, (uintptr_t)&gate_self))
        return pool;
    if (!heap->pool)
        __atomic_store_n(&heap->pool, cairn_pool_create(name_of(heap)), __ATOMIC_RELEASE);
    pool = heap->pool;
    lock_give_back(&known.lock);
    return pool;
}

// --- heaptrack_api.h

EXPORT void heaptrack_malloc(void *block, size_t bytes);
EXPORT void heaptrack_malloc(void *block, size_t bytes) {
    cairn_pool_alloc(pool_of(&known.heaptrack), block, bytes);
}

EXPORT void heaptrack_free(void *block);
EXPORT void heaptrack_free(void *block) {
    cairn_pool_free(known.heaptrack.pool, block);
}

// Leaves the old block where there is no result.
EXPORT void heaptrack_realloc(void *old, size_t bytes, void *block);
EXPORT void heaptrack_realloc(void *old, size_t bytes, void *block) {
    if (!block) return;
    heaptrack_free(old);
    heaptrack_malloc(block, bytes);
}

// --- heap_profile.h

EXPORT struct heap *AHeapInfo_create(const char *name);
EXPORT struct heap *AHeapInfo_create(const char *name) {
    uint32_t number = __atomic_fetch_add(&known.count, 1, __ATOMIC_RELAXED);
    if (!name || number >= HEAPS_MAX) return NULL;
    struct heap *heap = &known.heaps[number];
    memcpy(heap->name, name, strnlen(name, sizeof heap->name - 1));
    return heap;
}

EXPORT struct heap *AHeapInfo_setEnabledCallback(struct heap *heap, enabled_callback *callback,
                                                 void *data);
EXPORT struct heap *AHeapInfo_setEnabledCallback(struct heap *heap, enabled_callback *callback,
                                                 void *data) {
    if (!heap) return NULL;
    heap->enabled = callback;
    heap->data = data;
    return heap;
}

// Recording ends with the process: the callback is never called.
EXPORT struct heap *AHeapInfo_setDisabledCallback(struct heap *heap, const void *callback,
                                                  const void *data);
EXPORT struct heap *AHeapInfo_setDisabledCallback(struct heap *heap, const void *callback,
                                                  const void *data) {
    (void)callback;
    (void)data;
    return heap;
}

// Every block is wanted.
EXPORT uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(const struct session *session);
EXPORT uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(const struct session *session) {
    return session ? session->interval : 0;
}

// 0: no heap, or nothing is recorded; the program need not report its blocks then.
EXPORT uint32_t AHeapProfile_registerHeap(struct heap *heap);
EXPORT uint32_t AHeapProfile_registerHeap(struct heap *heap) {
    const struct session session = {.interval = 1};
    if (!heap || !pool_of(heap)) return 0;
    if (heap->enabled) heap->enabled(heap->data, &session);
    return (uint32_t)(heap - known.heaps) + 1;
}

static struct cairn_pool *registered(uint32_t number) {
    return number && number <= HEAPS_MAX ? known.heaps[number - 1].pool : NULL;
}

// A block is whatever number the program has for it. True: it was noted.
EXPORT bool AHeapProfile_reportAllocation(uint32_t heap, uint64_t block, uint64_t bytes);
EXPORT bool AHeapProfile_reportAllocation(uint32_t heap, uint64_t block, uint64_t bytes) {
    struct cairn_pool *pool = registered(heap);
    cairn_pool_alloc(pool, (const void *)(uintptr_t)block, bytes);
    return pool;
}

// The program draws samples itself: `bytes` is what one stands for.
EXPORT bool AHeapProfile_reportSample(uint32_t heap, uint64_t block, uint64_t bytes);
EXPORT bool AHeapProfile_reportSample(uint32_t heap, uint64_t block, uint64_t bytes) {
    return AHeapProfile_reportAllocation(heap, block, bytes);
}

EXPORT void AHeapProfile_reportFree(uint32_t heap, uint64_t block);
EXPORT void AHeapProfile_reportFree(uint32_t heap, uint64_t block) {
    cairn_pool_free(registered(heap), (const void *)(uintptr_t)block);
}
