// SPDX-License-Identifier: Apache-2.0
#include "tool/model/snapshot_choice.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/heaps.h"
#include "tool/model/timeline.h"

enum {
    LABELS_BYTES = 256,
    LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES,
    MINUTE_S = 60,
    DAY_S = 24 * 60 * 60
};
static const uint64_t second_ns = 1000000000;

static uint64_t end_ns(const struct snapshots *snapshots) {
    uint64_t end = recording_last_ns(snapshots->profile->recording);
    for (size_t i = 0; i < snapshots->count; i++)
        if (snapshots->list[i].at_ns > end) end = snapshots->list[i].at_ns;
    return end > snapshots->profile->peak.at_ns ? end : snapshots->profile->peak.at_ns;
}

static struct snapshot_choice at_snapshot(const struct snapshots *snapshots, size_t index) {
    return (struct snapshot_choice){
        .kind = CHOICE_SNAPSHOT, .snapshot = index, .at_ns = snapshots->list[index].at_ns};
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

// The neighbours of a time among the snapshots, the peak and the end.
struct neighbours {
    struct snapshot_choice before, after;
    bool has_before, has_after;
};

static void note_neighbour(struct neighbours *near, struct snapshot_choice choice,
                           uint64_t wanted_ns) {
    bool is_before = choice.at_ns <= wanted_ns;
    if (is_before && (!near->has_before || choice.at_ns >= near->before.at_ns))
        near->before = choice;
    if (!is_before && (!near->has_after || choice.at_ns < near->after.at_ns)) near->after = choice;
    near->has_before |= is_before;
    near->has_after |= !is_before;
}

static int64_t live_at(const struct snapshots *snapshots, const struct snapshot_choice *choice) {
    const struct profile *profile = snapshots->profile;
    if (choice->kind == CHOICE_SNAPSHOT) return snapshots->list[choice->snapshot].live_bytes;
    if (profile->heap)
        return choice->kind == CHOICE_PEAK ? profile->peak.bytes : profile->exit_bytes;
    return choice->kind == CHOICE_PEAK ? (int64_t)profile->figures.peak_bytes
                                       : profile->figures.exit_bytes;
}

// By what was live in all; if that is the same or not known, by time.
static bool is_after_nearer(const struct snapshots *snapshots, const struct neighbours *near,
                            const struct snapshot_choice *wanted) {
    uint64_t before_ns = wanted->wanted_ns - near->before.at_ns;
    uint64_t after_ns = near->after.at_ns - wanted->wanted_ns;
    if (!wanted->has_wanted_live) return after_ns < before_ns;
    uint64_t live = (uint64_t)wanted->wanted_live_bytes;
    uint64_t before = distance((uint64_t)live_at(snapshots, &near->before), live);
    uint64_t after = distance((uint64_t)live_at(snapshots, &near->after), live);
    return after == before ? after_ns < before_ns : after < before;
}

static bool find_live_at(const struct profile *profile, uint64_t at_ns, int64_t *bytes) {
    struct cairn_heap_points points;
    struct cairn_point point;
    if (!profile->heap) return timeline_live_at(profile->recording, at_ns, bytes);
    if (!heap_points_find(profile->recording, profile->heap_scope, &points) ||
        !heap_points_at(&points, at_ns, &point))
        return false;
    *bytes = point.last_bytes;
    return true;
}

static struct snapshot_choice nearest(const struct snapshots *snapshots, uint64_t wanted_ns) {
    struct neighbours near = {0};
    struct snapshot_choice wanted = {.is_nearest = true, .wanted_ns = wanted_ns};
    wanted.has_wanted_live = find_live_at(snapshots->profile, wanted_ns, &wanted.wanted_live_bytes);
    struct snapshot_choice peak = {.kind = CHOICE_PEAK, .at_ns = snapshots->profile->peak.at_ns};
    note_neighbour(&near, peak, wanted_ns);
    for (size_t i = 0; i < snapshots->count; i++)
        if (snapshots->list[i].has_values)
            note_neighbour(&near, at_snapshot(snapshots, i), wanted_ns);
    struct snapshot_choice end = {.kind = CHOICE_EXIT, .at_ns = end_ns(snapshots)};
    note_neighbour(&near, end, wanted_ns);
    bool is_met = near.has_before && near.before.at_ns == wanted_ns;
    bool is_after = near.has_after && !is_met &&
                    (!near.has_before || is_after_nearer(snapshots, &near, &wanted));
    struct snapshot_choice best = is_after ? near.after : near.before;
    wanted.kind = best.kind;
    wanted.snapshot = best.snapshot;
    wanted.at_ns = best.at_ns;
    return wanted;
}

// Two digits and what must follow them.
static bool read_two(const char **text, int *number) {
    if (!isdigit((unsigned char)(*text)[0]) || !isdigit((unsigned char)(*text)[1])) return false;
    *number = ((*text)[0] - '0') * 10 + (*text)[1] - '0';
    *text += 2;
    return true;
}

// "14:30" or "14:30:05".
static bool read_clock(const char *text, struct tm *tm) {
    tm->tm_sec = 0;
    if (!read_two(&text, &tm->tm_hour) || *text++ != ':' || !read_two(&text, &tm->tm_min))
        return false;
    if (*text == ':' && (text++, !read_two(&text, &tm->tm_sec))) return false;
    return !*text && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

// "2026-11-21 " or "2026-11-21T" in front; what follows it, or NULL.
static const char *read_date(const char *text, struct tm *tm) {
    int year, month, day, length = 0;
    char separator = 0;
    if (sscanf(text, "%4d-%2d-%2d%c%n", &year, &month, &day, &separator, &length) < 4 ||
        (separator != ' ' && separator != 'T'))
        return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return text + length;
}

// A time of the clock as an offset; a time without a date is the first one not before the start, or
// the second or minute of the start itself.
static bool read_wall_time(const struct snapshots *snapshots, const char *text, uint64_t *ns,
                           bool *is_before) {
    const struct cairn_header *header = &snapshots->profile->recording->header;
    time_t start = (time_t)(header->start_unix_ns / second_ns);
    struct tm tm;
    tzset();
    if (!localtime_r(&start, &tm)) return false;
    const char *clock = read_date(text, &tm);
    if (!read_clock(clock ? clock : text, &tm)) return false;
    tm.tm_isdst = -1;
    time_t wanted = mktime(&tm), length = strchr(strchr(text, ':') + 1, ':') ? 1 : MINUTE_S;
    if (!clock && wanted + length < start) wanted += DAY_S;
    *ns = wanted > start ? (uint64_t)(wanted - start) * second_ns : 0;
    *is_before = wanted + length < start;
    return true;
}

// `is_before`: the time is before the recording's start, which stands for it.
static bool read_time(const struct snapshots *snapshots, const char *text, uint64_t *ns,
                      bool *is_before) {
    uint64_t end = end_ns(snapshots);
    bool is_from_end = *text == '-';
    *is_before = false;
    if (!units_duration_parse(text + is_from_end, ns))
        return read_wall_time(snapshots, text, ns, is_before);
    *is_before = is_from_end && *ns > end;
    if (is_from_end) *ns = *ns < end ? end - *ns : 0;
    return true;
}

// A time that the recording does not have; a second more or less is none of those.
static bool is_outside(const struct snapshots *snapshots, uint64_t ns, bool is_before) {
    return is_before || ns > end_ns(snapshots) + second_ns;
}

static bool refuse_time(const struct snapshots *snapshots, const char *text, struct error *error) {
    enum { CLOCK_BYTES = 16 };
    char clock[CLOCK_BYTES] = "";
    time_t start = (time_t)(snapshots->profile->recording->header.start_unix_ns / second_ns);
    struct tm tm;
    if (localtime_r(&start, &tm)) strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    return error_set(error, "\"%s\" is outside of the recording: it began at %s and lasted %s",
                     text, clock, units_duration(end_ns(snapshots)).text);
}

// The last snapshot of that label.
static bool find_label(const struct snapshots *snapshots, const char *text,
                       struct snapshot_choice *choice) {
    for (size_t i = snapshots->count; i-- > 0;) {
        if (!*snapshots->list[i].label || strcmp(snapshots->list[i].label, text) != 0) continue;
        *choice = at_snapshot(snapshots, i);
        return true;
    }
    return false;
}

// "; labels: warm, load", or that there are none.
static void list_labels(const struct snapshots *snapshots, bool are_marks, char *out, size_t size) {
    const char *separator = are_marks ? "; marks: " : "; labels: ";
    *out = 0;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct snapshot *snapshot = &snapshots->list[i];
        if (!*snapshot->label || (are_marks && snapshot->reason != CAIRN_SNAPSHOT_MARK)) continue;
        char label[LABEL_TEXT_BYTES];
        size_t used = strlen(out);
        text_escape(label, sizeof label, snapshot->label);
        snprintf(out + used, size - used, "%s%s", separator, label);
        separator = ", ";
    }
    if (!*out) snprintf(out, size, "; the recording has no %s", are_marks ? "marks" : "labels");
}

static bool refuse(const struct snapshots *snapshots, const char *text, bool are_marks,
                   struct error *error) {
    char labels[LABELS_BYTES];
    list_labels(snapshots, are_marks, labels, sizeof labels);
    error_set(error, "\"%s\" is no %s, nor a time such as 10s, -1m or 14:30%s", text,
              are_marks ? "mark" : "label", labels);
    return false;
}

bool snapshot_choose(const struct snapshots *snapshots, const char *text,
                     struct snapshot_choice *choice, struct error *error) {
    uint64_t wanted_ns;
    if (find_label(snapshots, text, choice)) {
        if (snapshots->list[choice->snapshot].has_values) return true;
        return error_set(error,
                         "what stacks held at \"%s\" is not in this recording: --since %s works "
                         "for marks",
                         text, text);
    }
    if (!strcmp(text, "peak")) {
        *choice =
            (struct snapshot_choice){.kind = CHOICE_PEAK, .at_ns = snapshots->profile->peak.at_ns};
        return true;
    }
    if (!strcmp(text, "exit") || !strcmp(text, "now")) {
        *choice = (struct snapshot_choice){.kind = CHOICE_EXIT, .at_ns = end_ns(snapshots)};
        return true;
    }
    bool is_before;
    if (!read_time(snapshots, text, &wanted_ns, &is_before))
        return refuse(snapshots, text, false, error);
    if (is_outside(snapshots, wanted_ns, is_before)) return refuse_time(snapshots, text, error);
    *choice = nearest(snapshots, wanted_ns);
    return true;
}

bool snapshot_choose_mark(const struct snapshots *snapshots, const char *text,
                          struct snapshot_choice *choice, struct error *error) {
    uint64_t wanted_ns;
    if (find_label(snapshots, text, choice)) {
        if (snapshots->list[choice->snapshot].reason == CAIRN_SNAPSHOT_MARK) return true;
        return error_set(error,
                         "\"%s\" is a snapshot: what was allocated since is known of marks "
                         "(cairn ctl mark); --between %s,exit has the difference",
                         text, text);
    }
    bool is_before;
    if (!read_time(snapshots, text, &wanted_ns, &is_before))
        return refuse(snapshots, text, true, error);
    for (size_t i = snapshots->count; i-- > 0;) {
        const struct snapshot *snapshot = &snapshots->list[i];
        if (snapshot->reason != CAIRN_SNAPSHOT_MARK || snapshot->at_ns > wanted_ns) continue;
        *choice = at_snapshot(snapshots, i);
        choice->is_nearest = true;
        choice->wanted_ns = wanted_ns;
        return true;
    }
    char labels[LABELS_BYTES];
    list_labels(snapshots, true, labels, sizeof labels);
    return error_set(error, "there was no mark before %s%s", units_duration(wanted_ns).text,
                     labels);
}

struct live_at *snapshot_choice_live(const struct snapshots *snapshots,
                                     const struct snapshot_choice *choice) {
    const struct profile *profile = snapshots->profile;
    if (choice->kind == CHOICE_SNAPSHOT) return snapshots_live(snapshots, choice->snapshot);
    struct live_at *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t i = 0; held && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool is_peak = choice->kind == CHOICE_PEAK;
        held[stack->number].bytes = is_peak ? stack->peak_bytes : stack->exit_bytes;
        held[stack->number].blocks = is_peak ? stack->peak_blocks : stack->exit_blocks;
    }
    return held;
}

