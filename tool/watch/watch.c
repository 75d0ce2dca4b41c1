// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/watch.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/model/left_out.h"
#include "tool/proc/process.h"
#include "tool/watch/control.h"
#include "tool/watch/run_directory.h"
#include "tool/watch/unkept.h"
#include "tool/watch/unrecorded.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
// Pauses between checkpoints, doubled from the first to the last: what is killed early, together
// with the tool, leaves something too.
#define CHECKPOINT_FIRST_NS (500 * MS_NS)
#define CHECKPOINT_LAST_NS (10 * SECOND_NS)

// Pauses between looks at a process' memory, doubled from the first to the last; with many
// processes longer ones, so that looking takes a few percent of a processor at most.
#define LOOK_FIRST_NS (2 * MS_NS)
// Of the children of a shell or a build most are gone by then: a look costs more than all else.
#define LOOK_FIRST_OTHERS_NS (32 * MS_NS)
#define LOOK_LAST_NS (100 * MS_NS)
#define LOOK_PER_PROCESS_NS MS_NS
#define QUICK_CLOCK_NS (4 * MS_NS)

// How long a process waits at its end until its memory is copied.
enum { END_WAIT_MS = 10000 };

enum { PID_LIMIT = 1 << 22, POLL_FIXED = 1, PLAIN_CHECKPOINTS_MAX = 64, PICTURE_PAUSES = 10 };

bool watch_open(struct watch *watch, struct run_directory *directory,
                const struct schedule *schedule, struct error *error) {
    *watch = (struct watch){.directory = directory,
                            .schedule = *schedule,
                            .listener = {.socket = -1, .reserve = -1},
                            .start_ns = clock_now_ns()};
    watch->next_checkpoint_ns = watch->start_ns + CHECKPOINT_FIRST_NS;
    watch->checkpoint_pause_ns = CHECKPOINT_FIRST_NS;
    watch->pid_uses = calloc(PID_LIMIT, sizeof *watch->pid_uses);  // touched where used
    if (!watch->pid_uses) return error_set(error, "out of memory");
    return handshake_open(&watch->listener, error);
}

void watch_start(struct watch *watch, pid_t main_pid, const char *name, const char *children) {
    watch->children = children;
    watch->main_pid = main_pid;
    watch->name = name;
    writer_thread_start(&watch->writer, watch->directory, watch->log, watch->log_context,
                        &watch->last_look, watch->drain);
    if (watch->drain) event_drain_start(watch->drain, watch->directory);
    schedule_start(&watch->schedule, clock_now_ns());
}

static void watch_note(struct watch *watch, const struct error *error) {
    if (!watch->problem.text[0]) watch->problem = *error;
}

static void unlink_process(struct watch *watch, struct watched *process) {
    struct watched **link = &watch->list;
    while (*link != process) link = &(*link)->next;
    *link = process->next;
    watch->process_count--;
}

// One that became an unrecorded program was over then.
static void settle_end(struct watched *process, bool is_replaced) {
    if (process->replaced_ns) process->end.end_ns = process->replaced_ns;
    is_replaced |= process->replaced_ns != 0;
    if (!is_replaced && !process->end.has_exit) watched_look_at_end(process);
    if (is_replaced) process->memory.header->stop_reason = CAIRN_STOP_EXEC;
    process->end.is_over = true;
    if (!process->end.end_ns) process->end.end_ns = clock_now_ns();
}

// The process, or the image, is over: the writer keeps what it recorded, unless that is hardly
// anything and another recording tells of it: that of the next image, through `heir`, if there is
// one.
static void watched_ended(struct watch *watch, struct watched *process, bool is_replaced,
                          struct cairn_unkept *heir) {
    settle_end(process, is_replaced);
    bool is_dropped = watched_is_worthless(process, is_replaced || process->replaced_ns);
    if (is_dropped) {
        const struct cairn_unkept unkept = unkept_of(process);
        if (heir)
            *heir = unkept;
        else
            is_dropped = unkept_give(watch->list, watch->main_pid, process, &unkept);
    }
    unlink_process(watch, process);
    writer_thread_give(&watch->writer, is_dropped ? WRITER_DROP : WRITER_END, process);
}

struct watched *watch_find(const struct watch *watch, pid_t pid) {
    struct watched *process = watch->list;
    while (process && process->pid != pid) process = process->next;
    return process;
}

