// SPDX-License-Identifier: Apache-2.0
// cairn core: the heap of a process from its core dump alone. Of a recorded process each block has
// its stack; of any other the chunks of glibc's malloc are there.
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/cmds/core_heap.h"
#include "tool/cmds/core_screens.h"
#include "tool/core/recorded.h"

// What may be asked of a core, after its name.
enum verb { VERB_OVERVIEW, VERB_LIST, VERB_COUNT, VERB_SUMMARIZE, VERB_DESCRIBE };

struct question {
    enum verb verb;
    bool are_free;                  // of list and count
    uint64_t address;               // of describe
    const char *module, *function;  // of summarize; NULL: all
};

static bool read_used(char *const *words, enum verb verb, struct question *question,
                      struct error *error) {
    question->verb = verb;
    question->are_free = words[1] && !strcmp(words[1], "free");
    bool is_used = words[1] && !strcmp(words[1], "used");
    if ((is_used || question->are_free) && !words[2]) return true;
    return error_set(error, "core: '%s used' and '%s free' are what can be asked for", words[0],
                     words[0]);
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
        return error_set(error, "core: '%s' is none of: list, count, summarize, describe",
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
    if (!beside)
        return core_copy_recording(core, header, path, error) && opened_open(path, opened, error);
    if (!opened_open(beside, opened, error)) return false;
    if (!is_inside) *header = opened->recording.header;
    return true;
}

static bool open_recorded(struct core_subject *subject, const char *beside, struct error *error) {
    struct cairn_header header;
    if (!open_recording(&subject->core, beside, &subject->opened, &header, error)) return false;
    if (core_read_blocks(&subject->core, &header, subject->opened.profile.cell_count,
                         &subject->blocks, error))
        return true;
    opened_close(&subject->opened);
    return false;
}

static bool answer_recorded(const struct core_subject *subject, const struct question *question,
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

static bool about_recorded(struct core_subject *subject, const char *beside,
                           const struct question *question, struct error *error) {
    if (!open_recorded(subject, beside, error)) return false;
    bool is_ok = answer_recorded(subject, question, error);
    core_free_blocks(&subject->blocks);
    opened_close(&subject->opened);
    return is_ok;
}

// What the allocator itself tells: sizes are those of its chunks, and nobody knows their stacks.
static bool about_heap(const struct core_subject *subject, const struct question *question,
                       struct error *error) {
    struct core_heap heap;
    if (question->verb == VERB_DESCRIBE || question->module)
        return error_set(error, "there is no recording in it: either the process was not recorded, "
                                "or its file lay beside it (--recording FILE)");
    if (!core_read_heap(&subject->core, &heap, error)) return false;
    if (question->verb == VERB_LIST)
        core_print_chunks(&heap, question->are_free);
    else if (question->verb == VERB_COUNT)
        core_print_chunk_count(&heap, question->are_free);
    else
        core_print_heap(&heap);
    core_free_heap(&heap);
    return true;
}

static bool is_about_heap(const struct core_subject *subject, const char *beside,
                          const struct question *question) {
    struct cairn_header header;
    return question->are_free || (!beside && !core_find_recording(&subject->core, &header));
}

int cmd_core(const struct command_args *args) {
    struct question question = {.verb = VERB_OVERVIEW};
    struct core_subject subject = {.path = args->words[0]};
    struct error error;
    const char *beside = args_text(args, OPTION_RECORDING, NULL);
    if (!args->word_count) {
        error_set(&error, "core: which core dump? (cairn core CORE)");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!read_question(args->words + 1, &question, &error))
        return command_fail(STATUS_USAGE, &error);
    if (!core_open(subject.path, &subject.core, &error))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = is_about_heap(&subject, beside, &question)
                     ? about_heap(&subject, &question, &error)
                     : about_recorded(&subject, beside, &question, &error);
    core_close(&subject.core);
    if (is_ok) return STATUS_OK;
    error_wrap(&error, "%s", subject.path);
    return command_fail(STATUS_FAILURE, &error);
}
