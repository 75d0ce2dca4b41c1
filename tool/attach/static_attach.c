// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/attach/load.h"
#include "tool/attach/static_library.h"
#include "tool/attach/static_program.h"
#include "tool/proc/process.h"

// Bounds the search for the thread's number in libc's structure of a thread.
enum { THREAD_BYTES = 2048, STATUS_BYTES = 4096, TEN = 10 };

// ---- before anything is stopped -----------------------------------------------------------------

// Something leads its allocator elsewhere, and it is not what a tool of ours loaded.
static bool is_led(const struct attach *attach) {
    const struct static_program *program = attach->program;
    uint8_t now[CODE_JUMP_BYTES];
    struct code_function code;
    for (size_t i = 0; i < attach->entries.items.count; i++) {
        const struct entry *entry = &attach->entries.items.items[i];
        if (executable_code(program->image.elf, program->headers.bias, entry->address, entry->size,
                            &code) &&
            remote_read(&attach->remote, entry->address, now, sizeof now) &&
            memcmp(now, code.bytes, code.size < sizeof now ? code.size : sizeof now) != 0)
            return true;
    }
    return false;
}

static bool find_places(struct attach *attach, struct error *error) {
    attach->site = static_program_site(attach->program, &attach->remote);
    attach->site.has_filter = attach->has_filter;
    return attach->site.system_call_at || error_set(error, "no system call can be made in it");
}

static bool open_program(struct attach *attach, struct error *error) {
    struct static_program *program = attach->program = calloc(1, sizeof *program);
    if (!program) return error_set(error, "out of memory");
    *program = (struct static_program){
        .image.file = -1, .library.file = -1, .entries = &attach->entries, .patch = &attach->patch};
    return (static_program_open(program, &attach->remote, attach->library_path, error) &&
            static_program_find(program, &attach->remote, error)) ||
           error_wrap(error, "it is statically linked");
}

bool static_attach_open(struct attach *attach, struct error *error) {
    if (!session_choose_library(attach, "libcairn-bare.so", "it is statically linked", error) ||
        !open_program(attach, error) || !session_check_library(attach, error) ||
        !find_places(attach, error))
        return false;
    if (attach->library == SESSION_NO_LIBRARY && is_led(attach))
        return error_set(error, "its malloc leads elsewhere already: cairn run has started it, or "
                                "another tool changes its code");
    attach->unwinder = remote_unwind_open(&attach->remote, 0, attach->library_path, error);
    if (!attach->unwinder) return false;
    // glibc has unwind information of all its code
    if (!attach->program->is_glibc)
        remote_unwind_set_blind(attach->unwinder, attach->entries.low, attach->entries.high);
    return true;
}

void static_attach_close(struct attach *attach) {
    if (!attach->program) return;
    static_program_close(attach->program);
    free(attach->program);
    attach->program = NULL;
}

bool static_attach_allows(const struct attach_request *request, struct error *error) {
    const char *name = CAIRN_VARIABLE(SIGNAL), *option = request->wrap_rows ? "wrap" : NULL;
    for (const char *at = request->settings; *at; at += strlen(at) + 1)
        if (!strncmp(at, name, strlen(name)) && at[strlen(name)] == '=') option = "signal";
    return !option ||
           error_set(error, "it is statically linked, and --%s cannot be had of it", option);
}

// ---- loading ------------------------------------------------------------------------------------

struct stopped_thread *static_attach_stop(struct attach *attach, struct error *error) {
    if (!session_stop(attach, error)) return NULL;
    for (size_t i = 0; i < attach->threads.stopped.count; i++)
        if (!attach->threads.stopped.items[i].signal) return &attach->threads.stopped.items[i];
    error_set(error, "all its threads are handling signals");
    return NULL;
}

// The number that the thread has for itself.
static int32_t own_tid(const struct attach *attach, pid_t tid) {
    char name[PROCESS_PATH_BYTES], status[STATUS_BYTES];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    process_read(attach->pid, name, status, sizeof status);
    const char *numbers = process_field(status, "NSpid");
    size_t length = strcspn(numbers, "\n");
    while (length && numbers[length - 1] >= '0' && numbers[length - 1] <= '9') length--;
    return *numbers ? (int32_t)strtol(numbers + length, NULL, TEN) : tid;
}

// Keeps the offsets at which this thread has its number too.
static void keep_offsets(const struct attach *attach, const struct stopped_thread *thread,
                         bool may_be[THREAD_BYTES / sizeof(int32_t)]) {
    uint64_t pointer = registers_thread_pointer(&thread->registers), self = 0;
    int32_t tid = own_tid(attach, thread->tid), word;
    bool is_thread = pointer && remote_read(&attach->remote, pointer, &self, sizeof self);
    if (!is_thread || self != pointer) return;  // none of libc's
    for (size_t i = 0; i < THREAD_BYTES / sizeof word; i++)
        may_be[i] = may_be[i] &&
                    remote_read(&attach->remote, pointer + i * sizeof word, &word, sizeof word) &&
                    word == tid;
}

