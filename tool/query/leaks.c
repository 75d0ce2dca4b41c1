// SPDX-License-Identifier: Apache-2.0
#include "tool/query/leaks.h"
#include "tool/base/units.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/measure.h"
#include "tool/query/arguments.h"
#include "tool/query/depth.h"
#include "tool/query/merged.h"
#include "tool/render/diff.h"
#include "tool/symbol/constant_text.h"

enum { STATUS_MOST = 255 };

bool leaks_read_rules(const struct command_args *args, struct suppressions *suppressions,
                      struct error *error) {
    const char *path = args_text(args, OPTION_SUPPRESSIONS, NULL);
    suppressions_start(suppressions);
    if (path && !suppressions_add_file(suppressions, path, error)) return false;
    return args_has(args, OPTION_NO_SUPPRESSIONS) || suppressions_add_common(suppressions, error);
}

bool leaks_add_own_rules(struct suppressions *suppressions, const struct opened *opened,
                         const char **note, struct error *error) {
    static const char function[] = "__lsan_default_suppressions";
    const char *path = opened->recording.header.executable;
    const struct module_map *modules = &opened->profile.modules;
    const struct module *program = NULL;
    char *text;
    *note = NULL;
    for (size_t i = 0; i < modules->count && !program; i++)
        if (!strcmp(modules->modules[i].path, path)) program = &modules->modules[i];
    if (opened->merge || !program) return true;
    enum constant_text result =
        constant_text_find(path, program->build_id_bytes ? program->build_id : NULL,
                           program->build_id_bytes, function, &text);
    if (result == CONSTANT_TEXT_UNKNOWN)
        *note = "its __lsan_default_suppressions() does more than return a text: not read";
    if (result != CONSTANT_TEXT_FOUND) return true;
    bool is_ok = suppressions_add_text(suppressions, text, function, error);
    free(text);
    return is_ok;
}

// Both are opened later.
static void cut_alike(const struct command_args *args, const char *baseline) {
    struct depth depth = {0};
    depth_add_word(&depth, baseline);
    for (int i = 0; i < args->word_count; i++) depth_add_word(&depth, args->words[i]);
    depth_use(&depth);
}

bool leaks_read(const struct command_args *args, struct request *request, struct leaks *leaks,
                struct error *error) {
    bool is_leaks = view_has(request->view, VIEW_NEEDS_LEAKS) ||
                    view_has(view_find(args->command->view), VIEW_NEEDS_LEAKS);
    uint64_t status = 0;
    if (!is_leaks) return options_check_without(args, OF_LEAKS, error);
    if (!args_number(args, OPTION_ERROR_EXITCODE, 0, STATUS_MOST, &status, error)) return false;
    leaks->error_status = (int)status;
    leaks->has_own_rules = !args_has(args, OPTION_NO_SUPPRESSIONS);
    leaks->baseline = args_text(args, OPTION_BASELINE, NULL);
    request->leaks = leaks;
    if (leaks->baseline) cut_alike(args, leaks->baseline);
    return leaks_read_rules(args, &leaks->suppressions, error);
}

void leaks_free(struct leaks *leaks) {
    suppressions_free(&leaks->suppressions);
}

static bool narrow_baseline(const void *context, struct profile *profile, struct error *error) {
    const struct narrowing *narrowing = context;
    if (!narrowing->request->is_unreachable) return true;
    if (!profile->reachability.known_count)
        return error_set(error, "the baseline was not recorded with --unreachable");
    profile_keep_lost(profile);
    return true;
}

// Adds the stacks of the baseline as the recording before.
static bool add_baseline(const struct leaks *leaks, const struct request *request,
                         struct diff *diff, struct error *error) {
    struct opened old;
    char *words[] = {(char *)leaks->baseline, NULL};
    const struct narrowing narrowing = {request, NULL};
    const struct opening opening = {
        .words = words, .count = 1, .narrow = narrow_baseline, .context = &narrowing};
    if (!opening_open(&opening, &old, error)) return false;
    for (size_t i = 0; i < old.profile.stack_count; i++)
        names_want_stack(old.names, old.profile.stacks[i].node, 0);
    bool is_ok = names_resolve(old.names, error);
    if (is_ok) {
        struct frame_names names = names_frames(old.names);
        is_ok = diff_add_stacks(diff, 0, &old.profile, &names, &request->options, error);
    }
    opened_close(&old);
    return is_ok;
}

static bool keep_new(const struct leaks *leaks, const struct request *request,
                     struct opened *opened, const struct frame_names *names, struct error *error) {
    struct diff diff;
    diff_start(&diff, 2, 1);
    bool is_ok = add_baseline(leaks, request, &diff, error) &&
                 diff_add_stacks(&diff, 1, &opened->profile, names, &request->options, error) &&
                 diff_join_similar(&diff, error) &&
                 diff_keep_growth(&diff, &opened->profile, names, &request->options, error);
    diff_free(&diff);
    return is_ok;
}

void leaks_print(const struct leaks *leaks, const struct terminal *terminal,
                 const struct view_options *options) {
    suppressions_print(&leaks->suppressions, terminal, options);
    if (leaks->note) terminal_print(terminal, STYLE_WARNING, "\n%s\n", leaks->note);
}

bool leaks_say(const struct leaks *leaks, const struct view_options *options, char *out,
               size_t size) {
    int64_t bytes, blocks;
    suppressions_sum(&leaks->suppressions, &bytes, &blocks);
    *out = 0;
    if (bytes)
        snprintf(
            out, size, "suppressed: %s%s%s%s", units_size_as(bytes, options->is_plain_number).text,
            leaks->suppressions.has_blocks ? " in " : "",
            leaks->suppressions.has_blocks ? units_counted(blocks, "block", "blocks").text : "",
            leaks->note ? "; " : "");
    size_t used = strlen(out);
    if (leaks->note) snprintf(out + used, size - used, "%s", leaks->note);
    return *out != 0;
}

bool leaks_apply(struct leaks *leaks, const struct request *request, struct opened *opened,
                 const struct frame_names *names, struct error *error) {
    const struct profile *profile = &opened->profile;
    if (leaks->has_own_rules && !leaks->is_own_read &&
        !leaks_add_own_rules(&leaks->suppressions, opened, &leaks->note, error))
        return false;
    leaks->is_own_read = true;
    if (!suppressions_apply(&leaks->suppressions, &opened->profile, names, error)) return false;
    if (leaks->baseline && !keep_new(leaks, request, opened, names, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        leaks->found_count += measure_stack(MEASURE_EXIT_BLOCKS, &profile->stacks[i]).value > 0;
    return true;
}
