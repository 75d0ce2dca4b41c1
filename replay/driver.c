// SPDX-License-Identifier: Apache-2.0
// cairn-replay FD: performs the calls of an event log on the allocator that it was started with
// (cairn replay, LD_PRELOAD), in as many threads, and says what that took.
//
// Between the calls it allocates nothing: what it works on is a file that is mapped shared, whose
// pages count as the file's and not as anonymous memory. Threads are there before the first call,
// with what the C library allocates for each.
//
// Allocators that give memory back after a time ask the clock. The calls take much less time than
// they took in the program, so the clock here is the log's (clock_gettime), unless calls are made
// at the speed of the program.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/replay.h"

enum {
    STATUS_USAGE = 2,
    SPINS = 64,
    YIELDS = 16,         // and between two looks after that, before a thread sleeps
    WINDOW_MS = 20,      // how far a thread may be ahead of another one
    PAUSE_NS = 5000000,  // a wait that gets nowhere for so long is given up
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
    TEXT_BYTES = 4096,
    LONG_NS = 10000,
    LOOK_EVERY = 256,      // calls of a thread between two looks whether a sample is due
    DROP_EVERY = 1 << 18,  // and between two times that it gives up the pages of calls it has made
};

static struct cairn_replay *plan;
static struct cairn_replay_thread *threads;
static struct cairn_replay_block *blocks;
static struct cairn_replay_sample *samples;
static pthread_barrier_t barrier;
static uint64_t start_ns, sample_every, next_sample;
static uint64_t log_start_ns;  // (atomic) of the log's clock; 0: clocks are the system's
static uint32_t is_sampling;
static int rollup = -1;

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

// --- the log's clock

// (atomic) Of all threads the latest time in the log, since the first call.
static uint64_t log_ms;

