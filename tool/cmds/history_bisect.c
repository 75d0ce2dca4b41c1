// SPDX-License-Identifier: Apache-2.0
// git walks over the commits; at each it starts this tool again as `cairn history -- judge ...`,
// which builds, records the test, appends it to the history, and says by its status what git bisect
// run wants to know: 0 the old level, 1 the new one, 125 it cannot be told.
#include "tool/cmds/history_bisect.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/capture.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/cmds/check_series.h"
#include "tool/cmds/record_command.h"
#include "tool/history/screen.h"
#include "tool/proc/process.h"

enum { JUDGED_GOOD = 0, JUDGED_BAD = 1, JUDGED_UNKNOWN = 125, NUMBER_BYTES = 32 };

// The words of a judge, in their order behind "judge".
enum {
    WORD_FILE = 1,
    WORD_TEST,
    WORD_PROGRAM,
    WORD_REGION,
    WORD_MEASURE,
    WORD_LIMIT,
    WORD_DIRECTION,
    WORD_DIRECTORY,
    WORD_BUILD,
    WORD_COMMAND,
};

// --- at one commit

static const struct history_figure *find_figure(const struct taken *taken, char **words) {
    long measure = strtol(words[WORD_MEASURE], NULL, 10);
    for (size_t i = 0; i < taken->rows.count && measure < HISTORY_MEASURES; i++) {
        const struct taken_row *row = &taken->rows.items[i];
        if (!strcmp(row->test, words[WORD_TEST]) && !strcmp(row->program, words[WORD_PROGRAM]) &&
            !strcmp(row->region, words[WORD_REGION]) && row->figures[measure].is_known)
            return &row->figures[measure];
    }
    return NULL;
}

static int judge_figure(const struct history_figure *figure, char **words) {
    int64_t limit = strtoll(words[WORD_LIMIT], NULL, 10);
    bool is_up = !strcmp(words[WORD_DIRECTION], "up");
    bool is_new = is_up ? figure->value > limit : figure->value < limit;
    enum history_measure measure = (enum history_measure)strtol(words[WORD_MEASURE], NULL, 10);
    printf("cairn: %s %s: %s\n", words[WORD_TEST], history_measures[measure].name,
           history_amount(measure, figure->value).text);
    fflush(stdout);
    return is_new ? JUDGED_BAD : JUDGED_GOOD;
}

static bool judge(const struct command_args *args, int *judged, struct error *error) {
    char **words = args->words;
    struct check_series series = {
        .file = words[WORD_FILE],
        .run = {.tool_version = CAIRN_TOOL_VERSION, .command = words[WORD_COMMAND]}};
    struct recorded recorded = {0};
    const struct record_command command = {.words = words + WORD_COMMAND,
                                           .count = args->word_count - WORD_COMMAND};
    check_series_name_system(&series);
    bool is_ok = git_find(&series.project, error) &&
                 git_describe("HEAD", &series.run.commit, error) &&
                 record_command(&command, &recorded, error);
    if (is_ok && recorded.status)
        is_ok = error_set(error, "the command ended with status %d", recorded.status);
    is_ok = is_ok && check_series_take(&series, args, recorded.path, words[WORD_TEST], error);
    const struct history_figure *figure = is_ok ? find_figure(&series.taken, words) : NULL;
    if (figure) *judged = judge_figure(figure, words);
    if (is_ok && !figure)
        is_ok = error_set(error, "it recorded no %s of %s", words[WORD_PROGRAM], words[WORD_TEST]);
    is_ok = is_ok && check_series_append(&series, error);
    check_series_end(&series);
    record_command_remove(&recorded);
    return is_ok;
}

static int judge_commit(const struct command_args *args) {
    struct error error;
    int judged = JUDGED_UNKNOWN;
    char **words = args->words;
    if (args->word_count <= WORD_COMMAND) return JUDGED_UNKNOWN;
    if (*words[WORD_DIRECTORY] && chdir(words[WORD_DIRECTORY]) != 0) return JUDGED_UNKNOWN;
    char *const build[] = {"sh", "-c", words[WORD_BUILD], NULL};
    if (*words[WORD_BUILD] && run_and_wait(build) != 0) {
        fputs("cairn: this commit does not build\n", stderr);
        return JUDGED_UNKNOWN;
    }
    if (judge(args, &judged, &error)) return judged;
    command_fail(JUDGED_UNKNOWN, &error);
    return JUDGED_UNKNOWN;
}

