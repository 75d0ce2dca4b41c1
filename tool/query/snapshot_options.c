// SPDX-License-Identifier: Apache-2.0
#include "tool/query/snapshot_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/model/snapshot_choice.h"
#include "tool/render/interval.h"

enum { WORD_BYTES = 128, WHEN_BYTES = 256 };

bool snapshot_options_read(const struct command_args *args, struct snapshot_request *request,
                           struct error *error) {
    static const struct {
        enum option_id option;
        enum snapshot_wanted kind;
    } options[] = {{OPTION_AT, SNAPSHOT_WANTED_AT},
                   {OPTION_BETWEEN, SNAPSHOT_WANTED_BETWEEN},
                   {OPTION_SINCE, SNAPSHOT_WANTED_SINCE}};
    const char *name = args->command->name;
    *request = (struct snapshot_request){0};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!args_has(args, options[i].option)) continue;
        *request =
            (struct snapshot_request){options[i].kind, args_text(args, options[i].option, "")};
    }
    if (!request->kind) return true;
    if (request->kind == SNAPSHOT_WANTED_BETWEEN && !strchr(request->text, ','))
        return error_set(
            error, "%s: --between needs two snapshots with a comma between them: 10s,exit", name);
    return true;
}

static void set_at(struct profile *profile, const struct live_at *held,
                   const struct live_at *before) {
    profile->at_bytes = profile->at_blocks = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        stack->at_bytes = held[stack->number].bytes;
        stack->at_blocks = held[stack->number].blocks;
        if (before) stack->at_bytes -= before[stack->number].bytes;
        if (before) stack->at_blocks -= before[stack->number].blocks;
        if (stack->at_bytes > 0) profile->at_bytes += stack->at_bytes;
        if (stack->at_blocks > 0) profile->at_blocks += stack->at_blocks;
    }
}

// How sure that is; of a difference the sum is that of what grew.
static void set_estimates(struct profile *profile, const struct estimate *estimates) {
    struct estimate *sum = &profile->estimates[ESTIMATED_AT];
    *sum = (struct estimate){0};
    for (size_t i = 0; estimates && i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        if (stack->more) stack->more->estimates[ESTIMATED_AT] = estimates[stack->number];
        if (stack->at_bytes > 0) estimate_add(sum, &estimates[stack->number]);
    }
}

static void add_totals(struct opened *opened, const char *what) {
    const struct profile *profile = &opened->profile;
    struct measured bytes = measure_total(MEASURE_AT, profile);
    size_t used = strlen(opened->at_text);
    snprintf(opened->at_text + used, sizeof opened->at_text - used, ": %s%s in %s%s %s%s",
             units_size(profile->at_bytes).text, interval_text(bytes, true, false).text,
             measured_interval(bytes) ? "about " : "", units_count(profile->at_blocks).text,
             profile->at_blocks == 1 ? "block" : "blocks", what);
}

static bool is_sampled(const struct snapshots *snapshots) {
    return snapshots->profile->sampling.is_on;
}

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for the values of a snapshot");
}

// Cells whose value at a moment found no room count as nothing.
static void add_missing(const struct snapshots *snapshots, const struct snapshot_choice *choice,
                        struct opened *opened) {
    size_t used = strlen(opened->at_text);
    uint64_t missing = 0;
    if (choice->kind == CHOICE_SNAPSHOT) missing = snapshots->list[choice->snapshot].missing_values;
    if (missing)
        snprintf(opened->at_text + used, sizeof opened->at_text - used,
                 " (missing for lack of room: %s)",
                 units_counted((int64_t)missing, "value", "values").text);
}

// Not all of a snapshot that is near, but what was live at the time that was asked for.
static void add_wanted(const struct snapshot_choice *choice, struct opened *opened) {
    size_t used = strlen(opened->at_text);
    bool is_other = choice->is_nearest && choice->at_ns != choice->wanted_ns;
    if (is_other && choice->has_wanted_live)
        snprintf(opened->at_text + used, sizeof opened->at_text - used, "; %s were live at %s",
                 units_size(choice->wanted_live_bytes).text,
                 units_duration(choice->wanted_ns).text);
}

