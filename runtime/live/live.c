// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/live.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct live live;
APART struct live_mid *live_narrow[LIVE_TOP_COUNT];

static unsigned granule_shift(void) {
    return live.is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
}

static size_t slots_bytes(void) {
    size_t slot_bytes = live.is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    return slot_bytes << (LIVE_LEAF_SHIFT - granule_shift());
}

static size_t leaf_bytes(void) {
    size_t births = live.has_births ? (size_t)1 << (LIVE_LEAF_SHIFT - granule_shift()) : 0;
    return slots_bytes() + births * sizeof(struct birth);
}

static uint32_t top_count(void) {
    return live.is_wide ? 2 * LIVE_TOP_COUNT : LIVE_TOP_COUNT;
}

bool live_init(bool is_wide) {
    live.is_wide = is_wide;
    live.tops = live_narrow;
    if (!is_wide) return true;
    live.tops = sys_map(sizeof(struct live_mid *) * top_count());
    return live.tops != NULL;
}

// The number of a block's top: those of the wide mode have two for each place.
static uint32_t top_of(uintptr_t address) {
    uint32_t top = (uint32_t)(address >> LIVE_MID_SHIFT) % LIVE_TOP_COUNT;
    bool is_odd = live.is_wide && address >> 3 & 1;
    return is_odd ? top + LIVE_TOP_COUNT : top;
}

