// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/attach_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/attach/program_place.h"
#include "tool/base/clock.h"
#include "tool/base/fnv.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"
#include "tool/watch/program.h"

#define MS_NS UINT64_C(1000000)
// How often modules that were loaded meanwhile are looked for, and processes; a look takes no more
// than a part of the time.
#define LOOK_PAUSE_NS (200 * MS_NS)
#define LOOK_SHARE 20
// One that was just born may be about to end, or to become another program.
#define YOUNG_NS (100 * MS_NS)
// How long others wait for a process that is never at a safe place.
#define OTHERS_PATIENCE_NS (2000 * MS_NS)

// A process that was just started is no glibc program yet: each pause is twice the last one.
enum { TRIES_MAX = 5, HELD_MAX = 512, LEAVE_ROUNDS_MAX = 100 };

// As many files are open together while a process is attached to, followed and left, beside one for
// each module.
enum { ATTACH_FILES = 32 };

static bool has_ended(const struct attach_member *process) {
    return family_born(process->pid) != process->born;
}

// Or is about to: its memory is gone; or it became another program.
static bool is_going(const struct attach_member *process) {
    return has_ended(process) || !attach_is_there(&process->attach);
}

// Returns whether the process still has a program. One whose memory goes has none, and has not
// become another one: it ends, or its first thread has ended before the others.
static bool has_program(pid_t pid) {
    char beginning[2];
    return process_link(pid, "exe", beginning, sizeof beginning) > 0;
}

static struct attach_member *find(const struct attach_tree *tree, pid_t pid, uint64_t born) {
    for (size_t i = 0; i < tree->processes.count; i++) {
        struct attach_member *process = tree->processes.items[i];
        if (process->pid == pid && process->born == born) return process;
    }
    return NULL;
}

static struct attach_member *add(struct attach_tree *tree, pid_t pid, uint64_t born) {
    char name[NAME_MAX];
    struct attach_member *process = calloc(1, sizeof *process);
    struct attach_member **place = process ? array_push(&tree->processes) : NULL;
    if (!place) {
        free(process);
        return NULL;
    }
    *process = (struct attach_member){.tree = tree, .pid = pid, .born = born};
    if (!process_name(pid, name)) snprintf(name, sizeof name, "process");
    text_escape(process->name, sizeof process->name, name);
    *place = process;
    return process;
}

static void close_attach(struct attach_member *process) {
    if (process->is_open) attach_close(&process->attach);
    process->is_open = false;
}

// Programs that cairn run would not record either.
static bool check_program(const struct attach_member *process, struct error *error) {
    const struct remote remote = remote_of(process->pid);
    struct program_place place;
    char path[64];
    struct program program;
    struct error unused;
    int status, file = -1;
    if (program_place_find(&place, &remote)) file = program_place_open(&place, &remote);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool is_found = file >= 0 && program_find(path, &program, &status, &unused);
    if (file >= 0) close(file);
    if (!is_found) return true;  // attach_open reports it
    if (program.records_itself)
        return error_set(error, "cairn is linked into it: it records itself");
    if (program.own_allocator && !process->attach.entries.allocator)
        return error_set(error, "it is linked with %s, whose calls cannot be seen",
                         program.own_allocator);
    if (program.refuses_preload) return error_set(error, "%s", program.obstacle);
    return true;
}

// A process that is asked to wait does not keep those waiting that ask the watch for a memory.
static void hear_watch(void *context) {
    struct watch *watch = context;
    watch->caller_due_ns = clock_now_ns();
    watch_turn(watch, -1);
}

// Returns how many pieces of code of files are mapped: modules, as far as descriptors go.
static size_t count_code(pid_t pid) {
    struct maps maps;
    struct mapping mapping;
    struct error unused;
    size_t count = 0;
    if (!maps_open(&maps, pid, "maps", &unused)) return 0;
    while (maps_next(&maps, &mapping))
        count += mapping.permissions[2] == 'x' && mapping_is_file(&mapping);
    maps_close(&maps);
    return count;
}

static bool open_process(struct attach_member *process, struct error *error) {
    const struct attach_tree *tree = process->tree;
    if (!process_can_open(ATTACH_FILES + count_code(process->pid), error)) return false;
    process->is_open = true;
    if (!attach_open(&process->attach, process->pid, tree->library_path, tree->is_anyway, error))
        return false;
    if (!tree->has_children) return true;
    process->attach.meanwhile = hear_watch;
    process->attach.context = tree->watch;
    if (!process->is_named) process->attach.patience_ns = OTHERS_PATIENCE_NS;
    return true;
}

