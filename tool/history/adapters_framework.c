// SPDX-License-Identifier: Apache-2.0
// Frameworks within a test program. Which one is in it says a text of its own in the file, or its
// library's name: a program is not started to find out.
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/history/adapters.h"

enum { NAME_BYTES = 1024, SPEC_BYTES = 2 * NAME_BYTES, STATUS_ANY = 255 };

// Where a program is found as a shell would; false: nowhere.
static bool find_program(const char *word, char path[PATH_MAX]) {
    const char *list = getenv("PATH");
    if (strchr(word, '/') || !list) return snprintf(path, PATH_MAX, "%s", word) < PATH_MAX;
    while (*list) {
        size_t length = strcspn(list, ":");
        int used = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, list, word);
        if (used < PATH_MAX && !access(path, X_OK)) return true;
        list += length + (list[length] == ':');
    }
    return false;
}

// The file of the program has one of these texts in it.
static bool has_text(char **words, const char *const texts[]) {
    char path[PATH_MAX];
    struct stat status;
    bool has = false;
    int file = find_program(words[0], path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return false;
    if (!fstat(file, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        for (size_t i = 0; bytes != MAP_FAILED && texts[i] && !has; i++)
            has = memmem(bytes, size, texts[i], strlen(texts[i])) != NULL;
        if (bytes != MAP_FAILED) munmap(bytes, size);
    }
    close(file);
    return has;
}

// A test that is the program's command with `choice` behind it.
static bool add(char **words, const char *name, const char *const choice[], struct adapted *adapted,
                struct error *error) {
    const char **run = adapter_words(words, choice);
    bool is_ok = run && adapted_add(adapted, name, NULL, run);
    free(run);
    return is_ok || error_set(error, "no memory for the tests");
}

static char *ask(char **words, const char *const more[], int status_most, struct error *error) {
    const char **whole = adapter_words(words, more);
    char *text = adapter_ask(whole, status_most, error);
    free(whole);
    return text;
}

// --- GoogleTest: suites at the left, their tests indented

bool gtest_is_in(char **words) {
    return has_text(words, (const char *const[]){"gtest_list_tests", "libgtest.so", NULL});
}

static bool gtest_add(char **words, const char *suite, char *line, struct adapted *adapted,
                      struct error *error) {
    static const char disabled[] = "DISABLED_";
    char name[NAME_BYTES], filter[NAME_BYTES + sizeof "--gtest_filter="];
    line += strspn(line, " ");
    line[strcspn(line, " #")] = 0;
    bool is_disabled = !strncmp(line, disabled, sizeof disabled - 1) ||
                       !strncmp(suite, disabled, sizeof disabled - 1);
    if (is_disabled || !*line) return true;
    snprintf(name, sizeof name, "%s%s", suite, line);
    snprintf(filter, sizeof filter, "--gtest_filter=%s", name);
    return add(words, name, (const char *const[]){filter, NULL}, adapted, error);
}

bool gtest_list(char **words, struct adapted *adapted, struct error *error) {
    char suite[NAME_BYTES] = "", *rest = NULL;
    char *text = ask(words, (const char *const[]){"--gtest_list_tests", NULL}, 0, error);
    bool is_ok = text != NULL;
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest)) {
        size_t length = strcspn(line, " #");
        if (*line == ' ')
            is_ok = !*suite || gtest_add(words, suite, line, adapted, error);
        else if (length && line[length - 1] == '.')
            snprintf(suite, sizeof suite, "%.*s", (int)length, line);
    }
    free(text);
    return is_ok;
}

// --- Google Benchmark: a name a line

bool benchmark_is_in(char **words) {
    return has_text(words, (const char *const[]){"benchmark_list_tests", "libbenchmark.so", NULL});
}

static void quote_regex(const char *name, char *out, size_t size) {
    size_t used = 0;
    for (; *name && used + 2 < size; name++) {
        if (strchr("\\^$.|?*+()[]{}", *name)) out[used++] = '\\';
        out[used++] = *name;
    }
    out[used] = 0;
}

// Iterations follow the clock unless the least time is none: then it is one, the same each time.
bool benchmark_list(char **words, struct adapted *adapted, struct error *error) {
    char *rest = NULL;
    char *text = ask(words, (const char *const[]){"--benchmark_list_tests=true", NULL}, 0, error);
    bool is_ok = text != NULL, has_time = false;
    for (size_t i = 1; words[i]; i++)
        has_time = has_time ||
                   !strncmp(words[i], "--benchmark_min_time", sizeof "--benchmark_min_time" - 1);
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest)) {
        char quoted[SPEC_BYTES], filter[SPEC_BYTES + sizeof "--benchmark_filter=^$"];
        quote_regex(line, quoted, sizeof quoted);
        snprintf(filter, sizeof filter, "--benchmark_filter=^%s$", quoted);
        const char *const choice[] = {filter, has_time ? NULL : "--benchmark_min_time=0", NULL};
        is_ok = add(words, line, choice, adapted, error);
    }
    free(text);
    return is_ok;
}

// --- Catch2: a name a line, in one of two ways

static const char *const catch2_old[] = {"list-test-names-only", NULL};

bool catch2_is_in(char **words) {
    return has_text(words, catch2_old) ||
           has_text(words, (const char *const[]){"Catch2 v3", "libCatch2.so", NULL});
}

// A name as a choice of tests: what has a meaning there is quoted.
static void quote_name(const char *name, char *out, size_t size) {
    size_t used = 0;
    for (; *name && used + 2 < size; name++) {
        if (strchr("\\,[]*\"~", *name)) out[used++] = '\\';
        out[used++] = *name;
    }
    out[used] = 0;
}

// The older one ends with the number of tests as its status.
bool catch2_list(char **words, struct adapted *adapted, struct error *error) {
    bool is_old = has_text(words, catch2_old);
    const char *const old_words[] = {"--list-test-names-only", NULL};
    const char *const new_words[] = {"--list-tests", "--verbosity", "quiet", NULL};
    char *text = ask(words, is_old ? old_words : new_words, is_old ? STATUS_ANY : 0, error);
    char *rest = NULL;
    bool is_ok = text != NULL;
    for (char *line = is_ok ? strtok_r(text, "\n", &rest) : NULL; line && is_ok;
         line = strtok_r(NULL, "\n", &rest)) {
        char quoted[SPEC_BYTES];
        size_t length = strlen(line);
        while (length && isspace((unsigned char)line[length - 1])) line[--length] = 0;
        line += strspn(line, " ");
        if (!*line) continue;
        quote_name(line, quoted, sizeof quoted);
        is_ok = add(words, line, (const char *const[]){quoted, NULL}, adapted, error);
    }
    free(text);
    return is_ok;
}
