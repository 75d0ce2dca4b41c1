// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/executable.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool/proc/process.h"

static bool read_file(struct executable *executable) {
    elf_version(EV_CURRENT);
    if (executable->file >= 0) executable->elf = elf_begin(executable->file, ELF_C_READ_MMAP, NULL);
    return executable->elf && elf_kind(executable->elf) == ELF_K_ELF &&
           gelf_getclass(executable->elf) == ELFCLASS64;
}

bool executable_open(struct executable *executable, const struct remote *remote) {
    *executable = (struct executable){.file = -1, .pid = remote->pid};
    if (program_place_find(&executable->place, remote))
        executable->file = program_place_open(&executable->place, remote);
    return read_file(executable);
}

bool executable_open_file(struct executable *executable, const char *path) {
    *executable = (struct executable){.file = open(path, O_RDONLY | O_CLOEXEC)};
    return read_file(executable);
}

void executable_close(struct executable *executable) {
    if (executable->elf) elf_end(executable->elf);
    if (executable->file >= 0) close(executable->file);
}

// By the address of its entry in the auxiliary vector, unless the dynamic linker was given it.
bool executable_bias(const struct executable *executable, uint64_t *bias) {
    GElf_Ehdr header;
    uint64_t entry;
    *bias = executable->place.bias;
    if (!executable->pid || executable->place.is_given) return true;
    bool is_known = gelf_getehdr(executable->elf, &header) &&
                    process_auxiliary(executable->pid, AT_ENTRY, &entry);
    if (is_known) *bias = entry - header.e_entry;
    return is_known;
}

void executable_extent(Elf *elf, uint64_t bias, uint64_t *low, uint64_t *high,
                       uint64_t *entry_point) {
    size_t count = 0;
    GElf_Phdr segment;
    GElf_Ehdr header;
    *low = UINT64_MAX;
    if (gelf_getehdr(elf, &header)) *entry_point = bias + header.e_entry;
    if (elf_getphdrnum(elf, &count) != 0) count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        uint64_t start = bias + segment.p_vaddr, end = start + segment.p_memsz;
        if (start < *low) *low = start;
        if (end > *high) *high = end;
    }
}

bool executable_is_static(Elf *elf) {
    size_t count = 0;
    GElf_Phdr segment;
    if (elf_getphdrnum(elf, &count) != 0) return false;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_INTERP) return false;
    return count;
}

bool executable_code(Elf *elf, uint64_t bias, uint64_t address, uint64_t size,
                     struct code_function *function) {
    size_t count = 0, file_bytes = 0;
    GElf_Phdr segment;
    const char *file = elf_rawfile(elf, &file_bytes);
    if (!file || elf_getphdrnum(elf, &count) != 0) return false;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        uint64_t offset = address - bias - segment.p_vaddr;
        if (offset >= segment.p_filesz || size > segment.p_filesz - offset ||
            segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset)
            continue;
        uint64_t left = segment.p_filesz - offset - size;
        *function = (struct code_function){
            .bytes = (const uint8_t *)file + segment.p_offset + offset,
            .size = (size_t)size,
            .available = (size_t)size + (left < CODE_PADDING_MAX ? left : CODE_PADDING_MAX),
            .address = address};
        return true;
    }
    return false;
}
