// SPDX-License-Identifier: Apache-2.0
#include "tool/live/image.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/attach/examine.h"
#include "tool/attach/extents.h"
#include "tool/attach/threads.h"
#include "tool/base/search.h"
#include "tool/base/units.h"
#include "tool/core/notes.h"

enum { PAGE = PEEK_PAGE_BYTES, MEMORY_PERCENT = 75, VECTOR_BYTES_MAX = 4096 };
static const uint64_t room_spare_bytes = 1 << 20, memory_spare_bytes = 1ull << 30,
                      run_bytes_max = 4ull << 20, dense_bytes = 2ull << 20,
                      trial_bytes = 32ull << 20;

// Where in the memory for copies a piece has its place, which it keeps from the rehearsal on.
struct room {
    uint64_t start, offset, bytes;
};

struct taking {
    struct peek peek;
    const struct live_request *request;
    struct live_image *image;
    struct plan plan;
    ARRAY(struct room) rooms;
    size_t known_rooms;   // of the rehearsal: ascending by start
    uint64_t used_bytes;  // of the memory
    ARRAY(struct peek_run) runs;
};

static uint64_t available_bytes(void) {
    char line[256];
    uint64_t kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) break;
    if (file) fclose(file);
    return kib * 1024;
}

// The room that a piece had in the rehearsal, or NULL.
static const struct room *known_room(const struct taking *taking, uint64_t start) {
    size_t low;
    search_first(low, taking->known_rooms, taking->rooms.items[low].start >= start);
    bool is_found = low < taking->known_rooms && taking->rooms.items[low].start == start;
    return is_found ? &taking->rooms.items[low] : NULL;
}

// Where a piece goes: the place that it had before, if it still fits. False: no room is left.
static bool find_room(struct taking *taking, const struct piece *piece, uint64_t *offset) {
    uint64_t bytes = piece->end - piece->start;
    const struct room *known = known_room(taking, piece->start);
    if (known && known->bytes >= bytes) {
        *offset = known->offset;
        return true;
    }
    bytes += bytes / 4 / PAGE * PAGE + room_spare_bytes;
    struct room *room = array_push(&taking->rooms);
    if (!room || bytes > taking->image->memory_bytes - taking->used_bytes) return false;
    *room = (struct room){piece->start, taking->used_bytes, bytes};
    taking->used_bytes += bytes;
    *offset = room->offset;
    return true;
}

// Memory for copies twice over, since the process goes on and its heap may grow.
static bool reserve(struct taking *taking, struct error *error) {
    struct live_image *image = taking->image;
    image->memory_bytes = memory_spare_bytes;
    for (size_t i = 0; i < taking->plan.pieces.count; i++) {
        const struct piece *piece = &taking->plan.pieces.items[i];
        if (piece->kind != PIECE_PAGES) image->memory_bytes += 2 * (piece->end - piece->start);
        if (piece->kind != PIECE_PAGES) image->memory_bytes += 2 * room_spare_bytes;
    }
    image->memory = source_room(image->memory_bytes, error);
    return image->memory != NULL;
}

// --- which pages go where

static void add_run(struct taking *taking, uint64_t address, uint64_t offset, uint64_t bytes,
                    bool *is_ok) {
    for (uint64_t done = 0; done < bytes && *is_ok;) {
        uint64_t part = bytes - done < run_bytes_max ? bytes - done : run_bytes_max;
        struct peek_run *run = array_push(&taking->runs);
        *is_ok = run != NULL;
        if (run)
            *run = (struct peek_run){address + done, taking->image->memory + offset + done, part};
        done += part;
    }
}

// The pages of a piece that are there as it wants them.
static bool add_runs(struct taking *taking, const struct piece *piece, const uint8_t *flags,
                     uint64_t offset) {
    const uint8_t wanted =
        piece->kind == PIECE_WHOLE ? PEEK_OWN : (uint8_t)(PEEK_OWN | PEEK_RESIDENT);
    size_t count = (piece->end - piece->start) / PAGE;
    bool is_ok = true;
    for (size_t i = 0, from; i < count && is_ok; i++) {
        if (!(flags[i] & wanted)) continue;
        for (from = i; i < count && flags[i] & wanted;) i++;
        add_run(taking, piece->start + from * PAGE, offset + from * PAGE, (i - from) * PAGE,
                &is_ok);
    }
    return is_ok;
}

