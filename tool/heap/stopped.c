// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/stopped.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "tool/base/clock.h"
#include "tool/base/search.h"
#include "tool/base/units.h"
#include "tool/heap/image.h"
#include "tool/proc/examine.h"
#include "tool/proc/maps.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/process.h"
#include "tool/proc/threads.h"

enum { MEMORY_PERCENT = 75 };
static const uint64_t room_spare_bytes = 1 << 20, memory_spare_bytes = 1ull << 30,
                      dense_bytes = 2ull << 20, trial_bytes = 32ull << 20;

// Where in the memory for copies a piece has its place, which it keeps from the rehearsal on.
struct room {
    uint64_t start, offset, bytes;
};

struct taking {
    struct remote remote;
    const struct stopped_request *request;
    struct stopped_image *image;
    struct plan plan;
    bool is_drawn;  // the plan stays as it is
    ARRAY(struct room) rooms;
    size_t known_rooms;   // of the rehearsal: ascending by start
    uint64_t used_bytes;  // of the memory
    struct remote_runs runs;
    enum plan_scope scope;
    struct heads_work heads;  // of PLAN_HEADS
    uint64_t chunk_bytes;     // on pages that are there, of which heads are taken
};

static uint64_t page_size(const struct taking *taking) {
    return taking->remote.pagemap.page_bytes;
}

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
    bytes += bytes / 4 / page_size(taking) * page_size(taking) + room_spare_bytes;
    struct room *room = array_push(&taking->rooms);
    if (!room || bytes > taking->image->memory_bytes - taking->used_bytes) return false;
    *room = (struct room){piece->start, taking->used_bytes, bytes};
    taking->used_bytes += bytes;
    *offset = room->offset;
    return true;
}

