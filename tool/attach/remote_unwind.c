// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/remote_unwind.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/attach/blind_stack.h"
#include "tool/attach/entries.h"
#include "tool/attach/memory_image.h"
#include "tool/base/unnamed_file.h"
#include "tool/proc/mapped_file.h"

enum { FRAMES_MAX = 512, PIECE_BYTES = 4096, STACK_PIECES = 16, NAMES = 1024 };
enum { REFRESH_TRIES = 5 };

// The name found for an address: finding it takes longer than all else of a frame.
struct known_name {
    uint64_t pc;  // 0: none
    const char *name;
};

// Pages of the stack that is being unwound, which is read word by word.
struct stack_piece {
    uint64_t start;
    bool is_read;
    uint8_t bytes[PIECE_BYTES];
};

struct remote_unwinder {
    Dwfl *dwfl;
    Dwfl_Callbacks callbacks;
    const struct remote *remote;
    uint64_t allocator;
    const char *own_path;
    const struct entries *entries;        // NULL: the executable has no allocator
    struct blind_stack blind;             // that thread's, in such a process
    uint64_t blind_start, blind_end;      // of a libc without unwind information; 0: it has it
    const struct stopped_thread *thread;  // that is being unwound
    struct safe_point_frame frames[FRAMES_MAX];
    size_t frame_count;
    struct stack_piece pieces[STACK_PIECES];  // by the low bits of their number
    struct known_name names[NAMES];           // by the low bits of the address
    bool has_names;                           // of the frames: they were asked for
    bool is_attached;
};

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **found) {
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)found;
    return -1;
}

// The file of a mapping whose name was removed, is another file's by now, or lies below a file
// system that was mounted over it; if nothing leads to it, what the process has of it in memory.
static int find_removed(const struct remote_unwinder *unwinder, const char *name, Dwarf_Addr base,
                        char **path) {
    int file = mapped_file_open(unwinder->remote->pid, base);
    if (file < 0) file = memory_image_open(unwinder->remote, base);
    if (file >= 0) *path = strdup(name);
    return file;
}

// The file of a mapping as the process sees it, from wherever its root directory is. cairn's own
// library was loaded from memory.
static int find_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                     char **path, Elf **elf) {
    const struct remote_unwinder *unwinder = *data;
    char there[PATH_MAX];
    bool is_own = unnamed_file_is_called(name, "libcairn");
    if (!unwinder || name[0] != '/')
        return dwfl_linux_proc_find_elf(module, data, name, base, path, elf);
    if (strstr(name, " (deleted)") && !is_own) return find_removed(unwinder, name, base, path);
    if (is_own)
        snprintf(there, sizeof there, "%s", unwinder->own_path);
    else
        snprintf(there, sizeof there, "/proc/%d/root%s", (int)unwinder->remote->pid, name);
    int file = open(there, O_RDONLY | O_CLOEXEC);
    if (file < 0 && !is_own) return find_removed(unwinder, name, base, path);
    if (file >= 0) *path = strdup(there);
    return file;
}

static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread_argument) {
    struct remote_unwinder *unwinder = argument;
    (void)dwfl;
    if (*thread_argument) return 0;
    *thread_argument = unwinder;
    return unwinder->thread->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread_argument) {
    struct remote_unwinder *unwinder = argument;
    (void)dwfl;
    *thread_argument = unwinder;
    return unwinder->thread && unwinder->thread->tid == tid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *argument) {
    struct remote_unwinder *unwinder = argument;
    (void)dwfl;
    uint64_t inside = address % PIECE_BYTES, start = address - inside;
    struct stack_piece *piece = &unwinder->pieces[start / PIECE_BYTES % STACK_PIECES];
    if (inside > PIECE_BYTES - sizeof *word)
        return remote_read(unwinder->remote, address, word, sizeof *word);
    if (!piece->is_read || piece->start != start) {
        piece->start = start;
        piece->is_read = remote_read(unwinder->remote, start, piece->bytes, PIECE_BYTES);
    }
    if (piece->is_read) memcpy(word, piece->bytes + inside, sizeof *word);
    return piece->is_read;
}