static void name_process(struct watch *watch, struct watched *process) {
    char program[NAME_MAX] = "";
    const char *name = watch->name;
    if (!process->is_first && process_name(process->pid, program)) name = program;
    uint8_t *uses = &watch->pid_uses[process->pid % PID_LIMIT];
    if (!process->image && *uses < UINT8_MAX) ++*uses;
    watched_name(process, name, *uses ? *uses - 1u : 0);
    struct cairn_header *header = process->memory.header;
    header->control.tool_pid = (uint32_t)getpid();
    process_comm(process->pid, header->comm);
    run_directory_path_of(watch->directory, process->file_name, header->destination,
                          sizeof header->destination);
}

// A new process is recorded if the one that started it is.
static bool is_off_at_birth(const struct watch *watch, pid_t pid) {
    const struct watched *parent = watch_find(watch, process_parent(pid));
    return parent ? cairn_is_off(&parent->memory.header->control) : watch->schedule.is_off;
}

struct watched *watch_adopt(struct watch *watch, pid_t pid, uint64_t image, bool is_first,
                            int memory_file, struct error *error) {
    struct watched *process = calloc(1, sizeof *process);
    if (!process) {
        if (memory_file >= 0) close(memory_file);
        error_set(error, "out of memory");
        return NULL;
    }
    process->pid = pid;
    process->image = image;
    process->is_first = is_first;
    process->pid_file = (int)syscall(SYS_pidfd_open, pid, 0);
    bool is_gone = process->pid_file < 0 && errno == ESRCH;
    bool is_made = memory_file < 0 ? !is_gone && memory_make(&process->memory, error)
                                   : memory_adopt(&process->memory, memory_file, error);
    if (!is_made) {
        if (process->pid_file >= 0) close(process->pid_file);
        free(process);
        return NULL;
    }
    name_process(watch, process);
    control_set_off(process->memory.header, is_off_at_birth(watch, pid));
    if (watch->last_look.take) process->memory.header->control.end_wait_ms = END_WAIT_MS;
    process->look_pause_ns = is_first ? LOOK_FIRST_NS : LOOK_FIRST_OTHERS_NS;
    process->next_look_ns = clock_now_ns() + process->look_pause_ns;
    process->next = watch->list;
    watch->list = process;
    watch->process_count++;
    watch->greeted_count++;
    if (watch->drain) event_drain_add(watch->drain, process);
    return process;
}

void watch_let_go(struct watch *watch, struct watched *process, enum cairn_stop reason) {
    code_files_hold(&watch->files, &process->memory, process->pid, &process->held_bytes);
    unlink_process(watch, process);
    process->end.is_over = true;
    process->end.end_ns = clock_now_ns();
    process->memory.header->stop_reason = reason;
    writer_thread_give(&watch->writer, WRITER_END, process);
}

bool watch_has_recorded(const struct watch *watch, pid_t pid) {
    return watch->pid_uses[pid % PID_LIMIT] != 0;
}

void watch_replaced(struct watch *watch, struct watched *process) {
    watched_ended(watch, process, true, NULL);
}

void watch_drop(struct watch *watch, struct watched *process) {
    unlink_process(watch, process);
    writer_thread_give(&watch->writer, WRITER_DROP, process);
}

static bool is_wanted(const struct watch *watch, pid_t pid) {
    char names[PROCESS_NAMES][NAME_MAX];
    bool is_meant = false;
    if (!watch->children || pid == watch->main_pid) return true;
    if (!process_names(pid, names)) return false;
    for (size_t i = 0; i < PROCESS_NAMES; i++)
        is_meant |= *names[i] && fnmatch(watch->children, names[i], 0) == 0;
    return is_meant;
}

static void note_parent(const struct watch *watch, const struct cairn_hello *message,
                        struct watched *process) {
    const struct watched *parent = NULL;
    if (message->forked_from) parent = watch_find(watch, (pid_t)message->forked_from);
    if (parent) snprintf(process->parent, sizeof process->parent, "%s", parent->file_name);
}

// A program is started that is not recorded, or the process becomes one.
static void note_unrecorded(void *context, pid_t pid, const struct cairn_hello *message) {
    struct watch *watch = context;
    const struct unrecorded said = {watch->list, watch->main_pid, pid, message, watch->children};
    unrecorded_note(&said, &watch->left_out);
}

static void look_for_strangers(struct watch *watch, uint64_t now) {
    const struct strangers_run run = {watch->list, &watch->left_out, note_unrecorded, watch};
    if (watch->variables) strangers_look(&watch->strangers, &run, now);
}

static void hear_unrecorded(struct watch *watch, pid_t pid, const struct cairn_hello *message) {
    strangers_told(&watch->strangers, watch_find(watch, pid), pid, message);
    note_unrecorded(watch, pid, message);
    if (watch->hear_static && message->unrecorded == CAIRN_UNRECORDED_STATIC)
        watch->hear_static(watch->hear_context, pid, message);
}

