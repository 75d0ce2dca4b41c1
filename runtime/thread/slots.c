// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread/slots.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "runtime/record/totals.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/colour.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/veil.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/stack_memory.h"

enum { SLOT_LIMIT = 65535 };

// Slots that are uncovered together at least. The thread in the middle of the last ones uncovers
// the next, and waits for nobody. Who comes before that is done gives way so often and then sleeps:
// thousands that only gave way would take all the processors from that thread.
enum { OPEN_SLOTS = 512, OPEN_YIELDS = 20, OPEN_SLEEPS = 400, OPEN_SLEEP_NS = 500000 };

// Threads beyond this many entries that continue a slot under the same name share its entry. Beyond
// half of the table any name does, so that slots without an entry always find one.
enum { RECORD_FOLD_COUNT = 1024, RECORD_FOLD_ALL_SHARE = 2 };

// Slots looked at per registration, so that its cost does not grow with them.
enum { TAKEOVER_TRIES = 4 };

// From so many slots on, those whose threads ended unheard are looked for now and then only: so
// many times when half as many slots more are in use than the last time, and LOOKS_MORE times more
// for each one found.
enum { LOOK_ALWAYS_COUNT = 64, LOOKS = 64, LOOKS_MORE = 2 };

// A registering thread that finds others at it gives way this often before it takes a new slot.
enum { LOCK_TRIES = 50 };

// The slot that the calling thread had last + 1; 0: it had none.
static __thread uint32_t last_slot;

// What is known of a thread that is wiped with it lies on one page for the first ones: a small
// program has no other.
enum { GROUP_SLOTS = 60, GROUP_COUNT = (SLOT_LIMIT + GROUP_SLOTS - 1) / GROUP_SLOTS };
// Slots whose threads' memory is reserved at once.
enum { PIECE_SLOTS = 30 };
struct slot_group {
    struct gate_line gates[GROUP_SLOTS];
    int32_t tids[GROUP_SLOTS];
    uint8_t *memory[GROUP_SLOTS / PIECE_SLOTS];  // (atomic) stack_memory.h
};
_Static_assert(sizeof(struct slot_group) == SYS_PAGE_LEAST, "a group is a page");

// Wiped in a forked child.
struct slots {
    uint32_t is_in_use;   // 1 in the process that opened the slots; 0 after fork
    uint32_t used_count;  // (atomic)
    int32_t locked_by;    // (atomic) tid; 0: nobody
    uint32_t clock_hand;  // slots looked at for takeover
    uint32_t free_head;   // (atomic) the slot that was given up last + 1, or 0
    uint32_t left_count;  // (atomic) slots whose threads could not give them up
    uint32_t look_count;  // slots in use from which on some are looked for again
    uint32_t looks;       // that are left
    struct slot_group groups[GROUP_COUNT];
};

static struct slots *slots;
static int32_t *tid_of(uint32_t slot) {
    return &slots->groups[slot / GROUP_SLOTS].tids[slot % GROUP_SLOTS];
}
static struct gate_line *gate_of(uint32_t slot) {
    return &slots->groups[slot / GROUP_SLOTS].gates[slot % GROUP_SLOTS];
}
// Groups that hold so many slots.
static uint32_t groups_of(uint32_t slot_count) {
    return (slot_count + GROUP_SLOTS - 1) / GROUP_SLOTS;
}

__thread bool slots_is_moving;
static struct thread *threads;  // SLOT_LIMIT of them; kept in a forked child, but not used there
static uint32_t slot_limit = SLOT_LIMIT;  // (atomic)
static APART uint32_t covered_count;      // (atomic) of the last slots' threads (veil.h)
static APART uint32_t vain_count;         // (atomic) covered_count that one waited in vain to fall
static struct region thread_records;
static struct thread *first_thread;  // (atomic) alone as long as no other registers

static int (*key_create)(unsigned *, void (*)(void *));
static int (*key_set)(unsigned, const void *);
static int (*key_delete)(unsigned);
static unsigned exit_key;
static bool has_exit_key;

// glibc keeps values of the first 32 keys in the thread itself; later ones would be allocated.
enum { KEYS_WITHOUT_ALLOCATION = 32 };