static bool apply_at(const struct snapshots *snapshots, const char *text, struct opened *opened,
                     struct error *error) {
    struct snapshot_choice choice;
    char when[WHEN_BYTES];
    if (!snapshot_choose(snapshots, text, &choice, error)) return false;
    struct live_at *held = snapshot_choice_live(snapshots, &choice);
    struct estimate *estimates =
        is_sampled(snapshots) ? snapshot_estimates_at(snapshots, &choice) : NULL;
    if (held) set_at(&opened->profile, held, NULL);
    set_estimates(&opened->profile, estimates);
    bool is_ok = held && (estimates || !is_sampled(snapshots));
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    snapshot_choice_text(snapshots, &choice, when, sizeof when);
    snprintf(opened->at_text, sizeof opened->at_text, "shown: %s", when);
    add_totals(opened, "");
    add_wanted(&choice, opened);
    add_missing(snapshots, &choice, opened);
    return true;
}

static bool apply_between(const struct snapshots *snapshots, const char *text,
                          struct opened *opened, struct error *error) {
    char word[WORD_BYTES], first[WHEN_BYTES], second[WHEN_BYTES];
    const char *comma = strchr(text, ',');
    struct snapshot_choice from, to;
    snprintf(word, sizeof word, "%.*s", (int)(comma - text), text);
    if (!snapshot_choose(snapshots, word, &from, error) ||
        !snapshot_choose(snapshots, comma + 1, &to, error))
        return false;
    if (to.at_ns < from.at_ns)
        return error_set(error, "--between %s: the second snapshot is before the first", text);
    struct live_at *before = snapshot_choice_live(snapshots, &from),
                   *held = snapshot_choice_live(snapshots, &to);
    struct estimate *estimates =
        is_sampled(snapshots) ? snapshot_estimates_between(snapshots, &from, &to) : NULL;
    bool is_ok = before && held && (estimates || !is_sampled(snapshots));
    if (is_ok) set_at(&opened->profile, held, before);
    set_estimates(&opened->profile, estimates);
    free(before);
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    snapshot_choice_text(snapshots, &from, first, sizeof first);
    snapshot_choice_text(snapshots, &to, second, sizeof second);
    snprintf(opened->at_text, sizeof opened->at_text, "from %s to %s, %s apart", first, second,
             units_duration(to.at_ns - from.at_ns).text);
    add_totals(opened, " more in stacks that grew");
    add_missing(snapshots, &from, opened);
    add_missing(snapshots, &to, opened);
    return true;
}

static bool apply_since(const struct snapshots *snapshots, const char *text, struct opened *opened,
                        struct error *error) {
    struct snapshot_choice choice;
    char when[WHEN_BYTES];
    if (!snapshot_choose_mark(snapshots, text, &choice, error)) return false;
    uint32_t generation = snapshots->list[choice.snapshot].generation;
    struct live_at *held = snapshots_since(snapshots, generation);
    struct estimate *estimates =
        is_sampled(snapshots) ? snapshot_estimates_since(snapshots, generation) : NULL;
    bool is_ok = held && (estimates || !is_sampled(snapshots));
    if (is_ok) set_at(&opened->profile, held, NULL);
    set_estimates(&opened->profile, estimates);
    free(held);
    free(estimates);
    if (!is_ok) return no_memory(error);
    snapshot_choice_text(snapshots, &choice, when, sizeof when);
    snprintf(opened->at_text, sizeof opened->at_text, "allocated since %s, and still live", when);
    add_totals(opened, "");
    return true;
}

bool snapshot_options_apply(const struct snapshot_request *request, struct opened *opened,
                            struct error *error) {
    struct snapshots snapshots;
    bool is_ok = false;
    if (!request->kind) return true;
    if (opened->process_count > 1)
        return error_set(error,
                         "snapshots of several processes cannot be added up: --process NAME");
    if (!snapshots_build(&snapshots, &opened->profile, error)) return false;
    if (request->kind == SNAPSHOT_WANTED_AT)
        is_ok = apply_at(&snapshots, request->text, opened, error);
    if (request->kind == SNAPSHOT_WANTED_BETWEEN)
        is_ok = apply_between(&snapshots, request->text, opened, error);
    if (request->kind == SNAPSHOT_WANTED_SINCE)
        is_ok = apply_since(&snapshots, request->text, opened, error);
    snapshots_free(&snapshots);
    return is_ok;
}
