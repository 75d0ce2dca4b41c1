// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"
#include "tool/attach/static_library.h"
#include "tool/attach/static_program.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"

// musl puts the arguments on the stack first.
enum { SEARCH_BYTES = 128 };

bool session_stop(struct attach *attach, struct error *error) {
    if (!threads_stop(&attach->threads, attach->pid, error)) return false;
    attach->is_stopped = true;
    return true;
}

void session_count_pause(struct attach *attach) {
    uint64_t pause = attach->threads.pause_ns;
    attach->pause_ns += pause;
    if (pause > attach->longest_pause_ns) attach->longest_pause_ns = pause;
}

void session_go(struct attach *attach) {
    if (!attach->is_stopped) return;
    threads_go(&attach->threads, 0);
    session_count_pause(attach);
    attach->is_stopped = false;
}

bool session_choose_library(struct attach *attach, const char *name, const char *why,
                            struct error *error) {
    const char *slash = strrchr(attach->library_path, '/');
    int directory = slash ? (int)(slash + 1 - attach->library_path) : 0;
    int length = snprintf(attach->other_library, sizeof attach->other_library, "%.*s%s", directory,
                          attach->library_path, name);
    if (length >= (int)sizeof attach->other_library || access(attach->other_library, R_OK))
        return error_set(error, "%s, and there is no %s", why, attach->other_library);
    attach->library_path = attach->other_library;
    return true;
}

// An instruction of libc that makes system calls: that of its function syscall.
static uint64_t find_system_call(const struct attach *attach, struct loaded_module *libc) {
    uint8_t bytes[SEARCH_BYTES];
    uint64_t at = module_symbol(libc, &attach->remote, "syscall");
    if (!at || !remote_read(&attach->remote, at, bytes, sizeof bytes)) return 0;
    uint8_t *found =
        memmem(bytes, sizeof bytes, registers_system_call_code, sizeof registers_system_call_code);
    return found ? at + (uint64_t)(found - bytes) : 0;
}

static uint64_t find_function(struct attach *attach, const char *name) {
    for (size_t i = 0; i < attach->modules.items.count; i++) {
        struct loaded_module *module = &attach->modules.items.items[i];
        uint64_t at = module->namespace ? 0 : module_symbol(module, &attach->remote, name);
        if (at) return at;
    }
    return 0;
}

// That of the program itself, which comes before those of other namespaces.
struct loaded_module *session_libc(const struct attach *attach) {
    for (size_t i = 0; i < attach->modules.items.count; i++)
        if (module_is_libc(&attach->modules.items.items[i])) return &attach->modules.items.items[i];
    return NULL;
}

bool session_libc_range(const struct attach *attach, uint64_t *start, uint64_t *end) {
    const struct loaded_module *libc = session_libc(attach);
    if (libc) {
        *start = libc->start;
        *end = libc->end;
    } else {
        *start = attach->entries.low;
        *end = attach->entries.high;
    }
    return libc || (attach->program && attach->program->is_glibc);
}

// Behind code that stays: in libc, the dynamic linker, the executable; else in the modules that it
// was started with, or the kernel's.
static uint64_t find_stub(const struct attach *attach, const struct loaded_module *libc) {
    const struct remote *remote = &attach->remote;
    uint64_t place = 0;
    if (stub_find(&place, remote, libc->start) || stub_find(&place, remote, attach->modules.linker))
        return place;
    for (size_t i = 0; i < attach->modules.items.count; i++)
        if (stub_find(&place, remote, attach->modules.items.items[i].start)) return place;
    stub_find_last(&place, remote);
    return place;
}

bool session_find_functions(struct attach *attach, struct error *error) {
    struct loaded_module *libc = session_libc(attach);
    if (!libc) return error_set(error, "it uses neither glibc nor musl");
    attach->dlopen_at = find_function(attach, "dlopen");
    attach->dlerror_at = find_function(attach, "dlerror");
    if (!attach->dlopen_at) {
        attach->dlopen_at = module_symbol(libc, &attach->remote, "__libc_dlopen_mode");
        attach->is_old_dlopen = true;
    }
    attach->errno_at = module_symbol(libc, &attach->remote, "__errno_location");
    attach->allocator = find_function(attach, "malloc");
    attach->site.system_call_at = find_system_call(attach, libc);
    attach->site.stub_at = find_stub(attach, libc);
    attach->site.has_filter = attach->has_filter;
    if (!attach->dlopen_at || !attach->errno_at || !attach->site.system_call_at)
        return error_set(error, "its libc is none that cairn knows");
    return true;
}

