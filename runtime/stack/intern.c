// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/intern.h"

#include <string.h>

#include "runtime/stack/cells.h"
#include "runtime/stack/hash.h"
#include "runtime/stack/module.h"
#include "runtime/sys/sys.h"

struct stacks stacks;

// Words of records a thread takes at a time: one page; longer records take their own chunk.
enum { RECORD_CHUNK_WORDS = 1024, RECORD_HEAD_WORDS = 2 };

bool stack_thread_init(struct stack_thread *thread, uint16_t slot) {
    size_t buffer_bytes = sizeof(uintptr_t) * (stacks.depth_limit + 1);
    uintptr_t *buffers = sys_reserve(2 * buffer_bytes);
    if (!buffers) return false;
    thread->frames = buffers;
    thread->last_frames = buffers + stacks.depth_limit + 1;
    thread->depth_limit = stacks.depth_limit;
    thread->slot = slot;
    return table_init(&thread->table, &thread->arena);
}

void stack_thread_recover(struct stack_thread *thread) {
    thread->last_count = 0;
    thread->last_cell = 0;
}

static bool is_cell(uint32_t id, uint32_t check) {
    return cells.hot[id].check == check;
}

static struct stack_hash stack_hash_of(const uintptr_t *frames, uint32_t count) {
    struct stack_hash hash = {stacks.seed_table, stacks.seed_check};
    for (uint32_t i = count; i-- > 0;) hash = hash_frame(hash, module_identity(frames[i]));
    return hash;
}

// Room for a record of at most `words` words; NULL without memory.
static uint32_t *record_reserve(struct stack_thread *thread, uint64_t words) {
    if ((uint64_t)(thread->end_word - thread->next_word) >= words) return thread->next_word;
    uint64_t chunk = words > RECORD_CHUNK_WORDS ? words : RECORD_CHUNK_WORDS;
    uint32_t *start = region_take(&stacks.records, chunk * sizeof *start);
    if (!start) return NULL;
    thread->next_word = start;
    thread->end_word = start + chunk;
    return start;
}

// Outer frames that the last stack and the new one have in common.
static uint32_t common_outer_count(const struct stack_thread *thread, uint32_t count) {
    uint32_t limit = count < thread->last_count ? count : thread->last_count;
    const uintptr_t *a = thread->frames + count, *b = thread->last_frames + thread->last_count;
    uint32_t same = 0;
    while (same < limit && a[-1 - (int64_t)same] == b[-1 - (int64_t)same]) same++;
    return same;
}

// Writes the record of the new stack; its word index, or 0.
static uint32_t record_write(struct stack_thread *thread, uint32_t count) {
    bool is_parent =
        thread->last_cell > CAIRN_CELL_OTHER && thread->last_generation == module_generation();
    uint32_t keep = is_parent ? common_outer_count(thread, count) : 0;
    uint32_t parent = keep ? thread->last_cell : CAIRN_CELL_NONE;
    uint64_t most_words = RECORD_HEAD_WORDS + (uint64_t)(count - keep) * MODULE_CODE_WORDS;
    uint32_t *record = record_reserve(thread, most_words);
    if (!record) return 0;
    uint32_t *word = record + RECORD_HEAD_WORDS;
    for (uint32_t i = count - keep; i-- > 0;) word += module_encode(thread->frames[i], word);
    record[0] = parent;
    record[1] = keep << 16 | (count - keep);
    thread->next_word = word;
    return (uint32_t)(record - (uint32_t *)stacks.records.base);
}

static uint32_t cell_take(struct stack_thread *thread) {
    if (thread->next_cell == thread->end_cell) {
        uint32_t first = cells_take_block(thread->slot);
        if (!first) return 0;
        thread->next_cell = first;
        thread->end_cell = first + CAIRN_CELL_BLOCK;
    }
    return thread->next_cell++;
}

// A new cell with the given record, entered under the hash; 0 without memory.
static uint32_t cell_make(struct stack_thread *thread, uint32_t record, struct stack_hash hash) {
    uint32_t id = record && !sys_is_over_budget() ? cell_take(thread) : 0;
    if (!id) return 0;
    cells.cold[id].record = record;
    cells.hot[id].check = hash_check(hash);
    cells.hot[id].epoch = __atomic_load_n(&cells.totals->epoch, __ATOMIC_RELAXED);
    table_insert(&thread->table, &thread->arena, hash.table, id);
    return id;
}

static bool is_last(const struct stack_thread *thread, uint32_t count) {
    if (count != thread->last_count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (thread->frames[i] != thread->last_frames[i]) return false;
    return true;
}

static void remember(struct stack_thread *thread, uint32_t count, uint32_t id) {
    uintptr_t *frames = thread->last_frames;
    thread->last_frames = thread->frames;
    thread->frames = frames;
    thread->last_count = count;
    thread->last_cell = id;
    thread->last_generation = module_generation();
}

uint32_t stack_intern(struct stack_thread *thread, uint32_t count, bool *is_lost) {
    *is_lost = false;
    if (is_last(thread, count) && thread->last_generation == module_generation())
        return thread->last_cell;
    struct stack_hash hash = stack_hash_of(thread->frames, count);
    uint32_t id = table_find(&thread->table, hash.table, is_cell, hash_check(hash));
    if (unlikely(!id)) {
        id = cell_make(thread, record_write(thread, count), hash);
        *is_lost = id == 0;
        if (!id) return CAIRN_CELL_OTHER;
    }
    remember(thread, count, id);
    return id;
}

static uint32_t foreign_make(struct stack_thread *thread, uint32_t id, struct stack_hash hash) {
    uint32_t *record = record_reserve(thread, RECORD_HEAD_WORDS);
    if (!record) return 0;
    record[0] = id;
    record[1] = CAIRN_RECORD_FOREIGN;
    thread->next_word = record + RECORD_HEAD_WORDS;
    return cell_make(thread, (uint32_t)(record - (uint32_t *)stacks.records.base), hash);
}

uint32_t stack_foreign(struct stack_thread *thread, uint32_t id) {
    struct stack_hash hash = {stacks.seed_check, stacks.seed_table};
    hash = hash_frame(hash, id);
    uint32_t own = table_find(&thread->table, hash.table, is_cell, hash_check(hash));
    if (unlikely(!own)) own = foreign_make(thread, id, hash);
    return own ? own : CAIRN_CELL_OTHER;
}
