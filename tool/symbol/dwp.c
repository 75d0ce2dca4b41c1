// SPDX-License-Identifier: Apache-2.0
// The index of a package (.debug_cu_index) is a hash table from a unit's id to a row that says
// which part of each section is the unit's. The rows are few, so they are simply looked through.
#include "tool/symbol/dwp.h"

#include <dirent.h>
#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, COLUMNS_MAX = 8, SECTIONS_MAX = 16, NAMES_BYTES = 512 };
enum { VERSION_GNU = 2, VERSION_5 = 5 };

// Sections of a .dwo file, and their columns in the index of each version; 0: whole, without one.
static const struct {
    const char *name;
    uint8_t gnu, five;
} parts[] = {
    {".debug_info.dwo", 1, 1},        {".debug_abbrev.dwo", 3, 3},   {".debug_line.dwo", 4, 4},
    {".debug_str_offsets.dwo", 6, 6}, {".debug_rnglists.dwo", 0, 8}, {".debug_str.dwo", 0, 0},
    {".debug_line_str.dwo", 0, 0},
};
enum { PART_COUNT = sizeof parts / sizeof *parts };

struct dwp {
    struct image image;
    uint8_t *memory;  // head, package, tables
    size_t bytes, package_bytes;
    bool is_object;      // an object file: its sections are a unit's, without an index
    struct bytes index;  // behind its header: ids, rows, columns, offsets, sizes
    uint32_t version, columns, units, slots;
    struct bytes addresses, ranges;  // copies of the program's, inside of the memory
};

static uint32_t number_at(const uint8_t *bytes, uint64_t index) {
    uint32_t number;
    memcpy(&number, bytes + index * sizeof number, sizeof number);
    return number;
}

// Checks the header of the index, and that all its tables are there.
static bool read_index(struct dwp *dwp) {
    struct bytes index = image_bytes(&dwp->image, ".debug_cu_index", "");
    const uint32_t version_bits = 0xffff;
    dwp->version = (uint32_t)bytes_number(&index, 4) & version_bits;
    dwp->columns = (uint32_t)bytes_number(&index, 4);
    dwp->units = (uint32_t)bytes_number(&index, 4);
    dwp->slots = (uint32_t)bytes_number(&index, 4);
    if (index.is_bad || (dwp->version != VERSION_GNU && dwp->version != VERSION_5)) return false;
    if (!dwp->columns || dwp->columns > COLUMNS_MAX) return false;
    uint64_t words = (uint64_t)dwp->slots * 3 + dwp->columns + 2ull * dwp->units * dwp->columns;
    dwp->index = index;
    return words * sizeof(uint32_t) <= bytes_left(&index);
}

static size_t page_up(size_t bytes) {
    return (bytes + HEAD_BYTES - 1) & ~(size_t)(HEAD_BYTES - 1);
}

static struct bytes copy_table(uint8_t *to, const struct bytes *table) {
    size_t size = bytes_left(table);
    if (size) memcpy(to, table->at, size);
    return (struct bytes){to, to + size, false};
}

