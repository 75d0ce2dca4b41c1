// SPDX-License-Identifier: Apache-2.0
// What the process wrote is not believed: chunks are read by pread and given back by pwrite, so
// that one that was never made costs no memory that may not be there.
#include "tool/watch/event_drain.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/event_file.h"
#include "format/events.h"
#include "tool/base/clock.h"
#include "tool/base/file_bytes.h"
#include "tool/events/frame_writer.h"
#include "tool/events/log_recording.h"
#include "tool/watch/control.h"
#include "tool/watch/live_at_start.h"
#include "tool/watch/touched.h"

// Pauses between looks where nothing was found, doubled from FIRST to LAST; to IDLE without a log.
enum { PAUSE_FIRST_NS = 250000, PAUSE_LAST_NS = 2000000, PAUSE_IDLE_NS = 20000000 };
enum { NS_PER_MS = 1000000 };
// How long a thread may take for the event that it was at: as its log ended, without a processor;
// as it began, with one, since meanwhile blocks go that the log is to begin with.
enum { FINISH_NS = 40000000, BEGIN_NS = 2000000 };
enum { LAST_LOOK_MS = 1000 };  // as a process ends it waits so long at most

struct drained {
    struct drained *next;
    struct watched *process;
    struct frame_writer *writer;  // NULL: nothing was written so far
    bool is_broken;               // its file could not be made
    uint32_t log;                 // number of the log that is taken (cairn_control); even: none
    uint32_t asked;               // number of the log that the process was asked for last
    uint32_t flags;               // CAIRN_EVENT_FILE_… of it
    int64_t live_blocks, live_bytes;
    struct cairn_events before;  // what was lost before it
    uint32_t shared_number;      // of the next chunk of blocks that no thread has
    struct touched_looks looks;  // at its pages
    uint64_t until_ns;           // it ends then; 0: nobody said when
    uint64_t begun_ns, over_ns;  // the process began or ended it, and threads have finished their
                                 // events then; 0: not
    char path[PATH_MAX];
    // Full chunks in the order in which they came, which are to be taken from `next_full` on.
    struct full_chunk {
        uint64_t order;
        uint32_t index;
    } full[CAIRN_EVENTS_CHUNKS];
    uint32_t full_count, next_full;
    uint64_t words[CAIRN_EVENTS_CHUNK_BYTES / sizeof(uint64_t)];
};

static void drain_note(struct event_drain *drain, const char *path, struct error *error) {
    error_wrap(error, "%s", path);
    if (!drain->problem.text[0]) drain->problem = *error;
}

bool event_drain_open(struct event_drain *drain, const struct event_drain_wish *wish,
                      struct error *error) {
    struct stat status;
    *drain = (struct event_drain){.wish = *wish};
    pthread_mutex_init(&drain->lock, NULL);
    pthread_cond_init(&drain->has_ended, NULL);
    if (wish->path && lstat(wish->path, &status) == 0)
        return error_set(error, "%s: there is a file already", wish->path);
    if (wish->path) snprintf(drain->path, sizeof drain->path, "%s", wish->path);
    return true;
}

// --- files

// NAME.cairn has its log in NAME.events, or NAME.1.events …, if that is taken.
static void path_beside(const char *recording, char *path, size_t size) {
    static const char suffix[] = ".cairn";
    struct stat status;
    size_t length = strlen(recording), suffix_length = sizeof suffix - 1;
    bool has_suffix = length > suffix_length && !strcmp(recording + length - suffix_length, suffix);
    int stem = (int)(has_suffix ? length - suffix_length : length);
    snprintf(path, size, "%.*s.events", stem, recording);
    for (int attempt = 1; lstat(path, &status) == 0 && attempt < INT_MAX; attempt++)
        snprintf(path, size, "%.*s.%d.events", stem, recording, attempt);
}

