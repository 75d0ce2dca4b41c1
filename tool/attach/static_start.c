// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_start.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tool/attach/static_program.h"
#include "tool/proc/process.h"

// ---- the process, held --------------------------------------------------------------------------

#define CALL_OPTIONS ((uintptr_t)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC))
#define START_OPTIONS (CALL_OPTIONS | PTRACE_O_EXITKILL)

bool static_start_hold(pid_t pid, struct error *error) {
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)START_OPTIONS) == 0) return true;
    return error_set(error, "it cannot be held at its start (ptrace: %s)", strerror(errno));
}

// Passes on what stopped it, but for the stops that were asked for.
static void pass_on(pid_t pid, int status) {
    int event = status >> 16, signal = WSTOPSIG(status);
    bool is_group_stop = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
    if (is_group_stop)
        ptrace(PTRACE_LISTEN, pid, NULL, NULL);
    else
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(event ? 0 : signal));
}

// Its end is left to be seen by who waits for it, as after an image that the kernel cannot load.
static bool has_stopped(pid_t pid) {
    siginfo_t info = {.si_code = CLD_EXITED};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) == 0 &&
           info.si_code != CLD_EXITED && info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED;
}

static bool await(pid_t pid, int wanted_event) {
    int status = 0;
    while (has_stopped(pid) && waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        if (status >> 16 == wanted_event) return true;
        pass_on(pid, status);
    }
    return false;
}

// The kernel has made the new image, and the system call that did has yet to end.
bool static_start_await(pid_t pid) {
    uint64_t linker = 0;
    if (!await(pid, PTRACE_EVENT_EXEC)) return false;
    bool is_dynamic = process_auxiliary(pid, AT_BASE, &linker) && linker;
    if (!is_dynamic && ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 &&
        ptrace(PTRACE_CONT, pid, NULL, NULL) == 0)
        return await(pid, PTRACE_EVENT_STOP);
    static_start_go(pid);
    return false;
}

