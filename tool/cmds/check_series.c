// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/check_series.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/history/screen.h"

// Outside of a repository a commit is whatever the user calls it.
static bool find_commit(const char *name, struct check_series *series, struct error *error) {
    struct git_commit *commit = &series->run.commit;
    if (series->project.is_there) {
        if (!git_describe(name ? name : "HEAD", commit, error)) return false;
        series->roots = series->project.is_shallow ? NULL : git_roots(commit->hash, error);
        series->run.roots = series->roots;
        return series->roots || series->project.is_shallow;
    }
    if (!name)
        return error_set(error, "check: --series: no git repository here; --commit ID says which "
                                "commit this is");
    if (!*name || strlen(name) >= sizeof commit->hash)
        return error_set(error, "check: --commit: a name of 1 to %zu bytes",
                         sizeof commit->hash - 1);
    snprintf(commit->hash, sizeof commit->hash, "%s", name);
    return true;
}

void check_series_name_system(struct check_series *series) {
    static const char key[] = "PRETTY_NAME=";
    char line[sizeof series->system], name[sizeof series->system] = "Linux";
    struct utsname kernel;
    FILE *file = fopen("/etc/os-release", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, sizeof key - 1) != 0) continue;
        char *text = line + sizeof key - 1;
        text += strspn(text, "\"'");
        text[strcspn(text, "\"'\n")] = 0;
        snprintf(name, sizeof name, "%s", text);
    }
    if (file) fclose(file);
    snprintf(line, sizeof line, "%.200s, %.50s", name, uname(&kernel) ? "?" : kernel.machine);
    text_escape(series->system, sizeof series->system, line);
    series->run.system = series->system;
}

bool check_series_begin(const struct command_args *args, struct check_series *series,
                        struct error *error) {
    series->file = args_text(args, OPTION_SERIES, NULL);
    series->test = args_text(args, OPTION_TEST, NULL);
    series->run.tool_version = CAIRN_TOOL_VERSION;
    series->run.command = args->has_separator && args->word_count ? args->words[0] : "";
    if (args->has_separator) check_series_name_system(series);
    if (!series->file && (args_has(args, OPTION_COMMIT) || series->test))
        return error_set(error, "check: --commit and --test are for --series");
    return !series->file || (git_find(&series->project, error) &&
                             find_commit(args_text(args, OPTION_COMMIT, NULL), series, error));
}

static void forget_again(struct check_series *series) {
    for (size_t i = 0; i < series->again.count; i++) free(series->again.items[i]);
    array_free(&series->again);
}

void check_series_end(struct check_series *series) {
    take_free(&series->taken);
    forget_again(series);
    free(series->roots);
    series->roots = NULL;
}

bool check_series_take(struct check_series *series, const struct command_args *args,
                       const char *path, const char *test, struct error *error) {
    return take_add(&series->taken, args, path, args_text(args, OPTION_PROCESS, NULL),
                    test ? test : series->test, series->project.top, error);
}

static bool open_line(const struct check_series *series, struct history *history,
                      struct error *error) {
    return history_open(series->file, series->project.is_there ? series->run.commit.hash : NULL,
                        history, error);
}

bool check_series_moves(const struct check_series *series, struct results *results,
                        struct error *error) {
    const struct history_view view = {.measure = -1};
    struct history history;
    struct results moved = {0};
    if (!open_line(series, &history, error)) return false;
    bool is_ok = history_results(&history, &view, false, &moved, error);
    for (size_t i = 0; i < moved.list.count && is_ok; i++) {
        const struct result *result = &moved.list.items[i];
        bool is_new = result->is_new && !moved.is_first;
        if (!result->is_note && !result->is_open && !is_new) continue;
        is_ok =
            results_add(results, &moved.list.items[i]) || error_set(error, "no memory for results");
        moved.list.items[i] = (struct result){0};
    }
    results->is_first = moved.is_first;
    results->since = moved.since;
    results_free(&moved);
    history_close(&history);
    return is_ok;
}

// --- once more

bool check_series_is_again(const struct check_series *series, const char *test) {
    for (size_t i = 0; i < series->again.count; i++)
        if (!strcmp(series->again.items[i], test)) return true;
    return false;
}

// Counts the runs of the newest commit.
static size_t runs_at_end(const struct history *history, const struct history_series *series) {
    size_t count = 0;
    for (size_t i = 0; i < series->points.count; i++)
        count += series->points.items[i].commit + 1 == history->commits.count;
    return count;
}

static bool add_again(struct check_series *series, const struct history *history,
                      const struct history_step *step) {
    const struct history_series *moved = &history->series.items[step->series];
    bool is_taken = false;
    for (size_t i = 0; i < series->taken.rows.count; i++)
        is_taken = is_taken || !strcmp(series->taken.rows.items[i].test, moved->test);
    bool is_newest = moved->points.items[step->after].commit + 1 == history->commits.count;
    if (!is_newest || !is_taken || check_series_is_again(series, moved->test)) return true;
    char **slot = array_push(&series->again);
    if (slot) *slot = strdup(moved->test);
    return slot && *slot;
}

static bool find_again(struct check_series *series, struct error *error) {
    enum { MISSING_MOST = 2 };
    struct history history;
    bool is_ok = true;
    forget_again(series);
    if (!open_line(series, &history, error)) return false;
    for (size_t i = 0; i < history.steps.count && is_ok; i++)
        if (runs_at_end(&history, &history.series.items[history.steps.items[i].series]) == 1)
            is_ok = add_again(series, &history, &history.steps.items[i]);
    for (size_t i = 0; i < history.open.count && is_ok; i++)
        if (history.open.items[i].missing && history.open.items[i].missing <= MISSING_MOST)
            is_ok = add_again(series, &history, &history.open.items[i]);
    history_close(&history);
    return is_ok || error_set(error, "no memory for the tests");
}

void check_series_repeat(struct check_series *series) {
    printf("%s: once more, to know what varies\n",
           series->again.count == 1
               ? series->again.items[0]
               : units_counted((int64_t)series->again.count, "test", "tests").text);
    fflush(stdout);
    take_free(&series->taken);
    series->taken = (struct taken){0};
}

bool check_series_append(struct check_series *series, struct error *error) {
    const struct git_commit *commit = &series->run.commit;
    struct store store;
    char note[STORE_NOTE_BYTES];
    if (!series->taken.rows.count)
        return error_set(error, "check: --series: nothing was recorded that could be kept");
    if (!store_open(series->file, true, &store, error)) return false;
    bool is_ok = store_append(&store, &series->project, &series->run, &series->taken, note, error);
    if (is_ok)
        printf("%s: %s at %.*s%s\n", store.path,
               units_counted((int64_t)series->taken.rows.count, "row", "rows").text, GIT_SHORT,
               commit->hash, commit->is_changed ? "+, with changes that are not committed" : "");
    if (is_ok && *note) printf("note: %s\n", note);
    if (is_ok && series->taken.regions_left_out)
        printf("note: %zu regions were left out, beyond 64 a process\n",
               series->taken.regions_left_out);
    store_close(&store);
    return is_ok && find_again(series, error);
}
