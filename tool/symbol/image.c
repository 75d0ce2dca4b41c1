// SPDX-License-Identifier: Apache-2.0
// Several names for one address are common in C libraries (malloc, __libc_malloc, __malloc): the
// one with the fewest leading underscores is what people call it, then the most public one.
#include "tool/symbol/image.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/symbol/unpack.h"

#include "tool/symbol/unpack.h"

// What libelf cannot unpack is unpacked before it looks.
static void image_unpack(struct image *image) {
    void *memory;
    size_t bytes;
    if (!unpack_zstd(image->elf, &memory, &bytes)) return;
    elf_end(image->elf);
    free(image->memory);
    image->memory = memory;
    image->elf = elf_memory(memory, bytes);
}

static enum image_result image_begin(struct image *image) {
    if (!image->elf || elf_kind(image->elf) != ELF_K_ELF) return IMAGE_NOT_ELF;
    image_unpack(image);
    if (!image->elf) return IMAGE_NOT_ELF;
    if (elf_getshdrstrndx(image->elf, &image->string_section) < 0) return IMAGE_NOT_ELF;
    const void *build_id;
    ssize_t bytes = dwelf_elf_gnu_build_id(image->elf, &build_id);
    if (bytes > 0 && bytes <= IMAGE_BUILD_ID_MAX) {
        memcpy(image->build_id, build_id, (size_t)bytes);
        image->build_id_bytes = (size_t)bytes;
    }
    return IMAGE_OK;
}

enum image_result image_open(struct image *image, const char *path) {
    *image = (struct image)IMAGE_CLOSED;
    // A pipe in the place of a file must not block.
    image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (image->fd < 0) return IMAGE_MISSING;
    struct stat status;
    enum image_result result = IMAGE_NOT_A_FILE;
    if (!fstat(image->fd, &status) && S_ISREG(status.st_mode)) {
        elf_version(EV_CURRENT);
        image->elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
        result = image_begin(image);
    }
    if (result != IMAGE_OK) image_close(image);
    return result;
}

enum image_result image_open_memory(struct image *image, void *memory, size_t bytes) {
    *image = (struct image)IMAGE_CLOSED;
    image->memory = memory;
    elf_version(EV_CURRENT);
    image->elf = elf_memory(memory, bytes);
    enum image_result result = image_begin(image);
    if (result != IMAGE_OK) image_close(image);
    return result;
}

void image_close(struct image *image) {
    if (image->elf) elf_end(image->elf);
    if (image->fd >= 0) close(image->fd);
    free(image->memory);
    *image = (struct image)IMAGE_CLOSED;
}

Elf_Scn *image_section(const struct image *image, const char *name, GElf_Shdr *header) {
    if (!image->elf) return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
        if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS) continue;
        const char *found = elf_strptr(image->elf, image->string_section, header->sh_name);
        if (found && !strcmp(found, name) && header->sh_size) return section;
    }
    return NULL;
}

struct bytes image_bytes(const struct image *image, const char *name, const char *packed_name) {
    GElf_Shdr header;
    Elf_Scn *section = image_section(image, name, &header);
    if (!section) section = image_section(image, packed_name, &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    if (!data || !data->d_buf) return (struct bytes){0};
    return (struct bytes){data->d_buf, (const uint8_t *)data->d_buf + data->d_size, false};
}

Elf_Scn *image_section_of_type(const struct image *image, uint32_t type, GElf_Shdr *header) {
    if (!image->elf) return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
        if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_size)
            return section;
    return NULL;
}

bool image_has_dwarf(const struct image *image) {
    GElf_Shdr header;
    return image_section(image, ".debug_info", &header) ||
           image_section(image, ".zdebug_info", &header);
}

uint64_t image_symbol_bytes(const struct image *image) {
    uint64_t sum = 0;
    if (!image->elf) return 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
        GElf_Shdr header;
        GElf_Chdr packed;
        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS) continue;
        const char *name = elf_strptr(image->elf, image->string_section, header.sh_name);
        bool is_debug = name && (!strncmp(name, ".debug_", strlen(".debug_")) ||
                                 !strncmp(name, ".zdebug_", strlen(".zdebug_")));
        bool is_symbols = header.sh_type == SHT_SYMTAB || header.sh_type == SHT_STRTAB;
        if (!is_debug && !is_symbols) continue;
        bool is_packed = header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed);
        uint64_t bytes = is_packed ? packed.ch_size : header.sh_size;
        sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

uint64_t image_file_bytes(const struct image *image) {
    size_t bytes = 0;
    return image->elf && elf_rawfile(image->elf, &bytes) ? bytes : 0;
}

bool image_has_build_id(const struct image *image, const uint8_t *build_id, size_t bytes) {
    return bytes && image->build_id_bytes == bytes && !memcmp(image->build_id, build_id, bytes);
}

bool image_is_code(const struct image *image, uint64_t address) {
    size_t count = 0;
    if (elf_getphdrnum(image->elf, &count) < 0) return false;
    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(image->elf, (int)i, &segment)) continue;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_memsz)
            return true;
    }
    return false;
}

#define UNDERSCORES_MAX 3
#define LOOK_BACK_MAX 64  // symbols that may start inside a function before its end

// How starts are sorted; a short table is left to comparisons.
enum { START_DIGIT_BITS = 11, START_DIGITS = 1 << START_DIGIT_BITS, COMPARED_MAX = 64 };

