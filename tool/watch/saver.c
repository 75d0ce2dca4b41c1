// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/saver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct saver_job {
    struct saver_job *next;
    enum saver_work work;
    struct watched *process;
    struct memory_end end;  // as it was when the job was given
};

static void saver_note(struct saver *saver, const struct error *error) {
    if (!saver->problem.text[0]) saver->problem = *error;
}

static void save(struct saver *saver, struct watched *process, const struct memory_end *end) {
    struct error error;
    if (!store_save(saver->store, &process->memory, end, process->file_name, &error))
        saver_note(saver, &error);
    else
        process->has_file = true;
}

static void unsave(struct saver *saver, struct watched *process) {
    char path[PATH_MAX];
    if (!process->has_file) return;
    store_path_of(saver->store, process->file_name, path, sizeof path);
    unlink(path);
    process->has_file = false;
}

// The file and the row of an image that is over or released.
static void keep(struct saver *saver, struct watched *process, const struct memory_end *end,
                 bool is_small_kept) {
    struct run_row row;
    struct error error;
    process->end = *end;
    if (!watched_row(process, &row)) return;
    bool is_small = figures_is_small(&row.figures) && !process->is_first && !is_small_kept;
    if (is_small && saver->store->small_count >= STORE_SMALL_FILES_MAX) {
        unsave(saver, process);
    } else {
        save(saver, process, end);
        saver->store->small_count += is_small;
    }
    if (process->has_file) snprintf(row.file, sizeof row.file, "%s", process->file_name);
    if (!store_add_row(saver->store, &row, &error)) saver_note(saver, &error);
}

// From now on the process writes its file itself when it ends. It may be ending just now and have
// looked before it was told; the tool's socket is closed already, so at worst both write the same.
static void release(struct saver *saver, struct watched *process, const struct memory_end *end) {
    struct memory_end last = *end;
    struct cairn_header *header = process->memory.header;
    bool is_recording = header->state != CAIRN_STATE_NEW;
    __atomic_store_n(&header->control.is_tool_gone, 1, __ATOMIC_RELEASE);
    saver->has_released = true;
    if (is_recording && !watched_is_short_lived(process)) keep(saver, process, end, true);
    if (!process->has_file || !watched_is_gone(process)) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    last.is_over = true;
    last.end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    save(saver, process, &last);
}

static void write_log(struct saver *saver, const struct watched *process) {
    struct error error;
    bool is_recording = process->memory.header->state != CAIRN_STATE_NEW;
    if (!saver->log || !is_recording || watched_is_short_lived(process)) return;
    if (!saver->log(saver->log_context, process, &error)) saver_note(saver, &error);
}

static void work_off(struct saver *saver, const struct saver_job *job) {
    struct watched *process = job->process;
    switch (job->work) {
    case SAVER_CHECKPOINT:
        save(saver, process, &job->end);
        return;
    case SAVER_LOG:
        write_log(saver, job->process);
        return;
    case SAVER_END:
        write_log(saver, job->process);
        keep(saver, process, &job->end, false);
        break;
    case SAVER_RELEASE:
        release(saver, process, &job->end);
        break;
    case SAVER_DROP:
        unsave(saver, process);
        break;
    }
    watched_free(process);
}

static struct saver_job *take(struct saver *saver) {
    pthread_mutex_lock(&saver->lock);
    while (!saver->first && !saver->is_ending) pthread_cond_wait(&saver->has_work, &saver->lock);
    struct saver_job *job = saver->first;
    pthread_mutex_unlock(&saver->lock);
    return job;
}

// A job stays in the queue while it is done, so that saver_is_busy sees it.
static void put_away(struct saver *saver, struct saver_job *job) {
    pthread_mutex_lock(&saver->lock);
    saver->first = job->next;
    if (!saver->first) saver->last = NULL;
    pthread_mutex_unlock(&saver->lock);
    free(job);
}

static void *saver_run(void *context) {
    struct saver *saver = context;
    struct saver_job *job;
    while ((job = take(saver))) {
        work_off(saver, job);
        put_away(saver, job);
    }
    return NULL;
}

void saver_start(struct saver *saver, struct store *store, saver_log_fn *log, void *log_context) {
    sigset_t all, older;
    *saver = (struct saver){.store = store, .log = log, .log_context = log_context};
    pthread_mutex_init(&saver->lock, NULL);
    pthread_cond_init(&saver->has_work, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &older);
    saver->has_thread = pthread_create(&saver->thread, NULL, saver_run, saver) == 0;
    pthread_sigmask(SIG_SETMASK, &older, NULL);
}

void saver_give(struct saver *saver, enum saver_work work, struct watched *process) {
    struct saver_job *job = calloc(1, sizeof *job);
    struct saver_job now = {.work = work, .process = process, .end = process->end};
    if (!job || !saver->has_thread) {
        while (saver_is_busy(saver)) usleep(1000);
        work_off(saver, &now);
        free(job);
        return;
    }
    *job = now;
    pthread_mutex_lock(&saver->lock);
    if (saver->last)
        saver->last->next = job;
    else
        saver->first = job;
    saver->last = job;
    pthread_cond_signal(&saver->has_work);
    pthread_mutex_unlock(&saver->lock);
}

bool saver_is_busy(struct saver *saver) {
    pthread_mutex_lock(&saver->lock);
    bool is_busy = saver->first != NULL;
    pthread_mutex_unlock(&saver->lock);
    return is_busy;
}

void saver_finish(struct saver *saver) {
    pthread_mutex_lock(&saver->lock);
    saver->is_ending = true;
    pthread_cond_signal(&saver->has_work);
    pthread_mutex_unlock(&saver->lock);
    if (saver->has_thread) pthread_join(saver->thread, NULL);
    saver->has_thread = false;
}
