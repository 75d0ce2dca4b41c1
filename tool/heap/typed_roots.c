// SPDX-License-Identifier: Apache-2.0
// Where typed.c begins: the modules with debug information, and the variables in them and in
// frames.
#include "tool/heap/typed_internal.h"

// --- modules

static bool is_known_module(const struct typed *typed, const struct elf_module *module) {
    for (size_t i = 0; i < typed->modules.count; i++)
        if (typed->modules.items[i].bias == module->bias) return true;
    return false;
}

// A program, not a library: libraries may be started too, as libc is.
static bool is_program(Elf *elf) {
    GElf_Ehdr header;
    GElf_Shdr section;
    GElf_Dyn entry;
    if (!gelf_getehdr(elf, &header)) return false;
    if (header.e_type == ET_EXEC) return true;
    for (Elf_Scn *at = NULL; (at = elf_nextscn(elf, at));) {
        Elf_Data *data = gelf_getshdr(at, &section) && section.sh_type == SHT_DYNAMIC
                             ? elf_getdata(at, NULL)
                             : NULL;
        for (int i = 0; data && gelf_getdyn(data, i, &entry); i++)
            if (entry.d_tag == DT_FLAGS_1) return entry.d_un.d_val & DF_1_PIE;
    }
    return false;
}

// The offset of a program's thread-local data from the thread's pointer ("ELF Handling For
// Thread-Local Storage", 3.4.2 and 3.4.6: variant II and, on aarch64, I). Of libraries it is in
// memory that only the dynamic linker knows.
static void find_tls(const struct core_image *core, const struct elf_module *module,
                     struct typed_module *found) {
    enum { HEAD_BYTES = 16 };  // of the thread's own area on aarch64
    GElf_Phdr segment;
    size_t count = 0;
    Elf *elf = module->files.module.elf;
    if (!elf || elf_getphdrnum(elf, &count) < 0 || !is_program(elf)) return;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_TLS) continue;
        uint64_t align = segment.p_align ? segment.p_align : 1;
        uint64_t before = core->machine == EM_AARCH64 ? HEAD_BYTES : segment.p_memsz;
        before = (before + align - 1) / align * align;
        found->tls_offset = core->machine == EM_AARCH64 ? before : -before;
        found->has_tls = true;
    }
}

static bool open_module(void *context, const struct elf_module *module) {
    struct typed *typed = context;
    if (is_known_module(typed, module)) return true;
    struct types *types = types_open(&module->files, core_types_options(typed->types));
    struct typed_module *slot = types ? array_push(&typed->modules) : NULL;
    if (!slot) {
        types_close(types);
        return true;
    }
    *slot = (struct typed_module){.bias = module->bias, .types = types};
    find_tls(typed->core, module, slot);
    return true;
}

bool typed_open_modules(struct typed *typed) {
    return core_types_each_module(typed->types, open_module, typed);
}

// --- variables

static bool add_root(struct typed *typed, const struct typed_root *root) {
    struct typed_root *slot = array_push(&typed->roots);
    if (slot) *slot = *root;
    typed->is_failed |= !slot;
    return slot;
}

struct reading {
    struct typed *typed;
    const struct typed_module *module;
};

static bool note_variable(void *context, const struct type_variable *variable) {
    struct reading *reading = context;
    const struct typed_module *module = reading->module;
    struct typed *typed = reading->typed;
    if (!layout_has_pointers(variable->type) || !variable->type->bytes) return true;
    struct typed_root root = {.name = variable->name, .type = variable->type};
    if (!variable->is_thread_local) {
        root.address = module->bias + variable->place;
        return add_root(typed, &root);
    }
    for (size_t i = 0; i < typed->core->threads.count && module->has_tls; i++) {
        uint64_t pointer = typed->core->threads.items[i].pointer;
        if (!pointer) continue;
        root.address = pointer + module->tls_offset + variable->place;
        root.thread = &typed->core->threads.items[i];
        if (!add_root(typed, &root)) return false;
    }
    return true;
}

static bool note_local(void *context, const struct frame_variable *variable) {
    const struct typed_root root = {.name = variable->name,
                                    .function = variable->function,
                                    .type = variable->type,
                                    .address = variable->address,
                                    .value = variable->value,
                                    .is_value = variable->is_value,
                                    .thread = variable->thread};
    if (!layout_has_pointers(variable->type) || !variable->type->bytes) return true;
    return add_root(context, &root);
}

const uint8_t *typed_root_bytes(struct typed *typed, const struct typed_root *root,
                                uint64_t *size) {
    *size = root->type->bytes;
    if (!root->is_value) return typed_read(typed, root->address, size);
    if (*size > sizeof root->value) *size = sizeof root->value;
    return (const uint8_t *)&root->value;
}

bool typed_read_roots(struct typed *typed) {
    for (size_t i = 0; i < typed->modules.count; i++) {
        struct reading reading = {typed, &typed->modules.items[i]};
        types_each_variable(reading.module->types, note_variable, &reading);
    }
    typed->variable_count = typed->roots.count;
    frames_each_variable(typed->core, typed->types, typed->modules.items, typed->modules.count,
                         note_local, typed);
    return !typed->is_failed;
}
