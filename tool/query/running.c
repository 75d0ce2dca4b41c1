// SPDX-License-Identifier: Apache-2.0
#include "tool/query/running.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/proc/process.h"

enum { NOT_CALLED, CALLED_ELSE, CALLED_SO };

bool running_is_number(const char *text) {
    return *text && !text[strspn(text, "0123456789")];
}

bool running_may_be(const char *word) {
    return *word && !strchr(word, '/') && access(word, F_OK) != 0;
}

static int how_called(pid_t pid, const char *name) {
    char names[PROCESS_NAMES][NAME_MAX];
    if (!process_names(pid, names)) return NOT_CALLED;
    if (!strcmp(names[0], name)) return CALLED_SO;
    for (size_t i = 1; i < PROCESS_NAMES; i++)
        if (!strcmp(names[i], name)) return CALLED_ELSE;
    return NOT_CALLED;
}

static int compare_pids(const void *a, const void *b) {
    const pid_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

bool running_list(const char *name, running_is_wanted *is_wanted, void *context,
                  struct running_list *list, struct error *error) {
    int best = CALLED_ELSE;
    bool has_memory = true;
    *list = (struct running_list){0};
    DIR *entries = opendir("/proc");
    if (!entries) return error_set(error, "/proc: %s", strerror(errno));
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
    if (list->pids.count)
        qsort(list->pids.items, list->pids.count, sizeof *list->pids.items, compare_pids);
    return has_memory || error_set(error, "no memory for the list of processes");
}

static bool has(const struct running_list *list, pid_t pid) {
    for (size_t i = 0; i < list->pids.count; i++)
        if (list->pids.items[i] == pid) return true;
    return false;
}

static size_t children_of(const struct running_list *list, pid_t pid) {
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

bool running_tell_several(const char *name, const char *are, const struct running_list *list,
                          struct error *error) {
    enum { LISTED = 5, COLUMNS = 36, ONE_BYTES = 256, ALL_BYTES = 1024 };
    char all[ALL_BYTES] = "", one[ONE_BYTES], command[ONE_BYTES / 2];
    for (size_t i = 0; i < list->pids.count; i++) {
        pid_t pid = list->pids.items[i], parent = process_parent(pid);
        size_t used = strlen(all), children = children_of(list, pid);
        command_line(pid, COLUMNS, command, sizeof command);
        if (i == LISTED)
            snprintf(one, sizeof one, "...");
        else if (has(list, parent))
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
static pid_t find_root(const struct running_list *list) {
    pid_t root = 0;
    for (size_t i = 0; i < list->pids.count; i++) {
        pid_t pid = list->pids.items[i];
        if (has(list, process_parent(pid))) continue;
        if (root) return 0;
        root = pid;
    }
    return root;
}

static bool find_by_name(const char *name, bool is_tree, pid_t *pid, struct error *error) {
    struct running_list list;
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
