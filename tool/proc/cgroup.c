// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, FILE_BYTES = CGROUP_FILE_BYTES };
// What version 1 says where there is no limit is the highest whole page below 2^63.
static const uint64_t unlimited_from = UINT64_C(1) << 60;

struct names {
    const char *usage, *limit, *kills;
    const char *file_parts[2];  // of memory.stat: pages of files
};
static const struct names new_names = {
    "memory.current", "memory.max", "memory.events", {"active_file ", "inactive_file "}};
static const struct names old_names = {"memory.usage_in_bytes",
                                       "memory.limit_in_bytes",
                                       "memory.oom_control",
                                       {"total_active_file ", "total_inactive_file "}};

static const struct names *names_of(const struct cgroup *cgroup) {
    return cgroup->is_old ? &old_names : &new_names;
}

// Its length; 0: it is not there.
static size_t read_file(const char *directory, const char *name, char text[FILE_BYTES]) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = length < PATH_MAX ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = file >= 0 ? read(file, text, FILE_BYTES - 1) : 0;
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = 0;
    return size > 0 ? (size_t)size : 0;
}

static uint64_t read_number(const char *directory, const char *name, uint64_t otherwise) {
    char text[FILE_BYTES];
    read_file(directory, name, text);
    return isdigit((unsigned char)*text) ? strtoull(text, NULL, 10) : otherwise;
}

// The number behind a name at the start of a line.
static uint64_t number_in(const char *text, const char *name) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, strlen(name))) return strtoull(line + strlen(name), NULL, 10);
    }
    return 0;
}

static bool has_file(const char *path, const char *name) {
    char file[PATH_MAX];
    return snprintf(file, sizeof file, "%s/%s", path, name) < PATH_MAX && !access(file, R_OK);
}

size_t cgroup_read(const struct cgroup *cgroup, const char *name, char text[CGROUP_FILE_BYTES]) {
    return read_file(cgroup->path, name, text);
}

bool cgroup_has(const struct cgroup *cgroup, const char *name) {
    return has_file(cgroup->path, name);
}

static bool is_any(const struct cgroup *cgroup) {
    return has_file(cgroup->path, "cgroup.procs");
}

static bool has_memory(const struct cgroup *cgroup) {
    return is_any(cgroup) && has_file(cgroup->path, names_of(cgroup)->usage);
}

enum absence { ABSENT, FORBIDDEN, NOT_WANTED };

// The first that is one at the places where it may be meant; else `*why` there is none, and the
// last directory that is none.
static bool find_one(const char *word, bool is_wanted(const struct cgroup *), struct cgroup *cgroup,
                     enum absence *why) {
    static const char *const places[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/memory/"};
    struct stat status;
    *why = ABSENT;
    if (!*word) return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX];
        const char *below = *places[i] ? word + strspn(word, "/") : word;
        if (snprintf(path, sizeof path, "%s%s", places[i], below) >= PATH_MAX) break;
        for (size_t end = strlen(path); end > 1 && path[end - 1] == '/';) path[--end] = 0;
        if (stat(path, &status)) {
            if (errno == EACCES && *why == ABSENT) *why = FORBIDDEN;
            continue;
        }
        if (!S_ISDIR(status.st_mode)) continue;
        *why = NOT_WANTED;
        memcpy(cgroup->path, path, sizeof path);
        cgroup->is_old = has_file(path, old_names.usage);
        if (is_wanted(cgroup)) return true;
    }
    return false;
}

static bool tell_absence(const char *word, enum absence why, struct error *error) {
    if (!*word) return error_set(error, "no cgroup is named: the path is empty");
    if (why == FORBIDDEN)
        return error_set(error, "%s: the cgroup may not be read: ask as root (sudo)", word);
    return error_set(error, "%s: there is no such cgroup; /proc/PID/cgroup has that of a process",
                     word);
}

bool cgroup_find(const char *word, struct cgroup *cgroup, struct error *error) {
    enum absence why;
    if (find_one(word, is_any, cgroup, &why)) return true;
    if (why == NOT_WANTED) return error_set(error, "%s: no cgroup: it has no cgroup.procs", word);
    return tell_absence(word, why, error);
}

// Says why memory is not accounted for in a directory that is there, and what to do. The last place
// that was looked at is the one of version 1's memory, if that is there.
static bool tell_no_memory(const char *word, const struct cgroup *cgroup, struct error *error) {
    char path[PATH_MAX];
    const char *why = "has no cgroup.procs";
    bool is_unread = snprintf(path, sizeof path, "%s/cgroup.procs", cgroup->path) < PATH_MAX &&
                     access(path, R_OK) && errno == EACCES;
    if (is_unread)
        why = "may not be read: ask as root (sudo)";
    else if (has_file(cgroup->path, "memory.stat"))
        why = "the root of version 2, for which the kernel keeps no sum: name one below it";
    else if (has_file(cgroup->path, "cgroup.controllers"))
        why = "its memory controller is off: echo +memory >cgroup.subtree_control above it, or, in "
              "version 1, name it below /sys/fs/cgroup/memory";
    else if (is_any(cgroup))
        why = "it is of another controller: name the one below /sys/fs/cgroup/memory";
    return error_set(error, "%s: no cgroup whose memory is accounted for: %s", word, why);
}

bool cgroup_open(const char *word, struct cgroup *cgroup, struct error *error) {
    enum absence why;
    if (find_one(word, has_memory, cgroup, &why)) return true;
    return why == NOT_WANTED ? tell_no_memory(word, cgroup, error) : tell_absence(word, why, error);
}

