// SPDX-License-Identifier: Apache-2.0
// The tool is a child made by a raw clone without an exit signal, so that the program's SIGCHLD
// handlers and waits see nothing of it. It gets the environment without LD_PRELOAD and cairn's own
// variables, or it would record itself.
#include "runtime/api/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/format.h"
#include "format/settings.h"
#include "runtime/process/state.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/slots.h"

enum {
    STATUS_USAGE = 2,
    STATUS_NO_TOOL = 127,
    NUMBER_BYTES = 16,
    WORDS = 48,
    FORM_BYTES = 1024,
    NAME_BYTES = 12
};

static const char export_forms[][NAME_BYTES] = {"collapsed",  "mptrace", "csv",
                                                "json",       "massif",  "callgrind",
                                                "speedscope", "dhat",    "flamegraph"};
static const size_t renamed_forms = 2;  // the first of them: a line a stack

static bool is_export(const char *form, size_t among) {
    size_t length = strcspn(form, " ");
    for (size_t i = 0; i < among; i++)
        if (!strncmp(form, export_forms[i], length) && !export_forms[i][length]) return true;
    return false;
}

static void write_number(char *text, int number) {
    char digits[NUMBER_BYTES];
    size_t count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count > 0) *text++ = digits[--count];
    *text = 0;
}

// Splits a form at its blanks: its name, then options of the command that makes it.
static size_t split(char *form, const char *words[], size_t most) {
    size_t count = 0;
    for (char *at = form; *at && count < most; at++) {
        if (*at == ' ') continue;
        words[count++] = at;
        at += strcspn(at, " ");
        if (!*at) break;
        *at = 0;
    }
    return count;
}

// The command line of the tool for a form, whose text it cuts into words.
static void make_words(char *form, const char *pid, const char *words[WORDS]) {
    enum { OWN_WORDS = 8 };
    const char *parts[WORDS - OWN_WORDS] = {form};
    size_t count = 0, part_count = split(form, parts, WORDS - OWN_WORDS);
    bool is_exported = is_export(parts[0], sizeof export_forms / sizeof *export_forms);
    words[count++] = "cairn";
    words[count++] = is_exported ? "export" : "report";
    if (is_exported || strcmp(parts[0], "summary") != 0) {
        words[count++] = is_exported ? "--format" : "--view";
        words[count++] = parts[0];
    }
    if (!is_exported) words[count++] = "--print";
    for (size_t i = 1; i < part_count; i++) words[count++] = parts[i];
    words[count++] = pid;
    words[count] = NULL;
}

static bool is_kept(const char *variable) {
    return strncmp(variable, "LD_PRELOAD=", sizeof "LD_PRELOAD=" - 1) != 0 &&
           strncmp(variable, "CAIRN_", sizeof "CAIRN_" - 1) != 0;
}

// The environment for the tool, for sys_unmap; NULL without memory.
static char **make_environment(size_t *bytes) {
    size_t count = 0, kept = 0;
    while (environ && environ[count]) count++;
    *bytes = (count + 1) * sizeof *environ;
    char **variables = sys_map(*bytes);
    for (size_t i = 0; variables && i < count && environ[i]; i++)
        if (is_kept(environ[i])) variables[kept++] = environ[i];
    return variables;
}

// In the child, which has only this thread and must touch nothing of the program's.
static void try_tool(const char *path, const char *const *words, char **variables) {
    sys_call(SYS_execve, (long)path, (long)words, (long)variables, 0, 0, 0);
}

// Copies the directory of the library, with the slash at its end; its length, 0 if it is not known.
// The library may be loaded by a link: cairn run makes one for a path that LD_PRELOAD cannot hold.
static size_t own_directory(char path[CAIRN_TEXT_PATH]) {
    struct object own = {0};
    if (!object_find((uintptr_t)own_directory, &own)) return 0;
    size_t length = strnlen(own.path, CAIRN_TEXT_PATH - 1);
    long linked =
        sys_call(SYS_readlinkat, AT_FDCWD, (long)own.path, (long)path, CAIRN_TEXT_PATH - 1, 0, 0);
    if (linked > 0 && *path == '/')
        length = (size_t)linked;
    else
        memcpy(path, own.path, length);
    while (length && path[length - 1] != '/') length--;
    return length;
}

static void become_tool(const char *const *words, char **variables) {
    static const char *const places[] = {"cairn", "../../bin/cairn", "../../../bin/cairn"};
    const char *named = environment_get(CAIRN_VARIABLE(TOOL));
    char path[CAIRN_TEXT_PATH];
    if (named) try_tool(named, words, variables);
    size_t length = own_directory(path);
    for (size_t i = 0; length && i < sizeof places / sizeof *places; i++) {
        if (length + strlen(places[i]) >= sizeof path) break;
        memcpy(path + length, places[i], strlen(places[i]) + 1);
        try_tool(path, words, variables);
    }
    try_tool("/usr/local/bin/cairn", words, variables);
    try_tool("/usr/bin/cairn", words, variables);
}

static void child_start(int output, const char *const *words, char **variables) {
    long null = sys_call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0, 0);
    if (output != STDOUT_FILENO) sys_call(SYS_dup3, output, STDOUT_FILENO, 0, 0, 0, 0);
    if (null != STDIN_FILENO) sys_call(SYS_dup3, null, STDIN_FILENO, 0, 0, 0, 0);
    if (null != STDERR_FILENO) sys_call(SYS_dup3, null, STDERR_FILENO, 0, 0, 0, 0);
    become_tool(words, variables);
    sys_call(SYS_exit_group, STATUS_NO_TOOL, 0, 0, 0, 0, 0);
}