static uint8_t name_rank(const char *name, const GElf_Sym *symbol) {
    unsigned underscores = 0;
    while (underscores < UNDERSCORES_MAX && name[underscores] == '_') underscores++;
    if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2)) underscores = 0;
    unsigned publicity = GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ? 2 : 0;
    if (GELF_ST_BIND(symbol->st_info) == STB_WEAK) publicity = 1;
    return (uint8_t)((UNDERSCORES_MAX - underscores) * 4 + publicity);
}

// Labels of assembly code have no type; mapping symbols ("$x") and local labels (".L1") are none.
static bool is_function(const struct image *image, const GElf_Sym *symbol, const char *name) {
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || !name[0]) return false;
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
    return type == STT_NOTYPE && name[0] != '$' && name[0] != '.' &&
           image_is_code(image, symbol->st_value);
}

static bool is_object(const GElf_Sym *symbol) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
           GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

static bool symtab_reserve(struct symtab *symtab, size_t more) {
    if (symtab->capacity - symtab->count >= more) return true;
    size_t capacity = symtab->count + more;
    struct symtab_entry *entries = reallocarray(symtab->entries, capacity, sizeof *entries);
    if (!entries) return false;
    symtab->entries = entries;
    symtab->capacity = capacity;
    return true;
}

bool symtab_add(struct symtab *symtab, const struct image *image, uint32_t type, bool *added) {
    *added = false;
    GElf_Shdr header;
    Elf_Scn *section = image_section_of_type(image, type, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t entry_bytes = gelf_fsize(image->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (!data || !entry_bytes) return true;
    size_t count = data->d_size / entry_bytes;
    if (count > INT32_MAX || !symtab_reserve(symtab, count)) return count > INT32_MAX;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) continue;
        const char *name = elf_strptr(image->elf, header.sh_link, symbol.st_name);
        bool is_data = symtab->has_data && is_object(&symbol);
        if (!name || (!is_data && !is_function(image, &symbol, name))) continue;
        symtab->entries[symtab->count++] =
            (struct symtab_entry){symbol.st_value, symbol.st_size, name, name_rank(name, &symbol),
                                  GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE};
        *added = true;
    }
    symtab->is_sorted = false;
    return true;
}

static int entry_compare(const void *left, const void *right) {
    const struct symtab_entry *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->is_label != b->is_label) return a->is_label ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return strcmp(b->name, a->name);
}

// Orders `count` entries by one digit of their start; what has the same one stays as it was.
static void sort_by_digit(const struct symtab_entry *from, size_t count, unsigned shift,
                          struct symtab_entry *to) {
    size_t ends[START_DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++) ends[(from[i].start >> shift) % START_DIGITS + 1]++;
    for (size_t digit = 0; digit < START_DIGITS; digit++) ends[digit + 1] += ends[digit];
    for (size_t i = 0; i < count; i++)
        to[ends[(from[i].start >> shift) % START_DIGITS]++] = from[i];
}

// By their start, a digit after the other, from the lowest on: comparing each with a dozen others
// took half of what the names of a library with 17,000 functions cost. False without memory.
static bool sort_by_start(struct symtab *symtab) {
    uint64_t highest = 0;
    struct symtab_entry *other = calloc(symtab->count, sizeof *other);
    if (!other) return false;
    for (size_t i = 0; i < symtab->count; i++)
        if (symtab->entries[i].start > highest) highest = symtab->entries[i].start;
    const unsigned bits = 8 * sizeof highest;
    for (unsigned shift = 0; shift < bits && highest >> shift; shift += START_DIGIT_BITS) {
        struct symtab_entry *sorted = other;
        sort_by_digit(symtab->entries, symtab->count, shift, sorted);
        other = symtab->entries;
        symtab->entries = sorted;
    }
    symtab->capacity = symtab->count;
    free(other);
    return true;
}

static void sort_entries(struct symtab *symtab) {
    const size_t count = symtab->count;
    if (count <= COMPARED_MAX || !sort_by_start(symtab)) {
        qsort(symtab->entries, count, sizeof *symtab->entries, entry_compare);
        return;
    }
    struct symtab_entry *entries = symtab->entries;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && entries[next].start == entries[i].start;) next++;
        if (next - i > 1) qsort(&entries[i], next - i, sizeof *entries, entry_compare);
    }
}

// Sorts, and lets functions of unknown size reach to the next symbol.
static void symtab_sort(struct symtab *symtab) {
    sort_entries(symtab);
    symtab->is_sorted = true;
    uint64_t next_start = UINT64_MAX;
    for (size_t i = symtab->count; i > 0; i--) {
        struct symtab_entry *entry = &symtab->entries[i - 1];
        if (i < symtab->count && symtab->entries[i].start != entry->start)
            next_start = symtab->entries[i].start;
        if (!entry->size) entry->size = next_start - entry->start;
    }
}

const struct symtab_entry *symtab_find(struct symtab *symtab, uint64_t address) {
    if (!symtab->count) return NULL;
    if (!symtab->is_sorted) symtab_sort(symtab);
    size_t low = 0, high = symtab->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symtab->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct symtab_entry *label = NULL;
    for (size_t i = low; i > 0 && low - i < LOOK_BACK_MAX; i--) {
        const struct symtab_entry *entry = &symtab->entries[i - 1];
        if (address - entry->start >= entry->size) continue;
        if (!entry->is_label) return entry;
        if (!label) label = entry;
    }
    return label;
}

void symtab_free(struct symtab *symtab) {
    free(symtab->entries);
    *symtab = (struct symtab){0};
}
