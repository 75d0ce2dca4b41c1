// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/event_log.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "runtime/process/settings.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/region.h"
#include "runtime/sys/veil.h"

static APART struct {
    struct cairn_events *events;  // in the recording
    uint8_t *chunks;
    uint32_t chunk_limit;
    uint32_t is_switching;  // (atomic) a thread switches it
    bool is_wide;
    bool is_waiting;
    struct thread inherited;  // no thread: a forked child's blocks are written as its events
} log_state;

static const char never;
struct event_log_late event_log_late = {.is_single = &never};

// A thread that found no chunk looks again after so many events.
enum { LOOK_EVERY = 4096 };

enum { WAIT_NS = 200000, NS_PER_MS = 1000000 };

static struct cairn_events_chunk *chunk_at(uint32_t index) {
    return (struct cairn_events_chunk *)(log_state.chunks +
                                         (size_t)index * CAIRN_EVENTS_CHUNK_BYTES);
}

static uint64_t power_of_two_up_to(uint64_t most) {
    uint64_t power = 1;
    while (2 * power <= most) power *= 2;
    return power;
}

static bool open_section(void) {
    struct region region = sink_region(CAIRN_SECTION_EVENTS);
    const uint64_t header_bytes = sys_page_up(CAIRN_EVENTS_HEADER_BYTES);
    log_state.events = NULL;
    if (!region.base || region.capacity_bytes <= header_bytes || sink.is_file) return false;
    if (!veil_lift(region.base + region.capacity_bytes)) return false;  // used from both ends
    if (!region_claim(&region, header_bytes)) return false;
    uint64_t turns_most = region.capacity_bytes / CAIRN_EVENTS_TURNS_SHARE;
    uint64_t turns_bytes = sys_page_up(power_of_two_up_to(turns_most));
    if (turns_bytes > CAIRN_EVENTS_TURNS_MOST * sizeof(uint64_t))
        turns_bytes = CAIRN_EVENTS_TURNS_MOST * sizeof(uint64_t);
    if (region.capacity_bytes <= header_bytes + turns_bytes) return false;
    uint64_t limit =
        (region.capacity_bytes - header_bytes - turns_bytes) / CAIRN_EVENTS_CHUNK_BYTES;
    log_state.chunks = region.base + header_bytes;
    log_state.chunk_limit = limit < CAIRN_EVENTS_CHUNKS ? (uint32_t)limit : CAIRN_EVENTS_CHUNKS;
    event_log_late.mask = turns_bytes / sizeof(uint64_t) - 1;
    log_state.is_wide = live.is_wide;
    event_log_late.shift = live.is_wide ? CAIRN_EVENTS_WIDE_SHIFT : CAIRN_EVENTS_NARROW_SHIFT;
    log_state.is_waiting = settings.is_waiting;
    log_state.events = (struct cairn_events *)region.base;
    log_state.events->is_waiting = settings.is_waiting;
    return true;
}

static void set_number(uint32_t number) {
    __atomic_store_n(&event_log_late.number, number, __ATOMIC_RELEASE);
}

static void tell_number(void) {
    __atomic_store_n(&sink.header->control.events_state, event_log_late.number, __ATOMIC_RELEASE);
}

bool event_log_open(void) {
    event_log_late.turns = NULL;
    if (!open_section()) return false;
    sink.header->control.events_wanted = 1;
    set_number(1);
    tell_number();
    return true;
}

void event_log_shrink(void) {
    struct region region = sink_region(CAIRN_SECTION_EVENTS);
    if (region.base && !log_state.events) region_shrink(&region, 0);
}

// --- switched on and off by the tool

// Births lie where turns would, or nothing does: the table behind the chunks has them.
static bool open_turns(void) {
    struct region region = sink_region(CAIRN_SECTION_EVENTS);
    const uint64_t bytes = (event_log_late.mask + 1) * sizeof *event_log_late.turns;
    uint64_t *turns = (uint64_t *)(region.base + region.capacity_bytes - bytes);
    if (event_log_late.turns) return true;
    if (!sys_claim(turns, bytes)) return false;
    sys_count_own((int64_t)bytes);
    log_state.events->turn_bits = (unsigned)__builtin_popcountll(event_log_late.mask);
    __atomic_store_n(&event_log_late.turns, turns, __ATOMIC_RELEASE);
    return true;
}

static void set_logged(bool is_logged) {
    settings.is_logged_late = is_logged;
    settings_set_events(is_logged);
}

// The section was there for the first log, if it was not refused.
static bool begin_late(uint32_t number) {
    bool is_open = (log_state.events || open_section()) && open_turns();
    if (!is_open) {
        __atomic_store_n(&sink.header->control.events_refused, number, __ATOMIC_RELEASE);
        return false;
    }
    log_state.events->begin_ms = sink_now_coarse_ns() / NS_PER_MS;
    const char *is_single = linker_search("__libc_single_threaded");
    event_log_late.is_single = is_single ? is_single : &never;
    set_number(number);
    set_logged(true);
    return true;
}

