// SPDX-License-Identifier: Apache-2.0
// Parsing and help, made from the table of commands.
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/cmds/commands.h"
#include "tool/export/export.h"
#include "tool/query/arguments.h"
#include "tool/query/name_options.h"
#include "tool/query/views.h"
#include "tool/render/terminal.h"

enum { VALUE_HELP = 0x100, VALUE_FIRST_OPTION, MESSAGE_BYTES = 1024 };

static void print_usage(FILE *out, const struct command *command) {
    fprintf(out, "usage: cairn %s%s%s%s", command->name,
            command->options[0].name ? " [OPTIONS]" : "", *command->arguments ? " " : "",
            command->arguments);
}

static bool usage_error(const struct command *command, const struct error *error, int *status) {
    *status = command_fail(STATUS_USAGE, error);
    print_usage(stderr, command);
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
    table->longs[count++] = (struct option){"help", no_argument, NULL, VALUE_HELP};
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

// Whether the word is some of the name's parts, as "for" is of "record-for".
static bool is_part_of(const char *word, size_t length, const char *name) {
    for (const char *part = name; part; part = strchr(part, '-')) {
        part += *part == '-';
        bool ends = strlen(part) >= length && (!part[length] || part[length] == '-');
        if (ends && !strncmp(part, word, length)) return true;
    }
    return false;
}

// The option of the same command that a word that is none of its options stands for; NULL: none.
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

static bool refuse(const struct command *command, int value, const char *word, int *status) {
    struct error error;
    bool is_long = !strncmp(word, "--", 2);
    char letter[] = {'-', (char)optopt, 0};
    const char *option = is_long || !isgraph(optopt) ? word : letter;
    const char *near = is_long ? near_option(command, word + 2) : NULL;
    const char *other = is_long ? whose_option(word) : NULL;
    const struct option_row *row = optopt ? row_of(command, optopt) : NULL;
    if (row && is_long && value != ':')
        error_set(&error, "%s: --%s takes no value: %s", command->name, row->name, word);
    else if (value == ':')
        error_set(&error, "%s: option %s needs an argument", command->name, option);
    else if (near)
        error_set(&error, "%s: unknown option %s (--%s is meant?)", command->name, option, near);
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

bool command_parse(const struct command *command, int argc, char **argv, struct command_args *args,
                   int *status) {
    struct getopt_table table;
    fill_table(command, &table);
    *args = (struct command_args){.command = command};
    opterr = 0;
    optind = 0;  // glibc: start over
    for (int value; (value = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1;) {
        if (value == 'h' || value == VALUE_HELP) {
            command_print_help(stdout, command);
            *status = STATUS_OK;
            return false;
        }
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

static void print_option(FILE *out, char letter, const char *name, const char *argument,
                         const char *help) {
    enum { NAME_COLUMNS = 24 };
    char text[MESSAGE_BYTES];
    const char *gap = argument && *argument != '[' ? " " : "";
    snprintf(text, sizeof text, "--%s%s%s", name, gap, argument ? argument : "");
    if (letter)
        fprintf(out, "  -%c, %-*s %s\n", letter, NAME_COLUMNS - 4, text, help);
    else
        fprintf(out, "      %-*s %s\n", NAME_COLUMNS - 4, text, help);
}

char *command_description(const struct command *command) {
    const char *text = command->description, *formats = text ? strstr(text, COMMAND_FORMATS) : NULL;
    char *whole = NULL;
    size_t size;
    FILE *out = text ? open_memstream(&whole, &size) : NULL;
    if (!out) return NULL;
    if (formats) {
        fwrite(text, 1, (size_t)(formats - text), out);
        for (const struct export_format *format = export_formats; format->name; format++)
            fprintf(out, "  %-12s %s\n", format->name, format->help);
        text = formats + strlen(COMMAND_FORMATS);
    }
    fputs(text, out);
    fclose(out);
    return whole;
}

void command_print_help(FILE *out, const struct command *command) {
    print_usage(out, command);
    fprintf(out, "\n\n%c%s.\n", toupper((unsigned char)command->help[0]), command->help + 1);
    char *description = command_description(command);
    if (description) fprintf(out, "\n%s", description);
    free(description);
    fputs("\noptions:\n", out);
    for (const struct option_row *row = command->options; row->name; row++)
        print_option(out, row->letter, row->name, row->argument, row->help);
    print_option(out, 'h', "help", NULL, "this text");
    if (!command->has_views) return;
    fputs("\nviews:\n", out);
    for (const struct view *view = views; view->name; view++)
        fprintf(out, "  %-10s %s\n", view->name, view->help);
}

void commands_print_overview(FILE *out) {
    fputs("cairn " CAIRN_TOOL_VERSION " - where a program's memory goes\n\n"
          "usage: cairn COMMAND [OPTIONS] [ARGUMENTS]\n\n",
          out);
    for (const struct command *const *each = commands; *each; each++)
        fprintf(out, "  %-10s %s\n", (*each)->name, (*each)->help);
    fputs("\nStart with:  cairn run PROGRAM [ARGUMENT...]\n"
          "Options of a command:  cairn help COMMAND\n",
          out);
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
    if (!command) {
        struct error error;
        error_set(&error, "there is no command \"%s\"; cairn help lists them", word);
        return command_fail(STATUS_USAGE, &error);
    }
    struct command_args args;
    int status;
    if (!command_parse(command, argc - 1, argv + 1, &args, &status)) return status;
    struct error error;
    if (!name_options_read(&args, &error) || !read_color(&args, &error))
        return command_fail(STATUS_USAGE, &error);
    return command->run(&args);
}
