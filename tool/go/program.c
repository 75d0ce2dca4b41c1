// SPDX-License-Identifier: Apache-2.0
#include "tool/go/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/proc/mapped_file.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"

enum { FIRST_MINOR = 18, SHIFTED_MINOR = 19, LAST_MINOR = 27, LAST_WITH_BYTES = 26 };

// ---- the version --------------------------------------------------------------------------------

// The section .go.buildinfo: a mark, the size of pointers, flags, and from offset 32 on the version
// as a text with its length.
static bool read_version(struct go_program *program) {
    static const char mark[] = "\xff Go buildinf:";
    enum { FLAGS_AT = 15, TEXT_AT = 32, FLAG_HAS_TEXT = 2 };
    struct bytes bytes = image_bytes(&program->image, ".go.buildinfo", ".zgo.buildinfo");
    const uint8_t *start = bytes.at;
    if (bytes_left(&bytes) < TEXT_AT + 1 || memcmp(start, mark, sizeof mark - 1) != 0) return false;
    if (!(start[FLAGS_AT] & FLAG_HAS_TEXT)) return true;  // before 1.18
    bytes_skip(&bytes, TEXT_AT);
    const uint64_t length = bytes_uleb(&bytes);
    if (bytes.is_bad || length > bytes_left(&bytes) || length >= GO_VERSION_BYTES) return true;
    char text[GO_VERSION_BYTES];
    memcpy(text, bytes.at, length);
    text[length] = 0;
    text_escape(program->version, sizeof program->version, text);
    sscanf(text, "go1.%u", &program->minor);
    return true;
}

// ---- symbols ------------------------------------------------------------------------------------

struct wanted {
    const char *name;
    uint64_t *address;
};

static bool find_symbols(struct go_program *program, const struct wanted *wanted, size_t count) {
    struct symtab symtab = {.has_data = true};
    bool is_there;
    const bool is_ok = symtab_add(&symtab, &program->image, SHT_SYMTAB, &is_there);
    for (size_t i = 0; is_ok && i < symtab.count; i++) {
        const struct symtab_entry *entry = &symtab.entries[i];
        if (strncmp(entry->name, "runtime.", strlen("runtime.")) != 0) continue;
        for (size_t at = 0; at < count; at++)
            if (!strcmp(entry->name, wanted[at].name))
                *wanted[at].address = program->bias + entry->start;
    }
    symtab_free(&symtab);
    return is_ok;
}

static bool read_symbols(struct go_program *program, struct error *error) {
    struct go_profile_place *profile = &program->profile;
    const struct wanted wanted[] = {
        {"runtime.mbuckets", &profile->buckets},
        {program->minor >= SHIFTED_MINOR ? "runtime.mProfCycle" : "runtime.mProf", &profile->cycle},
        {"runtime.MemProfileRate", &profile->rate},
        {"runtime.mheap_", &program->heap},
        {"runtime.skipPleaseUseCallersFrames", &program->skipped_pcs},
    };
    profile->is_shifted = program->minor >= SHIFTED_MINOR;
    profile->has_bytes = program->minor <= LAST_WITH_BYTES;
    return find_symbols(program, wanted, sizeof wanted / sizeof *wanted) ||
           error_set(error, "no memory for its symbols");
}

bool go_program_section(const struct go_program *program, const char *name, uint64_t *start,
                        uint64_t *size) {
    size_t names;
    Elf *elf = program->image.elf;
    if (elf_getshdrstrndx(elf, &names)) return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        const char *text = elf_strptr(elf, names, header.sh_name);
        if (!text || strcmp(text, name) != 0) continue;
        *start = program->bias + header.sh_addr;
        *size = header.sh_size;
        return header.sh_size <= UINT64_MAX - *start;
    }
    return false;
}

static enum go_finding read_program(struct go_program *program, struct error *error) {
    char name[PATH_MAX];
    if (!read_version(program)) {
        image_close(&program->image);
        return GO_ABSENT;
    }
    text_escape(name, sizeof name, text_base_name(program->path));
    bool is_ok =
        (program->minor >= FIRST_MINOR && program->minor <= LAST_MINOR) ||
        error_set(error, "%s is of %s, whose heap cairn does not read (only of Go 1.%d to 1.%d)",
                  name, *program->version ? program->version : "a Go before 1.18", FIRST_MINOR,
                  LAST_MINOR);
    if (is_ok && read_symbols(program, error)) return GO_FOUND;
    image_close(&program->image);
    return GO_FAILED;
}

// ---- where it lies ------------------------------------------------------------------------------

