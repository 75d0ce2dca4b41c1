// SPDX-License-Identifier: Apache-2.0
// Parsing, made from the table of commands.
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/near.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/cmds/commands.h"
#include "tool/query/arguments.h"
#include "tool/query/name_options.h"
#include "tool/render/terminal.h"

enum { VALUE_HELP = 0x100, VALUE_FIRST_OPTION };

static bool usage_error(const struct command *command, const struct error *error, int *status) {
    *status = command_fail(STATUS_USAGE, error);
    command_print_usage(stderr, command);
    fprintf(stderr, "   (cairn help %s)\n", command->name);
    return false;
}

// The two forms that getopt_long takes, from the command's rows.
struct getopt_table {
    char letters[2 * COMMAND_OPTIONS_MAX + 8];
    struct option longs[COMMAND_OPTIONS_MAX + 2];
};

static void fill_table(const struct command *command, struct getopt_table *table) {
    char *letter = table->letters;
    // '+': stop at the first word that is no option; ':': a missing argument has a value of its own
    if (command->has_program) *letter++ = '+';
    *letter++ = ':';
    *letter++ = 'h';
    size_t count = 0;
    for (const struct option_row *row = command->options; row->name; row++) {
        int has_argument = row->argument ? required_argument : no_argument;
        if (option_may_lack_argument(row)) has_argument = optional_argument;
        table->longs[count++] =
            (struct option){row->name, has_argument, NULL, VALUE_FIRST_OPTION + (int)row->id};
        if (row->letter) *letter++ = row->letter;
        if (row->letter && row->argument) *letter++ = ':';
    }
    *letter = 0;
    table->longs[count++] = (struct option){"help", optional_argument, NULL, VALUE_HELP};
    table->longs[count] = (struct option){0};
}

static const struct option_row *row_of(const struct command *command, int value) {
    for (const struct option_row *row = command->options; row->name; row++)
        if (value == VALUE_FIRST_OPTION + (int)row->id || (row->letter && value == row->letter))
            return row;
    return NULL;
}

// A long option that another command has; NULL: none has.
static const char *whose_option(const char *word) {
    size_t length = strcspn(word, "=");
    for (const struct command *const *each = commands; *each; each++)
        for (const struct option_row *row = (*each)->options; row->name; row++)
            if (strlen(row->name) + 2 == length && !strncmp(row->name, word + 2, length - 2))
                return (*each)->name;
    return NULL;
}

// What other programs call an option that a command here may have under another name.
static const struct {
    const char *word, *option;
} usual_words[] = {
    {"format", "json"},
    {"duration", "record-for"},
    {"timeout", "record-for"},
    {"sort", "by"},
};

// Returns true if the word is one of the name's parts, as "for" is of "record-for".
static bool is_part_of(const char *word, size_t length, const char *name) {
    for (const char *part = name; part; part = strchr(part, '-')) {
        part += *part == '-';
        bool ends = strlen(part) >= length && (!part[length] || part[length] == '-');
        if (ends && !strncmp(part, word, length)) return true;
    }
    return false;
}

// Returns the option of the same command that an unknown one is meant to be; NULL if none is near.
static const char *near_option(const struct command *command, const char *word) {
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof usual_words / sizeof *usual_words; i++)
        if (strlen(usual_words[i].word) == length && !strncmp(usual_words[i].word, word, length))
            for (const struct option_row *row = command->options; row->name; row++)
                if (!strcmp(row->name, usual_words[i].option)) return row->name;
    for (const struct option_row *row = command->options; length && row->name; row++)
        if (is_part_of(word, length, row->name)) return row->name;
    return NULL;
}

// Returns the option that is mistyped; NULL if none is near.
static const char *mistyped_option(const struct command *command, const char *word) {
    struct near near;
    near_start(&near, word, strcspn(word, "="));
    for (const struct option_row *row = command->options; row->name; row++)
        near_try(&near, row->name);
    return near.best;
}

static bool refuse(const struct command *command, int value, const char *word, int *status) {
    struct error error;
    bool is_long = !strncmp(word, "--", 2);
    char letter[] = {'-', (char)optopt, 0};
    const char *option = is_long || !isgraph(optopt) ? word : letter;
    const char *other = is_long ? whose_option(word) : NULL;
    const char *near = is_long ? near_option(command, word + 2) : NULL;
    if (is_long && !near && !other) near = mistyped_option(command, word + 2);
    const struct option_row *row = optopt ? row_of(command, optopt) : NULL;
    if (row && is_long && value != ':')
        error_set(&error, "%s: --%s takes no value: %s", command->name, row->name, word);
    else if (value == ':')
        error_set(&error, "%s: option %s needs an argument", command->name, option);
    else if (near)
        error_set(&error, "%s: unknown option %s (did you mean --%s?)", command->name, option,
                  near);
    else
        error_set(&error, "%s: unknown option %s%s%s%s", command->name, option,
                  other ? " (cairn " : "", other ? other : "", other ? " has it)" : "");
    return usage_error(command, &error, status);
}

