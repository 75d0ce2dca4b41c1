// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/reference.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/query/arguments.h"
#include "tool/query/views.h"

#define GENERATED                                                                                  \
    "<!-- Written by dev/reference.py from the tables of the tool. Change the tables, then run "   \
    "make reference. -->\n"

// Text between marks: characters with a meaning in Markdown and in its tables are escaped.
static void put_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (strchr("\\*_<>|[]`", *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

// Code in a table: only the bar needs an escape.
static void put_code(FILE *out, const char *text) {
    fputc('`', out);
    for (; *text; text++) fprintf(out, *text == '|' ? "\\|" : "%c", *text);
    fputc('`', out);
}

static void put_sentence(FILE *out, const char *text) {
    fputc(toupper((unsigned char)*text), out);
    put_text(out, text + 1);
    fputs(".\n", out);
}

// Words up to column COLUMNS_MAX, each between `quote`; lines that follow begin with `indent`.
static void put_words(FILE *out, const char *words, size_t column, const char *quote,
                      const char *between, const char *indent) {
    enum { COLUMNS_MAX = 110 };
    for (const char *at = words; *at;) {
        size_t length = strcspn(at, " ");
        bool is_last = !at[length];
        column += length + 2 * strlen(quote) + strlen(between) + 1;
        if (at != words) {
            fputs(between, out);
            fputs(column > COLUMNS_MAX ? indent : " ", out);
            if (column > COLUMNS_MAX) column = strlen(indent) + length + 2 * strlen(quote);
        }
        fprintf(out, "%s%.*s%s", quote, (int)length, at, quote);
        at += length + !is_last;
    }
    fputc('\n', out);
}

// A line of help says a default as "(64M)" at its end, or as "peak (default)".
static void put_default(FILE *out, const char *help) {
    const char *marked = strstr(help, " (default)"), *last = strrchr(help, '(');
    size_t length = strlen(help);
    if (marked) {
        const char *start = marked;
        while (start > help && start[-1] != ' ') start--;
        fprintf(out, "`%.*s`", (int)(marked - start), start);
    } else if (last && isdigit((unsigned char)last[1]) && help[length - 1] == ')') {
        fprintf(out, "`%.*s`", (int)(help + length - 1 - last - 1), last + 1);
    }
}

static void print_option(FILE *out, const struct option_row *row) {
    fputs("| ", out);
    if (row->letter) fprintf(out, "`-%c`, ", row->letter);
    fprintf(out, "`--%s` | ", row->name);
    if (row->argument) put_code(out, row->argument);
    fputs(" | ", out);
    put_default(out, row->help);
    fputs(" | ", out);
    put_text(out, row->help);
    fputs(" |\n", out);
}

// Paragraphs of a description; indented lines are lists, and stay as they are lined up.
static void print_description(FILE *out, const char *text) {
    bool was_code = false;
    fputc('\n', out);
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_code = *text == ' ';
        if (is_code != was_code) fputs(is_code ? "\n```text\n" : "```\n\n", out);
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (is_code)
            fputs(line + 2, out);
        else
            put_text(out, line);
        fputc('\n', out);
        was_code = is_code;
        text += length + (text[length] == '\n');
    }
    if (was_code) fputs("```\n", out);
}

// Whether a command has the option, or can come into the circumstance.
static bool is_of_command(const struct command *command, int which) {
    enum option_id option =
        which < OPTION_COUNT ? (enum option_id)which : circumstance_cause(which);
    if (option == OPTION_COUNT) return strstr(command->arguments, "@SNAPSHOT");
    return option_row_of(command, option);
}

static void put_option(FILE *out, const struct command *command, int which) {
    if (which >= OPTION_COUNT)
        fprintf(out, "`%s`", circumstance_name(which));
    else
        fprintf(out, "`--%s`", option_row_of(command, (enum option_id)which)->name);
}

// A rule as far as it is about this command, as one line; nothing if it is not. An alias of a view
// is always in it.
static void put_rule(FILE *out, const struct command *command, const struct option_rule *rule) {
    const char *between = rule->is_needed ? " needs " : " excludes ";
    if (!is_of_command(command, rule->subject) || (rule->is_needed && command->view)) return;
    bool is_begun = false;
    for (const int *other = rule->others; *other != CIRCUMSTANCE_END; other++) {
        if (!is_of_command(command, *other)) continue;
        if (!is_begun) put_option(out, command, rule->subject);
        fputs(!is_begun ? between : rule->is_needed ? " or " : ", ", out);
        put_option(out, command, *other);
        is_begun = true;
    }
    if (is_begun && rule->reason) fprintf(out, ": %s", rule->reason);
}

static void print_rules(FILE *out, const struct command *command) {
    const char *before = "\n- ";
    for (const struct option_rule *rule = option_rules; rule->others; rule++) {
        char *line = NULL;
        size_t size;
        FILE *text = open_memstream(&line, &size);
        if (!text) return;
        put_rule(text, command, rule);
        fclose(text);
        if (*line) {
            fputs(before, out);
            put_words(out, line, strlen("- "), "", "", "\n  ");
            before = "- ";
        }
        free(line);
    }
}

static void print_command(FILE *out, const struct command *command) {
    fprintf(out, "\n## cairn %s\n\n    cairn %s%s%s", command->name, command->name,
            command->options[0].name ? " [OPTIONS]" : "", *command->arguments ? " " : "");
    put_words(out, command->arguments, strlen("    cairn  [OPTIONS]") + strlen(command->name), "",
              "", "\n        ");
    fputc('\n', out);
    put_sentence(out, command->help);
    char *description = command_description(command);
    if (description) print_description(out, description);
    free(description);
    if (command->has_views) fputs("\n[Views](views.md) has the values of `--view`.\n", out);
    if (!command->options[0].name) return;
    fputs("\n| option | argument | default | meaning |\n|---|---|---|---|\n", out);
    for (const struct option_row *row = command->options; row->name; row++) print_option(out, row);
    print_rules(out, command);
}

static void print_commands(FILE *out) {
    fputs("# Commands\n" GENERATED "\n`cairn COMMAND --help` prints the same. Options end at `--`. "
          "A size is a number of bytes or\n"
          "has a unit (`64K`, `1.5GiB`); a time has one (`500ms`, `10s`, `2m`, `1h`).\n\n"
          "| command | purpose |\n|---|---|\n",
          out);
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        fprintf(out, "| [%s](#cairn-%s) | ", command->name, command->name);
        put_text(out, command->help);
        fputs(" |\n", out);
    }
    for (const struct command *const *each = commands; *each; each++) print_command(out, *each);
}

