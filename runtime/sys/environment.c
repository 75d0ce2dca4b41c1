// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/environment.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/sys.h"

// The kernel reads no more of a script.
enum { SHEBANG_BYTES = 256, PIECE_BYTES = 512 };

static const char *given;

void environment_give(const char *words) {
    given = words;
}

bool environment_is_given(void) {
    return given != NULL;
}

static const char *find_word(const char *words, const char *name, size_t length) {
    for (const char *entry = words; *entry; entry += strlen(entry) + 1)
        if (strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
    return NULL;
}

static const char *supplement;

void environment_supplement(const char *words) {
    supplement = words;
}

static char **lent;

void environment_lend(char **variables) {
    lent = variables;
}

static char **variables_now(void) {
    return environ ? environ : lent;
}

bool environment_is_ready(void) {
    return variables_now() != NULL;
}

const char *environment_get(const char *name) {
    size_t length = strlen(name);
    if (given) return find_word(given, name, length);
    // most differ in their first letter
    for (char **entry = variables_now(); entry && *entry; entry++)
        if (**entry == *name && strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return supplement ? find_word(supplement, name, length) : NULL;
}

size_t environment_read(const char *path, char *text, size_t size) {
    size_t used = 0;
    long file = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return 0;
    for (;;) {
        long got = sys_call(SYS_read, file, (long)(text + used), (long)(size - used), 0, 0, 0);
        if (got <= 0) break;
        used += (size_t)got;
    }
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    return used;
}

// The kernel puts the number of arguments, their addresses, a NULL and then the variables on the
// stack, and the path that it executed above all that. A list of variables that lies elsewhere is
// one that the program has made.
static char *const *arguments_on_stack(long *count) {
    char *const *variables = variables_now();
    uintptr_t below = (uintptr_t)__builtin_frame_address(0), above = getauxval(AT_EXECFN);
    if ((uintptr_t)variables <= below || (uintptr_t)variables >= above || variables[-1])
        return NULL;
    char *const *first = variables - 1;
    for (*count = 0; (uintptr_t)(first - 1) > below; (*count)++, first--)
        if ((long)first[-1] == *count) return first;
    return NULL;
}

void environment_command(char *text, size_t size) {
    long count = 0;
    if (environment_read("/proc/self/cmdline", text, size)) return;
    char *const *argument = arguments_on_stack(&count);
    for (size_t used = 0; argument && count > 0 && used < size; count--, argument++) {
        size_t length = strnlen(*argument, size - used);
        memcpy(text + used, *argument, length);
        used += length + 1;
    }
}

static void append(char *path, size_t size, const char *piece) {
    size_t used = strlen(path), length = strlen(piece);
    if (used + length >= size)
        path[0] = 0;  // none rather than a wrong one
    else
        memcpy(path + used, piece, length + 1);
}

// A script was executed as its first line says.
static const char *interpreter_of(const char *path, char *line, size_t size) {
    const size_t mark = 2;
    size_t length = environment_read(path, line, size - 1);
    line[length] = 0;
    if (length <= mark || memcmp(line, "#!", mark) != 0) return path;
    char *name = line + mark;
    while (*name == ' ' || *name == '\t') name++;
    name[strcspn(name, " \t\n")] = 0;
    return name;
}

static void executable_told(char *path, size_t size) {
    char line[SHEBANG_BYTES];
    const char *told = (const char *)getauxval(AT_EXECFN);
    path[0] = 0;
    if (!told) return;
    told = interpreter_of(told, line, sizeof line);
    if (told[0] != '/') {
        environment_directory(path, size);
        if (path[0] != '/') {
            path[0] = 0;
            return;
        }
        append(path, size, "/");
    }
    append(path, size, told);
}

// A text that is read in pieces.
struct text {
    long file;
    long used, count;
    char bytes[PIECE_BYTES];
};

// Returns the next character; -1 at the end.
static int text_next(struct text *text) {
    if (text->used == text->count) {
        text->count = sys_call(SYS_read, text->file, (long)text->bytes, PIECE_BYTES, 0, 0, 0);
        text->used = 0;
        if (text->count <= 0) return text->count = 0, -1;
    }
    return (unsigned char)text->bytes[text->used++];
}

// Reads a hexadecimal number, and into `after` the character behind it.
static uintptr_t text_number(struct text *text, int *after) {
    const unsigned digit_bits = 4;
    const int ten = 10;
    uintptr_t number = 0;
    for (;;) {
        int next = *after = text_next(text);
        bool is_letter = next >= 'a' && next <= 'f';
        if (!is_letter && (next < '0' || next > '9')) return number;
        uintptr_t digit = (uintptr_t)(is_letter ? next - 'a' + ten : next - '0');
        number = number << digit_bits | digit;
    }
}

// Copies the path at the end of the line, which is the first that has a slash; "" if it is longer.
static void text_path(struct text *text, char *path, size_t size) {
    size_t used = 0;
    for (int next = text_next(text); next >= 0 && next != '\n'; next = text_next(text)) {
        if (!used && next != '/') continue;
        if (used < size) path[used] = (char)next;
        used++;
    }
    path[used < size ? used : 0] = 0;
}

static void text_skip_line(struct text *text) {
    for (int next = text_next(text); next >= 0 && next != '\n';) next = text_next(text);
}

bool environment_mapped_path(uintptr_t address, char *path, size_t size) {
    struct text text;
    int after = '-';
    path[0] = 0;
    if (sys_is_confined()) return false;
    text.file =
        sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    text.used = text.count = 0;
    while (text.file >= 0 && after == '-') {
        uintptr_t start = text_number(&text, &after);
        if (after != '-') break;
        uintptr_t end = text_number(&text, &after);
        if (address - start < end - start) {
            text_path(&text, path, size);
            break;
        }
        text_skip_line(&text);
        after = '-';
    }
    if (text.file >= 0) sys_call(SYS_close, text.file, 0, 0, 0, 0, 0);
    return path[0] != 0;
}

bool environment_is_by_linker(void) {
    return !getauxval(AT_BASE);
}

// The kernel executed the dynamic linker, if that was given the program: /proc/self/exe is its.
void environment_executable(char *path, size_t size) {
    if (environment_is_by_linker() && environment_mapped_path(getauxval(AT_PHDR), path, size))
        return;
    long length = sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
                           (long)size - 1, 0, 0);
    path[length > 0 ? length : 0] = 0;
    if (length <= 0 && !sys_is_confined()) executable_told(path, size);
}

void environment_directory(char *path, size_t size) {
    if (sys_call(SYS_getcwd, (long)path, (long)size, 0, 0, 0, 0) <= 0) path[0] = 0;
}
