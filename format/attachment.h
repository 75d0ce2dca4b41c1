// SPDX-License-Identifier: Apache-2.0
// What the tool and the library tell each other about a library that the tool loaded into a running
// process (`cairn attach`). It lies in the library's writable data, under the exported name
// cairn_attachment, and the tool reads and writes it from outside while the process is stopped.
//
// The environment of a running process says nothing about how to record it, so that the settings
// are here, or where it says. The tool marks the library before it is loaded, in the copy of the
// file that the process loads: its constructor then opens no recording.
//
// `cairn run` uses it for one thing only: an allocator that is linked into the executable. The
// process says in its first message where it is, and before the answer the tool leads the
// allocator's functions to the hooks of their kinds (docs/howto/attach.md).
#ifndef FORMAT_ATTACHMENT_H
#define FORMAT_ATTACHMENT_H

#include <stdint.h>

#include "format/heap_functions.h"
#include "format/wrap.h"

#define CAIRN_ATTACHMENT_MAGIC 0x31746174746e6961u
// The settings, which the tool writes before start: NAME=VALUE, each ends in NUL; an empty one
// ends.
// @FUNCTION=ADDRESS (hexadecimal) are the real functions: where the executable takes a function's
// address, dlsym finds its way of calling it.
#define CAIRN_ATTACHMENT_SETTINGS 14336u
#define CAIRN_ATTACHMENT_TLS_MAX 64u

// What CPython exports in free-threaded builds alone: their objects come from an allocator in the
// interpreter.
#define CAIRN_PYTHON_FREE_THREADED "_Py_MergeZeroLocalRefcount"

enum cairn_attachment_result {
    CAIRN_ATTACHMENT_DONE = 0,
    CAIRN_ATTACHMENT_NO_SPACE = 1,    // no address space for cairn's tables
    CAIRN_ATTACHMENT_NOT_OPENED = 2,  // the recording could not be mapped, or no memory
    CAIRN_ATTACHMENT_NOT_LOADED = 3,  // the library was not loaded in the way that it expects
    CAIRN_ATTACHMENT_IS_RUNNING = 4,  // it is recording already
    CAIRN_ATTACHMENT_IS_OFF = 5,      // frees would not be seen: recording is switched off
};

// The blocks that there were before, for `count`: the tool finds them in the allocator's own data
// and writes them into memory that the process has for the call. Kinds are what blocks begin with;
// each has a cell of its own, whose stack is the names of the group and of the kind.
#define CAIRN_CENSUS_KIND_BITS 16u
#define CAIRN_CENSUS_KINDS_MAX 4096u
struct cairn_census_block {
    uint64_t address;
    uint64_t room_and_kind;  // usable bytes << CAIRN_CENSUS_KIND_BITS | number of the kind
};
struct cairn_census {
    uint64_t blocks;  // address of struct cairn_census_block
    uint64_t block_count;
    uint64_t room_bytes;  // of all blocks together
    uint64_t names;       // address of texts that each end in NUL: of the group, then of each kind
    uint64_t kind_count;
};

// Kinds of an allocator's functions, by where they take their arguments. A hook is called with the
// program's arguments and, in the register of the sixth, the address of the function itself.
enum cairn_entry_kind {
    CAIRN_ENTRY_ALLOC = 0,     // (size, ...), returns the block
    CAIRN_ENTRY_ALIGNED = 1,   // (alignment, size, ...), returns the block
    CAIRN_ENTRY_CALLOC = 2,    // (count, size, ...), returns the block
    CAIRN_ENTRY_REALLOC = 3,   // (block, size, ...), returns the block
    CAIRN_ENTRY_REARRAY = 4,   // (block, count, size, ...), returns the block
    CAIRN_ENTRY_MEMALIGN = 5,  // (where the block is put, alignment, size), returns 0 or an error
    CAIRN_ENTRY_RESIZE = 6,    // (block, size, extra, ...), in place, returns the block's size
    CAIRN_ENTRY_FREE = 7,      // (block, ...)
    CAIRN_ENTRY_NEW = 8,       // (size, alignment, ...), returns the block
    // Of a heap that the caller names by its first argument (Mozilla's moz_arena_...):
    CAIRN_ENTRY_ARENA_ALLOC = 9,     // (arena, size), returns the block
    CAIRN_ENTRY_ARENA_ALIGNED = 10,  // (arena, alignment, size), returns the block
    CAIRN_ENTRY_ARENA_CALLOC = 11,   // (arena, count, size), returns the block
    CAIRN_ENTRY_ARENA_REALLOC = 12,  // (arena, block, size), returns the block
    CAIRN_ENTRY_ARENA_FREE = 13,     // (arena, block)
    CAIRN_ENTRY_INSIDE = 14,         // calls the others, and is no event
    CAIRN_ENTRY_KINDS = 15,
};