static bool take_memory(void *context, int file, struct error *error) {
    struct attach_member *process = context;
    struct attach_tree *tree = process->tree;
    bool is_first = process->is_named && !process->is_recorded;
    struct watched *watched =
        watch_adopt(tree->watch, process->pid, process->image, is_first, file, error);
    if (!watched) return false;
    watched->memory.header->is_attached = 1;
    return true;
}

static void count_pause(struct attach_tree *tree, const struct attach *attach) {
    tree->pause_ns += attach->pause_ns;
    if (attach->longest_pause_ns > tree->longest_pause_ns)
        tree->longest_pause_ns = attach->longest_pause_ns;
}

// What is recorded is of the program that the process was.
static void end_image(struct attach_member *process, struct watched *watched) {
    struct watch *watch = process->tree->watch;
    process->image++;
    if (process->is_named)
        watch_let_go(watch, watched, CAIRN_STOP_EXEC);
    else
        watch_replaced(watch, watched);
}

// The process is open, and nothing in it records.
static bool start_process(struct attach_member *process, struct error *error) {
    struct attach_tree *tree = process->tree;
    struct attach_request request = tree->request;
    struct watched *watched = watch_find(tree->watch, process->pid);
    request.take_memory = take_memory;
    request.context = process;
    if (watched) end_image(process, watched);
    if (!check_program(process, error)) return false;
    if (has_ended(process)) return process_say_unreadable(error);
    if (attach_start(&process->attach, &request, error)) {
        process->state = MEMBER_HELD;
        process->is_recorded = true;
        count_pause(tree, &process->attach);
        return true;
    }
    watched = watch_find(tree->watch, process->pid);
    if (watched) watch_drop(tree->watch, watched);
    return false;
}

// A fork that has asked for a memory has been answered by the next look.
static bool take_fork(struct attach_member *process, enum attach_inherited inherited,
                      struct error *error) {
    bool was_idle = process->is_idle;
    process->is_idle = inherited == ATTACH_IDLES;
    if (process->is_idle && was_idle) return start_process(process, error);
    if (!process->is_idle) {
        attach_inherit(&process->attach);
        process->state = MEMBER_HELD;
        return true;
    }
    close_attach(process);
    process->next_try_ns = clock_now_ns() + LOOK_PAUSE_NS;
    return true;
}

static bool take(struct attach_member *process, struct error *error) {
    if (!process->is_open && !open_process(process, error)) return false;
    enum attach_inherited inherited = attach_look_inherited(&process->attach);
    if (inherited == ATTACH_NOTHING) return start_process(process, error);
    return take_fork(process, inherited, error);
}

static bool is_said(struct attach_tree *tree, const struct attach_member *process) {
    const char *name = process->name, *why = process->why.text;
    uint64_t hash = fnv_add(fnv_add(FNV_START, name, strlen(name)), why, strlen(why));
    for (unsigned i = 0; i < tree->said_count; i++)
        if (tree->said[i].hash == hash) return true;
    if (tree->said_count == ATTACH_SAID_MAX) return true;
    tree->said[tree->said_count++].hash = hash;
    return false;
}

static void refuse(struct attach_member *process) {
    struct attach_tree *tree = process->tree;
    close_attach(process);
    process->state = MEMBER_REFUSED;
    tree->refused_count++;
    if (is_said(tree, process)) {
        tree->unsaid_count++;
    } else if (!tree->is_quiet) {
        fprintf(stderr, "cairn: not recorded: %s %d: %s\n", process->name, (int)process->pid,
                process->why.text);
        fflush(stderr);
    }
}

static void try_process(struct attach_member *process) {
    char name[NAME_MAX];
    process->why = (struct error){0};
    if (process_name(process->pid, name))  // it may be another program than it was
        text_escape(process->name, sizeof process->name, name);
    if (take(process, &process->why)) return;
    close_attach(process);
    process->next_try_ns = clock_now_ns() + (LOOK_PAUSE_NS << process->tries);
    if (++process->tries >= TRIES_MAX && !has_ended(process)) refuse(process);
}

// It has become another program, or the library was taken from it in some other way.
static void take_anew(struct attach_member *process) {
    struct attach_tree *tree = process->tree;
    struct watched *watched = watch_find(tree->watch, process->pid);
    close_attach(process);
    if (watched) end_image(process, watched);
    process->state = tree->has_children ? MEMBER_FOUND : MEMBER_LEFT;
    process->is_idle = false;
    process->tries = 0;
    process->next_try_ns = 0;
}

// One that asked for a memory and did not wait for it has not begun to record.
static void let_go(struct watch *watch, struct watched *watched) {
    if (watched->memory.header->state == CAIRN_STATE_NEW)
        watch_drop(watch, watched);
    else
        watch_let_go(watch, watched, CAIRN_STOP_LEFT);
}

