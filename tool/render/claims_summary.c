// SPDX-License-Identifier: Apache-2.0
#include "tool/render/claims_summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "tool/render/interval.h"

void claim_set_sure(struct claim *claim, const struct profile *profile) {
    bool is_whole = recording_is_whole(profile->recording), is_sampled = profile->sampling.is_on;
    if (claim_has(claim, "is_exact")) claim_set(claim, "is_exact", is_whole && !is_sampled);
    if (claim_has(claim, "is_partial")) claim_set(claim, "is_partial", !is_whole && !is_sampled);
    if (claim_has(claim, "is_sampled")) claim_set(claim, "is_sampled", is_sampled);
}

static void set_blocks(struct claim *claim, struct measured blocks) {
    char text[CLAIM_SENTENCE_BYTES];
    snprintf(text, sizeof text, " in %s%s %s", units_count(measured_shown(blocks)).text,
             interval_amount(blocks, false, false).text, blocks.value == 1 ? "block" : "blocks");
    claim_set(claim, "blocks", measured_shown(blocks));
    claim_set_text(claim, "in_blocks", text);
}

// Bytes in blocks, with how sure both are.
static void set_amount(struct claim *claim, const struct profile *profile, enum measure measure,
                       bool is_plain) {
    struct measured bytes = measure_total(measure, profile);
    const enum measure in_blocks = measure_about(measure)->in_blocks;
    claim_set(claim, "bytes", measured_shown(bytes));
    if (measure_is_known(in_blocks, profile)) set_blocks(claim, measure_total(in_blocks, profile));
    claim_set(claim, "is_since_attach", profile_lacks_older(profile));
    claim_set(claim, "interval_bytes", measured_interval(bytes));
    if (profile->sampling.is_on) claim_set(claim, "samples", measured_samples(bytes));
    claim_set_text(claim, "interval", interval_amount(bytes, true, is_plain).text);
    claim_set_text(claim, "samples_text", interval_samples(bytes).text);
    claim_set_sure(claim, profile);
}

void claim_of_peak(struct claim *claim, const struct profile *profile, bool is_plain) {
    *claim = (struct claim){.key = CLAIM_PEAK};
    set_amount(claim, profile, MEASURE_PEAK, is_plain);
    if (profile->peak.at_ns) claim_set(claim, "at_ns", (int64_t)profile->peak.at_ns);
    if (profile->peak.from_ns) claim_set(claim, "from_ns", (int64_t)profile->peak.from_ns);
    claim_set(claim, "error_bytes", (int64_t)profile->peak.error_bytes);
}

// A program that cairn attach left goes on: its figures are of that time. So are those of a file
// without an end.
const char *claim_left_word(const struct profile *profile) {
    if (recording_is_of_owners(profile->recording)) return "kept";
    if (recording_is_checkpoint(profile->recording)) return "live then";
    if (!profile_has_ended(profile)) return "live now";
    return profile->recording->header.stop_reason == CAIRN_STOP_LEFT ? "at detach" : "at exit";
}

void claim_of_left(struct claim *claim, const struct profile *profile, bool is_plain) {
    *claim = (struct claim){.key = CLAIM_LEFT};
    set_amount(claim, profile, MEASURE_EXIT, is_plain);
    claim_set_text(claim, "when", claim_left_word(profile));
}

void claim_of_exactness(struct claim *claim, const struct profile *profile) {
    const struct cairn_header *header = &profile->recording->header;
    bool is_whole = recording_is_whole(profile->recording), is_sampled = profile->sampling.is_on;
    uint64_t lost = 0;
    *claim = (struct claim){.key = !is_whole    ? CLAIM_NOT_EXACT
                                   : is_sampled ? CLAIM_EXACT_CALLS
                                                : CLAIM_EXACT};
    if (is_whole) {
        claim_set(claim, "calls", (int64_t)profile->totals.allocations);
        claim_set(claim, "is_since_attach", header->is_attached);
        claim_set(claim, "was_off", header->control.was_off);
        if (is_sampled)
            claim_set(claim, "allocated_bytes", (int64_t)profile->totals.allocated_bytes);
        else
            claim_set(claim, "error_bytes", (int64_t)profile->peak.error_bytes);
        return;
    }
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++)
        lost += recording_lost(profile->recording, kind);
    claim_set(claim, "lost", (int64_t)lost);
    claim_set(claim, "is_damaged", damage_is_any(&profile->recording->damage));
    claim_set(claim, "is_import", recording_imported(profile->recording) != NULL);
}

// Returns one in so many bytes, a power of two, as gives some thousands of samples of the program.
static uint64_t good_rate(const struct profile *profile) {
    enum { SAMPLES_GOOD = 2000, RATE_LEAST = 4 << 10, RATE_USUAL = 512 << 10 };
    uint64_t rate = RATE_LEAST;
    while (rate < RATE_USUAL && rate * 2 <= profile->totals.allocated_bytes / SAMPLES_GOOD)
        rate *= 2;
    return rate;
}

