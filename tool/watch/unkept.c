// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/unkept.h"

#include "tool/model/figures.h"
#include "tool/model/left_out.h"
#include "tool/proc/process.h"

struct cairn_unkept unkept_of(const struct watched *process) {
    struct cairn_unkept sum = process->memory.header->unkept;
    struct run_row row = {0};
    if (!watched_row(process, &row) || !row.figures.allocations) return sum;
    unkept_add(&sum,
               &(struct cairn_unkept){1, row.figures.allocations, row.figures.allocated_bytes});
    return sum;
}

static struct watched *find_other(struct watched *list, pid_t pid, const struct watched *process) {
    while (list && (list == process || list->pid != pid)) list = list->next;
    return list;
}

static struct watched *teller_of(struct watched *list, pid_t main_pid,
                                 const struct watched *process) {
    enum { GENERATIONS_MAX = 64 };
    const struct cairn_header *header = process->memory.header;
    pid_t pid = (pid_t)(header->forked_from ? header->forked_from : header->ppid);
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++, pid = process_parent(pid)) {
        struct watched *above = find_other(list, pid, process);
        if (above) return above;
    }
    struct watched *first = find_other(list, main_pid, process);
    if (first) return first;
    return list == process ? list->next : list;
}

bool unkept_give(struct watched *list, pid_t main_pid, const struct watched *process,
                 const struct cairn_unkept *unkept) {
    if (!unkept->processes) return true;
    struct watched *teller = teller_of(list, main_pid, process);
    if (!teller) return false;
    unkept_add(&teller->memory.header->unkept, unkept);
    return true;
}