void watch_take_back(struct watch *watch, pid_t pid, pid_t teller,
                     const struct cairn_hello *message) {
    struct cairn_hello withdrawn = *message;
    withdrawn.is_withdrawn = true;
    strangers_told(&watch->strangers, watch_find(watch, teller), teller, &withdrawn);
    strangers_know(&watch->strangers, pid);
    note_unrecorded(watch, teller, &withdrawn);
}

// A process says that it ends, and waits a few milliseconds for a last look at its memory. Of a
// crowd only the program's first process gets one.
static void watch_part(const struct watch *watch, const struct handshake_client *client) {
    struct watched *process = watch_find(watch, client->pid);
    const struct last_look *look = &watch->last_look;
    if (process && look->take) process->taken = look->take(look->context, process);
    if (process && watch->drain) event_drain_last_look(watch->drain, process);
    bool is_crowd = watch->process_count > PLAIN_CHECKPOINTS_MAX;
    if (process && !look->take_early && (process->is_first || !is_crowd))
        rss_end(&process->rss, process->pid, &process->memory, clock_now_ns());
    handshake_answer(client, -1, false);
}

// Adds a process that asks for a memory; without one it records by itself.
static struct watched *add_client(struct watch *watch, pid_t pid, uint64_t image, bool is_first) {
    struct error error = {0};
    struct watched *process = watch_adopt(watch, pid, image, is_first, -1, &error);
    if (process || !error.text[0]) return process;
    error_wrap(&error, "process %d records by itself", (int)pid);
    watch_note(watch, &error);
    return NULL;
}

// A process says hello: the same pid again means that it replaced its program.
static void watch_greet(struct watch *watch, const struct handshake_client *client,
                        const struct cairn_hello *message) {
    if (message->magic == CAIRN_HELLO_END_MAGIC) {
        watch_part(watch, client);
        return;
    }
    if (message->magic == CAIRN_HELLO_VARIABLES_MAGIC) {
        handshake_answer_variables(client, watch->variables);
        return;
    }
    if (message->unrecorded) {
        hear_unrecorded(watch, client->pid, message);
        handshake_answer(client, -1, false);
        return;
    }
    struct watched *older = watch_find(watch, client->pid);
    uint64_t image = 0;
    bool is_first = client->pid == watch->main_pid && !message->forked_from, was_off = false;
    bool is_recorded = message->version == CAIRN_VERSION && is_wanted(watch, client->pid);
    struct cairn_left_out left_out = {0};
    struct cairn_unkept unkept = {0};
    if (older) {
        bool is_gone = watched_is_gone(older) && client->pid != watch->main_pid;
        if (!is_gone && is_recorded) left_out = unrecorded_take(older);
        image = older->image + 1;
        is_first = older->is_first && watched_is_worthless(older, true);
        if (is_first || is_gone) image = 0;
        was_off = !is_gone && cairn_is_off(&older->memory.header->control);
        watched_ended(watch, older, !is_gone, !is_gone && is_recorded ? &unkept : NULL);
    }
    struct watched *process = is_recorded ? add_client(watch, client->pid, image, is_first) : NULL;
    if (process) process->memory.header->left_out = left_out;
    struct watched *teller = process ? process : watch->list;
    if (teller) unkept_add(&teller->memory.header->unkept, &unkept);
    if (process) note_parent(watch, message, process);
    if (process && !message->forked_from) code_files_hold_program(&watch->files, client->pid);
    if (process && watch->begin && !message->forked_from)
        watch->begin(watch->begin_context, client->pid, message->attachment);
    if (process && older) control_set_off(process->memory.header, was_off);
    if (is_recorded && !process)
        handshake_dismiss(client);
    else
        handshake_answer(client, process ? process->memory.file : -1, message->is_in_place);
}

// A block of the log for each snapshot that was taken, as far as they do not come faster than this
// looks, and the writer writes: then one for several.
static void log_snapshot(struct watch *watch, struct watched *process) {
    const struct cairn_totals *totals = &process->memory.header->totals;
    uint32_t newest = __atomic_load_n(&totals->snapshot_epoch, __ATOMIC_RELAXED);
    if (newest == process->logged_epoch || writer_thread_is_busy(&watch->writer)) return;
    uint32_t epoch = watched_last_snapshot(process);
    if (!epoch || epoch == process->logged_epoch) return;
    process->logged_epoch = epoch;
    writer_thread_give(&watch->writer, WRITER_LOG, process);
}

