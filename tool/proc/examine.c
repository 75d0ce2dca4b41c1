// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/examine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/proc/process.h"
#include "tool/proc/registers.h"

enum { STATUS_BYTES = 8192, SECCOMP_STRICT = 1, SECCOMP_FILTER = 2 };

static bool read_file(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t got = read(file, text, size - 1);
    close(file);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

static long number(const char *status, const char *name) {
    return strtol(process_field(status, name), NULL, 10);
}

// Refuses a process without memory: it is the kernel's, or has given its memory up to end.
static bool refuse_absent(pid_t pid, struct error *error) {
    struct process_stat stat;
    if (!process_stat(pid, &stat)) return process_say_unreadable(error);
    return error_set(error, stat.is_of_kernel ? "it is a thread of the kernel"
                                              : "it is ending: its memory is gone already");
}

static bool check_state(pid_t pid, const char *status, struct error *error) {
    char state = *process_field(status, "State");
    long process = number(status, "Tgid"), tracer = number(status, "TracerPid");
    if (process != pid) return error_set(error, "it is a thread of process %ld", process);
    if (pid == getpid()) return error_set(error, "it is this cairn itself");
    if (state == 'Z' && number(status, "Threads") > 1)
        return error_set(error, "its first thread has ended, and by that alone the kernel shows "
                                "the memory of the others");
    if (state == 'Z' || state == 'X') return error_set(error, "it has ended (a zombie)");
    if (!*process_field(status, "VmSize")) return refuse_absent(pid, error);
    if (tracer)
        return error_set(error, "it is traced already, by process %ld (a debugger, strace?)",
                         tracer);
    return true;
}

static bool check_running(pid_t pid, const char *status, struct error *error) {
    return *process_field(status, "State") != 'T' ||
           error_set(error, "it is stopped: kill -CONT %d lets it go on", (int)pid);
}

static bool is_own(const char *status) {
    return number(status, "Uid") == (long)geteuid();
}

static bool check_permission(pid_t pid, const char *status, struct error *error) {
    char scope[16];
    int file = process_open(pid, "mem", O_RDWR);
    if (file >= 0) {
        close(file);
        return true;
    }
    int reason = errno;
    if (reason == ENOENT) return error_set(error, "it has ended");
    if (!is_own(status))
        return error_set(error, "permission denied: it belongs to user %ld", number(status, "Uid"));
    if (read_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) && scope[0] != '0')
        return error_set(error,
                         "permission denied: /proc/sys/kernel/yama/ptrace_scope is %c; as root, or "
                         "with 0 there, it can be attached to",
                         scope[0]);
    return error_set(error, "%s: it is protected (setuid, capabilities or not dumpable)",
                     strerror(reason));
}

