// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/rss.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/model/figures.h"
#include "tool/model/shape.h"
#include "tool/proc/process.h"
#include "tool/watch/free_chunks.h"
#include "tool/watch/own_map.h"
#include "tool/watch/rss_parts.h"

#define SECOND_NS UINT64_C(1000000000)
#define PAUSE_FIRST_NS UINT64_C(4000000)
#define FREE_CHUNKS_MOST_NS UINT64_C(60000000)
#define END_LONGEST_NS UINT64_C(25000000)  // half of what the longest living process waits

// Pictures may take a hundredth of the time when memory changed, else a two hundredth. A twentieth
// at first, so that there are some of short programs, and where memory is higher than in any so far
// by a quarter, so that one is of about the peak. No more than that at other heights, which a heap
// that grows always has: it cannot get memory while one is taken.
enum {
    FIRST_SHARE = 20,
    OTHER_SHARE = 100,
    MAPPED_TIMES = 4,  // the time for free chunks, for heads of pages: some 0.4 us each
    PAUSE_SHARE = 200,
    OTHER_PERCENT = 5,
    HIGHER_PERCENT = 2,
    MUCH_HIGHER_PERCENT = 25
};
static const uint64_t first_ns = SECOND_NS / 4;
// The kernel adds up its own account in batches for each thread.
static const uint64_t peak_lag_bytes = 4 << 20;

static uint64_t kib_of(const char *text, const char *key) {
    unsigned long long kib = 0;
    const char *line = strstr(text, key);
    if (line) sscanf(line + strlen(key), " %llu kB", &kib);
    return kib * 1024;
}

struct rss_now rss_look(pid_t pid) {
    char text[4096];
    process_read(pid, "status", text, sizeof text);
    return (struct rss_now){.rss_bytes = kib_of(text, "\nVmRSS:"),
                            .swap_bytes = kib_of(text, "\nVmSwap:"),
                            .peak_bytes = kib_of(text, "\nVmHWM:")};
}

// By a write, not through the mapping: where no memory is left that is an error, not a signal.
// A library of an earlier cairn may have made shorter entries: their beginning is written.
static void write_entries(const struct memory *memory, uint32_t kind, const void *entries,
                          size_t from, size_t count, size_t entry_bytes) {
    struct cairn_section *section = memory_section(memory, kind, 0);
    size_t step = section ? section->entry_bytes : 0;
    bool is_same = step == entry_bytes;
    if (!step || step > entry_bytes) return;
    uint64_t size = (from + count) * step;
    if (!memory_section(memory, kind, size)) return;
    for (size_t i = 0; i < (is_same ? 1 : count); i++) {
        const uint8_t *bytes = (const uint8_t *)entries + (from + i) * entry_bytes;
        size_t length = is_same ? count * step : step;
        off_t at = (off_t)(section->offset + (from + i) * step);
        if (pwrite(memory->file, bytes, length, at) != (ssize_t)length) return;
    }
    __atomic_store_n(&section->used_bytes, size, __ATOMIC_RELEASE);
}

// Of two neighbours the higher one stays.
static void thin(struct rss *rss) {
    size_t kept = 0;
    struct cairn_resident *values = rss->values.items;
    for (size_t i = 0; i + 1 < rss->values.count; i += 2)
        values[kept++] = values[i + 1].rss_bytes > values[i].rss_bytes ? values[i + 1] : values[i];
    rss->values.count = kept;
    rss->step_ns = rss->step_ns ? rss->step_ns * 2 : SECOND_NS / 5;
}

static void note_value(struct rss *rss, const struct memory *memory,
                       const struct cairn_resident *value) {
    size_t count = rss->values.count, from = count;
    struct cairn_resident *last = count ? &rss->values.items[count - 1] : NULL;
    bool is_same = last && value->at_ns <= last->at_ns;
    bool is_near = is_same || (count > 1 && value->at_ns < last[-1].at_ns + rss->step_ns);
    if (last && is_near) {
        if (value->rss_bytes >= last->rss_bytes) *last = *value;
        from = count - 1;
    } else {
        struct cairn_resident *slot = array_push(&rss->values);
        if (!slot) return;
        *slot = *value;
    }
    if (rss->values.count == CAIRN_RESIDENT_LIMIT) {
        thin(rss);
        from = 0;
    }
    write_entries(memory, CAIRN_SECTION_RESIDENT, rss->values.items, from, rss->values.count - from,
                  sizeof *rss->values.items);
}

