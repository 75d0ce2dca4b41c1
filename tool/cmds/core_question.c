// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/core_sets.h"

struct word {
    const char *text;
    int value;
};

static const struct word verbs[] = {
    {"count", VERB_COUNT},         {"list", VERB_LIST},         {"enumerate", VERB_ENUMERATE},
    {"summarize", VERB_SUMMARIZE}, {"describe", VERB_DESCRIBE}, {"explain", VERB_EXPLAIN},
};
static const struct word sets[] = {
    {"used", SET_USED},         {"free", SET_FREE},         {"allocations", SET_ALLOCATIONS},
    {"anchored", SET_ANCHORED}, {"leaked", SET_LEAKED},     {"unreferenced", SET_UNREFERENCED},
    {"incoming", SET_INCOMING}, {"outgoing", SET_OUTGOING}, {"allocation", SET_ALLOCATION},
};

// 0: none of them.
static int find_word(const struct word *words, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i].text, text)) return words[i].value;
    return 0;
}

static bool read_address(const char *text, uint64_t *address) {
    const int base = 16;
    char *end = NULL;
    if (text) *address = strtoull(text, &end, base);
    return end && end != text && !*end;
}

static bool read_set(char *const *words, struct core_question *question, struct error *error) {
    size_t next = 2;
    if (question->set >= SET_INCOMING && !read_address(words[next++], &question->address))
        return error_set(error, "core: '%s %s' wants an address in hexadecimal", words[0],
                         words[1]);
    question->type = words[next];
    if (!question->type || !words[next + 1]) return true;
    return error_set(error, "core: '%s' is too much behind the type of '%s %s'", words[next + 1],
                     words[0], words[1]);
}

// Without a set: an address to describe or explain, modules to sum up by.
static bool read_rest(char *const *words, struct core_question *question, struct error *error) {
    bool has_address = question->verb == VERB_DESCRIBE || question->verb == VERB_EXPLAIN;
    if (has_address && words[1] && !words[2] && read_address(words[1], &question->address))
        return true;
    if (has_address)
        return error_set(error, "core: %s wants one address in hexadecimal or a set, not '%s'",
                         words[0], words[1] ? words[1] : "");
    question->module = words[1];
    question->function = words[1] ? words[2] : NULL;
    if (question->verb == VERB_SUMMARIZE) return true;
    return error_set(error,
                     "core: '%s used' is what can be asked for, and in its place: free, leaked, "
                     "unreferenced, anchored, allocations, incoming ADDRESS, outgoing ADDRESS",
                     words[0]);
}

bool core_read_question(char *const *words, struct core_question *question, struct error *error) {
    *question = (struct core_question){.verb = VERB_OVERVIEW};
    if (!words[0]) return true;
    question->verb = find_word(verbs, sizeof verbs / sizeof *verbs, words[0]);
    if (question->verb == VERB_OVERVIEW)
        return error_set(error,
                         "core: '%s' is none of: count, list, enumerate, summarize, describe, "
                         "explain",
                         words[0]);
    if (words[1]) question->set = find_word(sets, sizeof sets / sizeof *sets, words[1]);
    return question->set ? read_set(words, question, error) : read_rest(words, question, error);
}

enum heap_depth core_question_depth(const struct core_question *question) {
    bool is_by_reach = question->set >= SET_ANCHORED && question->set <= SET_OUTGOING;
    bool has_types =
        question->type || question->verb == VERB_LIST || question->verb == VERB_SUMMARIZE;
    if (is_by_reach || question->verb == VERB_DESCRIBE || question->verb == VERB_EXPLAIN)
        return HEAP_REFERENCES;
    return question->set && has_types ? HEAP_TYPES : HEAP_BLOCKS;
}