// Memory for copies twice over, since the process goes on and its heap may grow.
static bool reserve(struct taking *taking, struct error *error) {
    struct stopped_image *image = taking->image;
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

static bool add_run(struct taking *taking, uint64_t address, uint64_t offset, uint64_t bytes) {
    return remote_add_run(&taking->runs, address, taking->image->memory + offset, bytes);
}

// The pages of a piece that are there as it wants them.
static bool add_runs(struct taking *taking, const struct piece *piece, const uint8_t *flags,
                     uint64_t offset) {
    const uint8_t wanted =
        piece->kind == PIECE_WHOLE ? PAGE_OWN : (uint8_t)(PAGE_OWN | PAGE_RESIDENT);
    const uint64_t page_bytes = page_size(taking);
    size_t count = (piece->end - piece->start) / page_bytes;
    bool is_ok = true;
    for (size_t i = 0, from; i < count && is_ok; i++) {
        if (!(flags[i] & wanted)) continue;
        for (from = i; i < count && flags[i] & wanted;) i++;
        is_ok = add_run(taking, piece->start + from * page_bytes, offset + from * page_bytes,
                        (i - from) * page_bytes);
    }
    return is_ok;
}

// Those of its listed pages that are there.
static bool add_heads(struct taking *taking, const struct piece *piece, const uint8_t *flags,
                      uint64_t offset, size_t *head) {
    bool is_ok = true;
    const uint64_t page_bytes = page_size(taking);
    const size_t count = taking->plan.head_pages.count;
    const uint64_t *pages = taking->plan.head_pages.items;
    while (*head < count && pages[*head] < piece->start) ++*head;
    while (*head < count && pages[*head] < piece->end && is_ok) {
        uint64_t start = pages[*head], end = start;
        for (; *head < count && pages[*head] == end && end < piece->end; end += page_bytes) {
            if (!(flags[(end - piece->start) / page_bytes] & (PAGE_OWN | PAGE_RESIDENT))) break;
            ++*head;
        }
        if (end == start) ++*head;
        if (end > start) is_ok = add_run(taking, start, offset + start - piece->start, end - start);
    }
    return is_ok;
}

static bool add_segment(struct taking *taking, const struct piece *piece, uint64_t offset,
                        uint8_t *flags) {
    struct stopped_image *image = taking->image;
    uint64_t bytes = piece->end - piece->start;
    struct stopped_segment *segment = array_push(&image->segments);
    if (!segment) {
        free(flags);
        return false;
    }
    *segment = (struct stopped_segment){piece->start, piece->end, flags, piece->kind};
    struct memory_segment *of_core = array_push(&image->core.segments);
    if (of_core)
        *of_core = (struct memory_segment){.start = piece->start,
                                           .end = piece->end,
                                           .offset = offset,
                                           .bytes = piece->kind == PIECE_PAGES ? 0 : bytes,
                                           .is_writable = piece->kind != PIECE_CONSTANT,
                                           .is_code = piece->is_code};
    return of_core != NULL;
}

static void drop_segments(struct stopped_image *image) {
    for (size_t i = 0; i < image->segments.count; i++) free(image->segments.items[i].are_resident);
    image->segments.count = image->core.segments.count = 0;
}

static bool look_at_piece(struct taking *taking, const struct piece *piece, size_t *head) {
    size_t count = (piece->end - piece->start) / page_size(taking);
    uint64_t offset = 0;
    uint8_t *flags = malloc(count + 1);
    if (!flags || (piece->kind != PIECE_PAGES && !find_room(taking, piece, &offset))) {
        free(flags);
        return false;
    }
    pagemap_flags(&taking->remote.pagemap, piece->start, count, flags);
    if (!add_segment(taking, piece, offset, flags)) return false;
    if (piece->kind == PIECE_HEADS) return add_heads(taking, piece, flags, offset, head);
    if (piece->kind == PIECE_CHUNKS) {
        for (size_t i = 0; i < count; i++)
            if (flags[i] & PAGE_OWN) taking->chunk_bytes += page_size(taking);
        return true;
    }
    if (piece->kind == PIECE_WHOLE || piece->kind == PIECE_PRESENT)
        return add_runs(taking, piece, flags, offset);
    return piece->kind != PIECE_CONSTANT ||
           add_run(taking, piece->start, offset, piece->end - piece->start);
}

// Plan, segments and runs as they are now.
static bool look(struct taking *taking, struct error *error) {
    size_t head = 0;
    drop_segments(taking->image);
    taking->runs.items.count = 0;
    taking->chunk_bytes = 0;
    const struct stopped_request *request = taking->request;
    if (!taking->is_drawn &&
        !plan_make(&taking->remote, request->header, taking->scope, &taking->plan, error))
        return false;
    if (!taking->image->memory && !reserve(taking, error)) return false;
    for (size_t i = 0; i < taking->plan.pieces.count; i++)
        if (!look_at_piece(taking, &taking->plan.pieces.items[i], &head))
            return error_set(error, "out of memory");
    return true;
}

static uint64_t wanted_bytes(const struct taking *taking) {
    uint64_t bytes = taking->chunk_bytes;
    for (size_t i = 0; i < taking->runs.items.count; i++) bytes += taking->runs.items.items[i].size;
    return bytes;
}

// --- the two passes

// Pages for the copies, so that none has to be made while the process is stopped.
static void make_ready(const struct remote_run *runs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct remote_run *run = &runs[i];
        uint8_t *start = run->to - (uintptr_t)run->to % process_page_bytes();
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
    while (count < taking->runs.items.count && some < trial_bytes)
        some += taking->runs.items.items[count++].size;
    make_ready(taking->runs.items.items, count);
    uint64_t start_ns = clock_now_ns();
    uint64_t copied = remote_copy(&taking->remote, taking->runs.items.items, count);
    double per_byte = copied ? (double)(clock_now_ns() - start_ns) / (double)copied : 0;
    return (uint64_t)(per_byte * (double)bytes);
}

// Begins anew with a plan of a part that was drawn.
static bool draw(struct taking *taking, struct error *error) {
    const struct stopped_request *request = taking->request;
    struct stopped_image *image = taking->image;
    munmap(image->memory, image->memory_bytes);
    image->memory = NULL;
    taking->rooms.count = 0;
    taking->used_bytes = 0;
    plan_free(&taking->plan);
    taking->plan = (struct plan){0};
    taking->is_drawn = true;
    return windows_draw(&taking->remote, request->header, request->bytes_max, request->seed,
                        &image->windows, &taking->plan, error) &&
           look(taking, error);
}

// Tells where to look for heads.
static void show_segments(struct taking *taking) {
    taking->heads.pages = taking->image->segments.items;
    taking->heads.memory = taking->image->core.segments.items;
    taking->heads.count = taking->image->segments.count;
}

// Makes ready to take heads; a heap that is not glibc's is copied. `spared_bytes` is what is read
// of it and not kept.
static bool rehearse_heads(struct taking *taking, uint64_t *spared_bytes, struct error *error) {
    uint64_t kept_bytes;
    *spared_bytes = 0;
    if (!taking->chunk_bytes) return true;
    show_segments(taking);
    if (stopped_heads_rehearse(&taking->heads, taking->chunk_bytes, &kept_bytes)) {
        if (kept_bytes < taking->chunk_bytes) *spared_bytes = taking->chunk_bytes - kept_bytes;
        return true;
    }
    taking->scope = PLAN_HEAP;
    return look(taking, error);
}

static bool rehearse(struct taking *taking, struct error *error) {
    const struct stopped_request *request = taking->request;
    uint64_t spared_bytes;
    if (!look(taking, error) || !rehearse_heads(taking, &spared_bytes, error)) return false;
    if (request->may_draw && wanted_bytes(taking) > request->bytes_max && !draw(taking, error))
        return false;
    uint64_t wanted = wanted_bytes(taking), there = available_bytes();
    if (wanted > request->bytes_max)
        return error_set(error,
                         "%s of its memory are to be copied, for which it would be paused for "
                         "some %s: %s does that",
                         units_size((int64_t)wanted).text,
                         units_duration(estimate_ns(taking, wanted)).text, request->way_around);
    if (wanted - spared_bytes > there / 100 * MEMORY_PERCENT)
        return error_set(error, "its memory of %s would not fit beside it: %s of memory are left",
                         units_size((int64_t)wanted).text, units_size((int64_t)there).text);
    make_ready(taking->runs.items.items, taking->runs.items.count);
    taking->known_rooms = taking->rooms.count;
    return true;
}

static bool note_threads(struct stopped_image *image, const struct threads *threads,
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

// Says which of the memory for copies has some: what is not there is not to become pages by being
// read.
static void note_copies(struct taking *taking) {
    struct stopped_image *image = taking->image;
    const struct remote_run *runs = taking->runs.items.items;
    for (size_t i = 0; i < taking->runs.items.count; i++)
        present_note(&image->core.present, (uint64_t)(runs[i].to - image->memory), runs[i].size);
}

// Copies what heads leave of the memory that chunks fill.
static bool copy_beside_heads(struct taking *taking) {
    struct stopped_image *image = taking->image;
    struct spans skipped = {0};
    bool is_ok = stopped_heads_skip(&taking->heads, &skipped);
    note_copies(taking);
    taking->runs.items.count = 0;
    for (size_t i = 0; i < image->segments.count && is_ok; i++) {
        const struct stopped_segment *segment = &image->segments.items[i];
        const uint64_t offset = image->core.segments.items[i].offset;
        uint64_t at = segment->start;
        struct span gap;
        if (segment->kind != PIECE_CHUNKS) continue;
        while (is_ok && spans_gap(&skipped, &at, segment->end, &gap)) {
            const struct piece piece = {gap.start, gap.end, PIECE_WHOLE, false};
            const uint64_t inside = gap.start - segment->start;
            is_ok = add_runs(taking, &piece, segment->are_resident + inside / page_size(taking),
                             offset + inside);
        }
    }
    spans_free(&skipped);
    return is_ok;
}

static bool take_heads(struct taking *taking, struct error *error) {
    struct stopped_image *image = taking->image;
    image->heads.heads.stretches.count = 0;  // the rehearsal's
    if (!taking->chunk_bytes || taking->scope != PLAN_HEADS) return true;
    show_segments(taking);
    stopped_heads_take(&taking->heads);
    if (!copy_beside_heads(taking)) return error_set(error, "out of memory");
    image->copied_bytes +=
        taking->heads.copied_bytes +
        remote_copy(&taking->remote, taking->runs.items.items, taking->runs.items.count);
    return true;
}

static bool take(struct taking *taking, struct error *error) {
    struct threads threads = {0};
    struct stopped_image *image = taking->image;
    image->core.page_bytes = process_page_bytes();
    bool is_ok =
        (present_begin(&image->core.present, image->memory_bytes, image->core.page_bytes) ||
         error_set(error, "out of memory")) &&
        threads_stop(&threads, taking->remote.pid, error);
    if (is_ok) {
        is_ok = note_threads(image, &threads, error) && look(taking, error);
        if (is_ok)
            image->copied_bytes =
                remote_copy(&taking->remote, taking->runs.items.items, taking->runs.items.count);
        is_ok = is_ok && take_heads(taking, error);
        threads_go(&threads, 0);
        image->core.taken_ns = threads.since_ns;
        image->pause_ns = clock_now_ns() - threads.since_ns;
        note_copies(taking);
    }
    threads_free(&threads);
    return is_ok;
}

static void settle(struct stopped_image *image, pid_t pid) {
    image->core.source =
        (struct source){.descriptor = -1, .bytes = image->memory, .size = image->memory_bytes};
    image->core.map = image->memory;
    image->core.pid = (uint32_t)pid;
    image->core.machine = REGISTERS_MACHINE;
    if (image->heads.heads.stretches.count) image->core.heads = &image->heads.heads;
    for (size_t i = 0; i < image->segments.count; i++) {
        struct stopped_segment *segment = &image->segments.items[i];
        size_t count = (segment->end - segment->start) / image->core.page_bytes;
        for (size_t k = 0; k < count; k++) segment->are_resident[k] &= PAGE_RESIDENT;
    }
}

bool stopped_take(const struct stopped_request *request, struct stopped_image *image,
                  struct error *error) {
    struct taking taking = {.request = request, .image = image, .scope = request->scope};
    pid_t pid = request->pid;
    *image = (struct stopped_image){.core.source.descriptor = -1};
    if (!examine_to_read(pid, error)) return false;
    taking.remote = remote_of(pid);
    taking.remote.pagemap = pagemap_open(pid);
    taking.heads = (struct heads_work){.remote = &taking.remote, .out = &image->heads};
    if (taking.remote.pagemap.file < 0)
        return error_set(error, "its pages cannot be looked at: %s", strerror(errno));
    process_auxiliary(pid, AT_RANDOM, &image->core.first_stack);
    bool is_ok = (request->scope != PLAN_ALL || plan_find_hidden(&taking.plan, pid, error)) &&
                 rehearse(&taking, error) && take(&taking, error) &&
                 core_read_process_files(&image->core, pid, error) &&
                 (heap_heads_settle(&image->heads.heads) || error_set(error, "out of memory"));
    remote_close(&taking.remote);
    plan_free(&taking.plan);
    array_free(&taking.rooms);
    array_free(&taking.runs.items);
    stopped_heads_end(&taking.heads);
    if (is_ok)
        settle(image, pid);
    else
        stopped_free(image);
    return is_ok;
}

uint64_t stopped_resident_bytes(const struct stopped_image *image, uint64_t start, uint64_t end) {
    const uint64_t page_bytes = core_page_bytes(&image->core);
    uint64_t sum = 0;
    size_t low;
    search_first(low, image->segments.count, image->segments.items[low].end > start);
    for (; low < image->segments.count && image->segments.items[low].start < end; low++) {
        const struct stopped_segment *segment = &image->segments.items[low];
        uint64_t at = start > segment->start ? start : segment->start;
        uint64_t until = end < segment->end ? end : segment->end;
        for (uint64_t next; at < until; at = next) {
            next = (at / page_bytes + 1) * page_bytes;
            if (next > until) next = until;
            if (segment->are_resident[(at - segment->start) / page_bytes]) sum += next - at;
        }
    }
    return sum;
}

void stopped_free(struct stopped_image *image) {
    drop_segments(image);
    array_free(&image->segments);
    windows_free(&image->windows);
    image->core.map = NULL;
    core_close(&image->core);
    if (image->memory) munmap(image->memory, image->memory_bytes);
    image->memory = NULL;
    stopped_heads_free(&image->heads);
}