void snapshot_choice_text(const struct snapshots *snapshots, const struct snapshot_choice *choice,
                          char *out, size_t size) {
    char what[LABEL_TEXT_BYTES + 16] = "the peak", near[64] = "";
    if (choice->kind == CHOICE_EXIT)
        snprintf(what, sizeof what,
                 profile_has_ended(snapshots->profile) ? "the end" : "the present");
    if (choice->kind == CHOICE_SNAPSHOT) {
        const struct snapshot *snapshot = &snapshots->list[choice->snapshot];
        char label[LABEL_TEXT_BYTES];
        text_escape(label, sizeof label, snapshot->label);
        const char *kind = snapshot->reason == CAIRN_SNAPSHOT_MARK ? "mark" : "snapshot";
        snprintf(what, sizeof what, "%s%s%s%s", kind, *label ? " \"" : "", label,
                 *label ? "\"" : "");
    }
    if (choice->is_nearest && choice->at_ns != choice->wanted_ns)
        snprintf(near, sizeof near, ", nearest to %s", units_duration(choice->wanted_ns).text);
    snprintf(out, size, "%s, at %s%s", what, units_duration(choice->at_ns).text, near);
}

// Samples that came and that went, and the variance of both.
struct behind {
    int64_t came, went;
    double bytes_came, bytes_went, blocks_came, blocks_went;
    double extra;  // blocks that those which live stand for beyond themselves
};

