// SPDX-License-Identifier: Apache-2.0
// The process has its recording mapped, but the mapping cannot be opened without privileges. A file
// has a path; memory has an open descriptor in the tool that holds it, found by its inode.
#include "tool/query/live.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "tool/base/text.h"
#include "tool/base/unnamed_file.h"
#include "tool/events/event_log.h"
#include "tool/heap/image.h"
#include "tool/model/reader.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"

enum { NOT_CALLED, CALLED_ELSE, CALLED_SO };

bool running_is_number(const char *text) {
    return *text && !text[strspn(text, "0123456789")];
}

bool live_is_recording(const char *path) {
    char magic[CAIRN_MAGIC_BYTES];
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode)) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool is_right =
        fread(magic, sizeof magic, 1, file) == 1 && !memcmp(magic, CAIRN_MAGIC, sizeof magic);
    fclose(file);
    return is_right;
}

// Answers by itself: a recording, an event log, a core dump, or a directory, which may have some.
static bool is_subject(const char *path) {
    struct stat status;
    if (stat(path, &status)) return false;
    return S_ISDIR(status.st_mode) || live_is_recording(path) || event_log_is_one(path) ||
           core_is_one(path);
}

bool running_may_be(const char *word) {
    return *word && !strchr(word, '/') && !is_subject(word);
}

static int how_called(pid_t pid, const char *name) {
    char names[PROCESS_NAMES][NAME_MAX];
    if (!process_names(pid, names)) return NOT_CALLED;
    if (!strcmp(names[0], name)) return CALLED_SO;
    for (size_t i = 1; i < PROCESS_NAMES; i++)
        if (!strcmp(names[i], name)) return CALLED_ELSE;
    return NOT_CALLED;
}

static DIR *open_processes(struct error *error) {
    DIR *entries = process_can_look() ? opendir("/proc") : NULL;
    if (!entries)
        error_set(error, "/proc: %s", process_can_look() ? strerror(errno) : "it is not mounted");
    return entries;
}

typedef bool running_is_wanted(void *context, pid_t pid);

// Those called `name` that `is_wanted` (NULL: all), without cairn itself.
static bool running_list(const char *name, running_is_wanted *is_wanted, void *context,
                         struct process_pids *list, struct error *error) {
    int best = CALLED_ELSE;
    bool has_memory = true;
    *list = (struct process_pids){0};
    DIR *entries = open_processes(error);
    if (!entries) return false;
    for (struct dirent *entry; has_memory && (entry = readdir(entries));) {
        if (!running_is_number(entry->d_name)) continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        int how = pid == getpid() ? NOT_CALLED : how_called(pid, name);
        if (how < best || (is_wanted && !is_wanted(context, pid))) continue;
        if (how > best) list->pids.count = 0;
        best = how;
        pid_t *slot = array_push(&list->pids);
        has_memory = slot != NULL;
        if (slot) *slot = pid;
    }
    closedir(entries);
    process_pids_sort(list);
    return has_memory || error_set(error, "no memory for the list of processes");
}

size_t running_count(const char *name, pid_t *first) {
    struct process_pids list;
    size_t count = 0;
    if (running_list(name, NULL, NULL, &list, NULL)) count = list.pids.count;
    if (count) *first = list.pids.items[0];
    array_free(&list.pids);
    return count;
}

static size_t children_of(const struct process_pids *list, pid_t pid) {
    size_t count = 0;
    for (size_t i = 0; i < list->pids.count; i++)
        count += process_parent(list->pids.items[i]) == pid;
    return count;
}

// The arguments of a process as one safe line.
static void command_line(pid_t pid, size_t columns, char *out, size_t size) {
    char text[256];
    size_t length = process_read(pid, "cmdline", text, sizeof text);
    while (length && !text[length - 1]) length--;
    for (size_t i = 0; i < length; i++)
        if (!text[i]) text[i] = ' ';
    while (length && text[length - 1] == ' ') length--;
    text[length] = 0;
    text_escape(out, size, text);
    text_cut(out, columns);
}

