// SPDX-License-Identifier: Apache-2.0
// Compilers make of `return "text";` an address in a register, with or without a frame around it:
//
//     [endbr64] [push %rbp; mov %rsp,%rbp]  lea text(%rip),%rax  [pop %rbp | leave]  ret
//
// or, at a fixed address, `mov $text,%eax`. Anything else is not followed.
#include "tool/symbol/constant_text.h"

#include <stdlib.h>
#include <string.h>

#include "tool/symbol/bytes.h"
#include "tool/symbol/image.h"

enum { CODE_MAX = 64, TEXT_MAX = 1 << 20 };

// The file's bytes from a virtual address to the end of its segment; none: it is not in the file.
static struct bytes bytes_of(Elf *elf, uint64_t address) {
    size_t size, count = 0;
    const uint8_t *file = (const uint8_t *)elf_rawfile(elf, &size);
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; file && i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
        if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) continue;
        const uint8_t *start = file + segment.p_offset;
        return (struct bytes){.at = start + (address - segment.p_vaddr),
                              .end = start + segment.p_filesz};
    }
    return (struct bytes){0};
}

static bool find_in(Elf *elf, Elf_Scn *section, const char *function, uint64_t *address) {
    GElf_Shdr header;
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !gelf_getshdr(section, &header) || !header.sh_entsize) return false;
    for (size_t i = 0; i < data->d_size / header.sh_entsize && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) return false;
        const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
        bool is_function = GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value;
        if (!is_function || !name || strcmp(name, function) != 0) continue;
        *address = symbol.st_value;
        return true;
    }
    return false;
}

static bool find_function(Elf *elf, const char *function, uint64_t *address) {
    GElf_Shdr header;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        if (!gelf_getshdr(section, &header)) continue;
        bool has_symbols = header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM;
        if (has_symbols && find_in(elf, section, function, address)) return true;
    }
    return false;
}

// Goes over these bytes if they are next.
static bool take(struct bytes *code, const char *wanted, size_t count) {
    if (bytes_left(code) < count || memcmp(code->at, wanted, count) != 0) return false;
    bytes_skip(code, count);
    return true;
}

// The address that the code returns; false: it does something else.
static bool follow(struct bytes code, uint64_t address, uint64_t *returned) {
    const uint8_t *start = code.at;
    take(&code, "\xf3\x0f\x1e\xfa", 4);  // endbr64
    bool has_frame = take(&code, "\x55\x48\x89\xe5", 4);
    if (take(&code, "\x48\x8d\x05", 3)) {  // lea
        int32_t distance = (int32_t)bytes_number(&code, 4);
        *returned = address + (uint64_t)(code.at - start) + (uint64_t)(int64_t)distance;
    } else if (take(&code, "\xb8", 1)) {  // mov, 32 bits
        *returned = bytes_number(&code, 4);
    } else if (take(&code, "\x48\xc7\xc0", 3)) {  // mov, sign-extended
        *returned = (uint64_t)(int64_t)(int32_t)bytes_number(&code, 4);
    } else {
        return false;
    }
    if (has_frame && !take(&code, "\x5d", 1) && !take(&code, "\xc9", 1)) return false;
    return !code.is_bad && take(&code, "\xc3", 1);
}

static enum constant_text find(Elf *elf, const char *function, char **text) {
    uint64_t address, returned;
    if (!find_function(elf, function, &address)) return CONSTANT_TEXT_NONE;
    struct bytes code = bytes_of(elf, address);
    if (bytes_left(&code) > CODE_MAX) code.end = code.at + CODE_MAX;
    if (!follow(code, address, &returned)) return CONSTANT_TEXT_UNKNOWN;
    struct bytes found = bytes_of(elf, returned);
    size_t most = bytes_left(&found) < TEXT_MAX ? bytes_left(&found) : TEXT_MAX;
    if (!most || !memchr(found.at, 0, most)) return CONSTANT_TEXT_UNKNOWN;
    *text = strdup((const char *)found.at);
    return *text ? CONSTANT_TEXT_FOUND : CONSTANT_TEXT_UNKNOWN;
}

enum constant_text constant_text_find(const char *path, const uint8_t *build_id,
                                      size_t build_id_bytes, const char *function, char **text) {
    struct image image = IMAGE_CLOSED;
    enum constant_text result = CONSTANT_TEXT_NONE;
    *text = NULL;
    if (image_open(&image, path) != IMAGE_OK) return CONSTANT_TEXT_NONE;
    GElf_Ehdr header;
    bool is_known = gelf_getehdr(image.elf, &header) && header.e_machine == EM_X86_64;
    bool is_same = !build_id || image_has_build_id(&image, build_id, build_id_bytes);
    if (is_known && is_same) result = find(image.elf, function, text);
    image_close(&image);
    return result;
}
