// SPDX-License-Identifier: Apache-2.0
// The live map: block address -> (cell id, requested size), for every block that was recorded and
// not yet freed. No locks, no hashing of blocks: one slot per granule of heap.
//
//   address ──bits 36-46──▶ top ──bits 22-35──▶ mid ──▶ leaf: the slots of 4 MiB of heap
//
// Mids and leaves are made when a block first lies there, behind a full heap those of a large page
// at a time (live.c); before that there is 0 in their place, so that tops nobody asks for take no
// memory. A mid holds not the leaf's address but where its slots would begin if they began at
// address 0 of the heap.
//
// Two slot layouts, chosen once by the allocator in use:
//   narrow  4 bytes per 32 bytes of heap, for glibc, whose chunks are at least 32 bytes apart and
//           tell their usable size in the word before the block:
//             id (25 bits) << 7 | address bit 4 << 6 | slack (6 bits)
//           requested = room - slack, room being what the chunk's header tells (live_room);
//           slack 63: the next slot holds the slack - 62, never 0 (a block with so much is long
//           enough to own that slot alone)
//   wide    8 bytes per 16 bytes of heap, for every other allocator:
//             size (32 bits) << 32 | id (32 bits);
//           size 2^32-1: the next slot holds the size. Blocks at odd multiples of 8 (8-byte size
//           classes) live in a second set of tops, mids and leaves, chosen by address bit 3.
// Where the wide layout is in use, its own tops hold the blocks and the narrow one stays empty, so
// that the fast functions of the narrow layout leave such a block to others.
// Where ages are recorded (has_births), each slot has a birth: they lie behind the slots of the
// leaf. They are never taken out, but overwritten by the next block; a block that is not in the map
// has none. An empty slot is 0. A slot never holds an address, so leak scanners take nothing for a
// pointer.
//
// Invariants: a block's slot is written by the thread that got the block and cleared by the thread
// that gives it back, before the allocator sees it; so one slot has one writer at a time. Leaves
// are never given back. Private memory: a forked child has its own copy.
#ifndef RUNTIME_LIVE_LIVE_H
#define RUNTIME_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/live_map.h"
#include "runtime/sys/sys.h"

#define LIVE_ID_LIMIT (1u << (32 - LIVE_ID_SHIFT))

struct live_mid {
    uintptr_t origins[LIVE_MID_COUNT];  // (atomic) 0: no leaf; else leaf - (slots before it)
};

struct live {
    struct live_mid **tops;  // (atomic) live_narrow, or those of the wide mode: twice as many
    bool is_wide;
    bool has_births;  // set once, before the first block: behind its slots a leaf has its births,
                      // or turns
};

extern HIDDEN struct live live;
extern HIDDEN struct live_mid *live_narrow[LIVE_TOP_COUNT];  // (atomic)

// A block as the map knows it; id 0: unknown.
struct live_block {
    uint32_t id;
    uint64_t size;
};

// An address without what a pointer may carry in its highest byte: aarch64 ignores that, and an
// allocator may put a tag there (MTE). What lies before a block is read without one: its tag is
// another.
ALWAYS_INLINE uintptr_t live_untagged(uintptr_t address) {
#if defined(__aarch64__)
    return address & (UINTPTR_MAX >> 8);
#else
    return address;
#endif
}

// Makes an empty map of live_narrow, which holds nothing but 0 as the library begins.
bool live_init(bool is_wide);

// Of the narrow mode: where the slots would begin; 0 if there is no leaf.
ALWAYS_INLINE uintptr_t live_origin(uintptr_t address) {
    const uintptr_t top_mask = LIVE_TOP_COUNT - 1, mid_mask = LIVE_MID_COUNT - 1;
    const struct live_mid *mid =
        __atomic_load_n(&live_narrow[address >> LIVE_MID_SHIFT & top_mask], __ATOMIC_ACQUIRE);
    if (unlikely(!mid)) return 0;
    return __atomic_load_n(&mid->origins[address >> LIVE_LEAF_SHIFT & mid_mask], __ATOMIC_ACQUIRE);
}

