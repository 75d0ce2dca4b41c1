// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/library.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tool/base/fnv.h"
#include "tool/base/one_file.h"
#include "tool/proc/process.h"

enum { LIBRARY_MODE = 0755, NAME_BYTES = 64, REASON_BYTES = 400, READ_BYTES = 1 << 16 };
static const char *const names[] = {
    "libcairn.so",      "libcairn-cxx.so", "libcairn-musl.so", "libcairn-torture.so",
#if defined(__x86_64__)
    "libcairn-bare.so",
#endif
};
enum { TORTURE = 3, NAMES = sizeof names / sizeof *names };
static const char driver_name[] = "cairn-replay";

// ---- directories that nobody else can change ----------------------------------------------------

static bool is_own(const struct stat *status) {
    return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_own_directory(const char *path) {
    struct stat status;
    return (mkdir(path, LIBRARY_MODE) == 0 || errno == EEXIST) && lstat(path, &status) == 0 &&
           S_ISDIR(status.st_mode) && is_own(&status);
}

// Makes it if it is not there. -1 after a reason was given: another user's, a link, or one that
// others may write to.
static int open_below(int parent, const char *name, const char **reason) {
    struct stat status;
    bool is_new = mkdirat(parent, name, LIBRARY_MODE) == 0;
    *reason = is_new || errno == EEXIST ? NULL : strerror(errno);
    if (*reason) return -1;
    int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        *reason = errno == ELOOP || errno == ENOTDIR ? "not a directory" : strerror(errno);
    else if (fstat(file, &status) != 0 || !is_own(&status))
        *reason = "others may write to it";
    else if (is_new && fchmod(file, LIBRARY_MODE) != 0)  // whatever the umask is
        *reason = strerror(errno);
    if (file >= 0 && *reason) close(file);
    return *reason ? -1 : file;
}

// A directory of this user's, or one like /tmp, in which nobody renames what is another's.
static int open_base(const char *path, const char **reason) {
    struct stat status;
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *reason = file < 0 ? strerror(errno) : NULL;
    if (file >= 0 && (fstat(file, &status) != 0 || !(is_own(&status) || status.st_mode & S_ISVTX)))
        *reason = "others may write to it";
    struct statvfs system;
    if (!*reason && fstatvfs(file, &system) == 0 && (system.f_flag & ST_NOEXEC))
        *reason = "mounted noexec";
    if (file >= 0 && *reason) close(file);
    return *reason ? -1 : file;
}

// Can every user open files below `path`?
static bool is_open_to_all(const char *path) {
    char prefix[PATH_MAX];
    struct stat status;
    for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
        const char *next = strchr(slash + 1, '/');
        size_t length = next ? (size_t)(next - path) : strlen(path);
        snprintf(prefix, sizeof prefix, "%.*s", (int)length, path);
        if (stat(prefix, &status) != 0 || !(status.st_mode & S_IXOTH)) return false;
    }
    return true;
}

// ---- a library inside the tool becomes a file ---------------------------------------------------

static size_t size_of(const struct carried_library *library) {
    return (size_t)(library->end - library->bytes);
}

// Read, not mapped: tracers' probes change what is mapped of a file.
static bool has_bytes(int file, const struct carried_library *library) {
    unsigned char bytes[READ_BYTES];
    const unsigned char *at = library->bytes;
    ssize_t got;
    while ((got = read(file, bytes, sizeof bytes)) > 0) {
        if (got > library->end - at || memcmp(at, bytes, (size_t)got) != 0) return false;
        at += got;
    }
    return got == 0 && at == library->end;
}

static bool is_equal(int directory, const struct carried_library *library) {
    struct stat status;
    int file = openat(directory, library->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    bool is_equal = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_own(&status) &&
                    (status.st_mode & S_IROTH) && has_bytes(file, library);
    close(file);
    return is_equal;
}

static bool write_all(int file, const unsigned char *bytes, const unsigned char *end) {
    while (bytes < end) {
        ssize_t written = write(file, bytes, (size_t)(end - bytes));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
    }
    return true;
}

// Under a name of its own first: who runs at the same time sees a whole file, or none.
static const char *write_library(int directory, const struct carried_library *library) {
    char fresh[NAME_BYTES];
    snprintf(fresh, sizeof fresh, ".%s.%d", library->name, (int)getpid());
    unlinkat(directory, fresh, 0);
    int file = openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, LIBRARY_MODE);
    if (file < 0) return strerror(errno);
    bool is_written =
        write_all(file, library->bytes, library->end) && fchmod(file, LIBRARY_MODE) == 0;
    is_written &= close(file) == 0;
    is_written = is_written && renameat(directory, fresh, directory, library->name) == 0;
    const char *reason = is_written ? NULL : strerror(errno);
    if (!is_written) unlinkat(directory, fresh, 0);
    return reason;
}