// Puts head, package and tables one behind the other.
static bool map_all(struct dwp *dwp, const struct image *program) {
    struct stat status;
    struct bytes addresses = image_bytes(program, ".debug_addr", ".zdebug_addr");
    struct bytes ranges = image_bytes(program, ".debug_ranges", ".zdebug_ranges");
    if (fstat(dwp->image.fd, &status)) return false;
    dwp->package_bytes = (size_t)status.st_size;
    size_t package = page_up(dwp->package_bytes);
    dwp->bytes = HEAD_BYTES + package + bytes_left(&addresses) + bytes_left(&ranges);
    void *memory = mmap(NULL, dwp->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    dwp->memory = memory;
    void *there = mmap(dwp->memory + HEAD_BYTES, dwp->package_bytes, PROT_READ,
                       MAP_PRIVATE | MAP_FIXED, dwp->image.fd, 0);
    if (there == MAP_FAILED) return false;
    uint8_t *tables = dwp->memory + HEAD_BYTES + package;
    dwp->addresses = copy_table(tables, &addresses);
    dwp->ranges = copy_table(tables + bytes_left(&addresses), &ranges);
    return true;
}

struct dwp *dwp_open(const char *path, const struct image *dwarf_image) {
    struct dwp *dwp = calloc(1, sizeof *dwp);
    if (!dwp) return NULL;
    if (image_open(&dwp->image, path) == IMAGE_OK && read_index(dwp) && map_all(dwp, dwarf_image))
        return dwp;
    dwp_close(dwp);
    return NULL;
}

struct dwp *dwp_open_object(const char *path, const struct image *dwarf_image) {
    struct dwp *dwp = calloc(1, sizeof *dwp);
    GElf_Shdr header;
    if (!dwp) return NULL;
    dwp->is_object = true;
    if (image_open(&dwp->image, path) == IMAGE_OK &&
        image_section(&dwp->image, parts[0].name, &header) && map_all(dwp, dwarf_image))
        return dwp;
    dwp_close(dwp);
    return NULL;
}

void dwp_close(struct dwp *dwp) {
    if (!dwp) return;
    if (dwp->memory) munmap(dwp->memory, dwp->bytes);
    image_close(&dwp->image);
    free(dwp);
}

// Row of the unit, counted from 1; 0: there is none.
static uint32_t find_row(const struct dwp *dwp, uint64_t id) {
    const uint8_t *ids = dwp->index.at, *rows = ids + (size_t)dwp->slots * sizeof id;
    for (uint32_t slot = 0; slot < dwp->slots; slot++) {
        uint64_t there;
        memcpy(&there, ids + (size_t)slot * sizeof there, sizeof there);
        uint32_t row = number_at(rows, slot);
        if (there == id && row && row <= dwp->units) return row;
    }
    return 0;
}

// The unit's part of the section in a column; false: it has none.
static bool find_part(const struct dwp *dwp, uint32_t row, uint32_t column, uint64_t *offset,
                      uint64_t *size) {
    const uint64_t words_of_slot = 3;
    const uint8_t *columns = dwp->index.at + dwp->slots * words_of_slot * sizeof(uint32_t);
    for (uint32_t i = 0; i < dwp->columns; i++) {
        if (number_at(columns, i) != column) continue;
        uint64_t at = (uint64_t)dwp->columns * row + i;  // behind the columns' numbers
        *offset = number_at(columns, at);
        *size = number_at(columns, at + (uint64_t)dwp->units * dwp->columns);
        return true;
    }
    return false;
}

// The ELF file in the making.
struct maker {
    Elf64_Shdr sections[SECTIONS_MAX];
    char names[NAMES_BYTES];
    uint32_t count, name_bytes;
};

static void add_section(struct maker *maker, const char *name, uint32_t type, uint64_t offset,
                        uint64_t size) {
    if (maker->count == SECTIONS_MAX || maker->name_bytes + strlen(name) + 1 > NAMES_BYTES) return;
    maker->sections[maker->count++] = (Elf64_Shdr){.sh_name = maker->name_bytes,
                                                   .sh_type = type,
                                                   .sh_offset = offset,
                                                   .sh_size = size,
                                                   .sh_addralign = 1};
    memcpy(maker->names + maker->name_bytes, name, strlen(name) + 1);
    maker->name_bytes += (uint32_t)strlen(name) + 1;
}

// The unit's part of a section of the package, or all of one without a column.
static bool add_part(const struct dwp *dwp, struct maker *maker, size_t part, uint32_t row) {
    GElf_Shdr header;
    uint64_t offset = 0, size;
    bool is_five = dwp->version == VERSION_5;
    uint32_t column = dwp->is_object ? 0 : is_five ? parts[part].five : parts[part].gnu;
    if (!image_section(&dwp->image, parts[part].name, &header)) return true;
    size = header.sh_size;
    if (header.sh_flags & SHF_COMPRESSED) return false;
    if (column && !find_part(dwp, row, column, &offset, &size)) return true;
    if (offset > header.sh_size || size > header.sh_size - offset) return false;
    if (header.sh_offset > dwp->package_bytes ||
        header.sh_size > dwp->package_bytes - header.sh_offset)
        return false;
    add_section(maker, parts[part].name, SHT_PROGBITS, HEAD_BYTES + header.sh_offset + offset,
                size);
    return true;
}

static void write_head(struct dwp *dwp, struct maker *maker) {
    const uint64_t names_at = sizeof(Elf64_Ehdr), sections_at = names_at + NAMES_BYTES;
    add_section(maker, ".shstrtab", SHT_STRTAB, names_at, NAMES_BYTES);
    Elf64_Ehdr head = {.e_type = ET_REL,
                       .e_machine = EM_X86_64,
                       .e_version = EV_CURRENT,
                       .e_shoff = sections_at,
                       .e_ehsize = sizeof head,
                       .e_shentsize = sizeof *maker->sections,
                       .e_shnum = (Elf64_Half)maker->count,
                       .e_shstrndx = (Elf64_Half)(maker->count - 1)};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    memcpy(dwp->memory, &head, sizeof head);
    memcpy(dwp->memory + names_at, maker->names, sizeof maker->names);
    memcpy(dwp->memory + sections_at, maker->sections, sizeof maker->sections);
}

// A table of the program from the offset on that an attribute of the skeleton says; DWARF 5 and
// GNU's form have an attribute each.
static struct bytes table_of(const struct bytes *table, Dwarf_Die *skeleton, unsigned name,
                             unsigned gnu_name) {
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    struct bytes part = *table;
    if (dwarf_formudata(dwarf_attr(skeleton, name, &attribute), &offset) &&
        dwarf_formudata(dwarf_attr(skeleton, gnu_name, &attribute), &offset))
        offset = 0;
    bytes_skip(&part, offset);
    return part;
}

static void add_table(const struct dwp *dwp, struct maker *maker, const char *name,
                      const struct bytes *table) {
    uint64_t offset = table->at ? (uint64_t)(table->at - dwp->memory) : 0;
    if (bytes_left(table)) add_section(maker, name, SHT_PROGBITS, offset, bytes_left(table));
}

static bool make_file(struct dwp *dwp, uint32_t row, const struct dwp_unit *unit) {
    struct maker maker = {.count = 0};
    add_section(&maker, "", SHT_NULL, 0, 0);
    for (size_t i = 0; i < PART_COUNT; i++)
        if (!add_part(dwp, &maker, i, row)) return false;
    add_table(dwp, &maker, ".debug_addr.dwo", &unit->addresses);
    add_table(dwp, &maker, ".debug_ranges.dwo", &unit->ranges);
    write_head(dwp, &maker);
    return true;
}

// The unit with this id: a package's part is one unit, an object may have several.
static bool find_unit(struct dwp_unit *unit, uint64_t id) {
    Dwarf_CU *at = NULL;
    uint64_t found;
    while (!dwarf_get_units(unit->dwarf, at, &at, NULL, NULL, &unit->die, NULL))
        if (!dwarf_cu_info(at, NULL, NULL, NULL, NULL, &found, NULL, NULL) && found == id)
            return true;
    return false;
}

bool dwp_unit_open(struct dwp *dwp, Dwarf_Die *skeleton, struct dwp_unit *unit) {
    Dwarf_Half version;
    uint64_t id;
    *unit = (struct dwp_unit){.elf = NULL};
    if (dwarf_cu_info(skeleton->cu, &version, NULL, NULL, NULL, &id, NULL, NULL)) return false;
    uint32_t row = dwp->is_object ? 1 : find_row(dwp, id);
    if (!row) return false;
    unit->version = (uint8_t)version;
    unit->addresses = table_of(&dwp->addresses, skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base);
    unit->ranges = table_of(&dwp->ranges, skeleton, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base);
    if (dwarf_lowpc(skeleton, &unit->low)) unit->low = 0;
    if (!make_file(dwp, row, unit)) return false;
    unit->elf = elf_memory((char *)dwp->memory, dwp->bytes);
    unit->dwarf = unit->elf ? dwarf_begin_elf(unit->elf, DWARF_C_READ, NULL) : NULL;
    if (unit->dwarf && find_unit(unit, id)) return true;
    dwp_unit_close(unit);
    return false;
}

void dwp_unit_close(struct dwp_unit *unit) {
    if (unit->dwarf) dwarf_end(unit->dwarf);
    if (unit->elf) elf_end(unit->elf);
    *unit = (struct dwp_unit){.elf = NULL};
}

// libdw counts ranges of a split unit from the skeleton's address, which it does not know for a
// unit of a package: so the lists are read here.

enum { ADDRESS_BYTES = 8, OFFSET_BYTES = 4, LIST_HEAD_BYTES = 12 };

static uint64_t address_of(const struct dwp_unit *unit, uint64_t index) {
    struct bytes table = unit->addresses;
    if (index > bytes_left(&table) / ADDRESS_BYTES) return 0;
    bytes_skip(&table, index * ADDRESS_BYTES);
    return bytes_number(&table, ADDRESS_BYTES);
}

static struct bytes section_of(const struct dwp_unit *unit, const char *name) {
    struct image image = IMAGE_CLOSED;
    image.elf = unit->elf;
    if (elf_getshdrstrndx(image.elf, &image.string_section) < 0) return (struct bytes){0};
    return image_bytes(&image, name, "");
}

// Where the DIE's list begins.
static struct bytes list_of(const struct dwp_unit *unit, Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    struct bytes list = {0};
    if (!dwarf_attr_integrate(die, DW_AT_ranges, &attribute)) return list;
    bool is_old = unit->version < 5;
    list = is_old ? unit->ranges : section_of(unit, ".debug_rnglists.dwo");
    if (dwarf_formudata(&attribute, &value)) return (struct bytes){0};
    if (attribute.form == DW_FORM_rnglistx) {
        struct bytes offsets = list;
        bytes_skip(&offsets, LIST_HEAD_BYTES);
        if (value > bytes_left(&offsets) / OFFSET_BYTES) return (struct bytes){0};
        bytes_skip(&offsets, value * OFFSET_BYTES);
        value = LIST_HEAD_BYTES + bytes_number(&offsets, OFFSET_BYTES);
    }
    bytes_skip(&list, value);
    return list;
}

// DWARF 4: pairs; all ones and a base; two zeros end the list.
static bool next_old(struct dwp_ranges *ranges, uint64_t *start, uint64_t *end) {
    while (bytes_left(&ranges->list)) {
        *start = bytes_number(&ranges->list, ADDRESS_BYTES);
        *end = bytes_number(&ranges->list, ADDRESS_BYTES);
        if (ranges->list.is_bad || (!*start && !*end)) return false;
        if (*start != UINT64_MAX) {
            *start += ranges->base;
            *end += ranges->base;
            return true;
        }
        ranges->base = *end;
    }
    return false;
}

// One entry of DWARF 5; `is_range` says whether it is one. False: the end.
static bool read_entry(const struct dwp_unit *unit, struct dwp_ranges *ranges, uint64_t *start,
                       uint64_t *end, bool *is_range) {
    struct bytes *list = &ranges->list;
    *is_range = true;
    switch (bytes_u8(list)) {
    case DW_RLE_base_addressx:
        ranges->base = address_of(unit, bytes_uleb(list));
        *is_range = false;
        return true;
    case DW_RLE_base_address:
        ranges->base = bytes_number(list, ADDRESS_BYTES);
        *is_range = false;
        return true;
    case DW_RLE_startx_endx:
        *start = address_of(unit, bytes_uleb(list));
        *end = address_of(unit, bytes_uleb(list));
        return true;
    case DW_RLE_startx_length:
        *start = address_of(unit, bytes_uleb(list));
        *end = *start + bytes_uleb(list);
        return true;
    case DW_RLE_offset_pair:
        *start = ranges->base + bytes_uleb(list);
        *end = ranges->base + bytes_uleb(list);
        return true;
    case DW_RLE_start_end:
        *start = bytes_number(list, ADDRESS_BYTES);
        *end = bytes_number(list, ADDRESS_BYTES);
        return true;
    case DW_RLE_start_length:
        *start = bytes_number(list, ADDRESS_BYTES);
        *end = *start + bytes_uleb(list);
        return true;
    default:
        return false;
    }
}

bool dwp_ranges_next(const struct dwp_unit *unit, Dwarf_Die *die, struct dwp_ranges *ranges,
                     uint64_t *start, uint64_t *end) {
    if (!ranges->is_open)
        *ranges =
            (struct dwp_ranges){.list = list_of(unit, die), .base = unit->low, .is_open = true};
    if (unit->version < 5) return next_old(ranges, start, end);
    bool is_range = false;
    while (!is_range && bytes_left(&ranges->list))
        if (!read_entry(unit, ranges, start, end, &is_range) || ranges->list.is_bad) return false;
    return is_range;
}

// dpkg's own lists are read: asking dpkg-query would be another program, and takes as long.

#define LISTS "/var/lib/dpkg/info"
#define STATUS "/var/lib/dpkg/status"

// The names under which a list may know a file: as it is, and without /usr, where /lib and /bin are
// links to what is below it.
struct names {
    const char *whole, *without_usr;
};

static bool has_line(FILE *list, const struct names *names) {
    char line[PATH_MAX];
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, names->whole)) return true;
        if (names->without_usr && !strcmp(line, names->without_usr)) return true;
    }
    return false;
}