static void set_rate(struct claim *claim, uint64_t rate_bytes) {
    enum { KIB_SHIFT = 10, TEXT_BYTES = 32 };
    char text[TEXT_BYTES];
    claim_set(claim, "rate_bytes", (int64_t)rate_bytes);
    snprintf(text, sizeof text, "%" PRIu64 "KiB", rate_bytes >> KIB_SHIFT);
    claim_set_text(claim, "rate", text);
}

bool claim_of_cost(struct claim *claim, const struct profile *profile) {
    enum { STACKS_LEAST = 1 << 16, BYTES_LEAST = 8 << 20, PROGRAM_PARTS = 4 };
    const struct cairn_header *header = &profile->recording->header;
    uint64_t rss = header->rss_peak_bytes, own = header->own_bytes;
    uint64_t rest = rss > own ? rss - own : 0;
    *claim = (struct claim){.key = CLAIM_RECORDING_COST};
    if (profile->sampling.is_on || profile->built_stack_count < STACKS_LEAST || !rss) return false;
    if (own < BYTES_LEAST || own < rest / PROGRAM_PARTS) return false;
    claim_set(claim, "own_bytes", (int64_t)own);
    claim_set(claim, "program_bytes", (int64_t)rest);
    claim_set(claim, "stacks", (int64_t)profile->built_stack_count);
    claim_set(claim, "is_attached", header->is_attached);
    set_rate(claim, good_rate(profile));
    return true;
}

enum { TOUCHED_PARTS = 50 };

static bool is_share(uint64_t bytes, const struct claim_now *now, unsigned percent) {
    return now->all_bytes && bytes >= now->all_bytes / 100 * percent;
}

// Returns false if a part of the largest block was never touched, but for its last page.
static bool is_block_used(const struct claim_now *now) {
    return now->block_bytes - now->block_bytes / TOUCHED_PARTS <= now->used_bytes;
}

// Chooses what is told first: free memory if it is more than what is leaked or redundant; a leak
// before what is redundant, since it grows.
static enum claim_key choose_now(const struct claim_now *now) {
    const bool is_wasteful = is_share(now->wasted_bytes, now, NOW_WASTE_SHARE);
    const bool is_leaky = is_share(now->leaked_bytes, now, NOW_WASTE_SHARE);
    const bool is_free_most = (!is_wasteful || now->free_bytes >= now->wasted_bytes) &&
                              (!is_leaky || now->free_bytes >= now->leaked_bytes);
    if (is_share(now->free_bytes, now, NOW_FREE_SHARE) && is_free_most) return CLAIM_NOW_FREE;
    if (!now->is_largest_used && is_share(now->largest_bytes, now, NOW_MOST_SHARE))
        return CLAIM_NOW_OTHER;
    if (is_leaky) return CLAIM_NOW_LEAKED;
    if (is_wasteful) return CLAIM_NOW_WASTE;
    if (now->knows_waste && is_block_used(now) && is_share(now->block_bytes, now, NOW_MOST_SHARE))
        return CLAIM_NOW_BLOCK;
    if (now->knows_waste && is_share(now->used_bytes, now, NOW_LARGEST_SHARE))
        return CLAIM_NOW_USED;
    return CLAIM_NOW_LARGEST;
}

void claim_of_now(struct claim *claim, const struct claim_now *now) {
    *claim = (struct claim){.key = choose_now(now)};
    uint64_t bytes = now->largest_bytes;
    if (claim->key == CLAIM_NOW_FREE) bytes = now->free_bytes;
    if (claim->key == CLAIM_NOW_BLOCK) bytes = now->block_bytes;
    const bool is_of_waste = claim_has(claim, "wasted_bytes"),
               is_of_leaks = claim_has(claim, "leaked_bytes");
    if (is_of_waste || is_of_leaks) bytes = now->used_bytes;
    if (is_of_waste) claim_set(claim, "wasted_bytes", (int64_t)now->wasted_bytes);
    if (is_of_leaks) claim_set(claim, "leaked_bytes", (int64_t)now->leaked_bytes);
    claim_set(claim, "bytes", (int64_t)bytes);
    claim_set(claim, "rss_bytes", (int64_t)now->all_bytes);
    if (claim_has(claim, "what")) claim_set_text(claim, "what", now->largest);
    if (claim_has(claim, "is_touched")) claim_set(claim, "is_touched", !now->is_core);
    if (claim_has(claim, "is_recordable")) claim_set(claim, "is_recordable", now->is_recordable);
    if (claim_has(claim, "allocator")) claim_set_text(claim, "allocator", now->allocator);
}