// The program may ask for reports (include/cairn): the library looks for the tool beside itself.
static void link_tool(int directory) {
    char tool[PATH_MAX], there[PATH_MAX], fresh[NAME_BYTES];
    if (!process_own_executable(tool)) return;
    ssize_t known = readlinkat(directory, "cairn", there, sizeof there);
    if (known == (ssize_t)strlen(tool) && !memcmp(there, tool, (size_t)known)) return;
    snprintf(fresh, sizeof fresh, ".cairn.%d", (int)getpid());
    if (symlinkat(tool, directory, fresh) == 0 &&
        renameat(directory, fresh, directory, "cairn") != 0)
        unlinkat(directory, fresh, 0);
}

static bool build_id_of(const struct carried_library *library, char text[NAME_BYTES]) {
    const void *id;
    elf_version(EV_CURRENT);
    // libelf does not write to an image that it was given to read.
    Elf *elf = elf_memory((char *)(uintptr_t)library->bytes, size_of(library));
    ssize_t bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
    if (bytes > (NAME_BYTES - 1) / 2) bytes = (NAME_BYTES - 1) / 2;
    for (ssize_t i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)id)[i]);
    elf_end(elf);
    return bytes > 0;
}

// Where it may be put: the first three names below `base`.
struct place {
    char base[PATH_MAX], own[NAME_BYTES];
};

enum { PLACES = 4 };
static size_t list_places(struct place places[PLACES]) {
    static const char *const shared[] = {"/var/tmp", "/tmp", "/dev/shm"};
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache && cache[0] == '/', has_home = home && home[0] == '/';
    size_t count = 0;
    if (has_cache || has_home) {
        struct place *place = &places[count++];
        snprintf(place->base, sizeof place->base, "%s%s", has_cache ? cache : home,
                 has_cache ? "" : "/.cache");
        snprintf(place->own, sizeof place->own, "cairn");
        if (!has_cache) mkdir(place->base, S_IRWXU);
    }
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        struct place *place = &places[count++];
        snprintf(place->base, sizeof place->base, "%s", shared[i]);
        snprintf(place->own, sizeof place->own, "cairn-%u", (unsigned)geteuid());
    }
    return count;
}

// All of them: attaching to a program of musl takes the one beside.
static const char *put_all(int directory) {
    const char *reason = NULL;
    for (size_t i = 0; !reason && i < NAMES; i++) {
        const struct carried_library *library = one_file_library(names[i]);
        if (library && !is_equal(directory, library)) reason = write_library(directory, library);
    }
    const struct carried_library *driver = one_file_library(driver_name);
    if (!reason && driver && !is_equal(directory, driver))
        reason = write_library(directory, driver);
    if (!reason) link_tool(directory);
    return reason;
}

// NULL, or why they cannot be there. `path`: of the one called `name`.
static const char *put_into(const struct place *place, const char *id, const char *name,
                            char path[PATH_MAX]) {
    const char *below[] = {place->own, "lib", id}, *reason = NULL;
    int used = snprintf(path, PATH_MAX, "%s/%s/lib/%s/%s", place->base, place->own, id, name);
    if (used >= PATH_MAX) return "too long a path";
    if (strpbrk(path, " :")) return "LD_PRELOAD allows no space and no colon";
    int directory = open_base(place->base, &reason);
    for (size_t i = 0; directory >= 0 && i < sizeof below / sizeof *below; i++) {
        int next = open_below(directory, below[i], &reason);
        close(directory);
        directory = next;
    }
    if (directory < 0) return reason;
    reason = put_all(directory);
    close(directory);
    return reason;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

// `first`: whose build-id names the directory.
static bool put_somewhere(const struct carried_library *first, const char *name,
                          char path[PATH_MAX], struct error *error) {
    struct place places[PLACES];
    char id[NAME_BYTES], reasons[REASON_BYTES] = "";
    size_t count = list_places(places);
    if (!build_id_of(first, id)) return error_set(error, "%s in cairn: no build-id", first->name);
    // What root starts may become another user, and is to find the library then; a place of root's
    // alone is better than none.
    for (int is_private = geteuid() != 0; is_private < 2; is_private++) {
        for (size_t i = 0; i < count; i++) {
            if (!is_private && !is_open_to_all(places[i].base)) continue;
            const char *reason = put_into(&places[i], id, name, path);
            if (!reason) return true;
            if (is_private)
                append(reasons, sizeof reasons, "%s%s: %s", i ? ", " : "", places[i].base, reason);
        }
    }
    return error_set(error,
                     "no place for %s (%s); set XDG_CACHE_HOME to a directory of yours from which "
                     "programs may run",
                     name, reasons);
}

// ---- a library beside the tool ------------------------------------------------------------------

// LD_PRELOAD separates paths by blanks and colons. A library whose path has one is preloaded by a
// link in a directory that only this user writes to. The link stays: programs may start others
// after cairn's end.
static bool link_library(char library[PATH_MAX], struct error *error) {
    char own[64], place[128], path[PATH_MAX], fresh[PATH_MAX], target[PATH_MAX];
    uint64_t hash = fnv_add(FNV_START, library, strlen(library));
    snprintf(own, sizeof own, "/var/tmp/cairn-%u", (unsigned)geteuid());
    snprintf(place, sizeof place, "%s/%016" PRIx64, own, hash);
    snprintf(path, sizeof path, "%s%s", place, strrchr(library, '/'));
    snprintf(fresh, sizeof fresh, "%s/%d", place, (int)getpid());
    bool is_there = is_own_directory(own) && is_own_directory(place);
    ssize_t length = is_there ? readlink(path, target, sizeof target - 1) : -1;
    bool is_linked = length > 0 && !strncmp(target, library, (size_t)length) && !library[length];
    if (!is_linked)
        is_linked = is_there && symlink(library, fresh) == 0 && rename(fresh, path) == 0;
    if (!is_linked)
        return error_set(error,
                         "%s: LD_PRELOAD allows no space or colon in a path, and no link to it can "
                         "be made in %s",
                         library, own);
    memcpy(library, path, strlen(path) + 1);
    return true;
}

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#else
#define TRIPLET "aarch64-linux-gnu"
#endif

static bool find_beside(const char *name, char library[PATH_MAX], struct error *error) {
    // Beside the tool in a tree; what distributions call lib (the Makefile's LIBDIR).
    static const char *const places[] = {"", "../lib/cairn/", "../lib64/cairn/",
                                         "../lib/" TRIPLET "/cairn/"};
    char own[PATH_MAX], path[PATH_MAX];
    if (!process_own_executable(own))
        return error_set(error, "cairn does not find its own place: /proc is not mounted");
    *(strrchr(own, '/') + 1) = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s%s", own, places[i], name);
        if (realpath(path, library)) return true;
    }
    return error_set(error,
                     "%s is neither in %s nor in lib/cairn, lib64/cairn or lib/" TRIPLET
                     "/cairn beside that",
                     name, own);
}