// Threads that are at work on an event finish it as they began. The tool hears of the change once
// the mode is the new one: from then on it looks at blocks, and every free is to be logged.
COLD bool event_log_look(void) {
    struct cairn_control *control = &sink.header->control;
    bool has_changed = false;
    __atomic_fetch_and(&control->is_off, ~CAIRN_CONTROL_LOOK, __ATOMIC_ACQ_REL);
    if (__atomic_exchange_n(&log_state.is_switching, 1, __ATOMIC_ACQUIRE)) return false;
    uint32_t wanted = __atomic_load_n(&control->events_wanted, __ATOMIC_ACQUIRE);
    bool is_on = event_log_late.number & 1;
    if (wanted & 1 && !is_on) {
        has_changed = begin_late(wanted);
    } else if (!(wanted & 1) && is_on) {
        set_logged(false);
        set_number(wanted);
        has_changed = true;
    }
    if (!has_changed) __atomic_store_n(&log_state.is_switching, 0, __ATOMIC_RELEASE);
    return has_changed;
}

COLD void event_log_switched(void) {
    tell_number();
    __atomic_store_n(&log_state.is_switching, 0, __ATOMIC_RELEASE);
}

// A log that began late, or was over, is the parent's alone.
bool event_log_leave_parent(void) {
    bool is_from_start = settings.has_events && !settings.is_logged_late;
    bool has_changed = settings.is_logged_late;
    log_state.is_switching = 0;
    if (is_from_start) return false;
    if (has_changed) set_logged(false);
    log_state.events = NULL;
    event_log_late.turns = NULL;
    event_log_late.number = 0;
    return has_changed;
}

// --- chunks

