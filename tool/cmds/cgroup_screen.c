// SPDX-License-Identifier: Apache-2.0
// The answer of `report --cgroup` as a screen of at most 40 lines.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/cgroup_answer.h"

// Rows of parts, from which share on one is told by itself at first, and rows of the lists below.
enum { ROWS_MOST = 14, SHARE_LEAST = 200, PROCESSES_SHOWN = 4, FILES_SHOWN = 3, NAMES_SHOWN = 3 };
enum { KERNEL_ROWS = 3 };
enum { ROWS_ALL = CGROUP_PARTS + KINDS + NAMES_SHOWN + 1 + KERNEL_ROWS, TEXT_BYTES = 256 };

struct row {
    uint64_t bytes;
    bool is_within;  // the part before it that is not
    char text[TEXT_BYTES];
};

struct rows {
    struct row items[ROWS_ALL];
    size_t count;
};

static void add(struct rows *rows, uint64_t bytes, bool is_within, const char *text) {
    if (!bytes) return;
    struct row *row = &rows->items[rows->count++];
    row->bytes = bytes;
    row->is_within = is_within;
    snprintf(row->text, sizeof row->text, "%s", text);
}

// --- parts

// Adds memory with a name by its name, as far as there is room.
static void add_names(struct rows *rows, const struct cgroup_processes *processes) {
    uint64_t left = processes->bytes[KIND_NAMED];
    char name[TEXT_BYTES / 2], text[TEXT_BYTES];
    for (size_t i = 0; i < processes->names.count && i < NAMES_SHOWN; i++) {
        uint64_t bytes = processes->names.items[i].pss_bytes;
        if (bytes > left) bytes = left;
        text_escape(name, sizeof name, processes->names.items[i].name);
        snprintf(text, sizeof text, "[anon:%s]", name);
        add(rows, bytes, true, text);
        left -= bytes;
    }
    add(rows, left, true, "mapped with other names");
}

static void add_kinds(struct rows *rows, const struct cgroup_answer *answer) {
    const struct cgroup_processes *processes = &answer->processes;
    char text[TEXT_BYTES];
    for (int kind = 0; kind < KINDS; kind++) {
        bool is_least = kind == KIND_FREE && processes->is_cut;
        snprintf(text, sizeof text, "%s%s", memory_kind_text((enum memory_kind)kind),
                 is_least ? ", at least" : "");
        if (kind == KIND_NAMED)
            add_names(rows, processes);
        else
            add(rows, processes->bytes[kind], true, text);
    }
    add(rows, answer->unread_bytes, true, "of no process that was read, or lost in rounding");
}

// Adds the kernel's memory by what processes have, where the kernel tells one sum of it.
static void add_kernel(struct rows *rows, const struct cgroup_answer *answer) {
    char text[TEXT_BYTES];
    const uint64_t threads = answer->processes.thread_count;
    snprintf(text, sizeof text, "stacks of %s in the kernel, about",
             units_counted((int64_t)threads, "thread", "threads").text);
    add(rows, answer->kernel_tables_bytes, true, "page tables of its processes");
    add(rows, answer->kernel_stacks_bytes, true, text);
    if (answer->kernel_tables_bytes + answer->kernel_stacks_bytes)
        add(rows, answer->kernel_rest_bytes, true, "slab and what else");
}

static void add_parts(struct rows *rows, const struct cgroup_answer *answer) {
    for (int part = 0; part < CGROUP_PARTS; part++) {
        add(rows, answer->parts.bytes[part], false,
            cgroup_part_text((enum cgroup_part)part, answer->cgroup.is_old));
        if (part == CGROUP_ANONYMOUS && answer->parts.bytes[part]) add_kinds(rows, answer);
        if (part == CGROUP_KERNEL && answer->cgroup.is_old) add_kernel(rows, answer);
    }
}

// Rows of a level that are to become one.
struct small {
    uint64_t bytes;
    size_t count;
    struct row last;
};

// Adds what small rows became: the row itself if it is one.
static void flush(struct rows *rows, struct small *small, bool is_within) {
    if (small->count == 1)
        rows->items[rows->count++] = small->last;
    else
        add(rows, small->bytes, is_within, "smaller ones (--json has them)");
    *small = (struct small){.count = 0};
}

// Joins what is less than `least` into one row of its level, in front of what is not known.
static void fold(const struct rows *rows, uint64_t least, struct rows *folded) {
    struct small parts = {.count = 0}, kinds = {.count = 0};
    folded->count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        bool has_kinds = i + 1 < rows->count && row[1].is_within && !row->is_within;
        bool is_unknown = !strncmp(row->text, "not known", strlen("not known"));
        if (!row->is_within && kinds.count) flush(folded, &kinds, true);
        if (is_unknown && parts.count) flush(folded, &parts, false);
        if (row->bytes >= least || has_kinds || is_unknown) {
            folded->items[folded->count++] = *row;
            continue;
        }
        struct small *small = row->is_within ? &kinds : &parts;
        small->bytes += row->bytes;
        small->count++;
        small->last = *row;
    }
    if (kinds.count) flush(folded, &kinds, true);
    if (parts.count) flush(folded, &parts, false);
}