static void leave_process(struct attach_member *process) {
    struct attach_tree *tree = process->tree;
    struct attach *attach = &process->attach;
    struct error error;
    attach->pause_ns = attach->longest_pause_ns = 0;
    bool is_left = attach_stop(attach, &error);
    if (is_left) {
        tree->left_count++;
        count_pause(tree, attach);
    } else if (!is_going(process) && !tree->problem.text[0]) {
        tree->problem = error;
        error_wrap(&tree->problem, "%s %d", process->name, (int)process->pid);
    }
    struct watched *watched = watch_find(tree->watch, process->pid);
    if (watched) let_go(tree->watch, watched);
    close_attach(process);
    process->state = MEMBER_LEFT;
}

// New modules cannot be led to the library: it is better left than recorded in part.
static void fail(struct attach_member *process, const struct error *error) {
    struct attach_tree *tree = process->tree;
    if (!tree->has_children) {
        tree->problem = *error;
        error_wrap(&tree->problem, "%s %d", process->name, (int)process->pid);
        leave_process(process);
        return;
    }
    leave_process(process);
    process->why = *error;
    refuse(process);
}

static void follow(struct attach_member *process) {
    struct attach_tree *tree = process->tree;
    struct error error;
    bool has_changed;
    if (!has_program(process->pid)) return;
    if (!attach_is_there(&process->attach)) {
        if (!has_ended(process)) take_anew(process);
        return;
    }
    bool is_recorded = watch_find(tree->watch, process->pid) != NULL;
    process->is_recorded |= is_recorded;
    if (!is_recorded && attach_look_inherited(&process->attach) == ATTACH_IDLES) {
        take_anew(process);
        process->is_idle = true;
        process->next_try_ns = clock_now_ns() + LOOK_PAUSE_NS;
    } else if (!attach_follow(&process->attach, &has_changed, &error) && !is_going(process)) {
        fail(process, &error);
    }
}

static void forget(struct attach_tree *tree, size_t number) {
    struct attach_member *process = tree->processes.items[number];
    if (process->state == MEMBER_FOUND && !process->is_recorded &&
        !watch_has_recorded(tree->watch, process->pid))
        tree->missed_count++;
    close_attach(process);
    if (tree->named == process) tree->named = NULL;
    free(process);
    tree->processes.items[number] = tree->processes.items[--tree->processes.count];
}

static void look(struct attach_tree *tree) {
    for (const struct watched *watched = tree->watch->list; watched; watched = watched->next)
        family_add(&tree->family, watched->pid);
    family_look(&tree->family);
    for (size_t i = 0; i < tree->family.members.count; i++) {
        const struct family_member *member = &tree->family.members.items[i];
        if (!find(tree, member->pid, member->born)) add(tree, member->pid, member->born);
    }
    for (size_t i = tree->processes.count; i-- > 0;) {
        const struct attach_member *process = tree->processes.items[i];
        if (!family_has(&tree->family, process->pid, process->born)) forget(tree, i);
    }
}

static size_t count_held(const struct attach_tree *tree) {
    size_t count = 0;
    for (size_t i = 0; i < tree->processes.count; i++)
        count += tree->processes.items[i]->state == MEMBER_HELD;
    return count;
}

// The one that is to be tried next; `is_any`: there is one that waits for its time.
static struct attach_member *find_due(const struct attach_tree *tree, bool *is_any) {
    struct attach_member *due = NULL;
    uint64_t now = clock_now_ns();
    *is_any = false;
    for (size_t i = 0; i < tree->processes.count; i++) {
        struct attach_member *process = tree->processes.items[i];
        if (process->state != MEMBER_FOUND) continue;
        *is_any = true;
        bool is_due = now >= process->next_try_ns && family_age_ns(process->born) >= YOUNG_NS;
        if (is_due && (!due || process->next_try_ns < due->next_try_ns)) due = process;
    }
    return due;
}

static void say_settled(struct attach_tree *tree) {
    uint64_t others = 0;
    bool has_named = false;
    for (size_t i = 0; i < tree->processes.count; i++) {
        const struct attach_member *process = tree->processes.items[i];
        others += process->is_recorded && !process->is_named;
        has_named |= process->is_recorded && process->is_named;
    }
    tree->is_settled = true;
    if (tree->is_quiet || !others) return;
    fprintf(stderr, "cairn: recording %s of it%s; longest pause %s\n",
            units_counted((int64_t)others, "descendant", "descendants").text,
            has_named ? " too" : "", units_duration(tree->longest_pause_ns).text);
    fflush(stderr);
}

