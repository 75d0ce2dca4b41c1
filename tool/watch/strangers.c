// SPDX-License-Identifier: Apache-2.0
// A process is taken for a stranger when two looks, a second apart, find that it lacks the library:
// for a moment so does each program that has just begun. Parents that spawn an unrecorded program
// tell of it, and not which process it is: their next strange child passes for it, so that no
// program is named twice. Rather one too few.
#include "tool/watch/strangers.h"

#include <stdio.h>
#include <string.h>

#include "tool/proc/family.h"
#include "tool/proc/process.h"

#define LOOK_NS UINT64_C(1000000000)

// Of a crowd only some are looked at, so that a look stays short.
enum { PROCESSES_MAX = 64, THREADS_MAX = 16, LOOKS_WANTED = 2 };
enum { MAPS_BYTES = 1 << 20, CHILDREN_BYTES = 4096, NUMBER_BASE = 10 };

static struct stranger *stranger_find(struct strangers *strangers, pid_t pid, uint64_t born) {
    for (size_t i = 0; i < strangers->list.count; i++) {
        struct stranger *stranger = &strangers->list.items[i];
        if (stranger->pid == pid && stranger->born == born) return stranger;
    }
    struct stranger *added = array_push(&strangers->list);
    if (added) *added = (struct stranger){.pid = pid, .born = born};
    return added;
}

// Those that were not met at this look have ended, or are no strangers any more.
static void forget_others(struct strangers *strangers) {
    size_t kept = 0;
    for (size_t i = 0; i < strangers->list.count; i++) {
        struct stranger *stranger = &strangers->list.items[i];
        if (stranger->is_known ? family_born(stranger->pid) == stranger->born
                               : stranger->last_look == strangers->look_count)
            strangers->list.items[kept++] = *stranger;
    }
    strangers->list.count = kept;
}

// Says why it is not recorded; NONE: the library is there, or it cannot be told.
static enum cairn_unrecorded reason_of(pid_t pid) {
    static char text[MAPS_BYTES];
    size_t length = process_read(pid, "maps", text, sizeof text);
    // a file without its end may have the library there
    if (length == 0 || length == sizeof text - 1 || strstr(text, "libcairn"))
        return CAIRN_UNRECORDED_NONE;
    if (!strstr(text, "/ld")) return CAIRN_UNRECORDED_STATIC;
    length = process_read(pid, "environ", text, sizeof text);
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strncmp(text + at, "LD_PRELOAD=", strlen("LD_PRELOAD=")) &&
            strstr(text + at, "libcairn"))
            return CAIRN_UNRECORDED_LIBRARY;
    return CAIRN_UNRECORDED_ENVIRONMENT;
}

// True at the look at which it is to be named.
static bool is_stranger(struct strangers *strangers, pid_t pid, enum cairn_unrecorded *reason) {
    uint64_t born = family_born(pid);
    *reason = born ? reason_of(pid) : CAIRN_UNRECORDED_NONE;
    if (*reason == CAIRN_UNRECORDED_NONE) return false;
    struct stranger *stranger = stranger_find(strangers, pid, born);
    if (!stranger || stranger->is_known) return false;
    stranger->last_look = strangers->look_count;
    stranger->is_known = ++stranger->looks >= LOOKS_WANTED;
    return stranger->is_known;
}

static bool was_named(const struct cairn_left_out *list, const char *name) {
    const size_t most = sizeof list->programs[0].name - 1;  // it may be cut
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++)
        if (list->programs[i].count && !strncmp(list->programs[i].name, name, most)) return true;
    return false;
}

static void name_stranger(const struct strangers_run *run, pid_t pid, enum cairn_unrecorded reason,
                          bool is_in_place) {
    struct cairn_hello message = {
        .magic = CAIRN_HELLO_MAGIC, .unrecorded = reason, .is_in_place = is_in_place};
    char name[NAME_MAX];
    if (!process_name(pid, name)) return;
    snprintf(message.program, sizeof message.program, "%.60s", name);
    if (!was_named(run->named, message.program)) run->note(run->context, pid, &message);
}

static bool is_recorded(const struct strangers_run *run, pid_t pid) {
    const struct watched *process = run->list;
    while (process && process->pid != pid) process = process->next;
    return process;
}

static void look_at_child(struct strangers *strangers, const struct strangers_run *run,
                          struct watched *parent, pid_t pid) {
    enum cairn_unrecorded reason;
    if (is_recorded(run, pid) || !is_stranger(strangers, pid, &reason)) return;
    if (parent->told_count)
        parent->told_count--;
    else
        name_stranger(run, pid, reason, false);
}

static void look_at_children(struct strangers *strangers, const struct strangers_run *run,
                             struct watched *parent) {
    struct process_list threads;
    if (!process_list_threads(&threads, parent->pid)) return;
    pid_t thread;
    for (int i = 0; i < THREADS_MAX && (thread = process_list_next(&threads)); i++) {
        char file[sizeof "task//children" + 12], text[CHILDREN_BYTES];
        snprintf(file, sizeof file, "task/%d/children", (int)thread);
        process_read(parent->pid, file, text, sizeof text);
        char *at = text, *end;
        for (long pid; (pid = strtol(at, &end, NUMBER_BASE)) > 0; at = end)
            look_at_child(strangers, run, parent, (pid_t)pid);
    }
    process_list_close(&threads);
}

// An image that took the place of a recorded one has another file.
static void look_at_image(struct strangers *strangers, const struct strangers_run *run,
                          struct watched *process) {
    char path[CAIRN_TEXT_PATH];
    const char *was = process->memory.header->executable;
    size_t length = process_link(process->pid, "exe", path, sizeof path);
    enum cairn_unrecorded reason;
    if (!length || !*was || !strcmp(path, was)) return;
    if (is_stranger(strangers, process->pid, &reason))
        name_stranger(run, process->pid, reason, true);
}

void strangers_look(struct strangers *strangers, const struct strangers_run *run, uint64_t now_ns) {
    if (now_ns < strangers->next_look_ns) return;
    strangers->next_look_ns = now_ns + LOOK_NS;
    strangers->look_count++;
    unsigned count = 0;
    for (struct watched *process = run->list; process && count < PROCESSES_MAX;
         process = process->next, count++) {
        if (!process->replaced_ns) look_at_image(strangers, run, process);
        if (!process->replaced_ns) look_at_children(strangers, run, process);
    }
    forget_others(strangers);
}

void strangers_told(struct strangers *strangers, struct watched *teller, pid_t pid,
                    const struct cairn_hello *message) {
    if (teller && message->is_in_place) return;
    if (teller) {
        if (!message->is_withdrawn)
            teller->told_count++;
        else if (teller->told_count)
            teller->told_count--;
        return;
    }
    struct stranger *stranger = stranger_find(strangers, pid, family_born(pid));
    if (stranger) stranger->is_known = !message->is_withdrawn;
}

void strangers_know(struct strangers *strangers, pid_t pid) {
    struct stranger *stranger = stranger_find(strangers, pid, family_born(pid));
    if (stranger) stranger->is_known = true;
}