static void print_limits(FILE *out, const struct view *view) {
    fprintf(out, "- Ranked by: `%s`", view->measure);
    if (view->top) fprintf(out, "; %zu entries", view->top);
    if (view->depth) fprintf(out, "; %zu frames each", view->depth);
    if (view->threshold > 0) fprintf(out, "; from %g %% of the whole on", 100 * view->threshold);
    fputs("\n", out);
}

static void print_view(FILE *out, const struct view *view) {
    const struct view_reference *reference = &view->reference;
    fprintf(out, "\n## %s\n%s\n\n", view->name, reference->question);
    fputs("- Shows: ", out);
    put_text(out, view->help);
    fputc('\n', out);
    print_limits(out, view);
    if (*reference->options) {
        fputs("- Options: ", out);
        put_words(out, reference->options, strlen("- Options:"), "`", ",", "\n  ");
    }
    fprintf(out, "- Recorded with: %s\n",
            reference->recorded_with ? reference->recorded_with : "any recording");
    if (reference->not_of_heaps) fprintf(out, "- Without `--heap`: %s\n", reference->not_of_heaps);
}

static void print_views(FILE *out) {
    fputs(
        "# Views\n" GENERATED "\n`cairn report --view NAME` shows a recording in one of these "
        "ways, and `cairn leaks --view NAME`\n"
        "what is left at the end. [commands.md](commands.md#cairn-report) has the options.\n"
        "\n"
        "All views but `heap`, `pages`, `mappings` and `processes` take the filters (`--focus`, "
        "`--ignore`,\n"
        "`--hide`, `--module`, `--thread`, `--region`, `--lifespan`) and a snapshot (`--at`, "
        "`--between`,\n"
        "`--since`), and `--heap` where nothing else is said. All take `--process`, `--bytes`,\n"
        "`--summary` and `--json` where these have a meaning, and `--format csv`, `ndjson` or `md` "
        "where\n[rows](json.md#answers) are listed.\n"
        "Entries, frames and shares below are the defaults of `--top`, `--depth` and "
        "`--threshold`.\n\n"
        "| view | question |\n|---|---|\n",
        out);
    for (const struct view *view = views; view->name; view++)
        fprintf(out, "| [%s](#%s) | %s |\n", view->name, view->name, view->reference.question);
    for (const struct view *view = views; view->name; view++) print_view(out, view);
}

bool reference_print(FILE *out, const char *page) {
    if (!strcmp(page, "commands"))
        print_commands(out);
    else if (!strcmp(page, "views"))
        print_views(out);
    else
        return false;
    return true;
}