static bool is_picture_due(const struct rss *rss, const struct rss_now *now, uint64_t now_ns) {
    uint64_t peak = rss->pictures[CAIRN_PICTURE_AT_PEAK].rss_bytes;
    uint64_t last = rss->pictures[CAIRN_PICTURE_LAST].rss_bytes;
    bool is_higher = now->rss_bytes > peak + peak * HIGHER_PERCENT / 100;
    bool is_lower = now->rss_bytes < last - last * OTHER_PERCENT / 100;
    if (now->rss_bytes > peak + peak * MUCH_HIGHER_PERCENT / 100)
        return now_ns >= rss->next_higher_ns;
    return now_ns >= (is_higher || is_lower ? rss->next_other_ns : rss->next_picture_ns);
}

// The heap's figures at this moment, and what the recording helps to tell apart.
static void add_heap(pid_t pid, struct recording *recording, uint64_t most_ns,
                     struct rss_parts *parts) {
    struct cairn_picture *picture = &parts->picture;
    struct figures figures = figures_of(recording);
    picture->live_bytes = figures.exit_bytes;
    picture->live_blocks = figures.exit_blocks;
    bool is_glibc = recording->header.allocator == CAIRN_ALLOCATOR_GLIBC;
    if (is_glibc && !figures.is_sampled) {
        picture->slack_bytes = slack_of_live(recording);
        picture->knows |= CAIRN_PICTURE_KNOWS_SLACK;
    }
    if (rss_parts_find_mapped(pid, parts, recording, MAPPED_TIMES * most_ns, picture))
        picture->knows |= CAIRN_PICTURE_KNOWS_MAPPED;
}

// Counts what is free; once more if the process freed much meanwhile, which would be live and free.
static void count_free(pid_t pid, struct recording *recording, uint64_t most_ns,
                       struct rss_parts *parts) {
    enum { TRIES = 2 };
    const struct mapped_range *data = &parts->libc_data;
    struct cairn_picture *picture = &parts->picture;
    for (int i = 0; i < TRIES; i++) {
        if (!free_chunks_find(pid, data->start, data->end, most_ns, picture)) return;
        if (!rss_parts_settle_free(picture, figures_of(recording).exit_bytes)) return;
        add_heap(pid, recording, most_ns, parts);
    }
}

// Completes what the mappings say. False: the process went while it was looked at, or changed so
// much that a mapping was met twice.
static bool complete(pid_t pid, struct recording *recording, uint64_t most_ns,
                     struct rss_parts *parts) {
    struct cairn_picture *picture = &parts->picture;
    bool is_glibc = recording->header.allocator == CAIRN_ALLOCATOR_GLIBC;
    // other allocators map without reservation too
    uint64_t own_bytes = is_glibc ? recording->header.own_bytes +
                                        rss_parts_samples_bytes(pid, recording->header.live_samples)
                                  : own_map_bytes(pid, &recording->header);
    rss_parts_settle_own(parts, own_bytes);
    add_heap(pid, recording, most_ns, parts);
    if (is_glibc) count_free(pid, recording, most_ns, parts);
    struct rss_now after = rss_look(pid);
    return after.rss_bytes && picture->rss_bytes <= after.peak_bytes + peak_lag_bytes;
}

// Tells whether a picture is of a higher peak. If both are as high, as far as that can be told, the
// one with more live memory is: at the end a program often has freed all of it, and none of its
// pages. Then the one that counted all that is free; one that could not count it gives way.
static bool is_higher(const struct cairn_picture *picture, const struct cairn_picture *peak) {
    uint64_t near = peak->rss_bytes * HIGHER_PERCENT / 100;
    if (picture->rss_bytes > peak->rss_bytes + near) return true;
    if (picture->rss_bytes + near < peak->rss_bytes) return false;
    if (peak->is_cut && !peak->arena_count && picture->arena_count) return true;
    bool is_whole = peak->is_cut && !picture->is_cut && picture->live_bytes == peak->live_bytes;
    return picture->live_bytes > peak->live_bytes ? picture->rss_bytes > peak->rss_bytes : is_whole;
}