// Of one stack's cells of one generation.
struct group {
    uint32_t stack, generation;
    struct behind from, to;
};

static struct behind behind_of(const struct cairn_sample_value *sums) {
    return (struct behind){.came = (int64_t)sums->calls,
                           .went = (int64_t)sums->frees,
                           .bytes_came = sums->allocated_variance,
                           .bytes_went = sums->freed_variance,
                           .blocks_came = sums->calls_variance,
                           .blocks_went = sums->frees_variance,
                           .extra = (double)(int64_t)sums->extra / CAIRN_SAMPLE_ONE};
}

// Of the peak only the difference of both is known.
static struct behind behind_peak(const struct profile *profile, size_t cell) {
    struct cell_values values;
    if (!profile_cell(profile, cell, &values)) return (struct behind){0};
    const struct estimate *estimate = &values.estimates[ESTIMATED_PEAK];
    return (struct behind){.came = estimate->samples,
                           .bytes_came = estimate->bytes_variance,
                           .blocks_came = estimate->blocks_variance,
                           .extra = estimate->extra_blocks};
}

static struct behind behind_at(const struct snapshots *snapshots,
                               const struct snapshot_choice *choice, size_t cell) {
    struct cairn_sample_value sums;
    if (choice->kind == CHOICE_PEAK) return behind_peak(snapshots->profile, cell);
    if (choice->kind == CHOICE_EXIT)
        snapshots_cell_samples_now(snapshots, cell, &sums);
    else
        snapshots_cell_samples(snapshots, choice->snapshot, cell, &sums);
    return behind_of(&sums);
}

