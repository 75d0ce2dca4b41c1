// SPDX-License-Identifier: Apache-2.0
// Reads what the dynamic linker would: the dynamic section's list of libraries, and the hash table
// of the symbols that the program defines (GNU's form). Every offset may lie; what cannot be read
// is as if it were not there.
#include "runtime/sys/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "runtime/sys/sys.h"

enum {
    SEGMENTS_MAX = 24,
    ENTRIES_AT_ONCE = 16,
    ENTRIES_MAX = 512,
    LIBRARIES_MAX = 48,
    NAME_BYTES = 24,  // longer than any name that is looked for
    CHAIN_MAX = 256,
    GROUPS_MAX = 256,
    NOTES_MAX = 16,
    SCRIPT_LINE_BYTES = 256,   // the kernel reads no more
    FILE_SYSTEM_NOSUID = 0x2,  // ST_NOSUID, which is libc's
};

struct image {
    int file;
    bool is_executable;  // by its type or flags, unlike the dynamic linker as a program
    unsigned segment_count, library_count;
    Elf64_Phdr segments[SEGMENTS_MAX];
    uint64_t strings, symbols, hash;    // addresses; 0: none
    uint64_t libraries[LIBRARIES_MAX];  // offsets of their names in `strings`
};

static const struct {
    enum cairn_unrecorded kind;
    char library[NAME_BYTES], symbol[NAME_BYTES];
} sanitizers[] = {
#define SANITIZER(kind, library, symbol, name, has_to_be_first)                                    \
    {CAIRN_UNRECORDED_##kind, library, symbol},
#include "format/sanitizers.def"
#undef SANITIZER
};
enum { SANITIZER_COUNT = sizeof sanitizers / sizeof *sanitizers };

static bool read_at(const struct image *image, uint64_t offset, void *out, size_t bytes) {
    return sys_call(SYS_pread64, image->file, (long)out, (long)bytes, (long)offset, 0, 0) ==
           (long)bytes;
}

// What lies at an address of the program; false if the file does not have it.
static bool read_address(const struct image *image, uint64_t address, void *out, size_t bytes) {
    for (unsigned i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_LOAD || address - segment->p_vaddr >= segment->p_filesz) continue;
        return read_at(image, segment->p_offset + (address - segment->p_vaddr), out, bytes);
    }
    return false;
}

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#else
enum { OWN_MACHINE = EM_AARCH64 };
#endif

static bool is_foreign(const Elf64_Ehdr *header) {
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           (header->e_ident[EI_CLASS] == ELFCLASS32 || header->e_machine != OWN_MACHINE);
}

static bool read_segments(struct image *image, const Elf64_Ehdr *read) {
    const Elf64_Ehdr header = *read;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof *image->segments || header.e_phnum > SEGMENTS_MAX)
        return false;
    image->segment_count = header.e_phnum;
    image->is_executable = header.e_type == ET_EXEC;
    return read_at(image, header.e_phoff, image->segments, header.e_phnum * sizeof(Elf64_Phdr));
}

// False at the last entry.
static bool note_entry(struct image *image, const Elf64_Dyn *entry) {
    if (entry->d_tag == DT_STRTAB) image->strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) image->symbols = entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) image->hash = entry->d_un.d_ptr;
    if (entry->d_tag == DT_FLAGS_1) image->is_executable |= (entry->d_un.d_val & DF_1_PIE) != 0;
    if (entry->d_tag == DT_NEEDED && image->library_count < LIBRARIES_MAX)
        image->libraries[image->library_count++] = entry->d_un.d_val;
    return entry->d_tag != DT_NULL;
}

static void read_dynamic(struct image *image, const Elf64_Phdr *segment) {
    Elf64_Dyn entries[ENTRIES_AT_ONCE];
    uint64_t count = segment->p_filesz / sizeof *entries;
    if (count > ENTRIES_MAX) count = ENTRIES_MAX;
    for (uint64_t at = 0; at < count; at += ENTRIES_AT_ONCE) {
        uint64_t some = count - at < ENTRIES_AT_ONCE ? count - at : ENTRIES_AT_ONCE;
        if (!read_at(image, segment->p_offset + at * sizeof *entries, entries,
                     some * sizeof *entries))
            return;
        for (uint64_t i = 0; i < some; i++)
            if (!note_entry(image, &entries[i])) return;
    }
}

