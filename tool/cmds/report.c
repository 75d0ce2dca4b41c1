// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/report_run.h"
#include "tool/cmds/report_summary.h"
#include "tool/cmds/subject.h"
#include "tool/render/report_json.h"
#include "tool/render/stacks.h"
#include "tool/render/tree.h"

enum view { VIEW_DEFAULT, VIEW_STACKS, VIEW_TREE, VIEW_LEAKS };
enum { STACKS_TOP = 10, STACKS_DEPTH = 16, TREE_TOP = 10 };

struct request {
    enum view view;
    struct view_options options;
    bool is_json;
};

static bool read_view(const struct command_args *args, struct request *request,
                      struct error *error) {
    const char *name = args_text(args, OPTION_VIEW, args->command->view);
    if (!name)
        request->view = args_has(args, OPTION_INVERTED) ? VIEW_TREE : VIEW_DEFAULT;
    else if (!strcmp(name, "stacks"))
        request->view = VIEW_STACKS;
    else if (!strcmp(name, "tree"))
        request->view = VIEW_TREE;
    else if (!strcmp(name, "leaks"))
        request->view = VIEW_LEAKS;
    else
        return error_set(error, "%s: there is no view \"%s\", but stacks, tree and leaks",
                         args->command->name, name);
    return true;
}

static bool read_request(const struct command_args *args, struct request *request,
                         struct error *error) {
    *request = (struct request){.is_json = args_has(args, OPTION_JSON)};
    struct view_options *options = &request->options;
    if (!read_view(args, request, error)) return false;
    bool is_leaks = request->view == VIEW_LEAKS, is_tree = request->view == VIEW_TREE;
    const char *by = args_text(args, OPTION_BY, is_leaks ? "exit" : "peak");
    if (!measure_parse(by, &options->by))
        return error_set(error, "%s: cannot rank by \"%s\", but by peak, exit, allocated and calls",
                         args->command->name, by);
    uint64_t top, depth;
    uint64_t usual_top = request->is_json ? 0 : is_tree ? TREE_TOP : STACKS_TOP;
    uint64_t usual_depth = request->is_json || is_tree ? 0 : STACKS_DEPTH;
    if (!args_number(args, OPTION_TOP, usual_top, SIZE_MAX, &top, error)) return false;
    if (!args_number(args, OPTION_DEPTH, usual_depth, SIZE_MAX, &depth, error)) return false;
    options->top = top;
    options->depth = depth;
    options->is_inverted = args_has(args, OPTION_INVERTED);
    options->has_all_frames = args_has(args, OPTION_ALL_FRAMES);
    options->is_plain_number = args_has(args, OPTION_BYTES);
    return true;
}

// Names for the stacks that will be printed: the first of a list, all of a tree.
static bool resolve(struct opened *opened, const struct view_options *view, bool is_tree,
                    struct error *error) {
    const struct profile *profile = &opened->profile;
    size_t count;
    uint32_t *ranking = measure_rank_all(view->by, profile, &count);
    if (!ranking) return error_set(error, "no memory for the list of stacks");
    size_t top = is_tree ? 0 : view->top;
    if (top && top < count) count = top;
    for (size_t i = 0; i < count; i++)
        names_want_stack(opened->names, profile->stacks[ranking[i]].node, 0);
    free(ranking);
    return names_resolve(opened->names, error);
}

// Why frames have no names, for the modules of which some were wanted.
static void print_notes(FILE *out, const struct opened *opened) {
    struct terminal terminal = terminal_of(out);
    for (uint32_t i = 0; i < opened->profile.modules.count; i++) {
        const char *note = names_note(opened->names, i);
        if (!note) continue;
        char path[PATH_MAX], text[PATH_MAX];
        text_escape(path, sizeof path, opened->profile.modules.modules[i].path);
        text_escape(text, sizeof text, note);
        terminal_print(&terminal, STYLE_DIM, "names of %s: %s\n", text_base_name(path), text);
    }
}

static bool print_stacks(FILE *out, struct opened *opened, const struct view_options *view,
                         struct error *error) {
    struct terminal terminal = terminal_of(out);
    if (!resolve(opened, view, false, error)) return false;
    struct frame_names names = names_frames(opened->names);
    fputc('\n', out);
    if (!stacks_print(&terminal, &opened->profile, &names, view, error)) return false;
    print_notes(out, opened);
    return true;
}

static bool print_tree(FILE *out, struct opened *opened, const struct view_options *view,
                       struct error *error) {
    struct terminal terminal = terminal_of(out);
    if (!resolve(opened, view, true, error)) return false;
    struct frame_names names = names_frames(opened->names);
    fputc('\n', out);
    if (!tree_print(&terminal, &opened->profile, &names, view, error)) return false;
    print_notes(out, opened);
    return true;
}

static bool print_text(struct opened *opened, const char *path, const struct request *request,
                       struct error *error) {
    // the list of places goes by its own length, --top is that of the stacks
    struct view_options summary = request->options;
    summary.top = SUMMARY_TOP_DEFAULT;
    bool has_list = request->view == VIEW_DEFAULT, is_tree = request->view == VIEW_TREE;
    report_process_fn *print = is_tree ? print_tree : print_stacks;
    // all names first, so that the trust line knows of each
    if (!resolve(opened, &request->options, is_tree, error)) return false;
    if (!report_summary_of(stdout, opened, path, has_list, &summary, error)) return false;
    return !opened->profile.totals.allocations || print(stdout, opened, &request->options, error);
}

static bool print_json(struct opened *opened, const struct view_options *view,
                       struct error *error) {
    if (!resolve(opened, view, false, error)) return false;
    struct frame_names names = names_frames(opened->names);
    return report_json_print(stdout, &opened->profile, &names, view, error);
}

static bool report_recording(const char *path, const struct request *request, struct error *error) {
    struct opened opened;
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = request->is_json ? print_json(&opened, &request->options, error)
                                  : print_text(&opened, path, request, error);
    opened_close(&opened);
    return is_ok;
}

static bool report_run(const char *path, const struct request *request, struct error *error) {
    static report_process_fn *const prints[] = {[VIEW_DEFAULT] = NULL,
                                                [VIEW_STACKS] = print_stacks,
                                                [VIEW_TREE] = print_tree,
                                                [VIEW_LEAKS] = print_stacks};
    struct run run;
    if (!run_open(path, &run, error)) return false;
    bool is_ok = request->is_json ? report_run_json(stdout, &run, &request->options, error)
                                  : report_run_print(stdout, &run, &request->options,
                                                     prints[request->view], error);
    run_close(&run);
    return is_ok;
}

int cmd_report(const struct command_args *args) {
    struct request request;
    struct subject subject;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (!read_request(args, &request, &error)) return command_fail(STATUS_USAGE, &error);
    if (!subject_find(args->words[0], &subject, &error) ||
        (process && !subject_enter(&subject, process, &error)))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = subject.is_run ? report_run(subject.path, &request, &error)
                                : report_recording(subject.path, &request, &error);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