// glibc notes a thread's number in the thread's own memory, and tells debuggers where: so many
// bytes from the thread pointer. 0: not known. That saves each thread a system call.
static uint32_t tid_offset;   // (atomic)
static const void *tid_told;  // (atomic) where it tells that; NULL: nowhere, or it was read

static int32_t tid_noted(uint32_t offset) {
    int32_t tid;
    memcpy(&tid, (const char *)__builtin_thread_pointer() + offset, sizeof tid);
    return tid;
}

static void find_tid_offset(void) {
#if defined(__x86_64__)
    tid_told = linker_find("_thread_db_pthread_tid");
#endif
}

// Nothing else is touched near what is told, so it is read when a second thread comes. It is only
// believed if it is true for that one.
static COLD void read_tid_offset(const void *told, int32_t tid) {
    struct {
        uint32_t bits, count, offset;
    } where;
    memcpy(&where, told, sizeof where);
    bool is_plausible =
        where.bits == 8 * sizeof(int32_t) && where.count == 1 && where.offset <= SYS_PAGE_LEAST / 2;
    __atomic_store_n(&tid_told, NULL, __ATOMIC_RELAXED);
    if (is_plausible && tid_noted(where.offset) == tid)
        __atomic_store_n(&tid_offset, where.offset, __ATOMIC_RELAXED);
}

// A child of a raw fork still has its parent's number noted. What was not read before is not
// believed there.
static void check_tid_offset(void) {
    if (tid_offset && tid_noted(tid_offset) != sys_tid()) tid_offset = 0;
    if (sink.header->forked_from) tid_told = NULL;
}

static int32_t tid_of_caller(bool is_first) {
    uint32_t offset = __atomic_load_n(&tid_offset, __ATOMIC_RELAXED);
    if (offset) return tid_noted(offset);
    const void *told = is_first ? NULL : __atomic_load_n(&tid_told, __ATOMIC_RELAXED);
    int32_t tid = sys_tid();
    if (told) read_tid_offset(told, tid);
    return tid;
}

static void read_name(struct cairn_thread *record) {
    sys_call(SYS_prctl, PR_GET_NAME, (long)record->name, 0, 0, 0, 0);
    record->name[sizeof record->name - 1] = 0;
}

// Waits for a while only: the holder may have been stopped. A thread that finds the lock its own
// was torn out of an earlier move by a handler that jumped.
static bool slots_lock(int32_t tid) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        int32_t owner = 0;
        if (__atomic_compare_exchange_n(&slots->locked_by, &owner, tid, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED) ||
            owner == tid)
            return true;
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return false;
}

static void slots_unlock(void) {
    __atomic_store_n(&slots->locked_by, 0, __ATOMIC_RELEASE);
}

// The slot can serve another thread, except that nobody may know: then it is found by its tid.
static void slot_give_up(struct thread *thread) {
    slots_is_moving = true;
    compiler_barrier();
    gate_self = gate_nobody();
    if (slots_lock(thread->tid)) {
        *tid_of(thread->slot) = 0;
        thread->line->is_registered = false;
        thread->next_free = slots->free_head;
        compiler_barrier();
        __atomic_store_n(&slots->free_head, thread->slot + 1, __ATOMIC_RELAXED);
        slots_unlock();
    } else {
        __atomic_store_n(&thread->is_exiting, 1, __ATOMIC_RELEASE);
        __atomic_fetch_add(&slots->left_count, 1, __ATOMIC_RELAXED);
    }
    compiler_barrier();
    slots_is_moving = false;
}

// Called by pthread while the thread ends, possibly with more of its destructors to come. One that
// shares its entry with earlier ones keeps the name it began with.
static void thread_exits(void *value) {
    struct thread *thread = value;
    if (slots_is_wiped() || thread != gate_self || !gate_is_open()) return;
    gate_hold(thread, gate_holder_of((uintptr_t)__builtin_frame_address(0)));
    if (!thread->record->folded_count) read_name(thread->record);
    thread->record->end_ns = sink_now_coarse_ns();
    thread->record->is_ended = 1;
    totals_publish(thread, 0, 0);
    slot_give_up(thread);
}

