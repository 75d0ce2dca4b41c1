// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/live.h"

struct live live;

static size_t leaf_bytes(void) {
    return live.is_wide ? sizeof(uint64_t) << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT)
                        : sizeof(uint32_t) << (LIVE_LEAF_SHIFT - LIVE_NARROW_SHIFT);
}

bool live_init(bool is_wide) {
    live.is_wide = is_wide;
    if (!live.table) live.table = sys_map(sizeof(uint64_t) << LIVE_TABLE_BITS);
    return live.table != NULL;
}

COLD void *live_leaf_make_slow(uintptr_t address) {
    const uint64_t mask = (1u << LIVE_TABLE_BITS) - 1;
    const uint64_t longest_search = mask / 2;  // a table this full is given up, searches end
    void *leaf = sys_map(leaf_bytes());
    if (!leaf) return NULL;
    uint64_t key = live_key(address);
    uint64_t word = key << LIVE_KEY_SHIFT | (uintptr_t)leaf >> LIVE_PAGE_SHIFT;
    for (uint64_t step = 0; step < longest_search; step++) {
        uint64_t *place = &live.table[(key + step) & mask];
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(place, &there, word, false, __ATOMIC_RELEASE,
                                        __ATOMIC_ACQUIRE))
            return leaf;
        if (there >> LIVE_KEY_SHIFT == key) break;  // another thread was faster
    }
    sys_unmap(leaf, leaf_bytes());
    return live_leaf(address);
}

static void *leaf_for(uintptr_t address) {
    void *leaf = live_leaf(address);
    return leaf ? leaf : live_leaf_make_slow(address);
}

static uintptr_t granule_bytes(void) {
    return (uintptr_t)1 << (live.is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT);
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
    void *leaf = live_leaf(next);
    uint64_t value = 0;
    if (leaf && live.is_wide) {
        value = *live_wide_slot(leaf, next);
        *live_wide_slot(leaf, next) = 0;
    } else if (leaf) {
        value = *live_narrow_slot(leaf, next);
        *live_narrow_slot(leaf, next) = 0;
    }
    return value;
}

static struct live_block narrow_take(uintptr_t address) {
    void *leaf = live_leaf(address);
    if (!leaf) return (struct live_block){0, 0};
    uint32_t *slot = live_narrow_slot(leaf, address);
    uint32_t word = *slot;
    uint64_t slack = word & LIVE_SLACK_ESCAPE;
    if (!word) return (struct live_block){0, 0};
    *slot = 0;
    if (slack == LIVE_SLACK_ESCAPE) slack = LIVE_SLACK_BASE + extension_take(address);
    uint64_t usable = live_usable(address);
    // Only where another block took the place of one whose free was never seen.
    if (slack > usable) slack = usable;
    return (struct live_block){word >> LIVE_ID_SHIFT, usable - slack};
}

static bool narrow_insert(uintptr_t address, uint32_t id, uint64_t size) {
    void *leaf = leaf_for(address);
    uint64_t slack = live_usable(address) - size;
    if (!leaf || id >= LIVE_ID_LIMIT || slack > UINT32_MAX) return false;
    uint32_t low = (uint32_t)slack;
    if (slack >= LIVE_SLACK_ESCAPE) {
        void *next = leaf_for(next_granule(address));
        if (!next) return false;
        *live_narrow_slot(next, next_granule(address)) = low - LIVE_SLACK_BASE;
        low = LIVE_SLACK_ESCAPE;
    }
    *live_narrow_slot(leaf, address) = live_narrow_word(address, id, low);
    return true;
}

static struct live_block wide_take(uintptr_t address) {
    void *leaf = live_leaf(address);
    if (!leaf) return (struct live_block){0, 0};
    uint64_t *slot = live_wide_slot(leaf, address);
    struct live_block block = {(uint32_t)*slot, *slot >> 32};
    *slot = 0;
    if (block.size == LIVE_SIZE_ESCAPE) block.size = extension_take(address);
    return block;
}

static bool wide_insert(uintptr_t address, uint32_t id, uint64_t size) {
    void *leaf = leaf_for(address);
    if (!leaf) return false;
    uint64_t low = size;
    if (size >= LIVE_SIZE_ESCAPE) {
        void *next = leaf_for(next_granule(address));
        if (!next) return false;
        *live_wide_slot(next, next_granule(address)) = size;
        low = LIVE_SIZE_ESCAPE;
    }
    *live_wide_slot(leaf, address) = low << 32 | id;
    return true;
}