static void print_parts(const struct terminal *terminal, const struct cgroup_answer *answer) {
    const uint64_t all = answer->parts.used_bytes;
    struct rows rows = {.count = 0}, folded;
    uint64_t least = all / SHARE_LEAST + 1;
    add_parts(&rows, answer);
    for (fold(&rows, least, &folded); folded.count > ROWS_MOST; fold(&rows, least, &folded))
        least *= 2;
    for (size_t i = 0; i < folded.count; i++) {
        const struct row *row = &folded.items[i];
        printf("  %6s %10s  %s", units_percent((int64_t)row->bytes, (int64_t)all).text,
               units_size((int64_t)row->bytes).text, row->is_within ? "  " : "");
        terminal_print(terminal, row->is_within ? STYLE_PLAIN : STYLE_STRONG, "%s\n", row->text);
    }
    printf("  %6s %10s  in use (%s)\n", "100 %", units_size((int64_t)all).text,
           answer->cgroup.is_old ? "memory.usage_in_bytes" : "memory.current");
}

// --- what there is beside them

static void print_doubts(const struct terminal *terminal, const struct cgroup_answer *answer) {
    const struct cgroup_parts *parts = &answer->parts;
    if (parts->over_bytes)
        terminal_print(terminal, STYLE_DIM,
                       "the parts are %s more than that: the kernel counts them late\n",
                       units_size((int64_t)parts->over_bytes).text);
    if (answer->elsewhere_bytes)
        terminal_print(terminal, STYLE_DIM,
                       "its processes have %s more: charged to another cgroup, or late\n",
                       units_size((int64_t)answer->elsewhere_bytes).text);
}

static void beside(struct parts *line, uint64_t bytes, const char *text) {
    if (bytes) parts_add(line, STYLE_PLAIN, "%s %s", units_size((int64_t)bytes).text, text);
}

static void print_beside(const struct terminal *terminal, const struct cgroup_answer *answer) {
    const struct cgroup_parts *parts = &answer->parts;
    struct parts line = {.terminal = terminal};
    beside(&line, parts->swap_bytes, "swapped out beside it");
    if (!parts->has_swap) parts_add(&line, STYLE_PLAIN, "swap: not known");
    beside(&line, parts->huge_bytes, "of the anonymous in huge pages");
    beside(&line, parts->beside_hugetlb_bytes, "of hugetlbfs beside it");
    beside(&line, parts->beside_kernel_bytes, "of the kernel beside it");
    beside(&line, parts->beside_sockets_bytes, "of TCP beside it");
    if (parts->kills)
        parts_add(&line, STYLE_WARNING, "%s",
                  units_counted((int64_t)parts->kills, "kill for want of memory",
                                "kills for want of memory")
                      .text);
    parts_end(&line);
}

// --- lists

// Returns the figure of glibc's malloc; "-": it has no such heap, "not known": it was not read.
static struct unit_text of_malloc(const struct cgroup_process *process, enum memory_kind kind) {
    static const struct unit_text none = {"-"}, unread = {"not known"};
    uint64_t bytes = process->bytes[kind];
    bool is_read = process->bytes[KIND_IN_USE] || process->bytes[KIND_FREE];
    if (!bytes && process->bytes[KIND_HEAP]) return unread;
    return is_read ? units_size((int64_t)bytes) : none;
}

static void print_process(const struct terminal *terminal, const struct cgroup_process *process) {
    enum { FIGURES_COLUMNS = 44 };
    char name[NAME_MAX];
    snprintf(name, sizeof name, "%s", process->name);
    text_cut(name, terminal->columns > 2 * FIGURES_COLUMNS ? terminal->columns - FIGURES_COLUMNS
                                                           : FIGURES_COLUMNS / 2);
    printf("  %10s %10s %10s %8d  ", units_size((int64_t)process->anonymous_bytes).text,
           of_malloc(process, KIND_IN_USE).text, of_malloc(process, KIND_FREE).text,
           (int)process->pid);
    terminal_print(terminal, STYLE_NAME, "%s", name);
    puts(process->is_recorded ? ", recorded" : "");
}