static bool add_heads(struct taking *taking, const struct piece *piece, uint64_t offset,
                      size_t *head) {
    bool is_ok = true;
    const size_t count = taking->plan.head_pages.count;
    const uint64_t *pages = taking->plan.head_pages.items;
    while (*head < count && pages[*head] < piece->start) ++*head;
    for (; *head < count && pages[*head] < piece->end && is_ok; ++*head)
        add_run(taking, pages[*head], offset + pages[*head] - piece->start, PAGE, &is_ok);
    return is_ok;
}

static bool add_segment(struct taking *taking, const struct piece *piece, uint64_t offset,
                        uint8_t *flags) {
    struct live_image *image = taking->image;
    uint64_t bytes = piece->end - piece->start;
    struct live_segment *segment = array_push(&image->segments);
    if (!segment) {
        free(flags);
        return false;
    }
    *segment = (struct live_segment){piece->start, piece->end, flags};
    struct core_segment *of_core = array_push(&image->core.segments);
    if (of_core)
        *of_core = (struct core_segment){.start = piece->start,
                                         .end = piece->end,
                                         .offset = offset,
                                         .bytes = piece->kind == PIECE_PAGES ? 0 : bytes,
                                         .is_writable = piece->kind != PIECE_CONSTANT,
                                         .is_code = piece->is_code};
    return of_core != NULL;
}

static void drop_segments(struct live_image *image) {
    for (size_t i = 0; i < image->segments.count; i++) free(image->segments.items[i].are_resident);
    image->segments.count = image->core.segments.count = 0;
}

static bool look_at_piece(struct taking *taking, const struct piece *piece, size_t *head) {
    size_t count = (piece->end - piece->start) / PAGE;
    uint64_t offset = 0;
    uint8_t *flags = malloc(count + 1);
    if (!flags || (piece->kind != PIECE_PAGES && !find_room(taking, piece, &offset))) {
        free(flags);
        return false;
    }
    peek_pages(&taking->peek, piece->start, count, flags);
    if (!add_segment(taking, piece, offset, flags)) return false;
    bool is_ok = true;
    if (piece->kind == PIECE_HEADS) return add_heads(taking, piece, offset, head);
    if (piece->kind == PIECE_WHOLE || piece->kind == PIECE_PRESENT)
        return add_runs(taking, piece, flags, offset);
    if (piece->kind == PIECE_CONSTANT)
        add_run(taking, piece->start, offset, piece->end - piece->start, &is_ok);
    return is_ok;
}

// Plan, segments and runs as they are now.
static bool look(struct taking *taking, struct error *error) {
    size_t head = 0;
    drop_segments(taking->image);
    taking->runs.count = 0;
    const struct live_request *request = taking->request;
    if (!plan_make(&taking->peek, request->header, request->scope, &taking->plan, error))
        return false;
    if (!taking->image->memory && !reserve(taking, error)) return false;
    for (size_t i = 0; i < taking->plan.pieces.count; i++)
        if (!look_at_piece(taking, &taking->plan.pieces.items[i], &head))
            return error_set(error, "out of memory");
    return true;
}

static uint64_t wanted_bytes(const struct taking *taking) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < taking->runs.count; i++) bytes += taking->runs.items[i].size;
    return bytes;
}

// --- the two passes

// Pages for the copies, so that none has to be made while the process stands.
static void make_ready(const struct peek_run *runs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct peek_run *run = &runs[i];
        uint8_t *start = run->to - (uintptr_t)run->to % PAGE;
        if (run->size >= dense_bytes) madvise(start, run->size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
        madvise(start, run->size, MADV_POPULATE_WRITE);
#endif
    }
}

// How long copying so much takes, by a part of it, copied while the process runs.
static uint64_t estimate_ns(const struct taking *taking, uint64_t bytes) {
    uint64_t some = 0;
    size_t count = 0;
    while (count < taking->runs.count && some < trial_bytes)
        some += taking->runs.items[count++].size;
    make_ready(taking->runs.items, count);
    uint64_t start_ns = threads_now_ns();
    uint64_t copied = peek_copy(&taking->peek, taking->runs.items, count);
    double per_byte = copied ? (double)(threads_now_ns() - start_ns) / (double)copied : 0;
    return (uint64_t)(per_byte * (double)bytes);
}