ALWAYS_INLINE uint32_t *live_narrow_slot(uintptr_t origin, uintptr_t address) {
    return (uint32_t *)(origin + (live_untagged(address) >> LIVE_NARROW_SHIFT) * sizeof(uint32_t));
}

// A leaf that one thread remembers; it is never given back. Its owner forgets it where a change of
// it may have been interrupted for good.
struct live_near {
    uintptr_t start;  // the first address of its 4 MiB of heap; LIVE_NEAR_NONE: none
    uint32_t *slots;
};
#define LIVE_NEAR_NONE ((uintptr_t)1 << 62)  // no process has memory there

// The slot of an address in that leaf; NULL: it lies elsewhere.
ALWAYS_INLINE uint32_t *live_slot_near(const struct live_near *near, uintptr_t address) {
    uintptr_t offset = live_untagged(address) - near->start;
    if (unlikely(offset >= (uintptr_t)1 << LIVE_LEAF_SHIFT)) return NULL;
    uint32_t *slot = near->slots + (offset >> LIVE_NARROW_SHIFT);
    if (!slot) __builtin_unreachable();
    return slot;
}

// The slot of any address; NULL: there is no leaf.
ALWAYS_INLINE uint32_t *live_slot(const struct live_near *near, uintptr_t address) {
    uint32_t *slot = live_slot_near(near, address);
    if (likely(slot != NULL)) return slot;
    uintptr_t origin = live_origin(address);
    return likely(origin) ? live_narrow_slot(origin, address) : NULL;
}

// The same, and its leaf is remembered.
ALWAYS_INLINE uint32_t *live_slot_keep(struct live_near *near, uintptr_t address) {
    uint32_t *slot = live_slot_near(near, address);
    if (likely(slot != NULL)) return slot;
    uintptr_t origin = live_origin(address);
    if (unlikely(!origin)) return NULL;
    near->start = live_untagged(address) >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT;
    near->slots = live_narrow_slot(origin, near->start);
    return live_narrow_slot(origin, address);
}

// glibc: the header of the chunk, before the block.
ALWAYS_INLINE uint64_t live_header(uintptr_t address) {
    return *(const uint64_t *)(live_untagged(address) - 8);
}

// Bytes from the block to the end of its chunk and the size word of the next. Blocks that have a
// mapping of their own may use 8 of them less.
ALWAYS_INLINE uint64_t live_header_room(uint64_t header) {
    const uint64_t flags = 7, size_word_bytes = 8;
    return (header & ~flags) - size_word_bytes;
}
ALWAYS_INLINE uint64_t live_room(uintptr_t address) {
    return live_header_room(live_header(address));
}

// What a slot holds, but for the half of the granule that the block begins in.
ALWAYS_INLINE uint32_t live_narrow_base(uint32_t id, uint32_t slack) {
    return slack + (id << LIVE_ID_SHIFT);
}
ALWAYS_INLINE uint32_t live_narrow_half(uintptr_t address) {
    const uint32_t half_bytes = 16, half_factor = (1u << LIVE_HALF_SHIFT) / half_bytes;
    return ((uint32_t)address & half_bytes) * half_factor;
}
ALWAYS_INLINE uint32_t live_narrow_word(uintptr_t address, uint32_t id, uint32_t slack) {
    return live_narrow_base(id, slack) + live_narrow_half(address);
}

// Enters a block. `stale` gets what the slot held: nonzero id if the free of an older block at this
// address was never seen. False: no memory, the block stays unknown.
bool live_insert(uintptr_t address, uint32_t id, uint64_t size, struct live_block *stale);

// Takes a block out; id 0 if it was not there.
struct live_block live_take(uintptr_t address);

// A look at a slot that is about to be written. It writes what it reads, so that a page of slots
// that was never touched is made by one page fault: reading it first would take two.
ALWAYS_INLINE bool live_is_empty(uint32_t *slot) {
#if defined(__x86_64__)
    bool is_zero;
    __asm__("orl $0, %0" : "+m"(*slot), "=@ccz"(is_zero));
    if (!slot) __builtin_unreachable();  // the compiler knows this of a plain read
    return is_zero;
#else
    return *slot == 0;
#endif
}