static void find_path(const struct event_drain *drain, struct drained *drained) {
    const struct watched *process = drained->process;
    char recording[PATH_MAX];
    struct stat status;
    if (process->is_first && drain->path[0] && lstat(drain->path, &status) != 0) {
        snprintf(drained->path, sizeof drained->path, "%s", drain->path);
        return;
    }
    run_directory_path_of(drain->directory, process->file_name, recording, sizeof recording);
    const char *beside = process->is_first ? drain->directory->path : recording;
    if (process->is_first && drain->path[0]) beside = drain->path;
    path_beside(beside, drained->path, sizeof drained->path);
}

static void copy_name(char *out, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(out, CAIRN_EVENT_FILE_NAME, "%s", slash ? slash + 1 : path);
}

static struct cairn_events *events_of(const struct watched *process) {
    const struct memory *memory = &process->memory;
    const struct cairn_section *section =
        memory_section(memory, CAIRN_SECTION_EVENTS, CAIRN_EVENTS_HEADER_BYTES);
    return section ? (struct cairn_events *)((uint8_t *)memory->header + section->offset) : NULL;
}

static bool open_file(struct event_drain *drain, struct drained *drained) {
    const struct cairn_header *header = drained->process->memory.header;
    const struct cairn_events *events = events_of(drained->process);
    const bool is_late = drained->flags & CAIRN_EVENT_FILE_LATE;
    const uint64_t turn_bits = is_late && events ? events->turn_bits : 0;
    struct cairn_event_file file = {
        .magic = CAIRN_EVENT_FILE_MAGIC,
        .version = CAIRN_EVENT_FILE_VERSION,
        .header_bytes = CAIRN_EVENT_FILE_BYTES,
        .pid = header->pid,
        .page_bytes = header->page_bytes,
        .machine = header->machine,
        .granule_shift = header->slot_bytes == sizeof(uint64_t) ? CAIRN_EVENTS_WIDE_SHIFT
                                                                : CAIRN_EVENTS_NARROW_SHIFT,
        .start_unix_ns = header->start_unix_ns,
        .start_clock_ns = header->start_clock_ns,
        .begin_ms = is_late && events ? events->begin_ms : 0,
        .flags = drained->flags,
        .turn_bits = turn_bits < CAIRN_EVENTS_WORD_BITS ? (uint32_t)turn_bits : 0,
        .live_blocks = drained->live_blocks,
        .live_bytes = drained->live_bytes,
        .ring_bytes = drain->wish.keep_bytes,
    };
    struct error error;
    if (drained->is_broken) return false;
    find_path(drain, drained);
    copy_name(file.recording, drain->directory->path);
    copy_name(file.recording_in_run, drained->process->file_name);
    if (drained->process->is_first)  // others have theirs in the run's directory
        log_recording_note(&file, drain->directory->path, drained->path);
    drained->writer = frame_writer_open(drained->path, &file, &error);
    if (drained->writer) return true;
    if (!drain->problem.text[0]) drain->problem = error;
    drained->is_broken = true;
    return false;
}

// --- chunks

struct pool {
    struct cairn_events *events;
    uint64_t chunks_at;  // in the memory's file
    uint32_t chunk_count;
};

// The pool as the process has it, as far as there is room for it; false: it has none.
static bool find_pool(const struct watched *process, struct pool *pool) {
    const struct memory *memory = &process->memory;
    const struct cairn_section *section =
        memory_section(memory, CAIRN_SECTION_EVENTS, CAIRN_EVENTS_HEADER_BYTES);
    uint64_t page_bytes = cairn_page_bytes(memory->header->page_bytes);
    uint64_t header_bytes = (CAIRN_EVENTS_HEADER_BYTES + page_bytes - 1) & ~(page_bytes - 1);
    if (!section) return false;
    uint64_t room = memory->bytes - section->offset;
    if (section->capacity_bytes < room) room = section->capacity_bytes;
    if (room <= header_bytes) return false;
    pool->events = (struct cairn_events *)((uint8_t *)memory->header + section->offset);
    pool->chunks_at = section->offset + header_bytes;
    uint64_t limit = (room - header_bytes) / CAIRN_EVENTS_CHUNK_BYTES;
    uint32_t count = __atomic_load_n(&pool->events->chunk_count, __ATOMIC_ACQUIRE);
    if (limit > CAIRN_EVENTS_CHUNKS) limit = CAIRN_EVENTS_CHUNKS;
    pool->chunk_count = count < limit ? count : (uint32_t)limit;
    return true;
}