enum cairn_unrecorded image_of_library(const char *name) {
    for (unsigned i = 0; i < SANITIZER_COUNT; i++)
        if (!strncmp(name, sanitizers[i].library, strlen(sanitizers[i].library)))
            return sanitizers[i].kind;
    return CAIRN_UNRECORDED_NONE;
}

static enum cairn_unrecorded look_at_libraries(const struct image *image) {
    for (unsigned i = 0; i < image->library_count; i++) {
        char name[NAME_BYTES];
        if (!read_address(image, image->strings + image->libraries[i], name, sizeof name)) continue;
        enum cairn_unrecorded kind = image_of_library(name);
        if (kind) return kind;
    }
    return CAIRN_UNRECORDED_NONE;
}

static uint32_t hash_of(const char *name) {
    const uint32_t start = 5381, factor = 33;
    uint32_t hash = start;
    for (; *name; name++) hash = hash * factor + (uint8_t)*name;
    return hash;
}

static bool is_symbol(const struct image *image, uint64_t index, const char *name) {
    Elf64_Sym symbol;
    char found[NAME_BYTES];
    return read_address(image, image->symbols + index * sizeof symbol, &symbol, sizeof symbol) &&
           symbol.st_shndx != SHN_UNDEF &&
           read_address(image, image->strings + symbol.st_name, found, strlen(name) + 1) &&
           !memcmp(found, name, strlen(name) + 1);
}

// The table's head, a filter of words with two bits a name, buckets with the first symbol of each
// chain, chains with the symbols' hashes, whose lowest bit is the end.
struct hash_head {
    uint32_t bucket_count, first_symbol, filter_words, filter_shift;
};

static bool is_defined(const struct image *image, const struct hash_head *head, const char *name) {
    const uint32_t word_bits = 64;
    uint32_t hash = hash_of(name), index = 0, link = 0;
    uint64_t filter = image->hash + sizeof *head, word = 0;
    uint64_t buckets = filter + head->filter_words * (uint64_t)sizeof word;
    uint64_t chains = buckets + head->bucket_count * (uint64_t)sizeof index;
    uint64_t place = filter + hash / word_bits % head->filter_words * sizeof word;
    if (!read_address(image, place, &word, sizeof word)) return false;
    uint32_t other = head->filter_shift < 32 ? hash >> head->filter_shift : 0;
    if (!(word >> hash % word_bits & word >> other % word_bits & 1)) return false;
    place = buckets + hash % head->bucket_count * sizeof index;
    if (!read_address(image, place, &index, sizeof index) || index < head->first_symbol)
        return false;
    for (unsigned i = 0; i < CHAIN_MAX && !(link & 1); i++, index++) {
        place = chains + (index - head->first_symbol) * (uint64_t)sizeof link;
        if (!read_address(image, place, &link, sizeof link)) return false;
        if ((link | 1) == (hash | 1) && is_symbol(image, index, name)) return true;
    }
    return false;
}

static enum cairn_unrecorded look_at_symbols(const struct image *image) {
    struct hash_head head;
    if (!image->hash || !read_address(image, image->hash, &head, sizeof head)) return 0;
    if (!head.bucket_count || !head.filter_words) return CAIRN_UNRECORDED_NONE;
    for (unsigned i = 0; i < SANITIZER_COUNT; i++)
        if (is_defined(image, &head, sanitizers[i].symbol)) return sanitizers[i].kind;
    return CAIRN_UNRECORDED_NONE;
}

static bool has_segment(const struct image *image, uint32_t type) {
    for (unsigned i = 0; i < image->segment_count; i++)
        if (image->segments[i].p_type == type) return true;
    return false;
}

