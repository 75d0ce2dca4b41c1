// SPDX-License-Identifier: Apache-2.0
// cairn env: the variables with which any program records itself, in the form that its starter
// reads.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/cmds/recording_options.h"
#include "tool/watch/job.h"
#include "tool/watch/library.h"

static const struct form {
    const char *name, *line;  // line: takes name and value of a variable
} forms[] = {
    {"shell", "export %s='%s'\n"},
    {"systemd", "Environment=\"%s=%s\"\n"},
    {"docker", "ENV %s=\"%s\"\n"},
    {"gdb", "set exec-wrapper env '%s=%s'\n"},
};

static const struct form *form_find(const char *name) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].name, name)) return &forms[i];
    return NULL;
}

// gdb takes one command for all variables.
static void print_gdb(const struct launch *launch) {
    struct launch_variable variables[LAUNCH_VARIABLES];
    size_t count = launch_variables(launch, variables);
    printf("set exec-wrapper env 'LD_PRELOAD=%s'", launch->library);
    for (size_t i = 0; i < count; i++) printf(" '%s=%s'", variables[i].name, variables[i].value);
    putchar('\n');
}

static void print_lines(const struct form *form, const struct launch *launch) {
    struct launch_variable variables[LAUNCH_VARIABLES];
    size_t count = launch_variables(launch, variables);
    printf(form->line, "LD_PRELOAD", launch->library);
    for (size_t i = 0; i < count; i++) printf(form->line, variables[i].name, variables[i].value);
}

// The libraries, for an image, in the directory that was asked for.
static bool find_library(const char *directory, char path[PATH_MAX], struct error *error) {
    char whole[PATH_MAX];
    if (!directory) return library_find(path, false, error);
    if (strpbrk(directory, " :"))
        return error_set(error, "env: --library %s: LD_PRELOAD allows no space and no colon",
                         directory);
    if (!library_write(directory, error)) return error_wrap(error, "env: --library");
    if (!realpath(directory, whole)) return error_set(error, "%s: %s", directory, strerror(errno));
    return snprintf(path, PATH_MAX, "%s/libcairn.so", whole) < PATH_MAX ||
           error_set(error, "env: --library %s: too long a path", directory);
}

int cmd_env(const struct command_args *args) {
    struct error error;
    struct launch launch = {.output = args_text(args, OPTION_OUTPUT, NULL)};
    struct recording_options recording;
    const char *wanted = args_text(args, OPTION_FOR, "shell");
    const struct form *form = form_find(wanted);
    if (!form) {
        error_set(&error, "env: --for %s: not one of shell, systemd, docker, gdb", wanted);
        return command_fail(STATUS_USAGE, &error);
    }
    if (!recording_options_read(args, &recording, &launch, &error))
        return command_fail(STATUS_USAGE, &error);
    if (!find_library(args_text(args, OPTION_LIBRARY, NULL), launch.library, &error))
        return command_fail(STATUS_FAILURE, &error);
    if (launch.output) library_mark(launch.library, CAIRN_MARK_ALONE, 0);
    if (!strcmp(form->name, "gdb"))
        print_gdb(&launch);
    else
        print_lines(form, &launch);
    return STATUS_OK;
}