static bool read_chunk(struct drained *drained, const struct pool *pool, uint32_t index) {
    uint64_t at = pool->chunks_at + (uint64_t)index * CAIRN_EVENTS_CHUNK_BYTES;
    return file_read_at(drained->process->memory.file, drained->words, sizeof drained->words, at);
}

static bool save_chunk(struct event_drain *drain, struct drained *drained) {
    const struct cairn_events_chunk *chunk = (const struct cairn_events_chunk *)drained->words;
    const size_t head = sizeof *chunk / sizeof *drained->words;
    const size_t count = sizeof drained->words / sizeof *drained->words - head;
    if (!drained->words[head] || chunk->log != drained->log) return true;
    if (!drained->writer && !open_file(drain, drained)) return false;
    if (chunk->slot == CAIRN_SLOT_SHARED) drained->shared_number = chunk->number + 1;
    return frame_writer_add(drained->writer, chunk, drained->words + head, count);
}

static void give_back(struct drained *drained, const struct pool *pool, uint32_t index) {
    static uint8_t zeros[CAIRN_EVENTS_CHUNK_BYTES];
    uint64_t at = pool->chunks_at + (uint64_t)index * CAIRN_EVENTS_CHUNK_BYTES;
    if (!file_write_at(drained->process->memory.file, zeros, sizeof zeros, at))
        return;  // it stays out of use
    const uint64_t bit = 1ull << index % CAIRN_EVENTS_WORD_BITS;
    uint32_t word = index / CAIRN_EVENTS_WORD_BITS;
    __atomic_fetch_and(&pool->events->full[word], ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(&pool->events->free[word], bit, __ATOMIC_RELEASE);
}

static int by_order(const void *left, const void *right) {
    const struct full_chunk *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static void find_full(struct drained *drained, const struct pool *pool) {
    struct cairn_events_chunk chunk;
    drained->full_count = drained->next_full = 0;
    for (uint32_t i = 0; i < pool->chunk_count; i++) {
        uint32_t word = i / CAIRN_EVENTS_WORD_BITS, bit = i % CAIRN_EVENTS_WORD_BITS;
        uint64_t bits = __atomic_load_n(&pool->events->full[word], __ATOMIC_ACQUIRE);
        uint64_t at = pool->chunks_at + (uint64_t)i * CAIRN_EVENTS_CHUNK_BYTES;
        if (!bits) i |= CAIRN_EVENTS_WORD_BITS - 1;
        if (!(bits >> bit & 1)) continue;
        bool is_read = file_read_at(drained->process->memory.file, &chunk, sizeof chunk, at);
        drained->full[drained->full_count++] =
            (struct full_chunk){is_read ? chunk.order : UINT64_MAX, i};
    }
    qsort(drained->full, drained->full_count, sizeof *drained->full, by_order);
}

// The full chunk that came first. False: there is none.
static bool drain_one(struct event_drain *drain, struct drained *drained) {
    struct pool pool;
    if (!find_pool(drained->process, &pool)) return false;
    if (drained->next_full == drained->full_count) find_full(drained, &pool);
    if (drained->next_full == drained->full_count) return false;
    uint32_t index = drained->full[drained->next_full++].index;
    if (read_chunk(drained, &pool, index)) save_chunk(drain, drained);
    give_back(drained, &pool, index);
    return true;
}

// The process writes no more: also chunks that are not full.
static void drain_rest(struct event_drain *drain, struct drained *drained) {
    struct pool pool;
    while (drain_one(drain, drained)) {
    }
    if (!find_pool(drained->process, &pool)) return;
    for (uint32_t i = 0; i < pool.chunk_count; i++) {
        uint64_t bits = pool.events->free[i / CAIRN_EVENTS_WORD_BITS];
        bool is_free = bits >> i % CAIRN_EVENTS_WORD_BITS & 1;
        if (!is_free && read_chunk(drained, &pool, i)) save_chunk(drain, drained);
    }
}

// --- logs that begin and end

// Earlier than all events.
static void write_there(struct event_drain *drain, struct drained *drained,
                        const struct live_at_start *live) {
    const struct cairn_events *events = events_of(drained->process);
    const uint64_t start_ms = events && events->begin_ms ? events->begin_ms - 1 : 0;
    if (!drained->writer && !open_file(drain, drained)) return;
    live_at_start_write(live, drained->writer, start_ms, &drained->shared_number);
}

// --- pages that are touched

// `is_last`: the process waits for it.
static void look_at_pages(struct event_drain *drain, struct drained *drained, uint64_t now_ns,
                          bool is_last) {
    const struct cairn_header *header = drained->process->memory.header;
    struct touched touched;
    int64_t live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED);
    if (!touched_is_due(&drained->looks, live_bytes, now_ns, is_last)) return;
    if (!drained->writer && !open_file(drain, drained)) return;
    bool is_read = touched_read(drained->process->pid, header, &touched);
    uint64_t end_ns = clock_now_ns();
    if (is_read) {  // what was freed meanwhile is gone for who reads this
        const uint64_t end_ms = (end_ns - header->start_clock_ns) / NS_PER_MS;
        touched_write(&touched, drained->writer, end_ms, &drained->shared_number);
        touched_free(&touched);
    }
    touched_was_read(&drained->looks, now_ns, end_ns);
}

// A log from the start has number 1; others begin with what is there.
static void begin_log(struct event_drain *drain, struct drained *drained, uint32_t number) {
    struct cairn_header *header = drained->process->memory.header;
    struct live_at_start live = {0};
    drained->log = number;
    drained->flags = number == 1 ? 0 : CAIRN_EVENT_FILE_LATE;
    drained->is_broken = false;
    drained->shared_number = 0;
    const uint64_t now_ns = clock_now_ns(), for_ms = cairn_events_for_ms(&header->control);
    bool has_end = for_ms && for_ms < (UINT64_MAX - now_ns) / NS_PER_MS;
    drained->until_ns = has_end ? now_ns + for_ms * NS_PER_MS : 0;
    if (drained->flags) {
        drained->live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED);
        drained->live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED);
        if (live_at_start_read(drained->process->pid, header, &live))
            drained->flags |= CAIRN_EVENT_FILE_LIVE;
        write_there(drain, drained, &live);
        live_at_start_free(&live);
    }
    const struct cairn_events *events = events_of(drained->process);
    if (number != 1 && events) drained->before = *events;
    if (!header->control.end_wait_ms) header->control.end_wait_ms = LAST_LOOK_MS;
    __atomic_store_n(&header->control.events_taken, number, __ATOMIC_RELEASE);
}