static bool set_registers(Dwfl_Thread *thread, void *argument) {
    const struct remote_unwinder *unwinder = argument;
    Dwarf_Word words[REGISTERS_DWARF_COUNT];
    registers_dwarf(&unwinder->thread->registers, words);
    dwfl_thread_state_register_pc(thread, registers_pc(&unwinder->thread->registers));
    return dwfl_thread_state_registers(thread, 0, REGISTERS_DWARF_COUNT, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_word,
    .set_initial_registers = set_registers,
};

// Opens every module now, while the process still runs. find_file gets the unwinder with the
// module.
static int warm_up(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                   void *argument) {
    (void)name, (void)base;
    GElf_Addr bias;
    *data = argument;
    if (dwfl_module_getelf(module, &bias)) {
        dwfl_module_eh_cfi(module, &bias);
        dwfl_module_getsymtab(module);
    }
    return DWARF_CB_OK;
}

static bool refresh(struct remote_unwinder *unwinder, struct error *error) {
    if (unwinder->dwfl) dwfl_end(unwinder->dwfl);
    memset(unwinder->names, 0, sizeof unwinder->names);
    unwinder->callbacks =
        (Dwfl_Callbacks){.find_elf = find_file, .find_debuginfo = find_no_debuginfo};
    unwinder->dwfl = dwfl_begin(&unwinder->callbacks);
    unwinder->is_attached = false;
    if (!unwinder->dwfl || dwfl_linux_proc_report(unwinder->dwfl, unwinder->remote->pid) != 0 ||
        dwfl_report_end(unwinder->dwfl, NULL, NULL) != 0)
        return error_set(error, "its mappings cannot be read: %s", dwfl_errmsg(-1));
    dwfl_getmodules(unwinder->dwfl, warm_up, unwinder, 0);
    unwinder->is_attached =
        dwfl_attach_state(unwinder->dwfl, NULL, unwinder->remote->pid, &thread_callbacks, unwinder);
    return unwinder->is_attached ||
           error_set(error, "its stacks cannot be followed: %s", dwfl_errmsg(-1));
}

// The list of mappings is read while the process changes it: it may lack some.
bool remote_unwind_refresh(struct remote_unwinder *unwinder, struct error *error) {
    for (int tries = REFRESH_TRIES; tries > 1; tries--)
        if (refresh(unwinder, error)) return true;
    return refresh(unwinder, error);
}

struct remote_unwinder *remote_unwind_open(const struct remote *remote, uint64_t allocator,
                                           const char *own_path, struct error *error) {
    struct remote_unwinder *unwinder = calloc(1, sizeof *unwinder);
    if (!unwinder) {
        error_set(error, "out of memory");
        return NULL;
    }
    unwinder->remote = remote;
    unwinder->allocator = allocator;
    unwinder->own_path = own_path;
    if (remote_unwind_refresh(unwinder, error)) return unwinder;
    remote_unwind_close(unwinder);
    return NULL;
}

void remote_unwind_close(struct remote_unwinder *unwinder) {
    if (!unwinder) return;
    if (unwinder->dwfl) dwfl_end(unwinder->dwfl);
    free(unwinder);
}

void remote_unwind_set_entries(struct remote_unwinder *unwinder, const struct entries *entries) {
    unwinder->entries = entries;
}

void remote_unwind_set_blind(struct remote_unwinder *unwinder, uint64_t start, uint64_t end) {
    unwinder->blind_start = start;
    unwinder->blind_end = end;
}

static bool starts_with(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

static enum frame_kind kind_of(const struct remote_unwinder *unwinder, Dwfl_Module *module) {
    if (!module) return FRAME_PROGRAM;
    Dwarf_Addr start, end;
    const char *path = dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL);
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
    if (!name) return FRAME_PROGRAM;
    if (starts_with(name, "ld-") || starts_with(name, "ld.so") || starts_with(name, "libdl"))
        return FRAME_LINKER;
    bool is_libc = starts_with(name, "libc.so") || starts_with(name, "libc-2") ||
                   starts_with(name, "libpthread");
    if (is_libc) return FRAME_LIBC;
    return unwinder->allocator >= start && unwinder->allocator < end ? FRAME_ALLOCATOR
                                                                     : FRAME_PROGRAM;
}

static const char *find_name(Dwfl_Module *module, uint64_t pc) {
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name = dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
    return name && offset < symbol.st_size ? name : NULL;
}

static const char *name_of(struct remote_unwinder *unwinder, Dwfl_Module *module, uint64_t pc) {
    struct known_name *known = &unwinder->names[pc % NAMES];
    if (!module) return NULL;
    if (known->pc != pc) *known = (struct known_name){pc, find_name(module, pc)};
    return known->name;
}

static int visit_frame(Dwfl_Frame *state, void *argument) {
    struct remote_unwinder *unwinder = argument;
    Dwarf_Addr pc;
    bool is_activation;
    if (unwinder->frame_count == FRAMES_MAX || !dwfl_frame_pc(state, &pc, &is_activation))
        return DWARF_CB_ABORT;
    if (!is_activation) pc--;
    Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, pc);
    enum frame_kind kind = kind_of(unwinder, module);
    // only those of libc and of an allocator are judged by name: a large program's symbols take
    // long
    bool is_wanted = unwinder->has_names && (kind == FRAME_LIBC || unwinder->entries);
    const char *name = is_wanted ? name_of(unwinder, module, pc) : NULL;
    bool is_entry =
        kind == FRAME_PROGRAM && unwinder->entries && entries_may_hold(unwinder->entries, pc, name);
    if (is_entry) kind = FRAME_ALLOCATOR;
    unwinder->frames[unwinder->frame_count++] =
        (struct safe_point_frame){.pc = pc, .kind = kind, .name = name};
    return DWARF_CB_OK;
}

