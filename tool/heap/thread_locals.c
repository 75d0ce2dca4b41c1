// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/thread_locals.h"

#include <string.h>

#include "tool/base/text.h"

enum {
    WORD = 8,
    AARCH64_HEAD_BYTES = 16,  // of the thread's own area, in front of a program's data
    MODULES_MOST = 1 << 16,   // with thread-local data; larger numbers are none
    SLOT_BYTES = 2 * WORD,    // of the vector, whose first slot is its generation
};

// --- the segment

static bool find_segment(Elf *elf, GElf_Phdr *segment) {
    size_t count = 0;
    if (!elf || elf_getphdrnum(elf, &count) < 0) return false;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(elf, (int)i, segment) && segment->p_type == PT_TLS) return true;
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

// Of a program: variant II and, on aarch64, I.
static void place_of_program(const struct core_image *core, const GElf_Phdr *segment,
                             struct thread_locals *locals) {
    uint64_t align = segment->p_align ? segment->p_align : 1;
    uint64_t before = core->machine == EM_AARCH64 ? AARCH64_HEAD_BYTES : segment->p_memsz;
    before = (before + align - 1) / align * align;
    locals->kind = THREAD_LOCALS_STATIC;
    locals->distance = core->machine == EM_AARCH64 ? before : -before;
}

// --- what the dynamic linker wrote for a library

struct relocation {
    GElf_Rela rela;
    uint64_t symbol;  // its value
};

static void take_static(struct thread_locals *locals, uint64_t distance) {
    locals->kind = THREAD_LOCALS_STATIC;
    locals->distance = distance;
}

static void take_dynamic(struct thread_locals *locals, uint64_t number) {
    if (!number || number >= MODULES_MOST) return;
    locals->kind = THREAD_LOCALS_DYNAMIC;
    locals->number = number;
}

// A descriptor has a function and its argument: a distance, or the address of the module's number
// and the variable's offset.
static void read_descriptor(const struct core_image *core, uint64_t at, uint64_t offset,
                            struct thread_locals *locals) {
    uint64_t argument, pair[2];
    if (!core_read(core, at + WORD, &argument, sizeof argument)) return;
    bool is_pair = core_read(core, argument, pair, sizeof pair) && pair[1] == offset;
    if (is_pair)
        take_dynamic(locals, pair[0]);
    else
        take_static(locals, argument - offset);
}

static void read_relocation(const struct core_image *core, const struct elf_module *module,
                            const struct relocation *relocation, struct thread_locals *locals) {
    const uint64_t at = module->bias + relocation->rela.r_offset;
    const uint64_t offset = relocation->symbol + (uint64_t)relocation->rela.r_addend;
    uint64_t word;
    switch (GELF_R_TYPE(relocation->rela.r_info)) {
    case R_X86_64_DTPMOD64:
    case R_AARCH64_TLS_DTPMOD:
        if (core_read(core, at, &word, sizeof word)) take_dynamic(locals, word);
        break;
    case R_X86_64_TPOFF64:
    case R_AARCH64_TLS_TPREL:
        if (core_read(core, at, &word, sizeof word)) take_static(locals, word - offset);
        break;
    case R_X86_64_TLSDESC:
    case R_AARCH64_TLSDESC:
        read_descriptor(core, at, offset, locals);
        break;
    default:
        break;
    }
}

// The numbers of relocations mean something else on another machine.
static bool is_of_machine(const struct core_image *core, uint64_t type) {
    bool is_amd64 =
        type == R_X86_64_DTPMOD64 || type == R_X86_64_TPOFF64 || type == R_X86_64_TLSDESC;
    return is_amd64 == (core->machine != EM_AARCH64);
}

// Relocations of other modules' variables have symbols that are not defined here.
static bool find_symbol(Elf *elf, const GElf_Shdr *section, struct relocation *relocation) {
    size_t index = GELF_R_SYM(relocation->rela.r_info);
    Elf_Scn *table = elf_getscn(elf, section->sh_link);
    Elf_Data *data = index && table ? elf_getdata(table, NULL) : NULL;
    GElf_Sym symbol;
    relocation->symbol = 0;
    if (!index) return true;
    if (!data || !gelf_getsym(data, (int)index, &symbol) || symbol.st_shndx == SHN_UNDEF)
        return false;
    relocation->symbol = symbol.st_value;
    return true;
}

