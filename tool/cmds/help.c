// SPDX-License-Identifier: Apache-2.0
// Help, made of the tables of commands, options, views and pages.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/near.h"
#include "tool/base/version.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/manual.h"
#include "tool/cmds/reference.h"
#include "tool/export/export.h"
#include "tool/manual/pages.h"
#include "tool/query/views.h"

enum { NAME_COLUMNS = 24, LINE_COLUMNS = 96, TEXT_BYTES = 1024 };

void command_print_usage(FILE *out, const struct command *command) {
    fprintf(out, "usage: cairn %s%s%s%s", command->name,
            command->options[0].name ? " [OPTIONS]" : "", *command->arguments ? " " : "",
            command->arguments);
}

static void print_option(FILE *out, char letter, const char *name, const char *argument,
                         const char *help) {
    char text[TEXT_BYTES];
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

// Returns true if a name is among words with spaces between them.
static bool is_among(const char *name, const char *words) {
    size_t length = strlen(name);
    for (const char *word = words; *word; word += strcspn(word, " "), word += *word == ' ')
        if (strcspn(word, " ") == length && !strncmp(word, name, length)) return true;
    return false;
}

static void print_options(FILE *out, const struct command *command, bool is_all) {
    size_t count = 1, shown = 1;
    fputs("\noptions:\n", out);
    for (const struct option_row *row = command->options; row->name; row++) {
        bool is_shown = is_all || !command->first || is_among(row->name, command->first);
        if (is_shown) print_option(out, row->letter, row->name, row->argument, row->help);
        shown += is_shown;
        count++;
    }
    print_option(out, 'h', "help", "[=all]", "this text; =all has every option");
    if (shown < count)
        fprintf(out, "%zu more options: cairn %s --help=all\n", count - shown, command->name);
}

// Prints the names of views by the question that they answer, below a heading.
static void print_view_names(FILE *out) {
    enum { TITLE_COLUMNS = 26 };
    fputs("\nviews, by question (cairn help views has a line for each):\n", out);
    for (const struct view_group *group = view_groups; group->title; group++) {
        int column = fprintf(out, "  %-*s", TITLE_COLUMNS, group->title);
        for (const char *name = group->names; *name; name += strcspn(name, " ")) {
            name += *name == ' ';
            int length = (int)strcspn(name, " ");
            if (column + length >= LINE_COLUMNS)
                column = fprintf(out, "\n  %-*s", TITLE_COLUMNS, "") - 1;
            column += fprintf(out, " %.*s", length, name);
        }
        fputc('\n', out);
    }
}

static void print_views(FILE *out) {
    for (const struct view_group *group = view_groups; group->title; group++) {
        fprintf(out, "%s%s\n", group == view_groups ? "" : "\n", group->title);
        for (const struct view *view = views; view->name; view++)
            if (is_among(view->name, group->names))
                fprintf(out, "  %-15s %s\n", view->name, view->help);
    }
}

void command_print_help(FILE *out, const struct command *command, bool is_all) {
    command_print_usage(out, command);
    fprintf(out, "\n\n%c%s.\n", toupper((unsigned char)command->help[0]), command->help + 1);
    char *description = command_description(command);
    if (description) fprintf(out, "\n%s", description);
    free(description);
    print_options(out, command, is_all);
    if (command->has_views) print_view_names(out);
}

static void print_command_line(FILE *out, const struct command *command) {
    fprintf(out, "  %-10s %s\n", command->name, command->help);
}

void commands_print_overview(FILE *out) {
    fputs("cairn " CAIRN_TOOL_VERSION " - where a program's memory goes\n\n"
          "usage: cairn COMMAND [OPTIONS] [ARGUMENTS]\n",
          out);
    for (const struct command_group *group = command_groups; group->title; group++) {
        fprintf(out, "\n%s\n", group->title);
        for (const struct command *const *each = group->list; *each; each++)
            print_command_line(out, *each);
    }
    fputs("\nStart with:  cairn run PROGRAM [ARGUMENT...]\n"
          "Options of a command:  cairn help COMMAND     All commands:  cairn help all\n",
          out);
}

static void print_topics(FILE *out) {
    for (const struct page *page = pages; page->name; page++) {
        char title[PAGE_TITLE_BYTES];
        page_title(page, title);
        fprintf(out, "  %-13s %s\n", page->name, title);
    }
}

static void print_all(FILE *out) {
    for (const struct command *const *each = commands; *each; each++)
        print_command_line(out, *each);
    fputs("\nTopics, cairn help TOPIC (TOPIC.md if a command has that name):\n", out);
    print_topics(out);
}

// Words that are neither a command nor a topic of their own.
static const struct {
    const char *word;
    void (*print)(FILE *out);
} lists[] = {{"all", print_all}, {"topics", print_topics}, {"views", print_views}};

static int fail_unknown(const char *word) {
    struct error error;
    struct near near;
    near_start(&near, word, strlen(word));
    for (const struct command *const *each = commands; *each; each++)
        near_try(&near, (*each)->name);
    for (const struct page *page = pages; page->name; page++) near_try(&near, page->name);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) near_try(&near, lists[i].word);
    char question[TEXT_BYTES];
    near_ask(&near, question, sizeof question);
    error_set(&error, "help: unknown command or topic \"%s\"%s; cairn help all lists them", word,
              question);
    return command_fail(STATUS_USAGE, &error);
}

static int print_howto(const struct page *page, const char *section) {
    const struct terminal terminal = terminal_of(stdout);
    struct error error;
    if (page_print(&terminal, page, section)) return STATUS_OK;
    error_set(&error, "help: %s has no section \"%s\"; cairn help %s.md prints all of it",
              page->name, section, page->name);
    return command_fail(STATUS_USAGE, &error);
}

static int print_page(const char *word) {
    const struct command *command = command_find(word);
    const char *section;
    const struct page *page = page_find(word, &section);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(lists[i].word, word) != 0) continue;
        lists[i].print(stdout);
        return STATUS_OK;
    }
    if (!command && !page) return fail_unknown(word);
    if (!command) return print_howto(page, section);
    command_print_help(stdout, command, false);
    if (page) printf("\nHow to go about it:  cairn help %s.md\n", word);
    return STATUS_OK;
}

int cmd_help(const struct command_args *args) {
    const char *shell = args_text(args, OPTION_COMPLETION, NULL);
    if (shell) {
        struct error error;
        if (manual_print_completion(stdout, shell)) return STATUS_OK;
        error_set(&error, "help: completion is made for bash, zsh and fish, not for \"%s\"", shell);
        return command_fail(STATUS_USAGE, &error);
    }
    const char *page = args_text(args, OPTION_REFERENCE, NULL);
    if (page) {
        struct error error;
        if (reference_print(stdout, page)) return STATUS_OK;
        error_set(&error, "help: there are reference pages of commands and views, not of \"%s\"",
                  page);
        return command_fail(STATUS_USAGE, &error);
    }
    if (args_has(args, OPTION_MANUAL)) {
        manual_print_page(stdout);
        return STATUS_OK;
    }
    if (args->word_count) return print_page(args->words[0]);
    commands_print_overview(stdout);
    return STATUS_OK;
}
