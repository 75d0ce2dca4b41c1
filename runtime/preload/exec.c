// SPDX-License-Identifier: Apache-2.0
// Wrapped functions that start another program.
//
// Before exec a recording that this process writes itself is finished: its image goes. And a
// program built with a sanitizer is started without us, since it would not even begin: it gets the
// variables that the caller gave, with our entry taken out of LD_PRELOAD, and the tool gets a
// message. Below `cairn run` the same for valgrind, and the same where the library cannot be opened
// any more, or is for another kind of processor than the program, of which the dynamic linker would
// print a line. Others that will not be recorded (no
// library in LD_PRELOAD, statically linked, setuid) are started as they are, and the tool gets the
// message; if the start fails, it is withdrawn. Ours goes in front of a library that a launcher has
// set LD_PRELOAD for. This may be a child of vfork, on a thread's or signal
// handler's stack: there is nothing here but system calls and a bounded vector on the stack, and
// that only for such programs.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/run_mark.h"
#include "format/settings.h"
#include "runtime/inject/attach.h"
#include "runtime/preload/exec.h"
#include "runtime/preload/variables.h"
#include "runtime/process/end.h"
#include "runtime/process/real.h"
#include "runtime/sink/sink.h"
#include "runtime/sink/tool_link.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/image.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/seccomp.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

#define EXPORT __attribute__((visibility("default"), used))

// One such call.
struct start {
    enum { BY_PATH, BY_NAME, BY_PLACE, BY_FILE, SPAWN_PATH, SPAWN_NAME } how;
    const char *path;  // or the name to look for, or NULL
    int place;         // directory or file
    int flags;
    char *const *words, *const *variables;
    bool has_no_variables;         // the call is one that takes none: they are the process' own
    enum cairn_unrecorded reason;  // why it will not be recorded; NONE: it will be
    bool is_confined;              // a filter is in force that the program would inherit
    bool is_counted;               // as one process unrecorded: nobody else could say so
    long filters;                  // harmless ones that it has to be told of; 0: none
    const char *replaced;  // its LD_PRELOAD, in which this library is to be first; NULL: as it is
    int *pid;
    const void *actions, *attributes;
};

// The real call, with these variables.
static int start_with(const struct start *start, char *const variables[]) {
    switch (start->how) {
    case BY_PATH:
        return real.execve(start->path, start->words, variables);
    case BY_NAME:
        return real.execvpe(start->path, start->words, variables);
    case BY_PLACE:
        return real.execveat(start->place, start->path, start->words, variables, start->flags);
    case BY_FILE:
        return real.fexecve(start->place, start->words, variables);
    case SPAWN_PATH:
        return real.posix_spawn(start->pid, start->path, start->actions, start->attributes,
                                start->words, variables);
    default:
        return real.posix_spawnp(start->pid, start->path, start->actions, start->attributes,
                                 start->words, variables);
    }
}

// Looks at the first file of that name in PATH that could be executed.
static bool look_in_path(const char *name, enum cairn_unrecorded *found) {
    char path[PATH_MAX];
    const char *list = environment_get("PATH");
    size_t name_bytes = strlen(name) + 1;
    if (!list) list = "/bin:/usr/bin";
    for (const char *part = list; part;) {
        size_t length = strcspn(part, ":");
        if (length + 1 + name_bytes <= sizeof path) {
            memcpy(path, part, length);
            path[length] = '/';
            memcpy(path + length + 1, name, name_bytes);
            if (image_look(AT_FDCWD, length ? path : name, found)) return true;
        }
        part = part[length] ? part + length + 1 : NULL;
    }
    return false;
}

// False if there is nothing that could be executed.
static bool look_at(const struct start *start, enum cairn_unrecorded *found) {
    bool is_by_name = start->how == BY_NAME || start->how == SPAWN_NAME;
    bool is_file = start->how == BY_FILE || (start->flags & AT_EMPTY_PATH);
    if (is_by_name && start->path && !strrchr(start->path, '/'))
        return look_in_path(start->path, found);
    if (is_file) return image_look_at_file(start->place, found);
    return image_look(start->how == BY_PLACE ? start->place : AT_FDCWD, start->path, found);
}

