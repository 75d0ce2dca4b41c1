// SPDX-License-Identifier: Apache-2.0
// A run is appended in one transaction that begins as a writer's, so that of two one waits. What
// its stacks are is compared with the run before of the same series; only what differs is written.
#include <stdlib.h>
#include <string.h>

#include "tool/history/store.h"
#include "tool/history/store_stacks.h"

enum { DEPTH_MAX = 32 };  // sets that are read for one

// --- is it this project's?

// One of the last commits of the file is in the repository.
static bool has_known_commit(struct store *store, bool *has, struct error *error) {
    bool is_ok;
    *has = false;
    if (!store_query(store, "SELECT hash FROM commits ORDER BY id DESC LIMIT 16", error))
        return false;
    while (store_next(store, &is_ok, error) && !*has) {
        char *hash = store_text(store, 0);
        *has = hash && git_has(hash);
        free(hash);
    }
    return is_ok;
}

static bool have_common_word(const char *some, const char *others) {
    for (const char *at = some; *at;) {
        size_t length = strcspn(at, " ");
        const char *found = length ? memmem(others, strlen(others), at, length) : NULL;
        if (found) return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static bool write_roots(struct store *store, const char *roots, struct error *error) {
    return store_query(store, "INSERT OR REPLACE INTO facts VALUES('project', ?)", error) &&
           store_bind_text(store, roots) && store_run(store, error);
}

static bool check_project(struct store *store, const struct git_project *project,
                          const struct store_run *run, char *note, struct error *error) {
    bool has;
    char *roots = store_roots(store, error);
    if (!roots) return false;
    bool is_ok = true;
    if (!*roots) {
        is_ok = !run->roots || write_roots(store, run->roots, error);
    } else if (!project->is_there) {
        snprintf(note, STORE_NOTE_BYTES,
                 "no git repository here: whether %s is of this project was not checked",
                 store->path);
    } else if (!(is_ok = has_known_commit(store, &has, error)) || has) {
        // its commits are here
    } else if (!run->roots) {
        snprintf(note, STORE_NOTE_BYTES,
                 "a shallow clone without the commits of %s: whether it is of this project was not "
                 "checked",
                 store->path);
    } else if (!have_common_word(roots, run->roots)) {
        is_ok = error_set(error,
                          "%s is the history of another project (it began with commit %.*s, this "
                          "one with %.*s): name another file",
                          store->path, GIT_SHORT, roots, GIT_SHORT, run->roots);
    }
    free(roots);
    return is_ok;
}

// The commit of the last run, if what is recorded now does not descend from it.
static bool check_line(struct store *store, const struct git_project *project,
                       const struct store_run *run, char *note, struct error *error) {
    bool is_ok;
    if (*note || !project->is_there) return true;
    if (!store_query(store,
                     "SELECT hash FROM commits WHERE id = (SELECT commit_id FROM runs ORDER "
                     "BY id DESC LIMIT 1)",
                     error))
        return false;
    char *last = store_next(store, &is_ok, error) ? store_text(store, 0) : NULL;
    if (last && !git_is_ancestor(last, run->commit.hash) &&
        !git_is_ancestor(run->commit.hash, last))
        snprintf(note, STORE_NOTE_BYTES,
                 "commit %.*s of the run before is no ancestor of %.*s: another branch, or history "
                 "was rewritten; cairn history shows one line",
                 GIT_SHORT, last, GIT_SHORT, run->commit.hash);
    free(last);
    return is_ok;
}

// --- appending

static bool add_run(struct store *store, const struct store_run *run, int64_t *number,
                    struct error *error) {
    const struct git_commit *commit = &run->commit;
    int64_t commit_number;
    bool is_ok = store_query(store,
                             "INSERT OR IGNORE INTO commits(hash, is_changed, time, subject) "
                             "VALUES(?,?,?,?)",
                             error) &&
                 store_bind_text(store, commit->hash) &&
                 store_bind_int(store, commit->is_changed) &&
                 store_bind_int(store, commit->time_s) && store_bind_text(store, commit->subject) &&
                 store_run(store, error);
    is_ok = is_ok &&
            store_query(store, "SELECT id FROM commits WHERE hash = ? AND is_changed = ?", error) &&
            store_bind_text(store, commit->hash) && store_bind_int(store, commit->is_changed) &&
            store_ask(store, 0, &commit_number, error);
    is_ok = is_ok &&
            store_query(store, "INSERT INTO runs(commit_id, command, tool, system) VALUES(?,?,?,?)",
                        error) &&
            store_bind_int(store, commit_number) && store_bind_text(store, run->command) &&
            store_bind_text(store, run->tool_version) && store_bind_text(store, run->system) &&
            store_run(store, error);
    *number = sqlite3_last_insert_rowid(store->database);
    return is_ok;
}

static bool add_series(struct store *store, const struct taken_row *row, int64_t *number,
                       struct error *error) {
    static const char select[] =
        "SELECT id FROM series WHERE test = ? AND program = ? AND region = ?",
                      insert[] =
                          "INSERT OR IGNORE INTO series(test, program, region) VALUES(?,?,?)";
    for (int i = 0; i < 2; i++) {
        if (!store_query(store, i ? select : insert, error) || !store_bind_text(store, row->test) ||
            !store_bind_text(store, row->program) || !store_bind_text(store, row->region))
            return false;
        if (!(i ? store_ask(store, 0, number, error) : store_run(store, error))) return false;
    }
    return true;
}

// What a set holds of a stack.
struct kept {
    int64_t stack, values[HISTORY_STACK_MEASURES];
    bool is_met;
};
struct kept_set {
    ARRAY(struct kept) list;  // by number of the stack
    int64_t number, depth;
};

static bool read_set(struct store *store, int64_t number, struct kept_set *set,
                     struct error *error) {
    bool is_ok;
    set->number = number;
    if (!store_query(store, "SELECT depth FROM stack_sets WHERE id = ?", error) ||
        !store_bind_int(store, number) || !store_ask(store, 0, &set->depth, error) ||
        !store_query(store,
                     SET_ROWS "SELECT stack, peak, exit, calls, bytes, temporary FROM found "
                              "WHERE nth = 1 ORDER BY stack",
                     error) ||
        !store_bind_int(store, number))
        return false;
    while (store_next(store, &is_ok, error)) {
        struct kept *kept = array_push(&set->list);
        if (!kept) return error_set(error, "no memory for the stacks");
        *kept = (struct kept){.stack = store_int(store, 0)};
        for (int i = 0; i < HISTORY_STACK_MEASURES; i++) kept->values[i] = store_int(store, i + 1);
    }
    return is_ok;
}

static int compare_kept(const void *a, const void *b) {
    const struct kept *one = a, *other = b;
    return (one->stack > other->stack) - (one->stack < other->stack);
}

// Adds a line to the set that is written, which is made by its first line.
static bool put_values(struct store *store, const struct kept_set *base, int64_t *set,
                       const struct kept *kept, int64_t place, uint32_t frame,
                       struct error *error) {
    bool is_based = base->number && base->depth < DEPTH_MAX;
    if (!*set) {
        bool is_ok =
            store_query(store, "INSERT INTO stack_sets(base, depth) VALUES(?,?)", error) &&
            (is_based ? store_bind_int(store, base->number) : store_bind_text(store, NULL)) &&
            store_bind_int(store, is_based ? base->depth + 1 : 0) && store_run(store, error);
        if (!is_ok) return false;
        *set = sqlite3_last_insert_rowid(store->database);
    }
    bool is_ok = store_query(store, "INSERT OR REPLACE INTO stack_values VALUES(?,?,?,?,?,?,?,?,?)",
                             error) &&
                 store_bind_int(store, *set) && store_bind_int(store, kept->stack) &&
                 (place ? store_bind_int(store, place) : store_bind_text(store, NULL)) &&
                 store_bind_int(store, frame);
    for (int i = 0; i < HISTORY_STACK_MEASURES && is_ok; i++)
        is_ok = store_bind_int(store, kept->values[i]);
    return is_ok && store_run(store, error);
}

// A row's stacks on their way into a set.
struct putting {
    const struct taken_row *row;
    struct kept_set *base;
    struct stack_numbers *known;
    int64_t *numbers;  // of the stacks, 0: none that matters
    int64_t set;       // that is written, 0: none yet
    bool is_full;      // not only what differs
};

static struct kept *find_kept(const struct kept_set *set, int64_t stack) {
    const struct kept wanted = {.stack = stack};
    if (!set->list.count) return NULL;
    return bsearch(&wanted, set->list.items, set->list.count, sizeof wanted, compare_kept);
}

static bool has_value(const int64_t values[HISTORY_STACK_MEASURES]) {
    int64_t any = 0;
    for (int i = 0; i < HISTORY_STACK_MEASURES; i++) any |= values[i];
    return any != 0;
}

// Numbers the stacks, and marks those of the base that are met again. `is_same` if nothing differs.
static bool number_stacks(struct store *store, struct putting *putting, bool *is_same,
                          struct error *error) {
    const struct diff *stacks = &putting->row->stacks;
    bool is_ok = true;
    *is_same = putting->base->number != 0;
    for (size_t i = 0; i < stacks->rows.count && is_ok; i++) {
        const int64_t *values = diff_values(stacks, i);
        if (!has_value(values)) continue;
        is_ok = stack_number(store, putting->known, stacks, i, &putting->numbers[i], error);
        struct kept *before = find_kept(putting->base, putting->numbers[i]);
        if (before) before->is_met = true;
        *is_same = *is_same && before && !memcmp(before->values, values, sizeof before->values);
    }
    for (size_t i = 0; i < putting->base->list.count; i++)
        *is_same = *is_same && (putting->base->list.items[i].is_met ||
                                !has_value(putting->base->list.items[i].values));
    stack_numbers_forget_texts(putting->known);
    return is_ok;
}

// One stack: written if the base does not have it so. A full set has all of them.
static bool put_stack(struct store *store, struct putting *putting, size_t index,
                      struct error *error) {
    const struct taken_site *site = &putting->row->sites.items[index];
    struct kept kept = {.stack = putting->numbers[index]};
    int64_t place = 0;
    memcpy(kept.values, diff_values(&putting->row->stacks, index), sizeof kept.values);
    const struct kept *before = find_kept(putting->base, kept.stack);
    bool is_known = before && !memcmp(before->values, kept.values, sizeof kept.values);
    if (!kept.stack || (is_known && !putting->is_full)) return true;
    if (site->place &&
        !store_number(store, "INSERT INTO places(place) VALUES(?)",
                      "SELECT id FROM places WHERE place = ?", site->place, &place, error))
        return false;
    return put_values(store, putting->base, &putting->set, &kept, place, site->frame, error);
}

static bool put_gone(struct store *store, struct putting *putting, struct error *error) {
    for (size_t i = 0; i < putting->base->list.count && !putting->is_full; i++) {
        struct kept *gone = &putting->base->list.items[i];
        if (gone->is_met || !has_value(gone->values)) continue;
        memset(gone->values, 0, sizeof gone->values);
        if (!put_values(store, putting->base, &putting->set, gone, 0, 0, error)) return false;
    }
    return true;
}

// The stacks of a row; `set` becomes that of the base if nothing differs.
static bool put_stacks(struct store *store, const struct taken_row *row, struct kept_set *base,
                       struct stack_numbers *known, int64_t *set, struct error *error) {
    struct putting putting = {.row = row,
                              .base = base,
                              .known = known,
                              .numbers = calloc(row->stacks.rows.count + 1, sizeof(int64_t)),
                              .is_full = !base->number || base->depth >= DEPTH_MAX};
    bool is_same = false;
    if (!putting.numbers) return error_set(error, "no memory for the stacks");
    bool is_ok = number_stacks(store, &putting, &is_same, error);
    for (size_t i = 0; i < row->stacks.rows.count && is_ok && !is_same; i++)
        is_ok = put_stack(store, &putting, i, error);
    is_ok = is_ok && (is_same || put_gone(store, &putting, error));
    *set = is_same ? base->number : putting.set;
    free(putting.numbers);
    return is_ok;
}

static bool put_figures(struct store *store, const struct taken_row *row, int64_t run,
                        int64_t series, int64_t set, struct error *error) {
    const struct history_figure *figures = row->figures;
    bool is_ok =
        store_query(store, "INSERT INTO figures VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", error) &&
        store_bind_int(store, run) && store_bind_int(store, series) &&
        store_bind_int(store, row->process_count) && store_bind_int(store, row->flags);
    for (int i = 0; i < HISTORY_MEASURES && is_ok; i++) {
        is_ok = figures[i].is_known ? store_bind_int(store, figures[i].value)
                                    : store_bind_text(store, NULL);
        if (is_ok && i <= HISTORY_EXIT) is_ok = store_bind_int(store, figures[i].interval);
    }
    return is_ok && (set ? store_bind_int(store, set) : store_bind_text(store, NULL)) &&
           store_run(store, error);
}

// Finds the set that a row's stacks are compared with: that of its run before, or else a whole one
// of another test of the program, which has the same beginning.
static bool find_base(struct store *store, const struct taken_row *row, int64_t series, int64_t run,
                      int64_t *base, struct error *error) {
    if (!store_query(store,
                     "SELECT stack_set FROM figures WHERE series = ? AND run < ? "
                     "AND stack_set IS NOT NULL ORDER BY run DESC LIMIT 1",
                     error) ||
        !store_bind_int(store, series) || !store_bind_int(store, run) ||
        !store_ask(store, 0, base, error))
        return false;
    return *base || (store_query(store,
                                 "SELECT stack_set FROM figures JOIN series ON series.id = series "
                                 "JOIN stack_sets ON stack_sets.id = stack_set WHERE program = ? "
                                 "AND region = ? AND depth = 0 ORDER BY run DESC LIMIT 1",
                                 error) &&
                     store_bind_text(store, row->program) && store_bind_text(store, row->region) &&
                     store_ask(store, 0, base, error));
}

static bool put_row(struct store *store, const struct taken_row *row, int64_t run,
                    struct stack_numbers *known, struct error *error) {
    int64_t series, last, set = 0;
    struct kept_set base = {0};
    bool is_ok = add_series(store, row, &series, error) &&
                 find_base(store, row, series, run, &last, error) &&
                 (!last || read_set(store, last, &base, error)) &&
                 put_stacks(store, row, &base, known, &set, error) &&
                 put_figures(store, row, run, series, set, error);
    array_free(&base.list);
    return is_ok;
}

bool store_append(struct store *store, const struct git_project *project,
                  const struct store_run *run, const struct taken *taken,
                  char note[STORE_NOTE_BYTES], struct error *error) {
    int64_t number;
    struct stack_numbers known = {0};
    *note = 0;
    if (!store_execute(store, "BEGIN IMMEDIATE", error)) return false;
    bool is_ok =
        store_check_kind(store, true, error) && check_project(store, project, run, note, error) &&
        check_line(store, project, run, note, error) && add_run(store, run, &number, error);
    for (size_t i = 0; i < taken->rows.count && is_ok; i++)
        is_ok = put_row(store, &taken->rows.items[i], number, &known, error);
    stack_numbers_free(&known);
    store_rest(store);
    if (is_ok && store_execute(store, "COMMIT", error)) return true;
    if (is_ok) is_ok = false;
    sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    return is_ok;
}