// What the process lost of this log.
static struct cairn_events lost_of(const struct drained *drained, const struct pool *pool) {
    struct cairn_events lost = *pool->events;
    lost.lost_chunks -= drained->before.lost_chunks;
    lost.lost_events -= drained->before.lost_events;
    lost.waited_ns -= drained->before.waited_ns;
    return lost;
}

static void end_log(struct event_drain *drain, struct drained *drained, bool is_kept) {
    struct pool pool;
    struct error error;
    struct cairn_events lost = {0};
    const struct watched *process = drained->process;
    if (is_kept) drain_rest(drain, drained);
    if (find_pool(process, &pool)) lost = lost_of(drained, &pool);
    if (drained->writer && !frame_writer_close(drained->writer, &lost, &error))
        drain_note(drain, drained->path, &error);
    if (drained->writer && !is_kept) unlink(drained->path);
    if (drained->writer && is_kept && process->is_first && !drain->log_count++)
        snprintf(drain->first_log, sizeof drain->first_log, "%s", drained->path);
    drained->writer = NULL;
    drained->until_ns = drained->over_ns = 0;
    __atomic_store_n(&process->memory.header->control.events_taken, ++drained->log,
                     __ATOMIC_RELEASE);
}

// Waits the first time until the process has done it, so that its blocks are looked at soon after
// that; but not for long: it may allocate nothing now.
static void ask(struct drained *drained) {
    struct cairn_header *header = drained->process->memory.header;
    const uint64_t until_ns = clock_now_ns() + 5 * NS_PER_MS;
    uint32_t wanted = __atomic_load_n(&header->control.events_wanted, __ATOMIC_RELAXED);
    cairn_ask_to_look(header);
    if (drained->asked == wanted) return;
    drained->asked = wanted;
    while (control_log_is_due(header) && clock_now_ns() < until_ns) sched_yield();
}