// Valgrind's launcher says so to the tool that it becomes. That would carry out all of cairn, and
// take its memory for the program's: a hundred times slower, and with errors of which the program
// has none. With the preload alone, and with CAIRN_VALGRIND, it is what the user asked for.
static bool is_valgrind(const struct start *start) {
    static const char launcher[] = "VALGRIND_LAUNCHER=";
    const char *socket = environment_get(CAIRN_VARIABLE(SOCKET));
    if (!socket || !socket[0] || environment_get(CAIRN_VARIABLE(VALGRIND))) return false;
    for (char *const *variable = start->variables; variable && *variable; variable++)
        if (!strncmp(*variable, launcher, sizeof launcher - 1)) return true;
    return false;
}

static void say_unrecorded(const struct start *start, enum cairn_unrecorded reason,
                           bool is_withdrawn) {
    const char *socket = sink_tool_name();
    const char *name = start->path && start->path[0] ? start->path : NULL;
    if (!name) name = start->words && start->words[0] ? start->words[0] : "a program";
    const char *slash = strrchr(name, '/');
    const struct tool_link_unrecorded said = {.reason = reason,
                                              .is_in_place = start->how < SPAWN_PATH,
                                              .is_withdrawn = is_withdrawn,
                                              .program = slash ? slash + 1 : name};
    if (socket && socket[0]) tool_link_say_unrecorded(socket, &said);
}

static bool has_failed(const struct start *start, int result) {
    return start->how < SPAWN_PATH || result != 0;
}

// Starts it without us. False if we are not in its variables.
static COLD bool start_without_us(const struct start *start, enum cairn_unrecorded reason,
                                  int *result) {
    size_t count = variables_count(start->variables), used = 0;
    bool is_ours = false;
    if (count > VARIABLES_MAX) return false;
    char *kept[count + 1], preload[PRELOAD_BYTES];
    for (size_t i = 0; i < count; i++) {
        char *variable = start->variables[i];
        bool is_preload = !is_ours && !strncmp(variable, "LD_PRELOAD=", PRELOAD_IS_BYTES);
        if (is_preload && variables_strip(variable, preload)) {
            is_ours = true;
            variable = preload[0] ? preload : NULL;
        }
        if (variable) kept[used++] = variable;
    }
    kept[used] = NULL;
    if (!is_ours) return false;
    if (!start->is_confined) say_unrecorded(start, reason, false);
    *result = start_with(start, kept);
    if (!start->is_confined && has_failed(start, *result)) say_unrecorded(start, reason, true);
    return true;
}

// Another root directory, another user, or the file was removed.
static bool is_lost(const char *library, size_t length) {
    char path[PATH_MAX];
    if (library[0] != '/' || length >= sizeof path) return false;
    memcpy(path, library, length);
    path[length] = 0;
    return !image_can_open(path);
}

// Our entry in LD_PRELOAD as the program gets it; NULL: none.
static const char *own_entry(const struct start *start, size_t *length) {
    const char *list = variables_preload(start->variables);
    return list ? cairn_own_entry(list, length) : NULL;
}

// Launchers that set LD_PRELOAD for a library of their own do not mean to take this one out; who
// leaves it empty does. Returns what they set; NULL: nothing, or it cannot be added to.
static const char *replaced_preload(const struct start *start) {
    const char *list = variables_preload(start->variables), *own = linker_own_path();
    if (!own || !list || !*list) return NULL;
    size_t bytes = strlen(own) + 1 + PRELOAD_IS_BYTES + strnlen(list, PRELOAD_BYTES) + 1;
    bool is_possible =
        bytes <= PRELOAD_BYTES && !variables_want_first(list) && own[strcspn(own, " :")] == 0 &&
        variables_count(start->variables) <= VARIABLES_MAX && !is_lost(own, strlen(own));
    return is_possible ? list - PRELOAD_IS_BYTES : NULL;
}

