// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/sampling.h"

#include "runtime/process/settings.h"
#include "runtime/record/event.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/totals.h"
#include "runtime/sample/cpu_budget.h"
#include "runtime/sample/sample_totals.h"
#include "runtime/stack/cells.h"
#include "runtime/sys/probes.h"

struct sampling sampling;

COLD bool sampling_open(bool is_on) {
    struct region region = sink_region(CAIRN_SECTION_SAMPLING);
    sampling.record = region.base ? region_take(&region, sizeof *sampling.record) : NULL;
    ledger_open(sink_region(CAIRN_SECTION_SAMPLE_CELLS));
    if (!sampling.record) return !is_on;
    *sampling.record = (struct cairn_sampling){
        .rate_bytes = settings.rate_bytes,
        .max_samples = settings.max_samples,
        .cpu_budget_millionths = settings.cpu_budget_millionths,
        .min_bytes = settings.min_bytes,
        .max_bytes = settings.max_bytes,
    };
    sampling.thinned_by = 0;
    sampling.wanted_bytes = 0;
    sampling.seed = settings.has_seed ? settings.seed : sys_random();
    return !is_on || sampling_begin();
}

bool sampling_begin(void) {
    struct cairn_sampling *record = sampling.record;
    if (!record || !blocks_init(settings.max_samples)) return false;
    modules.header->live_samples = blocks_place();
    record->seed = sampling.seed;
    record->rate_now_bytes = record->rate_most_bytes = settings.rate_bytes;
    record->start_ns = record->start_ns ? record->start_ns : sink_now_coarse_ns();
    cpu_budget_start(&(struct pace_limits){settings.cpu_budget_millionths, settings.rate_bytes});
    __atomic_store_n(&record->is_on, 1, __ATOMIC_RELEASE);
    return true;
}

void sampling_shrink(uint64_t headroom_bytes) {
    ledger_shrink(headroom_bytes);
}

static bool is_shared(uint32_t cell) {
    return cell == CAIRN_CELL_OTHER;
}

static int64_t blocks_of(const struct weight *weight) {
    return weight->extra + CAIRN_SAMPLE_ONE;
}

// Before a cell changes: if a peak passed since its last change, it keeps what it held then.
static void cell_prepare(struct thread *thread, uint32_t cell) {
    uint32_t peak_epoch = __atomic_load_n(&cells.totals->peak_epoch, __ATOMIC_RELAXED);
    if ((int32_t)(cells.items[cell].epoch - peak_epoch) < 0) ledger_save_peak(cell);
    cell_turn(&thread->stack.values, &cells.items[cell], cell);
}

static void book_alloc(struct thread *thread, uint32_t cell, uint64_t size,
                       const struct weight *weight) {
    struct cairn_thread *record = thread->record;
    if (!ledger_claim(cell)) return gate_count_loss(CAIRN_LOST_NO_MEMORY);
    cell_prepare(thread, cell);
    cell_alloc(&thread->stack.values, cell, (uint64_t)weight->bytes);
    ledger_alloc(cell, size, weight, is_shared(cell));
    record->net_bytes += weight->bytes;
    record->estimated_blocks += blocks_of(weight);
    if (record->net_bytes > thread->high_bytes) totals_publish(thread, 0, 0);
}

// Where a free is booked: in a cell of this thread. 0 without memory.
static uint32_t cell_for_free(struct thread *thread, uint32_t cell) {
    if (cell_owner(cell) != thread->slot && !is_shared(cell))
        cell = stack_foreign(&thread->stack, cell);
    if (ledger_claim(cell)) return cell;
    gate_count_loss(CAIRN_LOST_NO_MEMORY);
    return 0;
}

// The totals are about to sink by so much, or to rise.
static void totals_prepare(struct thread *thread, int64_t bytes, int64_t blocks) {
    int64_t net_bytes = thread->record->net_bytes;
    if (bytes > 0 && net_bytes > thread->peak_bytes) totals_peak_left(thread);
    if (net_bytes - bytes < thread->low_bytes) totals_publish(thread, -bytes, -blocks);
}

static void book_free(struct thread *thread, uint32_t cell, const struct weight *weight) {
    totals_prepare(thread, weight->bytes, blocks_of(weight) / CAIRN_SAMPLE_ONE);
    cell = cell_for_free(thread, cell);
    if (!cell) return;
    cell_prepare(thread, cell);
    cell_free(&thread->stack.values, cell, (uint64_t)weight->bytes);
    ledger_free(cell, weight, is_shared(cell));
    thread->record->net_bytes -= weight->bytes;
    thread->record->estimated_blocks -= blocks_of(weight);
}

