// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/run_static.h"

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

bool run_static_prepare(struct run_static *run, const struct command_args *args,
                        const struct program *program, struct error *error) {
    run->program = program;
    run->is_anyway = args_has(args, OPTION_IGNORE_CHECKS);
    for (size_t i = 0; i < DYNAMIC_ONLY; i++)
        if (args_has(args, dynamic_only[i].option))
            return error_set(error, "run: --%s cannot be had of %s, which is statically linked",
                             dynamic_only[i].name, program->path);
    return library_find_bare(run->library, error);
}

static bool record(void *context, pid_t pid, struct error *error) {
    struct run_static *run = context;
    struct error why;
    if (!static_start_await(pid)) return true;
    bool is_recorded = static_start_record(pid, run->library, &why);
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
