// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/unrecorded.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/base/clock.h"
#include "tool/model/left_out.h"
#include "tool/proc/process.h"

static struct watched *find(struct watched *list, pid_t pid) {
    while (list && list->pid != pid) list = list->next;
    return list;
}

// The recording that is to say what the process started: its own, or, if that will not be kept,
// that of the nearest process above it. NULL: there is none.
static struct watched *teller_of(const struct unrecorded *said) {
    enum { GENERATIONS_MAX = 64 };
    struct watched *first = find(said->list, said->main_pid);
    pid_t pid = said->pid;
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++, pid = process_parent(pid)) {
        struct watched *process = find(said->list, pid);
        bool is_leaving = said->message->is_in_place && i == 0;
        if (process && (process == first || !watched_is_worthless(process, is_leaving)))
            return process;
    }
    return first ? first : said->list;
}

// A forked child does not know its own.
static void complete_name(struct cairn_hello *message, pid_t pid) {
    char name[NAME_MAX];
    message->program[sizeof message->program - 1] = 0;
    if (!message->program[0])
        snprintf(message->program, sizeof message->program, "%.60s",
                 process_name(pid, name) ? name : "a forked child");
}

void unrecorded_note(const struct unrecorded *said, struct cairn_left_out *run) {
    struct cairn_hello message = *said->message;
    const int64_t change = message.is_withdrawn ? -1 : 1;
    struct watched *process = find(said->list, said->pid), *teller = teller_of(said);
    complete_name(&message, said->pid);
    if (process && message.is_in_place)
        process->replaced_ns = message.is_withdrawn ? 0 : clock_now_ns();
    if (said->children && fnmatch(said->children, message.program, 0) != 0) return;
    left_out_add(run, message.unrecorded, message.program, change);
    if (teller)
        left_out_add(&teller->memory.header->left_out, message.unrecorded, message.program, change);
}

struct cairn_left_out unrecorded_take(struct watched *process) {
    struct cairn_left_out *list = &process->memory.header->left_out, taken = {0};
    if (!watched_is_short_lived(process)) return taken;
    taken = *list;
    *list = (struct cairn_left_out){0};
    return taken;
}
