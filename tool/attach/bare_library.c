// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/bare_library.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool/proc/process.h"

#define LIBRARY_MAX_BYTES (64u << 20)

static bool is_other(struct error *error) {
    return error_set(error, "libcairn-bare.so is of another version of cairn");
}

// Calls `visit` for each segment of a kind.
typedef bool segment_visitor(struct bare_library *library, const GElf_Phdr *segment, void *context);
static bool each_segment(struct bare_library *library, uint32_t type, segment_visitor *visit,
                         void *context) {
    size_t count = 0;
    GElf_Phdr segment;
    if (elf_getphdrnum(library->elf, &count) != 0) return false;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(library->elf, (int)i, &segment) && segment.p_type == type &&
            !visit(library, &segment, context))
            return false;
    return true;
}

static bool measure(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    uint64_t end = segment->p_vaddr + segment->p_memsz;
    (void)context;
    if (end > library->bytes) library->bytes = end;
    if (segment->p_align > library->align) library->align = segment->p_align;
    return end >= segment->p_vaddr && end < LIBRARY_MAX_BYTES &&
           segment->p_filesz <= segment->p_memsz;
}

static bool copy(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    size_t file_bytes = 0;
    const char *file = elf_rawfile(library->elf, &file_bytes);
    (void)context;
    if (!file || segment->p_offset > file_bytes ||
        segment->p_filesz > file_bytes - segment->p_offset)
        return false;
    memcpy(library->image + segment->p_vaddr, file + segment->p_offset, segment->p_filesz);
    return true;
}

static bool note_locals(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    (void)context;
    library->locals = *segment;
    return segment->p_vaddr <= library->bytes &&
           segment->p_filesz <= library->bytes - segment->p_vaddr;
}

bool bare_library_open(struct bare_library *library, const char *path, struct error *error) {
    *library = (struct bare_library){.file = open(path, O_RDONLY | O_CLOEXEC),
                                     .align = process_page_bytes()};
    elf_version(EV_CURRENT);
    if (library->file >= 0) library->elf = elf_begin(library->file, ELF_C_READ_MMAP, NULL);
    if (!library->elf || elf_kind(library->elf) != ELF_K_ELF ||
        !each_segment(library, PT_LOAD, measure, NULL) || !library->bytes)
        return is_other(error);
    library->bytes = (library->bytes + library->align - 1) & ~(library->align - 1);
    library->image = calloc(1, library->bytes);
    if (!library->image) return error_set(error, "out of memory");
    return (each_segment(library, PT_LOAD, copy, NULL) &&
            each_segment(library, PT_TLS, note_locals, NULL)) ||
           is_other(error);
}

void bare_library_close(struct bare_library *library) {
    if (library->elf) elf_end(library->elf);
    if (library->file >= 0) close(library->file);
    free(library->image);
}

static bool find_symbol(const struct bare_library *library, const char *name, GElf_Sym *symbol) {
    for (Elf_Scn *section = elf_nextscn(library->elf, NULL); section;
         section = elf_nextscn(library->elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about) || about.sh_type != SHT_DYNSYM) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 1; data && gelf_getsym(data, i, symbol); i++) {
            const char *text = elf_strptr(library->elf, about.sh_link, symbol->st_name);
            if (text && symbol->st_shndx != SHN_UNDEF && !strcmp(text, name)) return true;
        }
    }
    return false;
}

void *bare_library_data(const struct bare_library *library, const char *name, size_t bytes) {
    GElf_Sym symbol;
    bool is_there = find_symbol(library, name, &symbol) && symbol.st_size == bytes &&
                    symbol.st_value <= library->bytes - bytes;
    return is_there ? library->image + symbol.st_value : NULL;
}

uint64_t bare_library_address(const struct bare_library *library, const char *name) {
    GElf_Sym symbol;
    return find_symbol(library, name, &symbol) ? library->base + symbol.st_value : 0;
}

// ---- address space ------------------------------------------------------------------------------

static bool call(struct caller *caller, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 int64_t *result, struct error *error) {
    const int64_t errors = 4096;
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {a, b, c, d, UINT64_MAX, 0};
    if (!caller_system_call(caller, number, arguments, result, error)) return false;
    if (*result >= 0 || *result < -errors) return true;
    return error_set(error, "the kernel gives it no memory for cairn's library: %s",
                     strerror((int)-*result));
}

static int protection_of(const GElf_Phdr *segment) {
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

struct mapper {
    struct caller *caller;
    struct error *error;
};

static bool map_segment(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    struct mapper *mapper = context;
    uint64_t page = process_page_bytes();
    uint64_t start = segment->p_vaddr & ~(page - 1);
    uint64_t end = (segment->p_vaddr + segment->p_memsz + page - 1) & ~(page - 1);
    int64_t result = 0;
    return call(mapper->caller, SYS_mmap, library->base + start, end - start,
                (uint64_t)protection_of(segment), MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, &result,
                mapper->error);
}

// Gives back what is more than the alignment asks for.
bool bare_library_reserve(struct bare_library *library, struct caller *caller,
                          struct error *error) {
    uint64_t whole = library->bytes + library->align;
    int64_t start = 0, unused = 0;
    if (!call(caller, SYS_mmap, 0, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              &start, error))
        return false;
    uint64_t low = (uint64_t)start;
    library->base = (low + library->align - 1) & ~(library->align - 1);
    uint64_t end = library->base + library->bytes;
    return (library->base == low ||
            call(caller, SYS_munmap, low, library->base - low, 0, 0, &unused, error)) &&
           (end == low + whole ||
            call(caller, SYS_munmap, end, low + whole - end, 0, 0, &unused, error));
}

bool bare_library_map(struct bare_library *library, struct caller *caller, struct error *error) {
    struct mapper mapper = {caller, error};
    return bare_library_reserve(library, caller, error) &&
           each_segment(library, PT_LOAD, map_segment, &mapper);
}

struct placer {
    struct mapper mapper;
    int64_t file;
};

static bool map_part(const struct bare_library *library, const struct placer *placer,
                     uint64_t start, uint64_t bytes, uint64_t protection) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {
        library->base + start,  bytes, protection, MAP_PRIVATE | MAP_FIXED,
        (uint64_t)placer->file, start};
    int64_t result = 0;
    if (!caller_system_call(placer->mapper.caller, SYS_mmap, arguments, &result,
                            placer->mapper.error))
        return false;
    if ((uint64_t)result == library->base + start) return true;
    return error_set(placer->mapper.error, "the library cannot be mapped in it: %s",
                     strerror((int)-result));
}