static bool rehearse(struct taking *taking, struct error *error) {
    const struct live_request *request = taking->request;
    if (!look(taking, error)) return false;
    uint64_t wanted = wanted_bytes(taking), there = available_bytes();
    if (wanted > request->bytes_max)
        return error_set(error,
                         "%s of its memory are to be copied, for which it would be stopped for "
                         "some %s: %s does that",
                         units_size((int64_t)wanted).text,
                         units_duration(estimate_ns(taking, wanted)).text, request->way_around);
    if (wanted > there / 100 * MEMORY_PERCENT)
        return error_set(error, "its memory of %s would not fit beside it: %s of memory are left",
                         units_size((int64_t)wanted).text, units_size((int64_t)there).text);
    make_ready(taking->runs.items, taking->runs.count);
    taking->known_rooms = taking->rooms.count;
    return true;
}

static bool note_threads(struct live_image *image, const struct threads *threads,
                         struct error *error) {
    bool is_ok = true;
    image->thread_count = threads->stopped.count;
    for (size_t i = 0; i < threads->stopped.count && is_ok; i++) {
        const struct stopped_thread *from = &threads->stopped.items[i];
        struct core_thread *thread = array_push(&image->core.threads);
        is_ok = thread || error_set(error, "out of memory");
        if (thread)
            *thread = (struct core_thread){.tid = (uint32_t)from->tid,
                                           .register_count = REGISTERS_KERNEL_COUNT,
                                           .stack = registers_stack(&from->registers),
                                           .pointer = registers_thread_pointer(&from->registers)};
        if (thread) memcpy(thread->registers, &from->registers, sizeof from->registers);
    }
    return is_ok;
}

static bool take(struct taking *taking, struct error *error) {
    struct threads threads = {0};
    struct live_image *image = taking->image;
    bool is_ok = threads_stop(&threads, taking->peek.pid, error);
    if (is_ok) {
        is_ok = note_threads(image, &threads, error) && look(taking, error);
        if (is_ok)
            image->copied_bytes = peek_copy(&taking->peek, taking->runs.items, taking->runs.count);
        threads_go(&threads, 0);
        image->pause_ns = threads_now_ns() - threads.since_ns;
    }
    array_free(&threads.stopped);
    return is_ok;
}

// The words that the kernel left for the program.
static void read_vector(struct live_image *image, pid_t pid) {
    char path[64];
    uint8_t words[VECTOR_BYTES_MAX];
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, words, sizeof words) : -1;
    if (file >= 0) close(file);
    if (got > 0) core_read_vector(&image->core, words, (size_t)got);
}

static void settle(struct live_image *image, pid_t pid) {
    image->core.source =
        (struct source){.descriptor = -1, .bytes = image->memory, .size = image->memory_bytes};
    image->core.map = image->memory;
    image->core.pid = (uint32_t)pid;
    image->core.machine = REGISTERS_MACHINE;
    for (size_t i = 0; i < image->segments.count; i++) {
        struct live_segment *segment = &image->segments.items[i];
        size_t count = (segment->end - segment->start) / PAGE;
        for (size_t k = 0; k < count; k++) segment->are_resident[k] &= PEEK_RESIDENT;
    }
}

bool live_image_take(const struct live_request *request, struct live_image *image,
                     struct error *error) {
    struct taking taking = {.request = request, .image = image};
    pid_t pid = request->pid;
    *image = (struct live_image){.core.source.descriptor = -1};
    if (!examine_to_read(pid, error)) return false;
    if (!peek_open(&taking.peek, pid)) return error_set(error, "its pages cannot be looked at");
    read_vector(image, pid);
    bool is_ok =
        (request->scope == PLAN_HEAP || extents_look_hidden(pid, &taking.plan.hidden, error)) &&
        rehearse(&taking, error) && take(&taking, error) &&
        extents_look_files(pid, &image->core, error);
    peek_close(&taking.peek);
    plan_free(&taking.plan);
    array_free(&taking.rooms);
    array_free(&taking.runs);
    if (is_ok)
        settle(image, pid);
    else
        live_image_free(image);
    return is_ok;
}

void live_image_free(struct live_image *image) {
    drop_segments(image);
    array_free(&image->segments);
    image->core.map = NULL;
    core_close(&image->core);
    if (image->memory) munmap(image->memory, image->memory_bytes);
    image->memory = NULL;
}
