// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/cgroup_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/report_summary.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"

enum { STACK_LEAST = 16 << 10 };  // of a thread in the kernel, on both processors

// --- heaps of processes that are recorded

static bool own_bytes(pid_t pid, uint64_t *bytes) {
    struct live_process live;
    struct recording recording;
    struct error unused;
    *bytes = 0;
    if (!live_describe(pid, &live)) return false;
    if (!recording_open(live.path, &recording, &unused)) return false;
    *bytes = recording.header.own_bytes;
    recording_close(&recording);
    return true;
}

static void free_heap(struct cgroup_heap *heap) {
    site_list_free(&heap->sites);
    opened_close(&heap->opened);
    free(heap);
}

// NULL: its recording cannot be read, or there is no memory.
static struct cgroup_heap *open_heap(const struct cgroup_process *process) {
    struct live_process live;
    struct error unused;
    struct cgroup_heap *heap = calloc(1, sizeof *heap);
    name_options_symbols()->process = (uint32_t)process->pid;  // its files, also of a container
    bool is_open = heap && live_describe(process->pid, &live) &&
                   opened_open(live.path, &heap->opened, &unused);
    if (!is_open) {
        free(heap);
        return NULL;
    }
    heap->process = process;
    heap->live_bytes = heap->opened.profile.exit_bytes;
    heap->live_blocks = heap->opened.profile.exit_blocks;
    heap->is_sampled = recording_is_sampled(&heap->opened.recording);
    return heap;
}

static int compare_heaps(const void *a, const void *b) {
    const struct cgroup_heap *left = *(struct cgroup_heap *const *)a;
    const struct cgroup_heap *right = *(struct cgroup_heap *const *)b;
    return (left->live_bytes < right->live_bytes) - (left->live_bytes > right->live_bytes);
}

// Names the stacks of a heap. False: it stays without them.
static bool find_sites(struct cgroup_heap *heap) {
    struct error unused;
    if (!report_resolve_places(&heap->opened, MEASURE_EXIT, &unused)) return false;
    heap->names = names_frames(heap->opened.names);
    return site_list_build(&heap->sites, &heap->opened.profile, &heap->names, MEASURE_EXIT,
                           CGROUP_SITES, false, &unused);
}

// Opens the heaps of those recorded processes that have the most anonymous memory.
static void open_heaps(struct cgroup_answer *answer) {
    for (size_t i = 0; i < answer->processes.items.count; i++) {
        const struct cgroup_process *process = &answer->processes.items.items[i];
        if (!process->is_recorded) continue;
        struct cgroup_heap *heap = answer->heap_count < CGROUP_HEAPS ? open_heap(process) : NULL;
        if (heap)
            answer->heaps[answer->heap_count++] = heap;
        else
            answer->heaps_left_out++;
    }
    if (answer->heap_count)
        qsort(answer->heaps, answer->heap_count, sizeof *answer->heaps, compare_heaps);
    for (size_t i = 0; i < answer->heap_count; i++) (void)find_sites(answer->heaps[i]);
}

// --- the sentence

struct largest {
    uint64_t bytes;
    const char *text;
};

static void take_larger(struct largest *largest, uint64_t bytes, const char *text) {
    if (bytes > largest->bytes) *largest = (struct largest){bytes, text};
}

static struct largest largest_part(const struct cgroup_answer *answer) {
    struct largest largest = {0, ""};
    for (int part = 0; part < CGROUP_PARTS; part++)
        take_larger(&largest, answer->parts.bytes[part],
                    cgroup_part_text((enum cgroup_part)part, answer->cgroup.is_old));
    return largest;
}

// Finds the largest kind of anonymous memory; 0 bytes: much of it is not the group's own.
static struct largest largest_kind(const struct cgroup_answer *answer) {
    enum { ELSEWHERE_SHARE = 20 };
    struct largest largest = {0, ""};
    uint64_t anonymous = answer->parts.bytes[CGROUP_ANONYMOUS];
    if (answer->elsewhere_bytes > anonymous / ELSEWHERE_SHARE) return largest;
    for (int kind = 0; kind < KINDS; kind++)
        take_larger(&largest, answer->processes.bytes[kind],
                    memory_kind_text((enum memory_kind)kind));
    take_larger(&largest, answer->unread_bytes, "of no process that was read");
    return largest;
}