// The module that an attach of before has left; or one that was there from the start.
static void find_library(struct attach *attach) {
    attach->library = SESSION_NO_LIBRARY;
    if (attach->modules.is_static) {
        attach->place = static_library_find(&attach->modules, &attach->remote);
        if (attach->place) attach->library = 0;
        return;
    }
    for (size_t i = 0; i < attach->modules.items.count; i++) {
        struct loaded_module *module = &attach->modules.items.items[i];
        bool may_be = strstr(module->name, "libcairn") || !strncmp(module->name, "/proc/", 6);
        if (!may_be) continue;
        uint64_t place = module_symbol(module, &attach->remote, "cairn_attachment");
        if (!place) continue;
        attach->library = (int)i;
        attach->place = place;
    }
}

bool session_read_attachment(struct attach *attach, struct error *error) {
    struct cairn_attachment *known = &attach->known;
    if (!remote_read(&attach->remote, attach->place, known, sizeof *known))
        return error_set(error, "it has ended");
    if (known->magic != CAIRN_ATTACHMENT_MAGIC || known->struct_bytes != sizeof *known ||
        known->format_version != CAIRN_VERSION)
        return error_set(error, "another version of cairn has left its library in it");
    memset(attach->settings, 0, sizeof attach->settings);
    return !known->settings ||
           remote_read(&attach->remote, known->settings, attach->settings,
                       sizeof attach->settings) ||
           error_set(error, "it has ended");
}

static bool is_alive(uint32_t pid) {
    char path[PROCESS_PATH_BYTES];
    return pid && access(process_path(path, (pid_t)pid, ""), F_OK) == 0;
}

struct loaded_module *session_library(struct attach *attach) {
    if (attach->library == SESSION_NO_LIBRARY) return NULL;
    return &attach->modules.items.items[attach->library];
}

// Whose recording the library has: the pid that this process or the one it is a fork of has for
// itself; 0: none. False if that cannot be read.
bool session_recorded_pid(struct attach *attach, uint32_t *pid) {
    uint64_t at = module_symbol(session_library(attach), &attach->remote, "cairn_recording"),
             header = 0;
    *pid = 0;
    if (!at || !remote_read(&attach->remote, at, &header, sizeof header)) return false;
    uint64_t pid_at = header + offsetof(struct cairn_header, pid);
    return !header || remote_read(&attach->remote, pid_at, pid, sizeof *pid);
}

// What says that it is recorded came with its parent's memory: the recording is the parent's, or
// was let go of at the first call.
static bool is_fork_of_recorded(struct attach *attach) {
    uint32_t pid = 0;
    bool is_known = module_symbol(session_library(attach), &attach->remote, "cairn_recording") != 0;
    return is_known && (!session_recorded_pid(attach, &pid) || !pid ||
                        pid != (uint32_t)examine_own_pid(attach->pid));
}

bool session_check_library(struct attach *attach, struct error *error) {
    if (attach->library == SESSION_NO_LIBRARY) return true;
    if (!session_read_attachment(attach, error)) return false;
    if (!attach->known.is_by_tool)
        return error_set(error, "it was started with cairn and records already");
    uint32_t tool = attach->known.is_running ? attach->known.tool_pid : 0;
    if (tool != (uint32_t)getpid() && is_alive(tool) && !is_fork_of_recorded(attach))
        return error_set(error, "it is being recorded by process %u", tool);
    return true;
}

bool session_read_modules(struct attach *attach, struct error *error) {
    modules_free(&attach->modules);
    if (!modules_read(&attach->modules, &attach->remote, error)) return false;
    find_library(attach);
    return true;
}
