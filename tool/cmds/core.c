// SPDX-License-Identifier: Apache-2.0
// cairn core: the heap of a process from its core dump alone, or as it is now, from a short stop.
// Of a recorded process each block has its stack; of any other the chunks of glibc's malloc are
// there.
#include "tool/cmds/commands.h"
#include <string.h>

#include "tool/cmds/core_heap.h"
#include "tool/cmds/core_save.h"

// What the core as a whole has to say: by who asked for it, or as the allocator sees it.
static bool answer_overview(struct core_subject *subject, const struct core_question *question,
                            struct error *error) {
    if (subject->is_recorded && !core_is_sampled(subject))
        return question->verb == VERB_SUMMARIZE
                   ? core_print_groups(subject, question->module, question->function, error)
                   : core_print_overview(subject, error);
    if (question->module && core_is_sampled(subject))
        return error_set(error,
                         "a sample was recorded, so that few of its blocks have a stack: `cairn "
                         "report %s` estimates what stacks hold, --exact records all",
                         subject->look.name);
    if (question->module && !subject->look.is_core)
        return error_set(error,
                         "it is not recorded, so that nobody knows who asked for its blocks");
    if (question->module)
        return error_set(error, "there is no recording in it, so that nobody knows who asked "
                                "for its blocks: either the process was not recorded, or its file "
                                "lay beside it (--recording FILE)");
    return core_print_heap(subject, error);
}

static bool answer(struct core_subject *subject, const struct core_question *question,
                   struct error *error) {
    switch (question->verb) {
    case VERB_COUNT:
    case VERB_LIST:
    case VERB_ENUMERATE:
        return core_answer_set(subject, question, error);
    case VERB_DESCRIBE:
    case VERB_EXPLAIN:
        return core_answer_details(subject, question, error);
    case VERB_SUMMARIZE:
        if (question->set) return core_print_summary(subject, question, error);
        break;
    case VERB_OVERVIEW:
        break;
    }
    return answer_overview(subject, question, error);
}

// "save FILE" is no question. False with an error that says how it is used.
static bool read_words(const struct command_args *args, const char **save_path,
                       struct core_question *question, struct error *error) {
    char *const *words = args->words + 1;
    *save_path = NULL;
    *question = (struct core_question){.verb = VERB_OVERVIEW};
    if (!words[0] || strcmp(words[0], "save") != 0)
        return core_read_question(words, question, error);
    *save_path = words[1];
    return (words[1] && !words[2]) ||
           error_set(error, "core: save: into which file? (cairn core SUBJECT save FILE)");
}

int cmd_core(const struct command_args *args) {
    struct core_question question;
    struct core_subject subject;
    struct error error;
    const char *save_path;
    if (!args->word_count) {
        error_set(&error, "core: which core dump or process? (cairn core CORE|PID|NAME)");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!read_words(args, &save_path, &question, &error)) return command_fail(STATUS_USAGE, &error);
    const struct heap_wish wish = {
        .depth = save_path ? HEAP_REFERENCES : core_question_depth(&question),
        .bytes_max = args_has(args, OPTION_NO_COPY_LIMIT) ? UINT64_MAX : CORE_COPIED_BYTES_MAX,
        .way_around = "--no-copy-limit"};
    if (!core_subject_open(args->words[0], &wish, args_text(args, OPTION_RECORDING, NULL), &subject,
                           &error))
        return command_fail(STATUS_FAILURE, &error);
    const struct core_saving how = {args_has(args, OPTION_FORCE), args_has(args, OPTION_CONTENTS)};
    bool is_ok = save_path ? core_save(&subject, save_path, &how, &error)
                           : answer(&subject, &question, &error);
    if (!is_ok && !save_path) heap_look_blame(&subject.look, &error);
    if (is_ok) core_print_doubts(&subject);
    core_subject_close(&subject);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
