// SPDX-License-Identifier: Apache-2.0
// A shared libpython says its version by its name, an interpreter in one piece by the constant
// Py_Version (from 3.11 on), or else by the name of its file.
#include "tool/watch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "format/attachment.h"
#include "tool/base/elf_names.h"
#include "tool/base/linker_words.h"
#include "tool/proc/maps.h"

enum { MAJOR_SHIFT = 24, MINOR_SHIFT = 16, PART_MAX = 255 };

// The version in "python3.11" behind `stem`; 0: there is none.
static uint32_t version_in_name(const char *name, const char *stem) {
    unsigned major = 0, minor = 0;
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0) return 0;
    if (sscanf(name + length, "%3u.%3u", &major, &minor) != 2) return 0;
    if (!major || major > PART_MAX || minor > PART_MAX) return 0;
    return major << MAJOR_SHIFT | minor << MINOR_SHIFT;
}

static uint32_t version_of_libraries(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;
    uint32_t version = 0;
    for (int i = 0; !version && data && gelf_getdyn(data, i, &entry) && entry.d_tag; i++) {
        if (entry.d_tag != DT_NEEDED) continue;
        const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (name) version = version_in_name(name, "libpython");
    }
    return version;
}

// The constant's value, as the file has it.
static uint32_t value_of(Elf *elf, const GElf_Sym *symbol) {
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    Elf_Data *data = section && gelf_getshdr(section, &header) ? elf_getdata(section, NULL) : NULL;
    uint64_t value = 0, at = data ? symbol->st_value - header.sh_addr : 0;
    if (!data || !data->d_buf || at > data->d_size || data->d_size - at < sizeof value) return 0;
    memcpy(&value, (const char *)data->d_buf + at, sizeof value);
    const uint32_t upper = 0xffff0000u;
    return (uint32_t)value & upper;
}

// Of an exported Py_Version; or, if there is an interpreter without it, of the file's name.
static uint32_t version_of_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                                   const char *name) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    bool is_interpreter = false;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF) continue;
        const char *text = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (text && !strcmp(text, "Py_Version")) return value_of(elf, &symbol);
        if (text && !strcmp(text, "Py_GetVersion")) is_interpreter = true;
    }
    return is_interpreter ? version_in_name(name, "python") : 0;
}

static uint32_t version_of_elf(Elf *elf, const char *name) {
    uint32_t version = 0;
    Elf_Scn *section = NULL;
    while (!version && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type == SHT_DYNAMIC) version = version_of_libraries(elf, section, &header);
        if (header.sh_type == SHT_DYNSYM) version = version_of_symbols(elf, section, &header, name);
    }
    return version;
}

// What an ELF file says; 0: nothing, or it is none.
static uint32_t ask_image(const char *path, uint32_t (*ask)(Elf *elf, const char *name)) {
    char real[PATH_MAX];
    if (!realpath(path, real)) return 0;
    int file = open(real, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    const char *slash = strrchr(real, '/');
    bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
    uint32_t said = is_elf ? ask(elf, slash ? slash + 1 : real) : 0;
    if (elf) elf_end(elf);
    close(file);
    return said;
}

uint32_t python_of_image(const char *path) {
    return ask_image(path, version_of_elf);
}

// By the name of its library, as "libpython3.13t.so.1.0", or by what only such a build exports.
static bool has_free_threads(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        GElf_Dyn entry;
        const char *text = NULL;
        if (header->sh_type == SHT_DYNAMIC && gelf_getdyn(data, (int)i, &entry) &&
            entry.d_tag == DT_NEEDED)
            text = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (text && version_in_name(text, "libpython") && strstr(text, "t.so")) return true;
        if (header->sh_type == SHT_DYNSYM && gelf_getsym(data, (int)i, &symbol) &&
            symbol.st_shndx != SHN_UNDEF)
            text = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (text && !strcmp(text, CAIRN_PYTHON_FREE_THREADED)) return true;
    }
    return false;
}