static void find_exit_key(void) {
    void *create = linker_find("pthread_key_create");
    void *set = linker_find("pthread_setspecific");
    void *delete = linker_find("pthread_key_delete");
    if (!create || !set) return;
    if (delete) memcpy(&key_delete, &delete, sizeof delete);
    memcpy(&key_create, &create, sizeof create);
    memcpy(&key_set, &set, sizeof set);
    has_exit_key = key_create(&exit_key, thread_exits) == 0 && exit_key < KEYS_WITHOUT_ALLOCATION;
}

COLD void slots_cover(void) {
    if (covered_count == 0 && slots->used_count == 0 &&
        veil_draw(threads, SLOT_LIMIT * sizeof *threads, OPEN_SLOTS * sizeof *threads,
                  VEIL_PRIVATE))
        covered_count = SLOT_LIMIT - OPEN_SLOTS;
}

static uint32_t open_count(void) {
    return SLOT_LIMIT - __atomic_load_n(&covered_count, __ATOMIC_ACQUIRE);
}

static bool slot_is_open(uint32_t slot) {
    return slot < open_count();
}

// Only a thread that is in its slot by now, so that no two of these are ever at it.
static COLD void open_next(uint32_t slot) {
    uint32_t wanted = slot + OPEN_SLOTS, limit = __atomic_load_n(&slot_limit, __ATOMIC_ACQUIRE);
    if (wanted > limit) wanted = limit;
    if (slot_is_open(wanted - 1) || !veil_lift(threads + wanted)) return;
    uint64_t bytes = veil_readable_bytes(threads, SLOT_LIMIT * sizeof *threads);
    uint32_t covered = SLOT_LIMIT - (uint32_t)(bytes / sizeof *threads);
    __atomic_store_n(&covered_count, covered, __ATOMIC_RELEASE);
    values_expect(wanted);
}