// The kernel wipes pages in a forked child that are no file's: data are written anew. All else is
// mapped as it is to be: a process may have given up the right to make mapped memory executable.
static bool place_segment(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    const struct placer *placer = context;
    const struct mapper *mapper = &placer->mapper;
    uint64_t page = process_page_bytes(), start = segment->p_vaddr & ~(page - 1);
    uint64_t end = (segment->p_vaddr + segment->p_memsz + page - 1) & ~(page - 1);
    if (segment->p_flags & PF_W)
        return map_segment(library, segment, context) &&
               (remote_write(mapper->caller->remote, library->base + start, library->image + start,
                             segment->p_vaddr + segment->p_filesz - start) ||
                error_set(mapper->error, "its memory cannot be written"));
    return map_part(library, placer, start, end - start, (uint64_t)protection_of(segment));
}

bool bare_library_map_file(struct bare_library *library, struct caller *caller, int64_t file,
                           struct error *error) {
    struct placer placer = {{caller, error}, file};
    return map_part(library, &placer, 0, library->bytes, PROT_READ) &&
           each_segment(library, PT_LOAD, place_segment, &placer);
}

// ---- addresses ----------------------------------------------------------------------------------

struct relocating {
    const struct bare_locals *locals;
    uint64_t locals_function;
    Elf_Data *symbols;
};

static bool put_word(struct bare_library *library, uint64_t offset, uint64_t value) {
    if (library->bytes < sizeof value || offset > library->bytes - sizeof value) return false;
    memcpy(library->image + offset, &value, sizeof value);
    return true;
}

static bool relocate_one(struct bare_library *library, const struct relocating *relocating,
                         const GElf_Rela *entry) {
    GElf_Sym symbol = {0};
    uint64_t value = 0;
    size_t number = GELF_R_SYM(entry->r_info);
    if (number && !gelf_getsym(relocating->symbols, (int)number, &symbol)) return false;
    bool is_defined = symbol.st_shndx != SHN_UNDEF;
    if (number && !is_defined && GELF_ST_BIND(symbol.st_info) != STB_WEAK) return false;
    switch (GELF_R_TYPE(entry->r_info)) {
    case R_X86_64_RELATIVE:
        value = library->base + (uint64_t)entry->r_addend;
        break;
    case R_X86_64_64:
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT:
        value = is_defined ? library->base + symbol.st_value + (uint64_t)entry->r_addend : 0;
        break;
    case R_X86_64_TLSDESC:
        value = (uint64_t)(relocating->locals->offset + entry->r_addend) + symbol.st_value;
        return put_word(library, entry->r_offset, relocating->locals_function) &&
               put_word(library, entry->r_offset + sizeof value, value);
    default:
        return false;
    }
    return put_word(library, entry->r_offset, value);
}

static bool relocate_section(struct bare_library *library, const struct bare_locals *locals,
                             Elf_Scn *section, const GElf_Shdr *about) {
    Elf_Data *data = elf_getdata(section, NULL);
    struct relocating relocating = {locals, bare_library_address(library, locals->function),
                                    elf_getdata(elf_getscn(library->elf, about->sh_link), NULL)};
    GElf_Rela entry;
    for (int i = 0; data && relocating.locals_function && gelf_getrela(data, i, &entry); i++)
        if (!relocate_one(library, &relocating, &entry)) return false;
    return data && relocating.locals_function;
}

bool bare_library_relocate(struct bare_library *library, const struct bare_locals *locals,
                           struct error *error) {
    for (Elf_Scn *section = elf_nextscn(library->elf, NULL); section;
         section = elf_nextscn(library->elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about)) continue;
        bool is_for_loader = about.sh_type == SHT_RELA && about.sh_flags & SHF_ALLOC;
        if (is_for_loader && !relocate_section(library, locals, section, &about))
            return is_other(error);
    }
    return true;
}

struct writer {
    const struct remote *remote;
};

// The rest of the segment is zero already.
static bool write_segment(struct bare_library *library, const GElf_Phdr *segment, void *context) {
    const struct writer *writer = context;
    return remote_write(writer->remote, library->base + segment->p_vaddr,
                        library->image + segment->p_vaddr, segment->p_filesz);
}

bool bare_library_write(const struct bare_library *library, const struct remote *remote,
                        struct error *error) {
    struct bare_library copy_of = *library;
    struct writer writer = {remote};
    return each_segment(&copy_of, PT_LOAD, write_segment, &writer) ||
           error_set(error, "its memory cannot be written");
}
