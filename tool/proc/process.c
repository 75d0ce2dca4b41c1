// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool/base/linker_words.h"
#include "tool/base/text.h"

enum { AUXILIARY_MAX = 64, ENVIRONMENT_BYTES_MAX = 1 << 20, STAT_BYTES = 2048 };

uint64_t process_page_bytes(void) {
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

// --- files below /proc/PID

const char *process_path(char path[PROCESS_PATH_BYTES], pid_t pid, const char *file) {
    snprintf(path, PROCESS_PATH_BYTES, "/proc/%d/%s", (int)pid, file);
    return path;
}

int process_open(pid_t pid, const char *file, int flags) {
    char path[PROCESS_PATH_BYTES];
    return open(process_path(path, pid, file), flags | O_CLOEXEC);
}

FILE *process_open_text(pid_t pid, const char *file) {
    char path[PROCESS_PATH_BYTES];
    return fopen(process_path(path, pid, file), "re");
}

bool process_can_open(size_t count, struct error *error) {
    int files[PROCESS_FILES_MAX], file = 0;
    size_t opened = 0;
    if (count > PROCESS_FILES_MAX) count = PROCESS_FILES_MAX;
    while (opened < count && (file = open("/", O_PATH | O_CLOEXEC)) >= 0) files[opened++] = file;
    if (file < 0) error_set(error, "%s (ulimit -n)", strerror(errno));
    while (opened > 0) close(files[--opened]);
    return file >= 0;
}

bool process_say_unreadable(struct error *error) {
    enum { OPEN_TOGETHER = 3 };  // in the deepest reading of one
    return process_can_open(OPEN_TOGETHER, error) && error_set(error, "it has ended");
}

bool process_own_executable(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length > 0) {
        path[length] = 0;
        return true;
    }
    const char *told = (const char *)getauxval(AT_EXECFN);
    return told && realpath(told, path);
}

bool process_can_look(void) {
    return access("/proc/self", F_OK) == 0;
}

static size_t read_all(int file, void *bytes, size_t size) {
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(file, (char *)bytes + used, size - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    return used;
}

size_t process_read(pid_t pid, const char *file, char *text, size_t size) {
    int descriptor = process_open(pid, file, O_RDONLY);
    size_t length = descriptor < 0 ? 0 : read_all(descriptor, text, size - 1);
    if (descriptor >= 0) close(descriptor);
    text[length] = 0;
    return length;
}

size_t process_link(pid_t pid, const char *file, char *target, size_t size) {
    char path[PROCESS_PATH_BYTES];
    ssize_t length = readlink(process_path(path, pid, file), target, size - 1);
    if (length < 0) length = 0;
    target[length] = 0;
    return (size_t)length;
}

bool process_auxiliary(pid_t pid, uint64_t type, uint64_t *value) {
    Elf64_auxv_t vector[AUXILIARY_MAX];
    int file = process_open(pid, "auxv", O_RDONLY);
    size_t bytes = file < 0 ? 0 : read_all(file, vector, sizeof vector);
    if (file >= 0) close(file);
    for (size_t i = 0; i < bytes / sizeof *vector; i++) {
        if (vector[i].a_type != type) continue;
        *value = vector[i].a_un.a_val;
        return true;
    }
    return false;
}

const char *process_field(const char *status, const char *name) {
    size_t length = strlen(name);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, length) && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return "";
}

// --- what stat tells

bool process_stat(pid_t pid, struct process_stat *stat) {
    enum { STATE = 3, PARENT = 4, USER_TIME = 14, SYSTEM_TIME = 15, THREADS = 20, BORN = 22 };
    enum { FLAGS = 9, EXIT_CODE = 52 };
    const unsigned long kernel_flag = 0x200000;  // PF_KTHREAD of the kernel's sources
    char text[STAT_BYTES];
    process_read(pid, "stat", text, sizeof text);
    // fields are counted behind the name, which may hold any byte
    char *rest = strrchr(text, ')');
    int field = STATE;
    *stat = (struct process_stat){0};
    if (!rest || rest[1] != ' ') return false;
    rest += 2;
    for (const char *word; field <= EXIT_CODE && (word = strsep(&rest, " ")); field++) {
        if (field == STATE) stat->state = *word;
        if (field == PARENT) stat->parent = (pid_t)strtol(word, NULL, 10);
        if (field == FLAGS) stat->is_of_kernel = strtoul(word, NULL, 10) & kernel_flag;
        if (field == USER_TIME || field == SYSTEM_TIME) stat->ticks += strtoull(word, NULL, 10);
        if (field == THREADS) stat->thread_count = strtol(word, NULL, 10);
        if (field == BORN) stat->born = strtoull(word, NULL, 10);
        if (field == EXIT_CODE) stat->exit_code = (int)strtol(word, NULL, 10);
    }
    return field > BORN;
}

