// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/run_static.h"

#include <fnmatch.h>

#include "tool/attach/static_start.h"
#include "tool/watch/library.h"

// They need a dynamic linker, functions of libc that nobody found, or a program without the tool.
static const struct {
    enum option_id option;
    const char *name;
} dynamic_only[] = {{OPTION_EXEC, "exec"},
                    {OPTION_MMAP, "mmap"},
                    {OPTION_GUARD, "guard"},
                    {OPTION_SIGNAL, "signal"},
                    {OPTION_WRAP, "wrap"}};
enum { DYNAMIC_ONLY = sizeof dynamic_only / sizeof *dynamic_only };

static const char *option_in_way(const struct command_args *args) {
    for (size_t i = 0; i < DYNAMIC_ONLY; i++)
        if (args_has(args, dynamic_only[i].option)) return dynamic_only[i].name;
    return NULL;
}

bool run_static_prepare(struct run_static *run, const struct command_args *args,
                        const struct program *program, struct error *error) {
    run->program = program;
    run->is_anyway = args_has(args, OPTION_IGNORE_CHECKS);
    const char *option = option_in_way(args);
    if (option)
        return error_set(error, "run: --%s cannot be had of %s, which is statically linked", option,
                         program->path);
    return library_find_bare(run->library, error);
}

static bool record(void *context, pid_t pid, struct error *error) {
    struct run_static *run = context;
    struct error why;
    if (!static_start_await(pid)) return true;
    bool is_recorded = static_start_record(pid, run->library, NULL, &why);
    if (!is_recorded && run->is_anyway) run->problem = why;
    if (is_recorded || run->is_anyway) {
        static_start_go(pid);
        return true;
    }
    return error_set(error,
                     "%s cannot be recorded: it is statically linked, and %s (--ignore-checks runs "
                     "it nevertheless)",
                     run->program->path, why.text);
}

bool run_static_hold(struct run_static *run, struct launched *launched, struct error *error) {
    struct error why;
    launched->begin = record;
    launched->context = run;
    if (static_start_hold(launched->pid, &why)) return true;
    return error_set(error, "%s cannot be recorded: it is statically linked, and %s",
                     run->program->path, why.text);
}

// ---- those that others start --------------------------------------------------------------------

static void hear(void *context, pid_t pid, const struct cairn_hello *message) {
    struct run_static *run = context;
    const char *children = run->watch->children;
    if (!children || fnmatch(children, message->program, 0) == 0)
        static_holds_hear(&run->holds, pid, message);
}

static bool note(void *context, pid_t pid, int status) {
    return static_holds_note(&((struct run_static *)context)->holds, pid, status);
}

static void take_back(void *context, pid_t pid, pid_t teller, const struct cairn_hello *message) {
    watch_take_back(((struct run_static *)context)->watch, pid, teller, message);
}

void run_static_follow(struct run_static *run, const struct command_args *args, struct watch *watch,
                       struct job *job) {
    struct error unused;
    bool is_possible = run->library[0] || library_find_bare(run->library, &unused);
    if (!is_possible || option_in_way(args)) return;
    run->watch = watch;
    run->holds.library = run->library;
    run->holds.recorded = take_back;
    run->holds.context = run;
    watch->hear_static = hear;
    watch->hear_context = run;
    job->note = note;
    job->note_context = run;
}

void run_static_tell(struct run_static *run, const char *variables) {
    run->holds.variables = variables;
}

void run_static_close(struct run_static *run) {
    static_holds_close(&run->holds);
}
