// SPDX-License-Identifier: Apache-2.0
#include "tool/model/figures.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "tool/model/estimate.h"
#include "tool/model/reached.h"
#include "tool/model/sampled_peak.h"
#include "tool/model/source.h"

int64_t figures_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

uint64_t figures_freed(uint64_t exact, int64_t left) {
    return left > 0 && (uint64_t)left > exact ? 0 : exact - (uint64_t)left;
}

bool figures_is_inherited(const struct cairn_thread *thread) {
    return thread->tid == 0 && thread->slot == CAIRN_SLOT_SHARED;
}

// What allocations and frees cost that are not sampled: too little to be measured one by one. A
// pair takes some nanoseconds (bench/results/performance.md).
static uint64_t passing_ns(const struct cairn_thread *thread) {
    const uint64_t pair_ns = 4;
    return thread->allocations * pair_ns;
}

static void add_thread(struct figures *figures, const struct cairn_thread *thread) {
    if (figures_is_inherited(thread)) {
        figures->has_inherited = true;
        figures->inherited_blocks += thread->allocations;
        figures->inherited_bytes += thread->allocated_bytes;
    } else {
        figures->allocations += thread->allocations;
        figures->allocated_bytes += thread->allocated_bytes;
    }
    int64_t blocks = (int64_t)(thread->allocations - thread->frees);
    if (thread->is_sampled) blocks = thread->estimated_blocks / CAIRN_SAMPLE_ONE;
    figures->frees += thread->allocations - (uint64_t)blocks;
    figures->failed += thread->failed;
    figures->own_ns += thread->own_ns + (thread->is_sampled ? passing_ns(thread) : 0);
    figures->exit_bytes = figures_add(figures->exit_bytes, thread->net_bytes);
    figures->exit_blocks = figures_add(figures->exit_blocks, blocks);
}

// Where events were lost, more may have been allocated than was counted.
static struct sampled_totals counted_of(const struct figures *figures) {
    bool is_found = figures->found_blocks > 0;
    return (struct sampled_totals){
        .is_known = !figures->lost,
        .own_blocks = figures->allocations,
        .own_bytes = figures->allocated_bytes,
        .before_blocks = is_found ? figures->found_blocks : figures->inherited_blocks,
        .before_bytes = is_found ? figures->found_bytes : figures->inherited_bytes,
        .is_before_estimate = figures->has_inherited && !is_found};
}

// Returns how far the highest sum of samples is above the heap's level. The peak is no lower than
// the end, which was not chosen for being high.
static double peak_over_of(const struct figures *figures, const struct recording *recording) {
    const struct estimate *estimate = &figures->peak_estimate;
    const struct peak_known known = {.bytes = (double)figures->peak_bytes,
                                     .variance = estimate->bytes_variance,
                                     .sample_bytes = figures->scale.rate_most,
                                     .least_bytes =
                                         fmax((double)figures->exit_bytes, estimate->bytes_least)};
    return floor(sampled_peak_over_of(recording, &known));
}

static void take_peak_over(struct figures *figures, const struct recording *recording) {
    struct estimate *estimate = &figures->peak_estimate;
    double bytes = peak_over_of(figures, recording);
    double blocks = estimate_over_blocks(estimate, bytes);
    estimate_take_over(estimate, bytes, blocks, (double)figures->peak_bytes);
    figures->peak_bytes -= (uint64_t)bytes;
}

static void add_estimates(struct figures *figures, const struct recording *recording,
                          bool is_peak_at_end) {
    struct estimate estimates[ESTIMATED_COUNT];
    struct cairn_sampling sampling;
    figures->is_sampled = recording_sampling(recording, &sampling) && sampling.is_on;
    if (!figures->is_sampled) return;
    figures->found_blocks = sampling.found_blocks;
    figures->found_bytes = sampling.found_bytes;
    figures->scale = sampled_scale_of(recording, counted_of(figures));
    sampled_sum(recording, &figures->scale, is_peak_at_end, estimates);
    figures->peak_estimate = estimates[ESTIMATED_PEAK];
    figures->peak_estimate.bytes_least = (double)sampling.found_bytes;
    figures->peak_estimate.blocks_least = (double)sampling.found_blocks;
    figures->exit_estimate = estimates[ESTIMATED_EXIT];
    take_peak_over(figures, recording);
    figures->rate_bytes = sampling.rate_bytes;
    figures->rate_now_bytes =
        sampling.rate_now_bytes ? sampling.rate_now_bytes : sampling.rate_bytes;
    figures->slowed_count = sampling.slowed_count;
    figures->frees =
        figures_freed(figures->allocations + figures->inherited_blocks, figures->exit_blocks);
}