static bool read_blind(void *context, uint64_t address, uint64_t *word) {
    return read_word(NULL, address, word, context);
}

// What belongs to no module may be code that the program made: it has no frames to be seen. The
// kernel's own code is called by libc and by cairn.
static enum blind_place place_blind(void *context, uint64_t address) {
    const struct remote_unwinder *unwinder = context;
    if (address >= unwinder->blind_start && address < unwinder->blind_end) return BLIND_LIBC;
    Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, address);
    const char *name =
        module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    if (!name) return BLIND_NO_CODE;
    if (name[0] == '[') return BLIND_LIBC;
    return unnamed_file_is_called(name, "libcairn") ? BLIND_OWN : BLIND_PROGRAM;
}

static const char *name_blind(void *context, uint64_t pc) {
    struct remote_unwinder *unwinder = context;
    return name_of(unwinder, dwfl_addrmodule(unwinder->dwfl, pc), pc);
}

// The same where libc is blind. Frames of a waiting thread that have no name are left out there.
static bool follow_blind(struct remote_unwinder *unwinder, const struct stopped_thread *thread,
                         bool is_for_calls) {
    const struct blind_view view = {read_blind, place_blind, name_blind, unwinder};
    struct blind_stack *stack = &unwinder->blind;
    blind_stack_read(stack, &view, thread, is_for_calls);
    for (size_t i = 0; i < stack->count; i++) {
        const struct blind_frame *frame = &stack->frames[i];
        bool is_libc = frame->place == BLIND_LIBC;
        const char *name = is_libc && is_for_calls ? name_blind(unwinder, frame->pc) : NULL;
        unwinder->frames[unwinder->frame_count++] = (struct safe_point_frame){
            .pc = frame->pc, .kind = is_libc ? FRAME_LIBC : FRAME_PROGRAM, .name = name};
    }
    return stack->is_known;
}

// Whether the stack leads to where Go leaves a goroutine's stack for the thread's: what is behind
// that is on the other stack, and Go's own code. It is cut off there.
static bool ends_in_go(struct remote_unwinder *unwinder) {
    static const char *const switches[] = {"runtime.mcall", "runtime.systemstack",
                                           "runtime.asmcgocall"};
    for (size_t i = 0; i < unwinder->frame_count; i++) {
        const struct safe_point_frame *frame = &unwinder->frames[i];
        if (frame->kind != FRAME_PROGRAM) continue;
        const char *name = name_of(unwinder, dwfl_addrmodule(unwinder->dwfl, frame->pc), frame->pc);
        for (size_t k = 0; name && k < sizeof switches / sizeof *switches; k++) {
            size_t length = strlen(switches[k]);
            if (strncmp(name, switches[k], length) != 0 || (name[length] && name[length] != '.'))
                continue;
            unwinder->frame_count = i + 1;
            return true;
        }
    }
    return false;
}

// Fills the frames; false: not up to the outermost.
static bool follow(struct remote_unwinder *unwinder, const struct stopped_thread *thread,
                   bool has_names) {
    unwinder->thread = thread;
    unwinder->has_names = has_names;
    unwinder->frame_count = 0;
    for (size_t i = 0; i < STACK_PIECES; i++) unwinder->pieces[i].is_read = false;
    if (unwinder->blind_end) return follow_blind(unwinder, thread, has_names);
    int result = dwfl_getthread_frames(unwinder->dwfl, thread->tid, visit_frame, unwinder);
    return unwinder->frame_count > 0 && (result == 0 || (has_names && ends_in_go(unwinder)));
}

void remote_unwind_rehearse(struct remote_unwinder *unwinder, const struct stopped_thread *thread) {
    follow(unwinder, thread, true);
}

bool remote_unwind_meets(struct remote_unwinder *unwinder, const struct stopped_thread *thread,
                         bool (*is_met)(const void *context, uint64_t pc), const void *context) {
    follow(unwinder, thread, false);
    if (is_met(context, registers_pc(&thread->registers))) return true;
    if (unwinder->blind_end && unwinder->blind.is_full) return true;  // it may
    for (size_t i = 0; i < unwinder->frame_count; i++)
        if (is_met(context, unwinder->frames[i].pc)) return true;
    return false;
}

struct safe_point remote_unwind_thread(struct remote_unwinder *unwinder,
                                       const struct stopped_thread *thread, uint64_t code_start,
                                       uint64_t code_end) {
    bool is_complete = follow(unwinder, thread, true);
    struct safe_point_stack stack = {
        .frames = unwinder->frames,
        .count = unwinder->frame_count,
        .is_complete = is_complete,
        .is_in_system_call = registers_are_in_system_call(&thread->registers),
        .code_start = code_start,
        .code_end = code_end,
    };
    return safe_point_judge(&stack);
}