// The slot of a block that the fast path may enter, the block's header and slack; NULL: live_insert
// decides.
ALWAYS_INLINE uint32_t *live_insert_slot(struct live_near *near, uintptr_t address, uint64_t size,
                                         uint64_t *header, uint32_t *slack) {
    uint32_t *slot = live_slot_keep(near, address);
    if (unlikely(!slot)) return NULL;
    *header = live_header(address);
    uint64_t bytes = live_header_room(*header) - size;
    if (unlikely(bytes >= LIVE_SLACK_ESCAPE) || unlikely(!live_is_empty(slot))) return NULL;
    *slack = (uint32_t)bytes;
    return slot;
}

// The same of a block that has the header and the size, and so the slack, of one before.
ALWAYS_INLINE uint32_t *live_insert_slot_again(struct live_near *near, uintptr_t address,
                                               uint64_t header) {
    uint32_t *slot = live_slot_keep(near, address);
    if (unlikely(!slot)) return NULL;
    if (unlikely(live_header(address) != header) || unlikely(!live_is_empty(slot))) return NULL;
    return slot;
}

// False: the block is not in the map. (A slot that is not its own is taken for it.)
bool live_wide_has(uintptr_t address);
ALWAYS_INLINE bool live_may_have(uintptr_t address) {
    uintptr_t origin = live_origin(address);
    if (unlikely(live.is_wide)) return live_wide_has(address);
    return origin && *live_narrow_slot(origin, address) != 0;
}

// The slot of a block that the fast path may take out, and the block; NULL: live_take decides. The
// id is 0 if the slot is empty.
ALWAYS_INLINE uint32_t *live_take_slot(const struct live_near *near, uintptr_t address,
                                       struct live_block *block) {
    uint32_t *slot = live_slot(near, address);
    if (unlikely(!slot)) return NULL;
    uint32_t word = *slot, slack = word & LIVE_SLACK_ESCAPE;
    block->id = word >> LIVE_ID_SHIFT;
    if (unlikely(slack == LIVE_SLACK_ESCAPE)) return NULL;
    block->size = live_room(address) - slack;
    return slot;
}

// The wide mode's slot of an address; NULL: there is no leaf.
ALWAYS_INLINE uint64_t *live_wide_slot(uintptr_t address) {
    const uintptr_t top_mask = LIVE_TOP_COUNT - 1, mid_mask = LIVE_MID_COUNT - 1;
    uintptr_t top = (address >> LIVE_MID_SHIFT & top_mask) + (address >> 3 & 1) * LIVE_TOP_COUNT;
    const struct live_mid *mid = __atomic_load_n(&live.tops[top], __ATOMIC_ACQUIRE);
    if (unlikely(!mid)) return NULL;
    uintptr_t origin =
        __atomic_load_n(&mid->origins[address >> LIVE_LEAF_SHIFT & mid_mask], __ATOMIC_ACQUIRE);
    if (unlikely(!origin)) return NULL;
    return (uint64_t *)(origin + (address >> LIVE_WIDE_SHIFT) * sizeof(uint64_t));
}

// The same two functions of the wide mode. The slot before a leaf's first one is in another leaf.
ALWAYS_INLINE uint64_t *live_wide_insert_slot(uintptr_t address, uint32_t id, uint64_t size,
                                              uint64_t *word) {
    const uintptr_t leaf_mask = ((uintptr_t)1 << LIVE_LEAF_SHIFT) - 1;
    uint64_t *slot = live_wide_slot(address);
    if (unlikely(!slot || (address & leaf_mask) >> LIVE_WIDE_SHIFT == 0)) return NULL;
    if (unlikely(size >= LIVE_SIZE_ESCAPE || *slot != 0 || slot[-1] >> 32 == LIVE_SIZE_ESCAPE))
        return NULL;
    *word = size << 32 | id;
    return slot;
}