// Blocks are looked at once every thread writes the log: one that was at an event as it began would
// enter or take out a block that this passed already, and not say so. `is_last`: of a process that
// is over.
static void begin_next(struct event_drain *drain, struct drained *drained, uint32_t state,
                       bool is_last) {
    const uint32_t number = (state - 1) | 1;  // that may be over by now
    const uint64_t now_ns = clock_now_ns();
    const struct cairn_control *control = &drained->process->memory.header->control;
    bool is_refused = number <= __atomic_load_n(&control->events_taken, __ATOMIC_RELAXED);
    if (number < drained->log || is_refused) {
        drained->begun_ns = 0;
        return;
    }
    if (!drained->begun_ns) drained->begun_ns = number == 1 ? now_ns : now_ns + BEGIN_NS;
    if (now_ns < drained->begun_ns && !is_last) return;
    drained->begun_ns = 0;
    begin_log(drain, drained, number);
}

static void follow(struct event_drain *drain, struct drained *drained, bool is_last) {
    struct cairn_header *header = drained->process->memory.header;
    const bool is_written = drained->log & 1;
    if (is_written && drained->until_ns && clock_now_ns() >= drained->until_ns) {
        drained->until_ns = 0;
        control_end_log(header);
    }
    if (control_log_is_due(header)) ask(drained);
    uint32_t state = __atomic_load_n(&header->control.events_state, __ATOMIC_ACQUIRE);
    if (header->state == CAIRN_STATE_NEW || state == drained->log) return;
    if (is_written && !drained->over_ns) drained->over_ns = clock_now_ns() + FINISH_NS;
    if (is_written && clock_now_ns() < drained->over_ns) return;
    if (is_written) end_log(drain, drained, true);
    if (state != drained->log) begin_next(drain, drained, state, is_last);
}

// --- the thread

// True: something was found.
static bool drain_turn_locked(struct event_drain *drain, bool *is_idle) {
    bool has_found = false;
    const uint64_t now_ns = clock_now_ns();
    *is_idle = true;
    for (struct drained *drained = drain->list; drained; drained = drained->next) {
        follow(drain, drained, false);
        if (control_log_is_due(drained->process->memory.header) || drained->begun_ns)
            *is_idle = false;
        if (!(drained->log & 1)) continue;
        *is_idle = false;
        watched_publish_clock(drained->process, now_ns);
        has_found |= drain_one(drain, drained);
        look_at_pages(drain, drained, now_ns, false);
    }
    return has_found;
}