static void attend(struct attach_tree *tree) {
    bool is_any;
    struct attach_member *due = find_due(tree, &is_any);
    if (due && count_held(tree) >= HELD_MAX) due = NULL;
    if (due) try_process(due);
    if (due && find_due(tree, &is_any)) tree->watch->caller_due_ns = clock_now_ns();
    if (!tree->is_settled && !due && !is_any) say_settled(tree);
}

static bool is_alive(const struct attach_tree *tree) {
    if (tree->watch->list) return true;
    for (size_t i = 0; tree->has_children && i < tree->processes.count; i++) {
        const struct attach_member *process = tree->processes.items[i];
        bool may_record = process->state == MEMBER_FOUND || process->state == MEMBER_HELD;
        if (may_record || process->is_named) return true;
    }
    return false;
}

bool attach_tree_turn(struct attach_tree *tree) {
    uint64_t now = clock_now_ns();
    if (now >= tree->next_look_ns) {
        for (size_t i = 0; i < tree->processes.count; i++)
            if (tree->processes.items[i]->state == MEMBER_HELD) follow(tree->processes.items[i]);
        if (tree->has_children) look(tree);
        uint64_t end = clock_now_ns(), pause = (end - now) * LOOK_SHARE;
        tree->next_look_ns = end + (pause > LOOK_PAUSE_NS ? pause : LOOK_PAUSE_NS);
    }
    tree->watch->caller_due_ns = tree->next_look_ns;
    if (tree->has_children) attend(tree);
    return is_alive(tree);
}

// Whether it has others to record although it cannot be recorded itself.
static bool has_others(struct attach_tree *tree) {
    if (!tree->has_children) return false;
    family_look(&tree->family);
    return tree->family.members.count > 1;
}

bool attach_tree_open(struct attach_tree *tree, pid_t pid, struct error *error) {
    bool is_there = family_add(&tree->family, pid);
    tree->named = add(tree, pid, is_there ? tree->family.members.items[0].born : 0);
    if (!tree->named) return error_set(error, "out of memory");
    tree->named->is_named = true;
    if (open_process(tree->named, error) && check_program(tree->named, error)) return true;
    close_attach(tree->named);
    tree->named->why = *error;
    return has_others(tree);
}

bool attach_tree_start(struct attach_tree *tree, struct error *error) {
    struct attach_member *named = tree->named;
    tree->watch->caller_due_ns = clock_now_ns();
    if (named->is_open && start_process(named, error)) return true;
    if (named->is_open) named->why = *error;
    if (!has_others(tree)) return false;
    refuse(named);
    return true;
}

// One that was not opened may be a fork that carries the library, of a process that is recorded.
static bool open_to_leave(struct attach_member *process) {
    struct error unused;
    if (!attach_may_have_library(process->pid)) return false;
    bool is_led =
        open_process(process, &unused) && attach_look_inherited(&process->attach) != ATTACH_NOTHING;
    if (!is_led) close_attach(process);
    return is_led;
}

static bool leave_round(struct attach_tree *tree) {
    bool is_any = false;
    for (size_t i = 0; i < tree->processes.count; i++) {
        struct attach_member *process = tree->processes.items[i];
        if (process->state == MEMBER_LEFT) continue;
        if (process->state == MEMBER_HELD || open_to_leave(process)) {
            is_any = true;
            leave_process(process);
        } else {
            process->state = MEMBER_LEFT;
        }
        if (tree->has_children) hear_watch(tree->watch);
    }
    return is_any;
}

// What is still to be tried will not be. What was tried once only may have been about to begin.
static void refuse_pending(struct attach_tree *tree) {
    for (size_t i = 0; i < tree->processes.count; i++) {
        struct attach_member *process = tree->processes.items[i];
        if (process->state != MEMBER_FOUND || has_ended(process)) continue;
        if (process->tries > 1)
            refuse(process);
        else if (!watch_has_recorded(tree->watch, process->pid))
            tree->missed_count++;
    }
}

void attach_tree_leave(struct attach_tree *tree) {
    tree->pause_ns = tree->longest_pause_ns = 0;
    if (tree->has_children) refuse_pending(tree);
    for (unsigned round = 0; round < LEAVE_ROUNDS_MAX; round++) {
        if (tree->has_children) look(tree);
        if (!leave_round(tree)) break;
    }
    while (tree->watch->list) let_go(tree->watch, tree->watch->list);
}

void attach_tree_close(struct attach_tree *tree) {
    while (tree->processes.count) {
        struct attach_member *process = tree->processes.items[--tree->processes.count];
        close_attach(process);
        free(process);
    }
    array_free(&tree->processes);
    family_free(&tree->family);
}
