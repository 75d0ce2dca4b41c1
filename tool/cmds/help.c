// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/cmds/manual.h"
#include "tool/cmds/reference.h"

static const struct topic *topic_find(const char *name) {
    for (const struct topic *topic = topics; topic->name; topic++)
        if (!strcmp(topic->name, name)) return topic;
    return NULL;
}

static void print_topics(void) {
    for (const struct topic *topic = topics; topic->name; topic++)
        printf("  %-10s %s\n", topic->name, topic->title);
}

static int print_page(const char *word) {
    const struct command *command = command_find(word);
    const struct topic *topic = topic_find(word);
    if (command) command_print_help(stdout, command);
    if (topic)
        printf("%s%s: %s\n\n%s", command ? "\n" : "", topic->name, topic->title, topic->text);
    if (!strcmp(word, "topics")) {
        print_topics();
    } else if (!command && !topic) {
        struct error error;
        error_set(&error, "there is no command or topic \"%s\"; cairn help lists them", word);
        return command_fail(STATUS_USAGE, &error);
    }
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
    fputs("\nTopics, cairn help TOPIC:\n", stdout);
    print_topics();
    return STATUS_OK;
}