static void wait_locked(struct event_drain *drain, uint64_t pause_ns) {
    uint64_t due_ns = clock_ns(CLOCK_REALTIME) + pause_ns;
    const struct timespec due = {.tv_sec = (time_t)(due_ns / CLOCK_SECOND_NS),
                                 .tv_nsec = (long)(due_ns % CLOCK_SECOND_NS)};
    pthread_cond_timedwait(&drain->has_ended, &drain->lock, &due);
}

static void *drain_run(void *context) {
    struct event_drain *drain = context;
    uint64_t pause_ns = PAUSE_FIRST_NS;
    bool is_idle;
    pthread_mutex_lock(&drain->lock);
    while (!drain->is_ending) {
        if (drain_turn_locked(drain, &is_idle)) {
            pause_ns = PAUSE_FIRST_NS;
            pthread_mutex_unlock(&drain->lock);  // whoever waits has it now
            pthread_mutex_lock(&drain->lock);
        } else {
            const uint64_t last_ns = is_idle ? PAUSE_IDLE_NS : PAUSE_LAST_NS;
            wait_locked(drain, pause_ns);
            pause_ns = pause_ns * 2 < last_ns ? pause_ns * 2 : last_ns;
        }
    }
    pthread_mutex_unlock(&drain->lock);
    return NULL;
}

static void start_thread(struct event_drain *drain) {
    sigset_t all, older;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &older);
    drain->has_thread = pthread_create(&drain->thread, NULL, drain_run, drain) == 0;
    pthread_sigmask(SIG_SETMASK, &older, NULL);
}

void event_drain_start(struct event_drain *drain, const struct run_directory *directory) {
    drain->directory = directory;
    if (drain->wish.is_from_start) start_thread(drain);
}

void event_drain_look(struct event_drain *drain, const struct watched *list) {
    for (const struct watched *process = list; process && !drain->has_thread;
         process = process->next) {
        const struct cairn_control *control = &process->memory.header->control;
        if (__atomic_load_n(&control->events_wanted, __ATOMIC_RELAXED)) start_thread(drain);
    }
}

void event_drain_stop(struct event_drain *drain) {
    pthread_mutex_lock(&drain->lock);
    drain->is_ending = true;
    pthread_cond_signal(&drain->has_ended);
    pthread_mutex_unlock(&drain->lock);
    if (drain->has_thread) pthread_join(drain->thread, NULL);
    drain->has_thread = false;
}

void event_drain_add(struct event_drain *drain, struct watched *process) {
    struct drained *drained = calloc(1, sizeof *drained);
    if (!drained) return;  // its chunks fill up, and it says what it lost
    drained->process = process;
    process->memory.header->control.has_event_taker = 1;
    cairn_set_events_for_ms(&process->memory.header->control, drain->wish.for_ms);
    pthread_mutex_lock(&drain->lock);
    drained->next = drain->list;
    drain->list = drained;
    pthread_mutex_unlock(&drain->lock);
}

void event_drain_last_look(struct event_drain *drain, const struct watched *process) {
    pthread_mutex_lock(&drain->lock);
    for (struct drained *drained = drain->list; drained; drained = drained->next)
        if (drained->process == process && drained->log & 1)
            look_at_pages(drain, drained, clock_now_ns(), true);
    pthread_mutex_unlock(&drain->lock);
}

static struct drained *unlink_drained(struct event_drain *drain, const struct watched *process) {
    pthread_mutex_lock(&drain->lock);
    struct drained **link = &drain->list;
    while (*link && (*link)->process != process) link = &(*link)->next;
    struct drained *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&drain->lock);
    return found;
}

void event_drain_end(struct event_drain *drain, struct watched *process, bool is_kept) {
    struct drained *drained = unlink_drained(drain, process);
    if (!drained) return;
    follow(drain, drained, true);  // one that has begun a moment ago
    if (drained->log & 1) end_log(drain, drained, is_kept);
    free(drained);
}