// Another option, or "--", in the place of an argument: nobody means a file of that name, and what
// is meant would be lost. `--option=--text` is what it says.
static bool is_argument_missing(const struct command *command, char **argv) {
    if (!optarg || optarg != argv[optind - 1] || strncmp(optarg, "--", 2) != 0) return false;
    size_t length = strcspn(optarg + 2, "=");
    for (const struct option_row *row = command->options; row->name; row++)
        if (strlen(row->name) == length && !strncmp(optarg + 2, row->name, length)) return true;
    return !optarg[2] || !strcmp(optarg, "--help");
}

static bool keep_option(struct command_args *args, const struct option_row *row, int *status) {
    struct error error;
    const char *value = optarg && row->argument ? optarg : "";
    args->values[row->id] = value;
    if (args->given_count < GIVEN_OPTIONS_MAX) {
        args->given[args->given_count++] = (struct given_option){row->id, value};
        return true;
    }
    error_set(&error, "%s: more than %d options", args->command->name, GIVEN_OPTIONS_MAX);
    return usage_error(args->command, &error, status);
}

// Prints what --help or --help=all asks for; false: nothing else is to be done.
static bool print_help(const struct command *command, int *status) {
    struct error error;
    bool is_all = optarg && !strcmp(optarg, "all");
    if (optarg && !is_all) {
        error_set(&error, "%s: --help takes nothing or =all, not \"%s\"", command->name, optarg);
        return usage_error(command, &error, status);
    }
    command_print_help(stdout, command, is_all);
    *status = STATUS_OK;
    return false;
}

// Puts the value of -p PID in front of the words, where a process stands: in the place of the last
// word that was read.
static void take_pid(struct command_args *args) {
    const char *pid = args_text(args, OPTION_PID, NULL);
    if (!pid) return;
    args->words--;
    args->words[0] = (char *)(uintptr_t)pid;
    args->word_count++;
}

bool command_parse(const struct command *command, int argc, char **argv, struct command_args *args,
                   int *status) {
    struct getopt_table table;
    fill_table(command, &table);
    *args = (struct command_args){.command = command};
    opterr = 0;
    optind = 0;  // glibc: start over
    for (int value; (value = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1;) {
        if (value == 'h' || value == VALUE_HELP) return print_help(command, status);
        const struct option_row *row = row_of(command, value);
        if (!row) return refuse(command, value, argv[optind > 1 ? optind - 1 : 1], status);
        if (is_argument_missing(command, argv)) {
            optopt = 0;  // the word names it
            return refuse(command, ':', argv[optind - 2], status);
        }
        if (!keep_option(args, row, status)) return false;
    }
    args->words = argv + optind;
    args->word_count = argc - optind;
    args->has_separator = optind > 1 && !strcmp(argv[optind - 1], "--");
    take_pid(args);
    struct error error;
    if ((size_t)args->word_count > command->words_max) {
        error_set(&error, "%s: unexpected argument \"%s\"", command->name,
                  args->words[command->words_max]);
        return usage_error(command, &error, status);
    }
    if (command->has_program && !args->word_count) {
        error_set(&error, "%s: no program given", command->name);
        return usage_error(command, &error, status);
    }
    if (options_check(args, &error)) return true;
    *status = command_fail(STATUS_USAGE, &error);
    return false;
}

static int print_and_end(void (*print)(FILE *out), FILE *out, int status) {
    print(out);
    return status;
}

static bool is_one_of(const char *word, const char *first, const char *second) {
    return !strcmp(word, first) || !strcmp(word, second);
}

static bool read_color(const struct command_args *args, struct error *error) {
    const char *when = args_text(args, OPTION_COLOR, "auto");
    return terminal_set_color(when) ||
           error_set(error, "%s: --color: auto, always or never, not \"%s\"", args->command->name,
                     when);
}

int commands_run(int argc, char **argv) {
    if (argc < 2) return print_and_end(commands_print_overview, stderr, STATUS_USAGE);
    const char *word = argv[1];
    if (is_one_of(word, "--help", "-h"))
        return print_and_end(commands_print_overview, stdout, STATUS_OK);
    if (is_one_of(word, "--version", "-V")) return print_and_end(version_print, stdout, STATUS_OK);
    const struct command *command = command_find(word);
    if (!command) return command_unknown(argv + 1);
    struct command_args args;
    int status;
    if (!command_parse(command, argc - 1, argv + 1, &args, &status)) return status;
    struct error error;
    if (!name_options_read(&args, &error) || !read_color(&args, &error))
        return command_fail(STATUS_USAGE, &error);
    return command->run(&args);
}
