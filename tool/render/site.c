// SPDX-License-Identifier: Apache-2.0
#include "tool/render/site.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/behind.h"

// The frame that leads (frames.h), and the library's function that it called, if one lies between
// it and the allocator. Of all frames, the first.
static void choose_first(const struct frame_list *frames, struct site *site, size_t *index) {
    struct frame_lead lead = {0};
    if (frames->are_all_shown)
        lead.frame = frame_list_next(frames, &lead.next);
    else
        lead = frame_list_lead(frames);
    *index = lead.next;
    site->callee = lead.callee;
    if (lead.frame) site->frames[site->frame_count++] = lead.frame;
}

// A caller that is the same function as the frame before it (recursion) tells nothing new.
static void choose_frames(const struct frame_list *frames, struct site *site) {
    size_t index = 0;
    const struct frame *frame;
    choose_first(frames, site, &index);
    while (site->frame_count < SITE_FRAMES && (frame = frame_list_next(frames, &index))) {
        if (frame_is_same_function(frame, site->frames[site->frame_count - 1])) continue;
        site->frames[site->frame_count++] = frame;
    }
}

static bool is_same_callee(const struct site *a, const struct site *b) {
    if (!a->callee || !b->callee) return a->callee == b->callee;
    return frame_is_same_function(a->callee, b->callee);
}

static bool is_same(const struct site *a, const struct site *b) {
    if (a->frame_count != b->frame_count || !is_same_callee(a, b)) return false;
    for (unsigned i = 0; i < a->frame_count; i++) {
        bool is_equal = i ? frame_is_same_function(a->frames[i], b->frames[i])
                          : frame_is_same(a->frames[i], b->frames[i]);
        if (!is_equal) return false;
    }
    return true;
}

static struct site *find_or_add(struct site_list *list, const struct site *wanted) {
    uint64_t hash = wanted->callee ? frame_hash(wanted->callee, false) : 0;
    for (unsigned i = 0; i < wanted->frame_count; i++)
        hash = hash_mix(hash, frame_hash(wanted->frames[i], i == 0));
    struct index_probe probe = index_probe_start(&list->table, hash);
    for (uint32_t index; index_probe_next(&list->table, &probe, &index);)
        if (is_same(&list->sites.items[index], wanted)) return &list->sites.items[index];
    uint32_t added = (uint32_t)list->sites.count;
    struct site *site = array_push(&list->sites);
    if (!site || !index_table_insert(&list->table, hash, added)) return NULL;
    *site = *wanted;
    return site;
}

// Sums are compared; where they are equal the order stays.
static int compare(const void *a, const void *b) {
    const struct site *first = a, *second = b;
    int64_t x = first->measured.value, y = second->measured.value;
    if (x != y) return x < y ? 1 : -1;
    return (second->stack_count > first->stack_count) - (second->stack_count < first->stack_count);
}

// Whether some frame's being shown may depend on frames further out (frames.h), or the first own
// frame or the first name may lie there.
static bool is_undecided(const struct frame_list *frames, const struct site *site) {
    const struct frame *lead = site->frames[0];
    if (!frames->are_all_shown && (!lead->is_own || !lead->function)) return true;
    for (size_t i = 0; i < frames->frames.count; i++)
        if (frames->frames.items[i]->is_interpreter) return true;
    return false;
}

// By place: whether it has a frame of the program's own. False without memory, where frames are
// shown or not by what lies further out, and where an own frame has no name to lead by.
static bool find_own_places(const struct profile *profile, const struct frame_names *names,
                            bool *have_own) {
    const struct places *places = &profile->places;
    for (size_t place = 0; place < places->list.count; place++) {
        size_t count = 0;
        const struct frame *frames = places->list.items[place].cut
                                         ? NULL
                                         : names->of_place(names->context, (uint32_t)place, &count);
        for (size_t i = 0; i < count; i++) {
            if (frames[i].is_interpreter || (frames[i].is_own && !frames[i].function)) return false;
            have_own[place] |= frames[i].is_own;
        }
    }
    return true;
}

// By node: how many places further out the first own frame lies, SITE_PLACES_MAX: that far there is
// none. For free(); NULL: it is not known. Parents come before their children.
static uint8_t *find_own_distances(const struct profile *profile, const struct frame_names *names) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t count = profile->tree.nodes.count;
    bool *have_own = calloc(profile->places.list.count + 1, sizeof *have_own);
    bool is_known = have_own && find_own_places(profile, names, have_own);
    uint8_t *distances = is_known ? malloc(count) : NULL;
    if (distances) distances[TREE_ROOT] = SITE_PLACES_MAX;
    for (size_t i = 1; distances && i < count; i++) {
        uint8_t further = distances[nodes[i].parent];
        if (further < SITE_PLACES_MAX) further++;
        distances[i] = have_own[nodes[i].place] ? 0 : further;
    }
    free(have_own);
    return distances;
}

