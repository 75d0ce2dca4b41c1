// SPDX-License-Identifier: Apache-2.0
// Jobs are taken by a few threads, the largest first. Each has a store of its own, so that nothing
// is shared while names are looked up; what is large at once is bounded by a budget (budget.h).
#include "tool/symbol/symbol.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/array.h"
#include "tool/model/modules.h"
#include "tool/symbol/sources.h"
#include "tool/symbol/string_pool.h"

#define THREADS_MAX 8
#define LOOK_INTERVAL_NS 50000000  // between two looks at the progress

struct symbol_table {
    const struct symbol_options *options;
    const struct bundle *kept;
    ARRAY(struct string_pool *) stores;
};

// What the threads of one resolution share.
struct work {
    struct symbol_table *table;
    struct symbol_job **jobs;     // in the order in which they are taken
    struct string_pool **stores;  // of each
    size_t count;
    atomic_size_t next;
    atomic_size_t done;  // queries
    atomic_bool is_failed;
    bool is_foreign_short;
    size_t running;  // threads, under the lock
    pthread_mutex_t lock;
    pthread_cond_t is_over;
};

bool symbol_table_open(struct symbol_table **table, const struct symbol_options *options,
                       const struct bundle *kept, struct error *error) {
    static const struct symbol_options none = {.sysroot = NULL};
    *table = calloc(1, sizeof **table);
    if (!*table) return error_set(error, "no memory for symbols");
    (*table)->options = options ? options : &none;
    (*table)->kept = kept;
    return true;
}

void symbol_table_close(struct symbol_table *table) {
    if (!table) return;
    for (size_t i = 0; i < table->stores.count; i++) string_pool_close(table->stores.items[i]);
    array_free(&table->stores);
    free(table);
}

// The debug information of modules that are not the program's own is more than the user wants to
// wait for. All of them are looked at first, so that it is the same each time.
static bool is_foreign_too_large(struct symbol_table *table, const struct symbol_job *jobs,
                                 size_t count) {
    const uint64_t most = table->options->foreign_bytes_max;
    uint64_t sum = 0;
    struct string_pool *scratch = most ? string_pool_open() : NULL;
    for (size_t i = 0; scratch && i < count && sum <= most; i++)
        if (!module_is_own(jobs[i].module.path))
            sum += answer_bytes(table->options, &jobs[i].module, scratch);
    string_pool_close(scratch);
    return sum > most;
}

void symbol_table_keep(struct symbol_table *table, const struct bundle *kept) {
    table->kept = kept;
}

static void *run(void *context) {
    struct work *work = context;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) {
        struct answerer answerer = {work->table->options, work->table->kept, work->stores[i],
                                    &work->done, work->is_foreign_short};
        if (!atomic_load(&work->is_failed) && !answer(&answerer, work->jobs[i]))
            atomic_store(&work->is_failed, true);
    }
    pthread_mutex_lock(&work->lock);
    if (!--work->running) pthread_cond_signal(&work->is_over);
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

static int most_first(const void *left, const void *right) {
    const struct symbol_job *a = *(struct symbol_job *const *)left;
    const struct symbol_job *b = *(struct symbol_job *const *)right;
    return (b->count > a->count) - (b->count < a->count);
}

static bool prepare(struct work *work, struct symbol_job *jobs, size_t *total) {
    work->jobs = calloc(work->count + 1, sizeof(struct symbol_job *));
    work->stores = calloc(work->count + 1, sizeof(struct string_pool *));
    if (!work->jobs || !work->stores) return false;
    for (size_t i = 0; i < work->count; i++) {
        struct symbol_job *job = work->jobs[i] = &jobs[i];
        struct string_pool **slot = array_push(&work->table->stores);
        work->stores[i] = slot ? *slot = string_pool_open() : NULL;
        if (!slot || !*slot) return false;
        job->report = (struct symbol_report){0};
        for (size_t query = 0; query < job->count; query++)
            job->queries[query] = (struct symbol_query){.address = job->queries[query].address};
        *total += job->count;
    }
    qsort(work->jobs, work->count, sizeof *work->jobs, most_first);
    return true;
}

static size_t thread_count(size_t job_count) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = processors > 0 && processors < THREADS_MAX ? (size_t)processors : THREADS_MAX;
    return count < job_count ? count : job_count;
}

// Waits for the threads; looks now and then how far they are.
static void watch(struct work *work, size_t total, const struct symbol_progress *progress) {
    const long ns_per_s = 1000000000;
    pthread_mutex_lock(&work->lock);
    while (work->running) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_INTERVAL_NS;
        until.tv_sec += until.tv_nsec / ns_per_s;
        until.tv_nsec %= ns_per_s;
        int result = pthread_cond_timedwait(&work->is_over, &work->lock, &until);
        if (result == ETIMEDOUT && progress) progress->show(progress->context, work->done, total);
    }
    pthread_mutex_unlock(&work->lock);
}

static void run_all(struct work *work, size_t total, const struct symbol_progress *progress) {
    pthread_t threads[THREADS_MAX];
    size_t wanted = thread_count(work->count), started = 0;
    pthread_mutex_lock(&work->lock);
    while (started < wanted && !pthread_create(&threads[started], NULL, run, work)) started++;
    work->running = started;
    pthread_mutex_unlock(&work->lock);
    if (started) {
        watch(work, total, progress);
    } else {
        work->running = 1;  // no thread to be had: this one does the work
        run(work);
    }
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

bool symbol_resolve_all(struct symbol_table *table, struct symbol_job *jobs, size_t count,
                        const struct symbol_progress *progress, struct error *error) {
    struct work work = {.table = table,
                        .count = count,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .is_over = PTHREAD_COND_INITIALIZER};
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        if (jobs[i].count > UINT32_MAX) return error_set(error, "too many addresses at once");
    bool is_done = prepare(&work, jobs, &total);
    work.is_foreign_short = is_foreign_too_large(table, jobs, count);
    if (is_done) run_all(&work, total, progress);
    free(work.jobs);
    free(work.stores);
    if (is_done && !work.is_failed) return true;
    return error_set(error, "no memory for symbols");
}

bool symbol_resolve(struct symbol_table *table, const struct symbol_module *module,
                    struct symbol_query *queries, size_t count, struct symbol_report *report,
                    struct error *error) {
    struct symbol_job job = {.module = *module, .queries = queries, .count = count};
    if (!symbol_resolve_all(table, &job, 1, NULL, error)) return false;
    if (report) *report = job.report;
    return true;
}
