// SPDX-License-Identifier: Apache-2.0
// What is known of a process that is attached to: its modules and functions, the library in it, its
// stopped threads. attach.c puts the steps together; they share this.
#ifndef TOOL_ATTACH_SESSION_H
#define TOOL_ATTACH_SESSION_H

#include <limits.h>

#include "format/attachment.h"
#include "format/wrap.h"
#include "tool/attach/call.h"
#include "tool/attach/got_patch.h"
#include "tool/attach/modules.h"
#include "tool/attach/patch.h"
#include "tool/attach/remote_unwind.h"
#include "tool/proc/threads.h"

// The recording's memory, a memfd that was made in the process: sizes, maps and keeps it. It is the
// callee's to close.
typedef bool attach_take_memory(void *context, int file, struct error *error);

// Whether pre-existing blocks are counted: the process is stopped meanwhile.
enum existing_wish {
    EXISTING_IF_SMALL,  // as existing_blocks.c bounds it
    EXISTING_ALWAYS,
    EXISTING_NEVER,
};

struct attach_request {
    const char *settings;  // NAME=VALUE, each ends in NUL; an empty one ends them
    size_t settings_bytes;
    attach_take_memory *take_memory;
    void *context;
    const char *wrap_rows;  // allocators by name (format/wrap.h); NULL: none
    enum existing_wish existing;
    const struct symbol_options *symbols;  // where names of types come from; outlives the attach
};

typedef ARRAY(pid_t) thread_list;

enum { SESSION_NO_LIBRARY = -1 };  // `library` below

struct existing_blocks;  // existing_blocks.h
struct static_program;   // static_program.h

// Allocators by name (wrapped.h).
struct wrapped {
    struct entry_wish wishes[CAIRN_WRAP_FUNCTIONS];  // in the order of the rows
    size_t count;                                    // 0: nothing is wanted
    uint8_t heaps[CAIRN_WRAP_FUNCTIONS];             // number of the row
    uint8_t ways[CAIRN_WRAP_FUNCTIONS];
    uint64_t actual[CAIRN_WRAP_FUNCTIONS];  // what the hook calls; 0: not found
    bool is_led[CAIRN_WRAP_HEAPS];
    bool is_inherited;  // of a fork: `told` is what its parent's hooks were told to call
    uint64_t told[CAIRN_WRAP_FUNCTIONS];
};

struct attach {
    pid_t pid;
    struct sched_boost boost;  // of the tool, while it attaches or leaves
    const char *library_path;  // of libcairn.so, or what is for the process' libc
    char other_library[PATH_MAX];
    uint8_t *library_bytes;  // its content, marked as loaded by the tool
    size_t library_count;
    bool has_filter;
    struct remote remote;
    struct loaded_modules modules;
    struct got_patch slots;
    struct entries entries;  // of an allocator that is linked into the executable
    struct patch patch;
    struct wrapped wrapped;
    struct static_program *program;  // NULL: it has a dynamic linker
    struct remote_unwinder *unwinder;
    struct threads threads;
    struct call_site site;  // where its threads make calls
    uint64_t dlopen_at, dlerror_at, errno_at, allocator;
    bool is_old_dlopen;  // __libc_dlopen_mode, before glibc 2.34
    int library;         // number of its module; -1: it is not loaded
    uint64_t place;      // of its struct cairn_attachment
    struct cairn_attachment known;
    char settings[CAIRN_ATTACHMENT_SETTINGS];  // the library's
    uint64_t pause_ns, longest_pause_ns;  // how long the process was stopped: in all, at a time
    bool is_stopped;
    struct existing_blocks *existing;  // NULL: they are not counted
    uint64_t counted_blocks;           // that were entered
    char uncounted_why[160];           // "": they were, or were not to be
    pid_t caller_tid;                  // of the thread that makes calls
    bool have_others_run;              // beside the last calls, since one was slow
    thread_list makers;                // inside pthread_create as the library was loaded
    thread_list inside;                // the library's code at the last stop, of those that leave
    // May be set after attach_open. How long a safe moment is waited for; 0: as usual. And what is
    // called meanwhile, while the process runs; NULL: nothing.
    uint64_t patience_ns;
    void (*meanwhile)(void *context);
    void *context;
};

// Stops all threads; lets them go on, which does nothing if they are not stopped.
bool session_stop(struct attach *attach, struct error *error);
void session_go(struct attach *attach);

// A stop is over, of all threads or of one: adds it to pause_ns and longest_pause_ns.
void session_count_pause(struct attach *attach);

// Takes another library, beside the one that was given: `name` is its file, `why` a clause for
// where it is missing.
bool session_choose_library(struct attach *attach, const char *name, const char *why,
                            struct error *error);

// Reads the list of modules, and which of them is the library.
bool session_read_modules(struct attach *attach, struct error *error);

// Finds the functions of the program that calls need. False if its libc is not supported.
bool session_find_functions(struct attach *attach, struct error *error);

// The module that the program's own libc is; NULL: it has none that is supported.
struct loaded_module *session_libc(const struct attach *attach);

// Finds glibc's code and data, in the executable if that is static. False: it has none.
bool session_libc_range(const struct attach *attach, uint64_t *start, uint64_t *end);

// The library's module; NULL: it is not loaded.
struct loaded_module *session_library(struct attach *attach);

// Reads the library's struct cairn_attachment, and its settings.
bool session_read_attachment(struct attach *attach, struct error *error);

// The pid of the process that the library's recording is of, as that process has it for itself: of
// this one or the one it is a fork of; 0: none. False if that cannot be read.
bool session_recorded_pid(struct attach *attach, uint32_t *pid);

// False, with a clause, if the library in the process belongs to somebody else.
bool session_check_library(struct attach *attach, struct error *error);

#endif