static bool find(char path[PATH_MAX], const char *name, struct error *error) {
    const struct carried_library *first = one_file_library(names[0]);
    if (first) return put_somewhere(first, name, path, error);
    if (!find_beside(name, path, error)) return false;
    return !strpbrk(path, " :") || link_library(path, error);
}

bool library_find(char path[PATH_MAX], bool has_operators, struct error *error) {
    return find(path, names[has_operators], error);
}

void library_mark(char path[PATH_MAX], enum cairn_mark mark, uint64_t number) {
    char digits[CAIRN_MARK_BYTES], name[NAME_BYTES];
    char *slash = strrchr(path, '/');
    unsigned bits = mark == CAIRN_MARK_RUN ? CAIRN_MARK_RUN_BITS : CAIRN_MARK_ALONE_BITS;
    if (!slash || strlen(path) + sizeof digits >= PATH_MAX || strlen(slash) >= sizeof name) return;
    snprintf(name, sizeof name, "%s", slash + 1);
    cairn_mark_write(digits, number, bits);
    sprintf(slash + 1, "%s%s", digits, name);
}

bool library_find_torture(char path[PATH_MAX], struct error *error) {
    return find(path, names[TORTURE], error);
}

bool library_find_bare(char path[PATH_MAX], struct error *error) {
    return find(path, "libcairn-bare.so", error);
}

bool library_find_driver(char path[PATH_MAX], struct error *error) {
    const struct carried_library *first = one_file_library(names[0]);
    return first ? put_somewhere(first, driver_name, path, error)
                 : find_beside(driver_name, path, error);
}

// ---- libraries for an image ---------------------------------------------------------------------

// The file beside the tool as if it were carried. The caller unmaps it.
static bool map_beside(const char *name, struct carried_library *library, struct error *error) {
    char path[PATH_MAX];
    struct stat status;
    if (!find_beside(name, path, error)) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_open = file >= 0 && fstat(file, &status) == 0;
    void *bytes =
        is_open ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) error_set(error, "%s: %s", path, strerror(errno));
    if (file >= 0) close(file);
    if (bytes == MAP_FAILED) return false;
    *library = (struct carried_library){name, bytes, (const unsigned char *)bytes + status.st_size};
    return true;
}

static bool write_one(int directory, const char *where, const struct carried_library *library,
                      struct error *error) {
    if (is_equal(directory, library)) return true;
    if (faccessat(directory, library->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return error_set(error, "%s/%s exists and is another one; remove it first", where,
                         library->name);
    const char *reason = write_library(directory, library);
    return !reason || error_set(error, "%s/%s: %s", where, library->name, reason);
}

bool library_write(const char *directory, struct error *error) {
    if (mkdir(directory, LIBRARY_MODE) != 0 && errno != EEXIST)
        return error_set(error, "%s: %s", directory, strerror(errno));
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return error_set(error, "%s: %s", directory, strerror(errno));
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < NAMES; i++) {
        const struct carried_library *carried = one_file_library(names[i]);
        struct carried_library beside;
        is_ok = carried || map_beside(names[i], &beside, error);
        is_ok = is_ok && write_one(file, directory, carried ? carried : &beside, error);
        if (is_ok && !carried) munmap((void *)(uintptr_t)beside.bytes, size_of(&beside));
    }
    close(file);
    return is_ok;
}
