// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/manual.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/query/views.h"

// clang-format off
const struct topic topics[] = {
    {"peak", "what held the memory when most was in use",
     "  cairn run PROGRAM                 the five call sites that held most at the peak\n"
     "  cairn report --view tree          from main inwards: where the peak went\n"
     "  cairn report --inverted           from allocating functions to their callers\n"
     "  cairn report --view types         by container and element\n"
     "\n"
     "\"At the peak\" is one point in time: when the whole heap was largest. What each stack held\n"
     "then adds up to the peak; a stack may have held more at another time.\n"
     "--focus REGEX looks at stacks through a function or file, --thread at threads.\n"},
    {"leaks", "what was never freed",
     "  cairn leaks                       what was left at the end, by stack\n"
     "  cairn leaks --view tree           the same as a tree, from main inwards\n"
     "  cairn run --unreachable PROGRAM   searches memory for pointers at its end, then:\n"
     "  cairn leaks --unreachable         only what nothing refers to; of a PID too\n"
     "\n"
     "Without --unreachable all that was not freed is shown, also what a program keeps\n"
     "until its end on purpose. Blocks left by stacks that run once are seldom leaks; many\n"
     "blocks of one stack often are.\n"},
    {"growth", "a server or loop that takes more and more",
     "  cairn run SERVER                  in one terminal\n"
     "  cairn top SERVER                  in another: its stacks, live\n"
     "  cairn ctl SERVER mark warm        when it has warmed up\n"
     "  cairn report --since warm PID     what was allocated since then, and still lives\n"
     "  cairn report --view growth PID    stacks that rise: how fast, how steadily\n"
     "\n"
     "PID is the server's, while it runs; afterwards the recording. cairn run --mark-every\n"
     "60s marks by itself. A leak rises in a straight line and its blocks are of every\n"
     "generation; a cache fills up and stays. --view timeline shows the heap over time.\n"},
    {"temporary", "memory that is allocated and freed again at once",
     "  cairn report --view temporary     what its thread frees soon after\n"
     "  cairn report --by calls           what allocates most often\n"
     "  cairn report --by allocated       what allocates most bytes, kept or not\n"
     "  cairn report --lifespan gone      only what was freed before the end\n"
     "\n"
     "Such memory does not make a program large, but slow: each block costs time, and so\n"
     "does clearing and copying it. Reuse a buffer, or reserve room before a loop.\n"},
    {"containers", "programs in containers and images",
     "  cairn run --exec PROGRAM          as the image's command: the program keeps pid 1\n"
     "  cairn env --for docker            variables for an image that cannot start cairn\n"
     "\n"
     "The file is written to CAIRN_OUTPUT; put it on a volume. Names: read the recording\n"
     "beside the image's files, cairn report --sysroot /path/to/root; or keep them in it\n"
     "inside, cairn symbolize RECORDING. While the container runs, --sysroot\n"
     "/proc/PID/root does it from outside.\n"},
    {"ci", "tests that fail when a program takes more memory",
     "  cairn check                       budgets for recordings (cairn help check)\n"
     "  cairn diff old.cairn new.cairn    what changed, function by function\n"
     "  cairn run -q --symbols all -o test.cairn ./test\n"
     "\n"
     "-q prints nothing, the status is the program's own. --symbols all keeps every name,\n"
     "to read the artifact on another machine. cairn report --json is for scripts.\n"},
    {"formats", "files, and the formats of other tools",
     "  NAME.PID.cairn                    a recording, or a directory with one a process\n"
     "  cairn report --json               a report for scripts (docs/reference/json.md)\n"
     "  cairn export --format FORMAT      flame graphs, pprof and others: cairn help export\n"
     "  cairn import FILE                 the other way: cairn help import\n"
     "\n"
     "The bytes of a recording are described in docs/reference/format.md. cairn run and attach\n"
     "keep names in a recording (--symbols), cairn symbolize does so later.\n"},
    {"findings", "what to do about the findings of a summary",
     "  a stack that grows                find what should free it: --view growth, cairn top\n"
     "  a buffer that is grown            reserve its room before the loop that fills it\n"
     "  short-lived blocks                use one again, or the stack: --view temporary\n"
     "  freed at once, one by one         one block for all of them, or a pool\n"
     "  reserved and not used             reserve less: --view containers PID\n"
     "  hand-over between threads         let the thread that allocates free: --view threads\n"
     "  fragmentation, arenas             MALLOC_ARENA_MAX=2, malloc_trim(0): --view remedies PID\n"
     "  equal strings, unused ends        keep each text once, in its size: --view waste PID\n"
     "\n"
     "cairn report --view findings tells all of them and what each would save.\n"},
    {"owners", "who keeps blocks, whoever allocated them",
     "  cairn report --view owners PID    variables, and what only they lead to\n"
     "  cairn report --view types PID     blocks by type; --view containers: how full they are\n"
     "  cairn report --view waste PID     equal strings, zeros, room that is not used\n"
     "  cairn core PID explain ADDRESS    the way from a variable to a block\n"
     "\n"
     "They read what is in blocks: of a process that runs, recorded or not, which stands for\n"
     "some milliseconds, or of a core dump. A recording does not have it.\n"},
    {"rss", "why resident memory is larger than the heap",
     "  cairn report --view memory        what it consisted of, of a recording\n"
     "  cairn report --view heap PID      what is free in glibc's arenas, and why it stays\n"
     "  cairn report --view pages PID     whose blocks keep its pages\n"
     "  cairn report --view remedies PID  what would give memory back, and how much\n"
     "  cairn whatif                      what another allocator or setting would take\n"
     "\n"
     "Resident memory has code, stacks, mapped files, what the allocator holds free, and\n"
     "cairn's own tables beside the heap.\n"},
    {NULL, NULL, NULL},
};
// clang-format on

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
    for (const struct topic *topic = topics; topic->name; topic++) fprintf(out, " %s", topic->name);
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
    fputs("# TOPICS\n\n", out);
    for (const struct topic *topic = topics; topic->name; topic++) {
        fprintf(out, "## %s: %s\n\n```\n%s```\n\n", topic->name, topic->title, topic->text);
    }
}