void static_start_go(pid_t pid) {
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

// ---- what is put into it ------------------------------------------------------------------------

struct starting {
    struct remote remote;
    struct stopped_thread thread;
    struct caller caller;
    struct entries entries;
    struct patch patch;
    struct static_program program;
};

static bool set_options(const struct starting *starting, bool has_stub) {
    const uintptr_t options = has_stub ? CALL_OPTIONS : START_OPTIONS;
    return ptrace(PTRACE_SETOPTIONS, starting->thread.tid, NULL, (void *)options) == 0;
}

// Lets the program end with the tool from here on if it has no stub: its thread would not get back.
static bool open_caller(struct starting *starting, struct error *error) {
    const struct call_site site = static_program_site(&starting->program, &starting->remote);
    starting->thread.tid = starting->remote.pid;
    if (!set_options(starting, site.stub_at != 0) ||
        !registers_get(starting->thread.tid, &starting->thread.registers) || !site.system_call_at)
        return error_set(error, "no system call can be made in it");
    return caller_begin(&starting->caller, &starting->remote, &starting->thread, &site, error) &&
           (starting->caller.stub.place || set_options(starting, false) ||
            error_set(error, "it has ended"));
}

static const char how_to_record[] = "CAIRN_", where_programs_are[] = "PATH=";

// Keeps those of `bytes` that begin so.
static bool keep_variables(struct static_headers *headers, const char *prefix, const char *all,
                           size_t bytes) {
    for (size_t at = 0; at < bytes; at += strlen(all + at) + 1) {
        size_t length = strlen(all + at) + 1;
        if (strncmp(all + at, prefix, strlen(prefix)) != 0) continue;
        if (length > sizeof headers->text - headers->text_bytes) return false;
        memcpy(headers->text + headers->text_bytes, all + at, length);
        headers->text_bytes += length;
    }
    return true;
}

static size_t text_bytes(const char *variables) {
    const char *end = variables;
    while (*end) end += strlen(end) + 1;
    return (size_t)(end - variables);
}

// As the program begins with them, or those of the run.
static bool read_variables(struct starting *starting, const char *variables, struct error *error) {
    struct static_headers *headers = &starting->program.headers;
    enum { ENVIRONMENT_BYTES = 4 << 20 };
    char *all = malloc(ENVIRONMENT_BYTES);
    size_t bytes = all ? process_read(starting->remote.pid, "environ", all, ENVIRONMENT_BYTES) : 0;
    bool has_room = all && keep_variables(headers, how_to_record, all, bytes);
    if (has_room && !headers->text_bytes && variables)
        has_room = keep_variables(headers, how_to_record, variables, text_bytes(variables));
    // without room for it, programs that are started by name alone may be named too late
    if (has_room) keep_variables(headers, where_programs_are, all, bytes);
    free(all);
    return has_room || error_set(error, "no room for the variables that say how to record");
}

// ---- what the program finds on its stack --------------------------------------------------------

static bool is_none(const struct remote *remote, uint64_t *at) {
    uint64_t word = 0;
    bool is_end = !remote_read(remote, *at, &word, sizeof word) || !word;
    *at += sizeof word;
    return is_end;
}

// The auxiliary vector lies behind the arguments and the variables, which each end in a NULL.
static uint64_t find_vector(const struct starting *starting) {
    uint64_t at = registers_stack(&starting->thread.registers) + sizeof(uint64_t);
    for (unsigned lists = 0; lists < 2;)
        if (is_none(&starting->remote, &at)) lists++;
    return at;
}

// Keeps what the kernel said for the library, and tells the program of its new headers.
static bool change_vector(struct starting *starting, bool is_final) {
    const struct remote *remote = &starting->remote;
    const struct static_headers *headers = &starting->program.headers;
    uint64_t at = find_vector(starting), pair[2] = {AT_NULL};
    unsigned found = 0;
    for (size_t i = 0; i < CAIRN_BARE_AUXILIARY - 1; i++, at += sizeof pair) {
        if (!remote_read(remote, at, pair, sizeof pair)) return false;
        memcpy(starting->program.bare->auxiliary[i], pair, sizeof pair);
        if (pair[0] == AT_NULL) break;
        bool is_place = pair[0] == AT_PHDR, is_count = pair[0] == AT_PHNUM;
        found += is_place || is_count;
        if (!is_final || !(is_place || is_count)) continue;
        pair[1] = is_place ? starting->program.headers_at + headers->program_at
                           : static_headers_count(headers);
        if (!remote_write(remote, at, pair, sizeof pair)) return false;
    }
    return found == 2 && pair[0] == AT_NULL;
}

// ---- the order ----------------------------------------------------------------------------------

// Everything that may fail comes before what the program would notice: the vector and the jumps. If
// the tool is killed after any of these writes, the program begins as it would: a library that it
// does not know, room for thread-locals that nobody uses, functions that lead to a library which
// records nothing.
static bool put_in(struct starting *starting, struct error *error) {
    struct static_program *program = &starting->program;
    const struct bare_locals locals = {CAIRN_BARE_LOCALS_GIVEN,
                                       static_headers_locals(&program->headers)};
    program->attachment->is_by_tool = 1;
    if (!bare_library_map(&program->library, &starting->caller, error) ||
        !static_program_make(program, &starting->caller, &locals, error))
        return false;
    if (!change_vector(starting, false)) return error_set(error, "its memory cannot be written");
    return bare_library_write(&program->library, &starting->remote, error);
}

static bool record(struct starting *starting, const char *library, const char *variables,
                   struct error *error) {
    struct error unused;
    struct static_program *program = &starting->program;
    if (!read_variables(starting, variables, error) ||
        !static_program_open(program, &starting->remote, library, error) ||
        !static_program_find(program, &starting->remote, error) || !open_caller(starting, error))
        return false;
    bool is_in = put_in(starting, error);
    if (!caller_end(&starting->caller, is_in ? error : &unused)) return false;
    if (!is_in) return false;
    return (change_vector(starting, true) && patch_take(program->patch, &starting->remote) &&
            static_program_begin(program, &starting->remote)) ||
           error_set(error, "its memory cannot be written");
}

bool static_start_record(pid_t pid, const char *library, const char *variables,
                         struct error *error) {
    struct starting *starting = calloc(1, sizeof *starting);
    if (!starting) return error_set(error, "out of memory");
    starting->program = (struct static_program){.image.file = -1,
                                                .library.file = -1,
                                                .entries = &starting->entries,
                                                .patch = &starting->patch};
    bool is_done = remote_open(&starting->remote, pid, error);
    if (is_done) {
        is_done = record(starting, library, variables, error);
        remote_close(&starting->remote);
    }
    static_program_close(&starting->program);
    patch_free(&starting->patch);
    entries_free(&starting->entries);
    free(starting);
    return is_done;
}