struct figures figures_of(const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    struct figures figures = {.peak_bytes = header->totals.peak_bytes,
                              .peak_ns = recording_peak_ns(recording)};
    struct cairn_thread thread;
    for (size_t i = 0; i < FIGURES_THREADS_MAX && recording_thread(recording, i, &thread); i++)
        add_thread(&figures, &thread);
    for (size_t reason = 0; reason < CAIRN_LOSS_MAX; reason++)
        figures.lost += recording_lost(recording, reason);
    // the counter of the peak moves when the heap shrinks; if it holds more now, the peak is now
    bool is_at_end = figures.exit_bytes > 0 && (uint64_t)figures.exit_bytes > figures.peak_bytes;
    if (is_at_end) {
        figures.peak_bytes = (uint64_t)figures.exit_bytes;
        figures.peak_ns = recording_last_ns(recording);
    }
    figures.peak_ns = recording_reached_ns(recording, figures.peak_ns, figures.peak_bytes);
    add_estimates(&figures, recording, is_at_end);
    return figures;
}

bool figures_is_small(const struct figures *figures) {
    return figures->peak_bytes < FIGURES_SMALL_BYTES;
}

// No process has more than the address space: larger numbers are damage, and sums stay sane.
static const uint64_t bytes_max = (uint64_t)1 << 47;

static uint64_t clamp(uint64_t bytes) {
    return bytes < bytes_max ? bytes : bytes_max;
}

