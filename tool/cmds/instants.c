// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/instants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/model/moment_estimates.h"
#include "tool/render/interval.h"

enum { WORD_BYTES = 128, WHEN_BYTES = 256 };

bool instants_read(const struct command_args *args, struct instants_request *request,
                   struct error *error) {
    static const struct {
        enum option_id option;
        enum instants_kind kind;
    } options[] = {{OPTION_AT, INSTANTS_AT},
                   {OPTION_BETWEEN, INSTANTS_BETWEEN},
                   {OPTION_SINCE, INSTANTS_SINCE}};
    const char *name = args->command->name;
    *request = (struct instants_request){0};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!args_has(args, options[i].option)) continue;
        if (request->kind)
            return error_set(error, "%s: only one of --at, --between and --since", name);
        *request =
            (struct instants_request){options[i].kind, args_text(args, options[i].option, "")};
    }
    if (!request->kind) return true;
    if (args_has(args, OPTION_BY) || args_has(args, OPTION_THREAD) ||
        args_has(args, OPTION_LIFESPAN))
        return error_set(error,
                         "%s: of a moment it is known what stacks held, not --by another measure, "
                         "--thread or --lifespan",
                         name);
    if (request->kind == INSTANTS_BETWEEN && !strchr(request->text, ','))
        return error_set(
            error, "%s: --between needs two moments with a comma between them: 10s,exit", name);
    return true;
}

static void set_then(struct profile *profile, const struct held *held, const struct held *before) {
    profile->then_bytes = profile->then_blocks = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        stack->then_bytes = held[stack->number].bytes;
        stack->then_blocks = held[stack->number].blocks;
        if (before) stack->then_bytes -= before[stack->number].bytes;
        if (before) stack->then_blocks -= before[stack->number].blocks;
        if (stack->then_bytes > 0) profile->then_bytes += stack->then_bytes;
        if (stack->then_blocks > 0) profile->then_blocks += stack->then_blocks;
    }
}

// How sure that is; of a difference the sum is that of what grew.
static void set_estimates(struct profile *profile, const struct estimate *estimates) {
    struct estimate *sum = &profile->estimates[ESTIMATED_THEN];
    *sum = (struct estimate){0};
    for (size_t i = 0; estimates && i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        stack->estimates[ESTIMATED_THEN] = estimates[stack->number];
        if (stack->then_bytes > 0) estimate_add(sum, &estimates[stack->number]);
    }
}

static void add_totals(struct opened *opened, const char *what) {
    const struct profile *profile = &opened->profile;
    struct measured bytes = measure_total(MEASURE_THEN, profile);
    size_t used = strlen(opened->then);
    snprintf(opened->then + used, sizeof opened->then - used, ": %s%s in %s%s %s%s",
             units_size(profile->then_bytes).text, interval_text(bytes, true, false).text,
             bytes.variance > 0 ? "about " : "", units_count(profile->then_blocks).text,
             profile->then_blocks == 1 ? "block" : "blocks", what);
}

static bool is_sampled(const struct moments *moments) {
    return moments->profile->sampling.is_on;
}

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for the values of a moment");
}

// Cells whose value at a moment found no room count as nothing.
static void add_missing(const struct moments *moments, const struct instant *instant,
                        struct opened *opened) {
    size_t used = strlen(opened->then);
    uint64_t missing = 0;
    if (instant->kind == INSTANT_MOMENT) missing = moments->list[instant->moment].missing_values;
    if (missing)
        snprintf(opened->then + used, sizeof opened->then - used, " (missing for lack of room: %s)",
                 units_counted((int64_t)missing, "value", "values").text);
}

static bool apply_at(const struct moments *moments, const char *text, struct opened *opened,
                     struct error *error) {
    struct instant instant;
    char when[WHEN_BYTES];
    if (!instant_find(moments, text, &instant, error)) return false;
    struct held *held = instant_held(moments, &instant);
    struct estimate *estimates =
        is_sampled(moments) ? moment_estimates_at(moments, &instant) : NULL;
    if (held) set_then(&opened->profile, held, NULL);
    set_estimates(&opened->profile, estimates);
    bool is_ok = held && (estimates || !is_sampled(moments));
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    instant_text(moments, &instant, when, sizeof when);
    snprintf(opened->then, sizeof opened->then, "then: %s", when);
    add_totals(opened, "");
    add_missing(moments, &instant, opened);
    return true;
}

static bool apply_between(const struct moments *moments, const char *text, struct opened *opened,
                          struct error *error) {
    char word[WORD_BYTES], first[WHEN_BYTES], second[WHEN_BYTES];
    const char *comma = strchr(text, ',');
    struct instant from, to;
    snprintf(word, sizeof word, "%.*s", (int)(comma - text), text);
    if (!instant_find(moments, word, &from, error) || !instant_find(moments, comma + 1, &to, error))
        return false;
    if (to.at_ns < from.at_ns)
        return error_set(error, "--between %s: the second moment is before the first", text);
    struct held *before = instant_held(moments, &from), *held = instant_held(moments, &to);
    struct estimate *estimates =
        is_sampled(moments) ? moment_estimates_between(moments, &from, &to) : NULL;
    bool is_ok = before && held && (estimates || !is_sampled(moments));
    if (is_ok) set_then(&opened->profile, held, before);
    set_estimates(&opened->profile, estimates);
    free(before);
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    instant_text(moments, &from, first, sizeof first);
    instant_text(moments, &to, second, sizeof second);
    snprintf(opened->then, sizeof opened->then, "from %s to %s", first, second);
    add_totals(opened, " more in stacks that grew");
    add_missing(moments, &from, opened);
    add_missing(moments, &to, opened);
    return true;
}

static bool apply_since(const struct moments *moments, const char *text, struct opened *opened,
                        struct error *error) {
    struct instant instant;
    char when[WHEN_BYTES];
    if (!instant_find_mark(moments, text, &instant, error)) return false;
    uint32_t generation = moments->list[instant.moment].generation;
    struct held *held = moments_since(moments, generation);
    struct estimate *estimates =
        is_sampled(moments) ? moment_estimates_since(moments, generation) : NULL;
    bool is_ok = held && (estimates || !is_sampled(moments));
    if (is_ok) set_then(&opened->profile, held, NULL);
    set_estimates(&opened->profile, estimates);
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    instant_text(moments, &instant, when, sizeof when);
    snprintf(opened->then, sizeof opened->then, "allocated since %s, and still live", when);
    add_totals(opened, "");
    return true;
}

bool instants_apply(const struct instants_request *request, struct opened *opened,
                    struct error *error) {
    struct moments moments;
    bool is_ok = false;
    if (!request->kind) return true;
    if (opened->process_count > 1)
        return error_set(error, "moments of several processes cannot be added up: --process NAME");
    if (!moments_build(&moments, &opened->profile, error)) return false;
    if (request->kind == INSTANTS_AT) is_ok = apply_at(&moments, request->text, opened, error);
    if (request->kind == INSTANTS_BETWEEN)
        is_ok = apply_between(&moments, request->text, opened, error);
    if (request->kind == INSTANTS_SINCE)
        is_ok = apply_since(&moments, request->text, opened, error);
    moments_free(&moments);
    return is_ok;
}
