// SPDX-License-Identifier: Apache-2.0
// What looks say of a stack or the process: values, rates over the last looks, how sure both are.
#include "tool/model/live.h"

#include <math.h>
#include <string.h>

static const double ns_per_s = 1e9;

// Slots of the last look and of the one that rates begin with. False: there is no time between.
static bool find_looks(const struct live *live, size_t *last, size_t *first, double *seconds) {
    if (live->look_count < 2) return false;
    size_t back = live->look_count - 1 < LIVE_LOOKS - 1 ? live->look_count - 1 : LIVE_LOOKS - 1;
    *last = (live->look_count - 1) % LIVE_LOOKS;
    *first = (live->look_count - 1 - back) % LIVE_LOOKS;
    uint64_t from = live->looks[*first].at_ns, to = live->looks[*last].at_ns;
    *seconds = to > from ? (double)(to - from) / ns_per_s : 0;
    return *seconds > 0;
}

static double per_second(uint64_t now, uint64_t then, double seconds) {
    return now > then ? (double)(now - then) / seconds : 0;
}

struct live_rate live_rate_of(const struct live *live, size_t stack) {
    size_t last, first;
    double seconds;
    if (!find_looks(live, &last, &first, &seconds)) return (struct live_rate){0, 0};
    const struct live_stack *more = &live_shown(live)->more.items[stack];
    return (struct live_rate){
        .bytes = per_second(more->past_bytes[last], more->past_bytes[first], seconds),
        .calls = per_second(more->past_calls[last], more->past_calls[first], seconds)};
}

struct live_rate live_rate_total(const struct live *live) {
    size_t last, first;
    double seconds;
    if (!find_looks(live, &last, &first, &seconds)) return (struct live_rate){0, 0};
    const struct live_look *now = &live->looks[last], *then = &live->looks[first];
    return (struct live_rate){.bytes =
                                  per_second(now->allocated_bytes, then->allocated_bytes, seconds),
                              .calls = per_second(now->allocations, then->allocations, seconds)};
}

double live_slope(const struct live *live) {
    size_t last, first;
    double seconds;
    if (!find_looks(live, &last, &first, &seconds)) return 0;
    return ((double)live->looks[last].live_bytes - (double)live->looks[first].live_bytes) / seconds;
}

int64_t live_value(const struct live *live, enum live_measure measure, size_t index) {
    const double most = 0x1p62;
    const struct stack *stack = &live_shown(live)->stacks.items[index];
    double rate;
    switch (measure) {
    case LIVE_GROWTH:
        return figures_add(stack->exit_bytes, -live_shown(live)->more.items[index].base_bytes);
    case LIVE_RATE:
        rate = live_rate_of(live, index).bytes;
        return (int64_t)(rate < most ? rate : most);
    case LIVE_TEMPORARY:
        return (int64_t)stack->temporary;
    default:
        return stack->exit_bytes;
    }
}

// What was held changed by this much between two snapshots: samples that lived in both cancel out,
// so only what came and went makes it unsure. A rarer rate meanwhile shows as what went.
static struct measured change_between(int64_t value, const struct live_sureness *then,
                                      const struct live_sureness *now) {
    double came = now->allocated.bytes_variance - then->allocated.bytes_variance;
    double stayed = now->held.bytes_variance - then->held.bytes_variance;
    int64_t new_samples = now->allocated.samples - then->allocated.samples;
    int64_t more_samples = now->held.samples - then->held.samples;
    double new_uncertain = now->allocated.uncertain - then->allocated.uncertain;
    double more_uncertain = now->held.uncertain - then->held.uncertain;
    double churn = fabs(came) + fabs(came - stayed);
    double both = now->held.bytes_variance + then->held.bytes_variance;
    const struct estimate estimate = {.samples = new_samples + (new_samples - more_samples),
                                      .uncertain = new_uncertain + (new_uncertain - more_uncertain),
                                      .bytes_variance = churn < both ? churn : both,
                                      .bytes_weight = now->held.bytes_weight};
    return measured_bytes(value, &estimate);
}

// Its value is that of a second already.
static struct measured per_second_of(struct measured change, double seconds) {
    change.estimate.bytes_variance /= seconds * seconds;
    change.estimate.bytes_weight /= seconds;
    return change;
}

static struct measured rate_measured(const struct live *live, size_t index) {
    size_t last, first;
    double seconds;
    struct measured rate = {.value = live_value(live, LIVE_RATE, index)};
    if (!find_looks(live, &last, &first, &seconds)) return rate;
    const struct live_sureness *past = live_shown(live)->more.items[index].past;
    const struct estimate *now = &past[last].allocated, *then = &past[first].allocated;
    rate.estimate = (struct estimate){.samples = now->samples - then->samples,
                                      .uncertain = now->uncertain - then->uncertain,
                                      .bytes_variance = now->bytes_variance - then->bytes_variance,
                                      .bytes_weight = now->bytes_weight};
    return per_second_of(rate, seconds);
}

struct measured live_measured(const struct live *live, enum live_measure measure, size_t index) {
    const struct stack *stack = &live_shown(live)->stacks.items[index];
    struct live_sureness now = live_sureness_of(stack_more(stack)->estimates);
    int64_t value = live_value(live, measure, index);
    switch (measure) {
    case LIVE_GROWTH:
        return change_between(value, &live_shown(live)->more.items[index].base, &now);
    case LIVE_RATE:
        return rate_measured(live, index);
    case LIVE_TEMPORARY:
        return (struct measured){.value = value};
    default:
        return measure_stack(MEASURE_EXIT, stack);
    }
}

struct measured live_slope_measured(const struct live *live) {
    const double most = 0x1p62;
    size_t last, first;
    double seconds, slope = live_slope(live);
    int64_t value = (int64_t)(slope < most ? slope : most);
    if (!find_looks(live, &last, &first, &seconds)) return (struct measured){.value = value};
    struct measured change =
        change_between(value, &live->looks[first].sureness, &live->looks[last].sureness);
    return per_second_of(change, seconds);
}

static const char *const measure_names[LIVE_MEASURES] = {"live", "growth", "rate", "temporary"};

const char *live_measure_name(enum live_measure measure) {
    return measure_names[measure];
}

bool live_measure_parse(const char *name, enum live_measure *measure) {
    for (int i = 0; i < LIVE_MEASURES; i++) {
        if (strcmp(name, measure_names[i]) != 0) continue;
        *measure = (enum live_measure)i;
        return true;
    }
    return false;
}