// One has to be chosen: the error says what distinguishes them. `are`: "processes are".
static bool running_tell_several(const char *name, const char *are, const struct process_pids *list,
                                 struct error *error) {
    enum { LISTED = 5, COLUMNS = 36, ONE_BYTES = 256, ALL_BYTES = 1024 };
    char all[ALL_BYTES] = "", one[ONE_BYTES], command[ONE_BYTES / 2];
    for (size_t i = 0; i < list->pids.count; i++) {
        pid_t pid = list->pids.items[i], parent = process_parent(pid);
        size_t used = strlen(all), children = children_of(list, pid);
        command_line(pid, COLUMNS, command, sizeof command);
        if (i == LISTED)
            snprintf(one, sizeof one, "...");
        else if (process_pids_has(list, parent))
            snprintf(one, sizeof one, "%d (child of %d: %s)", (int)pid, (int)parent, command);
        else if (children)
            snprintf(one, sizeof one, "%d (parent of %zu: %s)", (int)pid, children, command);
        else
            snprintf(one, sizeof one, "%d (%s)", (int)pid, command);
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", one);
        if (i == LISTED) break;
    }
    return error_set(error, "%zu %s called \"%s\", give a pid: %s", list->pids.count, are, name,
                     all);
}

// The only one of the list whose parent is not in it; 0: there are several.
static pid_t find_root(const struct process_pids *list) {
    pid_t root = 0;
    for (size_t i = 0; i < list->pids.count; i++) {
        pid_t pid = list->pids.items[i];
        if (process_pids_has(list, process_parent(pid))) continue;
        if (root) return 0;
        root = pid;
    }
    return root;
}

static bool find_by_name(const char *name, bool is_tree, pid_t *pid, struct error *error) {
    struct process_pids list;
    bool is_ok = running_list(name, NULL, NULL, &list, error);
    pid_t root = is_ok && is_tree ? find_root(&list) : 0;
    if (is_ok && (list.pids.count == 1 || root))
        *pid = root ? root : list.pids.items[0];
    else if (is_ok && list.pids.count)
        is_ok = running_tell_several(name, "processes are", &list, error);
    else if (is_ok)
        is_ok = error_set(error, "no process is called \"%s\"", name);
    array_free(&list.pids);
    return is_ok;
}

static bool find_one(const char *which, bool is_tree, pid_t *pid, struct error *error) {
    const long most = 1 << 22;  // PID_MAX_LIMIT of the kernel
    if (!running_is_number(which)) return find_by_name(which, is_tree, pid, error);
    long number = strtol(which, NULL, 10);
    if (number <= 0 || number > most) return error_set(error, "there is no process %s", which);
    *pid = (pid_t)number;
    return true;
}

bool running_find(const char *which, pid_t *pid, struct error *error) {
    return find_one(which, false, pid, error);
}

bool running_find_tree(const char *which, pid_t *pid, struct error *error) {
    return find_one(which, true, pid, error);
}

enum { LINE_BYTES = PATH_MAX + 128 };

// A descriptor of the process `pid` for the memory with this inode.
static bool find_descriptor(const char *pid, ino_t inode, char path[PATH_MAX]) {
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "/proc/%s/fd", pid);
    DIR *entries = opendir(directory);
    bool is_found = false;
    if (!entries) return false;
    for (struct dirent *entry; !is_found && (entry = readdir(entries));) {
        struct stat status;
        if (!running_is_number(entry->d_name)) continue;
        int length = snprintf(path, PATH_MAX, "%s/%s", directory, entry->d_name);
        is_found = length < PATH_MAX && !stat(path, &status) && status.st_ino == inode &&
                   S_ISREG(status.st_mode) && live_is_recording(path);
    }
    closedir(entries);
    return is_found;
}

// The cairn that started a process is one of its ancestors, and another one holds it only after an
// attach: so few descriptors are looked at, also where very many processes are recorded.
static bool find_holder(const char *pid, ino_t inode, char path[PATH_MAX]) {
    char holder[16];
    pid_t ancestor = process_parent((pid_t)strtol(pid, NULL, 10));
    for (; ancestor > 1; ancestor = process_parent(ancestor)) {
        snprintf(holder, sizeof holder, "%d", (int)ancestor);
        if (find_descriptor(holder, inode, path)) return true;
    }
    DIR *entries = opendir("/proc");
    bool is_found = false;
    if (!entries) return false;
    for (struct dirent *entry; !is_found && (entry = readdir(entries));)
        is_found = running_is_number(entry->d_name) && find_descriptor(entry->d_name, inode, path);
    closedir(entries);
    return is_found;
}

static bool has_inode(const char *path, uintmax_t inode) {
    struct stat status;
    return !stat(path, &status) && status.st_ino == inode;
}

// A file that a process has mapped, which may be in a tree of its own (a container).
static bool find_file(const char *pid, const char *name, uintmax_t inode, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s", name);
    bool is_plain = live_is_recording(path);
    if (is_plain && has_inode(path, inode)) return true;
    int length = snprintf(path, PATH_MAX, "/proc/%.16s/root%s", pid, name);
    if (length < PATH_MAX && live_is_recording(path)) return true;
    snprintf(path, PATH_MAX, "%s", name);
    return is_plain;
}

