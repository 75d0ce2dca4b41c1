// SPDX-License-Identifier: Apache-2.0
// `log_writer EVENTS`: threads write an event log, as runtime/record/event_log.c does it, and
// another one takes their chunks, as the tool does; for ThreadSanitizer
// (tests/e2e/replay_order.py). Blocks are numbers that threads hand to each other. Prints how many
// events were taken and lost.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/record/event_log.c"

enum { THREADS = 4, PLACES = 512, CHUNKS = 24, CELL = 7, BLOCK_BYTES = 64 };

struct sink sink;
struct settings settings;
struct live live;
struct ages ages;
static struct cairn_header header;
static struct cairn_thread records[THREADS];
static uint8_t *section;
static uint64_t section_bytes;
static uintptr_t places[PLACES];  // (atomic) a block, or 0
static uint32_t are_over;         // (atomic)
static long rounds;

struct region sink_region(uint32_t kind) {
    if (kind == CAIRN_SECTION_THREADS) return (struct region){.base = (uint8_t *)records};
    return (struct region){.base = section, .capacity_bytes = section_bytes};
}
bool region_claim(struct region *region, uint64_t end_bytes) {
    return end_bytes <= region->capacity_bytes;
}
void region_shrink(struct region *region, uint64_t headroom_bytes) {
    (void)region, (void)headroom_bytes;
}
bool veil_lift(const void *end) {
    return end;
}
bool sys_claim(void *start, size_t bytes) {
    return start && bytes;
}
void sys_count_own(int64_t bytes) {
    (void)bytes;
}
uint64_t sink_now_coarse_ns(void) {
    return 0;
}
uint64_t sys_clock_ns(void) {
    return 0;
}
bool sys_is_confined(void) {
    return false;
}
bool sys_is_thread_alive(int pid, int tid) {
    return pid == tid;
}
void *linker_search(const char *name) {
    (void)name;
    return NULL;
}
void live_forget_turns(void) {}
struct birth *live_birth(uintptr_t address) {
    (void)address;
    return NULL;
}
long sys_call(long number, long a, long b, long c, long d, long e, long f) {
    return syscall(number, a, b, c, d, e, f);
}

static void *write_events(void *argument) {
    struct thread *thread = argument;
    uint32_t random = thread->slot + 1;
    for (long i = 0; i < rounds; i++) {
        random = random * 1664525u + 1013904223u;
        uintptr_t block =
            ((uintptr_t)thread->slot << 24 | (uintptr_t)i % 65536) * BLOCK_BYTES + 4096;
        event_log_alloc(thread, (void *)block, CELL, BLOCK_BYTES);
        uintptr_t old = __atomic_exchange_n(&places[random % PLACES], block, __ATOMIC_ACQ_REL);
        if (old) event_log_free(thread, (void *)old, CELL, BLOCK_BYTES);
    }
    return NULL;
}

// Events of a chunk, which is given back.
static uint64_t take(struct cairn_events *events, uint32_t index, bool is_full) {
    struct thread_log log = {.chunk = chunk_at(index)};
    uint64_t *end = (uint64_t *)((uint8_t *)log.chunk + CAIRN_EVENTS_CHUNK_BYTES);
    log.next = words_of(log.chunk);
    while (log.next < end && *log.next) log.next += words_of_event(*log.next);
    uint64_t count = count_events(&log);
    memset(words_of(log.chunk), 0, CAIRN_EVENTS_CHUNK_BYTES - sizeof *log.chunk);
    if (!is_full) return count;
    const uint64_t bit = 1ull << index % CAIRN_EVENTS_WORD_BITS;
    __atomic_fetch_and(&events->full[index / CAIRN_EVENTS_WORD_BITS], ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(&events->free[index / CAIRN_EVENTS_WORD_BITS], bit, __ATOMIC_RELEASE);
    return count;
}

static void *drain(void *taken) {
    struct cairn_events *events = log_state.events;
    while (!__atomic_load_n(&are_over, __ATOMIC_ACQUIRE)) {
        uint32_t count = __atomic_load_n(&events->chunk_count, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t bits =
                __atomic_load_n(&events->full[i / CAIRN_EVENTS_WORD_BITS], __ATOMIC_ACQUIRE);
            if (bits >> i % CAIRN_EVENTS_WORD_BITS & 1) *(uint64_t *)taken += take(events, i, true);
        }
        usleep(100);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static struct thread threads[THREADS];
    static const uint32_t clock_ms = 0;
    pthread_t ids[THREADS], drainer;
    uint64_t taken = 0;
    rounds = argc > 1 ? atol(argv[1]) / THREADS / 2 : 0;
    section_bytes = CAIRN_EVENTS_HEADER_BYTES + (uint64_t)CHUNKS * CAIRN_EVENTS_CHUNK_BYTES;
    section = aligned_alloc(4096, section_bytes);
    if (!section || rounds < 1) return 2;
    memset(section, 0, section_bytes);
    ages.clock_ms = &clock_ms;
    settings.is_waiting = true;
    sink.header = &header;
    header.control.tool_pid = (uint32_t)getpid();
    header.control.events_wanted = 3;
    if (!event_log_look()) return 1;
    event_log_switched();
    pthread_create(&drainer, NULL, drain, &taken);
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i].slot = i;
        threads[i].record = &records[i];
        pthread_create(&ids[i], NULL, write_events, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    __atomic_store_n(&are_over, 1, __ATOMIC_RELEASE);
    pthread_join(drainer, NULL);
    struct cairn_events *events = log_state.events;
    for (uint32_t i = 0; i < events->chunk_count; i++) {
        bool is_free = events->free[i / CAIRN_EVENTS_WORD_BITS] >> i % CAIRN_EVENTS_WORD_BITS & 1;
        if (!is_free) taken += take(events, i, false);
    }
    uint64_t left = 0;
    for (int i = 0; i < PLACES; i++) left += places[i] != 0;
    uint64_t wanted = 2 * (uint64_t)rounds * THREADS - left;
    printf("%llu of %llu events, %llu lost\n", (unsigned long long)taken,
           (unsigned long long)wanted, (unsigned long long)events->lost_events);
    return taken != wanted;
}