// --- over all commits

struct bisection {
    const struct command_args *args;
    struct history history;
    struct history_step step;
    char file[PATH_MAX];       // of the history, absolute
    char top[PATH_MAX];        // of the work tree
    char directory[PATH_MAX];  // below it, where the command runs; "": there
    char good[GIT_HASH_BYTES], bad[GIT_HASH_BYTES];
};

static bool is_wanted(const struct bisection *bisection, const struct history_step *step,
                      bool is_up) {
    const char *measure = args_text(bisection->args, OPTION_BY, NULL);
    const struct history_view view = {.test = args_text(bisection->args, OPTION_TEST, NULL)};
    return (step->new_level > step->old_level) == is_up &&
           (!measure || !strcmp(measure, history_measures[step->measure].name)) &&
           history_is_shown(&view, &bisection->history.series.items[step->series]) &&
           !history_after(&bisection->history, step)->is_changed;
}

// The newest step with commits in between, up if there is one.
static bool choose_step(struct bisection *bisection, struct error *error) {
    const struct history *history = &bisection->history;
    const struct history_step *single = NULL;
    if (!history->has_git) return error_set(error, "history bisect: %s", history->note);
    for (int is_up = 1; is_up >= 0; is_up--)
        for (size_t i = 0; i < history->steps.count; i++) {
            const struct history_step *step = &history->steps.items[i];
            if (!is_wanted(bisection, step, is_up)) continue;
            if (history_commits_between(history, step) > 1) {
                bisection->step = *step;
                return true;
            }
            if (!single) single = step;
        }
    if (!single) return error_set(error, "history bisect: there is no such step");
    return error_set(error,
                     "history bisect: nothing to look for: each step is of one commit, the "
                     "newest %.*s",
                     GIT_SHORT, history_after(history, single)->hash);
}

static int git(const char *const arguments[]) {
    enum { WORDS_MAX = 32 };
    const char *words[WORDS_MAX] = {"git"};
    for (int i = 0; i + 2 < WORDS_MAX && arguments[i]; i++) words[i + 1] = arguments[i];
    return run_and_wait((char *const *)(uintptr_t)words);
}

#define GIT(...) git((const char *const[]){__VA_ARGS__, NULL})

static bool prepare(struct bisection *bisection, struct error *error) {
    struct git_project project;
    struct git_commit head;
    struct captured log;
    char here[PATH_MAX];
    char *const ask[] = {"git", "bisect", "log", NULL};
    if (!git_find(&project, error)) return false;
    if (!project.is_there) return error_set(error, "history bisect: no git repository here");
    if (!git_describe("HEAD", &head, error)) return false;
    if (head.is_changed)
        return error_set(error, "history bisect: files differ from the last commit; commit them or "
                                "git stash");
    if (!capture(ask, false, &log, error)) return false;
    free(log.text);
    if (!log.status)
        return error_set(error,
                         "history bisect: a git bisect is going on; git bisect reset ends it");
    snprintf(bisection->top, sizeof bisection->top, "%s", project.top);
    size_t length = strlen(project.top);
    if (getcwd(here, sizeof here) && !strncmp(here, project.top, length) && here[length] == '/')
        snprintf(bisection->directory, sizeof bisection->directory, "%s", here + length + 1);
    return realpath(bisection->history.store.path, bisection->file) ||
           error_set(error, "%s: %s", bisection->history.store.path, strerror(errno));
}