// Tells whether a picture of the end is of a heap that the program has just freed, which stays
// resident: where memory was nearly as high before, that picture says what it was for.
static bool is_emptied(const struct cairn_picture *end, const struct cairn_picture *peak) {
    enum { NEAR_PERCENT = 85, EMPTIED_SHARE = 2 };
    return end->live_bytes < peak->live_bytes / EMPTIED_SHARE &&
           peak->rss_bytes >= end->rss_bytes / 100 * NEAR_PERCENT;
}

// Processor time for the free chunks: a hundredth of the time so far, within bounds.
static uint64_t free_chunks_ns(uint64_t at_ns) {
    uint64_t share_ns = at_ns / OTHER_SHARE;
    if (share_ns < FREE_CHUNKS_NS) return FREE_CHUNKS_NS;
    return share_ns < FREE_CHUNKS_MOST_NS ? share_ns : FREE_CHUNKS_MOST_NS;
}

// Keeps what the process named with its recording; without memory that stays unsaid.
static void keep_names(const struct rss_parts *parts, struct recording *recording) {
    array_free(&recording->names);
    for (size_t i = 0; i < parts->names.count; i++) {
        const struct mapped_name *name = &parts->names.items[i];
        struct recording_name *slot = array_push(&recording->names);
        if (!slot) return;
        *slot = (struct recording_name){.bytes = name->rss_bytes};
        memcpy(slot->name, name->name, sizeof name->name);
    }
}

static bool picture_now(pid_t pid, struct recording *recording, struct cairn_picture *picture) {
    struct rss_parts parts;
    uint64_t start_ns = recording->header.start_clock_ns, now_ns = clock_now_ns();
    if (now_ns <= start_ns) return false;
    bool is_ok =
        rss_parts_of_process(pid, &parts) && complete(pid, recording, FREE_CHUNKS_LONG_NS, &parts);
    *picture = parts.picture;
    picture->at_ns = now_ns - start_ns;
    if (is_ok) keep_names(&parts, recording);
    rss_parts_free(&parts);
    return is_ok;
}

void rss_look_now(pid_t pid, struct recording *recording) {
    struct cairn_picture pictures[CAIRN_PICTURE_COUNT] = {{0}}, now;
    struct cairn_picture *peak = &pictures[CAIRN_PICTURE_AT_PEAK];
    if (!picture_now(pid, recording, &now)) return;
    recording_picture(recording, CAIRN_PICTURE_AT_PEAK, peak);
    pictures[CAIRN_PICTURE_LAST] = now;
    if (is_higher(&now, peak)) *peak = now;
    pictures_set(recording, pictures);
}

static void keep_picture(struct rss *rss, const struct memory *memory,
                         const struct cairn_picture *picture) {
    struct cairn_picture *peak = &rss->pictures[CAIRN_PICTURE_AT_PEAK];
    bool is_end = memory->header->state == CAIRN_STATE_ENDED;
    rss->pictures[CAIRN_PICTURE_LAST] = *picture;
    if (is_higher(picture, peak) && !(is_end && is_emptied(picture, peak))) *peak = *picture;
    write_entries(memory, CAIRN_SECTION_PICTURES, rss->pictures, 0, CAIRN_PICTURE_COUNT,
                  sizeof *rss->pictures);
}

// Returns what is live at this moment; 0: it cannot be read.
static int64_t live_now(const struct memory *memory) {
    struct recording recording;
    if (!recording_open_memory(memory->header, memory->bytes, &recording, NULL)) return 0;
    int64_t bytes = figures_of(&recording).exit_bytes;
    recording_close(&recording);
    return bytes;
}

