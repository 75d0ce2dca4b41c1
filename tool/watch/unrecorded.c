// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/unrecorded.h"

#include <fnmatch.h>
#include <stdint.h>

#include "tool/base/clock.h"
#include "tool/model/left_out.h"
#include "tool/proc/process.h"

// The recording that is to say what `pid` started: its own, or, if that will not be kept, that of
// the nearest process above it. NULL: there is none.
static struct watched *teller_of(const struct watch *watch, pid_t pid, bool is_in_place) {
    enum { GENERATIONS_MAX = 64 };
    struct watched *main_one = watch_find(watch, watch->main_pid);
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++, pid = process_parent(pid)) {
        struct watched *process = watch_find(watch, pid);
        bool is_leaving = is_in_place && i == 0;
        if (process && (process == main_one || !watched_is_worthless(process, is_leaving)))
            return process;
    }
    return main_one ? main_one : watch->list;
}

void unrecorded_note(struct watch *watch, pid_t pid, const struct cairn_hello *message) {
    struct cairn_hello said = *message;
    const int64_t change = message->is_withdrawn ? -1 : 1;
    struct watched *process = watch_find(watch, pid);
    struct watched *teller = teller_of(watch, pid, message->is_in_place);
    said.program[sizeof said.program - 1] = 0;
    if (process && message->is_in_place)
        process->replaced_ns = message->is_withdrawn ? 0 : clock_now_ns();
    if (watch->children && fnmatch(watch->children, said.program, 0) != 0) return;
    left_out_add(&watch->left_out, said.unrecorded, said.program, change);
    if (teller)
        left_out_add(&teller->memory.header->left_out, said.unrecorded, said.program, change);
}

struct cairn_left_out unrecorded_take(struct watched *process) {
    struct cairn_left_out *list = &process->memory.header->left_out, taken = {0};
    if (!watched_is_short_lived(process)) return taken;
    taken = *list;
    *list = (struct cairn_left_out){0};
    return taken;
}
