// SPDX-License-Identifier: Apache-2.0
// In the order in which help lists them.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/near.h"
#include "tool/base/text.h"
#include "tool/watch/program.h"

const struct command *const commands[] = {
    &command_run,    &command_attach,     &command_ctl,       &command_top,
    &command_push,   &command_report,     &command_leaks,     &command_open,
    &command_serve,  &command_events,     &command_replay,    &command_whatif,
    &command_export, &command_diff,       &command_merge,     &command_import,
    &command_sql,    &command_check,      &command_torture,   &command_history,
    &command_info,   &command_core,       &command_symbolize, &command_mcp,
    &command_env,    &command_gdb_script, &command_help,      NULL,
};

const struct command_group command_groups[] = {
    {"Record", {&command_run, &command_attach}},
    {"Ask", {&command_report, &command_leaks, &command_top, &command_open, &command_diff}},
    {"In production", {&command_serve, &command_ctl}},
    {"In tests, and more", {&command_check, &command_help}},
    {0},
};

const struct command *command_find(const char *name) {
    for (const struct command *const *command = commands; *command; command++)
        if (!strcmp((*command)->name, name)) return *command;
    return NULL;
}

// Returns the command that takes such a word as its subject; NULL if none does.
static const char *command_of_subject(const char *word) {
    struct program program;
    int status;
    struct error error;
    bool is_number = *word && !word[strspn(word, "0123456789")];
    if (is_number) return "report";
    if (program_find(word, &program, &status, &error)) return "run";
    return access(word, F_OK) == 0 ? "report" : NULL;
}

int command_unknown(char **words) {
    enum { LINE_BYTES = 400, QUESTION_BYTES = 96 };
    char line[LINE_BYTES] = "", question[QUESTION_BYTES];
    struct error error;
    struct near near;
    near_start(&near, *words, strlen(*words));
    for (const struct command *const *each = commands; *each; each++)
        near_try(&near, (*each)->name);
    near_ask(&near, question, sizeof question);
    const char *name = near.best ? NULL : command_of_subject(*words);
    for (char **word = words; name && *word; word++) {
        size_t used = strlen(line);
        if (used + 2 >= sizeof line) break;
        line[used++] = ' ';
        if (word == words)
            text_quote(line + used, sizeof line - used, *word);
        else
            text_quote_word(line + used, sizeof line - used, *word);
    }
    if (name)
        error_set(&error, "unknown command \"%s\"; did you mean: cairn %s%s", *words, name, line);
    else
        error_set(&error, "unknown command \"%s\"%s; cairn help lists them", *words, question);
    return command_fail(STATUS_USAGE, &error);
}
