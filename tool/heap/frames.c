// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/frames.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 256, REGISTERS_MAX = 32 };

struct finding {
    const struct core_image *core;
    const struct typed_module *modules;
    size_t module_count;
    // one of them is asked for
    bool (*see_frame)(void *context, const struct thread_frame *frame);
    bool (*see)(void *context, const struct frame_variable *variable);
    void *context;
    Dwfl *dwfl;
    size_t next_thread;
    size_t frame_count;  // of the thread
    bool is_ended;
    // of the frame that is looked at
    const struct core_thread *thread;
    Dwfl_Frame *frame;
    uint64_t cfa;
    bool has_cfa;
};

// --- what libdwfl asks

// Where DWARF's numbers of registers are in the kernel's order (System V ABI of AMD64, figure 3.36;
// <sys/user.h>). On aarch64 both are the same.
static const uint8_t amd64_registers[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
enum { AMD64_COUNT = sizeof amd64_registers, AMD64_PC = 16, AMD64_STACK = 7 };
enum { AARCH64_COUNT = 32, AARCH64_PC = 32, AARCH64_STACK = 31 };

static bool set_registers(Dwfl_Thread *thread, void *argument) {
    const struct core_thread *from = argument;
    Dwarf_Word words[AARCH64_COUNT];
    unsigned count = 0;
    if (from->register_count > AARCH64_PC && from->register_count < REGISTERS_MAX + 3) {
        memcpy(words, from->registers, sizeof words);
        dwfl_thread_state_register_pc(thread, from->registers[AARCH64_PC]);
        count = AARCH64_COUNT;
    } else if (from->register_count > amd64_registers[AMD64_STACK]) {
        for (; count < AMD64_COUNT; count++) words[count] = from->registers[amd64_registers[count]];
        dwfl_thread_state_register_pc(thread, from->registers[AMD64_PC]);
    }
    return count && dwfl_thread_state_registers(thread, 0, count, words);
}

static pid_t give_thread(Dwfl *dwfl, void *argument, void **thread_argument) {
    struct finding *finding = argument;
    (void)dwfl;
    if (finding->next_thread >= finding->core->threads.count) return 0;
    const struct core_thread *thread = &finding->core->threads.items[finding->next_thread++];
    *thread_argument = (void *)(uintptr_t)thread;
    return (pid_t)thread->tid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *argument) {
    const struct finding *finding = argument;
    (void)dwfl;
    return core_read(finding->core, address, word, sizeof *word);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = give_thread,
    .memory_read = read_word,
    .set_initial_registers = set_registers,
};

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **found) {
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)found;
    return -1;
}

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = find_no_debuginfo};

static bool report_module(void *context, const struct elf_module *module) {
    struct finding *finding = context;
    void **data;
    if (!module->files.module.elf || !module->files.module_path) return true;
    Dwfl_Module *reported = dwfl_report_elf(finding->dwfl, module->path, module->files.module_path,
                                            -1, module->bias, true);
    if (!reported || !dwfl_module_info(reported, &data, NULL, NULL, NULL, NULL, NULL, NULL))
        return true;
    for (size_t i = 0; i < finding->module_count; i++)
        if (finding->modules[i].bias == module->bias)
            *data = (void *)(uintptr_t)&finding->modules[i];
    return true;
}

// --- expressions

static bool read_register(const struct finding *finding, unsigned number, uint64_t *value) {
#if _ELFUTILS_PREREQ(0, 188)
    Dwarf_Word word;
    if (dwfl_frame_reg(finding->frame, number, &word)) return false;
    *value = word;
    return true;
#else
    (void)finding, (void)number, (void)value;
    return false;
#endif
}

// A register plus a distance, or the frame's address; false: it is something else.
static bool find_base(const struct finding *finding, const Dwarf_Op *operation, uint64_t *value) {
    unsigned atom = operation->atom;
    if (atom == DW_OP_call_frame_cfa) {
        *value = finding->cfa;
        return finding->has_cfa;
    }
    uint64_t distance = operation->number;
    unsigned number = atom - DW_OP_breg0;
    if (atom == DW_OP_bregx) {
        number = (unsigned)operation->number;
        distance = operation->number2;
    } else if (atom < DW_OP_breg0 || atom > DW_OP_breg31) {
        return false;
    }
    if (!read_register(finding, number, value)) return false;
    *value += distance;
    return true;
}

static bool find_cfa(struct finding *finding, Dwfl_Module *module, uint64_t pc) {
    Dwarf_Addr bias;
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *operations;
    size_t count;
    Dwarf_CFI *table = dwfl_module_eh_cfi(module, &bias);
    if (!table || dwarf_cfi_addrframe(table, pc - bias, &frame)) return false;
    bool is_found = !dwarf_frame_cfa(frame, &operations, &count) && count == 1 &&
                    find_base(finding, operations, &finding->cfa);
    free(frame);
    return is_found;
}