static bool check_machine(pid_t pid, struct error *error) {
    Elf64_Ehdr header = {0};
    int file = process_open(pid, "exe", O_RDONLY);
    if (file < 0) return error_set(error, "its executable cannot be read: %s", strerror(errno));
    ssize_t got = read(file, &header, sizeof header);
    close(file);
    if (got != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return error_set(error, "its executable is no ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != REGISTERS_MACHINE)
        return error_set(error, "it is a program of another architecture than cairn");
    return true;
}

// By the interpreter that its executable names, or that is its executable.
static bool has_musl(pid_t pid) {
    Elf64_Ehdr header;
    Elf64_Phdr segment = {0};
    char interpreter[PATH_MAX] = "";
    int file = process_open(pid, "exe", O_RDONLY);
    bool is_read = file >= 0 && pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
    for (unsigned i = 0; is_read && i < header.e_phnum && segment.p_type != PT_INTERP; i++)
        is_read = pread(file, &segment, sizeof segment,
                        (off_t)(header.e_phoff + i * sizeof segment)) == (ssize_t)sizeof segment;
    if (is_read && segment.p_type == PT_INTERP && segment.p_filesz < sizeof interpreter)
        is_read = pread(file, interpreter, segment.p_filesz, (off_t)segment.p_offset) > 0;
    if (file >= 0) close(file);
    if (is_read && segment.p_type != PT_INTERP)
        process_link(pid, "exe", interpreter, sizeof interpreter);
    const char *name = text_base_name(interpreter);
    return is_read && (!strncmp(name, "ld-musl-", strlen("ld-musl-")) || !strcmp(name, "libc.so"));
}

// The library is loaded from a file in memory, whose only path is there.
static bool check_proc(pid_t pid, struct error *error) {
    char path[PROCESS_PATH_BYTES];
    return access(process_path(path, pid, "root/proc/version"), F_OK) == 0 ||
           error_set(error, "its root directory has no /proc, which a library is loaded through");
}

bool examine_shadow_stack(const char *status) {
    const char *features = process_field(status, "x86_Thread_features");
    const char *found = strstr(features, "shstk"), *line_end = strchr(features, '\n');
    return found && line_end && found < line_end;
}

static bool read_status(pid_t pid, char status[STATUS_BYTES], struct error *error) {
    return process_read(pid, "status", status, STATUS_BYTES) ||
           error_set(error,
                     process_can_look() ? "there is no such process" : "/proc is not mounted");
}

pid_t examine_own_pid(pid_t pid) {
    char status[STATUS_BYTES];
    struct error unused;
    if (!read_status(pid, status, &unused)) return 0;
    const char *numbers = process_field(status, "NSpid");
    size_t length = strcspn(numbers, "\n");
    while (length && numbers[length - 1] >= '0' && numbers[length - 1] <= '9') length--;
    return *numbers ? (pid_t)strtol(numbers + length, NULL, 10) : pid;
}

bool examine_processor(bool is_anyway, struct error *error) {
    return REGISTERS_ARE_TRIED || is_anyway ||
           error_set(error, "on this kind of processor cairn changed running programs on emulated "
                            "machines only (--ignore-checks)");
}

bool examine_to_read(pid_t pid, struct error *error) {
    char status[STATUS_BYTES];
    return read_status(pid, status, error) && check_state(pid, status, error) &&
           check_permission(pid, status, error) && check_machine(pid, error);
}

bool examine(pid_t pid, bool is_anyway, struct examined *examined, struct error *error) {
    char status[STATUS_BYTES];
    if (!read_status(pid, status, error) || !check_state(pid, status, error) ||
        !check_running(pid, status, error) || !check_permission(pid, status, error) ||
        !examine_processor(is_anyway, error) || !check_machine(pid, error) ||
        !check_proc(pid, error))
        return false;
    examined->has_musl = has_musl(pid);
    long seccomp = number(status, "Seccomp");
    examined->has_filter = seccomp == SECCOMP_FILTER;
    if (seccomp == SECCOMP_STRICT)
        return error_set(error, "seccomp's strict mode is in force there");
    if (examined->has_filter && !is_anyway)
        return error_set(error,
                         "a seccomp filter is in force there, which might end it for a system "
                         "call of cairn's; filters of containers do not (--ignore-checks)");
    if (examine_shadow_stack(status))
        return error_set(error, "it runs with a shadow stack, which forbids calls from outside");
    return true;
}

bool examine_absence(pid_t pid, struct error *error) {
    struct process_stat stat;
    char pages[sizeof "0 "];
    struct error why;
    if (!process_stat(pid, &stat)) return error_set(error, "process %d: it has ended", (int)pid);
    bool is_zombie = stat.state == 'Z' && !examine_to_read(pid, &why);
    if (is_zombie) return error_set(error, "process %d: %s", (int)pid, why.text);
    bool is_absent = process_read(pid, "statm", pages, sizeof pages) && !strcmp(pages, "0 ");
    if (is_absent && stat.is_of_kernel)
        return error_set(error, "process %d: it has no memory of its own: it is the kernel's",
                         (int)pid);
    if (is_absent && !refuse_absent(pid, &why))
        return error_set(error, "process %d: %s", (int)pid, why.text);
    if (examine_to_read(pid, &why)) error_set(&why, "its size is not known");
    return error_set(error, "process %d: its memory may not be read: %s%s", (int)pid, why.text,
                     geteuid() ? "; ask as root (sudo)" : "");
}
