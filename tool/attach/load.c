// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/load.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool/base/unnamed_file.h"
#include "tool/proc/process.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#define LIBRARY_MAX_BYTES (64u << 20)
// Spelled as no program spells it: the dynamic linker keeps this path, and would take the library
// for a file that the program opens by the same one.
#define LIBRARY_PATH "/proc//self/fd/"
#define LIBRARY_NAME "/memfd:libcairn"
#define LIBRARY_PATH_BYTES 64
_Static_assert(sizeof LIBRARY_NAME <= sizeof LIBRARY_PATH "0", "it has room where the path was");

#define LIBC_INTERNAL_DLOPEN 0x80000000u  // what __libc_dlopen_mode needs

static bool make_file(struct caller *caller, uint64_t name, unsigned flags, int64_t *there,
                      struct error *error) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {name, flags};
    return caller_open(caller, SYS_memfd_create, arguments, there, error);
}

// Where libraries may be mapped from, as the process sees that place.
static bool may_have_library(pid_t pid, const char *place) {
    char there[PATH_MAX], root[PROCESS_PATH_BYTES];
    struct statvfs status;
    snprintf(there, sizeof there, "%s%s", process_path(root, pid, "root"), place);
    return statvfs(there, &status) == 0 && !(status.f_flag & ST_NOEXEC);
}

// The second form of unnamed_file.h, made by the process itself: `*there` is -ENOSYS if no place
// will do.
static bool make_removed_file(struct attach *attach, struct caller *caller, const char *name,
                              bool is_library, int64_t *there, struct error *error) {
    const uint64_t here = (uint64_t)(int64_t)AT_FDCWD;
    char path[NAME_MAX];
    for (size_t i = 0; i < UNNAMED_FILE_PLACES && *there == -ENOSYS; i++) {
        int64_t opened = 0, unused = 0;
        if (is_library && !may_have_library(attach->pid, unnamed_file_places[i])) continue;
        unnamed_file_path(path, unnamed_file_places[i], name);
        uint64_t room = caller_room(caller, sizeof path, error);
        const uint64_t create[REGISTERS_ARGUMENTS] = {
            here, room, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600};
        const uint64_t remove[REGISTERS_ARGUMENTS] = {here, room};
        if (!room || !remote_write(&attach->remote, room, path, sizeof path) ||
            !caller_open(caller, SYS_openat, create, &opened, error))
            return false;
        if (opened < 0) continue;
        if (!caller_system_call(caller, SYS_unlinkat, remove, &unused, error)) return false;
        *there = opened;
    }
    return true;
}

bool load_make_file(struct attach *attach, struct caller *caller, const char *name, bool is_library,
                    int64_t *there, int *here, struct error *error) {
    char file[PROCESS_PATH_BYTES];
    unsigned flags = MFD_CLOEXEC | (is_library ? 0 : MFD_ALLOW_SEALING);
    uint64_t room = caller_room(caller, strlen(name) + 1, error);
    if (!room) return false;
    if (!remote_write(&attach->remote, room, name, strlen(name) + 1) ||
        !make_file(caller, room, flags | (is_library ? 0 : MFD_NOEXEC_SEAL), there, error))
        return false;
    if (*there == -EINVAL && !make_file(caller, room, flags, there, error)) return false;
    if (*there == -ENOSYS && !make_removed_file(attach, caller, name, is_library, there, error))
        return false;
    if (*there < 0)
        return error_set(error, "it cannot make a file in memory: %s", strerror((int)-*there));
    snprintf(file, sizeof file, "fd/%d", (int)*there);
    *here = process_open(attach->pid, file, O_RDWR);
    if (*here >= 0) return true;
    error_set(error, "/proc/%d/%s: %s", (int)attach->pid, file, strerror(errno));
    caller_close(caller, *there, NULL);
    *there = -1;
    return false;
}

// The struct in the file's data, by its first words.
static struct cairn_attachment *find_mark(uint8_t *bytes, size_t count) {
    struct cairn_attachment *found;
    for (size_t at = 0; at + sizeof *found <= count; at += sizeof(uint64_t)) {
        found = (struct cairn_attachment *)(bytes + at);
        if (found->magic == CAIRN_ATTACHMENT_MAGIC && found->struct_bytes == sizeof *found)
            return found;
    }
    return NULL;
}

static bool read_whole(const char *path, uint8_t **bytes, size_t *count) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_ok = file >= 0 && fstat(file, &status) == 0 && status.st_size < LIBRARY_MAX_BYTES;
    *count = is_ok ? (size_t)status.st_size : 0;
    *bytes = is_ok ? malloc(*count) : NULL;
    is_ok = *bytes && pread(file, *bytes, *count, 0) == (ssize_t)*count;
    if (file >= 0) close(file);
    return is_ok;
}

// The part of the file that is mapped; debug information and section headers lie behind it, and
// need not be written while the process is stopped.
static size_t mapped_count(const uint8_t *bytes, size_t count) {
    Elf64_Ehdr header;
    size_t end = 0;
    if (count < sizeof header) return count;
    memcpy(&header, bytes, sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = header.e_phoff + i * sizeof segment;
        if (at > count || count - at < sizeof segment) return count;
        memcpy(&segment, bytes + at, sizeof segment);
        uint64_t segment_end = segment.p_offset + segment.p_filesz;
        if (segment.p_type == PT_LOAD && segment_end > end) end = segment_end;
    }
    return end && end < count ? end : count;
}

