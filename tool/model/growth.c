// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double second_ns = 1e9;

// Sums of the least squares, by number of a stack. Times are in seconds from the first moment.
struct sums {
    double y, ty, yy;
    int64_t first, last, most;
};

struct fitting {
    const struct moments *moments;
    struct sums *sums;
    double n, t, tt;
};

static void add_values(struct fitting *fitting, const struct held *held, double t) {
    size_t count = fitting->moments->profile->built_stack_count;
    bool is_first = fitting->n == 0;
    fitting->n++;
    fitting->t += t;
    fitting->tt += t * t;
    for (size_t i = 0; i < count; i++) {
        struct sums *sums = &fitting->sums[i];
        double y = (double)held[i].bytes;
        sums->y += y;
        sums->ty += t * y;
        sums->yy += y * y;
        if (is_first) sums->first = held[i].bytes;
        if (held[i].bytes > sums->most) sums->most = held[i].bytes;
        sums->last = held[i].bytes;
    }
}

static struct instant end_of(const struct moments *moments) {
    struct instant end = {.kind = INSTANT_EXIT};
    (void)instant_find(moments, "exit", &end, NULL);
    return end;
}

static bool is_looked_at(const struct growth *growth, const struct moments *moments, size_t index) {
    const struct moment *moment = &moments->list[index];
    return moment->has_values && moment->reason != CAIRN_MOMENT_EXIT &&
           (index - growth->first) % growth->step == 0;
}

// What was held at the i-th moment from the first on that has values, and at the end; for free().
static bool add_all(struct growth *growth, struct fitting *fitting) {
    const struct moments *moments = fitting->moments;
    for (size_t i = growth->first; i <= moments->count; i++) {
        bool is_end = i == moments->count;
        if (!is_end && !is_looked_at(growth, moments, i)) continue;
        struct instant instant = end_of(moments);
        if (!is_end)
            instant = (struct instant){INSTANT_MOMENT, i, moments->list[i].at_ns, false, 0};
        struct held *held = instant_held(moments, &instant);
        if (!held) return false;
        if (!growth->moment_count++) growth->from_ns = instant.at_ns;
        growth->to_ns = instant.at_ns;
        add_values(fitting, held, ((double)instant.at_ns - (double)growth->from_ns) / second_ns);
        free(held);
    }
    return true;
}

static double suspicion(const struct growth_stack *stack) {
    return stack->bytes_per_s * stack->fit;
}

static int compare(const void *a, const void *b) {
    const struct growth_stack *first = a, *second = b;
    double x = suspicion(first), y = suspicion(second);
    if (x != y) return x < y ? 1 : -1;
    return (first->stack > second->stack) - (first->stack < second->stack);
}

static void fit_stack(struct growth *growth, const struct fitting *fitting, uint32_t index) {
    const struct stack *stack = &fitting->moments->profile->stacks[index];
    const struct sums *sums = &fitting->sums[stack->number];
    double n = fitting->n, t_spread = n * fitting->tt - fitting->t * fitting->t;
    double y_spread = n * sums->yy - sums->y * sums->y;
    double common = n * sums->ty - fitting->t * sums->y;
    if (!(t_spread > 0) || !(y_spread > 0) || !(common > 0) || sums->last <= sums->first) return;
    double fit = common * common / (t_spread * y_spread);
    growth->list[growth->count++] = (struct growth_stack){.stack = index,
                                                          .bytes_per_s = common / t_spread,
                                                          .fit = fit < 1 ? fit : 1,
                                                          .first_bytes = sums->first,
                                                          .last_bytes = sums->last,
                                                          .most_bytes = sums->most};
}

bool growth_build(struct growth *growth, const struct moments *moments, size_t first, size_t most,
                  struct error *error) {
    const struct profile *profile = moments->profile;
    struct fitting fitting = {.moments = moments,
                              .sums = calloc(profile->built_stack_count + 1, sizeof(struct sums))};
    *growth = (struct growth){.first = first,
                              .step = (moments->count - first) / most + 1,
                              .list = calloc(profile->stack_count + 1, sizeof *growth->list)};
    bool is_ok = fitting.sums && growth->list && add_all(growth, &fitting);
    for (size_t i = 0; is_ok && growth->moment_count >= GROWTH_MOMENTS_MIN; i++) {
        if (i == profile->stack_count) break;
        fit_stack(growth, &fitting, (uint32_t)i);
    }
    free(fitting.sums);
    if (is_ok && growth->count) qsort(growth->list, growth->count, sizeof *growth->list, compare);
    if (is_ok) return true;
    growth_free(growth);
    return error_set(error, "no memory for the growth of this recording");
}

void growth_free(struct growth *growth) {
    free(growth->list);
    *growth = (struct growth){0};
}

size_t growth_first(const struct moments *moments) {
    for (size_t i = 0; i < moments->count; i++)
        if (moments->list[i].reason == CAIRN_MOMENT_MARK && moments->list[i].has_values) return i;
    return 0;
}

int64_t *growth_values(const struct growth *growth, const struct moments *moments, size_t stacks) {
    const struct profile *profile = moments->profile;
    int64_t *values = calloc(stacks * growth->moment_count + 1, sizeof *values);
    size_t column = 0;
    for (size_t i = growth->first; values && i <= moments->count; i++) {
        bool is_end = i == moments->count;
        if (!is_end && !is_looked_at(growth, moments, i)) continue;
        struct instant instant = end_of(moments);
        if (!is_end) instant = (struct instant){.kind = INSTANT_MOMENT, .moment = i};
        struct held *held = instant_held(moments, &instant);
        for (size_t row = 0; held && row < stacks; row++)
            values[row * growth->moment_count + column] =
                held[profile->stacks[growth->list[row].stack].number].bytes;
        free(held);
        column++;
    }
    return values;
}
