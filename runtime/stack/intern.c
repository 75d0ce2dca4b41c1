// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/intern.h"

#include <string.h>

#include "runtime/stack/cells.h"
#include "runtime/stack/hash.h"
#include "runtime/stack/module.h"
#include "runtime/sys/sys.h"

struct stacks stacks;

// Words of records a thread takes at a time: to the end of a page (of 4 KiB), so that no chunk
// touches two; longer records take their own chunk. At first it takes a few: most threads of many
// see few stacks.
enum { RECORD_CHUNK_WORDS = 1024, RECORD_FIRST_WORDS = 128, RECORD_HEAD_WORDS = 2 };

bool stack_thread_init(struct stack_thread *thread, uint16_t slot, struct stack_hash *parts) {
    thread->parts = parts;
    thread->slot = slot;
    return table_init(&thread->table, &thread->arena);
}

void stack_thread_recover(struct stack_thread *thread) {
    thread->last_count = 0;
    thread->last_cell = 0;
    thread->generation = __atomic_load_n(&cells.totals->generation, __ATOMIC_ACQUIRE);
}

bool stack_has_new_generation(const struct stack_thread *thread) {
    return thread->generation != __atomic_load_n(&cells.totals->generation, __ATOMIC_ACQUIRE);
}

// The same stack is another cell in each generation.
static struct stack_hash hash_in_generation(const struct stack_thread *thread,
                                            struct stack_hash hash) {
    const uint64_t factor = HASH_FACTOR * 3;
    hash.table += thread->generation * HASH_FACTOR;
    hash.check += thread->generation * factor;
    return hash;
}

static bool is_cell(uint32_t id, uint32_t check) {
    return cells.items[id].check == check;
}

// Takes in the frames from `from` on, and notes each outer part's hash. Whether an address is its
// identity is the same for all of them.
ALWAYS_INLINE struct stack_hash hash_from(struct stack_thread *thread, const struct frame *frames,
                                          uint32_t from, uint32_t count, bool has_reused) {
    struct stack_hash *parts = thread->parts, seed = stacks.seed;
    struct stack_hash hash = from ? parts[from - 1] : hash_begin(seed, HASH_STACK);
#pragma GCC unroll 4
    for (uint32_t i = from; i < count; i++) {
        uintptr_t pc = frames[i].pc;
        hash = hash_with(hash, seed, has_reused ? module_identity(pc) : pc);
        parts[i] = hash;
    }
    return hash;
}

static COLD struct stack_hash hash_reused(struct stack_thread *thread, const struct frame *frames,
                                          uint32_t from, uint32_t count) {
    return hash_from(thread, frames, from, count, true);
}

// The hash of the whole stack, of which the outer `keep` frames are those of the last one.
static struct stack_hash hash_stack(struct stack_thread *thread, const struct frame *frames,
                                    uint32_t count, uint32_t keep) {
    return unlikely(module_has_reused()) ? hash_reused(thread, frames, keep, count)
                                         : hash_from(thread, frames, keep, count, false);
}

// Room for a record of at most `words` words; NULL without memory.
static uint32_t *record_reserve(struct stack_thread *thread, uint64_t words) {
    if ((uint64_t)(thread->end_word - thread->next_word) >= words) return thread->next_word;
    uint64_t used = __atomic_load_n(stacks.records.used_bytes, __ATOMIC_RELAXED);
    uint64_t usual = thread->end_word ? RECORD_CHUNK_WORDS : RECORD_FIRST_WORDS;
    uint64_t chunk = usual - used / sizeof(uint32_t) % usual;
    if (chunk < words) chunk = words > usual ? words : usual;
    uint32_t *start = region_take(&stacks.records, chunk * sizeof *start);
    if (!start) return NULL;
    thread->next_word = start;
    thread->end_word = start + chunk;
    return start;
}

// How a new stack differs from the last one.
struct stack_change {
    uint32_t fresh;  // frames to be written, behind those that are kept
    uint32_t head;   // of a short record (format.h); 0: the head takes two words
};

// The innermost frames that a stack has in common with the last one, besides the outer `keep`.
ALWAYS_INLINE uint32_t tail_count(const struct stack_thread *thread, const struct frame *frames,
                                  uint32_t count, uint32_t keep) {
    uint32_t tail = 0, most = (count < thread->last_count ? count : thread->last_count) - keep;
    if (most > STACK_INNER) most = STACK_INNER;
    while (tail < most && frames[count - 1 - tail].pc == thread->inner[tail]) tail++;
    return tail;
}

