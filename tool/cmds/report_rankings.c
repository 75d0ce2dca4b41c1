// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_rankings.h"

#include <stdio.h>
#include <string.h>

#include "tool/model/measure.h"
#include "tool/query/views.h"

enum { NAMES_BYTES = 256, NAMES_MAX = 16 };
static const char separator[] = ",", temporary[] = "temporary";

bool rankings_are_asked(const struct command_args *args) {
    return strchr(args_text(args, OPTION_BY, ""), *separator);
}

// Gives an option another value; NULL takes it away.
static void give(struct command_args *args, enum option_id id, const char *value) {
    size_t kept = 0;
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].id != id) args->given[kept++] = args->given[i];
    if (value && kept < GIVEN_OPTIONS_MAX) args->given[kept++] = (struct given_option){id, value};
    args->given_count = kept;
    args->values[id] = value;
}

// The summary stands above the first list alone; short-lived blocks have a view of their own.
static int report_one(const struct command_args *args, const char *measure, bool is_first) {
    struct command_args one = *args;
    const char *view = !strcmp(measure, temporary) ? temporary : NULL;
    if (!view && !is_first && !args_has(args, OPTION_VIEW) && !args->command->view) view = "stacks";
    give(&one, OPTION_BY, view == temporary ? NULL : measure);
    if (view) give(&one, OPTION_VIEW, view);
    return args->command->run(&one);
}

static bool check(const struct command_args *args, char *const *names, size_t count,
                  struct error *error) {
    enum measure unused;
    if (args_has(args, OPTION_JSON) || args_has(args, OPTION_FORMAT))
        return error_set(error, "%s: --json and --format have one list: give --by one measure",
                         args->command->name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], temporary) != 0 && !measure_parse(names[i], &unused))
            return request_refuse_measure(args->command->name, names[i], error);
    return true;
}

int rankings_report(const struct command_args *args) {
    char text[NAMES_BYTES], *names[NAMES_MAX], *rest = NULL;
    size_t count = 0;
    struct error error;
    int status = STATUS_OK;
    snprintf(text, sizeof text, "%s", args_text(args, OPTION_BY, ""));
    for (char *name = strtok_r(text, separator, &rest); name && count < NAMES_MAX;
         name = strtok_r(NULL, separator, &rest))
        names[count++] = name;
    if (!check(args, names, count, &error)) return command_fail(STATUS_USAGE, &error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        if (i) putchar('\n');
        status = report_one(args, names[i], i == 0);
        fflush(stdout);
    }
    return status;
}