// The virtual address of the first byte of the file.
static bool first_address(const struct image *image, uint64_t *address) {
    size_t count;
    GElf_Phdr segment;
    if (elf_getphdrnum(image->elf, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(image->elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        *address = segment.p_vaddr - segment.p_offset;
        return true;
    }
    return false;
}

// Tells that neither a dynamic linker is wanted nor one has loaded it.
static bool is_static(const struct image *image) {
    size_t count;
    GElf_Phdr segment;
    if (elf_getphdrnum(image->elf, &count)) return true;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(image->elf, (int)i, &segment) &&
            (segment.p_type == PT_INTERP || segment.p_type == PT_DYNAMIC))
            return false;
    return true;
}

// Finds where the file that a process executes begins.
static bool find_start(pid_t pid, const char *path, uint64_t *start) {
    struct maps maps;
    struct mapping mapping;
    struct error unused;
    bool is_found = false;
    if (!maps_open(&maps, pid, "maps", &unused)) return false;
    while (!is_found && maps_next(&maps, &mapping)) {
        is_found = !mapping.offset && mapping_is_file(&mapping) && !strcmp(mapping.name, path);
        if (is_found) *start = mapping.start;
    }
    maps_close(&maps);
    return is_found;
}

static void cut_deleted(char *path) {
    static const char deleted[] = " (deleted)";
    const size_t length = strlen(path), cut = sizeof deleted - 1;
    if (length > cut && !strcmp(path + length - cut, deleted)) path[length - cut] = 0;
}

// Reads a file of which the first byte is mapped at `start`.
static enum go_finding open_at(struct go_program *program, const char *file, uint64_t start,
                               struct error *error) {
    uint64_t first;
    program->image = (struct image)IMAGE_CLOSED;
    if (image_open(&program->image, file) != IMAGE_OK) return GO_ABSENT;
    cut_deleted(program->path);
    if (!first_address(&program->image, &first)) {
        image_close(&program->image);
        return GO_ABSENT;
    }
    program->bias = start - first;
    program->is_static = is_static(&program->image);
    return read_program(program, error);
}

static enum go_finding open_mapped(pid_t pid, const struct mapping *mapping,
                                   struct go_program *program, struct error *error) {
    char path[PROCESS_PATH_BYTES];
    const int file = mapped_file_open_known(pid, mapping);
    if (file < 0) return GO_ABSENT;
    snprintf(program->path, sizeof program->path, "%s", mapping->name);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const enum go_finding finding = open_at(program, path, mapping->start, error);
    close(file);
    return finding;
}

// Looks for a library of Go in another program (-buildmode=c-shared), and for a program that a
// dynamic linker was given as a word.
static enum go_finding find_library(pid_t pid, struct go_program *program, struct error *error) {
    enum go_finding finding = GO_ABSENT;
    struct maps maps;
    struct mapping mapping;
    struct error unused;
    if (!maps_open(&maps, pid, "maps", &unused)) return finding;
    while (finding == GO_ABSENT && maps_next(&maps, &mapping))
        if (!mapping.offset && mapping_is_file(&mapping))
            finding = open_mapped(pid, &mapping, program, error);
    maps_close(&maps);
    return finding;
}

enum go_finding go_program_of_process(pid_t pid, struct go_program *program, struct error *error) {
    char executable[PROCESS_PATH_BYTES];
    uint64_t start;
    enum go_finding finding = GO_ABSENT;
    memset(program, 0, sizeof *program);
    if (process_link(pid, "exe", program->path, sizeof program->path) &&
        find_start(pid, program->path, &start))
        finding = open_at(program, process_path(executable, pid, "exe"), start, error);
    return finding == GO_ABSENT ? find_library(pid, program, error) : finding;
}

// Another file with its path is told by its first bytes, which most cores have.
static bool is_same_file(const struct core_image *core, uint64_t start, const char *path) {
    enum { HEAD_BYTES = 4096 };
    uint8_t own[HEAD_BYTES], there[HEAD_BYTES];
    FILE *file = fopen(path, "rbe");
    size_t size = file ? fread(own, 1, sizeof own, file) : 0;
    if (file) fclose(file);
    return size && (!core_read(core, start, there, size) || !memcmp(own, there, size));
}

// Opens one of a core's files if it is of Go.
static enum go_finding open_file(const struct core_image *core, const struct core_file *file,
                                 const char *path, struct go_program *program,
                                 struct error *error) {
    struct bytes bytes;
    uint64_t first;
    program->image = (struct image)IMAGE_CLOSED;
    if (image_open(&program->image, path) != IMAGE_OK) return GO_ABSENT;
    bytes = image_bytes(&program->image, ".go.buildinfo", ".zgo.buildinfo");
    if (!bytes_left(&bytes) || !first_address(&program->image, &first)) {
        image_close(&program->image);
        return GO_ABSENT;
    }
    if (!is_same_file(core, file->start, path)) {
        char name[PATH_MAX];
        text_escape(name, sizeof name, path);
        image_close(&program->image);
        error_set(error, "%s is not the file that ran", name);
        return GO_FAILED;
    }
    program->bias = file->start - first;
    program->is_static = is_static(&program->image);
    return read_program(program, error);
}

enum go_finding go_program_of_core(const struct core_image *core, const char *sysroot,
                                   struct go_program *program, struct error *error) {
    enum go_finding finding = GO_ABSENT;
    for (size_t i = 0; i < core->files.count && finding == GO_ABSENT; i++) {
        const struct core_file *file = &core->files.items[i];
        char below[2 * PATH_MAX];
        if (file->offset) continue;
        memset(program, 0, sizeof *program);
        snprintf(program->path, sizeof program->path, "%s", file->path);
        cut_deleted(program->path);
        snprintf(below, sizeof below, "%s%s", sysroot ? sysroot : "", program->path);
        if (sysroot) finding = open_file(core, file, below, program, error);
        if (finding == GO_ABSENT) finding = open_file(core, file, program->path, program, error);
    }
    return finding;
}

void go_program_close(struct go_program *program) {
    image_close(&program->image);
}