static void open_pause(int tries) {
    const struct timespec pause = {0, OPEN_SLEEP_NS};
    if (sys_is_confined()) return;
    if (tries < OPEN_YIELDS)
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    else
        sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

// Whoever uncovers the slot may have been stopped, or torn out of that: one thread waits for it to
// the end, those after it only give way.
static COLD bool slot_opens(uint32_t slot) {
    for (int i = 0; !slot_is_open(slot); i++) {
        uint32_t covered = __atomic_load_n(&covered_count, __ATOMIC_ACQUIRE);
        if (i == OPEN_YIELDS + OPEN_SLEEPS)
            __atomic_store_n(&vain_count, covered, __ATOMIC_RELEASE);
        if (i >= OPEN_YIELDS && covered == __atomic_load_n(&vain_count, __ATOMIC_ACQUIRE))
            return false;
        open_pause(i);
    }
    return true;
}

void slots_close(void) {
    if (has_exit_key && key_delete) key_delete(exit_key);
    has_exit_key = false;
}

bool slots_init(void) {
    if (slots) return true;
    uint8_t *memory = sys_reserve(COLOUR_THREADS + SLOT_LIMIT * sizeof *threads);
    slots = memory ? sys_reserve(sizeof *slots) : NULL;
    if (!slots) return false;
    threads = (struct thread *)(memory + COLOUR_THREADS);
    sys_call(SYS_madvise, (long)slots, sizeof *slots, MADV_WIPEONFORK, 0, 0, 0);
    find_exit_key();
    find_tid_offset();
    return true;
}

void slots_open(struct region records) {
    thread_records = records;
    first_thread = NULL;
    check_tid_offset();
    gate_stamp_begin();
    slots->is_in_use = 1;
}

void slots_wipe(void) {
    if (!slots || !slots->is_in_use) return;
    gate_stamp_wipe();
    uint32_t count = slots->used_count;
    if (count > SLOT_LIMIT) count = SLOT_LIMIT;
    memset(slots->groups, 0, groups_of(count) * sizeof *slots->groups);
    memset(slots, 0, offsetof(struct slots, groups));
}

bool slots_is_wiped(void) {
    if (unlikely(gate_self->forker_pid) && gate_is_forked()) slots_wipe();
    return slots && !slots->is_in_use;
}

uint32_t slots_count(void) {
    uint32_t count = __atomic_load_n(&slots->used_count, __ATOMIC_RELAXED);
    if (count > SLOT_LIMIT) count = SLOT_LIMIT;
    return count ? count : 1;
}

static bool is_alive(int32_t tid) {
    return sys_is_thread_alive((int)sink.header->pid, tid);
}

static bool slot_is_free(uint32_t slot) {
    const struct thread *thread = &threads[slot];
    return __atomic_load_n(&thread->is_exiting, __ATOMIC_ACQUIRE) && !is_alive(thread->tid);
}

// The slot that was given up last, with the lock held; NULL: none.
static struct thread *slot_take_free_locked(void) {
    uint32_t head = slots->free_head;
    if (!head) return NULL;
    __atomic_store_n(&slots->free_head, threads[head - 1].next_free, __ATOMIC_RELAXED);
    return &threads[head - 1];
}

// The next slot to look at: one here, one there, since those that serve are often side by side.
static uint32_t slot_looked_at(uint32_t count) {
    const uint32_t golden_part = 2654435769u;  // of 2^32
    return (uint32_t)((uint64_t)(slots->clock_hand++ * golden_part) * count >> 32);
}

// The slot of a thread that is gone, with the lock held; NULL if none of those looked at is.
static struct thread *slot_take_over_locked(int32_t tid, uint32_t count) {
    if (tid > 0 && last_slot && last_slot <= count && *tid_of(last_slot - 1) == tid)
        return &threads[last_slot - 1];
    for (uint32_t i = 0; i < count && i < TAKEOVER_TRIES; i++) {
        uint32_t slot = slot_looked_at(count);
        int32_t last = *tid_of(slot);
        if ((tid > 0 && last == tid) || slot_is_free(slot)) return &threads[slot];
        // one that ended without its exit being seen
        bool is_asked = last && (i == 0 || count >= LOOK_ALWAYS_COUNT);
        if (is_asked && !is_alive(last)) return &threads[slot];
    }
    return NULL;
}

static uint32_t slots_to_look_at(void) {
    uint32_t count = __atomic_load_n(&slots->used_count, __ATOMIC_RELAXED), open = open_count();
    return count < open ? count : open;
}

// True if a slot may be found. Of many threads at once few ask for the lock; what they read of it
// without having it decides nothing else.
static bool is_worth_a_look(uint32_t count) {
    if (count < LOOK_ALWAYS_COUNT || last_slot) return true;
    if (__atomic_load_n(&slots->free_head, __ATOMIC_RELAXED)) return true;
    if (__atomic_load_n(&slots->left_count, __ATOMIC_RELAXED)) return true;
    return __atomic_load_n(&slots->looks, __ATOMIC_RELAXED) ||
           count >= __atomic_load_n(&slots->look_count, __ATOMIC_RELAXED);
}

static void note_look_locked(const struct thread *found, uint32_t count) {
    uint32_t looks = slots->looks;
    if (!looks && count >= slots->look_count) looks = LOOKS;
    if (found && looks < LOOKS) looks += LOOKS_MORE;
    if (!found && looks) looks--;
    __atomic_store_n(&slots->looks, looks, __ATOMIC_RELAXED);
    __atomic_store_n(&slots->look_count, count + count / 2, __ATOMIC_RELAXED);
}

static void note_found_locked(struct thread *thread) {
    uint32_t left = __atomic_load_n(&slots->left_count, __ATOMIC_RELAXED);
    if (thread->is_exiting && left) __atomic_fetch_sub(&slots->left_count, 1, __ATOMIC_RELAXED);
    thread->is_exiting = 0;
}

// An event of its last thread may be half done: what remembers one is forgotten.
static void slot_clean(struct thread *thread) {
    if (thread->record) totals_publish(thread, 0, 0);
    thread_forget(thread);
    stack_thread_recover(&thread->stack);
}

// Of a slot that was given up the last stack is kept: comparing with it reads nothing that the
// present stack does not have, whose ever it was (checks_verify).
static COLD struct thread *slot_take_over(int32_t tid) {
    uint32_t count = slots_to_look_at();
    if (!is_worth_a_look(count) || !slots_lock(tid)) return NULL;
    struct thread *given = slot_take_free_locked();
    struct thread *thread = given ? given : slot_take_over_locked(tid, count);
    if (!given) note_look_locked(thread, count);
    if (thread) {
        *tid_of(thread->slot) = tid;
        // Samples have a stream of random numbers a thread, whatever slot it happens to get.
        if (thread->tid != tid) thread->has_chance = false;
        thread->tid = tid;
        note_found_locked(thread);
    }
    slots_unlock();
    if (thread && !given) slot_clean(thread);
    return thread;
}

// The first memory of a slot's thread. The first one of a piece that needs it reserves it for all;
// of two at once one lets go again. NULL without memory.
static uint8_t *memory_of(uint32_t slot) {
    struct slot_group *group = &slots->groups[slot / GROUP_SLOTS];
    uint32_t number = slot % GROUP_SLOTS;
    uint8_t **piece = &group->memory[number / PIECE_SLOTS];
    uint8_t *memory = __atomic_load_n(piece, __ATOMIC_ACQUIRE), *made = NULL;
    if (!memory && (made = sys_reserve(PIECE_SLOTS * STACK_MEMORY_BYTES)) != NULL) {
        bool is_mine = __atomic_compare_exchange_n(piece, &memory, made, false, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_ACQUIRE);
        if (is_mine)
            memory = made;
        else
            sys_release(made, PIECE_SLOTS * STACK_MEMORY_BYTES);
    }
    return memory ? memory + number % PIECE_SLOTS * STACK_MEMORY_BYTES : NULL;
}

static uint64_t piece_untouched_bytes(uint8_t *piece, uint32_t slot_count) {
    if (slot_count > PIECE_SLOTS) slot_count = PIECE_SLOTS;
    uint64_t bytes = (uint64_t)slot_count * STACK_MEMORY_BYTES;
    return piece ? sys_untouched_bytes(piece, bytes / sys_page_bytes() * sys_page_bytes()) : 0;
}

uint64_t slots_untouched_bytes(void) {
    uint32_t count = __atomic_load_n(&slots->used_count, __ATOMIC_RELAXED);
    uint64_t untouched = 0;
    if (count > SLOT_LIMIT) count = SLOT_LIMIT;
    for (uint32_t slot = 0; slot < count; slot += PIECE_SLOTS) {
        uint8_t *const *memory = slots->groups[slot / GROUP_SLOTS].memory;
        untouched += piece_untouched_bytes(memory[slot % GROUP_SLOTS / PIECE_SLOTS], count - slot);
    }
    return untouched;
}

// False without memory.
static bool slot_begin(uint32_t slot, int32_t tid) {
    if (!slot_opens(slot)) return false;
    if (slot % OPEN_SLOTS == OPEN_SLOTS / 2) open_next(slot);
    struct thread *thread = &threads[slot];
    *thread = (struct thread){.line = gate_of(slot), .slot = slot, .tid = tid};
    thread_forget(thread);
    uint8_t *memory = memory_of(slot);
    return memory && stack_memory_begin(thread, memory);
}

static struct thread *slot_take_new(int32_t tid) {
    uint32_t slot = __atomic_fetch_add(&slots->used_count, 1, __ATOMIC_RELAXED);
    if (slot >= __atomic_load_n(&slot_limit, __ATOMIC_ACQUIRE)) return NULL;
    struct thread *thread = &threads[slot];
    if (!slot_begin(slot, tid)) {
        uint32_t mine = slot + 1;  // the number can serve again
        __atomic_compare_exchange_n(&slots->used_count, &mine, slot, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
        return NULL;
    }
    *tid_of(slot) = tid;
    sys_count_own(sizeof *thread + STACK_MEMORY_BYTES);
    return thread;
}

// The entry of the slot's last thread serves its successor too when there are many.
static bool record_continues(struct thread *thread, const char *name) {
    uint64_t used = __atomic_load_n(thread_records.used_bytes, __ATOMIC_RELAXED);
    struct cairn_thread *record = thread->record;
    if (!record || used < RECORD_FOLD_COUNT * sizeof *record) return false;
    bool is_scarce = used + sizeof *record > thread_records.capacity_bytes / RECORD_FOLD_ALL_SHARE;
    if (!is_scarce && strncmp(record->name, name, sizeof record->name) != 0) return false;
    record->folded_count++;
    record->is_ended = 0;
    record->end_ns = 0;
    return true;
}

// A thread that gave its slot up, was not done yet, and has got it back.
static bool record_resumes(const struct thread *thread) {
    struct cairn_thread *record = thread->record;
    bool is_back = last_slot && record && record->tid == (uint32_t)thread->tid;
    last_slot = thread->slot + 1;
    if (!is_back || record->folded_count) return false;
    record->is_ended = 0;
    record->end_ns = 0;
    return true;
}

static bool record_begin(struct thread *thread) {
    if (record_resumes(thread)) return true;
    struct cairn_thread fresh = {.tid = (uint32_t)thread->tid, .slot = thread->slot};
    read_name(&fresh);
    if (record_continues(thread, fresh.name)) return true;
    struct cairn_thread *record = region_take(&thread_records, sizeof *record);
    if (!record) return thread->record != NULL;
    fresh.start_ns = sink_now_coarse_ns();
    *record = fresh;
    thread->record = record;
    return true;
}

// True for the first thread that registered: slot 0 may have failed for lack of memory.
static bool is_only_thread(struct thread *thread) {
    struct thread *first = NULL;
    return __atomic_compare_exchange_n(&first_thread, &first, thread, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           first == thread;
}

struct thread *slots_register(uintptr_t here) {
    uint32_t stamp = __atomic_load_n(&gate_page.stamp, __ATOMIC_ACQUIRE);
    if (stamp == GATE_NO_STAMP) return NULL;  // a handler forked on the way here
    bool is_first = slots_count() == 1 && slots->used_count == 0;
    int32_t tid = tid_of_caller(is_first);
    gate_self = gate_nobody();  // in a forked child it was a slot that is now made anew
    struct thread *thread = is_first ? NULL : slot_take_over(tid);
    if (!thread) thread = slot_take_new(tid);
    if (!thread) return NULL;
    thread_keep_last(thread, NULL);
    thread->watch.block = NULL;
    stack_cache_limit(&thread->recall, slots_count());
    walk_trace_reset(&thread->trace);
    if (!record_begin(thread)) return NULL;
    thread->log.end = thread->log.next;  // another chunk than the last thread's (event_log.h)
    // Not before: of a forked child's first thread this is the gate already, and busy without a
    // record it would pass for an event that a handler jumped out of.
    gate_hold(thread, gate_holder_of(here));
    gate_stamp(thread, stamp);
    thread->line->left_bytes = 0;
    thread->line->is_registered = true;
    if (!is_only_thread(thread) && !sink.header->totals.is_threaded) totals_share(first_thread);
    totals_enter(thread);
    gate_self = thread;
    if (has_exit_key) key_set(exit_key, thread);
    return thread;
}

// Gives back what lies beyond the first `keep` of `count` entries.
static void array_shrink(void *start, size_t entry_bytes, uint32_t keep, uint32_t count) {
    uintptr_t end = (uintptr_t)start + entry_bytes * count;
    uintptr_t from = sys_page_up((uintptr_t)start + entry_bytes * keep);
    if (from < end) sys_release((void *)from, end - from);
}

void slots_shrink(uint64_t headroom_bytes, uint32_t more_threads) {
    uint32_t keep = slots_count() + more_threads, limit = slot_limit;
    stack_memory_narrow(gate_self);
    region_shrink(&thread_records, headroom_bytes);
    if (keep >= limit) return;
    __atomic_store_n(&slot_limit, keep, __ATOMIC_RELEASE);
    array_shrink(threads, sizeof *threads, keep, limit);
    array_shrink(slots->groups, sizeof *slots->groups, groups_of(keep), groups_of(limit));
}

static void thread_release(struct thread *thread) {
    stack_memory_release(thread);
    stack_cache_release(&thread->recall);
}

// Memory that slots_shrink has given back is not touched: it may be the program's.
void slots_release(void) {
    const uint32_t limit = slot_limit;
    struct thread *all = threads;
    gate_self = gate_nobody();
    slots_close();
    threads = NULL;
    if (slots) {
        size_t bytes = offsetof(struct slots, groups) + groups_of(limit) * sizeof *slots->groups;
        sys_release(slots, sys_page_up(bytes));
    }
    slots = NULL;
    if (!all) return;
    for (uint32_t i = 0; i < limit && all[i].line; i++) thread_release(&all[i]);
    sys_release((uint8_t *)all - COLOUR_THREADS, sys_page_up(COLOUR_THREADS + limit * sizeof *all));
}