// git bisect run SELF history -- judge ...
static int run_judges(const struct bisection *bisection, const char *self) {
    const struct history_step *step = &bisection->step;
    const struct history_series *series = &bisection->history.series.items[step->series];
    const struct command_args *args = bisection->args;
    int count = args->word_count - 1;
    char measure[NUMBER_BYTES], limit[NUMBER_BYTES];
    int64_t middle = step->old_level + (step->new_level - step->old_level) / 2;
    bool is_up = step->new_level > step->old_level;
    snprintf(measure, sizeof measure, "%d", (int)step->measure);
    snprintf(limit, sizeof limit, "%lld", (long long)middle);
    const char *own[] = {"git",
                         "bisect",
                         "run",
                         self,
                         "history",
                         "--",
                         "judge",
                         bisection->file,
                         series->test,
                         series->program,
                         series->region,
                         measure,
                         limit,
                         is_up ? "up" : "down",
                         bisection->directory,
                         args_text(args, OPTION_BUILD, "")};
    enum { OWN_WORDS = sizeof own / sizeof *own };
    const char **words = calloc((size_t)count + OWN_WORDS + 1, sizeof *words);
    if (!words) return STATUS_FAILURE;
    memcpy(words, own, sizeof own);
    memcpy(words + OWN_WORDS, args->words + 1, (size_t)count * sizeof *words);
    int status = run_and_wait((char *const *)(uintptr_t)words);
    free(words);
    return status;
}

static bool bisect(struct bisection *bisection, struct git_commit *found, struct error *error) {
    char self[PATH_MAX];
    if (!process_own_executable(self))
        return error_set(error, "history bisect: this program's own file is not to be found");
    if (chdir(bisection->top) != 0)
        return error_set(error, "%s: %s", bisection->top, strerror(errno));
    signal(SIGINT, SIG_IGN);  // git and its judges end; what was begun is put back
    bool is_begun = !GIT("bisect", "start", bisection->bad, bisection->good, "--");
    int status = is_begun ? run_judges(bisection, self) : STATUS_FAILURE;
    bool is_found = !status && git_describe("refs/bisect/bad", found, error);
    if (GIT("bisect", "reset") != 0)
        return error_set(error,
                         "history bisect: git bisect reset failed; the work tree is not what "
                         "it was");
    signal(SIGINT, SIG_DFL);
    return is_found ||
           error_set(error, "history bisect: git bisect found no commit (status %d)", status);
}

// Its step is in the history by now.
static bool show_found(const struct bisection *bisection, const struct git_commit *found,
                       struct error *error) {
    struct history history;
    struct terminal terminal = terminal_of(stdout);
    const struct history_series *series = &bisection->history.series.items[bisection->step.series];
    const struct history_view view = {
        .measure = (int)bisection->step.measure, .test = series->test, .top = 1};
    printf("\n%.*s  %s\n\n", GIT_SHORT, found->hash, found->subject);
    if (!history_open(bisection->file, found->hash, &history, error)) return false;
    *history.note = 0;  // that the line ends there is what was asked for
    bool is_ok = history_print(&history, &view, &terminal, error);
    history_close(&history);
    return is_ok;
}

static bool check_words(const struct command_args *args, struct error *error) {
    if (!args->has_separator || args->word_count < 2)
        return error_set(error, "history bisect: no command behind --: the test that is recorded");
    return true;
}

int history_bisect(const struct command_args *args) {
    struct bisection bisection = {.args = args};
    struct git_commit found;
    struct error error;
    if (!strcmp(args->words[0], "judge")) return judge_commit(args);
    if (!check_words(args, &error)) return command_fail(STATUS_USAGE, &error);
    const char *file = args_text(args, OPTION_SERIES, HISTORY_FILE_NAME);
    if (!history_open(file, args_text(args, OPTION_COMMIT, NULL), &bisection.history, &error))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = choose_step(&bisection, &error) && prepare(&bisection, &error);
    if (is_ok) {
        snprintf(bisection.good, sizeof bisection.good, "%s",
                 history_before(&bisection.history, &bisection.step)->hash);
        snprintf(bisection.bad, sizeof bisection.bad, "%s",
                 history_after(&bisection.history, &bisection.step)->hash);
        is_ok = bisect(&bisection, &found, &error) && show_found(&bisection, &found, &error);
    }
    history_close(&bisection.history);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