static uint32_t free_threads_of_elf(Elf *elf, const char *name) {
    Elf_Scn *section = NULL;
    (void)name;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        bool is_asked = header.sh_type == SHT_DYNAMIC || header.sh_type == SHT_DYNSYM;
        if (is_asked && has_free_threads(elf, section, &header)) return true;
    }
    return false;
}

bool python_is_free_threaded(const char *path) {
    return ask_image(path, free_threads_of_elf) != 0;
}

enum { STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127, SCRIPT_LINE_MAX = 256 };

const char *program_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_executable_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

// The first executable file of that name in PATH.
static bool search_path(const char *name, char *path) {
    const char *list = getenv("PATH");
    if (!list) list = "/usr/local/bin:/usr/bin:/bin";
    for (const char *part = list; part;) {
        size_t length = strcspn(part, ":");
        int used = snprintf(path, PROGRAM_PATH_MAX, "%.*s%s%s", (int)length, part,
                            length ? "/" : "", name);
        if (used < PROGRAM_PATH_MAX && is_executable_file(path)) return true;
        part = part[length] ? part + length + 1 : NULL;
    }
    return false;
}

static void note_missing(struct program *program, const char *path) {
    if (path[0] && access(path, F_OK) != 0)
        snprintf(program->missing, sizeof program->missing, "%s", path);
}

// The interpreter of a script, or the path itself.
static void find_image(struct program *program) {
    char line[SCRIPT_LINE_MAX + 1] = {0};
    snprintf(program->image, sizeof program->image, "%s", program->path);
    FILE *file = fopen(program->path, "re");
    if (!file) return;
    size_t got = fread(line, 1, SCRIPT_LINE_MAX, file);
    fclose(file);
    if (got < 3 || line[0] != '#' || line[1] != '!') return;
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\r\n")] = 0;
    if (!strcmp(program_base_name(start), "env")) return;  // env finds what comes after it
    if (start[0] != '/') return;
    note_missing(program, start);
    snprintf(program->image, sizeof program->image, "%s", start);
}

static const char *privilege_obstacle(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return NULL;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        return "it is setuid, and the dynamic linker ignores LD_PRELOAD there";
    if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
        return "it is setgid, and the dynamic linker ignores LD_PRELOAD there";
    if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return "it has file capabilities, and the dynamic linker ignores LD_PRELOAD there";
    return NULL;
}

// The dynamic linker that the program names; NULL: none.
static const char *interpreter_of(Elf *elf) {
    size_t count = 0, bytes = 0;
    GElf_Phdr segment;
    const char *file = elf_rawfile(elf, &bytes);
    if (!file || elf_getphdrnum(elf, &count) != 0) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_INTERP) continue;
        bool is_inside = segment.p_offset < bytes && segment.p_filesz &&
                         segment.p_filesz <= bytes - segment.p_offset;
        return is_inside && !file[segment.p_offset + segment.p_filesz - 1] ? file + segment.p_offset
                                                                           : "";
    }
    return NULL;
}

static bool has_section(Elf *elf, const char *wanted) {
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return false;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && !strcmp(name, wanted)) return true;
    }
    return false;
}

// Returns true if our runtime is linked into the program (libcairn_static.a, libcairn_embed.a).
static bool has_runtime(Elf *elf) {
    return has_section(elf, ".note.cairn");
}

// Symbols that give away which allocator is linked in, most specific first.
static const struct {
    const char *symbol, *allocator;
} allocator_signs[] = {
    {"_rjem_malloc", "jemalloc"}, {"je_malloc", "jemalloc"},    {"malloc_stats_print", "jemalloc"},
    {"tc_malloc", "tcmalloc"},    {"mi_malloc", "mimalloc"},    {"rpmalloc", "rpmalloc"},
    {"snmalloc", "snmalloc"},     {"malloc", "its own malloc"},
};
enum { ALLOCATOR_SIGNS = sizeof allocator_signs / sizeof *allocator_signs };

