// SPDX-License-Identifier: Apache-2.0
#include "tool/web/findings.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/answer/claims.h"
#include "tool/base/json.h"
#include "tool/base/units.h"
#include "tool/model/join.h"
#include "tool/render/claims_find.h"
#include "tool/render/findings.h"
#include "tool/render/pool_candidates_screen.h"

// The sentence is the terminal's. Where it leads is for the page to know, by the kind.
static void put_finding(struct json *json, const struct profile *profile,
                        const struct frame_names *names, const struct finding *finding) {
    const struct view_options view = {.depth = 0};
    char text[FINDING_TEXT_BYTES], saves[FINDING_TEXT_BYTES], sure[CLAIM_SENTENCE_BYTES] = "";
    struct claim claim;
    if (!finding_text(finding, profile, names, &view, text)) *text = 0;
    if (finding_claim(finding, profile, names, false, &claim)) claim_sure(&claim, false, sure);
    finding_gain_text(finding, profile, false, saves);
    bool is_flow = finding->kind == FINDING_FREED_BY;
    json_open_object(json, NULL);
    json_put_string(json, "kind", finding_name(finding->kind));
    json_put_string(json, "text", text);
    json_put_string(json, "saves", saves);
    json_put_string(json, "sure", sure);
    json_put_string(json, "page", finding_page(finding->kind));
    json_put_thousandths(json, "gain", (unsigned)(finding->gain * 1000));
    if (finding->stack) json_put_uint(json, "stack", (uint64_t)(finding->stack - profile->stacks));
    json_put_bool(json, "is_estimate", finding->is_estimate);
    json_put_uint(json, "count", finding->count);
    json_put_uint(json, "bytes", is_flow ? finding->flow.bytes : finding->bytes);
    json_put_string(json, "from", is_flow ? finding->flow.from : NULL);
    json_put_string(json, "to", is_flow ? finding->flow.to : NULL);
    json_close(json);
}

// A pool that would pay, as a finding: it leads to the stack with the most calls.
static void put_pool(struct json *json, const struct profile *profile,
                     const struct pool_candidate *candidate, const uint32_t *index) {
    const struct pool_candidates *found = profile->pool_candidates;
    char name[POOL_TEXT_BYTES], reason[POOL_TEXT_BYTES], text[2 * POOL_TEXT_BYTES];
    const uint32_t first =
        profile_joined_number(profile, found->members[candidate->first_member].stack);
    struct unit_text calls = units_count((int64_t)candidate->calls_gone);
    struct unit_text share = units_percent((int64_t)candidate->calls_gone, (int64_t)found->calls);
    pool_candidate_name(candidate, false, name);
    pool_candidate_reason(candidate, reason);
    snprintf(text, sizeof text, "%s calls of malloc and free (%s) would go with %s", calls.text,
             share.text, name);
    json_open_object(json, NULL);
    json_put_string(json, "kind", "pool");
    json_put_string(json, "text", text);
    json_put_string(json, "saves", reason);
    json_put_string(json, "page", "docs/howto/pools.md");
    json_put_thousandths(json, "gain", (unsigned)(candidate->calls_gone * 1000 / found->calls));
    json_put_uint(json, "stack", index[first] - 1);
    json_put_bool(json, "is_estimate", false);
    json_close(json);
}

static bool put_pools(struct json *json, const struct profile *profile) {
    enum { POOLS_SHOWN = 5, LEAST_SHARE = 100 };  // one call in so many
    const struct pool_candidates *found = profile->pool_candidates;
    uint32_t *index = found ? profile_stack_indexes(profile) : NULL;
    for (size_t i = 0; index && i < found->count && i < POOLS_SHOWN; i++)
        if (found->list[i].calls_gone * LEAST_SHARE >= found->calls)
            put_pool(json, profile, &found->list[i], index);
    bool is_ok = index || !found;
    free(index);
    return is_ok;
}

static bool put_all(struct json *json, const struct profile *profile,
                    const struct frame_names *names, const struct findings *findings) {
    json_open_array(json, NULL);
    for (size_t i = 0; i < findings->count; i++)
        put_finding(json, profile, names, &findings->list[i]);
    bool is_ok = put_pools(json, profile);
    json_close(json);
    return is_ok;
}

bool findings_put_first(struct json *json, const struct profile *profile,
                        const struct frame_names *names) {
    struct claim claims[FIRST_CLAIMS];
    size_t count;
    char sentence[CLAIM_SENTENCE_BYTES];
    if (!claims_first(claims, &count, profile, names)) return false;
    json_open_array(json, "first");
    for (size_t i = 0; i < count; i++) {
        claim_sentence(&claims[i], false, sentence);
        json_put_string(json, NULL, sentence);
    }
    json_close(json);
    return true;
}

bool findings_put(struct sink *sink, const struct profile *profile, const struct frame_names *names,
                  struct error *error) {
    struct findings findings = {0};
    struct json json;
    char *text = NULL;
    size_t size = 0;
    if (!findings_find(&findings, profile, error) ||
        !findings_settle(&findings, profile, names, error))
        return false;
    FILE *out = open_memstream(&text, &size);
    if (!out) return error_set(error, "no memory for the findings");
    json_start(&json, out);
    bool is_ok = put_all(&json, profile, names, &findings);
    is_ok = !fclose(out) && is_ok;
    if (is_ok) sink_put_chunk(sink, "findings", CHUNK_JSON, text, size);
    free(text);
    return is_ok || error_set(error, "no memory for the findings");
}
