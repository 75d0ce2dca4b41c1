// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/processes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/subject.h"
#include "tool/model/reader.h"

enum { NAME_BYTES = 64 };

struct process {
    char name[NAME_BYTES];
    uint32_t pid;
    uint64_t peak_bytes, start_unix_ns;
    bool is_shown;
};

struct process_list {
    ARRAY(struct process) processes;
};

static bool add(struct process_list *list, const char *path, bool is_shown) {
    struct recording recording;
    if (!recording_open(path, &recording, NULL)) return true;
    const struct cairn_header *header = &recording.header;
    struct process *process = array_push(&list->processes);
    if (process) {
        *process = (struct process){.pid = header->pid,
                                    .peak_bytes = header->totals.peak_bytes,
                                    .start_unix_ns = header->start_unix_ns,
                                    .is_shown = is_shown};
        int64_t live = header->totals.live_bytes;
        if (live > 0 && (uint64_t)live > process->peak_bytes) process->peak_bytes = (uint64_t)live;
        text_escape(process->name, sizeof process->name, text_base_name(header->command));
    }
    recording_close(&recording);
    return process != NULL;
}

static int compare(const void *a, const void *b) {
    const struct process *first = a, *second = b;
    if (first->peak_bytes != second->peak_bytes)
        return first->peak_bytes < second->peak_bytes ? 1 : -1;
    return (first->start_unix_ns > second->start_unix_ns) -
           (first->start_unix_ns < second->start_unix_ns);
}

static bool collect(struct process_list *list, const char *directory, const char *shown,
                    struct error *error) {
    DIR *entries = opendir(directory);
    if (!entries) return error_set(error, "%s: %s", directory, strerror(errno));
    bool is_ok = true;
    for (struct dirent *entry; is_ok && (entry = readdir(entries));) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (!subject_is_recording_name(entry->d_name) || length >= (int)sizeof path) continue;
        is_ok = add(list, path, shown && !strcmp(text_base_name(shown), entry->d_name));
    }
    closedir(entries);
    return is_ok || error_set(error, "no memory for the list of processes");
}

static void print_process(const struct terminal *terminal, const struct process *process) {
    enum { SIZE_COLUMNS = 12 };
    fprintf(terminal->out, "%*s   ", SIZE_COLUMNS, units_size((int64_t)process->peak_bytes).text);
    terminal_print(terminal, STYLE_NAME, "%s", process->name);
    terminal_print(terminal, STYLE_DIM, "  pid %" PRIu32 "%s\n", process->pid,
                   process->is_shown ? ", this one" : "");
}

static void print_list(const struct terminal *terminal, const struct process_list *list) {
    size_t count = list->processes.count, small = 0;
    terminal_print(terminal, STYLE_DIM, "  %s processes by peak heap\n",
                   units_count((int64_t)count).text);
    for (size_t i = 0; i < count; i++) {
        const struct process *process = &list->processes.items[i];
        bool is_small = process->peak_bytes < PROCESS_SMALL_BYTES && !process->is_shown;
        small += is_small;
        if (!is_small) print_process(terminal, process);
    }
    if (small)
        terminal_print(terminal, STYLE_DIM, "               %s more, each below %s\n",
                       units_count((int64_t)small).text, units_size(PROCESS_SMALL_BYTES).text);
}

bool processes_print(const struct terminal *terminal, const char *directory, const char *path,
                     struct error *error) {
    struct process_list list = {0};
    bool is_ok = collect(&list, directory, path, error);
    if (is_ok && list.processes.count > 1) {
        qsort(list.processes.items, list.processes.count, sizeof *list.processes.items, compare);
        print_list(terminal, &list);
    }
    array_free(&list.processes);
    return is_ok;
}