bool load_read_library(struct attach *attach, struct error *error) {
    errno = 0;
    if (!read_whole(attach->library_path, &attach->library_bytes, &attach->library_count))
        return error_set(error, "%s: %s", attach->library_path,
                         errno ? strerror(errno) : "it cannot be read");
    struct cairn_attachment *mark = find_mark(attach->library_bytes, attach->library_count);
    if (!mark)
        return error_set(error, "%s: it is of another version of cairn", attach->library_path);
    mark->is_by_tool = 1;
    attach->library_count = mapped_count(attach->library_bytes, attach->library_count);
    return true;
}

// What dlopen had to say.
static bool tell_refusal(struct attach *attach, struct caller *caller, struct error *error) {
    const uint64_t none[REGISTERS_ARGUMENTS] = {0};
    uint64_t text = 0;
    char reason[256] = "the dynamic linker gives no reason";
    if (attach->dlerror_at && caller_function(caller, attach->dlerror_at, none, &text, NULL) &&
        text)
        remote_read_text(&attach->remote, text, reason, sizeof reason);
    return error_set(error, "its dynamic linker refuses the library: %s", reason);
}

void load_rename(const struct attach *attach, uint64_t link_map) {
    static const char name[] = LIBRARY_NAME;
    struct link_map map;
    char old[LIBRARY_PATH_BYTES];
    if (!remote_read(&attach->remote, link_map, &map, sizeof map)) return;
    uint64_t at = (uint64_t)(uintptr_t)map.l_name;
    if (remote_read_text(&attach->remote, at, old, sizeof old) &&
        !strncmp(old, LIBRARY_PATH, strlen(LIBRARY_PATH)))
        remote_write(&attach->remote, at, name, sizeof name);
}

static bool open_library(struct attach *attach, struct caller *caller, int64_t there,
                         uint64_t *handle, struct error *error) {
    char path[LIBRARY_PATH_BYTES];
    uint64_t flags = RTLD_NOW | (attach->is_old_dlopen ? LIBC_INTERNAL_DLOPEN : 0);
    snprintf(path, sizeof path, LIBRARY_PATH "%d", (int)there);
    uint64_t room = caller_room(caller, sizeof path, error);
    if (!room || !remote_write(&attach->remote, room, path, sizeof path)) return false;
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {room, flags};
    if (!caller_function(caller, attach->dlopen_at, arguments, handle, error)) return false;
    if (!*handle) return tell_refusal(attach, caller, error);
    load_rename(attach, *handle);
    return true;
}

bool load_library(struct attach *attach, struct caller *caller, uint64_t *handle,
                  struct error *error) {
    int64_t there = -1;
    int here = -1;
    if (!load_make_file(attach, caller, "libcairn.so", true, &there, &here, error)) return false;
    ssize_t written = pwrite(here, attach->library_bytes, attach->library_count, 0);
    bool is_loaded = written == (ssize_t)attach->library_count
                         ? open_library(attach, caller, there, handle, error)
                         : error_set(error, "the library cannot be copied into it");
    close(here);
    return caller_close(caller, there, is_loaded ? error : NULL) && is_loaded;
}

bool load_call(struct caller *caller, uint64_t function,
               const uint64_t arguments[REGISTERS_ARGUMENTS], struct error *error) {
    static const char *const reasons[] = {
        [CAIRN_ATTACHMENT_NO_SPACE] = "it has no address space left for cairn's tables",
        [CAIRN_ATTACHMENT_NOT_OPENED] = "it could not map the recording",
        [CAIRN_ATTACHMENT_NOT_LOADED] = "the library was not loaded as it should be",
        [CAIRN_ATTACHMENT_IS_RUNNING] = "it is recorded already",
        [CAIRN_ATTACHMENT_IS_OFF] = "recording is switched off"};
    uint64_t result = 0;
    if (!function) return error_set(error, "%s", reasons[CAIRN_ATTACHMENT_NOT_LOADED]);
    if (!caller_function(caller, function, arguments, &result, error)) return false;
    unsigned code = (uint32_t)result;
    if (!code) return true;
    const char *reason = code < sizeof reasons / sizeof *reasons ? reasons[code] : NULL;
    return error_set(error, "%s", reason ? reason : "the library failed");
}

uint64_t load_locked_kib(const struct attach *attach) {
    enum { STATUS_BYTES = 8192 };
    char status[STATUS_BYTES];
    process_read(attach->pid, "status", status, sizeof status);
    return strtoull(process_field(status, "VmLck"), NULL, 10);
}

// Tells by the memory that calls run on: it was mapped last, while all threads were stopped.
bool load_check_locked(const struct attach *attach, uint64_t before_kib, struct error *error) {
    return load_locked_kib(attach) == before_kib ||
           error_set(error, "it locks all memory that is mapped in it (mlockall with MCL_FUTURE), "
                            "and would lock cairn's address space, too");
}

uint64_t load_find_errno(struct attach *attach, struct caller *caller, int *value,
                         struct error *error) {
    const uint64_t none[REGISTERS_ARGUMENTS] = {0};
    uint64_t at = 0;
    if (!caller_function(caller, attach->errno_at, none, &at, error)) return 0;
    if (remote_read(&attach->remote, at, value, sizeof *value)) {
        caller_keep_errno(caller, at, *value);
        return at;
    }
    error_set(error, "it has ended");
    return 0;
}