// Of the stack that gets the cell `id`.
ALWAYS_INLINE struct stack_change change_of(const struct stack_thread *thread, uint32_t id,
                                            const struct frame *frames, uint32_t count,
                                            uint32_t keep) {
    struct stack_change change = {.fresh = count - keep, .head = 0};
    uint32_t back = id - thread->last_cell, drop = thread->last_count - keep;
    if (!keep || drop > CAIRN_SHORT_DROP_MOST || back - 1 >= CAIRN_SHORT_BACK_MOST) return change;
    // A region is the innermost frame, and its address above those of code.
    if (unlikely((frames[count - 1].pc | thread->inner[0]) >= FRAME_REGION)) return change;
    uint32_t tail = tail_count(thread, frames, count, keep), fresh = change.fresh - tail;
    if (fresh > CAIRN_SHORT_NEW_MOST) return change;
    change.fresh = fresh;
    change.head = CAIRN_RECORD_SHORT | tail << CAIRN_SHORT_TAIL_SHIFT |
                  fresh << CAIRN_SHORT_NEW_SHIFT | drop << CAIRN_SHORT_DROP_SHIFT | back;
    return change;
}

// Writes the record of the new stack, which gets the cell `id`; its word index, or 0.
static uint32_t record_write(struct stack_thread *thread, uint32_t id, const struct frame *frames,
                             uint32_t count, uint32_t keep) {
    if (thread->last_cell <= CAIRN_CELL_OTHER) keep = 0;
    struct stack_change change = change_of(thread, id, frames, count, keep);
    uint64_t most_words = RECORD_HEAD_WORDS + (uint64_t)change.fresh * MODULE_CODE_WORDS;
    uint32_t *record = record_reserve(thread, most_words);
    if (!record) return 0;
    uint32_t *codes = record + (change.head ? 1 : RECORD_HEAD_WORDS);
    if (change.head) {
        record[0] = change.head;
    } else {
        record[0] = keep ? thread->last_cell : CAIRN_CELL_NONE;
        record[1] = keep << 16 | change.fresh;
    }
    thread->next_word = module_encode(frames + keep, change.fresh, codes, &thread->near);
    return (uint32_t)(record - (uint32_t *)stacks.records.base);
}

// Takes one block at first, so that four threads share a page: most of many see few stacks. False
// without memory.
static COLD bool cells_renew(struct stack_thread *thread) {
    const uint32_t blocks_later = 4;
    uint32_t blocks = thread->end_cell ? blocks_later : 1;
    uint32_t first = cells_take_blocks(thread->slot, blocks);
    if (!first) return false;
    thread->next_cell = first;
    thread->end_cell = first + blocks * CAIRN_CELL_BLOCK;
    return true;
}

// The cell that a new stack would get; 0 when there is no room or no budget for one.
static uint32_t cell_next(struct stack_thread *thread) {
    if (sys_is_over_budget()) return 0;
    if (thread->next_cell == thread->end_cell && !cells_renew(thread)) return 0;
    return thread->next_cell;
}

// The lines that the next new stacks will write, as far as they lie in this thread's block: they
// come before they are needed, since new stacks come in a row.
ALWAYS_INLINE void cell_prefetch_next(const struct stack_thread *thread) {
    const uint32_t ahead_cells = 2, ahead_words = 16;
    uint32_t id = thread->next_cell + ahead_cells;
    __builtin_prefetch(thread->next_word + ahead_words, 1);
    if (id >= thread->end_cell) return;
    __builtin_prefetch(&cells.items[id], 1);
}

static COLD bool generation_note(const struct stack_thread *thread, uint32_t id) {
    struct cairn_cell_rare *rare = cell_rare_make(id);
    if (rare) rare->generation = thread->generation;
    return rare != NULL;
}

// Gives a cell its record and enters it under the hash. The record is written once there is a cell
// for it, so that lost events cost nothing. 0 without a record.
static uint32_t cell_begin(struct stack_thread *thread, uint32_t id, uint32_t record,
                           struct stack_hash hash) {
    struct cairn_cell *cell = &cells.items[id];
    if (!record || unlikely(thread->generation && !generation_note(thread, id))) return 0;
    thread->next_cell = id + 1;
    cell->record = record;
    cell->check = hash_check(hash);
    uint32_t epoch = __atomic_load_n(&cells.totals->epoch, __ATOMIC_ACQUIRE);
    // A mark that came since the thread looked: its next use has to find it older than that.
    if (unlikely(stack_has_new_generation(thread)))
        epoch = __atomic_load_n(&cells.totals->snapshot_epoch, __ATOMIC_ACQUIRE) - 1;
    cell->epoch = epoch;
    publish_barrier();  // before it counts, and so for readers a cell at all
    table_insert(&thread->table, &thread->arena, hash.table, id);
    cell_prefetch_next(thread);
    return id;
}

