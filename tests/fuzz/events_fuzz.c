// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of an event log, and as the words of a chunk that a process wrote. Of the
// file, whatever is read is followed, and pools are looked for; of the chunk, what is written of it
// must be read again as it was.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/events/chunk.h"
#include "tool/events/columns.h"
#include "tool/events/event_log.h"
#include "tool/events/frame_writer.h"
#include "tool/events/live_blocks.h"
#include "tool/events/pool_find.h"

static void require(bool is_true) {
    if (!is_true) abort();
}

// Whatever a log says, candidates are of stacks that there are, and spare no more calls than it
// has.
static void find_pools(const char *path) {
    enum { CELLS = 256, STACKS = 100, FOLLOWED_MOST = 64 };
    static uint32_t stack_of_cell[CELLS];
    static uint64_t site_of_stack[STACKS];
    struct pool_candidates found;
    struct error error;
    uint64_t gone = 0;
    for (uint32_t i = 1; i < CELLS; i++) stack_of_cell[i] = i % (STACKS + 1);
    for (uint64_t i = 0; i < STACKS; i++) site_of_stack[i] = i / 3;
    const struct pool_search search = {.log = path,
                                       .stack_of_cell = stack_of_cell,
                                       .cell_count = CELLS,
                                       .stack_count = STACKS,
                                       .site_of_stack = site_of_stack,
                                       .followed_limit = FOLLOWED_MOST};
    if (!pool_candidates_find(&search, &found, &error)) return;
    for (size_t i = 0; i < found.count; i++) {
        const struct pool_candidate *candidate = &found.list[i];
        require(candidate->member_count > 0 && candidate->pool_count > 0);
        for (size_t j = 0; j < candidate->member_count; j++)
            require(found.members[candidate->first_member + j].stack < STACKS);
        gone += candidate->calls_gone;
    }
    require(gone == found.calls_gone && gone <= found.calls);
    require(found.followed_blocks <= FOLLOWED_MOST);
    pool_candidates_free(&found);
}

static void read_file(const uint8_t *bytes, size_t size) {
    char path[64];
    struct error error;
    struct event event;
    struct block_change change;
    struct live_blocks blocks = {.granule_shift = 5};
    int file = memfd_create("fuzz", 0);
    require(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct event_log *log = event_log_open(path, &error);
    uint64_t count = 0;
    int got = 0;
    while (log && (got = event_log_next(log, &event, &error)) > 0) {
        require(live_blocks_follow(&blocks, &event, &change));
        count++;
    }
    if (log && !got) require(count == event_log_facts(log)->event_count);
    live_blocks_free(&blocks);
    event_log_close(log);
    if (log) find_pools(path);
    close(file);
}

static void read_chunk(const uint8_t *bytes, size_t size) {
    static struct columns columns;
    static uint64_t words[1024];
    struct columns_reader reader;
    struct event event, again;
    size_t count = size / sizeof *words;
    if (count > sizeof words / sizeof *words) count = sizeof words / sizeof *words;
    memcpy(words, bytes, count * sizeof *words);
    columns_begin(&columns, 3);
    struct chunk_reader chunk = chunk_read(words, count, 3);
    while (chunk_next(&chunk, &event)) require(columns_add(&columns, &event));
    struct cairn_event_frame frame = {.event_count = columns.event_count, .start_ms = 3};
    static uint8_t planes[CAIRN_COLUMNS * CAIRN_EVENT_PLANES * CAIRN_EVENT_COLUMN_MOST];
    size_t used = 0;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) {
            const struct plane *plane = &columns.planes[i][j];
            memcpy(planes + used, plane->bytes, plane->count);
            frame.planes[i][j].plain_bytes = (uint32_t)plane->count;
            used += plane->count;
        }
    columns_read(&reader, &frame, planes, false);
    chunk = chunk_read(words, count, 3);
    while (chunk_next(&chunk, &event)) {
        if (event_kind(&event) == CAIRN_EVENT_TIME) continue;
        require(columns_next(&reader, &again) == 1);
        require(again.flags == event.flags && again.address == event.address &&
                again.size == event.size && again.cell == event.cell && again.ms == event.ms &&
                again.turn == event.turn && again.taken == event.taken);
    }
    require(columns_next(&reader, &again) == 0);
}

// The words as a log that is whole, of two threads: what its events say may be anything.
static void read_words(const uint8_t *bytes, size_t size) {
    enum { SLOTS = 2, WORDS = 512 };
    static uint64_t words[SLOTS][WORDS];
    const struct cairn_event_file header = {.magic = CAIRN_EVENT_FILE_MAGIC,
                                            .version = CAIRN_EVENT_FILE_VERSION,
                                            .header_bytes = CAIRN_EVENT_FILE_BYTES,
                                            .granule_shift = 5,
                                            .recording = "x"};
    char path[64];
    struct error error;
    snprintf(path, sizeof path, "/dev/shm/cairn-fuzz.%d", (int)getpid());
    struct frame_writer *writer = frame_writer_open(path, &header, &error);
    require(writer != NULL);
    memset(words, 0, sizeof words);
    memcpy(words, bytes, size < sizeof words ? size : sizeof words);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const struct cairn_events_chunk chunk = {.slot = slot, .thread = slot + 1};
        frame_writer_add(writer, &chunk, words[slot], WORDS);
    }
    if (frame_writer_close(writer, NULL, &error)) find_pools(path);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    read_file(bytes, size);
    read_chunk(bytes, size);
    read_words(bytes, size);
    return 0;
}