static void add(struct behind *sum, struct behind added) {
    sum->came = (int64_t)((uint64_t)sum->came + (uint64_t)added.came);
    sum->went = (int64_t)((uint64_t)sum->went + (uint64_t)added.went);
    sum->bytes_came += added.bytes_came;
    sum->bytes_went += added.bytes_went;
    sum->blocks_came += added.blocks_came;
    sum->blocks_went += added.blocks_went;
    sum->extra += added.extra;
}

static double positive(double value) {
    return value > 0 ? value : 0;
}

static struct estimate live_of(const struct sampled_scale *scale, const struct behind *behind) {
    return sampled_estimate(scale, behind->came - behind->went, behind->extra,
                            positive(behind->bytes_came - behind->bytes_went),
                            positive(behind->blocks_came - behind->blocks_went));
}

// What came or went in between; how many blocks that stands for is not known of each.
static struct estimate moved_of(const struct sampled_scale *scale, const struct group *group) {
    const struct behind *from = &group->from, *to = &group->to;
    return sampled_estimate(
        scale, to->came - from->came + to->went - from->went, 0,
        positive(to->bytes_came - from->bytes_came + to->bytes_went - from->bytes_went),
        positive(to->blocks_came - from->blocks_came + to->blocks_went - from->blocks_went));
}