// A few places tell the frames of nearly every site, all the more if it is known where the first
// own frame lies; more are looked at if they do not.
static bool find_frames(struct frame_list *frames, const struct profile *profile,
                        const struct frame_names *names, uint32_t node, const uint8_t *distances,
                        struct site *site) {
    uint32_t few = 8, depth = profile->tree.nodes.items[node].depth;
    bool is_known = distances && !frames->are_all_shown;
    if (is_known) few = distances[node] % SITE_PLACES_MAX + SITE_FRAMES;
    const uint32_t places[] = {few < SITE_PLACES_MAX ? few : SITE_PLACES_MAX, SITE_PLACES_MAX};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        site->frame_count = 0;
        if (!frame_list_fill(frames, profile, names, node, places[i])) return false;
        choose_frames(frames, site);
        bool is_decided =
            site->frame_count == SITE_FRAMES && (is_known || !is_undecided(frames, site));
        if (is_decided || depth <= places[i]) break;
    }
    return true;
}

// The site like `wanted`, in which a stack is counted; NULL without memory.
static struct site *count_in(struct site_list *list, const struct site *wanted,
                             struct measured measured, size_t hidden_count) {
    struct site *site = find_or_add(list, wanted);
    if (!site) return NULL;
    measured_add(&site->measured, measured);
    site->stack_count++;
    list->hidden_count += hidden_count;
    return site;
}

bool site_list_add(struct site_list *list, const struct profile *profile,
                   const struct frame_names *names, uint32_t node, struct measured measured,
                   struct frame_list *frames) {
    struct site wanted = {.node = node};
    return find_frames(frames, profile, names, node, NULL, &wanted) &&
           count_in(list, &wanted, measured, frames->first_hidden);
}

// What a site shows is that of the first of its stacks in a ranking, whatever order they come in.
static void note_first(struct site *site, const struct site *wanted) {
    bool is_before =
        wanted->first_value > site->first_value ||
        (wanted->first_value == site->first_value && wanted->first_id < site->first_id);
    if (!is_before) return;
    site->node = wanted->node;
    site->callee = wanted->callee;
    for (unsigned i = 0; i < site->frame_count; i++) site->frames[i] = wanted->frames[i];
    site->first_value = wanted->first_value;
    site->first_id = wanted->first_id;
}

// The frames of a stack were found; in which site it counts is another thread's work.
struct found_frames {
    _Alignas(64) const struct stack *stack;
    const struct frame *frames[SITE_FRAMES];
    const struct frame *callee;
    uint32_t frame_count;
    size_t hidden_count;
};
_Static_assert(BEHIND_BLOCK_BYTES % sizeof(struct found_frames) == 0, "none is cut in two");

struct counting {
    struct site_list *list;
    enum measure measure;
    bool has_failed;
};

static bool count_stack(const struct counting *counting, const struct found_frames *found) {
    struct measured measured = measure_stack(counting->measure, found->stack);
    struct site wanted = {.node = found->stack->node,
                          .callee = found->callee,
                          .frame_count = found->frame_count,
                          .first_value = measured.value,
                          .first_id = found->stack->id};
    memcpy(wanted.frames, found->frames, sizeof wanted.frames);
    struct site *site = count_in(counting->list, &wanted, measured, found->hidden_count);
    if (site) note_first(site, &wanted);
    return site != NULL;
}

static void count_stacks(void *context, const void *bytes, size_t size) {
    struct counting *counting = context;
    const struct found_frames *found = bytes, *end = found + size / sizeof *found;
    for (; found != end && !counting->has_failed; found++)
        counting->has_failed = !count_stack(counting, found);
}

// What the frames of all stacks are looked for by.
struct looking {
    const struct profile *profile;
    const struct frame_names *names;
    uint8_t *distances;  // find_own_distances
    struct frame_list frames;
    struct behind counting;
};

static bool find_stack(struct looking *looking, const struct stack *stack) {
    struct site site = {.node = stack->node};
    struct frame_list *frames = &looking->frames;
    if (!find_frames(frames, looking->profile, looking->names, stack->node, looking->distances,
                     &site))
        return false;
    struct found_frames found = {.stack = stack,
                                 .callee = site.callee,
                                 .frame_count = site.frame_count,
                                 .hidden_count = frames->first_hidden};
    memcpy(found.frames, site.frames, sizeof found.frames);
    behind_put(&looking->counting, &found, sizeof found);
    return true;
}

void site_list_sort(struct site_list *list, size_t count) {
    if (count > 1) qsort(list->sites.items, count, sizeof *list->sites.items, compare);
}

// Equal sites come in the order of their first stacks. Their numbers are compared.
static int compare_first(const void *a, const void *b, void *context) {
    const struct site *sites = context;
    const struct site *first = &sites[*(const uint32_t *)a];
    const struct site *second = &sites[*(const uint32_t *)b];
    if (first->stack_count != second->stack_count)
        return first->stack_count < second->stack_count ? 1 : -1;
    if (first->first_value != second->first_value)
        return first->first_value < second->first_value ? 1 : -1;
    return (first->first_id > second->first_id) - (first->first_id < second->first_id);
}