// Functions of the libc of another link-map namespace (dlmopen). In the namespace's modules, slots
// for NAME lead to a way of the library's own for (namespace, NAME), which calls the hook called so
// with the real function as its sixth argument. LINKER: only where the library looks for such
// modules itself, without the tool.
#define CAIRN_NAMESPACES_MAX 15u  // beside the program's own: glibc has no more
#define CAIRN_NAMESPACE_WAY_BYTES 16u
#define CAIRN_NAMESPACE_HEAP(NAME)                                                                 \
    CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_WAY, NAME)                                                      \
    CAIRN_HEAP_FUNCTIONS_LATE(CAIRN_ROW_WAY, NAME)                                                 \
    NAME(dlclose, dlclose) NAME(prctl, prctl)
#define CAIRN_NAMESPACE_LINKER(NAME)                                                               \
    NAME(dlopen, dlopen) NAME(dlmopen, dlopen) NAME(dlsym, dlsym) NAME(dlvsym, dlsym)
#define CAIRN_NAMESPACE_ONE(name, hook) +1u
#define CAIRN_NAMESPACE_HEAP_COUNT (0u CAIRN_NAMESPACE_HEAP(CAIRN_NAMESPACE_ONE))
#define CAIRN_NAMESPACE_COUNT                                                                      \
    (CAIRN_NAMESPACE_HEAP_COUNT CAIRN_NAMESPACE_LINKER(CAIRN_NAMESPACE_ONE))

// With `cairn run --exec` nobody is beside the process. The tool reads the executable before it
// becomes the program, and writes what it would do into the environment: CAIRN_ENTRIES, the
// hexadecimal digits of these structures. Addresses are those of an executable that lies at 0.
#define CAIRN_LEAD_MAGIC UINT64_C(0x3164616572697263)
enum {
#if defined(__aarch64__)
    CAIRN_LEAD_JUMP_BYTES = 4,
#else
    CAIRN_LEAD_JUMP_BYTES = 5,
#endif
    CAIRN_LEAD_CODE_BYTES = 96,
    CAIRN_LEAD_HOOK_AT = 16,  // in the code: where the hook's address belongs
};
struct cairn_lead_part {
    uint64_t address;  // of the function
    uint8_t before[CAIRN_LEAD_JUMP_BYTES], jump[CAIRN_LEAD_JUMP_BYTES];
    uint16_t kind;  // enum cairn_entry_kind
    uint32_t unused;
    uint8_t code[CAIRN_LEAD_CODE_BYTES];  // the way to the hook, and what was moved
};
struct cairn_lead {
    uint64_t magic;  // CAIRN_LEAD_MAGIC
    uint64_t start;  // where the executable's code begins
    uint64_t place;  // of the mapping: the code of all parts
    uint64_t count;  // of struct cairn_lead_part, which follow
};

struct cairn_attachment {
    uint64_t magic;           // CAIRN_ATTACHMENT_MAGIC
    uint32_t struct_bytes;    // of this, as the library knows it
    uint32_t format_version;  // CAIRN_VERSION: of the recordings that it writes
    uint32_t is_by_tool;      // written into the file's copy by the tool
    uint32_t is_running;      // between start and stop

    uint64_t entry_hooks[CAIRN_ENTRY_KINDS];
    uint64_t entries_at;  // mapping over which an allocator in the executable is led to them, set
                          // by the tool; 0: there is none
    // Ways for [CAIRN_NAMESPACES_MAX][CAIRN_NAMESPACE_COUNT] functions, and the real ones as many
    // words, which the tool fills in. 0: the library has no ways.
    uint64_t namespace_ways, namespace_real;
    // Of allocators by name (format/wrap.h), once the library has such rows: a way to the hook of
    // each function, CAIRN_WRAP_WAY_BYTES apart, and as many structures of `wrap_bytes` that begin
    // with the address of the function without the hook. Where the executable has the function, the
    // tool leads it to its way and writes there what it moved. 0: there are none.
    uint64_t wrap_ways, wrap_functions, wrap_bytes;
    // The way of each function in the order of the rows, set by the tool before start, and the
    // address of its struct cairn_scope, set by start; where the tool attaches.
    uint8_t wrap_way[CAIRN_WRAP_FUNCTIONS];
    uint64_t wrap_scopes[CAIRN_WRAP_FUNCTIONS];
    uint64_t patch_at;  // mapping of all jumps that the tool wrote; 0: there is none

    // Set by the library's constructor if the tool has marked it, else 0.
    uint64_t settings;     // address of CAIRN_ATTACHMENT_SETTINGS bytes
    uint64_t start, stop;  // int (void), enum cairn_attachment_result; called by the tool
    uint64_t count;  // int (struct cairn_census *); between the two, before anything is recorded
    uint64_t code_start, code_end;
    int64_t tls_offset;   // its thread-locals, from each thread's thread pointer
    uint64_t tls_module;  // not 0: they are where this entry of each thread's table leads (musl)
    uint64_t tls_bytes;
    uint8_t tls_image[CAIRN_ATTACHMENT_TLS_MAX];  // what they hold in a new thread

    // Set by start: address space that the library takes its memory from.
    uint64_t space_start, space_end;

    // Set by the tool before start.
    uint32_t tool_pid;     // of the tool that attached last
    uint32_t is_confined;  // a seccomp filter is in force: no system calls but those for memory
};

#endif