static void advance_log(uint64_t ms) {
    uint64_t before = __atomic_load_n(&log_ms, __ATOMIC_RELAXED);
    while (before < ms && !__atomic_compare_exchange_n(&log_ms, &before, ms, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
}

static bool is_steady(clockid_t clock) {
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
           clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

// In the place of the C library's, for the allocator. Stands still between two calls of one time.
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now) {
    const uint64_t start = __atomic_load_n(&log_start_ns, __ATOMIC_RELAXED);
    if (!start || !is_steady(clock)) return (int)syscall(SYS_clock_gettime, clock, now);
    const uint64_t ns = start + __atomic_load_n(&log_ms, __ATOMIC_RELAXED) * NS_PER_MS;
    *now = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    return 0;
}

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return now_ns(CLOCK_MONOTONIC);
#endif
}

// --- memory

// "   123 kB" in bytes.
static int64_t kib(const char *at) {
    const int64_t kib_bytes = 1024;
    int64_t value = 0;
    while (*at == ' ') at++;
    for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
    return value * kib_bytes;
}

// Anonymous memory of this process that is resident, swap included.
static int64_t resident(void) {
    static char text[TEXT_BYTES];
    static const char *const keys[] = {"\nAnonymous:", "\nSwap:"};
    int64_t sum = 0;
    ssize_t length = pread(rollup, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = strstr(text, keys[i]);
        if (at) sum += kib(at + strlen(keys[i]));
    }
    return sum;
}

// Of a line of smaps: the mapping is a file's or the first stack, so no memory of an allocator.
static bool is_named(const char *line) {
    return strchr(line, '/') || strstr(line, "[stack");
}

// Anonymous memory in mappings of files and in the stack: the driver's own. All else is the
// allocator's, with what it took before the first call, as it has that in every program.
static int64_t named_bytes(void) {
    static const char key[] = "Anonymous:";
    static char text[TEXT_BYTES];
    char line[TEXT_BYTES];
    size_t length = 0;
    int64_t sum = 0;
    bool is_own = false;
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    for (ssize_t count; file >= 0 && (count = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < count; i++) {
            if (text[i] != '\n') {
                if (length < sizeof line - 1) line[length++] = text[i];
                continue;
            }
            line[length] = 0;
            length = 0;
            if (line[0] < 'A' || line[0] > 'Z')
                is_own = is_named(line);
            else if (is_own && !strncmp(line, key, sizeof key - 1))
                sum += kib(line + sizeof key - 1);
        }
    if (file >= 0) close(file);
    return sum;
}

static int64_t live(uint64_t *calls) {
    int64_t sum = 0;
    *calls = 0;
    for (uint32_t i = 0; i < plan->thread_count; i++) {
        sum += __atomic_load_n(&threads[i].live_bytes, __ATOMIC_RELAXED);
        *calls += __atomic_load_n(&threads[i].done, __ATOMIC_RELAXED);
    }
    return sum;
}

static void sample(uint64_t ms) {
    struct cairn_replay_sample taken = {.ms = ms};
    if (__atomic_exchange_n(&is_sampling, 1, __ATOMIC_ACQUIRE)) return;
    taken.live_bytes = live(&taken.calls);
    taken.resident_bytes = resident() - plan->own_bytes;
    if (plan->sample_count < CAIRN_REPLAY_SAMPLES) samples[plan->sample_count++] = taken;
    if (taken.resident_bytes > plan->peak_bytes) plan->peak_bytes = taken.resident_bytes;
    if (taken.live_bytes > plan->peak_live_bytes) plan->peak_live_bytes = taken.live_bytes;
    __atomic_store_n(&next_sample, taken.calls + sample_every, __ATOMIC_RELAXED);
    __atomic_store_n(&is_sampling, 0, __ATOMIC_RELEASE);
}

static void look(const struct cairn_replay_thread *thread) {
    uint64_t calls;
    live(&calls);
    if (calls >= __atomic_load_n(&next_sample, __ATOMIC_RELAXED)) sample(thread->now_ms);
}

// --- calls

static _Noreturn void fail(enum cairn_replay_state state) {
    plan->state = state;
    _exit(1);
}

// --- waiting. Threads that wait sleep, as there may be many more of them than processors.

// Until the word is no longer `value`, or somebody woke it; PAUSE_NS at most.
static void sleep_on(uint32_t *word, uint32_t value) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &pause, NULL, 0);
}

static void wake(uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

// Who sleeps says so before it looks again, and who passes the turn on looks after that: one of
// them sees the other.
static void wait_turn(struct cairn_replay_block *block, uint32_t turn) {
    for (unsigned spins = 0; __atomic_load_n(&block->turn, __ATOMIC_ACQUIRE) != turn; spins++) {
        if (spins < SPINS) continue;
        if (spins < SPINS + YIELDS) {
            sched_yield();
            continue;
        }
        __atomic_fetch_add(&block->sleepers, 1, __ATOMIC_SEQ_CST);
        uint32_t now = __atomic_load_n(&block->turn, __ATOMIC_SEQ_CST);
        if (now != turn) sleep_on(&block->turn, now);
        __atomic_fetch_sub(&block->sleepers, 1, __ATOMIC_RELAXED);
    }
}

static void pass_turn(struct cairn_replay_block *block, uint32_t turn) {
    __atomic_store_n(&block->turn, turn, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&block->sleepers, __ATOMIC_SEQ_CST)) wake(&block->turn);
}

// No thread is earlier in the log than `ms`; `number` is that of its changes.
static struct {
    uint64_t ms;      // (atomic)
    uint32_t number;  // (atomic)
} slowest;

static uint64_t find_slowest(void) {
    uint64_t found = UINT64_MAX;
    for (uint32_t i = 0; i < plan->thread_count; i++) {
        uint64_t ms = __atomic_load_n(&threads[i].now_ms, __ATOMIC_SEQ_CST);
        if (ms < found) found = ms;
    }
    return found;
}

