// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of an event log, and as the words of a chunk that a process wrote. Of the
// file, whatever is read is followed; of the chunk, what is written of it must be read again as it
// was.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/events/chunk.h"
#include "tool/events/columns.h"
#include "tool/events/event_log.h"
#include "tool/events/live_blocks.h"

static void require(bool is_true) {
    if (!is_true) abort();
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
    uint8_t *parts[CAIRN_COLUMNS];
    for (int i = 0; i < CAIRN_COLUMNS; i++) {
        parts[i] = columns.columns[i].bytes;
        frame.columns[i].plain_bytes = (uint32_t)columns.columns[i].count;
    }
    columns_read(&reader, &frame, parts);
    chunk = chunk_read(words, count, 3);
    while (chunk_next(&chunk, &event)) {
        if (event_kind(&event) == CAIRN_EVENT_TIME) continue;
        require(columns_next(&reader, &again) == 1);
        require(again.flags == event.flags && again.address == event.address &&
                again.size == event.size && again.cell == event.cell && again.ms == event.ms);
    }
    require(columns_next(&reader, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    read_file(bytes, size);
    read_chunk(bytes, size);
    return 0;
}