// A static program with the runtime linked in has a note of it (bindings/static/static.c).
static bool has_own_note(const struct image *image) {
    struct {
        uint32_t name_bytes, text_bytes, type;
        char name[sizeof "cairn"];
    } note;
    for (unsigned i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        uint64_t end = segment->p_offset + segment->p_filesz, at = segment->p_offset;
        if (segment->p_type != PT_NOTE) continue;
        for (unsigned k = 0; k < NOTES_MAX && at < end; k++) {
            const uint64_t step = sizeof(uint32_t), head = 3 * step;
            if (!read_at(image, at, &note, sizeof note)) break;
            if (note.name_bytes == sizeof note.name &&
                !memcmp(note.name, "cairn", sizeof note.name))
                return true;
            at += head + ((uint64_t)note.name_bytes + step - 1) / step * step +
                  ((uint64_t)note.text_bytes + step - 1) / step * step;
        }
    }
    return false;
}

static enum cairn_unrecorded look_at_static(const struct image *image) {
    if (has_own_note(image)) return CAIRN_UNRECORDED_ITSELF;
    return image->is_executable ? CAIRN_UNRECORDED_STATIC : CAIRN_UNRECORDED_NONE;
}

static enum cairn_unrecorded look_at_elf(int file, const Elf64_Ehdr *header) {
    struct image image;
    image.file = file;
    image.library_count = 0;
    image.strings = image.symbols = image.hash = 0;
    if (is_foreign(header)) return CAIRN_UNRECORDED_MACHINE;
    if (!read_segments(&image, header)) return CAIRN_UNRECORDED_NONE;
    for (unsigned i = 0; i < image.segment_count; i++)
        if (image.segments[i].p_type == PT_DYNAMIC) read_dynamic(&image, &image.segments[i]);
    enum cairn_unrecorded found = look_at_libraries(&image);
    if (!found) found = look_at_symbols(&image);
    return found || has_segment(&image, PT_INTERP) ? found : look_at_static(&image);
}

// The file of a script's interpreter; below 0: it is no script.
static long open_interpreter(int file) {
    char line[SCRIPT_LINE_BYTES];
    const size_t mark = 2;
    long got = sys_call(SYS_pread64, file, (long)line, sizeof line - 1, 0, 0, 0);
    line[got > 0 ? got : 0] = 0;
    if (got <= (long)mark || memcmp(line, "#!", mark) != 0) return -1;
    char *path = line + mark;
    while (*path == ' ' || *path == '\t') path++;
    path[strcspn(path, " \t\n")] = 0;
    return sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
}

static bool is_privileged(int file, const struct stat *status);

// The kernel grants what the interpreter's file has, not the script's.
static enum cairn_unrecorded look_at_interpreter(int file) {
    Elf64_Ehdr header = {.e_type = ET_NONE};
    struct stat status;
    long got = sys_call(SYS_pread64, file, (long)&header, sizeof header, 0, 0, 0);
    enum cairn_unrecorded found =
        got == sizeof header ? look_at_elf(file, &header) : CAIRN_UNRECORDED_NONE;
    bool is_static = found == CAIRN_UNRECORDED_STATIC &&
                     sys_call(SYS_fstat, file, (long)&status, 0, 0, 0, 0) == 0;
    return is_static && is_privileged(file, &status) ? CAIRN_UNRECORDED_PRIVILEGES : found;
}

static enum cairn_unrecorded look(int file) {
    Elf64_Ehdr header = {.e_type = ET_NONE};
    long got = sys_call(SYS_pread64, file, (long)&header, sizeof header, 0, 0, 0);
    if (got == sizeof header && !memcmp(header.e_ident, ELFMAG, SELFMAG))
        return look_at_elf(file, &header);
    long interpreter = open_interpreter(file);
    if (interpreter < 0) return CAIRN_UNRECORDED_NONE;
    enum cairn_unrecorded found = look_at_interpreter((int)interpreter);
    sys_call(SYS_close, interpreter, 0, 0, 0, 0, 0);
    return found;
}

static bool is_executable(const struct stat *status) {
    const unsigned any_execute = S_IXUSR | S_IXGRP | S_IXOTH;
    return S_ISREG(status->st_mode) && (status->st_mode & any_execute);
}