// The pid of the tool, or -errno.
static long tool_start(int output, const char *form) {
    char pid[NUMBER_BYTES], text[FORM_BYTES];
    const char *words[WORDS];
    size_t bytes, length = strnlen(form, sizeof text);
    if (length == sizeof text) return -EINVAL;
    memcpy(text, form, length + 1);
    char **variables = make_environment(&bytes);
    if (!variables) return -ENOMEM;
    write_number(pid, sys_pid());
    make_words(text, pid, words);
    long child = sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (child == 0) child_start(output, words, variables);
    sys_unmap(variables, bytes);
    return child;
}

static int tool_wait(long child) {
    int status = 0;
    long done;
    do done = sys_call(SYS_wait4, child, (long)&status, __WALL, 0, 0, 0);
    while (done == -EINTR);
    if (done != child || !WIFEXITED(status)) return EIO;
    switch (WEXITSTATUS(status)) {
    case 0:
        return 0;
    case STATUS_USAGE:
        return EINVAL;
    case STATUS_NO_TOOL:
        return ENOENT;
    default:
        return EIO;
    }
}

static bool write_all(int descriptor, const char *text, size_t length) {
    while (length) {
        long done = sys_call(SYS_write, descriptor, (long)text, (long)length, 0, 0, 0);
        if (done == -EINTR) continue;
        if (done <= 0) return false;
        text += done;
        length -= (size_t)done;
    }
    return true;
}

// Lines "outer;...;inner VALUE" on their way, with what each frame is to be called.
enum { LINE_BYTES = 1 << 20 };
struct renaming {
    cairn_rename rename;
    void *context;
    char in[LINE_BYTES], out[2 * LINE_BYTES];
    size_t in_used, out_used;
};

static void put(struct renaming *renaming, const char *text, size_t length) {
    size_t room = sizeof renaming->out - renaming->out_used;
    if (length > room) length = room;
    memcpy(renaming->out + renaming->out_used, text, length);
    renaming->out_used += length;
}

// The frames of a line, each ended by a NUL here; the first is the form's own mark if it has one.
static void rename_frames(struct renaming *renaming, char *frame, char *end) {
    static const char mark[] = "_mpTrace_";
    bool is_first = true;
    for (char *next; frame < end; frame = next) {
        char *stop = memchr(frame, ';', (size_t)(end - frame));
        if (!stop) stop = end;
        *stop = 0;
        next = stop + 1;
        bool is_mark = is_first && !strcmp(frame, mark);
        const char *name = is_mark ? frame : renaming->rename(frame, renaming->context);
        if (!name) return;
        if (!name[0]) continue;
        if (!is_first) put(renaming, ";", 1);
        put(renaming, name, strlen(name));
        is_first = false;
    }
}

static bool rename_line(struct renaming *renaming, char *line, size_t length, int descriptor) {
    char *value = memrchr(line, ' ', length);
    renaming->out_used = 0;
    if (value) {
        rename_frames(renaming, line, value);
        put(renaming, " ", 1);
        put(renaming, value + 1, (size_t)(line + length - value - 1));
    }
    put(renaming, "\n", 1);
    return write_all(descriptor, renaming->out, renaming->out_used);
}

// Takes whole lines from the front of what was read. A line longer than the buffer ends there.
static bool rename_lines(struct renaming *renaming, int descriptor) {
    char *at = renaming->in, *end = renaming->in + renaming->in_used;
    bool is_full = renaming->in_used == sizeof renaming->in - 1;
    for (char *stop; (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1) {
        is_full = false;
        if (!rename_line(renaming, at, (size_t)(stop - at), descriptor)) return false;
    }
    if (is_full && !rename_line(renaming, at, (size_t)(end - at), descriptor)) return false;
    renaming->in_used = is_full ? 0 : (size_t)(end - at);
    memmove(renaming->in, at, renaming->in_used);
    return true;
}

static int write_renamed(int descriptor, const char *form, cairn_rename rename, void *context) {
    int pipe[2], problem = EIO;
    struct renaming *renaming = sys_map(sizeof *renaming);
    if (!renaming) return ENOMEM;
    renaming->rename = rename;
    renaming->context = context;
    if (sys_call(SYS_pipe2, (long)pipe, O_CLOEXEC, 0, 0, 0, 0) == 0) {
        long child = tool_start(pipe[1], form);
        bool is_ok = child > 0;
        sys_call(SYS_close, pipe[1], 0, 0, 0, 0, 0);
        while (is_ok) {
            long got = sys_call(SYS_read, pipe[0], (long)(renaming->in + renaming->in_used),
                                (long)(sizeof renaming->in - 1 - renaming->in_used), 0, 0, 0);
            if (got == -EINTR) continue;
            if (got <= 0) break;
            renaming->in_used += (size_t)got;
            is_ok = rename_lines(renaming, descriptor);
        }
        sys_call(SYS_close, pipe[0], 0, 0, 0, 0, 0);
        problem = child < 0 ? (int)-child : tool_wait(child);
        if (!problem && !is_ok) problem = EIO;
    }
    sys_unmap(renaming, sizeof *renaming);
    return problem;
}

int report_write(int descriptor, const char *form, cairn_rename rename, void *context) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return ENOSYS;
    if (!form || !*form || *form == '-' || *form == ' ') return EINVAL;
    if (rename && !is_export(form, renamed_forms)) return EINVAL;
    if (rename) return write_renamed(descriptor, form, rename, context);
    long child = tool_start(descriptor, form);
    return child < 0 ? (int)-child : tool_wait(child);
}
