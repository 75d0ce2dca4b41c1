// SPDX-License-Identifier: Apache-2.0
// The function with most, where no way stands out: call sites (site.h) are added up by the function
// that leads them.
#include <stdio.h>
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/render/claims_summary.h"
#include "tool/render/site.h"
#include "tool/render/way.h"

enum {
    MOST_PERCENT = 40,  // a function with less does not stand out
    LABEL_BYTES = 256,
    LABEL_COLUMNS = 48,
    WHY_BYTES = 128,
};

// Reasons why nobody can be named for a call site.
enum unnamed { NAMED, UNNAMED_BEFORE, UNNAMED_LOST, UNNAMED_CODE, UNNAMED_COUNT };

struct leader {
    uint64_t hash;
    const struct frame *frame;
    int64_t value;
};

struct leaders {
    ARRAY(struct leader) list;
    int64_t unnamed[UNNAMED_COUNT];
    int64_t whole;
    struct leader code;  // the call site with most whose code has no name
};

static enum unnamed unnamed_of(const struct site *site, bool has_census) {
    const struct frame *frame = site->frames[0];
    if (!site->frame_count || frame_is_bucket(frame)) return UNNAMED_LOST;
    if (!frame->function) return UNNAMED_CODE;
    return has_census && !frame->module && !frame->file ? UNNAMED_BEFORE : NAMED;
}

static bool leaders_add(struct leaders *leaders, const struct site *site, bool has_census) {
    const enum unnamed why = unnamed_of(site, has_census);
    const int64_t value = site->measured.value;
    leaders->whole += value;
    leaders->unnamed[why] += value;
    if (why == UNNAMED_CODE && value > leaders->code.value)
        leaders->code = (struct leader){0, site->frames[0], value};
    if (why != NAMED) return true;
    struct leader *leader = array_push(&leaders->list);
    if (!leader) return false;
    *leader = (struct leader){frame_hash(site->frames[0], false), site->frames[0], value};
    return true;
}

static int by_hash(const void *a, const void *b) {
    const struct leader *first = a, *second = b;
    return (first->hash > second->hash) - (first->hash < second->hash);
}

// Adds up neighbours of one function; returns the one with most, NULL if nobody has a name.
static const struct leader *leaders_join(struct leaders *leaders) {
    struct leader *items = leaders->list.items, *last = NULL, *most = NULL;
    if (leaders->list.count) qsort(items, leaders->list.count, sizeof *items, by_hash);
    for (size_t i = 0; i < leaders->list.count; i++) {
        if (last && frame_is_same_function(last->frame, items[i].frame))
            last->value += items[i].value;
        else
            last = &items[i];
        if (!most || last->value > most->value) most = last;
    }
    return most;
}

static void set_unknown(struct claim *claim, const struct leaders *leaders, int64_t samples) {
    static const char *const reasons[UNNAMED_COUNT] = {
        [UNNAMED_BEFORE] = "most of it was allocated before attach",
        [UNNAMED_LOST] = "stacks of most of it were not recorded",
        [UNNAMED_CODE] = "the functions of most of it have no name"};
    enum unnamed why = UNNAMED_BEFORE;
    char text[WHY_BYTES + LABEL_BYTES], label[LABEL_BYTES];
    for (enum unnamed i = UNNAMED_BEFORE; i < UNNAMED_COUNT; i++)
        if (leaders->unnamed[i] > leaders->unnamed[why]) why = i;
    snprintf(text, sizeof text, "%s", reasons[why]);
    if (samples)
        snprintf(text, sizeof text, "%s too few",
                 units_counted(samples, "sample is", "samples are").text);
    else if (why == UNNAMED_CODE && leaders->code.frame) {
        frame_label_alone(leaders->code.frame, label, sizeof label, LABEL_COLUMNS);
        snprintf(text, sizeof text, "%s; the largest call site is %s with %s", reasons[why], label,
                 units_percent(leaders->code.value, leaders->whole).text);
    }
    *claim = (struct claim){.key = CLAIM_LARGEST_UNKNOWN};
    claim_set_text(claim, "why", text);
}

static void set_largest(struct claim *claim, const struct leader *leader,
                        const struct leaders *leaders) {
    char label[LABEL_BYTES];
    frame_label_alone(leader->frame, label, sizeof label, LABEL_COLUMNS);
    *claim = (struct claim){.key = CLAIM_LARGEST};
    claim_set_text(claim, "where", label);
    claim_set(claim, "bytes", leader->value);
    claim_set(claim, "stands_out", leader->value >= leaders->whole / 100 * MOST_PERCENT);
}

static bool find(struct leaders *leaders, const struct site_list *sites, bool has_census) {
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < sites->sites.count; i++)
        is_ok = leaders_add(leaders, &sites->sites.items[i], has_census);
    return is_ok;
}

bool claim_of_largest(struct claim *claim, const struct profile *profile,
                      const struct frame_names *names, bool *has_any) {
    const enum measure by = way_measure(profile);
    const struct measured whole = measure_total(by, profile);
    struct leaders leaders = {0};
    struct site_list sites;
    struct error unused;
    *has_any = false;
    if (!site_list_build(&sites, profile, names, by, 0, false, &unused)) return false;
    bool is_ok = find(&leaders, &sites, profile->recording->header.has_census);
    const struct leader *most = leaders_join(&leaders);
    const int64_t few = way_lacks_samples(profile) ? measured_samples(whole) : 0;
    *has_any = leaders.whole > 0;
    if (few || !most || leaders.unnamed[NAMED] < leaders.whole / 2)
        set_unknown(claim, &leaders, few);
    else
        set_largest(claim, most, &leaders);
    claim_set(claim, "of_bytes", leaders.whole);
    claim_set_text(claim, "what", way_noun(profile));
    claim_set_sure(claim, profile);
    array_free(&leaders.list);
    site_list_free(&sites);
    return is_ok;
}
