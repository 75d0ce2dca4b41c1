// SPDX-License-Identifier: Apache-2.0
#include "tool/render/claims_find.h"

#include "tool/base/text.h"
#include "tool/model/growth.h"
#include "tool/render/claims_summary.h"
#include "tool/render/groups_screen.h"
#include "tool/render/memory.h"
#include "tool/render/way.h"

enum { LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES };

bool claim_of_growth(struct claim *claim, const struct finding_growth *growth) {
    char label[LABEL_TEXT_BYTES];
    *claim = (struct claim){.key = growth->is_known ? CLAIM_GROWTH_NONE : CLAIM_GROWTH_UNKNOWN};
    if (growth->growing_count) return false;
    claim_set(claim, "snapshots", (int64_t)growth->moment_count);
    if (!growth->is_known) {
        claim_set(claim, "least_snapshots", GROWTH_MOMENTS_MIN);
        claim_set(claim, "span_ns", (int64_t)(growth->end_ns - growth->start_ns));
        claim_set(claim, "is_one", growth->moment_count == 1);
        return true;
    }
    text_escape(label, sizeof label, growth->label);
    claim_set(claim, "stopped", (int64_t)growth->stalled_count);
    claim_set(claim, "late", (int64_t)growth->late_count);
    claim_set(claim, "least_bytes", growth->rise_least);
    claim_set(claim, "is_sampled", growth->is_sampled);
    claim_set(claim, "start_ns", (int64_t)growth->start_ns);
    claim_set(claim, "end_ns", (int64_t)growth->end_ns);
    claim_set_text(claim, "label", label);
    return true;
}

// The stack that rose most before it stood still. False without memory; `has_any`: there is one.
static bool claim_of_stopped(struct claim *claim, const struct finding_growth *growth,
                             const struct profile *profile, const struct frame_names *names,
                             bool *has_any) {
    char label[FRAME_TEXT_BYTES];
    size_t i = 0;
    while (i < growth->count && !growth->list[i].how.has_stalled) i++;
    *has_any = i < growth->count;
    if (!*has_any) return true;
    const struct growth_stack *how = &growth->list[i].how;
    *claim = (struct claim){.key = CLAIM_GROWTH_STOPPED};
    if (!finding_label(profile, names, growth->list[i].stack, false, label)) return false;
    claim_set_text(claim, "where", label);
    claim_set(claim, "first_bytes", how->first_bytes);
    claim_set(claim, "last_bytes", how->last_bytes);
    claim_set(claim, "from_ns", (int64_t)how->from_ns);
    claim_set(claim, "until_ns", (int64_t)how->until_ns);
    claim_set(claim, "snapshots", (int64_t)growth->moment_count);
    return true;
}

static void put(struct json *json, const struct claim *claim) {
    json_open_object(json, NULL);
    claim_put_json(json, claim);
    json_close(json);
}

bool claims_first(struct claim claims[FIRST_CLAIMS], size_t *count, const struct profile *profile,
                  const struct frame_names *names) {
    bool has_any;
    *count = 0;
    bool is_part = profile->heap || profile->stack_count != profile->built_stack_count;
    bool is_other = profile->is_of_mappings || recording_is_of_owners(profile->recording);
    if (is_part || is_other || profile_is_sum(profile)) return true;
    *count = claim_of_not_heap(&claims[0], profile) ? 1 : 0;
    if (!claim_of_way(&claims[*count], profile, names, &has_any)) return false;
    *count += has_any;
    if (*count) return true;
    if (!claim_of_largest(&claims[0], profile, names, &has_any)) return false;
    *count = has_any;
    return true;
}

static bool put_summary(struct json *json, const struct profile *profile,
                        const struct frame_names *names) {
    struct claim claim, first[FIRST_CLAIMS];
    size_t count;
    if (!claims_first(first, &count, profile, names)) return false;
    for (size_t i = 0; i < count; i++) put(json, &first[i]);
    if (profile_has_frees(profile)) {
        claim_of_peak(&claim, profile, false);
        put(json, &claim);
        claim_of_left(&claim, profile, false);
        put(json, &claim);
    }
    claim_of_exactness(&claim, profile);
    put(json, &claim);
    if (claim_of_cost(&claim, profile)) put(json, &claim);
    if (claim_of_resident(&claim, profile, false)) put(json, &claim);
    if (claim_of_heap(&claim, profile, CAIRN_PICTURE_AT_PEAK)) put(json, &claim);
    if (claim_of_accounts(&claim, profile)) put(json, &claim);
    return true;
}

static bool put_growth(struct json *json, const struct findings *findings,
                       const struct profile *profile, const struct frame_names *names) {
    struct claim claim;
    bool has_any;
    if (claim_of_growth(&claim, &findings->growth)) put(json, &claim);
    if (!claim_of_stopped(&claim, &findings->growth, profile, names, &has_any)) return false;
    if (has_any) put(json, &claim);
    return true;
}

static bool put_finding(struct json *json, const struct finding *finding,
                        const struct profile *profile, const struct frame_names *names) {
    struct claim claim;
    if (!finding_claim(finding, profile, names, false, &claim)) return false;
    json_open_object(json, NULL);
    claim_put_json(json, &claim);
    json_open_object(json, "saves");
    json_put_uint(json, "bytes", finding->saved_bytes);
    json_put_uint(json, "calls", finding->saved_calls);
    json_put_uint(json, "faults", finding->saved_faults);
    json_put_bool(json, "is_least", finding->is_least);
    json_close(json);
    json_close(json);
    return true;
}

bool claims_put_json(struct json *json, const struct findings *findings,
                     const struct profile *profile, const struct frame_names *names) {
    if (!findings) {
        json_put_null(json, "claims");
        return true;
    }
    json_open_array(json, "claims");
    bool is_ok = put_summary(json, profile, names) && put_growth(json, findings, profile, names);
    for (size_t i = 0; is_ok && i < findings->count; i++)
        is_ok = put_finding(json, &findings->list[i], profile, names);
    json_close(json);
    return is_ok;
}
