// SPDX-License-Identifier: Apache-2.0
#include "tool/render/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/render/claims_summary.h"

enum {
    STRONG_PERCENT = 75,  // of the whole: a function with as much stands for it
    HALF_PERCENT = 50,    // enough if no function but the first one has more
    SEEN_PERCENT = 1,     // a node with less is not descended into
    TOLD_PERCENT = 5,     // a function with less is not told where the way parts
    NAMED_PERCENT = 80,   // where less has names, nothing is told of where it parts
    TOLD = 3,
    LABEL_BYTES = 256,
    LABEL_COLUMNS = 48,
    SAMPLES_LEAST = 100,  // of the whole
};

struct step_node {
    uint32_t node, parent;
};

// Sums of the stacks by node, and the nodes that matter, ordered by their parents.
struct sums {
    int64_t *values;  // by node
    int64_t whole;
    int64_t cut;  // of stacks that end before the outermost function, or are not known
    ARRAY(struct step_node) children;
};

enum measure way_measure(const struct profile *profile) {
    return profile_has_frees(profile) ? MEASURE_PEAK : MEASURE_ALLOCATED;
}

const char *way_noun(const struct profile *profile) {
    return profile_has_frees(profile) ? "the peak heap" : "all that was allocated";
}

bool way_lacks_samples(const struct profile *profile) {
    const struct measured whole = measure_total(way_measure(profile), profile);
    return profile->sampling.is_on && measured_samples(whole) < SAMPLES_LEAST;
}

static void sums_free(struct sums *sums) {
    free(sums->values);
    array_free(&sums->children);
}

static int by_parent(const void *a, const void *b) {
    const struct step_node *first = a, *second = b;
    if (first->parent != second->parent) return first->parent < second->parent ? -1 : 1;
    return (first->node > second->node) - (first->node < second->node);
}

static bool has_share(const struct sums *sums, int64_t value, unsigned percent) {
    return value > 0 && value >= sums->whole / 100 * percent;
}

// A child comes behind its parent, so that one pass from the last node on adds all up.
static bool sums_make(struct sums *sums, const struct profile *profile) {
    const struct tree *tree = &profile->tree;
    const struct tree_node *nodes = tree->nodes.items;
    const enum measure by = way_measure(profile);
    size_t count = tree->nodes.count;
    *sums = (struct sums){.values = calloc(count ? count : 1, sizeof *sums->values)};
    if (!sums->values) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t value = measure_value(by, &profile->stacks[i]);
        if (value <= 0) continue;
        sums->whole += value;
        if (profile->stacks[i].cut || profile->stacks[i].node == TREE_ROOT) sums->cut += value;
        sums->values[profile->stacks[i].node] += value;
    }
    if (profile->recording->header.has_census) sums->cut += (int64_t)profile->inherited.bytes;
    for (size_t i = count; i-- > 1;) sums->values[nodes[i].parent] += sums->values[i];
    const int64_t least = sums->whole / 100 * SEEN_PERCENT;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t parent = nodes[i].parent;
        const int64_t above = sums->values[parent];
        if (sums->values[i] <= 0 || above <= 0 || above < least) continue;
        struct step_node *child = array_push(&sums->children);
        if (!child) return false;
        *child = (struct step_node){i, parent};
    }
    if (sums->children.count)
        qsort(sums->children.items, sums->children.count, sizeof *sums->children.items, by_parent);
    return true;
}