// The recording that a line of /proc/PID/maps is about, if it is one; or memory of one, whoever
// holds it.
static bool find_mapped(const char *pid, char *line, char path[PATH_MAX], bool *is_memory) {
    uintmax_t inode = 0;
    int name = 0;
    *is_memory = false;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%*s %*s %*s %*s %ju %n", &inode, &name) < 1 || !name || !inode) return false;
    *is_memory = unnamed_file_is_called(line + name, "cairn");
    if (*is_memory) return find_holder(pid, (ino_t)inode, path);
    bool is_shared = strstr(line, "-s ") != NULL;
    return is_shared && line[name] == '/' && find_file(pid, line + name, inode, path);
}

bool live_find(const char *pid, char path[PATH_MAX], struct error *error) {
    char maps[64], *line = malloc(LINE_BYTES);
    bool is_found = false;
    snprintf(maps, sizeof maps, "/proc/%.16s/maps", pid);
    FILE *file = line ? fopen(maps, "re") : NULL;
    if (!file) {
        bool is_absent = errno == ENOENT;
        free(line);
        if (!is_absent) return error_set(error, "process %s belongs to somebody else", pid);
        return error_set(error,
                         process_can_look() ? "there is no process %s, and no file of this name"
                                            : "%s: no file of this name, and /proc is not mounted",
                         pid);
    }
    bool has_memory = false, has_any = false;
    while (!is_found && !has_memory && fgets(line, LINE_BYTES, file)) {
        is_found = find_mapped(pid, line, path, &has_memory);  // looked for once, for all its parts
        has_any = true;
    }
    fclose(file);
    free(line);
    if (is_found) return true;
    if (!has_any) return examine_absence((pid_t)strtol(pid, NULL, 10), error);
    if (has_memory)
        return error_set(error, "process %s: the cairn that records it cannot be read", pid);
    return error_set(error, "process %s is not being recorded: cairn attach %s does that", pid,
                     pid);
}

// The pid in the innermost name space, where the process writes it into its recording.
static long inner_pid(const char *pid) {
    char path[64], line[256];
    long number = strtol(pid, NULL, 10);
    snprintf(path, sizeof path, "/proc/%.16s/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "NSpid:", 6) != 0) continue;
        const char *last = strrchr(line, '\t');
        if (last) number = strtol(last, NULL, 10);
        break;
    }
    if (file) fclose(file);
    return number;
}

static bool is_own_process(uint32_t pid) {
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u", pid);
    return pid && !stat(path, &status) && status.st_uid == geteuid();
}

// Whose the recording at a path is: cairn itself has those of others mapped, and so has a fork that
// did not allocate yet.
static bool describe(const char *pid, struct live_process *process) {
    struct cairn_header *header =
        aligned_alloc(_Alignof(struct cairn_header), sizeof(struct cairn_header));
    FILE *file = header ? fopen(process->path, "re") : NULL;
    bool is_right = file && fread(header, sizeof *header, 1, file) == 1 &&
                    (long)header->pid == inner_pid(pid) && header->state == CAIRN_STATE_RUNNING;
    if (is_right) {
        header->executable[CAIRN_TEXT_PATH - 1] = header->command[CAIRN_TEXT_COMMAND - 1] = 0;
        header->comm[sizeof header->comm - 1] = 0;
        header->destination[sizeof header->destination - 1] = 0;
        snprintf(process->destination, PATH_MAX, "%s", header->destination);
        process->pid = (int)strtol(pid, NULL, 10);
        process->is_own = header->uid == geteuid() || is_own_process(header->control.tool_pid);
        if (!process_name(process->pid, process->name)) recording_program(header, process->name);
    }
    if (file) fclose(file);
    free(header);
    return is_right;
}