// The process cannot map memory while its mappings are listed; what follows costs it only the
// processor that it may want, also on a machine where this waits for one.
static bool take_picture(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t at_ns,
                         uint64_t free_ns) {
    struct rss_parts parts;
    struct recording recording;
    int64_t live_before = live_now(memory);
    uint64_t began_ns = clock_now_ns();
    bool is_ok = rss_parts_of_process(pid, &parts);
    rss->listed_ns = clock_now_ns() - began_ns;
    uint64_t worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    is_ok = is_ok && recording_open_memory(memory->header, memory->bytes, &recording, NULL);
    if (is_ok) {
        parts.picture.at_ns = at_ns ? at_ns : 1;
        is_ok = complete(pid, &recording, free_ns, &parts) &&
                (recording_is_sampled(&recording) ||
                 rss_parts_is_moment(live_before, parts.picture.live_bytes));
        recording_close(&recording);
    }
    if (is_ok) keep_picture(rss, memory, &parts.picture);
    rss_parts_free(&parts);
    rss->cost_ns = rss->listed_ns + clock_ns(CLOCK_THREAD_CPUTIME_ID) - worked_ns;
    return is_ok;
}

static void plan_picture(struct rss *rss, uint64_t start_ns, uint64_t began_ns,
                         uint64_t most_pause_ns) {
    uint64_t other_share = began_ns - start_ns < first_ns ? FIRST_SHARE : OTHER_SHARE;
    uint64_t end_ns = clock_now_ns(), taken_ns = rss->cost_ns;
    rss->pause_ns = rss->pause_ns ? rss->pause_ns * 2 : PAUSE_FIRST_NS;
    if (rss->pause_ns > most_pause_ns) rss->pause_ns = most_pause_ns;
    uint64_t pause_ns = taken_ns * PAUSE_SHARE;
    if (pause_ns < rss->pause_ns) pause_ns = rss->pause_ns;
    rss->next_higher_ns = end_ns + taken_ns * FIRST_SHARE;
    rss->next_other_ns = end_ns + taken_ns * other_share;
    rss->next_picture_ns = end_ns + pause_ns;
}

// Since the process' start; of one that waits for its last look it is the end.
static uint64_t at_of(const struct cairn_header *header, uint64_t now_ns) {
    uint64_t at_ns = now_ns - header->start_clock_ns;
    bool is_after = header->state == CAIRN_STATE_ENDED && header->end_ns < at_ns;
    return is_after ? header->end_ns : at_ns;
}

void rss_note(struct rss *rss, pid_t pid, const struct memory *memory, const struct rss_now *now,
              uint64_t now_ns, uint64_t most_pause_ns) {
    uint64_t start_ns = memory->header->start_clock_ns;
    if (memory->header->state == CAIRN_STATE_NEW || !now->rss_bytes || now_ns < start_ns) return;
    struct cairn_resident value = {.at_ns = at_of(memory->header, now_ns),
                                   .rss_bytes = now->rss_bytes,
                                   .swap_bytes = now->swap_bytes};
    if (is_picture_due(rss, now, now_ns)) {
        uint64_t began_ns = clock_now_ns();
        if (take_picture(rss, pid, memory, value.at_ns, free_chunks_ns(value.at_ns))) {
            value.rss_bytes = rss->pictures[CAIRN_PICTURE_LAST].rss_bytes;
            value.pss_bytes = rss->pictures[CAIRN_PICTURE_LAST].pss_bytes;
        }
        plan_picture(rss, start_ns, began_ns, most_pause_ns);
    }
    note_value(rss, memory, &value);
}

// Takes a picture that is kept with its value.
static void look_once(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t now_ns,
                      uint64_t free_ns) {
    const struct cairn_picture *last = &rss->pictures[CAIRN_PICTURE_LAST];
    if (now_ns < memory->header->start_clock_ns) return;
    uint64_t at_ns = at_of(memory->header, now_ns);
    if (!take_picture(rss, pid, memory, at_ns, free_ns)) return;
    struct cairn_resident value = {.at_ns = at_ns,
                                   .rss_bytes = last->rss_bytes,
                                   .pss_bytes = last->pss_bytes,
                                   .swap_bytes = last->swap_bytes};
    note_value(rss, memory, &value);
}

void rss_end(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t now_ns) {
    bool has_time = rss->listed_ns <= END_LONGEST_NS;
    if (memory->header->state == CAIRN_STATE_ENDED && has_time)
        look_once(rss, pid, memory, now_ns, FREE_CHUNKS_NS);
}

void rss_look_long(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t now_ns) {
    look_once(rss, pid, memory, now_ns, SECOND_NS / 2);
}

void rss_free(struct rss *rss) {
    array_free(&rss->values);
}