// Runs of equal values, which is all that their keys say.
static void sort_runs(struct site *sites, uint32_t *order, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count; end++)
            if (sites[order[end]].measured.value != sites[order[first]].measured.value) break;
        if (end - first > 1)
            qsort_r(order + first, end - first, sizeof *order, compare_first, sites);
    }
}

// Puts site `order[i]` at place i, without room for all of them twice: round by round of those
// that take each other's places.
static void arrange(struct site *sites, uint32_t *order, size_t count) {
    for (size_t first = 0; first < count; first++) {
        struct site moved = sites[first];
        size_t at = first;
        while (order[at] != first) {
            size_t from = order[at];
            sites[at] = sites[from];
            order[at] = (uint32_t)at;
            at = from;
        }
        sites[at] = moved;
        order[at] = (uint32_t)at;
    }
}

enum { PART_BITS = 8, BUCKETS = 64 << PART_BITS };

// Values of the same length in bits whose first bits are the same have one bucket, larger ones a
// later one.
static unsigned bucket_of(int64_t value) {
    uint64_t bits = value > 0 ? (uint64_t)value << 1 | 1 : 1;
    unsigned length = 63 - (unsigned)__builtin_clzll(bits);
    uint64_t part =
        length > PART_BITS ? bits >> (length - PART_BITS) : bits << (PART_BITS - length);
    return length << PART_BITS | (unsigned)(part & ((1u << PART_BITS) - 1));
}

// Puts the `most` highest before all others, and with them those that are as high; how many. All
// without memory.
static size_t bring_forward(struct site_list *list, size_t most) {
    struct site *sites = list->sites.items;
    size_t count = list->sites.count, chosen = 0, first = 0;
    unsigned least = BUCKETS;
    uint32_t *counts = most < count ? calloc(BUCKETS, sizeof *counts) : NULL;
    if (!counts) return count;
    for (size_t i = 0; i < count; i++) counts[bucket_of(sites[i].measured.value)]++;
    while (chosen < most) chosen += counts[--least];
    free(counts);
    for (size_t i = 0; i < count && first < chosen; i++) {
        if (bucket_of(sites[i].measured.value) < least) continue;
        struct site moved = sites[i];
        sites[i] = sites[first];
        sites[first++] = moved;
    }
    return chosen;
}

// Highest first, as far as they are asked for. There may be hundreds of thousands, so they are
// sorted by their keys' digits.
static bool sort_built(struct site_list *list, size_t most) {
    size_t count = most ? bring_forward(list, most) : list->sites.count;
    struct site *sites = list->sites.items;
    struct measure_key *keys = calloc(2 * count + 2, sizeof *keys), *sorted = NULL;
    uint32_t *order = calloc(count + 1, sizeof *order);
    bool is_ok = keys && order;
    for (size_t i = 0; is_ok && i < count; i++)
        keys[i] = (struct measure_key){.first = measure_key_of(sites[i].measured.value),
                                       .index = (uint32_t)i};
    if (is_ok) sorted = measure_keys_sort(keys, keys + count + 1, count);
    for (size_t i = 0; is_ok && i < count; i++) order[i] = sorted[i].index;
    free(keys);
    if (is_ok) sort_runs(sites, order, count);
    if (is_ok) arrange(sites, order, count);
    free(order);
    return is_ok;
}

// Stacks as they lie in memory, beside those that they share frames with. Sums of estimates depend
// on the order of their parts in the last digit: samples come in the order of a ranking.
static bool find_stacks(struct looking *looking, enum measure measure) {
    const struct profile *profile = looking->profile;
    size_t count = profile->stack_count;
    bool is_sampled = profile->sampling.is_on;
    uint32_t *ranking = is_sampled ? measure_rank(measure, profile, &count) : NULL;
    bool is_ok = ranking || !is_sampled;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[ranking ? ranking[i] : i];
        if (measure_stack(measure, stack).value > 0) is_ok = find_stack(looking, stack);
    }
    free(ranking);
    return is_ok;
}

enum { STACKS_MANY = 1024 };  // to look at all places for

bool site_list_build(struct site_list *list, const struct profile *profile,
                     const struct frame_names *names, enum measure measure, size_t most,
                     bool are_all_shown, struct error *error) {
    *list = (struct site_list){0};
    struct counting counting = {.list = list, .measure = measure};
    struct looking looking = {
        .profile = profile, .names = names, .frames = {.are_all_shown = are_all_shown}};
    bool is_ok = behind_start(&looking.counting, count_stacks, &counting);
    if (is_ok) {
        if (profile->stack_count >= STACKS_MANY)
            looking.distances = find_own_distances(profile, names);
        is_ok = find_stacks(&looking, measure);
        behind_end(&looking.counting);
    }
    free(looking.distances);
    frame_list_free(&looking.frames);
    // sums of estimates of what is left over depend on their order, too
    if (profile->sampling.is_on) most = 0;
    is_ok = is_ok && !counting.has_failed && sort_built(list, most);
    return is_ok || error_set(error, "no memory for the list of call sites");
}

void site_list_free(struct site_list *list) {
    array_free(&list->sites);
    index_table_free(&list->table);
}