// Where a variable is: an address, or the value itself.
static bool evaluate(const struct finding *finding, const struct type_local *local,
                     struct frame_variable *variable) {
    const Dwarf_Op *operation = local->expression, *base = local->frame_base;
    unsigned atom = operation->atom;
    uint64_t value;
    if (local->operations == 1 &&
        (atom == DW_OP_regx || (atom >= DW_OP_reg0 && atom <= DW_OP_reg31))) {
        unsigned number = atom == DW_OP_regx ? (unsigned)operation->number : atom - DW_OP_reg0;
        variable->is_value = true;
        return read_register(finding, number, &variable->value);
    }
    if (atom == DW_OP_fbreg) {
        bool is_register = base && base->atom >= DW_OP_reg0 && base->atom <= DW_OP_reg31;
        bool is_known = base && local->frame_operations == 1 &&
                        (is_register ? read_register(finding, base->atom - DW_OP_reg0, &value)
                                     : find_base(finding, base, &value));
        if (!is_known) return false;
        value += operation->number;
    } else if (!find_base(finding, operation, &value)) {
        return false;
    }
    variable->address = value;
    if (local->operations == 1) return true;
    if (local->operations > 2) return false;
    switch (operation[1].atom) {
    case DW_OP_deref:
        return core_read(finding->core, value, &variable->address, sizeof variable->address);
    case DW_OP_stack_value:
        variable->is_value = true;
        variable->value = value;
        return true;
    default:
        return false;
    }
}

// --- frames

static bool see_local(void *context, const struct type_local *local) {
    struct finding *finding = context;
    struct frame_variable variable = {.name = local->name,
                                      .function = local->function,
                                      .type = local->type,
                                      .thread = finding->thread};
    variable.is_unplaced = !local->operations || !evaluate(finding, local, &variable);
    finding->is_ended = !finding->see(finding->context, &variable);
    return !finding->is_ended;
}

static bool see_function(struct finding *finding, uint64_t pc) {
    struct thread_frame frame = {.thread = finding->thread, .pc = pc};
    bool is_amd64 = finding->core->machine != EM_AARCH64;
    return !read_register(finding, is_amd64 ? AMD64_STACK : AARCH64_STACK, &frame.stack) ||
           finding->see_frame(finding->context, &frame);
}

static int see_frame(Dwfl_Frame *frame, void *argument) {
    struct finding *finding = argument;
    Dwarf_Addr pc;
    bool is_activation;
    void **data;
    if (finding->frame_count++ == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_activation))
        return DWARF_CB_ABORT;
    if (!is_activation) pc--;
    finding->frame = frame;
    if (finding->see_frame) {
        finding->is_ended = !see_function(finding, pc);
        return finding->is_ended ? DWARF_CB_ABORT : DWARF_CB_OK;
    }
    Dwfl_Module *module = dwfl_addrmodule(finding->dwfl, pc);
    if (!module) return DWARF_CB_OK;
    dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
    const struct typed_module *typed = *data;
    if (!typed) return DWARF_CB_OK;
    finding->has_cfa = find_cfa(finding, module, pc);
    types_each_local(typed->types, pc - typed->bias, see_local, finding);
    return finding->is_ended ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static int see_thread(Dwfl_Thread *thread, void *argument) {
    struct finding *finding = argument;
    for (size_t i = 0; i < finding->core->threads.count; i++)
        if ((pid_t)finding->core->threads.items[i].tid == dwfl_thread_tid(thread))
            finding->thread = &finding->core->threads.items[i];
    finding->frame_count = 0;
    if (finding->thread) dwfl_thread_getframes(thread, see_frame, finding);
    return finding->is_ended ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static void find(struct finding *finding, struct core_types *types) {
    const struct core_image *core = finding->core;
    if (!core->threads.count) return;
    finding->dwfl = dwfl_begin(&callbacks);
    if (!finding->dwfl) return;
    core_types_each_module(types, report_module, finding);
    pid_t pid = core->pid ? (pid_t)core->pid : 1;
    if (!dwfl_report_end(finding->dwfl, NULL, NULL) &&
        dwfl_attach_state(finding->dwfl, NULL, pid, &thread_callbacks, finding))
        dwfl_getthreads(finding->dwfl, see_thread, finding);
    dwfl_end(finding->dwfl);
}

void frames_each(const struct core_image *core, struct core_types *types,
                 bool (*see)(void *context, const struct thread_frame *frame), void *context) {
    struct finding finding = {.core = core, .see_frame = see, .context = context};
    find(&finding, types);
}

void frames_each_variable(const struct core_image *core, struct core_types *types,
                          const struct typed_module *modules, size_t module_count,
                          bool (*see)(void *context, const struct frame_variable *variable),
                          void *context) {
    struct finding finding = {.core = core,
                              .modules = modules,
                              .module_count = module_count,
                              .see = see,
                              .context = context};
    if (module_count) find(&finding, types);
}