// Why the program will not be recorded. A tool that listens is told of every such program; a
// process that it attached to has no library that a child could inherit.
static enum cairn_unrecorded obstacle_of(struct start *start) {
    size_t length;
    const char *entry = own_entry(start, &length), *socket = sink_tool_name();
    enum cairn_unrecorded found = CAIRN_UNRECORDED_NONE;
    if (is_valgrind(start)) return CAIRN_UNRECORDED_VALGRIND;
    if (entry && is_lost(entry, length)) return CAIRN_UNRECORDED_LIBRARY;
    // after a change of directory among the actions it lies elsewhere
    bool is_there = look_at(start, &found) || (start->actions && start->path);
    if (entry || !is_there || !socket || !socket[0] || attach_is_by_tool()) return found;
    if (!found) start->replaced = replaced_preload(start);
    if (found == CAIRN_UNRECORDED_ITSELF || start->replaced) return found;
    return CAIRN_UNRECORDED_ENVIRONMENT;
}

// The directory of the run, in which a process that cannot reach the tool makes its recording. True
// also if it is not known.
static bool is_place_writable(void) {
    char directory[PATH_MAX];
    const char *pattern = environment_get(CAIRN_VARIABLE(OUTPUT));
    const char *slash = pattern && pattern[0] == '/' ? strrchr(pattern, '/') : NULL;
    size_t length = slash ? (size_t)(slash - pattern) : 0;
    if (!length || length >= sizeof directory) return true;
    memcpy(directory, pattern, length);
    directory[length] = 0;
    return !sys_is_error(sys_call(SYS_faccessat, AT_FDCWD, (long)directory, W_OK, 0, 0, 0));
}

// In a sandbox, another network namespace, nobody hears of a program that will not be recorded; nor
// will one be that is borne, where it has no place for its file.
static bool is_beyond_reach(const struct start *start) {
    const char *socket = sink_tool_name();
    if (!socket || !socket[0] || attach_is_by_tool()) return false;
    return (start->reason || !is_place_writable()) && !tool_link_is_alive(socket);
}

// A filter that was set meanwhile goes on in the program's next image, or in the child: that runs
// without us. It is counted before this image and the right to say so may be gone, and so is what
// nobody hears of. Counted again if it could not be started.
static void note_unheard(struct start *start) {
    start->is_confined = sys_is_confined() || seccomp_is_foreign(&start->filters);
    start->reason = start->is_confined ? CAIRN_UNRECORDED_NONE : obstacle_of(start);
    if (start->reason == CAIRN_UNRECORDED_ITSELF) start->reason = CAIRN_UNRECORDED_NONE;
    start->is_counted = start->is_confined || is_beyond_reach(start);
    if (unlikely(start->is_counted)) gate_count_loss(CAIRN_LOST_PROCESSES);
}

static COLD void forget_unheard(void) {
    if (sink.header)
        __atomic_fetch_sub(&sink.header->lost[CAIRN_LOST_PROCESSES], 1, __ATOMIC_RELAXED);
}

// Tells the program of filters that were found harmless, and puts this library in front of others
// that it is to preload. False if it has too many variables, or is started without us.
static COLD bool start_with_more(const struct start *start, int *result) {
    size_t count = variables_count(start->variables), length, kept = 0, name_bytes = 0;
    if (count > VARIABLES_MAX || !(start->replaced || own_entry(start, &length))) return false;
    char *told[count + 2], filters[FILTERS_BYTES], preload[PRELOAD_BYTES];
    if (start->filters) {
        name_bytes = variables_write_filters(filters, start->filters);
        told[kept++] = filters;
    }
    if (start->replaced) variables_write_preload(preload, start->replaced);
    for (size_t i = 0; i < count; i++) {
        char *variable = start->variables[i];
        if (name_bytes && !strncmp(variable, filters, name_bytes + 1)) continue;
        told[kept++] = variable == start->replaced ? preload : variable;
    }
    told[kept] = NULL;
    *result = start_with(start, told);
    return true;
}