ALWAYS_INLINE uint64_t *live_wide_take_slot(uintptr_t address, struct live_block *block) {
    uint64_t *slot = live_wide_slot(address);
    if (unlikely(!slot || *slot >> 32 == LIVE_SIZE_ESCAPE)) return NULL;
    *block = (struct live_block){(uint32_t)*slot, *slot >> 32};
    return slot;
}

// Room of a block beyond its size, as far as the mode knows.
ALWAYS_INLINE uint64_t live_slack(uintptr_t address, uint64_t size) {
    if (live.is_wide) return 0;
    uint64_t room = live_room(address);
    return room > size ? room - size : 0;
}

// glibc: tells whether realloc moved a block by mremap, which copies nothing: both have a mapping
// of their own. The old one had if it began where such blocks do, as one in 256 others does too.
ALWAYS_INLINE bool live_is_remapped(uintptr_t old, uintptr_t address) {
    const uint64_t mapped_flag = 2, page_offsets = 4095, head_bytes = 16;
    return (old & page_offsets) == head_bytes && !live.is_wide &&
           live_header(address) & mapped_flag;
}

// glibc: what a block takes beyond the smallest chunk that malloc would take for its size; for one
// with a mapping of its own, beyond the smallest mapping. What memalign skips there at the
// mapping's beginning stands before the chunk's size, and belongs to the block.
ALWAYS_INLINE uint64_t live_waste(uintptr_t address, uint64_t size) {
    const uint64_t word = 8, flags = 7, mapped_flag = 2, chunk_least = 32, chunk_step = 16;
    if (live.is_wide) return 0;
    address = live_untagged(address);
    uint64_t header = *(const uint64_t *)(address - word), taken = header & ~flags;
    uint64_t plain = (size + word + chunk_step - 1) & ~(chunk_step - 1);
    if (plain < chunk_least) plain = chunk_least;
    if (header & mapped_flag) {
        taken += *(const uint64_t *)(address - 2 * word);
        plain = sys_page_up(plain + word);
    }
    return taken > plain ? taken - plain : 0;
}

// When a block was allocated.
struct birth {
    uint32_t call;  // number of the allocation among those of its thread
    uint32_t ms;
};

// The birth of a block; NULL: there is no leaf for it.
struct birth *live_birth(uintptr_t address);

// With the event log, in the place of births: whose turn it is among the events of blocks that
// begin in a granule.
struct turn {
    uint32_t number;  // of them so far
    uint32_t slot;    // of the thread whose event was the last
};
_Static_assert(sizeof(struct turn) == sizeof(struct birth), "either of them lies there");
ALWAYS_INLINE struct turn *live_turn(uintptr_t address) {
    return (struct turn *)live_birth(address);
}

// All turns are 0 again.
void live_forget_turns(void);

// The same beside a slot of the narrow mode.
ALWAYS_INLINE struct birth *live_narrow_birth(uint32_t *slot, uintptr_t address) {
    const uintptr_t slots = (uintptr_t)1 << (LIVE_LEAF_SHIFT - LIVE_NARROW_SHIFT);
    const uintptr_t more_bytes = sizeof(struct birth) - sizeof *slot;
    uintptr_t place = address >> LIVE_NARROW_SHIFT & (slots - 1);
    return (struct birth *)((uintptr_t)(slot + slots) + place * more_bytes);
}

ALWAYS_INLINE struct turn *live_narrow_turn(uint32_t *slot, uintptr_t address) {
    return (struct turn *)live_narrow_birth(slot, address);
}

// The slots of the 4 MiB that the address lies in; NULL: none yet.
void *live_leaf(uintptr_t address);

// Calls `visit` for every block. Only while no other thread runs (a forked child). Sizes of narrow
// slots are read from the blocks' headers.
typedef void live_visit(void *context, uintptr_t address, uint32_t id, uint64_t size);
void live_each(live_visit *visit, void *context);

// Bytes of the map that count as taken (sys_own_bytes) but were never touched; below 0: those that
// do not count and were.
int64_t live_untouched_bytes(void);
// Forgets all blocks and gives back the memory of the map, in a process that records nothing any
// more.
void live_release(void);

#endif