static size_t first_child(const struct sums *sums, uint32_t parent) {
    size_t low = 0, high = sums->children.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sums->children.items[middle].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool way_nodes_find(struct way_nodes *nodes, const struct profile *profile) {
    struct sums sums;
    bool is_ok = sums_make(&sums, profile);
    *nodes = (struct way_nodes){0};
    for (size_t i = 0; is_ok && i < sums.children.count; i++) {
        uint32_t *node = array_push(&nodes->nodes);
        is_ok = node != NULL;
        if (node) *node = sums.children.items[i].node;
    }
    sums_free(&sums);
    return is_ok;
}

void way_nodes_free(struct way_nodes *nodes) {
    array_free(&nodes->nodes);
}

// A frame of a node's place: functions are inlined into each other.
struct spot {
    uint32_t node;
    uint32_t level;  // 0: the outermost frame of the place
};

struct spots {
    ARRAY(struct spot) list;
};

// A function with the spots that it has at this step.
struct turn {
    const struct frame *frame;
    int64_t value;
    struct spots spots;
};

struct turns {
    ARRAY(struct turn) list;
};

static void turns_free(struct turns *turns) {
    for (size_t i = 0; i < turns->list.count; i++) array_free(&turns->list.items[i].spots.list);
    array_free(&turns->list);
    *turns = (struct turns){0};
}

struct walk {
    const struct sums *sums;
    const struct profile *profile;
    const struct frame_names *names;
};

static const struct frame *frames_of(const struct walk *walk, uint32_t node, size_t *count) {
    uint32_t place = walk->profile->tree.nodes.items[node].place;
    return walk->names->of_place(walk->names->context, place, count);
}

static bool spots_add(struct spots *spots, struct spot spot) {
    struct spot *added = array_push(&spots->list);
    if (added) *added = spot;
    return added != NULL;
}

static bool turns_add(struct turns *turns, const struct walk *walk, const struct frame *frame,
                      struct spot spot) {
    struct turn *turn = NULL;
    for (size_t i = 0; i < turns->list.count && !turn; i++)
        if (frame_is_same_function(turns->list.items[i].frame, frame)) turn = &turns->list.items[i];
    if (!turn) {
        turn = array_push(&turns->list);
        if (!turn) return false;
        *turn = (struct turn){.frame = frame};
    }
    turn->value += walk->sums->values[spot.node];
    return spots_add(&turn->spots, spot);
}

// Internal frames, code without a name, and what is no code: "allocated before attach", buckets.
static bool is_passed_through(const struct frame *frame) {
    bool is_code = frame->function && (frame->module || frame->file);
    return !is_code || frame_is_hidden(frame, true) || frame_is_bucket(frame);
}

// Adds a spot by its function, or to those that are gone on from.
static bool lead_to(struct turns *turns, const struct walk *walk, struct spots *at,
                    struct spot spot) {
    size_t count;
    const struct frame *frames = frames_of(walk, spot.node, &count);
    const struct frame *frame = &frames[count - 1 - spot.level];
    return is_passed_through(frame) ? spots_add(at, spot) : turns_add(turns, walk, frame, spot);
}

// Finds the named functions that spots lead to. `at` gets, behind its own, those that are passed
// through.
static bool turns_find(struct turns *turns, const struct walk *walk, struct spots *at) {
    const struct sums *sums = walk->sums;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < at->list.count; i++) {
        struct spot spot = at->list.items[i];
        size_t count = 1;
        if (spot.node != TREE_ROOT) frames_of(walk, spot.node, &count);
        if (spot.level + 1 < count) {
            is_ok = lead_to(turns, walk, at, (struct spot){spot.node, spot.level + 1});
            continue;
        }
        for (size_t k = first_child(sums, spot.node);
             is_ok && k < sums->children.count && sums->children.items[k].parent == spot.node; k++)
            is_ok = lead_to(turns, walk, at, (struct spot){sums->children.items[k].node, 0});
    }
    return is_ok;
}

static struct turn *largest_turn(const struct turns *turns) {
    struct turn *largest = NULL;
    for (size_t i = 0; i < turns->list.count; i++)
        if (!largest || turns->list.items[i].value > largest->value)
            largest = &turns->list.items[i];
    return largest;
}

// A function on the way, for the first time there.
struct stage {
    const struct frame *frame, *caller;  // frame NULL: there is none; caller NULL: the outermost
    int64_t value;
};

struct way {
    struct stage first_own, strong, half;
    const struct stage *told;  // the turns are those behind it; NULL: behind the root
    struct turns turns;
    ARRAY(const struct frame *) functions;  // that came by
};