// The writer reads a checkpoint for it, so that none is due while it is busy.
static void look_early(struct watch *watch, struct watched *process, const struct rss_now *seen) {
    const struct last_look *look = &watch->last_look;
    bool may_be = look->take_early && !writer_thread_is_busy(&watch->writer);
    if (may_be && look->take_early(look->context, process, seen))
        writer_thread_give(&watch->writer, WRITER_LOOK, process);
}

static void watch_look(struct watch *watch, uint64_t now) {
    uint64_t last = LOOK_PER_PROCESS_NS * watch->process_count;
    if (last < LOOK_LAST_NS) last = LOOK_LAST_NS;
    for (struct watched *process = watch->list, *next; process; process = next) {
        next = process->next;
        if (now < process->next_look_ns) continue;
        if (!process->replaced_ns) {
            struct rss_now seen = watched_look(process, now, PICTURE_PAUSES * last);
            code_files_hold(&watch->files, &process->memory, process->pid, &process->held_bytes);
            schedule_look(&watch->schedule, watch->list, process, &seen, now);
            look_early(watch, process, &seen);
        }
        process->look_pause_ns *= 2;
        if (process->look_pause_ns > last) process->look_pause_ns = last;
        process->next_look_ns = now + process->look_pause_ns;
        bool is_unseen = process->pid_file < 0 && process->pid != watch->main_pid;
        if (is_unseen && watched_is_gone(process)) watched_ended(watch, process, false, NULL);
    }
}

// The next one comes when this one is written, and a pause after it at the earliest. Of a crowd
// only the large processes are worth it: each writes its file itself, should the tool be gone.
static void watch_checkpoint(struct watch *watch, uint64_t now) {
    if (now < watch->next_checkpoint_ns || writer_thread_is_busy(&watch->writer)) return;
    bool is_crowd = watch->process_count > PLAIN_CHECKPOINTS_MAX;
    for (struct watched *process = watch->list; process; process = process->next) {
        struct run_row row;
        if (!watched_row(process, &row)) continue;
        if (is_crowd && !process->is_first && figures_is_small(&row.figures)) continue;
        process->end.checkpoint_pause_ns = watch->checkpoint_pause_ns;
        writer_thread_give(&watch->writer, WRITER_CHECKPOINT, process);
    }
    watch->next_checkpoint_ns = now + watch->checkpoint_pause_ns;
    watch->checkpoint_pause_ns *= 2;
    if (watch->checkpoint_pause_ns > CHECKPOINT_LAST_NS)
        watch->checkpoint_pause_ns = CHECKPOINT_LAST_NS;
}

static bool make_poll_room(struct watch *watch) {
    unsigned wanted = POLL_FIXED + HANDSHAKE_SILENT_MAX + 1 + watch->process_count;
    if (wanted <= watch->polled_room) return true;
    void *polled = reallocarray(watch->polled, 2 * wanted, sizeof *watch->polled);
    if (!polled) return false;
    watch->polled = polled;
    void *processes =
        reallocarray(watch->polled_processes, 2 * wanted, sizeof *watch->polled_processes);
    if (!processes) return false;
    watch->polled_processes = processes;
    watch->polled_room = 2 * wanted;
    return true;
}

// Waits; returns the number of entries, of which those from `first` on are processes.
static unsigned watch_poll(struct watch *watch, int signal_file, unsigned *first) {
    uint64_t now = clock_now_ns(), due = watch->next_checkpoint_ns;
    if (due <= now) due = now + LOOK_LAST_NS;  // the writer is busy
    if (schedule_due_ns(&watch->schedule) < due) due = schedule_due_ns(&watch->schedule);
    watch->polled[0] = (struct pollfd){.fd = signal_file, .events = POLLIN};
    unsigned count = POLL_FIXED + handshake_poll_set(&watch->listener, watch->polled + POLL_FIXED);
    *first = count;
    for (struct watched *process = watch->list; process; process = process->next) {
        if (process->next_look_ns < due) due = process->next_look_ns;
        if (process->pid_file < 0 || process->pid == watch->main_pid) continue;
        watch->polled_processes[count] = process;
        watch->polled[count++] = (struct pollfd){.fd = process->pid_file, .events = POLLIN};
    }
    if (watch->listener.silent_count && due > now + LOOK_LAST_NS) due = now + LOOK_LAST_NS;
    bool is_quick = watch->has_quick_clock || watch->log;
    if (is_quick && due > now + QUICK_CLOCK_NS) due = now + QUICK_CLOCK_NS;
    if (watch->caller_due_ns && due > watch->caller_due_ns) due = watch->caller_due_ns;
    int wait_ms = due > now ? (int)((due - now + MS_NS - 1) / MS_NS) : 0;
    return poll(watch->polled, count, wait_ms) > 0 ? count : 0;
}