// Looks again after each change, as a thread that went on meanwhile may have gone by the older one.
static void raise_slowest(void) {
    for (;;) {
        uint64_t found = find_slowest(), was = __atomic_load_n(&slowest.ms, __ATOMIC_SEQ_CST);
        if (found <= was) return;
        if (!__atomic_compare_exchange_n(&slowest.ms, &was, found, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        __atomic_fetch_add(&slowest.number, 1, __ATOMIC_SEQ_CST);
        wake(&slowest.number);
    }
}

static void move_to(struct cairn_replay_thread *own, uint64_t ms) {
    const uint64_t was = own->now_ms;
    __atomic_store_n(&own->now_ms, ms, __ATOMIC_SEQ_CST);
    if (was <= __atomic_load_n(&slowest.ms, __ATOMIC_SEQ_CST)) raise_slowest();
}

static bool is_far_ahead(uint64_t ms) {
    return __atomic_load_n(&slowest.ms, __ATOMIC_SEQ_CST) + WINDOW_MS < ms;
}

// Given up if all threads stand still: one that is behind may wait for a call of this one.
static void wait_for_others(uint64_t ms) {
    uint64_t calls, last_calls = UINT64_MAX;
    while (is_far_ahead(ms)) {
        uint32_t number = __atomic_load_n(&slowest.number, __ATOMIC_SEQ_CST);
        if (!is_far_ahead(ms)) return;
        sleep_on(&slowest.number, number);
        if (__atomic_load_n(&slowest.number, __ATOMIC_SEQ_CST) != number) continue;
        live(&calls);
        if (calls == last_calls) return;
        last_calls = calls;
    }
}

// Threads stay together in the time of the log, so that the heap has the form that it had.
static void wait_time(struct cairn_replay_thread *own, uint64_t ms) {
    move_to(own, ms);
    advance_log(ms);
    if (plan->is_timed) {
        uint64_t due = start_ns + ms * NS_PER_MS, now = now_ns(CLOCK_MONOTONIC);
        const struct timespec pause = {.tv_sec = (time_t)((due - now) / NS_PER_S),
                                       .tv_nsec = (long)((due - now) % NS_PER_S)};
        if (due > now) nanosleep(&pause, NULL);
    }
    wait_for_others(ms);
}

static void touch(uint64_t address, uint64_t from, uint64_t to) {
    volatile char *bytes = (volatile char *)(uintptr_t)address;
    if (!plan->has_touch || from >= to) return;
    for (uint64_t at = from; at < to; at += plan->page_bytes) bytes[at] = 1;
    bytes[to - 1] = 1;
}

// What is touched of the first bytes of a block. One of less than a page has that with others.
static uint64_t touched_of(const struct cairn_replay_call *op, uint64_t bytes) {
    if (!op->share || op->size < plan->page_bytes) return bytes;
    return (uint64_t)((double)bytes * (double)(op->share - 1u) / CAIRN_REPLAY_SHARES);
}

static uint32_t class_of(uint64_t size) {
    uint32_t number = 0;
    for (uint64_t most = 16; size > most && number < CAIRN_REPLAY_CLASSES - 1;
         most <<= CAIRN_REPLAY_CLASS_SHIFT)
        number++;
    return number;
}

static void *call(const struct cairn_replay_call *op, void *old) {
    void *block = NULL;
    switch (op->kind) {
    case CAIRN_REPLAY_MALLOC:
        return malloc(op->size);
    case CAIRN_REPLAY_CALLOC:
        return calloc(1, op->size);
    case CAIRN_REPLAY_REALLOC:
        return realloc(old, op->size);
    case CAIRN_REPLAY_ALIGNED:
        return posix_memalign(&block, (size_t)1 << op->alignment_shift, op->size) ? NULL : block;
    default:
        free(old);
        return NULL;
    }
}

// What threads count by themselves, added up at their end.
struct counts {
    struct cairn_replay_times given[CAIRN_REPLAY_CLASSES], freed[CAIRN_REPLAY_CLASSES];
    uint64_t switches;  // of the thread, when it was last looked
    uint64_t long_ticks;
};

// A call that took long may have waited for a processor, which is no time of the allocator.
static bool was_interrupted(struct counts *counts) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    uint64_t before = counts->switches;
    counts->switches = (uint64_t)(usage.ru_nivcsw + usage.ru_nvcsw);
    return counts->switches != before;
}

static void count(struct counts *counts, struct cairn_replay_times *times, uint64_t taken) {
    times->calls++;
    if (taken > counts->long_ticks && was_interrupted(counts)) return;
    times->timed++;
    times->ticks += taken;
}

static void perform(struct cairn_replay_thread *thread, const struct cairn_replay_call *op,
                    struct counts *counts) {
    struct cairn_replay_block *block = &blocks[op->block];
    wait_turn(block, op->turn);
    uint64_t old = block->address, old_size = block->size;
    uint64_t before = ticks();
    void *got = call(op, (void *)(uintptr_t)old);
    uint64_t taken = ticks() - before;
    bool is_free = op->kind == CAIRN_REPLAY_FREE;
    if (!got && !is_free && op->size) fail(CAIRN_REPLAY_NO_MEMORY);
    uint32_t number = class_of(is_free ? old_size : op->size);
    count(counts, is_free ? &counts->freed[number] : &counts->given[number], taken);
    if (!is_free) {
        uint64_t known = op->kind == CAIRN_REPLAY_REALLOC ? old_size : 0;
        touch((uintptr_t)got, touched_of(op, known), touched_of(op, op->size));
    }
    bool had_block = is_free || op->kind == CAIRN_REPLAY_REALLOC;
    int64_t more = (int64_t)(is_free ? 0 : op->size) - (int64_t)(had_block ? old_size : 0);
    __atomic_store_n(&thread->live_bytes, thread->live_bytes + more, __ATOMIC_RELAXED);
    block->address = (uintptr_t)got;
    block->size = is_free ? 0 : op->size;
    pass_turn(block, op->turn + 1);
}

static void add_times(struct cairn_replay_times *sum, const struct cairn_replay_times *own) {
    __atomic_fetch_add(&sum->calls, own->calls, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum->timed, own->timed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum->ticks, own->ticks, __ATOMIC_RELAXED);
}

static void add_up(const struct counts *counts) {
    for (uint32_t i = 0; i < CAIRN_REPLAY_CLASSES; i++) {
        add_times(&plan->given[i], &counts->given[i]);
        add_times(&plan->freed[i], &counts->freed[i]);
    }
}

// Pages of calls that were made need not stay here: they are the file's.
static void drop_calls(const struct cairn_replay_call *from, const struct cairn_replay_call *to) {
    const uintptr_t mask = ~((uintptr_t)plan->page_bytes - 1);
    uintptr_t start = (uintptr_t)from & mask, end = (uintptr_t)to & mask;
    if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
}

// The calls of a thread, from first to last.
static void run(struct cairn_replay_thread *thread) {
    const struct cairn_replay_call *calls = (const void *)((const char *)plan + thread->calls_at);
    struct counts counts = {.long_ticks = (uint64_t)(LONG_NS / plan->ns_per_tick)};
    was_interrupted(&counts);
    for (uint64_t i = 0; i < thread->call_count; i++) {
        if (i && i % DROP_EVERY == 0) drop_calls(&calls[i - DROP_EVERY], &calls[i]);
        if (calls[i].kind == CAIRN_REPLAY_TIME) {
            wait_time(thread, calls[i].size);
        } else if (calls[i].kind == CAIRN_REPLAY_PEAK) {
            sample(thread->now_ms);
        } else {
            perform(thread, &calls[i], &counts);
            __atomic_store_n(&thread->done, thread->done + 1, __ATOMIC_RELAXED);
            if (thread->done % LOOK_EVERY == 0) look(thread);
        }
    }
    move_to(thread, UINT64_MAX - WINDOW_MS);
    add_up(&counts);
}

static void *run_thread(void *thread) {
    pthread_barrier_wait(&barrier);  // all threads are there
    pthread_barrier_wait(&barrier);  // and what they took is known
    run(thread);
    pthread_barrier_wait(&barrier);
    pause();  // with what the C library has for it, until all is measured
    return NULL;
}

// --- all of it

static void measure_ticks(void) {
    uint64_t least = UINT64_MAX;
    const uint64_t from_ns = now_ns(CLOCK_MONOTONIC), from = ticks();
    for (int i = 0; i < 1000; i++) {
        uint64_t before = ticks(), taken = ticks() - before;
        if (taken < least) least = taken;
    }
    while (now_ns(CLOCK_MONOTONIC) - from_ns < 2 * NS_PER_MS) {
    }
    plan->ticks_of_nothing = least;
    plan->ns_per_tick = (double)(now_ns(CLOCK_MONOTONIC) - from_ns) / (double)(ticks() - from);
}

static void start_threads(void) {
    pthread_barrier_init(&barrier, NULL, plan->thread_count);
    for (uint32_t i = 1; i < plan->thread_count; i++) {
        pthread_t unused;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1 << 18);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (pthread_create(&unused, &attributes, run_thread, &threads[i]) != 0)
            fail(CAIRN_REPLAY_NO_THREAD);
    }
}