static void write_sentence(struct cgroup_answer *answer) {
    struct largest part = largest_part(answer), kind = {0, ""};
    char *text = answer->sentence;
    if (part.bytes == answer->parts.bytes[CGROUP_ANONYMOUS]) kind = largest_kind(answer);
    if (!answer->parts.used_bytes)
        snprintf(text, CGROUP_SENTENCE_BYTES, "it uses no memory");
    else
        snprintf(text, CGROUP_SENTENCE_BYTES, "the largest part, %s (%s), is %s%s%s%s%s",
                 units_size((int64_t)part.bytes).text,
                 units_percent((int64_t)part.bytes, (int64_t)answer->parts.used_bytes).text,
                 part.text, kind.bytes ? ", " : "",
                 kind.bytes ? units_size((int64_t)kind.bytes).text : "",
                 kind.bytes ? " of it " : "", kind.text);
}

// --- the answer

// Compares the kernel's sum of anonymous memory with that of the processes.
static void compare_sums(struct cgroup_answer *answer) {
    uint64_t charged = answer->parts.bytes[CGROUP_ANONYMOUS];
    uint64_t found = answer->processes.anonymous_bytes;
    answer->unread_bytes = charged > found ? charged - found : 0;
    answer->elsewhere_bytes = found > charged ? found - charged : 0;
}

// Splits the kernel's sum by what its processes have: page tables, and a stack a thread.
static void split_kernel(struct cgroup_answer *answer) {
    const struct cgroup_parts *parts = &answer->parts;
    const uint64_t page = process_page_bytes(), stack = page > STACK_LEAST ? page : STACK_LEAST;
    uint64_t left = parts->bytes[CGROUP_KERNEL], wanted = answer->processes.page_table_bytes;
    if (!answer->cgroup.is_old || !parts->is_told[CGROUP_KERNEL]) return;
    answer->kernel_tables_bytes = wanted < left ? wanted : left;
    left -= answer->kernel_tables_bytes;
    wanted = answer->processes.thread_count * stack;
    answer->kernel_stacks_bytes = wanted < left ? wanted : left;
    answer->kernel_rest_bytes = left - answer->kernel_stacks_bytes;
}

// The processes are looked at first: that may take some time, and the kernel's sums are read in an
// instant.
static bool look(const char *word, struct cgroup_answer *answer, struct error *error) {
    if (!cgroup_open(word, &answer->cgroup, error)) return false;
    if (!cgroup_processes_read(&answer->cgroup, own_bytes, &answer->processes))
        return error_set(error, "no memory for the processes of %s", word);
    if (!cgroup_parts_read(&answer->cgroup, &answer->parts))
        return error_set(error, "%s: it was removed while it was looked at", word);
    compare_sums(answer);
    split_kernel(answer);
    open_heaps(answer);
    write_sentence(answer);
    return true;
}

static bool check_words(const struct command_args *args, struct error *error) {
    if (args_has(args, OPTION_NO_COPY_LIMIT))
        return error_set(error,
                         "%s: --cgroup and --no-copy-limit exclude each other: nothing is copied",
                         args->command->name);
    return !args->word_count || error_set(error, "%s: --cgroup PATH or %s, not both",
                                          args->command->name, args->words[0]);
}

int cgroup_report(const struct command_args *args) {
    struct error error;
    if (!check_words(args, &error)) return command_fail(STATUS_USAGE, &error);
    struct cgroup_answer *answer = calloc(1, sizeof *answer);
    bool is_ok = answer ? look(args_text(args, OPTION_CGROUP, ""), answer, &error)
                        : error_set(&error, "out of memory");
    if (is_ok && args_has(args, OPTION_JSON))
        cgroup_json_print(answer);
    else if (is_ok)
        cgroup_screen_print(answer);
    for (size_t i = 0; answer && i < answer->heap_count; i++) free_heap(answer->heaps[i]);
    if (answer) cgroup_processes_free(&answer->processes);
    free(answer);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