static int start_as_told(const struct start *start) {
    int result;
    bool is_more = start->filters || start->replaced;
    if (unlikely(is_more) && !start->is_confined && start_with_more(start, &result)) return result;
    if (!start->has_no_variables) return start_with(start, start->variables);
    return start->how == BY_NAME ? real.execvp(start->path, start->words)
                                 : real.execv(start->path, start->words);
}

static COLD int start_unrecorded(const struct start *start, enum cairn_unrecorded reason) {
    int result;
    bool is_borne = reason >= CAIRN_UNRECORDED_ENVIRONMENT && reason != CAIRN_UNRECORDED_MACHINE;
    if (!is_borne && start_without_us(start, reason, &result)) return result;
    is_borne |= reason == CAIRN_UNRECORDED_MACHINE;  // without our entry in its variables
    if (is_borne) say_unrecorded(start, reason, false);
    result = start_as_told(start);
    if (is_borne && has_failed(start, result)) say_unrecorded(start, reason, true);
    return result;
}

static int start_program(struct start *start) {
    int result;
    if (unlikely(start->is_confined) && start_without_us(start, CAIRN_UNRECORDED_NONE, &result))
        return result;
    if (unlikely(start->reason)) return start_unrecorded(start, start->reason);
    return start_as_told(start);
}

// Afterwards recording goes on if the image was not replaced.
static int replace_image(struct start *start) {
    int saved_errno = errno;
    if (unlikely(!real_is_resolved())) real_resolve();
    note_unheard(start);
    if (likely(!start->is_confined)) process_leave();  // finishing a file takes many calls
    errno = saved_errno;
    int result = start_program(start);
    if (unlikely(start->is_counted)) forget_unheard();
    return result;
}

// libc starts the program without calling our exec.
static int spawn(struct start *start) {
    if (unlikely(!real_is_resolved())) real_resolve();
    note_unheard(start);
    int result = start_program(start);
    if (unlikely(start->is_counted) && result) forget_unheard();
    return result;
}

struct exec_shell exec_note_shell(void) {
    static char *const words[] = {"sh", NULL};
    struct start start = {
        .how = SPAWN_PATH, .path = "/bin/sh", .words = words, .variables = environ};
    struct exec_shell shell = {.reason = CAIRN_UNRECORDED_NONE};
    note_unheard(&start);
    shell.is_counted = start.is_counted;
    if (start.is_confined) return shell;
    shell.reason = start.replaced ? CAIRN_UNRECORDED_ENVIRONMENT : start.reason;
    if (unlikely(shell.reason)) say_unrecorded(&start, shell.reason, false);
    return shell;
}

void exec_forget_shell(struct exec_shell shell) {
    const struct start start = {.how = SPAWN_PATH, .path = "/bin/sh"};
    if (shell.is_counted) forget_unheard();
    if (shell.reason) say_unrecorded(&start, shell.reason, true);
}

int execve(const char *path, char *const words[], char *const variables[]);
int execv(const char *path, char *const words[]);
int execvp(const char *name, char *const words[]);
int execvpe(const char *name, char *const words[], char *const variables[]);
int fexecve(int file, char *const words[], char *const variables[]);
int execveat(int directory, const char *path, char *const words[], char *const variables[],
             int flags);
int execl(const char *path, const char *word, ...);
int execlp(const char *name, const char *word, ...);
int execle(const char *path, const char *word, ...);
int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                char *const words[], char *const variables[]);
int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes,
                 char *const words[], char *const variables[]);