void watch_turn(struct watch *watch, int signal_file) {
    unsigned first = 0;
    if (!make_poll_room(watch)) return;
    unsigned count = watch_poll(watch, signal_file, &first);
    for (unsigned i = first; i < count; i++)
        if (watch->polled[i].revents) watched_ended(watch, watch->polled_processes[i], false, NULL);
    struct handshake_client client;
    struct cairn_hello message;
    uint64_t now = clock_now_ns();
    for (unsigned i = 0; i < HANDSHAKE_SILENT_MAX; i++) {
        if (!handshake_next(&watch->listener, now, &client, &message)) break;
        watch_greet(watch, &client, &message);
    }
    schedule_turn(&watch->schedule, watch->list, now);
    if (watch->drain) event_drain_look(watch->drain, watch->list);
    for (struct watched *process = watch->list; process && watch->has_quick_clock;
         process = process->next)
        watched_publish_clock(process, now);
    for (struct watched *process = watch->list; process && watch->log; process = process->next)
        log_snapshot(watch, process);
    watch_look(watch, now);
    look_for_strangers(watch, now);
    watch_checkpoint(watch, now);
}

// What was said but not heard when the program ended.
static void hear_the_last(struct watch *watch) {
    struct handshake_client client;
    struct cairn_hello message;
    while (handshake_next(&watch->listener, clock_now_ns(), &client, &message)) {
        if (message.unrecorded) note_unrecorded(watch, client.pid, &message);
        handshake_dismiss(&client);
    }
}

// The program is over, and the writer saves what it recorded. Nothing is put into that afterwards
// if it was the only one, so that it can be read meanwhile.
static void first_ended(struct watch *watch, struct watched *first, bool is_alone) {
    struct memory memory;
    settle_end(first, false);
    struct memory_end end = first->end;
    bool is_wanted = is_alone && watch->over && !first->taken && !watch->log;
    bool is_shared = is_wanted && memory_share(&first->memory, &memory);
    if (is_shared) code_files_note(&first->memory, first->pid);
    watched_ended(watch, first, false, NULL);
    if (is_shared) watch->over(watch->over_context, &memory, &end);
}

void watch_finish(struct watch *watch, int status, uint64_t rusage_peak_bytes) {
    struct watched *first = watch_find(watch, watch->main_pid);
    bool is_alone = first && watch->greeted_count == 1;
    bool is_incomplete = handshake_has_orphans(&watch->listener, watch->start_ns, watch->main_pid);
    hear_the_last(watch);
    handshake_close(&watch->listener);
    if (first && !first->replaced_ns) {
        memory_end_set_status(&first->end, status);
        // the kernel's number covers children too, but there were none that recorded
        if (is_alone && rusage_peak_bytes >= first->end.rss_peak_bytes) {
            first->end.rss_peak_bytes = rusage_peak_bytes;
            first->end.is_rss_exact = rusage_peak_bytes > 0;
        }
    }
    for (struct watched *process = watch->list, *next; process; process = next) {
        next = process->next;
        if (process == first) continue;  // it tells of those that are not kept
        if (watched_is_gone(process)) {
            watched_ended(watch, process, false, NULL);
        } else {
            unlink_process(watch, process);
            writer_thread_give(&watch->writer, WRITER_RELEASE, process);
        }
    }
    if (first) first_ended(watch, first, is_alone && !is_incomplete);
    writer_thread_finish(&watch->writer);
    if (watch->drain) event_drain_stop(watch->drain);
    struct error error;
    if (watch->drain && watch->drain->problem.text[0]) watch_note(watch, &watch->drain->problem);
    if (watch->schedule.problem.text[0]) watch_note(watch, &watch->schedule.problem);
    if (watch->writer.problem.text[0]) watch_note(watch, &watch->writer.problem);
    if (!run_directory_take_leftovers(watch->directory, &error)) watch_note(watch, &error);
    if (!run_directory_finish(watch->directory, is_incomplete || watch->writer.has_released,
                              &error))
        watch_note(watch, &error);
}

void watch_close(struct watch *watch) {
    handshake_close(&watch->listener);
    while (watch->list) {
        struct watched *process = watch->list;
        unlink_process(watch, process);
        watched_free(process);
    }
    code_files_close(&watch->files);
    array_free(&watch->strangers.list);
    free(watch->pid_uses);
    free(watch->polled);
    free(watch->polled_processes);
}