static const struct {
    const char *library, *symbol, *obstacle;
    bool has_to_be_first;
} sanitizers[] = {
#define SANITIZER(kind, library, symbol, name, has_to_be_first)                                    \
    {library, symbol, "it is built with " name ", which brings a malloc of its own",               \
     has_to_be_first},
#include "format/sanitizers.def"
#undef SANITIZER
};
enum { SANITIZER_COUNT = sizeof sanitizers / sizeof *sanitizers };

// What the tables of an ELF file tell about its allocator.
struct findings {
    size_t allocator_sign;  // index of allocator_signs, or their count
    const char *obstacle;   // a sanitizer's; NULL: none
    bool refuses_preload;
    bool needs_allocator_library;
};

static void look_at_symbol(const char *name, struct findings *findings) {
    for (size_t sign = 0; sign < findings->allocator_sign; sign++)
        if (!strcmp(name, allocator_signs[sign].symbol)) findings->allocator_sign = sign;
    for (size_t i = 0; i < SANITIZER_COUNT; i++)
        if (!strcmp(name, sanitizers[i].symbol)) findings->obstacle = sanitizers[i].obstacle;
}

static void want_names(struct elf_names *names) {
    for (size_t i = 0; i < ALLOCATOR_SIGNS; i++) elf_names_want(names, allocator_signs[i].symbol);
    for (size_t i = 0; i < SANITIZER_COUNT; i++) elf_names_want(names, sanitizers[i].symbol);
}

static void look_at_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                            struct elf_names *names, struct findings *findings) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    elf_names_open(names, elf, header->sh_link);
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF) continue;
        if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
        const char *name = elf_names_at(names, symbol.st_name);
        if (name) look_at_symbol(name, findings);
    }
}

static const char *const allocator_libraries[] = {"jemalloc", "tcmalloc", "mimalloc"};
enum { ALLOCATOR_LIBRARIES = sizeof allocator_libraries / sizeof *allocator_libraries };

static bool is_allocator_library(const char *name) {
    for (size_t i = 0; i < ALLOCATOR_LIBRARIES; i++)
        if (strstr(name, allocator_libraries[i])) return true;
    return false;
}

bool program_has_operators(pid_t pid) {
    for (size_t i = 0; i < ALLOCATOR_LIBRARIES; i++)
        if (maps_have_name(pid, allocator_libraries[i])) return true;
    return false;
}

static void look_at_library(const char *name, struct findings *findings) {
    if (is_allocator_library(name)) findings->needs_allocator_library = true;
    for (size_t i = 0; i < SANITIZER_COUNT; i++) {
        if (strncmp(name, sanitizers[i].library, strlen(sanitizers[i].library)) != 0) continue;
        findings->obstacle = sanitizers[i].obstacle;
        findings->refuses_preload = sanitizers[i].has_to_be_first;
    }
}

static void look_at_libraries(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                              struct findings *findings) {
    GElf_Dyn entry;
    Elf_Data *data = elf_getdata(section, NULL);
    for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag != DT_NEEDED) continue;
        const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (name) look_at_library(name, findings);
    }
}

static struct findings look_at_tables(Elf *elf) {
    struct findings findings = {.allocator_sign = ALLOCATOR_SIGNS};
    struct elf_names names = {.text = NULL};
    want_names(&names);
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
            look_at_symbols(elf, section, &header, &names, &findings);
        if (header.sh_type == SHT_DYNAMIC) look_at_libraries(elf, section, &header, &findings);
    }
    return findings;
}

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#else
enum { OWN_MACHINE = EM_AARCH64 };
#endif

// A library that is executed: a dynamic linker, which is given the program. Static programs are no
// libraries.
static bool is_library(Elf *elf) {
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        GElf_Dyn entry;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
            if (entry.d_tag == DT_SONAME) return true;
    }
    return false;
}