// A sample has another weight from now on: what it loses is booked on the side of the frees.
static void book_change(struct thread *thread, uint32_t cell, const struct weight *from,
                        const struct weight *to) {
    struct weight less = {from->bytes - to->bytes, from->extra - to->extra,
                          from->bytes_variance - to->bytes_variance,
                          from->blocks_variance - to->blocks_variance};
    totals_prepare(thread, less.bytes, less.extra / CAIRN_SAMPLE_ONE);
    cell = cell_for_free(thread, cell);
    if (!cell) return;
    cell_prepare(thread, cell);
    __atomic_fetch_add(&cells.items[cell].freed_bytes, (uint64_t)less.bytes, __ATOMIC_RELAXED);
    ledger_free(cell, &less, is_shared(cell));
    thread->record->net_bytes -= less.bytes;
    thread->record->estimated_blocks -= less.extra;
    if (thread->record->net_bytes > thread->high_bytes) totals_publish(thread, 0, 0);
}

static uint64_t rate_now(void) {
    return __atomic_load_n(&sampling.record->rate_now_bytes, __ATOMIC_RELAXED);
}

static void rate_set(uint64_t rate_bytes);

// Another rate was asked for from outside; whatever stands there, it is a rate from then on.
static void follow_wish(void) {
    uint64_t wanted = __atomic_load_n(&sampling.record->wanted_bytes, __ATOMIC_RELAXED);
    if (likely(wanted == sampling.wanted_bytes)) return;
    sampling.wanted_bytes = wanted;
    if (!wanted) wanted = settings.rate_bytes;
    cpu_budget_set_rate(wanted < COUNTDOWN_MOST_BYTES ? wanted : COUNTDOWN_MOST_BYTES);
    rate_set(wanted);
}

static void rate_set(uint64_t rate_bytes) {
    struct cairn_sampling *record = sampling.record;
    if (rate_bytes > COUNTDOWN_MOST_BYTES) rate_bytes = COUNTDOWN_MOST_BYTES;
    __atomic_store_n(&record->rate_now_bytes, rate_bytes, __ATOMIC_RELAXED);
    if (rate_bytes > record->rate_most_bytes) record->rate_most_bytes = rate_bytes;
}

bool sampling_set_rate(uint64_t rate_bytes) {
    if (!sampling.record || !__atomic_load_n(&sampling.record->is_on, __ATOMIC_RELAXED))
        return false;
    cpu_budget_set_rate(rate_bytes < COUNTDOWN_MOST_BYTES ? rate_bytes : COUNTDOWN_MOST_BYTES);
    rate_set(rate_bytes);
    return true;
}

static void tell_alloc(uintptr_t *frame, const void *block, const struct sampled *sampled,
                       const struct weight *weight) {
    if (unlikely(probes_otel_alloc))
        probe_otel_alloc(frame, block, sampled->size_bytes, (uint64_t)weight->bytes);
}

// A tracer that got a sample gets its end, also if it is only not followed any longer.
static void tell_free(uintptr_t *frame, const void *block) {
    if (unlikely(probes_otel_free)) probe_otel_free(frame, block);
}

struct thinning {
    struct thread *thread;
    uint64_t rate_bytes;
};

static enum blocks_fate thin_one(void *context, const void *block, struct sampled *sampled) {
    const struct thinning *thinning = context;
    struct thread *thread = thinning->thread;
    uint64_t old = sampled->rate_bytes, size = sampled->size_bytes;
    if (old >= thinning->rate_bytes) return BLOCKS_KEEP;
    struct weight before = weight_of(size, old), after = weight_of(size, thinning->rate_bytes);
    if (!weight_stays(&thread->countdown.chance, size, old, thinning->rate_bytes)) {
        book_free(thread, sampled->cell, &before);
        tell_free(NULL, block);
        return BLOCKS_DROP;
    }
    book_change(thread, sampled->cell, &before, &after);
    sampled->rate_bytes = thinning->rate_bytes;
    return BLOCKS_KEEP;
}