struct live_block live_take_rare(uintptr_t address) {
    return live.is_wide ? wide_take(address) : narrow_take(address);
}

// The slot before that of the address says that this one extends it.
static bool is_extension(uintptr_t address) {
    uintptr_t before = address - granule_bytes();
    void *leaf = live_leaf(before);
    if (!leaf) return false;
    if (live.is_wide) return *live_wide_slot(leaf, before) >> 32 == LIVE_SIZE_ESCAPE;
    return (*live_narrow_slot(leaf, before) & LIVE_SLACK_ESCAPE) == LIVE_SLACK_ESCAPE;
}

// Takes out the block that the address' slot extends, which is gone. Its size is not known in the
// narrow mode, since its header may be gone as well; none of its bytes are given back then.
static struct live_block extended_take(uintptr_t address) {
    uintptr_t before = address - granule_bytes();
    void *leaf = live_leaf(before);
    if (live.is_wide) return wide_take(before);
    uint32_t *slot = live_narrow_slot(leaf, before);
    struct live_block block = {*slot >> LIVE_ID_SHIFT, 0};
    *slot = 0;
    extension_take(before);
    return block;
}

bool live_insert_rare(uintptr_t address, uint32_t id, uint64_t size, struct live_block *stale) {
    *stale = is_extension(address) ? extended_take(address) : live_take_rare(address);
    return live.is_wide ? wide_insert(address, id, size) : narrow_insert(address, id, size);
}

// What live_each carries along.
struct each {
    void (*visit)(void *context, uint32_t id, uint64_t size);
    void *context;
};

// A forked child lacks memory that its parent excluded (MADV_DONTFORK); asked once a page.
static bool is_header_readable(uintptr_t address) {
    static uintptr_t known_page;
    uintptr_t page = (address - 8) / SYS_PAGE_BYTES;
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
            slack = LIVE_SLACK_BASE + *live_narrow_slot(live_leaf(next), next);
            i++;
        }
        if (is_header_readable(address))
            each->visit(each->context, id, live_usable(address) - slack);
    }
}

static void each_wide(const struct each *each, uintptr_t start, const uint64_t *slots) {
    const uint32_t count = 1u << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT);
    for (uint32_t i = is_extension(start); i < count; i++) {
        uint64_t size = slots[i] >> 32;
        uint32_t id = (uint32_t)slots[i];
        if (!slots[i]) continue;
        if (size == LIVE_SIZE_ESCAPE) {
            uintptr_t next = next_granule(start + ((uintptr_t)i << LIVE_WIDE_SHIFT));
            size = *live_wide_slot(live_leaf(next), next);
            i++;
        }
        each->visit(each->context, id, size);
    }
}

void live_each(void (*visit)(void *context, uint32_t id, uint64_t size), void *context) {
    const uint64_t page_bits = (1ull << LIVE_KEY_SHIFT) - 1;
    struct each each = {visit, context};
    for (uint32_t i = 0; i < 1u << LIVE_TABLE_BITS; i++) {
        uint64_t word = live.table[i];
        uint64_t key = word >> LIVE_KEY_SHIFT;
        uintptr_t odd = key >> LIVE_ODD_BIT & 1;
        uintptr_t start = ((key & ((1u << LIVE_ODD_BIT) - 1)) << LIVE_LEAF_SHIFT) + odd * 8;
        const void *leaf = (const void *)((word & page_bits) << LIVE_PAGE_SHIFT);
        if (!word) continue;
        if (live.is_wide)
            each_wide(&each, start, leaf);
        else
            each_narrow(&each, start, leaf);
    }
}

uint64_t live_untouched_bytes(void) {
    const uint64_t page_bits = (1ull << LIVE_KEY_SHIFT) - 1;
    enum { WORDS = SYS_PAGE_BYTES / sizeof(uint64_t), PAGES = (1u << LIVE_TABLE_BITS) / WORDS };
    unsigned char is_touched[PAGES];
    uint64_t untouched = 0;
    if (!sys_find_touched(live.table, PAGES, is_touched)) return 0;
    for (uint32_t i = 0; i < 1u << LIVE_TABLE_BITS; i++) {
        // A page is left alone: looking into it would make it one of the process.
        if (!(is_touched[i / WORDS] & 1)) {
            untouched += SYS_PAGE_BYTES;
            i += WORDS - 1;
            continue;
        }
        uint64_t word = live.table[i];
        void *leaf = (void *)((word & page_bits) << LIVE_PAGE_SHIFT);
        if (word) untouched += sys_untouched_bytes(leaf, leaf_bytes());
    }
    return untouched;
}
