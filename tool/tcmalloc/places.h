// SPDX-License-Identifier: Apache-2.0
// Finds where tcmalloc of gperftools 2.8 to 2.18 keeps its tables: with its usual build options
// (pages of 8 KiB, blocks aligned to 16), on 64-bit machines, as its headers central_freelist.h,
// common.h, pagemap.h and thread_cache.h lay them out.
//
//     lists  of each size class, 1216 bytes, one behind the other: the class' number, the heads of
//            its rings of spans, and chains of blocks on their way between threads
//     sizes  bytes of a block and pages of a span, by class
//     root   2^17 words, by bits 31 to 47 of an address; each 0 or the address of a leaf
//     leaf   2^18 words, by bits 13 to 30: the span that the page belongs to
//     cache  of a thread: a list of free blocks for each class
//
// Nothing is found by names, so stripped and linked-in copies are read too. All four lie in the
// data of one module: the lists are told from other words by their numbers, which ascend, the sizes
// by what they must be, the root by leading to a span where that span's page is, and a cache by
// the sizes that it repeats. Later releases have a word more between the sizes and their count, and
// two less in front of what links caches.
#ifndef TOOL_TCMALLOC_PLACES_H
#define TOOL_TCMALLOC_PLACES_H

#include "tool/base/spans.h"
#include "tool/proc/memory_reader.h"

enum { TCMALLOC_CLASSES_MAX = 128, TCMALLOC_PAGE_SHIFT = 13 };
#define TCMALLOC_PAGE_BYTES (UINT64_C(1) << TCMALLOC_PAGE_SHIFT)

// A run of pages (struct Span).
struct tcmalloc_span {
    uint64_t start, length;  // numbers of pages
    uint64_t next, previous;
    uint64_t objects;  // the first free block; the others follow
    uint16_t used;     // blocks that are not in that list
    uint8_t size_class;
    uint8_t flags;
    uint32_t unused;
};
_Static_assert(sizeof(struct tcmalloc_span) == 48, "layout");
enum { TCMALLOC_IN_USE, TCMALLOC_KEPT, TCMALLOC_RETURNED, TCMALLOC_LOCATIONS = 3 };  // low flags

// The lists of a size class (class CentralFreeListPadded).
enum { TCMALLOC_SLOTS = 64 };
struct tcmalloc_lists {
    uint64_t lock, size_class;
    struct tcmalloc_span full, partial;  // heads of rings of spans
    uint64_t span_count, free_count;
    struct {
        uint64_t head, tail;
    } slots[TCMALLOC_SLOTS];  // chains of blocks
    uint32_t used_slots, slot_room, slot_room_most, unused;
    uint64_t padding[6];
};
_Static_assert(sizeof(struct tcmalloc_lists) == 1216, "layout");

// A thread's cache (class ThreadCache).
struct tcmalloc_cache {
    struct {
        uint64_t head;
        uint32_t count, unused[3];
        uint32_t size, padding;
    } lists[TCMALLOC_CLASSES_MAX];
    uint64_t others[8];  // with the addresses of the next cache and the one before
};
_Static_assert(sizeof(struct tcmalloc_cache) == 4160, "layout");

struct tcmalloc_places {
    uint64_t lists, root, cache;          // addresses; cache: any of them, 0: none was found
    unsigned next_place, previous_place;  // of those words in a cache's others
    unsigned class_count;
    uint64_t sizes[TCMALLOC_CLASSES_MAX], span_pages[TCMALLOC_CLASSES_MAX];
};

// Reads a thread's cache. False: there is none.
bool tcmalloc_cache_read(const struct memory_reader *memory, const struct tcmalloc_places *places,
                         uint64_t address, struct tcmalloc_cache *cache);

// Searches the settled data of modules. False: they are not there, or look otherwise.
bool tcmalloc_find_places(const struct memory_reader *memory, const struct spans *data,
                          struct tcmalloc_places *places);

#endif
