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

#include "format/attachment.h"
#include "format/settings.h"
#include "tool/attach/bare_library.h"
#include "tool/attach/executable.h"
#include "tool/attach/patch.h"
#include "tool/attach/static_headers.h"
#include "tool/proc/process.h"

// By these a program changes the rules that it runs under; runtime/preload/process.c and locked.c.
static const char *const noted[] = {"prctl", "syscall", "setrlimit", "prlimit",
                                    "fork",  "_Exit",   "mlockall",  "munlockall"};
enum { NOTED = sizeof noted / sizeof *noted, QUICK = 3 };
_Static_assert(NOTED + QUICK + 1 < (int)CAIRN_BARE_FUNCTIONS, "all have a place");

// A function of glibc's allocator that no other has.
#define GLIBC_ALONE "__malloc_arena_thread_freeres"

// ---- the process, held --------------------------------------------------------------------------

bool static_start_hold(pid_t pid, struct error *error) {
    uintptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) == 0) return true;
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
    struct executable image;
    struct entries entries;
    struct entry_wish wishes[NOTED];
    struct bare_library library;
    struct cairn_attachment *attachment;  // in the library's image
    struct cairn_bare *bare;
    struct static_headers headers;
    uint64_t headers_at;
    struct caller caller;
    struct patch patch;
    bool is_glibc;
};

// The kernel's own code has an instruction that makes system calls.
static uint64_t find_system_call(const struct remote *remote) {
    uint8_t code[2 * 4096];
    uint64_t at = 0;
    if (!process_auxiliary(remote->pid, AT_SYSINFO_EHDR, &at) ||
        (!remote_read(remote, at, code, sizeof code) &&
         !remote_read(remote, at, code, sizeof code / 2)))
        return 0;
    for (size_t i = 0; i + sizeof registers_system_call_code <= sizeof code; i++)
        if (!memcmp(code + i, registers_system_call_code, sizeof registers_system_call_code))
            return at + i;
    return 0;
}

static bool open_caller(struct starting *starting, struct error *error) {
    struct call_site site = {.system_call_at = find_system_call(&starting->remote)};
    starting->thread.tid = starting->remote.pid;
    if (!registers_get(starting->thread.tid, &starting->thread.registers) || !site.system_call_at)
        return error_set(error, "no system call can be made in it");
    return caller_begin(&starting->caller, &starting->remote, &starting->thread, &site, error);
}

// glibc's malloc, free and calloc call none of the others: they lead to the hooks of a dynamic
// program, which are the fastest. A thread's first event by one that does is to be known as one.
static void lead_quickly(struct starting *starting) {
    static const char *const names[QUICK] = {"malloc", "free", "calloc"};
    starting->is_glibc = entries_named(&starting->entries, GLIBC_ALONE) != NULL;
    for (size_t i = 0; starting->is_glibc && i < starting->entries.items.count; i++)
        for (size_t name = 0; name < QUICK; name++)
            if (!strcmp(starting->entries.items.items[i].name, names[name]))
                starting->entries.items.items[i].way =
                    bare_library_address(&starting->library, names[name]);
}

static bool find_functions(struct starting *starting, struct error *error) {
    struct entries *entries = &starting->entries;
    if (!entries_find(entries, &starting->remote, error)) return false;
    if (!entries->items.count)
        return error_set(error, "it has no malloc that its symbols would name (stripped?)");
    lead_quickly(starting);
    for (unsigned i = 0; i < NOTED; i++) {
        struct entry_wish *wish = &starting->wishes[i];
        *wish = (struct entry_wish){.way = bare_library_address(&starting->library, noted[i]),
                                    .may_lack = true};
        snprintf(wish->name, sizeof wish->name, "%s", noted[i]);
    }
    return entries_add_wishes(entries, &starting->remote, starting->wishes, NOTED, error);
}

// The variables that say how to record, as the program begins with them.
static bool read_variables(struct starting *starting, struct error *error) {
    static const char prefix[] = "CAIRN_";
    struct static_headers *headers = &starting->headers;
    enum { ENVIRONMENT_BYTES = 4 << 20 };
    char *all = malloc(ENVIRONMENT_BYTES);
    size_t bytes = all ? process_read(starting->remote.pid, "environ", all, ENVIRONMENT_BYTES) : 0;
    bool has_room = all;
    for (size_t at = 0; at < bytes; at += strlen(all + at) + 1) {
        size_t length = strlen(all + at) + 1;
        if (strncmp(all + at, prefix, sizeof prefix - 1) != 0) continue;
        has_room = has_room && length <= sizeof headers->text - headers->text_bytes;
        if (!has_room) break;
        memcpy(headers->text + headers->text_bytes, all + at, length);
        headers->text_bytes += length;
    }
    free(all);
    return has_room || error_set(error, "no room for the variables that say how to record");
}