// Code was replaced by other code: addresses do not mean what they meant.
static COLD void forget_addresses(struct stack_thread *thread) {
    stack_thread_recover(thread);
    thread->last_generation = module_generation();
}

// A stack of fewer frames has fewer inner ones: tail_count asks for no others.
ALWAYS_INLINE void inner_keep(struct stack_thread *thread, const struct frame *frames,
                              uint32_t count) {
    const struct frame *end = frames + count;
    if (likely(count >= STACK_INNER)) {
        for (int i = 0; i < STACK_INNER; i++) thread->inner[i] = end[-1 - i].pc;
    } else {
        for (uint32_t i = 0; i < count; i++) thread->inner[i] = end[-1 - (int)i].pc;
    }
}

uint32_t stack_intern(struct stack_thread *thread, const struct frame *frames, uint32_t count,
                      uint32_t keep, enum stack_outcome *outcome) {
    *outcome = STACK_KNOWN;
    if (unlikely(thread->last_generation != module_generation())) forget_addresses(thread);
    if (keep > thread->last_count) keep = thread->last_count;
    if (keep == count && count == thread->last_count && thread->last_cell) return thread->last_cell;
    struct stack_hash hash = hash_stack(thread, frames, count, keep);
    hash = hash_in_generation(thread, hash);
    uint32_t id = table_find(&thread->table, hash.table, is_cell, hash_check(hash));
    if (unlikely(!id)) {
        id = cell_next(thread);
        if (id) id = cell_begin(thread, id, record_write(thread, id, frames, count, keep), hash);
        *outcome = id ? STACK_NEW : STACK_LOST;
    }
    inner_keep(thread, frames, count);
    thread->last_count = count;
    thread->last_cell = id;
    return id ? id : CAIRN_CELL_OTHER;
}

uint32_t stack_find(const struct stack_thread *thread, const struct frame *frames, uint32_t count) {
    struct stack_hash hash = hash_begin(stacks.seed, HASH_STACK);
    for (uint32_t i = 0; i < count; i++)
        hash = hash_with(hash, stacks.seed, module_identity(frames[i].pc));
    hash = hash_in_generation(thread, hash);
    return table_find(&thread->table, hash.table, is_cell, hash_check(hash));
}

// Foreign cells share the table with stacks.
static struct stack_hash hash_foreign(uint32_t id) {
    return hash_with(hash_begin(stacks.seed, HASH_FOREIGN), stacks.seed, id);
}

// `freeing`: the cell whose stack frees; 0: that is not recorded.
static uint32_t foreign_make(struct stack_thread *thread, uint32_t id, uint32_t freeing,
                             struct stack_hash hash) {
    uint32_t own = cell_next(thread), words = RECORD_HEAD_WORDS;
    // its frees may pass 32 bits, and nothing looks ahead where nothing is allocated
    if (own && !cell_rare_make(own)) return 0;
    uint32_t *record = own ? record_reserve(thread, RECORD_HEAD_WORDS + 1) : NULL;
    if (!record) return 0;
    record[0] = id;
    record[1] = CAIRN_RECORD_FOREIGN | (freeing != 0);
    if (freeing) record[words++] = freeing;
    thread->next_word = record + words;
    return cell_begin(thread, own, (uint32_t)(record - (uint32_t *)stacks.records.base), hash);
}

// Whatever interrupts this for good, an entry with an id is whole.
static void foreign_remember(struct foreign_cell *entry, uint32_t id, uint32_t own) {
    entry->id = 0;
    compiler_barrier();
    entry->own = own;
    compiler_barrier();
    entry->id = id;
}

COLD uint32_t stack_foreign_slow(struct stack_thread *thread, uint32_t id) {
    struct stack_hash hash = hash_foreign(id);
    uint32_t own = table_find(&thread->table, hash.table, is_cell, hash_check(hash));
    if (unlikely(!own)) own = foreign_make(thread, id, 0, hash);
    if (!own) return CAIRN_CELL_OTHER;
    foreign_remember(&thread->foreign[id % FOREIGN_CACHE], id, own);
    return own;
}

uint32_t stack_freed(struct stack_thread *thread, uint32_t id, uint32_t freeing) {
    struct stack_hash hash = hash_with(hash_foreign(id), stacks.seed, freeing);
    uint32_t own = table_find(&thread->table, hash.table, is_cell, hash_check(hash));
    if (likely(own)) return own;
    if (__atomic_load_n(&stacks.freed_count, __ATOMIC_RELAXED) >= STACK_FREED_MOST) return 0;
    own = foreign_make(thread, id, freeing, hash);
    if (own) __atomic_fetch_add(&stacks.freed_count, 1, __ATOMIC_RELAXED);
    return own;
}
