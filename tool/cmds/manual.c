// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/manual.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/manual/pages.h"
#include "tool/query/views.h"

// Text between single quotes, in bash and fish alike.
static void put_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

static bool takes_file(const struct option_row *row) {
    return row->argument && (strstr(row->argument, "FILE") || strstr(row->argument, "DIR") ||
                             strstr(row->argument, "PATH") || strstr(row->argument, "RULES"));
}

static void print_names(FILE *out) {
    for (const struct command *const *each = commands; *each; each++)
        fprintf(out, "%s%s", each == commands ? "" : " ", (*each)->name);
}

static void print_topics(FILE *out) {
    for (const struct page *page = pages; page->name; page++) fprintf(out, " %s", page->name);
}

static void print_bash(FILE *out) {
    fputs("# cairn's completion for bash: source it, or put it into bash-completion's directory\n"
          "_cairn() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_names(out);
    fputs("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        fprintf(out, "    %s) options='", command->name);
        for (const struct option_row *row = command->options; row->name; row++)
            fprintf(out, "--%s ", row->name);
        fputs("--help' ;;\n", out);
    }
    fputs("    esac\n"
          "    if [ \"${COMP_WORDS[1]}\" = help ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_names(out);
    print_topics(out);
    fputs("' -- \"$word\"))\n"
          "    elif [ \"$before\" = --view ] || [ \"$before\" = -v ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    for (const struct view *view = views; view->name; view++)
        fprintf(out, "%s%s", view == views ? "" : " ", view->name);
    fputs("' -- \"$word\"))\n"
          "    elif [ \"${word#-}\" != \"$word\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _cairn cairn\n",
          out);
}

// Colons and brackets have a meaning in zsh's specifications.
static void put_zsh_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (strchr("[]:\\", *text)) fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static void print_zsh_option(FILE *out, const struct option_row *row) {
    fprintf(out, " \\\n            '*--%s%s[", row->name,
            row->argument && !option_may_lack_argument(row) ? "=" : "");
    put_zsh_text(out, row->help);
    fputc(']', out);
    if (row->argument && !option_may_lack_argument(row)) {
        fputc(':', out);
        put_zsh_text(out, row->argument);
        if (takes_file(row))
            fputs(":_files", out);
        else
            fputs(": ", out);
    }
    fputc('\'', out);
}

static void print_zsh(FILE *out) {
    fputs("#compdef cairn\n"
          "_cairn() {\n"
          "    local -a names=(\n",
          out);
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        fprintf(out, "        '%s:", command->name);
        put_zsh_text(out, command->help);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command names\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $command in\n",
          out);
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        fprintf(out, "    %s)\n        _arguments", command->name);
        for (const struct option_row *row = command->options; row->name; row++)
            print_zsh_option(out, row);
        if (!strcmp(command->name, "help")) {
            fputs(" \\\n            '*:topic:(", out);
            print_names(out);
            print_topics(out);
            fputs(")'", out);
        } else {
            fprintf(out, " \\\n            '*::argument:%s'",
                    command->has_program ? "_normal" : "_files");
        }
        fputs(" ;;\n", out);
    }
    fputs("    esac\n}\n[ \"$funcstack[1]\" = _cairn ] && _cairn \"$@\" || compdef _cairn cairn\n",
          out);
}

static void print_fish(FILE *out) {
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        fprintf(out, "complete -c cairn -n __fish_use_subcommand -f -a %s -d ", command->name);
        put_quoted(out, command->help);
        fputc('\n', out);
        for (const struct option_row *row = command->options; row->name; row++) {
            fprintf(out, "complete -c cairn -n '__fish_seen_subcommand_from %s' -l %s",
                    command->name, row->name);
            if (row->letter) fprintf(out, " -s %c", row->letter);
            if (row->argument && !option_may_lack_argument(row))
                fputs(takes_file(row) ? " -r -F" : " -x", out);
            fputs(" -d ", out);
            put_quoted(out, row->help);
            fputc('\n', out);
        }
    }
    fputs("complete -c cairn -n '__fish_seen_subcommand_from help' -f -a '", out);
    print_names(out);
    print_topics(out);
    fputs("'\n", out);
}

bool manual_print_completion(FILE *out, const char *shell) {
    static const struct {
        const char *shell;
        void (*print)(FILE *out);
    } printers[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        if (strcmp(printers[i].shell, shell) != 0) continue;
        printers[i].print(out);
        return true;
    }
    return false;
}

// Characters that scdoc would take for its own.
static void put_scdoc(FILE *out, const char *text) {
    for (; *text; text++) {
        if (strchr("\\_*#`~[]<>|.+-", *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_page_option(FILE *out, const struct option_row *row) {
    fputs("*", out);
    if (row->letter) fprintf(out, "\\-%c*, *", row->letter);
    fputs("\\-\\-", out);
    put_scdoc(out, row->name);
    fputs("*", out);
    if (row->argument) {
        if (!option_may_lack_argument(row)) fputs(" ", out);
        put_scdoc(out, row->argument);
    }
    fputs("\n\t", out);
    put_scdoc(out, row->help);
    fputs("\n\n", out);
}

static void print_page_command(FILE *out, const struct command *command) {
    // scdoc takes a heading as it is
    fprintf(out, "## %s\n\n*cairn %s*%s ", command->name, command->name,
            command->options[0].name ? " \\[OPTIONS\\]" : "");
    put_scdoc(out, command->arguments);
    fputs("\n\n", out);
    put_scdoc(out, command->help);
    fputs(".\n\n", out);
    char *description = command_description(command);
    if (description) fprintf(out, "```\n%s```\n\n", description);
    free(description);
    for (const struct option_row *row = command->options; row->name; row++)
        print_page_option(out, row);
    if (!command->has_views) return;
    fputs("Views:\n\n", out);
    for (const struct view *view = views; view->name; view++) {
        fprintf(out, "*%s*\n\t", view->name);
        put_scdoc(out, view->help);
        fputs("\n\n", out);
    }
}

void manual_print_page(FILE *out) {
    fputs("cairn(1)\n\n# NAME\n\ncairn - where a program's memory goes\n\n"
          "# SYNOPSIS\n\n*cairn* COMMAND \\[OPTIONS\\] \\[ARGUMENTS\\]\n\n# COMMANDS\n\n",
          out);
    for (const struct command *const *each = commands; *each; each++)
        print_page_command(out, *each);
    fputs("# HOW-TO PAGES\n\n*cairn help* NAME prints them.\n\n", out);
    for (const struct page *page = pages; page->name; page++) {
        char title[PAGE_TITLE_BYTES];
        page_title(page, title);
        fputc('*', out);
        put_scdoc(out, page->name);
        fputs("*\n\t", out);
        put_scdoc(out, title);
        fputs("\n\n", out);
    }
}
