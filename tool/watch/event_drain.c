// SPDX-License-Identifier: Apache-2.0
// What the process wrote is not believed: chunks are read by pread and given back by pwrite, so
// that one that was never made costs no memory that may not be there.
#include "tool/watch/event_drain.h"

#include <errno.h>
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
#include "tool/events/frame_writer.h"

// Pauses between looks where nothing was found, doubled from the first to the last.
enum { PAUSE_FIRST_NS = 250000, PAUSE_LAST_NS = 2000000 };

struct drained {
    struct drained *next;
    struct watched *process;
    struct frame_writer *writer;  // NULL: nothing was written so far
    bool is_broken;               // its file could not be made
    char path[PATH_MAX];
    uint64_t words[CAIRN_EVENTS_CHUNK_BYTES / sizeof(uint64_t)];
};

static void drain_note(struct event_drain *drain, const char *path, struct error *error) {
    error_wrap(error, "%s", path);
    if (!drain->problem.text[0]) drain->problem = *error;
}

bool event_drain_open(struct event_drain *drain, const char *path, struct error *error) {
    struct stat status;
    *drain = (struct event_drain){0};
    if (path && lstat(path, &status) == 0)
        return error_set(error, "%s: there is a file already", path);
    if (path) snprintf(drain->path, sizeof drain->path, "%s", path);
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
    if (process->is_first && drain->path[0]) {
        snprintf(drained->path, sizeof drained->path, "%s", drain->path);
        return;
    }
    run_directory_path_of(drain->directory, process->file_name, recording, sizeof recording);
    path_beside(process->is_first ? drain->directory->path : recording, drained->path,
                sizeof drained->path);
}

static void copy_name(char *out, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(out, CAIRN_EVENT_FILE_NAME, "%s", slash ? slash + 1 : path);
}

static bool open_file(struct event_drain *drain, struct drained *drained,
                      const struct cairn_events_chunk *chunk) {
    const struct cairn_header *header = drained->process->memory.header;
    const uint32_t narrow_shift = 5, wide_shift = 3;
    struct cairn_event_file file = {
        .magic = CAIRN_EVENT_FILE_MAGIC,
        .version = CAIRN_EVENT_FILE_VERSION,
        .header_bytes = sizeof file,
        .pid = header->pid,
        .page_bytes = header->page_bytes,
        .machine = header->machine,
        .granule_shift = chunk->is_wide ? wide_shift : narrow_shift,
        .start_unix_ns = header->start_unix_ns,
        .start_clock_ns = header->start_clock_ns,
    };
    struct error error;
    if (drained->is_broken) return false;
    find_path(drain, drained);
    copy_name(file.recording, drain->directory->path);
    copy_name(file.recording_in_run, drained->process->file_name);
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
    off_t at = (off_t)(pool->chunks_at + (uint64_t)index * CAIRN_EVENTS_CHUNK_BYTES);
    return pread(drained->process->memory.file, drained->words, sizeof drained->words, at) ==
           (ssize_t)sizeof drained->words;
}

static bool save_chunk(struct event_drain *drain, struct drained *drained) {
    const struct cairn_events_chunk *chunk = (const struct cairn_events_chunk *)drained->words;
    const size_t head = sizeof *chunk / sizeof *drained->words;
    const size_t count = sizeof drained->words / sizeof *drained->words - head;
    if (!drained->words[head]) return true;
    if (!drained->writer && !open_file(drain, drained, chunk)) return false;
    return frame_writer_add(drained->writer, chunk, drained->words + head, count);
}

static void give_back(struct drained *drained, const struct pool *pool, uint32_t index) {
    off_t at = (off_t)(pool->chunks_at + (uint64_t)index * CAIRN_EVENTS_CHUNK_BYTES);
    memset(drained->words, 0, sizeof drained->words);
    ssize_t written =
        pwrite(drained->process->memory.file, drained->words, sizeof drained->words, at);
    if (written != (ssize_t)sizeof drained->words) return;  // it stays out of use
    const uint64_t bit = 1ull << index % CAIRN_EVENTS_WORD_BITS;
    uint32_t word = index / CAIRN_EVENTS_WORD_BITS;
    __atomic_fetch_and(&pool->events->full[word], ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(&pool->events->free[word], bit, __ATOMIC_RELEASE);
}

// The first full chunk. False: there is none.
static bool drain_one(struct event_drain *drain, struct drained *drained) {
    struct pool pool;
    if (!find_pool(drained->process, &pool)) return false;
    for (uint32_t i = 0; i * CAIRN_EVENTS_WORD_BITS < pool.chunk_count; i++) {
        uint64_t bits = __atomic_load_n(&pool.events->full[i], __ATOMIC_ACQUIRE);
        if (!bits) continue;
        uint32_t index = i * CAIRN_EVENTS_WORD_BITS + (uint32_t)__builtin_ctzll(bits);
        if (index >= pool.chunk_count) return false;
        if (read_chunk(drained, &pool, index)) save_chunk(drain, drained);
        give_back(drained, &pool, index);
        return true;
    }
    return false;
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

// --- the thread

// True: something was found.
static bool drain_turn_locked(struct event_drain *drain) {
    bool has_found = false;
    const uint64_t now_ns = clock_now_ns();
    for (struct drained *drained = drain->list; drained; drained = drained->next) {
        watched_publish_clock(drained->process, now_ns);
        has_found |= drain_one(drain, drained);
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
    pthread_mutex_lock(&drain->lock);
    while (!drain->is_ending) {
        if (drain_turn_locked(drain)) {
            pause_ns = PAUSE_FIRST_NS;
            pthread_mutex_unlock(&drain->lock);  // whoever waits has it now
            pthread_mutex_lock(&drain->lock);
        } else {
            wait_locked(drain, pause_ns);
            pause_ns = pause_ns * 2 < PAUSE_LAST_NS ? pause_ns * 2 : PAUSE_LAST_NS;
        }
    }
    pthread_mutex_unlock(&drain->lock);
    return NULL;
}

void event_drain_start(struct event_drain *drain, const struct run_directory *directory) {
    sigset_t all, older;
    drain->directory = directory;
    pthread_mutex_init(&drain->lock, NULL);
    pthread_cond_init(&drain->has_ended, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &older);
    drain->has_thread = pthread_create(&drain->thread, NULL, drain_run, drain) == 0;
    pthread_sigmask(SIG_SETMASK, &older, NULL);
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
    pthread_mutex_lock(&drain->lock);
    drained->next = drain->list;
    drain->list = drained;
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
    struct pool pool;
    struct error error;
    if (!drained) return;
    if (is_kept) drain_rest(drain, drained);
    bool has_pool = find_pool(process, &pool);
    if (drained->writer &&
        !frame_writer_close(drained->writer, has_pool ? pool.events : NULL, &error))
        drain_note(drain, drained->path, &error);
    if (drained->writer && !is_kept) unlink(drained->path);
    if (drained->writer && is_kept && process->is_first)
        snprintf(drain->first_log, sizeof drain->first_log, "%s", drained->path);
    free(drained);
}