static void way_free(struct way *way) {
    turns_free(&way->turns);
    array_free(&way->functions);
}

static bool is_known(const struct way *way, const struct frame *frame) {
    for (size_t i = 0; i < way->functions.count; i++)
        if (frame_is_same_function(way->functions.items[i], frame)) return true;
    return false;
}

// A library's function counts only where the program's first one calls it, or one without a name,
// and none that only hands malloc on, as PL_malloc does.
static void note_stage(struct way *way, const struct walk *walk, const struct stage *stage) {
    bool is_own = stage->frame->is_own;
    if (!way->first_own.frame && is_own) {
        way->first_own = *stage;
        return;
    }
    bool is_first_call = stage->caller == way->first_own.frame && !stage->frame->is_runtime &&
                         !strcasestr(stage->frame->function, "alloc");
    if (!is_own && !is_first_call) return;
    if (has_share(walk->sums, stage->value, STRONG_PERCENT)) way->strong = *stage;
    if (!way->half.frame) way->half = *stage;
}

static const struct frame *last_function(const struct way *way) {
    return way->functions.count ? way->functions.items[way->functions.count - 1] : NULL;
}

// Goes on to a function: its spots are those to look at next.
static bool enter(struct way *way, const struct walk *walk, struct turn *turn, struct spots *at) {
    const struct stage stage = {turn->frame, last_function(way), turn->value};
    array_free(&at->list);
    *at = turn->spots;
    turn->spots = (struct spots){0};
    if (is_known(way, turn->frame)) return true;
    const struct frame **function = array_push(&way->functions);
    if (!function) return false;
    *function = turn->frame;
    if (!way->told) note_stage(way, walk, &stage);
    return true;
}

// Descends while a function has half of the whole, or until `end` was entered. The turns behind
// the last one stay.
static bool descend(struct way *way, const struct walk *walk, const struct frame *end) {
    struct spots at = {0};
    bool is_on = true, is_ok = spots_add(&at, (struct spot){TREE_ROOT, 0});
    way->functions.count = 0;
    while (is_ok && is_on) {
        turns_free(&way->turns);
        is_ok = turns_find(&way->turns, walk, &at);
        struct turn *largest = largest_turn(&way->turns);
        is_on = is_ok && largest && (!way->told || last_function(way) != end) &&
                has_share(walk->sums, largest->value, HALF_PERCENT);
        if (is_on) is_ok = enter(way, walk, largest, &at);
    }
    array_free(&at.list);
    return is_ok;
}

static int64_t sum_of(const struct turns *turns) {
    int64_t sum = 0;
    for (size_t i = 0; i < turns->list.count; i++) sum += turns->list.items[i].value;
    return sum;
}

static int by_value(const void *a, const void *b) {
    const struct turn *first = a, *second = b;
    return (first->value < second->value) - (first->value > second->value);
}

static bool has_namesake(const struct turns *parts, size_t index) {
    const char *function = parts->list.items[index].frame->function;
    for (size_t i = 0; i < parts->list.count; i++)
        if (i != index && !strcmp(parts->list.items[i].frame->function, function)) return true;
    return false;
}

// Writes the function's name, with its file where another part has the same one: "load (b.c)".
static void label_part(const struct turns *parts, size_t index, char label[LABEL_BYTES]) {
    const struct frame *frame = parts->list.items[index].frame;
    if (has_namesake(parts, index))
        frame_label_in_file(frame, label, LABEL_BYTES, LABEL_COLUMNS);
    else
        frame_label_alone(frame, label, LABEL_BYTES, LABEL_COLUMNS);
}