// "and 3 more; 1 may not be read: ask as root".
static void print_others(const struct terminal *terminal,
                         const struct cgroup_processes *processes) {
    struct parts line = {.terminal = terminal};
    size_t more =
        processes->items.count > PROCESSES_SHOWN ? processes->items.count - PROCESSES_SHOWN : 0;
    if (more) parts_add(&line, STYLE_DIM, "and %zu more", more);
    if (processes->refused_count)
        parts_add(&line, STYLE_WARNING, "%zu may not be read%s", processes->refused_count,
                  geteuid() ? ": ask as root (sudo)" : "");
    if (processes->hidden_count)
        parts_add(&line, STYLE_WARNING, "%zu of another PID name space", processes->hidden_count);
    if (processes->ended_count)
        parts_add(&line, STYLE_DIM, "%zu ended meanwhile", processes->ended_count);
    parts_end(&line);
}

static void print_processes(const struct terminal *terminal,
                            const struct cgroup_processes *processes) {
    if (!processes->items.count)
        terminal_print(terminal, STYLE_DIM, "no process of it could be read\n");
    else
        terminal_print(terminal, STYLE_DIM, "  %10s %10s %10s %8s  %s\n", "ANONYMOUS", "IN USE",
                       "FREE", "PID", "PROCESS");
    for (size_t i = 0; i < processes->items.count && i < PROCESSES_SHOWN; i++)
        print_process(terminal, &processes->items.items[i]);
    print_others(terminal, processes);
}

static void print_files(const struct terminal *terminal, const struct cgroup_processes *processes) {
    enum { FIGURES_COLUMNS = 22 };
    if (!processes->files.count) return;
    terminal_print(terminal, STYLE_DIM, "files and shared memory in memory, whoever is charged%s\n",
                   processes->has_open_files ? "" : "; those mapped");
    for (size_t i = 0; i < processes->files.count && i < FILES_SHOWN; i++) {
        const struct cgroup_file *file = &processes->files.items[i];
        char name[TEXT_BYTES];
        text_escape(name, sizeof name, file->name);
        text_cut(name, terminal->columns > 2 * FIGURES_COLUMNS ? terminal->columns - FIGURES_COLUMNS
                                                               : FIGURES_COLUMNS);
        printf("  %17s  %s\n", units_size((int64_t)file->bytes).text, name);
    }
}

static void print_heap(const struct terminal *terminal, const struct cgroup_answer *answer) {
    enum { FIGURES_COLUMNS = 21 };
    if (!answer->heap_count) return;
    const struct cgroup_heap *heap = answer->heaps[0];
    terminal_print(terminal, STYLE_DIM, "heap of %s (%d) by stack, %s%s live", heap->process->name,
                   (int)heap->process->pid, heap->is_sampled ? "about " : "",
                   units_size(heap->live_bytes).text);
    size_t others = answer->heap_count - 1 + answer->heaps_left_out;
    if (others) terminal_print(terminal, STYLE_DIM, "; %zu more recorded", others);
    putchar('\n');
    for (size_t i = 0; i < heap->sites.sites.count && i < CGROUP_SITES; i++) {
        const struct site *site = &heap->sites.sites.items[i];
        printf("  %6s %10s  ", units_percent(site->measured.value, heap->live_bytes).text,
               units_size(site->measured.value).text);
        site_print(terminal, site, FIGURES_COLUMNS);
    }
}

// Prints the command that shows more of the largest process.
static void print_next(const struct terminal *terminal, const struct cgroup_answer *answer) {
    if (!answer->processes.items.count) return;
    terminal_print(terminal, STYLE_STRONG, "next: cairn report %d\n",
                   (int)answer->processes.items.items[0].pid);
}

// Breaks the sentence where its last part begins, if it is wider than the screen.
static void print_sentence(const struct terminal *terminal, const char *sentence) {
    enum { INDENT = 2 };
    const char *last = strstr(sentence, "processes, ");
    bool is_wide = strlen(sentence) + INDENT > terminal->columns;
    size_t first = is_wide && last ? (size_t)(last - sentence) + strlen("processes,") : 0;
    if (first) terminal_print(terminal, STYLE_STRONG, "  %.*s\n", (int)first, sentence);
    terminal_print(terminal, STYLE_STRONG, "  %s\n", sentence + first + (first > 0));
}

void cgroup_screen_print(const struct cgroup_answer *answer) {
    const struct terminal terminal = terminal_of(stdout);
    const struct cgroup_parts *parts = &answer->parts;
    char path[PATH_MAX];
    text_escape(path, sizeof path, answer->cgroup.path);
    terminal_print(&terminal, STYLE_STRONG, "%s", path);
    printf(" · %s", units_size((int64_t)parts->used_bytes).text);
    if (parts->limit_bytes != UINT64_MAX)
        printf(" of %s", units_size((int64_t)parts->limit_bytes).text);
    printf(" in use:\n");
    print_sentence(&terminal, answer->sentence);
    print_parts(&terminal, answer);
    print_doubts(&terminal, answer);
    print_beside(&terminal, answer);
    print_processes(&terminal, &answer->processes);
    print_files(&terminal, &answer->processes);
    print_heap(&terminal, answer);
    print_next(&terminal, answer);
}