static bool read_program(struct starting *starting, struct error *error) {
    uint64_t bias;
    if (!executable_open(&starting->image, &starting->remote) ||
        !executable_bias(&starting->image, &bias))
        return error_set(error, "its file cannot be read");
    return read_variables(starting, error) &&
           static_headers_read(&starting->headers, starting->image.elf, bias, &starting->library,
                               error);
}

static bool read_library(struct starting *starting, const char *path, struct error *error) {
    if (!bare_library_open(&starting->library, path, error)) return false;
    starting->attachment =
        bare_library_data(&starting->library, "cairn_attachment", sizeof *starting->attachment);
    starting->bare = bare_library_data(&starting->library, "cairn_bare", sizeof *starting->bare);
    if (starting->attachment && starting->bare &&
        starting->attachment->magic == CAIRN_ATTACHMENT_MAGIC)
        return true;
    return error_set(error, "libcairn-bare.so is of another version of cairn");
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
    const struct static_headers *headers = &starting->headers;
    uint64_t at = find_vector(starting), pair[2] = {AT_NULL};
    unsigned found = 0;
    for (size_t i = 0; i < CAIRN_BARE_AUXILIARY - 1; i++, at += sizeof pair) {
        if (!remote_read(remote, at, pair, sizeof pair)) return false;
        memcpy(starting->bare->auxiliary[i], pair, sizeof pair);
        if (pair[0] == AT_NULL) break;
        bool is_place = pair[0] == AT_PHDR, is_count = pair[0] == AT_PHNUM;
        found += is_place || is_count;
        if (!is_final || !(is_place || is_count)) continue;
        pair[1] =
            is_place ? starting->headers_at + headers->program_at : static_headers_count(headers);
        if (!remote_write(remote, at, pair, sizeof pair)) return false;
    }
    return found == 2 && pair[0] == AT_NULL;
}

// ---- the order ----------------------------------------------------------------------------------

static void tell_functions(struct starting *starting) {
    const struct entries *entries = &starting->entries;
    size_t count = 0;
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        if (!entry->way) continue;
        struct cairn_bare_function *function = &starting->bare->functions[count++];
        snprintf(function->name, sizeof function->name, "%s", entry->name);
        function->moved = patch_moved_at(&starting->patch, entries, i);
    }
    struct cairn_bare_function *glibc = &starting->bare->functions[count];
    if (starting->is_glibc) {
        snprintf(glibc->name, sizeof glibc->name, CAIRN_BARE_GLIBC);
        glibc->moved = 1;
    } else {
        starting->attachment->entries_at = starting->patch.start;
    }
}

// Everything that may fail comes before what the program would notice: the vector and the jumps.
static bool put_in(struct starting *starting, struct error *error) {
    struct bare_library *library = &starting->library;
    struct static_headers *headers = &starting->headers;
    struct caller *caller = &starting->caller;
    if (!bare_library_map(library, caller, error) || !find_functions(starting, error) ||
        !bare_library_relocate(library, static_headers_locals(headers), error) ||
        !patch_map_near(caller, &starting->entries, headers->bytes, PROT_READ,
                        &starting->headers_at, error) ||
        !patch_prepare(&starting->patch, &starting->entries, starting->attachment->entry_hooks,
                       caller, error))
        return false;
    uint8_t *bytes = static_headers_make(headers, starting->headers_at, library, starting->bare);
    bool is_told =
        bytes && remote_write(&starting->remote, starting->headers_at, bytes, headers->bytes);
    free(bytes);
    tell_functions(starting);
    if (!is_told || !change_vector(starting, false))
        return error_set(error, "its memory cannot be written");
    return bare_library_write(library, &starting->remote, error);
}

static bool record(struct starting *starting, const char *library, struct error *error) {
    struct error unused;
    if (!read_library(starting, library, error) || !read_program(starting, error) ||
        !open_caller(starting, error))
        return false;
    bool is_in = put_in(starting, error);
    if (!caller_end(&starting->caller, is_in ? error : &unused)) return false;
    if (!is_in) return false;
    return (change_vector(starting, true) && patch_take(&starting->patch, &starting->remote)) ||
           error_set(error, "its memory cannot be written");
}

bool static_start_record(pid_t pid, const char *library, struct error *error) {
    struct starting *starting = calloc(1, sizeof *starting);
    if (!starting) return error_set(error, "out of memory");
    starting->image.file = starting->library.file = -1;
    bool is_done = remote_open(&starting->remote, pid, error);
    if (is_done) {
        is_done = record(starting, library, error);
        remote_close(&starting->remote);
    }
    patch_free(&starting->patch);
    entries_free(&starting->entries);
    static_headers_free(&starting->headers);
    bare_library_close(&starting->library);
    executable_close(&starting->image);
    free(starting);
    return is_done;
}
