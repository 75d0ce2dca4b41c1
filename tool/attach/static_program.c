// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_program.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tool/proc/process.h"

// By these a program changes the rules that it runs under (runtime/preload/process.c and locked.c),
// and starts others (runtime/bare/exec.c).
static const struct {
    const char *name, *hook;  // NULL: of the same name
} noted[STATIC_NOTED] = {{"prctl", NULL},
                         {"syscall", NULL},
                         {"setrlimit", NULL},
                         {"prlimit", NULL},
                         {"fork", NULL},
                         {"_Exit", NULL},
                         {"mlockall", NULL},
                         {"munlockall", NULL},
                         {"execve", "cairn_bare_execve"},
                         {"execveat", NULL},
                         {"fexecve", NULL},
                         {"posix_spawn", "cairn_bare_spawn"},
                         {"posix_spawnp", "cairn_bare_spawnp"}};
enum { QUICK = 3 };
_Static_assert(STATIC_NOTED + QUICK + 1 < (int)CAIRN_BARE_FUNCTIONS, "all have a place");

// A function of glibc's allocator that no other has.
#define GLIBC_ALONE "__malloc_arena_thread_freeres"

// Finds an instruction that makes system calls, in the kernel's own code; 0: none.
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

struct call_site static_program_site(const struct static_program *program,
                                     const struct remote *remote) {
    struct call_site site = {.system_call_at = find_system_call(remote)};
    if (!stub_find(&site.stub_at, remote, program->entries->low))
        stub_find_last(&site.stub_at, remote);
    return site;
}

// ---- what is read beforehand --------------------------------------------------------------------

static bool read_library(struct static_program *program, const char *path, struct error *error) {
    struct bare_library *library = &program->library;
    if (!bare_library_open(library, path, error)) return false;
    program->attachment =
        bare_library_data(library, "cairn_attachment", sizeof *program->attachment);
    program->bare = bare_library_data(library, "cairn_bare", sizeof *program->bare);
    if (program->attachment && program->bare &&
        program->attachment->magic == CAIRN_ATTACHMENT_MAGIC)
        return true;
    return error_set(error, "libcairn-bare.so is of another version of cairn");
}

bool static_program_open(struct static_program *program, const struct remote *remote,
                         const char *library, struct error *error) {
    uint64_t bias;
    if (!read_library(program, library, error)) return false;
    if (!executable_open(&program->image, remote) || !executable_bias(&program->image, &bias))
        return error_set(error, "its file cannot be read");
    return static_headers_read(&program->headers, program->image.elf, bias, &program->library,
                               error);
}

void static_program_close(struct static_program *program) {
    static_headers_free(&program->headers);
    bare_library_close(&program->library);
    executable_close(&program->image);
}

// glibc's malloc, free and calloc call none of the others: they lead to the hooks of a dynamic
// program, which are the fastest. A thread's first event by one that does is to be known as one.
static void lead_quickly(struct static_program *program) {
    static const char *const names[QUICK] = {"malloc", "free", "calloc"};
    struct entries *entries = program->entries;
    program->is_glibc = entries_named(entries, GLIBC_ALONE) != NULL;
    for (size_t i = 0; program->is_glibc && i < entries->items.count; i++)
        for (size_t name = 0; name < QUICK; name++)
            if (!strcmp(entries->items.items[i].name, names[name]))
                entries->items.items[i].way = bare_library_address(&program->library, names[name]);
}

bool static_program_find(struct static_program *program, const struct remote *remote,
                         struct error *error) {
    struct entries *entries = program->entries;
    if (!entries_find(entries, remote, error)) return false;
    if (!entries->items.count)
        return error_set(error, "it has no malloc that its symbols would name (stripped?)");
    program->ways_base = program->library.base;
    lead_quickly(program);
    for (unsigned i = 0; i < STATIC_NOTED; i++) {
        struct entry_wish *wish = &program->wishes[i];
        const char *hook = noted[i].hook ? noted[i].hook : noted[i].name;
        *wish = (struct entry_wish){.way = bare_library_address(&program->library, hook),
                                    .may_lack = true};
        snprintf(wish->name, sizeof wish->name, "%s", noted[i].name);
    }
    return entries_add_wishes(entries, remote, program->wishes, STATIC_NOTED, error);
}

// ---- what is made for it ------------------------------------------------------------------------

// The ways that were found before it was known where the library would lie.
static void move_ways(struct static_program *program) {
    struct entries *entries = program->entries;
    for (size_t i = 0; i < entries->items.count; i++)
        if (entries->items.items[i].way)
            entries->items.items[i].way += program->library.base - program->ways_base;
    program->ways_base = program->library.base;
}

static void tell_functions(struct static_program *program) {
    const struct entries *entries = program->entries;
    size_t count = 0;
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        if (!entry->way) continue;
        struct cairn_bare_function *function = &program->bare->functions[count++];
        snprintf(function->name, sizeof function->name, "%s", entry->name);
        function->moved = patch_moved_at(program->patch, entries, i);
    }
    struct cairn_bare_function *glibc = &program->bare->functions[count];
    if (program->is_glibc) {
        snprintf(glibc->name, sizeof glibc->name, CAIRN_BARE_GLIBC);
        glibc->moved = 1;
    } else {
        program->attachment->entries_at = program->patch->start;
    }
}

// The hooks of kinds, which become addresses with the library's relocation.
static bool make_ways(struct static_program *program, struct caller *caller, struct error *error) {
    move_ways(program);
    return patch_prepare(program->patch, program->entries, program->attachment->entry_hooks, caller,
                         error);
}

bool static_program_begin(const struct static_program *program, const struct remote *remote) {
    const uint32_t is_by_tool = 0;
    uint64_t at = bare_library_address(&program->library, "cairn_attachment");
    return remote_write(remote, at + offsetof(struct cairn_attachment, is_by_tool), &is_by_tool,
                        sizeof is_by_tool);
}

bool static_program_make(struct static_program *program, struct caller *caller,
                         const struct bare_locals *locals, struct error *error) {
    struct static_headers *headers = &program->headers;
    if (!bare_library_relocate(&program->library, locals, error) ||
        !patch_map_near(caller, program->entries, headers->bytes, PROT_READ, &program->headers_at,
                        error) ||
        !make_ways(program, caller, error))
        return false;
    uint8_t *bytes =
        static_headers_make(headers, program->headers_at, &program->library, program->bare);
    bool is_told =
        bytes && remote_write(caller->remote, program->headers_at, bytes, headers->bytes);
    free(bytes);
    tell_functions(program);
    program->bare->mappings[0][0] = program->headers_at;
    program->bare->mappings[0][1] = headers->bytes;
    return is_told || error_set(error, "its memory cannot be written");
}