// libc's number of a thread, from its thread pointer.
static bool find_tid(const struct attach *attach, uint64_t *offset, struct error *error) {
    bool may_be[THREAD_BYTES / sizeof(int32_t)];
    memset(may_be, true, sizeof may_be);
    for (size_t i = 0; i < attach->threads.stopped.count; i++)
        keep_offsets(attach, &attach->threads.stopped.items[i], may_be);
    for (size_t i = 1; i < sizeof may_be; i++) {
        *offset = i * sizeof(int32_t);
        if (may_be[i]) return true;
    }
    return error_set(error, "where its libc has the number of a thread is not found");
}

// As the kernel told the process.
static void tell_auxiliary(const struct attach *attach, struct cairn_bare *bare) {
    memset(bare->auxiliary, 0, sizeof bare->auxiliary);
    process_read(attach->pid, "auxv", (char *)bare->auxiliary,
                 sizeof bare->auxiliary - sizeof *bare->auxiliary);
}

static bool put_library(struct attach *attach, struct caller *caller, struct error *error) {
    struct bare_library *library = &attach->program->library;
    int64_t there = -1;
    int here = -1;
    if (!load_make_file(attach, caller, STATIC_LIBRARY_FILE, true, &there, &here, error))
        return false;
    bool is_put = pwrite(here, library->image, library->bytes, 0) == (ssize_t)library->bytes ||
                  error_set(error, "the library cannot be copied into it");
    is_put = is_put && bare_library_map_file(library, caller, there, error);
    close(here);
    return caller_close(caller, there, is_put ? error : NULL) && is_put;
}

static bool take_library(struct attach *attach, struct error *error) {
    struct loaded_modules *modules = &attach->modules;
    attach->place = static_library_take(modules, &attach->remote, attach->program->library.base);
    if (!attach->place)
        return error_set(error, "the symbols of the library that was loaded cannot be read");
    attach->library = (int)modules->items.count - 1;
    return true;
}

// Everything that is made; static_attach_unload takes it back.
static bool load(struct attach *attach, struct caller *caller, struct error *error) {
    static const uint64_t none[REGISTERS_ARGUMENTS];
    struct static_program *program = attach->program;
    const struct bare_locals locals = {CAIRN_BARE_LOCALS_FOUND, 0};
    return bare_library_reserve(&program->library, caller, error) &&
           static_program_make(program, caller, &locals, error) &&
           put_library(attach, caller, error) &&
           load_call(caller, bare_library_address(&program->library, CAIRN_BARE_BEGIN), none,
                     error) &&
           take_library(attach, error);
}

// The call is the first for which memory is mapped.
bool static_attach_load(struct attach *attach, struct caller *caller, struct error *error) {
    struct static_program *program = attach->program;
    uint64_t locked_kib = load_locked_kib(attach);
    program->attachment->is_by_tool = 1;
    tell_auxiliary(attach, program->bare);
    return find_tid(attach, &program->bare->tid_offset, error) && load(attach, caller, error) &&
           load_check_locked(attach, locked_kib, error);
}

// ---- leaving ------------------------------------------------------------------------------------

static void unmap(struct caller *caller, uint64_t start, uint64_t bytes) {
    const uint64_t page = process_page_bytes();
    if (start) caller_unmap(caller, start, (bytes + page - 1) & ~(page - 1));
}

// A library that has not begun is known by what was mapped for it.
static void unmap_half(struct attach *attach, struct caller *caller) {
    struct static_program *program = attach->program;
    unmap(caller, program->headers_at, program->headers.bytes);
    unmap(caller, program->library.base, program->library.bytes);
}

static void unmap_whole(struct attach *attach, struct caller *caller) {
    struct loaded_module *library = session_library(attach);
    struct cairn_bare bare;
    uint64_t at = module_symbol(library, &attach->remote, "cairn_bare");
    bool is_read = at && remote_read(&attach->remote, at, &bare, sizeof bare);
    for (size_t i = 0; is_read && i < CAIRN_BARE_MAPPINGS; i++)
        unmap(caller, bare.mappings[i][0], bare.mappings[i][1]);
    unmap(caller, library->start, library->end - library->start);
}

void static_attach_unload(struct attach *attach, struct caller *caller) {
    patch_drop(&attach->patch, caller, NULL);
    if (session_library(attach))
        unmap_whole(attach, caller);
    else
        unmap_half(attach, caller);
    attach->program->headers_at = attach->program->library.base = 0;
    modules_free(&attach->modules);
    attach->library = SESSION_NO_LIBRARY;
}
