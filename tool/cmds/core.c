// SPDX-License-Identifier: Apache-2.0
// cairn core: the heap of a process that was recorded, from its core dump alone.
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/cmds/core_screens.h"
#include "tool/core/recorded.h"

// What may be asked of a core, after its name.
enum verb { VERB_OVERVIEW, VERB_LIST, VERB_COUNT, VERB_SUMMARIZE, VERB_DESCRIBE };

struct question {
    enum verb verb;
    uint64_t address;               // of describe
    const char *module, *function;  // of summarize; NULL: all
};

static bool read_used(char *const *words, enum verb verb, struct question *question,
                      struct error *error) {
    question->verb = verb;
    if (words[1] && !strcmp(words[1], "used") && !words[2]) return true;
    return error_set(error, "core: '%s used' is what can be asked for", words[0]);
}

static bool read_address(char *const *words, struct question *question, struct error *error) {
    const int base = 16;
    char *end = NULL;
    question->verb = VERB_DESCRIBE;
    if (words[1]) question->address = strtoull(words[1], &end, base);
    if (end && end != words[1] && !*end && !words[2]) return true;
    return error_set(error, "core: describe wants one address in hexadecimal, not '%s'",
                     words[1] ? words[1] : "");
}

static bool read_question(char *const *words, struct question *question, struct error *error) {
    if (!words[0]) return true;
    if (!strcmp(words[0], "list")) return read_used(words, VERB_LIST, question, error);
    if (!strcmp(words[0], "count")) return read_used(words, VERB_COUNT, question, error);
    if (!strcmp(words[0], "describe")) return read_address(words, question, error);
    if (strcmp(words[0], "summarize") != 0)
        return error_set(error, "core: '%s' is none of: list used, count used, summarize, describe",
                         words[0]);
    question->verb = VERB_SUMMARIZE;
    question->module = words[1];
    question->function = words[1] ? words[2] : NULL;
    return true;
}

static bool open_recording(const struct core_image *core, const char *beside, struct opened *opened,
                           struct cairn_header *header, struct error *error) {
    char path[PATH_MAX];
    bool is_inside = core_find_recording(core, header);
    if (beside) {
        if (!opened_open(beside, opened, error)) return false;
        if (!is_inside) *header = opened->recording.header;
        return true;
    }
    if (!is_inside)
        return error_set(error, "there is no recording in it: either the process was not recorded, "
                                "or its file lay beside it (--recording FILE)");
    return core_copy_recording(core, header, path, error) && opened_open(path, opened, error);
}

static bool open_subject(const char *path, const char *beside, struct core_subject *subject,
                         struct error *error) {
    struct cairn_header header;
    *subject = (struct core_subject){.path = path};
    if (!core_open(path, &subject->core, error)) return false;
    bool is_ok = open_recording(&subject->core, beside, &subject->opened, &header, error);
    if (is_ok && !core_read_blocks(&subject->core, &header, subject->opened.profile.cell_count,
                                   &subject->blocks, error)) {
        opened_close(&subject->opened);
        is_ok = false;
    }
    if (is_ok) return true;
    core_close(&subject->core);
    return error_wrap(error, "%s", path);
}

static bool answer(const struct core_subject *subject, const struct question *question,
                   struct error *error) {
    switch (question->verb) {
    case VERB_LIST:
        core_print_list(subject);
        return true;
    case VERB_COUNT:
        core_print_count(subject);
        return true;
    case VERB_SUMMARIZE:
        return core_print_groups(subject, question->module, question->function, error);
    case VERB_DESCRIBE:
        return core_print_block(subject, question->address, error);
    case VERB_OVERVIEW:
        break;
    }
    return core_print_overview(subject, error);
}

int cmd_core(const struct command_args *args) {
    struct question question = {.verb = VERB_OVERVIEW};
    struct core_subject subject;
    struct error error;
    if (!args->word_count) {
        error_set(&error, "core: which core dump? (cairn core CORE)");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!read_question(args->words + 1, &question, &error))
        return command_fail(STATUS_USAGE, &error);
    if (!open_subject(args->words[0], args_text(args, OPTION_RECORDING, NULL), &subject, &error))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = answer(&subject, &question, &error);
    core_free_blocks(&subject.blocks);
    opened_close(&subject.opened);
    core_close(&subject.core);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
