// SPDX-License-Identifier: Apache-2.0
// The table of adapters, and the runners: CTest, Meson, cargo, pytest. What the first three print
// is JSON.
#include "tool/history/adapters.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/capture.h"
#include "tool/base/text.h"

enum { NAME_BYTES = 1024, STATUS_ANY = 255 };

void adapted_free(struct adapted *adapted) {
    for (size_t i = 0; i < adapted->tests.count; i++) {
        struct adapted_test *test = &adapted->tests.items[i];
        for (char **word = test->words; word && *word; word++) free(*word);
        free(test->words);
        free(test->name);
        free(test->directory);
    }
    array_free(&adapted->tests);
}

static size_t count_words(const char *const words[]) {
    size_t count = 0;
    while (words[count]) count++;
    return count;
}

bool adapted_add(struct adapted *adapted, const char *name, const char *directory,
                 const char *const words[]) {
    struct adapted_test *test = array_push(&adapted->tests);
    if (!test) return false;
    *test = (struct adapted_test){.name = strdup(name),
                                  .words = calloc(count_words(words) + 1, sizeof *test->words),
                                  .directory = directory ? strdup(directory) : NULL};
    bool is_ok = test->name && test->words && (!directory || test->directory);
    for (size_t i = 0; is_ok && words[i]; i++) {
        test->words[i] = strdup(words[i]);
        is_ok = test->words[i] != NULL;
    }
    return is_ok;
}

const char **adapter_words(char **words, const char *const more[]) {
    size_t count = 0, more_count = count_words(more);
    while (words[count]) count++;
    const char **made = calloc(count + more_count + 1, sizeof *made);
    if (!made) return NULL;
    for (size_t i = 0; i < count; i++) made[i] = words[i];
    for (size_t i = 0; i < more_count; i++) made[count + i] = more[i];
    return made;
}

char *adapter_ask(const char *const words[], int status_most, struct error *error) {
    struct captured answer;
    if (!words) {
        error_set(error, "no memory for the command");
        return NULL;
    }
    if (!capture((char *const *)(uintptr_t)words, true, &answer, error)) return NULL;
    if (answer.status <= status_most) return answer.text;
    error_set(error, "check: %s does not list its tests: it ended with status %d", words[0],
              answer.status);
    free(answer.text);
    return NULL;
}

// The answer as JSON; NULL with an error.
static json_t *ask_json(const char *const words[], struct error *error) {
    json_error_t wrong;
    char *text = adapter_ask(words, 0, error);
    if (!text) return NULL;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
    if (!root) error_set(error, "check: what %s lists is no JSON: %s", words[0], wrong.text);
    free(text);
    return root;
}

// A list of texts as words; NULL if it is none, or without memory. For free(), before the list.
static const char **words_of(json_t *list) {
    size_t count = json_array_size(list);
    const char **words = count ? calloc(count + 1, sizeof *words) : NULL;
    for (size_t i = 0; words && i < count; i++) {
        words[i] = json_string_value(json_array_get(list, i));
        if (words[i]) continue;
        free(words);
        return NULL;
    }
    return words;
}

// A test that a runner starts by these words.
static bool add_spawned(struct adapted *adapted, const char *name, json_t *command) {
    const char **words = words_of(command);
    bool is_ok = !name || !words || adapted_add(adapted, name, NULL, words);
    free(words);
    return is_ok;
}

// --- CTest

static bool is_called(char **words, const char *name) {
    return !strcmp(text_base_name(words[0]), name);
}

static bool ctest_is_for(char **words) {
    return is_called(words, "ctest");
}

static bool ctest_list(char **words, struct adapted *adapted, struct error *error) {
    const char **ask = adapter_words(words, (const char *const[]){"--show-only=json-v1", NULL});
    json_t *root = ask_json(ask, error), *tests = json_object_get(root, "tests"), *test;
    size_t index;
    free(ask);
    bool is_ok = root != NULL;
    json_array_foreach(tests, index, test) {
        const char *name = json_string_value(json_object_get(test, "name"));
        is_ok = is_ok && add_spawned(adapted, name, json_object_get(test, "command"));
    }
    if (root && !is_ok) error_set(error, "no memory for the tests");
    json_decref(root);
    return is_ok;
}

// --- Meson

static bool meson_is_for(char **words) {
    return is_called(words, "meson") && words[1] && !strcmp(words[1], "test");
}

static const char *meson_directory(char **words) {
    for (size_t i = 2; words[i]; i++) {
        if (!strcmp(words[i], "-C") && words[i + 1]) return words[i + 1];
        if (!strncmp(words[i], "-C", 2) && words[i][2]) return words[i] + 2;
    }
    return ".";
}