char process_state(pid_t pid, pid_t tid) {
    char file[PROCESS_PATH_BYTES], text[STAT_BYTES];
    snprintf(file, sizeof file, "task/%d/stat", (int)(tid ? tid : pid));
    process_read(pid, file, text, sizeof text);
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

pid_t process_parent(pid_t pid) {
    struct process_stat stat;
    process_stat(pid, &stat);
    return stat.parent;
}

bool process_has_ended(char state) {
    return !state || state == 'Z' || state == 'X';
}

// --- names

void process_comm(pid_t pid, char comm[PROCESS_COMM_BYTES]) {
    char text[PROCESS_COMM_BYTES + 1];  // with the end of the line
    process_read(pid, "comm", text, sizeof text);
    text[strcspn(text, "\n")] = 0;
    snprintf(comm, PROCESS_COMM_BYTES, "%s", text);
}

// The arguments of process_name_choose, of a running process.
struct facts {
    char comm[PROCESS_COMM_BYTES], executable[PATH_MAX], arguments[PATH_MAX];
    const char *second;
};

// The kernel executed a dynamic linker, which was given the program. Returns what is left of the
// arguments.
static size_t facts_of_program(struct facts *facts, size_t used) {
    const char *end = facts->arguments + used;
    const char *program = linker_words_program(facts->arguments, end);
    if (program == end) return used;
    if (linker_is_called(facts->comm)) *facts->comm = 0;
    used = (size_t)(end - program);
    memmove(facts->arguments, program, used + 1);
    snprintf(facts->executable, sizeof facts->executable, "%s", facts->arguments);
    return used;
}

static bool facts_read(pid_t pid, struct facts *facts) {
    process_link(pid, "exe", facts->executable, sizeof facts->executable);
    process_comm(pid, facts->comm);
    size_t used = process_read(pid, "cmdline", facts->arguments, sizeof facts->arguments);
    bool is_known = *facts->comm || *facts->executable || used;
    if (linker_is_called(facts->executable)) used = facts_of_program(facts, used);
    size_t first = strlen(facts->arguments) + 1;
    facts->second = first < used ? facts->arguments + first : "";
    return is_known;
}

bool process_name(pid_t pid, char name[NAME_MAX]) {
    struct facts facts;
    if (!facts_read(pid, &facts)) return false;
    process_name_choose(facts.comm, facts.executable, facts.arguments, facts.second, name);
    return *name;
}

bool process_names(pid_t pid, char names[PROCESS_NAMES][NAME_MAX]) {
    struct facts facts;
    if (!facts_read(pid, &facts)) return false;
    process_name_choose(facts.comm, facts.executable, facts.arguments, facts.second, names[0]);
    process_name_of_image(facts.executable, names[1]);
    snprintf(names[2], NAME_MAX, "%s", facts.comm);
    snprintf(names[3], NAME_MAX, "%s", text_base_name(facts.arguments));
    return true;
}

// --- lists of processes and threads

bool process_list_all(struct process_list *list) {
    list->directory = opendir("/proc");
    return list->directory;
}

bool process_list_threads(struct process_list *list, pid_t pid) {
    char path[PROCESS_PATH_BYTES];
    list->directory = opendir(process_path(path, pid, "task"));
    return list->directory;
}

pid_t process_list_next(struct process_list *list) {
    for (const struct dirent *entry; list->directory && (entry = readdir(list->directory));) {
        pid_t number = (pid_t)strtol(entry->d_name, NULL, 10);
        if (number > 0) return number;
    }
    return 0;
}

void process_list_close(struct process_list *list) {
    if (list->directory) closedir(list->directory);
    list->directory = NULL;
}

static int compare_pids(const void *a, const void *b) {
    const pid_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

void process_pids_sort(struct process_pids *list) {
    if (list->pids.count)
        qsort(list->pids.items, list->pids.count, sizeof *list->pids.items, compare_pids);
}

bool process_pids_has(const struct process_pids *list, pid_t pid) {
    return list->pids.count && bsearch(&pid, list->pids.items, list->pids.count,
                                       sizeof *list->pids.items, compare_pids);
}

static bool has_variable(pid_t pid, const char *variable, char *text) {
    int file = process_open(pid, "environ", O_RDONLY);
    if (file < 0) return false;
    size_t size = read_all(file, text, ENVIRONMENT_BYTES_MAX);
    close(file);
    return memmem(text, size, variable, strlen(variable)) &&
           !process_has_ended(process_state(pid, 0));
}

// The number that was given last; 0: not known.
static pid_t last_number(void) {
    char text[128] = "";
    int last = 0, file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    const char *field = size > 0 ? strrchr(text, ' ') : NULL;
    return field && sscanf(field, "%d", &last) == 1 ? last : 0;
}

bool process_any_with_variable(const char *variable, pid_t after) {
    struct process_list list;
    char *text = malloc(ENVIRONMENT_BYTES_MAX);
    bool is_found = false;
    // numbers go up, and begin anew behind the highest
    if (after && last_number() < after) after = 0;
    process_list_all(&list);
    for (pid_t pid; text && !is_found && (pid = process_list_next(&list));)
        is_found = pid > after && has_variable(pid, variable, text);
    process_list_close(&list);
    free(text);
    return is_found;
}
