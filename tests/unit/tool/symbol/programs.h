// SPDX-License-Identifier: Apache-2.0
// Small programs that the tests of tool/symbol compile for themselves: a scratch directory,
// sources written into it, commands run in it, addresses of labels read from what came out.
//
// The sources hold labels in inline assembly ("mark_NAME"), each on a line that the test finds
// by the same text, so that the right answer for an address is known without any debug reader.
#ifndef TESTS_UNIT_TOOL_SYMBOL_PROGRAMS_H
#define TESTS_UNIT_TOOL_SYMBOL_PROGRAMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SCRATCH_PATH_MAX 256
#define COMMAND_MAX 2048

static char scratch[SCRATCH_PATH_MAX];

static inline int scratch_open(void **state) {
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/cairn-symbol-XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

// Runs a shell command in the scratch directory; true if it succeeded.
static inline bool __attribute__((format(printf, 1, 2))) run(const char *format, ...) {
    char command[COMMAND_MAX];
    int used = snprintf(command, sizeof command, "cd '%s' && exec 2>/dev/null && ", scratch);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + used, sizeof command - (size_t)used, format, arguments);
    va_end(arguments);
    return system(command) == 0;
}

static inline int scratch_close(void **state) {
    (void)state;
    return run("rm -rf '%s'", scratch) ? 0 : -1;
}

static inline bool has_command(const char *name) {
    return run("command -v %s >/dev/null", name);
}

// Path of a file in the scratch directory; one of a few static buffers.
static inline const char *in_scratch(const char *name) {
    static char paths[4][2 * SCRATCH_PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static inline void write_source(const char *name, const char *text) {
    FILE *file = fopen(in_scratch(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

// Line of the first occurrence of `what` in a source text, 1-based.
static inline uint32_t line_of(const char *source, const char *what) {
    const char *found = strstr(source, what);
    assert_non_null(found);
    uint32_t line = 1;
    for (const char *at = source; at < found; at++) line += *at == '\n';
    return line;
}

// Opens what nm prints of a program. It is asked once as long as the file is the same, since it
// takes most of the time of such a test.
static inline FILE *names_of(const char *program) {
    static struct stat known;
    struct stat now;
    assert_int_equal(stat(program[0] == '/' ? program : in_scratch(program), &now), 0);
    if (now.st_ino != known.st_ino || now.st_size != known.st_size ||
        memcmp(&now.st_ctim, &known.st_ctim, sizeof now.st_ctim)) {
        run("{ nm '%s'; nm -D '%s'; } >names.nm", program, program);
        known = now;
    }
    return fopen(in_scratch("names.nm"), "r");
}

// ELF address of a symbol, as nm prints it.
static inline uint64_t address_of(const char *program, const char *symbol) {
    FILE *names = names_of(program);
    assert_non_null(names);
    unsigned long long address = 0, found = 0;
    char line[COMMAND_MAX], type, name[COMMAND_MAX];
    while (fgets(line, sizeof line, names))
        if (sscanf(line, "%llx %c %2047s", &address, &type, name) == 3 && !strcmp(name, symbol))
            found = address;
    fclose(names);
    assert_int_not_equal(found, 0);
    return found;
}

#endif