// "suite / name", without the suite that has the project's name.
static void meson_name(json_t *test, char name[NAME_BYTES]) {
    const char *own = json_string_value(json_object_get(test, "name"));
    const char *suite = json_string_value(json_array_get(json_object_get(test, "suite"), 0));
    const char *colon = suite ? strchr(suite, ':') : NULL;
    snprintf(name, NAME_BYTES, "%s%s%s", colon ? colon + 1 : "", colon ? " / " : "",
             own ? own : "");
}

static bool meson_list(char **words, struct adapted *adapted, struct error *error) {
    const char *const ask[] = {words[0], "introspect", "--tests", meson_directory(words), NULL};
    json_t *root = ask_json(ask, error), *test;
    size_t index;
    bool is_ok = root != NULL;
    json_array_foreach(root, index, test) {
        char name[NAME_BYTES];
        meson_name(test, name);
        is_ok = is_ok && add_spawned(adapted, name, json_object_get(test, "cmd"));
    }
    if (root && !is_ok) error_set(error, "no memory for the tests");
    json_decref(root);
    return is_ok;
}

// --- cargo test

static bool cargo_is_for(char **words) {
    return is_called(words, "cargo") && words[1] && !strcmp(words[1], "test");
}

// The words behind "--" are for the test programs.
static char **behind_separator(char **words) {
    size_t i = 0;
    while (words[i] && strcmp(words[i], "--") != 0) i++;
    return words[i] ? words + i + 1 : words + i;
}

// `cargo test ... --no-run --message-format=json`, without what is for the programs.
static const char **cargo_build_words(char **words) {
    const char *const more[] = {"--no-run", "--message-format=json", NULL};
    const char **ask = adapter_words(words, more);
    size_t i = 0;
    while (ask && words[i] && strcmp(words[i], "--") != 0) i++;
    if (!ask) return NULL;
    for (size_t at = 0; at <= 2; at++) ask[i + at] = more[at];
    return ask;
}

// "tests::adds: test" and "sorts: benchmark", a line each.
static bool cargo_list_program(char **words, const char *program, const char *target,
                               const char *directory, struct adapted *adapted,
                               struct error *error) {
    char *one[] = {(char *)(uintptr_t)program, NULL};
    const char **ask =
        adapter_words(one, (const char *const[]){"--list", "--format", "terse", NULL});
    char *text = adapter_ask(ask, 0, error), *rest = NULL;
    bool is_ok = text != NULL;
    free(ask);
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest)) {
        char name[NAME_BYTES], *end = strrchr(line, ':');
        if (!end || strcmp(end, ": test") != 0) continue;
        *end = 0;
        const char *const own[] = {program, "--exact", line, "--test-threads=1", NULL};
        const char **run = adapter_words(behind_separator(words), (const char *const[]){NULL});
        char *start[sizeof own / sizeof *own];
        memcpy(start, own, sizeof own);
        const char **whole = run ? adapter_words(start, run) : NULL;
        snprintf(name, sizeof name, "%s %s", target, line);
        is_ok = whole && adapted_add(adapted, name, directory, whole);
        free(whole);
        free(run);
    }
    if (text && !is_ok) error_set(error, "no memory for the tests");
    free(text);
    return is_ok;
}

static bool cargo_add(char **words, const char *line, struct adapted *adapted,
                      struct error *error) {
    char directory[NAME_BYTES];
    json_t *message = json_loads(line, 0, NULL), *target = json_object_get(message, "target");
    const char *program = json_string_value(json_object_get(message, "executable"));
    const char *manifest = json_string_value(json_object_get(message, "manifest_path"));
    const char *name = json_string_value(json_object_get(target, "name"));
    bool is_test = json_is_true(json_object_get(json_object_get(message, "profile"), "test"));
    bool is_ok = true;
    if (is_test && program && name) {
        snprintf(directory, sizeof directory, "%s", manifest ? manifest : "");
        char *end = strrchr(directory, '/');
        if (end) *end = 0;
        is_ok = cargo_list_program(words, program, name, end ? directory : NULL, adapted, error);
    }
    json_decref(message);
    return is_ok;
}

static bool cargo_list(char **words, struct adapted *adapted, struct error *error) {
    const char **ask = cargo_build_words(words);
    char *text = adapter_ask(ask, 0, error), *rest = NULL;
    bool is_ok = text != NULL;
    free(ask);
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest))
        is_ok = cargo_add(words, line, adapted, error);
    free(text);
    return is_ok;
}

