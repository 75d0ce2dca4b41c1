// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/writer_thread.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/watch/code_files.h"

struct writer_job {
    struct writer_job *next;
    enum writer_work work;
    struct watched *process;
    struct memory_end end;  // as it was when the job was given
};

static void writer_thread_note(struct writer_thread *writer, const struct error *error) {
    if (!writer->problem.text[0]) writer->problem = *error;
}

static bool save(struct writer_thread *writer, struct watched *process,
                 const struct memory_end *end) {
    struct error error;
    code_files_note(&process->memory, process->pid);
    bool is_saved =
        run_directory_save(writer->directory, &process->memory, end, process->file_name, &error);
    if (!is_saved) writer_thread_note(writer, &error);
    process->has_file |= is_saved;
    return is_saved;
}

static void unsave(struct writer_thread *writer, struct watched *process) {
    char path[PATH_MAX];
    if (!process->has_file) return;
    run_directory_path_of(writer->directory, process->file_name, path, sizeof path);
    unlink(path);
    process->has_file = false;
}

// The file and the row of an image that is over or released.
static void keep(struct writer_thread *writer, struct watched *process,
                 const struct memory_end *end, bool is_small_kept) {
    struct run_row row;
    struct error error;
    process->end = *end;
    if (!watched_row(process, &row)) return;
    bool is_small = figures_is_small(&row.figures) && !process->is_first && !is_small_kept;
    bool is_lost = false;
    if (is_small && writer->directory->small_count >= RUN_DIRECTORY_SMALL_MAX) {
        unsave(writer, process);
    } else {
        is_lost = !save(writer, process, end);
        writer->directory->small_count += is_small;
    }
    if (is_lost) run_directory_note_lost(writer->directory, &row);
    if (process->has_file || is_lost) snprintf(row.file, sizeof row.file, "%s", process->file_name);
    if (!run_directory_add_row(writer->directory, &row, &error)) writer_thread_note(writer, &error);
}

// From now on the process writes its file itself when it ends. It may be ending just now and have
// looked before it got the message; the tool's socket is closed already, so at worst both write the
// same.
static void release(struct writer_thread *writer, struct watched *process,
                    const struct memory_end *end) {
    struct memory_end last = *end, now = *end;
    struct cairn_header *header = process->memory.header;
    bool is_recording = header->state != CAIRN_STATE_NEW;
    __atomic_store_n(&header->control.is_tool_gone, 1, __ATOMIC_RELEASE);
    writer->has_released = true;
    now.is_checkpoint = true;
    now.checkpoint_pause_ns = 0;
    if (is_recording && !watched_is_short_lived(process)) keep(writer, process, &now, true);
    if (!process->has_file || !watched_is_gone(process)) return;
    last.is_over = true;
    last.end_ns = clock_now_ns();
    save(writer, process, &last);
}

static void write_log(struct writer_thread *writer, const struct watched *process, bool is_last) {
    struct error error;
    bool is_recording = process->memory.header->state != CAIRN_STATE_NEW;
    if (!writer->log || !is_recording || watched_is_short_lived(process)) return;
    if (!writer->log(writer->log_context, process, is_last, &error))
        writer_thread_note(writer, &error);
}

static void keep_last_look(struct writer_thread *writer, const struct watched *process) {
    char path[PATH_MAX];
    struct error error;
    if (!writer->last_look.keep) return;
    run_directory_path_of(writer->directory, process->file_name, path, sizeof path);
    if (!writer->last_look.keep(writer->last_look.context, process, process->has_file ? path : NULL,
                                &error))
        writer_thread_note(writer, &error);
}

static void save_checkpoint(struct writer_thread *writer, const struct writer_job *job) {
    struct memory_end end = job->end;
    end.is_checkpoint = true;
    save(writer, job->process, &end);
}

static void study_look(struct writer_thread *writer, const struct watched *process) {
    char path[PATH_MAX];
    run_directory_path_of(writer->directory, process->file_name, path, sizeof path);
    writer->last_look.study(writer->last_look.context, process, process->has_file ? path : NULL);
}

static void work_off(struct writer_thread *writer, const struct writer_job *job) {
    struct watched *process = job->process;
    switch (job->work) {
    case WRITER_CHECKPOINT:
        save_checkpoint(writer, job);
        return;
    case WRITER_LOOK:
        save_checkpoint(writer, job);
        study_look(writer, job->process);
        return;
    case WRITER_LOG:
        write_log(writer, job->process, false);
        return;
    case WRITER_END:
        write_log(writer, job->process, true);
        keep(writer, process, &job->end, false);
        break;
    case WRITER_RELEASE:
        release(writer, process, &job->end);
        break;
    case WRITER_DROP:
        unsave(writer, process);
        break;
    }
    keep_last_look(writer, process);
    if (writer->drain) event_drain_end(writer->drain, process, process->has_file);
    watched_free(process);
}

static struct writer_job *take(struct writer_thread *writer) {
    pthread_mutex_lock(&writer->lock);
    while (!writer->first && !writer->is_ending)
        pthread_cond_wait(&writer->has_work, &writer->lock);
    struct writer_job *job = writer->first;
    pthread_mutex_unlock(&writer->lock);
    return job;
}

// A job stays in the queue while it is done, so that writer_thread_is_busy sees it.
static void put_away(struct writer_thread *writer, struct writer_job *job) {
    pthread_mutex_lock(&writer->lock);
    writer->first = job->next;
    if (!writer->first) writer->last = NULL;
    pthread_mutex_unlock(&writer->lock);
    free(job);
}

static void *writer_thread_run(void *context) {
    struct writer_thread *writer = context;
    struct writer_job *job;
    while ((job = take(writer))) {
        work_off(writer, job);
        put_away(writer, job);
    }
    return NULL;
}

void writer_thread_start(struct writer_thread *writer, struct run_directory *directory,
                         writer_log_fn *log, void *log_context, const struct last_look *last_look,
                         struct event_drain *drain) {
    sigset_t all, older;
    *writer = (struct writer_thread){.directory = directory,
                                     .log = log,
                                     .log_context = log_context,
                                     .last_look = *last_look,
                                     .drain = drain};
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->has_work, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &older);
    writer->has_thread = pthread_create(&writer->thread, NULL, writer_thread_run, writer) == 0;
    pthread_sigmask(SIG_SETMASK, &older, NULL);
}

void writer_thread_give(struct writer_thread *writer, enum writer_work work,
                        struct watched *process) {
    struct writer_job *job = calloc(1, sizeof *job);
    struct writer_job now = {.work = work, .process = process, .end = process->end};
    if (!job || !writer->has_thread) {
        while (writer_thread_is_busy(writer)) usleep(1000);
        work_off(writer, &now);
        free(job);
        return;
    }
    *job = now;
    pthread_mutex_lock(&writer->lock);
    if (writer->last)
        writer->last->next = job;
    else
        writer->first = job;
    writer->last = job;
    pthread_cond_signal(&writer->has_work);
    pthread_mutex_unlock(&writer->lock);
}

bool writer_thread_is_busy(struct writer_thread *writer) {
    pthread_mutex_lock(&writer->lock);
    bool is_busy = writer->first != NULL;
    pthread_mutex_unlock(&writer->lock);
    return is_busy;
}

void writer_thread_finish(struct writer_thread *writer) {
    pthread_mutex_lock(&writer->lock);
    writer->is_ending = true;
    pthread_cond_signal(&writer->has_work);
    pthread_mutex_unlock(&writer->lock);
    if (writer->has_thread) pthread_join(writer->thread, NULL);
    writer->has_thread = false;
}