EXPORT int execve(const char *path, char *const words[], char *const variables[]) {
    return replace_image(
        &(struct start){.how = BY_PATH, .path = path, .words = words, .variables = variables});
}

static int execv_of(const char *path, char *const words[]) {
    return replace_image(&(struct start){.how = BY_PATH,
                                         .path = path,
                                         .words = words,
                                         .variables = environ,
                                         .has_no_variables = true});
}

// The same by their numbers, from syscall (process.c).
HIDDEN __attribute__((used)) long execve_by_number(long number, const char *path,
                                                   char *const words[], char *const variables[]) {
    (void)number;
    return execve(path, words, variables);
}

HIDDEN __attribute__((used)) long execveat_by_number(long number, int directory, const char *path,
                                                     char *const words[], char *const variables[],
                                                     int flags) {
    (void)number;
    return execveat(directory, path, words, variables, flags);
}

EXPORT int execv(const char *path, char *const words[]) {
    return execv_of(path, words);
}

static int execvp_of(const char *name, char *const words[]) {
    return replace_image(&(struct start){.how = BY_NAME,
                                         .path = name,
                                         .words = words,
                                         .variables = environ,
                                         .has_no_variables = true});
}

EXPORT int execvp(const char *name, char *const words[]) {
    return execvp_of(name, words);
}

EXPORT int execvpe(const char *name, char *const words[], char *const variables[]) {
    return replace_image(
        &(struct start){.how = BY_NAME, .path = name, .words = words, .variables = variables});
}

EXPORT int fexecve(int file, char *const words[], char *const variables[]) {
    return replace_image(
        &(struct start){.how = BY_FILE, .place = file, .words = words, .variables = variables});
}

EXPORT int execveat(int directory, const char *path, char *const words[], char *const variables[],
                    int flags) {
    return replace_image(&(struct start){.how = BY_PLACE,
                                         .place = directory,
                                         .path = path,
                                         .flags = flags,
                                         .words = words,
                                         .variables = variables});
}

// The list forms: their words, up to and with the NULL, become a vector on the stack.
static size_t count_words(const char *word, va_list list) {
    size_t count = 0;
    for (const char *next = word; next; next = va_arg(list, const char *)) count++;
    return count;
}

#define COLLECT_WORDS(words, word)                                                                 \
    va_list list;                                                                                  \
    va_start(list, word);                                                                          \
    size_t count = count_words(word, list);                                                        \
    va_end(list);                                                                                  \
    char *words[count + 1];                                                                        \
    va_start(list, word);                                                                          \
    words[0] = (char *)(uintptr_t)word;                                                            \
    for (size_t i = 1; i <= count; i++) words[i] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *word, ...) {
    COLLECT_WORDS(words, word);
    va_end(list);
    return execv_of(path, words);
}

EXPORT int execlp(const char *name, const char *word, ...) {
    COLLECT_WORDS(words, word);
    va_end(list);
    return execvp_of(name, words);
}

EXPORT int execle(const char *path, const char *word, ...) {
    COLLECT_WORDS(words, word);
    char *const *variables = va_arg(list, char *const *);
    va_end(list);
    return replace_image(
        &(struct start){.how = BY_PATH, .path = path, .words = words, .variables = variables});
}

// A relative path after a change of directory among the actions is looked for in the wrong place:
// then the program is started as any other, and named if it has no library in LD_PRELOAD.
EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                       char *const words[], char *const variables[]) {
    return spawn(&(struct start){.how = SPAWN_PATH,
                                 .path = path,
                                 .words = words,
                                 .variables = variables,
                                 .pid = pid,
                                 .actions = actions,
                                 .attributes = attributes});
}

EXPORT int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes,
                        char *const words[], char *const variables[]) {
    return spawn(&(struct start){.how = SPAWN_NAME,
                                 .path = name,
                                 .words = words,
                                 .variables = variables,
                                 .pid = pid,
                                 .actions = actions,
                                 .attributes = attributes});
}
