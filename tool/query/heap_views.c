// SPDX-License-Identifier: Apache-2.0
#include "tool/query/heap_views.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/heap/other_heaps.h"
#include "tool/heap/recorded.h"
#include "tool/heap/survey.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"
#include "tool/query/progress.h"

enum { STATM_BYTES = 128 };

// A running process of that name comes before a file that is neither a recording nor a core.
static bool means_process(const char *word) {
    pid_t first;
    return access(word, F_OK) || (running_may_be(word) && running_count(word, &first));
}

bool heap_views_have_memory(const char *word) {
    return word && (means_process(word) || core_is_one(word));
}

bool heap_look_is_possible(const char *word) {
    return word && (running_may_be(word) || core_is_one(word));
}

bool heap_look_blame(const struct heap_look *look, struct error *error) {
    return error_wrap(error, look->is_core ? "%s" : "process %s", look->name);
}

// --- a process

static bool read_header(struct heap_look *look, const char *path) {
    struct cairn_header *header = &look->header;
    struct source source;
    if (!source_open(path, &source, NULL)) return false;
    bool is_ours = source_read(&source, 0, header, sizeof *header) == sizeof *header &&
                   !memcmp(header->magic, CAIRN_MAGIC, sizeof header->magic) &&
                   header->version == CAIRN_VERSION && header->live_map;
    if (is_ours)
        look->recording = source.descriptor;
    else
        source_close(&source);
    return is_ours;
}

static void find_recording(struct heap_look *look) {
    struct live_process process;
    struct error unused;
    if (!live_choose(look->name, &process, &unused)) return;
    look->is_recorded = read_header(look, process.path);
    snprintf(look->path, sizeof look->path, "/proc/self/fd/%d", look->recording);
}

bool heap_look_may_be_another(const struct heap_look *look) {
    return !look->is_recorded || look->header.live_samples ||
           look->header.slot_bytes == sizeof(uint64_t);
}

static enum plan_scope scope_of(const struct heap_look *look, enum heap_depth depth) {
    bool is_other = look->is_recorded && look->header.slot_bytes == sizeof(uint64_t);
    if (depth == HEAP_REFERENCES) return PLAN_ALL;
    // the tables of jemalloc lie anywhere
    if (heap_look_may_be_another(look) && process_has_other_heap(look->pid)) return PLAN_ALL;
    if (depth == HEAP_HEADS) return PLAN_HEADS;
    return depth == HEAP_TYPES && is_other ? PLAN_ALL : PLAN_HEAP;
}

// Says which of several processes is taken: one that is recorded comes before others.
static bool find_recorded(const char *word, struct heap_look *look) {
    struct live_process process;
    struct error unused;
    pid_t first;
    if (running_is_number(word) || !live_choose(word, &process, &unused)) return false;
    look->pid = process.pid;
    if (running_count(word, &first) > 1)
        fprintf(stderr, "cairn: of the processes of this name, %d is taken: it is recorded\n",
                process.pid);
    return true;
}

static bool find_process(const char *word, struct heap_look *look, struct error *error) {
    struct error reason;
    if (find_recorded(word, look)) return true;
    if (running_find(word, &look->pid, &reason)) return true;
    if (running_is_number(word)) return error_set(error, "%s", reason.text);
    return error_set(error, "%s: No such file or directory; %s", word, reason.text);
}

static uint64_t resident_bytes(pid_t pid) {
    char pages[STATM_BYTES] = "";
    uint64_t resident = 0;
    if (process_read(pid, "statm", pages, sizeof pages)) sscanf(pages, "%*u %" SCNu64, &resident);
    return resident * process_page_bytes();
}

static bool take_process(const struct heap_wish *wish, struct heap_look *look,
                         struct error *error) {
    progress_wait("looking at its memory", resident_bytes(look->pid));
    const struct stopped_request request = {.pid = look->pid,
                                            .header = look->is_recorded ? &look->header : NULL,
                                            .scope = scope_of(look, wish->depth),
                                            .bytes_max = wish->bytes_max,
                                            .way_around = wish->way_around,
                                            .may_draw = wish->may_draw,
                                            .seed = wish->seed};
    look->core = &look->live.core;
    bool is_taken = stopped_take(&request, &look->live, error);
    progress_wait_end();
    if (is_taken) {
        removed_files_hold(&look->removed, look->pid, look->core);
        return true;
    }
    if (look->recording >= 0) close(look->recording);
    return heap_look_blame(look, error);
}

// --- a core

static bool take_core(const char *word, struct heap_look *look, struct error *error) {
    look->is_core = true;
    look->core = &look->own;
    snprintf(look->name, sizeof look->name, "%s", word);
    if (!core_open(word, &look->own, error)) return false;
    look->is_recorded = core_find_recording(&look->own, &look->header);
    return true;
}

bool heap_look_take(const char *word, const struct heap_wish *wish, struct heap_look *look,
                    struct error *error) {
    memset(look, 0, sizeof *look);
    look->recording = -1;
    if (!means_process(word)) return take_core(word, look, error);
    if (!find_process(word, look, error)) return false;
    snprintf(look->name, sizeof look->name, "%d", (int)look->pid);
    find_recording(look);
    return take_process(wish, look, error);
}

bool heap_look_take_recorded(pid_t pid, const struct cairn_header *header,
                             const struct heap_wish *wish, struct heap_look *look,
                             struct error *error) {
    memset(look, 0, sizeof *look);
    look->recording = -1;
    look->pid = pid;
    snprintf(look->name, sizeof look->name, "%d", (int)pid);
    look->header = *header;
    look->is_recorded = true;
    return take_process(wish, look, error);
}

const struct spans *heap_look_begins(const struct heap_look *look) {
    bool is_part = !look->is_core && look->live.windows.are_by_map;
    return is_part ? &look->live.windows.begins : NULL;
}

bool heap_look_recording(const struct heap_look *look, struct opened *opened, struct error *error) {
    char path[PATH_MAX];
    if (!look->is_core) return opened_open(look->path, opened, error);
    return core_copy_recording(look->core, &look->header, path, error) &&
           opened_open(path, opened, error);
}

bool heap_look_survey(const struct heap_look *look, const struct profile *profile,
                      struct heap_state *state, struct error *error) {
    const struct core_image *core = look->core;
    struct core_blocks blocks = {0};
    struct core_samples samples = {0};
    bool is_recorded = look->is_recorded && profile;
    struct survey survey = {.core = core,
                            .live = look->is_core ? NULL : &look->live,
                            .blocks = is_recorded ? &blocks : NULL,
                            .samples = is_recorded ? &samples : NULL,
                            .profile = is_recorded ? profile : NULL,
                            .may_be_another = heap_look_may_be_another(look)};
    size_t cells = is_recorded ? profile->cell_count : 0;
    bool is_ok =
        !is_recorded || (core_read_blocks(core, &look->header, cells, NULL, &blocks, error) &&
                         core_read_samples(core, &look->header, cells, &samples, error));
    progress_wait("finding who keeps its pages", look->live.copied_bytes);
    if (!is_recorded) survey.types = core_types_open(core, name_options_symbols());
    is_ok = is_ok && survey_build(&survey, state, error);
    progress_wait_end();
    core_free_blocks(&blocks);
    core_free_samples(&samples);
    core_types_close(survey.types);
    return is_ok;
}

void heap_look_close(struct heap_look *look) {
    if (look->is_core)
        core_close(&look->own);
    else
        stopped_free(&look->live);
    removed_files_close(&look->removed);
    if (look->recording >= 0) close(look->recording);
}