// The tool leads the functions of its malloc to a library of ours (tool/attach/static_start.h).
static const char *static_obstacle(const struct program *program, Elf *elf) {
#if defined(__x86_64__)
    if (program->own_allocator) return NULL;
#endif
    if (has_section(elf, ".gopclntab"))
        return "it is a static Go program, whose heap is Go's own: cairn report PID looks into it "
               "as it runs (cairn help go)";
#if defined(__x86_64__)
    return "it is statically linked, and no symbol says where its malloc is (stripped, packed, or "
           "without one)";
#else
    (void)program;
    return "it is statically linked, so there is no dynamic linker to preload";
#endif
}

// Of what a dynamic linker was given, it does not matter which one it names.
static void examine_elf(Elf *elf, struct program *program, bool is_given) {
    GElf_Ehdr header;
    const char *preload = getenv("LD_PRELOAD");
    const char *interpreter = is_given ? "" : interpreter_of(elf);
    if (!gelf_getehdr(elf, &header)) return;
    if (interpreter && *interpreter) note_missing(program, interpreter);
    program->is_linker |= !interpreter && is_library(elf);
    if (gelf_getclass(elf) == ELFCLASS32)
        program->obstacle = "it is a 32-bit program, and cairn's library is 64-bit";
    else if (header.e_machine != OWN_MACHINE)
        program->obstacle = "it is built for another processor";
    else if (!interpreter && has_runtime(elf))
        program->records_itself = true;
    else if (!interpreter && !program->is_linker)
        program->is_static = true;
    // its dynamic linker would print a line
    bool is_foreign = gelf_getclass(elf) == ELFCLASS32 || header.e_machine != OWN_MACHINE;
    program->refuses_preload = is_foreign;
    if (program->records_itself || (program->is_linker && !is_given)) return;
    struct findings findings = look_at_tables(elf);
    if (findings.allocator_sign < ALLOCATOR_SIGNS)
        program->own_allocator = allocator_signs[findings.allocator_sign].allocator;
    program->brings_operator_new =
        findings.needs_allocator_library || (preload && is_allocator_library(preload));
    if (program->is_static) program->obstacle = static_obstacle(program, elf);
    if (program->obstacle || !findings.obstacle) return;
    program->obstacle = findings.obstacle;
    program->refuses_preload = findings.refuses_preload;
}

static void examine_image(struct program *program, bool is_given) {
    int file = open(program->image, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) examine_elf(elf, program, is_given);
    if (elf) elf_end(elf);
    close(file);
}

bool program_find(const char *name, struct program *program, int *status, struct error *error) {
    *program = (struct program){0};
    bool is_path = strchr(name, '/') != NULL;
    *status = STATUS_NOT_FOUND;
    if (is_path)
        snprintf(program->path, sizeof program->path, "%s", name);
    else if (!search_path(name, program->path))
        return error_set(error, "%s: not found in PATH", name);
    if (is_path && access(name, F_OK) != 0)
        return error_set(error, "%s: %s", name, strerror(errno));
    *status = STATUS_CANNOT_EXECUTE;
    if (!is_executable_file(program->path)) {
        struct stat there;
        bool is_directory = stat(program->path, &there) == 0 && S_ISDIR(there.st_mode);
        return error_set(error, "%s: %s", name,
                         is_directory ? "is a directory" : "permission denied");
    }
    find_image(program);
    program->obstacle = privilege_obstacle(program->path);
    if (!program->obstacle) examine_image(program, false);
    return true;
}

bool program_find_command(char *const words[], struct program *program, int *status,
                          struct error *error) {
    if (!program_find(words[0], program, status, error)) return false;
    unsigned at = 1;
    while (program->is_linker && words[at]) {
        unsigned count = linker_option_words(words[at]);
        if (!count) break;
        while (count-- && words[at]) at++;
    }
    // a name without a slash is looked for among the libraries
    if (!program->is_linker || !words[at] || !strchr(words[at], '/')) return true;
    snprintf(program->image, sizeof program->image, "%s", words[at]);
    examine_image(program, true);
    return true;
}

const char *program_called(const struct program *program, const char *word) {
    return program_base_name(program->is_linker ? program->image : word);
}