static uint64_t clamp_signed(int64_t value) {
    return value > 0 ? clamp((uint64_t)value) : 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Takes a part of what is left; no more than there is.
static void take(struct picture *picture, enum picture_part part, uint64_t bytes, uint64_t *left) {
    picture->bytes[part] = least(bytes, *left);
    *left -= picture->bytes[part];
}

// What libc maps for each program is none of the program's own.
static void take_mapped(struct picture *picture, const struct cairn_picture *raw, uint64_t *left) {
    const uint64_t small_bytes = 128 << 10;
    picture->is_mapped_part = raw->knows & CAIRN_PICTURE_KNOWS_MAPPED;
    if (!picture->is_mapped_part) return;
    bool is_small = least(raw->mapped_bytes, *left) < small_bytes;
    take(picture, is_small ? PICTURE_FILES : PICTURE_MAPPED, raw->mapped_bytes, left);
}

bool picture_knows_free(const struct picture *picture) {
    return picture->arena_count && !picture->is_cut;
}

// A little more may be live than is resident because the heap grew while it was looked at.
static bool is_live_more(uint64_t live_bytes, uint64_t left) {
    enum { GROWN_SHARE = 64 };
    return live_bytes > left + live_bytes / GROWN_SHARE;
}

// What was measured goes first: own mappings, free memory. Live blocks have what is left of it, as
// far as they were touched; the estimate of slack takes no more than is left then.
static void split_heap(struct picture *picture, const struct cairn_picture *raw) {
    uint64_t left = picture->heap_bytes;
    take_mapped(picture, raw, &left);
    picture->is_free_part = picture->arena_count;
    if (picture->is_free_part) take(picture, PICTURE_FREE, picture->free_resident_bytes, &left);
    uint64_t live = picture->live_bytes - least(picture->live_bytes, clamp(raw->untouched_bytes));
    bool is_more = is_live_more(live, left);
    picture->is_live_part = (!is_more || picture_knows_free(picture)) && !picture->is_live_unseen &&
                            !picture->lacks_older;
    picture->has_live_slack = is_more && picture->is_live_part;
    picture->is_live_partly = live < picture->live_bytes || is_more;
    if (picture->is_live_part) take(picture, PICTURE_LIVE, live, &left);
    picture->is_slack_part =
        raw->knows & CAIRN_PICTURE_KNOWS_SLACK && picture->is_free_part && !is_more;
    if (picture->is_slack_part) take(picture, PICTURE_SLACK, picture->slack_bytes, &left);
    picture->bytes[PICTURE_REST] = left;
}

bool picture_is_of_peak(const struct picture *picture) {
    enum { NEAR_SHARE = 50 };
    uint64_t peak = picture->peak_bytes;
    return picture->rss_bytes >= peak - peak / NEAR_SHARE;
}

bool picture_is_far_from_peak(const struct picture *picture) {
    enum { FAR_SHARE = 5 };
    uint64_t peak = picture->peak_bytes;
    return picture->rss_bytes < peak - peak / FAR_SHARE;
}

bool picture_of(const struct recording *recording, size_t index, struct picture *picture) {
    struct cairn_picture raw;
    if (!recording_picture(recording, index, &raw)) return false;
    *picture = (struct picture){.at_ns = raw.at_ns,
                                .pss_bytes = clamp(raw.pss_bytes),
                                .swap_bytes = clamp(raw.swap_bytes),
                                .live_bytes = clamp_signed(raw.live_bytes),
                                .live_blocks = clamp_signed(raw.live_blocks),
                                .heap_bytes = clamp(raw.heap_bytes),
                                .slack_bytes = clamp(raw.slack_bytes),
                                .chunk_bytes = clamp(raw.free_chunk_bytes),
                                .top_bytes = clamp(raw.free_top_bytes),
                                .free_resident_bytes = clamp(raw.free_resident_bytes),
                                .arena_count = raw.arena_count,
                                .stack_count = raw.stack_count,
                                .peak_bytes = clamp(recording->header.rss_peak_bytes),
                                .is_sampled = recording_is_sampled(recording),
                                .is_cut = raw.is_cut,
                                .lacks_older =
                                    recording->header.is_attached && !recording->header.has_census};
    // the counter of the peak moves when the heap shrinks, which it may never have done
    picture->is_live_unseen = picture->is_sampled && !recording->header.totals.peak_bytes &&
                              !picture->live_blocks && !picture->live_bytes;
    split_heap(picture, &raw);
    picture->bytes[PICTURE_STACKS] = clamp(raw.stacks_bytes);
    picture->bytes[PICTURE_FILES] += clamp(raw.files_bytes);
    picture->bytes[PICTURE_SHARED] = clamp(raw.shared_bytes);
    picture->bytes[PICTURE_OWN] = clamp(raw.own_bytes);
    picture->bytes[PICTURE_OTHER] = clamp(raw.other_bytes);
    for (int part = 0; part < PICTURE_PARTS; part++) picture->rss_bytes += picture->bytes[part];
    return true;
}

bool pictures_set(struct recording *recording, const struct cairn_picture *pictures) {
    struct recording_section *section = &recording->sections[CAIRN_SECTION_PICTURES];
    const size_t size = CAIRN_PICTURE_COUNT * sizeof *pictures;
    void *room = source_room(size, NULL);
    if (!room) return false;
    memcpy(room, pictures, size);
    if (section->mapping) munmap(section->mapping, section->mapping_size);
    *section = (struct recording_section){.bytes = room,
                                          .size = size,
                                          .entry_bytes = sizeof *pictures,
                                          .count = CAIRN_PICTURE_COUNT,
                                          .mapping = room,
                                          .mapping_size = size};
    return true;
}

const char *picture_part_key(enum picture_part part) {
    static const char *const keys[PICTURE_PARTS] = {
        [PICTURE_LIVE] = "live_bytes",   [PICTURE_FREE] = "free_bytes",
        [PICTURE_SLACK] = "slack_bytes", [PICTURE_MAPPED] = "mapped_bytes",
        [PICTURE_REST] = "rest_bytes",   [PICTURE_STACKS] = "stacks_bytes",
        [PICTURE_FILES] = "files_bytes", [PICTURE_SHARED] = "shared_bytes",
        [PICTURE_OWN] = "own_bytes",     [PICTURE_OTHER] = "other_bytes",
    };
    return keys[part];
}
