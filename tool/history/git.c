// SPDX-License-Identifier: Apache-2.0
#include "tool/history/git.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/capture.h"
#include "tool/base/text.h"

enum { WORDS_MAX = 12 };

// No program that a repository's settings name is started by asking it.
static bool ask(const char *const arguments[], struct captured *answer, struct error *error) {
    const char *words[WORDS_MAX + 4] = {"git", "-c", "core.fsmonitor=false"};
    for (size_t i = 0; i < WORDS_MAX && arguments[i]; i++) words[3 + i] = arguments[i];
    return capture((char *const *)(uintptr_t)words, false, answer, error);
}

#define ASK(answer, error, ...) ask((const char *const[]){__VA_ARGS__, NULL}, answer, error)

// Cuts the line end off; the first line is what is wanted.
static void keep_first_line(struct captured *answer) {
    answer->text[strcspn(answer->text, "\n")] = 0;
}

// Whether git refuses what is a repository, as one of another user.
static bool is_refused(struct captured *answer, struct error *error) {
    char directory[PATH_MAX];
    if (!getcwd(directory, sizeof directory)) return false;
    for (char *end = directory + strlen(directory); end; end = strrchr(directory, '/')) {
        char inside[PATH_MAX + 8];
        *end = 0;
        snprintf(inside, sizeof inside, "%s/.git", directory);
        if (access(inside, F_OK) != 0) continue;
        error_set(error,
                  "git: it does not open %s (status %d; another user's? git config --global "
                  "--add safe.directory %s)",
                  inside, answer->status, *directory ? directory : "/");
        return true;
    }
    return false;
}

bool git_find(struct git_project *project, struct error *error) {
    struct captured answer;
    *project = (struct git_project){0};
    if (!ASK(&answer, NULL, "rev-parse", "--show-toplevel", "--is-shallow-repository")) return true;
    char *second = strchr(answer.text, '\n');
    bool is_ok = answer.status == 0 || !is_refused(&answer, error);
    if (!answer.status && second) {
        project->is_there = true;
        project->is_shallow = !strncmp(second + 1, "true", 4);
        keep_first_line(&answer);
        snprintf(project->top, sizeof project->top, "%s", answer.text);
    }
    free(answer.text);
    return is_ok;
}

static bool has_changes(void) {
    struct captured answer;
    if (!ASK(&answer, NULL, "status", "--porcelain", "--untracked-files=no")) return false;
    bool is_changed = !answer.status && answer.size;
    free(answer.text);
    return is_changed;
}

bool git_describe(const char *name, struct git_commit *commit, struct error *error) {
    struct captured answer;
    char wanted[PATH_MAX];
    snprintf(wanted, sizeof wanted, "%s^{commit}", name);
    if (*name == '-') return error_set(error, "git: no commit \"%s\"", name);
    if (!ASK(&answer, error, "log", "-1", "--format=%H%n%ct%n%s", wanted, "--")) return false;
    char *rest = NULL, *hash = strtok_r(answer.text, "\n", &rest),
         *time = strtok_r(NULL, "\n", &rest), *subject = strtok_r(NULL, "\n", &rest);
    bool is_known = !answer.status && time && strlen(hash) < GIT_HASH_BYTES;
    *commit = (struct git_commit){0};
    if (is_known) {
        snprintf(commit->hash, sizeof commit->hash, "%s", hash);
        text_escape(commit->subject, sizeof commit->subject, subject ? subject : "");
        commit->time_s = strtoll(time, NULL, 10);
        commit->is_changed = !strcmp(name, "HEAD") && has_changes();
    }
    free(answer.text);
    if (is_known) return true;
    return error_set(error,
                     strcmp(name, "HEAD") ? "git: no commit \"%s\" here"
                                          : "git: %s is no commit yet: commit first, or "
                                            "name one by --commit",
                     name);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *git_roots(const char *name, struct error *error) {
    struct captured answer;
    ARRAY(char *) roots = {0};
    if (!ASK(&answer, error, "rev-list", "--max-parents=0", name, "--")) return NULL;
    char *rest = NULL, *joined = answer.status ? NULL : calloc(1, answer.size + 1), *end = joined;
    for (char *root = strtok_r(answer.text, "\n", &rest); root;
         root = strtok_r(NULL, "\n", &rest)) {
        char **slot = array_push(&roots);
        if (slot) *slot = root;
    }
    if (roots.items) qsort(roots.items, roots.count, sizeof *roots.items, compare_texts);
    for (size_t i = 0; end && i < roots.count; i++) {
        if (i) *end++ = ' ';
        end = stpcpy(end, roots.items[i]);
    }
    array_free(&roots);
    free(answer.text);
    if (!joined) error_set(error, "git: it does not list the first commits of %s", name);
    return joined;
}

static bool holds(const char *const arguments[]) {
    struct captured answer;
    if (!ask(arguments, &answer, NULL)) return false;
    free(answer.text);
    return answer.status == 0;
}

bool git_has(const char *hash) {
    char wanted[GIT_HASH_BYTES + 16];
    snprintf(wanted, sizeof wanted, "%s^{commit}", hash);
    return holds((const char *const[]){"cat-file", "-e", wanted, NULL});
}

bool git_is_ancestor(const char *older, const char *newer) {
    return holds((const char *const[]){"merge-base", "--is-ancestor", older, newer, NULL});
}

static int compare_commits(const void *a, const void *b, void *context) {
    const char **commits = context;
    return strcmp(commits[*(const uint32_t *)a], commits[*(const uint32_t *)b]);
}

bool git_line_read(const char *name, struct git_line *line, struct error *error) {
    struct captured answer;
    *line = (struct git_line){0};
    if (!ASK(&answer, error, "rev-list", "--first-parent", "--reverse", name, "--")) return false;
    line->text = answer.text;
    bool is_ok = true;
    char *rest = NULL;
    for (char *hash = strtok_r(answer.text, "\n", &rest); hash && is_ok;
         hash = strtok_r(NULL, "\n", &rest)) {
        const char **slot = array_push(&line->commits);
        uint32_t *number = array_push(&line->sorted);
        is_ok = slot && number;
        if (!is_ok) break;
        *slot = hash;
        *number = (uint32_t)line->commits.count - 1;
    }
    if (line->sorted.items)
        qsort_r(line->sorted.items, line->sorted.count, sizeof *line->sorted.items, compare_commits,
                line->commits.items);
    return is_ok || error_set(error, "no memory for the list of commits");
}

void git_line_free(struct git_line *line) {
    array_free(&line->commits);
    array_free(&line->sorted);
    free(line->text);
    line->text = NULL;
}

long git_line_find(const struct git_line *line, const char *hash) {
    size_t low = 0, high = line->sorted.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t at = line->sorted.items[middle];
        int order = strcmp(line->commits.items[at], hash);
        if (!order) return at;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