// The kernel grants nothing where the file system or the process forbids it.
static bool may_gain(int file) {
    struct statfs system;
    return sys_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 0 &&
           sys_call(SYS_fstatfs, file, (long)&system, 0, 0, 0, 0) == 0 &&
           !(system.f_flags & FILE_SYSTEM_NOSUID);
}

// With more than its starter has, the dynamic linker ignores a library of a path.
static bool is_privileged(int file, const struct stat *status) {
    const unsigned set_group = S_ISGID | S_IXGRP;
    uint32_t users[3], groups[3];
    char capabilities[1];
    if (sys_call(SYS_getresuid, (long)&users[0], (long)&users[1], (long)&users[2], 0, 0, 0) != 0 ||
        sys_call(SYS_getresgid, (long)&groups[0], (long)&groups[1], (long)&groups[2], 0, 0, 0) != 0)
        return false;
    if (users[0] != users[1] || groups[0] != groups[1]) return true;
    bool is_wished = ((status->st_mode & S_ISUID) && status->st_uid != users[0]) ||
                     ((status->st_mode & set_group) == set_group && status->st_gid != groups[0]) ||
                     (users[0] != 0 && sys_call(SYS_fgetxattr, file, (long)"security.capability",
                                                (long)capabilities, 0, 0, 0) > 0);
    return is_wished && may_gain(file);
}

static enum cairn_unrecorded look_at_all(int file, const struct stat *status) {
    enum cairn_unrecorded found = look(file);
    if (found && found != CAIRN_UNRECORDED_STATIC) return found;
    return is_privileged(file, status) ? CAIRN_UNRECORDED_PRIVILEGES : found;
}

bool image_look_at_file(int file, enum cairn_unrecorded *found) {
    struct stat status;
    if (sys_call(SYS_fstat, file, (long)&status, 0, 0, 0, 0) != 0 || !is_executable(&status))
        return false;
    *found = look_at_all(file, &status);
    return true;
}

bool image_look(int directory, const char *path, enum cairn_unrecorded *found) {
    struct stat status;
    if (sys_call(SYS_newfstatat, directory, (long)path, (long)&status, 0, 0, 0) != 0 ||
        !is_executable(&status))
        return false;
    long file =
        sys_call(SYS_openat, directory, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (file < 0) return true;  // may be executed, not read
    *found = look_at_all((int)file, &status);
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    return true;
}

// ---- a file that the next image is to open ------------------------------------------------------

// Capabilities by which a user who is not root reads what the modes forbid; exec takes them away.
static bool has_passing_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const uint32_t reading = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    return sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) != 0 &&
           sys_call(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) == 0 &&
           (data[0].effective & reading);
}

static bool is_in_group(uint32_t group) {
    uint32_t groups[GROUPS_MAX];
    if ((uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0) == group) return true;
    long count = sys_call(SYS_getgroups, GROUPS_MAX, (long)groups, 0, 0, 0, 0);
    for (long i = 0; i < count; i++)
        if (groups[i] == group) return true;
    return false;
}

// `right` as it stands for others: S_IROTH or S_IXOTH.
static bool has_right(const char *path, uint32_t right) {
    struct stat status;
    const unsigned to_group = 3, to_owner = 6;
    if (sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0, 0, 0) != 0) return false;
    if (status.st_uid == (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0))
        right <<= to_owner;
    else if (is_in_group(status.st_gid))
        right <<= to_group;
    return status.st_mode & right;
}

static bool is_open_by_modes(const char *path) {
    char prefix[PATH_MAX];
    for (size_t i = 0; path[i] && i < sizeof prefix; i++) {
        prefix[i] = path[i];
        if (path[i] != '/') continue;
        if (i + 1 < sizeof prefix) prefix[i + 1] = 0;
        if (!has_right(prefix, S_IXOTH)) return false;
    }
    return has_right(path, S_IROTH);
}

bool image_can_open(const char *path) {
    long file = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file >= 0) sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    bool is_refused =
        file == -ENOENT || file == -EACCES || file == -ENOTDIR || file == -ELOOP || file == -EPERM;
    return !is_refused && (file < 0 || !has_passing_capabilities() || is_open_by_modes(path));
}
