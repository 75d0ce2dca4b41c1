// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/family.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/proc/process.h"

#define SECOND_NS UINT64_C(1000000000)

// A process of the machine.
struct seen {
    pid_t pid, parent;
    uint64_t born;
};
struct seen_list {
    ARRAY(struct seen) items;
};

// A process whose main thread has ended may go on in others.
static bool read_stat(pid_t pid, struct seen *seen) {
    struct process_stat stat;
    if (!process_stat(pid, &stat)) return false;
    *seen = (struct seen){pid, stat.parent, stat.born};
    return !process_has_ended(stat.state) || stat.thread_count > 1;
}

uint64_t family_born(pid_t pid) {
    struct seen seen;
    return read_stat(pid, &seen) ? seen.born : 0;
}

uint64_t family_age_ns(uint64_t born) {
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t born_ns = born * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
    return now_ns > born_ns ? now_ns - born_ns : 0;
}

bool family_has(const struct family *family, pid_t pid, uint64_t born) {
    for (size_t i = 0; i < family->members.count; i++) {
        const struct family_member *member = &family->members.items[i];
        if (member->pid == pid && member->born == born) return true;
    }
    return false;
}

static void add(struct family *family, pid_t pid, uint64_t born) {
    struct family_member *member = array_push(&family->members);
    if (member) *member = (struct family_member){pid, born};
}

bool family_add(struct family *family, pid_t pid) {
    uint64_t born = family_born(pid);
    if (born && !family_has(family, pid, born)) add(family, pid, born);
    return born != 0;
}

static int compare_pids(const void *a, const void *b) {
    const struct seen *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

static void see_all(struct seen_list *list) {
    struct process_list processes;
    process_list_all(&processes);
    for (pid_t pid; (pid = process_list_next(&processes));) {
        struct seen seen;
        if (!read_stat(pid, &seen)) continue;
        struct seen *item = array_push(&list->items);
        if (item) *item = seen;
    }
    process_list_close(&processes);
    if (list->items.count)
        qsort(list->items.items, list->items.count, sizeof *list->items.items, compare_pids);
}

static const struct seen *find_seen(const struct seen_list *list, pid_t pid) {
    const struct seen key = {.pid = pid};
    return list->items.count ? bsearch(&key, list->items.items, list->items.count,
                                       sizeof *list->items.items, compare_pids)
                             : NULL;
}

// Whether a member has that pid, which may have ended by now. The kernel tells nothing of the
// parent but its pid: that must not be another process' already.
static bool is_parent(const struct family *family, const struct seen_list *list, pid_t pid) {
    const struct seen *now = find_seen(list, pid);
    for (size_t i = 0; i < family->members.count; i++) {
        const struct family_member *member = &family->members.items[i];
        if (member->pid == pid && (!now || now->born == member->born)) return true;
    }
    return false;
}

// Children of a child that was found in this round are found in the next one.
static bool add_children(struct family *family, const struct seen_list *list) {
    size_t before = family->members.count;
    for (size_t i = 0; i < list->items.count; i++) {
        const struct seen *seen = &list->items.items[i];
        if (seen->pid != getpid() && is_parent(family, list, seen->parent) &&
            !family_has(family, seen->pid, seen->born))
            add(family, seen->pid, seen->born);
    }
    return family->members.count > before;
}

static void leave_out_ended(struct family *family, const struct seen_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < family->members.count; i++) {
        const struct family_member *member = &family->members.items[i];
        const struct seen *now = find_seen(list, member->pid);
        if (now && now->born == member->born) family->members.items[kept++] = *member;
    }
    family->members.count = kept;
}

void family_look(struct family *family) {
    struct seen_list list = {0};
    see_all(&list);
    while (add_children(family, &list)) {
    }
    leave_out_ended(family, &list);
    array_free(&list.items);
}

void family_free(struct family *family) {
    array_free(&family->members);
}