static void place_of_library(const struct core_image *core, const struct elf_module *module,
                             Elf *elf, struct thread_locals *locals) {
    GElf_Shdr section;
    for (Elf_Scn *at = NULL; (at = elf_nextscn(elf, at));) {
        Elf_Data *data = gelf_getshdr(at, &section) && section.sh_type == SHT_RELA
                             ? elf_getdata(at, NULL)
                             : NULL;
        struct relocation relocation;
        for (int i = 0; data && gelf_getrela(data, i, &relocation.rela) && !locals->kind; i++)
            if (is_of_machine(core, GELF_R_TYPE(relocation.rela.r_info)) &&
                find_symbol(elf, &section, &relocation))
                read_relocation(core, module, &relocation, locals);
    }
}

// --- answers

struct thread_locals thread_locals_of(const struct core_image *core,
                                      const struct elf_module *module) {
    struct thread_locals locals = {0};
    GElf_Phdr segment;
    Elf *elf = module->files.module.elf;
    if (!find_segment(elf, &segment)) return locals;
    locals.bytes = segment.p_memsz;
    locals.align = segment.p_align;
    if (is_program(elf))
        place_of_program(core, &segment, &locals);
    else
        place_of_library(core, module, elf, &locals);
    return locals;
}

// The vector's address is the first word of the thread's area on aarch64, the second on x86-64.
static bool vector_of(const struct core_image *core, const struct core_thread *thread,
                      uint64_t *vector) {
    uint64_t at = thread->pointer + (core->machine == EM_AARCH64 ? 0 : WORD);
    return thread->pointer && core_read(core, at, vector, sizeof *vector);
}

// In front of the first slot is one that has the number of those behind it.
bool thread_locals_vector(const struct core_image *core, const struct core_thread *thread,
                          uint64_t *start, uint64_t *end) {
    uint64_t vector, count;
    bool is_known = vector_of(core, thread, &vector) &&
                    core_read(core, vector - SLOT_BYTES, &count, sizeof count) &&
                    count < MODULES_MOST;
    if (!is_known) return false;
    *start = vector - SLOT_BYTES;
    *end = vector + (count + 1) * SLOT_BYTES;
    return true;
}

// An entry that was not used yet is all ones.
static bool read_vector(const struct core_image *core, const struct core_thread *thread,
                        uint64_t number, uint64_t *start) {
    uint64_t vector;
    return vector_of(core, thread, &vector) &&
           core_read(core, vector + number * SLOT_BYTES, start, sizeof *start) && *start &&
           *start != UINT64_MAX;
}

bool thread_locals_start(const struct core_image *core, const struct thread_locals *locals,
                         const struct core_thread *thread, uint64_t *start) {
    if (!thread->pointer || !locals->kind) return false;
    *start = thread->pointer + locals->distance;
    return locals->kind == THREAD_LOCALS_STATIC || read_vector(core, thread, locals->number, start);
}

static bool find_name(Elf *elf, Elf_Scn *at, const GElf_Shdr *section, uint64_t offset, char *name,
                      size_t size) {
    Elf_Data *data = elf_getdata(at, NULL);
    GElf_Sym symbol;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        const char *found = elf_strptr(elf, section->sh_link, symbol.st_name);
        bool is_it = GELF_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_shndx != SHN_UNDEF &&
                     offset - symbol.st_value < (symbol.st_size ? symbol.st_size : 1);
        if (!is_it || !found || !*found) continue;
        text_escape(name, size, found);
        return true;
    }
    return false;
}

bool thread_locals_name(const struct located *files, uint64_t offset, char *name, size_t size) {
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    Elf *const elves[] = {files->module.elf, files->debug.elf};
    GElf_Shdr section;
    for (size_t file = 0; file < sizeof elves / sizeof *elves; file++)
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds && elves[file]; kind++)
            for (Elf_Scn *at = NULL; (at = elf_nextscn(elves[file], at));)
                if (gelf_getshdr(at, &section) && section.sh_type == kinds[kind] &&
                    find_name(elves[file], at, &section, offset, name, size))
                    return true;
    return false;
}