// "parse 40 %, index 33 %, cache 12 %". False where it does not part, or too little of `value` has
// names.
static bool write_parts(struct turns *parts, int64_t value, const struct sums *sums, char *out,
                        size_t size) {
    char label[LABEL_BYTES];
    size_t used = 0, told = 0;
    int64_t told_value = 0;
    *out = 0;
    if (sum_of(parts) < value / 100 * NAMED_PERCENT || parts->list.count < 2) return false;
    qsort(parts->list.items, parts->list.count, sizeof *parts->list.items, by_value);
    for (; told < parts->list.count && told < TOLD; told++) {
        const struct turn *turn = &parts->list.items[told];
        if (!has_share(sums, turn->value, TOLD_PERCENT)) break;
        told_value += turn->value;
        label_part(parts, told, label);
        used += (size_t)snprintf(out + used, size - used, "%s%s %s", used ? ", " : "", label,
                                 units_percent(turn->value, sums->whole).text);
    }
    if (told < parts->list.count && told_value < value / 100 * STRONG_PERCENT)
        snprintf(out + used, size - used, ", and %zu more", parts->list.count - told);
    return told > 1;
}

static void set_way(struct claim *claim, const struct stage *stage, const char *parts) {
    char label[LABEL_BYTES];
    *claim = (struct claim){.key = CLAIM_WAY};
    frame_label_alone(stage->frame, label, sizeof label, LABEL_COLUMNS);
    claim_set_text(claim, "where", label);
    if (stage->caller) {
        frame_label_alone(stage->caller, label, sizeof label, LABEL_COLUMNS);
        claim_set_text(claim, "caller", label);
    }
    claim_set(claim, "has_caller", stage->caller != NULL);
    if (parts) claim_set_text(claim, "parts", parts);
    claim_set(claim, "does_part", parts != NULL);
    claim_set(claim, "bytes", stage->value);
}

enum { PARTS_BYTES = TOLD * (LABEL_BYTES + 16) };

// That all came through the program's first function says nothing, but where it parts there or
// that function allocates itself.
static bool tell_stage(struct claim *claim, struct way *way, const struct sums *sums) {
    char parts[PARTS_BYTES];
    const struct stage *stage = way->told;
    bool does_part = write_parts(&way->turns, stage->value, sums, parts, sizeof parts);
    bool is_end = has_share(sums, stage->value - sum_of(&way->turns), HALF_PERCENT);
    if (stage == &way->first_own && !does_part && !is_end) {
        if (!way->half.frame) return false;
        stage = &way->half;
    }
    set_way(claim, stage, does_part ? parts : NULL);
    return true;
}

static bool tell_root(struct claim *claim, struct way *way, const struct sums *sums) {
    char parts[PARTS_BYTES];
    if (has_share(sums, sums->cut, SEEN_PERCENT)) return false;  // where they begin is not known
    if (!write_parts(&way->turns, sums->whole, sums, parts, sizeof parts)) return false;
    *claim = (struct claim){.key = CLAIM_WAYS};
    claim_set_text(claim, "parts", parts);
    return true;
}

// Finds the functions first, then the turns behind the one that is told.
static bool find(struct claim *claim, const struct walk *walk, bool *has_any) {
    struct way way = {0};
    const struct frame *end = NULL;
    bool is_ok = descend(&way, walk, NULL);
    way.told = &way.strong;
    if (!way.strong.frame) way.told = &way.first_own;
    if (!way.told->frame && way.half.frame) way.told = &way.half;
    if (way.told->frame) end = way.told->frame;
    is_ok = is_ok && descend(&way, walk, end);
    if (is_ok)
        *has_any = end ? tell_stage(claim, &way, walk->sums) : tell_root(claim, &way, walk->sums);
    way_free(&way);
    return is_ok;
}

bool claim_of_way(struct claim *claim, const struct profile *profile,
                  const struct frame_names *names, bool *has_any) {
    struct sums sums;
    const struct walk walk = {&sums, profile, names};
    bool is_ok = sums_make(&sums, profile);
    *has_any = false;
    if (is_ok && sums.whole > 0 && !way_lacks_samples(profile)) is_ok = find(claim, &walk, has_any);
    if (is_ok && *has_any) {
        claim_set(claim, "of_bytes", sums.whole);
        if (claim->key == CLAIM_WAY) claim_set(claim, "is_least", sums.cut > 0);
        claim_set_text(claim, "what", way_noun(profile));
        claim_set_sure(claim, profile);
    }
    sums_free(&sums);
    return is_ok;
}
