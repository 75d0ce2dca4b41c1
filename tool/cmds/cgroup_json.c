// SPDX-License-Identifier: Apache-2.0
// The answer of `report --cgroup` as JSON, schema "cairn.cgroup/1".
#include <stdio.h>

#include "tool/base/json.h"
#include "tool/cmds/cgroup_answer.h"
#include "tool/render/json_values.h"

static void put_bytes(struct json *json, const char *key, bool is_known, uint64_t bytes) {
    if (is_known)
        json_put_uint(json, key, bytes);
    else
        json_put_null(json, key);
}

static void put_parts(struct json *json, const struct cgroup_parts *parts) {
    json_open_object(json, "parts");
    for (int part = 0; part < CGROUP_PARTS; part++)
        put_bytes(json, cgroup_part_key((enum cgroup_part)part), parts->is_told[part],
                  parts->bytes[part]);
    json_close(json);
    json_put_uint(json, "over_bytes", parts->over_bytes);
}

static void put_beside(struct json *json, const struct cgroup_parts *parts) {
    json_open_object(json, "beside");
    put_bytes(json, "swap", parts->has_swap, parts->swap_bytes);
    json_put_uint(json, "kernel", parts->beside_kernel_bytes);
    json_put_uint(json, "sockets", parts->beside_sockets_bytes);
    json_put_uint(json, "hugetlb", parts->beside_hugetlb_bytes);
    json_close(json);
    json_put_uint(json, "anonymous_huge_bytes", parts->huge_bytes);
}

static void put_kinds(struct json *json, const char *key, const uint64_t bytes[KINDS]) {
    json_open_object(json, key);
    for (int kind = 0; kind < KINDS; kind++)
        json_put_uint(json, memory_kind_key((enum memory_kind)kind), bytes[kind]);
    json_close(json);
}

// The kernel's memory where it is one sum; null: its parts are told.
static void put_kernel(struct json *json, const struct cgroup_answer *answer) {
    bool is_sum = answer->cgroup.is_old && answer->parts.is_told[CGROUP_KERNEL];
    json_open_object(json, "kernel");
    put_bytes(json, "page_tables", is_sum, answer->kernel_tables_bytes);
    put_bytes(json, "stacks_about", is_sum, answer->kernel_stacks_bytes);
    put_bytes(json, "rest", is_sum, answer->kernel_rest_bytes);
    put_bytes(json, "threads", true, answer->processes.thread_count);
    json_close(json);
}

static void put_anonymous(struct json *json, const struct cgroup_answer *answer) {
    const struct cgroup_processes *processes = &answer->processes;
    put_kinds(json, "anonymous", processes->bytes);
    json_put_uint(json, "anonymous_unread_bytes", answer->unread_bytes);
    json_put_uint(json, "anonymous_elsewhere_bytes", answer->elsewhere_bytes);
    json_put_bool(json, "heap_free_at_least", processes->is_cut);
    json_open_array(json, "named");
    for (size_t i = 0; i < processes->names.count; i++) {
        json_open_object(json, NULL);
        json_put_string(json, "name", processes->names.items[i].name);
        json_put_uint(json, "bytes", processes->names.items[i].pss_bytes);
        json_close(json);
    }
    json_close(json);
}

static const struct cgroup_heap *heap_of(const struct cgroup_answer *answer,
                                         const struct cgroup_process *process) {
    for (size_t i = 0; i < answer->heap_count; i++)
        if (answer->heaps[i]->process == process) return answer->heaps[i];
    return NULL;
}

static void put_sites(struct json *json, const struct cgroup_heap *heap) {
    json_open_array(json, "stacks");
    for (size_t i = 0; heap && i < heap->sites.sites.count && i < CGROUP_SITES; i++) {
        const struct site *site = &heap->sites.sites.items[i];
        json_open_object(json, NULL);
        json_put_int(json, "live_bytes", site->measured.value);
        json_put_int(json, "live_blocks", site->measured.blocks);
        json_open_array(json, "frames");
        for (unsigned k = 0; k < site->frame_count; k++)
            json_values_put_frame(json, site->frames[k]);
        json_close(json);
        json_close(json);
    }
    json_close(json);
}

static void put_process(struct json *json, const struct cgroup_answer *answer,
                        const struct cgroup_process *process) {
    const struct cgroup_heap *heap = heap_of(answer, process);
    json_open_object(json, NULL);
    json_put_int(json, "pid", process->pid);
    json_put_string(json, "name", process->name);
    json_put_uint(json, "rss_bytes", process->rss_bytes);
    json_put_uint(json, "swap_bytes", process->swap_bytes);
    json_put_uint(json, "anonymous_bytes", process->anonymous_bytes);
    put_kinds(json, "anonymous", process->bytes);
    json_put_bool(json, "heap_free_at_least", process->is_cut);
    json_put_bool(json, "recorded", process->is_recorded);
    put_bytes(json, "live_bytes", heap,
              heap && heap->live_bytes > 0 ? (uint64_t)heap->live_bytes : 0);
    json_put_bool(json, "sampled", heap && heap->is_sampled);
    put_sites(json, heap);
    json_close(json);
}

static void put_files(struct json *json, const struct cgroup_processes *processes) {
    enum { FILES_SHOWN = 100 };
    json_open_array(json, "files");
    for (size_t i = 0; i < processes->files.count && i < FILES_SHOWN; i++) {
        const struct cgroup_file *file = &processes->files.items[i];
        json_open_object(json, NULL);
        json_put_string(json, "name", file->name);
        json_put_uint(json, "bytes", file->bytes);
        json_put_bool(json, "shared_memory", file->is_shared);
        json_close(json);
    }
    json_close(json);
    json_put_bool(json, "open_files_known", processes->has_open_files);
}

void cgroup_json_print(const struct cgroup_answer *answer) {
    const struct cgroup_processes *processes = &answer->processes;
    const struct cgroup_parts *parts = &answer->parts;
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.cgroup/1");
    json_put_string(&json, "path", answer->cgroup.path);
    json_put_uint(&json, "version", answer->cgroup.is_old ? 1 : 2);
    json_put_string(&json, "sentence", answer->sentence);
    json_put_uint(&json, "used_bytes", parts->used_bytes);
    put_bytes(&json, "limit_bytes", parts->limit_bytes != UINT64_MAX, parts->limit_bytes);
    json_put_uint(&json, "oom_kills", parts->kills);
    put_parts(&json, parts);
    put_beside(&json, parts);
    put_anonymous(&json, answer);
    put_kernel(&json, answer);
    json_open_array(&json, "processes");
    for (size_t i = 0; i < processes->items.count; i++)
        put_process(&json, answer, &processes->items.items[i]);
    json_close(&json);
    json_put_uint(&json, "processes_refused", processes->refused_count);
    json_put_uint(&json, "processes_hidden", processes->hidden_count);
    json_put_uint(&json, "processes_ended", processes->ended_count);
    put_files(&json, processes);
    json_close(&json);
}