static int compare_processes(const void *a, const void *b) {
    const struct live_process *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

bool live_list(struct live_list *list, struct error *error) {
    *list = (struct live_list){0};
    DIR *entries = open_processes(error);
    if (!entries) return false;
    bool has_memory = true;
    for (struct dirent *entry; has_memory && (entry = readdir(entries));) {
        struct live_process process;
        struct error unused;
        if (!running_is_number(entry->d_name)) continue;
        if (!live_find(entry->d_name, process.path, &unused)) continue;
        if (!describe(entry->d_name, &process)) continue;
        struct live_process *slot = array_push(&list->processes);
        has_memory = slot != NULL;
        if (slot) *slot = process;
    }
    closedir(entries);
    if (list->processes.count)
        qsort(list->processes.items, list->processes.count, sizeof *list->processes.items,
              compare_processes);
    return has_memory || error_set(error, "no memory for the list of processes");
}

static bool lies_in(const struct live_process *process, const struct stat *directory) {
    char path[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(process->destination, '/');
    if (!slash) return false;
    snprintf(path, sizeof path, "%.*s", (int)(slash - process->destination), process->destination);
    return !stat(path, &status) && status.st_dev == directory->st_dev &&
           status.st_ino == directory->st_ino;
}

bool live_list_of_run(const char *directory, struct live_list *list, struct error *error) {
    struct stat status;
    size_t kept = 0;
    if (!live_list(list, error)) return false;
    bool is_there = !stat(directory, &status);
    for (size_t i = 0; is_there && i < list->processes.count; i++)
        if (lies_in(&list->processes.items[i], &status))
            list->processes.items[kept++] = list->processes.items[i];
    list->processes.count = kept;
    return true;
}

// What is being recorded, for those who named something else.
static void tell_recorded(char *out, size_t size) {
    struct live_list list;
    size_t used = 0;
    *out = 0;
    if (!live_list(&list, NULL)) return;
    for (size_t i = 0; i < list.processes.count && used < size; i++) {
        char name[NAME_MAX];
        text_escape(name, sizeof name, list.processes.items[i].name);
        used += (size_t)snprintf(out + used, size - used, "%s%s %d",
                                 i ? ", " : "; recorded: ", name, list.processes.items[i].pid);
    }
    array_free(&list.processes);
}

bool live_tell_absence(const char *which, struct error *error) {
    enum { LISTED_BYTES = 256 };
    char path[PATH_MAX], recorded[LISTED_BYTES];
    if (!which) return error_set(error, "no process of yours is being recorded");
    if (!running_is_number(which)) {
        tell_recorded(recorded, sizeof recorded);
        return error_set(error,
                         access(which, F_OK)
                             ? "no process called \"%s\" is being recorded%s"
                             : "\"%s\" is not a recording, nor the name of a recorded process%s",
                         which, recorded);
    }
    snprintf(path, sizeof path, "/proc/%s", which);
    if (access(path, F_OK))
        return error_set(error,
                         process_can_look() ? "there is no process %s"
                                            : "process %s: /proc is not mounted",
                         which);
    if (live_find(which, path, error))
        error_set(error, "process %s is not being recorded: it is cairn", which);
    return false;
}

bool live_describe(pid_t pid, struct live_process *process) {
    char text[16];
    struct error unused;
    snprintf(text, sizeof text, "%d", (int)pid);
    return live_find(text, process->path, &unused) && describe(text, process);
}

static bool is_recorded(void *context, pid_t pid) {
    (void)context;
    struct live_process process;
    return live_describe(pid, &process);
}

static bool select_pid(const char *which, struct live_list *list, struct error *error) {
    struct live_process *slot = array_push(&list->processes);
    if (!slot) return error_set(error, "no memory for the list of processes");
    list->processes.count = 0;
    if (!live_find(which, slot->path, error) || !describe(which, slot))
        return live_tell_absence(which, error);
    list->processes.count = 1;
    return true;
}

static bool select_name(const char *which, struct live_list *list, struct error *error) {
    struct process_pids called;
    bool is_ok = running_list(which, is_recorded, NULL, &called, error);
    for (size_t i = 0; is_ok && i < called.pids.count; i++) {
        struct live_process *slot = array_push(&list->processes);
        is_ok = slot || error_set(error, "no memory for the list of processes");
        // one that has ended meanwhile is left out
        if (slot && !live_describe(called.pids.items[i], slot)) list->processes.count--;
    }
    array_free(&called.pids);
    return is_ok && (list->processes.count || live_tell_absence(which, error));
}

bool live_select(const char *which, struct live_list *list, struct error *error) {
    *list = (struct live_list){0};
    return running_is_number(which) ? select_pid(which, list, error)
                                    : select_name(which, list, error);
}

bool live_tell_several(const char *which, const struct live_list *list, struct error *error) {
    struct process_pids pids = {0};
    for (size_t i = 0; i < list->processes.count; i++) {
        pid_t *slot = array_push(&pids.pids);
        if (slot) *slot = list->processes.items[i].pid;
    }
    running_tell_several(which, "recorded processes are", &pids, error);
    array_free(&pids.pids);
    return false;
}

bool live_choose(const char *which, struct live_process *process, struct error *error) {
    struct live_list list;
    bool is_ok = live_select(which, &list, error);
    if (is_ok && list.processes.count == 1)
        *process = list.processes.items[0];
    else if (is_ok)
        is_ok = live_tell_several(which, &list, error);
    array_free(&list.processes);
    return is_ok;
}