static bool is_in_list(const char *file_name, const struct names *names) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, LISTS "/%s", file_name) >= (int)sizeof path) return false;
    FILE *list = fopen(path, "re");
    bool is_in = list && has_line(list, names);
    if (list) fclose(list);
    return is_in;
}

bool package_of(const char *path, char *name, size_t size) {
    static const char usr[] = "/usr", suffix[] = ".list";
    char real[PATH_MAX];
    DIR *lists = realpath(path, real) ? opendir(LISTS) : NULL;
    if (!lists) return false;
    const struct names names = {real, strncmp(real, usr, strlen(usr)) ? NULL : real + strlen(usr)};
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(lists));) {
        size_t length = strlen(entry->d_name);
        if (length <= strlen(suffix) ||
            strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
            continue;
        is_found = is_in_list(entry->d_name, &names);
        if (is_found) snprintf(name, size, "%.*s", (int)strcspn(entry->d_name, ":"), entry->d_name);
    }
    closedir(lists);
    char *dot = is_found ? strstr(name, suffix) : NULL;
    if (dot && !dot[strlen(suffix)]) *dot = 0;
    return is_found;
}

// Debian's packages of debug symbols that are made by hand go by the package, or by the source of
// several packages that begin with its name (python3.11-dbg for python3.11-minimal).
void package_of_symbols(const char *package, char *name, size_t size) {
    static const char package_key[] = "Package: ", source_key[] = "Source: ";
    char line[PATH_MAX];
    size_t length = strlen(package);
    FILE *status = fopen(STATUS, "re");
    bool is_here = false;
    while (status && fgets(line, sizeof line, status)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, package_key, strlen(package_key)))
            is_here = !strcmp(line + strlen(package_key), package);
        if (!is_here || strncmp(line, source_key, strlen(source_key)) != 0) continue;
        const char *source = line + strlen(source_key);
        size_t source_length = strcspn(source, " ");
        bool is_stem = source_length < length && !strncmp(package, source, source_length) &&
                       package[source_length] == '-';
        if (is_stem) length = source_length;
        break;
    }
    if (status) fclose(status);
    snprintf(name, size, "%.*s-dbg", (int)length, package);
}