static struct estimate change_of(const struct sampled_scale *scale, const struct group *group,
                                 bool is_moved_known) {
    struct estimate change = live_of(scale, &group->from), later = live_of(scale, &group->to);
    estimate_add(&change, &later);
    struct estimate moved = moved_of(scale, group);
    bool is_less = is_moved_known && moved.bytes_variance <= change.bytes_variance;
    if (is_less) change.samples = moved.samples;
    if (is_less) change.uncertain = moved.uncertain;
    if (is_less) change.bytes_variance = moved.bytes_variance;
    if (is_moved_known && moved.blocks_variance < change.blocks_variance) {
        change.blocks_variance = moved.blocks_variance;
        change.extra_blocks = 0;
    }
    estimate_forget_limits(&change);
    return change;
}

static int compare(const void *a, const void *b) {
    const struct group *first = a, *second = b;
    if (first->stack != second->stack) return first->stack < second->stack ? -1 : 1;
    return (first->generation > second->generation) - (first->generation < second->generation);
}

// One for each cell; then cells of the same stack and generation become one.
static struct group *groups_of(const struct snapshots *snapshots,
                               const struct snapshot_choice *from, const struct snapshot_choice *to,
                               size_t *count) {
    const struct profile *profile = snapshots->profile;
    struct group *groups = calloc(profile->cell_count + 1, sizeof *groups);
    size_t cells = 0;
    *count = 0;
    if (!groups) return NULL;
    for (size_t id = 0; id < profile->cell_count; id++) {
        struct group *group = &groups[cells];
        if (!snapshots_cell_origin(snapshots, id, &group->stack, &group->generation)) continue;
        if (from) group->from = behind_at(snapshots, from, id);
        group->to = behind_at(snapshots, to, id);
        cells++;
    }
    qsort(groups, cells, sizeof *groups, compare);
    for (size_t i = 0; i < cells; i++) {
        if (!*count || compare(&groups[*count - 1], &groups[i])) {
            groups[(*count)++] = groups[i];
            continue;
        }
        add(&groups[*count - 1].from, groups[i].from);
        add(&groups[*count - 1].to, groups[i].to);
    }
    return groups;
}

static struct estimate *by_stack(const struct snapshots *snapshots) {
    return calloc(snapshots->profile->built_stack_count + 1, sizeof(struct estimate));
}

struct estimate *snapshot_estimates_between(const struct snapshots *snapshots,
                                            const struct snapshot_choice *from,
                                            const struct snapshot_choice *to) {
    bool has_peak = (from && from->kind == CHOICE_PEAK) || to->kind == CHOICE_PEAK;
    bool is_moved_known = !has_peak && !snapshots->profile->sampling.thinned_count;
    size_t count;
    struct group *groups = groups_of(snapshots, from, to, &count);
    struct estimate *estimates = groups ? by_stack(snapshots) : NULL;
    const struct sampled_scale *scale = &snapshots->profile->figures.scale;
    for (size_t i = 0; estimates && i < count; i++) {
        struct estimate change =
            from ? change_of(scale, &groups[i], is_moved_known) : live_of(scale, &groups[i].to);
        estimate_add(&estimates[groups[i].stack], &change);
    }
    free(groups);
    return estimates;
}

struct estimate *snapshot_estimates_at(const struct snapshots *snapshots,
                                       const struct snapshot_choice *choice) {
    return snapshot_estimates_between(snapshots, NULL, choice);
}

// Returns what an estimate says of blocks that no sample met.
static struct estimate unmet_of(struct estimate estimate) {
    estimate.samples = 0;
    estimate.uncertain = estimate.extra_blocks = 0;
    estimate.bytes_variance = estimate.blocks_variance = 0;
    return estimate;
}

// A stack whose samples are all older may have allocated since, and no sample met it.
struct estimate *snapshot_estimates_since(const struct snapshots *snapshots, uint32_t generation) {
    struct estimate *estimates = by_stack(snapshots);
    for (size_t id = 0; estimates && id < snapshots->profile->cell_count; id++) {
        struct cell_values values;
        uint32_t stack, own_generation;
        if (!snapshots_cell_origin(snapshots, id, &stack, &own_generation) ||
            !profile_cell(snapshots->profile, id, &values))
            continue;
        struct estimate estimate = values.estimates[ESTIMATED_EXIT];
        if (own_generation < generation) estimate = unmet_of(estimate);
        estimate_add(&estimates[stack], &estimate);
    }
    return estimates;
}