// More samples are live than may be: the rate doubles until a quarter of the room is free. One
// thread does it; a lock that it left behind, by a jump out of here, is its own.
static COLD void thin(struct thread *thread) {
    const uint64_t wanted = settings.max_samples - settings.max_samples / 4;
    int32_t nobody = 0;
    if (!__atomic_compare_exchange_n(&sampling.thinned_by, &nobody, thread->tid, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
        nobody != thread->tid)
        return;
    while (blocks_count() > wanted && rate_now() < COUNTDOWN_MOST_BYTES) {
        struct thinning thinning = {thread, rate_now() * 2};
        rate_set(thinning.rate_bytes);
        blocks_each(thin_one, &thinning);
        __atomic_fetch_add(&sampling.record->thinned_count, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&sampling.thinned_by, 0, __ATOMIC_RELEASE);
}

// The time that a sample took; perhaps samples have to be rarer, or may be more frequent again.
static void count_time(struct thread *thread, uint64_t start_ns) {
    uint64_t taken_ns = cpu_budget_clock_ns() - start_ns;
    thread->record->own_ns += taken_ns;
    uint64_t rate = cpu_budget_after(taken_ns, rate_now());
    if (rate == rate_now()) return;
    if (rate > rate_now()) __atomic_fetch_add(&sampling.record->slowed_count, 1, __ATOMIC_RELAXED);
    rate_set(rate);
}

static uint32_t enter(struct thread *thread, const void *block, size_t size, uintptr_t *frame,
                      uint64_t rate) {
    struct sampled sampled = {.size_bytes = size, .rate_bytes = rate}, stale;
    struct weight weight = weight_of(size, rate);
    sampled.cell = event_cell(thread, size, frame);
    if (blocks_take(block, &stale)) {
        gate_count_loss(CAIRN_LOST_IMPLIED_FREE);
        struct weight gone = weight_of(stale.size_bytes, stale.rate_bytes);
        book_free(thread, stale.cell, &gone);
        tell_free(frame, block);
    }
    bool is_entered = blocks_insert(block, &sampled);
    __atomic_store_n(&sampling.record->live_samples, blocks_count(), __ATOMIC_RELAXED);
    book_alloc(thread, sampled.cell, size, &weight);
    if (is_entered) {
        tell_alloc(frame, block, &sampled, &weight);
        return sampled.cell;
    }
    gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    book_free(thread, sampled.cell, &weight);
    return sampled.cell;
}

// The thread's first event since its allocations are sampled.
static COLD void thread_begin(struct thread *thread) {
    struct cairn_thread *record = thread->record;
    if (!thread->has_chance) {
        uint64_t number = __atomic_fetch_add(&sampling.thread_count, 1, __ATOMIC_RELAXED);
        prng_start(&thread->countdown.chance, sampling.seed, number);
        thread->has_chance = true;
    }
    if (record->is_sampled) return;
    record->estimated_blocks = (int64_t)(record->allocations - record->frees) * CAIRN_SAMPLE_ONE;
    record->is_sampled = 1;
}

static bool is_begun(const struct thread *thread) {
    return thread->has_chance && thread->record->is_sampled;
}

uint32_t sampling_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    int64_t *left = &gate_line()->left_bytes;
    if (unlikely(!is_begun(thread))) thread_begin(thread);
    if (unlikely(!block)) {
        thread->record->failed++;
        return SAMPLING_NOT_COUNTED;
    }
    if (unlikely(!gate_is_recording() || thread->nest.is_off)) {
        *left = 0;  // until recording goes on, every event has to ask
        if (!gate_is_recording()) event_pause();
        return SAMPLING_NOT_COUNTED;
    }
    sampling_count(thread->record, size);
    if (!countdown_pay(&thread->countdown, left, size, rate_now())) return SAMPLING_PASSED;
    uint64_t start_ns = cpu_budget_clock_ns(), rate = thread->countdown.rate_bytes;
    follow_wish();
    if (countdown_charge(size) < rate) countdown_draw(&thread->countdown, left, rate_now());
    uint32_t cell = enter(thread, block, size, frame, rate);
    if (blocks_count() >= settings.max_samples) thin(thread);
    count_time(thread, start_ns);
    // a steady heap passes no bounds
    totals_publish_calls(thread);
    if (snapshots_is_due()) totals_publish(thread, 0, 0);
    return cell;
}

struct live_block sampling_free(struct thread *thread, const void *block, uintptr_t *frame) {
    struct sampled sampled;
    if (!blocks_take(block, &sampled)) return (struct live_block){0, 0};
    if (unlikely(!is_begun(thread))) thread_begin(thread);
    struct weight weight = weight_of(sampled.size_bytes, sampled.rate_bytes);
    book_free(thread, sampled.cell, &weight);
    tell_free(frame, block);
    return (struct live_block){sampled.cell, sampled.size_bytes};
}

struct live_block sampling_take(struct thread *thread, const void *block, uintptr_t *frame) {
    thread->has_taken = blocks_take(block, &thread->taken);
    if (!thread->has_taken) return (struct live_block){0, 0};
    tell_free(frame, block);
    if (unlikely(!is_begun(thread))) thread_begin(thread);
    return (struct live_block){thread->taken.cell, thread->taken.size_bytes};
}

void sampling_book_taken(struct thread *thread) {
    struct weight weight = weight_of(thread->taken.size_bytes, thread->taken.rate_bytes);
    thread->has_taken = false;
    book_free(thread, thread->taken.cell, &weight);
}

void sampling_put_back(struct thread *thread, const void *block, uintptr_t *frame) {
    thread->has_taken = false;
    if (!blocks_insert(block, &thread->taken)) return gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    struct weight weight = weight_of(thread->taken.size_bytes, thread->taken.rate_bytes);
    tell_alloc(frame, block, &thread->taken, &weight);
}

// A sample that others allocated, in a cell that no thread owns.
static bool count_found(struct cairn_thread *record, const struct sampled *sampled) {
    struct weight weight = weight_of(sampled->size_bytes, sampled->rate_bytes);
    struct cairn_cell *cell = &cells.items[sampled->cell];
    if (((uint64_t)sampled->cell + 1) * sizeof *cell > *cells.region.used_bytes ||
        !ledger_claim(sampled->cell))
        return false;
    cell->allocated_bytes += (uint64_t)weight.bytes;
    cell->calls++;
    ledger_alloc(sampled->cell, sampled->size_bytes, &weight, false);
    record->net_bytes += weight.bytes;
    record->estimated_blocks += blocks_of(&weight);
    return true;
}

void sampling_find_begin(struct sampling_found *found, struct cairn_thread *record,
                         uint64_t bytes) {
    uint64_t number = __atomic_fetch_add(&sampling.thread_count, 1, __ATOMIC_RELAXED);
    *found = (struct sampling_found){.record = record};
    prng_start(&found->countdown.chance, sampling.seed, number);
    while (bytes / rate_now() > settings.max_samples / 2 && rate_now() < COUNTDOWN_MOST_BYTES)
        rate_set(rate_now() * 2);
}

void sampling_find(struct sampling_found *found, const void *block, uint64_t size, uint32_t cell) {
    struct countdown *countdown = &found->countdown;
    found->blocks++;
    found->bytes += size;
    if (!countdown_pay(countdown, &found->left_bytes, size, rate_now())) return;
    struct sampled sampled = {
        .size_bytes = size, .rate_bytes = countdown->rate_bytes, .cell = cell};
    if (countdown_charge(size) < sampled.rate_bytes)
        countdown_draw(countdown, &found->left_bytes, rate_now());
    if (!blocks_insert(block, &sampled)) return gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    if (!count_found(found->record, &sampled)) blocks_take(block, &sampled);
    __atomic_store_n(&sampling.record->live_samples, blocks_count(), __ATOMIC_RELAXED);
}

void sampling_find_end(const struct sampling_found *found) {
    sampling.record->found_blocks = found->blocks;
    sampling.record->found_bytes = found->bytes;
}

static enum blocks_fate fork_one(void *context, const void *block, struct sampled *sampled) {
    (void)block;
    return count_found(context, sampled) ? BLOCKS_KEEP : BLOCKS_DROP;
}

void sampling_inherit(struct cairn_thread *record) {
    sampling.seed = prng_seed_of_child(sampling.seed, sampling.fork_count);
    sampling.record->seed = sampling.seed;
    sampling.thread_count = 0;
    record->estimated_blocks = (int64_t)record->allocations * CAIRN_SAMPLE_ONE;
    record->is_sampled = 1;
    blocks_recover();
    blocks_each(fork_one, record);
    record->allocations = (uint64_t)(record->estimated_blocks / CAIRN_SAMPLE_ONE);
    record->allocated_bytes = (uint64_t)record->net_bytes;
}