// The free chunk with the lowest number, so that few are in use where the tool keeps up.
static int take_free(struct cairn_events *events, uint32_t count) {
    for (uint32_t i = 0; i * CAIRN_EVENTS_WORD_BITS < count; i++) {
        uint64_t bits = __atomic_load_n(&events->free[i], __ATOMIC_RELAXED);
        while (bits) {
            uint64_t rest = bits & (bits - 1);
            if (__atomic_compare_exchange_n(&events->free[i], &bits, rest, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return (int)(i * CAIRN_EVENTS_WORD_BITS) + __builtin_ctzll(bits);
        }
    }
    return -1;
}

// One that was never in use.
static int take_fresh(struct cairn_events *events) {
    uint32_t count = __atomic_load_n(&events->chunk_count, __ATOMIC_RELAXED);
    while (count < log_state.chunk_limit) {
        if (!__atomic_compare_exchange_n(&events->chunk_count, &count, count + 1, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        if (!sys_claim(chunk_at(count), CAIRN_EVENTS_CHUNK_BYTES)) break;
        sys_count_own(CAIRN_EVENTS_CHUNK_BYTES);
        return (int)count;
    }
    return -1;
}

static int take_chunk(void) {
    struct cairn_events *events = log_state.events;
    int taken = take_free(events, __atomic_load_n(&events->chunk_count, __ATOMIC_ACQUIRE));
    return taken >= 0 ? taken : take_fresh(events);
}

// Until the tool has given one back: not under seccomp, and not without the tool.
static int wait_for_chunk(void) {
    const uint64_t start_ns = sys_clock_ns();
    int taken = -1;
    while (taken < 0 && !sys_is_confined() && !sink.header->control.is_tool_gone &&
           sys_is_thread_alive((int)sink.header->control.tool_pid,
                               (int)sink.header->control.tool_pid)) {
        const struct timespec pause = {.tv_nsec = WAIT_NS};
        sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
        taken = take_chunk();
    }
    __atomic_fetch_add(&log_state.events->waited_ns, sys_clock_ns() - start_ns, __ATOMIC_RELAXED);
    return taken;
}

static void give_full(struct cairn_events_chunk *chunk) {
    chunk->order = __atomic_fetch_add(&log_state.events->given_count, 1, __ATOMIC_RELAXED);
    size_t index = ((size_t)((const uint8_t *)chunk - log_state.chunks)) / CAIRN_EVENTS_CHUNK_BYTES;
    __atomic_fetch_or(&log_state.events->full[index / CAIRN_EVENTS_WORD_BITS],
                      1ull << index % CAIRN_EVENTS_WORD_BITS, __ATOMIC_RELEASE);
}

static uint64_t *words_of(struct cairn_events_chunk *chunk) {
    return (uint64_t *)(chunk + 1);
}

// Words of an event with this first one.
static uint32_t words_of_event(uint64_t first) {
    static const uint8_t more[CAIRN_EVENT_KINDS] = {
        [CAIRN_EVENT_ALLOC] = 1, [CAIRN_EVENT_MAP] = 2, [CAIRN_EVENT_UNMAP] = 1};
    const uint32_t adding =
        CAIRN_EVENT_TURN | CAIRN_EVENT_LARGE | CAIRN_EVENT_ALIGNED | CAIRN_EVENT_MOVED;
    uint32_t count = 1 + more[first & CAIRN_EVENT_KIND_MASK];
    for (uint32_t flags = (uint32_t)first & adding; flags; flags &= flags - 1) count++;
    return count;
}

static uint64_t count_events(const struct thread_log *log) {
    uint64_t count = 0;
    for (const uint64_t *at = words_of(log->chunk); at < log->next; at += words_of_event(*at))
        count += (*at & CAIRN_EVENT_KIND_MASK) != CAIRN_EVENT_TIME;
    return count;
}

static void count_lost(uint64_t count) {
    __atomic_fetch_add(&log_state.events->lost_events, count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sink.header->lost[CAIRN_LOST_EVENTS], count, __ATOMIC_RELAXED);
}

// What a thread wrote is dropped: it begins the same chunk anew.
static void drop_chunk(struct thread_log *log) {
    uint64_t *words = words_of(log->chunk);
    count_lost(count_events(log));
    __atomic_fetch_add(&log_state.events->lost_chunks, 1, __ATOMIC_RELAXED);
    memset(words, 0, CAIRN_EVENTS_CHUNK_BYTES - sizeof *log->chunk);
}

static void begin_chunk(struct thread *thread) {
    struct thread_log *log = &thread->log;
    if (log->log_number != event_log_number()) log->number = 0;
    log->log_number = event_log_number();
    const struct cairn_thread *threads =
        (const struct cairn_thread *)sink_region(CAIRN_SECTION_THREADS).base;
    const uint64_t now_ms = sink_now_coarse_ns() / NS_PER_MS;
    uint32_t clock_ms = __atomic_load_n(ages.clock_ms, __ATOMIC_RELAXED);
    *log->chunk = (struct cairn_events_chunk){
        .slot = thread->slot,
        .thread = (uint32_t)(thread->record - threads),
        .number = log->number++,
        .is_wide = log_state.is_wide,
        .log = log->log_number,
        .start_ms = now_ms > clock_ms ? now_ms : clock_ms,  // the tool may stand still
    };
    log->clock_ms = clock_ms;
    log->next = words_of(log->chunk);
    log->end = (uint64_t *)((uint8_t *)log->chunk + CAIRN_EVENTS_CHUNK_BYTES) -
               (CAIRN_EVENT_WORDS_MOST - 1);
}

// The thread's chunk is full, or it has none. False: it has none now either.
static bool renew_chunk(struct thread *thread) {
    struct thread_log *log = &thread->log;
    if (!log->chunk && log->pause && --log->pause) return false;
    bool is_written = log->chunk && log->next > words_of(log->chunk);
    if (!log->chunk || is_written) {
        int taken = take_chunk();
        if (taken < 0 && log_state.is_waiting) taken = wait_for_chunk();
        if (taken >= 0 && is_written) give_full(log->chunk);
        if (taken >= 0)
            log->chunk = chunk_at((uint32_t)taken);
        else if (is_written)
            drop_chunk(log);
    }
    log->pause = log->chunk ? 0 : LOOK_EVERY;
    if (log->chunk) begin_chunk(thread);
    return log->chunk != NULL;
}

// The chunk is of a log that is over, and what it has was taken.
static COLD void begin_chunk_anew(struct thread *thread) {
    memset(words_of(thread->log.chunk), 0, CAIRN_EVENTS_CHUNK_BYTES - sizeof *thread->log.chunk);
    begin_chunk(thread);
}

// --- events

static void write_time(struct thread_log *log) {
    uint32_t clock_ms = __atomic_load_n(ages.clock_ms, __ATOMIC_RELAXED);
    if (clock_ms == log->clock_ms) return;
    log->clock_ms = clock_ms;
    event_log_finish(log, (uint64_t)clock_ms << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_TIME, 0);
}

// Room for an event, and its time. False: it is lost, and counted.
static bool begin(struct thread *thread) {
    struct thread_log *log = &thread->log;
    if (log->chunk && unlikely(log->log_number != event_log_number())) begin_chunk_anew(thread);
    if (log->next >= log->end && !renew_chunk(thread)) {
        count_lost(1);
        return false;
    }
    write_time(log);
    return true;
}

// The turn moves, whether the event is written or not.
static uint32_t move_turn(const struct thread *thread, const void *block, uint64_t *flags) {
    if (unlikely(event_log_late.turns))
        return event_log_shared_turn(thread, event_log_shared_place(block), flags);
    struct turn *turn = live_turn((uintptr_t)block);
    return turn ? event_log_turn(thread, turn, flags) : 0;
}

void event_log_alloc(struct thread *thread, const void *block, uint32_t cell, uint64_t size) {
    struct thread_log *log = &thread->log;
    uint64_t flags = CAIRN_EVENT_ALLOC | log->flags;
    uint32_t number = move_turn(thread, block, &flags), count = 1;
    if (!begin(thread)) return;
    uint64_t *words = log->next;
    if (size > UINT32_MAX) flags |= CAIRN_EVENT_LARGE;
    words[count++] = size << 32 | cell;
    if (flags & CAIRN_EVENT_TURN) words[count++] = number;
    if (flags & CAIRN_EVENT_LARGE) words[count++] = size;
    if (flags & CAIRN_EVENT_ALIGNED) words[count++] = log->alignment;
    if (flags & CAIRN_EVENT_MOVED) words[count++] = (uintptr_t)log->taken;
    event_log_finish(log, event_log_first(block, flags), count - 1);
}

// Of a kind that has no word of its own.
static void write_plain(struct thread *thread, const void *block, uint64_t flags) {
    uint32_t number = move_turn(thread, block, &flags), count = 1;
    if (!begin(thread)) return;
    if (flags & CAIRN_EVENT_TURN) thread->log.next[count++] = number;
    event_log_finish(&thread->log, event_log_first(block, flags), count - 1);
}

// The first event in this place since the log began late takes a block, so it was there before;
// the tool finds others by itself (live_at_start.h).
static COLD void tell_there(struct thread *thread, const void *block, uint32_t cell,
                            uint64_t size) {
    struct thread_log *log = &thread->log;
    if (event_log_is_told(event_log_shared_place(block))) return;
    if (!begin(thread)) return;
    uint64_t flags = CAIRN_EVENT_ALLOC | CAIRN_EVENT_THERE;
    uint32_t count = 1;
    log->next[count++] = size << 32 | cell;
    if (size > UINT32_MAX) {
        flags |= CAIRN_EVENT_LARGE;
        log->next[count++] = size;
    }
    event_log_finish(log, event_log_first(block, flags), count - 1);
}

void event_log_free(struct thread *thread, const void *block, uint32_t cell, uint64_t size) {
    if (unlikely(event_log_late.turns)) tell_there(thread, block, cell, size);
    write_plain(thread, block, CAIRN_EVENT_FREE);
}

void event_log_unseen(struct thread *thread, const void *block) {
    write_plain(thread, block, CAIRN_EVENT_FREE | CAIRN_EVENT_UNSEEN);
}

void event_log_take(struct thread *thread, const void *block, uint32_t cell, uint64_t size) {
    if (unlikely(event_log_late.turns)) tell_there(thread, block, cell, size);
    write_plain(thread, block, CAIRN_EVENT_TAKE);
}

// The place of a block that is gone may be another thread's by now: its turn stays.
void event_log_settle(struct thread *thread, const void *block, enum cairn_event_kind kind) {
    if (kind == CAIRN_EVENT_BACK) {
        write_plain(thread, block, kind);
    } else if (begin(thread)) {
        event_log_finish(&thread->log, event_log_first(block, kind), 0);
    }
}

void event_log_map(struct thread *thread, uint64_t start, uint64_t bytes, uint32_t cell,
                   uint32_t turn) {
    if (!begin(thread)) return;
    uint64_t *words = thread->log.next;
    words[1] = bytes;
    words[2] = cell;
    words[3] = turn;
    event_log_finish(&thread->log,
                     event_log_first((void *)start, CAIRN_EVENT_MAP | CAIRN_EVENT_TURN), 3);
}

void event_log_unmap(struct thread *thread, uint64_t start, uint64_t bytes, uint32_t turn) {
    if (!begin(thread)) return;
    uint64_t *words = thread->log.next;
    words[1] = bytes;
    words[2] = turn;
    event_log_finish(&thread->log,
                     event_log_first((void *)start, CAIRN_EVENT_UNMAP | CAIRN_EVENT_TURN), 2);
}

// --- a forked child

void event_log_inherit_begin(void) {
    log_state.inherited = (struct thread){
        .slot = CAIRN_SLOT_SHARED,
        .record = (struct cairn_thread *)sink_region(CAIRN_SECTION_THREADS).base,
        .log.flags = CAIRN_EVENT_THERE,
    };
    live_forget_turns();
}

void event_log_inherit(uintptr_t address, uint32_t cell, uint64_t size) {
    event_log_alloc(&log_state.inherited, (const void *)address, cell, size);
}