// --- pytest

// How many words start pytest: "pytest", "python3 -m pytest"; 0: it is not pytest.
static size_t pytest_start(char **words) {
    enum { MODULE_WORDS = 3 };
    const char *name = text_base_name(words[0]);
    if (!strcmp(name, "pytest") || !strcmp(name, "pytest-3") || !strcmp(name, "py.test")) return 1;
    bool is_module = !strncmp(name, "python", sizeof "python" - 1) && words[1] &&
                     !strcmp(words[1], "-m") && words[2] && !strcmp(words[2], "pytest");
    return is_module ? MODULE_WORDS : 0;
}

static bool pytest_is_for(char **words) {
    return pytest_start(words) > 0;
}

static bool is_among(const char *word, const char *const list[]) {
    for (size_t i = 0; list[i]; i++)
        if (!strcmp(word, list[i])) return true;
    return false;
}

static bool is_verbosity(const char *word) {
    return is_among(word, (const char *const[]){"--quiet", "--verbose", NULL}) ||
           (word[0] == '-' && word[1] && strspn(word + 1, "qv") == strlen(word + 1));
}

// Options of pytest's command that have their value in the next word.
static const char *const with_value[] = {"-c", "-o",         "-p",           "-W",
                                         "-n", "--rootdir",  "--confcutdir", "-k",
                                         "-m", "--deselect", "--ignore",     NULL};
// These choose tests, as paths do.
static const char *const choosing[] = {"-k", "-m", "--deselect", "--ignore", NULL};

// The command with `more` behind it; without how much it prints, and unless `has_choice` without
// what chooses tests.
static const char **pytest_words(char **words, bool has_choice, const char *const more[]) {
    const char **made = adapter_words(words, more);
    size_t count = pytest_start(words);
    for (size_t i = count; made && words[i]; i++) {
        bool has_value = is_among(words[i], with_value) && words[i + 1];
        bool is_choice = is_among(words[i], choosing) || *words[i] != '-';
        bool is_kept = !is_verbosity(words[i]) && (has_choice || !is_choice);
        if (is_kept) made[count++] = words[i];
        if (is_kept && has_value) made[count++] = words[i + 1];
        i += has_value;
    }
    for (size_t i = 0; made && more[i]; i++) made[count++] = more[i];
    if (made) made[count] = NULL;
    return made;
}

static bool pytest_list(char **words, struct adapted *adapted, struct error *error) {
    const char *const collect[] = {"--collect-only", "-q", "-p", "no:cacheprovider", NULL};
    const char **ask = pytest_words(words, true, collect);
    char *text = adapter_ask(ask, 0, error), *rest = NULL;
    bool is_ok = text != NULL;
    free(ask);
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!strstr(line, "::")) continue;
        const char *const one[] = {"-q", "-p", "no:cacheprovider", line, NULL};
        const char **run = pytest_words(words, false, one);
        is_ok = run && adapted_add(adapted, line, NULL, run);
        free(run);
    }
    if (text && !is_ok) error_set(error, "no memory for the tests");
    free(text);
    return is_ok;
}

// --- the table

static const struct adapter adapters[] = {
    {"ctest", true, false, ctest_is_for, ctest_list},
    {"meson", true, false, meson_is_for, meson_list},
    {"cargo", false, false, cargo_is_for, cargo_list},
    {"pytest", false, true, pytest_is_for, pytest_list},
    {"gtest", false, false, gtest_is_in, gtest_list},
    {"benchmark", false, false, benchmark_is_in, benchmark_list},
    {"catch2", false, false, catch2_is_in, catch2_list},
};
enum { ADAPTER_COUNT = sizeof adapters / sizeof *adapters };

const struct adapter *adapter_find(const char *name, char **words, struct error *error) {
    bool is_auto = !strcmp(name, "auto");
    for (size_t i = 0; i < ADAPTER_COUNT; i++)
        if (is_auto ? adapters[i].is_for(words) : !strcmp(adapters[i].name, name))
            return &adapters[i];
    if (is_auto)
        error_set(error,
                  "check: --adapter auto: %s is no runner and has no framework that is known "
                  "(ctest, meson test, cargo test, pytest, GoogleTest, Google Benchmark, "
                  "Catch2)",
                  words[0]);
    else
        error_set(error,
                  "check: --adapter: auto, ctest, meson, cargo, pytest, gtest, benchmark or "
                  "catch2, not \"%s\"",
                  name);
    return NULL;
}