// Every 20th block stays, for 95 percent.
static void free_most(void) {
    const uint32_t whole = 100, kept = whole / (whole - plan->freed_percent);
    int64_t left = plan->end_live_bytes;
    uint32_t number = 0;
    for (uint32_t i = 0; i < plan->block_count; i++) {
        if (!blocks[i].address || number++ % kept == 0) continue;
        left -= (int64_t)blocks[i].size;
        free((void *)(uintptr_t)blocks[i].address);
    }
    plan->freed_live_bytes = left;
    plan->freed_bytes = resident() - plan->own_bytes;
}

// The first thread is the one that the program starts with.
static void perform_all(void) {
    struct rusage before, after;
    uint64_t unused;
    start_threads();
    pthread_barrier_wait(&barrier);
    free(malloc(1));
    plan->own_bytes = named_bytes();
    measure_ticks();
    getrusage(RUSAGE_SELF, &before);
    uint64_t processor_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    start_ns = now_ns(CLOCK_MONOTONIC);
    if (!plan->is_timed) __atomic_store_n(&log_start_ns, start_ns, __ATOMIC_RELAXED);
    plan->state = CAIRN_REPLAY_RUNNING;
    pthread_barrier_wait(&barrier);
    run(&threads[0]);
    pthread_barrier_wait(&barrier);
    plan->wall_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
    plan->processor_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - processor_ns;
    getrusage(RUSAGE_SELF, &after);
    plan->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
    plan->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
    plan->end_bytes = resident() - plan->own_bytes;
    plan->end_live_bytes = live(&unused);
    if (plan->freed_percent) free_most();
    plan->state = CAIRN_REPLAY_DONE;
}

int main(int argument_count, char **arguments) {
    struct stat status;
    int file = argument_count == 2 ? atoi(arguments[1]) : -1;
    if (file < 0 || fstat(file, &status) != 0) return STATUS_USAGE;
    plan = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (plan == MAP_FAILED || plan->magic != CAIRN_REPLAY_MAGIC ||
        plan->bytes != (uint64_t)status.st_size)
        return STATUS_USAGE;
    threads = (void *)((char *)plan + plan->threads_at);
    blocks = (void *)((char *)plan + plan->blocks_at);
    samples = (void *)((char *)plan + plan->samples_at);
    rollup = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    sample_every = plan->call_count / (CAIRN_REPLAY_SAMPLES - 2) + 1;
    next_sample = sample_every;
    perform_all();
    return 0;
}