static uint32_t leaf_of(uintptr_t address) {
    return (uint32_t)(address >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT;
}

// Bytes of slots that lie before those of the leaf's first address.
static uintptr_t bytes_before(uintptr_t start) {
    return live.is_wide ? (start >> LIVE_WIDE_SHIFT) * sizeof(uint64_t)
                        : (start >> LIVE_NARROW_SHIFT) * sizeof(uint32_t);
}

static uintptr_t leaf_start(uintptr_t address) {
    return live_untagged(address) >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT;
}

// Where the slots of the address' leaf would begin if they began at address 0; 0: no leaf.
static uintptr_t origin_of(uintptr_t address) {
    const struct live_mid *mid = __atomic_load_n(&live.tops[top_of(address)], __ATOMIC_ACQUIRE);
    return mid ? __atomic_load_n(&mid->origins[leaf_of(address)], __ATOMIC_ACQUIRE) : 0;
}

void *live_leaf(uintptr_t address) {
    uintptr_t origin = origin_of(address);
    return origin ? (void *)(origin + bytes_before(leaf_start(address))) : NULL;
}

struct birth *live_birth(uintptr_t address) {
    const uintptr_t leaf_mask = ((uintptr_t)1 << LIVE_LEAF_SHIFT) - 1;
    uint8_t *leaf = live.has_births ? live_leaf(address) : NULL;
    if (!leaf) return NULL;
    return (struct birth *)(leaf + slots_bytes()) + ((address & leaf_mask) >> granule_shift());
}

static struct live_mid *mid_make(uintptr_t address) {
    struct live_mid **top = &live.tops[top_of(address)], *there = NULL;
    struct live_mid *mid = sys_map(sizeof *mid);
    if (!mid) return NULL;
    if (__atomic_compare_exchange_n(top, &there, mid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_count_own((int64_t)sys_page_bytes() - (int64_t)sizeof *mid);  // that of its first leaf
        return mid;
    }
    sys_unmap(mid, sizeof *mid);  // another thread was faster
    return there;
}

// Where a heap of small blocks lies without a gap before an address, it is about to grow beyond it:
// its next slots come as one large page, one page fault instead of 512. Those that are never used
// are at most a 32nd of the slots in use.
enum { LARGE_PAGE_BYTES = 2 << 20, BEFORE_LEAST = 16 };

static uint32_t leaves_of_page(void) {
    return LARGE_PAGE_BYTES % leaf_bytes() ? 0 : (uint32_t)(LARGE_PAGE_BYTES / leaf_bytes());
}

static uintptr_t leaf_address(uintptr_t first, int32_t number) {
    return first + ((uintptr_t)(intptr_t)number << LIVE_LEAF_SHIFT);
}

static bool is_any_used(const uint64_t *slots, size_t bytes) {
    uint64_t any = 0;
    for (size_t i = 0; i < bytes / sizeof *slots && !any; i++)
        any = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);
    return any;
}

// Seven of eight pages of the leaf's slots have a block. Those never touched are not looked into.
static bool is_leaf_full(uintptr_t address) {
    const size_t page_bytes = sys_page_bytes(), most_unused = slots_bytes() / 8;
    uint8_t *slots = live_leaf(address);
    if (sys_untouched_bytes(slots, slots_bytes()) > most_unused) return false;
    size_t unused = 0;
    for (size_t at = 0; at < slots_bytes() && unused <= most_unused; at += page_bytes)
        if (!is_any_used((const uint64_t *)(slots + at), page_bytes)) unused += page_bytes;
    return unused <= most_unused;
}

// The first address of the leaves that share a large page with that of `address`, if it is to be
// one; else 0. Leaves with births do not divide such a page and stay as they are.
static uintptr_t large_first(uintptr_t address) {
    const int32_t leaves = (int32_t)leaves_of_page();
    if (!leaves) return 0;
    uintptr_t first = address - ((uintptr_t)leaf_of(address) % (uint32_t)leaves << LIVE_LEAF_SHIFT);
    for (int32_t i = -BEFORE_LEAST; i < leaves; i++) {
        bool is_there = origin_of(leaf_address(first, i)) != 0, is_before = i < 0;
        if (is_there != is_before) return 0;
    }
    for (int32_t i = -leaves; i < 0; i++)
        if (!is_leaf_full(leaf_address(first, i))) return 0;
    return first;
}

// Places the leaf of an address in a mid, unless there is one by now.
static uintptr_t origin_place(struct live_mid *mid, uintptr_t address, const uint8_t *leaf) {
    uintptr_t there = 0, origin = (uintptr_t)leaf - bytes_before(leaf_start(address));
    bool is_ours =
        origin && __atomic_compare_exchange_n(&mid->origins[leaf_of(address)], &there, origin,
                                              false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return is_ours ? origin : there;
}

// The leaves of a large page lie in the order of their addresses. Others than the wanted one may
// have been made by other threads meanwhile: then their places in it are left.
static uintptr_t large_make(struct live_mid *mid, uintptr_t address, uintptr_t first) {
    uint8_t *page = sys_map_large(LARGE_PAGE_BYTES);
    if (!page) return 0;
    const size_t before = ((address - first) >> LIVE_LEAF_SHIFT) * leaf_bytes();
    uintptr_t origin = origin_place(mid, address, page + before);
    if (origin != (uintptr_t)page + before - bytes_before(leaf_start(address))) {
        sys_unmap(page, LARGE_PAGE_BYTES);
        return origin;
    }
    for (uint32_t i = 0; i < leaves_of_page(); i++)
        origin_place(mid, leaf_address(first, (int32_t)i), page + i * leaf_bytes());
    return origin;
}

static COLD uintptr_t origin_make_slow(uintptr_t address) {
    struct live_mid *mid = __atomic_load_n(&live.tops[top_of(address)], __ATOMIC_ACQUIRE);
    if (!mid) mid = mid_make(address);
    uintptr_t first = mid ? large_first(address) : 0;
    uintptr_t origin = first ? large_make(mid, address, first) : 0;
    if (!mid || origin) return origin;
    uint8_t *leaf = sys_map(leaf_bytes());
    if (!leaf) return 0;
    origin = origin_place(mid, address, leaf);
    if (origin != (uintptr_t)leaf - bytes_before(leaf_start(address)))
        sys_unmap(leaf, leaf_bytes());
    return origin;
}

static void mid_release(struct live_mid *mid, uintptr_t first) {
    for (uint32_t i = 0; i < LIVE_MID_COUNT; i++) {
        uintptr_t origin = mid->origins[i], start = leaf_address(first, (int32_t)i);
        if (origin) sys_unmap((void *)(origin + bytes_before(start)), leaf_bytes());
    }
    sys_unmap(mid, sizeof *mid);
}

void live_release(void) {
    for (uint32_t top = 0; live.tops && top < top_count(); top++) {
        struct live_mid *mid = live.tops[top];
        live.tops[top] = NULL;
        if (mid) mid_release(mid, (uintptr_t)(top % LIVE_TOP_COUNT) << LIVE_MID_SHIFT);
    }
}

static uintptr_t origin_for(uintptr_t address) {
    uintptr_t origin = origin_of(address);
    return origin ? origin : origin_make_slow(address);
}

static uint64_t *wide_slot(uintptr_t origin, uintptr_t address) {
    return (uint64_t *)(origin + (live_untagged(address) >> LIVE_WIDE_SHIFT) * sizeof(uint64_t));
}

bool live_wide_has(uintptr_t address) {
    uintptr_t origin = origin_of(address);
    return origin && *wide_slot(origin, address) != 0;
}

static uintptr_t granule_bytes(void) {
    return (uintptr_t)1 << granule_shift();
}

// The slot after the block's own, in the next leaf if need be, is its extension; the granule there
// lies inside the block, so it is nobody else's.
static uintptr_t next_granule(uintptr_t address) {
    return address + granule_bytes();
}

// What the extension holds, which is emptied. There may be no leaf where the block is none: a slot
// that extended a block whose free was never seen can be taken for one.
static uint64_t extension_take(uintptr_t address) {
    uintptr_t next = next_granule(address);
    uintptr_t leaf = origin_of(next);
    uint64_t value = 0;
    if (leaf && live.is_wide) {
        value = *wide_slot(leaf, next);
        *wide_slot(leaf, next) = 0;
    } else if (leaf) {
        value = *live_narrow_slot(leaf, next);
        *live_narrow_slot(leaf, next) = 0;
    }
    return value;
}

static struct live_block narrow_take(uintptr_t address) {
    uintptr_t leaf = origin_of(address);
    if (!leaf) return (struct live_block){0, 0};
    uint32_t *slot = live_narrow_slot(leaf, address);
    uint32_t word = *slot;
    uint64_t slack = word & LIVE_SLACK_ESCAPE;
    if (!word) return (struct live_block){0, 0};
    *slot = 0;
    if (slack == LIVE_SLACK_ESCAPE) slack = LIVE_SLACK_BASE + extension_take(address);
    uint64_t room = live_room(address);
    // Only where another block took the place of one whose free was never seen.
    if (slack > room) slack = room;
    return (struct live_block){word >> LIVE_ID_SHIFT, room - slack};
}

static bool narrow_insert(uintptr_t address, uint32_t id, uint64_t size) {
    uintptr_t leaf = origin_for(address);
    uint64_t slack = live_room(address) - size;
    if (!leaf || id >= LIVE_ID_LIMIT || slack > UINT32_MAX) return false;
    uint32_t low = (uint32_t)slack;
    if (slack >= LIVE_SLACK_ESCAPE) {
        uintptr_t next = origin_for(next_granule(address));
        if (!next) return false;
        *live_narrow_slot(next, next_granule(address)) = low - LIVE_SLACK_BASE;
        low = LIVE_SLACK_ESCAPE;
    }
    *live_narrow_slot(leaf, address) = live_narrow_word(address, id, low);
    return true;
}

static struct live_block wide_take(uintptr_t address) {
    uintptr_t leaf = origin_of(address);
    if (!leaf) return (struct live_block){0, 0};
    uint64_t *slot = wide_slot(leaf, address);
    struct live_block block = {(uint32_t)*slot, *slot >> 32};
    *slot = 0;
    if (block.size == LIVE_SIZE_ESCAPE) block.size = extension_take(address);
    return block;
}

static bool wide_insert(uintptr_t address, uint32_t id, uint64_t size) {
    uintptr_t leaf = origin_for(address);
    if (!leaf) return false;
    uint64_t low = size;
    if (size >= LIVE_SIZE_ESCAPE) {
        uintptr_t next = origin_for(next_granule(address));
        if (!next) return false;
        *wide_slot(next, next_granule(address)) = size;
        low = LIVE_SIZE_ESCAPE;
    }
    *wide_slot(leaf, address) = low << 32 | id;
    return true;
}

struct live_block live_take(uintptr_t address) {
    return live.is_wide ? wide_take(address) : narrow_take(address);
}

// The slot before that of the address says that this one extends it.
static bool is_extension(uintptr_t address) {
    uintptr_t before = address - granule_bytes();
    uintptr_t leaf = origin_of(before);
    if (!leaf) return false;
    if (live.is_wide) return *wide_slot(leaf, before) >> 32 == LIVE_SIZE_ESCAPE;
    return (*live_narrow_slot(leaf, before) & LIVE_SLACK_ESCAPE) == LIVE_SLACK_ESCAPE;
}

// Takes out the block that the address' slot extends, which is gone. Its size is not known in the
// narrow mode, since its header may be gone as well; none of its bytes are given back then.
static struct live_block extended_take(uintptr_t address) {
    uintptr_t before = address - granule_bytes();
    uintptr_t leaf = origin_of(before);
    if (live.is_wide) return wide_take(before);
    uint32_t *slot = live_narrow_slot(leaf, before);
    struct live_block block = {*slot >> LIVE_ID_SHIFT, 0};
    *slot = 0;
    extension_take(before);
    return block;
}

bool live_insert(uintptr_t address, uint32_t id, uint64_t size, struct live_block *stale) {
    *stale = is_extension(address) ? extended_take(address) : live_take(address);
    return live.is_wide ? wide_insert(address, id, size) : narrow_insert(address, id, size);
}

// What live_each carries along.
struct each {
    live_visit *visit;
    void *context;
};

// A forked child lacks memory that its parent excluded (MADV_DONTFORK); asked once a page.
static bool is_header_readable(uintptr_t address) {
    static uintptr_t known_page;
    uintptr_t page = (address - 8) / sys_page_bytes();
    if (page == known_page) return true;
    if (!sys_is_readable((const void *)(address - 8))) return false;
    known_page = page;
    return true;
}

static void each_narrow(const struct each *each, uintptr_t start, const uint32_t *slots) {
    const uint32_t count = 1u << (LIVE_LEAF_SHIFT - LIVE_NARROW_SHIFT);
    for (uint32_t i = is_extension(start); i < count; i++) {
        uint64_t slack = slots[i] & LIVE_SLACK_ESCAPE;
        if (!slots[i]) continue;
        uintptr_t half = slots[i] >> LIVE_HALF_SHIFT & 1;
        uintptr_t address = start + ((uintptr_t)i << LIVE_NARROW_SHIFT) + half * 16;
        uint32_t id = slots[i] >> LIVE_ID_SHIFT;
        if (slack == LIVE_SLACK_ESCAPE) {
            uintptr_t next = next_granule(address);
            slack = LIVE_SLACK_BASE + *live_narrow_slot(origin_of(next), next);
            i++;
        }
        if (is_header_readable(address))
            each->visit(each->context, address, id, live_room(address) - slack);
    }
}

static void each_wide(const struct each *each, uintptr_t start, const uint64_t *slots) {
    const uint32_t count = 1u << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT);
    for (uint32_t i = is_extension(start); i < count; i++) {
        uint64_t size = slots[i] >> 32;
        uint32_t id = (uint32_t)slots[i];
        uintptr_t address = start + ((uintptr_t)i << LIVE_WIDE_SHIFT);
        if (!slots[i]) continue;
        if (size == LIVE_SIZE_ESCAPE) {
            uintptr_t next = next_granule(address);
            size = *wide_slot(origin_of(next), next);
            i++;
        }
        each->visit(each->context, address, id, size);
    }
}

// The leaf in place `leaf` of mid `top`, and the first address it is for; NULL: none.
static void *leaf_at(uint32_t top, uint32_t leaf, uintptr_t *start) {
    uintptr_t origin = live.tops[top]->origins[leaf];
    uintptr_t odd = top >= LIVE_TOP_COUNT ? 8 : 0;
    *start = (uintptr_t)(top % LIVE_TOP_COUNT) << LIVE_MID_SHIFT | (uintptr_t)leaf
                                                                       << LIVE_LEAF_SHIFT;
    if (!origin) return NULL;
    void *slots = (void *)(origin + bytes_before(*start));
    *start += odd;
    return slots;
}

static void each_leaf(void (*visit)(const struct each *each, uintptr_t start, void *leaf),
                      const struct each *each) {
    for (uint32_t top = 0; top < top_count(); top++) {
        if (!live.tops[top]) continue;
        for (uint32_t i = 0; i < LIVE_MID_COUNT; i++) {
            uintptr_t start;
            void *leaf = leaf_at(top, i, &start);
            if (leaf) visit(each, start, leaf);
        }
    }
}

static void each_block(const struct each *each, uintptr_t start, void *leaf) {
    if (live.is_wide)
        each_wide(each, start, leaf);
    else
        each_narrow(each, start, leaf);
}

void live_each(live_visit *visit, void *context) {
    const struct each each = {visit, context};
    each_leaf(each_block, &each);
}

// Where the kernel does not take the pages away, they are written.
static void forget_turns(const struct each *unused, uintptr_t start, void *leaf) {
    void *turns = (uint8_t *)leaf + slots_bytes();
    const size_t bytes = leaf_bytes() - slots_bytes();
    (void)unused, (void)start;
    if (sys_call(SYS_madvise, (long)turns, (long)bytes, MADV_DONTNEED, 0, 0, 0) != 0)
        memset(turns, 0, bytes);
}

void live_forget_turns(void) {
    if (live.has_births) each_leaf(forget_turns, NULL);
}

// Bytes of the leaves that one touched page of a mid tells of, as far as they have no memory yet.
static uint64_t untouched_of_leaves(uint32_t top, uint32_t from, uint32_t count) {
    uint64_t untouched = 0;
    for (uint32_t i = from; i < from + count; i++) {
        uintptr_t start;
        void *leaf = leaf_at(top, i, &start);
        if (leaf) untouched += sys_untouched_bytes(leaf, leaf_bytes());
    }
    return untouched;
}

// One page of each mid is counted. Pages that were never touched are left alone: looking into one
// would make it one of the process.
int64_t live_untouched_bytes(void) {
    enum { PAGES_MOST = LIVE_MID_COUNT * sizeof(uintptr_t) / SYS_PAGE_LEAST };
    const uint32_t page_words = sys_page_bytes() / sizeof(uintptr_t);
    const uint32_t pages = LIVE_MID_COUNT / page_words;
    unsigned char is_touched[PAGES_MOST];
    const uint32_t tops = top_count();
    int64_t untouched = 0;
    for (uint32_t top = 0; top < tops; top++) {
        if (!live.tops[top]) continue;
        if (!sys_find_touched(live.tops[top], pages, is_touched)) return 0;
        untouched += sys_page_bytes();
        for (uint32_t page = 0; page < pages; page++) {
            if (!(is_touched[page] & 1)) continue;
            untouched += (int64_t)untouched_of_leaves(top, page * page_words, page_words);
            untouched -= sys_page_bytes();
        }
    }
    return untouched;
}