// Those above it count too, up to the place where they are mounted.
static uint64_t limit_of(const struct cgroup *cgroup) {
    const char *name = names_of(cgroup)->limit;
    char path[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    memcpy(path, cgroup->path, sizeof path);
    while (strchr(path + 1, '/') && has_file(path, "cgroup.procs")) {
        uint64_t own = read_number(path, name, UINT64_MAX);
        if (own < limit && own < unlimited_from) limit = own;
        *strrchr(path, '/') = 0;
    }
    return limit;
}

static uint64_t file_bytes(const struct cgroup *cgroup) {
    char text[FILE_BYTES];
    uint64_t bytes = 0;
    read_file(cgroup->path, "memory.stat", text);
    for (size_t i = 0; i < 2; i++) bytes += number_in(text, names_of(cgroup)->file_parts[i]);
    return bytes;
}

bool cgroup_look(const struct cgroup *cgroup, uint64_t exact_from, struct cgroup_memory *memory) {
    char text[FILE_BYTES];
    uint64_t usage = read_number(cgroup->path, names_of(cgroup)->usage, UINT64_MAX);
    if (usage == UINT64_MAX) return false;
    uint64_t files = usage >= exact_from ? file_bytes(cgroup) : 0;
    memory->used_bytes = usage > files ? usage - files : 0;
    memory->limit_bytes = limit_of(cgroup);
    read_file(cgroup->path, names_of(cgroup)->kills, text);
    memory->kills = number_in(text, "oom_kill ");
    return true;
}

static bool list_file(int directory, struct process_pids *list) {
    int descriptor = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    bool has_memory = file || descriptor < 0 || errno != ENOMEM;
    int pid;
    if (!file && descriptor >= 0) close(descriptor);
    while (file && has_memory && fscanf(file, "%d", &pid) == 1) {
        pid_t *slot = array_push(&list->pids);
        has_memory = slot != NULL;
        if (slot) *slot = pid;
    }
    if (file) fclose(file);
    return has_memory;
}

static bool list_below(int directory, int depth, struct process_pids *list) {
    DIR *entries = fdopendir(directory);
    if (!entries) {
        bool has_memory = errno != ENOMEM;
        close(directory);
        return has_memory;
    }
    bool has_memory = list_file(directory, list);
    for (struct dirent *entry; depth < DEPTH_MAX && has_memory && (entry = readdir(entries));) {
        if (entry->d_type != DT_DIR || *entry->d_name == '.') continue;
        int inside =
            openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (inside >= 0) has_memory = list_below(inside, depth + 1, list);
    }
    closedir(entries);
    return has_memory;
}

bool cgroup_list(const struct cgroup *cgroup, struct process_pids *list) {
    *list = (struct process_pids){0};
    int directory = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0 && !list_below(directory, 0, list)) return false;
    process_pids_sort(list);
    return true;
}

// --- where a process belongs

enum { CONTAINER_DIGITS = 64, POD_LEAST = 32, POD_MOST = 36 };

// The path of a line "4:memory:/docker/1f..."; of version 2 "0::/docker/1f...".
static const char *path_in(const char *line, const char *controller, size_t *length) {
    size_t all = strcspn(line, "\n");
    const char *first = memchr(line, ':', all);
    const char *second = first ? memchr(first + 1, ':', all - (size_t)(first + 1 - line)) : NULL;
    if (!second) return NULL;
    size_t wanted = strlen(controller);
    bool is_it = (size_t)(second - first - 1) == wanted && !strncmp(first + 1, controller, wanted);
    *length = all - (size_t)(second + 1 - line);
    return is_it && *length > 1 ? second + 1 : NULL;
}

static const char *find_path(const char *text, size_t *length) {
    static const char *const controllers[] = {"", "memory", "name=systemd"};
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++)
        for (const char *line = text; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            const char *path = path_in(line, controllers[i], length);
            if (path) return path;
        }
    return NULL;
}

static bool is_hex(char c) {
    return isdigit((unsigned char)c) || (c >= 'a' && c <= 'f');
}

// A container's id: docker-ID.scope, cri-containerd-ID.scope, /docker/ID, ...; the last one, as
// containers may lie in each other.
static void find_container(struct cgroup_place *place) {
    for (const char *at = place->path; *at;) {
        size_t digits = 0;
        while (is_hex(at[digits])) digits++;
        if (digits == CONTAINER_DIGITS)
            snprintf(place->container_id, sizeof place->container_id, "%.*s", CONTAINER_DIGITS, at);
        at += digits ? digits : 1;
    }
}

// .../kubepods/burstable/podUID/..., or kubepods-burstable-podUID.slice with _ for -.
static void find_pod(struct cgroup_place *place) {
    const char *at = strstr(place->path, "kubepods");
    for (; at && (at = strstr(at, "pod")); at += strlen("pod")) {
        const char *uid = at + strlen("pod");
        size_t length = 0;
        while (is_hex(uid[length]) || uid[length] == '-' || uid[length] == '_') length++;
        if (length < POD_LEAST || length > POD_MOST) continue;
        snprintf(place->pod_uid, sizeof place->pod_uid, "%.*s", (int)length, uid);
        for (char *c = place->pod_uid; *c; c++)
            if (*c == '_') *c = '-';
    }
}

void cgroup_place_read(const char *text, struct cgroup_place *place) {
    size_t length;
    *place = (struct cgroup_place){.path = ""};
    const char *path = find_path(text, &length);
    if (!path || length >= sizeof place->path) return;
    memcpy(place->path, path, length);
    find_container(place);
    find_pod(place);
}

void cgroup_place_of(pid_t pid, struct cgroup_place *place) {
    char text[FILE_BYTES];
    process_read(pid, "cgroup", text, sizeof text);
    cgroup_place_read(text, place);
}
